"""The section scanner against a message built part by part, whole and cut at every byte."""

from __future__ import annotations

import struct
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.values import values
from trouter.wire import types
from trouter.wire.codec import encode
from trouter.wire.sections import (
    FOUND,
    MAX_ANNOTATIONS_BYTES,
    MAX_SECTION_BYTES,
    NEED_MORE,
    THROUGH_ANNOTATIONS,
    THROUGH_APPLICATION_PROPERTIES,
    THROUGH_HEADER,
    THROUGH_PROPERTIES,
    InvalidMessage,
    MessageScan,
)
from trouter.wire.types import Described, Symbol

DEPTHS = (THROUGH_HEADER, THROUGH_ANNOTATIONS, THROUGH_PROPERTIES, THROUGH_APPLICATION_PROPERTIES)
SYMBOLS = {
    0x70: "amqp:header:list",
    0x71: "amqp:delivery-annotations:map",
    0x72: "amqp:message-annotations:map",
    0x73: "amqp:properties:list",
    0x74: "amqp:application-properties:map",
    0x75: "amqp:data:binary",
    0x76: "amqp:amqp-sequence:list",
    0x77: "amqp:amqp-value:*",
    0x78: "amqp:footer:map",
}
BODY = bytes.fromhex("005375a003") + b"abc"
Message: TypeAlias = tuple[bytes, int, list[int], dict[int, dict[str, Any]]]


def descriptor(code: int, spelling: str = "small") -> bytes:
    if spelling == "small":
        return bytes((0, 0x53, code))
    if spelling == "wide":
        return b"\0\x80" + code.to_bytes(8, "big")
    name = SYMBOLS[code].encode()
    if spelling == "symbol":
        return b"\0\xa3" + bytes([len(name)]) + name
    return b"\0\xb3" + len(name).to_bytes(4, "big") + name


def body_of(value: list[object] | dict[Any, Any], wide: bool) -> bytes:
    """Return a list or map, in its four-byte encoding if ``wide``."""
    small = encode(value)
    if not wide:
        return small
    if small == b"\x45":
        return b"\xd0" + struct.pack(">II", 4, 0)
    if small[0] in (0xD0, 0xD1):
        return small
    return bytes([small[0] | 0x10]) + struct.pack(">II", small[1] + 3, small[2]) + small[3:]


def section(code: int, value: list[object] | dict[Any, Any], spelling: str = "small", wide: bool = False) -> bytes:
    return descriptor(code, spelling) + body_of(value, wide)


def facts(scan: MessageScan, data: bytes) -> dict[str, Any]:
    return {
        "priority": scan.priority,
        "annotations": (scan.annotations_start, scan.annotations_end),
        "insert_at": scan.insert_at,
        "to": scan.read_to(data),
        "user_id": scan.read_user_id(data),
    }


def scanned(data: bytes, depth: int) -> dict[str, Any]:
    scan = MessageScan()
    assert scan.scan_sections(data, 0, len(data), depth, True) == FOUND
    return facts(scan, data)


PROPERTY_VALUES = st.none() | st.text(max_size=300)
BINARY_VALUES = st.none() | st.binary(max_size=300)
ENCODED = st.tuples(st.sampled_from(["small", "wide", "symbol", "wide symbol"]), st.booleans())
ANNOTATIONS = st.dictionaries(st.text(max_size=5).map(str), st.integers(0, 99) | st.text(max_size=90), max_size=4)


