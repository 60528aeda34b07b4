"""When the last receiver of an address leaves, and when one comes, all routers know before the next tick."""

from __future__ import annotations

from functools import partial

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.sim.routers import TIMERS, Network, Posted
from tests.sim.test_first_messages import DELAY_S, connected
from trouter.backbone.backbone import NEWS_AFTER_S, Backbone
from trouter.backbone.contact import MeshClock
from trouter.net.hub import Hub
from trouter.net.timers import TimerQueue
from trouter.testing import MemoryRouter, MemorySender
from trouter.wire.performatives import Accepted, Released

#: No router of the line ticks between these fractions of a second.
QUIET_S, QUIET_UNTIL_S = 0.5, 1.0


def steady(count: int, address: str) -> tuple[Network, MemorySender]:
    """Return routers in a line with a receiver on the last and a sender on the first, at the start of a quiet time."""
    network, names = connected(count, address)
    network.run(10 + QUIET_S - network.now_s % 1)
    sender = network.sender(names[0], address)
    network.run(2 * count * DELAY_S)
    assert sender.credit > 0
    return network, sender


def post(network: Network, address: str) -> Posted:
    """Send a message from the first router, and wait for its outcome."""
    posted = network.posted[network.post("R0", address)]
    network.run(0.02)
    return posted


def leave(network: Network) -> None:
    """Let the only receiver leave, and the routers hear of it; no router has ticked since."""
    (receiver,) = next(site.receivers for site in network.sites.values() if site.receivers)
    network.leave(receiver)
    network.run(0.1)
    assert network.now_s % 1 < QUIET_UNTIL_S


@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize("address", ["closest.a", "balanced.a", "multicast.a"])
def test_a_sender_elsewhere_is_drained_with_the_first_message_after_the_last_receiver_left(
    count: int, address: str
) -> None:
    """It was released as often as the sender sent, up to a second, because its router sent to where nobody was."""
    network, sender = steady(count, address)
    leave(network)
    assert post(network, address).sent.outcome == Released()
    assert len(sender.drains) == 1
    assert sender.credit == 0


def test_a_sender_at_an_edge_router_is_drained_as_well_and_goes_on() -> None:
    network, _ = steady(2, "closest.a")
    network.start("E0")
    network.connect("E0", "R0", delay_s=DELAY_S)
    network.run(3)
    sender = network.sender("E0", "closest.a")
    network.run(0.02)
    assert sender.credit > 0
    leave(network)
    posted = network.posted[network.post("E0", "closest.a")]
    network.run(0.02)
    assert (posted.sent.outcome, sender.credit) == (Released(), 0)
    network.listen("R1", "closest.a")
    network.run(0.1)
    body = network.post("E0", "closest.a")
    network.run(0.1)
    assert network.accepted[body] == 1
    assert network.now_s % 1 < QUIET_UNTIL_S


@pytest.mark.parametrize("count", [2, 5])
def test_a_sender_elsewhere_goes_on_as_soon_as_a_receiver_is_back(count: int) -> None:
    network, sender = steady(count, "closest.a")
    leave(network)
    post(network, "closest.a")
    network.listen(f"R{count - 1}", "closest.a")
    network.run(0.1)
    assert sender.credit == sender.link.credit > 0
    assert post(network, "closest.a").sent.outcome == Accepted()
    assert network.now_s % 1 < QUIET_UNTIL_S


async def test_the_clock_of_the_backbone_wakes_for_news(mock_clock: MockClock) -> None:
    core = MemoryRouter(router_id="R", mode="interior").core
    queue = TimerQueue()
    backbone = MeshClock(queue, partial(Backbone, core, 1, TIMERS, trio.current_time)).backbone
    changed_at_s: list[float] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(queue.run, Hub(core))
        await wait_all_tasks_blocked()
        mock_clock.jump(0.5)
        core.network.advertise("M0a", 1)
        changed_at_s.append(backbone.news_at_s)
        mock_clock.jump(NEWS_AFTER_S + 0.001)
        await wait_all_tasks_blocked()
        changed_at_s.append(backbone.news_at_s)
        nursery.cancel_scope.cancel()
    assert changed_at_s == [pytest.approx(trio.current_time() - 0.001), float("inf")]
