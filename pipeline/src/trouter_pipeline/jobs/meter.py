"""The meter: messages by hour, tenant, user, address and direction, for billing; and connections.

A router records for each link the counts since the last record (``d_``) and since the attach (``c_``). The differences
are summed, and the sums prove them: if records are missing, ``c_ - d_`` of a link's next record exceeds ``c_`` of the
one before by the missing counts. These are added in the hour of the next record, and counted as estimated: a gap costs
the place in time, not the amount. If a link has no later record, or the counts are inconsistent, the row of its last
record is not complete. The same holds for links that had not ended when their router restarted: their traffic after the
last record is unknown. A link that began and ended within a gap is not known at all: so no row of the gap's hours is
complete, and tenants without a row there get one (see `unproven`).

Tables: ``meter``, ``meter_conn`` (concurrent connections and links, and durations of connections) and ``meter_gaps``
(missing records, and the router's reasons). Only days that new segments may have changed are computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from trouter_pipeline.datasets import NO_RECORDS, Records, SegmentFacts
from trouter_pipeline.gaps import Boot, Gap, gaps_of, reports_in
from trouter_pipeline.metering.counters import COUNTED, total
from trouter_pipeline.metering.engines import Engine, InProcess
from trouter_pipeline.metering.presence import connections
from trouter_pipeline.metering.repairs import missing_of
from trouter_pipeline.metering.traffic import meter
from trouter_pipeline.metering.unproven import Lost, lost_of, until_known
from trouter_pipeline.places import Where
from trouter_pipeline.pruned import frozen_by, pruned_days
from trouter_pipeline.tables import Table

METER: Final = "meter"
CONNECTIONS: Final = "meter_conn"
GAPS: Final = "meter_gaps"
#: The kinds of records for the tables, by their names in statements.
INTERVALS: Final = {
    "intervals": "delivery.interval",
    "attached": "link.attached",
    "detached": "link.detached",
    "opened": "connection.opened",
}
SPANS: Final = {
    "opened": "connection.opened",
    "closed": "connection.closed",
    "attached": "link.attached",
    "detached": "link.detached",
}
_TIME: Final = pa.timestamp("us", "UTC")
_GAPS: Final = pa.schema(
    {
        "date": pa.date32(),
        "router": pa.string(),
        "boot": pa.int64(),
        "from_n": pa.int64(),
        "to_n": pa.int64(),
        "t_from": _TIME,
        "t_to": _TIME,
        "explained": pa.bool_(),
        "reason": pa.string(),
    }
)
#: Version of the job; another one recomputes the tables.
VERSION: Final = 2
_SHOWN_AT_ONCE: Final = 10_000
#: SQL for the rows of tenants that may be known nowhere else, in the hours of gaps: with one, no sum is proved.
_UNKNOWN: Final = "NOT complete AND rows = 0 AND coalesce(vhost, user, addr) IS NULL"


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of the job.

    closed_before: earlier days were billed and stay as they are; segments that have only such days are reported.
    again: compute every day again, even without new records.
    """

    closed_before: date | None = None
    again: bool = False


@dataclass(frozen=True, slots=True)
class Summary:
    """What was read and written, or why nothing was done."""

    segments: int = 0
    days: Sequence[date] = ()
    gaps: int = 0
    #: Segments that came too late for a closed day.
    too_late: Sequence[str] = ()
    nothing: str | None = None


def used(meter: pa.Table, connections: pa.Table) -> pa.Table:
    """Return each tenant's usage by rows of the two tables."""
    engine = InProcess()
    engine.rows("meter", meter)
    engine.rows("meter_conn", connections)
    return engine.query(f"""
        SELECT messages.*, connection_hours
        FROM (
            SELECT vhost, {total(COUNTED)}, CAST(sum(estimated_msgs) AS bigint) AS estimated,
                bool_and(complete) AND NOT EXISTS (SELECT 1 FROM meter WHERE {_UNKNOWN}) AS complete
            FROM meter GROUP BY vhost
        ) AS messages
        LEFT JOIN (
            SELECT vhost AS tenant, sum(connection_hours) AS connection_hours FROM meter_conn GROUP BY vhost
        ) AS present ON vhost IS NOT DISTINCT FROM tenant""")


