"""Any bytes on an HTTP port, in whatever pieces they arrive, are answered or dropped; the answer is never status 500.

The first byte chooses the settings and the size of the pieces. The port opens a WebSocket only for a valid handshake
from an allowed origin.

Allowed: nothing. A client that disconnects causes no exception.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import h11
import trio
import trio.testing

from trouter.config import ListenerEntity
from trouter.http.connection import HttpConnection, HttpService
from trouter.http.door import Door
from trouter.http.pages import Pages
from trouter.http.ports import Secured
from trouter.http.settings import http_settings
from trouter.http.upgrade import UpgradeRefused, handshake_in
from trouter.net.shares import Shares
from trouter.net.turns import TaskTurns, Turn, host_key
from trouter.testing.fuzz import behind, text

MUTATOR = behind(1, text)
COVERS = ("trouter.http.connection", "trouter.http.upgrade", "trouter.http.bridge", "trouter.http.pages")
PATIENCE_S: Final = 60.0


class Site:
    """A healthy router without TLS that reads and drops the data of a WebSocket."""

    def reasons(self) -> Sequence[str]:
        return ()

    def turns_away(self, remote: tuple[str, int], listener: str, full: Callable[[], str]) -> bool:
        return bool(full())

    async def secure(
        self, sock: socket.socket, remote: tuple[str, int], entity: ListenerEntity, timeout_s: float, turn: Turn
    ) -> Secured | None:
        return None

    def turn(self, host: str) -> Turn:
        return Turn(TaskTurns(Shares()), host_key(host))

    async def metrics_of_workers(self, tenant: str) -> Mapping[int, bytes | None]:
        return {}

    async def reasons_of_workers(self) -> Sequence[str]:
        return ()

    def exposition(self, tenant: str, others: Mapping[int, bytes | None]) -> bytes:
        return b"up 1\n"

    async def healthy(self) -> bool:
        return True

    def ready(self) -> bool:
        return True

    def refuses_header(self, remote: tuple[str, int], listener: str, why: str) -> None:
        return None

    def refuses_upgrade(self, remote: tuple[str, int], listener: str, why: str) -> None:
        return None

    def refuses_clients(self, entity: ListenerEntity) -> str:
        return ""

    def live(self) -> bool:
        return True

    async def serve_amqp(
        self, sock: socket.socket, remote: tuple[str, int], entity: ListenerEntity, below: object | None
    ) -> None:
        stream = trio.SocketStream(trio.socket.from_stdlib_socket(sock))
        async with stream:
            async for _ in stream:
                pass


def entity_of(how: int) -> ListenerEntity:
    return ListenerEntity(http=True, websockets=not how & 1, web_socket_origins=("*",) if how & 2 else ())


def check(data: bytes) -> None:
    how, stream = (data[0], data[1:]) if data else (0, b"")
    answered = trio.run(serve, how, stream, clock=trio.testing.MockClock(autojump_threshold=0))
    assert answered == b"" or answered.startswith(b"HTTP/1.1 "), answered[:60]
    assert b"HTTP/1.1 500" not in answered
    if b"HTTP/1.1 101" in answered:
        assert not how & 1
        assert b"websocket" in stream.lower()
    check_handshake(stream)


async def serve(how: int, stream: bytes) -> bytes:
    """Return the bytes that the client reads until the connection ends."""
    near, far = trio.testing.memory_stream_pair()
    site, entity = Site(), entity_of(how)
    settings = replace(http_settings(entity), console=False)  # threads read files; the mock clock does not see them
    service = HttpService(entity, settings, site, Pages(settings, site), Door())
    remote = ("192.0.2.1", 40000)
    place, turn = service.door.enter(remote[0]), site.turn(remote[0])
    connection = HttpConnection(Secured(near, None), "127.0.0.1", remote, service, place, turn)
    answered = bytearray()
    step = (1, 7, 100, 10_000)[how >> 2 & 3]

    async def read() -> None:
        async for piece in far:
            answered.extend(piece)

    with trio.move_on_after(PATIENCE_S) as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(connection.run)
            nursery.start_soon(read)
            try:
                for start in range(0, len(stream), step):
                    await far.send_all(stream[start : start + step])
                await far.send_eof()
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                pass
    assert not scope.cancelled_caught, "it never ended"
    return bytes(answered)


def check_handshake(stream: bytes) -> None:
    """Check that the port accepts a WebSocket only with a key, the right version and an allowed origin."""
    parser = h11.Connection(h11.SERVER)
    try:
        parser.receive_data(stream)
        request = parser.next_event()
    except h11.RemoteProtocolError:
        return
    if not isinstance(request, h11.Request):
        return
    handshake = handshake_in(request)
    if handshake is None:
        return
    try:
        answer, subprotocol = handshake.accept((), on_loopback=True)
    except UpgradeRefused as refused:
        status = refused.response.status
    else:
        assert answer.status_code == 101
        assert subprotocol in ("", "amqp", "binary")
        assert request.method == b"GET"
        assert (
            handshake.headers.get("origin", "http://localhost").split("://")[-1].startswith(("localhost", "127.", "["))
        )
        return
    assert status in (400, 403, 426)
