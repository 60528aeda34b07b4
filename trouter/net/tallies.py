"""Numbers that the workers of a router keep together, in memory that they share.

Each worker writes a part of its own, and reads those of the others, so there are no locks, and nothing has to be undone
for a worker that ends: the parent clears its part. To take a place under a limit, a worker raises its own count first
and sums the parts after, and lowers it again if the sum is above the limit. So the workers never have more together
than the limit; of two that take the last place at the same moment, both may be refused.

For this each of the two has to see what the other one wrote before it looked, unless it was seen itself. Processors may
read before their own write has left them, also those of Intel; ``atomics.put_in_order`` keeps them from it.

A part is a table of buckets, each with some digests of keys and their numbers. The digests have a secret key, so that
no client can choose names that fall into one bucket. A slot whose number is 0 may get another key at any time: so its
worker writes the 0, then the digest, then the number, in this order, and the others read the digest, then the number,
then the digest again. ``tests/net/order/`` has these two proofs.
"""

from __future__ import annotations

import logging
import mmap
import os
import time
from collections.abc import Callable
from functools import lru_cache, partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, NamedTuple

from . import atomics

if TYPE_CHECKING:
    from cython import Py_ssize_t

BUCKETS: Final = 32_768
#: Keys in a bucket; the octets of a digest, of a number, of a bucket's digests and of a bucket.
KEYS: Final = 16
DIGEST_BYTES: Final = 16
NUMBER_BYTES: Final = 8
DIGESTS_BYTES: Final = KEYS * DIGEST_BYTES
BUCKET_BYTES: Final = DIGESTS_BYTES + KEYS * NUMBER_BYTES
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


class Place(NamedTuple):
    """Where the numbers of a key are: its digest, and where its bucket begins within each part."""

    digest: bytes
    bucket: int


class Tallies:
    """The counts of all workers, as the worker ``place`` of ``count`` sees them. A key is a tuple of texts."""

    __slots__ = ("_is_full", "_memory", "_numbers", "_others", "_own", "_place_of", "now")

    def __init__(self, descriptor: int, place: int, count: int, now: Callable[[], float] = time.monotonic) -> None:
        """The ``descriptor`` of the shared memory is closed. ``now``: a clock that all workers have, in seconds."""
        self.now = now
        self._memory: mmap.mmap = mmap.mmap(descriptor, _size(count))
        os.close(descriptor)
        derive = partial(_place_of, self._memory[:SECRET_BYTES])
        self._place_of: Callable[[tuple[str, ...]], Place] = lru_cache(KEPT_DIGESTS)(derive)
        self._own: Py_ssize_t = _part_of(place)
        self._others: list[int] = [_part_of(other) for other in range(1, count + 1) if other != place]
        #: All numbers are as wide as a word of the processor, so that each is written at once: doubles, which have
        #: whole numbers of up to 53 bits.
        self._numbers: memoryview[float] = memoryview(self._memory).cast("d")
        self._is_full = False

    def derive_key(self, purpose: str) -> bytes:
        """Return a secret key that all workers of this router derive for a purpose, and no one else."""
        return blake2b(purpose.encode(), key=self._memory[:SECRET_BYTES], person=b"key").digest()

    def close(self) -> None:
        """Give the memory back."""
        self._numbers.release()
        self._memory.close()

    def raise_count(self, *key: str) -> int:
        """Count one more here; return the count of all workers, ``NO_ROOM`` if it could not be counted."""
        place = self.place_of(key)
        index = self._find_own(place)
        if index >= 0:
            own = int(atomics.read_number(self._numbers, index)) + 1
            atomics.write_number(self._numbers, index, own)
        elif self.write_number(place, own := 1) < 0:
            return NO_ROOM
        atomics.put_in_order()
        return own + int(sum(self.list_others(place)))

    def lower_count(self, *key: str) -> None:
        """Count one less here, if there is any."""
        index = self._find_own(self.place_of(key))
        if index >= 0 and (own := atomics.read_number(self._numbers, index)):  # there may have been no room for it
            atomics.write_number(self._numbers, index, own - 1)

    def count_others(self, *key: str) -> int:
        """Return the count of the other workers."""
        return int(sum(self.list_others(self.place_of(key))))

    def place_of(self, key: tuple[str, ...]) -> Place:
        """Return where the numbers of a key are."""
        return self._place_of(key)

    def put_in_order(self) -> None:
        """Let the other workers see what was written here before anything is read after it."""
        atomics.put_in_order()

    def write_number(self, place: Place, value: float) -> Py_ssize_t:
        """Write the number of this worker, 0 for none; return its index, -1 if there is no room for it."""
        bucket = self._own + place.bucket
        slot: Py_ssize_t = _find(self._memory, bucket, place.digest)
        if slot < 0:
            slot = self._claim_slot(bucket, place.digest) if value else -1
            if slot < 0:
                return -1
        index: Py_ssize_t = _index_of(bucket, slot)
        atomics.write_number(self._numbers, index, value)
        return index

    def write_at(self, index: Py_ssize_t, value: float) -> None:
        """Write a number of this worker whose index is known: no other key gets it while the number is not 0."""
        atomics.write_number(self._numbers, index, value)

    def list_others(self, place: Place) -> list[float]:
        """Return the numbers of those other workers that have one."""
        memory, others = self._memory, []
        digest, within = place
        bucket: Py_ssize_t
        slot: Py_ssize_t
        for part in self._others:
            bucket = part + within
            slot = _find(memory, bucket, digest)
            if slot < 0:
                continue
            number = atomics.read_number(self._numbers, _index_of(bucket, slot))
            at = bucket + slot * DIGEST_BYTES
            if number and memory[at : at + DIGEST_BYTES] == digest:  # else the slot has got another key
                others.append(number)
        return others

    def _find_own(self, place: Place) -> Py_ssize_t:
        """Return the index of this worker's number, -1 if it has no slot."""
        digest, within = place
        bucket: Py_ssize_t = self._own + within
        slot: Py_ssize_t = _find(self._memory, bucket, digest)
        return _index_of(bucket, slot) if slot >= 0 else -1

    def _claim_slot(self, bucket: Py_ssize_t, digest: bytes) -> Py_ssize_t:
        """Give the digest a slot whose key has no number left; return it, or -1 if there is none."""
        first: Py_ssize_t = _index_of(bucket, 0)
        slot: Py_ssize_t
        for slot in range(KEYS):
            if not atomics.read_number(self._numbers, first + slot):
                at = bucket + slot * DIGEST_BYTES
                atomics.put_in_order()  # the 0 is before the digest; the number is written after it
                self._memory[at : at + DIGEST_BYTES] = digest
                return slot
        if not self._is_full:
            self._is_full = True
            log.critical(
                "the workers' table of counts is full: connections without room there are refused, and quotas count "
                "for each worker alone"
            )
        return -1


