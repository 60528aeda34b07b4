"""Messages across routers: their receivers, the counters, and the outcomes (routing.md 2, 5, 8)."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest

from tests.core.endings import leave
from tests.core.joined import Joined
from trouter.connections.settings import ROUTER_WINDOW_BYTES
from trouter.core.message import OutgoingDelivery
from trouter.core.streams import KEPT_IDLE, StreamPool
from trouter.core.table import AddressRule
from trouter.core.terms import PeerTerms
from trouter.core.trunking import open_streams
from trouter.engine.faults import Misuse
from trouter.engine.limits import EngineLimits
from trouter.engine.session import Session
from trouter.testing import MemoryClient, MemoryReceiver, MemorySender, SentMessage, compose
from trouter.testing.memory import LIMITS
from trouter.wire.performatives import Accepted, Modified, Rejected, Released

RULES = (
    AddressRule("closest", is_prefix=True, distribution="closest"),
    AddressRule("multicast", is_prefix=True, distribution="multicast"),
    AddressRule("closed", is_prefix=True, distribution="unavailable"),
    AddressRule("fall", is_prefix=True, enable_fallback=True),
    AddressRule("stages", is_prefix=True, ingress_phase=0, egress_phase=9),
    AddressRule("later", is_prefix=True, ingress_phase=5, egress_phase=5),
    AddressRule("urgent", is_prefix=True, priority=9),
)
LINE = {("A", "B"): 1, ("B", "C"): 1}
RING = {("A", "B"): 1, ("B", "C"): 1, ("C", "D"): 1, ("A", "D"): 1}
MESH = dict.fromkeys(combinations("ABCD", 2), 1)


def receiver(joined: Joined, name: str, address: str, credit: int = 1000, **fields: object) -> MemoryReceiver:
    return joined[name].connect().receiver(address, credit=credit, **fields)  # type: ignore[arg-type]


def sender(joined: Joined, name: str, address: str | None = None, **fields: object) -> MemorySender:
    return joined[name].connect().sender(address, **fields)  # type: ignore[arg-type]


def send(joined: Joined, link: MemorySender, count: int = 1, **fields: object) -> list[SentMessage]:
    """Send messages one after the other, each at rest before the next."""
    sent = []
    for number in range(count):
        sent.append(link.send(compose(b"%d" % number, **fields)))  # type: ignore[arg-type]
        joined.pump()
    return sent


def settle(joined: Joined, *receivers: MemoryReceiver) -> None:
    for each in receivers:
        for message in each.received:
            if not message.delivery.settled:
                message.settle()
    joined.pump()


def shares(*receivers: MemoryReceiver) -> list[int]:
    return [len(each.received) for each in receivers]


# --- balanced: routing.md, 2.3


def test_balanced_sends_eleven_to_the_local_receiver_before_the_first_to_a_router_at_a_cost_of_ten() -> None:
    joined = Joined({("A", "B"): 10}, RULES)
    here, there = receiver(joined, "A", "work"), receiver(joined, "B", "work")
    link = sender(joined, "A", "work")
    send(joined, link, 11)
    assert shares(here, there) == [11, 0]
    send(joined, link, 9)
    assert shares(here, there) == [15, 5]  # from then on they alternate


def test_balanced_over_linear_costs_of_ten_and_twenty() -> None:
    joined = Joined({("A", "B"): 10, ("B", "C"): 20}, RULES)
    receivers = [receiver(joined, name, "work") for name in "ABC"]
    send(joined, sender(joined, "A", "work"), 100)
    assert shares(*receivers) == [55, 33, 12]
    assert joined.under_way() == 45 + 12
    settle(joined, *receivers)
    assert joined.under_way() == 0


def test_balanced_without_receivers_in_the_middle_keeps_the_way_s_cost_ahead() -> None:
    joined = Joined({("A", "B"): 10, ("B", "C"): 20}, RULES)
    here, there = receiver(joined, "A", "work"), receiver(joined, "C", "work")
    send(joined, sender(joined, "A", "work"), 100)
    assert 30 <= len(here.received) - len(there.received) <= 31


def test_balanced_over_a_triangle_of_ten_and_fifty() -> None:
    joined = Joined({("A", "B"): 10, ("A", "C"): 50, ("B", "C"): 50}, RULES)
    receivers = [receiver(joined, name, "work") for name in "ABC"]
    send(joined, sender(joined, "A", "work"), 100)
    assert shares(*receivers) == [54, 43, 3]


def test_balanced_prefers_a_receiver_with_room_to_a_full_one() -> None:
    joined = Joined({("A", "B"): 1}, RULES, capacity=10)
    there = receiver(joined, "B", "work")
    here = receiver(joined, "A", "work")  # with room for 250
    send(joined, sender(joined, "A", "work"), 60)
    assert shares(here, there) == [50, 10]


def test_balanced_looks_at_each_connection_once_however_many_routers_lie_behind() -> None:
    links = {("A", "B"): 1} | {("B", f"C{number:03}"): 1 for number in range(30)}
    joined = Joined(links, RULES)
    receivers = [receiver(joined, f"C{number:03}", "work") for number in range(30)]
    send(joined, sender(joined, "A", "work"), 30)
    assert sum(shares(*receivers)) == 30
    assert max(shares(*receivers)) == 1
    assert joined.sides["A", "B"].trunk.outstanding.popitem()[1].count == 30


@pytest.mark.parametrize(
    "how", ["settle", "release", "detach", "drop", "abort", "cut", "sender settles", "sender drops", "presettled"]
)
def test_a_message_under_way_is_counted_until_it_ends(how: str) -> None:
    joined = Joined(LINE, RULES)
    there = receiver(joined, "C", "work")
    link = sender(joined, "A", "work")
    sent = [
        link.begin(compose(b"x" * 200_000)[:150_000])
        if how == "abort"
        else link.send(compose(), settled=how == "presettled")
    ]
    joined.pump()
    assert joined.under_way() == (0 if how == "presettled" else 2)
    if how == "settle":
        settle(joined, there)
    elif how == "release":
        there.received[0].settle(Released())
        joined.pump()
    elif how == "detach":
        there.detach()
    elif how == "drop":
        there.client.drop()
    elif how == "abort":
        sent[0].abort()
        joined.pump()
        assert there.received[0].aborted
    elif how == "cut":
        joined.cut("B", "C")
        assert sent[0].outcome == Modified(delivery_failed=True)
    elif how == "sender settles":
        sent[0].settle()
        joined.pump()
    elif how == "sender drops":
        link.client.drop()
        settle(joined, there)
    assert joined.under_way() == 0
    assert joined.held_bytes() == 0


def test_deliveries_sent_to_a_silent_neighbour_fail_and_waiting_ones_are_released() -> None:
    joined = Joined({("A", "B"): 1}, RULES, capacity=3)
    there = receiver(joined, "B", "work")
    joined.sides["B", "A"].stalled = True
    link = sender(joined, "A", "work")
    sent = send(joined, link, 5)
    begun = sender(joined, "A", "work").begin(LARGE[:200_000])
    joined.pump()
    joined["A"].core.fail_sent(joined.sides["A", "B"].trunk)
    joined.pump()
    assert [each.history for each in sent] == [[(Modified(delivery_failed=True), True)]] * 3 + [
        [(Released(), True)]
    ] * 2
    assert begun.outcome == Released()
    assert joined.under_way() == 0
    begun.finish(LARGE[200_000:])
    joined.sides["B", "A"].stalled = False  # B's frames arrive again, with its outdated addresses
    settle(joined, there)
    assert joined.held_bytes() == 0
    [after] = send(joined, link)
    there.received[-1].settle()
    joined.pump()
    assert after.outcome == Accepted()


def test_deliveries_that_wait_for_a_broken_trunk_are_released_and_no_longer_counted() -> None:
    joined = Joined({("A", "B"): 1}, RULES, capacity=3)
    there = receiver(joined, "B", "work")
    joined.sides["B", "A"].stalled = True  # no more credit comes
    sent = send(joined, sender(joined, "A", "work"), 5)
    assert shares(there) == [3]
    trunk = joined.sides["A", "B"].trunk
    joined.cut("A", "B")
    assert [each.outcome for each in sent] == [Modified(delivery_failed=True)] * 3 + [Released()] * 2
    assert [count.count for count in trunk.outstanding.values()] in ([], [0])
    assert joined.held_bytes() == 0


# --- closest: 2.2


def test_closest_goes_to_the_nearest_receiver_and_then_to_the_next_one() -> None:
    joined = Joined({("A", "B"): 10, ("B", "C"): 20}, RULES)
    receivers = {name: receiver(joined, name, "closest.x") for name in "ABC"}
    link = sender(joined, "A", "closest.x")
    for name in "ABC":
        send(joined, link, 3)
        assert {each: len(receivers[each].received) for each in "ABC"} == {
            each: 3 if each <= name else 0 for each in "ABC"
        }
        receivers[name].detach()


def test_closest_takes_turns_among_routers_at_the_same_cost() -> None:
    joined = Joined(MESH, RULES)
    receivers = [receiver(joined, name, "closest.x") for name in "BCD"]
    send(joined, sender(joined, "A", "closest.x"), 9)
    assert shares(*receivers) == [3, 3, 3]


# --- multicast: 2.4


@pytest.mark.parametrize("shape", [LINE, RING, MESH])
def test_a_multicast_reaches_every_receiver_once(shape: dict[tuple[str, str], int]) -> None:
    joined = Joined(shape, RULES)
    receivers = {name: [receiver(joined, name, "multicast.x") for _ in range(2)] for name in joined.routers}
    for name in joined.routers:
        [sent] = send(joined, sender(joined, name, "multicast.x"))
        everybody = [each for both in receivers.values() for each in both]
        assert shares(*everybody) == [1] * len(everybody)
        for each in everybody[1:]:
            settle(joined, each)
        assert not sent.history
        everybody[0].received[0].settle(Rejected())
        joined.pump()
        assert sent.outcome == Rejected()
        assert sent.settled
        for each in everybody:
            each.received.clear()


def test_a_multicast_goes_over_each_connection_once_whichever_routers_lie_behind() -> None:
    joined = Joined({("A", "B"): 1, ("B", "C"): 1, ("B", "D"): 1}, RULES)
    receivers = [receiver(joined, name, "multicast.x") for name in "CD"]
    send(joined, sender(joined, "A", "multicast.x"))
    assert shares(*receivers) == [1, 1]
    assert joined["A"].core.totals.transit == 1


# --- named routers, answers, loops


def test_an_address_of_a_router_is_found_from_anywhere() -> None:
    joined = Joined(LINE, RULES)
    there = joined["C"].connect().receiver(dynamic=True, credit=10)
    assert there.address.startswith("amqp:/_topo/0/C/temp.")
    [sent] = send(joined, sender(joined, "A"), to=there.address)
    settle(joined, there)
    assert sent.outcome == Accepted()
    [sent] = send(joined, sender(joined, "A", there.address))
    settle(joined, there)
    assert sent.outcome == Accepted()


def test_a_router_out_of_reach_takes_nothing_and_is_found_again() -> None:
    joined = Joined(LINE, RULES)
    there = joined["C"].connect().receiver(dynamic=True, credit=10)
    link = sender(joined, "A")
    joined.cut("B", "C")
    [sent] = send(joined, link, to=there.address)
    assert sent.outcome == Released()


def test_a_router_that_is_forgotten_leaves_no_records_behind() -> None:
    joined = Joined(LINE, RULES)
    receiver(joined, "C", "work")
    receiver(joined, "C", "multicast.x")
    before = set(joined["A"].core.table.entries)
    assert {"RC", "M0work", "M0multicast.x"} <= before
    joined["A"].core.network.forget_router("C")
    assert set(joined["A"].core.table.entries) == before - {"RC", "M0work", "M0multicast.x"}


# --- unavailable, phases, fallback, priority


def test_a_message_for_an_unavailable_address_from_a_trunk_is_released() -> None:
    joined = Joined({("A", "B"): 1}, more_rules={"B": RULES})
    receiver(joined, "B", "work")
    link = sender(joined, "A")
    [sent] = send(joined, link, to="closed.x")
    assert sent.outcome == Released()  # A knows of no such address
    [sent] = send(joined, sender(joined, "B"), to="closed.x")
    assert isinstance(sent.outcome, Rejected)
    # a message that B gets although it does not have the address
    joined["A"].core.network.change_addresses("B", {"M0closed.x": 3}, ())
    [sent] = send(joined, link, to="closed.x")
    assert sent.outcome == Released()


def test_a_chain_of_phases_crosses_routers_at_each_stage() -> None:
    joined = Joined(LINE, RULES)
    names = "ABC"
    last = receiver(joined, "B", "stages.x")
    taken = [
        receiver(joined, names[stage % 3], "stages.x", capabilities=(f"qd.waypoint.{stage}",)) for stage in range(1, 10)
    ]
    given = [
        sender(joined, names[(stage + 1) % 3], "stages.x", capabilities=(f"qd.waypoint.{stage}",))
        for stage in range(1, 10)
    ]
    for first in (sender(joined, "C", "stages.x"), sender(joined, "A")):
        [sent] = send(joined, first, to="stages.x")
        for stage in range(9):
            assert shares(*taken) == [int(place == stage) for place in range(9)]
            assert shares(last) == [0]
            settle(joined, taken[stage])
            taken[stage].received.clear()
            send(joined, given[stage])
        assert sent.outcome == Accepted()
        assert shares(last) == [1]
        settle(joined, last)
        last.received.clear()


@pytest.mark.parametrize("address", [None, "later.x"])
def test_a_message_carries_its_phase_to_a_router_without_the_address_configuration(address: str | None) -> None:
    joined = Joined({("A", "B"): 1, ("B", "C"): 1}, more_rules={"A": RULES, "C": RULES})
    there = receiver(joined, "C", "later.x")
    [sent] = send(joined, sender(joined, "A", address), to="later.x")
    settle(joined, there)
    assert sent.outcome == Accepted()


def test_a_message_without_a_phase_is_of_the_first_to_the_next_router() -> None:
    joined = Joined({("A", "B"): 1}, more_rules={"B": RULES})
    there = receiver(joined, "B", "later.x", capabilities=("qd.waypoint.1",))  # phase 0, whatever B has configured
    for address in (None, "later.x"):
        [sent] = send(joined, sender(joined, "A", address), to="later.x")
        settle(joined, there)
        assert sent.outcome == Accepted()


@pytest.mark.parametrize("anonymous", [False, True])
@pytest.mark.parametrize(
    ("at_sender", "primary", "fallback"), [("A", "B", "C"), ("A", "C", "A"), ("A", "A", "C"), ("B", "A", "C")]
)
def test_messages_turn_to_the_fallback_and_back(anonymous: bool, at_sender: str, primary: str, fallback: str) -> None:
    joined = Joined(LINE, RULES)
    link = sender(joined, at_sender, None if anonymous else "fall.x")
    second = receiver(joined, fallback, "fall.x", capabilities=("qd.fallback",))
    for _ in range(2):
        [sent] = send(joined, link, to="fall.x")
        settle(joined, second)
        assert sent.outcome == Accepted()
        first = receiver(joined, primary, "fall.x")
        [sent] = send(joined, link, to="fall.x")
        assert (shares(first), shares(second)) == ([1], [1])
        settle(joined, first)
        assert sent.outcome == Accepted()
        first.detach()
        second.received.clear()
    second.detach()
    [sent] = send(joined, link, to="fall.x")
    assert sent.outcome == Released()


def test_a_fallback_that_cannot_be_reached_does_not_keep_the_message() -> None:
    joined = Joined({("A", "B"): 1}, RULES)
    link = sender(joined, "A")
    receiver(joined, "B", "fall.x", capabilities=("qd.fallback",))
    # B has only A's fallback: a message from A is not sent back there
    for record in joined["B"].core.table.entries.values():
        if record.key == "MFfall.x":
            for consumer in list(record.forwarder.consumers):
                record.forwarder.remove(consumer)
            record.add_remote(joined["B"].core.network.routers["A"])
    [sent] = send(joined, link, to="fall.x")
    assert sent.outcome == Released()


@pytest.mark.parametrize(
    ("address", "header", "link"),
    [("work", None, 4), ("work", 0, 0), ("work", 7, 7), ("work", 250, 9), ("urgent.x", 2, 9)],
)
def test_a_message_takes_the_link_of_its_priority(address: str, header: int | None, link: int) -> None:
    joined = Joined(LINE, more_rules={"A": RULES})
    there = receiver(joined, "C", address)
    send(joined, sender(joined, "A", address), priority=header)
    assert shares(there) == [1]
    trunk = joined.sides["A", "B"].trunk
    assert [way.counters.deliveries for way in map(trunk.link_for, range(10)) if way] == [
        int(n == link) for n in range(10)
    ]
    # another router's configured priority is not forwarded: the header is
    onward = joined.sides["B", "C"].trunk
    expected = 4 if header is None else min(header, 9)
    assert onward.link_for(expected).counters.deliveries == 1  # type: ignore[union-attr]


def test_a_priority_without_a_link_takes_the_next_lower_one() -> None:
    joined = Joined({("A", "B"): 1}, RULES)
    there = receiver(joined, "B", "work")
    trunk = joined.sides["A", "B"].trunk
    joined["A"].core.detach_link(trunk.link_for(7).link, True)  # type: ignore[union-attr]
    joined.pump()
    send(joined, sender(joined, "A", "work"), priority=7)
    assert shares(there) == [1]
    assert trunk.link_for(6).counters.deliveries == 1  # type: ignore[union-attr]


# --- counters and annotations: 5.6 and 4.3


def test_routers_count_outcomes_ingress_egress_and_transit() -> None:
    joined = Joined(LINE, RULES)
    there = receiver(joined, "C", "work")
    link = sender(joined, "A", "work")
    sent = [*send(joined, link, 4)]
    for message, state in zip(
        there.received, (Accepted(), Rejected(), Released(), Modified(delivery_failed=True)), strict=True
    ):
        message.settle(state)
    joined.pump()
    link.send(compose(), settled=True)
    joined.pump()
    assert [each.outcome for each in sent] == [Accepted(), Rejected(), Released(), Modified(delivery_failed=True)]
    totals = {name: router.core.totals for name, router in joined.routers.items()}
    assert [(each.ingress, each.transit, each.egress) for each in totals.values()] == [(5, 5, 0), (0, 5, 0), (0, 0, 5)]
    for name, router in joined.routers.items():
        seen = router.core.shared.totals
        assert (seen.accepted, seen.rejected, seen.released, seen.modified) == (1, 1, 1, 1)
        assert seen.presettled == (1 if name == "A" else 0)  # hellos and forwarded messages are not counted


def test_trace_and_ingress_show_the_path_and_annotations_of_the_sender_stay() -> None:
    joined = Joined(LINE, RULES)
    terms_that_show = joined.sides["A", "B"].terms.__class__(strip_in=True, strip_out=False)
    there = joined["C"].connect(terms_that_show).receiver("work", credit=10)
    send(joined, sender(joined, "A", "work"), annotations={"mine": 1, "x-opt-qd.trace": ["0/Z"], "x-opt-other": 2})
    assert there.received[0].annotations == {
        "mine": 1,
        "x-opt-other": 2,
        "x-opt-qd.to": "work",
        "x-opt-qd.ingress": "0/A",
        "x-opt-qd.trace": ["0/A", "0/B", "0/C"],
    }


def test_a_message_that_has_passed_here_before_is_released() -> None:
    joined = Joined(LINE, RULES)
    receiver(joined, "C", "work")
    # B takes A for the next hop to C
    joined["B"].core.network.routers["C"].trunk = joined.sides["B", "A"].trunk
    [sent] = send(joined, sender(joined, "A", "work"))
    assert sent.outcome == Released()


# --- streaming links (inter-router.md 1.7)

LARGE = compose(b"x" * 300_000)


def streams(joined: Joined, one: str, other: str) -> tuple[int, int]:
    """Return the links for streams from one router to another: their count, and that of idle ones."""
    found = joined.sides[one, other].trunk.stream_pool
    assert isinstance(found, StreamPool)
    return found.count, found.idle


def test_a_message_that_is_still_coming_goes_over_a_link_of_its_own_which_is_kept() -> None:
    joined = Joined(LINE, RULES)
    there = receiver(joined, "C", "work")
    link = sender(joined, "A", "work")
    for _ in range(3):
        sent = link.begin(LARGE[:200_000])
        joined.pump()
        assert len(there.received[-1].payload) >= 199_000  # all bytes so far have arrived
        assert (streams(joined, "A", "B"), streams(joined, "B", "C")) == ((1, 0), (1, 0))
        sent.finish(LARGE[200_000:])
        joined.pump()
        settle(joined, there)
        assert sent.outcome == Accepted()
        assert there.received[-1].body == b"x" * 300_000
        assert (streams(joined, "A", "B"), streams(joined, "B", "C")) == ((1, 1), (1, 1))
    [outgoing] = [each for each in joined["A"].core.outgoing_endpoints() if each.streaming is not None]
    assert (outgoing.counters.deliveries, outgoing.counters.accepted) == (3, 3)
    assert joined.held_bytes() == 0


def test_without_the_neighbour_s_offer_the_link_of_the_priority_is_taken() -> None:
    joined = Joined(LINE, RULES, streams=False)
    there = receiver(joined, "C", "work")
    sent = sender(joined, "A", "work").send(LARGE, frames=10)
    joined.pump()
    settle(joined, there)
    assert sent.outcome == Accepted()
    assert joined.sides["B", "A"].trunk.data_in == 10


def test_a_message_that_is_here_in_full_is_no_stream() -> None:
    joined = Joined(LINE, RULES)
    there = receiver(joined, "C", "work")
    link = sender(joined, "A", "work")
    for size in (10, 100_000):
        link.send(compose(b"x" * size), frames=5)
        joined.pump()
    assert [len(body) for body in there.bodies] == [10, 100_000]
    assert streams(joined, "A", "B") == (0, 0)


def test_streams_block_neither_each_other_nor_small_messages() -> None:
    joined = Joined(LINE, RULES, limits=EngineLimits(session_window_bytes=256 * 1024, idle_timeout_s=0.0))
    stalled = [receiver(joined, "C", f"work.{number}", credit=0) for number in range(3)]
    stuck = [sender(joined, "A", f"work.{number}").send(compose(b"x" * 3_000_000)) for number in range(3)]
    joined.pump()
    there, other = receiver(joined, "C", "free"), receiver(joined, "C", "small")
    for _ in range(3):
        sent = [sender(joined, "A", "free").send(LARGE), sender(joined, "A", "small").send(compose(b"here"))]
        joined.pump()
        settle(joined, there, other)
        assert [each.outcome for each in sent] == [Accepted(), Accepted()]
    assert joined.held_bytes() < 3 * 3 * 600_000  # by stream: the window of each router on its path
    for each in stalled:
        each.grant(1)
    joined.pump()
    settle(joined, *stalled)
    assert [each.outcome for each in stuck] == [Accepted()] * 3
    assert joined.held_bytes() == 0


def test_a_receiver_without_credit_does_not_stop_other_receivers_behind_the_same_router() -> None:
    """The messages under way of one sender fit twice into the window that routers open for each other."""
    joined = Joined(LINE, RULES, limits=replace(LIMITS, session_window_bytes=ROUTER_WINDOW_BYTES))
    stalled, there = receiver(joined, "C", "stalled", credit=0), receiver(joined, "C", "free")
    large = compose(b"x" * 125_000)  # a longer one would get a link of its own
    link = sender(joined, "A", "stalled")
    stuck = [link.send(large) for _ in range(300)]
    joined.pump()
    assert link.credit == 0
    assert 2 * joined.held_bytes() < 3 * 2 * ROUTER_WINDOW_BYTES
    [sent] = send(joined, sender(joined, "A", "free"))
    settle(joined, there)
    assert sent.outcome == Accepted()
    stalled.grant(300)
    joined.pump()
    settle(joined, stalled)
    joined.pump()
    settle(joined, stalled)
    assert [each.outcome for each in stuck] == [Accepted()] * 300


def test_an_annotated_stream_is_sent_on_at_once_by_every_router() -> None:
    joined = Joined(LINE, RULES)
    there = receiver(joined, "C", "work")
    shows = PeerTerms(strip_in=False, strip_out=False)
    link = joined["A"].connect(shows).sender("work")
    link.send(compose(b"x" * 200_000, annotations={"x-opt-qd.stream": 1}))
    joined.pump()
    assert there.bodies == [b"x" * 200_000]
    # from a neighbour, however short
    side = joined.sides["A", "B"]
    outgoing = side.trunk.link_for(4)
    assert outgoing is not None
    short = compose(
        b"short", to="work", annotations={"x-opt-qd.stream": 1, "x-opt-qd.ingress": "0/A", "x-opt-qd.trace": ["0/A"]}
    )
    delivery = OutgoingDelivery(outgoing.link)
    outgoing.link.send(delivery, short, 0, len(short) - 2, True)
    joined.pump()
    assert len(there.received[1].payload) > 0
    outgoing.link.send(delivery, short, len(short) - 2, len(short), False)
    joined.pump()
    assert there.received[1].body == b"short"
    # without the mark it is waited for
    unmarked = OutgoingDelivery(side.trunk.link_for(5).link)  # type: ignore[union-attr]
    plain = compose(b"plain", to="work")
    side.trunk.link_for(5).link.send(unmarked, plain, 0, len(plain) - 2, True)  # type: ignore[union-attr]
    joined.pump()
    assert len(there.received) == 2


@pytest.mark.parametrize("how", ["abort", "detach", "drop"])
def test_an_aborted_stream_is_aborted_on_every_router_and_the_next_messages_pass(how: str) -> None:
    joined = Joined(LINE, RULES)
    there = receiver(joined, "C", "work")
    link = sender(joined, "A", "work")
    sent = link.begin(LARGE[:200_000])
    joined.pump()
    leave(how, link, sent)
    assert there.received[0].aborted
    [after] = send(joined, sender(joined, "A", "work"))
    settle(joined, there)
    assert after.outcome == Accepted()
    assert (streams(joined, "A", "B"), streams(joined, "B", "C")) == ((1, 1), (1, 1))
    assert joined.held_bytes() == 0


@pytest.mark.parametrize("how", ["detach", "drop", "cut"])
def test_a_stream_whose_receiver_is_lost_is_released_and_its_rest_is_discarded(how: str) -> None:
    joined = Joined(LINE, RULES)
    there = receiver(joined, "C", "work")
    sent = sender(joined, "A", "work").begin(LARGE[:200_000])
    joined.pump()
    if how == "cut":
        joined.cut("B", "C")
        assert there.received[0].aborted
    else:
        leave(how, there)
    assert sent.outcome == Released()
    sent.finish(LARGE[200_000:])
    joined.pump()
    assert sent.history[-1] == (Released(), True)
    assert streams(joined, "A", "B") == (1, 1)
    assert joined.held_bytes() == 0


def test_a_multicast_stream_goes_on_when_one_of_its_receivers_is_lost() -> None:
    joined = Joined(RING, RULES)
    receivers = {name: receiver(joined, name, "multicast.x") for name in "BCD"}
    sent = sender(joined, "A", "multicast.x").begin(LARGE[:200_000])
    joined.pump()
    receivers["C"].client.drop()
    joined.pump()
    sent.finish(LARGE[200_000:])
    joined.pump()
    for name in "BD":
        assert receivers[name].received[0].body == b"x" * 300_000
        settle(joined, receivers[name])
    assert sent.outcome == Accepted()
    assert joined.held_bytes() == 0


def test_idle_links_for_streams_beyond_those_kept_are_closed_a_few_at_a_time() -> None:
    joined = Joined({("A", "B"): 1}, RULES)
    there = receiver(joined, "B", "work")
    client = joined["A"].connect()
    sent = [
        client.sender("work", session=client.add_session(), pump=False).begin(LARGE[:140_000])
        for _ in range(KEPT_IDLE + 15)
    ]
    joined.pump()
    assert streams(joined, "A", "B") == (KEPT_IDLE + 15, 0)
    for each in sent:
        each.finish(LARGE[140_000:])
    joined.pump()
    settle(joined, there)
    side = joined.sides["A", "B"]
    for left in (5, 0, 0):
        joined["A"].core.network.close_idle_streams()
        joined.pump()
        assert streams(joined, "A", "B") == (KEPT_IDLE + left, KEPT_IDLE + left)
    assert len(side.ended) == 15
    assert joined.sides["B", "A"].trunk.data_in == 10 + KEPT_IDLE
    assert len(joined.sides["B", "A"].engine.sessions()) == len(side.engine.sessions()) == 11 + KEPT_IDLE


def test_when_the_neighbour_takes_no_more_streams_they_go_with_the_others() -> None:
    joined = Joined({("A", "B"): 1}, RULES)
    there = receiver(joined, "B", "work")

    def refuse() -> Session:
        raise Misuse("no more")

    open_streams(joined["A"].core, joined.sides["A", "B"].trunk, refuse, joined.sides["A", "B"].end_session)
    sent = sender(joined, "A", "work").begin(LARGE[:200_000])
    joined.pump()
    sent.finish(LARGE[200_000:])
    joined.pump()
    settle(joined, there)
    assert sent.outcome == Accepted()


# --- tenants: answers find the requester, and no other client (security.md R-5c, R-5e)


def of_tenant(joined: Joined, router: str, tenant: str) -> MemoryClient:
    """Connect a client of the tenant."""
    core = joined[router].core
    number = 1000 + core.next_identity()
    return joined[router].connect(
        PeerTerms(tenant=core.table.tenants.enter_connection(tenant, number), connection_number=number)
    )


@pytest.mark.parametrize("asker", ["A", "B", "C"])
@pytest.mark.parametrize("anonymous", [False, True])
def test_an_answer_finds_its_tenant_on_any_router_and_no_other_tenant_can_give_one(asker: str, anonymous: bool) -> None:
    joined = Joined(LINE, RULES)
    waiting = of_tenant(joined, asker, "one").receiver(dynamic=True, credit=10)
    joined.pump()
    address = waiting.address
    assert address is not None
    assert address.startswith(f"amqp:/_topo/0/{asker}/temp.")

    def answer(router: str, tenant: str, to: str) -> object:
        link = of_tenant(joined, router, tenant).sender(None if anonymous else to)
        joined.pump()
        if link.detached:
            return link.error
        sent = link.send(compose(b"answer", to=to))
        joined.pump()
        settle(joined, waiting)
        return sent.outcome

    for count, router in enumerate("ABC", 1):
        assert answer(router, "one", address) == Accepted()
        assert len(waiting.received) == count
    for router in "ABC":
        assert answer(router, "two", address) != Accepted()
        # nor by the annotation of the path there
        assert answer(router, "two", address.replace("/temp.", "/one/temp.")) != Accepted()
    assert len(waiting.received) == 3
