"""Messages as rows, compared with python-qpid-proton, which encodes, and with the client's decoder."""

from __future__ import annotations

import base64
import json
import struct
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import proton
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trouter.client import Message as ClientMessage
from trouter.wire import codec
from trouter.wire.errors import DecodeError
from trouter.wire.types import Array, Described, PairMap
from trouter_pipeline.arrow import ARROW_SCHEMA, BATCH_ROWS, Origin, batches
from trouter_pipeline.decoding import MAX_ENTRIES, FrameFault, Rows
from trouter_pipeline.schema import SCHEMA
from trouter_pipeline.spool.frames import FrameWriter
from trouter_pipeline.values import decimal_text

ORIGIN = Origin("0b7a", 3, "events")
INGEST_US = 1_795_000_000_123_456
MAX_MESSAGE = 1 << 20
GOOD = ClientMessage(b"good").encode()


def framed(*messages: bytes, first: int = 0, message_format: int = 0, settled: bool = False) -> bytes:
    writer = FrameWriter(first)
    for number, message in enumerate(messages):
        writer.begin(message_format, b"tag%d" % number, INGEST_US)
        writer.extend(message, 0, len(message))
        writer.finish(settled)
    return bytes(writer.take())


def table(*messages: bytes, first: int = 0, **frame: Any) -> pa.Table:
    end = first + len(messages)
    found = [batch for batch, _ in batches([framed(*messages, first=first, **frame)], ORIGIN, first, end, MAX_MESSAGE)]
    for batch in found:
        batch.validate(full=True)
    return pa.Table.from_batches(found, ARROW_SCHEMA)


def row(message: bytes, **frame: Any) -> dict[str, Any]:
    (only,) = table(message, **frame).to_pylist()
    return {name: value for name, value in only.items() if value is not None}


def section(code: int, content: bytes) -> bytes:
    return b"\0\x53" + bytes([code]) + content


def data_section(octets: bytes) -> bytes:
    return section(0x75, b"\xb0" + struct.pack(">I", len(octets)) + octets)


def reason(message: bytes) -> str:
    found = row(message)
    assert found["raw"] == message
    assert found["seq"] == 0
    assert not {"body_kind", "body", "header", "message_id", "application_properties"} & set(found)
    return str(found["error"])


# --- values of the columns


def test_the_schema_of_spark_and_that_of_arrow_are_one() -> None:
    from pyspark.sql.pandas.types import to_arrow_schema

    assert to_arrow_schema(SCHEMA, timezone="UTC") == ARROW_SCHEMA


def test_a_message_with_every_section_is_decoded_in_full() -> None:
    sent = proton.Message(
        id=proton.ulong(2**64 - 1),
        user_id=b"me",
        address="to/there",
        subject="größe",
        reply_to="back",
        correlation_id=uuid.UUID(int=7),
        content_type=proton.symbol("text/plain"),
        content_encoding=proton.symbol("gzip"),
        expiry_time=1_700_000_001.5,
        creation_time=1_700_000_000,
        group_id="g",
        group_sequence=2**32 - 1,
        reply_to_group_id="h",
        durable=True,
        priority=9,
        ttl=1.5,
        first_acquirer=True,
        delivery_count=2,
        instructions={proton.symbol("x-opt-i"): True},
        annotations={proton.symbol("x-opt-a"): [1, {"k": b"v"}], proton.ulong(7): "seven"},
        properties={"n": None, "ulong:7": "told apart", "char": proton.char("x"), "f": proton.float32(1.5)},
        body=b"octets",
        inferred=True,
    )
    assert row(bytes(sent.encode()), settled=True, first=42) == {
        "spool_id": "0b7a",
        "seq": 42,
        "ingest_time": datetime.fromtimestamp(INGEST_US // 10**6, UTC).replace(microsecond=INGEST_US % 10**6),
        "shard": 3,
        "address": "events",
        "delivery_tag": b"tag0",
        "message_format": 0,
        "settled": True,
        "header": {"durable": True, "priority": 9, "ttl": 1500, "first_acquirer": True, "delivery_count": 2},
        "delivery_annotations": [("x-opt-i", {"type": "boolean", "value": "true"})],
        "message_annotations": [
            ("x-opt-a", {"type": "list", "value": '[{"$long":"1"},{"$map":[["k",{"$binary":"dg=="}]]}]'}),
            ("ulong:7", {"type": "string", "value": "seven"}),
        ],
        "message_id": "18446744073709551615",
        "message_id_type": "ulong",
        "user_id": b"me",
        "to": "to/there",
        "subject": "größe",
        "reply_to": "back",
        "correlation_id": "00000000-0000-0000-0000-000000000007",
        "correlation_id_type": "uuid",
        "content_type": "text/plain",
        "content_encoding": "gzip",
        "absolute_expiry_time": datetime(2023, 11, 14, 22, 13, 21, 500_000, UTC),
        "creation_time": datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC),
        "group_id": "g",
        "group_sequence": 2**32 - 1,
        "reply_to_group_id": "h",
        "application_properties": [
            ("n", {"type": "null", "value": None}),
            ("string:ulong:7", {"type": "string", "value": "told apart"}),
            ("char", {"type": "char", "value": "x"}),
            ("f", {"type": "float", "value": "1.5"}),
        ],
        "body_kind": "data",
        "body": b"octets",
    }


