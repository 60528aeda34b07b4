"""Credit, settlement and waypoints over several routers: the same as on one router.

The rows of routing.md section 8 on one hop and more.
"""

from __future__ import annotations

from itertools import combinations, cycle, product
from typing import Any

import pytest

from tests.core.joined import Joined
from trouter.core.autolinks import AutoLinkRule
from trouter.core.table import AddressRule
from trouter.core.terms import PeerTerms
from trouter.testing import MemoryReceiver, MemorySender, SentMessage, compose
from trouter.wire.performatives import (
    Accepted,
    Declared,
    Error,
    Modified,
    Received,
    Rejected,
    Released,
    TransactionalState,
)
from trouter.wire.types import Described, Symbol, ULong

RULES = (
    AddressRule("closest", is_prefix=True, distribution="closest"),
    AddressRule("multicast", is_prefix=True, distribution="multicast"),
    AddressRule("stages", is_prefix=True, ingress_phase=0, egress_phase=2),
)
LINE = {("A", "B"): 1, ("B", "C"): 1}
MESH = dict.fromkeys(combinations("ABCD", 2), 1)
FAILED = Modified(delivery_failed=True)


def receiver(joined: Joined, name: str, address: str, credit: int = 1000, **fields: Any) -> MemoryReceiver:
    return joined[name].connect().receiver(address, credit=credit, **fields)


def sender(joined: Joined, name: str, address: str | None = None, **fields: Any) -> MemorySender:
    return joined[name].connect().sender(address, **fields)


def send(joined: Joined, link: MemorySender, count: int = 1, **fields: Any) -> list[SentMessage]:
    sent = [link.send(compose(b"%d" % number, **fields)) for number in range(count)]
    joined.pump()
    return sent


# --- credit and drain


@pytest.mark.parametrize("ready", [10, 1, 0, 25])
def test_a_drain_sends_the_waiting_messages_and_ends_the_credit(ready: int) -> None:
    joined = Joined(LINE, RULES)
    there, link = receiver(joined, "C", "work", credit=0), sender(joined, "A", "work")
    send(joined, link, ready)
    assert there.received == []
    there.grant(10)
    there.drain()
    joined.pump()
    assert (len(there.received), there.credit, there.drained) == (min(ready, 10), 0, 1)
    there.grant(100)
    send(joined, link, 3)  # the messages flow again
    assert len(there.received) == ready + 3


@pytest.mark.parametrize("back", ["C", "B"])
def test_the_last_receiver_leaves_and_another_comes_back(back: str) -> None:
    joined = Joined(LINE, RULES)
    there, link = receiver(joined, "C", "work"), sender(joined, "A", "work")
    assert link.credit == 250
    there.detach()
    [sent] = send(joined, link)
    assert sent.outcome == Released()
    assert (link.drains, link.credit) == ([249], 0)
    again = receiver(joined, back, "work")
    assert link.credit == 250
    send(joined, link)
    assert len(again.received) == 1


# --- settlement


@pytest.mark.parametrize("address", ["work", "closest.x", "multicast.x"])
def test_each_order_of_settlement_ends_the_delivery_on_every_router(address: str) -> None:
    joined = Joined(LINE, RULES)
    there, link = receiver(joined, "C", address), sender(joined, "A", address)
    first, second, third = send(joined, link, 3)
    there.received[0].settle(Accepted())
    joined.pump()
    assert first.history == [(Accepted(), True)]
    there.received[1].settle(Accepted(), settled=False)
    joined.pump()
    assert second.history == [(Accepted(), False)]
    second.settle(Accepted())
    joined.pump()
    assert there.received[1].history[-1] == (Accepted(), True)
    third.settle()
    joined.pump()
    assert there.received[2].history[-1][1]
    there.received[1].settle()
    there.received[2].settle()
    joined.pump()
    assert [router.core.count_unsettled() for router in joined.routers.values()] == [0, 0, 0]
    assert joined.under_way() == 0


STATES = [
    Received(0, 7),
    Declared(b"txn"),
    TransactionalState(b"txn", Accepted()),
    Rejected(Error("a:b", "why", {Symbol("more"): "so"})),
    Modified(delivery_failed=True, undeliverable_here=True, message_annotations={Symbol("k"): "v"}),
    Described(ULong(0x0000468C00000010), ["own", 1]),
]


@pytest.mark.parametrize("state", STATES, ids=lambda state: type(state).__name__)
@pytest.mark.parametrize("address", ["work", "closest.x"])
def test_states_cross_hops_in_both_directions(address: str, state: Any) -> None:
    joined = Joined(LINE, RULES)
    there, link = receiver(joined, "C", address), sender(joined, "A", address)
    [sent] = send(joined, link)
    there.received[0].settle(state, settled=False)
    joined.pump()
    assert sent.history == [(state, False)]
    sent.settle(state, settled=False)
    joined.pump()
    assert there.received[0].history == [(state, False)]
    with_state = link.send(compose(), state=state)
    joined.pump()
    assert there.received[1].transfer_state == state
    assert with_state.history == []


def test_a_multicast_drops_a_state_that_is_no_outcome() -> None:
    joined = Joined(LINE, RULES)
    receivers = [receiver(joined, name, "multicast.x") for name in "BC"]
    [sent] = send(joined, sender(joined, "A", "multicast.x"))
    for each in receivers:
        each.received[0].settle(Received(0, 7), settled=False)
    joined.pump()
    assert sent.history == []
    receivers[0].received[0].settle(Accepted())
    receivers[1].received[0].settle(Declared(b"txn"))
    joined.pump()
    assert sent.history == [(Rejected(), True)]


