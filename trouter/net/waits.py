"""How a task waits for a socket; the poller does it, and so does `trio.lowlevel`."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any, Protocol

import trio


class SocketWaits(Protocol):
    """The waits of a task for a socket that is not watched."""

    async def wait_readable(self, sock: socket.socket, /) -> None:
        """Wait until ``sock`` is readable."""

    async def wait_writable(self, sock: socket.socket, /) -> None:
        """Wait until ``sock`` takes more."""


class SocketWait:
    """The reader of a socket that one task waits for, once."""

    #: Nobody's: it only wakes the task.
    share = None

    def __init__(self, sock: socket.socket, watch: Callable[[socket.socket, Any, int], object]) -> None:
        """``watch`` is that of the poller."""
        self._sock = sock
        self._watch = watch
        self._task = trio.lowlevel.current_task()

    async def wait(self, events: int) -> None:
        """Wait until one of ``events`` is true of the socket, or until it has failed."""
        self._watch(self._sock, self, events)
        await trio.lowlevel.wait_task_rescheduled(self._give_up)

    def on_readable(self) -> None:
        """Wake the task."""
        self._watch(self._sock, self, 0)
        trio.lowlevel.reschedule(self._task)

    def on_events(self, _: int) -> None:
        """Wake the task."""
        self.on_readable()

    def drop_after_bug(self, error: Exception) -> None:
        """Never called: the others raise nothing."""
        raise error

    def _give_up(self, _: object) -> trio.lowlevel.Abort:
        self._watch(self._sock, self, 0)
        return trio.lowlevel.Abort.SUCCEEDED
