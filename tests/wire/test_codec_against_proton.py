"""An independent check: python-qpid-proton reads trouter's encodings and writes values for it, for every type."""

from __future__ import annotations

import math
import uuid
from typing import Any

import proton
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.test_sections import scanned
from tests.wire.values import key_of
from trouter.wire import types
from trouter.wire.codec import decode_all, encode
from trouter.wire.sections import THROUGH_APPLICATION_PROPERTIES
from trouter.wire.types import Array, Described, Symbol

pytestmark = pytest.mark.interop
Data = proton.Data
UUID = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")

# The value; the method of proton.Data that writes it; its argument (get_object returns an equal value).
SCALARS = [
    (None, "put_null", None),
    (True, "put_bool", True),
    (False, "put_bool", False),
    *[(types.UByte(n), "put_ubyte", proton.ubyte(n)) for n in (0, 255)],
    *[(types.UShort(n), "put_ushort", proton.ushort(n)) for n in (0, 65535)],
    *[(types.UInt(n), "put_uint", proton.uint(n)) for n in (0, 1, 255, 256, 2**32 - 1)],
    *[(types.ULong(n), "put_ulong", proton.ulong(n)) for n in (0, 1, 255, 256, 2**63, 2**64 - 1)],
    *[(types.Byte(n), "put_byte", proton.byte(n)) for n in (-128, 127)],
    *[(types.Short(n), "put_short", proton.short(n)) for n in (-32768, 32767)],
    *[(types.Int(n), "put_int", proton.int32(n)) for n in (-(2**31), -129, -128, 0, 127, 128, 2**31 - 1)],
    *[(n, "put_long", n) for n in (-(2**63), -129, -128, 0, 127, 128, 2**63 - 1)],
    *[(types.Float(n), "put_float", proton.float32(n)) for n in (0.0, -1.5, math.inf)],
    *[(n, "put_double", n) for n in (0.0, -1.1, math.inf, 1e300)],
    (types.Decimal32(bytes.fromhex("22500001")), "put_decimal32", proton.decimal32(0x22500001)),
    (types.Decimal64(bytes.fromhex("2238000000000001")), "put_decimal64", proton.decimal64(0x2238000000000001)),
    (types.Decimal128(bytes(range(16))), "put_decimal128", proton.decimal128(bytes(range(16)))),
    *[(types.Char(c), "put_char", proton.char(c)) for c in ("\0", "a", "\U0010ffff")],
    *[(types.Timestamp(n), "put_timestamp", proton.timestamp(n)) for n in (-1, 0, 2**63 - 1)],
    (UUID, "put_uuid", UUID),
    *[(b"x" * n, "put_binary", b"x" * n) for n in (0, 1, 255, 256)],
    *[("é" * n, "put_string", "é" * n) for n in (0, 1, 127, 128)],
    *[(Symbol("s" * n), "put_symbol", proton.symbol("s" * n)) for n in (0, 1, 255, 256)],
]


def name_of(row: object) -> str:
    return repr(row)[:40]


@pytest.mark.parametrize(("ours", "put", "theirs"), SCALARS, ids=name_of)
def test_the_codec_reads_the_values_of_proton(ours: object, put: str, theirs: object) -> None:
    data = Data()
    getattr(data, put)(*(() if theirs is None else (theirs,)))
    assert key_of(decode_all(bytes(data.encode()))) == key_of(ours)


@pytest.mark.parametrize(("ours", "put", "theirs"), SCALARS, ids=name_of)
def test_proton_reads_the_values_of_the_codec(ours: object, put: str, theirs: object) -> None:
    octets = encode(ours)
    data = Data()
    assert data.decode(octets) == len(octets)
    data.rewind()
    assert data.next() is not None
    assert data.type() == getattr(Data, put.removeprefix("put_").upper())
    assert data.get_object() == theirs


def their_object(octets: bytes) -> object:
    data = Data()
    assert data.decode(octets) == len(octets)
    data.rewind()
    data.next()
    return detached(data.get_object())


def detached(value: Any) -> Any:
    """Return a copy of binary data: proton returns a view into the Data, which ends with it."""
    if isinstance(value, memoryview):
        return bytes(value)
    if isinstance(value, proton.Described):
        return proton.Described(detached(value.descriptor), detached(value.value))
    if isinstance(value, proton.Array):
        return proton.Array(value.descriptor, value.type, *map(detached, value.elements))
    if isinstance(value, dict):
        return {key: detached(item) for key, item in value.items()}
    return [detached(item) for item in value] if isinstance(value, list) else value


def our_octets_of(build: list[tuple[str, tuple[object, ...]]]) -> bytes:
    data = Data()
    for method, arguments in build:
        getattr(data, method)(*arguments)
    return bytes(data.encode())


