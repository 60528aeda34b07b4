"""The parts of a message that the router reads, and the form that it sends: routing.md section 4."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from trouter.core.table import AddressRule
from trouter.core.terms import PeerTerms
from trouter.testing import MemoryClient, MemoryReceiver, MemoryRouter, MemorySender, compose
from trouter.wire.codec import encode
from trouter.wire.performatives import (
    Accepted,
    Declared,
    Error,
    Modified,
    Received,
    Rejected,
    Released,
    TransactionalState,
    Transfer,
)
from trouter.wire.types import Described, Symbol, UInt, ULong

RULES = (
    AddressRule("multicast", is_prefix=True, distribution="multicast"),
    AddressRule("closed", is_prefix=True, distribution="unavailable"),
)
KEEP = PeerTerms(strip_in=False, strip_out=False)
INVALID = Rejected(Error("amqp:decode-error", "invalid message format"))


class Pair:
    """A sender and a receiver on ``address``, each on its own connection."""

    def __init__(
        self, sending: PeerTerms | None = None, receiving: PeerTerms | None = None, *, target: str | None = "x"
    ) -> None:
        self.router = MemoryRouter(RULES)
        self.sending: MemoryClient = self.router.connect(sending)
        self.receiving: MemoryClient = self.router.connect(receiving)
        self.receiver: MemoryReceiver = self.receiving.receiver(target or "x", credit=1000)
        self.sender: MemorySender = self.sending.sender(target)

    def outcome(self, message: bytes, **how: bool) -> object:
        """Return the sender's outcome at once."""
        sent = self.sender.send(message, **how)
        self.router.pump()
        return sent.outcome

    def passes(self, message: bytes) -> bytes:
        """Return the message as the receiver gets it."""
        assert self.outcome(message) is None
        return self.receiver.received[-1].payload

    def annotations(self, **annotations: object) -> dict[object, object] | None:
        """Return the annotations of a message with ``annotations`` at the receiver ('_' stands for '.' and '-')."""
        self.passes(compose(b"x", annotations={keyed(name): value for name, value in annotations.items()}))
        return self.receiver.received[-1].annotations


def keyed(name: str) -> str:
    """Return x-opt-qd.to for x_opt_qd_to; user keys stay."""
    return "x-opt-qd." + name[3:] if name.startswith("qd_") else name


def section(code: int, value: object) -> bytes:
    return encode(Described(ULong(code), value))


def expected(user: dict[str, object] | None = None, **router: object) -> dict[object, object]:
    """Return annotations by full name, users' first."""
    every: dict[str, object] = {**(user or {}), **{keyed(name): value for name, value in router.items()}}
    return {Symbol(name): value for name, value in every.items()}


# --- 4.1

SECTIONS = (
    section(0x70, [True, None]),
    section(0x71, {Symbol("d"): 1}),
    section(0x72, {Symbol("m"): 1}),
    section(0x73, ["id", b"user", "x"]),
    section(0x74, {"a": 1}),
    section(0x75, b"body"),
    section(0x78, {Symbol("f"): 1}),
)


@pytest.mark.parametrize("chosen", range(1, 1 << len(SECTIONS)))
def test_any_of_the_sections_may_be_absent(chosen: int) -> None:
    pair = Pair()
    message = b"".join(part for number, part in enumerate(SECTIONS) if chosen >> number & 1)
    assert pair.passes(message) == message


@pytest.mark.parametrize(("first", "second"), [(1, 0), (2, 0), (2, 1), (0, 0), (2, 2)])
def test_sections_out_of_order_are_refused(first: int, second: int) -> None:
    assert Pair(target=None).outcome(SECTIONS[first] + SECTIONS[second] + SECTIONS[5]) == INVALID


def test_sections_behind_the_annotations_are_not_read_on_a_targeted_link() -> None:
    pair = Pair()
    for message in (b"garbage", SECTIONS[0] + b"\xff" * 20, SECTIONS[2] + b"\0\x53\x73\xc0\x05"):
        assert pair.passes(message) == message


