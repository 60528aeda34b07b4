"""The recorder: every room calls ``Recorder.emit``, and outputs of records are added and removed at run time.

Emitting is one look at a list while there are no takers; otherwise it costs a few microseconds, never waits, and never
raises for what a stranger sent.
"""

from __future__ import annotations

from typing import Protocol

from trouter.records import Record
from trouter.records.text import tidy

from .clocks import now_us
from .denials import Denials
from .link_records import LinkRecords
from .repeats import Repeats


class Taker(Protocol):
    """A receiver of records."""

    def put(self, record: Record) -> None:
        """Take one in, at once; neither its emitter nor the taker changes it any more."""


class Recorder:
    """Hands every record to all takers."""

    def __init__(self) -> None:
        #: Whether there are takers; a caller for whom a record is much work may ask first.
        self.active = False
        self._takers: tuple[Taker, ...] = ()
        #: What is remembered of links.
        self.links = LinkRecords(self)
        #: What strangers bring about again and again, for the log as well.
        self.repeats = Repeats()
        #: What was denied lately, whether there are takers or not.
        self.denials = Denials()

    def add(self, taker: Taker) -> None:
        """Give ``taker`` every record from now on."""
        self._takers = (*self._takers, taker)
        self.active = True

    def remove(self, taker: Taker) -> None:
        """Give ``taker`` no more records; a second call does nothing."""
        self._takers = tuple(other for other in self._takers if other is not taker)
        self.active = bool(self._takers)

    def emit(self, record: Record) -> None:
        """Hand over what happened, just now unless the record says otherwise. The caller gives the record away."""
        takers = self._takers
        if not takers:
            return
        tidy(record)
        if record.t < 0:
            record.t = now_us()
        for taker in takers:
            taker.put(record)
