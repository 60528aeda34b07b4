"""Two routers, and five in a line, deliver messages as soon as they are connected, without a second's wait."""

from __future__ import annotations

import itertools

import pytest

from tests.sim.routers import Network
from trouter.backbone.contact import next_due_s

#: Seconds that bytes take over a line, and the multiple of it that a line of so many routers may need.
DELAY_S = 0.001
ENOUGH = {2: 20, 3: 60, 5: 120}


def connected(count: int, listening: str = "") -> tuple[Network, list[str]]:
    """Start routers that run for a while, and then connect them in a line; the last one has a consumer."""
    network = Network()
    names = [f"R{number}" for number in range(count)]
    network.start(*names)
    if listening:
        network.listen(names[-1], listening)
    network.run(2.35)
    for one, other in itertools.pairwise(names):
        network.connect(one, other, delay_s=DELAY_S)
    return network, names


@pytest.mark.parametrize("count", [2, 5])
def test_a_message_gets_through_before_the_next_tick(count: int) -> None:
    network, names = connected(count, "closest.a")
    network.run(ENOUGH[count] * DELAY_S)
    body = network.post(names[0], "closest.a")
    network.run(2 * count * DELAY_S)
    assert network.accepted == {body: 1}


@pytest.mark.parametrize("count", [2, 3, 5])
def test_every_router_listed_can_answer(count: int) -> None:
    """Each router that a router lists, at every moment after they were connected, can be queried, and answers."""
    network, names = connected(count)
    near, far = network.sites[names[0]].backbone, names[-1]
    assert near is not None
    replies = network.listen_for_replies(names[0])
    for _ in range(ENOUGH[count]):
        network.run(DELAY_S)
        if far in dict(near.topology.nodes()):
            break
    assert far in dict(near.topology.nodes()), "it is not listed"
    network.listen(far, "closest.there")
    body = network.post(far, replies.address.removeprefix("amqp:/"), anonymous=True)
    network.run(2 * count * DELAY_S)
    assert network.accepted == {body: 1}


def test_unreachable_routers_are_not_listed() -> None:
    network, names = connected(3)
    network.run(10)
    near = network.sites[names[0]].backbone
    assert near is not None
    assert sorted(dict(near.topology.nodes())) == names
    network.cut(max(network.lines))
    network.run(0.01)
    assert sorted(dict(near.topology.nodes())) == names[:2]
    assert names[2] in near.mesh.routers, "it is remembered"


@pytest.mark.parametrize(("now_s", "next_s"), [(10.0, 11.0), (10.9, 11.0), (11.0, 12.0), (11.4, 12.0), (14.99, 15.0)])
def test_a_late_tick_does_not_delay_later_ticks(now_s: float, next_s: float) -> None:
    assert next_due_s(10.0, now_s) == next_s


@pytest.mark.parametrize("name", ["there", "site/there", "site/one/there"])
def test_a_sender_to_a_router_that_comes_later_has_credit_then(name: str) -> None:
    """An id may have slashes: before the router is known, where its id ends is not."""
    network = Network()
    network.start("R0", "R1")
    network.connect("R0", "R1", delay_s=DELAY_S)
    network.run(5)
    sender = network.sender("R0", f"_topo/0/{name}/service")
    other = network.sender("R0", "_topo/0/site/other/service")
    network.start(name)
    network.connect("R1", name, delay_s=DELAY_S)
    network.run(5)
    assert sender.credit > 0
    assert other.credit == 0
    network.listen(name, "_local/service")
    body = network.post("R0", f"_topo/0/{name}/service")
    network.run(1)
    assert network.accepted == {body: 1}
