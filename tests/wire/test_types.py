"""The value classes: ranges at their limits, and equality that distinguishes AMQP's types."""

from __future__ import annotations

import math

import pytest

from trouter.wire import types
from trouter.wire.errors import EncodeError
from trouter.wire.types import Array, Described, PairMap

WIDTHS: dict[type[int], tuple[int, int]] = {
    types.UByte: (0, 2**8 - 1),
    types.UShort: (0, 2**16 - 1),
    types.UInt: (0, 2**32 - 1),
    types.ULong: (0, 2**64 - 1),
    types.Byte: (-(2**7), 2**7 - 1),
    types.Short: (-(2**15), 2**15 - 1),
    types.Int: (-(2**31), 2**31 - 1),
    types.Long: (-(2**63), 2**63 - 1),
    types.Timestamp: (-(2**63), 2**63 - 1),
}


@pytest.mark.parametrize("cls", WIDTHS, ids=lambda cls: cls.__name__)
def test_an_integer_type_takes_its_whole_range_and_nothing_beyond(cls: type[int]) -> None:
    low, high = WIDTHS[cls]
    assert (cls(low), cls(high)) == (low, high)
    for outside in (low - 1, high + 1):
        with pytest.raises(EncodeError, match=cls.__name__):
            cls(outside)


def test_a_symbol_is_ascii_and_equals_the_text() -> None:
    assert types.Symbol("queue") == "queue"
    with pytest.raises(EncodeError, match="ASCII"):
        types.Symbol("Käse")


@pytest.mark.parametrize("text", ["", "ab", chr(0xD800), chr(0xDFFF)])
def test_a_char_is_one_unicode_scalar(text: str) -> None:
    with pytest.raises(EncodeError, match="character"):
        types.Char(text)


@pytest.mark.parametrize("text", ["\0", "\ud7ff", "\ue000", "\U0010ffff"])
def test_a_char_may_be_any_scalar(text: str) -> None:
    assert types.Char(text) == text


def test_a_float_holds_32_bits() -> None:
    assert types.Float(0.1) == pytest.approx(0.1, rel=1e-7)
    assert types.Float(0.1) != 0.1
    assert math.isinf(types.Float(math.inf))
    with pytest.raises(EncodeError, match="range"):
        types.Float(1e39)


@pytest.mark.parametrize(("cls", "width"), [(types.Decimal32, 4), (types.Decimal64, 8), (types.Decimal128, 16)])
def test_a_decimal_keeps_its_octets(
    cls: type[types.Decimal32 | types.Decimal64 | types.Decimal128], width: int
) -> None:
    assert cls(bytes(width)).raw == bytes(width)
    assert cls(bytes(width)) == cls(bytes(width))
    assert cls(bytes(width)) != cls(b"\1" * width)
    assert len({cls(bytes(width)), cls(bytes(width))}) == 1
    for other in (width - 1, width + 1):
        with pytest.raises(EncodeError, match="bytes"):
            cls(bytes(other))


def test_decimals_of_different_width_differ_and_are_not_binary() -> None:
    assert types.Decimal32(bytes(4)) != types.Decimal64(bytes(8))
    assert types.Decimal32(b"abcd") != b"abcd"


def test_compound_values_compare_by_content() -> None:
    assert Described("a", [1]) == Described("a", [1]) != Described("a", [2])
    assert Array("uint", [1]) == Array("uint", [1]) != Array("ulong", [1])
    assert Array("uint", [1]) != Array("uint", [1], ["d"])
    assert PairMap([("a", 1)]) == PairMap([("a", 1)]) != PairMap([("a", 2)])
    assert Described("a", 1) != ("a", 1)
    assert len({Described("a", 1), Described("a", 1), Array("uint", [1]), Array("uint", [1]), PairMap([(1, 2)])}) == 3


def test_reprs_name_the_type_so_that_a_log_line_distinguishes_them() -> None:
    shown = repr([types.Symbol("s"), types.Char("c"), types.UInt(1), types.Float(1.5), types.Decimal32(b"abcd")])
    assert shown == "[Symbol('s'), Char('c'), UInt(1), Float(1.5), Decimal32(b'abcd')]"
    assert repr(Array("uint", [1], ["d"])) == "Array('uint', (1,), ('d',))"
    assert repr(Described("a", PairMap([(1, 2)]))) == "Described('a', PairMap([(1, 2)]))"