def test_absent_fields_are_null_without_defaults() -> None:
    found = row(data_section(b""))
    assert set(found) == {
        *("spool_id", "seq", "ingest_time", "shard", "address", "delivery_tag", "message_format", "settled"),
        *("body_kind", "body"),
    }
    assert found["body"] == b""
    header = row(section(0x70, b"\xc0\x02\x01\x41") + GOOD)["header"]
    assert header == dict.fromkeys(("priority", "ttl", "first_acquirer", "delivery_count")) | {"durable": True}
    assert row(section(0x70, b"\x45") + GOOD)["header"] == dict.fromkeys(header)


@pytest.mark.parametrize("wide", [False, True])
def test_the_three_kinds_of_body_are_kept_apart(wide: bool) -> None:
    def described(code: int, content: bytes) -> bytes:
        return b"\0\x80" + bytes(7) + bytes([code]) + content if wide else section(code, content)

    data = row(described(0x75, b"\xa0\x01a"))
    assert (data["body_kind"], data["body"], data.get("body_value")) == ("data", b"a", None)
    binary = row(described(0x77, b"\xa0\x01a"))
    assert (binary["body_kind"], binary["body"], binary.get("body_value")) == ("value", b"a", None)
    string = row(described(0x77, b"\xa1\x01a"))
    assert (string["body_kind"], string["body"], string["body_value"]) == ("value", b"a", '"a"')
    null = row(described(0x77, b"\x40"))
    assert (null["body_kind"], null.get("body"), null["body_value"]) == ("value", None, "null")
    sequence = row(described(0x76, b"\xc0\x04\x02\x41\x54\xff"))
    assert (sequence["body_kind"], sequence["body_value"]) == ("sequence", '[[true,{"$int":"-1"}]]')
    nothing = row(section(0x70, b"\x45"))
    assert (nothing["body_kind"], nothing.get("error")) == ("absent", None)


def test_several_data_and_sequence_sections_are_all_there() -> None:
    found = table(
        data_section(b"a") + data_section(b"") + data_section(b"bc"), data_section(b"alone"), GOOD
    ).to_pylist()
    assert [each["body"] for each in found] == [b"abc", b"alone", b"good"]
    assert [each["body_parts"] for each in found] == [[b"a", b"", b"bc"], None, None]
    sequences = section(0x76, b"\xc0\x02\x01\x41") + section(0x76, b"\x45") + section(0x76, b"\xc0\x02\x01\x42")
    assert row(sequences)["body_value"] == "[[true],[],[false]]"


