"""The history of the topology: neighbours that came and went, flapping ones, and convergence times.

A row is one time that a router had a neighbour. It ends with a record, or, without one, at the router's next start.
Records of several routers about one change share its cause; the time from the first to the last of them is as exact as
the routers' clocks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812  # its customary name
from pyspark.sql.window import Window as Over

from trouter_pipeline.datasets import Records, dataset
from trouter_pipeline.jobs.segments import material_of
from trouter_pipeline.places import Where
from trouter_pipeline.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HISTORY: Final = "topology_history"
CHANGES: Final = "topology_changes"
#: Version of the job; another one recomputes the tables.
VERSION: Final = 1
_SECOND_US: Final = 1_000_000
#: The reason for a neighbour that was lost without a record.
RESTART: Final = "the router was started again"


@dataclass(frozen=True, slots=True)
class Parameters:
    """A neighbour flaps if it is lost ``flaps`` times within ``window_s`` seconds, both ends included."""

    flaps: int = 5
    window_s: int = 600
    again: bool = False

    def __post_init__(self) -> None:
        if self.flaps < 2 or self.window_s < 1:
            raise ValueError("a neighbour flaps that is lost at least twice within at least a second")


@dataclass(frozen=True, slots=True)
class Summary:
    """What was read, or why nothing was done."""

    segments: int = 0
    nothing: str | None = None


# --- pure functions of frames


def changes(news: DataFrame) -> DataFrame:
    """Return the rows of ``topology_changes``: for each cause its beginning, number of routers, and duration.

    ``told_us`` is the longest time that a router measured itself, by a monotonic clock.
    """
    moved = F.col("what") != "converged"
    found = (
        _once(news)
        .where("cause_id is not null")
        .groupBy("cause_id")
        .agg(
            F.min(F.when(moved, F.col("t_us"))).alias("first_us"),
            F.max(F.when(moved, F.col("t_us"))).alias("last_us"),
            F.count_distinct("router").alias("routers"),
            F.max("converge_us").alias("told_us"),
        )
    )
    return found.where("first_us is not null").select(
        "cause_id",
        F.timestamp_micros("first_us").alias("first_at"),
        F.timestamp_micros("last_us").alias("last_at"),
        "routers",
        (F.col("last_us") - F.col("first_us")).alias("converge_us"),
        "told_us",
        F.to_date(F.timestamp_micros("first_us")).alias("date"),
    )


def starts(news: DataFrame, reloaded: DataFrame) -> DataFrame:
    """Return the starts of routers with evidence; a router with several logs has several numbers of starts."""
    started = reloaded.where(F.col("by") == "start").select("router", "boot")
    return news.select("router", "boot").unionByName(started).distinct()


def history(news: DataFrame, boots: DataFrame, parameters: Parameters) -> DataFrame:
    """Return the rows of ``topology_history``. ``boots`` has ``router`` and ``boot`` of each start."""
    mine = Over.partitionBy("router", "peer")
    events = _once(news).where(F.col("what").isin("neighbour-up", "neighbour-down") & F.col("peer").isNotNull())
    down = F.col("what") == "neighbour-down"
    back = mine.orderBy("t_us").rangeBetween(-parameters.window_s * _SECOND_US, 0)
    ahead = mine.orderBy("t_us").rangeBetween(0, parameters.window_s * _SECOND_US)
    counted = events.withColumn("recent", F.sum(F.when(down, 1).otherwise(0)).over(back))
    # a loss that ends a window with too many of them flaps, and so do those in the window before it
    flapping = F.max(F.when(down, F.col("recent"))).over(ahead) >= parameters.flaps
    ordered = mine.orderBy("t_us", "boot", "n")
    following = [
        F.lead(name).over(ordered).alias(f"next_{name}")
        for name in ("what", "t_us", "boot", "why", "cause_id", "flapping")
    ]
    counted = counted.withColumn("flapping", F.coalesce(flapping, F.lit(False)))
    ups = counted.select("*", *following).where(~down)
    begun = boots.select(F.col("router").alias("of"), F.col("boot").alias("started")).distinct()
    next_start = F.lead("started").over(Over.partitionBy("of").orderBy("started")).alias("restarted")
    ups = ups.join(
        begun.select("of", "started", next_start),
        (F.col("router") == F.col("of")) & (F.col("boot") == F.col("started")),
        "left",
    )
    lost = (F.col("next_what") == "neighbour-down") & (F.col("next_boot") == F.col("boot"))
    again = (F.col("next_what") == "neighbour-up") & (F.col("next_boot") == F.col("boot"))
    restarted = F.greatest(F.col("restarted") * _SECOND_US, F.col("t_us"))
    ended = F.when(lost | again, F.col("next_t_us")).otherwise(restarted)
    why = (
        F.when(lost, F.col("next_why")).when(again, F.lit("it came anew")).when(F.col("restarted").isNotNull(), RESTART)
    )
    took = changes(news).select(F.col("cause_id").alias("cause"), F.greatest("converge_us", "told_us").alias("took_us"))
    spans = ups.select(
        "router",
        "peer",
        F.col("t_us").alias("up_us"),
        ended.alias("down_us"),
        why.alias("why"),
        F.col("cost_new").alias("cost"),
        (lost & F.coalesce("next_flapping", F.lit(False))).alias("flap"),
        F.when(lost, F.col("next_cause_id")).alias("cause"),
    )
    return spans.join(took, "cause", "left").select(
        "router",
        "peer",
        F.timestamp_micros("up_us").alias("up_at"),
        F.timestamp_micros("down_us").alias("down_at"),
        (F.col("down_us") - F.col("up_us")).alias("duration_us"),
        "cost",
        F.coalesce("flap", F.lit(False)).alias("flap"),
        F.col("took_us").alias("converge_us"),
        "why",
        F.to_date(F.timestamp_micros("up_us")).alias("date"),
    )


def _once(news: DataFrame) -> DataFrame:
    return news.dropDuplicates(["router", "boot", "n"])


# --- the tables


def run(
    spark: SparkSession,
    root: Where,
    parameters: Parameters | None = None,
    progress: Callable[[str], None] = lambda _: None,
    at: int | datetime | None = None,
) -> Summary:
    """Bring both tables up to date with the records, for all days; NoRecords, BadTable, TableBusy, OSError."""
    given = parameters or Parameters()
    recorded = {name: value for name, value in asdict(given).items() if name != "again"}
    past, news = Table(root, HISTORY), Table(root, CHANGES)
    records = Records(root, at)
    work = {table: material_of(records, table, VERSION, recorded, again=given.again) for table in (past, news)}
    if all(material.nothing is not None for material in work.values()):
        return Summary(nothing=work[past].nothing)
    progress(f"following neighbours through {len(work[past].inputs)} segments")
    told = dataset(spark, records, "topology.change")
    boots = starts(told, dataset(spark, records, "config.reloaded"))
    for table, frame in ((past, history(told, boots, given)), (news, changes(told))):
        material = work[table]
        table.commit(
            frame,
            material.days,
            inputs=material.inputs,
            changes=material.changes,
            job="topology",
            version=VERSION,
            parameters=recorded,
            read=records.pinned(),
        )
    return Summary(segments=len(work[past].fresh | work[news].fresh))
