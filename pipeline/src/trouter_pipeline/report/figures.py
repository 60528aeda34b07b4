"""Numbers out of tables for plots: added up by Arrow, and few enough to be drawn."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

import pyarrow.compute as pc

from trouter.records.sketch import merged, middle_of
from trouter_pipeline.report.drawing import MAX_LINES

#: More hours than this are shown as days.
MAX_HOURS: Final = 24 * 45
REST: Final = "all others"


class Line(NamedTuple):
    """One line of a plot over the times of its `Lines`."""

    name: str
    values: list[float]


class Lines(NamedTuple):
    """Lines over the same times; a point stands for one ``unit``, hour or day."""

    times: list[datetime]
    lines: list[Line]
    unit: str


def steps(table: Any, column: str) -> tuple[Any, str]:
    """Return the table with ``column`` rounded down to the hour, or to the day for a long time; and which of them."""
    times = table[column]
    if table.num_rows == 0:
        return table, "hour"
    ends = pc.min_max(times).as_py()
    unit = "hour" if (ends["max"] - ends["min"]).total_seconds() <= MAX_HOURS * 3600 else "day"
    at = table.schema.get_field_index(column)
    return table.set_column(at, column, pc.floor_temporal(times, unit=unit)), unit


def added(table: Any, keys: Sequence[str], values: Sequence[str], how: str = "sum") -> list[dict[str, Any]]:
    """Return rows with the keys and, under their own names, the sums of the values (or maxima, how=max)."""
    rows = table.group_by(list(keys)).aggregate([(value, how) for value in values]).to_pylist()
    return [
        {**{key: row[key] for key in keys}, **{value: row[f"{value}_{how}"] or 0 for value in values}} for row in rows
    ]


def lines_of(rows: Iterable[Mapping[str, Any]], time: str, name: str, value: str, unit: str, *, rest: bool) -> Lines:
    """Return a line for each of the largest names; with ``rest``, the others are added up into one more."""
    found: dict[str | None, dict[datetime, float]] = {}
    for row in rows:
        line = found.setdefault(row[name], {})
        line[row[time]] = line.get(row[time], 0) + row[value]
    times = sorted({each for line in found.values() for each in line})
    ordered = sorted(found, key=lambda key: (-sum(found[key].values()), key or ""))
    lines = [
        Line("" if key is None else key, [found[key].get(each, 0) for each in times]) for key in ordered[:MAX_LINES]
    ]
    if rest and ordered[MAX_LINES:]:
        others = [found[key] for key in ordered[MAX_LINES:]]
        lines.append(Line(REST, [sum(line.get(each, 0) for line in others) for each in times]))
    return Lines(times, lines, unit)


class Latency(NamedTuple):
    """The latency of one address, or of a class of addresses, in microseconds."""

    vhost: str | None
    addr: str | None
    deliveries: int
    p50: float
    p95: float
    p99: float
    largest: int


def latencies(table: Any) -> list[Latency]:
    """Return each address's percentiles over all hours, merged exactly from its buckets; the busiest first."""
    buckets: dict[tuple[str | None, str | None], list[tuple[int, int]]] = {}
    counts: dict[tuple[str | None, str | None], tuple[int, int]] = {}
    for row in table.to_pylist():
        key = (row["vhost"], row["addr"] if row["family"] is None else f"all of class {row['family']}")
        buckets[key] = list(zip(*merged([*buckets.get(key, []), *zip(row["bi"], row["bc"], strict=True)]), strict=True))
        count, largest = counts.get(key, (0, 0))
        counts[key] = count + row["cnt"], max(largest, row["max_us"] or 0)
    found = [
        Latency(*key, count, percentile(found, 0.5), percentile(found, 0.95), percentile(found, 0.99), largest)
        for key, (count, largest) in counts.items()
        if (found := buckets[key])
    ]
    return sorted(found, key=lambda each: (-each.deliveries, each.addr or ""))


def percentile(buckets: Sequence[tuple[int, int]], q: float) -> float:
    """Return the middle of the bucket with the q-th of all values; ``buckets`` are pairs (bucket, count), sorted."""
    wanted = math.ceil(q * sum(count for _, count in buckets))
    so_far = 0
    for bucket, count in buckets:
        so_far += count
        if so_far >= wanted:
            return middle_of(bucket)
    return middle_of(buckets[-1][0])


def short(number: float) -> str:
    """Return a short number: 950, 12.3k, 4.56M."""
    for factor, sign in ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k")):
        if abs(number) >= factor:
            return f"{number / factor:.3g}{sign}"
    return f"{number:.3g}" if number % 1 else f"{int(number)}"


def counted(number: int, what: str) -> str:
    """Return a number with its noun: 1 gap, 2 gaps."""
    return f"{short(number)} {what}{'' if number == 1 else 's'}"


def duration(microseconds: float) -> str:
    """Return a duration with a unit."""
    for factor, sign in ((3_600_000_000, "h"), (60_000_000, "min"), (1_000_000, "s"), (1_000, "ms")):
        if microseconds >= factor:
            return f"{microseconds / factor:.3g} {sign}"
    return f"{microseconds:.3g} us"


def moment(when: datetime | None) -> str:
    """Return a time in UTC, to the second; "" for None."""
    return "" if when is None else when.strftime("%Y-%m-%d %H:%M:%S")