class SharedNumber:
    """A number of which each worker has its own, under a key."""

    __slots__ = ("_index", "_key", "_place", "_tallies", "own")

    def __init__(self, tallies: Tallies, *key: str) -> None:
        self._tallies = tallies
        self._key: tuple[str, ...] = key
        #: Found out when it is needed: most numbers are not.
        self._place: Place | None = None
        #: Where this worker's own is while it is not 0; -1 if that is not known.
        self._index: Py_ssize_t = -1
        #: The number of this worker; 0 for none.
        self.own: float = 0

    def write(self, value: float) -> None:
        """Let the other workers see another number of this one."""
        if value == self.own:
            return
        self.own = value
        if self._index >= 0:
            self._tallies.write_at(self._index, value)
        else:
            self._index = self._tallies.write_number(self._place or self._find_place(), value)
        if not value:
            self._index = -1

    def list_others(self) -> list[float]:
        """Return the numbers of those other workers that have one."""
        return self._tallies.list_others(self._place or self._find_place())

    def sum_others(self) -> int:
        """Return the sum of the other workers' numbers, which are whole."""
        return int(sum(self.list_others()))

    def _find_place(self) -> Place:
        self._place = self._tallies.place_of(self._key)
        return self._place


def _place_of(secret: bytes, key: tuple[str, ...]) -> Place:
    digest = blake2b(repr(key).encode(), key=secret, digest_size=DIGEST_BYTES).digest()
    return Place(digest, int.from_bytes(digest[:4], "little") % BUCKETS * BUCKET_BYTES)


def _size(count: int) -> int:
    return HEAD_BYTES + count * PART_BYTES


def _part_of(place: Py_ssize_t) -> int:
    """Return where the part of a worker begins."""
    return HEAD_BYTES + (place - 1) * PART_BYTES


def _index_of(bucket: Py_ssize_t, slot: Py_ssize_t) -> Py_ssize_t:
    """Return the index of a number, in units of a number."""
    return (bucket + DIGESTS_BYTES) // NUMBER_BYTES + slot


def _find(memory: mmap.mmap, bucket: Py_ssize_t, digest: bytes) -> Py_ssize_t:
    """Return the slot of a digest in a bucket, -1 if it has none."""
    at: Py_ssize_t = memory.find(digest, bucket, bucket + DIGESTS_BYTES)
    while at >= 0 and (at - bucket) % DIGEST_BYTES:  # the end of one and the beginning of another
        at = memory.find(digest, at + 1, bucket + DIGESTS_BYTES)
    return -1 if at < 0 else (at - bucket) // DIGEST_BYTES
