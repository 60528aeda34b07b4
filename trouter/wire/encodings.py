"""The table of AMQP 1.0 primitive types and their encodings (part 1, 1.6), which ``codec.py`` reads and writes by.

A type converts its Python value to octets and back. An encoding has a format code, the number of octets that follow (or
of the length before them) and the values that fit: integers by value, the others by length in bytes. The encodings of
a type are sorted, smallest first.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

from trouter.wire import types
from trouter.wire.constants import MAX_SYMBOL_BYTES
from trouter.wire.errors import DecodeError, EncodeError

Layout = Literal["fixed", "variable", "compound", "array"]
_U32: Final = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Primitive:
    """A type: its Python class and, unless it has parts, the conversions to bytes and back."""

    name: str
    python: type
    from_octets: Callable[[bytes], object] | None = None
    to_octets: Callable[[Any, int], bytes] | None = None
    ranged: bool = False  # choose the encoding by value, not by length


@dataclass(frozen=True, slots=True)
class Encoding:
    """One format code. ``width`` is the size of a fixed value, or of the length (and count) of others, in bytes."""

    code: int
    type: str
    layout: Layout
    width: int
    low: int = 0
    high: int = 0


#: Symbols that nearly every peer sends and that are kept as long as its links: one object serves all.
_COMMON_SYMBOLS: Final = {
    text.encode(): types.Symbol(text)
    for text in ("ANONYMOUS", "EXTERNAL", "PLAIN", "connection-close", "link-detach", "never", "session-end")
}


def _whole(python: type[int], *, signed: bool) -> tuple[Callable[[bytes], object], Callable[[Any, int], bytes]]:
    def from_octets(octets: bytes) -> object:
        number = int.from_bytes(octets, "big", signed=signed)
        return number if python is int else int.__new__(python, number)  # in range by its width

    def to_octets(value: int, width: int) -> bytes:
        return value.to_bytes(width, "big", signed=signed)

    return from_octets, to_octets


def _packed(python: type, layout: str) -> tuple[Callable[[bytes], object], Callable[[Any, int], bytes]]:
    packer = struct.Struct(layout)

    def from_octets(octets: bytes) -> object:
        number = packer.unpack(octets)[0]
        return number if python is float else float.__new__(python, number)

    def to_octets(value: object, width: int) -> bytes:
        return packer.pack(value)

    return from_octets, to_octets


def _boolean(octets: bytes) -> object:
    if octets > b"\x01":
        raise DecodeError(f"boolean byte is {octets[0]:#04x}, neither 0 nor 1")
    return octets == b"\x01"


def _char(octets: bytes) -> object:
    try:
        return str.__new__(types.Char, octets, "utf-32-be")
    except UnicodeDecodeError:
        raise DecodeError(f"char is not a Unicode character: {octets.hex()}") from None


def _string(octets: bytes) -> object:
    try:
        return str(octets, "utf-8")
    except UnicodeDecodeError:
        raise DecodeError("string is not UTF-8") from None


def _symbol(octets: bytes) -> object:
    common = _COMMON_SYMBOLS.get(octets)
    if common is not None:
        return common
    if len(octets) > MAX_SYMBOL_BYTES:
        raise DecodeError(f"symbol of more than {MAX_SYMBOL_BYTES} bytes")
    try:
        return str.__new__(types.Symbol, octets, "ascii")
    except UnicodeDecodeError:
        raise DecodeError("symbol is not ASCII") from None


def _utf8(value: str, width: int) -> bytes:
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise EncodeError(f"string holds a lone surrogate: {value!r}") from None


def _raw(value: Any, width: int) -> bytes:
    return value.raw  # type: ignore[no-any-return]


PRIMITIVES: Final[tuple[Primitive, ...]] = (
    Primitive("null", type(None), lambda octets: None, lambda value, width: b""),
    Primitive("boolean", bool, _boolean, lambda value, width: bytes([value]), ranged=True),
    Primitive("ubyte", types.UByte, *_whole(types.UByte, signed=False), ranged=True),
    Primitive("ushort", types.UShort, *_whole(types.UShort, signed=False), ranged=True),
    Primitive("uint", types.UInt, *_whole(types.UInt, signed=False), ranged=True),
    Primitive("ulong", types.ULong, *_whole(types.ULong, signed=False), ranged=True),
    Primitive("byte", types.Byte, *_whole(types.Byte, signed=True), ranged=True),
    Primitive("short", types.Short, *_whole(types.Short, signed=True), ranged=True),
    Primitive("int", types.Int, *_whole(types.Int, signed=True), ranged=True),
    Primitive("long", int, *_whole(int, signed=True), ranged=True),
    Primitive("float", types.Float, *_packed(types.Float, ">f")),
    Primitive("double", float, *_packed(float, ">d")),
    Primitive("decimal32", types.Decimal32, types.Decimal32, _raw),
    Primitive("decimal64", types.Decimal64, types.Decimal64, _raw),
    Primitive("decimal128", types.Decimal128, types.Decimal128, _raw),
    Primitive("char", types.Char, _char, lambda value, width: value.encode("utf-32-be")),
    Primitive("timestamp", types.Timestamp, *_whole(types.Timestamp, signed=True), ranged=True),
    Primitive("uuid", uuid.UUID, lambda octets: uuid.UUID(bytes=octets), lambda value, width: value.bytes),
    Primitive("binary", bytes, bytes, lambda value, width: value),
    Primitive("string", str, _string, _utf8),
    Primitive("symbol", types.Symbol, _symbol, lambda value, width: value.encode("ascii")),
    Primitive("list", list),
    Primitive("map", dict),
    Primitive("array", types.Array),
)

ENCODINGS: Final[tuple[Encoding, ...]] = (
    Encoding(0x40, "null", "fixed", 0),
    Encoding(0x41, "boolean", "fixed", 0, 1, 1),
    Encoding(0x42, "boolean", "fixed", 0, 0, 0),
    Encoding(0x56, "boolean", "fixed", 1, 0, 1),
    Encoding(0x50, "ubyte", "fixed", 1, 0, 0xFF),
    Encoding(0x60, "ushort", "fixed", 2, 0, 0xFFFF),
    Encoding(0x43, "uint", "fixed", 0, 0, 0),
    Encoding(0x52, "uint", "fixed", 1, 0, 0xFF),
    Encoding(0x70, "uint", "fixed", 4, 0, _U32),
    Encoding(0x44, "ulong", "fixed", 0, 0, 0),
    Encoding(0x53, "ulong", "fixed", 1, 0, 0xFF),
    Encoding(0x80, "ulong", "fixed", 8, 0, 0xFFFFFFFFFFFFFFFF),
    Encoding(0x51, "byte", "fixed", 1, -0x80, 0x7F),
    Encoding(0x61, "short", "fixed", 2, -0x8000, 0x7FFF),
    Encoding(0x54, "int", "fixed", 1, -0x80, 0x7F),
    Encoding(0x71, "int", "fixed", 4, -0x80000000, 0x7FFFFFFF),
    Encoding(0x55, "long", "fixed", 1, -0x80, 0x7F),
    Encoding(0x81, "long", "fixed", 8, -0x8000000000000000, 0x7FFFFFFFFFFFFFFF),
    Encoding(0x72, "float", "fixed", 4, 0, _U32),
    Encoding(0x82, "double", "fixed", 8, 0, _U32),
    Encoding(0x74, "decimal32", "fixed", 4, 0, _U32),
    Encoding(0x84, "decimal64", "fixed", 8, 0, _U32),
    Encoding(0x94, "decimal128", "fixed", 16, 0, _U32),
    Encoding(0x73, "char", "fixed", 4, 0, _U32),
    Encoding(0x83, "timestamp", "fixed", 8, -0x8000000000000000, 0x7FFFFFFFFFFFFFFF),
    Encoding(0x98, "uuid", "fixed", 16, 0, _U32),
    Encoding(0xA0, "binary", "variable", 1, 0, 0xFF),
    Encoding(0xB0, "binary", "variable", 4, 0, _U32),
    Encoding(0xA1, "string", "variable", 1, 0, 0xFF),
    Encoding(0xB1, "string", "variable", 4, 0, _U32),
    Encoding(0xA3, "symbol", "variable", 1, 0, 0xFF),
    Encoding(0xB3, "symbol", "variable", 4, 0, _U32),
    Encoding(0x45, "list", "fixed", 0),
    Encoding(0xC0, "list", "compound", 1, 0, 0xFF),
    Encoding(0xD0, "list", "compound", 4, 0, _U32),
    Encoding(0xC1, "map", "compound", 1, 0, 0xFF),
    Encoding(0xD1, "map", "compound", 4, 0, _U32),
    Encoding(0xE0, "array", "array", 1, 0, 0xFF),
    Encoding(0xF0, "array", "array", 4, 0, _U32),
)

PRIMITIVE_OF: Final = {primitive.name: primitive for primitive in PRIMITIVES}
ENCODING_OF: Final = {encoding.code: encoding for encoding in ENCODINGS}
ENCODINGS_OF: Final = {
    name: tuple(encoding for encoding in ENCODINGS if encoding.type == name) for name in PRIMITIVE_OF
}


def smallest(name: str, low: int, high: int, *, zero_width: bool = True) -> Encoding:
    """Return the first encoding of type ``name`` that fits ``low`` to ``high``; EncodeError if none does."""
    for encoding in ENCODINGS_OF[name]:
        if encoding.low <= low and high <= encoding.high and (zero_width or encoding.width):
            return encoding
    raise EncodeError(f"{name} out of range: {low}" if low == high else f"{name} out of range: {low} to {high}")
