"""Values and bytes: every encoding by hand, every value encoded and decoded, and invalid lengths."""

from __future__ import annotations

import math
import struct
import sys
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.wire.values import key_of, values
from trouter.wire import types
from trouter.wire.codec import be32, decode, decode_all, encode, skip
from trouter.wire.constants import MAX_NESTING, MAX_ZERO_WIDTH_ITEMS
from trouter.wire.encodings import ENCODINGS
from trouter.wire.errors import DecodeError, EncodeError
from trouter.wire.types import Array, Described, PairMap, Symbol

UUID = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")

# Every encoding of AMQP 1.0 part 1, 1.6, written by hand; some at both ends of their range.
BY_HAND = [
    ("40", None),
    ("41", True),
    ("42", False),
    ("56 01", True),
    ("56 00", False),
    ("50 ff", types.UByte(255)),
    ("60 0102", types.UShort(0x0102)),
    ("43", types.UInt(0)),
    ("52 ff", types.UInt(255)),
    ("70 ffffffff", types.UInt(0xFFFFFFFF)),
    ("44", types.ULong(0)),
    ("53 ff", types.ULong(255)),
    ("80 ffffffffffffffff", types.ULong(0xFFFFFFFFFFFFFFFF)),
    ("51 80", types.Byte(-128)),
    ("61 8000", types.Short(-32768)),
    ("54 80", types.Int(-128)),
    ("71 80000000", types.Int(-(2**31))),
    ("55 80", -128),
    ("81 8000000000000000", -(2**63)),
    ("72 3fc00000", types.Float(1.5)),
    ("82 3ff8000000000000", 1.5),
    ("74 22500001", types.Decimal32(bytes.fromhex("22500001"))),
    ("84 2238000000000001", types.Decimal64(bytes.fromhex("2238000000000001"))),
    ("94 22080000000000000000000000000001", types.Decimal128(bytes.fromhex("22080000000000000000000000000001"))),
    ("73 00000000", types.Char("\0")),
    ("73 0010ffff", types.Char("\U0010ffff")),
    ("83 0000000000000001", types.Timestamp(1)),
    ("83 ffffffffffffffff", types.Timestamp(-1)),
    ("98 00112233445566778899aabbccddeeff", UUID),
    ("a0 03 000102", b"\0\1\2"),
    ("b0 00000003 000102", b"\0\1\2"),
    ("a1 05 68c3a96c6c", "héll"),
    ("b1 00000003 c3a900", "é\0"),
    ("a3 03 616263", Symbol("abc")),
    ("b3 00000003 616263", Symbol("abc")),
    ("45", []),
    ("c0 01 00", []),
    ("c0 04 03 41 40 43", [True, None, types.UInt(0)]),
    ("d0 00000004 00000000", []),
    ("d0 00000006 00000002 41 40", [True, None]),
    ("c1 01 00", {}),
    ("c1 08 04 a301 61 41 54 01 42", {Symbol("a"): True, types.Int(1): False}),
    ("d1 00000004 00000000", {}),
    ("d1 00000008 00000002 a301 61 41", {Symbol("a"): True}),
    ("e0 06 02 60 0001 0002", Array("ushort", [types.UShort(1), types.UShort(2)])),
    ("f0 00000009 00000002 60 0001 0002", Array("ushort", [types.UShort(1), types.UShort(2)])),
    ("e0 02 00 70", Array("uint", [])),
    ("e0 04 02 56 0100", Array("boolean", [True, False])),
    ("e0 02 03 41", Array("boolean", [True, True, True])),
    ("e0 02 02 43", Array("uint", [types.UInt(0), types.UInt(0)])),
    ("e0 02 02 45", Array("list", [[], []])),
    ("e0 08 02 a3 01 61 03 626364", Array("symbol", [Symbol("a"), Symbol("bcd")])),
    ("e0 09 02 c0 02 01 41 03 02 41 42", Array("list", [[True], [True, False]])),
    ("e0 08 01 c1 05 02 a301 61 40", Array("map", [{Symbol("a"): None}])),
    ("e0 08 02 e0 02 01 41 02 02 42", Array("array", [Array("boolean", [True]), Array("boolean", [False, False])])),
    ("e0 08 02 00 a301 64 52 01 02", Array("uint", [types.UInt(1), types.UInt(2)], [Symbol("d")])),
    ("00 53 24 45", Described(types.ULong(0x24), [])),
    ("00 a3 01 61 00 44 40", Described(Symbol("a"), Described(types.ULong(0), None))),
    ("00 00 43 44 45", Described(Described(types.UInt(0), types.ULong(0)), [])),
]


