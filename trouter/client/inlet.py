"""Inlets: receiving links for callers that process transfers frame by frame, and settle many at once.

A ``Receiver`` makes an object of each delivery and wakes a task for it, which dominates the cost at hundreds of
thousands a second. An inlet passes transfers to its owner's ``LinkSink``, which may be compiled.
"""

from __future__ import annotations

from collections.abc import Callable

import trio

from trouter.engine.link import IncomingLink
from trouter.engine.ports import LinkSink

from .link import ClientLink
from .ports import ClientSessionPort


class Inlet(ClientLink):
    """A receiving link; made by ``open_inlet``. The caller gives credit, and ``sink`` gets the transfers.

    The sink settles with ``session.settle_incoming`` of the delivery's link; ``flush`` sends them, in ranges.
    """

    def __init__(self, session: ClientSessionPort, name: str | None, sink: LinkSink) -> None:
        super().__init__(session, name, incoming=True, sink=sink)
        self._link: IncomingLink = self._attached.link  # type: ignore[assignment]  # as ``incoming`` says
        self._stirred = trio.lowlevel.ParkingLot()

    def grant(self, count: int) -> None:
        """Grant the peer ``count`` more deliveries; raise the error that ended the link."""
        self._check_usable()
        self._link.grant(count)
        self._connection._flush()

    def drain(self) -> None:
        """Request the peer to use its credit now or give it back; then the sink's ``on_drained`` is called."""
        self._check_usable()
        self._link.drain()
        self._connection._flush()

    def flush(self) -> None:
        """Send the sink's dispositions."""
        self._connection._flush()

    def wake_waiting(self) -> None:
        """Wake ``wait`` to check its condition; the sink calls this, once for many transfers."""
        self._stirred.unpark_all()

    async def wait(self, condition: Callable[[], bool]) -> None:
        """Wait until ``condition`` holds, checked at each ``wake_waiting``; raise the error that ended the link."""
        await self._wait_until(condition, self._stirred)
