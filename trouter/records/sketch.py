"""Histograms of times that can be added up: log-linear buckets, computed by shifts, the same in every language.

A whole number below 32 has its own bucket. Above that, each doubling has 32 buckets, so that the middle of a bucket is
at most 1/64 off.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

#: Buckets in each doubling, as a power of two.
BITS: Final = 5


def bucket_of(value: int) -> int:
    """Return the bucket of a number that is not negative."""
    if value < 1 << BITS:
        return value
    exponent = value.bit_length() - 1
    return ((exponent - BITS + 1) << BITS) + ((value >> (exponent - BITS)) - (1 << BITS))


def middle_of(bucket: int) -> float:
    """Return the middle of a bucket's values."""
    if bucket < 1 << BITS:
        return float(bucket)
    shift = (bucket >> BITS) - 1
    first = ((bucket & ((1 << BITS) - 1)) + (1 << BITS)) << shift
    return first + ((1 << shift) - 1) / 2


def merged(counted: Iterable[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """Return the buckets with a count, sorted and each once, and their counts."""
    counts: dict[int, int] = {}
    for bucket, count in counted:
        if count:
            counts[bucket] = counts.get(bucket, 0) + count
    buckets = sorted(counts)
    return buckets, [counts[bucket] for bucket in buckets]
