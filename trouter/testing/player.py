"""Connections of a whole router, played in memory: bytes, time and answers in; bytes, close and records out.

There are no sockets. The parts are the real ones, from the listener to the core; only the poller and the sockets below
it are of memory. Each play gives a peer's input and returns what the router did about it, once it has come to rest:

    async with play(CONFIGURATION) as router:
        peer = router.accept()
        assert kinds(await peer.play(AMQP_HEADER, Open("c"), BEGIN)) == [bytes, Open, Begin]
        assert kinds(await peer.play(HANG_UP)) == [Closed]

Time passes by trio's MockClock: ``jump`` the clock, then ``play`` without input.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any, Final, cast

import trio
from trio.testing import wait_all_tasks_blocked

from trouter._bell import Bell
from trouter.app.process import RouterProcess
from trouter.config import deleted, load
from trouter.config.facts import router_facts
from trouter.hooks import Plugins
from trouter.net.hub import Hub
from trouter.net.poller import GONE, HUNG_UP, READABLE, WRITABLE, Poller, SocketReader
from trouter.net.shares import Shares
from trouter.net.timers import TimerQueue
from trouter.net.turns import TaskTurns
from trouter.records import Record
from trouter.wire.framing import frame
from trouter.wire.performatives import Performative, decode_performative, encode_performative

NO_PLUGINS: Final[Mapping[str, object]] = MappingProxyType({})
#: Octets of a protocol header, and of the header of a frame.
HEADER_BYTES: Final = 8


class Closed:
    """The router closed the socket."""

    def __repr__(self) -> str:
        return "Closed()"


class HangUp:
    """The peer closes its socket."""


class Reset:
    """The peer closes over unread input, or its host has gone: nothing can be written, what came can be read."""


HANG_UP: Final = HangUp()
RESET: Final = Reset()
#: What a peer does: octets, performatives on channel 0 or on another one, and ends.
Input = bytes | Performative | tuple[int, Performative] | HangUp | Reset
#: What the router did: a protocol header, a performative, None for an empty frame, and the end.
Output = bytes | Performative | Closed | None


class MemorySocket:
    """The socket of one connection, in memory; the router reads and writes it, a ``PlayedPeer`` is at its other end."""

    def __init__(self, poller: MemoryPoller, number: int, remote: tuple[str, int]) -> None:
        self._poller = poller
        self._number = number
        self._remote = remote
        self.arriving = bytearray()
        self.sent = bytearray()
        #: Octets that the peer still takes.
        self.room_bytes = 1 << 62
        #: The most octets of one read.
        self.read_bytes = 1 << 62
        #: The peer has closed its end, or the connection is broken.
        self.hung_up = False
        self.broken = False
        self.closed = False
        #: Tasks of the test that wait until the router writes or closes.
        self._waiting = trio.lowlevel.ParkingLot()

    # --- the socket, as the router uses it

    def fileno(self) -> int:
        return -1 if self.closed else self._number

    def recv(self, count: int) -> bytes:
        data = bytes(self.arriving[: min(count, self.read_bytes)])
        del self.arriving[: len(data)]
        if not data and self.broken:
            raise ConnectionResetError(104, "Connection reset by peer")
        if not data and not self.hung_up:
            raise BlockingIOError
        return data

    def send(self, data: bytes | bytearray) -> int:
        if self.broken:
            raise BrokenPipeError(32, "Broken pipe")
        count = min(len(data), self.room_bytes)
        if not count:
            raise BlockingIOError
        self.sent += data[:count]
        self.room_bytes -= count
        self._waiting.unpark_all()
        return count

    def shutdown(self, how: int) -> None:
        if self.broken:
            raise BrokenPipeError(32, "Broken pipe")

    def close(self) -> None:
        self.closed = True
        self._waiting.unpark_all()

    def setblocking(self, wanted: bool) -> None:
        assert not wanted  # noqa: S101 - the router never blocks

    def setsockopt(self, *option: int) -> None:
        """Set nothing: no option matters here."""

    def getsockname(self) -> tuple[str, int]:
        return "192.0.2.1", 5672

    def getpeername(self) -> tuple[str, int]:
        return self._remote

    # --- readiness

    async def wait_for_router(self) -> None:
        """Wait until the router has written something that was not taken yet, or has closed the socket."""
        while not (self.sent or self.closed):
            await self._waiting.park()

    def ready(self) -> int:
        """Return what is true of the socket now, as epoll's events."""
        ended = self.hung_up or self.broken
        readable = READABLE if self.arriving or ended else 0
        writable = WRITABLE if self.room_bytes or self.broken else 0
        return readable | writable | (HUNG_UP if ended else 0) | (GONE if self.broken else 0)


