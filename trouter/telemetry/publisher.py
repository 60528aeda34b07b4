"""Sends records as pre-settled messages, one each, to an address of the router."""

from __future__ import annotations

from typing import Final

import trio

from trouter._bell import Bell
from trouter.net.hub import Hub
from trouter.records import Record, RecordsDropped
from trouter.records.segments import numbered
from trouter.records.stream import RecordQueue
from trouter.wire.constants import DATA, HEADER, PROPERTIES
from trouter.wire.message import section
from trouter.wire.types import Symbol

#: Records that may wait to be sent, and those sent in one turn.
MAX_WAITING: Final = 4096
BATCH: Final = 256

_NOT_DURABLE: Final = section(HEADER, [False])


class Publisher:
    """A taker of records that sends them as messages; numbers them from 0."""

    def __init__(self, hub: Hub) -> None:
        #: The destination; empty for none.
        self.address = ""
        self._bell = Bell()
        self.stream = RecordQueue(self._bell.ring, limit=MAX_WAITING)
        self._hub = hub
        self._next = 0

    def put(self, record: Record) -> None:
        """Queue a record if there is a destination."""
        if self.address:
            self.stream.put(record)

    async def run(self) -> None:
        """Send records until cancelled."""
        while True:
            await self._bell.wait()
            records, lost = self.stream.take_records()
            for at in range(0, len(records), BATCH):
                for record in records[at : at + BATCH]:
                    self._send(record)
                self._hub.flush()
                await trio.lowlevel.checkpoint()
            if lost:
                first, count = self._next, lost.total()
                self._next += count
                self._send(
                    RecordsDropped(
                        t=records[-1].t,
                        reason="queue-full",
                        from_n=first,
                        to_n=self._next - 1,
                        count=count,
                        by_kind=dict(lost),
                    )
                )
                self._hub.flush()

    def _send(self, record: Record) -> None:
        self._hub.update_clock()
        self._hub.router.inside.send_message(self.address, message_of(record.tag, numbered(self._next, record)))
        self._next += 1


def message_of(kind: str, body: bytes) -> bytes:
    """Return a message with a record's kind as subject and its JSON as body."""
    properties: list[object] = [None, None, None, kind, None, None, Symbol("application/json")]
    return b"".join((_NOT_DURABLE, section(PROPERTIES, properties), section(DATA, body)))
