"""The audit: brute force, spraying, slow guessing, a success after many failures, bursts of denials; unused rules.

``attacks.py`` finds alerts in logins (``sasl.outcome``) and denials (``policy.decision``): in the records, from which
`run` computes the tables anew, or in a stream, whose alerts `follow` adds as they come. Both give the same alerts for
the same records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import date, datetime
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F  # noqa: N812  # its customary name
from pyspark.sql.window import Window as Over

from trouter_pipeline import following
from trouter_pipeline.alerts import messages as alerts_of
from trouter_pipeline.alerts import without_known
from trouter_pipeline.attacks import STATES, Alert, Judge, Limits, Rules, Subject, judge_of
from trouter_pipeline.datasets import NO_RECORDS, Records, dataset, records_folder, schema_of
from trouter_pipeline.delta import BadTable
from trouter_pipeline.detector import Row
from trouter_pipeline.files import make_folder
from trouter_pipeline.jobs.segments import material_of
from trouter_pipeline.places import Where
from trouter_pipeline.pruned import frozen_by
from trouter_pipeline.stateful import detect
from trouter_pipeline.streams import Pace, add_to, without_streams
from trouter_pipeline.tables import Table
from trouter_pipeline.windows import Seen

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

ALERTS: Final = "audit_alerts"
RULES: Final = "audit_rules"
#: Version of the job; another one recomputes the tables.
VERSION: Final = 1
#: Reasons of failed logins that may be guesses; a failed service or an expired certificate is none.
GUESSES: Final = ("bad-credentials", "locked", "throttled")
_ORDER: Final = ("t_us", "router", "boot", "n")
#: The columns that are used of the two kinds.
_FIELDS: Final = (
    ("user", "string"),
    ("host", "string"),
    ("vhost", "string"),
    ("ok", "boolean"),
    ("reason", "string"),
    ("allow", "boolean"),
    ("addr", "string"),
    ("repeat", "bigint"),
)
#: The kinds that are searched for alerts.
KINDS: Final = ("sasl.outcome", "policy.decision")
#: The columns that are equal in two alerts of one attack.
_SAME: Final = ("rule", "user", "host", "vhost")


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of the job; ``pace`` matters to streams only, ``again`` to the whole tables."""

    limits: Limits = field(default_factory=Limits)
    pace: Pace = field(default_factory=Pace)
    again: bool = False


@dataclass(frozen=True, slots=True)
class Summary:
    """What was read and written, or why nothing was done."""

    alerts: Mapping[str, int]
    unused_rules: int = 0
    segments: int = 0
    nothing: str | None = None


@dataclass(frozen=True)
class Attacks:
    """The detector: rows of `sightings` in, alerts out."""

    limits: Limits = field(default_factory=Limits)
    keys: tuple[str, ...] = ("scope", "host", "user", "vhost")
    columns: tuple[str, ...] = (*_ORDER, "ok", "member", "weight")
    order: tuple[str, ...] = _ORDER
    output: tuple[tuple[str, str], ...] = (
        ("alert_id", "string"),
        ("rule", "string"),
        ("user", "string"),
        ("host", "string"),
        ("vhost", "string"),
        ("first_us", "bigint"),
        ("last_us", "bigint"),
        ("failures", "bigint"),
        ("distinct", "bigint"),
        ("evidence", "array<string>"),
        ("ended", "boolean"),
    )

    def sighting(self, values: Row) -> Seen:
        return Seen(*values)

    def types(self, key: Row) -> tuple[type[Any], type[Any]]:
        return Seen, STATES[key[0]]

    def judge(self, key: Row, state: Any) -> Judge:
        return judge_of(Rules(self.limits), Subject(*key), state)

    def to_row(self, _: Row, notice: Alert) -> Row:
        return tuple(getattr(notice, name) for name, _ in self.output)


# --- pure functions of frames


def sightings(of: DataFrame) -> DataFrame:
    """Return sightings of records: of each login for its host, of a failure also for its user, and of each denial.

    ``of`` has ``k``, ``t``, ``router``, ``boot``, ``n``, ``t_us`` and the columns in `_FIELDS`.
    """
    none = F.lit(None).cast("string")
    login, ok = F.col("k") == "sasl.outcome", F.coalesce("ok", F.lit(False))
    guess = F.col("reason").isin(*GUESSES)

    def seen_as(
        scope: str, *, host: Column = none, user: Column = none, vhost: Column = none, member: Column
    ) -> Column:
        names = {
            "scope": F.lit(scope),
            "host": host,
            "user": user,
            "vhost": vhost,
            "member": F.coalesce(member, F.lit("")),
        }
        return F.struct(*(column.alias(name) for name, column in names.items()))

    host, user, vhost = F.col("host"), F.col("user"), F.col("vhost")
    ways = F.array(
        F.when(login & (ok | guess), seen_as("host", host=host, member=user)),
        F.when(login & ~ok & guess & user.isNotNull(), seen_as("user", user=user, member=host)),
        F.when(
            (F.col("k") == "policy.decision") & ~F.col("allow"),
            seen_as("denied", host=host, user=user, vhost=vhost, member=F.col("addr")),
        ),
    )
    about = F.explode(F.filter(ways, lambda each: each.isNotNull())).alias("about")
    weight = F.coalesce("repeat", F.lit(1)).cast("bigint").alias("weight")
    shown = of.where(host.isNotNull()).select("t", *_ORDER, ok.alias("ok"), weight, about)
    return shown.select("t", *_ORDER, "ok", "weight", "about.*")


