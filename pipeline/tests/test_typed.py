"""Values parsed from text: all that the source writes, each digit and each type, and invalid ones."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trouter.wire import codec
from trouter.wire.types import (
    Array,
    Byte,
    Char,
    Decimal32,
    Decimal64,
    Decimal128,
    Described,
    Float,
    Int,
    PairMap,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)
from trouter_pipeline.typed import BadValue, from_json, from_text, key_from_text
from trouter_pipeline.values import ValueReader, decimal_text

VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.text(), st.binary(), st.uuids(), st.floats(),
        st.integers(-(2**63), 2**63 - 1), st.integers(0, 2**64 - 1).map(ULong), st.integers(0, 255).map(UByte),
        st.integers(0, 2**16 - 1).map(UShort), st.integers(0, 2**32 - 1).map(UInt), st.integers(-128, 127).map(Byte),
        st.integers(-(2**15), 2**15 - 1).map(Short), st.integers(-(2**31), 2**31 - 1).map(Int),
        st.integers(-(2**63), 2**63 - 1).map(Timestamp), st.floats(width=32).map(Float),
        st.characters(exclude_categories=["Cs"]).map(Char), st.text("abc-").map(Symbol),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.builds(PairMap, st.lists(st.tuples(st.text(), inner), max_size=3, unique_by=lambda pair: pair[0])),
        st.builds(Described, st.integers(0, 9).map(ULong), inner),
        st.builds(Array, st.just("string"), st.lists(st.text(), max_size=3)),
    ),
    max_leaves=8,
)  # fmt: skip


@settings(max_examples=40)
@given(value=VALUES)
def test_every_value_that_the_source_writes_is_read_back(value: object) -> None:
    octets = codec.encode(value)
    reader = ValueReader()
    out = bytearray()
    assert reader.json(out, octets, 0, len(octets)) == len(octets)
    assert codec.encode(from_json(out.decode())) == octets
    reader.read(octets, 0, len(octets))
    assert codec.encode(from_text(reader.kind.decode(), reader.text.decode())) == octets


@given(
    sign=st.integers(0, 1),
    coefficient=st.integers(0, 10**34 - 1),
    exponent=st.integers(-6176, 6111),
    width=st.sampled_from((4, 8, 16)),
)
def test_decimals_keep_each_digit(sign: int, coefficient: int, exponent: int, width: int) -> None:
    digits, low, high = {4: (7, -101, 90), 8: (16, -398, 369), 16: (34, -6176, 6111)}[width]
    text = str(Decimal((sign, tuple(map(int, str(coefficient % 10**digits))), max(low, min(high, exponent)))))
    value = from_text(f"decimal{8 * width}", text)
    assert isinstance(value, Decimal32 | Decimal64 | Decimal128)
    assert decimal_text(value.raw) == text


@pytest.mark.parametrize("text", ["NaN", "-NaN", "sNaN", "Infinity", "-Infinity", "NaN123", "-0", "1E+3", "1.50"])
def test_decimals_that_are_no_numbers(text: str) -> None:
    for kind in ("decimal32", "decimal64", "decimal128"):
        assert decimal_text(from_text(kind, text).raw) == text


@pytest.mark.parametrize(
    ("kind", "text"),
    [("decimal32", "12345678"), ("decimal64", "1E+999"), ("decimal32", "x"), ("char", "ab"), ("boolean", "yes"),
     ("binary", "?"), ("uuid", "1"), ("ubyte", "256"), ("float", "1e99"), ("symbol", "é")],
)  # fmt: skip
def test_text_that_is_no_value_of_its_type(kind: str, text: str) -> None:
    with pytest.raises(BadValue, match=f"is no {kind}"):
        from_text(kind, text)


@pytest.mark.parametrize(
    "text",
    ["{", '{"$ulong":7}', '{"$map":[[1]]}', '{"$map":7}', '{"$described":[1]}', '{"$array":[]}', '{"$quad":"1"}',
     "[" * 1000 + "]" * 1000, "[" * 100_000],
)  # fmt: skip
def test_json_that_is_no_value(text: str) -> None:
    with pytest.raises(BadValue):
        from_json(text)


def test_keys_name_their_type_where_the_text_is_ambiguous() -> None:
    assert key_from_text("ulong:7", Symbol) == ULong(7)
    assert type(key_from_text("x-opt", Symbol)) is Symbol
    assert key_from_text("urn:x", str) == "urn:x"
    assert key_from_text("symbol:list:x", str) == Symbol("list:x")
