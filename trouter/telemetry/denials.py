"""The last denials and refused logins, as management shows them; peers cannot make the list longer.

A repeated denial is one entry with a count, so that a peer that retries does not displace the others.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from trouter.records.text import clean

#: Different denials that are kept.
MAX_REMEMBERED: Final = 100


class What(NamedTuple):
    """The denied operation and its user. ``about`` is the address, or the mechanism of a login."""

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
    """The denials of one router. ``clock`` returns seconds since 1970."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.logins_denied = 0
        self._clock = clock
        self._number = 0
        self._remembered: OrderedDict[What, _Seen] = OrderedDict()

    def note(self, what: What, count: int = 1) -> None:
        """Record a denial that happened ``count`` times just now."""
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
        """Count and record a refused login."""
        self.logins_denied += 1
        self.note(What("login", reason, user, host, "", f"listener:{listener}", mechanism))

    def rows(self) -> Iterator[tuple[int, Mapping[str, object]]]:
        """Yield number and attributes of the denials, the newest last; empty texts become None."""
        for what, seen in self._remembered.items():
            shown = {name: text or None for name, text in what._asdict().items()}
            yield seen.number, {**shown, "count": seen.count, "at": seen.at_ms}
