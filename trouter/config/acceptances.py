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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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
    for match in _COMMENT.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
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
    number = sum(start.line <= line for start in starts)
    if number < len(starts):
        between = lines[line : starts[number].line - 1]
        if all(_BETWEEN.fullmatch(each) for each in between):
            return number
    return number - 1


def accept(found: Iterable[Problem], accepted: Sequence[Acceptance], *, whole: bool = True) -> list[Problem]:
    """Return findings, those that are accepted with that severity.

    With ``whole``, if these are all findings, add a warning for each acceptance of what is not found.
    """
    used: set[Acceptance] = set()
    judged = []
    for finding in found:
        match = next((each for each in accepted if each.covers(finding)), None) if finding.point else None
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
