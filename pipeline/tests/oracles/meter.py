"""The expected rows of the meter, computed in plain Python from the records: slow, and easy to check."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from trouter.records import (
    ConnectionClosedRecord,
    ConnectionOpenedRecord,
    DeliveryInterval,
    LinkAttachedRecord,
    LinkDetachedRecord,
    Record,
)

HOUR = 3_600_000_000
COUNTED = {
    "msgs": "msgs",
    "bytes": "bytes",
    "accepted": "accepted",
    "rejected": "rejected",
    "released": "released",
    "modified": "modified",
    "presettled": "presettled",
    "dropped": "dropped_presettled",
    "undeliverable": "undeliverable",
}
Key = tuple[int, str | None, str | None, str | None, str | None]
#: By router and start: each record under its number.
Streams = Mapping[tuple[str, int], Mapping[int, Record]]


@dataclass
class Row:
    counts: Counter[str] = field(default_factory=Counter)
    complete: bool = True


def meter(streams: Streams) -> dict[Key, Row]:
    """Return the rows by hour (in microseconds), tenant, user, address and direction."""
    rows: dict[Key, Row] = defaultdict(Row)
    for (router, boot), stream in streams.items():
        over = any(other == router and later > boot for other, later in streams)
        numbers = sorted(stream)
        links: dict[int, list[tuple[int, Any]]] = defaultdict(list)
        for n in numbers:
            record = stream[n]
            if isinstance(record, DeliveryInterval | LinkAttachedRecord | LinkDetachedRecord):
                links[record.link].append((n, record))
        for life in links.values():
            _live(rows, life, numbers, over)
    _doubt(rows, streams)
    return rows


def unproven(streams: Streams) -> set[int]:
    """Return the hours in microseconds of which records are missing, or may have begun in the interval before them."""
    hours: set[int] = set()
    earliest = min(record.t for stream in streams.values() for record in stream.values())
    for (_, boot), stream in streams.items():
        intervals = [record for record in stream.values() if isinstance(record, DeliveryInterval)]
        longest = max((record.t1 - record.t0 for record in intervals), default=0)
        times = [(-1, max(earliest, boot * 1_000_000)), *((n, stream[n].t) for n in sorted(stream))]
        for (n, begin), (after, end) in pairwise(times):
            if after > n + 1:
                hours |= set(range((begin - longest) // HOUR * HOUR, end + 1, HOUR))
    return hours


def _doubt(rows: dict[Key, Row], streams: Streams) -> None:
    """Mark the rows of unproven hours, and add one of each tenant, and of none, in both directions."""
    tenants: set[str | None] = {None}
    for stream in streams.values():
        for record in stream.values():
            if isinstance(record, DeliveryInterval | LinkAttachedRecord | ConnectionOpenedRecord):
                tenants.add(record.vhost)
    for hour in unproven(streams):
        for key in [key for key in rows if key[0] == hour]:
            rows[key].complete = False
        for tenant in tenants:
            for way in ("in", "out"):
                rows[hour, tenant, None, None, way].complete = False


def _live(rows: dict[Key, Row], life: list[tuple[int, Any]], numbers: list[int], over: bool) -> None:
    """Add up one link."""
    before: dict[str, int] = dict.fromkeys(COUNTED, 0)
    at, last = -1, None
    for n, record in life:
        lost = bisect_left(numbers, n) - bisect_left(numbers, at + 1) < n - at - 1
        if isinstance(record, DeliveryInterval):
            row = rows[key_of(record)]
            row.counts["rows"] += 1
            own_counts = {name: getattr(record, f"d_{source}") for name, source in COUNTED.items()}
            row.counts.update(own_counts)
            now = {name: getattr(record, f"c_{source}") for name, source in COUNTED.items()}
            hole = {name: now[name] - own_counts[name] - before[name] for name in COUNTED}
            if any(hole.values()) and (lost or last is not None):
                if lost and min(hole.values()) >= 0:
                    row.counts.update(hole)
                    row.counts["estimated_msgs"] += hole["msgs"]
                else:
                    row.complete = False
            before = now
        elif isinstance(record, LinkDetachedRecord):
            unended = isinstance(last, DeliveryInterval) and not last.final
            unreported = not isinstance(last, DeliveryInterval) and n - 1 not in set(
                numbers[max(0, bisect_left(numbers, n) - 1) :]
            )
            if unended or (unreported and n > 0):
                rows[key_of(last or record)].complete = False
            return
        at, last = n, record
    ended = isinstance(last, DeliveryInterval) and last.final
    lost_after = over or numbers[-1] - at > len(numbers) - 1 - bisect_left(numbers, at)
    if not ended and lost_after:
        rows[key_of(last)].complete = False


def key_of(record: Any) -> Key:
    moment = record.t0 if isinstance(record, DeliveryInterval) else record.t
    return (moment // HOUR * HOUR, record.vhost, record.user, record.addr, record.dir)


ConnKey = tuple[int, str | None, str | None]


def connections(streams: Streams) -> dict[ConnKey, dict[str, int]]:
    """Return, by hour, tenant and user: microseconds of connections, maximum connections and links, opened, failed."""
    rows: dict[ConnKey, dict[str, int]] = defaultdict(
        lambda: dict.fromkeys(("us", "peak_connections", "peak_links", "opened", "failed"), 0)
    )
    spans: dict[str, list[tuple[int, int, str | None, str | None]]] = {"conn": [], "link": []}
    for stream in streams.values():
        until = max(record.t for record in stream.values())
        for what, begins, ends in (
            ("conn", ConnectionOpenedRecord, ConnectionClosedRecord),
            ("link", LinkAttachedRecord, LinkDetachedRecord),
        ):
            begun = {getattr(r, what): r for r in stream.values() if isinstance(r, begins)}
            ended = {getattr(r, what): r for r in stream.values() if isinstance(r, ends)}
            for number in begun.keys() | ended.keys():
                first, last = begun.get(number), ended.get(number)
                who: Any = first or last
                begun_at = getattr(last, "opened_at", 0) or getattr(last, "attached_at", 0)
                begin = first.t if first is not None else begun_at
                if begin:
                    spans[what].append((begin, until if last is None else last.t, who.vhost, who.user))
        for record in stream.values():
            if isinstance(record, ConnectionOpenedRecord):
                rows[record.t // HOUR * HOUR, record.vhost, record.user]["opened"] += 1
            elif isinstance(record, ConnectionClosedRecord) and not record.opened_at:
                rows[record.t // HOUR * HOUR, record.vhost, record.user]["failed"] += 1
    for what, peak in (("conn", "peak_connections"), ("link", "peak_links")):
        for begin, end, vhost, user in spans[what]:
            for hour in range(begin // HOUR * HOUR, end, HOUR):
                if end > begin:
                    row = rows[hour, vhost, user]
                    if what == "conn":
                        row["us"] += min(end, hour + HOUR) - max(begin, hour)
                    row[peak] = max(row[peak], _peak(spans[what], hour, vhost, user))
    return rows


def _peak(
    spans: Iterable[tuple[int, int, str | None, str | None]], hour: int, vhost: str | None, user: str | None
) -> int:
    own = [
        (max(begin, hour), min(end, hour + HOUR))
        for begin, end, v, u in spans
        if (v, u) == (vhost, user) and max(begin, hour) < min(end, hour + HOUR)
    ]
    return max((sum(begin <= at < end for begin, end in own) for at, _ in own), default=0)