def of_data_sets(logins: DataFrame, decisions: DataFrame) -> DataFrame:
    """Return rows of the records as input of `sightings`."""
    both = []
    for k, frame in (("sasl.outcome", logins), ("policy.decision", decisions)):
        read = [F.col(name) if name in frame.columns else F.lit(None).cast(kind).alias(name) for name, kind in _FIELDS]
        both.append(frame.select(F.lit(k).alias("k"), "t", *_ORDER, *read))
    return both[0].unionByName(both[1])


def of_lines(lines: DataFrame) -> DataFrame:
    """Return records as they were written (``following.py``) as input of `sightings`."""
    fields = F.from_json("line", ", ".join(f"`{name}` {shape}" for name, shape in _FIELDS)).alias("said")
    return lines.select("k", F.timestamp_micros("t_us").alias("t"), *_ORDER, fields).select("k", "t", *_ORDER, "said.*")


def alerts(seen: DataFrame, limits: Limits, as_of: int | None = None) -> DataFrame:
    """Return the rows of ``audit_alerts`` for ``seen``; a stream gives each alert when noticed, and again when over."""
    found = detect(seen, Attacks(limits), as_of)
    shaped = found.select(
        "alert_id",
        "rule",
        "user",
        "host",
        "vhost",
        F.timestamp_micros("first_us").alias("first_at"),
        F.timestamp_micros("last_us").alias("last_at"),
        "failures",
        "distinct",
        F.transform("evidence", lambda each: F.substring_index(each, "~", -1).cast("bigint")).alias("evidence_n"),
        "evidence",
        "ended",
    ).withColumn("date", F.to_date("first_at"))
    return shaped if seen.isStreaming else latest(shaped)


def latest(rows: DataFrame) -> DataFrame:
    """Return the most advanced row of each alert."""
    columns = [F.col(name) for name in rows.columns]
    last = F.max_by(F.struct(*columns), F.struct("ended", "failures", "last_at"))
    return rows.groupBy("alert_id").agg(last.alias("alert")).select("alert.*")


def messages(rows: DataFrame) -> DataFrame:
    """Return a message for each alert; its id says whether the attack was over."""
    state = F.concat("alert_id", F.when(F.col("ended"), F.lit("-ended")).otherwise(F.lit("")))
    return alerts_of(rows, F.col("alert_id"), state, F.col("rule"), F.col("last_at"))


def rules_used(decisions: DataFrame, loaded: DataFrame, until: date) -> DataFrame:
    """Return the rows of ``audit_rules``: how often each rule decided on each day, 0 for unused rules in force.

    ``until`` is the last day on which the last loaded rules are in force.
    """
    once = ["router", "boot", "n"]
    allow = F.when(F.col("allow"), F.col("repeat")).otherwise(0)
    decided = (
        decisions.dropDuplicates(once)
        .where(F.col("vhost").isNotNull())
        .groupBy("date", "vhost", "rule")
        .agg(F.sum(allow).alias("allowed"), F.sum(F.col("repeat") - allow).alias("denied"))
    )
    following = F.lead("t_us").over(Over.partitionBy("router", "vhost").orderBy("t_us", "boot", "n"))
    last = F.coalesce(F.to_date(F.timestamp_micros(following)), F.lit(until))
    in_force = (
        loaded.dropDuplicates(once)
        .select("vhost", "rules", F.to_date("t").alias("first"), last.alias("last"))
        .select("vhost", F.explode("rules").alias("rule"), "first", "last")
        .select("vhost", "rule", F.explode(F.sequence("first", "last")).alias("date"))
        .distinct()
    )
    whole = in_force.join(decided, ["date", "vhost", "rule"], "full")
    return whole.select(
        "date",
        "vhost",
        "rule",
        *(F.coalesce(name, F.lit(0)).cast("bigint").alias(name) for name in ("allowed", "denied")),
    )


# --- the tables