def test_an_anonymous_link_reads_the_properties() -> None:
    pair = Pair(target=None)
    assert pair.outcome(b"\0\x53\x73\xc0\x05") == INVALID
    assert pair.outcome(section(0x73, ["id", b"user", 17])) == INVALID
    assert pair.outcome(section(0x73, [None, None])) == Rejected(
        Error("amqp:precondition-failed", "Routing failure: no address present")
    )


@pytest.mark.parametrize("target", ["x", None])
def test_a_message_of_no_bytes_is_invalid(target: str | None) -> None:
    assert Pair(target=target).outcome(b"") == INVALID


@pytest.mark.parametrize("cut", range(1, len(SECTIONS[0] + SECTIONS[1] + SECTIONS[2])))
def test_a_truncated_head_is_invalid(cut: int) -> None:
    head = SECTIONS[0] + SECTIONS[1] + SECTIONS[2]
    edges = {len(SECTIONS[0]), len(SECTIONS[0] + SECTIONS[1])}
    assert Pair().outcome(head[:cut]) == (None if cut in edges else INVALID)


@pytest.mark.parametrize("head", [section(0x70, {}), section(0x72, []), section(0x71, "text")])
def test_header_needs_a_list_and_annotations_a_map(head: bytes) -> None:
    assert Pair().outcome(head + SECTIONS[5]) in (INVALID, Rejected(Error("amqp:invalid-field", "")))


def test_the_head_may_come_byte_by_byte() -> None:
    pair = Pair(KEEP, KEEP)
    message = b"".join(SECTIONS)
    sent = pair.sender.begin()
    for byte in range(len(message)):
        sent.more(message[byte : byte + 1])
        pair.router.pump()
        assert not pair.receiver.received
    sent.finish()
    pair.router.pump()
    assert pair.receiver.received[0].payload.endswith(b"".join(SECTIONS[3:]))


# --- 4.2


@pytest.mark.parametrize("settled", [False, True])
def test_an_invalid_message_is_rejected_and_paid_back(settled: bool) -> None:
    pair = Pair()
    for _ in range(300):
        sent = pair.sender.send(SECTIONS[1] + SECTIONS[0], settled=settled)
        pair.router.pump()
        assert sent.history == ([] if settled else [(INVALID, True)])
    assert pair.router.core.shared.totals.rejected == (0 if settled else 300)
    assert pair.router.core.shared.totals.dropped_presettled == (300 if settled else 0)


@pytest.mark.parametrize(
    ("name", "bad", "text"),
    [
        ("x-opt-qd.to", 17, "to-override not a valid string type"),
        ("x-opt-qd.trace", "0/R2", "trace annotation is not a list"),
        ("x-opt-qd.trace", [17], "trace list contains non-string entries"),
        ("x-opt-qd.ingress", ["0/R2"], "ingress router not a string type"),
    ],
)
def test_router_annotations_of_a_wrong_type_are_rejected(name: str, bad: object, text: str) -> None:
    message = compose(b"x", annotations={name: bad})
    assert Pair(KEEP).outcome(message) == Rejected(Error("amqp:invalid-field", text))
    assert Pair().outcome(message) is None


def test_an_odd_map_is_rejected() -> None:
    odd = b"\0\x53\x72\xc1\x04\x03\x40\x40\x40"
    rejection = Rejected(Error("amqp:invalid-field", "Odd Number of Elements in a Map"))
    assert Pair(KEEP).outcome(odd + SECTIONS[5]) == rejection
    assert Pair().outcome(odd + SECTIONS[5]) == rejection


def test_no_address_and_an_unavailable_one() -> None:
    pair = Pair(target=None)
    assert pair.outcome(compose(b"x")) == Rejected(
        Error("amqp:precondition-failed", "Routing failure: no address present")
    )
    assert pair.outcome(compose(b"x", to="closed.x")) == Rejected(
        Error("amqp:not-found", "Deliveries cannot be sent to an unavailable address")
    )