def octets(text: str) -> bytes:
    return bytes.fromhex(text)


def same(left: object, right: object) -> bool:
    return key_of(left) == key_of(right)


@pytest.mark.amqp("part 1, 1.6")
@pytest.mark.parametrize(("text", "value"), BY_HAND, ids=[text for text, _ in BY_HAND])
def test_every_encoding_is_read(text: str, value: object) -> None:
    data = octets(text)
    assert same(decode_all(data), value)
    assert skip(data, 0, len(data)) == len(data)


def test_no_encoding_of_the_table_is_left_untried() -> None:
    assert {octets(text)[0] for text, _ in BY_HAND} - {0} == {encoding.code for encoding in ENCODINGS}


@pytest.mark.parametrize(("text", "value"), BY_HAND, ids=[text for text, _ in BY_HAND])
def test_a_value_is_read_alike_in_the_midst_of_others(text: str, value: object) -> None:
    data = b"\xff" + octets(text) + b"\xff"
    found, behind = decode(data, 1, len(data))
    assert (behind, skip(data, 1, len(data))) == (len(data) - 1, len(data) - 1)
    assert same(found, value)


@pytest.mark.parametrize("text", [text for text, _ in BY_HAND])
def test_a_value_cut_anywhere_is_refused(text: str) -> None:
    data = octets(text)
    for end in range(len(data)):
        for read in (decode, skip):
            with pytest.raises(DecodeError):
                read(data, 0, end)
        with pytest.raises(DecodeError):
            decode_all(data[:end])


@pytest.mark.parametrize("code", sorted(set(range(1, 256)) - {encoding.code for encoding in ENCODINGS}))
def test_an_unknown_format_code_is_refused(code: int) -> None:
    data = bytes([code]) + bytes(20)
    for read in (decode, skip):
        with pytest.raises(DecodeError, match=f"{code:#04x}") as caught:
            read(data, 0, len(data))
        assert caught.value.offset == 0
    with pytest.raises(DecodeError, match=f"{code:#04x}"):
        decode_all(bytes((0xE0, 2, 0, code)))


@given(values)
@example(math.nan)
@example(-0.0)
@example({0.0: 1, 1: 2})
def test_an_encoded_value_is_decoded_to_the_same_value(value: object) -> None:
    data = encode(value)
    found, behind = decode(data, 0, len(data))
    assert same(found, value)
    assert behind == skip(data, 0, len(data)) == len(data)
    assert encode(found) == data


@given(st.binary(max_size=200))
def test_any_octets_decode_or_are_refused_and_skip_agrees(data: bytes) -> None:
    try:
        value, behind = decode(data, 0, len(data))
    except DecodeError:
        pass
    else:
        assert skip(data, 0, len(data)) == behind
        again = encode(value)
        assert same(decode_all(again), value)
    try:
        assert 0 < skip(data, 0, len(data)) <= len(data)
    except DecodeError:
        pass


@given(values, st.data())
def test_a_mutated_value_decodes_or_is_refused(value: object, draw: st.DataObject) -> None:
    data = bytearray(encode(value))
    for _ in range(draw.draw(st.integers(1, 4))):
        data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    whole = bytes(data)
    try:
        _, behind = decode(whole, 0, len(whole))
    except DecodeError:
        return
    assert skip(whole, 0, len(whole)) == behind


