"""Who attacks: brute force, spraying, slow guessing, a success after many failures, bursts of denials; unused rules.

Alerts are found by ``attacks.py`` in logins (``sasl.outcome``) and denials (``policy.decision``): in the data sets, of
which the whole answer replaces the tables (`run`), or in a stream, whose alerts are added to them as they come
(`follow`). Both say the same of the same records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it
from pyspark.sql.window import Window as Over

from trouter.pipeline.attacks import STATES, Alert, Judge, Limits, Rules, Subject, judge_of
from trouter.pipeline.datasets import dataset, manifest_of
from trouter.pipeline.detector import Row
from trouter.pipeline.stateful import detect
from trouter.pipeline.tables import Table
from trouter.pipeline.windows import Seen

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

ALERTS: Final = "audit_alerts"
RULES: Final = "audit_rules"
#: Of the job; another one recomputes the tables.
VERSION: Final = 1
#: Why a login failed that may have been a guess. A service that is down, or a certificate that has expired, is none.
GUESSES: Final = ("bad-credentials", "locked", "throttled")
#: Inputs of a table that came from a stream and not from segments.
_STREAM: Final = "stream "
_ORDER: Final = ("t_us", "router", "boot", "n")


@dataclass(frozen=True, slots=True)
class Parameters:
    """What the job may be told; ``late_s`` and ``every_s`` matter to streams only."""

    limits: Limits = field(default_factory=Limits)
    #: How much later than others a record may come and still count.
    late_s: int = 120
    #: How often a stream looks for records; None takes what is there and ends.
    every_s: int | None = None
    #: A stream that had to drop a record that came too late goes on, or ends.
    late: str = "drop"

    def __post_init__(self) -> None:
        if self.late not in {"drop", "fail"}:
            raise ValueError(f"late is {self.late!r}: it must be drop or fail")
        if self.late_s < 0 or (self.every_s is not None and self.every_s < 0):
            raise ValueError("late_s and every_s are seconds, and not negative")


@dataclass(frozen=True, slots=True)
class Summary:
    """What was read and written, and why nothing if nothing was."""

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

    def told(self, _: Row, notice: Alert) -> Row:
        return tuple(getattr(notice, name) for name, _ in self.output)


# --- pure functions of frames


def login_sightings(logins: DataFrame) -> DataFrame:
    """Logins as judges see them: each once for its host, and a failure once for its user."""
    none = F.lit(None).cast("string")
    failed = ~F.col("ok")
    of_host = F.struct(
        F.lit("host").alias("scope"),
        F.col("host"),
        none.alias("user"),
        none.alias("vhost"),
        F.coalesce("user", F.lit("")).alias("member"),
    )
    of_user = F.struct(
        F.lit("user").alias("scope"),
        none.alias("host"),
        F.col("user"),
        none.alias("vhost"),
        F.col("host").alias("member"),
    )
    both = F.filter(
        F.array(of_host, F.when(failed & F.col("user").isNotNull(), of_user)), lambda each: each.isNotNull()
    )
    counted = logins.where(F.col("host").isNotNull() & (F.col("ok") | F.col("reason").isin(*GUESSES)))
    whole = counted.select("t", *_ORDER, "ok", F.explode(both).alias("about"), F.lit(1).cast("bigint").alias("weight"))
    return whole.select("t", "about.*", *_ORDER, "ok", "weight")


def denial_sightings(decisions: DataFrame) -> DataFrame:
    """Denials as judges see them."""
    denied = decisions.where(~F.col("allow") & F.col("host").isNotNull())
    return denied.select(
        "t",
        F.lit("denied").alias("scope"),
        "host",
        "user",
        "vhost",
        F.coalesce("addr", F.lit("")).alias("member"),
        *_ORDER,
        F.lit(False).alias("ok"),
        F.col("repeat").alias("weight"),
    )


def sightings(logins: DataFrame, decisions: DataFrame) -> DataFrame:
    """All that judges see."""
    return login_sightings(logins).unionByName(denial_sightings(decisions))


def alerts(seen: DataFrame, limits: Limits, as_of: int | None = None) -> DataFrame:
    """The rows of ``audit_alerts`` in ``seen``; of a stream each as it is noticed, and again when it is over."""
    told = detect(seen, Attacks(limits), as_of)
    shaped = told.select(
        "alert_id",
        "rule",
        "user",
        "host",
        "vhost",
        F.timestamp_micros("first_us").alias("first_at"),
        F.timestamp_micros("last_us").alias("last_at"),
        "failures",
        "distinct",
        "evidence",
        "ended",
    ).withColumn("date", F.to_date("first_at"))
    return shaped if seen.isStreaming else latest(shaped)


def latest(told: DataFrame) -> DataFrame:
    """Of each alert the row that says most."""
    columns = [F.col(name) for name in told.columns]
    last = F.max_by(F.struct(*columns), F.struct("ended", "failures", "last_at"))
    return told.groupBy("alert_id").agg(last.alias("alert")).select("alert.*")


def rules_used(decisions: DataFrame, loaded: DataFrame, until: date) -> DataFrame:
    """The rows of ``audit_rules``: how often each rule decided on each day, also those that were in force and did not.

    ``until``: the day until which the rules that were loaded last are in force.
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


