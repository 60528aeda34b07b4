"""The limits of peers before their open, and of the memory, played in memory."""

from __future__ import annotations

import pytest
from trio.testing import MockClock

from tests.connections.plays import LISTENER, OPENING, condition_of, opened
from trouter.admission.memory import SHORT_OF_MEMORY
from trouter.testing.player import HANG_UP, Closed, kinds, play
from trouter.wire.framing import AMQP_HEADER
from trouter.wire.performatives import Begin, Open

TIGHT = """
router {
    id: R
    maxHandshakesPerHost: 2
    minHandshakeRate: 10
    acceptRatePerHost: 1
    acceptBurstPerHost: 5
    handshakeExempt: 198.51.100.0/24
}
"""


async def test_a_host_has_few_handshakes_at_a_time_and_open_connections_do_not_count(
    mock_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with play(TIGHT + LISTENER) as router:
        first, second = router.accept(), router.accept()
        assert kinds(await router.accept().play()) == [Closed]
        assert "refused: maxHandshakesPerHost 2 from 192.0.2.7" in caplog.text
        assert kinds(await first.play(*OPENING)) == [bytes, Open, Begin]
        assert await router.accept().play() == []
        assert kinds(await second.play(HANG_UP)) == [Closed]
        assert len(router.process.services.guard.handshakes) == 1


async def test_other_hosts_and_exempt_ones_are_not_concerned(mock_clock: MockClock) -> None:
    async with play(TIGHT + LISTENER) as router:
        for _ in range(2):
            router.accept()
        assert await router.accept("192.0.2.8").play() == []
        for _ in range(9):
            assert await router.accept("198.51.100.1").play() == []


async def test_a_host_that_connects_too_often_is_turned_away_until_time_has_passed(
    mock_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with play(TIGHT + LISTENER) as router:
        for _ in range(5):
            await (await opened(router)).play(HANG_UP)
        assert kinds(await router.accept().play()) == [Closed]
        assert "refused: more than acceptRatePerHost 1 a second from 192.0.2.7" in caplog.text
        mock_clock.jump(1.1)
        assert kinds(await router.accept().play(*OPENING)) == [bytes, Open, Begin]


async def test_a_peer_that_drips_is_aborted_and_a_silent_one_has_its_time(
    mock_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    async with play(TIGHT + LISTENER) as router:
        dripping, silent = router.accept(), router.accept()
        await dripping.play(AMQP_HEADER[:4])
        for _ in range(3):
            mock_clock.jump(1.0)
            outputs = await dripping.play()
        assert kinds(outputs) == [Closed]
        assert "failed: too slow: less than minHandshakeRate before its open" in caplog.text
        assert await silent.play() == []
        assert kinds(await silent.play(*OPENING)) == [bytes, Open, Begin]


async def test_an_open_connection_may_be_as_slow_as_it_likes(mock_clock: MockClock) -> None:
    async with play(TIGHT + LISTENER) as router:
        peer = await opened(router)
        for _ in range(30):
            mock_clock.jump(1.0)
            assert await peer.play() == []


async def test_more_connections_than_the_listener_has_room_for_are_closed(mock_clock: MockClock) -> None:
    text = "router { id: R }\n" + LISTENER.replace("port: 0,", "port: 0, maxConnections: 2,")
    async with play(text) as router:
        first, _ = await opened(router), await opened(router)
        assert kinds(await router.accept().play()) == [Closed]
        await first.play(HANG_UP)
        assert kinds(await router.accept().play(*OPENING)) == [bytes, Open, Begin]
        assert (router.listener.accepted, router.listener.refused) == (3, 1)


async def test_a_router_short_of_memory_refuses_clients_at_their_open(
    mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with play("router { id: R }\n" + LISTENER) as router:
        peer = router.accept()
        await peer.play(AMQP_HEADER)
        memory = router.process.services.guard.memory
        monkeypatch.setattr(type(memory), "refusal", "90 percent are taken")
        outputs = await peer.play(*OPENING[1:])
        assert kinds(outputs)[0] is Open
        assert condition_of(outputs) == SHORT_OF_MEMORY.condition
        assert len(router.process.services.connections) == 0


async def test_connections_that_come_at_once_count_before_they_are_served(
    mock_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with play(LISTENER.replace("port: 0", "port: 0, maxConnections: 1") + "router { id: R }\n") as router:
        first, second = router.accept(), router.accept()
        assert kinds(await second.play()) == [Closed]
        assert "refused: maxConnections 1" in caplog.text
        assert kinds(await first.play(*OPENING)) == [bytes, Open, Begin]
        await first.play(HANG_UP)
        assert kinds(await router.accept().play(*OPENING)) == [bytes, Open, Begin], "the first has gone"


async def test_a_host_refused_for_memory_keeps_the_connections_that_it_may_open(
    mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with play(TIGHT + LISTENER) as router:
        waiting = router.accept()
        with monkeypatch.context() as short:
            short.setattr(type(router.process.services.guard.memory), "refusal", "90 percent are taken")
            for _ in range(5):
                assert kinds(await router.accept().play()) == [Closed]
        assert "refused: 90 percent are taken" in caplog.text
        assert await router.accept().play() == [], "the first reason ended it: the rate of its arrivals was not asked"
        assert await waiting.play() == []


async def test_a_connection_of_the_user_who_takes_most_is_closed(mock_clock: MockClock) -> None:
    async with play("router { id: R }\n" + LISTENER) as router:
        small, large = await opened(router), await opened(router)
        _, connection = router.process.services.connections.values()
        for _ in range(200):
            connection.engine.add_session()
        memory = router.process.services.guard.memory
        memory.set_limit(200 * 1500)
        memory._resident = memory._used = lambda: 200 * 1500
        memory.check_memory(router.process.services.connections.values())
        assert condition_of(await large.play()) == "amqp:resource-limit-exceeded"
        assert await small.play() == []
