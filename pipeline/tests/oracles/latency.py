"""Percentiles of summed sketches, with a dictionary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import ceil

from trouter.records import LatencySketch
from trouter.records.sketch import middle_of

Subject = tuple[str | None, str | None, str | None, str | None]
HOUR = 3_600_000_000


def by_hour(sketches: Iterable[LatencySketch]) -> dict[tuple[int, Subject], tuple[Counter[int], int | None]]:
    """Return the bucket counts and the largest value by hour and subject; None where a sketch does not have it."""
    found: dict[tuple[int, Subject], tuple[Counter[int], list[int | None]]] = {}
    for sketch in sketches:
        key = sketch.t0 // HOUR, (sketch.vhost, sketch.addr, sketch.family, sketch.path)
        counts, largest = found.setdefault(key, (Counter(), []))
        counts.update(dict(zip(sketch.bi, sketch.bc, strict=True)))
        largest.append(sketch.max)
    return {
        key: (counts, None if None in largest else max(each for each in largest if each is not None))
        for key, (counts, largest) in found.items()
    }


def percentile(counts: Counter[int], hundredths: int, largest: int | None) -> float:
    """Return the middle of the bucket below or in which this share of the values lies."""
    wanted = ceil(sum(counts.values()) * hundredths / 10_000)
    for bucket in sorted(counts):
        wanted -= counts[bucket]
        if wanted <= 0:
            maximum = int(middle_of(max(counts))) if largest is None else largest
            return min(middle_of(bucket), float(maximum))
    raise ValueError("nothing was counted")
