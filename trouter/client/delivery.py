"""A received delivery: complete or still arriving, and its outcome for the sender (AMQP 1.0 part 3, 3.4)."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any, Final, Protocol

import trio

from trouter.engine.ports import Delivery as EngineDelivery
from trouter.wire.message import Message
from trouter.wire.performatives import ACCEPTED, RELEASED, Error, Modified, Rejected, State, decode_state, encode_state
from trouter.wire.pieces import BodyReader
from trouter.wire.types import Described

from .errors import DeliveryAborted
from .link import ReceiverSettleMode
from .ports import ClientConnectionPort, ClientSessionPort

#: Shorter pieces are joined, so that tiny frames do not cost an object each, in bytes.
SMALL_PIECE_BYTES: Final = 4096


class ReceiverPort(Protocol):
    """What deliveries need of their receiver."""

    _session: ClientSessionPort
    _connection: ClientConnectionPort
    _mode: ReceiverSettleMode
    _stream: bool
    _streams: set[Delivery]

    def _check_usable(self) -> None:
        """Raise the error that ended the receiver."""

    async def _wait_until(self, condition: Callable[[], bool], lot: trio.lowlevel.ParkingLot) -> None:
        """Wait until ``condition`` holds; raise the error that ended the receiver."""

    def _free_credit(self) -> None:
        """Count one delivery less against the credit."""


class Delivery:
    """One received message. Settle it, unless it came settled: the sender waits for its outcome."""

    def __init__(self, receiver: ReceiverPort, delivery: EngineDelivery) -> None:
        self._receiver = receiver
        self._delivery = delivery
        self._whole: bytes | bytearray = b""
        #: Bytes of a streamed message that were not read.
        self._pieces: deque[bytes] = deque()
        self._message: Message | None = None
        self._body: BodyReader | None = None
        self._changed: trio.lowlevel.ParkingLot | None = None
        self._decided = False
        self._discarded = False
        self._credit_freed = False
        self._unread: list[bytes] = []
        self._read = False
        #: The sender wants no outcome.
        self.presettled = delivery.remote_settled

    @property
    def tag(self) -> bytes:
        """Sender's tag of this delivery, unique among the unsettled ones on the link."""
        return self._delivery.tag or b""

    @property
    def message_format(self) -> int:
        """Message format: 0 for AMQP's own, which ``message`` decodes."""
        return self._delivery.message_format

    @property
    def state(self) -> State | Described | None:
        """Sender's state of it, such as the transaction that it belongs to; DecodeError."""
        state = self._delivery.remote_state
        return None if state is None else decode_state(state, 0, len(state))[0]

    @property
    def settled(self) -> bool:
        """True if either side has settled this delivery."""
        return self._delivery.settled or self._delivery.remote_settled

    @property
    def complete(self) -> bool:
        """True if the whole message has arrived."""
        return self._delivery.complete and not self._delivery.aborted

    # --- the message

    @property
    def encoded(self) -> bytes:
        """Message as it came, encoded. RuntimeError on a streaming receiver, which does not keep it."""
        if self._receiver._stream:
            raise RuntimeError("a streamed message is not kept: use stream() or pieces()")
        if not isinstance(self._whole, bytes):
            self._whole = bytes(self._whole)
        return self._whole

    @property
    def message(self) -> Message:
        """Message, decoded on first use; DecodeError. RuntimeError on a streaming receiver."""
        if self._message is None:
            self._message = Message.decode(self.encoded)
        return self._message

    def pieces(self) -> AsyncIterator[bytes]:
        """Return an iterator over the encoded message as it arrives, to be read once; DeliveryAborted."""
        return Pieces(self)

    def stream(self) -> AsyncIterator[bytes]:
        """Return an iterator over the body's data as it arrives, to be read once; DecodeError, DeliveryAborted.

        A caller that stops reading may continue later, with another ``stream()``.
        """
        return BodyStream(self, self._body_reader())

    async def head(self) -> Message:
        """Return the sections before the body, as a message; on streaming receivers only, before ``stream``."""
        if not self._receiver._stream:
            raise RuntimeError("the message is here: use message")
        body = self._body_reader()
        while body.head is None:
            piece = await self._next_piece()
            if piece is None:
                body.check_end()
            else:
                self._unread += body.read_piece(piece)
        return body.head

    def _body_reader(self) -> BodyReader:
        if self._body is None:
            self._body = BodyReader()
        return self._body

    async def _next_bytes(self, body: BodyReader) -> bytes | None:
        """Return the next bytes of the body; None at its end."""
        while not self._unread:
            piece = await self._next_piece()
            if piece is None:
                body.check_end()
                return None
            self._unread = body.read_piece(piece)
        return self._unread.pop(0)

    async def _next_piece(self) -> bytes | None:
        """Return the next piece of the message; None at its end."""
        if not self._receiver._stream:
            await trio.lowlevel.checkpoint_if_cancelled()
            piece = None if self._read else self.encoded
            self._read = True
            return piece
        await trio.lowlevel.checkpoint_if_cancelled()
        await self._wait_until(lambda: bool(self._pieces) or self._delivery.complete or self._discarded)
        if self._delivery.aborted and not self._decided:
            raise DeliveryAborted(None, "the sender took the delivery back")
        if not self._pieces:
            if self._discarded:
                self._receiver._check_usable()
                raise RuntimeError("the delivery was settled before it was read")
            self._receiver._streams.discard(self)
            if self.presettled:
                self._free_credit()
            return None
        piece = self._pieces.popleft()
        self._release_bytes(len(piece))
        return piece

    # --- the outcome

    async def accept(self) -> None:
        """Settle the delivery as accepted."""
        await self.settle(ACCEPTED)

    async def reject(
        self, condition: str | None = None, description: str | None = None, info: dict[Any, Any] | None = None
    ) -> None:
        """Reject it as invalid: no receiver should get it again."""
        await self.settle(Rejected(None if condition is None else Error(condition, description, info)))

    async def release(self) -> None:
        """Release it unprocessed, so that another receiver may get it."""
        await self.settle(RELEASED)

    async def modify(
        self,
        *,
        delivery_failed: bool = False,
        undeliverable_here: bool = False,
        message_annotations: dict[Any, Any] | None = None,
    ) -> None:
        """Release it unprocessed, with a failed attempt counted, this receiver excluded, or its annotations changed."""
        await self.settle(Modified(delivery_failed, undeliverable_here, message_annotations))

    async def settle(self, state: State | Described) -> None:
        """Settle with any state; in settle mode SECOND, wait until the sender has settled first.

        Raises the error that ended the link if the state could not be sent. Nothing is sent for a pre-settled delivery.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        self.settle_nowait(state)
        if self._receiver._mode is ReceiverSettleMode.SECOND and not self.presettled:
            await self._wait_until(lambda: self._delivery.remote_settled)
        else:
            await self._receiver._connection._let_others_run()

    def settle_nowait(self, state: State | Described = ACCEPTED) -> None:
        """Settle without waiting for the sender; RuntimeError if it was settled here before."""
        if self._decided:
            raise RuntimeError("the delivery was settled before")
        if not self.presettled:
            receiver = self._receiver
            receiver._check_usable()
            receiver._session._session.settle_incoming(
                self._delivery,
                state.descriptor if isinstance(state, State) else 0,
                encode_state(state),
                receiver._mode is ReceiverSettleMode.FIRST,
            )
            receiver._connection._flush_soon()
        self._decided = True
        self._discard_unread()
        self._free_credit()

    def _free_credit(self) -> None:
        """Count it no longer against the receiver's credit, once."""
        if not self._credit_freed:
            self._credit_freed = True
            self._receiver._free_credit()

    # --- arrival

    def _add_piece(self, piece: bytes) -> None:
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
            self._receiver._session._session.windows.hold_bytes(len(piece))
            self._wake_waiting()

    def _mark_aborted(self) -> None:
        self._discard_unread()
        self._free_credit()
        self._wake_waiting()

    def _discard_unread(self) -> None:
        """Discard what was not read of a streamed message."""
        if self._receiver._stream and not self._discarded:
            self._discarded = True
            self._receiver._streams.discard(self)
            count = sum(map(len, self._pieces))
            self._pieces.clear()
            self._release_bytes(count)

    def _release_bytes(self, count: int) -> None:
        """Release bytes that were read, so that the session's window opens again."""
        if count:
            self._receiver._session._session.release_bytes(count)
            self._receiver._connection._flush_if_touched()

    def _wake_waiting(self) -> None:
        if self._changed is not None:
            self._changed.unpark_all()

    async def _wait_until(self, condition: Callable[[], bool]) -> None:
        if self._changed is None:
            self._changed = trio.lowlevel.ParkingLot()
        await self._receiver._wait_until(condition, self._changed)


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
        piece = await self._delivery._next_bytes(self._body)
        if piece is None:
            raise StopAsyncIteration
        return piece
