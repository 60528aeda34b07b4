"""Who used how much: messages by hour, tenant, user, address and direction, to be billed from; and connections.

A router tells for each link what came since the last record (``d_``) and since the attach (``c_``). The differences are
summed. The sums prove them: where records are missing, ``c_ - d_`` of the next record of a link is more than ``c_`` of
the one before, by just what the missing ones told. That much is added in the hour of the next record, and counted as
estimated: a gap costs the place in time, not the amount. Where a link has no later record, or what it tells does not
add up, the row of its last record is not complete. So it is with links that had not ended when their router started
anew: what came after their last record nobody knows.

Tables: ``meter``, ``meter_conn`` (connections and links at a time, and how long connections were there) and
``meter_gaps`` (which records are missing, and whether the router says why). Only days that new segments may have
changed are computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it
from pyspark.sql.window import Window as Over

from trouter.pipeline.datasets import SegmentFacts, dataset, manifest_of
from trouter.pipeline.gaps import Boot, Gap, gaps_of, told_under
from trouter.pipeline.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

METER: Final = "meter"
CONNECTIONS: Final = "meter_conn"
GAPS: Final = "meter_gaps"
#: Of the job; another one recomputes the tables.
VERSION: Final = 1
KEY: Final = ("hour", "vhost", "user", "addr", "dir")
#: Columns of the table, and what records call them.
COUNTED: Final = {
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
_LINK: Final = ("router", "boot", "link")
#: After the last number of a start that is over, everything is missing.
_NO_END: Final = (1 << 63) - 1
_LOST: Final = "router string, boot bigint, lost array<bigint>, upto array<bigint>"
_HOUR_US: Final = 3_600_000_000


@dataclass(frozen=True, slots=True)
class Parameters:
    """What the job may be told.

    closed_before: days before it were billed; they stay as they are, and segments that only tell of them are named.
    again: compute every day again, whether or not anything is new.
    """

    closed_before: date | None = None
    again: bool = False


@dataclass(frozen=True, slots=True)
class Summary:
    """What was read and written, and why nothing if nothing was."""

    segments: int = 0
    days: Sequence[date] = ()
    gaps: int = 0
    #: Segments that came too late for a day that is closed.
    too_late: Sequence[str] = ()
    nothing: str | None = None


class Missing(NamedTuple):
    """Numbers that one start of a router has no records of, the last of them `_NO_END` once the start is over."""

    from_n: int
    to_n: int


# --- what went through


def meter(
    intervals: DataFrame,
    attached: DataFrame,
    detached: DataFrame,
    missing: Mapping[Boot, Sequence[Missing]],
    days: Collection[date] | None = None,
) -> DataFrame:
    """The table ``meter``, of some days only if so asked.

    The frames are data sets of the kinds ``delivery.interval``, ``link.attached`` and ``link.detached``; of starts with
    something ``missing`` they hold every day, of others at least those asked for.
    """
    told = intervals if days is None else intervals.where(F.col("date").isin(sorted(days)))
    sums = told.groupBy(*_key(F.col("t0"))).agg(
        *[F.sum(f"d_{source}").alias(name) for name, source in COUNTED.items()],
        F.count("*").alias("rows"),
        F.lit(0).cast("bigint").alias("estimated_msgs"),
        F.lit(True).alias("complete"),
    )
    if missing:
        repairs = _repairs(intervals, attached, detached, missing)
        sums = sums.unionByName(repairs)
    merged = sums.groupBy(*KEY).agg(
        *[F.sum(name).alias(name) for name in (*COUNTED, "rows", "estimated_msgs")],
        F.min("complete").alias("complete"),
    )
    found = merged.withColumn("date", F.to_date("hour"))
    return found if days is None else found.where(F.col("date").isin(sorted(days)))


def _key(moment: Column) -> list[Column]:
    return [F.date_trunc("hour", F.timestamp_micros(moment)).alias("hour"), *[F.col(name) for name in KEY[1:]]]


def _total(prefix: str) -> Column:
    """All counters of a record in one: none of them ever falls, so the sums agree only if each of them does."""
    return reduce(add, [F.col(f"{prefix}_{source}") for source in COUNTED.values()])


def _repairs(
    intervals: DataFrame, attached: DataFrame, detached: DataFrame, missing: Mapping[Boot, Sequence[Missing]]
) -> DataFrame:
    """Rows to be added for what is missing: counts that are known all the same, and rows that are not complete."""
    spark = intervals.sparkSession
    lost = F.broadcast(
        spark.createDataFrame(
            [
                (*boot, [each.from_n for each in ranges], [each.to_n for each in ranges])
                for boot, ranges in missing.items()
            ],
            _LOST,
        )
    )
    boots = lost.select("router", "boot")
    known = intervals.join(boots, ["router", "boot"], "left_semi")
    # Links whose every record is there: these need no second look, and are nearly all.
    whole = (
        known.groupBy(*_LINK)
        .agg(
            F.sum(_total("d")).alias("told"),
            F.max(_total("c")).alias("most"),
            F.min(_total("c") - _total("d")).alias("least"),
            F.max("final").alias("ended"),
        )
        .where("told = most AND least = 0 AND ended")
        .select(*_LINK)
    )
    facts = ["n", "t0", *KEY[1:]]
    ends = [
        frame.join(boots, ["router", "boot"], "left_semi").select(
            *_LINK, "n", F.col("t_us").alias("t0"), *KEY[1:], F.lit(what).alias("what")
        )
        for frame, what in ((attached, "attached"), (detached, "detached"))
    ]
    events = known.select(
        *_LINK,
        *facts,
        F.when(F.col("final"), "final").otherwise("interval").alias("what"),
        *[F.col(f"c_{source}").alias(f"c_{name}") for name, source in COUNTED.items()],
        *[(F.col(f"c_{source}") - F.col(f"d_{source}")).alias(f"b_{name}") for name, source in COUNTED.items()],
    )
    events = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), [events, *ends])
    doubtful = events.join(whole, list(_LINK), "left_anti").join(lost, ["router", "boot"])
    over = Over.partitionBy(*_LINK).orderBy("n")
    before = F.lag("n").over(over)
    steps = doubtful.select(
        *facts,
        "what",
        F.lag("what").over(over).alias("what_before"),
        F.lag("t0").over(over).alias("t0_before"),
        F.lead("n").over(over).isNull().alias("is_last"),
        # Whether records are missing between this one and the one before it of the same link, and after it.
        F.exists("lost", lambda at: (at < F.col("n")) & (at > F.coalesce(before, F.lit(-1)))).alias("gap_before"),
        F.exists("lost", lambda at: at > F.col("n")).alias("gap_after"),
        F.array_contains("upto", F.col("n") - 1).alias("gap_touches"),
        *[(F.col(f"b_{name}") - F.coalesce(F.lag(f"c_{name}").over(over), F.lit(0))).alias(name) for name in COUNTED],
    )
    counts = [F.col(name) for name in COUNTED]
    recorded = F.col("what").isin("interval", "final")
    # A link that was there before anybody recorded has counts at its first record, and nothing is missing before it.
    begins = F.col("what_before").isNull() & ~F.col("gap_before")
    moved = reduce(lambda one, other: one | other, [count != 0 for count in counts])
    fell = reduce(lambda one, other: one | other, [count < 0 for count in counts])
    odd = recorded & (fell | (moved & ~begins & ~F.col("gap_before")))
    refilled = recorded & moved & F.col("gap_before") & ~fell
    # The record of a link's end comes right behind that of its last counts, if it had any.
    last_lost = (F.col("what_before") == "interval") | (
        (F.coalesce("what_before", F.lit("attached")) == "attached") & F.col("gap_touches")
    )
    cut = F.col("is_last") & (
        (F.col("what").isin("interval", "attached") & F.col("gap_after"))
        | ((F.col("what") == "detached") & F.coalesce(last_lost, F.lit(False)))
    )
    at = F.when(F.col("what") == "detached", F.coalesce("t0_before", "t0")).otherwise(F.col("t0"))
    told = F.coalesce(refilled, F.lit(False))
    unknown = F.coalesce(odd | cut, F.lit(False))
    return steps.where(told | unknown).select(
        *_key(at),
        *[F.when(told, F.col(name)).otherwise(0).alias(name) for name in COUNTED],
        F.lit(0).cast("bigint").alias("rows"),
        F.when(told, F.col("msgs")).otherwise(0).alias("estimated_msgs"),
        (~unknown).alias("complete"),
    )


# --- connections


def connections(
    opened: DataFrame,
    closed: DataFrame,
    attached: DataFrame,
    detached: DataFrame,
    ends: DataFrame,
    days: Collection[date],
) -> DataFrame:
    """The table ``meter_conn`` of some days; the frames hold every day of the kinds of these names.

    ends: of each start of a router the time of its last record, ``until``: what nobody saw end was there till then.
    """
    begin = F.coalesce("begin_told", "begin_said")
    conns = _spans(opened, closed, ends, "conn", F.col("opened_at")).withColumn("begin", begin).where("begin > 0")
    links = _spans(attached, detached, ends, "link", F.col("attached_at")).withColumn("begin", begin).where("begin > 0")
    key = ["hour", "vhost", "user"]
    clipped_conns, clipped_links = _by_hour(conns, days), _by_hour(links, days)
    at = F.date_trunc("hour", F.timestamp_micros("t_us")).alias("hour")
    failed = closed.where("opened_at = 0").select(at, "vhost", "user").groupBy(*key).agg(F.count("*").alias("failed"))
    came = opened.select(at, "vhost", "user").groupBy(*key).agg(F.count("*").alias("opened"))
    lasted = clipped_conns.groupBy(*key).agg(F.sum(F.col("to_us") - F.col("from_us")).alias("us"))
    parts = [
        lasted,
        _peaks(clipped_conns).withColumnRenamed("peak", "peak_connections"),
        _peaks(clipped_links).withColumnRenamed("peak", "peak_links"),
        came,
        failed,
    ]
    every = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), parts)
    numbers = ("us", "peak_connections", "peak_links", "opened", "failed")
    found = every.groupBy(*key).agg(*[F.coalesce(F.max(name), F.lit(0).cast("bigint")).alias(name) for name in numbers])
    return (
        found.withColumn("connection_hours", F.col("us") / _HOUR_US)
        .select(*key, "connection_hours", *numbers[1:], F.to_date("hour").alias("date"))
        .where(F.col("date").isin(sorted(days)))
    )


def _spans(begun: DataFrame, ended: DataFrame, ends: DataFrame, what: str, said: Column) -> DataFrame:
    """From when to when each connection or link was there, in microseconds, and whose it was."""
    first = begun.select("router", "boot", what, "vhost", "user", F.col("t_us").alias("begin_told"))
    last = ended.select(
        "router", "boot", what, F.col("vhost").alias("vhost_"), F.col("user").alias("user_"),
        said.alias("begin_said"), F.col("t_us").alias("end"),
    )  # fmt: skip
    both = first.join(last, ["router", "boot", what], "full_outer").join(F.broadcast(ends), ["router", "boot"])
    return both.select(
        F.coalesce("vhost", "vhost_").alias("vhost"),
        F.coalesce("user", "user_").alias("user"),
        "begin_told",
        "begin_said",
        F.coalesce("end", "until").alias("end"),
    )


def _by_hour(spans: DataFrame, days: Collection[date]) -> DataFrame:
    """Each span cut at full hours, within the days."""
    begin_us, end_us = _first_us(min(days)), _first_us(max(days) + timedelta(days=1))
    clipped = spans.select(
        "vhost",
        "user",
        F.greatest(F.col("begin"), F.lit(begin_us)).alias("begin"),
        F.least(F.col("end"), F.lit(end_us)).alias("end"),
    ).where("end > begin")
    first, last = F.expr(f"begin div {_HOUR_US}"), F.expr(f"(end - 1) div {_HOUR_US}")
    hours = clipped.withColumn("number", F.explode(F.sequence(first, last)))
    return hours.select(
        F.timestamp_micros(F.col("number") * _HOUR_US).alias("hour"),
        "vhost",
        "user",
        F.greatest(F.col("begin"), F.col("number") * _HOUR_US).alias("from_us"),
        F.least(F.col("end"), (F.col("number") + 1) * _HOUR_US).alias("to_us"),
    )


def _first_us(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) * 1_000_000


def _peaks(cut: DataFrame) -> DataFrame:
    """How many there were at once at most; one that ends as another begins is not counted with it."""
    key = ["hour", "vhost", "user"]
    edges = cut.select(*key, F.col("from_us").alias("at"), F.lit(1).alias("change")).unionByName(
        cut.select(*key, F.col("to_us").alias("at"), F.lit(-1).alias("change"))
    )
    over = Over.partitionBy(*key).orderBy("at", "change").rowsBetween(Over.unboundedPreceding, Over.currentRow)
    return edges.withColumn("now", F.sum("change").over(over)).groupBy(*key).agg(F.max("now").alias("peak"))


# --- what people ask


def used(meter: DataFrame, connections: DataFrame) -> DataFrame:
    """What each tenant used, of rows of the two tables."""
    messages = meter.groupBy("vhost").agg(
        *[F.sum(name).alias(name) for name in COUNTED],
        F.sum("estimated_msgs").alias("estimated"),
        F.min("complete").alias("complete"),
    )
    there = connections.groupBy(F.col("vhost").alias("tenant")).agg(F.sum("connection_hours").alias("connection_hours"))
    return messages.join(there, F.col("vhost").eqNullSafe(F.col("tenant")), "left").drop("tenant")


# --- from data sets to tables


def run(
    spark: SparkSession,
    root: Path,
    parameters: Parameters | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Summary:
    """Bring the three tables up to date with the data sets; NoRecords, BadTable, TableBusy, OSError."""
    asked = parameters or Parameters()
    segments = {name: facts for name, facts in manifest_of(root).segments.items() if facts.count}
    if not segments:
        return Summary(nothing="there are no records yet: run `trouter pipeline compact` first")
    metered, connected = (_Work(Table(root, name), segments, asked) for name in (METER, CONNECTIONS))
    missed = _Work(Table(root, GAPS), segments, Parameters(again=asked.again))
    fresh = {*metered.fresh, *connected.fresh, *missed.fresh}
    too_late = sorted({*metered.too_late, *connected.too_late})
    days: set[date] = set()
    if metered.fresh:
        days |= _meter(spark, root, metered, progress)
    if connected.fresh:
        days |= _connections(spark, root, connected, progress)
    gaps = gaps_of(segments.values(), told_under(root))
    if missed.fresh:
        progress(f"naming {len(gaps)} gaps")
        missed.commit(_gap_rows(spark, gaps), {*map(_day_of, gaps), *missed.table_days()})
    nothing = None
    if not fresh:
        nothing = "all that is new is of days that are closed" if too_late else "nothing is new"
    return Summary(segments=len(fresh), days=sorted(days), gaps=len(gaps), too_late=too_late, nothing=nothing)


def _meter(spark: SparkSession, root: Path, work: _Work, progress: Callable[[str], None]) -> set[date]:
    """Compute the days of ``meter`` that may be other than they were; these days."""
    days = work.open_days(_metered_days(work, _incomplete_days(spark, work.table)))
    dates = _dates_by_boot(work.counted)
    missing = {boot: ranges for boot, ranges in missing_of(work.counted.values()).items() if dates[boot] & days}
    wanted = {day.isoformat() for day in days.union(*[dates[boot] for boot in missing])}
    progress(f"metering {len(days)} days, {len(missing)} starts of routers with something missing")
    kinds = ("delivery.interval", "link.attached", "link.detached")
    intervals, attached, detached = (dataset(spark, root, kind, wanted) for kind in kinds)
    work.commit(meter(intervals, attached, detached, missing, days).orderBy("date", "vhost"), days)
    return days


def _connections(spark: SparkSession, root: Path, work: _Work, progress: Callable[[str], None]) -> set[date]:
    """Compute the days of ``meter_conn`` that may be other than they were; these days."""
    days = work.open_days(_connected_days(work))
    until: dict[Boot, int] = {}
    for facts in work.segments.values():
        boot = facts.router, facts.boot
        until[boot] = max(until.get(boot, 0), facts.t_max)
    ends = spark.createDataFrame(
        [(*boot, last) for boot, last in until.items()], "router string, boot bigint, until bigint"
    )
    progress(f"counting connections of {len(days)} days")
    kinds = ("connection.opened", "connection.closed", "link.attached", "link.detached")
    opened, closed, attached, detached = (dataset(spark, root, kind) for kind in kinds)
    work.commit(connections(opened, closed, attached, detached, ends, days).orderBy("date", "vhost"), days)
    return days


class _Work:
    """What is to be done for one table: which segments are in it, and which are to come into it."""

    def __init__(self, table: Table, segments: Mapping[str, SegmentFacts], asked: Parameters) -> None:
        self.table = table
        self.segments = segments
        self._asked = asked
        before = table.manifest()
        inputs = {} if before is None else before.inputs
        same = before is not None and before.job_version == VERSION and not asked.again
        same = same and all(name in segments for name in inputs)
        #: Segments that the table was made of.
        self.held = {name: segments[name] for name in inputs if segments[name].crc == inputs[name]} if same else {}
        other = {name: facts for name, facts in segments.items() if name not in self.held}
        #: Segments that tell only of days that are closed, and those that the table is to be made of as well.
        self.too_late = sorted(name for name, facts in other.items() if not self.open_days(_dates(facts)))
        self.fresh = {name: facts for name, facts in other.items() if name not in self.too_late}

    @property
    def counted(self) -> dict[str, SegmentFacts]:
        return {**self.held, **self.fresh}

    def open_days(self, days: Iterable[date]) -> set[date]:
        """Those that may be computed again."""
        closed = self._asked.closed_before
        return {day for day in days if closed is None or day >= closed}

    def table_days(self) -> set[date]:
        """Days of which the table has rows."""
        manifest = self.table.manifest()
        return set() if manifest is None else {date.fromisoformat(day) for day in manifest.days}

    def commit(self, frame: DataFrame, days: Collection[date]) -> None:
        self.table.commit(
            frame,
            days,
            inputs={name: facts.crc for name, facts in self.counted.items()},
            job="meter",
            version=VERSION,
            parameters={"closed_before": None if self._asked.closed_before is None else str(self._asked.closed_before)},
        )


def _dates(facts: SegmentFacts) -> set[date]:
    return {date.fromisoformat(day) for day in facts.dates}


def _dates_by_boot(segments: Mapping[str, SegmentFacts]) -> dict[Boot, set[date]]:
    dates: dict[Boot, set[date]] = {}
    for facts in segments.values():
        dates.setdefault((facts.router, facts.boot), set()).update(_dates(facts))
    return dates


def missing_of(segments: Iterable[SegmentFacts]) -> dict[Boot, list[Missing]]:
    """What each start of a router has no records of; nothing of those that have all and may go on."""
    known = list(segments)
    missing: dict[Boot, list[Missing]] = {}
    for gap in gaps_of(known, {}):
        missing.setdefault((gap.router, gap.boot), []).append(Missing(gap.from_n, gap.to_n))
    ends: dict[Boot, int] = {}
    for facts in known:
        boot = facts.router, facts.boot
        ends[boot] = max(ends.get(boot, -1), facts.last)
    newest: dict[str, int] = {}
    for router, start in ends:
        newest[router] = max(newest.get(router, 0), start)
    for (router, start), last in ends.items():
        if start != newest[router]:
            missing.setdefault((router, start), []).append(Missing(last + 1, _NO_END))
    return missing


def _metered_days(work: _Work, incomplete: set[date]) -> set[date]:
    """Days that new segments may have changed.

    Where other records are missing than before, any day of that start: a link may have been idle for long.
    """
    days: set[date] = set()
    before, now = missing_of(work.held.values()), missing_of(work.counted.values())
    fresh, every = _dates_by_boot(work.fresh), _dates_by_boot(work.counted)
    for boot, dates in every.items():
        if before.get(boot) != now.get(boot):
            days |= dates
        elif boot in fresh:
            days |= fresh[boot]
            if boot in now:
                days |= incomplete & dates
    return days


def _incomplete_days(spark: SparkSession, table: Table) -> set[date]:
    if table.manifest() is None:
        return set()
    return {row["date"] for row in table.read(spark).where("NOT complete").select("date").distinct().collect()}


def _connected_days(work: _Work) -> set[date]:
    """Days that new segments may have changed: what was there at the last record heard of is still there."""
    days: set[date] = set()
    for boot, dates in _dates_by_boot(work.fresh).items():
        own = [facts for facts in work.counted.values() if (facts.router, facts.boot) == boot]
        held = [facts.t_max for facts in work.held.values() if (facts.router, facts.boot) == boot]
        first = min(dates, default=date.max)
        if held:
            first = min(first, _day_at(max(held)))
        last = max(facts.t_max for facts in own)
        days |= {first + timedelta(days=number) for number in range((_day_at(last) - first).days + 1)}
    return days


def _day_at(moment_us: int) -> date:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=moment_us)).date()


def _day_of(gap: Gap) -> date:
    return _day_at(gap.t_from)


def _gap_rows(spark: SparkSession, gaps: Iterable[Gap]) -> DataFrame:
    rows = [
        (
            _day_of(gap),
            gap.router,
            gap.boot,
            gap.from_n,
            gap.to_n,
            gap.t_from,
            gap.t_to,
            gap.explained,
            gap.reason or None,
        )
        for gap in gaps
    ]
    shape = (
        "date date, router string, boot bigint, from_n bigint, to_n bigint, from_us bigint, to_us bigint, "
        "explained boolean, reason string"
    )
    return spark.createDataFrame(rows, shape).select(
        "date",
        "router",
        "boot",
        "from_n",
        "to_n",
        F.timestamp_micros("from_us").alias("t_from"),
        F.timestamp_micros("to_us").alias("t_to"),
        "explained",
        "reason",
    )
