"""AMQP values as text without loss: a text beside the name of the type, or JSON with tags.

A scalar has its usual text: decimal digits, `true`, a uuid's usual form, base64 for binary, milliseconds since 1970 for
a timestamp. In JSON, null, booleans, strings and lists are themselves, and all else is an object with one member:
`{"$ulong": "7"}`, `{"$map": [[key, value], ...]}`, `{"$described": [descriptor, value]}`, `{"$array": ["uint", [items],
[descriptors]]}`.

The bytes come from peers: depth, length of the text and items without bytes are bounded, and only DecodeError is
raised.
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Callable
from decimal import Decimal
from json import dumps
from typing import TYPE_CHECKING, Final
from uuid import UUID

from trouter.wire.codec import be32, skip
from trouter.wire.constants import MAX_NESTING, MAX_ZERO_WIDTH_ITEMS
from trouter.wire.encodings import ENCODING_OF
from trouter.wire.errors import DecodeError

if TYPE_CHECKING:
    from cython import Py_ssize_t

#: Longest text of one section.
MAX_TEXT_BYTES: Final = 64 << 20
_MAX_TEXT_BYTES: Final[Py_ssize_t] = MAX_TEXT_BYTES
_MAX_NESTING: Final[Py_ssize_t] = MAX_NESTING
_LIST0: Final[Py_ssize_t] = 0x45

#: Name of the type by format code, b"" for unknown codes.
_KINDS: Final[list[bytes]] = [ENCODING_OF[code].type.encode() if code in ENCODING_OF else b"" for code in range(256)]

_FLOAT: Final = struct.Struct(">f")
_DOUBLE: Final = struct.Struct(">d")
#: By bytes: bits of the exponent, its bias, and digits of IEEE 754 decimals in binary integer encoding.
DECIMALS: Final = {4: (8, 101, 7), 8: (10, 398, 16), 16: (14, 6176, 34)}


def _unsigned(octets: bytes) -> str:
    return str(int.from_bytes(octets, "big"))


def _signed(octets: bytes) -> str:
    return str(int.from_bytes(octets, "big", signed=True))


def _boolean(octets: bytes) -> str:
    if octets > b"\x01":
        raise DecodeError(f"boolean byte is {octets[0]:#04x}, neither 0 nor 1")
    return "true" if octets == b"\x01" else "false"


def _real(octets: bytes) -> str:
    number: float = (_FLOAT if len(octets) == 4 else _DOUBLE).unpack(octets)[0]
    if math.isfinite(number):
        return repr(number)
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def _char(octets: bytes) -> str:
    try:
        return octets.decode("utf-32-be")
    except UnicodeDecodeError:
        raise DecodeError(f"char is not a Unicode character: {octets.hex()}") from None


def decimal_text(octets: bytes) -> str:
    """Return a decimal32, 64 or 128 with all digits and its exponent: `1.50`, `1E+3`, `-0`, `NaN`, `Infinity`."""
    exponent_bits, bias, digits = DECIMALS[len(octets)]
    width = 8 * len(octets)
    bits = int.from_bytes(octets, "big")
    sign = bits >> (width - 1)
    fraction_bits = width - 1 - exponent_bits
    if bits >> (width - 5) & 0xF == 0xF:
        if not bits >> (width - 6) & 1:
            return "-Infinity" if sign else "Infinity"
        payload = bits & ((1 << (fraction_bits - 3)) - 1)
        quiet = not bits >> (width - 7) & 1
        number = str(payload) if 0 < payload < 10 ** (digits - 1) else ""
        return f"{'-' if sign else ''}{'' if quiet else 's'}NaN{number}"
    if bits >> (width - 3) & 0x3 == 0x3:
        exponent = bits >> (fraction_bits - 2) & ((1 << exponent_bits) - 1)
        coefficient = (0b100 << (fraction_bits - 2)) | bits & ((1 << (fraction_bits - 2)) - 1)
    else:
        exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1)
        coefficient = bits & ((1 << fraction_bits) - 1)
    if coefficient >= 10**digits:
        coefficient = 0  # a coefficient that is not canonical stands for zero
    return str(Decimal((sign, tuple(map(int, str(coefficient))), exponent - bias)))


def _binary(octets: bytes) -> str:
    return base64.b64encode(octets).decode("ascii")


def _string(octets: bytes) -> str:
    try:
        return octets.decode()
    except UnicodeDecodeError:
        raise DecodeError("string is not UTF-8") from None


def _symbol(octets: bytes) -> str:
    try:
        return octets.decode("ascii")
    except UnicodeDecodeError:
        raise DecodeError("symbol is not ASCII") from None


_TEXT_OF: Final[dict[str, Callable[[bytes], str]]] = {
    "ubyte": _unsigned,
    "ushort": _unsigned,
    "uint": _unsigned,
    "ulong": _unsigned,
    "byte": _signed,
    "short": _signed,
    "int": _signed,
    "long": _signed,
    "timestamp": _signed,
    "boolean": _boolean,
    "float": _real,
    "double": _real,
    "decimal32": decimal_text,
    "decimal64": decimal_text,
    "decimal128": decimal_text,
    "char": _char,
    "uuid": lambda octets: str(UUID(bytes=octets)),
    "binary": _binary,
    "string": _string,
    "symbol": _symbol,
}
_TEXTS: Final[list[Callable[[bytes], str] | None]] = [
    _TEXT_OF.get(ENCODING_OF[code].type) if code in ENCODING_OF else None for code in range(256)
]
#: Texts of types without bytes, by code.
_WITHOUT_OCTETS: Final[dict[int, str]] = {0x41: "true", 0x42: "false", 0x43: "0", 0x44: "0"}


class ValueReader:
    """Reads values: ``kind`` is the type's name of the last one, ``text`` its text."""

    __slots__ = ("_zero_width_left", "kind", "text")

    def __init__(self) -> None:
        self.kind = b"null"
        self.text = b""
        self._zero_width_left: Py_ssize_t = MAX_ZERO_WIDTH_ITEMS

    def read(self, data: bytes, offset: Py_ssize_t, end: Py_ssize_t) -> Py_ssize_t:
        """Read the value at ``offset``, as JSON if it has parts; return its end. A null has no text. DecodeError."""
        if offset >= end:
            raise DecodeError("value is cut short", offset)
        code: Py_ssize_t = data[offset]
        self.kind = _KINDS[code]
        if code >= 0xC0 or code == _LIST0 or not code:
            if not code:
                self.kind = b"described"
            out: bytearray = bytearray()
            behind: Py_ssize_t = self.json(out, data, offset, end)
            self.text = bytes(out)
            return behind
        behind = skip(data, offset, end)
        if code & 0xED == 0xA1:  # a string or a symbol
            text: bytes = data[offset + (5 if code & 0x10 else 2) : behind]
            if not text.isascii():
                _scalar(data, offset, behind, code)  # raises if the text is invalid for its type
            self.text = text
        elif code & 0xFE == 0x54:  # an int or a long of one byte
            number: Py_ssize_t = data[offset + 1]
            self.text = b"%d" % (number - 256 if number > 127 else number)
        else:
            self.text = b"" if code == 0x40 else _scalar(data, offset, behind, code).encode()
        return behind

    def json(self, out: bytearray, data: bytes, offset: Py_ssize_t, end: Py_ssize_t) -> Py_ssize_t:
        """Append the value at ``offset`` as tagged JSON to ``out``; return its end. DecodeError."""
        self._zero_width_left = MAX_ZERO_WIDTH_ITEMS
        return self._json(out, data, offset, end, 0)

    def _json(self, out: bytearray, data: bytes, offset: Py_ssize_t, end: Py_ssize_t, depth: Py_ssize_t) -> Py_ssize_t:
        if offset >= end:
            raise DecodeError("value is cut short", offset)
        code: Py_ssize_t = data[offset]
        if code:
            return self._content(out, data, offset + 1, end, depth, code)
        if depth >= _MAX_NESTING:
            raise DecodeError(f"nested more than {_MAX_NESTING} deep", offset)
        out += b'{"$described":['
        offset = self._json(out, data, offset + 1, end, depth + 1)
        out += b","
        offset = self._json(out, data, offset, end, depth + 1)
        out += b"]}"
        return offset

    def _content(
        self, out: bytearray, data: bytes, offset: Py_ssize_t, end: Py_ssize_t, depth: Py_ssize_t, code: Py_ssize_t
    ) -> Py_ssize_t:
        """Append the content after the constructor ``code``; return its end."""
        if len(out) > _MAX_TEXT_BYTES:
            raise DecodeError(f"a value of more than {_MAX_TEXT_BYTES} bytes as JSON", offset)
        kind: bytes = _KINDS[code]
        if not kind:
            raise DecodeError(f"unknown format code {code:#04x}", offset - 1)
        if code >= 0xC0:
            return self._compound(out, data, offset, end, depth, code)
        if code == _LIST0:
            out += b"[]"
            return offset
        if code == 0x40:
            out += b"null"
            return offset
        behind: Py_ssize_t = _behind(data, offset, end, code)
        text: str = _scalar(data, offset - 1, behind, code)
        if kind == b"boolean":
            out += text.encode()
        elif kind == b"string":
            out += dumps(text, ensure_ascii=False).encode()
        else:
            out += b'{"$'
            out += kind
            out += b'":'
            out += dumps(text, ensure_ascii=False).encode()
            out += b"}"
        return behind

    def _compound(
        self, out: bytearray, data: bytes, offset: Py_ssize_t, end: Py_ssize_t, depth: Py_ssize_t, code: Py_ssize_t
    ) -> Py_ssize_t:
        """Append a list, map or array, whose items must exactly fill its size; return its end."""
        if depth >= _MAX_NESTING:
            raise DecodeError(f"nested more than {_MAX_NESTING} deep", offset)
        width: Py_ssize_t = 4 if code & 0x10 else 1
        if end - offset < width:
            raise DecodeError("length is cut short", offset)
        size: Py_ssize_t = data[offset] if width == 1 else be32(data, offset)
        offset += width
        if size > end - offset:
            raise DecodeError(f"{size} bytes claimed, {end - offset} left", offset)
        if size < width:
            raise DecodeError("no room for the count", offset)
        end = offset + size
        count: Py_ssize_t = data[offset] if width == 1 else be32(data, offset)
        offset += width
        if code >= 0xE0:
            offset = self._array(out, data, offset, end, depth + 1, count)
        else:
            if count > end - offset:
                raise DecodeError(f"{count} items claimed in {end - offset} bytes", offset)
            if code & 0x0F:
                offset = self._map(out, data, offset, end, depth + 1, count)
            else:
                offset = self._list(out, data, offset, end, depth + 1, count)
        if offset != end:
            raise DecodeError(f"{end - offset} bytes behind the last item", offset)
        return offset

    def _list(
        self, out: bytearray, data: bytes, offset: Py_ssize_t, end: Py_ssize_t, depth: Py_ssize_t, count: Py_ssize_t
    ) -> Py_ssize_t:
        out += b"["
        index: Py_ssize_t
        for index in range(count):
            if index:
                out += b","
            offset = self._json(out, data, offset, end, depth)
        out += b"]"
        return offset

    def _map(
        self, out: bytearray, data: bytes, offset: Py_ssize_t, end: Py_ssize_t, depth: Py_ssize_t, count: Py_ssize_t
    ) -> Py_ssize_t:
        if count & 1:
            raise DecodeError("Odd Number of Elements in a Map", offset)
        out += b'{"$map":['
        index: Py_ssize_t
        for index in range(count):
            if index & 1:
                out += b","
            else:
                out += b",[" if index else b"["
            offset = self._json(out, data, offset, end, depth)
            if index & 1:
                out += b"]"
        out += b"]}"
        return offset

    def _array(
        self, out: bytearray, data: bytes, offset: Py_ssize_t, end: Py_ssize_t, depth: Py_ssize_t, count: Py_ssize_t
    ) -> Py_ssize_t:
        descriptors: bytearray = bytearray()
        while True:
            if offset >= end:
                raise DecodeError("value is cut short", offset)
            code: Py_ssize_t = data[offset]
            offset += 1
            if code:
                break
            depth += 1
            if depth > _MAX_NESTING:
                raise DecodeError(f"nested more than {_MAX_NESTING} deep", offset)
            if descriptors:
                descriptors += b","
            offset = self._json(descriptors, data, offset, end, depth)
        kind: bytes = _KINDS[code]
        if not kind:
            raise DecodeError(f"unknown format code {code:#04x}", offset - 1)
        if code >> 4 == 4:
            self._zero_width_left -= count
            if self._zero_width_left < 0:
                raise DecodeError(f"more than {MAX_ZERO_WIDTH_ITEMS} array items without bytes", offset)
        elif count > end - offset:
            raise DecodeError(f"{count} items claimed in {end - offset} bytes", offset)
        out += b'{"$array":["'
        out += kind
        out += b'",['
        index: Py_ssize_t
        for index in range(count):
            if index:
                out += b","
            offset = self._content(out, data, offset, end, depth, code)
        out += b"]"
        if descriptors:
            out += b",["
            out += descriptors
            out += b"]"
        out += b"]}"
        return offset


