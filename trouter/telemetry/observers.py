"""Passes records to observing plugins in a thread, so that none of them can delay the router."""

from __future__ import annotations

import json
from collections import Counter
from types import MappingProxyType
from typing import Final

import trio

from trouter._bell import Bell
from trouter.hooks import Culprit, Plugins
from trouter.records import PluginFault, Record, RecordsDropped
from trouter.records.segments import numbered
from trouter.records.stream import RecordQueue, Taken

from .clocks import now_us
from .periodic import fault_record
from .recorder import Recorder

#: Records that wait for the plugins; those without room are counted and reported.
MAX_WAITING: Final = 16_384
#: Interval of checks whether any plugin observes, and time-out for the last records at the end.
LOOK_S: Final = 1.0
CLOSE_S: Final = 2.0


class Observers:
    """A taker of records for all plugins together; numbers them from 0."""

    def __init__(self, plugins: Plugins, recorder: Recorder) -> None:
        self._plugins = plugins
        self._recorder = recorder
        self._bell = Bell()
        self._stream = RecordQueue(self._bell.ring, limit=MAX_WAITING)
        self._thread = trio.CapacityLimiter(1)
        self._next = 0
        self._faults: Counter[Culprit] = Counter()

    def put(self, record: Record) -> None:
        """Queue a record, unless it reports a fault of observing, which would cause another."""
        if not (isinstance(record, PluginFault) and record.hook == "observe"):
            self._stream.put(record)

    def update_kinds(self) -> None:
        """Take the kinds of records that the plugins want now, if any."""
        kinds = self._plugins.observed_kinds()
        self._stream.kinds = kinds
        self._recorder.remove(self)
        if kinds is None or kinds:
            self._recorder.add(self)

    async def run(self) -> None:
        """Pass records on until cancelled, then those that are left."""
        try:
            while True:
                with trio.move_on_after(LOOK_S):
                    await self._bell.wait()
                self.update_kinds()
                if self._stream:
                    await self._hand_on()
        finally:
            self._recorder.remove(self)
            with trio.CancelScope(shield=True, deadline=trio.current_time() + CLOSE_S):
                await self._hand_on()

    async def _hand_on(self) -> None:
        taken = self._stream.take_records()
        await trio.to_thread.run_sync(self._notify, taken, abandon_on_cancel=True, limiter=self._thread)
        faults = Counter({each: count for each, count in self._plugins.culprits.items() if each.hook == "observe"})
        for culprit, count in (faults - self._faults).items():
            self._recorder.emit(fault_record(culprit, "ignored", count))
        self._faults = faults

    def _notify(self, taken: Taken) -> None:
        for record in taken.records:
            self._observe(record)
        if taken.lost:
            first, count = self._next, taken.lost.total()
            self._next += count
            self._observe(
                RecordsDropped(
                    t=now_us(),
                    reason="queue-full",
                    from_n=first,
                    to_n=self._next - 1,
                    count=count,
                    by_kind=dict(taken.lost),
                )
            )

    def _observe(self, record: Record) -> None:
        fields = json.loads(numbered(self._next, record))
        self._next += 1
        self._plugins.observe(MappingProxyType(fields))