@st.composite
def messages(draw: st.DrawFn) -> Message:
    """Draw (bytes, start of the message, end of its sections, expected results of a scan to each depth)."""
    data = draw(st.binary(max_size=3))
    start = len(data)
    said: dict[str, Any] = {"priority": -1, "annotations": (-1, -1), "insert_at": start, "to": None, "user_id": None}
    at: dict[int, dict[str, Any]] = {}
    boundaries = [start]
    for code in (0x70, 0x71, 0x72, 0x73, 0x74):
        if draw(st.booleans()):
            spelling, wide = draw(ENCODED)
            begin = len(data)
            if code == 0x70:
                header: list[Any] = [
                    draw(st.sampled_from([None, True, False])),
                    draw(st.none() | st.integers(0, 255).map(types.UByte)),
                ]
                header += [None, True, types.UInt(3)]
                header = header[: draw(st.integers(0, 5))]
                data += section(code, header, spelling, wide)
                if len(header) > 1 and header[1] is not None:
                    said["priority"] = int(header[1])
                said["insert_at"] = len(data)
            elif code == 0x73:
                identity = draw(st.none() | st.text(max_size=9) | st.uuids() | st.integers(0, 9).map(types.ULong))
                properties: list[Any] = [identity, draw(BINARY_VALUES), draw(PROPERTY_VALUES), "subject", None, 7]
                properties = properties[: draw(st.integers(0, 6))]
                data += section(code, properties, spelling, wide)
                said["user_id"] = properties[1] if len(properties) > 1 else None
                said["to"] = properties[2] if len(properties) > 2 else None
            else:
                data += section(code, draw(ANNOTATIONS), spelling, wide)
                if code == 0x71:
                    said["insert_at"] = len(data)
                elif code == 0x72:
                    said["annotations"] = (begin, len(data))
        at[code] = dict(said)
        boundaries.append(len(data))
    data += draw(
        st.sampled_from([BODY, descriptor(0x77, "symbol") + b"\x40", descriptor(0x76, "wide") + b"\x45", b"\xff", b"x"])
    )
    return data, start, boundaries, {depth: at[0x6F + depth] for depth in DEPTHS}


@given(messages(), st.sampled_from(DEPTHS))
def test_a_scan_finds_the_parts_of_the_built_message(message: Message, depth: int) -> None:
    data, start, _, expected = message
    scan = MessageScan()
    scan.scan_sections(BODY, 0, len(BODY), depth, True)  # so that the result of an earlier message must be cleared
    assert scan.scan_sections(data, start, len(data), depth, True) == FOUND
    assert facts(scan, data) == expected[depth]


@given(messages(), st.sampled_from(DEPTHS))
def test_a_message_that_arrives_octet_by_octet_is_waited_for_and_then_known(message: Message, depth: int) -> None:
    data, start, _, expected = message
    scan = MessageScan()
    answers = []
    for end in range(start, len(data) + 1):
        answers.append(scan.scan_sections(data, start, end, depth, False))
        if answers[-1] == FOUND:
            assert facts(scan, data) == expected[depth]
    assert answers == sorted(answers)  # once found, always found
    assert answers[0] == NEED_MORE
    assert answers[-1] == FOUND or len(data) < start + 3


@given(messages(), st.sampled_from(DEPTHS), st.binary(max_size=40))
def test_octets_behind_the_requested_depth_do_not_matter(message: Message, depth: int, tail: bytes) -> None:
    data, start, _, expected = message
    scan = MessageScan()
    assert scan.scan_sections(data + tail, start, len(data) + len(tail), depth, False) in (FOUND, NEED_MORE)
    if scan.scan_sections(data, start, len(data), depth, False) == FOUND:
        assert scan.scan_sections(data + tail, start, len(data) + len(tail), depth, True) == FOUND
        assert facts(scan, data) == expected[depth]


@given(messages())
def test_a_truncated_complete_message_is_invalid_unless_cut_between_sections(message: Message) -> None:
    data, start, boundaries, _ = message
    for end in range(start + 1, boundaries[-1] + 1):
        if end in boundaries:
            assert MessageScan().scan_sections(data, start, end, THROUGH_APPLICATION_PROPERTIES, True) == FOUND
        else:
            with pytest.raises(InvalidMessage, match="cut short"):
                MessageScan().scan_sections(data, start, end, THROUGH_APPLICATION_PROPERTIES, True)