SMALLEST: list[tuple[object, str]] = [
    (True, "41"), (False, "42"), (None, "40"), ([], "45"), ((), "45"), ({}, "c10100"),
    (types.UInt(0), "43"), (types.UInt(255), "52ff"), (types.UInt(256), "7000000100"),
    (types.ULong(0), "44"), (types.ULong(255), "53ff"), (types.ULong(256), "800000000000000100"),
    (types.Int(-128), "5480"), (types.Int(127), "547f"), (types.Int(128), "7100000080"),
    (types.Int(-129), "71ffffff7f"),
    (-128, "5580"), (127, "557f"), (128, "810000000000000080"), (types.Long(-129), "81ffffffffffffff7f"),
    (bytearray(b"a"), "a00161"), (memoryview(b"a"), "a00161"),
    (Array("uint", [0, 0]), "e00402520000"), (Array("uint", [1, 256]), "e00a02700000000100000100"),
    (Array("long", [-129]), "e00a0181ffffffffffffff7f"), (Array("boolean", [True]), "e0030156" + "01"),
    (Array("list", [[]]), "e00401c00100"), (Array("null", [None]), "e0020140"), (Array("string", []), "e00200a1"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "text"), SMALLEST, ids=[f"{value!r}" for value, _ in SMALLEST])
def test_the_smallest_encoding_is_chosen(value: object, text: str) -> None:
    assert encode(value).hex() == text


@pytest.mark.parametrize("make", [str, Symbol, bytes], ids=lambda make: make.__name__)
@pytest.mark.parametrize(("length", "overhead"), [(255, 2), (256, 5)])
def test_a_length_of_256_needs_the_wide_encoding(make: Callable[..., str | bytes], length: int, overhead: int) -> None:
    value = make(length) if make is bytes else make("a" * length)
    assert len(encode(value)) == length + overhead


@pytest.mark.parametrize(("count", "size"), [(254, 254 + 3), (255, 255 + 9)])
def test_a_list_too_long_for_one_octet_of_size_is_wide(count: int, size: int) -> None:
    # One byte of size covers the count's byte as well.
    data = encode([None] * count)
    assert len(data) == size
    assert decode_all(data) == [None] * count


def test_array_items_of_different_length_share_the_wide_constructor() -> None:
    array = Array("symbol", [Symbol("a"), Symbol("b" * 256)])
    assert encode(array)[9:10] == b"\xb3"
    assert decode_all(encode(array)) == array


def test_an_array_takes_plain_numbers_and_text_as_its_own_type() -> None:
    assert encode(Array("symbol", ["a"])) == encode(Array("symbol", [Symbol("a")]))
    assert encode(Array("float", [1.5])) == encode(Array("float", [types.Float(1.5)]))
    assert encode(Array("list", [(1,), [2]])) == encode(Array("list", [[1], [2]]))


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        (object(), "no AMQP type for object"),
        ({1, 2}, "no AMQP type for set"),
        (2**63, "long out of range"),
        (-(2**63) - 1, "long out of range"),
        ("\ud800", "surrogate"),
        (Array("quux", []), "quux"),
        (Array("uint", [-1]), "UInt out of range"),
        (Array("uint", [True]), "bool in an array of uint"),
        (Array("uint", ["1"]), "str in an array of uint"),
        (Array("string", [Symbol("a")]), "Symbol in an array of string"),
        (Array("symbol", ["é"]), "ASCII"),
        (Array("list", [Described(1, 2)]), "Described in an array of list"),
        (Array("null", [None] * (MAX_ZERO_WIDTH_ITEMS + 1)), "without bytes"),
    ],
    ids=str,
)
def test_a_value_outside_amqp_is_refused(value: object, complaint: str) -> None:
    with pytest.raises(EncodeError, match=complaint):
        encode(value)


def test_a_subclass_is_encoded_as_its_base_class() -> None:
    class Text(str):
        __slots__ = ()

    class Number(types.UInt):
        __slots__ = ()

    assert encode(Text("a")) == encode("a")
    assert encode(Number(1)) == encode(types.UInt(1))


