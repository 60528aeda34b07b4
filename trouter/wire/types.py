"""Python values for the AMQP 1.0 types that Python lacks (part 1, 1.6).

Plain Python is used for the rest: None, bool, int (long), float (double), bytes (binary), str (string), list and tuple
(list), dict (map), uuid.UUID (uuid). The constructors check ranges and raise EncodeError.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Self

from trouter.wire.errors import EncodeError


class Symbol(str):
    """An ASCII name from a constrained domain; equal to the str with the same characters."""

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        if not text.isascii():
            raise EncodeError(f"symbol is not ASCII: {text!r}")
        return super().__new__(cls, text)

    def __repr__(self) -> str:
        return f"Symbol({str.__repr__(self)})"


class Char(str):
    """One Unicode scalar value."""

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        if len(text) != 1 or "\ud800" <= text <= "\udfff":
            raise EncodeError(f"not one Unicode character: {text!r}")
        return super().__new__(cls, text)

    def __repr__(self) -> str:
        return f"Char({str.__repr__(self)})"


class _Ranged(int):
    """An int with the range of its AMQP type."""

    __slots__ = ()
    low: ClassVar[int]
    high: ClassVar[int]

    def __new__(cls, value: int) -> Self:
        if not cls.low <= value <= cls.high:
            raise EncodeError(f"{cls.__name__} out of range: {int(value)}")
        return super().__new__(cls, value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({int(self)})"

    def __str__(self) -> str:
        return int.__repr__(self)


class UByte(_Ranged):
    """0 to 2**8 - 1."""

    __slots__ = ()
    low, high = 0, 0xFF


class UShort(_Ranged):
    """0 to 2**16 - 1."""

    __slots__ = ()
    low, high = 0, 0xFFFF


class UInt(_Ranged):
    """0 to 2**32 - 1."""

    __slots__ = ()
    low, high = 0, 0xFFFFFFFF


class ULong(_Ranged):
    """0 to 2**64 - 1."""

    __slots__ = ()
    low, high = 0, 0xFFFFFFFFFFFFFFFF


class Byte(_Ranged):
    """-2**7 to 2**7 - 1."""

    __slots__ = ()
    low, high = -0x80, 0x7F


class Short(_Ranged):
    """-2**15 to 2**15 - 1."""

    __slots__ = ()
    low, high = -0x8000, 0x7FFF


class Int(_Ranged):
    """-2**31 to 2**31 - 1."""

    __slots__ = ()
    low, high = -0x80000000, 0x7FFFFFFF


class Long(_Ranged):
    """-2**63 to 2**63 - 1; encoded like a plain int, and decoded to one."""

    __slots__ = ()
    low, high = -0x8000000000000000, 0x7FFFFFFFFFFFFFFF


class Timestamp(_Ranged):
    """Milliseconds since 1970-01-01T00:00Z."""

    __slots__ = ()
    low, high = -0x8000000000000000, 0x7FFFFFFFFFFFFFFF


class Float(float):
    """A 32-bit float; the value is rounded to 32 bits."""

    __slots__ = ()

    def __new__(cls, value: float) -> Self:
        try:
            return super().__new__(cls, struct.unpack(">f", struct.pack(">f", value))[0])
        except OverflowError as error:
            raise EncodeError(f"Float out of range: {value}") from error

    def __repr__(self) -> str:
        return f"Float({float(self)!r})"

    def __str__(self) -> str:
        return float.__repr__(self)


class _Decimal:
    """An IEEE 754 decimal as its encoded bytes; equality is equality of bytes."""

    __slots__ = ("raw",)
    width: ClassVar[int]

    def __init__(self, raw: bytes) -> None:
        if len(raw) != self.width:
            raise EncodeError(f"{type(self).__name__} needs {self.width} bytes, not {len(raw)}")
        self.raw = bytes(raw)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and other.raw == self.raw

    def __hash__(self) -> int:
        return hash((type(self), self.raw))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.raw!r})"


class Decimal32(_Decimal):
    """Four bytes."""

    __slots__ = ()
    width = 4


class Decimal64(_Decimal):
    """Eight bytes."""

    __slots__ = ()
    width = 8


class Decimal128(_Decimal):
    """Sixteen bytes."""

    __slots__ = ()
    width = 16


class Described:
    """A value with a descriptor that gives its meaning (1.2); hashable if both parts are."""

    __slots__ = ("descriptor", "value")

    def __init__(self, descriptor: object, value: object) -> None:
        self.descriptor = descriptor
        self.value = value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Described):
            return NotImplemented
        return self.descriptor == other.descriptor and self.value == other.value

    def __hash__(self) -> int:
        return hash((Described, self.descriptor, self.value))

    def __repr__(self) -> str:
        return f"Described({self.descriptor!r}, {self.value!r})"


class Array:
    """Items of one AMQP type, named ``of`` ("symbol", "uint", "list", ...).

    ``descriptors``, outermost first, apply to every item of a described type.
    """

    __slots__ = ("descriptors", "items", "of")

    def __init__(self, of: str, items: Iterable[object], descriptors: Iterable[object] = ()) -> None:
        self.of = of
        self.items = tuple(items)
        self.descriptors = tuple(descriptors)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Array):
            return NotImplemented
        return (self.of, self.items, self.descriptors) == (other.of, other.items, other.descriptors)

    def __hash__(self) -> int:
        return hash((self.of, self.items, self.descriptors))

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[object]:
        return iter(self.items)

    def __repr__(self) -> str:
        tail = f", {self.descriptors!r}" if self.descriptors else ""
        return f"Array({self.of!r}, {self.items!r}{tail})"


class ArrayForm(tuple[Any, ...]):
    """The values of a multiple field that came as an array; equal to a plain tuple of them.

    A field with one value may also hold the bare value (part 1, 1.4). Peers distinguish the two forms, so a field that
    came as an array is written as an array.
    """

    __slots__ = ()


class PairMap:
    """A map that no dict holds without loss or in linear time.

    A key is unhashable, two keys differ only in their AMQP type, or many have a hash that the sender could choose.
    """

    __slots__ = ("pairs",)

    def __init__(self, pairs: Iterable[tuple[object, object]]) -> None:
        self.pairs = tuple((key, value) for key, value in pairs)

    def items(self) -> Iterator[tuple[object, object]]:
        """Return an iterator over the pairs, as ``dict.items`` does."""
        return iter(self.pairs)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PairMap):
            return NotImplemented
        return self.pairs == other.pairs

    def __hash__(self) -> int:
        return hash((PairMap, self.pairs))

    def __len__(self) -> int:
        return len(self.pairs)

    def __repr__(self) -> str:
        return f"PairMap({list(self.pairs)!r})"