def _behind(data: bytes, offset: Py_ssize_t, end: Py_ssize_t, code: Py_ssize_t) -> Py_ssize_t:
    """Return the end of a scalar's content at ``offset``, for the constructor ``code``."""
    group: Py_ssize_t = code >> 4
    if group == 0xA:
        if offset >= end:
            raise DecodeError("length is cut short", offset)
        size: Py_ssize_t = data[offset] + 1
    elif group == 0xB:
        if end - offset < 4:
            raise DecodeError("length is cut short", offset)
        size = be32(data, offset) + 4
    else:
        size = 0 if group == 4 else 1 << (group - 5)
    if size > end - offset:
        raise DecodeError(f"{size} bytes claimed, {end - offset} left", offset)
    return offset + size


def _scalar(data: bytes, offset: Py_ssize_t, behind: Py_ssize_t, code: Py_ssize_t) -> str:
    """Return the text of a scalar from its constructor at ``offset`` to ``behind``."""
    group: Py_ssize_t = code >> 4
    if group == 4:
        return _WITHOUT_OCTETS[code]
    start: Py_ssize_t = offset + (2 if group == 0xA else 5 if group == 0xB else 1)
    try:
        text: str = _TEXTS[code](data[start:behind])  # type: ignore[misc]
    except DecodeError as error:
        error.offset = start
        raise
    return text
