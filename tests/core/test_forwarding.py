"""The receivers of a message, and its outcome: routing.md section 2."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tests.core.endings import leave
from trouter.core.inprocess import InsideMessage
from trouter.core.message import OutgoingDelivery
from trouter.core.table import AddressRule
from trouter.core.terms import PeerTerms
from trouter.engine.limits import EngineLimits
from trouter.testing import MemoryClient, MemoryReceiver, MemoryRouter, MemorySender, SentMessage, compose
from trouter.wire.performatives import Accepted, Error, Modified, Rejected, Released, TransactionalState, encode_state
from trouter.wire.performatives import Received as ReceivedState
from trouter.wire.types import Symbol

FAILED = Modified(delivery_failed=True)
RULES = (
    AddressRule("closest", is_prefix=True, distribution="closest"),
    AddressRule("multicast", is_prefix=True, distribution="multicast"),
    AddressRule("closed", is_prefix=True, distribution="unavailable"),
    AddressRule("fall", is_prefix=True, enable_fallback=True),
    AddressRule("urgent", is_prefix=True, priority=9),
)


class Room:
    """A router and one client that is sender and receiver; some tests add clients."""

    def __init__(self, *, capacity: int = 250, strips: bool = True, terms: PeerTerms | None = None) -> None:
        self.router = MemoryRouter(RULES)
        self.terms = terms or PeerTerms(capacity, strips, strips)
        self.client = self.router.connect(self.terms)

    def receivers(self, address: str, count: int, credit: int = 100) -> list[MemoryReceiver]:
        return [self.client.receiver(address, credit=credit) for _ in range(count)]

    def send(self, sender: MemorySender, count: int, *, settled: bool = False) -> list[SentMessage]:
        sent = [sender.send(compose(b"%d" % number), settled=settled) for number in range(count)]
        self.router.pump()
        return sent

    def other(self) -> MemoryClient:
        return self.router.connect(self.terms)


class Inside:
    """A consumer inside the router, which accepts at once unless it is set to keep."""

    def __init__(self, keep: bool = False) -> None:
        self.keep = keep
        self.got: list[InsideMessage] = []

    def receive(self, received: InsideMessage) -> None:
        self.got.append(received)
        if not self.keep:
            received.settle()


def shares(receivers: Sequence[MemoryReceiver]) -> list[int]:
    return [len(receiver.received) for receiver in receivers]


def settle_all(room: Room, *receivers: MemoryReceiver) -> None:
    for receiver in receivers:
        for message in receiver.received:
            message.settle()
    room.router.pump()


# --- 2.1


def test_the_priority_of_an_address_changes_no_byte_of_its_messages() -> None:
    room = Room()
    (receiver,) = room.receivers("urgent.x", 1)
    assert room.router.core.table.entries["M0urgent.x"].priority == 9
    message = compose(b"x", priority=2)
    room.client.sender("urgent.x").send(message)
    room.router.pump()
    assert receiver.received[0].payload == message


def test_tags_are_a_counter_of_eight_bytes_of_each_link() -> None:
    room = Room()
    receivers = room.receivers("closest", 2)
    room.send(room.client.sender("closest"), 4)
    assert shares(receivers) == [2, 2]
    for receiver in receivers:
        tags = [bytes(message.delivery.tag or b"") for message in receiver.received]
        assert tags == [number.to_bytes(8, "little") for number in range(2)]


def test_a_copy_inherits_settled_and_the_state_on_the_transfer() -> None:
    room = Room()
    (receiver,) = room.receivers("x", 1)
    sender = room.client.sender("x")
    state = TransactionalState(b"txn")
    sender.send(compose(b"1"), settled=True)
    sender.send(compose(b"2"), state=state)
    sender.send(compose(b"3"))
    room.router.pump()
    assert [message.settled for message in receiver.received] == [True, False, False]
    assert [message.transfer_state for message in receiver.received] == [None, state, None]


def test_credit_does_not_gate_the_choice() -> None:
    room = Room()
    poor, rich = room.receivers("closest", 1, credit=0)[0], room.receivers("closest", 1)[0]
    room.send(room.client.sender("closest"), 4)
    assert shares([poor, rich]) == [0, 2]
    poor.grant(10)
    room.router.pump()
    assert shares([poor, rich]) == [2, 2]


@pytest.mark.parametrize(("hops", "outcome"), [(0, None), (1, None), (2, Released()), (3, Released())])
def test_a_trace_of_two_or_more_is_released(hops: int, outcome: object) -> None:
    room = Room(strips=False)
    (receiver,) = room.receivers("x", 1)
    trace = [f"0/R{number}" for number in range(2, 2 + hops)]
    sent = room.client.sender("x").send(compose(b"x", annotations={"x-opt-qd.trace": trace}))
    room.router.pump()
    assert sent.outcome == outcome
    assert len(receiver.received) == (outcome is None)


# --- 2.2


def test_a_consumer_inside_the_router_shields_the_links() -> None:
    room = Room()
    (receiver,) = room.receivers("closest", 1)
    first, second = Inside(), Inside()
    for each in (first, second):
        room.router.core.inside.subscribe("closest", each)
    sent = room.send(room.client.sender("closest"), 5)
    assert shares([receiver]) == [0]
    assert (len(first.got), len(second.got)) == (3, 2)
    assert [each.history for each in sent] == [[(Accepted(), True)]] * 5


def test_a_second_link_has_the_next_turn_whenever_it_comes() -> None:
    room = Room()
    first = room.receivers("closest", 1)[0]
    sender = room.client.sender("closest")
    room.send(sender, 3)
    second = room.receivers("closest", 1)[0]
    room.send(sender, 1)
    assert shares([first, second]) == [3, 1]
    first.detach()
    room.send(sender, 2)
    assert shares([second]) == [3]


def test_local_links_take_strict_turns() -> None:
    room = Room()
    receivers = [*room.receivers("closest", 1, credit=0), *room.receivers("closest", 2)]
    sender = room.client.sender("closest")
    room.send(sender, 7)
    receivers[0].grant(10)
    room.router.pump()
    assert shares(receivers) == [3, 2, 2]
    assert receivers[1].bodies == [b"1", b"4"]


def test_turns_survive_coming_and_going() -> None:
    room = Room()
    receivers = room.receivers("closest", 3)
    sender = room.client.sender("closest")
    room.send(sender, 1)
    receivers[0].detach()
    room.send(sender, 1)
    assert shares(receivers) == [1, 1, 0]  # the turn is still that of the second
    room.send(sender, 3)
    assert shares(receivers) == [1, 2, 2]
    receivers[2].detach()
    late = room.receivers("closest", 1)[0]
    room.send(sender, 4)
    assert shares([receivers[1], late]) == [4, 2]


# --- 2.3


def test_idle_links_take_turns() -> None:
    room = Room()
    receivers = room.receivers("x", 3)
    sender = room.client.sender("x")
    for _ in range(9):
        room.send(sender, 1)
        settle_all(room, *receivers)
    assert shares(receivers) == [3, 3, 3]


def test_the_fewest_waiting_or_unsettled_gets_the_next() -> None:
    room = Room()
    receivers = room.receivers("x", 3)
    sender = room.client.sender("x")
    room.send(sender, 9)
    assert shares(receivers) == [3, 3, 3]
    settle_all(room, receivers[1])
    room.send(sender, 3)
    assert shares(receivers) == [3, 6, 3]


def test_an_earlier_link_wins_a_tie() -> None:
    room = Room()
    receivers = room.receivers("x", 2)
    sender = room.client.sender("x")
    room.send(sender, 2)
    room.send(sender, 1)
    assert shares(receivers) == [2, 1]


def test_a_full_link_is_passed_over_while_another_has_room() -> None:
    room = Room(capacity=3)
    full = room.receivers("x", 1, credit=0)[0]
    sender = room.client.sender("x")
    room.send(sender, 3)
    fresh = room.router.connect(PeerTerms(100)).receiver("x", credit=100)
    more = room.other().sender("x")
    room.send(more, 3)
    assert shares([full, fresh]) == [0, 3]


def test_the_least_loaded_receiver_gets_the_message_when_all_are_full() -> None:
    room = Room(capacity=1)
    receivers = room.receivers("x", 2, credit=0)
    senders = [room.client.sender("x") for _ in range(5)]
    sent = [room.send(sender, 1)[0] for sender in senders]
    for receiver in receivers:
        receiver.grant(10)
    room.router.pump()
    assert sorted(shares(receivers)) == [2, 3]
    assert [each.outcome for each in sent] == [None] * 5


def test_one_stalled_receiver_keeps_one_message() -> None:
    room = Room()
    stalled = room.receivers("x", 1, credit=0)[0]
    fast = room.receivers("x", 1)[0]
    sender = room.client.sender("x")
    for _ in range(20):
        room.send(sender, 1)
        settle_all(room, fast)
    stalled.grant(10)
    room.router.pump()
    assert shares([stalled, fast]) == [1, 19]


def test_three_receivers_share_250() -> None:
    room = Room()
    receivers = room.receivers("x", 3)
    room.send(room.client.sender("x"), 250)
    assert sorted(shares(receivers)) == [83, 83, 84]


def test_the_cost_of_a_choice_is_bounded() -> None:
    room = Room()
    receivers = room.receivers("x", 200, credit=10)
    room.send(room.client.sender("x"), 200)
    room.send(room.client.sender("x"), 200)
    assert max(shares(receivers)) <= 4
    assert sum(shares(receivers)) == 400


def test_an_inside_consumer_is_no_candidate_beside_a_link() -> None:
    room = Room()
    (receiver,) = room.receivers("x", 1)
    inside = Inside()
    room.router.core.inside.subscribe("x", inside)
    room.send(room.client.sender("x"), 3)
    assert (len(receiver.received), len(inside.got)) == (3, 0)


# --- 2.4


def test_every_receiver_gets_each_multicast_message_once_and_in_order() -> None:
    room = Room()
    receivers = room.receivers("multicast", 5)
    inside = Inside()
    room.router.core.inside.subscribe("multicast", inside)
    room.send(room.client.sender("multicast"), 3)
    assert [receiver.bodies for receiver in receivers] == [[b"0", b"1", b"2"]] * 5
    assert [received.message for received in inside.got] == [compose(b"0"), compose(b"1"), compose(b"2")]


def test_the_outcome_comes_after_the_last_copys() -> None:
    room = Room()
    receivers = room.receivers("multicast", 3)
    (sent,) = room.send(room.client.sender("multicast"), 1)
    for receiver in receivers:
        assert sent.history == []
        receiver.received[0].settle()
        room.router.pump()
    assert sent.history == [(Accepted(), True)]


OUTCOMES = [Rejected(), Accepted(), Modified(), Released()]


@pytest.mark.parametrize("high", range(4))
@pytest.mark.parametrize("low", range(4))
@pytest.mark.parametrize("turned", [False, True])
def test_the_highest_outcome_wins(high: int, low: int, turned: bool) -> None:
    room = Room()
    first, second = room.receivers("multicast", 2)
    (sent,) = room.send(room.client.sender("multicast"), 1)
    pair = (first, second) if turned else (second, first)
    pair[0].received[0].settle(OUTCOMES[high])
    pair[1].received[0].settle(OUTCOMES[low])
    room.router.pump()
    assert sent.history == [(OUTCOMES[min(high, low)], True)]


def test_settlement_comes_after_every_copys_settlement() -> None:
    room = Room()
    first, second = room.receivers("multicast", 2)
    (sent,) = room.send(room.client.sender("multicast"), 1)
    first.received[0].settle(settled=False)
    second.received[0].settle(Released())
    room.router.pump()
    assert sent.history == [(Accepted(), False)]
    first.received[0].settle()
    room.router.pump()
    assert sent.history == [(Accepted(), False), (Accepted(), True)]


def test_a_multicast_settles_in_three_steps() -> None:
    room = Room()
    receivers = room.receivers("multicast", 2)
    (sent,) = room.send(room.client.sender("multicast"), 1)
    for receiver in receivers:
        receiver.received[0].settle(settled=False)
    room.router.pump()
    assert sent.history == [(Accepted(), False)]
    sent.settle(Accepted())
    room.router.pump()
    assert [receiver.received[0].history for receiver in receivers] == [[(Accepted(), True)]] * 2


def test_details_and_non_terminal_states_stay_with_the_copies() -> None:
    room = Room()
    first, second = room.receivers("multicast", 2)
    (sent,) = room.send(room.client.sender("multicast"), 1)
    first.received[0].settle(ReceivedState(1, 2), settled=False)
    room.router.pump()
    assert sent.history == []
    first.received[0].settle(Rejected(Error("x:y", "z")))
    second.received[0].settle(Modified(True, True, {Symbol("x"): 1}))
    room.router.pump()
    assert sent.history == [(Rejected(), True)]


def test_a_transactional_outcome_counts_as_rejected() -> None:
    room = Room()
    first, second = room.receivers("multicast", 2)
    (sent,) = room.send(room.client.sender("multicast"), 1)
    first.received[0].settle(b"\0\x53\x33\xc0\x04\x01\xa0\x01t")
    second.received[0].settle()
    room.router.pump()
    assert sent.history == [(Rejected(), True)]


@pytest.mark.parametrize(("credit", "outcome"), [(10, FAILED), (0, Released())])
def test_a_lost_receiver_counts_as_modified_or_released(credit: int, outcome: object) -> None:
    room = Room()
    staying = room.receivers("multicast", 1)[0]
    leaving = room.other().receiver("multicast", credit=credit)
    (sent,) = room.send(room.client.sender("multicast"), 1)
    staying.received[0].settle(Released())
    room.router.pump()
    assert sent.history == []
    leaving.client.drop()
    assert sent.settled
    assert type(sent.outcome) is type(outcome)
    assert len(sent.history) == 1


def test_the_outcome_of_a_receiver_counts_after_its_connection_is_lost() -> None:
    room = Room()
    staying = room.receivers("multicast", 1)[0]
    leaving = room.other().receiver("multicast", credit=1)
    (sent,) = room.send(room.client.sender("multicast"), 1)
    leaving.received[0].settle(Accepted(), settled=False)
    room.router.pump()
    leaving.client.drop()
    staying.received[0].settle(Released())
    room.router.pump()
    assert sent.history == [(Accepted(), True)]


def test_the_settlement_of_the_sender_reaches_every_copy() -> None:
    room = Room()
    receivers = room.receivers("multicast", 2)
    waiting = room.receivers("multicast", 1, credit=0)[0]
    (sent,) = room.send(room.client.sender("multicast"), 1)
    sent.settle(Accepted())
    room.router.pump()
    assert [receiver.received[0].history for receiver in receivers] == [[(Accepted(), True)]] * 2
    waiting.grant(1)
    room.router.pump()
    assert waiting.received[0].settled


def test_receivers_are_notified_of_a_lost_sender() -> None:
    room = Room()
    receivers = room.receivers("multicast", 2)
    leaving = room.other()
    room.send(leaving.sender("multicast"), 1)
    leaving.drop()
    assert [receiver.received[0].history for receiver in receivers] == [[(FAILED, True)]] * 2


def test_an_inside_consumer_that_answers_after_the_sender_left_does_no_harm() -> None:
    room = Room()
    keeping = Inside(keep=True)
    room.router.core.inside.subscribe("multicast", keeping)
    room.receivers("multicast", 1)
    leaving = room.client.sender("multicast")
    room.send(leaving, 1)
    incoming = next(iter(room.router.core.incoming_endpoints()))
    leaving.detach()
    keeping.got[0].settle()
    room.router.pump()
    assert incoming.unsettled == 0
    assert room.client.closed is None


def test_a_receiver_without_credit_holds_back_the_outcome_but_not_the_others() -> None:
    room = Room()
    fast = room.receivers("multicast", 1)[0]
    slow = room.receivers("multicast", 1, credit=0)[0]
    sent = room.send(room.client.sender("multicast"), 3)
    settle_all(room, fast)
    assert fast.bodies == [b"0", b"1", b"2"]
    assert [each.history for each in sent] == [[]] * 3
    slow.grant(3)
    room.router.pump()
    settle_all(room, slow)
    assert [each.history for each in sent] == [[(Accepted(), True)]] * 3


def test_a_multicast_without_consumers_is_released() -> None:
    room = Room()
    (receiver,) = room.receivers("multicast", 1)
    sender = room.client.sender("multicast")
    receiver.detach()
    (sent,) = room.send(sender, 1)
    assert sent.history == [(Released(), True)]
    (sent,) = [room.client.sender().send(compose(b"x", to="multicast.other"))]
    room.router.pump()
    assert sent.history == [(Released(), True)]


def test_settled_receivers_and_others_in_one_multicast() -> None:
    room = Room()
    wants_settled = room.client.receiver("multicast", credit=5, snd_settle_mode=1)
    other = room.receivers("multicast", 1)[0]
    (sent,) = room.send(room.client.sender("multicast"), 1)
    assert sent.history == []
    assert wants_settled.received[0].settled
    other.received[0].settle(Released())
    room.router.pump()
    assert sent.history == [(Accepted(), True)]


def test_a_multicast_to_settled_receivers_only() -> None:
    room = Room()
    receivers = [room.client.receiver("multicast", credit=5, snd_settle_mode=1) for _ in range(3)]
    (sent,) = room.send(room.client.sender("multicast"), 1)
    assert shares(receivers) == [1, 1, 1]
    assert sent.history == [(Accepted(), True)]


# --- 2.5


def test_an_anonymous_message_to_an_unavailable_address_is_rejected() -> None:
    room = Room()
    sender = room.client.sender()
    sent = sender.send(compose(b"x", to="closed.x"))
    room.router.pump()
    assert sent.history == [
        (Rejected(Error("amqp:not-found", "Deliveries cannot be sent to an unavailable address")), True)
    ]
    assert sender.credit == 249
    (incoming,) = room.router.core.incoming_endpoints()
    assert incoming.unsettled == incoming.account.kept_credit == 0


# --- 2.6


def lone_sender(room: Room) -> MemorySender:
    """Return a targeted sender with credit, whose last consumer has detached."""
    (receiver,) = room.receivers("x", 1)
    sender = room.client.sender("x")
    sender.answers_drain = False
    receiver.detach()
    return sender


def test_targeted_without_destination_unsettled_is_released_and_drained() -> None:
    room = Room()
    sender = lone_sender(room)
    (sent,) = room.send(sender, 1)
    assert sent.history == [(Released(), True)]
    assert sender.drains == [249]


def test_targeted_without_destination_presettled_is_dropped_and_drained() -> None:
    room = Room()
    sender = lone_sender(room)
    (incoming,) = room.router.core.incoming_endpoints()
    room.send(sender, 1, settled=True)
    assert sender.drains == [249]
    assert (incoming.counters.presettled, incoming.counters.dropped_presettled) == (1, 1)
    assert room.router.core.shared.totals.dropped_presettled == 1


@pytest.mark.parametrize("settled", [False, True])
def test_an_anonymous_message_without_a_consumer_is_released_and_paid_back(settled: bool) -> None:
    room = Room()
    room.client.sender("known")
    sender = room.client.sender()
    for to in ("nowhere", "known", ""):
        sent = sender.send(compose(b"x", to=to), settled=settled)
        room.router.pump()
        assert sent.history == ([] if settled else [(Released(), True)])
        assert sender.credit >= 125
        assert sender.drains == []
    assert room.router.core.shared.totals.dropped_presettled == (3 if settled else 0)


@pytest.mark.parametrize("settled", [False, True])
def test_an_anonymous_message_without_an_address_is_rejected(settled: bool) -> None:
    room = Room()
    sent = room.client.sender().send(compose(b"x"), settled=settled)
    room.router.pump()
    error = Error("amqp:precondition-failed", "Routing failure: no address present")
    assert sent.history == ([] if settled else [(Rejected(error), True)])
    assert room.router.core.shared.totals.dropped_presettled == settled


def test_the_fallback_gets_messages_that_no_other_consumer_takes() -> None:
    room = Room(strips=False)
    primary = room.client.receiver("fall.x", credit=10)
    fallback = room.client.receiver("fall.x", credit=10, capabilities=("qd.fallback",))
    sender = room.client.sender("fall.x")
    anonymous = room.client.sender()
    room.send(sender, 1)
    assert shares([primary, fallback]) == [1, 0]
    primary.detach()
    (sent,) = room.send(sender, 1)
    other = anonymous.send(compose(b"a", to="fall.x"))
    room.router.pump()
    assert shares([primary, fallback]) == [1, 2]
    for message in fallback.received:
        assert message.annotations == {
            Symbol("x-opt-qd.phase"): 22,
            Symbol("x-opt-qd.to"): "fall.x",
            Symbol("x-opt-qd.ingress"): "0/R1",
            Symbol("x-opt-qd.trace"): ["0/R1"],
        }
    settle_all(room, fallback)
    assert sent.history == other.history == [(Accepted(), True)]
    record = room.router.core.table.entries["M0fall.x"]
    assert record.counters.redirected == 2
    assert room.router.core.totals.redirected == 2
    primary = room.client.receiver("fall.x", credit=10)
    room.send(sender, 1)
    assert shares([primary, fallback]) == [1, 2]


def test_the_fallback_gets_a_streamed_message_too() -> None:
    room = Room()
    fallback = room.client.receiver("fall.x", credit=10, capabilities=("qd.fallback",))
    sender = room.client.sender("fall.x")
    sent = sender.send(compose(bytes(300_000)))
    room.router.pump()
    assert len(fallback.received[0].body) == 300_000
    settle_all(room, fallback)
    assert sent.history == [(Accepted(), True)]


def test_a_fallback_sender_does_not_fall_back() -> None:
    room = Room()
    fallback = room.client.receiver("fall.x", credit=10, capabilities=("qd.fallback",))
    sender = room.client.sender("fall.x", capabilities=("qd.fallback",))
    (sent,) = room.send(sender, 1)
    assert sent.history == [(Released(), True)]
    assert shares([fallback]) == [0]


# --- 2.7


@pytest.mark.parametrize("how", ["detach", "end", "drop"])
def test_a_lost_receiver_releases_its_queued_messages_and_fails_the_delivered_ones(how: str) -> None:
    room = Room()
    leaving = room.other()
    receiver = leaving.receiver("x", credit=2)
    sender = room.client.sender("x")
    sent = room.send(sender, 4)
    assert shares([receiver]) == [2]
    leave(how, receiver)
    assert [each.history for each in sent] == [[(FAILED, True)]] * 2 + [[(Released(), True)]] * 2


def test_credit_6_of_10_then_close() -> None:
    room = Room()
    receiver = room.client.receiver("x", credit=6)
    sent = room.send(room.client.sender("x"), 10)
    settle_all(room, receiver)
    receiver.detach()
    assert [each.outcome for each in sent] == [Accepted()] * 6 + [Released()] * 4


def test_a_receiver_lost_mid_stream_releases() -> None:
    room = Room()
    leaving = room.other()
    leaving.receiver("x", credit=2)
    sender = room.client.sender("x")
    sent = sender.begin(compose(bytes(200_000)))
    room.router.pump()
    leaving.drop()
    assert sent.history == [(Released(), False)]
    sent.more(bytes(200_000))
    room.router.pump()
    assert sent.history == [(Released(), False)]
    sent.finish(b"end")
    room.router.pump()
    assert sent.history == [(Released(), False), (Released(), True)]
    assert room.router.held_bytes() == 0


def test_presettled_messages_of_a_lost_receiver_are_dropped() -> None:
    room = Room()
    leaving = room.other()
    leaving.receiver("x")
    room.send(room.client.sender("x"), 3, settled=True)
    leaving.drop()
    assert room.router.core.shared.totals.dropped_presettled == 3
    assert room.router.held_bytes() == 0


@pytest.mark.parametrize("how", ["detach", "end", "drop"])
def test_a_lost_senders_message_stays_with_its_receiver(how: str) -> None:
    room = Room()
    receiver = room.client.receiver("x", credit=1)
    leaving = room.other()
    sender = leaving.sender("x")
    room.send(sender, 2)
    leave(how, sender)
    receiver.grant(1)
    room.router.pump()
    assert receiver.bodies == [b"0", b"1"]
    assert receiver.received[0].history == []
    settle_all(room, receiver)
    assert receiver.received[0].history == []
    assert room.client.closed is None


def test_a_lost_senders_receiver_in_second_mode_is_settled_too() -> None:
    room = Room()
    receiver = room.client.receiver("x", credit=1)
    leaving = room.other()
    room.send(leaving.sender("x"), 1)
    leaving.drop()
    receiver.received[0].settle(settled=False)
    room.router.pump()
    assert receiver.received[0].history == [(Accepted(), True)]


@pytest.mark.parametrize("distribution", ["closest", "multicast"])
@pytest.mark.parametrize("how", ["detach", "end", "drop", "abort"])
def test_a_sender_lost_mid_stream_takes_its_message_back(distribution: str, how: str) -> None:
    room = Room()
    having = room.client.receiver(distribution, credit=2)
    leaving = room.other()
    sender = leaving.sender(distribution)
    sent = sender.begin(compose(bytes(200_000)))
    room.router.pump()
    assert len(having.received) == 1
    leave(how, sender, sent)
    assert having.received[0].aborted
    room.send(room.other().sender(distribution), 1)
    assert having.bodies == [b"0"]
    assert room.router.held_bytes() == 0


@pytest.mark.parametrize("how", ["detach", "drop", "abort"])
def test_a_message_of_a_lost_sender_leaves_no_trace_with_receivers_that_got_none_of_it(how: str) -> None:
    room = Room()
    receiver = room.client.receiver("x")
    leaving = room.other()
    sender = leaving.sender("x")
    sent = sender.begin(compose(bytes(200_000)))
    room.router.pump()
    leave(how, sender, sent)
    receiver.grant(5)
    room.router.pump()
    assert receiver.received == []
    assert room.router.held_bytes() == 0


def test_an_outcome_known_before_the_loss_stands() -> None:
    room = Room()
    leaving = room.other()
    receiver = leaving.receiver("x", credit=1)
    (sent,) = room.send(room.client.sender("x"), 1)
    receiver.received[0].settle(settled=False)
    room.router.pump()
    leaving.drop()
    assert sent.history == [(Accepted(), False), (Accepted(), True)]


def test_the_loss_of_a_whole_session_costs_one_look_at_its_deliveries() -> None:
    room = Room()
    leaving = room.other()
    receivers = [leaving.receiver(f"x{number}", credit=5) for number in range(50)]
    sent = [each for receiver in receivers for each in room.send(room.client.sender(receiver.address), 5)]
    leaving.drop()
    assert [each.history for each in sent] == [[(FAILED, True)]] * 250


# --- 2.8


def test_presettled_credit_comes_back_at_once() -> None:
    room = Room(capacity=10)
    room.receivers("x", 1, credit=0)
    sender = room.client.sender("x")
    for _ in range(10):
        room.send(sender, 5, settled=True)
    assert sender.credit >= 5


def test_capacity_10_without_credit_15_sends_leave_1_and_11_to_15() -> None:
    room = Room(capacity=10)
    receiver = room.client.receiver("x")
    (outgoing,) = room.router.core.outgoing_endpoints()
    sender = room.client.sender("x")
    sent = [sender.send(compose(b"%d" % number), settled=True) for number in range(1, 16)]
    room.router.pump()
    assert all(each.delivery.complete for each in sent)
    receiver.grant(100)
    room.router.pump()
    assert receiver.bodies == [b"1", b"11", b"12", b"13", b"14", b"15"]
    assert outgoing.counters.dropped_presettled == 9
    assert (outgoing.counters.presettled, outgoing.counters.deliveries) == (15, 6), "those that were dropped count too"
    assert room.router.core.shared.totals.dropped_presettled == 9
    assert room.router.held_bytes() == 0


def test_a_message_being_written_is_not_dropped() -> None:
    room = Room(capacity=3)
    receiver = room.client.receiver("x", credit=1)
    writing = room.client.sender("x").begin(compose(bytes(200_000)), settled=True)
    room.router.pump()
    sender = room.client.sender("x")
    room.send(sender, 3, settled=True)
    room.send(sender, 3, settled=True)
    writing.finish(b"end")
    receiver.grant(100)
    room.router.pump()
    assert receiver.received[0].complete
    assert receiver.received[0].payload == compose(bytes(200_000)) + b"end"
    assert [message.body for message in receiver.received[1:]] == [b"1", b"2"]


def test_unsettled_messages_are_not_dropped() -> None:
    room = Room(capacity=5)
    receiver = room.client.receiver("x")
    unsettled = room.client.sender("x")
    sent = room.send(unsettled, 5)
    room.send(room.client.sender("x"), 3, settled=True)
    receiver.grant(100)
    room.router.pump()
    assert receiver.bodies == [b"0", b"1", b"2", b"3", b"4", b"2"]
    settle_all(room, receiver)
    assert all(each.outcome == Accepted() for each in sent)


class CountingQueue(deque[OutgoingDelivery]):
    """A queue that counts how often the forwarder looks behind its first entry."""

    looks = 0

    def __getitem__(self, index: Any) -> Any:
        CountingQueue.looks += index != 0
        return super().__getitem__(index)

    def __iter__(self) -> Iterator[OutgoingDelivery]:
        for each in super().__iter__():
            CountingQueue.looks += 1
            yield each


@pytest.mark.parametrize("settled_late", [False, True])
def test_dropping_examines_only_deliveries_that_may_be_dropped(
    settled_late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CountingQueue, "looks", 0)
    room = Room(capacity=5)
    receiver = room.client.receiver("x")
    (outgoing,) = room.router.core.outgoing_endpoints()
    outgoing.waiting.queue = CountingQueue()
    waiting = [each for _ in range(40) for each in room.send(room.client.sender("x"), 5)]
    sender = room.client.sender("x")
    sent = []
    for number in range(100):
        if settled_late:
            waiting[1 + number].settle()
            room.router.pump()
        sent.append(sender.send(compose(b"p%d" % number), settled=True))
        room.router.pump()
    assert all(each.delivery.complete for each in sent)
    assert outgoing.backlog == (101 if settled_late else 201)
    assert len(outgoing.queue) <= 2 * outgoing.backlog
    assert CountingQueue.looks <= 300  # and not 100 times 200: making room again looks at each once
    receiver.grant(1000)
    room.router.pump()
    assert len(receiver.bodies) == (101 if settled_late else 201)
    assert receiver.bodies[-1] == b"p99"


def test_dropped_deliveries_do_not_pile_up_in_the_queue() -> None:
    room = Room(capacity=5)
    receiver = room.client.receiver("x")
    (outgoing,) = room.router.core.outgoing_endpoints()
    room.send(room.client.sender("x"), 5)
    sender = room.client.sender("x")
    for number in range(200):
        sender.send(compose(b"p%d" % number), settled=True)
        room.router.pump()
        assert outgoing.backlog == 6
        assert len(outgoing.queue) <= 12
    receiver.grant(1000)
    room.router.pump()
    assert receiver.bodies == [b"0", b"1", b"2", b"3", b"4", b"p199"]
    assert len(outgoing.queue) == outgoing.backlog == 0


def test_a_message_that_leaves_the_queue_from_the_middle_leaves_no_dropped_one_in_front() -> None:
    room = Room(capacity=2)
    receiver = room.client.receiver("x")
    (outgoing,) = room.router.core.outgoing_endpoints()
    first = room.client.sender("x").begin(compose(bytes(200_000)))
    room.router.pump()
    sender = room.client.sender("x")
    for body in (b"1", b"2", b"3"):
        sender.send(compose(body), settled=True)
        room.router.pump()
    assert outgoing.backlog == 2
    first.abort()
    room.router.pump()
    assert outgoing.backlog == 1
    receiver.grant(10)
    room.router.pump()
    assert receiver.bodies == [b"3"]


def test_a_delivery_removed_to_free_its_window_is_not_dropped_again() -> None:
    room = Room(capacity=2)
    receiver = room.client.receiver("x", credit=1)
    room.client.sender("x").begin(compose(bytes(200_000)))
    room.router.pump()
    narrow = room.router.connect(limits=EngineLimits(session_window_frames=10, idle_timeout_s=0.0))
    narrow.sender("x").begin(compose(bytes(150_000)), settled=True)
    room.router.pump()
    (outgoing,) = room.router.core.outgoing_endpoints()
    assert outgoing.backlog == 1  # the first waits for its end, the second must not wait for the first
    room.send(room.client.sender("x"), 4, settled=True)
    assert receiver.received[0].payload
    assert outgoing.backlog == 2
    assert room.router.core.shared.totals.dropped_presettled == 4


def test_deliveries_that_the_sender_settled_while_they_waited_may_be_dropped() -> None:
    room = Room(capacity=5)
    receiver = room.client.receiver("x")
    for each in room.send(room.client.sender("x"), 5):
        each.settle()
    room.router.pump()
    room.send(room.client.sender("x"), 1, settled=True)
    receiver.grant(10)
    room.router.pump()
    assert receiver.bodies == [b"0", b"0"]


def test_a_large_backlog_after_the_consumer_has_gone_is_counted() -> None:
    room = Room()
    receiver = room.client.receiver("x", credit=10)
    sender = room.client.sender("x")
    sent = [sender.send(compose(bytes(20_000)), settled=True) for _ in range(200)]
    room.router.pump()
    assert len(receiver.received) == 10
    receiver.detach()
    assert all(each.delivery.complete for each in sent)
    assert room.router.core.shared.totals.dropped_presettled == 190


# --- 2.9


@pytest.mark.parametrize("failed", [True, False, None])
@pytest.mark.parametrize("elsewhere", [True, False, None])
def test_a_modified_outcome_is_relayed_unchanged(failed: bool | None, elsewhere: bool | None) -> None:
    room = Room()
    (receiver,) = room.receivers("x", 1)
    (sent,) = room.send(room.client.sender("x"), 1)
    state = Modified(failed, elsewhere, {Symbol("x"): 1})
    receiver.received[0].settle(state)
    room.router.pump()
    assert sent.history == [(state, True)]


def test_the_header_is_not_touched() -> None:
    room = Room()
    (receiver,) = room.receivers("x", 1)
    header = b"\0\x53\x70\xc0\x09\x05\x41\x50\x07\x52\x64\x41\x52\x03"
    room.client.sender("x").send(header + compose(b"x"))
    room.router.pump()
    assert receiver.received[0].payload == header + compose(b"x")


# --- 2.10 and 5.6: what is counted


def test_outcomes_are_counted_on_both_links_and_by_the_router() -> None:
    room = Room()
    (receiver,) = room.receivers("x", 1)
    (outgoing,) = room.router.core.outgoing_endpoints()
    sender = room.client.sender("x")
    (incoming,) = room.router.core.incoming_endpoints()
    sent = room.send(sender, 5)
    for message, state in zip(receiver.received, [*OUTCOMES, None], strict=True):
        message.settle(state)
    room.send(sender, 1, settled=True)
    room.router.pump()
    assert all(each.settled for each in sent)
    for counters in (incoming.counters, outgoing.counters, room.router.core.shared.totals):
        counted = counters.as_dict()
        assert [counted[name] for name in ("rejected", "accepted", "modified", "released", "presettled")] == [1] * 5
    assert (incoming.counters.deliveries, outgoing.counters.deliveries) == (6, 6)


def test_three_step_outcomes_are_counted_once_on_either_side() -> None:
    room = Room()
    (receiver,) = room.receivers("x", 1)
    (outgoing,) = room.router.core.outgoing_endpoints()
    (sent,) = room.send(room.client.sender("x"), 1)
    (incoming,) = room.router.core.incoming_endpoints()
    receiver.received[0].settle(settled=False)
    room.router.pump()
    sent.settle()
    room.router.pump()
    assert (incoming.counters.accepted, outgoing.counters.accepted) == (1, 1)
    assert room.router.core.shared.totals.accepted == 1


def test_a_lost_receivers_deliveries_are_counted() -> None:
    room = Room()
    receiver = room.client.receiver("x", credit=2)
    room.send(room.client.sender("x"), 5)
    (outgoing,) = room.router.core.outgoing_endpoints()
    (incoming,) = room.router.core.incoming_endpoints()
    receiver.detach()
    for counters in (incoming.counters, room.router.core.shared.totals):
        assert (counters.modified, counters.released) == (2, 3)
    assert outgoing.counters.modified == 2


@pytest.mark.parametrize(("age_s", "delayed"), [(1.0, (0, 0)), (1.5, (1, 0)), (10.0, (1, 0)), (10.5, (0, 1))])
@pytest.mark.parametrize("settled", [False, True])
def test_slow_deliveries_are_counted_by_age(age_s: float, delayed: tuple[int, int], settled: bool) -> None:
    room = Room()
    room.router.now_s = 1000.0
    receiver = room.client.receiver("x")
    (outgoing,) = room.router.core.outgoing_endpoints()
    room.send(room.client.sender("x"), 1, settled=settled)
    (incoming,) = room.router.core.incoming_endpoints()
    room.router.now_s = 1000.0 + age_s
    receiver.grant(1)
    room.router.pump()
    settle_all(room, receiver)
    assert (outgoing.counters.delayed_1s, outgoing.counters.delayed_10s) == delayed
    expected = (0, 0) if settled else delayed
    assert (incoming.counters.delayed_1s, incoming.counters.delayed_10s) == expected
    totals = room.router.core.shared.totals
    assert (totals.delayed_1s, totals.delayed_10s) == expected


def test_an_address_counts_its_incoming_and_outgoing_messages() -> None:
    room = Room()
    room.receivers("multicast", 2)
    room.router.core.inside.subscribe("multicast", Inside())
    sender = room.client.sender("multicast")
    room.send(sender, 3)
    room.router.core.inside.send_message("multicast", compose(b"inside"))
    record = room.router.core.table.entries["M0multicast"]
    for counters in (record.counters, room.router.core.totals):
        assert counters.as_dict() == {
            "ingress": 3,
            "egress": 8,
            "transit": 0,
            "to_container": 4,
            "egress_container": 0,
            "ingress_container": 0,
            "from_container": 1,
            "redirected": 0,
        }


def test_undelivered_messages_count_as_ingress() -> None:
    room = Room()
    sender = lone_sender(room)
    room.send(sender, 1)
    assert room.router.core.table.entries["M0x"].counters.ingress == 1
    assert room.router.core.totals.ingress == 1


def test_fallback_links_count_neither_as_ingress_nor_as_egress() -> None:
    room = Room()
    room.client.receiver("fall.x", credit=5, capabilities=("qd.fallback",))
    room.send(room.client.sender("fall.x"), 2)
    room.send(room.client.sender("fall.x", capabilities=("qd.fallback",)), 1)
    totals = room.router.core.totals
    assert (totals.ingress, totals.egress, totals.redirected) == (2, 0, 2)


# --- inside the router


def test_inside_a_message_reaches_the_links_of_an_address() -> None:
    room = Room()
    (receiver,) = room.receivers("x", 1)
    assert room.router.core.inside.send_message("x", compose(b"hello")) == 1
    assert room.router.core.inside.send_message("nowhere", compose(b"hello")) == 0
    room.router.pump()
    assert receiver.received[0].settled
    assert receiver.bodies == [b"hello"]


def test_inside_a_consumer_decides_the_outcome() -> None:
    room = Room()
    inside = Inside(keep=True)
    room.router.core.inside.subscribe("x", inside)
    sent = room.send(room.client.sender("x"), 2)
    inside.got[0].settle(0x25, encode_state(Rejected(Error("a:b", "c"))))
    inside.got[1].settle()
    inside.got[1].settle(0x26)
    room.router.pump()
    assert [each.history for each in sent] == [[(Rejected(Error("a:b", "c")), True)], [(Accepted(), True)]]


def test_inside_a_consumer_may_answer_while_it_receives() -> None:
    room = Room()
    reply = room.client.receiver(dynamic=True, credit=10)

    class Echo:
        def receive(self, received: InsideMessage) -> None:
            room.router.core.inside.send_message(reply.address, received.message)
            received.settle()

    room.router.core.inside.subscribe("echo", Echo())
    room.send(room.client.sender("echo"), 3)
    assert reply.bodies == [b"0", b"1", b"2"]


def test_inside_nothing_stays_held_by_a_session() -> None:
    room = Room()
    room.router.core.inside.subscribe("x", Inside())
    sender = room.client.sender("x")
    for size in (10, 50_000, 200_000):
        sent = sender.send(compose(bytes(size)))
        room.router.pump()
        assert sent.history == [(Accepted(), True)]
        assert room.router.held_bytes() == 0


@pytest.mark.parametrize("anonymous", [False, True])
def test_inside_messages_are_whole_or_rejected(anonymous: bool) -> None:
    room = Room()
    inside = Inside()
    room.router.core.inside.subscribe("x", inside)
    sender = room.client.sender(None if anonymous else "x")
    fits = sender.send(compose(bytes(900_000), to="x"))
    too_large = sender.send(compose(bytes(2_000_000), to="x"))
    room.router.pump()
    assert fits.history == [(Accepted(), True)]
    assert len(inside.got) == 1
    assert inside.got[0].message == compose(bytes(900_000), to="x")
    assert isinstance(too_large.outcome, Rejected)
    assert too_large.outcome.error is not None
    assert too_large.outcome.error.condition == "amqp:link:message-size-exceeded"
    assert too_large.settled
    assert room.router.held_bytes() == 0


def test_inside_a_fallback_consumer_gets_whole_messages_too() -> None:
    room = Room()
    primary = room.client.receiver("fall.x")
    sender = room.client.sender("fall.x")
    inside = Inside()
    fallback = room.router.core.table.entries["MFfall.x"]
    primary.detach()
    fallback.add_subscription(room.router.core.inside.subscribe("elsewhere", inside))
    sent = sender.send(compose(bytes(300_000)))
    room.router.pump()
    assert sent.history == [(Accepted(), True)]
    assert [len(received.message) for received in inside.got] == [len(compose(bytes(300_000)))]


def test_unsubscribing_ends_an_inside_consumer_also_where_phases_differ() -> None:
    room = Room()
    core = room.router.core
    core.table.add_rule(AddressRule("way", ingress_phase=0, egress_phase=1))
    for address in ("x", "way"):
        inside = Inside()
        subscription = core.inside.subscribe(address, inside)
        core.inside.unsubscribe(subscription)
        core.inside.unsubscribe(subscription)
    assert not core.table.entries


def test_the_first_inside_consumer_brings_credit_and_the_last_one_ends_credit() -> None:
    room = Room()
    core = room.router.core
    sender = room.client.sender("x")
    assert sender.credit == 0
    subscription = core.inside.subscribe("x", Inside())
    room.router.pump()
    assert sender.credit == 250
    core.inside.unsubscribe(subscription)
    (sent,) = room.send(sender, 1)
    assert sent.history == [(Released(), True)]
    assert sender.credit == 0


def test_a_message_behind_that_of_a_lost_client_is_not_sent_over_its_lost_link() -> None:
    """It sends to itself in pieces; when it is lost, its message is aborted, and the next is not begun on its link."""
    router = MemoryRouter()
    client, other = router.connect(), router.connect()
    own = client.sender("q")
    client.receiver("q", credit=10)
    waiting = other.sender("q")
    router.pump()
    own.begin(compose(bytes(200_000))[:150_000])
    router.pump()
    sent = waiting.send(compose(b"next"))
    router.pump()
    client.drop()
    router.pump()
    assert sent.outcome is not None
    assert not any(session.deliveries.outgoing.count for session in client.server.sessions())