def test_a_footer_is_not_lost_behind_any_body() -> None:
    footer = section(0x78, b"\xc1\x06\x02\xa3\x01s\x54\x05")
    for body in (data_section(b"a") * 2, section(0x76, b"\x45"), section(0x77, b"\x40")):
        assert row(body + footer)["footer"] == [("s", {"type": "int", "value": "5"})]


def test_a_section_may_be_described_by_its_symbol() -> None:
    assert row(b"\0\xa3\x10amqp:data:binary\xa0\x01a")["body"] == b"a"
    assert row(b"\0\xb3\0\0\0\x10amqp:data:binary\xa0\x01a")["body"] == b"a"


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (b"\xa1\x03key", "string", "key"),
        (b"\x80" + b"\xff" * 8, "ulong", "18446744073709551615"),
        (b"\x44", "ulong", "0"),
        (b"\x98" + bytes(16), "uuid", "00000000-0000-0000-0000-000000000000"),
        (b"\xa0\x02\xff\x00", "binary", "/wA="),
    ],
    ids=["string", "ulong", "nought", "uuid", "binary"],
)
def test_an_id_keeps_its_type(value: bytes, kind: str, text: str) -> None:
    found = row(section(0x73, b"\xc0" + bytes([len(value) + 1, 1]) + value) + GOOD)
    assert (found["message_id"], found["message_id_type"]) == (text, kind)
    fields = b"\x40" * 5 + value
    found = row(section(0x73, b"\xc0" + bytes([len(fields) + 1, 6]) + fields) + GOOD)
    assert (found["correlation_id"], found["correlation_id_type"]) == (text, kind)


def test_a_time_outside_the_range_of_python_is_kept() -> None:
    def created(ms: int) -> bytes:
        fields = b"\x40" * 9 + b"\x83" + struct.pack(">q", ms)
        return section(0x73, b"\xc0" + bytes([len(fields) + 1, 10]) + fields) + GOOD

    far = 9_223_372_036_854_775
    for ms in (253_402_300_800_000, far, -far, -1):
        assert table(created(ms)).column("creation_time").cast(pa.int64()).to_pylist() == [ms * 1000]
    for ms in (far + 1, -far - 1, 2**63 - 1, -(2**63)):
        assert f"creation-time {ms} is beyond the range of a timestamp" in reason(created(ms))


PRIMITIVES: list[tuple[bytes, str, str | None]] = [
    (b"\x40", "null", None),
    (b"\x41", "boolean", "true"),
    (b"\x56\x00", "boolean", "false"),
    (b"\x50\xff", "ubyte", "255"),
    (b"\x60\xff\xff", "ushort", "65535"),
    (b"\x70\xff\xff\xff\xff", "uint", "4294967295"),
    (b"\x52\xff", "uint", "255"),
    (b"\x43", "uint", "0"),
    (b"\x80" + b"\xff" * 8, "ulong", "18446744073709551615"),
    (b"\x51\x80", "byte", "-128"),
    (b"\x61\x80\x00", "short", "-32768"),
    (b"\x71\x80\x00\x00\x00", "int", "-2147483648"),
    (b"\x54\x80", "int", "-128"),
    (b"\x81\x80" + bytes(7), "long", "-9223372036854775808"),
    (b"\x55\x7f", "long", "127"),
    (b"\x72" + struct.pack(">f", 0.1), "float", "0.10000000149011612"),
    (b"\x82" + struct.pack(">d", 0.1), "double", "0.1"),
    (b"\x82\x7f\xf8" + bytes(6), "double", "NaN"),
    (b"\x82\xff\xf0" + bytes(6), "double", "-Infinity"),
    (b"\x74\x32\x80\x00\x01", "decimal32", "1"),
    (b"\x84\x31\xc0" + bytes(5) + b"\x0f", "decimal64", "15"),
    (b"\x94\x30\x40" + bytes(13) + b"\x01", "decimal128", "1"),
    (b"\x73\x00\x01\xf6\x00", "char", "\U0001f600"),
    (b"\x83\xff\xff\xff\xff\xff\xff\xff\xff", "timestamp", "-1"),
    (b"\x98" + bytes(15) + b"\x01", "uuid", "00000000-0000-0000-0000-000000000001"),
    (b"\xa0\x01\xff", "binary", "/w=="),
    (b"\xb0\0\0\0\0", "binary", ""),
    (b'\xa1\x05\xc3\xbc\n"\0', "string", 'ü\n"\0'),
    (b"\xb1\0\0\0\x01a", "string", "a"),
    (b"\xa3\x03x:y", "symbol", "x:y"),
    (b"\x45", "list", "[]"),
    (b"\xc0\x01\x00", "list", "[]"),
    (b"\xc1\x01\x00", "map", '{"$map":[]}'),
    (b"\xe0\x04\x02\x50\x01\x02", "array", '{"$array":["ubyte",[{"$ubyte":"1"},{"$ubyte":"2"}]]}'),
    (b"\xe0\x05\x01\x00\x53\x07\x41", "array", '{"$array":["boolean",[true],[{"$ulong":"7"}]]}'),
    (b"\x00\x53\x07\x40", "described", '{"$described":[{"$ulong":"7"},null]}'),
]


