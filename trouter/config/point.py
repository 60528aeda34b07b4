"""The row of the table of strictness: a point that secureDefaults changes, or that is reported as unsafe."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from trouter.config.problems import Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One request of a file or a peer that a careful operator would avoid or deny, declared at its attribute.

    name: in kebab-case. compatible, strict: what happens without and with `secureDefaults`; an empty ``strict`` means
    that the switch changes nothing. warning: the consequence, with gaps in braces; empty if there is no warning.
    cure: what to write. page: of docs/. subject: the attribute it is about, as `listener.role`, from the declaration.
    there: what Qpid Dispatch does, if ``compatible`` differs from that; direction: what the router allows by that, more
    (`wider`) or less (`narrower`) than there, or `other`.
    """

    name: str
    compatible: str
    strict: str = ""
    warning: str = ""
    cure: str = ""
    page: str = "configuration.md"
    severity: Severity = Severity.UNSAFE
    subject: str = ""
    there: str = ""
    direction: str = ""

    @property
    def section(self) -> str:
        """The section of the file that the point is about."""
        return self.subject.partition(".")[0]

    @property
    def attribute(self) -> str:
        """The attribute, as files spell it; empty for the section as a whole."""
        return self.subject.partition(".")[2]


def with_points(declared: Any, *points: Point) -> Any:
    """Return the declaration of an attribute with its points of strictness."""
    declared.metadata = MappingProxyType({**declared.metadata, "points": points})
    return declared
