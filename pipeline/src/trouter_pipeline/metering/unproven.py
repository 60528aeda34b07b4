"""Hours of which records are missing: what happened in them cannot be proved, for any tenant.

Counts that later records prove are repaired. But a link whose records are all missing is not known, nor is its tenant,
and it may have been at any router. So in these hours no row is complete, and each tenant that is known elsewhere has
rows that say so; rows without a tenant stand for those that are known nowhere.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import date
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from trouter_pipeline.gaps import Boot, gaps_of
from trouter_pipeline.metering.counters import DATE, HOUR_US, among

if TYPE_CHECKING:
    from trouter_pipeline.datasets import SegmentFacts

_FIRST_DAY: Final = date(1970, 1, 1)
_DAY_US: Final = 24 * HOUR_US
_HOURS: Final = pa.schema({"hour_us": pa.int64()})
_LOST: Final = pa.schema({"router": pa.string(), "boot": pa.int64(), "from_us": pa.int64(), "to_us": pa.int64()})


class Lost(NamedTuple):
    """A time in microseconds, of which records of one start of a router are missing."""

    router: str
    boot: int
    from_us: int
    to_us: int

    @property
    def start(self) -> Boot:
        return self.router, self.boot


def lost_of(segments: Collection[SegmentFacts]) -> list[Lost]:
    """Return the times of all gaps, explained ones too: a reason replaces no counts.

    A gap before a start's first record begins with the start, but not before the first record of all routers.
    """
    known = [facts for facts in segments if facts.count]
    first_us = min((facts.t_min for facts in known), default=0)
    lost = []
    for gap in gaps_of(known, {}):
        begin = gap.t_from
        if gap.from_n == 0:
            begin = min(begin, max(first_us, gap.boot * 1_000_000))
        lost.append(Lost(gap.router, gap.boot, min(begin, gap.t_to), max(begin, gap.t_to)))
    return lost


def until_known(lost: Iterable[Lost], segments: Iterable[SegmentFacts]) -> list[Lost]:
    """Return the times in which connections may be unknown.

    The record of a connection's end has its begin, too. So while the router runs, a connection that began in a gap may
    go on unknown; when the router has ended, all its connections have.
    """
    newest: dict[str, int] = {}
    ends: dict[Boot, int] = {}
    for facts in segments:
        newest[facts.router] = max(newest.get(facts.router, facts.boot), facts.boot)
        boot = facts.router, facts.boot
        ends[boot] = max(ends.get(boot, 0), facts.t_max)
    return [each._replace(to_us=ends[each.start]) if newest[each.router] == each.boot else each for each in lost]


def rows_of(lost: Iterable[Lost]) -> pa.Table:
    """Return the times as rows."""
    return pa.Table.from_pylist([each._asdict() for each in lost], _LOST)


def hours_of(lost: Iterable[Lost], days: Collection[date]) -> pa.Table:
    """Return the hours that the times touch, each once, from the first to the last of ``days``."""
    touched: set[int] = set()
    if days:
        first_us, end_us = _begin_us(min(days)), _begin_us(max(days)) + _DAY_US
        for each in lost:
            begin_us = max(each.from_us // HOUR_US * HOUR_US, first_us)
            touched.update(range(begin_us, min(each.to_us + 1, end_us), HOUR_US))
    return pa.Table.from_pydict({"hour_us": sorted(touched)}, _HOURS)


def _begin_us(day: date) -> int:
    return (day - _FIRST_DAY).days * _DAY_US


def unknown(tenants: str, days: Collection[date]) -> str:
    """Return SQL for each hour ``hour_us`` of ``unproven`` with each ``vhost`` of ``tenants``, and with none."""
    return f"""
        SELECT hour_us, vhost
        FROM (SELECT hour_us, {DATE} FROM unproven) AS hours
        CROSS JOIN (SELECT vhost FROM ({tenants}) AS named UNION SELECT CAST(NULL AS string)) AS tenants
        WHERE date IN {among(days)}"""
