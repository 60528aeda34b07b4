"""Hostile clients on an HTTP port: none uses more than its share, and other clients are unaffected."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.http.sites import Client, Crowd, Site, ask, client_of, connect, listening
from trouter.http import connection, door
from trouter.http.settings import (
    IDLE_S,
    MAX_BODY_BYTES,
    MAX_HEAD_BYTES,
    PIECE_BYTES,
    READ_BYTES_PER_S,
    REQUEST_S,
    TURNS_PER_S,
    WRITE_S,
)

pytestmark = pytest.mark.attack

HEALTHZ = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture
def patient_clock() -> MockClock:
    """Return a clock that skips a wait only after the sockets have been quiet for a while."""
    return MockClock(autojump_threshold=0.1)


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"AMQP\x00\x01\x00\x00", 400),
        (b"AMQP\x03\x01\x00\x00", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
        (b"GET /\r\n\r\n", 400),
        (b"GET / HTTP/2.0\r\nHost: x\r\n\r\n", 505),
        (b"GET /a b HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost : x\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nA: b\x00c\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
        (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (b"GET /" + b"a" * 3 * MAX_HEAD_BYTES + b" HTTP/1.1\r\nHost: x\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"a" * MAX_HEAD_BYTES, 431),
        (b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"a" * MAX_HEAD_BYTES + b"\r\n\r\n", 431),
        (b"GET /none HTTP/1.1\r\nHost: x\r\nA: " + b"a" * (MAX_HEAD_BYTES - 44) + b"\r\n\r\n", 404),
        (b"GET / HTTP/1.1\r\nHost: x\r\n" + b"a: b\r\n" * MAX_HEAD_BYTES, 431),
        (b"CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n", 405),
        (b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", 405),
        (b"TRACE / HTTP/1.1\r\nHost: x\r\n\r\n", 405),
        (b"GET metrics HTTP/1.1\r\nHost: x\r\n\r\n", 404),
    ],
    ids=lambda value: repr(value)[:60],
)
async def test_an_invalid_request_is_answered_with_its_status(data: bytes, status: int) -> None:
    async with listening(Site()) as listener:
        async with client_of(listener) as client:
            await client.send(data)
            assert (await client.answer()).status == status
        assert (await ask(listener, "/healthz")).status == 200


async def test_after_a_request_that_is_not_understood_the_connection_ends() -> None:
    async with listening(Site()) as listener, client_of(listener) as client:
        await client.send(HEALTHZ + b"\x00\r\n\r\n" + HEALTHZ)
        assert (await client.answer()).status == 200
        refused = await client.answer()
        assert (refused.status, refused.headers["connection"]) == (400, "close")
        await client.stream.send_eof()
        assert await client.rest() == b""


async def test_requests_that_come_at_once_are_answered_in_turn(tmp_path: Path) -> None:
    for number in range(200):
        (tmp_path / str(number)).write_text(str(number))
    requests = b"".join(b"GET /%d HTTP/1.1\r\nHost: x\r\n\r\n" % number for number in range(200))
    async with listening(Site(), http_root_dir=str(tmp_path)) as listener, client_of(listener) as client:
        await client.send(requests)
        for number in range(200):
            assert (await client.answer()).body == str(number).encode()


async def test_requests_beyond_the_pace_of_a_connection_wait(patient_clock: MockClock) -> None:
    async with listening(Site()) as listener, client_of(listener) as client:
        begun = trio.current_time()
        await client.send(HEALTHZ * 2 * TURNS_PER_S)
        for _ in range(2 * TURNS_PER_S):
            assert (await client.answer()).status == 200
        assert trio.current_time() - begun > 0.9


async def test_a_body_is_skipped_to_the_next_request() -> None:
    async with listening(Site()) as listener, client_of(listener) as client:
        body = HEALTHZ * 10
        await client.send(b"POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body + HEALTHZ)
        assert (await client.answer()).status == 200
        assert (await client.answer()).status == 200
        await client.stream.send_eof()
        assert await client.rest() == b""


@pytest.mark.parametrize("framing", ["length", "chunked"])
async def test_a_body_beyond_the_limit_is_refused_while_the_client_sends(framing: str) -> None:
    async with listening(Site()) as listener, client_of(listener) as client:
        header = "Content-Length: 99999999999" if framing == "length" else "Transfer-Encoding: chunked"
        await client.send(f"POST /healthz HTTP/1.1\r\nHost: x\r\n{header}\r\n\r\n".encode())
        piece = b"a" * 1000
        framed = piece if framing == "length" else b"%x\r\n%b\r\n" % (len(piece), piece)
        await client.send(framed * (MAX_BODY_BYTES // len(piece) + 2))
        answer = await client.answer()
        assert (answer.status, answer.headers["connection"]) == (413, "close")


async def test_a_client_that_expects_100_continue_is_answered_without_its_body() -> None:
    async with listening(Site()) as listener, client_of(listener) as client:
        answer = await client.ask("/healthz", "POST", Expect="100-continue", Content_Length="10")
        assert (answer.status, answer.headers["connection"]) == (200, "close")


async def test_a_request_that_comes_too_slowly_is_given_up(patient_clock: MockClock) -> None:
    async with listening(Site()) as listener, client_of(listener) as client:
        begun = trio.current_time()
        await client.send(HEALTHZ[:10])
        assert (await client.answer()).status == 408
        assert trio.current_time() - begun == pytest.approx(REQUEST_S, abs=1)


async def test_a_byte_now_and_then_buys_no_time(patient_clock: MockClock) -> None:
    async with listening(Site()) as listener, client_of(listener) as client:
        begun = trio.current_time()
        async with trio.open_nursery() as nursery:

            async def trickle() -> None:
                for byte in HEALTHZ[:-1]:
                    await client.send(bytes([byte]))
                    await trio.sleep(1)

            nursery.start_soon(trickle)
            assert (await client.answer()).status == 408
            nursery.cancel_scope.cancel()
        assert trio.current_time() - begun < REQUEST_S + 5


async def test_a_body_that_never_ends_is_given_up(patient_clock: MockClock) -> None:
    async with listening(Site()) as listener, client_of(listener) as client:
        await client.send(b"POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n")
        assert (await client.answer()).status == 408


async def test_the_listeners_own_time_limit_counts(patient_clock: MockClock) -> None:
    async with listening(Site(), initial_handshake_timeout_seconds=3) as listener, client_of(listener) as client:
        begun = trio.current_time()
        assert await client.rest() == b""
        assert trio.current_time() - begun == pytest.approx(3, abs=0.5)


async def test_without_a_limit_of_its_own_a_listener_still_has_one(patient_clock: MockClock) -> None:
    async with listening(Site(), initial_handshake_timeout_seconds=0) as listener, client_of(listener) as client:
        assert await client.rest() == b""


async def test_an_idle_connection_is_closed(patient_clock: MockClock) -> None:
    async with listening(Site()) as listener, client_of(listener) as client:
        assert (await client.ask("/healthz")).status == 200
        begun = trio.current_time()
        assert await client.rest() == b""
        assert trio.current_time() - begun == pytest.approx(IDLE_S, abs=1)


async def test_a_client_that_does_not_read_is_disconnected(tmp_path: Path, patient_clock: MockClock) -> None:
    size = make_file(tmp_path / "x", 64)
    async with listening(Site(), http_root_dir=str(tmp_path)) as listener, client_of(listener) as client:
        await client.send(b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n")
        await trio.sleep(WRITE_S + size / READ_BYTES_PER_S + 1)
        assert not listener.peers
        assert len(await client.rest()) < size


async def test_a_piece_now_and_then_buys_no_time(
    tmp_path: Path, patient_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "READ_BYTES_PER_S", 1024 * 1024)
    size, read = make_file(tmp_path / "x", 64), 0
    async with listening(Site(), http_root_dir=str(tmp_path)) as listener, client_of(listener) as client:
        await client.send(b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n")
        begun = trio.current_time()
        while listener.peers or not read:
            read += len(await client.stream.receive_some(2 * PIECE_BYTES))
            await trio.sleep(WRITE_S / 2)
        assert trio.current_time() - begun == pytest.approx(WRITE_S + 64, abs=WRITE_S)
        assert read < size / 2


def make_file(path: Path, mib: int) -> int:
    """Make a file of so many MiB; return its size in bytes."""
    with path.open("wb") as file:
        return file.truncate(mib * 1024 * 1024)


async def test_a_client_that_will_send_no_more_is_answered() -> None:
    async with listening(Site()) as listener, client_of(listener) as client:
        await client.send(HEALTHZ)
        await client.stream.send_eof()
        assert (await client.rest()).endswith(b"OK")


async def test_half_a_request_and_an_end_is_an_error_for_that_one_only() -> None:
    async with listening(Site()) as listener:
        async with client_of(listener) as client:
            await client.send(HEALTHZ[:20])
            await client.stream.send_eof()
            assert (await client.answer()).status == 400
        assert (await ask(listener, "/healthz")).status == 200


async def test_scraping_goes_on_while_clients_die() -> None:
    async with listening(Site()) as listener:
        for ending in (b"", b"GET /metrics", b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 20):
            for _ in range(20):
                stream = await connect(listener)
                await stream.send_all(ending)
                stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                await stream.aclose()
            assert (await ask(listener, "/metrics")).status == 200


@dataclass
class Hesitant(Site):
    """A site that is healthy once the test says so."""

    asked: trio.Event = field(default_factory=trio.Event)
    answer: trio.Event = field(default_factory=trio.Event)

    async def healthy(self) -> bool:
        self.asked.set()
        await self.answer.wait()
        return True


async def test_beyond_the_limit_the_client_that_has_been_idle_longest_is_disconnected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(door, "MAX_PLAIN", 3)
    async with listening(Site()) as listener:
        first, second, third = [Client(await connect(listener)) for _ in range(3)]
        for client in (second, third, first):
            assert (await client.ask("/healthz")).status == 200
        async with client_of(listener) as fourth:
            assert (await fourth.ask("/healthz")).status == 200
        assert await second.rest() == b""
        assert (await first.ask("/healthz")).status == 200
        assert (await third.ask("/healthz")).status == 200
        for client in (first, second, third):
            await client.stream.aclose()


async def test_a_probe_that_is_being_answered_has_a_place_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "MAX_PLAIN", 1)
    site = Hesitant()
    async with listening(site) as listener, client_of(listener) as client:
        await client.send(HEALTHZ)
        await site.asked.wait()
        for _ in range(3):
            assert (await ask(listener, "/livez")).status == 200
        site.answer.set()
        assert (await client.answer()).status == 200
        assert (listener.accepted, listener.refused) == (4, 0)


async def test_a_probe_beyond_the_places_of_probes_is_like_any_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "MAX_PLAIN", 1)
    monkeypatch.setattr(door, "MAX_PROBES", 0)
    site = Hesitant()
    async with listening(site) as listener, client_of(listener) as client:
        await client.send(HEALTHZ)
        await site.asked.wait()
        assert (await ask(listener, "/livez")).status == 200
        assert await client.rest() == b""


async def test_max_connections_turns_the_next_one_away() -> None:
    site = Hesitant()
    async with listening(site, max_connections=1) as listener, client_of(listener) as client:
        await client.send(HEALTHZ)
        await site.asked.wait()
        async with client_of(listener) as other:
            assert await other.rest() == b""
        site.answer.set()
        assert (await client.answer()).status == 200
        assert (listener.accepted, listener.refused) == (1, 1)


async def test_at_max_connections_a_client_that_waits_makes_room() -> None:
    async with listening(Site(), max_connections=1) as listener, client_of(listener) as client:
        assert (await client.ask("/healthz")).status == 200
        assert (await ask(listener, "/healthz")).status == 200
        assert await client.rest() == b""


async def test_connections_that_come_at_once_count_before_they_are_served() -> None:
    async with listening(Site(), max_connections=1) as listener:
        address = listener.sockets[0].getsockname()[:2]
        with socket.create_connection(address) as first, socket.create_connection(address) as second:
            while listener.accepted + listener.refused < 2:
                await trio.lowlevel.checkpoint()
            first.setblocking(False)
            await trio.lowlevel.wait_readable(first)
            assert first.recv(1) == b""  # it made room for the second one before anything of it was read
            assert (listener.accepted, listener.refused) == (2, 0)
            second.shutdown(socket.SHUT_RDWR)


async def test_accept_rate_spaces_connections(patient_clock: MockClock) -> None:
    async with listening(Site(), accept_rate=2) as listener:
        begun = trio.current_time()
        for _ in range(5):
            assert (await ask(listener, "/healthz")).status == 200
        # The first second's connections at once, then one each half second.
        assert trio.current_time() - begun == pytest.approx(1.5, abs=0.2)


async def test_a_stopped_listener_disconnects_idle_clients_and_answers_pending_requests() -> None:
    site = Hesitant()
    async with listening(site) as listener, client_of(listener) as idle, client_of(listener) as busy:
        assert (await idle.ask("/livez")).status == 200
        await busy.send(HEALTHZ)
        await site.asked.wait()
        where = listener.sockets[0].getsockname()
        listener.stop()
        assert await idle.rest() == b""
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(where)
        site.answer.set()
        last = await busy.answer()
        assert (last.status, last.headers["connection"]) == (200, "close")
        await busy.stream.aclose()
        await listener.done.wait()


async def test_an_error_in_the_server_ends_one_connection(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with listening(Site()) as listener:
        with monkeypatch.context() as patch:
            patch.setattr(connection, "handshake_in", lambda _: 1 / 0)
            async with client_of(listener) as client:
                await client.send(HEALTHZ)
                assert await client.rest() == b""
        assert (await ask(listener, "/healthz")).status == 200
    assert "internal error" in caplog.text


@pytest.mark.fuzz
@given(
    data=st.lists(
        st.one_of(
            st.binary(max_size=100),
            st.sampled_from(
                [HEALTHZ, b"\r\n", b"GET ", b" HTTP/1.1", b"Host: x", b"Upgrade: websocket", b"Content-Length: 5"]
            ),
        ),
        max_size=12,
    ).map(b"".join)
)
def test_any_bytes_are_answered_or_dropped(data: bytes) -> None:
    async def main() -> None:
        async with listening(Site()) as listener, client_of(listener) as client:
            try:
                await client.send(data)
                await client.stream.send_eof()
                rest = await client.rest()
            except trio.BrokenResourceError:
                return
            assert rest == b"" or rest.startswith(b"HTTP/1.1 ")
            assert b" 500 " not in rest

    trio.run(main)


async def test_a_request_waits_for_the_turn_of_its_host() -> None:
    crowd = Crowd()
    async with listening(crowd.site) as listener, client_of(listener) as client:
        assert (await client.ask("/livez")).status == 200
        await crowd.use_pass()
        await client.send(HEALTHZ)
        await wait_all_tasks_blocked(0.01)
        assert crowd.site.turns.waiting == 1
        crowd.site.turns.begin_pass()
        assert (await client.answer()).status == 200