@pytest.mark.parametrize("depth", DEPTHS)
def test_an_empty_message_is_invalid_on_every_link(depth: int) -> None:
    for start in (0, 2):
        with pytest.raises(InvalidMessage, match="empty"):
            MessageScan().scan_sections(b"ab", start, start, depth, True)
        assert MessageScan().scan_sections(b"ab", start, start, depth, False) == NEED_MORE


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize(
    "garbage",
    ["ff", "53", "40", "7573657220", "005399ff", "0043", "0045", "00532045", "00a302616240", "00800000000000001070",
     "00538045",
     "0000534045", "00b300000100", "00a324616d71703a6865616465723a6c697374"],
)  # fmt: skip
def test_octets_that_are_no_section_mean_that_all_sections_are_absent(garbage: str, depth: int) -> None:
    data = bytes.fromhex(garbage)
    assert scanned(data, depth) == {
        "priority": -1, "annotations": (-1, -1), "insert_at": 0, "to": None, "user_id": None
    }  # fmt: skip
    assert MessageScan().scan_sections(data, 0, len(data), depth, False) == FOUND


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize(
    "beginning", ["00", "0053", "0080", "008000000000000000", "00a3", "00a310", "00a310616d71703a", "00b3000000"]
)
def test_the_beginning_of_a_section_is_waited_for_and_invalid_at_the_end(beginning: str, depth: int) -> None:
    data = bytes.fromhex(beginning)
    assert MessageScan().scan_sections(data, 0, len(data), depth, False) == NEED_MORE
    with pytest.raises(InvalidMessage, match="cut short"):
        MessageScan().scan_sections(data, 0, len(data), depth, True)


@pytest.mark.parametrize(
    ("code", "wrong"),
    [
        (code, wrong)
        for code in (0x70, 0x73)
        for wrong in ("c10100", "d10000000400000000", "40", "a00100", "005345", "e0020040")
    ]
    + [
        (code, wrong)
        for code in (0x71, 0x72, 0x74)
        for wrong in ("45", "c00100", "d00000000400000000", "40", "f000000005000000" + "0040")
    ],
)
def test_a_section_in_the_wrong_encoding_is_invalid(code: int, wrong: str) -> None:
    data = descriptor(code) + bytes.fromhex(wrong) + BODY
    with pytest.raises(InvalidMessage, match=f"section {code:#04x} has format code"):
        MessageScan().scan_sections(data, 0, len(data), THROUGH_APPLICATION_PROPERTIES, True)


@pytest.mark.parametrize(("user", "there"), [(b"user", True), ("user", True), (None, False)])
@pytest.mark.parametrize("first", ["id", b"id", types.ULong(7), None])
def test_a_scan_that_does_not_read_to_finds_the_user_id_alone(first: object, user: object, there: bool) -> None:
    data = section(0x73, [first, user, "to"])
    scan = MessageScan(reads_to=False)
    assert scan.scan_sections(data, 0, len(data), THROUGH_PROPERTIES, True) == FOUND
    assert scan.read_user_id(data) == (b"user" if there else None)
    assert scan.read_to(data) is None
    assert (scan.properties_start, scan.properties_end) == (0, len(data))


@pytest.mark.parametrize("claimed", [5, 250])
def test_a_message_id_longer_than_its_section_is_invalid(claimed: int) -> None:
    data = b"\x00\x53\x73\xc0\x05\x02\xa1" + bytes((claimed,)) + b"i\x40" + bytes(300)
    with pytest.raises(InvalidMessage):
        MessageScan().scan_sections(data, 0, len(data), THROUGH_PROPERTIES, True)


@pytest.mark.parametrize(("start", "end"), [(-1, 3), (0, 4), (3, 9)])
def test_a_range_outside_the_data_is_no_message(start: int, end: int) -> None:
    with pytest.raises(InvalidMessage):
        MessageScan().scan_sections(b"\x00\x53\x73", start, end, THROUGH_PROPERTIES, False)


def test_sections_beyond_the_depth_are_not_looked_at() -> None:
    data = descriptor(0x73) + b"\x40"
    assert MessageScan().scan_sections(data, 0, len(data), THROUGH_ANNOTATIONS, True) == FOUND
    data = descriptor(0x71) + b"\x40"
    assert MessageScan().scan_sections(data, 0, len(data), THROUGH_HEADER, True) == FOUND