@pytest.mark.parametrize(("octets", "kind", "text"), PRIMITIVES, ids=[f"{o[:1].hex()}-{k}" for o, k, _ in PRIMITIVES])
def test_every_primitive_kind_is_kept_with_its_type(octets: bytes, kind: str, text: str | None) -> None:
    entry = b"\xa1\x01k" + octets
    found = row(section(0x74, b"\xc1" + bytes([len(entry) + 1, 2]) + entry) + GOOD)
    assert found["application_properties"] == [("k", {"type": kind, "value": text})]
    value = json.loads(row(section(0x77, octets)).get("body_value", "null"))
    if kind in {"null", "list", "map", "array", "described"}:
        assert value == (None if text is None else json.loads(text))
    elif kind == "boolean":
        assert value is (text == "true")
    elif kind == "binary":
        assert row(section(0x77, octets))["body"] == base64.b64decode(text or "")
    else:
        assert value == (text if kind == "string" else {f"${kind}": text})
    if kind not in {"list", "map", "array", "described"}:
        entry = octets + b"\x40"
        key = row(section(0x72, b"\xc1" + bytes([len(entry) + 1, 2]) + entry) + GOOD)["message_annotations"][0][0]
        assert key == (text if kind == "symbol" else f"{kind}:{text or ''}")


@pytest.mark.parametrize(
    ("number", "exponent"), [(0, 0), (1, 0), (150, -2), (9_999_999, 90), (8_388_608, -101), (9_999_999, -101), (1, 3)]
)
@pytest.mark.parametrize("sign", [0, 1])
def test_decimals_equal_ieee_754(number: int, exponent: int, sign: int) -> None:
    biased = exponent + 101
    if number < 1 << 23:
        bits = sign << 31 | biased << 23 | number
    else:
        bits = sign << 31 | 0b11 << 29 | biased << 21 | number - (1 << 23)
    expected = Decimal(decimal_text(struct.pack(">I", bits)))
    assert expected.as_tuple() == (sign, tuple(map(int, str(number))), exponent)
    wide = sign << 127 | (exponent + 6176) << 113 | number
    assert Decimal(decimal_text(wide.to_bytes(16, "big"))).as_tuple() == expected.as_tuple()


def test_decimals_that_are_no_numbers() -> None:
    found = {octets: decimal_text(bytes.fromhex(octets)) for octets in ("78000000", "f8000000", "7c000000", "7e000007")}
    assert list(found.values()) == ["Infinity", "-Infinity", "NaN", "sNaN7"]
    assert decimal_text(bytes.fromhex("6cb89680")) == "0"  # ten million does not fit in seven digits: not canonical


# --- invalid messages


