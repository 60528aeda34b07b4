"""The numbers of connections and links as tenants see them: they say nothing of what other tenants do.

The router counts its connections and links. A tenant that saw these numbers could count what all other tenants open. So
it sees each number permuted by a key that only the router has, of several workers each the same: the same number always
as the same other one, and no two alike. Such a permutation is a Feistel network of two halves, whose rounds are keyed
digests (Luby and Rackoff, 1988).
"""

from __future__ import annotations

import secrets
from hashlib import blake2b
from typing import Final

#: The bits that are permuted: as many as an identity may have that is an AMQP int. Higher ones, which a router has
#: after two billion connections or links, stay as they are.
_BITS: Final = 31
_LOW_BITS: Final = 15
_LOW: Final = (1 << _LOW_BITS) - 1
_HIGH: Final = (1 << (_BITS - _LOW_BITS)) - 1
_MASK: Final = (1 << _BITS) - 1
_ROUNDS: Final = range(8)
_KEY_BYTES: Final = 32


class Permutation:
    """One permutation of the numbers from 0 on."""

    def __init__(self, key: bytes, purpose: bytes) -> None:
        """``key`` is secret, of 16 to 64 bytes; each ``purpose``, of at most 16, has another permutation."""
        self._state = blake2b(key=key, person=purpose, digest_size=2)

    def show(self, number: int) -> int:
        """Return the number that stands for ``number``; neither is negative."""
        return self._permute(number, backwards=False)

    def find(self, shown: int) -> int:
        """Return the number that ``shown`` stands for."""
        return self._permute(shown, backwards=True)

    def _permute(self, number: int, *, backwards: bool) -> int:
        high, low = (number & _MASK) >> _LOW_BITS, number & _LOW
        for turn in reversed(_ROUNDS) if backwards else _ROUNDS:
            if turn % 2:
                low ^= self._digest(turn, high) & _LOW
            else:
                high ^= self._digest(turn, low) & _HIGH
        return number & ~_MASK | high << _LOW_BITS | low

    def _digest(self, turn: int, half: int) -> int:
        digest = self._state.copy()
        digest.update(bytes((turn, half >> 8, half & 0xFF)))
        return int.from_bytes(digest.digest(), "big")


class Identities:
    """What tenants see in place of the numbers of connections and of links."""

    def __init__(self, key: bytes = b"") -> None:
        """``key`` is secret, of 16 to 64 bytes; by default a random one."""
        key = key or secrets.token_bytes(_KEY_BYTES)
        self.connections = Permutation(key, b"connection")
        self.links = Permutation(key, b"link")
