"""AMQP inside WebSockets: the handshake, both directions, and the ways in which it ends."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked
from wsproto.connection import Connection, ConnectionState, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Event, Ping, Pong, TextMessage
from wsproto.frame_protocol import CloseReason

from tests.http.sites import Answer, Client, Crowd, Site, client_of, listening
from trouter.http import HttpListener, bridge
from trouter.http.settings import LINGER_S, TURNS_PER_S

KEY = "dGhlIHNhbXBsZSBub25jZQ=="
ACCEPT = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
HANDSHAKE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec_WebSocket_Key": KEY,
    "Sec_WebSocket_Version": "13",
    "Sec_WebSocket_Protocol": "amqp",
}
PLENTY = 16 * 1024 * 1024


@pytest.fixture
def patient_clock() -> MockClock:
    """Return a clock that skips a wait only after the sockets have been quiet for a while."""
    return MockClock(autojump_threshold=0.1)


class Sockets:
    """The client's side of a WebSocket."""

    def __init__(self, client: Client) -> None:
        self.stream = client.stream
        self.protocol = Connection(ConnectionType.CLIENT, trailing_data=client.unread)
        self._events: list[Event] = []

    async def send(self, event: Event) -> None:
        await self.stream.send_all(self.protocol.send(event))

    async def send_bytes(self, content: bytes) -> None:
        await self.send(BytesMessage(data=content))

    async def next(self) -> Event:
        """Return the next event; a close with 1006 if the connection ended without one."""
        while not self._events:
            data = bytes(await self.stream.receive_some())
            self.protocol.receive_data(data or None)
            self._events += list(self.protocol.events())
        return self._events.pop(0)

    async def read_bytes(self, count: int) -> bytes:
        """Return the next ``count`` bytes."""
        gathered = b""
        while len(gathered) < count:
            event = await self.next()
            assert isinstance(event, BytesMessage)
            gathered += event.data
        assert len(gathered) == count
        return gathered

    async def end(self) -> int:
        """Read to the close; return its code."""
        while not isinstance(event := await self.next(), CloseConnection):
            assert isinstance(event, BytesMessage)
        return event.code

    async def closed(self) -> int:
        """Read to the close, answer it, wait for the end; return the close's code."""
        code = await self.end()
        if self.protocol.state is ConnectionState.REMOTE_CLOSING:
            await self.send(CloseConnection(code=code))
        assert await self.stream.receive_some() == b""
        return code


async def upgrade(client: Client, target: str = "/", **headers: str) -> Answer:
    """Send the handshake, with ``headers`` in place of its own, without empty ones; return the answer."""
    chosen = {name: value for name, value in {**HANDSHAKE, **headers}.items() if value}
    return await client.ask(target, **chosen)


@asynccontextmanager
async def websocket_to(listener: HttpListener) -> AsyncIterator[Sockets]:
    """Yield an open WebSocket."""
    async with client_of(listener) as client:
        assert (await upgrade(client)).status == 101
        yield Sockets(client)


@pytest.mark.parametrize("path", ["/", "/ws", "/metrics", "/anything?x=1", "/$servicebus/websocket"])
@pytest.mark.parametrize(
    ("offered", "chosen"),
    [("amqp", "amqp"), ("binary", "binary"), ("AMQPWSB10", "AMQPWSB10"), ("mqtt, binary , amqp", "binary"), ("", None)],
)
async def test_the_first_subprotocol_that_carries_amqp_is_chosen(path: str, offered: str, chosen: str | None) -> None:
    site = Site()
    async with listening(site) as listener, client_of(listener) as client:
        answer = await upgrade(client, path, Sec_WebSocket_Protocol=offered)
        assert answer.status == 101
        assert answer.headers["sec-websocket-accept"] == ACCEPT
        assert answer.headers.get("sec-websocket-protocol") == chosen
        sockets = Sockets(client)
        await sockets.send_bytes(b"AMQP\0\1\0\0")
        assert await sockets.read_bytes(8) == b"AMQP\0\1\0\0"
        assert listener.websockets == 1
        assert site.served == [(client.stream.socket.getsockname()[:2], "web")]


async def test_subprotocols_may_stand_in_several_headers() -> None:
    async with listening(Site()) as listener, client_of(listener) as client:
        lines = [f"{name.replace('_', '-')}: {value}" for name, value in HANDSHAKE.items()]
        text = "\r\n".join(["GET / HTTP/1.1", "Host: x", "Sec-WebSocket-Protocol: mqtt", *lines, "", ""])
        await client.send(text.encode())
        answer = await client.answer()
        assert (answer.status, answer.headers["sec-websocket-protocol"]) == (101, "amqp")


