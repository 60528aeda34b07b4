"""How a task waits for a socket; the poller does it, and so does `trio.lowlevel`."""

from __future__ import annotations

import socket
from typing import Protocol


class SocketWaits(Protocol):
    """The waits of a task for a socket that is not watched."""

    async def wait_readable(self, sock: socket.socket, /) -> None:
        """Wait until ``sock`` is readable."""

    async def wait_writable(self, sock: socket.socket, /) -> None:
        """Wait until ``sock`` takes more."""
