"""The expected rows of rollup and top from rows of the meter, in plain Python."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

SUMMED = (
    "msgs", "bytes", "accepted", "rejected", "released", "modified", "presettled", "dropped", "undeliverable", "rows",
    "estimated_msgs",
)  # fmt: skip


def rollup(meter: Iterable[dict[str, Any]], by: Sequence[str], period: str) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """Return sums and quality by the start of the period and by subject."""
    rows: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for row in meter:
        begins = row["hour"] if period == "hour" else row["hour"].replace(hour=0)
        key = (begins, *[row[name] for name in by])
        *sums, good = rows.get(key, (*[0] * len(SUMMED), True))
        added = [total + row[name] for total, name in zip(sums, SUMMED, strict=True)]
        rows[key] = (*added, good and row["complete"])
    return rows


def top(meter: Iterable[dict[str, Any]], limit: int, measure: str) -> list[tuple[Any, ...]]:
    """Return hour, dimension, rank, subject, messages, bytes and share."""
    totals: dict[tuple[Any, str], dict[Any, list[int]]] = defaultdict(lambda: defaultdict(lambda: [0, 0]))
    for row in meter:
        for dimension in ("vhost", "user", "addr"):
            found = totals[row["hour"], dimension][row[dimension]]
            found[0] += row["msgs"]
            found[1] += row["bytes"]
    at = ("msgs", "bytes").index(measure)
    rows = []
    for (hour, dimension), subjects in totals.items():
        every = sum(counts[at] for counts in subjects.values())
        ranked = sorted(subjects.items(), key=lambda each: (-each[1][at], each[0] is None, each[0] or ""))
        for rank, (subject, counts) in enumerate(ranked[:limit], 1):
            rows.append((hour, dimension, rank, subject, *counts, counts[at] / every if every else 0.0))
    return sorted(rows, key=lambda row: row[:3])