@pytest.mark.amqp("part 3, 3.2")
@pytest.mark.parametrize("later", range(0x70, 0x74))
@pytest.mark.parametrize("earlier", range(0x70, 0x74))
def test_sections_stand_in_order_and_once(earlier: int, later: int) -> None:
    def empty(code: int) -> bytes:
        return section(code, [] if code in (0x70, 0x73) else {})

    data = empty(earlier) + empty(later) + BODY
    if earlier < later:
        scanned(data, THROUGH_APPLICATION_PROPERTIES)
    else:
        with pytest.raises(InvalidMessage, match=f"section {later:#04x} is out of order"):
            scanned(data, THROUGH_APPLICATION_PROPERTIES)


@pytest.mark.parametrize("size", [0, 1, 2, 3])
def test_a_wide_section_needs_room_for_its_count(size: int) -> None:
    data = descriptor(0x72) + b"\xd1" + struct.pack(">I", size) + bytes(8)
    with pytest.raises(InvalidMessage, match=f"claims {size} bytes"):
        MessageScan().scan_sections(data, 0, len(data), THROUGH_ANNOTATIONS, True)


def test_a_small_section_needs_room_for_its_count() -> None:
    data = descriptor(0x72) + b"\xc1\0"
    assert MessageScan().scan_sections(data[:-1], 0, len(data) - 1, THROUGH_ANNOTATIONS, False) == NEED_MORE
    with pytest.raises(InvalidMessage, match="no room"):
        MessageScan().scan_sections(data, 0, len(data), THROUGH_ANNOTATIONS, False)


@pytest.mark.parametrize("code", range(0x70, 0x75))
def test_a_section_is_waited_for_up_to_a_bound(code: int) -> None:
    constructor = b"\xd0" if code in (0x70, 0x73) else b"\xd1"
    if code in (0x71, 0x72):
        most, complaint = MAX_ANNOTATIONS_BYTES, "annotations of {} bytes"
    else:
        most, complaint = MAX_SECTION_BYTES, "claims {} bytes"
    bound = descriptor(code) + constructor + struct.pack(">I", most)
    assert MessageScan().scan_sections(bound, 0, len(bound), THROUGH_APPLICATION_PROPERTIES, False) == NEED_MORE
    for size in (MAX_SECTION_BYTES + 1, 0x80000000, 0xFFFFFFFF):
        beyond = descriptor(code) + constructor + struct.pack(">I", size)
        with pytest.raises(InvalidMessage, match=f"claims {size} bytes"):
            MessageScan().scan_sections(beyond, 0, len(beyond), THROUGH_APPLICATION_PROPERTIES, False)
    beyond = descriptor(code) + constructor + struct.pack(">I", most + 1)
    with pytest.raises(InvalidMessage, match=complaint.format(most + 1)):
        MessageScan().scan_sections(beyond, 0, len(beyond), THROUGH_APPLICATION_PROPERTIES, False)


def test_a_section_of_the_bound_itself_is_found() -> None:
    bound = MAX_ANNOTATIONS_BYTES
    data = descriptor(0x72) + b"\xd1" + struct.pack(">II", bound, 0) + bytes(bound - 4) + BODY
    assert scanned(data, THROUGH_ANNOTATIONS)["annotations"] == (0, len(data) - len(BODY))


@pytest.mark.parametrize(
    ("fields", "priority"),
    [([], -1), ([True], -1), ([None, None], -1), ([None, types.UByte(0)], 0), ([True, types.UByte(255)], 255),
     ([None, types.UInt(9)], -1), ([None, "9"], -1), ([None, [1]], -1)],
)  # fmt: skip
def test_priority_is_an_unsigned_octet_or_not_there(fields: list[object], priority: int) -> None:
    assert scanned(section(0x70, fields) + BODY, THROUGH_HEADER)["priority"] == priority


