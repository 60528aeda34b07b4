"""Connections that the router dials, played in memory: the test is the server."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.connections.dialled_plays import OK, dialling, logged_in, offering
from tests.connections.plays import BEGIN, OPEN, condition_of, only, sasl
from trouter.connections.connector import DIAL_TIMEOUT_S, HELLO_TIMEOUT_S, LONGEST_WAIT_S, NO_ANSWER
from trouter.testing.player import HANG_UP, Closed, kinds
from trouter.wire.framing import AMQP_HEADER, SASL_HEADER
from trouter.wire.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    Error,
    Open,
    Performative,
    SaslInit,
    SaslOutcome,
    Source,
    Target,
)


async def test_the_router_logs_in_and_opens(mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch) -> None:
    async with dialling(monkeypatch) as dialled:
        (server,) = dialled.servers
        assert await server.play() == [SASL_HEADER]
        init = only(await server.play(offering("EXTERNAL", "PLAIN")), SaslInit)
        assert (init.mechanism, init.initial_response) == ("PLAIN", b"\0bob\0wonderland")
        outputs = await server.play(OK, AMQP_HEADER)
        assert kinds(outputs) == [bytes, Open]
        assert only(outputs, Open).hostname == "server"
        assert dialled.own.status == "CONNECTING"
        await server.play(OPEN)
        assert dialled.own.status == "SUCCESS"
        assert "Connection Opened: dir=out host=server:" in dialled.own.message
        (connection,) = dialled.router.process.services.connections.values()
        login = connection.login
        assert (login.outgoing, login.user, login.mechanism) == (True, "bob", "PLAIN")


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ([offering("X-OTHER")], "no mechanism available: the peer offers X-OTHER"),
        ([offering("PLAIN"), sasl(SaslOutcome(1))], "amqp:unauthorized-access Authentication failed [mech=PLAIN]"),
    ],
)
async def test_a_login_that_fails_is_the_reason_and_the_router_dials_again(
    mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch, answers: list[bytes], why: str
) -> None:
    async with dialling(monkeypatch) as dialled:
        (server,) = dialled.servers
        for answer in answers:
            await server.play(answer)
        await server.play(HANG_UP)
        assert dialled.own.message == f"[C1] Connection to server:5671 failed: {why}"
        assert dialled.own.status == "CONNECTING"
        mock_clock.jump(LONGEST_WAIT_S)
        await server.play()
        assert len(dialled.servers) == 2


async def test_a_server_that_refuses_the_socket_is_tried_again_after_a_wait(
    mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with dialling(monkeypatch, fails=True) as dialled:
        assert dialled.own.message == "Connection to server:5671 failed: Connection refused"
        assert len(dialled.places) == 1
        mock_clock.jump(LONGEST_WAIT_S)
        await wait_all_tasks_blocked()
        assert len(dialled.places) == 2


async def test_the_peer_s_close_is_the_reason(mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch) -> None:
    async with dialling(monkeypatch) as dialled:
        server = await logged_in(dialled)
        await server.play(OPEN)
        outputs = await server.play(Close(Error("amqp:connection:forced", "maintenance")), HANG_UP)
        assert kinds(outputs) == [Close, Closed]
        assert dialled.own.message.endswith("failed: amqp:connection:forced maintenance")


async def test_a_server_that_does_not_open_in_time_is_left(
    mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with dialling(monkeypatch) as dialled:
        server = await logged_in(dialled)
        mock_clock.jump(DIAL_TIMEOUT_S + 0.1)
        await server.play()
        await server.play(HANG_UP)
        assert "timed out: no open within 20 s" in dialled.own.message


async def test_the_peer_s_open_names_where_to_dial_next(mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch) -> None:
    async with dialling(monkeypatch) as dialled:
        server = await logged_in(dialled)
        listed = [{"network-host": "other", "port": 5673}]
        await server.play(Open("server", properties={"failover-server-list": listed}))
        assert dialled.own.failover_urls == "amqp://server:5671, amqp://other:5673"


async def test_a_stopped_connector_closes_its_connection_and_dials_no_more(
    mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with dialling(monkeypatch) as dialled:
        server = await logged_in(dialled)
        await server.play(OPEN)
        dialled.own.stop()
        assert only(await server.play(), Close).error.description == "the connector was deleted"
        assert kinds(await server.play(Close(), HANG_UP)) == [Closed]
        assert dialled.own.done.is_set()
        mock_clock.jump(60)
        await wait_all_tasks_blocked()
        assert len(dialled.places) == 1


async def test_between_routers_the_router_attaches_its_links_and_waits_for_a_hello(
    mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with dialling(monkeypatch, role="inter-router", mode="interior") as dialled:
        server = await logged_in(dialled)
        outputs = await server.play(Open("B"))
        begins = [each for each in outputs if isinstance(each, Begin)]
        assert len(begins) > 1
        assert Attach in kinds(outputs)
        mock_clock.jump(HELLO_TIMEOUT_S + 0.1)
        outputs = await server.play()
        assert condition_of(outputs) == "amqp:connection:forced"
        await server.play(HANG_UP)
        assert dialled.own.message.endswith(NO_ANSWER["inter-router"])


async def test_a_server_that_refuses_the_control_link_is_no_router(
    mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with dialling(monkeypatch, role="inter-router", mode="interior") as dialled:
        server = await logged_in(dialled)
        outputs = await server.play(Open("B"))
        first = next(each for each in outputs if isinstance(each, Attach))
        refused = Error("amqp:not-allowed", "no such link")
        answers: list[Performative] = [
            Begin(next_outgoing_id=0, incoming_window=9, outgoing_window=9, remote_channel=0),
            Attach(first.name, 0, not first.role, source=Source(), target=Target()),
            Detach(0, True, refused),
        ]
        outputs = await server.play(*answers)
        assert condition_of(outputs) == "amqp:connection:forced"
        await server.play(HANG_UP)
        assert "the peer refuses links between routers (amqp:not-allowed no such link)" in dialled.own.message


async def test_an_uplink_is_active_until_it_is_lost(mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch) -> None:
    async with dialling(monkeypatch, role="edge", mode="edge") as dialled:
        server = await logged_in(dialled)
        outputs = await server.play(Open("interior"))
        assert kinds(outputs).count(Begin) >= 1
        uplinks = dialled.router.process.services.uplinks
        assert uplinks is not None
        (connection,) = dialled.router.process.services.connections.values()
        assert uplinks.is_active(connection.number)
        assert connection.build_management_row(trio.current_time())["active"] is True
        await server.play(HANG_UP)
        assert not uplinks.is_active(connection.number)
        assert uplinks.fault is None


async def test_a_session_of_the_peer_is_served_on_a_dialled_connection_too(
    mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with dialling(monkeypatch) as dialled:
        server = await logged_in(dialled)
        assert kinds(await server.play(OPEN, BEGIN)) == [Begin]
