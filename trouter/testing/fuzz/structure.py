"""Mutators that follow AMQP's nesting: their outputs are well formed except for deliberate changes.

Random bytes seldom get beyond the first length that they break. Here values are parsed into trees and streams into
frames, a part is changed, and sizes and counts are written anew, so that the decoder reaches the change.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from trouter.testing.fuzz.mutation import CODES, EDGES, MAX_BYTES, below, octets, pick

_MAX_DEPTH: Final = 12
_MAX_NODES: Final = 400
#: Bytes of fixed-width values, by the upper half of their constructor.
_FIXED: Final = {4: 0, 5: 1, 6: 2, 7: 4, 8: 8, 9: 16}
_HEADER_BYTES: Final = 8


class EncodedNode:
    """One encoded value: ``items`` of a list or map, descriptor and value of a described one, else ``content``.

    Inputs share nodes, so they never change; ``octets`` are the node's bytes, ``place`` is its index in ``parent``.
    """

    __slots__ = ("code", "content", "items", "octets", "parent", "place")

    def __init__(self, code: int, octets: bytes, content: bytes = b"", items: Sequence[EncodedNode] = ()) -> None:
        self.code = code
        self.octets = octets
        self.content = content
        self.items = items
        self.parent: EncodedNode | None = None
        self.place = 0
        for place, item in enumerate(items):
            item.parent = self
            item.place = place


def _compound(code: int, items: Sequence[bytes], lie: int = 0) -> bytes:
    """Return a described value, or a list or map in its smallest form; ``lie`` is added to its size."""
    body = b"".join(items)
    if code == 0:
        return b"\0" + body
    width = 1 if code >> 4 == 0xC and len(body) < 255 and len(items) < 256 else 4
    limit = (1 << 8 * width) - 1
    size = (len(body) + width + lie) & limit
    count = (len(items) + (lie if lie & 1 else 0)) & limit
    return bytes(((0xC0 if width == 1 else 0xD0) | code & 15,)) + size.to_bytes(width) + count.to_bytes(width) + body


def _plain(code: int, content: bytes, lie: int = 0) -> bytes:
    """Return a value without items; ``lie`` is added to the size, if its type has one."""
    if code >> 4 < 0xA:
        return bytes((code,)) + content
    width = 4 if code >> 4 & 1 else 1
    return bytes((code,)) + ((len(content) + lie) & ((1 << 8 * width) - 1)).to_bytes(width) + content


class _NotParsed(Exception):
    """The bytes are no value."""


class _Parser:
    """Parses bytes into trees, as far as they are values."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.left = _MAX_NODES

    def take(self, count: int) -> bytes:
        if count > len(self.data) - self.at:
            raise _NotParsed
        self.at += count
        return self.data[self.at - count : self.at]

    def value(self, depth: int = 0) -> EncodedNode:
        self.left -= 1
        if depth > _MAX_DEPTH or self.left < 0:
            raise _NotParsed
        start = self.at
        code = self.take(1)[0]
        kind = code >> 4
        content = b""
        items: list[EncodedNode] = []
        if code == 0:
            items = [self.value(depth + 1), self.value(depth + 1)]
        elif kind in _FIXED:
            content = self.take(_FIXED[kind])
        elif kind < 4:
            raise _NotParsed
        else:
            width = 4 if kind & 1 else 1
            content = self.take(int.from_bytes(self.take(width)))
            if kind in (0xC, 0xD):
                items = self._items(content, width, depth)
                content = b""
        return EncodedNode(code, self.data[start : self.at], content, items)

    def _items(self, content: bytes, width: int, depth: int) -> list[EncodedNode]:
        inner = _Parser(content)
        inner.left = self.left
        count = int.from_bytes(inner.take(width))
        if count > self.left:
            raise _NotParsed
        items = [inner.value(depth + 1) for _ in range(count)]
        if inner.at != len(content):
            raise _NotParsed
        self.left = inner.left
        return items


class _Values(NamedTuple):
    """The values at the start of some bytes, all nodes in them, those with items, and the remaining bytes."""

    trees: tuple[EncodedNode, ...]
    every: list[EncodedNode]
    parents: list[EncodedNode]
    rest: bytes


@lru_cache(maxsize=2048)  # seeds' frames are parsed again and again
def _parse(data: bytes) -> _Values:
    parser = _Parser(data)
    trees: list[EncodedNode] = []
    every: list[EncodedNode] = []
    while parser.at < len(data):
        before = parser.at
        try:
            tree = parser.value()
        except _NotParsed:
            parser.at = before
            break
        tree.place = len(trees)
        trees.append(tree)
        every.append(tree)
    for node in every:  # the list grows meanwhile
        every += node.items
    return _Values(tuple(trees), every, [node for node in every if node.items], data[parser.at :])


