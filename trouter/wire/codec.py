"""Bytes to values and back for every AMQP 1.0 type (part 1), driven by the table in ``encodings.py``.

The bytes are not trusted: a length or count is accepted only if enough bytes follow, nesting is bounded, and items of
zero width count against an allowance. The decoder raises only DecodeError.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from trouter.wire.constants import MAX_CHOSEN_HASHES, MAX_NESTING, MAX_ZERO_WIDTH_ITEMS
from trouter.wire.encodings import (
    ENCODING_OF,
    ENCODINGS,
    ENCODINGS_OF,
    PRIMITIVE_OF,
    PRIMITIVES,
    Encoding,
    Primitive,
    smallest,
)
from trouter.wire.errors import DecodeError, EncodeError
from trouter.wire.types import Array, Described, Long, PairMap

if TYPE_CHECKING:
    from cython import Py_ssize_t

_UNKNOWN: Final[Py_ssize_t] = 0xFF
_PREFIXED: Final[Py_ssize_t] = 0x80  # plus the number of octets of the length in front
_MAX_NESTING: Final[Py_ssize_t] = MAX_NESTING
_BOOLEAN: Final[Py_ssize_t] = 0x56


def _shape(code: int) -> int:
    encoding = ENCODING_OF.get(code)
    if encoding is None:
        return _UNKNOWN
    return encoding.width if encoding.layout == "fixed" else _PREFIXED + encoding.width


_SHAPES: Final[bytes] = bytes(_shape(code) for code in range(256))
_FROM_OCTETS: Final[list[Any]] = [
    PRIMITIVE_OF[ENCODING_OF[code].type].from_octets if code in ENCODING_OF else None for code in range(256)
]
_CONSTANTS: Final[dict[int, Any]] = {
    encoding.code: PRIMITIVE_OF[encoding.type].python(encoding.low) if encoding.type != "null" else None
    for encoding in ENCODINGS
    if not encoding.width and encoding.type != "list"
}
# The values of one octet, by constructor: made once, because most numbers of a performative are small.
_OF_ONE_OCTET: Final[list[list[Any] | None]] = [
    [PRIMITIVE_OF[encoding.type].from_octets(bytes((octet,))) for octet in range(256)]  # type: ignore[misc]
    if (encoding := ENCODING_OF.get(code)) and encoding.width == 1 and encoding.layout == "fixed" and code != _BOOLEAN
    else None
    for code in range(256)
]
_LIST0: Final[Py_ssize_t] = 0x45
#: No limit to the number of values.
MANY: Final = 1 << 62
# A sender can choose many such keys with equal hashes: they contain parts, or are as wide as a hash or wider.
_CHOSEN_HASHES: Final = frozenset({UUID, Described, Array, PairMap})


def decode(data: bytes, offset: int, end: int, nodes: int = MANY) -> tuple[Any, int]:
    """Return the value at ``offset`` and the offset behind it; DecodeError if it passes ``end`` or is malformed.

    It may consist of at most ``nodes`` values; each field, key and item counts as one.
    """
    reader = Reader(data, offset, end, nodes)
    value = reader.read_value(0)
    return value, reader.offset


def decode_all(data: bytes) -> Any:
    """Return the value that ``data`` encodes; DecodeError if it is incomplete or more follows."""
    reader = Reader(data, 0, len(data))
    value = reader.read_value(0)
    if reader.offset != len(data):
        raise DecodeError(f"{len(data) - reader.offset} bytes after the value", reader.offset)
    return value


def be32(data: bytes, offset: Py_ssize_t) -> Py_ssize_t:
    """Return the unsigned 32-bit number at ``offset``; IndexError if it is incomplete."""
    number: Py_ssize_t = data[offset]  # shifted step by step: compiled, one octet shifted by 24 would overflow its int
    number = number << 8 | data[offset + 1]
    number = number << 8 | data[offset + 2]
    return number << 8 | data[offset + 3]


def skip(data: bytes, offset: Py_ssize_t, end: Py_ssize_t) -> Py_ssize_t:
    """Return the offset behind the value at ``offset``, not decoding it; DecodeError if it passes ``end``."""
    if offset < 0 or end > len(data):
        raise DecodeError("range outside the data", offset)
    return _skip(data, offset, end, 0)


def _skip(data: bytes, offset: Py_ssize_t, end: Py_ssize_t, depth: Py_ssize_t) -> Py_ssize_t:
    code: Py_ssize_t = 0
    while True:
        if offset >= end:
            raise DecodeError("value is cut short", offset)
        code = data[offset]
        offset += 1
        if code:
            break
        depth += 1
        if depth > _MAX_NESTING:
            raise DecodeError(f"nested more than {_MAX_NESTING} deep", offset)
        offset = _skip(data, offset, end, depth)
    width: Py_ssize_t = _SHAPES[code]
    if width > 16:
        if width == _UNKNOWN:
            raise DecodeError(f"unknown format code {code:#04x}", offset - 1)
        width -= _PREFIXED
        if width > end - offset:
            raise DecodeError("length is cut short", offset)
        if width == 1:
            width = data[offset]
            offset += 1
        else:
            width = be32(data, offset)
            offset += 4
    if width > end - offset:
        raise DecodeError(f"{width} bytes claimed, {end - offset} left", offset)
    return offset + width


class Reader:
    """A cursor over ``data[offset:end]``; ``read_value`` reads the next value and moves ``offset`` behind it."""

    __slots__ = ("data", "offset", "end", "zero_width_left", "_nodes", "_nodes_left")

    def __init__(self, data: bytes, offset: Py_ssize_t, end: Py_ssize_t, nodes: Py_ssize_t = MANY) -> None:
        if not 0 <= offset <= end <= len(data):
            raise DecodeError("range outside the data", offset)
        self.data = data
        self.offset = offset
        self.end = end
        self.zero_width_left: Py_ssize_t = MAX_ZERO_WIDTH_ITEMS
        self._nodes = nodes
        self._nodes_left = nodes

    def read_value(self, depth: Py_ssize_t) -> Any:
        """Return the next value, which is nested in ``depth`` others; DecodeError."""
        self._count_values(1)
        code: Py_ssize_t = self._read_code()
        if code:
            return self._read_content(code, depth)
        if depth >= _MAX_NESTING:
            raise DecodeError(f"nested more than {_MAX_NESTING} deep", self.offset)
        descriptor = self.read_value(depth + 1)
        return Described(descriptor, self.read_value(depth + 1))

    def _count_values(self, values: Py_ssize_t) -> None:
        self._nodes_left -= values
        if self._nodes_left < 0:
            raise DecodeError(f"more than {self._nodes} values", self.offset)

    def _read_code(self) -> Py_ssize_t:
        if self.offset >= self.end:
            raise DecodeError("value is cut short", self.offset)
        code = self.data[self.offset]
        self.offset += 1
        return code

    def _read_number(self, width: Py_ssize_t) -> Py_ssize_t:
        """Return a length or count of ``width`` bytes, 1 or 4."""
        offset: Py_ssize_t = self.offset
        if width > self.end - offset:
            raise DecodeError("length is cut short", offset)
        self.offset = offset + width
        if width == 1:
            return self.data[offset]
        return be32(self.data, offset)

    def _read_content(self, code: Py_ssize_t, depth: Py_ssize_t) -> Any:
        """Return the value behind the constructor ``code``."""
        width: Py_ssize_t = _SHAPES[code]
        if width == _UNKNOWN:
            raise DecodeError(f"unknown format code {code:#04x}", self.offset - 1)
        if width == 0:
            return [] if code == _LIST0 else _CONSTANTS[code]
        if width > _PREFIXED:
            if code >= 0xC0:
                return self._read_compound(code, width - _PREFIXED, depth)
            width = self._read_number(width - _PREFIXED)
        start: Py_ssize_t = self.offset
        if width > self.end - start:
            raise DecodeError(f"{width} bytes claimed, {self.end - start} left", start)
        self.offset = start + width
        if width == 1 and _OF_ONE_OCTET[code] is not None:
            return _OF_ONE_OCTET[code][self.data[start]]  # type: ignore[index]
        try:
            return _FROM_OCTETS[code](self.data[start : self.offset])
        except DecodeError as error:
            error.offset = start
            raise

    def _read_compound(self, code: Py_ssize_t, width: Py_ssize_t, depth: Py_ssize_t) -> Any:
        """Return a list, map or array, which must use exactly the bytes of its size."""
        if depth >= _MAX_NESTING:
            raise DecodeError(f"nested more than {_MAX_NESTING} deep", self.offset)
        size: Py_ssize_t = self._read_number(width)
        outer_end: Py_ssize_t = self.end
        if size > outer_end - self.offset:
            raise DecodeError(f"{size} bytes claimed, {outer_end - self.offset} left", self.offset)
        self.end = self.offset + size
        count: Py_ssize_t = self._read_number(width)
        value: Any
        if code >= 0xE0:
            value = self._read_array(count, depth + 1)
        else:
            if count > self.end - self.offset:
                raise DecodeError(f"{count} items claimed in {self.end - self.offset} bytes", self.offset)
            value = self._read_map(count, depth + 1) if code & 0x0F else self._read_list(count, depth + 1)
        if self.offset != self.end:
            raise DecodeError(f"{self.end - self.offset} bytes behind the last item", self.offset)
        self.end = outer_end
        return value

    def _read_list(self, count: Py_ssize_t, depth: Py_ssize_t) -> list[Any]:
        items = []
        _: Py_ssize_t
        for _ in range(count):
            items.append(self.read_value(depth))  # noqa: PERF401 - a comprehension would not be one loop in C
        return items

    def _read_map(self, count: Py_ssize_t, depth: Py_ssize_t) -> Any:
        if count & 1:
            raise DecodeError("Odd Number of Elements in a Map", self.offset)
        start: Py_ssize_t = self.offset
        pairs = []
        _: Py_ssize_t
        for _ in range(count >> 1):
            key = self.read_value(depth)
            pairs.append((key, self.read_value(depth)))
        mapping = {}
        if count <= 2 * MAX_CHOSEN_HASHES or _hashes_well(pairs):
            try:
                mapping = dict(pairs)
            except TypeError:  # an unhashable key
                mapping = {}
        if len(mapping) == len(pairs):
            return mapping
        keys = set()
        for key, _value in pairs:
            keys.add(encode(key))
        if len(keys) != len(pairs):
            raise DecodeError("map has the same key twice", start)
        return PairMap(pairs)

    def _read_array(self, count: Py_ssize_t, depth: Py_ssize_t) -> Array:
        descriptors: list[Any] = []
        code: Py_ssize_t = self._read_code()
        while code == 0:
            depth += 1
            if depth > _MAX_NESTING:
                raise DecodeError(f"nested more than {_MAX_NESTING} deep", self.offset)
            descriptors.append(self.read_value(depth))
            code = self._read_code()
        if _SHAPES[code] == _UNKNOWN:
            raise DecodeError(f"unknown format code {code:#04x}", self.offset - 1)
        if _SHAPES[code] == 0:
            self.zero_width_left -= count
            if self.zero_width_left < 0:
                raise DecodeError(f"more than {MAX_ZERO_WIDTH_ITEMS} array items without bytes", self.offset)
        elif count > self.end - self.offset:
            raise DecodeError(f"{count} items claimed in {self.end - self.offset} bytes", self.offset)
        self._count_values(count)
        items = []
        _: Py_ssize_t
        for _ in range(count):
            items.append(self._read_content(code, depth))  # noqa: PERF401
        return Array(ENCODING_OF[code].type, items, descriptors)


def _hashes_well(pairs: list[tuple[Any, Any]]) -> bool:
    """Return whether few enough keys have hashes that their sender could choose."""
    chosen = 0
    for key, _value in pairs:
        if type(key) in _CHOSEN_HASHES:
            chosen += 1
    return chosen <= MAX_CHOSEN_HASHES


_PRIMITIVE_OF_CLASS: Final[dict[type, Primitive]] = {primitive.python: primitive for primitive in PRIMITIVES} | {
    Long: PRIMITIVE_OF["long"],
    tuple: PRIMITIVE_OF["list"],
    PairMap: PRIMITIVE_OF["map"],
    bytearray: PRIMITIVE_OF["binary"],
    memoryview: PRIMITIVE_OF["binary"],
}


# Most fields of a performative have one of these three encodings, taken from the table.
_NULL: Final[Py_ssize_t] = smallest("null", 0, 0).code
_TRUE: Final[Py_ssize_t] = smallest("boolean", 1, 1).code
_FALSE: Final[Py_ssize_t] = smallest("boolean", 0, 0).code


# Shortcuts for the usual values of performatives, filled from the table: the octets of small numbers, the encodings of
# large ones, and the constructors of short texts, by class.
_UNSIGNED: Final = ("ubyte", "ushort", "uint", "ulong")
_SMALL: Final[dict[type, list[bytes]]] = {
    PRIMITIVE_OF[name].python: [
        bytes((encoding.code,)) + (number.to_bytes(encoding.width, "big") if encoding.width else b"")
        for number in range(0x100)
        for encoding in (smallest(name, number, number),)
    ]
    for name in _UNSIGNED
}
_LARGE: Final[dict[type, Encoding]] = {PRIMITIVE_OF[name].python: ENCODINGS_OF[name][-1] for name in _UNSIGNED}
_SHORT: Final[dict[type, int]] = {
    PRIMITIVE_OF[name].python: smallest(name, 1, 1).code for name in ("binary", "string", "symbol")
}
#: Format code, size and count of a short list.
_SHORT_HEAD: Final = bytes((smallest("list", 1, 1).code, 0, 0))
_LONG_LIST: Final = ENCODINGS_OF["list"][-1].code
#: Format code, size and count of a long list.
_LONG_HEAD: Final = struct.Struct(">BII")


def encode(value: object) -> bytes:
    """Return ``value`` in its smallest encoding; EncodeError if AMQP has none for it."""
    out = bytearray()
    _write(out, value, 0)
    return bytes(out)


def _primitive(value: object) -> Primitive:
    """Return the AMQP type of ``value``, by its class or the nearest base class; EncodeError."""
    for python in type(value).__mro__:
        if python in _PRIMITIVE_OF_CLASS:
            return _PRIMITIVE_OF_CLASS[python]
    raise EncodeError(f"no AMQP type for {type(value).__name__}")


def _write(out: bytearray, value: object, depth: Py_ssize_t) -> None:
    if value is None:
        out.append(_NULL)
        return
    if value is True or value is False:
        out.append(_TRUE if value else _FALSE)
        return
    kind = type(value)
    if kind is list:
        _write_list(out, value, depth)  # type: ignore[arg-type]
        return
    if isinstance(value, Described):
        if depth >= _MAX_NESTING:
            raise EncodeError(f"nested more than {_MAX_NESTING} deep")
        out.append(0)
        _write(out, value.descriptor, depth + 1)
        _write(out, value.value, depth + 1)
        return
    small: list[bytes] | None = _SMALL.get(kind)
    if small is not None:
        number: Any = value
        if number < 0x100:
            out += small[number]
        else:
            encoding = _LARGE[kind]
            out.append(encoding.code)
            out += number.to_bytes(encoding.width, "big")
        return
    primitive = _PRIMITIVE_OF_CLASS.get(kind) or _primitive(value)
    code = _SHORT.get(kind)
    if code is not None:
        octets: bytes = primitive.to_octets(value, 0)  # type: ignore[misc]
        if len(octets) < 0x100:
            out.append(code)
            out.append(len(octets))
            out += octets
            return
    measure, content, count = _prepare(primitive, value, depth)
    encoding = smallest(primitive.name, measure, measure)
    out.append(encoding.code)
    _write_content(out, primitive, encoding, content, count)


def _write_list(out: bytearray, items: list[object], depth: Py_ssize_t) -> None:
    """Write a list with a short size and count, and with long ones in their place once it needs them."""
    if not items:
        out.append(_LIST0)
        return
    if depth >= _MAX_NESTING:
        raise EncodeError(f"nested more than {_MAX_NESTING} deep")
    start: Py_ssize_t = len(out)
    out += _SHORT_HEAD
    for item in items:
        _write(out, item, depth + 1)
    count: Py_ssize_t = len(items)
    size: Py_ssize_t = len(out) - start - 2  # the count is part of it
    if size < 0x100 and count < 0x100:
        out[start + 1] = size
        out[start + 2] = count
    else:
        out[start : start + 3] = _LONG_HEAD.pack(_LONG_LIST, size + 3, count)


def _prepare(primitive: Primitive, value: Any, depth: Py_ssize_t) -> tuple[int, Any, int]:
    """Return the measure that chooses the encoding, the content to write, and the number of items of a compound."""
    if primitive.ranged:
        return int(value), value, 0
    if primitive.to_octets is not None:
        octets = primitive.to_octets(value, 0)
        return len(octets), octets, 0
    if depth >= _MAX_NESTING and (value or primitive.name != "list"):  # an empty list does not nest, as when decoding
        raise EncodeError(f"nested more than {_MAX_NESTING} deep")
    body: bytearray = bytearray()
    count: Py_ssize_t = len(value)
    if primitive.name == "array":
        _write_array(body, value, depth + 1)
    elif primitive.name == "map":
        count *= 2
        for key, item in value.items():
            _write(body, key, depth + 1)
            _write(body, item, depth + 1)
    else:
        for item in value:
            _write(body, item, depth + 1)
    # The size includes the count, one octet in the small encodings; an empty list needs no size at all.
    return max(len(body) + 1, count) if body else 0, body, count


def _write_content(out: bytearray, primitive: Primitive, encoding: Encoding, content: Any, count: Py_ssize_t) -> None:
    """Write everything behind the format code."""
    width = encoding.width
    if encoding.layout == "variable":
        out += len(content).to_bytes(width, "big")
        out += content
    elif encoding.layout != "fixed":
        out += (len(content) + width).to_bytes(width, "big")
        out += count.to_bytes(width, "big")
        out += content
    elif width:
        out += primitive.to_octets(content, width) if primitive.ranged else content  # type: ignore[misc]


def _write_array(out: bytearray, array: Array, depth: Py_ssize_t) -> None:
    """Write the constructor that all items share, wide enough for each, then their contents."""
    primitive = PRIMITIVE_OF.get(array.of)
    if primitive is None:
        raise EncodeError(f"no AMQP type {array.of!r} for array items")
    for descriptor in array.descriptors:
        depth += 1
        if depth > _MAX_NESTING:
            raise EncodeError(f"nested more than {_MAX_NESTING} deep")
        out.append(0)
        _write(out, descriptor, depth)
    prepared = [_prepare(primitive, _array_item(primitive, item), depth) for item in array.items]
    measures = [measure for measure, _, _ in prepared] or [0]
    if primitive.name == "null":
        if len(prepared) > MAX_ZERO_WIDTH_ITEMS:
            raise EncodeError(f"more than {MAX_ZERO_WIDTH_ITEMS} array items without bytes")
        out.append(smallest("null", 0, 0).code)
        return
    encoding = smallest(primitive.name, min(measures), max(measures), zero_width=False)
    out.append(encoding.code)
    for _, content, count in prepared:
        _write_content(out, primitive, encoding, content, count)


def _array_item(primitive: Primitive, item: object) -> object:
    """Return ``item``, converted to the array's type if it is a plain int, float or str; EncodeError."""
    if type(item) in (int, float, str) and issubclass(primitive.python, type(item)):
        made: Any = primitive.python
        return made(item)
    if isinstance(item, Described) or _primitive(item) is not primitive:
        raise EncodeError(f"{type(item).__name__} in an array of {primitive.name}")
    return item
