"""The pace of one client: its requests and frames take turns, so many a second."""

from __future__ import annotations

import trio

from trouter._buckets import Bucket

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