async def test_extensions_are_not_taken_up() -> None:
    async with listening(Site()) as listener, client_of(listener) as client:
        answer = await upgrade(client, Sec_WebSocket_Extensions="permessage-deflate; client_max_window_bits")
        assert answer.status == 101
        assert "sec-websocket-extensions" not in answer.headers


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec_WebSocket_Protocol": "mqtt"}, 400),
        ({"Sec_WebSocket_Protocol": "AMQP"}, 400),
        ({"Sec_WebSocket_Protocol": "amqpwsb10"}, 400),
        ({"Sec_WebSocket_Version": "8"}, 426),
        ({"Sec_WebSocket_Version": ""}, 426),
        ({"Sec_WebSocket_Key": ""}, 400),
        ({"Sec_WebSocket_Key": "short"}, 400),
        ({"Sec_WebSocket_Key": "\xff" * 24}, 400),
        ({"Sec_WebSocket_Key": KEY + KEY}, 400),
        ({"Connection": "keep-alive"}, 400),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost:1"}, 403),
    ],
    ids=repr,
)
async def test_a_handshake_that_is_refused_leaves_a_connection_for_requests(
    headers: dict[str, str], status: int
) -> None:
    site = Site()
    async with listening(site, web_socket_origins=()) as listener, client_of(listener) as client:
        answer = await upgrade(client, **headers)
        assert answer.status == status
        if status == 426:
            assert answer.headers["sec-websocket-version"] == "13"
        assert (await client.ask("/healthz")).status == 200
        assert site.served == []


async def test_a_handshake_by_another_method_is_refused() -> None:
    async with listening(Site()) as listener, client_of(listener) as client:
        answer = await client.ask("/", "POST", Content_Length="0", **HANDSHAKE)
        assert answer.status == 400


async def test_an_upgrade_to_another_protocol_is_ignored() -> None:
    async with listening(Site()) as listener, client_of(listener) as client:
        answer = await client.ask("/healthz", Connection="Upgrade, HTTP2-Settings", Upgrade="h2c", HTTP2_Settings="")
        assert (answer.status, answer.body) == (200, b"OK")
        assert (await client.ask("/healthz")).status == 200


async def test_with_websockets_switched_off_there_are_only_pages() -> None:
    async with listening(Site(), websockets=False) as listener, client_of(listener) as client:
        assert (await upgrade(client)).status == 404
        assert (await upgrade(client, "/healthz")).status == 200


async def test_the_listeners_own_pages_may_open_websockets() -> None:
    async with listening(Site(), web_socket_origins=()) as listener:
        for origin, host in (("http://localhost", "localhost"), ("http://localhost:80", "localhost")):
            async with client_of(listener) as client:
                assert (await upgrade(client, Host=host, Origin=origin)).status in {101, 400}
        async with client_of(listener) as client:
            assert (await upgrade(client, Origin="http://localhost")).status == 101


@pytest.mark.parametrize(
    ("origins", "origin", "status"),
    [
        (("https://console.example",), "https://console.example", 101),
        (("https://console.example",), "HTTPS://Console.Example", 101),
        (("https://console.example",), "https://console.example:8443", 403),
        (("https://console.example",), "http://console.example", 403),
        (("https://console.example", "null"), "null", 101),
        (("*",), "http://anywhere.example", 101),
    ],
)
async def test_of_other_pages_only_those_may_whose_origin_is_configured(
    origins: tuple[str, ...], origin: str, status: int
) -> None:
    async with listening(Site(), web_socket_origins=origins) as listener, client_of(listener) as client:
        assert (await upgrade(client, Origin=origin)).status == status


@pytest.mark.parametrize("origin", ["https://app.example.com", "http://localhost:1", "null"])
async def test_every_page_may_where_no_origin_is_configured(origin: str) -> None:
    async with listening(Site()) as listener, client_of(listener) as client:
        assert (await upgrade(client, Origin=origin)).status == 101


async def test_bytes_that_come_with_the_handshake_are_not_lost() -> None:
    async with listening(Site()) as listener, client_of(listener) as client:
        protocol = Connection(ConnectionType.CLIENT)
        lines = [f"{name.replace('_', '-')}: {value}" for name, value in HANDSHAKE.items()]
        text = "\r\n".join(["GET / HTTP/1.1", "Host: x", *lines, "", ""])
        await client.send(text.encode() + protocol.send(BytesMessage(data=b"early")))
        assert (await client.answer()).status == 101
        assert await Sockets(client).read_bytes(5) == b"early"


