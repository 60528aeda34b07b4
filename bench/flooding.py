"""One user's connections that ask without end, and how long everybody else waits meanwhile.

`python -m bench.flooding FROM TO PORT NAME` is that user, on an address of its own: it floods until SIGTERM; it prints
a line when it has begun, and at its end how much the router took in a second, in the unit of the flood.
"""

from __future__ import annotations

import select
import signal
import socket
import statistics
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Final, Self

from . import greeting
from .beside import beside
from .floods import EXEMPT, FLOODS, HANDSHAKES, HOST, OTHER_FLOODS, QUERIES, USER, Flood, own_listener
from .servers import Router, ServerError, free_port, sockets_of
from .sessions import Client

CONNECTIONS: Final = 64
#: Seconds between two requests of one kind, and between the beginning of a flood and the first.
PAUSE_S: Final = 0.02
BEGUN_S: Final = 0.5
READ_BYTES: Final = 1 << 18


@dataclass(frozen=True, slots=True)
class Waits:
    """Milliseconds for which others waited: for /readyz, for a login, and for the echo of an open connection."""

    ready_ms: list[float]
    login_ms: list[float]
    echo_ms: list[float]

    @property
    def slow_echo_ms(self) -> float:
        """The time that a hundredth of the echoes exceeds."""
        return statistics.quantiles(self.echo_ms, n=100)[-1]


class Scene:
    """A router that somebody floods, within the block."""

    def __init__(self, name: str, new_folder: Callable[[str], Path]) -> None:
        """``name`` is that of a flood, one of ``OTHER_FLOODS``, or "nothing"."""
        self._name = name
        self._flood = FLOODS.get(name)
        self._folder = new_folder("flood")
        self._port, self.http_port = free_port(), free_port()
        own, more = own_listener(name, self._folder, self._port)
        more += f"listener {{ host: 127.0.0.1, port: {self.http_port}, http: yes, authenticatePeer: no }}\n"
        self.router = Router(new_folder("router"), own=f"{EXEMPT}\n    {own}", more=more)

    def __enter__(self) -> Self:
        self.router.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.router.stop()

    @property
    def unit(self) -> str:
        """The unit of the flood's rate."""
        return OTHER_FLOODS[self._name] if self._flood is None else self._flood.unit

    def flooded(self) -> AbstractContextManager[list[float]]:
        """Flood for the length of the block; afterwards the list has how much the router took in a second."""
        if self._name == "nothing":
            return nullcontext([])
        if self._name == HANDSHAKES:
            return greeting.greeted(self._port, self._folder, HOST)
        if self._name == QUERIES:
            return beside("bench.querying", self._port, *USER)
        flood = FLOODS[self._name]
        port = self.http_port if flood.is_http else self._port if flood.listener else self.router.port
        return beside("bench.flooding", HOST, "127.0.0.1", port, self._name)

    def stop_s(self) -> float:
        """Tell the router to stop; return the seconds until it has. ServerError if the flood has ended before."""
        flood = self._flood
        if flood is not None and flood.repeats and len(sockets_of(self.router.process.pid)) < CONNECTIONS:
            raise ServerError(f"the router has closed connections that flooded with {self._name}")
        began_s = time.monotonic()
        self.router.process.send_signal(signal.SIGTERM)
        self.router.process.wait()
        return time.monotonic() - began_s


def waits(port: int, http_port: int, seconds: float) -> Waits:
    """Return the waits of others for so many seconds, each kind in a thread of its own."""
    neighbour, found = Client(port), Waits([], [], [])
    ends_s = time.monotonic() + BEGUN_S + seconds

    def ask_ready() -> None:
        connection = HTTPConnection("127.0.0.1", http_port)
        connection.request("GET", "/readyz")
        connection.getresponse().read()
        connection.close()

    def repeat(ask: Callable[[], object], into: list[float]) -> None:
        time.sleep(BEGUN_S)
        while time.monotonic() < ends_s:
            began_s = time.perf_counter()
            ask()
            into.append((time.perf_counter() - began_s) * 1000)
            time.sleep(PAUSE_S)

    asked: tuple[tuple[Callable[[], object], list[float]], ...] = (
        (ask_ready, found.ready_ms),
        (lambda: Client(port).close(), found.login_ms),
        (neighbour.ask, found.echo_ms),
    )
    threads = [threading.Thread(target=repeat, args=each) for each in asked]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    neighbour.close()
    return found


class Flooder:
    """The connections of a flood. One epoll serves them all; their answers are read and dropped."""

    def __init__(self, here: str, there: tuple[str, int], flood: Flood) -> None:
        self._here = here
        self._there = there
        self._flood = flood
        self._stopped = False
        self._epoll = select.epoll()
        self._socks: dict[int, socket.socket] = {}
        #: How much of what it says, and repeats, each connection has sent.
        self._sent: dict[int, int] = {}
        self._ended = 0

    def run(self) -> float:
        """Flood until SIGTERM; return the rate, in the unit of the flood."""
        signal.signal(signal.SIGTERM, self._stop)
        for _ in range(CONNECTIONS):
            self._connect()
        print("begun", flush=True)
        began_s, before = time.monotonic(), self._count()
        while not self._stopped:
            for number, events in self._epoll.poll(0.1):
                try:
                    self._go_on(number, events)
                except ConnectionError:
                    self._end(number)
        return (self._count() - before) / (time.monotonic() - began_s)

    def _count(self) -> float:
        return sum(self._sent.values()) / 1e6 if self._flood.repeats else self._ended

    def _stop(self, number: int, frame: object) -> None:
        self._stopped = True

    def _connect(self) -> None:
        sock = socket.socket()
        sock.bind((self._here, 0))
        sock.connect(self._there)
        sock.setblocking(False)
        self._socks[sock.fileno()] = sock
        self._sent[sock.fileno()] = 0
        self._epoll.register(sock, select.EPOLLIN | select.EPOLLOUT)

    def _go_on(self, number: int, events: int) -> None:
        sock, says, repeats = self._socks[number], self._flood.says, self._flood.repeats
        if events & select.EPOLLIN and not sock.recv(READ_BYTES):
            self._end(number)
            return
        if events & select.EPOLLOUT:
            sent = self._sent[number]
            if sent < len(says):
                left = memoryview(says)[sent:]
            elif repeats:
                left = memoryview(repeats)[(sent - len(says)) % len(repeats) :]
            else:
                self._epoll.modify(number, select.EPOLLIN)
                return
            self._sent[number] += sock.send(left)

    def _end(self, number: int) -> None:
        """Let another connection take the place of one that has ended, unless that was to last."""
        self._socks.pop(number).close()
        self._ended += 1
        if not self._flood.repeats:
            with suppress(ConnectionError):
                self._connect()


def main() -> None:
    """Flood until SIGTERM."""
    here, there, port, name = sys.argv[1:]
    print(Flooder(here, (there, int(port)), FLOODS[name]).run(), flush=True)


if __name__ == "__main__":
    main()
