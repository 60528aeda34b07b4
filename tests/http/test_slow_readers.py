"""Clients that ask and do not read: however many there are, and from wherever, probes are answered meanwhile."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, field
from itertools import cycle, islice

import pytest
import trio

from tests.http.sites import Answer, Client, Site, ask, client_of, listening
from trouter.http import HttpListener, door, pace
from trouter.http.door import Doing
from trouter.http.settings import MAX_PLAIN

pytestmark = pytest.mark.attack

PROBES = ("/healthz", "/livez", "/readyz")
METRICS = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
NOWHERE = b"GET /none HTTP/1.1\r\nHost: x\r\n\r\n"
WEBSOCKET = (
    b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
ONE_HOST = ("127.0.0.1",)
MANY_HOSTS = tuple(f"127.0.0.{number}" for number in range(2, 252))


@dataclass
class Wordy(Site):
    """A site whose metrics are more than the buffers of a connection hold."""

    def exposition(self, tenant: str, others: Mapping[int, bytes | None]) -> bytes:
        return b"#" * 600_000


@dataclass
class Stuck(Site):
    """A site whose workers send their metrics once the test says so."""

    asked: trio.Event = field(default_factory=trio.Event)
    answer: trio.Event = field(default_factory=trio.Event)

    async def metrics_of_workers(self, tenant: str) -> dict[int, bytes | None]:
        self.asked.set()
        await self.answer.wait()
        return {}


@pytest.fixture
def held() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def open_reader(listener: HttpListener, host: str, sent: bytes) -> socket.socket:
    """Connect from ``host``, and send; nothing is read."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    sock.bind((host, 0))
    sock.connect(listener.sockets[0].getsockname()[:2])
    sock.setblocking(False)
    sock.send(sent)
    return sock


async def hold_readers(
    listener: HttpListener,
    held: ExitStack,
    count: int,
    sent: bytes = METRICS,
    hosts: tuple[str, ...] = ONE_HOST,
    places: int = MAX_PLAIN,
) -> None:
    """Open so many slow readers, and wait until as many of them stand still as ``places``."""
    for number, host in enumerate(islice(cycle(hosts), count), listener.accepted + 1):
        held.enter_context(open_reader(listener, host, sent))
        while listener.accepted + listener.refused < number:
            await trio.lowlevel.checkpoint()
    while writing(listener) < min(count, places):
        await trio.lowlevel.checkpoint()


def writing(listener: HttpListener) -> int:
    """Return how many connections wait for their clients to read."""
    return sum(place.doing is Doing.WRITING and not place.is_given_up for place in listener._door._plain)


@pytest.mark.parametrize(
    ("count", "hosts"), [(256, ONE_HOST), (2000, MANY_HOSTS)], ids=["256 of one host", "2000 of many hosts"]
)
async def test_probes_are_answered_beside_slow_readers(held: ExitStack, count: int, hosts: tuple[str, ...]) -> None:
    async with listening(Wordy()) as listener:
        await hold_readers(listener, held, count, hosts=hosts)
        for path in PROBES * 5:
            assert (await ask(listener, path)).status == 200
            assert writing(listener) > MAX_PLAIN - 20
        assert (listener.accepted, listener.refused) == (count + 15, 0)
        assert len(listener.peers) <= MAX_PLAIN + 1
        held.close()


async def test_probes_are_answered_beside_many_requests_whose_answers_nobody_reads(
    held: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "MAX_PLAIN", 8)
    monkeypatch.setattr(pace, "TURNS_PER_S", 1_000_000)
    async with listening(Site()) as listener:
        await hold_readers(listener, held, 20, NOWHERE * 20_000, places=8)
        for path in PROBES:
            assert (await ask(listener, path)).status == 200
        assert listener.refused == 0
        held.close()


async def test_probes_are_answered_beside_websockets_whose_handshakes_nobody_reads(
    held: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "MAX_PLAIN", 8)
    async with listening(Site()) as listener:
        for number in range(20):
            held.enter_context(open_reader(listener, "127.0.0.1", WEBSOCKET))
            while listener.websockets <= number:
                await trio.lowlevel.checkpoint()
        for path in PROBES:
            assert (await ask(listener, path)).status == 200
        held.close()


async def upgrade(client: Client) -> Answer:
    """Ask for a WebSocket; return the answer."""
    await client.send(WEBSOCKET)
    return await client.answer()


async def test_probes_are_answered_beside_websockets_at_the_maximum(held: ExitStack) -> None:
    async with listening(Wordy(), max_connections=4) as listener, AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(client_of(listener)) for _ in range(4)]
        assert [(await upgrade(client)).status for client in clients] == [101] * 4
        await hold_readers(listener, held, 20, hosts=MANY_HOSTS, places=4)
        for path in PROBES:
            assert (await ask(listener, path)).status == 200
        assert (listener.websockets, listener.refused) == (4, 0)
        held.close()


async def test_an_upgrade_beyond_the_maximum_is_refused_until_a_websocket_ends(held: ExitStack) -> None:
    site = Site()
    async with listening(site, max_connections=2) as listener, client_of(listener) as client:
        assert (await upgrade(client)).status == 101
        at_once = [held.enter_context(open_reader(listener, "127.0.0.1", WEBSOCKET)) for _ in range(2)]
        answers = []
        for sock in at_once:
            await trio.lowlevel.wait_readable(sock)
            answers.append(sock.recv(4096))
        refused = max(answers)
        assert refused.startswith(b"HTTP/1.1 503")
        assert b"maxConnections" in refused
        assert (listener.websockets, site.refused_upgrades) == (2, 1)
        held.close()
        async with client_of(listener) as another:
            while listener.websockets == 2:
                await trio.lowlevel.checkpoint()
            assert (await upgrade(another)).status == 101


async def test_those_of_one_host_end_for_each_other_first(held: ExitStack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "MAX_PLAIN", 8)
    async with listening(Wordy()) as listener, client_of(listener) as quiet, client_of(listener) as silent:
        assert (await quiet.ask("/livez")).status == 200
        await hold_readers(listener, held, 50, hosts=("127.0.0.2",), places=6)
        assert (await quiet.ask("/livez")).status == 200
        assert (await silent.ask("/livez")).status == 200
        held.close()


async def test_one_whose_page_is_being_made_ends_after_those_that_wait(
    held: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "MAX_PLAIN", 2)
    site = Stuck()
    async with listening(site) as listener, client_of(listener) as scraper, client_of(listener) as idle:
        await scraper.send(METRICS)
        await site.asked.wait()
        assert (await idle.ask("/livez")).status == 200
        assert (await ask(listener, "/livez")).status == 200
        assert await idle.rest() == b""
        async with client_of(listener) as second:
            await second.send(METRICS)
            while listener.accepted < 4 or any(place.doing is Doing.AWAITING for place in listener._door._plain):
                await trio.lowlevel.checkpoint()
            assert (await ask(listener, "/livez")).status == 200
        assert await scraper.rest() == b""
        site.answer.set()