#: The outcomes of routing.md 2.4, the highest rank first.
RANKS = (Rejected(), Accepted(), Modified(), Released())


@pytest.mark.parametrize("outcomes", [pair for pair in product(RANKS, RANKS) if pair[0] != pair[1]])
@pytest.mark.parametrize("three_steps", [False, True])
def test_the_highest_outcome_of_a_multicast_wins_on_every_router(outcomes: tuple[Any, Any], three_steps: bool) -> None:
    joined = Joined(MESH, RULES)
    receivers = [receiver(joined, name, "multicast.x") for name in "ABCD"]
    [sent] = send(joined, sender(joined, "A", "multicast.x"))
    for each, state in zip(receivers, cycle(outcomes), strict=False):
        assert len(each.received) == 1
        each.received[0].settle(state, settled=not three_steps)
    joined.pump()
    highest = min(outcomes, key=RANKS.index)
    assert sent.history == [(highest, not three_steps)]
    if three_steps:
        sent.settle(highest)
        joined.pump()
        assert all(each.received[0].history[-1][1] for each in receivers)


@pytest.mark.parametrize("leaves", ["in order", "without a word"])
def test_a_lost_receiver_returns_its_messages_and_later_messages_reach_another_receiver(leaves: str) -> None:
    joined = Joined(LINE, RULES)
    first, link = receiver(joined, "C", "work", credit=6), sender(joined, "A", "work")
    sent = send(joined, link, 10)
    for message in first.received[:4]:
        message.settle()
    joined.pump()
    if leaves == "in order":
        first.detach()
    else:
        first.client.drop()
    assert [each.outcome for each in sent] == [Accepted()] * 4 + [FAILED] * 2 + [Released()] * 4
    second = receiver(joined, "B", "work")
    again = send(joined, link, 6)
    for message in second.received:
        message.settle()
    joined.pump()
    assert [each.outcome for each in again] == [Accepted()] * 6
    assert joined.under_way() == 0


def test_messages_of_all_priorities_arrive() -> None:
    joined = Joined(LINE, RULES)
    there, link = receiver(joined, "C", "work"), sender(joined, "A", "work")
    sent = [link.send(compose(b"%d" % number, priority=number % 10)) for number in range(200)]
    joined.pump()
    assert sorted(map(int, there.bodies)) == list(range(200))
    for message in there.received:
        message.settle()
    joined.pump()
    assert all(each.outcome == Accepted() for each in sent)
    trunk = joined.sides["A", "B"].trunk
    assert [way.counters.deliveries for way in map(trunk.link_for, range(10)) if way] == [20] * 10


def test_the_router_that_configured_an_address_sets_its_treatment() -> None:
    """When no other router has a rule for it."""
    joined = Joined(LINE, more_rules={"B": RULES, "C": RULES})
    receivers = [receiver(joined, name, "multicast.x") for name in "BC"]
    send(joined, sender(joined, "A", "multicast.x"), 3)
    assert [len(each.received) for each in receivers] == [3, 3]


# --- waypoints


class Waypoint:
    """A container that takes messages of an address from one phase and sends them to the next."""

    def __init__(self, joined: Joined, router: str, phase: int) -> None:
        core = joined[router].core
        name = f"waypoint-{core.next_identity()}"
        for direction, of in (("out", phase), ("in", phase + 1)):
            core.auto_links.add_rule(AutoLinkRule("stages.x", direction, phase=of, container_id=name))
        client = joined[router].connect(PeerTerms(), container_id=name, role="route-container")
        ends: dict[type, Any] = {type(end): end for end in client.attached}
        self._joined = joined
        self.takes: MemoryReceiver = ends[MemoryReceiver]
        self._gives: MemorySender = ends[MemorySender]
        self.takes.grant(100)
        joined.pump()

    def work(self) -> list[bytes]:
        """Take the waiting messages, and send them on; return their bodies."""
        bodies = self.takes.bodies
        for message in self.takes.received:
            message.settle()
            self._gives.send(compose(message.body))
        self.takes.received.clear()
        self._joined.pump()
        return list(bodies)


@pytest.mark.parametrize("places", ["AA", "AC", "CA", "BB", "CB"])
def test_waypoints_one_behind_the_other_are_passed_in_their_order(places: str) -> None:
    joined = Joined(LINE, RULES)
    first, second = (Waypoint(joined, place, phase) for phase, place in enumerate(places))
    there, link = receiver(joined, "B", "stages.x"), sender(joined, "A", "stages.x")
    sent = send(joined, link, 5)
    expected = [b"%d" % number for number in range(5)]
    assert (first.work(), second.work(), there.bodies) == (expected, expected, expected)
    assert [each.outcome for each in sent] == [Accepted()] * 5


@pytest.mark.parametrize("places", ["AA", "BB", "AB", "AC", "CC"])
def test_waypoints_beside_each_other_share_the_work(places: str) -> None:
    joined = Joined(LINE, RULES)
    one, other = Waypoint(joined, places[0], 0), Waypoint(joined, places[1], 0)
    last = Waypoint(joined, "B", 1)
    there, link = receiver(joined, "C", "stages.x"), sender(joined, "A", "stages.x")
    send(joined, link, 20)
    shares = one.work(), other.work()
    assert all(shares)
    assert sorted(shares[0] + shares[1]) == sorted(last.work()) == sorted(there.bodies)
    assert len(there.bodies) == 20