@pytest.mark.parametrize(
    ("message", "reported"),
    [
        (b"", "the message is empty"),
        (b"garbage", "not a section of a message (at byte 0 of 7)"),
        (GOOD[:-1], "4 bytes claimed, 3 left"),
        (GOOD[:2], "1 bytes claimed, 0 left"),
        (b"\0", "cut short"),
        (section(0x10, b"\x45"), "not a section of a message"),
        (section(0x79, b"\x45"), "not a section of a message"),
        (b"\0\xa1\x10amqp:data:binary\xa0\x01a", "not a section of a message"),
        (GOOD + section(0x70, b"\x45"), "header is out of order, or comes twice"),
        (section(0x70, b"\x45") * 2 + GOOD, "header is out of order, or comes twice"),
        (GOOD + section(0x77, b"\x40"), "amqp-value is out of order, or comes twice"),
        (section(0x77, b"\x40") * 2, "amqp-value is out of order, or comes twice"),
        (section(0x76, b"\x45") + GOOD, "data is out of order, or comes twice"),
        (GOOD + b"\x40", "not a section of a message"),
        (section(0x75, b"\xa1\x01a"), "a data section has format code 0xa1"),
        (section(0x76, b"\x40"), "a sequence section has format code 0x40"),
        (section(0x70, b"\x40"), "the section has format code 0x40"),
        (section(0x72, b"\x45"), "the section has format code 0x45"),
        (section(0x70, b"\xc0\x03\x01\x50\x01") + GOOD, "durable has format code 0x50"),
        (section(0x70, b"\xc0\x07\x06" + b"\x40" * 6) + GOOD, "a header of 6 fields"),
        (section(0x70, b"\xc0\x03\x01\x40\x40") + GOOD, "bytes behind the last field of the header"),
        (section(0x73, b"\xc0\x0f\x0e" + b"\x40" * 14) + GOOD, "properties of 14 fields"),
        (section(0x73, b"\xc0\x02\x01\x41") + GOOD, "an id of type boolean"),
        (section(0x73, b"\xc0\x04\x01\xa1\x01\xff") + GOOD, "is not UTF-8"),
        (section(0x73, b"\xc0\x05\x03\x40\x40\x52\x01") + GOOD, "to has format code 0x52"),
        (section(0x74, b"\xc1\x02\x01\x40") + GOOD, "Odd Number of Elements in a Map"),
        (section(0x74, b"\xc1\x09\x04\xa1\x01a\x40\xa1\x01a\x40") + GOOD, "map has the same key twice"),
        (section(0x74, b"\xc1\x07\x02\xa1\x01a\xa1\x01\xff") + GOOD, "string is not UTF-8"),
        (section(0x72, b"\xc1\x07\x02\xa3\x01a\xa3\x01\xff") + GOOD, "symbol is not ASCII"),
        (section(0x77, b"\xa1\x01\xff"), "string is not UTF-8"),
        (section(0x77, b"\x56\x02"), "boolean byte is 0x02"),
        (section(0x77, b"\x73\x00\x00\xd8\x00"), "char is not a Unicode character"),
        (section(0x77, b"\xc0\x03\x02\x40\x40\x40"), "not a section"),
        (section(0x77, b"\xc0\x03\x01\x40\x40"), "1 bytes behind the last item"),
        (section(0x77, b"\xd0\0\0\0\x05\0\0\0\xff\x40"), "255 items claimed in 1 bytes"),
        (section(0x77, b"\xf0\0\0\0\x05\0\xff\xff\xff\x40"), "array items without bytes"),
        (section(0x77, b"\x00" * 40 + b"\x40"), "nested more than 32 deep"),
        (section(0x77, b"\x57"), "unknown format code 0x57"),
    ],
    ids=range(38),
)
def test_a_message_that_is_none_is_a_row_with_the_reason_and_its_octets(message: bytes, reported: str) -> None:
    assert reported in reason(message)


def test_nested_as_deep_as_may_be_and_one_more() -> None:
    def nested(depth: int) -> bytes:
        value = b"\x45"
        for _ in range(depth):
            value = b"\xd0" + struct.pack(">II", len(value) + 4, 1) + value
        return section(0x77, value)

    assert row(nested(32))["body_value"] == "[" * 33 + "]" * 33
    assert "nested more than 32 deep" in reason(nested(33))
    assert "nested more than 32 deep" in reason(nested(3000))