@pytest.mark.parametrize(
    "wrong", ["c0 03 02 41 5f", "c0 03 02 a1 09", "c0 02 02 41", "c0 01 02", "d0 00000004 ffffffff"]
)
def test_a_header_that_claims_more_fields_than_its_octets_is_invalid(wrong: str) -> None:
    data = descriptor(0x70) + bytes.fromhex(wrong) + BODY
    with pytest.raises(InvalidMessage, match=r"^header: "):
        scanned(data, THROUGH_HEADER)


@pytest.mark.parametrize(
    "wrong", ["c0 05 03 40 40 a1 09", "c0 03 03 40 40", "c0 04 02 40 a0 01", "c0 02 02 5f", "c0 01 02"]
)
def test_properties_that_claim_more_than_they_have_are_invalid(wrong: str) -> None:
    data = descriptor(0x73) + bytes.fromhex(wrong) + BODY
    with pytest.raises(InvalidMessage, match=r"^properties: "):
        scanned(data, THROUGH_PROPERTIES)


@pytest.mark.parametrize("wrong", [Symbol("a"), b"a", 1, True, ["a"], Described("a", "b")], ids=repr)
def test_a_to_that_is_no_string_is_invalid(wrong: object) -> None:
    with pytest.raises(InvalidMessage, match="properties: to has format code"):
        scanned(section(0x73, [None, None, wrong]), THROUGH_PROPERTIES)


def test_a_user_id_may_be_a_string() -> None:
    data = section(0x73, [None, "user"])
    scan = MessageScan()
    scan.scan_sections(data, 0, len(data), THROUGH_PROPERTIES, True)
    assert scan.read_user_id(data) == b"user"


@pytest.mark.parametrize("wrong", [Symbol("a"), 1, True, [b"a"], Described("a", b"b")], ids=repr)
def test_a_user_id_that_is_no_binary_is_invalid(wrong: object) -> None:
    with pytest.raises(InvalidMessage, match="properties: user-id has format code"):
        scanned(section(0x73, [None, wrong]), THROUGH_PROPERTIES)


def test_an_empty_to_is_there() -> None:
    scan = MessageScan()
    data = section(0x73, [None, b"", ""])
    assert scan.scan_sections(data, 0, len(data), THROUGH_PROPERTIES, True) == FOUND
    assert (scan.to_start, scan.user_id_start) == (scan.to_end, scan.user_id_end)
    assert (scan.read_to(data), scan.read_user_id(data)) == ("", b"")


def test_a_to_that_is_not_utf8_is_invalid_once_read() -> None:
    data = section(0x73, [None, None, "ab"]).replace(b"ab", b"a\xff")
    scan = MessageScan()
    assert scan.scan_sections(data, 0, len(data), THROUGH_PROPERTIES, True) == FOUND
    with pytest.raises(InvalidMessage, match="UTF-8"):
        scan.read_to(data)


@given(st.binary(max_size=120), st.sampled_from(DEPTHS), st.booleans())
def test_any_octets_are_scanned_or_invalid(data: bytes, depth: int, complete: bool) -> None:
    scan = MessageScan()
    try:
        assert scan.scan_sections(data, 0, len(data), depth, complete) in (FOUND, NEED_MORE)
        scan.read_to(data)
    except InvalidMessage:
        pass
    assert 0 <= scan.insert_at <= len(data)
    assert scan.annotations_end <= len(data)


@given(st.sampled_from(sorted(SYMBOLS)), values)
def test_any_value_as_a_section_is_scanned_or_invalid(code: int, value: object) -> None:
    data = descriptor(code) + encode(value) + BODY
    try:
        assert MessageScan().scan_sections(data, 0, len(data), THROUGH_APPLICATION_PROPERTIES, True) == FOUND
    except InvalidMessage:
        pass


def test_symbolic_descriptors_are_matched_whole() -> None:
    for name in (
        "amqp:message-annotations:ma",
        "amqp:message-annotations:mapp",
        "amqp:message-annotations:map\0",
        "AMQP:header:list",
    ):
        data = b"\0\xa3" + bytes([len(name)]) + name.encode() + encode({})
        assert scanned(data, THROUGH_ANNOTATIONS)["annotations"] == (-1, -1)
