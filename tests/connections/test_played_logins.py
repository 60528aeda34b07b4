"""Logins, played in memory: what the peer and the plugin say, and what the router answers, records and logs."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from tests.connections.plays import (
    BEGIN,
    LISTENER,
    LOGIN,
    OPEN,
    OPENING,
    RESPONSE,
    ROUTED,
    ROUTER,
    Scripted,
    condition_of,
    join,
    only,
    sasl,
)
from trouter.connections.login_checks import LoginChecks
from trouter.hooks import Authenticated, Challenge, Refused
from trouter.records import ConnectionClosedRecord, ConnectionOpenedRecord, SaslOutcomeRecord
from trouter.testing.player import HANG_UP, RESET, Closed, PlayedRouter, kinds, play
from trouter.wire.framing import AMQP_HEADER, SASL_HEADER
from trouter.wire.performatives import (
    Begin,
    Close,
    Open,
    SaslChallenge,
    SaslInit,
    SaslMechanisms,
)
from trouter.wire.performatives import SaslOutcome as Outcome

CONFIGURATION = """
router { id: R }
listener {
    name: in
    host: 127.0.0.1
    port: 0
    idleTimeoutSeconds: 0
    saslMechanisms: X-MINE
    authenticatePeer: yes
    initialHandshakeTimeoutSeconds: 10
}
"""


def outcomes(router: PlayedRouter) -> list[SaslOutcomeRecord]:
    return [record for record in router.records if isinstance(record, SaslOutcomeRecord)]


def tasks_below(task: trio.lowlevel.Task) -> list[trio.lowlevel.Task]:
    below = [child for nursery in task.child_nurseries for child in nursery.child_tasks]
    return [*below, *(each for child in below for each in tasks_below(child))]


async def test_a_login_goes_from_mechanisms_over_a_challenge_to_the_open(mock_clock: MockClock) -> None:
    scripted = Scripted()
    async with play(CONFIGURATION, {"mine": scripted}) as router:
        peer = router.accept()
        first = await peer.play(LOGIN)
        assert first[0] == SASL_HEADER
        assert only(first, SaslMechanisms).sasl_server_mechanisms == ("X-MINE",)
        await scripted.give.send(Challenge(b"and?"))
        assert only(await peer.play(), SaslChallenge).challenge == b"and?"
        assert await peer.play(RESPONSE) == []
        assert scripted.responses == [b"hello", b"more"]
        await scripted.give.send(Authenticated("alice"))
        assert only(await peer.play(), Outcome).code == 0
        assert kinds(await peer.play(AMQP_HEADER, OPEN, BEGIN)) == [bytes, Open, Begin]
        (connection,) = router.process.services.connections.values()
        assert (connection.login.user, connection.login.mechanism, connection.lifetime.name) == (
            "alice",
            "X-MINE",
            f"connection/192.0.2.7:{peer.sock.getpeername()[1]}",
        )
        assert [(each.ok, each.user, each.reason) for each in outcomes(router)] == [(True, "alice", "ok")]
        (record,) = [each for each in router.records if isinstance(each, ConnectionOpenedRecord)]
        assert (record.user, record.mech, record.listener, record.dir) == ("alice", "X-MINE", "in", "in")


async def test_frames_sent_before_the_outcome_wait_for_it(mock_clock: MockClock) -> None:
    scripted = Scripted()
    async with play(CONFIGURATION, {"mine": scripted}) as router:
        peer = router.accept()
        await peer.play(LOGIN, AMQP_HEADER, OPEN, BEGIN)
        assert len(router.process.services.connections) == 0
        await scripted.give.send(Authenticated("alice"))
        assert kinds(await peer.play()) == [Outcome, bytes, Open, Begin]


@pytest.mark.parametrize(
    ("answer", "code", "reason"),
    [
        (Refused("wrong password", user="alice"), 1, "bad-credentials"),
        (Refused("no directory", temporary=True), 4, "service"),
        (Authenticated("alice", expires_at_s=0.0), 1, "expired"),
    ],
)
async def test_a_refused_login_ends_the_connection_with_its_code_only(
    mock_clock: MockClock, caplog: pytest.LogCaptureFixture, answer: Refused | Authenticated, code: int, reason: str
) -> None:
    caplog.set_level("INFO")
    scripted = Scripted()
    async with play(CONFIGURATION, {"mine": scripted}) as router:
        peer = router.accept()
        await peer.play(LOGIN)
        await scripted.give.send(answer)
        assert only(await peer.play(), Outcome).code == code
        assert kinds(await peer.play(HANG_UP)) == [Closed]
        assert [(each.ok, each.code, each.reason) for each in outcomes(router)] == [(False, code, reason)]
        assert [each for each in router.records if isinstance(each, ConnectionOpenedRecord)] == []
        assert "failed: amqp:unauthorized-access Authentication failed [mech=X-MINE]" in caplog.text
        assert len(router.process.services.guard.handshakes) == 0


async def test_a_mechanism_that_nobody_serves_is_refused(mock_clock: MockClock) -> None:
    async with play(CONFIGURATION, {"mine": Scripted()}) as router:
        peer = router.accept()
        assert only(await peer.play(SASL_HEADER, sasl(SaslInit("X-OTHER"))), Outcome).code == 1
        assert [each.reason for each in outcomes(router)] == ["unknown-mechanism"]


async def test_a_plugin_that_does_not_answer_in_time_refuses_for_now(mock_clock: MockClock) -> None:
    async with play(CONFIGURATION.replace("Seconds: 10", "Seconds: 60"), {"mine": Scripted()}) as router:
        peer = router.accept()
        await peer.play(LOGIN)
        mock_clock.jump(router.listener._settings.sasl_timeout_s + 0.1)
        assert only(await peer.play(), Outcome).code == 4
        assert [each.reason for each in outcomes(router)] == ["timeout"]


@pytest.mark.parametrize("end", [HANG_UP, RESET])
async def test_a_peer_that_leaves_while_the_plugin_thinks_is_gone_at_once(
    mock_clock: MockClock, caplog: pytest.LogCaptureFixture, end: object
) -> None:
    caplog.set_level("INFO")
    async with play(CONFIGURATION, {"mine": Scripted()}) as router:
        peer = router.accept()
        await peer.play(LOGIN)
        assert kinds(await peer.play(end)) == [Closed]  # type: ignore[arg-type]  # one of the two ends
        assert "failed: peer closed the socket" in caplog.text
        assert router.listener.peers == {}


async def test_a_client_that_skips_the_login_is_refused_where_one_is_required(mock_clock: MockClock) -> None:
    async with play(CONFIGURATION, {"mine": Scripted()}) as router:
        outputs = await router.accept().play(*OPENING)
        assert condition_of(outputs) == "amqp:connection:policy-error"


async def test_no_open_in_time_ends_the_connection(mock_clock: MockClock, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    async with play(CONFIGURATION, {"mine": Scripted()}) as router:
        peer = router.accept()
        assert await peer.play() == []
        mock_clock.jump(10.1)
        await peer.play()
        assert "failed: timed out: no open within 10 s" in caplog.text
        assert kinds(await peer.play(HANG_UP)) == [Closed]


async def test_a_listener_without_a_limit_waits_for_an_open_for_ever(mock_clock: MockClock) -> None:
    async with play(ROUTER + LISTENER.replace("port: 0,", "port: 0, initialHandshakeTimeoutSeconds: 0,")) as router:
        peer = router.accept()
        assert await peer.play() == []
        mock_clock.jump(86_400.0)
        assert await peer.play() == []
        assert kinds(await peer.play(*OPENING)) == [bytes, Open, Begin]


async def test_credentials_that_expire_close_the_connection(
    mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time", lambda: 1000.0)
    scripted = Scripted()
    async with play(CONFIGURATION, {"mine": scripted}) as router:
        peer = router.accept()
        await peer.play(LOGIN)
        await scripted.give.send(Authenticated("alice", expires_at_s=1060.0))
        assert kinds(await peer.play(*OPENING)) == [Outcome, bytes, Open, Begin]
        mock_clock.jump(59.9)
        assert await peer.play() == []
        mock_clock.jump(0.2)
        outputs = await peer.play()
        assert condition_of(outputs) == "amqp:connection:forced"
        assert only(outputs, Close).error.description == "credentials no longer valid"


async def test_a_user_that_the_plugin_does_not_confirm_any_more_is_closed(mock_clock: MockClock) -> None:
    scripted, good = Scripted(), [True]
    async with play(CONFIGURATION, {"mine": scripted}) as router:
        peer = router.accept()
        await peer.play(LOGIN)
        await scripted.give.send(Authenticated("alice", still_good=lambda: good[0]))
        await peer.play(*OPENING)
        services = router.process.services
        checks = LoginChecks(services.plugins, services.connections)
        await checks.check_all()
        assert await peer.play() == []
        good[0] = False
        await checks.check_all()
        assert condition_of(await peer.play()) == "amqp:connection:forced"
        await peer.play(Close(), HANG_UP)
        (record,) = [each for each in router.records if isinstance(each, ConnectionClosedRecord)]
        assert (record.by, record.condition, record.user) == ("local", "amqp:connection:forced", "alice")


async def test_peers_whose_logins_end_together_hear_nothing_of_each_other_s_end(mock_clock: MockClock) -> None:
    """A container and a client of its link route: either would hear that the other's link is lost."""
    good = [True]
    scripted = Scripted(*[Authenticated("alice", still_good=lambda: good[0])] * 2)
    text = CONFIGURATION.replace("name: in", "name: in\n    role: route-container") + ROUTED
    async with play(text, {"mine": scripted}) as router:
        container, client = router.accept(), router.accept()
        for each, name in ((container, "B"), (client, "C")):
            await each.play(LOGIN)
            await each.play(AMQP_HEADER, Open(name, hostname="vhost"))
        await join(client.play, container.play)
        good[0] = False
        services = router.process.services
        await LoginChecks(services.plugins, services.connections).check_all()
        assert [kinds(await each.play()) for each in (client, container)] == [[Close], [Close]]