def test_a_bad_message_takes_nothing_from_its_neighbours_and_leaves_nothing_behind() -> None:
    properties = section(0x74, b"\xc1\x06\x02\xa1\x01k\x54\x05") + data_section(b"one") + data_section(b"two")
    bad = properties + section(0x77, b"\x40")
    found = table(properties, bad, properties, b"", properties).to_pylist()
    good = [found[0], found[2], found[4]]
    assert [each["body_parts"] for each in good] == [[b"one", b"two"]] * 3
    assert [each["application_properties"] for each in good] == [[("k", {"type": "int", "value": "5"})]] * 3
    assert [each["seq"] for each in found] == [0, 1, 2, 3, 4]
    for each in (found[1], found[3]):
        assert each["error"]
        assert each["body"] is each["body_parts"] is each["application_properties"] is each["body_kind"] is None


def test_a_message_format_that_is_not_amqps_own_is_not_guessed_at() -> None:
    found = row(GOOD, message_format=0x80013700)
    assert (found["message_format"], found["raw"]) == (0x80013700, GOOD)
    assert found["error"].startswith("message format 0x80013700 is not that of AMQP itself")


def test_a_message_at_the_limit_is_read_and_a_larger_one_stops_the_reading() -> None:
    overhead = len(data_section(b""))
    assert len(row(data_section(bytes(MAX_MESSAGE - overhead)))["body"]) == MAX_MESSAGE - overhead
    with pytest.raises(FrameFault, match=f"message 0 has {MAX_MESSAGE + 1} bytes, and maxMessageBytes is"):
        row(data_section(bytes(MAX_MESSAGE - overhead + 1)))


def test_a_map_has_at_most_its_maximum_of_entries() -> None:
    def entries(count: int) -> bytes:
        pairs = b"".join(b"\x70" + struct.pack(">I", number) + b"\x40" for number in range(count))
        return section(0x74, b"\xd1" + struct.pack(">II", len(pairs) + 4, 2 * count) + pairs) + GOOD

    assert len(row(entries(MAX_ENTRIES))["application_properties"]) == MAX_ENTRIES
    assert f"a map of {MAX_ENTRIES + 1} entries" in reason(entries(MAX_ENTRIES + 1))


# --- frames


def test_batches_end_at_their_bounds_and_hold_every_row() -> None:
    count = 2 * BATCH_ROWS + 5
    blocks = [framed(*[GOOD] * 5000), framed(*[GOOD] * (count - 5000), first=5000)]
    found = [batch for batch, _ in batches(blocks, ORIGIN, 0, count, MAX_MESSAGE)]
    assert [batch.num_rows for batch in found] == [BATCH_ROWS, BATCH_ROWS, 5]
    assert [seq for batch in found for seq in batch.column("seq").to_pylist()] == list(range(count))
    large = data_section(bytes(900_000))
    found = [batch for batch, _ in batches([framed(*[large] * 20)], ORIGIN, 0, 20, MAX_MESSAGE)]
    assert [batch.num_rows for batch in found] == [10, 10]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda block: block[:-1],
        lambda block: block + b"\0",
        lambda block: framed(GOOD, first=1),
        lambda block: block + block,
        lambda block: block[:8] + b"\xff" * 8 + block[16:],
    ],
)
def test_frames_other_than_the_requested_ones_are_an_error(spoil: Callable[[bytes], bytes]) -> None:
    rows = Rows(0, 10, 1 << 20, MAX_MESSAGE)
    with pytest.raises(FrameFault):
        rows.add(spoil(framed(GOOD)), 0)


# --- any values

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(0, 2**64 - 1).map(proton.ulong),
    st.integers(0, 2**32 - 1).map(proton.uint),
    st.integers(-128, 127).map(proton.byte),
    st.integers(0, 2**16 - 1).map(proton.ushort),
    st.integers(-(2**40), 2**40).map(proton.timestamp),
    st.floats(allow_nan=False),
    st.text(),
    st.binary(),
    st.uuids(),
    st.text("abc:-", min_size=1).map(proton.symbol),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


