"""Mutators that know how AMQP nests: what they make is well formed but for what they changed on purpose.

Random octets seldom reach beyond the first length that they break. Here values are taken apart into trees and streams
into frames, something in them is changed, and sizes and counts are written anew, so that the decoder gets to see it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple

from trouter.testing.fuzz.mutation import CODES, EDGES, MAX_BYTES, octets

_MAX_DEPTH: Final = 12
_MAX_NODES: Final = 400
#: Octets of fixed-width values, by the upper half of their constructor.
_FIXED: Final = {4: 0, 5: 1, 6: 2, 7: 4, 8: 8, 9: 16}
_HEADER_BYTES: Final = 8


@dataclass
class Node:
    """One encoded value: ``items`` of a list or map, descriptor and value of a described one, else ``content``."""

    code: int
    content: bytes = b""
    items: list[Node] = field(default_factory=list)
    #: What is added to the size or the count that is written: a lie.
    lie: int = 0

    def encoded(self) -> bytes:
        """Return the octets of the value."""
        kind = self.code >> 4
        if self.code == 0:
            return b"\0" + b"".join(item.encoded() for item in self.items)
        if kind in (0xC, 0xD) and not self.content:
            body = b"".join(item.encoded() for item in self.items)
            width = 1 if kind == 0xC and len(body) < 255 and len(self.items) < 256 else 4
            code = (0xC0 if width == 1 else 0xD0) | self.code & 15
            limit = (1 << 8 * width) - 1
            size = (len(body) + width + self.lie) & limit
            count = (len(self.items) + (self.lie if self.lie & 1 else 0)) & limit
            return bytes((code,)) + size.to_bytes(width, "big") + count.to_bytes(width, "big") + body
        if kind in (0xA, 0xB, 0xC, 0xD, 0xE, 0xF):
            width = 4 if kind & 1 else 1
            size = (len(self.content) + self.lie) & ((1 << 8 * width) - 1)
            return bytes((self.code,)) + size.to_bytes(width, "big") + self.content
        return bytes((self.code,)) + self.content

    def every(self) -> list[Node]:
        """Return the value and all within it."""
        found = [self]
        for item in self.items:
            found += item.every()
        return found


class _NotParsed(Exception):
    """The octets are no value."""


class _Parser:
    """Takes octets apart into trees, as far as they are values."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.left = _MAX_NODES

    def take(self, count: int) -> bytes:
        if count > len(self.data) - self.at:
            raise _NotParsed
        self.at += count
        return self.data[self.at - count : self.at]

    def value(self, depth: int = 0) -> Node:
        self.left -= 1
        if depth > _MAX_DEPTH or self.left < 0:
            raise _NotParsed
        code = self.take(1)[0]
        kind = code >> 4
        if code == 0:
            return Node(0, items=[self.value(depth + 1), self.value(depth + 1)])
        if kind in _FIXED:
            return Node(code, self.take(_FIXED[kind]))
        if kind < 4:
            raise _NotParsed
        width = 4 if kind & 1 else 1
        size = int.from_bytes(self.take(width), "big")
        content = self.take(size)
        if kind in (0xC, 0xD):
            return self._compound(code, content, width, depth)
        return Node(code, content)

    def _compound(self, code: int, content: bytes, width: int, depth: int) -> Node:
        inner = _Parser(content)
        inner.left = self.left
        count = int.from_bytes(inner.take(width), "big")
        if count > self.left:
            raise _NotParsed
        items = [inner.value(depth + 1) for _ in range(count)]
        if inner.at != len(content):
            raise _NotParsed
        self.left = inner.left
        return Node(code, items=items)


def parse(data: bytes) -> tuple[list[Node], bytes]:
    """Return the values that ``data`` begins with, and what is left of it."""
    parser = _Parser(data)
    found: list[Node] = []
    while parser.at < len(data):
        before = parser.at
        try:
            found.append(parser.value())
        except _NotParsed:
            return found, data[before:]
    return found, b""


