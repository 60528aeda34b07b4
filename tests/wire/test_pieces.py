"""Bodies in pieces: any cut gives the same bytes; other bytes raise only DecodeError."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trouter.client import BodyKind, DecodeError, Header, Message, Properties
from trouter.wire.codec import encode
from trouter.wire.pieces import MAX_HEAD_BYTES, BodyReader, BodyWriter
from trouter.wire.types import Described, Symbol, ULong

HEAD = Message(
    kind=BodyKind.ABSENT,
    header=Header(durable=True),
    properties=Properties(to="there", subject="s" * 300),
    application_properties={"a": 1},
)


def section(code: int, content: object) -> bytes:
    return encode(Described(ULong(code), content))


def read(pieces: list[bytes]) -> tuple[Message | None, bytes]:
    reader = BodyReader()
    data = b"".join(data for piece in pieces for data in reader.read_piece(piece))
    reader.check_end()
    return reader.head, data


def write(chunks: list[bytes], head: Message | None = None, size: int | None = None) -> bytes:
    writer = BodyWriter(head, size)
    return b"".join([writer.encode_piece(chunk) for chunk in chunks] + [writer.encode_end()])


@given(st.lists(st.binary(max_size=600), max_size=5), st.booleans(), st.booleans(), st.lists(st.integers(0, 3000)))
def test_a_written_body_is_read_back_at_every_cut(
    chunks: list[bytes], with_head: bool, sized: bool, cuts: list[int]
) -> None:
    data = b"".join(chunks)
    head = HEAD if with_head else None
    encoded = write(chunks, head, len(data) if sized else None)
    edges = [0, *sorted(min(cut, len(encoded)) for cut in cuts), len(encoded)]
    pieces = [encoded[a:b] for a, b in pairwise(edges)]
    assert read(pieces) == (HEAD if with_head else Message(kind=BodyKind.ABSENT), data)
    assert read([encoded[at : at + 1] for at in range(len(encoded))])[1] == data
    assert Message.decode(encoded).body == data


def test_a_known_size_makes_one_section() -> None:
    assert write([b"ab", b"cd"], size=4) == b"\0\x53\x75\xa0\x04abcd"
    assert write([b"ab", b"cd"]) == b"\0\x53\x75\xa0\x02ab\0\x53\x75\xa0\x02cd"
    assert write([], size=0) == write([]) == b"\0\x53\x75\xa0\0"


def test_a_wrong_size_is_reported() -> None:
    with pytest.raises(ValueError, match="1 bytes longer"):
        write([b"abc"], size=2)
    with pytest.raises(ValueError, match="1 bytes shorter"):
        write([b"a"], size=2)


def test_a_head_has_no_body_and_no_footer() -> None:
    for head in (Message(b"body"), Message(kind=BodyKind.ABSENT, footer={"a": 1})):
        with pytest.raises(ValueError, match="neither body nor footer"):
            BodyWriter(head, None)


def test_a_footer_may_follow_and_all_descriptors_are_known() -> None:
    wide = b"\0\x80" + bytes(7) + b"\x75\xa0\x01a"
    symbolic = encode(Described(Symbol("amqp:data:binary"), b"b"))
    long_symbol = b"\0\xb3\0\0\0\x10amqp:data:binary\xb0\0\0\0\x01c"
    message = wide + symbolic + long_symbol + section(0x78, {})
    assert read([message])[1] == b"abc"
    assert read([message[at : at + 1] for at in range(len(message))])[1] == b"abc"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "no body"),
        (section(0x70, []), "no body"),
        (section(0x77, b"value"), "not data"),
        (section(0x76, []), "not data"),
        (section(0x70, []) + section(0x77, 1), "not data"),
        (section(0x75, b"a") + section(0x73, []), "neither data nor the footer"),
        (section(0x75, b"a") + section(0x78, {}) + section(0x78, {}), "neither data nor the footer"),
        (section(0x75, b"a") + section(0x78, {}) + section(0x75, b""), "behind the footer"),
        (section(0x75, b"abc")[:-1], "cut short"),
        (section(0x75, b"abc")[:4], "cut short"),
        (section(0x70, [])[:2], "cut short"),
        (b"x", "not a section"),
        (b"\0\x40\x40", "not a section"),
        (b"\0\xb3\xff\xff\xff\xff", "not a section"),
        (b"\0\x53\x70\0\x53\x70\x40", "a value of type 0x00"),
        (b"\0\x53\x75\x40", "holds NoneType"),
        (b"\0\x53\x72\xd1\xff\xff\xff\xff", "more than"),
        (section(0x72, {Symbol("a"): bytes(MAX_HEAD_BYTES)}), "more than"),
        (section(0x72, {Symbol("a"): bytes(600_000)}) + section(0x74, {"a": bytes(600_000)}), "before the body"),
    ],
)
def test_bytes_that_are_no_data_message_are_refused_with_the_reason(data: bytes, why: str) -> None:
    with pytest.raises(DecodeError, match=why):
        read([data])
    with pytest.raises(DecodeError):
        read([data[at : at + 1] for at in range(min(len(data), 2000))])


@pytest.mark.fuzz
@given(st.lists(st.binary(max_size=80) | st.binary(max_size=40).map(lambda data: b"\0\x53" + data), max_size=4))
def test_any_bytes_are_read_or_a_decode_error(pieces: list[bytes]) -> None:
    try:
        read(pieces)
    except DecodeError:
        return
    assert Message.decode(b"".join(pieces)).kind is BodyKind.DATA