async def test_messages_are_one_stream_however_they_are_cut() -> None:
    content = os.urandom(300_000)
    async with listening(Site()) as listener, websocket_to(listener) as sockets, trio.open_nursery() as nursery:

        async def send() -> None:
            for start in range(0, len(content), 70_000):
                piece = content[start : start + 70_000]
                await sockets.send(BytesMessage(data=piece[:10], message_finished=False))
                await sockets.send(Ping(payload=b"between"))
                await sockets.send(BytesMessage(data=b"", message_finished=False))
                await sockets.send(BytesMessage(data=piece[10:], message_finished=True))

        nursery.start_soon(send)
        echoed, pongs = b"", 0
        while len(echoed) < len(content):
            match await sockets.next():
                case BytesMessage(data=data):
                    echoed += data
                case Pong(payload=payload):
                    pongs += payload == b"between"
        assert echoed == content
        assert pongs == 5


async def test_a_ping_is_answered() -> None:
    async with listening(Site()) as listener, websocket_to(listener) as sockets:
        await sockets.send(Ping(payload=b"hello"))
        assert await sockets.next() == Pong(payload=b"hello")


@pytest.mark.parametrize("empty", [Ping(), Pong(), BytesMessage(data=b"")], ids=lambda event: type(event).__name__)
async def test_frames_without_bytes_for_amqp_wait_beyond_the_pace_of_a_connection(
    empty: Event, patient_clock: MockClock
) -> None:
    async with listening(Site()) as listener, websocket_to(listener) as sockets:
        begun = trio.current_time()
        octets = b"".join(bytes(sockets.protocol.send(empty)) for _ in range(2 * TURNS_PER_S))
        await sockets.stream.send_all(octets)
        await sockets.send_bytes(b"behind them")
        while not isinstance(event := await sockets.next(), BytesMessage) or not event.data:
            pass
        assert event.data == b"behind them"
        assert trio.current_time() - begun > 0.9


async def test_messages_for_amqp_have_no_pace() -> None:
    async with listening(Site()) as listener, websocket_to(listener) as sockets:
        for _ in range(5 * TURNS_PER_S):
            await sockets.send_bytes(b"x")
        assert await sockets.read_bytes(5 * TURNS_PER_S) == b"x" * 5 * TURNS_PER_S


@pytest.mark.parametrize(
    ("content", "answered"),
    [(b"\x03\xe8", 1000), (b"\x03\xe9", 1001), (b"\x0f\xa0bye", 4000), (b"", 1005)],
)
async def test_the_clients_close_is_answered_and_ends_amqp(content: bytes, answered: int) -> None:
    ended = trio.Event()

    async def amqp(stream: trio.SocketStream) -> None:
        assert await stream.receive_some() == b""
        ended.set()

    async with listening(Site(amqp)) as listener, websocket_to(listener) as sockets:
        await sockets.stream.send_all(bytes((0x88, 0x80 | len(content))) + b"\0\0\0\0" + content)
        assert await sockets.end() == answered
        assert await sockets.stream.receive_some() == b""
        await ended.wait()


async def test_the_end_of_amqp_is_a_normal_close_after_its_last_words() -> None:
    async def amqp(stream: trio.SocketStream) -> None:
        await stream.send_all(b"last words")

    async with listening(Site(amqp)) as listener, websocket_to(listener) as sockets:
        assert await sockets.read_bytes(10) == b"last words"
        assert await sockets.closed() == CloseReason.NORMAL_CLOSURE


async def test_amqp_that_waits_for_the_client_sees_the_end_of_the_stream() -> None:
    async def amqp(stream: trio.SocketStream) -> None:
        await stream.send_all(b"close")
        await stream.send_eof()
        assert await stream.receive_some() == b""

    async with listening(Site(amqp)) as listener, websocket_to(listener) as sockets:
        assert await sockets.read_bytes(5) == b"close"
        assert await sockets.closed() == CloseReason.NORMAL_CLOSURE


async def test_a_failure_of_the_server_is_reported_as_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    async def amqp(stream: trio.SocketStream) -> None:
        await trio.lowlevel.checkpoint()
        raise ZeroDivisionError

    async with listening(Site(amqp)) as listener, websocket_to(listener) as sockets:
        assert await sockets.closed() == CloseReason.INTERNAL_ERROR
    assert "internal error, WebSocket from 127.0.0.1:" in caplog.text