async def test_a_peer_waits_after_failures_of_its_host_and_keeps_its_time(mock_clock: MockClock) -> None:
    """It waits longer than a handshake may take."""
    scripted = Scripted()
    text = CONFIGURATION.replace("id: R", "id: R, authLockout: enforce, authDelayAfter: 1, authLongestDelaySeconds: 30")
    async with play(text, {"mine": scripted}) as router:
        lockout = router.process.services.guard.lockout
        for _ in range(5):
            lockout.judge_attempt("192.0.2.7", "alice", right=False)
        peer = router.accept()
        await peer.play(LOGIN)
        waited_s = 0.0
        while not scripted.responses:
            mock_clock.jump(1.0)
            waited_s += 1.0
            await peer.play()
            assert waited_s < 40
        await scripted.give.send(Authenticated("alice"))
        for _ in range(40):
            if outputs := await peer.play():
                break
            mock_clock.jump(1.0)
            waited_s += 1.0
        assert only(outputs, Outcome).code == 0
        assert waited_s > 10
        assert kinds(await peer.play(*OPENING)) == [bytes, Open, Begin]


async def test_the_nursery_of_a_peer_is_left_by_all_its_tasks(mock_clock: MockClock) -> None:
    scripted = Scripted()
    async with play(CONFIGURATION, {"mine": scripted}) as router:
        tasks = trio.lowlevel.current_statistics().tasks_living
        peer = router.accept()
        await peer.play(LOGIN)
        await peer.play(HANG_UP)
        assert trio.lowlevel.current_statistics().tasks_living == tasks


@pytest.mark.parametrize("mode", ["interior", "edge"])
async def test_each_connection_has_a_nursery(mock_clock: MockClock, mode: str) -> None:
    async with play(CONFIGURATION.replace("id: R", f"id: R\n mode: {mode}\n"), {"mine": Scripted()}) as router:
        root = trio.lowlevel.current_root_task()
        assert root is not None
        before = set(tasks_below(root))
        await router.accept().play(LOGIN)
        (task,) = set(tasks_below(root)) - before
        assert len(task.child_nurseries) == 1
