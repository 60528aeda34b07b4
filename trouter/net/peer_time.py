"""The time that a peer may take before it is known: it runs only while the router waits for that peer.

When hundreds of peers come at once, each of them waits for the router, and none of them is too slow.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable

import trio

from .waits import SocketWaits


class PeerTooSlow(Exception):
    """The peer has taken more than its time."""


class PeerTime:
    """The waits of a task for one peer, of ``limit_s`` seconds in all."""

    def __init__(self, waits: SocketWaits, limit_s: float) -> None:
        self._waits = waits
        self._limit_s = limit_s
        #: The seconds for which the peer was waited for.
        self.taken_s = 0.0

    @property
    def is_over(self) -> bool:
        """True if the peer has taken more than its time."""
        return self.taken_s >= self._limit_s

    async def wait_readable(self, sock: socket.socket) -> None:
        """Wait until ``sock`` is readable; PeerTooSlow."""
        await self._wait(self._waits.wait_readable, sock)

    async def wait_writable(self, sock: socket.socket) -> None:
        """Wait until ``sock`` takes more; PeerTooSlow."""
        await self._wait(self._waits.wait_writable, sock)

    async def _wait(self, wait: Callable[[socket.socket], Awaitable[None]], sock: socket.socket) -> None:
        began_s = trio.current_time()
        try:
            with trio.move_on_after(self._limit_s - self.taken_s) as scope:
                await wait(sock)
        finally:
            self.taken_s += trio.current_time() - began_s
        if scope.cancelled_caught:
            self.taken_s = max(self.taken_s, self._limit_s)
            raise PeerTooSlow
