"""Receiving: deliveries wait here, never more than the credit, until the application takes them.

With automatic credit the peer may have ``credit`` deliveries under way, waiting here, or taken and unsettled; settling
one makes room for the next. So a slow consumer slows down the sender, and nothing piles up in between.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import trio

from trouter.engine.link import IncomingLink
from trouter.engine.ports import Delivery as EngineDelivery
from trouter.engine.ports import LinkPort
from trouter.wire.performatives import RELEASED, encode_state

from .delivery import Delivery
from .link import ClientLink, ReceiverSettleMode
from .ports import ClientSessionPort


class _ReceivedDelivery(EngineDelivery):
    """The engine's delivery of a message, with the one for the application."""

    __slots__ = ("shown",)

    def __init__(self, link: LinkPort) -> None:
        super().__init__(link)
        #: None until its first frame is processed.
        self.shown: Delivery | None = None


class Receiver(ClientLink):
    """A receiving link; made by ``open_receiver``. Iterate over it, or call ``receive``."""

    def __init__(
        self, session: ClientSessionPort, name: str | None, mode: ReceiverSettleMode, credit: int, *, stream: bool
    ) -> None:
        super().__init__(session, name, incoming=True)
        self._link: IncomingLink = self._attached.link  # type: ignore[assignment]  # as ``incoming`` says
        self._mode = mode
        self._stream = stream
        #: The most deliveries that automatic credit allows at once; 0 if the caller gives credit.
        self._allowance = credit
        self._paused = False
        #: Deliveries that count against the allowance: here and unsettled.
        self._held = 0
        self._ready: deque[Delivery] = deque()
        #: Streamed deliveries with bytes held here, or still to come.
        self._streams: set[Delivery] = set()
        #: Tasks that wait for a delivery, and for the end of a drain.
        self._arrived = trio.lowlevel.ParkingLot()
        self._drained = trio.lowlevel.ParkingLot()

    # --- taking deliveries

    async def receive(self) -> Delivery:
        """Return the next delivery; after the last pre-settled one, raise the error that ended the link."""
        await trio.lowlevel.checkpoint_if_cancelled()
        if self._ready:
            await self._connection._let_others_run()
        while not self._ready:
            await self._wait_until(lambda: bool(self._ready), self._arrived)
        return self._pop_ready()

    def receive_nowait(self) -> Delivery:
        """Return the next delivery if one is here; else raise trio.WouldBlock, or the error that ended the link."""
        if not self._ready:
            self._check_usable()
            raise trio.WouldBlock
        return self._pop_ready()

    def __aiter__(self) -> Receiver:
        return self

    async def __anext__(self) -> Delivery:
        return await self.receive()

    def _pop_ready(self) -> Delivery:
        delivery = self._ready.popleft()
        if delivery.presettled and not self._stream:
            delivery._free_credit()
        return delivery

    # --- credit

    def add_credit(self, count: int) -> None:
        """Grant the peer ``count`` more deliveries. Only for receivers with ``credit=0``, else RuntimeError."""
        if self._allowance > 0:
            raise RuntimeError("this receiver gives credit by itself")
        self._check_usable()
        self._link.grant(count)
        self._connection._flush_soon()

    async def drain(self) -> None:
        """Request the peer to send what it has now or give its credit back, and wait until no more can come.

        The deliveries that came are then here for ``receive_nowait``. Automatic credit stops; ``resume`` starts it
        again.
        """
        self._check_usable()
        self._paused = True
        self._link.drain()
        self._connection._flush()
        await self._wait_until(self._is_drained, self._drained)
        await trio.lowlevel.checkpoint()

    def resume(self) -> None:
        """Start automatic credit again after ``drain``."""
        self._check_usable()
        self._paused = False
        self._replenish()

    def _is_drained(self) -> bool:
        return self._link.credit <= 0 and (self._stream or self._link.partial is None)

    def _replenish(self) -> None:
        """Grant the free credit, a few deliveries at a time while the peer has plenty."""
        if self._allowance == 0 or self._paused or not self.usable:
            return
        free = self._allowance - self._held - self._link.credit
        if free > 0 and free >= self._link.credit:
            self._link.grant(free)
            self._connection._flush_soon()

    def _free_credit(self) -> None:
        """Count a delivery no longer against the allowance."""
        self._held -= 1
        self._replenish()

    # --- from the peer

    def make_delivery(self, link: LinkPort) -> EngineDelivery:
        """See ``LinkSink``."""
        return _ReceivedDelivery(link)

    def on_transfer(self, link: LinkPort, delivery: EngineDelivery, data: bytes, start: int, end: int) -> None:
        """Process a frame of a delivery."""
        received: _ReceivedDelivery = delivery  # type: ignore[assignment]  # made by ``make_delivery``
        ours = received.shown
        if ours is None:
            ours = received.shown = Delivery(self, delivery)
            self._held += 1
            if self._stream:
                self._streams.add(ours)
                self._push_ready(ours)
        ours._add_piece(data[start:end])
        if delivery.complete and not self._stream:
            self._push_ready(ours)
        if self._paused or not self._allowance:
            self._drained.unpark_all()

    def _push_ready(self, delivery: Delivery) -> None:
        self._ready.append(delivery)
        self._arrived.unpark()

    def on_aborted(self, link: LinkPort, delivery: EngineDelivery) -> None:
        """Abort the delivery: a task that reads it gets DeliveryAborted; otherwise it is dropped."""
        received: _ReceivedDelivery = delivery  # type: ignore[assignment]  # made by ``make_delivery``
        ours = received.shown
        if ours is not None:
            ours._mark_aborted()
            if ours in self._ready:
                self._ready.remove(ours)
        self._drained.unpark_all()

    def on_disposition(self, delivery: EngineDelivery) -> None:
        """Note that the sender settled, or changed its state."""
        received: _ReceivedDelivery = delivery  # type: ignore[assignment]  # made by ``make_delivery``
        if received.shown is not None:
            received.shown._wake_waiting()

    def on_drained(self, link: LinkPort) -> None:
        """Note that the sender gave its credit back."""
        self._drained.unpark_all()

    # --- the end

    def _settle_unread(self) -> None:
        """See ``LinkOwner``."""
        released = encode_state(RELEASED)
        session = self._session._session
        for delivery in self._ready:
            if not delivery.presettled:
                session.settle_incoming(delivery._delivery, RELEASED.descriptor, released, True)

    async def _attach(self, source: object, target: object, **fields: Any) -> None:
        await super()._attach(source, target, **fields)
        self._link.max_message_bytes = fields["max_message_size"] or 0
        self._replenish()
        self._connection._flush()

    def _forget_deliveries(self) -> None:
        """Forget deliveries that cannot be settled any more; keep complete pre-settled ones for the application."""
        super()._forget_deliveries()
        for unread in list(self._streams):
            unread._discard_unread()
        self._ready = deque(each for each in self._ready if each.presettled and each.complete and not self._stream)
