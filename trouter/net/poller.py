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
from .waiting_place import ROUNDS_IN_A_ROW, WaitingPlace

#: Sockets served before the output is written.
SOCKETS_PER_ROUND: Final = 64

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
        place = WaitingPlace.find(self._serve_round)
        try:
            if place is None:
                await self._run_as_task()
            else:
                await self._run_in(place)
        finally:
            self._epoll.close()

    async def _run_in(self, place: WaitingPlace) -> None:
        """Serve the sockets where trio waits."""
        self._readers[place.descriptor] = place
        self._epoll.register(place.descriptor, READABLE)
        place.take()
        try:
            await trio.sleep_forever()
        finally:
            place.give_back()

    async def _run_as_task(self) -> None:
        """Serve the sockets in turn with all other tasks."""
        while True:
            await trio.lowlevel.wait_readable(self._epoll.fileno())
            for _ in range(ROUNDS_IN_A_ROW):
                if not self._serve_round(0.0):
                    break

    def _serve_round(self, timeout_s: float) -> bool:
        """Wait for so many seconds at most; serve the sockets that are ready, and return whether there was one."""
        ready = self._epoll.poll(timeout_s, SOCKETS_PER_ROUND)
        if ready:
            self._serve(ready)
        return bool(ready)

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
