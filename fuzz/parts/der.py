"""Values of DER as trees: parsed, composed, and changed by a mutator (X.690)."""

from __future__ import annotations

import random
from typing import Final

from trouter.testing.fuzz import mutation

CONSTRUCTED: Final = 0x20
#: Contents that readers treat in ways of their own: empty, signs, times at the edge.
EDGES: Final = (b"", b"\0", b"\x80", b"\xff" * 9, b"000101000000Z", b"99991231235959Z", b"00000101000000Z")


class Value:
    """A tag, and the octets of a primitive value or the parts of a constructed one."""

    def __init__(self, tag: int, octets: bytes = b"", parts: list[Value] | None = None) -> None:
        self.tag = tag
        self.octets = octets
        self.parts = parts

    def encode(self) -> bytes:
        return encode(self.tag, self.octets if self.parts is None else b"".join(map(Value.encode, self.parts)))


def encode(tag: int, octets: bytes) -> bytes:
    """Return a value with its tag and length."""
    size = len(octets)
    if size < 0x80:
        return bytes((tag, size)) + octets
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(length))) + length + octets


def parse(data: bytes) -> list[Value]:
    """Return the values in ``data``; ValueError, IndexError if they are not whole."""
    found = []
    at = 0
    while at < len(data):
        tag, size = data[at], data[at + 1]
        at += 2
        if size & 0x80:
            more = size & 0x7F
            size = int.from_bytes(data[at : at + more], "big")
            at += more
        octets = data[at : at + size]
        if len(octets) < size:
            raise ValueError("a value that is cut")
        found.append(Value(tag, parts=parse(octets)) if tag & CONSTRUCTED else Value(tag, octets))
        at += size
    return found


def change(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """Change one value: its tag or octets, or it is doubled, removed, or replaced by one of ``other``."""
    try:
        root, stranger = Value(CONSTRUCTED, parts=parse(data)), Value(CONSTRUCTED, parts=parse(other))
    except (ValueError, IndexError, RecursionError):
        return mutation.octets(rng, data, other)
    places = _places(root)
    if not places:
        return mutation.octets(rng, data, other)
    parts, at = mutation.pick(rng, places)
    how = mutation.below(rng, 6)
    if how == 0:
        parts[at].tag = mutation.below(rng, 256)
    elif how == 1:
        parts.insert(mutation.below(rng, len(parts) + 1), parts[at])
    elif how == 2:
        del parts[at]
    elif how == 3:
        parts[at] = Value(parts[at].tag, mutation.pick(rng, EDGES))
    elif how == 4 and (strange := _places(stranger)):
        others, place = mutation.pick(rng, strange)
        parts[at] = others[place]
    elif parts[at].parts is None:
        parts[at] = Value(parts[at].tag, mutation.octets(rng, parts[at].octets, b""))
    return b"".join(map(Value.encode, root.parts or ()))


def _places(value: Value) -> list[tuple[list[Value], int]]:
    """Return where each value below this one is: the list that has it, and its index there."""
    found: list[tuple[list[Value], int]] = []
    for at, each in enumerate(value.parts or ()):
        found += [(value.parts or [], at), *_places(each)]
    return found
