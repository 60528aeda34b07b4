"""The pace of one client: so many requests and frames a second, and the processor in turns with others."""

from __future__ import annotations

import trio

from trouter._buckets import Bucket
from trouter.net.turns import Turn

from .settings import TURNS_PER_S


class RequestPace:
    """The turns of one connection: ``TURNS_PER_S`` at once, and then so many a second."""

    __slots__ = ("_turns",)

    def __init__(self) -> None:
        self._turns = Bucket(TURNS_PER_S, trio.current_time())

    async def take_turn(self) -> None:
        """Let other tasks run, and wait until this client has a turn."""
        self._turns.owe_tokens(1, trio.current_time())
        await trio.sleep(max(0.0, -self._turns.tokens(trio.current_time()) / TURNS_PER_S))


class StreamBetweenTurns(trio.abc.HalfCloseableStream):
    """A stream of a task that works in turns: it has none while it waits for the stream."""

    def __init__(self, below: trio.abc.HalfCloseableStream, turn: Turn) -> None:
        self.below = below
        self._turn = turn

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        return await self._turn.outside(self.below.receive_some, max_bytes)

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._turn.outside(self.below.send_all, data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._turn.outside(self.below.wait_send_all_might_not_block)

    async def send_eof(self) -> None:
        await self._turn.outside(self.below.send_eof)

    async def aclose(self) -> None:
        self._turn.end()
        await self.below.aclose()