ARRAYS = [
    ("BOOL", "put_bool", [True, False], Array("boolean", [True, False])),
    ("UINT", "put_uint", [1, 70000], Array("uint", [types.UInt(1), types.UInt(70000)])),
    ("ULONG", "put_ulong", [1, 2**64 - 1], Array("ulong", [types.ULong(1), types.ULong(2**64 - 1)])),
    ("INT", "put_int", [-1, 1], Array("int", [types.Int(-1), types.Int(1)])),
    ("LONG", "put_long", [-1, 2**40], Array("long", [-1, 2**40])),
    ("DOUBLE", "put_double", [1.5], Array("double", [1.5])),
    ("SYMBOL", "put_symbol", ["a", "bc" * 200], Array("symbol", [Symbol("a"), Symbol("bc" * 200)])),
    ("STRING", "put_string", ["a", "é"], Array("string", ["a", "é"])),
    ("BINARY", "put_binary", [b"a", b""], Array("binary", [b"a", b""])),
    ("UUID", "put_uuid", [UUID], Array("uuid", [UUID])),
    ("UINT", "put_uint", [], Array("uint", [])),
]


@pytest.mark.parametrize("described", [False, True])
@pytest.mark.parametrize(("kind", "put", "items", "ours"), ARRAYS, ids=name_of)
def test_arrays_are_read_alike(kind: str, put: str, items: list[object], ours: Array, described: bool) -> None:
    build: list[tuple[str, tuple[object, ...]]] = [("put_array", (described, getattr(Data, kind))), ("enter", ())]
    if described:
        build.append(("put_symbol", (proton.symbol("d"),)))
    build += [(put, (item,)) for item in items] + [("exit", ())]
    theirs = our_octets_of(build)
    ours = Array(ours.of, ours.items, [Symbol("d")] if described else [])
    assert key_of(decode_all(theirs)) == key_of(ours)
    assert their_object(encode(ours)) == their_object(theirs)


def not_described(value: object) -> bool:
    """Return whether a value has no described value in another, whose rest Proton 0.40 loses."""
    return not isinstance(value, proton.Described)


# Proton's Python binding turns maps into dicts, so keys that a dict confuses are not compared.
KEYS = st.text(max_size=20)
THEIR_VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False),
        st.text(max_size=300),
        st.binary(max_size=300),
        st.uuids(),
        st.integers(0, 2**32 - 1).map(proton.uint),
        st.text(st.characters(max_codepoint=127), max_size=20).map(proton.symbol),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(KEYS, inner, max_size=4),
        st.builds(proton.Described, st.integers(0, 2**64 - 1).map(proton.ulong), inner.filter(not_described)),
    ),
    max_leaves=10,
)


def ours_of(theirs: object) -> object:
    if isinstance(theirs, proton.symbol):
        return Symbol(theirs)
    if isinstance(theirs, proton.ulong):
        return types.ULong(theirs)
    if isinstance(theirs, proton.uint):
        return types.UInt(theirs)
    if isinstance(theirs, proton.Described):
        return Described(ours_of(theirs.descriptor), ours_of(theirs.value))
    if isinstance(theirs, dict):
        return {key: ours_of(value) for key, value in theirs.items()}
    if isinstance(theirs, list):
        return [ours_of(item) for item in theirs]
    return theirs


@given(THEIR_VALUES)
def test_any_tree_of_values_goes_both_ways(theirs: Any) -> None:
    data = Data()
    data.put_object(theirs)
    octets = bytes(data.encode())
    assert key_of(decode_all(octets)) == key_of(ours_of(theirs))
    assert their_object(encode(ours_of(theirs))) == theirs


def test_a_whole_message_of_protons_reads_as_its_sections() -> None:
    message = proton.Message(
        body={"k": [1, proton.symbol("s"), b"b", None]},
        id=proton.ulong(7),
        user_id=b"u",
        address="to/here",
        subject="s",
        durable=True,
        priority=9,
        properties={"a": proton.int32(1)},
        annotations={proton.symbol("x-opt-a"): "b"},
        creation_time=1.0,
    )
    octets = bytes(message.encode())
    sections = decode_all(b"\xd0" + (len(octets) + 4).to_bytes(4, "big") + (5).to_bytes(4, "big") + octets)
    assert [int(section.descriptor) for section in sections] == [0x70, 0x72, 0x73, 0x74, 0x77]
    header, annotations, properties, application, body = (section.value for section in sections)
    assert header[:2] == [True, types.UByte(9)]
    assert key_of(annotations) == key_of({Symbol("x-opt-a"): "b"})
    assert key_of(properties[:4]) == key_of([types.ULong(7), b"u", "to/here", "s"])
    assert key_of(application) == key_of({"a": types.Int(1)})
    assert key_of(body) == key_of({"k": [1, Symbol("s"), b"b", None]})


def test_a_message_of_protons_is_scanned() -> None:
    message = proton.Message(body="b", user_id=b"me", address="a/b", priority=7, annotations={proton.symbol("x"): 1})
    data = bytes(message.encode())
    found = scanned(data, THROUGH_APPLICATION_PROPERTIES)
    start, end = found["annotations"]
    assert decode_all(data[start:end]) == Described(types.ULong(0x72), {Symbol("x"): 1})
    assert (found["priority"], found["to"], found["user_id"], found["insert_at"]) == (7, "a/b", b"me", start)
