"""AMQP values as they were encoded: a reader of its own, so that two answers can be compared encoding by encoding."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

#: Fixed widths by format code: the name of the type, its octets, and how struct reads them ("" for no number).
_FIXED: Final[dict[int, tuple[str, int, str]]] = {
    0x40: ("null", 0, ""),
    0x41: ("boolean", 0, ""),
    0x42: ("boolean", 0, ""),
    0x43: ("uint", 0, ""),
    0x44: ("ulong", 0, ""),
    0x50: ("ubyte", 1, "B"),
    0x51: ("byte", 1, "b"),
    0x52: ("uint", 1, "B"),
    0x53: ("ulong", 1, "B"),
    0x54: ("int", 1, "b"),
    0x55: ("long", 1, "b"),
    0x56: ("boolean", 1, "?"),
    0x60: ("ushort", 2, ">H"),
    0x61: ("short", 2, ">h"),
    0x70: ("uint", 4, ">I"),
    0x71: ("int", 4, ">i"),
    0x72: ("float", 4, ">f"),
    0x80: ("ulong", 8, ">Q"),
    0x81: ("long", 8, ">q"),
    0x82: ("double", 8, ">d"),
    0x83: ("timestamp", 8, ">q"),
}
_EMPTY: Final = {0x40: None, 0x41: True, 0x42: False, 0x43: 0, 0x44: 0}
_TEXTS: Final = {0xA0: "binary", 0xA1: "string", 0xA3: "symbol", 0xB0: "binary", 0xB1: "string", 0xB3: "symbol"}
_COMPOUND: Final = {0xC0: "list", 0xC1: "map", 0xD0: "list", 0xD1: "map"}


@dataclass(frozen=True, slots=True)
class Value:
    """One value: its format code, the name of its type, and what it holds.

    ``held`` is a number, a text, octets, a list of values, or of a map its keys and values in their order.
    """

    code: int
    type: str
    held: Any

    @property
    def plain(self) -> Any:
        """The value without its encoding."""
        if self.type == "list":
            return [each.plain for each in self.held]
        if self.type == "map":
            return {key.plain: each.plain for key, each in self.pairs()}
        return self.held

    def pairs(self) -> Iterator[tuple[Value, Value]]:
        """The keys of a map and their values."""
        return zip(self.held[::2], self.held[1::2], strict=True)

    def field(self, name: str) -> Value:
        """The value of a key of this map; KeyError."""
        for key, value in self.pairs():
            if key.held == name:
                return value
        raise KeyError(name)


def read(octets: bytes, at: int = 0) -> tuple[Value, int]:
    """The value that begins at ``at``, and where it ends. A described value is one of type ``described``."""
    code = octets[at]
    at += 1
    if code == 0x00:
        descriptor, at = read(octets, at)
        value, at = read(octets, at)
        return Value(code, "described", (descriptor.held, value)), at
    if code in _FIXED:
        name, width, form = _FIXED[code]
        held = struct.unpack_from(form, octets, at)[0] if width else _EMPTY[code]
        return Value(code, name, held), at + width
    if code in _TEXTS:
        wide = 4 if code >= 0xB0 else 1
        end = at + wide + int.from_bytes(octets[at : at + wide], "big")
        raw = octets[at + wide : end]
        return Value(code, _TEXTS[code], raw if _TEXTS[code] == "binary" else raw.decode()), end
    if code == 0x45:
        return Value(code, "list", []), at
    wide = 4 if code in (0xD0, 0xD1, 0xF0) else 1
    end = at + wide + int.from_bytes(octets[at : at + wide], "big")
    count = int.from_bytes(octets[at + wide : at + 2 * wide], "big")
    at += 2 * wide
    if code in (0xE0, 0xF0):
        return Value(code, "array", octets[at:end]), end
    values = []
    for _ in range(count):
        value, at = read(octets, at)
        values.append(value)
    assert at == end, "a list or a map has a wrong size"
    return Value(code, _COMPOUND[code], values), end


def sections(message: bytes) -> dict[int, Value]:
    """The sections of a message by their descriptors."""
    found: dict[int, Value] = {}
    at = 0
    while at < len(message):
        section, at = read(message, at)
        found[section.held[0]] = section.held[1]
    return found


def frames(octets: bytes) -> Iterator[tuple[int, list[Value], bytes, bytes]]:
    """The whole frames of a stream: descriptor, fields, payload, and the frame's octets; protocol headers are -1."""
    at = 0
    while len(octets) - at >= 8:
        if octets[at : at + 4] == b"AMQP":
            yield -1, [], b"", octets[at : at + 8]
            at += 8
            continue
        end = at + int.from_bytes(octets[at : at + 4], "big")
        if end > len(octets):
            return
        whole = octets[at:end]
        if len(whole) > 8:
            performative, behind = read(whole, whole[4] * 4)
            descriptor, fields = performative.held
            yield descriptor, fields.held, whole[behind:], whole
        at = end
