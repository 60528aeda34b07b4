"""AMQP in a WebSocket, played in memory: WebSocket events in and out, and what the router makes of the connection."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import pytest
import trio
from trio.testing import MemoryReceiveStream, MemorySendStream, MockClock, wait_all_tasks_blocked
from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Event, Ping, Pong, TextMessage
from wsproto.frame_protocol import CloseReason

from tests.connections.plays import LISTENER, OPENING, ROUTER, condition_of
from trouter.http.alive import SILENT_S
from trouter.http.bridge import Bridge
from trouter.net.turns import Turn, host_key
from trouter.records import ConnectionClosedRecord
from trouter.testing.player import MemorySocket, Output, PlayedRouter, kinds, octets_of, play, taken_from
from trouter.wire.framing import AMQP_HEADER
from trouter.wire.performatives import Begin, Close, Error, Open, Performative

FORCED = Error("amqp:connection:forced", "an operator closed it")


class MemoryEnd:
    """The bridge's end of a connection of memory; the router serves AMQP at the other."""

    def __init__(self, router: PlayedRouter, sock: MemorySocket) -> None:
        self._router = router
        self._sock = sock

    async def send_all(self, data: bytes | bytearray) -> None:
        self._sock.arriving += data
        self._router.poller.notice()
        await trio.lowlevel.checkpoint()

    async def receive(self) -> bytes:
        await self._sock.wait_for_router()
        data = bytes(self._sock.sent)
        self._sock.sent.clear()
        return data

    async def send_eof(self) -> None:
        self.close()
        await trio.lowlevel.checkpoint()

    def close(self) -> None:
        self._sock.hung_up = True
        self._router.poller.notice()


class PlayedWebSocket:
    """A client whose WebSocket is open."""

    def __init__(self, router: PlayedRouter) -> None:
        self.router = router
        self.going_away = False
        #: The bridge has ended.
        self.ended = False
        self._to_router = MemoryReceiveStream()
        self._from_router = MemorySendStream()
        self._protocol = Connection(ConnectionType.CLIENT)
        self._octets = bytearray()
        sock = router.new_socket()
        stream = trio.StapledStream(self._from_router, self._to_router)
        pair = MemoryEnd(router, sock), cast("socket.socket", sock)
        turn = Turn(router.poller.turns, host_key("192.0.2.7"))
        self._bridge = Bridge(stream, b"", "192.0.2.7:1", lambda: self.going_away, turn, lambda: pair)

    async def run(self) -> None:
        await self._bridge.run(self._serve)
        self.ended = True

    async def _serve(self, sock: socket.socket) -> None:
        await self.router.listener.serve_socket(sock, ("192.0.2.7", 1))

    async def play(self, *inputs: Event | bytes) -> list[Event]:
        """Give the bridge events, or octets in place of frames; return the events of the router at rest."""
        for each in inputs:
            self._to_router.put_data(each if isinstance(each, bytes) else self._protocol.send(each))
        await wait_all_tasks_blocked()
        try:
            self._protocol.receive_data(bytes(self._from_router.get_data_nowait()))
        except trio.WouldBlock:
            return []
        return list(self._protocol.events())

    async def amqp(self, *inputs: bytes | Performative) -> list[Output]:
        """Give the router AMQP, each input in a message; return what it did, if it only sent messages."""
        return self.outputs(await self.play(*(BytesMessage(data=octets_of(each)) for each in inputs)))

    def outputs(self, events: list[Event]) -> list[Output]:
        """Return the AMQP in events that are messages."""
        for event in events:
            assert isinstance(event, BytesMessage), event
            self._octets += event.data
        return taken_from(self._octets)

    def hang_up(self) -> None:
        """Close the client's socket without a close of the WebSocket."""
        self._to_router.put_eof()


@asynccontextmanager
async def websocket(listener: str = LISTENER, router: str = ROUTER) -> AsyncIterator[PlayedWebSocket]:
    """Run a router, and a client with an open WebSocket."""
    async with play(router + listener) as played, trio.open_nursery() as nursery:
        client = PlayedWebSocket(played)
        nursery.start_soon(client.run)
        yield client
        nursery.cancel_scope.cancel()


def how_it_ended(client: PlayedWebSocket) -> tuple[str, str | None]:
    (record,) = [record for record in client.router.records if isinstance(record, ConnectionClosedRecord)]
    return record.by, record.condition


async def test_a_connection_opens_in_a_websocket(mock_clock: MockClock) -> None:
    async with websocket() as client:
        assert kinds(await client.amqp(*OPENING)) == [bytes, Open, Begin]
        (connection,) = client.router.process.services.connections.values()
        assert connection.lifetime.remote == "192.0.2.7:1"
        *events, end = await client.play(BytesMessage(data=octets_of(Close())))
        assert kinds(client.outputs(events)) == [Close]
        assert isinstance(end, CloseConnection)


