"""A delivery that came in: whole or still arriving, and what its sender hears of it (AMQP 1.0 part 3, 3.4)."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any, Final, Protocol

import trio

from trouter.engine.ports import Delivery as EngineDelivery
from trouter.wire.performatives import ACCEPTED, RELEASED, Error, Modified, Rejected, State, decode_state, encode_state
from trouter.wire.types import Described

from .errors import DeliveryAborted
from .link import ReceiverSettleMode
from .message import Message
from .pieces import BodyReader
from .ports import ConnectionPort, SessionPort

#: Pieces shorter than this are joined: a sender of tiny frames does not cost us an object for each.
SMALL_PIECE_BYTES: Final = 4096


class ReceiverPort(Protocol):
    """A receiver, as its deliveries see it."""

    _session: SessionPort
    _connection: ConnectionPort
    _mode: ReceiverSettleMode
    _stream: bool
    _streams: set[Delivery]

    def _check(self) -> None:
        """Raise what ended the receiver."""

    async def _until(self, condition: Callable[[], bool], lot: trio.lowlevel.ParkingLot) -> None:
        """Wait until ``condition`` holds; raises what ended the receiver."""

    def _let_go(self) -> None:
        """Count one delivery less against the credit."""


class Delivery:
    """One message on its way to us. Say what became of it, unless it came settled: the sender waits to hear it."""

    def __init__(self, receiver: ReceiverPort, delivery: EngineDelivery) -> None:
        self._receiver = receiver
        self._delivery = delivery
        self._whole: bytes | bytearray = b""
        #: What came of a streamed message and was not read.
        self._pieces: deque[bytes] = deque()
        self._message: Message | None = None
        self._body: BodyReader | None = None
        self._changed: trio.lowlevel.ParkingLot | None = None
        self._decided = False
        self._discarded = False
        self._let_go = False
        self._unread: list[bytes] = []
        self._read = False
        #: The sender does not want to hear of it.
        self.presettled = delivery.remote_settled

    @property
    def tag(self) -> bytes:
        """Return the sender's name for this delivery, unique among those on the link that are not settled."""
        return self._delivery.tag or b""

    @property
    def message_format(self) -> int:
        """Return 0 for a message of AMQP's own format, which ``message`` decodes."""
        return self._delivery.message_format

    @property
    def state(self) -> State | Described | None:
        """Return what the sender said of it, such as the transaction it belongs to; DecodeError."""
        state = self._delivery.remote_state
        return None if state is None else decode_state(state, 0, len(state))[0]

    @property
    def settled(self) -> bool:
        """Return whether either side has settled this delivery, so that no more is due."""
        return self._delivery.settled or self._delivery.remote_settled

    @property
    def complete(self) -> bool:
        """Return whether the whole message has arrived."""
        return self._delivery.complete and not self._delivery.aborted

    # --- what it says

    @property
    def encoded(self) -> bytes:
        """Return the message as it came. RuntimeError on a streaming receiver, which does not keep it."""
        if self._receiver._stream:
            raise RuntimeError("a streamed message is not kept: use stream() or pieces()")
        if not isinstance(self._whole, bytes):
            self._whole = bytes(self._whole)
        return self._whole

    @property
    def message(self) -> Message:
        """Return the message, decoded at the first look; DecodeError. RuntimeError on a streaming receiver."""
        if self._message is None:
            self._message = Message.decode(self.encoded)
        return self._message

    def pieces(self) -> AsyncIterator[bytes]:
        """Yield the encoded message as it arrives; DeliveryAborted if the sender takes it back. To be read once."""
        return Pieces(self)

    def stream(self) -> AsyncIterator[bytes]:
        """Yield the octets of the body's data sections as they arrive; DecodeError, DeliveryAborted. To be read once.

        A caller that stops reading may go on later, with another ``stream()``.
        """
        return BodyStream(self, self._body_reader())

    async def head(self) -> Message:
        """Return the sections before the body, as a message without one: for streaming receivers, before ``stream``."""
        if not self._receiver._stream:
            raise RuntimeError("the message is here: use message")
        body = self._body_reader()
        while body.head is None:
            piece = await self._next_piece()
            if piece is None:
                body.finish()
            else:
                self._unread += body.feed(piece)
        return body.head

    def _body_reader(self) -> BodyReader:
        if self._body is None:
            self._body = BodyReader()
        return self._body

    async def _next_octets(self, body: BodyReader) -> bytes | None:
        """Return the next octets of the body, None at its end."""
        while not self._unread:
            piece = await self._next_piece()
            if piece is None:
                body.finish()
                return None
            self._unread = body.feed(piece)
        return self._unread.pop(0)

    async def _next_piece(self) -> bytes | None:
        """Return the next piece of the message, None at its end."""
        if not self._receiver._stream:
            await trio.lowlevel.checkpoint_if_cancelled()
            piece = None if self._read else self.encoded
            self._read = True
            return piece
        await trio.lowlevel.checkpoint_if_cancelled()
        await self._until(lambda: bool(self._pieces) or self._delivery.complete or self._discarded)
        if self._delivery.aborted and not self._decided:
            raise DeliveryAborted(None, "the sender took the delivery back")
        if not self._pieces:
            if self._discarded:
                self._receiver._check()
                raise RuntimeError("the delivery was settled before it was read")
            self._receiver._streams.discard(self)
            if self.presettled:
                self._done()
            return None
        piece = self._pieces.popleft()
        self._release(len(piece))
        return piece

    # --- what becomes of it

    async def accept(self) -> None:
        """Settle the delivery as accepted."""
        await self.settle(ACCEPTED)

    async def reject(
        self, condition: str | None = None, description: str | None = None, info: dict[Any, Any] | None = None
    ) -> None:
        """Reject it as invalid: it must not be tried again anywhere."""
        await self.settle(Rejected(None if condition is None else Error(condition, description, info)))

    async def release(self) -> None:
        """Give it back unprocessed, so that another receiver may have it."""
        await self.settle(RELEASED)

    async def modify(
        self,
        *,
        delivery_failed: bool = False,
        undeliverable_here: bool = False,
        message_annotations: dict[Any, Any] | None = None,
    ) -> None:
        """Give it back unprocessed: count a failed attempt, do not send it here again, change its annotations."""
        await self.settle(Modified(delivery_failed, undeliverable_here, message_annotations))

    async def settle(self, state: State | Described) -> None:
        """Tell the sender any state, and settle; in settle mode SECOND, wait until the sender has settled before.

        Raises what ended the link if the sender could not hear it. Nothing is told of a pre-settled delivery.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        self.settle_nowait(state)
        if self._receiver._mode is ReceiverSettleMode.SECOND and not self.presettled:
            await self._until(lambda: self._delivery.remote_settled)
        else:
            await self._receiver._connection._let_others_run()

    def settle_nowait(self, state: State | Described = ACCEPTED) -> None:
        """Settle without waiting for the sender; RuntimeError if it was settled here before."""
        if self._decided:
            raise RuntimeError("the delivery was settled before")
        if not self.presettled:
            receiver = self._receiver
            receiver._check()
            receiver._session._session.settle_incoming(
                self._delivery,
                state.descriptor if isinstance(state, State) else 0,
                encode_state(state),
                receiver._mode is ReceiverSettleMode.FIRST,
            )
            receiver._connection._flush_soon()
        self._decided = True
        self._discard()
        self._done()

    def _done(self) -> None:
        """It no longer counts against the receiver's credit."""
        if not self._let_go:
            self._let_go = True
            self._receiver._let_go()

    # --- as it arrives

    def _add(self, piece: bytes) -> None:
        self.presettled = self._delivery.remote_settled
        if not self._receiver._stream:
            if not self._whole:
                self._whole = piece
                return
            if isinstance(self._whole, bytes):
                self._whole = bytearray(self._whole)
            self._whole += piece
        elif not self._discarded:
            if self._pieces and len(self._pieces[-1]) < SMALL_PIECE_BYTES:
                self._pieces[-1] += piece
            elif piece:
                self._pieces.append(piece)
            self._receiver._session._session.hold(len(piece))
            self._wake()

    def _abort(self) -> None:
        self._discard()
        self._done()
        self._wake()

    def _discard(self) -> None:
        """What was not read of a streamed message will not be."""
        if self._receiver._stream and not self._discarded:
            self._discarded = True
            self._receiver._streams.discard(self)
            count = sum(map(len, self._pieces))
            self._pieces.clear()
            self._release(count)

    def _release(self, count: int) -> None:
        """Octets were read: the session's window opens again for as many."""
        if count:
            self._receiver._session._session.release(count)
            self._receiver._connection._flush_if_touched()

    def _wake(self) -> None:
        if self._changed is not None:
            self._changed.unpark_all()

    async def _until(self, condition: Callable[[], bool]) -> None:
        if self._changed is None:
            self._changed = trio.lowlevel.ParkingLot()
        await self._receiver._until(condition, self._changed)


class Pieces:
    """See ``Delivery.pieces``."""

    def __init__(self, delivery: Delivery) -> None:
        self._delivery = delivery

    def __aiter__(self) -> Pieces:
        return self

    async def __anext__(self) -> bytes:
        piece = await self._delivery._next_piece()
        if piece is None:
            raise StopAsyncIteration
        return piece


class BodyStream:
    """See ``Delivery.stream``."""

    def __init__(self, delivery: Delivery, body: BodyReader) -> None:
        self._delivery = delivery
        self._body = body

    def __aiter__(self) -> BodyStream:
        return self

    async def __anext__(self) -> bytes:
        octets = await self._delivery._next_octets(self._body)
        if octets is None:
            raise StopAsyncIteration
        return octets