# ---- maps with keys that a dict confuses


COLLIDING = [
    [(types.Int(1), "a"), (types.ULong(1), "b")],
    [(Symbol("k"), 1), ("k", 2)],
    [(True, 1), (1, 2), (1.0, 3)],
    [(0.0, 1), (-0.0, 2)],
    [([1], 1), ([2], 2)],
    [({}, 1), (PairMap([([], 1)]), 2)],
    [(Described(Symbol("d"), [1]), 1), (Described(Symbol("d"), [2]), 2)],
    [(Array("list", [[]]), 1), (types.Char("k"), 2), ("k", 3)],
]


@pytest.mark.parametrize("pairs", COLLIDING, ids=str)
def test_a_map_that_a_dict_would_garble_is_kept_as_pairs(pairs: list[tuple[object, object]]) -> None:
    found = decode_all(encode(PairMap(pairs)))
    assert isinstance(found, PairMap)
    assert same(found, PairMap(pairs))
    assert same(decode_all(encode(found)), found)


def test_a_map_that_a_dict_can_hold_is_a_dict_in_the_order_sent() -> None:
    found = decode_all(encode(PairMap([("b", 1), (Symbol("a"), 2), (types.UInt(3), 4), ((None), 5)])))
    assert type(found) is dict
    assert list(found) == ["b", "a", 3, None]


@pytest.mark.amqp("part 1, 1.6.23")
@pytest.mark.parametrize("key", ["k", Symbol("k"), 1, None, True, [1], {}, Described("d", []), UUID, -0.0], ids=repr)
def test_the_same_key_twice_is_refused(key: object) -> None:
    with pytest.raises(DecodeError, match="same key twice"):
        decode_all(encode(PairMap([(key, 1), (key, 2)])))


def test_the_same_key_in_two_encodings_is_the_same_key() -> None:
    with pytest.raises(DecodeError, match="same key twice"):
        decode_all(octets("c1 0a 04 52 01 40 70 00000001 40"))


def test_a_map_with_an_odd_count_is_refused() -> None:
    with pytest.raises(DecodeError, match="Odd Number of Elements in a Map"):
        decode_all(octets("c1 02 01 40"))


