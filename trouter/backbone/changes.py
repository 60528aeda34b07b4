"""One change of the network, from its first event until the network has kept its shape for some time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

#: The lines of a change that are kept.
MAX_LINES: Final = 50


@dataclass(slots=True)
class NetworkChange:
    """One change of the network, from its first event on."""

    number: int
    began_ms: int
    began_s: float
    why: str
    #: When the shape of the network last changed, in seconds.
    last_s: float
    cause: str = ""
    settled: bool = False
    #: How often the paths were computed again.
    rounds: int = 0
    lines: list[str] = field(default_factory=list)
    left_out: int = 0
    #: The routers whose way changed, ended or began, in order.
    moved: dict[str, None] = field(default_factory=dict)
    reachable: int = 0

    @property
    def took_s(self) -> float:
        """The seconds from the first event to the last change of shape."""
        return self.last_s - self.began_s

    def add_line(self, line: str) -> None:
        """Add a line; beyond ``MAX_LINES``, only count it."""
        if len(self.lines) < MAX_LINES:
            self.lines.append(line)
        else:
            self.left_out += 1

    def shown_lines(self) -> list[str]:
        """Return the lines, with one about those that were left out."""
        return [*self.lines, f"and {self.left_out} more"] if self.left_out else list(self.lines)