def values(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """Change one part of a sequence of encoded values, and write sizes and counts anew."""
    parsed = _parse(data)
    if not parsed.trees:
        return octets(rng, data, other)
    kind = below(rng, 10)
    if kind > 5:
        node = pick(rng, parsed.every)
        changed = _lie(rng, node) if kind == 6 else _leaf(rng, node)
        return _with(parsed, node, changed)[:MAX_BYTES]
    which = below(rng, len(parsed.parents) + 1)
    parent = parsed.parents[which] if which < len(parsed.parents) else None
    row = [node.octets for node in (parsed.trees if parent is None else parent.items)]
    _change_row(rng, row, kind, other)
    if parent is None:
        return (b"".join(row) + parsed.rest)[:MAX_BYTES]
    return _with(parsed, parent, _compound(parent.code, row))[:MAX_BYTES]


def _change_row(rng: random.Random, row: list[bytes], kind: int, other: bytes) -> None:
    """Drop, repeat or swap an item, borrow one of ``other``, or wrap one in a list."""
    at = below(rng, len(row))
    if kind == 0:
        del row[at]
    elif kind == 1:
        row[at:at] = [row[at]] * pick(rng, (1, 1, 3, 40))
    elif kind == 2:
        there = below(rng, len(row))
        row[at], row[there] = row[there], row[at]
    elif kind == 5:
        row[at] = _compound(0xD0 | below(rng, 2), [row[at]])
    elif borrowed := _parse(other).every:
        row[at : at + 4 - kind] = [pick(rng, borrowed).octets]  # replaces an item (3), or goes before it (4)


def _with(parsed: _Values, node: EncodedNode, changed: bytes) -> bytes:
    """Return all the values with ``changed`` instead of ``node``, and new sizes around it."""
    while node.parent is not None:
        row = [item.octets for item in node.parent.items]
        row[node.place] = changed
        node = node.parent
        changed = _compound(node.code, row)
    row = [tree.octets for tree in parsed.trees]
    row[node.place] = changed
    return b"".join(row) + parsed.rest


def _lie(rng: random.Random, node: EncodedNode) -> bytes:
    """Return the value with a wrong size."""
    lie = pick(rng, (-2, -1, 1, 2, 255, 1 << 31))
    if node.items or node.code >> 4 in (0xC, 0xD):
        return _compound(node.code, [item.octets for item in node.items], lie)
    return _plain(node.code, node.content, lie)


def _leaf(rng: random.Random, node: EncodedNode) -> bytes:
    """Return another number, text or type instead of a value."""
    kind = node.code >> 4
    if kind in _FIXED and rng.random() < 0.6:
        width = _FIXED[kind]
        number = pick(rng, EDGES) + pick(rng, (-1, 0, 0, 1))
        return bytes((node.code,)) + (number % (1 << 8 * width)).to_bytes(width)
    if kind >= 0xA and not node.items and rng.random() < 0.7:
        return _plain(node.code, octets(rng, node.content, b"x-opt-qd.trace")[:250])
    code = pick(rng, CODES[1:])
    kind = code >> 4
    if kind in (0xC, 0xD):
        return _compound(code, [])
    return _plain(code, rng.randbytes(_FIXED[kind] if kind in _FIXED else pick(rng, (0, 1, 4))))


@lru_cache(maxsize=4096)  # seeds are parsed again and again
def pieces_of(stream: bytes) -> tuple[bytes, ...]:
    """Return the protocol headers and frames of a stream; bytes that are neither are the last piece."""
    found: list[bytes] = []
    at = 0
    while at < len(stream):
        size = 8 if stream[at : at + 4] == b"AMQP" else int.from_bytes(stream[at : at + 4])
        if size < _HEADER_BYTES:
            size = len(stream)
        found.append(stream[at : at + size])
        at += size
    return tuple(found)


def is_frame(piece: bytes) -> bool:
    """Return whether a piece of a stream is a whole frame."""
    return len(piece) >= _HEADER_BYTES and int.from_bytes(piece[:4]) == len(piece)


def frames(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """Drop, repeat, swap and borrow frames of a stream, or change a value or the channel in one of them."""
    pieces = list(pieces_of(data))
    if not pieces:
        return other
    at = below(rng, len(pieces))
    piece = pieces[at]
    kind = below(rng, 9)
    if kind == 0 and len(pieces) > 1:
        del pieces[at]
    elif kind == 1:
        pieces[at:at] = [piece] * pick(rng, (1, 1, 2, 20))
    elif kind == 2:
        there = below(rng, len(pieces))
        pieces[at], pieces[there] = pieces[there], piece
    elif kind == 3:
        pieces.insert(at, pick(rng, pieces_of(other) or pieces))
    elif not is_frame(piece):
        pieces[at] = octets(rng, piece, other)
    elif kind == 4:
        channel = pick(rng, (0, 1, 2, 7, 8, 0xFF, 0xFFFF)).to_bytes(2)
        pieces[at] = piece[:6] + channel + piece[_HEADER_BYTES:]
    elif kind == 5:
        pieces[at] = piece[:5] + bytes((below(rng, 3),)) + piece[6:]
    else:
        borrowed = pick(rng, pieces_of(other) or pieces)
        body = values(rng, piece[_HEADER_BYTES:], borrowed[_HEADER_BYTES:])
        pieces[at] = (_HEADER_BYTES + len(body)).to_bytes(4) + piece[4:_HEADER_BYTES] + body
    return b"".join(pieces)[:MAX_BYTES]
