"""The turns of a drain: connections leave evenly over the stated time, the longest open first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from trio.testing import MockClock

from tests.connections.plays import LISTENER, ROUTER, condition_of, opened, receiver
from trouter.config import ListenerEntity
from trouter.testing.player import HANG_UP, PlayedPeer, kinds, play
from trouter.wire.performatives import Close


async def closed_of(peers: Sequence[PlayedPeer]) -> list[int]:
    """Return the places of the peers whose connections the router closes now; they answer."""
    found = []
    for place, peer in enumerate(peers):
        outputs = await peer.play()
        if Close in kinds(outputs):
            assert condition_of(outputs) == "amqp:connection:forced"
            await peer.play(Close(), HANG_UP)
            found.append(place)
    return found


async def test_connections_leave_one_after_the_other_over_the_stated_time(mock_clock: MockClock) -> None:
    async with play(ROUTER + LISTENER) as router:
        drain = router.process.in_force.drain
        peers = [await opened(router, receiver()) for _ in range(4)]
        await router.process.control.start_drain(60.0)
        left = []
        for _ in range(6):
            mock_clock.jump(10.0)
            left.append((await closed_of(peers), drain.report().left))
        assert left == [([], 4), ([0], 3), ([1], 2), ([], 2), ([2], 1), ([3], 0)]
        assert (drain.report().state, drain.report().closed) == ("drained", 4)


async def test_a_second_order_changes_the_time_of_those_that_are_left(mock_clock: MockClock) -> None:
    async with play(ROUTER + LISTENER) as router:
        peers = [await opened(router) for _ in range(2)]
        await router.process.control.start_drain(3600.0)
        mock_clock.jump(10.0)
        assert await closed_of(peers) == []
        assert (await router.process.control.start_drain(0.0)).total == 2
        mock_clock.jump(1.0)
        assert await closed_of(peers) == [0, 1]


async def test_a_client_that_goes_by_itself_is_not_waited_for(mock_clock: MockClock) -> None:
    async with play(ROUTER + LISTENER) as router:
        peers = [await opened(router) for _ in range(2)]
        await router.process.control.start_drain(100.0)
        await peers[0].play(Close(), HANG_UP)
        mock_clock.jump(100.5)
        assert await closed_of(peers[1:]) == [0]
        report = router.process.control.drain_report()
        assert (report.state, report.total, report.closed) == ("drained", 2, 1)


async def test_a_connection_that_opens_late_leaves_too(mock_clock: MockClock) -> None:
    async with play(ROUTER + LISTENER) as router:
        await router.process.control.start_drain(0.0)
        mock_clock.jump(1.0)
        late = await opened(router)  # it was in its handshake when the listener closed
        mock_clock.jump(1.0)
        assert await closed_of([late]) == [0]


async def test_a_cancelled_drain_closes_no_more(mock_clock: MockClock) -> None:
    async with play(ROUTER + LISTENER) as router:
        peers = [await opened(router) for _ in range(2)]
        await router.process.control.start_drain(100.0)
        mock_clock.jump(51.0)
        assert await closed_of(peers) == [0]
        await router.process.control.cancel_drain()
        mock_clock.jump(1_000.0)
        assert await closed_of(peers) == []
        assert router.process.control.drain_report().state == "serving"


@pytest.mark.parametrize(
    ("role", "drains", "serves_http", "closes"),
    [
        ("normal", True, False, True),
        ("route-container", True, False, True),
        ("edge", True, False, True),
        ("inter-router", True, False, False),
        ("normal", False, False, False),
        ("normal", True, True, False),
    ],
)
async def test_which_listeners_a_drain_closes(role: str, drains: bool, serves_http: bool, closes: bool) -> None:
    entity = replace(ListenerEntity(), role=role, drains=drains, http=serves_http)
    async with play(ROUTER + LISTENER) as router:
        drain = router.process.in_force.drain
        assert not drain.closes(entity)
        drain.start(0.0, 0)
        assert drain.closes(entity) is closes