def tagged(value: Any) -> Any:
    """Return the value of tagged JSON, from the client decoder's value."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, list):
        return [tagged(item) for item in value]
    if isinstance(value, dict | PairMap):
        return {"$map": [[tagged(key), tagged(item)] for key, item in value.items()]}
    if isinstance(value, Described):
        return {"$described": [tagged(value.descriptor), tagged(value.value)]}
    if isinstance(value, Array):
        return {"$array": [value.of, [tagged(item) for item in value.items]]}
    kind, text = typed(value)
    return text if kind == "string" else {f"${kind}": text}


def typed(value: Any) -> tuple[str, str | None]:
    """Return type and text of a value of the client's decoder."""
    names = {int: "long", float: "double", str: "string", bytes: "binary", uuid.UUID: "uuid"}
    kind = names.get(type(value), type(value).__name__.lower())
    if value is None:
        return "null", None
    if isinstance(value, bool):
        return "boolean", str(value).lower()
    if isinstance(value, list | dict | PairMap | Array | Described):
        return {"pairmap": "map", "dict": "map"}.get(kind, kind), None
    if isinstance(value, bytes):
        return kind, base64.b64encode(value).decode()
    if isinstance(value, float):
        return kind, repr(float(value)).replace("inf", "Infinity")
    return kind, str(value)


@given(
    body=VALUES,
    properties=st.dictionaries(st.text(max_size=8), SCALARS, max_size=4),
    subject=st.none() | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),  # which end it in C
    identity=st.none() | st.text() | st.uuids() | st.binary() | st.integers(0, 2**64 - 1).map(proton.ulong),
    durable=st.booleans(),
    ttl=st.integers(0, 2**32 - 1),
)
def test_every_message_of_proton_is_decoded_without_loss(
    body: Any, properties: dict[str, Any], subject: str | None, identity: Any, durable: bool, ttl: int
) -> None:
    sent = proton.Message(body=body, properties=properties or None, subject=subject, durable=durable)
    sent.id = identity
    sent.ttl = ttl / 1000
    encoded = bytes(sent.encode())
    found = row(encoded)
    decoded = ClientMessage.decode(encoded)
    assert found.get("error") is None
    assert found.get("subject") == subject
    assert (found["header"]["durable"] or False) is durable
    if identity is None:
        assert "message_id" not in found
    else:
        kind, text = typed(decoded.properties.message_id)
        assert (found["message_id_type"], found["message_id"]) == (kind, text)
    if isinstance(decoded.body, bytes):
        assert found["body"] == decoded.body
    elif body is None:
        assert found["body_kind"] == "absent"  # as in proton
    else:
        assert json.loads(found["body_value"]) == tagged(decoded.body)
    columns = dict(found.get("application_properties", []))
    assert len(columns) == len(properties)
    for key, value in decoded.application_properties.items():
        kind, text = typed(value)
        entry = columns.get(key) or columns[f"string:{key}"]
        assert (entry["type"], entry["value"]) == (kind, text)


@given(st.binary(max_size=60) | st.binary(max_size=60).map(lambda octets: b"\0\x53\x77" + octets))
def test_rows_agree_with_the_decoder_of_the_client_for_any_octets(octets: bytes) -> None:
    found = row(octets)
    try:
        decoded: Any = ClientMessage.decode(octets)
    except DecodeError:
        decoded = None
    if "error" in found:
        assert decoded is None or "same key twice" in found["error"]
    elif decoded is not None and found["body_kind"] == "value" and "body_value" in found:
        assert json.loads(found["body_value"]) == tagged(decoded.body)


def test_the_codec_and_the_columns_read_the_same_descriptors() -> None:
    for code in range(0x70, 0x79):
        octets = codec.encode(Described(codec.decode_all(b"\x53" + bytes([code])), []))
        assert ("not a section" in row(octets).get("error", "")) is False
