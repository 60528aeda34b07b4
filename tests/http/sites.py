"""A site and an HTTP listener in the test's own process, reached over real sockets."""

from __future__ import annotations

import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import trio
from trio.testing import wait_all_tasks_blocked

from trouter.config import ListenerEntity
from trouter.http import Figures, HttpListener
from trouter.http.figures import TenantFigures
from trouter.http.metrics import TOTALS, exposition, tenant_exposition
from trouter.http.ports import Secured
from trouter.net.shares import Shares
from trouter.net.turns import PASS_S, TaskTurns, Turn, host_key

Serve = Callable[[trio.SocketStream], Awaitable[None]]

NO_TOTALS = {series.name: 0 for series in TOTALS}


async def echo(stream: trio.SocketStream) -> None:
    """Send the input back until it ends."""
    async for data in stream:
        await stream.send_all(data)


@dataclass
class Site:
    """A site whose answers the test sets."""

    amqp: Serve = echo
    is_ready: bool = True
    why_not: list[str] = field(default_factory=list)
    is_live: bool = True
    is_healthy: bool = True
    is_flooded: bool = False
    totals: Mapping[str, int] = field(default_factory=lambda: NO_TOTALS)
    shown: int = 0
    refused_upgrades: int = 0
    served: list[tuple[tuple[str, int], str]] = field(default_factory=list)
    turns: TaskTurns = field(default_factory=lambda: TaskTurns(Shares()))

    async def metrics_of_workers(self, tenant: str) -> dict[int, bytes | None]:
        await trio.lowlevel.checkpoint()
        return {}

    async def reasons_of_workers(self) -> list[str]:
        await trio.lowlevel.checkpoint()
        return []

    def exposition(self, tenant: str, others: Mapping[int, bytes | None]) -> bytes:
        return tenant_exposition(self.tenant(tenant)) if tenant else exposition(self.figures())

    def figures(self) -> Figures:
        self.shown += 1
        return Figures(totals=self.totals, version="1.2.3", twin="interpreted", uptime_s=float(self.shown))

    def tenant(self, name: str) -> TenantFigures:
        return TenantFigures(name, 3)

    async def healthy(self) -> bool:
        await trio.lowlevel.checkpoint()
        return self.is_healthy

    def ready(self) -> bool:
        return self.is_ready

    def reasons(self) -> list[str]:
        return [] if self.is_ready else self.why_not

    def refuses_clients(self, entity: ListenerEntity) -> str:
        return ""

    def live(self) -> bool:
        return self.is_live

    def refuses_header(self, remote: tuple[str, int], listener: str, why: str) -> None:
        raise AssertionError("no listener here has proxyProtocolHosts")

    def refuses_upgrade(self, remote: tuple[str, int], listener: str, why: str) -> None:
        self.refused_upgrades += 1

    def turns_away(self, remote: tuple[str, int], listener: str, full: Callable[[], str]) -> bool:
        return self.is_flooded or bool(full())

    def turn(self, host: str) -> Turn:
        return Turn(self.turns, host_key(host))

    async def secure(
        self, sock: socket.socket, remote: tuple[str, int], entity: ListenerEntity, timeout_s: float, turn: Turn
    ) -> Secured | None:
        raise AssertionError("no listener here has an sslProfile")

    async def serve_amqp(
        self, sock: socket.socket, remote: tuple[str, int], entity: ListenerEntity, below: object | None
    ) -> None:
        self.served.append((remote, entity.name))
        stream = trio.SocketStream(trio.socket.from_stdlib_socket(sock))
        try:
            await self.amqp(stream)
        finally:
            stream.socket.close()


class Crowd:
    """A site whose processor another host has used up for each pass, until the test lets a task go on."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.site = Site(turns=TaskTurns(Shares(), lambda: self.now_s))
        self._other = self.site.turns.shares.join("other")

    async def use_pass(self) -> None:
        """Begin a pass, and let nobody but the other host have a turn in it."""
        turns = self.site.turns
        turns.begin_pass()
        began_s = self.now_s
        self.now_s += 2 * PASS_S
        turns.end(self._other, began_s)
        await wait_all_tasks_blocked(0.01)


def open_files() -> int:
    """Return the count of this process's open descriptors."""
    return len(list(Path("/proc/self/fd").iterdir()))


def http_entity(**attributes: object) -> ListenerEntity:
    """Return a listener for HTTP on this machine."""
    return ListenerEntity(**{"name": "web", "host": "127.0.0.1", "port": "0", "http": True, **attributes})  # type: ignore[arg-type]


@asynccontextmanager
async def listening(site: Site, **attributes: object) -> AsyncIterator[HttpListener]:
    """Run an HTTP listener. At the end it must stop, all its connections must end, and no descriptor may stay open."""
    files = open_files()
    sock = socket.create_server(("127.0.0.1", 0))
    sock.setblocking(False)
    listener = HttpListener(http_entity(**attributes), [sock], site)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(listener.run)
        yield listener
        listener.stop()
        await listener.done.wait()
    assert not listener.peers
    assert not len(listener._door)
    assert listener.websockets == 0
    assert open_files() == files


async def connect(listener: HttpListener) -> trio.SocketStream:
    """Connect to the listener."""
    return await trio.open_tcp_stream(*listener.sockets[0].getsockname()[:2])


@dataclass
class Answer:
    """A response as it was received."""

    status: int
    headers: dict[str, str]
    body: bytes


class Client:
    """An HTTP/1.1 client that sends what the test chooses."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self.unread = b""

    async def send(self, content: bytes) -> None:
        await self.stream.send_all(content)

    async def ask(self, target: str, method: str = "GET", **headers: str) -> Answer:
        """Send a request; return its answer."""
        lines = [f"{method} {target} HTTP/1.1", "Host: localhost"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        await self.send(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
        return await self.answer(has_body=method != "HEAD")

    async def answer(self, *, has_body: bool = True) -> Answer:
        """Return the next answer."""
        while b"\r\n\r\n" not in self.unread:
            await self._more()
        head, _, self.unread = self.unread.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        match = re.fullmatch(r"HTTP/1\.1 (\d{3}) .*", first)
        assert match is not None, first
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        size = int(headers.get("content-length", "0")) if has_body else 0
        while len(self.unread) < size:
            await self._more()
        body, self.unread = self.unread[:size], self.unread[size:]
        return Answer(int(match[1]), headers, body)

    async def rest(self) -> bytes:
        """Return everything until the other end closes."""
        rest, self.unread = self.unread, b""
        return rest + b"".join([bytes(data) async for data in self.stream])

    async def _more(self) -> None:
        data = await self.stream.receive_some()
        assert data, f"closed after {self.unread!r}"
        self.unread += data


@asynccontextmanager
async def client_of(listener: HttpListener) -> AsyncIterator[Client]:
    """Connect a client of its own."""
    async with await connect(listener) as stream:
        yield Client(stream)


async def ask(listener: HttpListener, target: str, method: str = "GET", **headers: str) -> Answer:
    """Send a request on a connection of its own; return the answer."""
    async with client_of(listener) as client:
        return await client.ask(target, method, **headers)
