"""Which messages get a span: routers decide alike, and as OpenTelemetry's sampler does."""

from __future__ import annotations

from random import Random

import pytest
from opentelemetry.sdk.trace.sampling import Decision, TraceIdRatioBased

from tests.core.joined import Joined
from trouter.core.arrival import Arrival
from trouter.core.tracing import MAX_ENDED, EndedSpan, Tracing
from trouter.testing import MemoryRouter
from trouter.wire.message import Message
from trouter.wire.performatives import MODIFIED, REJECTED, RELEASED
from trouter.wire.types import Symbol

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SAMPLED = f"00-{TRACE}-{PARENT}-01"


def tracing_of(ratio: float = 1, one_in: int = 0, propagates: bool = False) -> Tracing:
    return Tracing(ratio, one_in, propagates, lambda _: ("client", 1), lambda: None)


def in_hand(message: Message) -> Arrival:
    arrival = Arrival()
    arrival.replace_data(message.encode())
    return arrival


def is_chosen(tracing: Tracing, context: str) -> bool:
    return tracing.find_context(in_hand(Message("x", application_properties={"traceparent": context}))) >= 0


def test_the_flag_says_whether_the_trace_is_sampled() -> None:
    for flags in range(256):
        assert is_chosen(tracing_of(), f"00-{TRACE}-{PARENT}-{flags:02x}") == bool(flags & 1)


@pytest.mark.parametrize("ratio", [0, 1e-9, 0.01, 0.5, 1 - 1e-17, 1])
def test_of_traces_the_same_are_chosen_as_by_opentelemetry(ratio: float) -> None:
    sampler, tracing, random = TraceIdRatioBased(ratio), tracing_of(ratio), Random(7)
    edges = [max(1, min(2**64 - 1, sampler.bound + step)) for step in (-1, 0, 1)]
    for number in [*edges, *(random.getrandbits(128) or 1 for _ in range(500))]:
        theirs = sampler.should_sample(None, number, "route").decision is Decision.RECORD_AND_SAMPLE
        assert is_chosen(tracing, f"00-{number:032x}-{PARENT}-01") == theirs


def test_ended_spans_are_bounded_and_counted() -> None:
    tracing = tracing_of(one_in=1)
    arrival = in_hand(Message("x"))
    for _ in range(MAX_ENDED + 5):
        span = tracing.begin_span(arrival, tracing.find_context(arrival), ("client", 1))
        assert span is not None
        span.end(0x24)
    assert len(tracing.take_ended()) == MAX_ENDED
    assert tracing.dropped == 5
    assert tracing.take_ended() == []


# --- in a router


def spans_of(router: MemoryRouter) -> list[EndedSpan]:
    tracing = router.core.shared.tracing
    assert tracing is not None
    return tracing.take_ended()


class Room:
    """A router that traces every message, with a client that sends and one that receives."""

    def __init__(self, one_in: int = 0, propagates: bool = False) -> None:
        self.router = MemoryRouter()
        self.router.core.shared.tracing = tracing_of(one_in=one_in, propagates=propagates)
        self.client = self.router.connect()
        self.receiver = self.router.connect().receiver("orders", credit=10)
        self.router.pump()

    def send(self, message: Message, frames: int = 1) -> None:
        """Send a message and accept it."""
        self.client.sender("orders").send(message.encode(), frames=frames)
        self.router.pump()
        self.receiver.received[-1].settle()
        self.router.pump()

    def passed(self) -> Message:
        """Return the last message as its receiver has it."""
        return Message.decode(self.receiver.received[-1].payload)


def sampled(**more: object) -> Message:
    return Message("x", application_properties={"traceparent": SAMPLED, "tracestate": "k=v", **more})


def test_a_span_is_below_that_of_the_sender() -> None:
    room = Room()
    room.send(sampled())
    room.send(Message("without"))
    ((began_ns, ended_ns, *ids, state, address, source, outcome),) = spans_of(room.router)
    assert began_ns <= ended_ns
    assert ids == [TRACE.encode(), PARENT.encode(), b""]
    assert (state, address, source, outcome) == (b"k=v", "orders", ("client", 1), "accepted")
    assert room.passed().message_annotations == {}


def test_without_a_context_one_in_so_many_begins_a_trace() -> None:
    room = Room(one_in=3)
    for number in range(9):
        room.send(Message(number))
    room.send(Message("x", application_properties={"traceparent": f"00-{TRACE}-{PARENT}-00"}))
    spans = spans_of(room.router)
    assert [span[2:5] for span in spans] == [(b"", b"", b"")] * 3


@pytest.mark.parametrize("frames", [1, 4])
def test_the_message_goes_on_with_the_context_of_its_span_if_that_is_wanted(frames: int) -> None:
    room = Room(propagates=True)
    before = sampled(n=1, text="y" * 100)
    room.send(before, frames=frames)
    (span,) = spans_of(room.router)
    after = room.passed()
    assert after.message_annotations == {
        Symbol("traceparent"): f"00-{TRACE}-{span[4].decode()}-01",
        Symbol("tracestate"): "k=v",
    }
    assert (after.application_properties, after.body) == (before.application_properties, before.body)
    room.send(after)
    (below,) = spans_of(room.router)
    assert below[3] == span[4]


@pytest.mark.parametrize(("name", "state"), [("released", RELEASED), ("rejected", REJECTED), ("modified", MODIFIED)])
def test_a_span_ends_with_the_outcome(name: str, state: object) -> None:
    room = Room()
    room.client.sender("orders").send(sampled().encode())
    room.router.pump()
    room.receiver.received[-1].settle(state)
    room.router.pump()
    assert [span[-1] for span in spans_of(room.router)] == [name]


def test_a_span_of_a_presettled_message_ends_when_it_is_passed_on() -> None:
    room = Room()
    room.client.sender("orders").send(sampled().encode(), settled=True)
    room.router.pump()
    assert [span[-1] for span in spans_of(room.router)] == ["settled"]


def test_a_message_to_nobody_has_a_span_too() -> None:
    room = Room()
    sender = room.client.sender(None)
    room.router.pump()
    sender.send(sampled().encode())
    room.router.pump()
    assert [(span[-3], span[-1]) for span in spans_of(room.router)] == [("", "rejected")]


def test_the_span_of_a_message_whose_sender_leaves_says_so() -> None:
    room = Room()
    room.client.sender("orders").send(sampled().encode())
    room.router.pump()
    room.client.drop()
    room.router.pump()
    assert [span[-1] for span in spans_of(room.router)] == ["lost"]


def test_an_aborted_message_has_a_span_that_says_so() -> None:
    room = Room()
    data = sampled(text="y" * 200_000).encode()
    room.client.sender("orders").send(data, frames=20, abort=True)
    room.router.pump()
    assert [span[-1] for span in spans_of(room.router)] in ([], ["lost"])


def test_each_hop_is_below_the_one_before() -> None:
    joined = Joined({("A", "B"): 1})
    for router in joined.routers.values():
        router.core.shared.tracing = tracing_of(propagates=True)
    receiver = joined.routers["B"].connect().receiver("orders", credit=10)
    joined.pump()
    joined.routers["A"].connect().sender("orders").send(sampled().encode())
    joined.pump()
    receiver.received[0].settle()
    joined.pump()
    (first,), (second,) = spans_of(joined.routers["A"]), spans_of(joined.routers["B"])
    assert (first[2], first[3]) == (TRACE.encode(), PARENT.encode())
    assert (second[2], second[3]) == (TRACE.encode(), first[4])
    assert second[6] == "orders"
