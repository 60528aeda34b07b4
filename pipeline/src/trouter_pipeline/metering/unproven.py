"""Hours of which records are missing: what happened in them cannot be proved, for any tenant.

Counts that later records prove are repaired. But a link whose records are all missing is not known, nor is its tenant,
and it may have been at any router. So in these hours no row is complete, and each tenant that is known elsewhere has
rows that say so; rows without a tenant stand for those that are known nowhere.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import date
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from trouter_pipeline.gaps import Boot, gaps_of
from trouter_pipeline.metering.counters import DATE, HOUR_US, among, hour_of

if TYPE_CHECKING:
    from trouter_pipeline.datasets import SegmentFacts

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


def hours(times: str) -> str:
    """Return SQL for the hours ``hour_us`` that ``times``, with ``from_us`` and ``to_us``, touch."""
    return f"""
        SELECT DISTINCT hour_us FROM (
            SELECT explode(sequence({hour_of("from_us")}, {hour_of("to_us")}, {HOUR_US})) AS hour_us
            FROM ({times}) AS times
        ) AS touched"""


def fillers(columns: Mapping[str, str], tenants: str, days: Collection[date]) -> str:
    """Return SQL for rows of ``columns`` in each hour of ``unproven``: for each ``vhost`` of ``tenants``, and for none.

    The columns are SQL by name, beside ``hour_us`` and ``vhost``.
    """
    chosen = ", ".join(f"{value} AS {name}" for name, value in columns.items())
    return f"""
        SELECT hour_us, vhost, {chosen}
        FROM (SELECT hour_us, {DATE} FROM unproven) AS hours
        CROSS JOIN (SELECT vhost FROM ({tenants}) AS named UNION SELECT CAST(NULL AS string)) AS tenants
        WHERE date IN {among(days)}"""
