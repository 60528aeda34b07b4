"""Sending: deliveries wait in line for credit, window and output room; tasks wait for their outcomes.

A delivery is written at once if possible, else when credit or room appears: by the task that reads the socket, without
waking the sending task. Each task has at most one message in line, so the queue is bounded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

import trio

from trouter.engine.link import OutgoingLink
from trouter.engine.ports import Delivery as EngineDelivery
from trouter.engine.ports import LinkPort
from trouter.wire.constants import RECEIVED
from trouter.wire.errors import DecodeError
from trouter.wire.message import Message
from trouter.wire.performatives import State, decode_state
from trouter.wire.pieces import BodyWriter
from trouter.wire.types import Described

from .errors import OutcomeUnknown
from .link import ClientLink, SenderSettleMode
from .ports import ClientSessionPort

#: The outcome of a delivery: Accepted, Rejected, Released, Modified, an unknown state as ``Described``, or None if it
#: was settled without one.
Outcome = State | Described | None

BytesLike = bytes | bytearray | memoryview


@dataclass(slots=True, frozen=True)
class Encoded:
    """An encoded message, sent unchanged. ``message_format`` 0 is AMQP's own (part 2, 2.8.11)."""

    data: bytes
    message_format: int = 0


M = TypeVar("M", bound=Message | Encoded)


class _SentDelivery(EngineDelivery):
    """The engine's delivery of a message, with the tracker of it."""

    __slots__ = ("tracker",)

    def __init__(self, link: LinkPort, tracker: Tracker) -> None:
        super().__init__(link)
        self.tracker = tracker


class Tracker:
    """One delivery on its way. ``done`` once its outcome is known; ``outcome`` waits for that."""

    __slots__ = ("_changed", "_data", "_delivery", "_more", "_offset", "_outcome", "_sender", "_written", "done")

    def __init__(self, sender: Sender, link: LinkPort, data: bytes, more: bool) -> None:
        self._sender = sender
        self._delivery = _SentDelivery(link, self)
        #: The bytes that were offered last, and how many of them are written.
        self._data = data
        self._offset = 0
        self._outcome: Outcome | DecodeError = None
        #: Bytes of this delivery are still to be offered.
        self._more = more
        #: Everything that was offered of it has been written.
        self._written = False
        self._changed: trio.lowlevel.ParkingLot | None = None
        self.done = False

    async def outcome(self) -> Outcome:
        """Wait for the outcome and return it; raise the error that ended the link if that came first.

        OutcomeUnknown if the outcome cannot be decoded.
        """
        if self.done:
            await trio.lowlevel.checkpoint_if_cancelled()
            await self._sender._connection._let_others_run()
        else:
            await self._sender._wait_until(self._is_done, self._parking_lot())
        return self._known_outcome()

    def _known_outcome(self) -> Outcome:
        """Return the outcome, which is known; OutcomeUnknown."""
        if isinstance(self._outcome, DecodeError):
            raise OutcomeUnknown("amqp:decode-error", f"the peer's delivery state cannot be decoded: {self._outcome}")
        return self._outcome

    async def _wait_until_written(self) -> None:
        if not self._is_written():
            await self._sender._wait_until(self._is_written, self._parking_lot())

    def _parking_lot(self) -> trio.lowlevel.ParkingLot:
        if self._changed is None:
            self._changed = trio.lowlevel.ParkingLot()
        return self._changed

    def _is_done(self) -> bool:
        return self.done

    def _is_written(self) -> bool:
        return self._written or self.done

    def _mark_written(self) -> None:
        self._written = True
        if self._delivery.complete and self._delivery.settled:
            self.done = True
        if self._changed is not None:
            self._changed.unpark_all()

    def _set_outcome(self, outcome: Outcome | DecodeError) -> None:
        if not self.done:
            self._outcome = outcome
            self.done = True
            if self._changed is not None:
                self._changed.unpark_all()


