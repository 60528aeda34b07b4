"""Findings that the operator accepts: a comment in the file names the point, and the reason.

    # trouter: accept authenticate-peer: only users of this machine reach this listener
    listener {
        host: 127.0.0.1
    }

The comment has a line of its own, directly above a section or inside of it, and holds for that section. Above the first
section, apart from it, it holds for the file as a whole.
"""

from __future__ import annotations

import dataclasses
import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from trouter.config.nodes import Section
from trouter.config.problems import Findings, Problem, Severity, SourcePosition, nearest
from trouter.config.strictness import POINTS

_COMMENT: Final = re.compile(
    r"^(?P<indent>[ \t]*)#[ \t]*trouter:[ \t]*accept\b[ \t]*(?P<point>[\w-]*)[ \t]*:?[ \t]*(?P<reason>.*?)\s*$",
    re.MULTILINE,
)
#: Lines between a comment and the section that it is about: other comments, and the brackets of the JSON form.
_BETWEEN: Final = re.compile(r"[ \t]*(?:#.*|[\[,][\[, \t]*)")
FORM: Final = "write: # trouter: accept POINT: REASON"


@dataclass(frozen=True, slots=True)
class Acceptance:
    """An accepted point, for the part of a file from ``begin`` to before ``end``; for the whole file without both."""

    place: SourcePosition
    point: str
    reason: str
    begin: SourcePosition | None = None
    end: SourcePosition | None = None

    def covers(self, finding: Problem) -> bool:
        """Return whether this is about a finding."""
        at = finding.place
        if finding.point != self.point or at.file != self.place.file:
            return False
        if self.begin is None:
            return not at.line
        return self.begin <= at and (self.end is None or at < self.end)


def acceptances(text: str, file: str, sections: Sequence[Section], findings: Findings) -> list[Acceptance]:
    """Return the acceptances in a text; one without a point or without a reason is an error."""
    if "accept" not in text:
        return []
    starts = sorted(section.place for section in sections)
    lines = text.split("\n")
    found = []
    line, counted = 1, 0
    for match in _COMMENT.finditer(text):
        line, counted = line + text.count("\n", counted, match.start()), match.start()
        place = SourcePosition(file, line, len(match["indent"]) + 1)
        if not (match["point"] and match["reason"]):
            missing = "the reason" if match["point"] else "the point and the reason"
            findings.error(place, f"this acceptance lacks {missing}", suggestion=FORM)
            continue
        number = _section(lines, line, starts)
        begin = starts[number] if number >= 0 else None
        end = starts[number + 1] if 0 <= number < len(starts) - 1 else None
        found.append(Acceptance(place, match["point"], match["reason"], begin, end))
    return found


def _section(lines: Sequence[str], line: int, starts: Sequence[SourcePosition]) -> int:
    """Return the number of the section that a comment at a line is about; -1 for the file."""
    number = bisect_right(starts, line, key=attrgetter("line"))
    if number < len(starts):
        between = lines[line : starts[number].line - 1]
        if all(_BETWEEN.fullmatch(each) for each in between):
            return number
    return number - 1


class Accepted:
    """The acceptances of a configuration, by what they are about."""

    def __init__(self, accepted: Iterable[Acceptance]) -> None:
        self._of_file: dict[tuple[str, str], Acceptance] = {}
        self._of_section: dict[tuple[str, SourcePosition], Acceptance] = {}
        for each in accepted:
            if each.begin is None:
                self._of_file.setdefault((each.point, each.place.file), each)
            else:
                self._of_section.setdefault((each.point, each.begin), each)
        self._begins = sorted({begin for _, begin in self._of_section})

    def find(self, finding: Problem) -> Acceptance | None:
        """Return the first acceptance that is about a finding, None without one."""
        number = bisect_right(self._begins, finding.place) - 1
        found = (
            self._of_file.get((finding.point, finding.place.file)),
            self._of_section.get((finding.point, self._begins[number])) if number >= 0 else None,
        )
        return next((each for each in found if each is not None and each.covers(finding)), None)


def accept(found: Iterable[Problem], accepted: Sequence[Acceptance], *, whole: bool = True) -> list[Problem]:
    """Return findings, those that are accepted with that severity.

    With ``whole``, if these are all findings, add a warning for each acceptance of what is not found.
    """
    used: set[Acceptance] = set()
    judged = []
    covering = Accepted(accepted)
    for finding in found:
        match = covering.find(finding) if finding.point else None
        if match is not None:
            used.add(match)
            finding = dataclasses.replace(finding, severity=Severity.ACCEPTED, reason=match.reason)
        judged.append(finding)
    for each in accepted if whole else ():
        if each not in used:
            message = f"accepts {each.point}, which is not found {'here' if each.begin else 'of the file as a whole'}"
            cure = (nearest(each.point, POINTS) if each.point not in POINTS else "") or "remove the comment"
            judged.append(Problem(each.place, message, suggestion=cure))
    return judged
