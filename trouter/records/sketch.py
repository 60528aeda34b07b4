"""Histograms of times that can be added up: log-linear buckets, computed by shifts, the same in every language.

Records, the latencies of addresses (``core/times.py``) and the pipeline use these buckets. ``core/latency.py`` counts
in the fixed buckets of a metric instead, whose bounds its users know.

A whole number below 32 has its own bucket. Above that, each doubling has 32 buckets, so that the middle of a bucket is
at most 1/64 off.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cython import Py_ssize_t, longlong
    from cython import int as c_int

#: Buckets in each doubling, as a power of two.
BITS: Final = 5
_BITS: Final[Py_ssize_t] = BITS
_SMALL: Final[longlong] = 1 << BITS


def bucket_of(value: longlong) -> Py_ssize_t:
    """Return the bucket of a number from 0 to 2**63 - 1."""
    if value < _SMALL:
        return value
    shift: c_int = 0
    while value >> shift >= 2 * _SMALL:
        shift += 1
    return ((shift + 1) << _BITS) + (value >> shift) - _SMALL


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
