"""AMQP values with their encodings; written for the tests alone, so that they share no fault with the router.

A form is a tuple of the encoding's name and the value: ``("str8", "E")``, ``("list8", [...])``. A described value is
``("described", [descriptor, value])``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Form = tuple[str, Any]

_EMPTY = {0x40: "null", 0x41: "true", 0x42: "false", 0x43: "uint0", 0x44: "ulong0", 0x45: "list0"}
_FIXED = {
    0x50: ("ubyte", 1), 0x51: ("byte", 1), 0x52: ("smalluint", 1), 0x53: ("smallulong", 1), 0x54: ("smallint", 1),
    0x55: ("smalllong", 1), 0x56: ("boolean", 1), 0x60: ("ushort", 2), 0x61: ("short", 2), 0x70: ("uint", 4),
    0x71: ("int", 4), 0x72: ("float", 4), 0x80: ("ulong", 8), 0x81: ("long", 8), 0x82: ("double", 8),
    0x83: ("timestamp", 8), 0x98: ("uuid", 16),
}  # fmt: skip
_VARIABLE = {
    0xA0: ("vbin8", 1), 0xA1: ("str8", 1), 0xA3: ("sym8", 1),
    0xB0: ("vbin32", 4), 0xB1: ("str32", 4), 0xB3: ("sym32", 4),
}  # fmt: skip
_COMPOUND = {0xC0: ("list8", 1), 0xC1: ("map8", 1), 0xD0: ("list32", 4), 0xD1: ("map32", 4)}
_ARRAY = {0xE0: ("array8", 1), 0xF0: ("array32", 4)}
_CODES = {name: code for code, name in _EMPTY.items()} | {
    name: code for table in (_FIXED, _VARIABLE, _COMPOUND, _ARRAY) for code, (name, _) in table.items()
}
_WIDTHS = {name: width for table in (_FIXED, _VARIABLE, _COMPOUND, _ARRAY) for name, width in table.values()}
_SIGNED = {"byte", "smallint", "smalllong", "short", "int", "long", "timestamp"}

#: Encodings of one type, so that a longer number or text may be written in another of them.
SAME_TYPE = (
    ("uint0", "smalluint", "uint"),
    ("ulong0", "smallulong", "ulong"),
    ("smallint", "int"),
    ("smalllong", "long"),
    ("str8", "str32"),
    ("sym8", "sym32"),
    ("vbin8", "vbin32"),
    ("list0", "list8", "list32"),
    ("map8", "map32"),
    ("array8", "array32"),
    ("true", "false", "boolean"),
)


def read(data: bytes, offset: int = 0) -> tuple[Form, int]:
    """Return the form at ``offset``, and the offset behind it."""
    code = data[offset]
    offset += 1
    if code == 0:
        descriptor, offset = read(data, offset)
        value, offset = read(data, offset)
        return ("described", [descriptor, value]), offset
    return _content(code, data, offset)


def _content(code: int, data: bytes, offset: int) -> tuple[Form, int]:
    if code in _EMPTY:
        name = _EMPTY[code]
        return (name, {"true": True, "false": False, "null": None, "list0": []}.get(name, 0)), offset
    if code in _FIXED:
        name, width = _FIXED[code]
        end = offset + width
        return (name, int.from_bytes(data[offset:end], "big", signed=name in _SIGNED)), end
    if code in _VARIABLE:
        name, width = _VARIABLE[code]
        start = offset + width
        end = start + int.from_bytes(data[offset:start], "big")
        octets = data[start:end]
        return (name, octets if name.startswith("vbin") else octets.decode()), end
    name, width = (_COMPOUND | _ARRAY)[code]
    start = offset + width
    end = start + int.from_bytes(data[offset:start], "big")
    count = int.from_bytes(data[start : start + width], "big")
    offset = start + width
    items: list[Form] = []
    item_code = 0
    if code in _ARRAY:
        item_code = data[offset]
        offset += 1
    for _ in range(count):
        item, offset = _content(item_code, data, offset) if item_code else read(data, offset)
        items.append(item)
    assert offset == end, "a size that is not that of the items"
    return (name, items), end


def write(form: Form) -> bytes:
    """Return the bytes of a form, in exactly that encoding."""
    name, value = form
    if name == "described":
        return b"\0" + write(value[0]) + write(value[1])
    return bytes([_CODES[name]]) + _inside(form)


def _inside(form: Form) -> bytes:
    name, value = form
    if _CODES[name] in _EMPTY:
        return b""
    width = _WIDTHS[name]
    if _CODES[name] in _FIXED:
        octets: bytes = value.to_bytes(width, "big", signed=name in _SIGNED)
        return octets
    if _CODES[name] in _VARIABLE:
        octets = value if isinstance(value, bytes) else value.encode()
        return len(octets).to_bytes(width, "big") + octets
    if name.startswith("array"):
        (item_name,) = {item[0] for item in value}
        body = bytes([_CODES[item_name]]) + b"".join(map(_inside, value))
    else:
        body = b"".join(map(write, value))
    return (len(body) + width).to_bytes(width, "big") + len(value).to_bytes(width, "big") + body


def read_all(data: bytes) -> list[Form]:
    """Return all forms in ``data``, one after the other: the sections of a message."""
    forms, offset = [], 0
    while offset < len(data):
        form, offset = read(data, offset)
        forms.append(form)
    return forms


def uint(number: int) -> Form:
    """Return a uint in its smallest form."""
    return ("uint0", 0) if number == 0 else ("smalluint", number) if number < 256 else ("uint", number)


def plain(form: Form) -> Any:
    """Return the value without its encodings; a map becomes a dict."""
    name, value = form
    if name == "described":
        return plain(value[1])
    if name.startswith("map"):
        return {plain(key): plain(item) for key, item in pairs(form)}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


def pairs(form: Form) -> Iterator[tuple[Form, Form]]:
    """Yield the keys of a map and their values."""
    return zip(form[1][::2], form[1][1::2], strict=True)


def field(form: Form, key: str) -> Form:
    """Return the value of a key of a map; raise KeyError if it has none."""
    for name, value in pairs(form):
        if name[1] == key:
            return value
    raise KeyError(key)


def sections(message: bytes) -> dict[int, Form]:
    """Return the sections of a message by their descriptors."""
    return {form[1][0][1]: form[1][1] for form in read_all(message)}


def type_of(form: Form) -> str:
    """Return the AMQP type, by the longest of its encodings."""
    return next((group[-1] for group in SAME_TYPE if form[0] in group), form[0])


def is_same_type(one: str, other: str) -> bool:
    """Return whether two encodings are of one AMQP type."""
    return type_of((one, None)) == type_of((other, None))