# --- 4.3


def test_a_targeted_message_gets_to_ingress_and_trace() -> None:
    pair = Pair(receiving=KEEP)
    pair.passes(compose(b"x"))
    annotations = pair.receiver.received[-1].annotations
    assert annotations is not None
    assert list(annotations.items()) == list(expected(qd_to="x", qd_ingress="0/R1", qd_trace=["0/R1"]).items())


def test_the_annotation_to_has_the_target_as_the_client_wrote_it() -> None:
    pair = Pair(receiving=KEEP, target="amqp://host/x.")
    assert pair.annotations(k=1) == expected({"k": 1}, qd_to="amqp://host/x.", qd_ingress="0/R1", qd_trace=["0/R1"])


def test_an_anonymous_message_gets_ingress_and_trace() -> None:
    pair = Pair(receiving=KEEP, target=None)
    pair.passes(compose(b"x", to="x"))
    assert pair.receiver.received[-1].annotations == expected(qd_ingress="0/R1", qd_trace=["0/R1"])


def test_ingress_is_kept_and_trace_appended_to() -> None:
    pair = Pair(KEEP, KEEP)
    found = pair.annotations(qd_ingress="0/R0", qd_trace=["0/R0"])
    assert found == expected(qd_to="x", qd_ingress="0/R0", qd_trace=["0/R0", "0/R1"])


def test_a_phase_other_than_0_is_written_and_the_stream_mark_is_passed_on() -> None:
    pair = Pair(KEEP, KEEP)
    found = pair.annotations(qd_phase=3, qd_stream=1)
    assert found == expected(qd_phase=3, qd_stream=1, qd_to="x", qd_ingress="0/R1", qd_trace=["0/R1"])
    assert pair.annotations(qd_phase=0, qd_stream=0) == expected(qd_to="x", qd_ingress="0/R1", qd_trace=["0/R1"])


def test_users_annotations_come_first_and_unchanged_wherever_they_stood() -> None:
    pair = Pair(KEEP, KEEP)
    found = pair.annotations(a=1, qd_ingress="0/R0", b={"deep": [1, 2]}, qd_trace=["0/R0"], c="last")
    assert found is not None
    wanted = expected(
        {"a": 1, "b": {"deep": [1, 2]}, "c": "last"}, qd_to="x", qd_ingress="0/R0", qd_trace=["0/R0", "0/R1"]
    )
    assert list(found.items()) == list(wanted.items())


def test_the_class_key_and_the_bare_prefix_are_swallowed() -> None:
    message = compose(b"x", annotations={"x-opt-qd.class": 1, "x-opt-qd.": 2, "mine": 3})
    for receiving, wanted in (
        (KEEP, expected({"mine": 3}, qd_to="x", qd_ingress="0/R1", qd_trace=["0/R1"])),
        (None, expected({"mine": 3})),
    ):
        pair = Pair(KEEP, receiving)
        pair.passes(message)
        assert pair.receiver.received[-1].annotations == wanted


MODES = {
    "no": PeerTerms(strip_in=False, strip_out=False),
    "in": PeerTerms(strip_in=True, strip_out=False),
    "out": PeerTerms(strip_in=False, strip_out=True),
    "both": PeerTerms(strip_in=True, strip_out=True),
}


