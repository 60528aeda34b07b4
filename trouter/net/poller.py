"""The readiness of sockets: one epoll for all connections, in one task.

A task per socket would cost a scheduler's turn and a system call for each read. Here one turn serves every ready
socket: all are read and processed, then each connection's output is written once, so a busy router switches tasks once
per round and not once per message (decision 0003). Linux only, like epoll.
"""

from __future__ import annotations

import logging
import select
import socket
from typing import Final, Protocol

import trio

from .hub import Hub

#: Sockets served before the output is written.
SOCKETS_PER_ROUND: Final = 64
#: Rounds in a row before other tasks get their turn.
ROUNDS_IN_A_ROW: Final = 4

READABLE: Final = select.EPOLLIN
WRITABLE: Final = select.EPOLLOUT
#: The peer will send no more; earlier bytes may still wait to be read.
HUNG_UP: Final = select.EPOLLRDHUP

log = logging.getLogger("trouter.SERVER")


class SocketReader(Protocol):
    """The object that is called when its socket is ready."""

    def on_readable(self) -> None:
        """Read once and process the input; must not block."""

    def on_events(self, events: int) -> None:
        """Do what any other combination of epoll's events asks for; must not block."""

    def drop_after_bug(self, error: Exception) -> None:
        """End this reader only: one of its methods raised, which is a bug of ours."""


class Poller:
    """The readers of all sockets."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._epoll = select.epoll()
        self._readers: dict[int, SocketReader] = {}

    def watch(self, sock: socket.socket, reader: SocketReader, events: int) -> None:
        """Call ``reader`` whenever one of ``events`` is true of ``sock``; 0, before the socket is closed, for never."""
        number = sock.fileno()
        if self._epoll.closed:  # the process ends
            self._readers.pop(number, None)
        elif not events:
            if self._readers.pop(number, None) is not None:
                self._epoll.unregister(number)
        elif number in self._readers:
            self._epoll.modify(number, events)
        else:
            self._readers[number] = reader
            self._epoll.register(number, events)

    async def wait_readable(self, sock: socket.socket) -> None:
        """Wait until ``sock``, which is not watched, is readable."""
        await trio.lowlevel.wait_readable(sock)

    async def wait_writable(self, sock: socket.socket) -> None:
        """Wait until ``sock``, which is not watched, takes more."""
        await trio.lowlevel.wait_writable(sock)

    async def run(self) -> None:
        """Wait for sockets and call their readers until cancelled."""
        poll = self._epoll.poll
        try:
            while True:
                await trio.lowlevel.wait_readable(self._epoll.fileno())
                for _ in range(ROUNDS_IN_A_ROW):
                    ready = poll(0, SOCKETS_PER_ROUND)
                    if not ready:
                        break
                    self._serve(ready)
        finally:
            self._epoll.close()

    def _serve(self, ready: list[tuple[int, int]]) -> None:
        self._hub.update_clock()
        for number, events in ready:
            reader = self._readers.get(number)
            if reader is None:
                continue  # an earlier reader of this round ended it
            try:
                if events == READABLE:
                    reader.on_readable()
                else:
                    reader.on_events(events)
            except Exception as error:  # noqa: BLE001 - a bug in one connection's path must not end the others
                reader.drop_after_bug(error)
        self._hub.flush()