@pytest.mark.parametrize("size", [1, 7, 1000])
async def test_the_bounds_of_messages_mean_nothing(mock_clock: MockClock, size: int) -> None:
    async with websocket() as client:
        octets = b"".join(map(octets_of, OPENING))
        pieces = [octets[start : start + size] for start in range(0, len(octets), size)]
        assert kinds(await client.amqp(*pieces)) == [bytes, Open, Begin]


async def test_a_ping_is_answered_and_amqp_sees_nothing_of_it(mock_clock: MockClock) -> None:
    async with websocket() as client:
        await client.amqp(*OPENING)
        (connection,) = client.router.process.services.connections.values()
        before = connection.received_bytes()
        (answer,) = await client.play(Ping(payload=b"there?"))
        assert isinstance(answer, Pong)
        assert answer.payload == b"there?"
        assert connection.received_bytes() == before


async def test_text_is_refused_and_ends_the_connection(mock_clock: MockClock) -> None:
    async with websocket() as client:
        await client.amqp(*OPENING)
        (answer,) = await client.play(TextMessage(data="AMQP"))
        assert isinstance(answer, CloseConnection)
        assert (answer.code, answer.reason) == (CloseReason.UNSUPPORTED_DATA, "AMQP is binary")
        client.hang_up()
        await client.play()
        assert client.ended
        assert how_it_ended(client) == ("transport", None)


async def test_octets_that_are_no_frames_are_refused(mock_clock: MockClock) -> None:
    async with websocket() as client:
        await client.amqp(*OPENING)
        (answer,) = await client.play(b"\xff" * 16)
        assert isinstance(answer, CloseConnection)
        assert answer.code == CloseReason.PROTOCOL_ERROR


async def test_the_client_s_close_is_answered_and_ends_the_connection(mock_clock: MockClock) -> None:
    async with websocket() as client:
        await client.amqp(*OPENING)
        (answer,) = await client.play(CloseConnection(code=1000))
        assert isinstance(answer, CloseConnection)
        client.hang_up()
        await client.play()
        assert client.ended
        assert len(client.router.process.services.connections) == 0


async def test_a_client_that_hangs_up_ends_the_connection(mock_clock: MockClock) -> None:
    async with websocket() as client:
        await client.amqp(*OPENING)
        client.hang_up()
        await client.play()
        assert client.ended
        assert how_it_ended(client) == ("transport", None)


@pytest.mark.parametrize(("going_away", "code"), [(False, CloseReason.NORMAL_CLOSURE), (True, CloseReason.GOING_AWAY)])
async def test_the_router_s_close_closes_the_websocket_behind_it(
    mock_clock: MockClock, going_away: bool, code: CloseReason
) -> None:
    async with websocket() as client:
        await client.amqp(*OPENING)
        client.going_away = going_away
        (connection,) = client.router.process.services.connections.values()
        connection.force_close(FORCED)
        assert condition_of(await client.amqp()) == FORCED.condition
        (answer,) = await client.play(BytesMessage(data=octets_of(Close())), CloseConnection(code=1000))
        assert isinstance(answer, CloseConnection)
        client.hang_up()
        await client.play()
        assert client.ended
        assert how_it_ended(client) == ("local", FORCED.condition)


async def test_pongs_keep_a_client_alive_that_sends_no_heartbeats(mock_clock: MockClock) -> None:
    async with websocket(LISTENER.replace("idleTimeoutSeconds: 0", "idleTimeoutSeconds: 4")) as client:
        await client.play(
            *(BytesMessage(data=octets_of(each)) for each in (OPENING[0], Open("c", idle_time_out=1000), OPENING[2]))
        )
        pings = 0
        for _ in range(40):
            mock_clock.jump(SILENT_S)
            events = await client.play()
            asked = [event for event in events if isinstance(event, Ping)]
            client.outputs([event for event in events if not isinstance(event, Ping)])
            pings += len(asked)
            await client.play(*(event.response() for event in asked))
        assert pings > 1
        assert len(client.router.process.services.connections) == 1
        ends: list[Event] = []
        for _ in range(20):  # and without pongs it is closed
            mock_clock.jump(SILENT_S)
            ends += await client.play()
        messages = [event for event in ends if isinstance(event, BytesMessage)]
        assert condition_of(client.outputs(list(messages))) == "amqp:resource-limit-exceeded"
        assert len(client.router.process.services.connections) == 0


async def test_a_peer_that_drips_through_a_websocket_is_cut_off(
    mock_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    async with websocket(router="router { id: R, minHandshakeRate: 64 }\n") as client:
        await client.play(BytesMessage(data=AMQP_HEADER[:3]))
        events: list[Event] = []
        for _ in range(3):
            mock_clock.jump(1.0)
            events += await client.play()
        (event,) = events
        assert isinstance(event, CloseConnection)
        assert "failed: too slow: less than minHandshakeRate before its open" in caplog.text