@pytest.mark.parametrize("sending", MODES)
@pytest.mark.parametrize("receiving", MODES)
@pytest.mark.parametrize("user", [{}, {"mine": 1}])
@pytest.mark.parametrize("router", [{}, {"qd_ingress": "0/R0", "qd_trace": ["0/R0"]}])
def test_every_way_to_strip(sending: str, receiving: str, user: dict[str, object], router: dict[str, object]) -> None:
    pair = Pair(MODES[sending], MODES[receiving])
    if user or router:
        found = pair.annotations(**user, **router)
    else:
        pair.passes(compose(b"x"))
        found = pair.receiver.received[-1].annotations
    if receiving in ("out", "both"):
        assert found == (expected(user) if user else None)
    elif router and sending in ("no", "out"):
        assert found == expected(user, qd_to="x", qd_ingress="0/R0", qd_trace=["0/R0", "0/R1"])
    else:
        assert found == expected(user, qd_to="x", qd_ingress="0/R1", qd_trace=["0/R1"])


def test_a_to_annotation_routes_an_anonymous_message_where_the_router_honours_annotations() -> None:
    message = compose(b"x", to="elsewhere", annotations={"x-opt-qd.to": "x"})
    pair = Pair(KEEP, KEEP, target=None)
    pair.passes(message)
    assert pair.receiver.received[-1].annotations == expected(qd_to="x", qd_ingress="0/R1", qd_trace=["0/R1"])
    assert Pair(target=None).outcome(message) == Released()


def test_a_to_override_brings_its_phase() -> None:
    pair = Pair(KEEP, KEEP, target=None)
    ahead = pair.receiving.receiver("x", capabilities=("qd.waypoint.5",), credit=5)
    sent = pair.sender.send(compose(b"x", annotations={"x-opt-qd.to": "x", "x-opt-qd.phase": 4}))
    pair.router.pump()
    assert sent.outcome is None
    assert (len(pair.receiver.received), len(ahead.received)) == (0, 1)


def test_the_property_to_is_ignored_on_a_targeted_link_and_passed_unchanged() -> None:
    pair = Pair()
    message = compose(b"x", to="elsewhere")
    assert pair.passes(message) == message


def test_delivery_annotations_and_the_bare_message_keep_their_bytes() -> None:
    message = b"".join(SECTIONS)
    pair = Pair(KEEP, KEEP)
    got = pair.passes(message)
    assert got.startswith(SECTIONS[0] + SECTIONS[1])
    assert got.endswith(b"".join(SECTIONS[3:]))


@pytest.mark.parametrize("message_format", [0, 1, 0x80013700, 0xFFFFFFFF])
def test_the_message_format_is_passed_on(message_format: int) -> None:
    pair = Pair()
    pair.sender.send(compose(b"x"), message_format=message_format)
    pair.router.pump()
    assert pair.receiver.received[0].delivery.message_format == message_format


def test_a_multicast_writes_each_receiver_its_own_head() -> None:
    router = MemoryRouter(RULES)
    plain, annotated = (router.connect(terms).receiver("multicast", credit=9) for terms in (None, KEEP))
    sender = router.connect(KEEP).sender("multicast")
    for size in (10, 300_000):
        sender.send(compose(bytes(size), annotations={"mine": 1, "x-opt-qd.ingress": "0/R0"}))
        router.pump()
        assert plain.received[-1].annotations == expected({"mine": 1})
        assert annotated.received[-1].annotations == expected(
            {"mine": 1}, qd_to="multicast", qd_ingress="0/R0", qd_trace=["0/R1"]
        )
        assert plain.received[-1].body == annotated.received[-1].body == bytes(size)


# --- 4.4


@pytest.mark.parametrize("sizes", [[1, 1, 1], [100, 20_000, 1], [140_000, 1], [40_000] * 10])
@pytest.mark.parametrize("terms", [None, KEEP])
def test_a_body_in_many_frames_arrives_byte_for_byte(sizes: Iterable[int], terms: PeerTerms | None) -> None:
    pair = Pair(terms, terms)
    body = b"".join(bytes([size & 0xFF]) * size for size in sizes)
    message = compose(body)
    sent = pair.sender.begin()
    for start in range(0, len(message), 7001):
        sent.more(message[start : start + 7001])
        pair.router.pump()
    sent.finish()
    pair.router.pump()
    assert pair.receiver.received[0].body == body
    assert pair.router.held_bytes() == 0


