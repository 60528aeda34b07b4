"""Frames from a stream with any cut; sizes at their limits; memory no larger than the bytes that arrived."""

from __future__ import annotations

import sys
import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trouter.wire.framing import (
    AMQP_HEADER,
    FRAME_SASL,
    HEADER_BYTES,
    SASL_HEADER,
    TLS_HEADER,
    FrameReader,
    FramingError,
    frame,
)

Frame = tuple[int, int, bytes]
FRAMES = st.lists(
    st.tuples(st.integers(0, 0xFFFF), st.sampled_from([0, 1, 7, 255]), st.binary(max_size=60)), max_size=12
)


def read(reader: FrameReader) -> list[Frame]:
    found = []
    while reader.next_frame():
        found.append((reader.channel, reader.frame_type, reader.data[reader.start : reader.end]))
    return found


def stream(frames: list[Frame]) -> bytes:
    return b"".join(frame(channel, body, kind) for channel, kind, body in frames)


@given(frames=FRAMES, cuts=st.lists(st.integers(0, 900)))
def test_frames_do_not_depend_on_how_the_stream_was_cut(frames: list[Frame], cuts: list[int]) -> None:
    octets = stream(frames)
    edges = [0, *sorted(min(cut, len(octets)) for cut in cuts), len(octets)]
    reader = FrameReader(1024)
    found = []
    for start, end in pairwise(edges):
        reader.add_bytes(octets[start:end])
        found += read(reader)
    assert found == frames
    assert reader.count_pending_bytes() == 0


@given(frames=FRAMES)
def test_one_octet_at_a_time(frames: list[Frame]) -> None:
    reader = FrameReader(1024)
    found = []
    for octet in stream(frames):
        reader.add_bytes(bytes((octet,)))
        found += read(reader)
    assert found == frames


@given(frames=FRAMES, rest=st.binary(max_size=30), cuts=st.lists(st.integers(0, 900)))
def test_a_broken_stream_gives_the_same_frames_and_the_same_fault_at_every_cut(
    frames: list[Frame], rest: bytes, cuts: list[int]
) -> None:
    octets = stream(frames) + rest

    def taste(pieces: list[bytes]) -> tuple[list[Frame], str]:
        reader = FrameReader(100)
        found: list[Frame] = []
        for piece in pieces:
            reader.add_bytes(piece)
            try:
                while reader.next_frame():
                    found.append((reader.channel, reader.frame_type, reader.data[reader.start : reader.end]))
            except FramingError as error:
                return found, str(error)
        return found, ""

    edges = [0, *sorted(min(cut, len(octets)) for cut in cuts), len(octets)]
    whole = taste([octets])
    assert taste([octets[start:end] for start, end in pairwise(edges)]) == whole
    assert taste([octets[at : at + 1] for at in range(len(octets))]) == whole


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("size", [8, 9, 511, 512, 513, 0, 7, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF])
def test_a_frame_may_be_as_large_as_the_maximum_and_as_small_as_its_header(size: int, at_once: bool) -> None:
    reader = FrameReader(512)
    octets = size.to_bytes(4, "big") + b"\2\0\0\5" + bytes(505)
    if not at_once:
        reader.add_bytes(octets[:3])
        assert reader.next_frame() == 0
        octets = octets[3:]
    reader.add_bytes(octets)
    if HEADER_BYTES <= size <= 512:
        assert reader.next_frame() == 1
        assert (reader.end - reader.start, reader.channel) == (size - HEADER_BYTES, 5)
    else:
        with pytest.raises(FramingError, match=rf"frame of {size} bytes (is smaller|exceeds)"):
            reader.next_frame()


@pytest.mark.parametrize(
    ("doff", "size", "fits"),
    [
        (2, 8, True),
        (3, 12, True),
        (3, 11, False),
        (0, 20, False),
        (1, 20, False),
        (255, 1020, True),
        (255, 1019, False),
    ],
)
@pytest.mark.parametrize("at_once", [True, False])
def test_the_data_offset_lies_within_the_frame(doff: int, size: int, fits: bool, at_once: bool) -> None:
    """An extended header (2.3.1) is skipped."""
    octets = size.to_bytes(4, "big") + bytes((doff, 0, 1, 2)) + b"x" * (size - 8)
    reader = FrameReader(2048)
    if not at_once:
        reader.add_bytes(octets[:5])
        assert reader.next_frame() == 0
        octets = octets[5:]
    reader.add_bytes(octets)
    if fits:
        assert reader.next_frame() == 1
        assert reader.end - reader.start == size - doff * 4
        assert reader.channel == 0x102
    else:
        with pytest.raises(FramingError, match="data offset"):
            reader.next_frame()


def test_whole_frames_are_not_copied_and_a_cut_one_is_put_together_once() -> None:
    octets = stream([(0, 0, b"one"), (0, 0, b"two")])
    reader = FrameReader(1024)
    reader.add_bytes(octets)
    assert reader.next_frame()
    assert reader.data is octets
    reader.add_bytes(octets[:4])
    assert reader.next_frame()
    assert not reader.next_frame()
    reader.add_bytes(octets[4:])
    assert reader.next_frame()
    assert reader.data is not octets
    assert reader.data[reader.start : reader.end] == b"one"


@pytest.mark.parametrize("cut", [0, 3, 20], ids=["whole", "within a header", "within a frame"])
def test_a_read_is_not_kept_once_its_frames_were_returned(cut: int) -> None:
    whole = frame(1, bytes(400))
    data = whole * 100 + whole[:cut]
    others = sys.getrefcount(data)
    reader = FrameReader(512)
    reader.add_bytes(data)
    assert len(read(reader)) == 100
    assert sys.getrefcount(data) == others
    reader.add_bytes(whole[cut:] if cut else whole)
    assert read(reader) == [(1, 0, bytes(400))]


def test_a_claimed_size_alone_takes_no_memory() -> None:
    reader = FrameReader(0x7FFFFFFF)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for octet in b"\x7f\xff\xff\xff\2\0\0\0" + bytes(1000):
        reader.add_bytes(bytes((octet,)))
        assert reader.next_frame() == 0
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 5000
    assert reader.count_pending_bytes() == 1008


def test_octets_before_the_frames_can_be_peeked_and_taken() -> None:
    reader = FrameReader(512)
    assert reader.peek_bytes(8) == b""
    reader.add_bytes(AMQP_HEADER[:5])
    assert (reader.peek_bytes(8), reader.take_bytes(8)) == (AMQP_HEADER[:5], b"")
    reader.add_bytes(AMQP_HEADER[5:] + frame(3, b"x"))
    assert reader.peek_bytes(8) == AMQP_HEADER
    assert reader.take_bytes(8) == AMQP_HEADER
    assert read(reader) == [(3, 0, b"x")]
    reader.add_bytes(b"")
    assert read(reader) == []


def test_the_headers_and_a_frame_are_those_of_the_standard() -> None:
    assert (AMQP_HEADER, TLS_HEADER, SASL_HEADER) == (b"AMQP\0\1\0\0", b"AMQP\2\1\0\0", b"AMQP\3\1\0\0")
    assert frame(0x102, b"abc") == b"\0\0\0\x0b\2\0\1\2abc"
    assert frame(0, b"", FRAME_SASL) == b"\0\0\0\x08\2\1\0\0"
