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

#: The peer will send no more; earlier octets may still wait to be read.
HUNG_UP: Final = select.EPOLLRDHUP

log = logging.getLogger("trouter.SERVER")


class Reader(Protocol):
    """The object that is called when its socket is readable."""

    def on_readable(self) -> None:
        """Read once and process the input; must not block."""

    def crash(self, error: Exception) -> None:
        """End this reader only: ``on_readable`` raised, which is a bug of ours."""


class Poller:
    """The readers of all sockets."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._epoll = select.epoll()
        self._readers: dict[int, Reader] = {}

    def add(self, sock: socket.socket, reader: Reader, events: int = select.EPOLLIN) -> None:
        """Call ``reader`` whenever ``sock`` is readable, or with ``HUNG_UP`` when the peer has hung up."""
        number = sock.fileno()
        self._readers[number] = reader
        self._epoll.register(number, events)

    def remove(self, sock: socket.socket) -> None:
        """Stop the calls, before the socket is closed; a second call does nothing."""
        number = sock.fileno()
        if self._readers.pop(number, None) is not None and not self._epoll.closed:
            self._epoll.unregister(number)

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
        for number, _ in ready:
            reader = self._readers.get(number)
            if reader is None:
                continue  # an earlier reader of this round ended it
            try:
                reader.on_readable()
            except Exception as error:  # noqa: BLE001 - a bug in one connection's path must not end the others
                reader.crash(error)
        self._hub.flush()