def test_an_abort_before_forwarding_is_forgotten() -> None:
    pair = Pair()
    for _ in range(600):
        sent = pair.sender.send(compose(bytes(1000)), frames=3, abort=True)
        pair.router.pump()
        assert sent.history == []
    assert pair.receiver.received == []
    (incoming,) = pair.router.core.incoming_endpoints()
    assert incoming.unsettled == 0
    assert pair.router.held_bytes() == 0


def test_aborting_an_unsent_delivery_changes_nothing() -> None:
    pair = Pair()
    for settled in (False, True):
        pair.sender.begin(settled=settled).abort()
        pair.router.pump()
    (incoming,) = pair.router.core.incoming_endpoints()
    assert incoming.unsettled == 0
    assert pair.receiver.received == []


@pytest.mark.parametrize("settled", [False, True])
def test_an_abort_after_part_was_sent_reaches_the_receiver(settled: bool) -> None:
    pair = Pair()
    sent = pair.sender.send(compose(bytes(300_000)), frames=10, abort=True, settled=settled)
    pair.router.pump()
    (message,) = pair.receiver.received
    assert message.aborted
    assert sent.history == []
    (incoming,) = pair.router.core.incoming_endpoints()
    (outgoing,) = pair.router.core.outgoing_endpoints()
    assert (incoming.unsettled, outgoing.unsettled, outgoing.backlog) == (0, 0, 0)
    assert pair.outcome(compose(b"next")) is None
    assert pair.receiver.bodies == [b"next"]


@pytest.mark.parametrize("size", [1000, 300_000])
def test_the_settled_flag_may_come_on_the_last_frame(size: int) -> None:
    pair = Pair()
    sent = pair.sender.begin(compose(bytes(size))[:500])
    pair.router.pump()
    sent.more(compose(bytes(size))[500:])
    pair.router.pump()
    # trouter's own engine never changes this on a later frame
    pair.sending.session.write(Transfer(handle=pair.sender.link.handle, settled=True))
    pair.router.pump()
    assert pair.receiver.received[0].complete
    assert sent.history == []
    (incoming,) = pair.router.core.incoming_endpoints()
    assert incoming.unsettled == 0
    assert pair.receiver.received[0].settled or pair.receiver.received[0].history == [(None, True)]


@pytest.mark.parametrize("outcome", [Accepted(), Released(), Rejected(Error("a:b", "c")), Modified(True)])
@pytest.mark.parametrize("settled", [False, True])
def test_an_outcome_before_the_end_is_reported_at_once_and_settled_at_the_end(outcome: object, settled: bool) -> None:
    pair = Pair()
    sent = pair.sender.begin(compose(bytes(300_000)))
    pair.router.pump()
    pair.receiver.received[0].settle(outcome, settled)
    pair.router.pump()
    assert sent.history == [(outcome, False)]
    assert pair.receiver.received[0].aborted
    sent.more(bytes(500_000))
    pair.router.pump()
    assert pair.router.held_bytes() == 0
    sent.finish(b"end")
    pair.router.pump()
    assert sent.history == [(outcome, False), (outcome, True)]
    (incoming,) = pair.router.core.incoming_endpoints()
    assert incoming.unsettled == 0
    assert pair.outcome(compose(b"next")) is None
    assert pair.receiver.bodies == [b"next"]


def test_a_settlement_without_a_state_before_the_end_is_remembered() -> None:
    pair = Pair()
    sent = pair.sender.begin(compose(bytes(300_000)))
    pair.router.pump()
    pair.receiver.received[0].settle(None)
    pair.router.pump()
    assert sent.history == []
    sent.finish(b"end")
    pair.router.pump()
    assert sent.history == [(None, True)]
    (incoming,) = pair.router.core.incoming_endpoints()
    assert incoming.unsettled == 0