def ordered(rows: pa.Table, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows sorted by these columns, with times in UTC without a zone."""
    engine = InProcess()
    engine.rows("unordered", rows)
    found = engine.query(f"SELECT * FROM unordered ORDER BY {', '.join(f'{name} NULLS FIRST' for name in names)}")
    plain = pa.timestamp("us")
    types = [(each.name, plain if pa.types.is_timestamp(each.type) else each.type) for each in found.schema]
    for batch in found.cast(pa.schema(types)).to_batches(_SHOWN_AT_ONCE):  # Python's rows take ten times the memory
        yield from batch.to_pylist()


def run(
    engine: Engine,
    root: Where,
    parameters: Parameters | None = None,
    progress: Callable[[str], None] = lambda _: None,
    at: int | datetime | None = None,
) -> Summary:
    """Bring the three tables up to date with the records, or with those of ``at``.

    NoRecords, BadTable, TableBusy, OSError.
    """
    given = parameters or Parameters()
    records = Records(root, at)
    records.require_own_rows()
    segments = {name: facts for name, facts in records.segments.items() if facts.count}
    if not segments:
        return Summary(nothing=NO_RECORDS)
    metered, connected = (
        _Work(Table(root, name), segments, given, records.pinned(), frozen_by(records, name))
        for name in (METER, CONNECTIONS)
    )
    missed = _Work(Table(root, GAPS), segments, Parameters(again=given.again), records.pinned())
    fresh = {*metered.fresh, *connected.fresh, *missed.fresh}
    too_late = sorted({*metered.too_late, *connected.too_late})
    days: set[date] = set()
    with engine.sized(sum(facts.count for facts in segments.values())):
        if metered.fresh:
            days |= _meter(engine, records, metered, progress)
        if connected.fresh:
            days |= _connections(engine, records, connected, progress)
    gaps = gaps_of(segments.values(), reports_in(records))
    if missed.fresh:
        progress(f"naming {len(gaps)} gaps")
        with engine.stage(GAPS):
            missed.commit(_gap_rows(gaps), {*map(_day_of, gaps), *missed.table.dates()})
    nothing = None
    if not fresh:
        nothing = "all that is new is of days that are closed" if too_late else "nothing is new"
    return Summary(segments=len(fresh), days=sorted(days), gaps=len(gaps), too_late=too_late, nothing=nothing)


def _meter(engine: Engine, records: Records, work: _Work, progress: Callable[[str], None]) -> set[date]:
    """Compute and return the days of ``meter`` that may have changed."""
    days = work.open_days(_metered_days(work, _incomplete_days(work.table)))
    lost = lost_of(work.counted.values())
    dates = _days_by_boot(work.counted, lost)
    missing = {boot: ranges for boot, ranges in missing_of(work.counted.values()).items() if dates[boot] & days}
    wanted = {day.isoformat() for day in days.union(*[dates[boot] for boot in missing])}
    lost = [each for each in lost if dates[each.start] & days]
    progress(f"metering {len(days)} days, {len(missing)} starts of routers with something missing")
    for name, kind in INTERVALS.items():
        engine.records(name, records, kind, wanted)
    with engine.stage(METER):
        work.commit(meter(engine, missing, lost, days), days)
        work.count(engine, days)
    return days


def _connections(engine: Engine, records: Records, work: _Work, progress: Callable[[str], None]) -> set[date]:
    """Compute and return the days of ``meter_conn`` that may have changed."""
    days = work.open_days(_connected_days(work))
    ends = {boot: max(facts.t_max for facts in own) for boot, own in _by_boot(work.segments.values()).items()}
    lost = until_known(lost_of(work.counted.values()), work.counted.values())
    progress(f"counting connections of {len(days)} days")
    for name, kind in SPANS.items():
        engine.records(name, records, kind)
    with engine.stage(CONNECTIONS):
        work.commit(connections(engine, ends, lost, days), days)
        work.count(engine, days)
    return days


class _Work:
    """The work for one table: the segments that it includes, and the new ones."""

    def __init__(
        self,
        table: Table,
        segments: Mapping[str, SegmentFacts],
        given: Parameters,
        read: Mapping[str, int],
        frozen: Collection[date] = (),
    ) -> None:
        """``read``: the records' version.

        ``frozen``: days whose records were pruned; days of which rows of the table were pruned are added.
        """
        self.table = table
        self._read = read
        self.segments = segments
        self._given = given
        self._frozen = {*frozen, *pruned_days(table)}
        if not given.again:
            table.require_own_rows()
        before = table.last_commit()
        inputs = {} if before is None else before.inputs
        same = before is not None and before.job_version == VERSION and not given.again
        same = same and all(name in segments for name in inputs)
        held = {name: segments[name] for name, crc in inputs.items() if name in segments and segments[name].crc == crc}
        #: Segments that the table includes; if it is made anew, only those of days that stay.
        self.held = {name: facts for name, facts in held.items() if same or not self.open_days(facts.days())}
        #: Days of a table that is made anew; some may have no segment any more.
        self.stale = set() if same else table.dates()
        other = {name: facts for name, facts in segments.items() if name not in self.held}
        #: Segments that have only closed days, and those that the table is to include.
        self.too_late = sorted(name for name, facts in other.items() if not self.open_days(facts.days()))
        self.fresh = {name: facts for name, facts in other.items() if name not in self.too_late}

    @cached_property
    def counted(self) -> dict[str, SegmentFacts]:
        return {**self.held, **self.fresh}

    def changes(self) -> dict[str, int | None]:
        """Return what distinguishes the segments from the inputs of the table (see `Table.changes_to`)."""
        gone: dict[str, int | None] = dict.fromkeys(self.table.inputs().keys() - self.counted.keys())
        return gone | {name: facts.crc for name, facts in self.fresh.items()}

    def open_days(self, days: Iterable[date]) -> set[date]:
        """Return the days that may be computed again."""
        closed = self._given.closed_before
        return {day for day in days if (closed is None or day >= closed) and day not in self._frozen}

    def count(self, engine: Engine, days: Collection[date]) -> None:
        """Tell the engine how many rows were committed, if it explains its costs."""
        if engine.costs is not None:
            engine.costs.made(sum(file.rows for file in self.table.files(days)))

    def commit(self, frame: Any, days: Collection[date]) -> None:
        self.table.commit(
            frame,
            days,
            inputs={name: facts.crc for name, facts in self.counted.items()},
            changes=self.changes(),
            job="meter",
            version=VERSION,
            read=self._read,
            parameters={"closed_before": None if self._given.closed_before is None else str(self._given.closed_before)},
        )


def _by_boot(segments: Iterable[SegmentFacts]) -> dict[Boot, list[SegmentFacts]]:
    boots: dict[Boot, list[SegmentFacts]] = {}
    for facts in segments:
        boots.setdefault((facts.router, facts.boot), []).append(facts)
    return boots


def _days_by_boot(segments: Mapping[str, SegmentFacts], lost: Iterable[Lost] = ()) -> dict[Boot, set[date]]:
    """Return the days of each start: those of its records, and those of its gaps of which any router has records."""
    boots = _by_boot(segments.values())
    dates = {boot: set().union(*[facts.days() for facts in own]) for boot, own in boots.items()}
    every = set().union(*dates.values())
    for each in lost:
        first, last = _day_at(each.from_us), _day_at(each.to_us)
        dates[each.start] |= {day for day in every if first <= day <= last}
    return dates


def _metered_days(work: _Work, incomplete: set[date]) -> set[date]:
    """Return the days that new segments may have changed.

    If the missing records of a start have changed, these are all its days: a link may have been idle for long.
    So it is if some were left out.
    """
    days = set(work.stale)
    before, now = missing_of(work.held.values()), missing_of(work.counted.values())
    lost = [*lost_of(work.held.values()), *lost_of(work.counted.values())]
    fresh, every = _days_by_boot(work.fresh), _days_by_boot(work.counted, lost)
    left_out = {(facts.router, facts.boot) for facts in work.fresh.values() if facts.left_out}
    for boot, dates in every.items():
        if before.get(boot) != now.get(boot) or boot in left_out:
            days |= dates
        elif boot in fresh:
            days |= fresh[boot]
            if boot in now:
                days |= incomplete & dates
    return days


def _incomplete_days(table: Table) -> set[date]:
    if table.last_commit() is None:
        return set()
    rows = table.rows()
    return set(rows.filter(pc.invert(rows["complete"]))["date"].unique().to_pylist())


def _connected_days(work: _Work) -> set[date]:
    """Return the days that new segments may have changed, from a start's last known record on, or its first gap."""
    days = set(work.stale)
    held, every = _by_boot(work.held.values()), _by_boot(work.counted.values())
    fresh_days = _days_by_boot(work.fresh)
    gaps: dict[Boot, date] = {}
    for each in (*lost_of(work.held.values()), *lost_of(work.counted.values())):
        gaps[each.start] = min(gaps.get(each.start, date.max), _day_at(each.from_us))
    renewed = {router for router, _ in fresh_days}
    for boot in {*fresh_days, *(boot for boot in gaps if boot[0] in renewed and boot in every)}:
        first = min(*fresh_days.get(boot, ()), gaps.get(boot, date.max), date.max)
        if boot in held:
            first = min(first, _day_at(max(facts.t_max for facts in held[boot])))
        last = _day_at(max(facts.t_max for facts in every[boot]))
        days |= {first + timedelta(days=number) for number in range((last - first).days + 1)}
    return days


def _day_at(moment_us: int) -> date:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=moment_us)).date()


def _day_of(gap: Gap) -> date:
    return _day_at(gap.t_from)


def _gap_rows(gaps: Iterable[Gap]) -> pa.Table:
    rows = [
        {**gap._asdict(), "date": _day_of(gap), "explained": gap.explained, "reason": gap.reason or None}
        for gap in gaps
    ]
    return pa.Table.from_pylist(rows, _GAPS)