class Sender(ClientLink):
    """A sending link; made by ``open_sender``. Any number of tasks may send at once."""

    def __init__(self, session: ClientSessionPort, name: str | None, mode: SenderSettleMode) -> None:
        super().__init__(session, name, incoming=False)
        self._link: OutgoingLink = self._attached.link  # type: ignore[assignment]  # as ``incoming`` says
        self._mode = mode
        self._line: deque[Tracker] = deque()
        self._next_number = 0

    async def send(self, message: Message | Encoded, *, settled: bool | None = None) -> Outcome:
        """Send, wait for the outcome, and return it; it may be a refusal.

        Waits for credit first. With ``settled`` it returns None once the message is written. If it is cancelled before
        the message is written in full, the message was not sent; after that, it was.
        """
        tracker = await self.submit(message, settled=settled)
        return tracker._known_outcome() if tracker.done else await tracker.outcome()

    async def submit(self, message: Message | Encoded, *, settled: bool | None = None) -> Tracker:
        """Send, and return a tracker for the outcome once the message is written."""
        await trio.lowlevel.checkpoint_if_cancelled()
        tracker = self._queue_message(message, settled)
        self._connection._flush()
        if tracker._written:
            await self._connection._let_others_run()
            return tracker
        try:
            await tracker._wait_until_written()
        except BaseException:
            self._withdraw_message(tracker)
            raise
        return tracker

    def send_nowait(self, message: Message | Encoded, *, settled: bool | None = None) -> Tracker:
        """Send without waiting; trio.WouldBlock without credit, window or output room, or if others wait for them.

        The message is written together with others of this task, before the task next waits.
        """
        self._check_usable()
        link = self._link
        session = self._session._session
        connection = session.connection
        if (
            self._line
            or not link.is_ready()
            or session.windows.outgoing_frames <= 0
            or len(connection.out) >= connection.high_water
        ):
            raise trio.WouldBlock
        tracker = self._queue_message(message, settled)
        self._connection._flush_soon()
        return tracker

    def send_all(self, messages: Iterable[M], *, in_flight: int = 100) -> Pipeline[M]:
        """Return an iterator that sends in order, with up to ``in_flight`` outcomes missing.

        ``async for message, outcome in sender.send_all(messages)`` yields in the order of ``messages``, and takes only
        as many of them as are in flight. Nothing is sent while the caller does not iterate.
        """
        return Pipeline(self, iter(messages), in_flight)

    async def send_stream(
        self,
        chunks: AsyncIterable[BytesLike] | Iterable[BytesLike],
        *,
        head: Message | None = None,
        size: int | None = None,
        encoded: bool = False,
        settled: bool | None = None,
    ) -> Outcome:
        """Send one message in pieces, each taken when the last one is written; return its outcome.

        ``head`` has the sections before the body. The body is a data section for each chunk, or a single one if
        ``size`` gives its bytes, for receivers that read only one. With ``encoded`` the chunks are an encoded message.

        An error of the chunks, or cancellation, aborts the message. If a receiver settles early, the rest is not taken.
        An async generator is always closed.
        """
        if encoded and (head is not None or size is not None):
            raise ValueError("an encoded stream has its own head and size")
        writer = None if encoded else BodyWriter(head, size)
        tracker: Tracker | None = None
        try:
            async for chunk in _each(chunks):
                piece = bytes(chunk) if writer is None else writer.encode_piece(chunk)
                if tracker is None:
                    tracker = self._queue_message(Encoded(piece), settled, more=True)
                elif tracker.done:
                    break
                else:
                    self._queue_piece(tracker, piece, True)
                await self._flush_and_wait(tracker)
            else:
                rest = b"" if writer is None else writer.encode_end()
                if tracker is None:
                    tracker = self._queue_message(Encoded(rest), settled)
                else:
                    self._queue_piece(tracker, rest, False)
                await self._flush_and_wait(tracker)
        except BaseException:
            if tracker is not None:
                self._withdraw_message(tracker)
            raise
        finally:
            if isinstance(chunks, AsyncGenerator):
                await chunks.aclose()
        return await tracker.outcome()

    # --- the line

    def _queue_message(self, message: Message | Encoded, settled: bool | None, more: bool = False) -> Tracker:
        """Add a message to the end of the line, and write it if it is the first."""
        self._check_usable()
        encoded = message if isinstance(message, Encoded) else Encoded(message.encode())
        link = self._link
        settles = self._is_settled(settled)
        tracker = Tracker(self, link, encoded.data, more)
        delivery = tracker._delivery
        delivery.number = self._next_number
        delivery.message_format = encoded.message_format
        if settles:
            delivery.mark_settled()
        self._next_number = (self._next_number + 1) & _MASK64
        if not self._line and link.is_ready():
            self._write_message(tracker)
            if delivery.complete:
                return tracker
        self._line.append(tracker)
        return tracker

    def _queue_piece(self, tracker: Tracker, piece: bytes, more: bool) -> None:
        """Continue the delivery at the front of the line, which is written so far."""
        self._check_usable()
        if tracker.done:
            return
        tracker._data = piece
        tracker._offset = 0
        tracker._more = more
        tracker._written = False
        if not self._link.waiting:
            self.on_credit(self._link)

    async def _flush_and_wait(self, tracker: Tracker) -> None:
        self._connection._flush()
        await trio.lowlevel.checkpoint()
        await tracker._wait_until_written()

    def _is_settled(self, wish: bool | None) -> bool:
        if wish is None:
            return self._mode is SenderSettleMode.SETTLED
        if self._mode is not SenderSettleMode.MIXED and wish is not (self._mode is SenderSettleMode.SETTLED):
            raise ValueError(f"the link's settle mode is {self._mode.name.lower()}")
        return wish

    def _write_message(self, tracker: Tracker) -> None:
        """Write as much as the session and the output take."""
        delivery = tracker._delivery
        data = tracker._data
        tracker._offset = self._link.send(delivery, data, tracker._offset, len(data), tracker._more)
        if delivery.complete or (delivery.begun and tracker._more and tracker._offset == len(data)):
            tracker._mark_written()

    def _withdraw_message(self, tracker: Tracker) -> None:
        """Abort or drop a message that is not written in full: its task was cancelled."""
        delivery = tracker._delivery
        if tracker in self._line:
            self._line.remove(tracker)
            tracker.done = True
            if self.usable:
                self._abort_begun(delivery)
        self._connection._flush()

    def _abort_begun(self, delivery: EngineDelivery) -> None:
        if delivery.begun and not delivery.complete:
            self._link.abort_delivery(delivery)
        if not self._link.waiting:
            self.on_credit(self._link)

    # --- from the peer

    def on_credit(self, link: LinkPort) -> None:
        """Write what credit, window and room allow; return the rest of the credit if the peer drains."""
        sender = self._link
        line = self._line
        while line and not sender.waiting and sender.attached:
            tracker = line[0]
            delivery = tracker._delivery
            if not delivery.begun and sender.credit <= 0:
                break
            if tracker._written:
                return  # a stream that waits for its next piece
            self._write_message(tracker)
            if not delivery.complete:
                break
            line.popleft()
        if sender.drain and sender.credit > 0 and not sender.waiting and not (line and line[0]._delivery.begun):
            sender.return_credit()

    def on_disposition(self, delivery: EngineDelivery) -> None:
        """Process an outcome or another state.

        A state that cannot be decoded ends only its delivery: the frame was valid, so the connection continues.
        """
        sent: _SentDelivery = delivery  # type: ignore[assignment]  # made by ``_queue_message``
        tracker = sent.tracker
        settled = delivery.remote_settled
        final = delivery.remote_code not in {0, RECEIVED}
        if not (settled or final):
            return
        state = delivery.remote_state
        outcome: Outcome | DecodeError = None
        if state is not None and final:
            try:
                outcome = decode_state(state, 0, len(state))[0]
            except DecodeError as error:
                outcome = error
        if not settled:
            self._session._session.settle_outgoing(delivery, delivery.remote_code, state, True)
        tracker._set_outcome(outcome)
        if not delivery.complete and tracker in self._line:
            self._line.remove(tracker)
            self._abort_begun(delivery)

    def _forget_deliveries(self) -> None:
        """See ``LinkOwner``."""
        super()._forget_deliveries()
        self._line.clear()