def test_a_non_terminal_state_before_the_end_ends_nothing() -> None:
    pair = Pair()
    sent = pair.sender.begin(compose(bytes(300_000)))
    pair.router.pump()
    pair.receiver.received[0].settle(Received(1, 2), settled=False)
    pair.router.pump()
    assert sent.history == [(Received(1, 2), False)]
    sent.finish(b"end")
    pair.router.pump()
    pair.receiver.received[0].settle()
    pair.router.pump()
    assert sent.history == [(Received(1, 2), False), (Accepted(), True)]


def test_the_sender_may_settle_before_the_end() -> None:
    pair = Pair()
    sent = pair.sender.begin(compose(bytes(300_000)))
    pair.router.pump()
    sent.settle()
    pair.router.pump()
    sent.finish(b"end")
    pair.router.pump()
    assert pair.receiver.received[0].complete
    assert pair.receiver.received[0].history == [(None, True)]
    (incoming,) = pair.router.core.incoming_endpoints()
    (outgoing,) = pair.router.core.outgoing_endpoints()
    assert (incoming.unsettled, outgoing.unsettled) == (0, 0)


def test_whole_messages_have_one_outcome() -> None:
    pair = Pair()
    sent = [pair.sender.send(compose(bytes(50_000))) for _ in range(20)]
    pair.router.pump()
    pair.receiver.detach()
    assert [each.history for each in sent] == [[(Modified(delivery_failed=True), True)]] * 20


# --- 4.5

STATES = [
    Received(3, 17),
    Accepted(),
    Rejected(Error("a:b", "text", {Symbol("k"): 1})),
    Released(),
    Modified(True, False, {Symbol("k"): "v"}),
    Declared(b"txn"),
    TransactionalState(b"txn", Accepted()),
    Described(ULong(0x1234_5678), [1, "x"]),
    Described(Symbol("custom:state:list"), [1]),
]


@pytest.mark.parametrize("state", STATES, ids=lambda state: type(state).__name__)
@pytest.mark.parametrize("settled", [False, True])
def test_every_state_is_relayed_to_the_sender(state: object, settled: bool) -> None:
    pair = Pair()
    sent = pair.sender.send(compose(b"x"))
    pair.router.pump()
    pair.receiver.received[0].settle(raw(state), settled)
    pair.router.pump()
    assert sent.history == [(state, settled)]


@pytest.mark.parametrize("state", STATES, ids=lambda state: type(state).__name__)
@pytest.mark.parametrize("settled", [False, True])
def test_every_state_is_relayed_to_the_receiver(state: object, settled: bool) -> None:
    pair = Pair()
    sent = pair.sender.send(compose(b"x"))
    pair.router.pump()
    sent.settle(raw(state), settled)
    pair.router.pump()
    assert pair.receiver.received[0].history == [(state, settled)]


def raw(state: object) -> object:
    return encode(state) if isinstance(state, Described) else state


def test_non_terminal_states_repeat_and_a_terminal_one_is_final() -> None:
    pair = Pair()
    sent = pair.sender.send(compose(b"x"))
    pair.router.pump()
    message = pair.receiver.received[0]
    for state in (Received(1, 1), Received(1, 2), Accepted(), Released(), Received(1, 3)):
        message.settle(state, settled=False)
        pair.router.pump()
    message.settle(Rejected())
    pair.router.pump()
    assert sent.history == [
        (Received(1, 1), False),
        (Received(1, 2), False),
        (Accepted(), False),
        (Accepted(), True),
    ]
    assert pair.router.core.shared.totals.accepted == 1


def test_a_state_on_the_transfer_goes_with_the_transfer() -> None:
    pair = Pair()
    state = TransactionalState(b"txn")
    pair.sender.send(compose(bytes(300_000)), state=state)
    pair.router.pump()
    assert pair.receiver.received[0].transfer_state == state
    assert pair.receiver.received[0].body == bytes(300_000)


# --- 4.6


