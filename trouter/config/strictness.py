"""The table of strictness: what `secureDefaults` changes, and what is reported as unsafe with and without it.

The router serves the files of Qpid Dispatch, and reports what is unsafe in them (docs/decisions/0010). With
`secureDefaults: yes` in the router section each point has its strict side. Each point is declared at its attribute
(``point.py:with_points``), or at its type; the code that decides takes the texts from `POINTS`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final, Unpack

from trouter.config.point import Point
from trouter.config.problems import About, Findings, Severity, SourcePosition
from trouter.config.schema import EntityType
from trouter.config.types import CONFIGURED

#: The point about sections of earlier releases, which no type declares.
_EARLIER: Final = Point(
    name="earlier-release",
    subject="tcpListener",
    compatible="a section or a log module that only releases before 1.19 know (tcpListener, httpConnector, module "
    "TCP_ADAPTOR and the like) is left out, and the rest serves",
    strict="the file is refused",
    warning="this section will be left out",
    cure="remove it",
    page="compatibility.md",
    severity=Severity.PROBLEM,
)


def points_of(types: Iterable[EntityType]) -> Iterator[Point]:
    """Yield the points that types and their attributes declare, with their subjects."""
    for kind in types:
        yield from (replace(point, subject=kind.section) for point in kind.points)
        for row in kind.own:
            yield from (replace(point, subject=f"{kind.section}.{row.name}") for point in row.points)


#: All points, by name.
POINTS: Final[dict[str, Point]] = {point.name: point for point in (*points_of(CONFIGURED), _EARLIER)}
#: The end of a message about a setting that the switch forbids.
REFUSED: Final = "with secureDefaults it is refused"


def doubt(findings: Findings, point: str, place: SourcePosition, message: str, **about: Unpack[About]) -> bool:
    """Report a doubtful value at ``place``; return whether it is served, in the way of Qpid Dispatch.

    With secureDefaults it is an error, and so is a PROBLEM in a management request. The default suggestion is the cure
    of the point.
    """
    row = POINTS[point]
    about["suggestion"] = about.get("suggestion") or row.cure
    if findings.single and row.severity is Severity.PROBLEM:
        findings.error(place, message, **about)
        return False
    if findings.secure:
        findings.error(place, f"{message}; {REFUSED}", **about)
        return False
    findings.warning(place, f"{message}: {row.warning}", severity=row.severity, point=point, **about)
    return True
