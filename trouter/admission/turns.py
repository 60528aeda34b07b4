"""Limit the logins of a host that are checked at a time to the failures that delay the next login.

Further logins wait, so a client cannot have many passwords checked before its first failure counts.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio


class Turns:
    """Turns by place; a place without waiting or running logins has no entry."""

    def __init__(self) -> None:
        self._limiters: dict[str, trio.CapacityLimiter] = {}

    def __len__(self) -> int:
        return len(self._limiters)

    @asynccontextmanager
    async def hold_turn(self, place: str, limit: int) -> AsyncIterator[None]:
        """Hold one of the ``limit`` turns of ``place``; wait until one is free. An empty place has no limit."""
        if not place:
            yield
            return
        limiter = self._limiters.setdefault(place, trio.CapacityLimiter(limit))
        limiter.total_tokens = limit
        turn = object()
        try:
            await limiter.acquire_on_behalf_of(turn)
            try:
                yield
            finally:
                limiter.release_on_behalf_of(turn)
        finally:
            if not limiter.borrowed_tokens:  # a login that waited has it by now
                self._limiters.pop(place, None)
