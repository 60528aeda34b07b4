"""The writers of the data path against the table of performatives, at every size at which the form changes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.script import Sent, decode
from trouter.wire.outgoing import (
    CONTINUATION_OVERHEAD,
    GENERAL_OVERHEAD,
    TRANSFER_OVERHEAD,
    write_abort,
    write_disposition,
    write_first_frame,
    write_flow,
    write_general_frame,
    write_link_flow,
    write_next_frame,
)
from trouter.wire.performatives import (
    Accepted,
    Disposition,
    Error,
    Flow,
    Received,
    Rejected,
    Released,
    Transfer,
    encode_state,
)

UINTS = st.one_of(st.sampled_from([0, 1, 255, 256, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]), st.integers(0, 0xFFFFFFFF))
CHANNELS = st.sampled_from([0, 1, 255, 256, 65535])
FLAGS = st.booleans()
BEFORE = b"\0\0\0\x08\2\0\0\0"


def written(out: bytearray) -> Sent:
    """Return the one frame behind the earlier contents of the output."""
    first, frame = decode(bytes(out))
    assert first.performative is None
    return frame


@given(
    channel=CHANNELS,
    handle=UINTS,
    delivery_id=UINTS,
    number=st.integers(0, 2**63 - 1),
    settled=FLAGS,
    more=FLAGS,
    data=st.binary(max_size=80),
    cut=st.tuples(st.integers(0, 80), st.integers(0, 80)),
)
def test_a_first_frame(
    channel: int,
    handle: int,
    delivery_id: int,
    number: int,
    settled: bool,
    more: bool,
    data: bytes,
    cut: tuple[int, int],
) -> None:
    start, end = sorted(min(each, len(data)) for each in cut)
    out = bytearray(BEFORE)
    write_first_frame(out, channel, handle, delivery_id, number, settled, more, data, start, end)
    tag = number.to_bytes(8, "little")
    assert written(out) == Sent(channel, Transfer(handle, delivery_id, tag, 0, settled, more), data[start:end])
    assert len(out) == len(BEFORE) + TRANSFER_OVERHEAD + end - start


@given(
    channel=CHANNELS,
    handle=UINTS,
    more=FLAGS,
    data=st.binary(max_size=80),
    cut=st.tuples(st.integers(0, 80), st.integers(0, 80)),
)
def test_a_continuation(channel: int, handle: int, more: bool, data: bytes, cut: tuple[int, int]) -> None:
    start, end = sorted(min(each, len(data)) for each in cut)
    out = bytearray(BEFORE)
    write_next_frame(out, channel, handle, more, data, start, end)
    assert written(out) == Sent(channel, Transfer(handle, None, None, None, None, more), data[start:end])
    assert len(out) == len(BEFORE) + CONTINUATION_OVERHEAD + end - start


@given(
    channel=CHANNELS,
    handle=UINTS,
    delivery_id=UINTS,
    tag=st.binary(max_size=32),
    message_format=UINTS,
    settled=FLAGS,
    more=FLAGS,
    state=st.sampled_from([None, Accepted(), Received(1, 2**50), Rejected(Error("amqp:x", "y" * 200))]),
    data=st.binary(max_size=80),
)
def test_a_first_frame_of_the_general_kind(
    channel: int,
    handle: int,
    delivery_id: int,
    tag: bytes,
    message_format: int,
    settled: bool,
    more: bool,
    state: Any,
    data: bytes,
) -> None:
    octets = None if state is None else encode_state(state)
    out = bytearray(BEFORE)
    write_general_frame(
        out, channel, handle, delivery_id, tag, message_format, settled, more, octets, data, 0, len(data)
    )
    assert written(out) == Sent(
        channel, Transfer(handle, delivery_id, tag, message_format, settled, more, None, state), data
    )
    assert len(out) - len(BEFORE) - len(data) <= GENERAL_OVERHEAD + len(octets or b"")


@given(channel=CHANNELS, handle=UINTS)
def test_an_aborted_delivery(channel: int, handle: int) -> None:
    out = bytearray(BEFORE)
    write_abort(out, channel, handle)
    assert written(out) == Sent(channel, Transfer(handle, None, None, None, True, aborted=True))


@given(
    channel=CHANNELS,
    role=FLAGS,
    first=UINTS,
    last=UINTS,
    settled=FLAGS,
    state=st.sampled_from([None, Accepted(), Released()]),
)
def test_a_disposition(channel: int, role: bool, first: int, last: int, settled: bool, state: Any) -> None:
    out = bytearray(BEFORE)
    write_disposition(out, channel, role, first, last, settled, None if state is None else encode_state(state))
    assert written(out) == Sent(channel, Disposition(role, first, last, settled, state))


@pytest.mark.parametrize("size", [*range(230, 260), 1000, 70_000])
def test_a_disposition_with_a_state_of_every_size_around_the_short_form(size: int) -> None:
    state = Rejected(Error("amqp:x", "y" * size))
    out = bytearray(BEFORE)
    write_disposition(out, 1, True, 2, 3, True, encode_state(state))
    assert written(out) == Sent(1, Disposition(True, 2, 3, True, state))


def test_a_disposition_without_a_state_has_no_state_field() -> None:
    """Some clients read a null in its place as an unknown outcome."""
    out = bytearray()
    write_disposition(out, 0, False, 0, 0, True, None)
    assert out == bytes.fromhex("0000001a 02000000 005315 c00d04 42 7000000000 7000000000 41")


@given(channel=CHANNELS, next_in=st.just(-1) | UINTS, window_in=UINTS, next_out=UINTS, window_out=UINTS)
def test_a_session_flow(channel: int, next_in: int, window_in: int, next_out: int, window_out: int) -> None:
    out = bytearray(BEFORE)
    write_flow(out, channel, next_in, window_in, next_out, window_out)
    assert written(out) == Sent(
        channel,
        Flow(
            next_incoming_id=None if next_in < 0 else next_in,
            incoming_window=window_in,
            next_outgoing_id=next_out,
            outgoing_window=window_out,
        ),
    )


@given(
    channel=CHANNELS,
    next_in=st.just(-1) | UINTS,
    window_in=UINTS,
    next_out=UINTS,
    handle=UINTS,
    count=st.just(-1) | UINTS,
    credit=UINTS,
    drain=FLAGS,
)
def test_a_link_flow(
    channel: int, next_in: int, window_in: int, next_out: int, handle: int, count: int, credit: int, drain: bool
) -> None:
    out = bytearray(BEFORE)
    write_link_flow(out, channel, next_in, window_in, next_out, 7, handle, count, credit, drain)
    assert written(out) == Sent(
        channel,
        Flow(
            next_incoming_id=None if next_in < 0 else next_in,
            incoming_window=window_in,
            next_outgoing_id=next_out,
            outgoing_window=7,
            handle=handle,
            delivery_count=None if count < 0 else count,
            link_credit=credit,
            drain=drain,
        ),
    )
