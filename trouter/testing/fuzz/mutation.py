"""Inputs made of other inputs: bytes and text, changed at random.

A mutator takes a random generator, an input and another input of the same target, and returns a new input. ``octets``
and ``text`` work on any input; ``structure`` has mutators that follow AMQP's nesting.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias, TypeVar

#: The longest input that is tried, in bytes.
MAX_BYTES: Final = 4096
#: Numbers at which lengths, counts and ids wrap or change their encoding.
EDGES: Final = (0, 1, 2, 0x7F, 0x80, 0xFE, 0xFF, 0x100, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF)
#: Every constructor of an AMQP value.
CODES: Final = bytes.fromhex("00404142434445505152535455566061707172737480818283849498a0a1a3b0b1b3c0c1d0d1e0f0")

Item = TypeVar("Item")
#: (random generator, input, another input of the target) to a new input.
Mutator: TypeAlias = Callable[[random.Random, bytes, bytes], bytes]

_TOKEN: Final = re.compile(rb"\w+|\s+|[^\w\s]")
_NUMBERS: Final = (b"0", b"-1", b"1", b"255", b"65536", b"2147483648", b"4294967296", b"9" * 40, b"1e999", b"0x10")
_ODD: Final = (b"", b"\0", b"\n", b"\r\n", b'"', b"'", b"\\", b"{", b"}", b"[", b"]", b"#", b"\xff", b"\xe2\x82", b"*")


def below(rng: random.Random, end: int) -> int:
    """Return a whole number from 0 to ``end`` - 1, in a third of the time of ``randrange``."""
    return int(rng.random() * end)


def pick(rng: random.Random, row: Sequence[Item]) -> Item:
    """Return an item of ``row``, in a third of the time of ``choice``; IndexError if it is empty."""
    return row[int(rng.random() * len(row))]


def octets(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """Change single bytes, lengths and runs of ``data``, or join it with ``other``."""
    changed = bytearray(data)
    for _ in range(pick(rng, (1, 1, 1, 2, 2, 4, 8))):
        _change(rng, changed, other)
    return bytes(changed[:MAX_BYTES])


def _change(rng: random.Random, data: bytearray, other: bytes) -> None:
    at = below(rng, len(data) + 1)
    kind = below(rng, 8)
    if kind == 0 and at < len(data):
        data[at] ^= 1 << below(rng, 8)
    elif kind == 1 and at < len(data):
        data[at] = pick(rng, CODES)
    elif kind == 2:
        data[at : at + 4] = pick(rng, EDGES).to_bytes(4, "big")
    elif kind == 3 and at < len(data):
        data[at] = below(rng, 256)
    elif kind == 4:
        del data[at : at + 1 + below(rng, 8)]
    elif kind == 5:
        data[at:at] = rng.randbytes(1 + below(rng, 4))
    elif kind == 6:
        piece = data[at : at + 1 + below(rng, 16)]
        data[at:at] = piece * pick(rng, (1, 2, 40))
    else:
        data[at:] = other[below(rng, len(other) + 1) :]


def text(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """Drop, repeat, swap and borrow words, signs and numbers."""
    words = _TOKEN.findall(data) or [b""]
    borrowed = _TOKEN.findall(other) or [b""]
    for _ in range(pick(rng, (1, 1, 2, 4))):
        at = below(rng, len(words))
        kind = below(rng, 8)
        if kind == 0 and len(words) > 1:
            del words[at : at + pick(rng, (1, 1, 4, 16))]
            words = words or [b""]
        elif kind == 1:
            words[at:at] = words[at : at + pick(rng, (1, 3, 12))] * pick(rng, (1, 1, 30))
        elif kind == 2:
            there = below(rng, len(words))
            words[at], words[there] = words[there], words[at]
        elif kind == 3:
            words[at] = pick(rng, _NUMBERS)
        elif kind == 4:
            words.insert(at, pick(rng, _ODD))
        elif kind == 5:
            words[at] = pick(rng, borrowed)
        elif kind == 6:
            there = below(rng, len(borrowed))
            words[at:at] = borrowed[there : there + pick(rng, (1, 4, 16))]
        else:
            words[at] = (words[at] * pick(rng, (2, 300)))[:MAX_BYTES]
    return b"".join(words)[:MAX_BYTES]


def files(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """Return ``data`` as after a file fault: cut, zeroed, reordered, repeated, or mixed with another file."""
    size = len(data)
    at, end = sorted((below(rng, size + 1), below(rng, size + 1)))
    kind = below(rng, 7)
    if kind == 0:
        changed = data[:at]
    elif kind == 1:
        changed = data[:at] + bytes(end - at) + data[end:]
    elif kind == 2:
        changed = data[end:] + data[at:end] + data[:at]
    elif kind == 3:
        changed = data[:end] + data[at:]
    elif kind == 4:
        changed = data[:at] + other[at:]
    elif kind == 5:
        changed = data[:at] + data[at:end][::-1] + data[end:]
    else:
        return octets(rng, data, other)
    return changed[:MAX_BYTES]


def behind(skipped: int, inner: Mutator) -> Mutator:
    """Return a mutator for inputs whose first ``skipped`` bytes choose the use of the rest; it seldom changes them."""

    def changed(rng: random.Random, data: bytes, other: bytes) -> bytes:
        head, rest = bytearray(data[:skipped].ljust(skipped, b"\0")), data[skipped:]
        if rng.random() < 0.2:
            head[below(rng, skipped)] = below(rng, 256)
            if rng.random() < 0.5:
                return bytes(head) + rest
        return bytes(head) + inner(rng, rest, other[skipped:])

    return changed
