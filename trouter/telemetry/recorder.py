"""The recorder: every room calls ``Recorder.emit``, and outputs of records are added and removed at run time.

Without takers, emitting costs one check; otherwise a few microseconds. It never waits, and never raises for a peer's
data.
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
        """Accept a record without waiting; neither its emitter nor a taker changes it any more."""


class Recorder:
    """The distributor of records to all takers."""

    def __init__(self) -> None:
        #: Whether there are takers; a caller may check it before it makes a costly record.
        self.active = False
        self._takers: tuple[Taker, ...] = ()
        #: The recorded counts of links.
        self.links = LinkRecords(self)
        #: Events that peers can repeat, for log and records.
        self.repeats = Repeats()
        #: The last denials, kept without takers too.
        self.denials = Denials()

    def add(self, taker: Taker) -> None:
        """Pass every record to ``taker`` from now on."""
        self._takers = (*self._takers, taker)
        self.active = True

    def remove(self, taker: Taker) -> None:
        """Pass no more records to ``taker``; does nothing if it is not a taker."""
        self._takers = tuple(other for other in self._takers if other is not taker)
        self.active = bool(self._takers)

    def emit(self, record: Record) -> None:
        """Pass a record, dated now if it has no time, to all takers; the caller must not change it any more."""
        takers = self._takers
        if not takers:
            return
        tidy(record)
        if record.t < 0:
            record.t = now_us()
        for taker in takers:
            taker.put(record)