class MemoryPoller(Poller):
    """Calls the readers of sockets of memory that are ready, as the real poller does for those of the system."""

    def __init__(self, hub: Hub, _: TimerQueue) -> None:
        self._hub = hub
        self._watched: dict[MemorySocket, tuple[SocketReader, int]] = {}
        self._bell = Bell()
        self.shares = Shares()
        self.turns = TaskTurns(self.shares)
        #: Sockets whose readers have more to do.
        self._again: set[MemorySocket] = set()
        #: Tasks of the router that wait for their sockets.
        self._waiting = trio.lowlevel.ParkingLot()

    def watch(self, sock: Any, reader: SocketReader, events: int) -> None:
        self._again.discard(sock)
        if events:
            self._watched[sock] = reader, events
            self._bell.ring()
        else:
            self._watched.pop(sock, None)

    def serve_again(self, sock: Any) -> None:
        self._again.add(sock)
        self._bell.ring()

    def notice(self) -> None:
        """Note that a socket may be ready by now."""
        self._bell.ring()
        self._waiting.unpark_all()

    async def wait_readable(self, sock: Any) -> None:
        while not sock.ready() & READABLE:
            await self._waiting.park()

    async def wait_writable(self, sock: Any) -> None:
        while not sock.ready() & WRITABLE:
            await self._waiting.park()

    async def run(self) -> None:
        while True:
            await self._bell.wait()
            while self._serve_ready():
                await trio.lowlevel.checkpoint()

    def _serve_ready(self) -> bool:
        """Call every reader whose socket is ready, once; return whether there was one."""
        again = self._again
        self._again = set()
        found = [
            (reader, ready)
            for sock, (reader, events) in self._watched.items()
            if (ready := (sock.ready() | (READABLE if sock in again else 0)) & (events | GONE))
        ]
        self._hub.update_clock()
        for reader, ready in found:
            try:
                if ready == READABLE:
                    reader.on_readable()
                else:
                    reader.on_events(ready)
            except Exception as error:  # noqa: BLE001 - as the real poller does
                reader.drop_after_bug(error)
        self._hub.flush()
        return bool(found)


class PlayedPeer:
    """The other end of one connection."""

    def __init__(self, router: PlayedRouter, sock: MemorySocket) -> None:
        self._router = router
        self._closed = False
        self.sock = sock

    async def play(self, *inputs: Input) -> list[Output]:
        """Give the router the inputs, all at once; return what it did until it came to rest."""
        self.put(*inputs)
        await self.rest()
        return self._outputs()

    def put(self, *inputs: Input) -> None:
        """Give the router the inputs, all at once."""
        for each in inputs:
            self._put(each)

    async def rest(self) -> None:
        """Wait until the router has come to rest."""
        self._router.poller.notice()
        await wait_all_tasks_blocked()

    def _put(self, given: Input) -> None:
        sock = self.sock
        if isinstance(given, HangUp):
            sock.hung_up = True
        elif isinstance(given, Reset):
            sock.broken = True
        else:
            sock.arriving += octets_of(given)

    def _outputs(self) -> list[Output]:
        outputs = taken_from(self.sock.sent)
        if self.sock.closed and not self._closed:
            self._closed = True
            outputs.append(Closed())
        return outputs


def octets_of(given: bytes | Performative | tuple[int, Performative]) -> bytes:
    """Return what a peer sends, as octets."""
    if isinstance(given, bytes):
        return given
    channel, performative = given if isinstance(given, tuple) else (0, given)
    return frame(channel, encode_performative(performative))


def taken_from(sent: bytearray) -> list[Output]:
    """Return the headers and performatives in ``sent``, and remove them from it."""
    outputs: list[Output] = []
    while len(sent) >= HEADER_BYTES:
        size = HEADER_BYTES if sent.startswith(b"AMQP") else int.from_bytes(sent[:4])
        if len(sent) < size:
            break
        octets = bytes(sent[:size])
        del sent[:size]
        if octets.startswith(b"AMQP"):
            outputs.append(octets)
        else:
            start = octets[4] * 4
            outputs.append(decode_performative(octets, start, size)[0] if size > start else None)
    return outputs


class PlayedRouter:
    """A running router whose connections are of memory. ``records`` has every record that it emits."""

    def __init__(self, process: RouterProcess, listener: Any, nursery: trio.Nursery) -> None:
        self.process = process
        self.records: list[Record] = []
        self.listener = listener
        self.poller = cast("MemoryPoller", process.services.poller)
        self._nursery = nursery
        self._numbers = 0
        process.services.recorder.add(self)

    def put(self, record: Record) -> None:
        """Take a record."""
        self.records.append(record)

    def accept(self, host: str = "192.0.2.7") -> PlayedPeer:
        """Return a peer on ``host`` that has just connected to the listener."""
        peer = PlayedPeer(self, self.new_socket(host))
        self.listener.admit_socket(peer.sock, peer.sock.getpeername(), self._nursery)
        return peer

    def new_socket(self, host: str = "192.0.2.7") -> MemorySocket:
        """Return a socket of a connection to or from ``host``."""
        self._numbers += 1
        return MemorySocket(self.poller, self._numbers, (host, 50_000 + self._numbers))


@asynccontextmanager
async def play(
    text: str, plugins: Mapping[str, object] = NO_PLUGINS, calendar: Callable[[], float] = time.time
) -> AsyncIterator[PlayedRouter]:
    """Run a router until the end of the block; its only listener gets its connections from ``PlayedRouter.accept``.

    ``calendar`` returns seconds since 1970, by which certificates expire.
    """
    loaded = Plugins.load()
    for name, plugin in plugins.items():
        loaded.add(plugin, name)
    whole = load(text=text)
    (entity,) = whole.listeners
    configuration = deleted(whole, entity)
    loaded.configure(router_facts(configuration), configuration.router.plugin_settings)
    process = RouterProcess(configuration, loaded, calendar=calendar, make_poller=MemoryPoller)
    async with trio.open_nursery() as nursery:
        await nursery.start(process.run)
        if whole.ssl_profiles:  # with the contexts that the listener needs
            (await process.services.secure.prepare(whole)).apply()
        yield PlayedRouter(process, process.in_force.make_listener(entity, []), nursery)
        nursery.cancel_scope.cancel()


def kinds(outputs: list[Output]) -> list[type]:
    """Return the types of what the router did."""
    return [type(each) for each in outputs]