def run(
    spark: SparkSession,
    root: Where,
    parameters: Parameters,
    progress: Callable[[str], None],
    at: int | datetime | None = None,
    send: Callable[[DataFrame], None] | None = None,
) -> Summary:
    """Bring the tables up to date with the records, or with those of ``at``.

    All days are read, because an attack may last for many. Alerts that a stream added for later records stay.
    ``send`` gets `messages` of the alerts that the table did not have before, or not as ended; if it raises, the table
    stays as it was. NoRecords, BadTable, TableBusy, OSError, and what ``send`` raises.
    """
    records = Records(root, at)
    table, rules = Table(root, ALERTS), Table(root, RULES)
    recorded = {"limits": asdict(parameters.limits)}
    work, of_rules = (material_of(records, each, VERSION, recorded, again=parameters.again) for each in (table, rules))
    inputs, as_of = work.inputs, work.until
    if not inputs:
        return Summary({}, nothing=NO_RECORDS)
    if not work.fresh and not of_rules.fresh:
        return Summary({}, nothing="the tables are made of these records already", segments=len(inputs))
    last = max((day for facts in records.segments.values() for day in facts.days()), default=date.min)
    progress(f"looking for attacks in {len(inputs)} segments")
    seen = sightings(of_data_sets(*(dataset(spark, records, kind) for kind in KINDS)))
    found = alerts(seen, parameters.limits, as_of)
    before = table.last_commit()
    if before is not None and without_streams(before.inputs) != before.inputs:
        later = table.read(spark).where(F.col("first_at") > F.timestamp_micros(F.lit(as_of)))
        found = found.unionByName(later.select(*found.columns))
    settings: dict[str, Any] = {"inputs": inputs, "job": "audit", "version": VERSION, "parameters": recorded}
    settings["read"] = records.pinned()
    frozen = frozen_by(records, ALERTS)
    if frozen and before is not None:
        found = found.join(table.read(spark, frozen).transform(_attacks), _goes_on(), "left_anti")
    found = found.persist()
    try:
        if send is not None:
            progress("sending new alerts")
            alarms = messages(found)
            send(alarms if before is None else without_known(alarms, messages(table.read(spark))))
        table.commit(found, work.days, **settings, changes=work.changes, frozen=frozen)
    finally:
        found.unpersist()
    progress("counting what rules decided")
    used = rules_used(
        dataset(spark, records, "policy.decision"),
        dataset(spark, records, "policy.loaded"),
        last,
    )
    rules.commit(used, of_rules.days, **settings, changes=of_rules.changes, frozen=frozen_by(records, RULES))
    unused = rules.read(spark).where("allowed + denied = 0").select("vhost", "rule").distinct()
    used_once = rules.read(spark).where("allowed + denied > 0").select("vhost", "rule").distinct()
    return Summary(
        {row["rule"]: row["count"] for row in table.read(spark).groupBy("rule").count().collect()},
        unused_rules=unused.join(used_once, ["vhost", "rule"], "anti").count(),
        segments=len(inputs),
    )


def _attacks(alerts: DataFrame) -> DataFrame:
    """Return the subjects and end times of alerts on frozen days."""
    return alerts.select(*[F.col(name).alias(f"{name}_") for name in (*_SAME, "last_at")])


def _goes_on() -> Column:
    """Return the condition that an alert continues one of a frozen day, whose first records were pruned."""
    same = [F.col(name).eqNullSafe(F.col(f"{name}_")) for name in _SAME]
    return reduce(lambda one, other: one & other, [*same, F.col("first_at") <= F.col("last_at_")])


def compacted(spark: SparkSession, root: Where) -> DataFrame:
    """Return input of `sightings` from files that compaction adds to the records under ``root``.

    Merged files come again, late, and are dropped like other late rows.
    """
    records = records_folder(root).absolute()
    if not records.is_local:
        raise BadTable(f"{records}: a stream of compacted records is one of a folder: take --follow, or do without")
    frames = []
    for kind in KINDS:
        folder = Path(records / f"record={kind}")
        make_folder(folder)
        frames.append(spark.readStream.schema(schema_of(kind)).parquet(str(folder)))
    return of_data_sets(*frames)


def followed(spark: SparkSession, folders: list[Path]) -> DataFrame:
    """Return input of `sightings` from the segments that routers complete in these folders."""
    return of_lines(following.records(spark, folders, list(KINDS)))


def follow(
    stream: DataFrame,
    root: Where,
    checkpoint: Path,
    parameters: Parameters,
    on_batch: Callable[[DataFrame], None] | None = None,
) -> StreamingQuery:
    """Start adding alerts of a stream of records to ``audit_alerts``; see `streams.add_to` for ``on_batch``."""
    found = alerts(sightings(stream.withWatermark("t", f"{parameters.pace.late_s} seconds")), parameters.limits)
    recorded = {"limits": asdict(parameters.limits)}
    made_by: dict[str, Any] = {"job": "audit", "version": VERSION, "parameters": recorded}
    return add_to(Table(root, ALERTS), found, latest, parameters.pace, checkpoint, on_batch, **made_by)
