"""Counts that the workers of a router keep together, in memory that they share.

Each worker writes a part of its own, and reads those of the others, so there are no locks, and nothing has to be undone
for a worker that ends: the parent clears its part. To take a place under a limit, a worker raises its own count first
and sums the parts after, and lowers it again if the sum is above the limit. So the workers never have more together
than the limit; of two that take the last place at the same moment, both may be refused.

A part is a table of buckets, each with some digests of keys and their counts. The digests have a secret key, so that no
client can choose names that fall into one bucket.
"""

from __future__ import annotations

import logging
import mmap
import os
from functools import lru_cache, partial
from hashlib import blake2b
from typing import Final

BUCKETS: Final = 16_384
#: Keys in a bucket; the octets of a digest, of a count and of a bucket.
KEYS: Final = 16
DIGEST_BYTES: Final = 16
COUNT_BYTES: Final = 4
BUCKET_BYTES: Final = KEYS * (DIGEST_BYTES + COUNT_BYTES)
PART_BYTES: Final = BUCKETS * BUCKET_BYTES
#: The octets before the first part: whole pages, which begin with the secret.
HEAD_BYTES: Final = 65_536
SECRET_BYTES: Final = 32
#: Digests that a worker keeps, of the keys that it used last.
KEPT_DIGESTS: Final = 4096
#: What the counts are if a key finds no room: above every limit.
NO_ROOM: Final = 2**62

log = logging.getLogger("trouter.POLICY")


class SharedMemory:
    """The memory as the parent sees it, which makes it and hands it to the workers."""

    def __init__(self, count: int) -> None:
        self.descriptor: Final = os.memfd_create("workers")
        os.ftruncate(self.descriptor, _size(count))
        self._memory = mmap.mmap(self.descriptor, _size(count))
        self._memory[:SECRET_BYTES] = os.urandom(SECRET_BYTES)

    def clear_part(self, place: int) -> None:
        """Forget the counts of a worker that has ended."""
        self._memory.madvise(mmap.MADV_REMOVE, _part_of(place), PART_BYTES)

    def close(self) -> None:
        """Give the memory back; the workers that run keep it."""
        self._memory.close()
        os.close(self.descriptor)


class Tallies:
    """The counts of all workers, as the worker ``place`` of ``count`` sees them. A key is a tuple of texts."""

    def __init__(self, descriptor: int, place: int, count: int) -> None:
        """The ``descriptor`` of the shared memory is closed."""
        self._memory = mmap.mmap(descriptor, _size(count))
        os.close(descriptor)
        self._digest_of = lru_cache(KEPT_DIGESTS)(partial(_digest_of, self._memory[:SECRET_BYTES]))
        self._own = _part_of(place)
        self._others = [_part_of(other) for other in range(1, count + 1) if other != place]
        #: The counts of this worker are 32 bits wide, so that each is written at once.
        self._counts = memoryview(self._memory).cast("I")
        self._is_full = False

    def close(self) -> None:
        """Give the memory back."""
        self._counts.release()
        self._memory.close()

    def raise_count(self, *key: str) -> int:
        """Count one more here; return the count of all workers, ``NO_ROOM`` if it could not be counted."""
        digest = self._digest_of(key)
        bucket = self._own + _bucket_of(digest)
        slot = _find(self._memory, bucket, digest)
        if slot < 0:
            slot = self._claim_slot(bucket, digest)
            if slot < 0:
                return NO_ROOM
        at = _count_index(bucket, slot)
        own = self._counts[at] + 1
        self._counts[at] = own
        return own + self._sum_others(digest)

    def lower_count(self, *key: str) -> None:
        """Count one less here, if there is any."""
        digest = self._digest_of(key)
        bucket = self._own + _bucket_of(digest)
        slot = _find(self._memory, bucket, digest)
        at = _count_index(bucket, slot)
        if slot >= 0 and self._counts[at]:  # there may have been no room for it
            self._counts[at] -= 1

    def count_others(self, *key: str) -> int:
        """Return the count of the other workers."""
        return self._sum_others(self._digest_of(key))

    def _sum_others(self, digest: bytes) -> int:
        bucket, total = _bucket_of(digest), 0
        for part in self._others:
            at = part + bucket
            slot = _find(self._memory, at, digest)
            if slot >= 0:
                total += self._counts[_count_index(at, slot)]
        return total

    def _claim_slot(self, bucket: int, digest: bytes) -> int:
        """Give the digest a slot whose key has no count left; return it, or -1 if there is none."""
        first = _count_index(bucket, 0)
        for slot in range(KEYS):
            if not self._counts[first + slot]:
                at = bucket + slot * DIGEST_BYTES
                self._memory[at : at + DIGEST_BYTES] = digest
                return slot
        if not self._is_full:
            self._is_full = True
            log.critical("the workers' table of counts is full: what has no room there is refused")
        return -1


def _digest_of(secret: bytes, key: tuple[str, ...]) -> bytes:
    return blake2b(repr(key).encode(), key=secret, digest_size=DIGEST_BYTES).digest()


def _size(count: int) -> int:
    return HEAD_BYTES + count * PART_BYTES


def _part_of(place: int) -> int:
    """Return where the part of a worker begins."""
    return HEAD_BYTES + (place - 1) * PART_BYTES


def _bucket_of(digest: bytes) -> int:
    """Return where the bucket of a digest begins, within a part."""
    return int.from_bytes(digest[:4], "little") % BUCKETS * BUCKET_BYTES


def _count_index(bucket: int, slot: int) -> int:
    """Return the index of a count, in units of a count."""
    return (bucket + KEYS * DIGEST_BYTES) // COUNT_BYTES + slot


def _find(memory: mmap.mmap, bucket: int, digest: bytes) -> int:
    """Return the slot of a digest in a bucket, -1 if it has none."""
    at = bucket - 1
    while True:
        at = memory.find(digest, at + 1, bucket + KEYS * DIGEST_BYTES)
        if at < 0 or (at - bucket) % DIGEST_BYTES == 0:
            return -1 if at < 0 else (at - bucket) // DIGEST_BYTES
