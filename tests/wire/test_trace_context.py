"""The trace context of a message is found and written where it belongs, and nowhere else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trouter.wire.message import Header, Message, Properties
from trouter.wire.trace_context import ABSENT, CONTEXT_BYTES, UNREADABLE, TraceContextScan
from trouter.wire.types import Symbol

CONTEXT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
OTHER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b8-01"
NEW = b"00-4bf92f3577b34da6a3ce929d0e0e4736-1111111111111111-01"


def found(data: bytes) -> tuple[bytes, bytes]:
    """Return the context and the state in a message, empty without one."""
    scan = TraceContextScan()
    place = scan.find_context(b"ab" + data + b"cd", 2, 2 + len(data))
    if place < 0:
        return b"", b""
    return scan.read_context(b"ab" + data + b"cd", place), scan.read_state(b"ab" + data + b"cd")


def written(data: bytes, state: bytes = b"") -> bytes:
    """Return a message with the context NEW."""
    scan = TraceContextScan()
    scan.find_context(b"ab" + data + b"cd", 2, 2 + len(data))
    return scan.write_context(b"ab" + data + b"cd", 2, 2 + len(data), NEW, state)


@pytest.mark.parametrize("header", [Header(), Header(durable=True)])
@pytest.mark.parametrize("properties", [Properties(), Properties(to="orders")])
def test_the_context_is_among_application_properties_or_annotations(header: Header, properties: Properties) -> None:
    in_properties = Message("x", application_properties={"a": 1, "traceparent": CONTEXT, "tracestate": "k=v"})
    in_annotations = Message("x", message_annotations={Symbol("traceparent"): CONTEXT})
    for message in (in_properties, in_annotations):
        message.header, message.properties = header, properties
    assert found(in_properties.encode()) == (CONTEXT.encode(), b"k=v")
    assert found(in_annotations.encode()) == (CONTEXT.encode(), b"")


def test_the_context_of_the_last_router_counts_more_than_that_of_the_sender() -> None:
    message = Message(
        "x",
        message_annotations={Symbol("traceparent"): OTHER},
        application_properties={"traceparent": CONTEXT, "tracestate": "k=v"},
    )
    assert found(message.encode()) == (OTHER.encode(), b"")


@pytest.mark.parametrize(
    "message",
    [
        Message(b"\xa1\x0btraceparent\xa1\x37" + CONTEXT.encode()),
        Message("x", application_properties={"other": "traceparent"}),
        Message("x", application_properties={"k": "\x0btraceparent\xa1\x37" + CONTEXT}),
        Message("x", properties=Properties(subject=CONTEXT)),
    ],
)
def test_the_same_bytes_elsewhere_are_no_context(message: Message) -> None:
    assert found(message.encode()) == (b"", b"")


@pytest.mark.parametrize(
    "value",
    [
        CONTEXT.upper(),
        CONTEXT.replace("00-4", "ff-4"),
        "00-" + "0" * 32 + CONTEXT[35:],
        CONTEXT[:36] + "0" * 16 + "-01",
        CONTEXT.replace("-", "_"),
    ],
)
def test_a_context_that_the_standard_forbids_is_none(value: str) -> None:
    assert len(value) == CONTEXT_BYTES
    assert found(Message("x", application_properties={"traceparent": value}).encode()) == (b"", b"")


@pytest.mark.parametrize("value", [7, "", CONTEXT + "-more", CONTEXT.encode()])
def test_a_value_of_another_kind_is_unreadable(value: object) -> None:
    data = Message("x", application_properties={"traceparent": value}).encode()
    assert TraceContextScan().find_context(data, 0, len(data)) == UNREADABLE


def test_a_state_that_is_too_long_is_left_out() -> None:
    properties = {"traceparent": CONTEXT, "tracestate": "k" * 513}
    assert found(Message("x", application_properties=properties).encode()) == (CONTEXT.encode(), b"")


@pytest.mark.parametrize(
    "annotations",
    [
        {},
        {Symbol("x-opt-mine"): 7},
        {Symbol("x-opt-mine"): "y" * 300, Symbol("traceparent"): CONTEXT, Symbol("tracestate"): "a=b", Symbol("z"): 1},
    ],
)
@pytest.mark.parametrize("state", [b"", b"k=v", b"k=" + b"v" * 400])
def test_a_written_context_replaces_another_and_leaves_the_rest(
    annotations: dict[object, object], state: bytes
) -> None:
    before = Message(
        "body",
        message_annotations=annotations,
        header=Header(priority=7),
        properties=Properties(to="a", subject="b"),
        application_properties={"traceparent": CONTEXT, "n": 7},
    )
    data = written(before.encode(), state)
    after = Message.decode(data)
    assert found(data) == (NEW, state)
    ours = {"traceparent", "tracestate"}
    kept = {key: value for key, value in annotations.items() if key not in ours}
    assert {key: value for key, value in after.message_annotations.items() if key not in ours} == kept
    assert (after.header, after.properties, after.application_properties, after.body) == (
        before.header,
        before.properties,
        before.application_properties,
        before.body,
    )


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x53\x72\x45\x00\x53\x75\xa0\x00",
        b"\x00\x53\x72\xc1\x00\x00\x53\x75\xa0\x00",
        b"\x00\x53\x72\xc0\x03\x02\x41\x41\x00\x53\x75\xa0\x00",
        b"\x00\x53\x72\xc1\x04\x03\x41\x41\x41\x00\x53\x75\xa0\x00",
        b"\x00\x80\x00\x00\x00\x00\x00\x00\x00\x72\xc1\x01\x00\x00\x53\x75\xa0\x00",
        Message("x", message_annotations={Symbol("k"): "v" * 8150}).encode(),
    ],
    ids=["list", "nothing", "short list", "odd", "wide descriptor", "full"],
)
def test_a_message_whose_annotations_are_unusual_or_full_stays_as_it_is(data: bytes) -> None:
    assert written(data) == data


@given(data=st.binary(max_size=80), start=st.integers(0, 3))
def test_any_bytes_have_a_context_or_none_and_can_be_written(data: bytes, start: int) -> None:
    data = b"\x00\x53\x72"[:start] + data
    scan = TraceContextScan()
    place = scan.find_context(data, 0, len(data))
    assert place in (ABSENT, UNREADABLE) or 0 <= place <= len(data) - CONTEXT_BYTES
    whole = scan.write_context(data, 0, len(data), NEW, b"")
    assert whole == data or NEW in whole