async def test_a_stopped_listener_leaves_websockets_until_their_amqp_ends() -> None:
    stop = trio.Event()

    async def amqp(stream: trio.SocketStream) -> None:
        await stream.send_all(await stream.receive_some())
        await stop.wait()

    async with listening(Site(amqp)) as listener, websocket_to(listener) as sockets:
        listener.stop()
        await sockets.send_bytes(b"still here")
        assert await sockets.read_bytes(10) == b"still here"
        stop.set()
        assert await sockets.closed() == CloseReason.GOING_AWAY


async def test_while_draining_pages_are_served_and_websockets_are_not() -> None:
    async with listening(Site()) as listener, client_of(listener) as client:
        listener.drain()
        assert (await upgrade(client)).status == 503
        assert (await client.ask("/readyz")).status == 200


async def test_text_is_refused() -> None:
    async with listening(Site()) as listener, websocket_to(listener) as sockets:
        await sockets.send(TextMessage(data="AMQP"))
        assert await sockets.closed() == CloseReason.UNSUPPORTED_DATA


@pytest.mark.parametrize("parts", [1, 20])
async def test_a_message_beyond_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch, parts: int) -> None:
    monkeypatch.setattr(bridge, "MAX_MESSAGE_BYTES", 1000)
    async with listening(Site()) as listener, websocket_to(listener) as sockets:
        for _ in range(5):
            await sockets.send_bytes(b"x" * 1000)
            assert await sockets.read_bytes(1000) == b"x" * 1000
        for _ in range(parts):
            await sockets.send(BytesMessage(data=b"x" * (1001 // parts + 1), message_finished=False))
        assert await sockets.end() == CloseReason.MESSAGE_TOO_BIG


@pytest.mark.parametrize(
    "content",
    [
        b"\x82\x05hello",  # not masked
        b"\x83\x80\x00\x00\x00\x00",  # no such opcode
        b"\xc2\x80\x00\x00\x00\x00",  # an extension that was not negotiated
        b"\x80\x80\x00\x00\x00\x00",  # continues nothing
        b"\x02\x80\x00\x00\x00\x00\x82\x80\x00\x00\x00\x00",  # a message within a message
        b"\x09\x80\x00\x00\x00\x00",  # a ping in parts
        b"\x89\xfe\x00\x7e\x00\x00\x00\x00" + b"x" * 126,  # a ping that is too long
        b"\x82\xff\x80" + b"\x00" * 11,  # a length beyond the data
        b"\x82\xfe\x00\x01\x00\x00\x00\x00x",  # a length in more bytes than needed
        b"\x88\x81\x00\x00\x00\x00x",  # half a close code
        b"\x88\x82\x00\x00\x00\x00\x00\x01",  # a close code that must not be sent
    ],
    ids=repr,
)
async def test_a_request_for_no_websocket_is_answered_with_that_reason_and_read_no_more(content: bytes) -> None:
    async with listening(Site()) as listener, websocket_to(listener) as sockets:
        await sockets.stream.send_all(content + b"\x82\x05hello" * 10)
        assert await sockets.end() == CloseReason.PROTOCOL_ERROR


async def test_a_client_that_is_lost_ends_amqp() -> None:
    ended = trio.Event()

    async def amqp(stream: trio.SocketStream) -> None:
        async for _ in stream:
            pass
        ended.set()

    async with listening(Site(amqp)) as listener:
        async with websocket_to(listener) as sockets:
            await sockets.send_bytes(b"x")
        await ended.wait()


async def test_a_client_that_does_not_answer_a_close_is_disconnected_soon(autojump_clock: MockClock) -> None:
    async def amqp(stream: trio.SocketStream) -> None:
        await trio.lowlevel.checkpoint()

    async with listening(Site(amqp)) as listener, websocket_to(listener) as sockets:
        begun = trio.current_time()
        assert await sockets.end() == CloseReason.NORMAL_CLOSURE
        assert await sockets.stream.receive_some() == b""
        assert trio.current_time() - begun == pytest.approx(LINGER_S)


async def test_amqp_that_does_not_end_with_its_client_is_not_waited_for_long(autojump_clock: MockClock) -> None:
    async def amqp(stream: trio.SocketStream) -> None:
        await trio.sleep_forever()

    async with listening(Site(amqp)) as listener, websocket_to(listener) as sockets:
        begun = trio.current_time()
        await sockets.send(CloseConnection(code=1000))
        assert await sockets.closed() == 1000
        assert trio.current_time() - begun <= LINGER_S


async def test_a_client_is_slowed_down_by_amqp_that_does_not_read(autojump_clock: MockClock) -> None:
    read = trio.Event()
    total = 0

    async def amqp(stream: trio.SocketStream) -> None:
        nonlocal total
        await read.wait()
        async for data in stream:
            total += len(data)

    async with listening(Site(amqp)) as listener, websocket_to(listener) as sockets:
        sent = 0
        with trio.move_on_after(10):
            while sent < PLENTY:
                await sockets.stream.send_all(b"\x82\xfe\x10\x00\x00\x00\x00\x00" + b"x" * 4096)
                sent += 4096
        assert 0 < sent < PLENTY
        read.set()
    assert sent <= total < sent + 4096


async def test_amqp_is_slowed_down_by_a_client_that_does_not_read(autojump_clock: MockClock) -> None:
    written = 0

    async def amqp(stream: trio.SocketStream) -> None:
        nonlocal written
        with trio.move_on_after(10):
            while written < PLENTY:
                await stream.send_all(b"x" * 4096)
                written += 4096
        done.set()

    done = trio.Event()
    async with listening(Site(amqp)) as listener, websocket_to(listener) as sockets:
        await done.wait()
        assert 0 < written < PLENTY
        assert sockets.protocol.state is ConnectionState.OPEN


async def test_a_client_that_does_not_read_cannot_hold_amqp_that_has_ended(autojump_clock: MockClock) -> None:
    async def amqp(stream: trio.SocketStream) -> None:
        with trio.move_on_after(10):
            while True:
                await stream.send_all(b"x" * 4096)

    async with listening(Site(amqp)) as listener, websocket_to(listener) as sockets:
        await trio.sleep(100)
        assert not listener.peers
        assert sockets.protocol.state is ConnectionState.OPEN


async def test_the_last_bytes_of_a_client_that_reads_nothing_come_before_its_close(autojump_clock: MockClock) -> None:
    full = trio.Event()
    came = b""

    async def amqp(stream: trio.SocketStream) -> None:
        nonlocal came
        with trio.move_on_after(10):
            while True:
                await stream.send_all(b"x" * 4096)
        full.set()
        async for data in stream:
            came += data

    async with listening(Site(amqp)) as listener, websocket_to(listener) as sockets:
        await full.wait()
        message, close = BytesMessage(data=b"last words"), CloseConnection(code=CloseReason.NORMAL_CLOSURE)
        await sockets.stream.send_all(sockets.protocol.send(message) + sockets.protocol.send(close))
        await trio.sleep(100)
    assert came == b"last words"


async def test_a_websocket_is_not_given_up_for_a_new_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trouter.http.door.MAX_PLAIN", 1)
    async with listening(Site()) as listener, websocket_to(listener) as sockets:
        for _ in range(3):
            async with client_of(listener) as client:
                assert (await client.ask("/healthz")).status == 200
        await sockets.send_bytes(b"here")
        assert await sockets.read_bytes(4) == b"here"


@pytest.mark.fuzz
@given(
    content=st.lists(
        st.one_of(
            st.binary(max_size=30),
            st.builds(
                lambda opcode, payload: bytes((opcode, 0x80 | len(payload))) + b"\0\0\0\0" + payload,
                st.integers(0, 255),
                st.binary(max_size=125),
            ),
        ),
        max_size=12,
    ).map(b"".join)
)
def test_any_bytes_end_in_a_close_or_an_echo(content: bytes) -> None:
    async def main() -> None:
        async with listening(Site()) as listener, websocket_to(listener) as sockets:
            try:
                await sockets.stream.send_all(content)
                await sockets.stream.send_eof()
                while await sockets.stream.receive_some():
                    pass
            except trio.BrokenResourceError:
                pass

    trio.run(main)


async def test_frames_of_a_websocket_wait_for_the_turn_of_its_host() -> None:
    crowd = Crowd()
    async with listening(crowd.site) as listener, client_of(listener) as client:
        assert (await upgrade(client)).status == 101
        await crowd.use_pass()
        await client.send(b"\x82\x81" + bytes(4) + b"x")
        await wait_all_tasks_blocked(0.01)
        assert crowd.site.turns.waiting == 1
        crowd.site.turns.begin_pass()
        assert await client.stream.receive_some() == b"\x82\x01x"
