"""The names of tenants' dynamic addresses in a router with several workers.

The second half of such a name is a digest of its first half and of the tenant's space, with a key that only the workers
have. So each worker knows whether a name was made for a tenant, without asking the one that made it, and no client can
make one. Names for clients without a tenant have no such digest.
"""

from __future__ import annotations

from collections.abc import Collection
from hashlib import blake2b
from hmac import compare_digest

from .addresses import TEMPORARY_LENGTH, TEMPORARY_NAMES, Address, temporary_token, token_of

#: The characters of each half; either has 66 bits.
_HALF = TEMPORARY_LENGTH // 2


class Marks:
    """Makes and checks the names, by the key that all workers have."""

    def __init__(self, key: bytes, workers: Collection[str] = ()) -> None:
        """``key`` is secret, of 16 to 64 bytes; ``workers`` are the ids of the other workers."""
        self._key = key
        self._workers = workers

    def make_token(self, space: str) -> str:
        """Return a new token for the tenant of this space; 132 bits that no one without the key can guess."""
        half = temporary_token()[:_HALF]
        return half + self._digest_of(half, space)

    def is_of(self, name: str, space: str) -> bool:
        """Return whether the name of a dynamic address, without what comes before it, was made for this space."""
        prefix = next((each for each in TEMPORARY_NAMES if name.startswith(each)), None)
        if prefix is None or len(name) != len(prefix) + TEMPORARY_LENGTH or not name.isascii():
            return False
        half, digest = name[len(prefix) : -_HALF], name[-_HALF:]
        return compare_digest(digest, self._digest_of(half, space))

    def is_of_worker(self, address: Address) -> bool:
        """Return whether a dynamic address that this worker did not make is one of another worker."""
        head, _, way = address.text.removesuffix(f"/{address.rest}").partition("/")
        return (way.partition("/")[2] if head == "_topo" else way) in self._workers

    def _digest_of(self, half: str, space: str) -> str:
        return token_of(blake2b(f"{half}{space}".encode(), key=self._key, digest_size=_HALF).digest())