@pytest.mark.parametrize(
    "wrap", [lambda key: key, lambda key: Described(types.ULong(1), key), lambda key: Array("uuid", [key])]
)
def test_keys_that_were_chosen_to_have_one_hash_are_not_compared_each_with_each(
    wrap: Callable[[uuid.UUID], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hash of a uuid, and of values that contain one, is no secret; a dict of many would stall the event loop."""
    keys = [uuid.UUID(int=number * sys.hash_info.modulus) for number in range(500)]
    assert len(set(map(hash, keys))) == 1
    octets = encode(PairMap([(wrap(key), number) for number, key in enumerate(keys)]))
    compared = 0
    plain = uuid.UUID.__eq__

    def count(self: uuid.UUID, other: object) -> Any:
        nonlocal compared
        compared += 1
        return plain(self, other)

    monkeypatch.setattr(uuid.UUID, "__eq__", count)
    decoded = decode_all(octets)
    assert compared < 5 * len(keys)
    assert isinstance(decoded, PairMap)
    assert [number for _, number in decoded.items()] == list(range(500))


def test_a_few_such_keys_are_keys_like_others() -> None:
    mapping: dict[object, object] = {uuid.UUID(int=number): number for number in range(64)}
    assert decode_all(encode(mapping)) == mapping
    many = mapping | {f"key {number}": number for number in range(1000)}
    assert decode_all(encode(many)) == many
    twice = [*many.items(), (uuid.UUID(int=100), 1), (uuid.UUID(int=100), 1)]
    with pytest.raises(DecodeError, match="the same key twice"):
        decode_all(encode(PairMap(twice)))


# ---- false lengths, counts and depths


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a0 05 00", "5 bytes claimed, 1 left"),
        ("b0 ffffffff 00", "4294967295 bytes claimed"),
        ("d0 ffffffff 00000000", "4294967295 bytes claimed"),
        ("d0 00000004 ffffffff", "4294967295 items claimed in 0 bytes"),
        ("d1 00000004 fffffffe", "4294967294 items claimed in 0 bytes"),
        ("c0 02 02 40", "2 items claimed in 1 bytes"),
        ("c0 03 01 40 40", "1 bytes behind the last item"),
        ("c1 04 02 40 40 40", "1 bytes behind the last item"),
        ("c0 00", "cut short"),
        ("d0 00000003 000000", "cut short"),
        ("c0 03 01 a1 05", "5 bytes claimed, 0 left"),
        ("e0 01 00", "cut short"),
        ("e0 03 05 50 01", "5 items claimed in 1 bytes"),
        ("e0 04 01 50 01 02", "1 bytes behind the last item"),
        ("f0 00000005 ffffffff 40", "array items without bytes"),
        ("f0 00000005 ffffffff 70", "4294967295 items claimed in 0 bytes"),
        ("e0 02 00 00", "cut short"),
        ("56 02", "boolean byte"),
        ("73 00110000", "not a Unicode character"),
        ("73 0000d800", "not a Unicode character"),
        ("a1 01 ff", "not UTF-8"),
        ("a1 03 eda080", "not UTF-8"),
        ("a3 01 80", "not ASCII"),
        ("", "cut short"),
        ("00", "cut short"),
        ("00 53", "1 bytes claimed, 0 left"),
        ("40 40", "1 bytes after the value"),
    ],
)
def test_octets_that_lie_are_refused(text: str, complaint: str) -> None:
    with pytest.raises(DecodeError, match=complaint):
        decode_all(octets(text))


def test_a_list_does_not_read_on_behind_its_own_end() -> None:
    # The inner list claims two bytes of content, but its string needs three, and the third lies behind it.
    with pytest.raises(DecodeError, match="1 bytes claimed, 0 left"):
        decode_all(octets("c0 07 02 c0 03 01 a1 01 61"))


def nested(kind: str, depth: int) -> bytes:
    """Return ``depth`` values, one inside the other, with a null in the innermost."""
    data = b"\x40"
    for _ in range(depth):
        if kind == "list":
            data = b"\xd0" + struct.pack(">II", len(data) + 4, 1) + data
        elif kind == "map":
            data = b"\xd1" + struct.pack(">II", len(data) + 5, 2) + b"\x40" + data
        elif kind == "array":
            data = b"\xf0" + struct.pack(">II", len(data) + 4, 1) + data
        elif kind == "descriptor":
            data = b"\x00" + data + b"\x40"
        else:
            data = b"\x00\x44" + data
    return data


KINDS = ["list", "map", "array", "descriptor", "described"]


@pytest.mark.parametrize("kind", KINDS)
def test_nesting_is_read_to_its_bound_and_refused_beyond(kind: str) -> None:
    deepest = nested(kind, MAX_NESTING)
    assert same(decode_all(encode(decode_all(deepest))), decode_all(deepest))
    with pytest.raises(DecodeError, match=f"more than {MAX_NESTING} deep"):
        decode_all(nested(kind, MAX_NESTING + 1))


@pytest.mark.parametrize("kind", ["descriptor", "described"])
def test_skip_bounds_nested_descriptions_too(kind: str) -> None:
    assert skip(nested(kind, MAX_NESTING), 0, len(nested(kind, MAX_NESTING))) == len(nested(kind, MAX_NESTING))
    with pytest.raises(DecodeError, match=f"more than {MAX_NESTING} deep"):
        skip(nested(kind, MAX_NESTING + 1), 0, len(nested(kind, MAX_NESTING + 1)))


@pytest.mark.parametrize("kind", KINDS)
def test_ten_thousand_levels_are_refused_like_33(kind: str) -> None:
    data = nested(kind, 10_000)
    with pytest.raises(DecodeError, match="deep"):
        decode_all(data)
    if kind in ("descriptor", "described"):
        with pytest.raises(DecodeError, match="deep"):
            skip(data, 0, len(data))
    else:
        assert skip(data, 0, len(data)) == len(data)


def test_nested_array_descriptors_are_bounded() -> None:
    def array(descriptors: int) -> bytes:
        constructor = b"\x00\x44" * descriptors + b"\x40"
        return b"\xf0" + struct.pack(">II", len(constructor) + 4, 0) + constructor

    assert len(decode_all(array(MAX_NESTING - 1)).descriptors) == MAX_NESTING - 1
    for count in (MAX_NESTING, 10_000):
        with pytest.raises(DecodeError, match="deep"):
            decode_all(array(count))


@pytest.mark.parametrize("build", [lambda inner: [inner], lambda inner: {1: inner}, lambda inner: Described(1, inner)])
def test_a_value_nested_too_deeply_is_not_encoded(build: Callable[[object], object]) -> None:
    value: object = None
    for _ in range(MAX_NESTING):
        value = build(value)
    assert same(decode_all(encode(value)), value)
    with pytest.raises(EncodeError, match="deep"):
        encode(build(value))


def test_an_empty_list_in_the_deepest_place_goes_both_ways() -> None:
    data = nested("described", MAX_NESTING)[:-1] + b"\x45"
    assert encode(decode_all(data)) == data


def test_array_items_without_octets_are_read_to_their_bound_and_refused_beyond() -> None:
    for code in (0x40, 0x41, 0x42, 0x43, 0x44, 0x45):
        bound = b"\xf0" + struct.pack(">IIB", 5, MAX_ZERO_WIDTH_ITEMS, code)
        assert len(decode_all(bound)) == MAX_ZERO_WIDTH_ITEMS
        with pytest.raises(DecodeError, match="without bytes"):
            decode_all(b"\xf0" + struct.pack(">IIB", 5, MAX_ZERO_WIDTH_ITEMS + 1, code))


def test_the_bound_holds_over_all_arrays_of_one_value() -> None:
    # Four arrays of a quarter each are permitted and one more item is not: small arrays must not add up to much memory.
    quarter = b"\xf0" + struct.pack(">IIB", 5, MAX_ZERO_WIDTH_ITEMS // 4, 0x40)
    body = quarter * 4
    assert len(decode_all(b"\xd0" + struct.pack(">II", len(body) + 4, 4) + body)) == 4
    body += b"\xe0\x02\x01\x40"
    with pytest.raises(DecodeError, match="without bytes"):
        decode_all(b"\xd0" + struct.pack(">II", len(body) + 4, 5) + body)


@pytest.mark.parametrize(("offset", "end"), [(-1, 1), (0, 3), (2, 1), (3, 3)])
def test_a_range_outside_the_data_is_refused(offset: int, end: int) -> None:
    for read in (decode, skip):
        with pytest.raises(DecodeError):
            read(b"\x40\x40", offset, end)


def test_an_error_has_the_offset() -> None:
    with pytest.raises(DecodeError) as caught:
        decode_all(octets("c0 05 02 40 a1 01 ff"))
    assert caught.value.offset == 6


@pytest.mark.parametrize("code", ["symbol", "string"])
def test_a_symbol_has_at_most_1024_octets_and_a_string_as_many_as_there_are(code: str) -> None:
    for size in (1024, 1025):
        octets = (b"\xb3" if code == "symbol" else b"\xb1") + size.to_bytes(4, "big") + b"x" * size
        if code == "symbol" and size > 1024:
            with pytest.raises(DecodeError, match="symbol of more than 1024 bytes"):
                decode_all(octets)
        else:
            assert decode_all(octets) == "x" * size


@given(data=st.binary(max_size=12), offset=st.integers(0, 12))
def test_a_number_is_read_whole_or_not_at_all(data: bytes, offset: int) -> None:
    if offset + 4 <= len(data):
        assert be32(data, offset) == int.from_bytes(data[offset : offset + 4], "big")
    else:
        with pytest.raises(IndexError):
            be32(data, offset)
