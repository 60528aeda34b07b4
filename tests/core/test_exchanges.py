"""Exchanges in the core: the receivers of a message, its form, and its outcome (docs/exchanges.md)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from tests.core.endings import leave
from tests.core.joined import Joined
from tests.core.test_credit import small_window
from tests.core.test_forwarding import Inside
from trouter.core.exchanges import MAX_EXCHANGES, Binding, BindingRule, Exchange, ExchangeRule
from trouter.core.ports import MAX_INSIDE_BYTES
from trouter.core.router import Router
from trouter.core.stalls import STALLED_S
from trouter.core.table import AddressRule
from trouter.core.terms import PeerTerms
from trouter.engine.limits import EngineLimits
from trouter.testing import MemoryClient, MemoryReceiver, MemoryRouter, MemorySender, SentMessage, compose
from trouter.testing.memory import LIMITS
from trouter.wire.performatives import Accepted, Rejected, Released

RULES = (
    AddressRule("many", is_prefix=True, distribution="multicast"),
    AddressRule("near", is_prefix=True, distribution="closest"),
    AddressRule("staged", is_prefix=True, egress_phase=1),
    AddressRule("spare", is_prefix=True, enable_fallback=True),
    AddressRule("urgent", is_prefix=True, priority=9),
)
PLAIN = PeerTerms(strip_out=True)
MARKED = PeerTerms(strip_in=False, strip_out=False)


def exchange(
    core: Router, bindings: Sequence[tuple[str, str] | tuple[str, str, int]] = (), **fields: Any
) -> tuple[Exchange, list[Binding]]:
    """Return an exchange at the address ``x`` with these bindings: key, next hop, and its phase."""
    made = core.exchanges.add(ExchangeRule(**{"name": "e", "address": "x"} | fields))
    return made, [made.bind(BindingRule(*each)) for each in bindings]


class Room:
    """A router with an exchange, and a client that is sender and receiver."""

    def __init__(
        self,
        bindings: Sequence[tuple[str, str] | tuple[str, str, int]] = (),
        *,
        terms: PeerTerms = PLAIN,
        limits: EngineLimits = LIMITS,
        **fields: Any,
    ) -> None:
        self.router = MemoryRouter(RULES)
        self.exchange, self.bindings = exchange(self.router.core, bindings, **fields)
        self.client = self.router.connect(terms, limits=limits)

    def receiver(self, address: str, credit: int = 1000, client: MemoryClient | None = None, **fields: Any) -> Any:
        return (client or self.client).receiver(address, credit=credit, **fields)

    def send(self, sender: MemorySender, *subjects: str | None, settled: bool = False) -> list[SentMessage]:
        sent = [
            sender.send(compose(b"%d" % number, subject=subject), settled=settled)
            for number, subject in enumerate(subjects)
        ]
        self.router.pump()
        return sent

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """Return the counts received, forwarded, diverted, dropped."""
        made = self.exchange
        return made.received, made.forwarded, made.diverted, made.dropped


def bodies(*receivers: MemoryReceiver) -> list[list[bytes]]:
    return [receiver.bodies for receiver in receivers]


# --- receivers of a message


@pytest.mark.parametrize("method", ["amqp", "mqtt"])
def test_a_message_goes_where_its_subject_fits(method: str) -> None:
    keys = ("a.b", "a.*", "b.#") if method == "amqp" else ("a/b", "a/+", "b/#")
    subjects = [key.replace(".", "/") if method == "mqtt" else key for key in ("a.b", "a.c", "b", "b.c.d", "c", "a")]
    room = Room([(keys[0], "direct"), (keys[1], "one"), (keys[2], "any")], method=method)
    direct, one, any_ = (room.receiver(address) for address in ("direct", "one", "any"))
    sent = room.send(room.client.sender("x"), *subjects)
    assert bodies(direct, one, any_) == [[b"0"], [b"0", b"1"], [b"2", b"3"]]
    assert [each.outcome for each in sent] == [Accepted()] * 4 + [Released()] * 2
    assert all(each.settled for each in sent)
    assert room.counts == (6, 4, 0, 2)
    assert [each.matched for each in room.bindings] == [1, 2, 2]


def test_consumers_of_the_address_get_a_message_before_the_next_hops() -> None:
    room = Room([("#", "hop")], address="many.x")
    first, second, hop = room.receiver("many.x"), room.receiver("many.x"), room.receiver("hop")
    (sent,) = room.send(room.client.sender("many.x"), "s")
    assert bodies(first, second, hop) == [[b"0"]] * 3
    assert [each.received[0].settled for each in (first, second, hop)] == [True] * 3
    assert (sent.outcome, sent.settled, sent.history) == (Accepted(), True, [(Accepted(), True)])
    numbers = [int(each.received[0].delivery.tag[0]) for each in (first, second, hop)]
    assert numbers == sorted(numbers)


def test_balanced_consumers_of_the_address_share() -> None:
    room = Room([("#", "hop")])
    first, second, hop = room.receiver("x"), room.receiver("x"), room.receiver("hop")
    room.send(room.client.sender("x"), *["s"] * 4)
    assert sorted(len(each.received) for each in (first, second)) == [2, 2]
    assert len(hop.received) == 4


def test_no_subject_fits_no_binding() -> None:
    room = Room([("#", "hop")])
    hop, own = room.receiver("hop"), room.receiver("x")
    sender = room.client.sender("x")
    sent = room.send(sender, None)
    sent.append(sender.send(compose(b"to only", to="y")))
    sent.append(sender.send(compose(b"no subject", application_properties={"subject": "s"})))
    room.router.pump()
    assert (len(own.received), hop.received) == (3, [])
    assert room.bindings[0].matched == 0
    assert [each.outcome for each in sent] == [Accepted()] * 3
    room.send(sender, "")
    assert len(hop.received) == 1


@pytest.mark.parametrize(
    "properties",
    [
        b"\x00\x53\x73\xc0\x08\x04\x40\x40\x40\xa3\x03a.b",  # a symbol
        b"\x00\x53\x73\xc0\x07\x04\x40\x40\x40\xa1\x02\xff\xfe",  # not UTF-8
        b"\x00\x53\x73\xc0\x05\x04\x40\x40\x40\x40",
        b"\x00\x53\x73\x45",
        b"\x00\x53\x73\xc0\x04\x09\x40\x40\x40",  # fewer fields than its count
        b"\x00\x53\x73\xc0\x06\x04\x40\x40\x40\xa1\x09",  # longer than the section
    ],
)
def test_a_message_without_a_readable_subject_matches_no_binding(properties: bytes) -> None:
    room = Room([("#", "hop")], alternate="other")
    hop, other = room.receiver("hop"), room.receiver("other")
    sent = room.client.sender("x").send(properties + compose(b"x"))
    room.router.pump()
    assert (len(hop.received), len(other.received)) == (0, 1)
    assert sent.outcome == Accepted()


def test_a_subject_may_be_long_and_stand_in_long_properties() -> None:
    room = Room([("a.#", "hop")])
    hop = room.receiver("hop")
    subject = "a." + "b" * 300
    room.send(room.client.sender("x"), subject)
    room.send(room.client.sender("x"), subject)
    assert len(hop.received) == 2


def test_bindings_with_one_next_hop_make_one_copy_and_each_counts() -> None:
    room = Room([("a.#", "hop"), ("#.b", "hop"), ("a.b", "hop", 1), ("c", "hop")])
    hop, second = room.receiver("hop"), room.receiver("hop", capabilities=("qd.waypoint.2",))
    room.send(room.client.sender("x"), "a.b")
    assert bodies(hop, second) == [[b"0"], [b"0"]]
    assert [each.matched for each in room.bindings] == [1, 1, 1, 0]
    assert room.counts == (1, 1, 0, 0)


def test_a_message_without_a_binding_or_a_receiver_goes_to_the_alternate_address() -> None:
    room = Room([("a", "hop")], alternate="other", alternate_phase=1)
    sender = room.client.sender("x")
    assert [each.outcome for each in room.send(sender, "a", "b")] == [Released()] * 2
    other = room.receiver("other", capabilities=("qd.waypoint.2",))
    assert [each.outcome for each in room.send(sender, "a", "b", None)] == [Accepted()] * 3
    hop = room.receiver("hop")
    assert [each.outcome for each in room.send(sender, "a", "b")] == [Accepted()] * 2
    assert bodies(hop, other) == [[b"0"], [b"0", b"1", b"2", b"1"]]
    assert room.counts == (7, 5, 4, 2)


def test_consumers_of_the_address_keep_messages_from_the_alternate_one() -> None:
    room = Room([("a", "hop")], alternate="other")
    own, other = room.receiver("x"), room.receiver("other")
    room.send(room.client.sender("x"), "b", None)
    assert (len(own.received), other.received) == (2, [])
    assert room.counts == (2, 2, 0, 0)


@pytest.mark.parametrize("settled", [False, True])
def test_copies_are_settled_for_settled_and_unsettled_messages(settled: bool) -> None:
    room = Room([("#", "hop"), ("#", "many.hop")])
    receivers = [room.receiver(address) for address in ("hop", "many.hop", "many.hop")]
    (sent,) = room.send(room.client.sender("x"), "s", settled=settled)
    assert [each.received[0].settled for each in receivers] == [True] * 3
    assert sent.outcome == (None if settled else Accepted())


def test_a_settled_message_without_a_receiver_is_dropped() -> None:
    room = Room([("a", "hop")])
    sender = room.client.sender("x")
    room.send(sender, "b", settled=True)
    assert room.counts == (1, 0, 0, 1)
    (incoming,) = room.router.core.incoming_endpoints()
    assert incoming.counters.dropped_presettled == 1
    assert sender.credit >= 250 - 1


# --- credit


def test_senders_have_and_keep_credit_without_any_consumer() -> None:
    room = Room()
    sender = room.client.sender("x")
    assert sender.credit == 250
    for _ in range(4):
        assert {each.outcome for each in room.send(sender, *["s"] * 200)} == {Released()}
    assert sender.credit > 0
    assert not sender.link.drain


def test_an_address_becomes_an_exchange_and_an_ordinary_one_again() -> None:
    router = MemoryRouter(RULES)
    client = router.connect(PLAIN)
    sender = client.sender("x")
    assert sender.credit == 0
    made, _ = exchange(router.core, [("#", "hop")])
    router.pump()
    assert sender.credit == 250
    own, hop = client.receiver("x", credit=10), client.receiver("hop", credit=10)
    sender.send(compose(b"1", subject="s"))
    router.pump()
    router.core.exchanges.remove(made)
    sent = sender.send(compose(b"2", subject="s"))
    router.pump()
    assert bodies(own, hop) == [[b"1", b"2"], [b"1"]]
    assert sent.history == []
    own.received[1].settle()
    router.pump()
    assert sent.history == [(Accepted(), True)]
    own.detach()
    hop.detach()
    sender.detach()
    router.pump()
    assert not [key for key in router.core.table.entries if key.startswith("M")]


def test_removing_an_exchange_removes_its_addresses() -> None:
    room = Room([("#", "hop")], alternate="other")
    keys = {"M0x", "M0hop", "M0other"}
    assert keys <= set(room.router.core.table.entries)
    room.exchange.unbind(room.bindings[0])
    assert "M0hop" not in room.router.core.table.entries
    room.router.core.exchanges.remove(room.exchange)
    assert not keys & set(room.router.core.table.entries)


def test_bindings_come_and_go() -> None:
    room = Room([("a", "hop")])
    hop, more = room.receiver("hop"), room.receiver("more")
    sender = room.client.sender("x")
    room.send(sender, "a")
    second = room.exchange.bind(BindingRule("#", "more"))
    room.send(sender, "a")
    room.exchange.unbind(room.bindings[0])
    room.send(sender, "a")
    room.exchange.unbind(second)
    assert room.send(sender, "a")[0].outcome == Released()
    assert [len(each.received) for each in (hop, more)] == [2, 2]
    assert room.exchange.bindings == 0


def test_many_subjects_are_remembered_but_not_all() -> None:
    room = Room([("a.*", "hop")])
    hop = room.receiver("hop", credit=10_000)
    for start in range(0, 2500, 100):
        room.send(room.client.sender("x"), *[f"a.{number}" for number in range(start, start + 100)])
    assert len(hop.received) == 2500
    assert len(room.exchange._known) <= 1000


# --- origins of messages


def test_anonymous_senders_reach_an_exchange() -> None:
    room = Room([("#", "hop")])
    hop = room.receiver("hop")
    sender = room.client.sender()
    sent = [sender.send(compose(b"%d" % number, to="x", subject=subject)) for number, subject in enumerate("s")]
    nobody = sender.send(compose(b"x", to="x"))
    room.router.pump()
    assert hop.bodies == [b"0"]
    assert (sent[0].outcome, nobody.outcome) == (Accepted(), Released())


def test_an_exchange_takes_messages_in_its_phase_only() -> None:
    room = Room([("#", "hop")], phase=1)
    hop, own = room.receiver("hop"), room.receiver("x")
    room.send(room.client.sender("x"), "s")
    assert bodies(hop, own) == [[], [b"0"]]
    room.send(room.client.sender("x", capabilities=("qd.waypoint.1",)), "s")
    assert bodies(hop, own) == [[b"0"], [b"0"]]


def test_messages_from_inside_the_router_are_distributed_too() -> None:
    room = Room([("#", "hop")], terms=MARKED)
    hop, own = room.receiver("hop"), room.receiver("x")
    assert room.router.core.inside.send_message("x", compose(b"inside", subject="s")) == 2
    room.router.pump()
    assert bodies(hop, own) == [[b"inside"]] * 2
    assert hop.received[0].annotations == {
        "x-opt-qd.to": "hop",
        "x-opt-qd.ingress": "0/R1",
        "x-opt-qd.trace": ["0/R1"],
    }


# --- next hops of every kind


def test_next_hops_are_treated_as_they_are_configured() -> None:
    room = Room([("#", "many.hop"), ("#", "near.hop"), ("#", "hop"), ("#", "staged.hop"), ("#", "spare.hop")])
    many = [room.receiver("many.hop") for _ in range(2)]
    near = [room.receiver("near.hop") for _ in range(2)]
    balanced = [room.receiver("hop") for _ in range(2)]
    waypoint = room.receiver("staged.hop", capabilities=("qd.waypoint.1",))
    behind = room.receiver("staged.hop")
    spare = room.receiver("spare.hop", capabilities=("qd.fallback",))
    room.send(room.client.sender("x"), *["s"] * 4)
    assert [len(each.received) for each in many] == [4, 4]
    assert [len(each.received) for each in near] == [2, 2]
    assert [len(each.received) for each in balanced] == [2, 2]
    assert (len(waypoint.received), len(behind.received), len(spare.received)) == (4, 0, 4)
    records = room.router.core.table.entries
    assert (records["M0many.hop"].counters.egress, records["M0spare.hop"].counters.redirected) == (8, 4)
    assert records["M0x"].counters.egress == 0
    assert records["M0x"].counters.ingress == 4


def test_an_exchange_and_its_next_hops_are_available_where_no_other_address_is() -> None:
    router = MemoryRouter(default_distribution="unavailable")
    exchange(router.core, [("a", "hop")], alternate="rest")
    client = router.connect(PLAIN)
    sender = client.sender("x")
    hop, rest = client.receiver("hop", credit=10), client.receiver("rest", credit=10)
    assert client.receiver("other", credit=10).error is not None
    for subject in ("a", "b"):
        sender.send(compose(subject.encode(), subject=subject))
    router.pump()
    assert bodies(hop, rest) == [[b"a"], [b"b"]]


def test_a_next_hop_inside_the_router_gets_the_number_of_the_sending_connection() -> None:
    room = Room([("#", "desk")])
    inside = Inside()
    room.router.core.inside.subscribe("desk", inside)
    (sent,) = room.send(room.client.sender("x"), "s")
    assert [each.origin for each in inside.got] == [1]
    assert sent.outcome == Accepted()


def test_a_local_next_hop_may_be_a_dynamic_address() -> None:
    room = Room()
    mine = room.client.receiver(dynamic=True, credit=10)
    room.exchange.bind(BindingRule("#", mine.address))
    room.send(room.client.sender("x"), "s")
    assert mine.bodies == [b"0"]


def test_an_exchange_may_be_the_next_hop_of_another_and_no_message_goes_round() -> None:
    room = Room([("#", "y"), ("#", "x"), ("a", "hop")])
    other, bindings = exchange(room.router.core, [("#", "x"), ("#", "hop")], name="o", address="y")
    hop, own = room.receiver("hop"), room.receiver("y")
    (sent,) = room.send(room.client.sender("x"), "a")
    assert (len(hop.received), len(own.received)) == (2, 1)
    assert sent.outcome == Accepted()
    assert room.counts == (1, 1, 0, 0)
    assert (other.received, other.forwarded, [each.matched for each in bindings]) == (1, 1, [1, 1])


def test_a_chain_of_exchanges_has_an_end() -> None:
    router = MemoryRouter(RULES)
    chain = [
        exchange(router.core, [("#", f"x{number + 1}")], name=f"e{number}", address=f"x{number}")[0]
        for number in range(MAX_EXCHANGES + 3)
    ]
    client = router.connect()
    sent = client.sender("x0").send(compose(b"x", subject="s"))
    router.pump()
    assert [each.received for each in chain] == [1] * MAX_EXCHANGES + [0] * 3
    assert sent.outcome == Released()
    sent = client.sender("x3").send(compose(b"x", subject="s"))
    reached = client.receiver("x8", credit=1)
    sent = client.sender("x3").send(compose(b"x", subject="s"))
    router.pump()
    assert (len(reached.received), sent.outcome) == (1, Accepted())


def test_two_exchanges_at_one_address_both_take_its_messages_and_go_in_any_order() -> None:
    for first_goes_first in (True, False):
        room = Room([("#", "hop")])
        second, _ = exchange(room.router.core, [("#", "more")], name="f", address="x.")
        hop, more, own = room.receiver("hop"), room.receiver("more"), room.receiver("x")
        room.send(room.client.sender("x"), "s")
        assert bodies(hop, more, own) == [[b"0"]] * 3
        pair = (room.exchange, second) if first_goes_first else (second, room.exchange)
        for each in pair:
            room.router.core.exchanges.remove(each)
        room.send(room.client.sender("x"), "s")
        assert bodies(hop, more, own) == [[b"0"], [b"0"], [b"0", b"0"]]


# --- the form of messages


def test_a_copy_for_a_next_hop_sets_out_anew() -> None:
    room = Room([("#", "hop", 2)], terms=MARKED)
    hop, own = room.receiver("hop", capabilities=("qd.waypoint.3",)), room.receiver("x")
    came = {"mine": 1, "x-opt-qd.trace": ["0/R9"], "x-opt-qd.ingress": "0/R9"}
    room.client.sender("x").send(compose(b"x", subject="s", priority=7, annotations=came))
    room.router.pump()
    assert own.received[0].annotations == {
        "mine": 1,
        "x-opt-qd.to": "x",
        "x-opt-qd.ingress": "0/R9",
        "x-opt-qd.trace": ["0/R9", "0/R1"],
    }
    assert hop.received[0].annotations == {
        "mine": 1,
        "x-opt-qd.phase": 2,
        "x-opt-qd.to": "hop",
        "x-opt-qd.ingress": "0/R1",
        "x-opt-qd.trace": ["0/R1"],
    }
    assert hop.received[0].body == own.received[0].body == b"x"


@pytest.mark.parametrize("annotations", [None, {"mine": 1}, {"x-opt-qd.to": "y"}])
def test_clients_see_no_routers_annotations(annotations: dict[str, object] | None) -> None:
    room = Room([("#", "hop"), ("#", "many.hop")])
    receivers = [room.receiver(address) for address in ("x", "hop", "many.hop", "many.hop")]
    message = compose(b"x" * 100, subject="s", annotations=annotations)
    room.client.sender("x").send(message)
    room.router.pump()
    for each in receivers:
        left = None if annotations is None else {key: value for key, value in annotations.items() if key == "mine"}
        assert (each.received[0].annotations or None) == (left or None)
        assert each.bodies == [b"x" * 100]


def test_a_long_first_piece_is_kept_once() -> None:
    room = Room([("#", f"hop{number}") for number in range(8)], terms=MARKED)
    slow = [room.receiver(f"hop{number}", credit=0) for number in range(8)]
    size = 30_000
    room.client.sender("x").send(compose(b"x" * size, subject="s"))
    room.router.pump()
    assert size < room.router.held_bytes() < size + 8 * 1024
    for number, each in enumerate(slow):
        each.grant(1)
        room.router.pump()
        assert each.bodies == [b"x" * size]
        assert each.received[0].annotations is not None
        assert each.received[0].annotations["x-opt-qd.to"] == f"hop{number}"
    assert room.router.held_bytes() == 0


# --- long messages


def test_a_long_message_streams_to_all_and_is_settled_at_its_end() -> None:
    room = Room([("#", "hop"), ("s", "many.hop")], terms=MARKED)
    receivers = [room.receiver(address) for address in ("x", "hop", "many.hop", "many.hop")]
    whole = compose(b"y" * 600_000, subject="s", priority=3)
    sent = room.client.sender("x").begin(whole[:200_000])
    room.router.pump()
    assert [len(each.received) for each in receivers] == [1] * 4
    assert not any(each.received[0].complete for each in receivers)
    assert sent.history == []
    for start in range(200_000, 500_000, 50_000):
        sent.more(whole[start : start + 50_000])
        room.router.pump()
        assert room.router.held_bytes() < 100_000
    sent.finish(whole[500_000:])
    room.router.pump()
    assert [each.bodies for each in receivers] == [[b"y" * 600_000]] * 4
    assert sent.history == [(Accepted(), True)]
    targets = [each.received[0].annotations["x-opt-qd.to"] for each in receivers]
    assert targets == ["x", "hop", "many.hop", "many.hop"]
    assert room.router.held_bytes() == 0
    assert room.counts == (1, 1, 0, 0)


def test_a_message_waits_for_its_subject() -> None:
    """However the bytes arrive, no part is forwarded before the subject is known."""
    room = Room([("s", "hop")], alternate="other")
    hop, other = room.receiver("hop"), room.receiver("other")
    whole = compose(b"y", subject="s", annotations={"mine": "a" * 300}, priority=3)
    sent = room.client.sender("x").begin(whole[:1])
    for byte in whole[1:-1]:
        sent.more(bytes((byte,)))
        room.router.pump()
    sent.finish(whole[-1:])
    room.router.pump()
    assert bodies(hop, other) == [[b"y"], []]
    assert sent.outcome == Accepted()


def test_a_subject_behind_much_else_is_found() -> None:
    room = Room([("s", "hop")], alternate="other")
    hop, other = room.receiver("hop"), room.receiver("other")
    whole = compose(b"y" * 300_000, to="t" * 200_000, subject="s")
    sent = room.client.sender("x").begin(whole[:150_000])
    room.router.pump()
    assert (hop.received, other.received) == ([], [])
    sent.finish(whole[150_000:])
    room.router.pump()
    assert bodies(hop, other) == [[b"y" * 300_000], []]


def test_a_long_message_without_a_receiver_is_released_at_its_end() -> None:
    room = Room([("a", "hop")])
    whole = compose(b"y" * 400_000, subject="s")
    sender = room.client.sender("x")
    sent = sender.begin(whole[:200_000])
    room.router.pump()
    assert room.router.held_bytes() == 0
    sent.finish(whole[200_000:])
    room.router.pump()
    assert sent.history[-1] == (Released(), True)
    assert room.counts == (1, 0, 0, 1)


def test_a_long_message_for_a_receiver_inside_is_gathered_and_bounded() -> None:
    room = Room([("s", "desk")])
    inside = Inside()
    room.router.core.inside.subscribe("desk", inside)
    sender = room.client.sender("x")
    for size in (500_000, 2 * MAX_INSIDE_BYTES):
        whole = compose(b"y" * size, subject="s")
        sent = sender.begin(whole[:300_000])
        for start in range(300_000, len(whole), 100_000):
            sent.more(whole[start : start + 100_000])
            room.router.pump()
        sent.finish()
        room.router.pump()
    assert [len(each.message) > 500_000 for each in inside.got] == [True]
    assert isinstance(sent.outcome, Rejected)
    assert room.router.held_bytes() == 0


def test_a_next_hop_without_credit_stops_no_sender_and_grows_no_memory() -> None:
    room = Room([("#", "slow"), ("#", "quick"), ("#", "many.hop")], limits=small_window(64))
    slow = room.receiver("slow", credit=0)
    quick, many = room.receiver("quick"), room.receiver("many.hop")
    sender = room.client.sender("x")
    whole = compose(b"y" * 10_000, subject="s")
    for _ in range(300):
        sent = sender.send(whole)
        room.router.pump()
        assert sent.outcome == Accepted()
        assert room.router.held_bytes() < 64 * 16384 * 6 // 10
    assert (len(quick.bodies), len(many.bodies), len(slow.bodies)) == (300, 300, 0)
    slow.grant(1000)
    room.router.pump()
    assert 10 < len(slow.bodies) < 100
    (outgoing,) = [each for each in room.router.core.outgoing_endpoints() if each.entry and each.entry.text == "slow"]
    assert outgoing.counters.dropped_presettled == 300 - len(slow.bodies)
    assert room.router.held_bytes() == 0
    sender.send(whole)
    room.router.pump()
    assert len(slow.bodies) + outgoing.counters.dropped_presettled == 301


def test_a_next_hop_without_credit_does_not_stop_a_long_message() -> None:
    room = Room([("#", "slow"), ("#", "quick")], limits=small_window(64))
    slow, quick = room.receiver("slow", credit=0), room.receiver("quick")
    whole = compose(b"y" * 4_000_000, subject="s")
    sender = room.client.sender("x")
    sent = sender.begin(whole[:100_000])
    for start in range(100_000, len(whole), 100_000):
        sent.more(whole[start : start + 100_000])
        room.router.pump()
        assert room.router.held_bytes() <= 64 * 16384
    sent.finish()
    room.router.pump()
    assert (len(quick.bodies), sent.outcome) == (1, Accepted())
    slow.grant(10)
    room.router.pump()
    assert slow.received == []
    room.send(sender, "s")
    assert slow.bodies == [b"0"]
    assert room.router.held_bytes() == 0


def test_a_long_message_waits_for_its_only_next_hop() -> None:
    room = Room([("#", "slow")], limits=small_window(64))
    slow = room.receiver("slow", credit=0)
    whole = compose(b"y" * 4_000_000, subject="s")
    sent = room.client.sender("x").send(whole)
    room.router.pump()
    assert sent.history == []
    slow.grant(1)
    room.router.pump()
    assert (slow.bodies, sent.outcome) == ([b"y" * 4_000_000], Accepted())


def test_a_receiver_that_stops_within_a_long_message_is_cut_off_when_others_have_waited() -> None:
    room = Room([("#", "stopped"), ("#", "quick")], limits=small_window(64))
    deaf = room.router.connect(PLAIN)
    stopped, quick = room.receiver("stopped", client=deaf), room.receiver("quick")
    whole = compose(b"y" * 6_000_000, subject="s")
    sent = room.client.sender("x").begin(whole[:100_000])
    room.router.pump()
    reads, deaf.read = deaf.read, lambda: False  # type: ignore[method-assign]
    sent.finish(whole[100_000:])
    room.router.pump()
    assert sent.history == []
    held_up = len(quick.received[0].payload)
    for now_s in range(int(STALLED_S)):
        room.router.core.watch_links(float(now_s))
    room.router.pump()
    assert len(quick.received[0].payload) == held_up
    room.router.core.watch_links(STALLED_S)
    room.router.pump()
    assert (len(quick.bodies), sent.outcome) == (1, Accepted())
    assert room.router.held_bytes() == 0
    deaf.read = reads  # type: ignore[method-assign]
    room.router.pump()
    assert stopped.received[0].aborted
    room.send(room.client.sender("x"), "s")
    assert stopped.bodies == [b"0"]
    room.router.core.watch_links(STALLED_S + 1)
    assert not room.router.core.exchanges.stalls._under_way


def test_a_receiver_that_is_slow_but_moves_is_waited_for() -> None:
    room = Room([("#", "slow"), ("#", "quick")], limits=small_window(64))
    late = room.router.connect(PLAIN)
    slow, quick = room.receiver("slow", client=late), room.receiver("quick")
    whole = compose(b"y" * 6_000_000, subject="s")
    reads, late.read = late.read, lambda: False  # type: ignore[method-assign]
    sent = room.client.sender("x").send(whole)
    room.router.pump()
    now_s = 0.0
    while sent.history == []:
        now_s += STALLED_S * 0.9
        reads()
        late.write()
        room.router.pump()
        room.router.core.watch_links(now_s)
        assert now_s < 100 * STALLED_S
    late.read = reads  # type: ignore[method-assign]
    room.router.pump()
    assert (len(slow.bodies), len(quick.bodies)) == (1, 1)


@pytest.mark.parametrize("how", ["abort", "detach", "end", "drop"])
def test_a_message_that_breaks_off_is_taken_back_everywhere(how: str) -> None:
    room = Room([("#", "hop"), ("#", "many.hop")])
    other = room.router.connect(PLAIN)
    receivers = [room.receiver(address, client=other) for address in ("x", "hop", "many.hop")]
    idle = room.receiver("many.hop", credit=0, client=other)
    sender = room.client.sender("x")
    sent = sender.begin(compose(b"y" * 400_000, subject="s")[:300_000])
    room.router.pump()
    leave(how, sender, sent)
    assert [each.received[0].aborted for each in receivers] == [True] * 3
    assert idle.received == []
    assert room.router.held_bytes() == 0
    after = room.router.connect(PLAIN).sender("x").send(compose(b"z", subject="s"))
    idle.grant(1)
    room.router.pump()
    assert [each.bodies for each in (*receivers, idle)] == [[b"z"]] * 4
    assert after.outcome == Accepted()


@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_receiver_that_leaves_takes_nothing_from_the_others(which: int) -> None:
    room = Room([("#", "hop"), ("#", "many.hop")])
    receivers = [room.receiver(address, client=room.router.connect(PLAIN)) for address in ("x", "hop", "many.hop")]
    whole = compose(b"y" * 400_000, subject="s")
    sent = room.client.sender("x").begin(whole[:200_000])
    room.router.pump()
    receivers[which].client.drop()
    sent.finish(whole[200_000:])
    room.router.pump()
    assert [len(each.bodies) for each in receivers] == [int(number != which) for number in range(3)]
    assert (sent.outcome, room.router.held_bytes()) == (Accepted(), 0)


# --- networks


def joined_exchange(
    where: str, bindings: Sequence[tuple[str, str] | tuple[str, str, int]], names: str = "ABC", **fields: Any
) -> tuple[Joined, Exchange]:
    joined = Joined(dict.fromkeys(pairwise(names), 1), RULES)
    made, _ = exchange(joined[where].core, bindings, **fields)
    joined.pump()
    return joined, made


@pytest.mark.parametrize("sender_at", ["A", "B", "C"])
@pytest.mark.parametrize("hop", ["hop", "many.hop", "near.hop"])
def test_an_exchange_and_its_next_hops_may_be_on_any_router(sender_at: str, hop: str) -> None:
    joined, made = joined_exchange("B", [("a.*", hop)])
    receivers = [joined[name].connect().receiver(hop, credit=10) for name in "AC"]
    joined.pump()
    sender = joined[sender_at].connect().sender("x")
    assert sender.credit == 250
    sent = [sender.send(compose(b"%d" % number, subject=subject)) for number, subject in enumerate(["a.b", "b"])]
    joined.pump()
    assert [each.outcome for each in sent] == [Accepted(), Released()]
    assert sum(len(each.received) for each in receivers) == (2 if hop == "many.hop" else 1)
    assert (made.received, made.forwarded, made.dropped) == (2, 1, 1)


def test_a_next_hop_on_the_sending_router_gets_the_message() -> None:
    joined, _ = joined_exchange("B", [("#", "hop")], "AB")
    hop = joined["A"].connect(MARKED).receiver("hop", credit=10)
    joined["A"].connect().sender("x").send(compose(b"x", subject="s"))
    joined.pump()
    assert hop.bodies == [b"x"]
    assert hop.received[0].annotations == {
        "x-opt-qd.to": "hop",
        "x-opt-qd.ingress": "0/B",
        "x-opt-qd.trace": ["0/B", "0/A"],
    }


def test_a_phase_goes_with_a_message_to_another_router() -> None:
    joined, _ = joined_exchange("A", [("#", "hop", 3)], "AB", alternate="other", alternate_phase=2)
    hop = joined["B"].connect().receiver("hop", credit=10, capabilities=("qd.waypoint.4",))
    other = joined["B"].connect().receiver("other", credit=10, capabilities=("qd.waypoint.3",))
    joined.pump()
    sender = joined["A"].connect().sender("x")
    for subject in ("s", None):
        sender.send(compose(b"x", subject=subject))
    joined.pump()
    assert bodies(hop, other) == [[b"x"], [b"x"]]


def test_a_router_can_be_a_next_hop_by_name() -> None:
    joined, _ = joined_exchange("A", [], "AB")
    mine = joined["B"].connect().receiver(dynamic=True, credit=10)
    exchange(joined["A"].core, [("#", mine.address)], name="f", address="y")
    joined.pump()
    joined["A"].connect().sender("y").send(compose(b"x", subject="s"))
    joined.pump()
    assert mine.bodies == [b"x"]


def test_others_forget_an_exchange_that_is_deleted_and_not_its_consumers() -> None:
    joined, made = joined_exchange("B", [("#", "hop")], "AB")
    assert joined["A"].core.table.entries["M0x"].count_destinations() == 1
    own = joined["B"].connect().receiver("x", credit=10)
    joined["B"].core.exchanges.remove(made)
    joined.pump()
    assert joined["A"].core.table.entries["M0x"].count_destinations() == 1
    joined["A"].connect().sender("x").send(compose(b"x"))
    joined.pump()
    assert own.bodies == [b"x"]
    own.received[0].settle()
    own.detach()
    joined.pump()
    record = joined["A"].core.table.entries.get("M0x")
    assert record is None or record.count_destinations() == 0


def test_a_long_message_streams_through_an_exchange_to_other_routers() -> None:
    joined, _ = joined_exchange("B", [("#", "hop"), ("#", "many.hop")])
    receivers = [joined[name].connect().receiver("many.hop", credit=10) for name in "ABC"]
    receivers.append(joined["C"].connect().receiver("hop", credit=10))
    joined.pump()
    whole = compose(b"y" * 900_000, subject="s")
    sent = joined["A"].connect().sender("x").begin(whole[:300_000])
    joined.pump()
    assert [len(each.received) for each in receivers] == [1] * 4
    for start in range(300_000, 900_000, 100_000):
        sent.more(whole[start : start + 100_000])
        joined.pump()
        assert joined.held_bytes() < 400_000
    sent.finish(whole[900_000:])
    joined.pump()
    assert [each.bodies for each in receivers] == [[b"y" * 900_000]] * 4
    assert sent.outcome == Accepted()
    assert joined.held_bytes() == 0
    quick = joined["A"].connect().sender("x").begin(whole[:300_000])
    joined.pump()
    quick.abort()
    joined.pump()
    assert [each.received[1].aborted for each in receivers] == [True] * 4
    assert joined.held_bytes() == 0
