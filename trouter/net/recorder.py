"""Where everything in this room says what happened: ``Recorder.emit``. Who takes it in comes and goes at run time.

Emitting is one look at a list while nobody takes records; otherwise it costs a few microseconds, never waits, and never
raises for what a stranger sent.
"""

from __future__ import annotations

from collections.abc import Hashable
from copy import copy
from typing import Final, Protocol

from trouter.records import PolicyDecision, Record
from trouter.records.text import tidy

from .clocks import now_us
from .link_records import LinkRecords

#: Subjects whose repeated denials are counted at a time; with more of them, each denial is told by itself.
MAX_REPEATED: Final = 10_000


class Taker(Protocol):
    """Somebody who takes in records."""

    def put(self, record: Record) -> None:
        """Take one in, at once; whoever emitted it changes it no more, nor may the taker."""


class Recorder:
    """Hands every record to all takers."""

    def __init__(self) -> None:
        #: Whether anybody takes records; whoever would have to work for a record may ask first.
        self.active = False
        self._takers: tuple[Taker, ...] = ()
        #: What is remembered of links.
        self.links = LinkRecords(self)
        self._repeated: dict[Hashable, PolicyDecision] = {}

    def add(self, taker: Taker) -> None:
        """From now on ``taker`` has every record."""
        self._takers = (*self._takers, taker)
        self.active = True

    def remove(self, taker: Taker) -> None:
        """It has no more; a second call does nothing."""
        self._takers = tuple(other for other in self._takers if other is not taker)
        self.active = bool(self._takers)

    def emit(self, record: Record) -> None:
        """Something happened, just now unless the record says otherwise. The record is not the caller's any more."""
        takers = self._takers
        if not takers:
            return
        tidy(record)
        if record.t < 0:
            record.t = now_us()
        for taker in takers:
            taker.put(record)

    def emit_repeated(self, subject: Hashable, record: PolicyDecision) -> None:
        """A denial that may come again for the same ``subject`` any moment: the first is told at once.

        Those that follow within about a second are told together.
        """
        if not self.active:
            return
        present = self._repeated.get(subject)
        if present is not None:
            present.repeat += record.repeat
            return
        if len(self._repeated) < MAX_REPEATED:
            self._repeated[subject] = _none_of(record)
        self.emit(record)

    def tell_repeated(self) -> None:
        """Tell what was counted since the last call; about once a second."""
        if self._repeated:
            repeated, self._repeated = self._repeated, {}
            for record in repeated.values():
                if record.repeat:
                    self.emit(record)


def _none_of(record: PolicyDecision) -> PolicyDecision:
    """As ``record``, to count what comes after it."""
    fresh = copy(record)
    fresh.repeat = 0
    return fresh
