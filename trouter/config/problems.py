"""Problems of a configuration with their places: collected, never raised one at a time."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from typing import Final, NamedTuple, TypedDict, Unpack

from trouter._text import escape_unprintable

# From the first word that smells of a secret to the end of the text: such text is never shown.
_SECRET = re.compile(r"(?i)(pass[-_]?word).*", re.DOTALL)


class SourcePosition(NamedTuple):
    """A position in a configuration file; line and column count from 1, line 0 means the file as a whole."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


class Severity(StrEnum):
    """The severity of a finding: a part will not do what the file says, is unsafe, is worth knowing, or is accepted."""

    PROBLEM = "problem"
    UNSAFE = "unsafe"
    NOTE = "warning"
    ACCEPTED = "accepted"


class ProblemKind(StrEnum):
    """What programs make of a problem beside showing it; most are of no kind."""

    NONE = ""
    #: An attribute has its old name.
    RENAMED = "renamed"
    #: An attribute has no effect.
    UNUSED = "unused"
    #: The message is the older router's: management answers with it alone, as programs compare it.
    OLDER = "older"


#: The most characters of offending text in a finding.
MOST_SHOWN: Final = 80
#: Names that are compared with a word that names nothing: each comparison takes longer than reading a section.
MOST_NAMES: Final = 50
#: Words of one text that are compared with names.
MOST_WORDS: Final = 100
_Hints = dict[tuple[str, tuple[str, ...]], str]
#: The hints about the text that is judged, by the word and the names; None outside of ``few_hints``.
_hints: ContextVar[_Hints | None] = ContextVar("hints", default=None)


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem; `text` is the offending text, quoted, `suggestion` what to write instead.

    `point` is the row of the table of strictness (strictness.py) that it comes from, `entity` the identity of the
    entity that it is about; both may be empty. `reason` is the operator's, of an accepted finding.
    """

    place: SourcePosition
    message: str
    section: str = ""
    key: str = ""
    text: str = ""
    suggestion: str = ""
    severity: Severity = Severity.NOTE
    point: str = ""
    entity: str = ""
    reason: str = ""
    kind: ProblemKind = ProblemKind.NONE

    def __str__(self) -> str:
        where = ".".join(part for part in (self.section, self.key) if part)
        parts = [f"{self.place}: ", f"{where}: " if where else "", self.message]
        if self.text:
            parts.append(f": {self.text}")
        if self.suggestion:
            parts.append(f" ({self.suggestion})")
        if self.reason:
            parts.append(f"; accepted: {self.reason}")
        return escape_unprintable("".join(parts))


class ConfigurationError(Exception):
    """The configuration cannot be used; `problems` holds all its problems, in file order."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class About(TypedDict, total=False):
    """The optional fields of a finding, named as in ``Problem``; the text is as written."""

    section: str
    key: str
    text: str
    suggestion: str
    kind: ProblemKind


@dataclass(slots=True)
class Findings:
    """The collector of findings of parser and checks: errors stop the start, warnings are logged."""

    errors: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    #: The file has secureDefaults, so doubtful values are errors.
    secure: bool = False
    #: The findings are about the entity of a management request, which is served exactly or refused.
    single: bool = False
    #: Another error than these ends the judgement; None for no such bound.
    most_errors: int | None = None

    def error(self, place: SourcePosition, message: str, **about: Unpack[About]) -> None:
        if self.most_errors is not None and len(self.errors) >= self.most_errors:
            last = Problem(place, f"there are more than {self.most_errors} errors: the rest of the text is not judged")
            raise ConfigurationError(sorted([*self.errors, last], key=lambda problem: problem.place))
        self.errors.append(Problem(place, message, **_fit(about)))

    def warning(
        self,
        place: SourcePosition,
        message: str,
        *,
        severity: Severity = Severity.NOTE,
        point: str = "",
        **about: Unpack[About],
    ) -> None:
        self.warnings.append(Problem(place, message, **_fit(about), severity=severity, point=point))


def _fit(about: About) -> About:
    """Return the same fields with a text that may be shown."""
    return {**about, "text": fit_to_show(about.get("text", ""), about.get("key", ""))}


def fit_to_show(text: str, key: str = "") -> str:
    """Return offending text fit for a log line: quoted, escaped, cut, and without what may be a password."""
    if not text:
        return ""
    text = "***" if _SECRET.search(key) else _SECRET.sub(r"\1 ***", text)
    return repr(text if len(text) <= MOST_SHOWN else text[: MOST_SHOWN - 3] + "...")


@contextmanager
def few_hints() -> Iterator[None]:
    """Let ``nearest`` compare only the first words that name nothing: a text may have tens of thousands of them."""
    token = _hints.set({})
    try:
        yield
    finally:
        _hints.reset(token)


def nearest(word: str, names: Iterable[str]) -> str:
    """Return `did you mean 'x'?` for the name closest to `word`, or nothing when none of the first names is close."""
    known, hints = tuple(islice(names, MOST_NAMES)), _hints.get()
    if hints is None:
        return _closest(word, known)
    if (word, known) not in hints:
        if len(hints) == MOST_WORDS:
            return ""
        hints[word, known] = _closest(word, known)
    return hints[word, known]


def _closest(word: str, names: Iterable[str]) -> str:
    by_folded = {name.casefold(): name for name in names}
    close = difflib.get_close_matches(word.casefold(), by_folded, n=1, cutoff=0.6)
    return f"did you mean '{by_folded[close[0]]}'?" if close else ""
