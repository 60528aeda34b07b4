"""Receives messages one after the other, with credit granted so that no more come than were requested."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

import trio

from trouter.client import (
    ACCEPTED,
    RELEASED,
    BodyKind,
    DecodeError,
    Delivery,
    DeliveryAborted,
    Error,
    Message,
    Receiver,
    Rejected,
)
from trouter.wire.pieces import BodyReader

from .messages import body_bytes
from .tally import Tally

#: The largest message that is held whole, in bytes.
MAX_WHOLE_BYTES: Final = 64 * 1024 * 1024

Store = Callable[[Delivery], Awaitable[None]]


class Receiving:
    """One run of messages over one link; made by the tool that receives them, on a receiver without credit."""

    def __init__(self, receiver: Receiver, tally: Tally, credit: int, count: int | None) -> None:
        self._receiver = receiver
        self._tally = tally
        self._credit = credit
        #: Messages that may still be requested; None for any number.
        self._left = count
        #: Requested messages that have not come.
        self._granted = 0

    @property
    def complete(self) -> bool:
        """True if all requested messages came."""
        return self._left == 0 and self._granted == 0

    async def take_message(self, store: Store) -> None:
        """Wait for a message, store it and accept it; if `store` raises, release it and raise that.

        A malformed message is rejected; an aborted one does not count.
        """
        self._grant_credit()
        delivery = await self._receiver.receive()
        self._granted -= 1
        try:
            await store(delivery)
        except DecodeError as bad:
            delivery.settle_nowait(Rejected(Error("amqp:decode-error", str(bad)[:200])))
            self._tally.add("undecodable")
        except DeliveryAborted:
            self._left = None if self._left is None else self._left + 1
        except BaseException:
            if not delivery.presettled:
                delivery.settle_nowait(RELEASED)
            self._tally.add("released")
            raise
        else:
            delivery.settle_nowait(ACCEPTED)
            self._tally.add("pre-settled" if delivery.presettled else "accepted")

    def _grant_credit(self) -> None:
        if self._granted > self._credit // 2:
            return
        more = self._credit - self._granted
        if self._left is not None:
            more = min(more, self._left)
            self._left -= more
        if more:
            self._granted += more
            self._receiver.add_credit(more)


async def whole(delivery: Delivery) -> Message:
    """Return a streamed message as a whole; DecodeError, also for one of more than MAX_WHOLE_BYTES."""
    return await _rest(b"", delivery.pieces())


async def _rest(first: bytes, pieces: AsyncIterator[bytes]) -> Message:
    data = bytearray(first)
    async for piece in pieces:
        data += piece
        if len(data) > MAX_WHOLE_BYTES:
            raise DecodeError(f"the message has more than {MAX_WHOLE_BYTES} bytes")
    return Message.decode(bytes(data))


async def save(delivery: Delivery, path: Path) -> Message:
    """Write the body of a streamed message to a new file; return the rest. OSError, DecodeError leave no file."""
    try:
        async with await trio.open_file(path, "xb") as file:
            return await _save(delivery.pieces(), file.write)
    except FileExistsError:
        raise
    except BaseException:
        path.unlink(missing_ok=True)  # noqa: ASYNC240  # also where the task is cancelled
        raise


async def _save(pieces: AsyncIterator[bytes], write: Callable[[bytes], Awaitable[object]]) -> Message:
    reader = BodyReader()
    before = b""
    async for piece in pieces:
        try:
            data = reader.read_piece(piece)
        except DecodeError:
            if reader.head is not None:
                raise
            message = await _rest(before + piece, pieces)  # the body is no data: it is taken whole
            await write(body_bytes(message))
            return replace(message, body=None, kind=BodyKind.ABSENT)
        if reader.head is None:
            before += piece
        for each in data:
            await write(each)
    reader.check_end()
    return reader.head or Message(kind=BodyKind.ABSENT)