def values(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """Change one thing in a row of encoded values, and write sizes and counts anew."""
    trees, rest = parse(data)
    if not trees:
        return octets(rng, data, other)
    every = [node for tree in trees for node in tree.every()]
    parents = [node.items for node in every if node.items] + [trees]
    kind = rng.randrange(10)
    borrowed = [node for tree in parse(other)[0] for node in tree.every()] if kind in (3, 4) else []
    row = rng.choice(parents)
    at = rng.randrange(len(row))
    if kind == 0:
        del row[at]
    elif kind == 1:
        row[at:at] = [row[at]] * rng.choice((1, 1, 3, 40))
    elif kind == 2:
        there = rng.randrange(len(row))
        row[at], row[there] = row[there], row[at]
    elif kind == 3 and borrowed:
        row[at] = rng.choice(borrowed)
    elif kind == 4 and borrowed:
        row.insert(at, rng.choice(borrowed))
    elif kind == 5:
        row[at] = Node(0xD0 | rng.randrange(2), items=[row[at]])
    elif kind == 6:
        rng.choice(every).lie = rng.choice((-2, -1, 1, 2, 255, 1 << 31))
    else:
        _change_leaf(rng, rng.choice(every))
    return (b"".join(tree.encoded() for tree in trees) + rest)[:MAX_BYTES]


def _change_leaf(rng: random.Random, node: Node) -> None:
    """Another number, text or type in the place of a value."""
    kind = node.code >> 4
    if kind in _FIXED and rng.random() < 0.6:
        width = _FIXED[kind]
        number = rng.choice(EDGES) + rng.choice((-1, 0, 0, 1))
        node.content = (number % (1 << 8 * width)).to_bytes(width, "big") if width else b""
    elif kind >= 0xA and not node.items and rng.random() < 0.7:
        node.content = octets(rng, node.content, b"x-opt-qd.trace")[:250]
    else:
        code = rng.choice(CODES[1:])
        kind = code >> 4
        node.items = []
        node.code = code
        node.content = rng.randbytes(_FIXED.get(kind, rng.choice((0, 1, 4)))) if kind not in (0xC, 0xD) else b""


class Piece(NamedTuple):
    """A frame of a stream, or what is no frame: then ``head`` is empty."""

    head: bytes
    body: bytes

    def encoded(self) -> bytes:
        """Return the octets, with the size that they have."""
        if not self.head:
            return self.body
        return (len(self.head) + len(self.body)).to_bytes(4, "big") + self.head[4:] + self.body


def split(stream: bytes) -> list[Piece]:
    """Take a stream apart into protocol headers and frames; what is neither is the last piece."""
    return list(_split(stream))


@lru_cache(maxsize=4096)  # of the seeds, which are taken apart again and again
def _split(stream: bytes) -> tuple[Piece, ...]:
    found: list[Piece] = []
    at = 0
    while at < len(stream):
        if stream[at : at + 4] == b"AMQP":
            found.append(Piece(b"", stream[at : at + 8]))
            at += 8
            continue
        size = int.from_bytes(stream[at : at + 4], "big")
        if not _HEADER_BYTES <= size <= len(stream) - at:
            found.append(Piece(b"", stream[at:]))
            break
        found.append(Piece(stream[at : at + 8], stream[at + 8 : at + size]))
        at += size
    return tuple(found)


def frames(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """Drop, double, exchange and borrow frames of a stream, or change a value or the channel in one of them."""
    pieces = split(data)
    if not pieces:
        return other
    at = rng.randrange(len(pieces))
    piece = pieces[at]
    kind = rng.randrange(9)
    if kind == 0 and len(pieces) > 1:
        del pieces[at]
    elif kind == 1:
        pieces[at:at] = [piece] * rng.choice((1, 1, 2, 20))
    elif kind == 2:
        there = rng.randrange(len(pieces))
        pieces[at], pieces[there] = pieces[there], piece
    elif kind == 3:
        pieces.insert(at, rng.choice(split(other) or [piece]))
    elif kind == 4 and piece.head:
        channel = rng.choice((0, 1, 2, 7, 8, 0xFF, 0xFFFF)).to_bytes(2, "big")
        pieces[at] = Piece(piece.head[:6] + channel, piece.body)
    elif kind == 5 and piece.head:
        pieces[at] = Piece(piece.head[:5] + bytes((rng.choice((0, 1, 2)),)) + piece.head[6:], piece.body)
    else:
        body = values(rng, piece.body, rng.choice(split(other) or [piece]).body)
        pieces[at] = Piece(piece.head, body) if piece.head else Piece(b"", octets(rng, piece.body, other))
    return b"".join(each.encoded() for each in pieces)[:MAX_BYTES]
