"""Inlets: receiving for callers that take transfers as they come, frame by frame, and settle many at once.

A ``Receiver`` makes an object of each delivery and wakes a task for it; at hundreds of thousands a second that costs
more than all the rest. An inlet hands transfers to a ``LinkSink`` of its owner's, which may be compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import trio

from trouter.engine.ports import LinkSink

from .link import ReceivingLink
from .ports import SessionPort


class Inlet(ReceivingLink):
    """A link that we receive on; made by ``open_inlet``. Credit is given by hand, and ``sink`` hears of all that comes.

    The sink settles with ``session.settle_incoming`` of the delivery's link; ``flush`` sends what it said, in ranges.
    """

    _incoming = True

    def __init__(self, session: SessionPort, name: str | None, sink: LinkSink) -> None:
        super().__init__(session, name)
        self._sink = sink
        self._stirred = trio.lowlevel.ParkingLot()

    def grant(self, count: int) -> None:
        """Let the peer send ``count`` more deliveries; raises what ended the link."""
        self._check()
        self._link.grant(count)
        self._connection._flush()

    def drain(self) -> None:
        """Ask the peer to use its credit now or give it back; ``on_drained`` of the sink tells when that is done."""
        self._check()
        self._link.drain()
        self._connection._flush()

    def flush(self) -> None:
        """Send what the sink has settled."""
        self._connection._flush()

    def stir(self) -> None:
        """Wake ``wait``: what it waits for may have changed. The sink calls this, once for many transfers."""
        self._stirred.unpark_all()

    async def wait(self, condition: Callable[[], bool]) -> None:
        """Wait until ``condition`` holds, checked at each ``stir``; raises what ended the link."""
        await self._until(condition, self._stirred)

    async def _attach(self, source: object, target: object, **fields: Any) -> None:
        await super()._attach(source, target, **fields)
        self._link.sink = self._sink

    def _forget(self) -> None:
        """What was not settled cannot be any more."""
        session = self._session._session
        for delivery in session.incoming.all():
            if delivery.link is self._link:
                session.incoming.remove(delivery.delivery_id)
