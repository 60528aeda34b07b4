"""The last denials and refused logins, as management shows them: a short memory that no peer can make longer.

A denial that repeats is one entry with a count, so that a peer which asks again and again pushes no other out.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from trouter.records.text import clean

#: Different denials that are remembered.
MAX_REMEMBERED: Final = 100


class What(NamedTuple):
    """What was denied to which user. ``about`` is the address, or what else it was about."""

    operation: str
    reason: str
    user: str
    host: str
    vhost: str
    rule: str
    about: str


@dataclass(slots=True)
class _Seen:
    number: int
    count: int = 0
    at_ms: int = 0


class Denials:
    """The denials of one router. ``clock`` tells seconds since 1970."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.logins_denied = 0
        self._clock = clock
        self._number = 0
        self._remembered: OrderedDict[What, _Seen] = OrderedDict()

    def note(self, what: What, count: int = 1) -> None:
        """Remember a denial that happened ``count`` times, just now."""
        what = What(*map(clean, what))
        seen = self._remembered.get(what)
        if seen is None:
            self._number += 1
            seen = self._remembered[what] = _Seen(self._number)
            if len(self._remembered) > MAX_REMEMBERED:
                self._remembered.popitem(last=False)
        seen.count += count
        seen.at_ms = round(self._clock() * 1000)
        self._remembered.move_to_end(what)

    def login(self, reason: str, user: str, host: str, listener: str, mechanism: str) -> None:
        """Count a login that was refused, and remember it."""
        self.logins_denied += 1
        self.note(What("login", reason, user, host, "", f"listener:{listener}", mechanism))

    def rows(self) -> Iterator[tuple[int, Mapping[str, object]]]:
        """Yield what is remembered by number, the newest last; empty texts are None."""
        for what, seen in self._remembered.items():
            told = {name: text or None for name, text in what._asdict().items()}
            yield seen.number, {**told, "count": seen.count, "at": seen.at_ms}
