"""Messages: every section encoded and decoded, kinds of body distinguished; other bytes raise only DecodeError."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trouter.client import BodyKind, DecodeError, EncodeError, Header, Message, Properties
from trouter.wire.codec import encode
from trouter.wire.constants import MAX_NESTING, MAX_SYMBOL_BYTES
from trouter.wire.message import SectionReader, encoded_section
from trouter.wire.types import Described, Symbol, Timestamp, UInt, ULong

names = st.text(st.characters(max_codepoint=127), max_size=20)
texts = st.text(max_size=20)
ids = st.one_of(st.none(), texts, st.binary(max_size=20), st.uuids(), st.integers(0, 0xFFFFFFFFFFFFFFFF).map(ULong))
milliseconds = st.none() | st.integers(-0x8000000000000000, 0x7FFFFFFFFFFFFFFF)
uints = st.integers(0, 0xFFFFFFFF)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | texts | st.binary(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=10,
)
entries: st.SearchStrategy[dict[str, Any]] = st.dictionaries(names, values, max_size=4)
bodies = st.one_of(
    st.tuples(st.just(BodyKind.DATA), st.binary(max_size=600)),
    st.tuples(st.just(BodyKind.VALUE), values),
    st.tuples(st.just(BodyKind.SEQUENCE), st.lists(st.lists(values, max_size=3), min_size=1, max_size=3)),
    st.tuples(st.just(BodyKind.ABSENT), st.none()),
)


@st.composite
def messages(draw: st.DrawFn) -> Message:
    kind, body = draw(bodies)
    return Message(
        body,
        kind=kind,
        header=draw(
            st.builds(
                Header,
                durable=st.booleans(),
                priority=st.integers(0, 255),
                ttl=st.none() | uints,
                first_acquirer=st.booleans(),
                delivery_count=uints,
            )
        ),
        properties=draw(
            st.builds(
                Properties,
                message_id=ids,
                user_id=st.none() | st.binary(max_size=20),
                to=st.none() | texts,
                subject=st.none() | texts,
                reply_to=st.none() | texts,
                correlation_id=ids,
                content_type=st.none() | names,
                content_encoding=st.none() | names,
                absolute_expiry_time=milliseconds,
                creation_time=milliseconds,
                group_id=st.none() | texts,
                group_sequence=st.none() | uints,
                reply_to_group_id=st.none() | texts,
            )
        ),
        application_properties=draw(st.dictionaries(texts, values, max_size=4)),
        delivery_annotations=draw(entries),
        message_annotations=draw(entries),
        footer=draw(entries),
    )


@given(messages())
def test_a_message_survives_encoding_and_decoding(message: Message) -> None:
    if message.kind is BodyKind.ABSENT and not message.encode():
        return
    assert Message.decode(message.encode()) == message


@given(messages(), st.data())
def test_a_cut_message_is_an_error_or_lacks_its_last_sections(message: Message, data: st.DataObject) -> None:
    whole = message.encode()
    cut = whole[: data.draw(st.integers(0, len(whole)))]
    try:
        decoded = Message.decode(cut)
    except DecodeError:
        return
    assert whole.startswith(decoded.encode())


@pytest.mark.fuzz
@given(st.binary(max_size=200) | st.binary(max_size=60).map(lambda raw: b"\0\x53" + raw))
def test_any_bytes_are_a_message_or_a_decode_error(raw: bytes) -> None:
    try:
        message = Message.decode(raw)
    except DecodeError:
        return
    assert isinstance(message, Message)


@pytest.mark.fuzz
@given(messages(), st.integers(0, 10_000), st.integers(0, 255))
def test_a_message_with_one_byte_changed_is_a_message_or_a_decode_error(message: Message, at: int, byte: int) -> None:
    raw = bytearray(message.encode() or b"\0")
    raw[at % len(raw)] = byte
    try:
        Message.decode(bytes(raw))
    except DecodeError:
        return


def codes_in(reader: SectionReader, *, reads: bool) -> list[int]:
    codes = []
    while code := reader.next_section():
        codes.append(code)
        if reads:
            reader.read_value()
    return codes


@given(messages())
def test_sections_that_are_skipped_are_those_that_are_read(message: Message) -> None:
    data = message.encode()
    assert codes_in(SectionReader(data), reads=False) == codes_in(SectionReader(data), reads=True)
    reader = SectionReader(data)
    parts = []
    while reader.next_section():
        parts.append(data[reader.start : reader.find_end()])
    assert b"".join(parts) == data
    assert (reader.code, reader.start) == (0, len(data))


def test_sections_are_read_up_to_the_end_that_is_given() -> None:
    data = section(0x74, {"a": 1}) + section(0x77, "x" * 100)
    reader = SectionReader(data, len(data) - 1)
    assert (reader.next_section(), reader.read_value(), reader.next_section()) == (0x74, {"a": 1}, 0x77)
    with pytest.raises(DecodeError, match="claimed"):
        reader.read_value()
    assert codes_in(SectionReader(data, 10**9), reads=True) == [0x74, 0x77]
    assert codes_in(SectionReader(data, 0), reads=True) == []


def test_a_content_has_so_many_values_and_no_more() -> None:
    data = section(0x77, [1, 2, 3])
    assert codes_in(SectionReader(data, max_values=4), reads=True) == [0x77]
    with pytest.raises(DecodeError, match="more than 3 values"):
        codes_in(SectionReader(data, max_values=3), reads=True)


def test_a_content_is_as_deep_as_in_a_whole_value() -> None:
    deep: Any = 1
    for _ in range(MAX_NESTING - 1):
        deep = [deep]
    assert codes_in(SectionReader(section(0x77, deep)), reads=True) == [0x77]
    raw = encode([deep])
    with pytest.raises(DecodeError, match="nested more than"):
        codes_in(SectionReader(encoded_section(0x77, raw)), reads=True)


@pytest.mark.parametrize(
    "raw",
    [
        b"\x40",
        b"\0\x45\x40",
        b"\0\x53",
        b"\0\x53\x77",
        b"\0\x53\x79\x40",
        b"\0\x52\x77\x40",
        b"\0\xa1\x11amqp:amqp-value:*\x40",
        b"\0\x80" + bytes(6) + b"\1\x77\x40",
    ],
)
@pytest.mark.parametrize("reads", [False, True])
def test_bytes_that_are_no_section_are_refused_read_or_skipped(raw: bytes, reads: bool) -> None:
    with pytest.raises(DecodeError):
        codes_in(SectionReader(raw), reads=reads)


def section(code: int, content: object) -> bytes:
    return encode(Described(ULong(code), content))


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"", "no section"),
        (b"\x40", "not a section"),
        (b"hello", "not a section"),
        (section(0x79, {}), "not a section"),
        (encode(Described(Symbol("amqp:body:list"), [])), "not a section"),
        (encode(Described("amqp:data:binary", b"")), "not a section"),
        (section(0x73, []) + section(0x70, []), "behind section 0x73"),
        (section(0x70, []) + section(0x70, []), "behind section 0x70"),
        (section(0x77, 1) + section(0x77, 1), "behind section 0x77"),
        (section(0x75, b"a") + section(0x76, []), "behind section 0x75"),
        (section(0x76, []) + section(0x75, b""), "behind section 0x76"),
        (section(0x78, {}) + section(0x77, 1), "behind section 0x78"),
        (section(0x77, 1) + b"\0", "cut short"),
        (section(0x70, {}), "header is not a list"),
        (section(0x70, [1]), "durable"),
        (section(0x73, [None, "not binary"]), "user-id"),
        (section(0x73, [None] * 9 + [5]), "creation-time"),
        (section(0x72, []), "holds list"),
        (section(0x74, None), "holds NoneType"),
        (section(0x75, "text"), "holds str"),
        (section(0x76, {}), "holds dict"),
        (section(0x74, {}) * 2, "behind section 0x74"),
    ],
)
def test_bytes_that_are_no_message_are_refused_with_the_reason(raw: bytes, why: str) -> None:
    with pytest.raises(DecodeError, match=why):
        Message.decode(raw)


@pytest.mark.parametrize(
    ("body", "kind"),
    [(b"x", BodyKind.DATA), (bytearray(b"x"), BodyKind.DATA), (memoryview(b"x"), BodyKind.DATA)]
    + [(value, BodyKind.VALUE) for value in ("x", None, 1, [1], {"a": 1}, True)],
)
def test_the_body_has_its_kind(body: Any, kind: BodyKind) -> None:
    assert Message(body).kind is kind


def test_bytes_may_be_a_value_and_a_value_is_not_data() -> None:
    assert Message.decode(Message(b"x", kind=BodyKind.VALUE).encode()) == Message(b"x", kind=BodyKind.VALUE)
    with pytest.raises(EncodeError, match="a data body is bytes, not str"):
        Message("x", kind=BodyKind.DATA).encode()
    with pytest.raises(EncodeError, match="a list of lists"):
        Message([1], kind=BodyKind.SEQUENCE).encode()


def test_several_data_sections_are_one_body_and_several_sequences_stay_apart() -> None:
    assert Message.decode(section(0x75, b"ab") + section(0x75, b"cd")).body == b"abcd"
    assert Message.decode(section(0x76, [1]) + section(0x76, [2, 3])).body == [[1], [2, 3]]


def test_sections_may_have_symbols_or_wide_codes_for_descriptors() -> None:
    raw = encode(Described(Symbol("amqp:application-properties:map"), {"a": 1})) + b"\0\x80" + bytes(7) + b"\x77\x40"
    assert Message.decode(raw) == Message(None, application_properties={"a": 1})


def test_an_empty_section_takes_no_bytes_but_a_message_has_at_least_one_section() -> None:
    assert Message(b"").encode() == b"\0\x53\x75\xa0\0"
    empty = Message(None, kind=BodyKind.ABSENT)
    assert empty.encode() == b"\0\x53\x70\x45"
    assert Message.decode(empty.encode()).kind is BodyKind.ABSENT


@pytest.mark.parametrize("size", [0, 1, 255, 256, 70_000])
def test_data_of_any_size(size: int) -> None:
    assert Message.decode(Message(bytes(size)).encode()).body == bytes(size)


def test_properties_have_the_types_of_the_standard() -> None:
    message = Message(
        None,
        properties=Properties(message_id=7, correlation_id=uuid.UUID(int=9), creation_time=1000, group_sequence=3),
        message_annotations={"x-opt-a": 1, ULong(5): "five"},
    )
    decoded = Message.decode(message.encode())
    assert type(decoded.properties.message_id) is ULong
    assert type(decoded.properties.creation_time) is Timestamp
    assert type(decoded.properties.group_sequence) is UInt
    assert [type(key) for key in decoded.message_annotations] == [Symbol, ULong]
    assert decoded == message


@pytest.mark.parametrize("key", ["text \u00fc", "x" * (MAX_SYMBOL_BYTES + 1)])
@pytest.mark.parametrize("code", [0x71, 0x72, 0x78])
def test_a_key_of_annotations_that_cannot_be_a_symbol_is_a_decode_error(code: int, key: str) -> None:
    Message.decode(encode(Described(ULong(code), {"x" * MAX_SYMBOL_BYTES: 1})))
    with pytest.raises(DecodeError, match="cannot be a symbol"):
        Message.decode(encode(Described(ULong(code), {key: 1})))


@pytest.mark.parametrize(
    "message",
    [
        Message(object()),
        Message(None, properties=Properties(group_sequence=-1)),
        Message(None, properties=Properties(subject=5)),  # type: ignore[arg-type]
        Message(None, header=Header(priority=256)),
        Message(None, message_annotations={"\u00e9": 1}),
    ],
)
def test_a_value_outside_amqp_is_an_encode_error(message: Message) -> None:
    with pytest.raises(EncodeError):
        message.encode()
