"""Latencies of deliveries: the sketches of each hour, added up exactly, and percentiles of the sums.

Buckets are the same everywhere, so sums do not depend on the order. Hours keep their buckets, and days are made of
hours (`merged`). A percentile is the middle of its bucket, at most 1/64 off.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812  # its customary name
from pyspark.sql.window import Window as Over

from trouter.records.sketch import BITS
from trouter_pipeline.datasets import Records, dataset
from trouter_pipeline.jobs.segments import material_of
from trouter_pipeline.places import Where
from trouter_pipeline.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

TABLE: Final = "latency"
#: Version of the job; another one recomputes the table.
VERSION: Final = 1
#: Columns of a subject: a single address, or its whole class (``family``), which includes the single ones.
SUBJECT: Final = ("vhost", "addr", "family", "path")
#: Percentiles in hundredths of a percent, and their columns.
PERCENTILES: Final = ((5000, "p50_us"), (9500, "p95_us"), (9900, "p99_us"), (9990, "p999_us"))


@dataclass(frozen=True, slots=True)
class Parameters:
    """``again``: compute every day again, even without new records."""

    again: bool = False


@dataclass(frozen=True, slots=True)
class Summary:
    """The numbers of new segments and computed days, or why nothing was done."""

    segments: int = 0
    days: int = 0
    nothing: str | None = None


class OtherBuckets(Exception):
    """A sketch has buckets of another resolution or unit."""


# --- pure functions of frames


def latency(sketches: DataFrame) -> DataFrame:
    """Return the rows of the table: sketches by subject and hour of their beginning. Each record counts once."""
    once = sketches.dropDuplicates(["router", "boot", "n"])
    hour = F.date_trunc("hour", F.timestamp_micros("t0")).alias("hour")
    parts = once.select(
        hour, *SUBJECT, F.coalesce("rounded", F.lit(False)).alias("rounded"), F.col("max").alias("max_us"), "bi", "bc"
    )
    return merged(parts, ["hour", *SUBJECT])


def merged(parts: DataFrame, by: Sequence[str]) -> DataFrame:
    """Return sketches, or rows of the table, added up by columns among ``hour``, ``date`` and those of ``SUBJECT``."""
    key = list(by)
    bucket = F.explode(F.arrays_zip("bi", "bc")).alias("each")
    counts = (
        parts.select(*key, bucket)
        .groupBy(*key, F.col("each.bi").alias("bi"))
        .agg(F.sum("each.bc").alias("bc"))
        .where("bc > 0")
    )
    whole = Over.partitionBy(*key)
    running = counts.withColumns({"below": F.sum("bc").over(whole.orderBy("bi")), "cnt": F.sum("bc").over(whole)})
    found = [
        F.min(F.when(F.col("below") * 10_000 >= F.col("cnt") * share, F.col("bi"))).alias(name)
        for share, name in PERCENTILES
    ]
    buckets = F.array_sort(F.collect_list(F.struct("bi", "bc"))).alias("buckets")
    summed = running.groupBy(*key).agg(F.max("cnt").alias("cnt"), F.max("bi").alias("top"), *found, buckets)
    known = parts.groupBy(*key).agg(
        F.max("rounded").alias("rounded"), F.when(F.count("max_us") == F.count("*"), F.max("max_us")).alias("max_us")
    )
    together = summed.join(known, [summed[name].eqNullSafe(known[name]) for name in key])
    columns = [summed[name] for name in key]
    largest = F.coalesce("max_us", F.floor(middle("top")).cast("bigint")).alias("max_us")
    shown = [F.least(middle(name), largest.cast("double")).alias(name) for _, name in PERCENTILES]
    frame = together.select(
        *columns, "cnt", *shown, largest, "rounded", F.col("buckets.bi").alias("bi"), F.col("buckets.bc").alias("bc")
    )
    return frame.withColumn("date", F.to_date("hour")) if "hour" in key else frame


def middle(bucket: str) -> Column:
    """Return the middle of a bucket, as ``records.sketch.middle_of`` does."""
    number = F.col(bucket)
    shift = F.expr(f"cast(shiftright(`{bucket}`, {BITS}) - 1 as int)")
    first = F.expr(
        f"shiftleft((`{bucket}` & {(1 << BITS) - 1}) + {1 << BITS}, cast(shiftright(`{bucket}`, {BITS}) - 1 as int))"
    )
    width = F.pow(F.lit(2.0), shift)
    return F.when(number < 1 << BITS, number.cast("double")).otherwise(first + (width - 1) / 2)


# --- the table


def run(
    spark: SparkSession,
    root: Where,
    parameters: Parameters | None = None,
    progress: Callable[[str], None] = lambda _: None,
    at: int | datetime | None = None,
) -> Summary:
    """Bring the table up to date with the records, for days with other records.

    OtherBuckets, NoRecords, BadTable, TableBusy, OSError.
    """
    given = parameters or Parameters()
    records, table = Records(root, at), Table(root, TABLE)
    material = material_of(records, table, VERSION, {}, again=given.again)
    if material.nothing is not None:
        return Summary(nothing=material.nothing)
    progress(f"adding up sketches of {len(material.fresh_days)} days")
    sketches = dataset(spark, records, "latency.sketch", {day.isoformat() for day in material.fresh_days})
    strange = (
        sketches.where((F.col("bits") != BITS) | (F.col("unit") != "us")).select("seg", "n", "bits", "unit").head()
    )
    if strange is not None:
        raise OtherBuckets(
            f"{strange['seg']}, record {strange['n']}: buckets of {strange['bits']} bits in {strange['unit']}, and "
            f"only {BITS} bits in us are known"
        )
    found = latency(sketches).orderBy("date", "vhost")
    table.commit(
        found,
        material.fresh_days,
        inputs=material.inputs,
        changes=material.changes,
        job="latency",
        version=VERSION,
        parameters={},
        read=records.pinned(),
    )
    return Summary(len(material.fresh), len(material.fresh_days))
