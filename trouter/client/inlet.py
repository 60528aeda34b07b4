"""Inlets: receiving links for callers that process transfers frame by frame, and settle many at once.

A ``Receiver`` makes an object of each delivery and wakes a task for it, which dominates the cost at hundreds of
thousands a second. An inlet passes transfers to its owner's ``LinkSink``, which may be compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import trio

from trouter.engine.ports import LinkSink

from .link import ReceivingLink
from .ports import SessionPort


class Inlet(ReceivingLink):
    """A receiving link; made by ``open_inlet``. The caller gives credit, and ``sink`` gets the transfers.

    The sink settles with ``session.settle_incoming`` of the delivery's link; ``flush`` sends them, in ranges.
    """

    _incoming = True

    def __init__(self, session: SessionPort, name: str | None, sink: LinkSink) -> None:
        super().__init__(session, name)
        self._sink = sink
        self._stirred = trio.lowlevel.ParkingLot()

    def grant(self, count: int) -> None:
        """Grant the peer ``count`` more deliveries; raise the error that ended the link."""
        self._check()
        self._link.grant(count)
        self._connection._flush()

    def drain(self) -> None:
        """Request the peer to use its credit now or give it back; then the sink's ``on_drained`` is called."""
        self._check()
        self._link.drain()
        self._connection._flush()

    def flush(self) -> None:
        """Send the sink's dispositions."""
        self._connection._flush()

    def stir(self) -> None:
        """Wake ``wait`` to check its condition; the sink calls this, once for many transfers."""
        self._stirred.unpark_all()

    async def wait(self, condition: Callable[[], bool]) -> None:
        """Wait until ``condition`` holds, checked at each ``stir``; raise the error that ended the link."""
        await self._until(condition, self._stirred)

    async def _attach(self, source: object, target: object, **fields: Any) -> None:
        await super()._attach(source, target, **fields)
        self._link.sink = self._sink

    def _forget(self) -> None:
        """Forget unsettled deliveries, which cannot be settled any more."""
        session = self._session._session
        session.drop_link_deliveries(self._link, True)