def run(spark: SparkSession, root: Path, parameters: Parameters, progress: Callable[[str], None]) -> Summary:
    """Have the tables say what the data sets say. Does nothing if they do; NoRecords, BadTable, TableBusy, OSError.

    All days are looked at, for an attack may last for many. What a stream has told of later records stays.
    """
    manifest = manifest_of(root)
    inputs = {name: facts.crc for name, facts in sorted(manifest.segments.items())}
    table, rules = Table(root, ALERTS), Table(root, RULES)
    said = {"limits": asdict(parameters.limits)}
    if not inputs:
        return Summary({}, nothing="there are no records: run `trouter pipeline compact` first")
    if all(_is_made_of(each, inputs, said) for each in (table, rules)):
        return Summary({}, nothing="the tables are made of these records already", segments=len(inputs))
    days = sorted({date.fromisoformat(day) for facts in manifest.segments.values() for day in facts.dates})
    as_of = max(facts.t_max for facts in manifest.segments.values())
    every_day = [days[0] + timedelta(each) for each in range((days[-1] - days[0]).days + 1)] if days else []
    progress(f"looking for attacks in {len(inputs)} segments")
    seen = sightings(dataset(spark, root, "sasl.outcome"), dataset(spark, root, "policy.decision"))
    found = alerts(seen, parameters.limits, as_of)
    before = table.manifest()
    if before is not None:
        later = table.read(spark).where(F.col("first_at") > F.timestamp_micros(F.lit(as_of)))
        found = found.unionByName(later.select(*found.columns))
    known = [] if before is None else [date.fromisoformat(day) for day in before.days]
    settings: dict[str, Any] = {"inputs": inputs, "job": "audit", "version": VERSION, "parameters": said}
    table.commit(found, {*every_day, *known}, **settings)
    progress("counting what rules decided")
    used = rules_used(
        dataset(spark, root, "policy.decision"), dataset(spark, root, "policy.loaded"), days[-1] if days else date.min
    )
    former = rules.manifest()
    rules.commit(used, {*every_day, *(date.fromisoformat(day) for day in (former.days if former else ()))}, **settings)
    unused = rules.read(spark).where("allowed + denied = 0").select("vhost", "rule").distinct()
    used_once = rules.read(spark).where("allowed + denied > 0").select("vhost", "rule").distinct()
    return Summary(
        {row["rule"]: row["count"] for row in table.read(spark).groupBy("rule").count().collect()},
        unused_rules=unused.join(used_once, ["vhost", "rule"], "anti").count(),
        segments=len(inputs),
    )


def _is_made_of(table: Table, inputs: Mapping[str, int], parameters: Mapping[str, object]) -> bool:
    manifest = table.manifest()
    if manifest is None or manifest.job_version != VERSION or manifest.parameters != parameters:
        return False
    return {name: crc for name, crc in manifest.inputs.items() if not name.startswith(_STREAM)} == inputs


class LateRecords(Exception):
    """Records came later than the watermark allows, and that was not to be."""


def follow(
    seen: DataFrame,
    root: Path,
    checkpoint: Path,
    parameters: Parameters,
    told: Callable[[Sequence[Any]], None] | None = None,
) -> StreamingQuery:
    """Start adding alerts of a stream of `sightings` to ``audit_alerts``; ``told`` is called with the new rows.

    A batch that comes again after a crash changes nothing, but is told again.
    """
    table = Table(root, ALERTS)
    found = alerts(seen.withWatermark("t", f"{parameters.late_s} seconds"), parameters.limits)

    def add(batch: DataFrame, number: int) -> None:
        rows = batch.collect()
        if not rows:
            return
        spark = batch.sparkSession
        days = sorted({row["date"] for row in rows})
        new = spark.createDataFrame(rows, batch.schema)
        before = table.manifest()
        if before is not None:
            new = new.unionByName(table.read(spark, days).select(*new.columns))
        made_of = {**({} if before is None else before.inputs), f"{_STREAM}{checkpoint.name}": number}
        said = {"limits": asdict(parameters.limits)}
        table.commit(latest(new), days, inputs=made_of, job="audit", version=VERSION, parameters=said)
        if told is not None:
            told(rows)

    writer = found.writeStream.outputMode("append").queryName("audit").option("checkpointLocation", str(checkpoint))
    every = (
        {"availableNow": True} if parameters.every_s is None else {"processingTime": f"{parameters.every_s} seconds"}
    )
    return writer.trigger(**every).foreachBatch(add).start()