class Pipeline(Generic[M]):
    """See ``Sender.send_all``."""

    def __init__(self, sender: Sender, messages: Iterator[M], in_flight: int) -> None:
        if in_flight < 1:
            raise ValueError("at least one message must be in flight")
        self._sender = sender
        self._messages = messages
        self._in_flight = in_flight
        self._sent: deque[tuple[M, Tracker]] = deque()
        self._next: M | None = None

    def __aiter__(self) -> Pipeline[M]:
        return self

    async def __anext__(self) -> tuple[M, Outcome]:
        self._fill_flight()
        if not self._sent:
            if self._next is None:
                raise StopAsyncIteration
            tracker = await self._sender.submit(self._next)
            self._sent.append((self._next, tracker))
            self._next = None
            self._fill_flight()
        message, tracker = self._sent[0]
        try:
            outcome = await tracker.outcome()
        except OutcomeUnknown:
            self._sent.popleft()  # a caller that continues gets the next
            raise
        self._sent.popleft()
        return message, outcome

    def _fill_flight(self) -> None:
        """Send as many messages as possible now."""
        while len(self._sent) < self._in_flight:
            if self._next is None:
                self._next = next(self._messages, None)
                if self._next is None:
                    return
            try:
                tracker = self._sender.send_nowait(self._next)
            except trio.WouldBlock:
                return
            self._sent.append((self._next, tracker))
            self._next = None


class _Each:
    """An asynchronous iterator over a synchronous iterable."""

    def __init__(self, chunks: Iterable[BytesLike]) -> None:
        self._chunks = iter(chunks)

    def __aiter__(self) -> _Each:
        return self

    async def __anext__(self) -> BytesLike:
        for chunk in self._chunks:
            return chunk
        raise StopAsyncIteration


def _each(chunks: AsyncIterable[BytesLike] | Iterable[BytesLike]) -> AsyncIterator[BytesLike]:
    return aiter(chunks) if isinstance(chunks, AsyncIterable) else _Each(chunks)


_MASK64: Final = 0xFFFFFFFFFFFFFFFF