def test_a_presettled_delivery_is_presettled_end_to_end() -> None:
    pair = Pair()
    sent = [pair.sender.send(compose(b"%d" % number), settled=True, frames=2) for number in range(20)]
    pair.router.pump()
    assert [message.settled for message in pair.receiver.received] == [True] * 20
    assert pair.receiver.bodies == [b"%d" % number for number in range(20)]
    assert all(each.history == [] for each in sent)


def test_the_receiver_settles_first() -> None:
    pair = Pair()
    sent = pair.sender.send(compose(b"x"))
    pair.router.pump()
    pair.receiver.received[0].settle()
    pair.router.pump()
    assert sent.history == [(Accepted(), True)]
    assert pair.receiver.received[0].history == []


def test_a_delivery_settles_in_three_steps() -> None:
    pair = Pair()
    sent = pair.sender.send(compose(b"x"))
    pair.router.pump()
    pair.receiver.received[0].settle(settled=False)
    pair.router.pump()
    assert sent.history == [(Accepted(), False)]
    assert pair.receiver.received[0].history == []
    sent.settle(Accepted())
    pair.router.pump()
    assert pair.receiver.received[0].history == [(Accepted(), True)]
    assert sent.history == [(Accepted(), False)]
    (incoming,) = pair.router.core.incoming_endpoints()
    assert incoming.unsettled == 0


def test_the_sender_settles_first() -> None:
    pair = Pair()
    sent = [pair.sender.send(compose(b"x")) for _ in range(250)]
    pair.router.pump()
    assert pair.sender.credit == 0
    for each in sent:
        each.settle()
    pair.router.pump()
    assert pair.receiver.received[0].history == [(None, True)]
    assert pair.sender.credit >= 125
    pair.receiver.received[0].settle()
    pair.router.pump()
    assert sent[0].history == []


def test_a_sender_may_settle_a_waiting_delivery() -> None:
    pair = Pair()
    waiting = pair.receiving.receiver("y")
    sender = pair.sending.sender("y")
    sent = sender.send(compose(b"x"))
    pair.router.pump()
    sent.settle()
    pair.router.pump()
    waiting.grant(1)
    pair.router.pump()
    assert waiting.received[0].settled


def test_both_settle_at_once() -> None:
    pair = Pair()
    sent = pair.sender.send(compose(b"x"))
    pair.router.pump()
    pair.receiver.received[0].settle()
    sent.settle()
    pair.router.pump()
    (incoming,) = pair.router.core.incoming_endpoints()
    (outgoing,) = pair.router.core.outgoing_endpoints()
    assert (incoming.unsettled, outgoing.unsettled) == (0, 0)
    assert pair.sending.closed is None
    assert pair.receiving.closed is None


def test_a_settlement_without_a_state_stays_without_one() -> None:
    pair = Pair()
    sent = pair.sender.send(compose(b"x"))
    pair.router.pump()
    pair.receiver.received[0].settle(None)
    pair.router.pump()
    assert sent.history == [(None, True)]


def test_a_batch_is_counted_one_by_one() -> None:
    pair = Pair()
    sent = [pair.sender.send(compose(b"x")) for _ in range(100)]
    pair.router.pump()
    for message in pair.receiver.received:
        message.settle()
    pair.receiving.connection.flush()
    assert pair.receiving.connection.out.count(b"\0\x53\x15") == 1
    pair.router.pump()
    assert all(each.history == [(Accepted(), True)] for each in sent)
    assert pair.router.core.shared.totals.accepted == 100


# --- 4.7


def test_header_and_properties_are_not_acted_upon() -> None:
    pair = Pair()
    header = section(0x70, [True, None, UInt(1), None, UInt(5)])
    properties = section(0x73, [None] * 8 + [1, 1, "group", UInt(3), "other"])
    pair.router.now_s = 1e9
    for message in (header + SECTIONS[5], properties + SECTIONS[5]):
        assert pair.passes(message) == message
