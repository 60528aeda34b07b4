"""What lost records told: counts that later records of the same link prove, and rows that nothing can complete.

A record of a link has what came since the one before (``d_``) and since the attach (``c_``). So ``c_ - d_`` is what the
record before must have had as ``c_``; where that one is missing, the difference is what it told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import add, or_
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # its customary name
from pyspark.sql.window import Window as Over

from trouter.pipeline.gaps import Boot, gaps_of
from trouter.pipeline.metering.counters import COUNTED, SUBJECTS, key_at

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

    from trouter.pipeline.datasets import SegmentFacts

#: After the last number of a start that is over, everything is missing.
NO_END: Final = (1 << 63) - 1
_BOOT: Final = ("router", "boot")
_LINK: Final = (*_BOOT, "link")
_LOST: Final = "router string, boot bigint, lost array<bigint>, upto array<bigint>"


class Missing(NamedTuple):
    """Numbers that one start of a router has no records of, the last of them `NO_END` once the start is over."""

    from_n: int
    to_n: int


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
            missing.setdefault((router, start), []).append(Missing(last + 1, NO_END))
    return missing


def repairs(
    intervals: DataFrame, attached: DataFrame, detached: DataFrame, missing: Mapping[Boot, Sequence[Missing]]
) -> DataFrame:
    """Rows to be added for what is missing: counts that are known all the same, and rows that are not complete."""
    lost = _lost(intervals.sparkSession, missing)
    known, begun, ended = (frame.join(lost, list(_BOOT), "left_semi") for frame in (intervals, attached, detached))
    doubtful = _told(known, begun, ended).join(_whole(known), list(_LINK), "left_anti")
    return _judged(_steps(doubtful.join(lost, list(_BOOT))))


def _lost(spark: SparkSession, missing: Mapping[Boot, Sequence[Missing]]) -> DataFrame:
    """Of each start where ranges of missing numbers begin, ``lost``, and end, ``upto``."""
    rows = [
        (*boot, [each.from_n for each in ranges], [each.to_n for each in ranges]) for boot, ranges in missing.items()
    ]
    return F.broadcast(spark.createDataFrame(rows, _LOST))


def _whole(known: DataFrame) -> DataFrame:
    """Links whose every record is there: these need no second look, and are nearly all."""
    return (
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


def _total(prefix: str) -> Column:
    """All counters of a record in one: none of them ever falls, so the sums agree only if each of them does."""
    return reduce(add, [F.col(f"{prefix}_{source}") for source in COUNTED.values()])


def _told(intervals: DataFrame, attached: DataFrame, detached: DataFrame) -> DataFrame:
    """All records of links: ``what`` each is, and the sums (``c_``) with and (``b_``) without what it counts itself."""
    counts = intervals.select(
        *_LINK, "n", "t0", *SUBJECTS,
        F.when(F.col("final"), "final").otherwise("interval").alias("what"),
        *[F.col(f"c_{source}").alias(f"c_{name}") for name, source in COUNTED.items()],
        *[(F.col(f"c_{source}") - F.col(f"d_{source}")).alias(f"b_{name}") for name, source in COUNTED.items()],
    )  # fmt: skip
    ends = [
        frame.select(*_LINK, "n", F.col("t_us").alias("t0"), *SUBJECTS, F.lit(what).alias("what"))
        for frame, what in ((attached, "attached"), (detached, "detached"))
    ]
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), [counts, *ends])


def _steps(told: DataFrame) -> DataFrame:
    """Each record beside the one before it of the same link, and what is missing around it.

    A counter has how much more the record before it should have had than it did.
    """
    of_link = Over.partitionBy(*_LINK).orderBy("n")
    before = F.lag("n").over(of_link)
    grown = [
        (F.col(f"b_{name}") - F.coalesce(F.lag(f"c_{name}").over(of_link), F.lit(0))).alias(name) for name in COUNTED
    ]
    return told.select(
        "n", "t0", *SUBJECTS, "what",
        F.lag("what").over(of_link).alias("what_before"),
        F.lag("t0").over(of_link).alias("t0_before"),
        F.lead("n").over(of_link).isNull().alias("is_last"),
        F.exists("lost", lambda at: (at < F.col("n")) & (at > F.coalesce(before, F.lit(-1)))).alias("gap_before"),
        F.exists("lost", lambda at: at > F.col("n")).alias("gap_after"),
        F.array_contains("upto", F.col("n") - 1).alias("gap_touches"),
        *grown,
    )  # fmt: skip


def _judged(steps: DataFrame) -> DataFrame:
    """Of the steps that say something is missing, rows of the meter: what it was, or that it is not known."""
    what, what_before = F.col("what"), F.col("what_before")
    recorded = what.isin("interval", "final")
    moved = reduce(or_, [F.col(name) != 0 for name in COUNTED])
    fell = reduce(or_, [F.col(name) < 0 for name in COUNTED])
    # A link that is older than the recording has counts at its first record, and nothing is missing before it.
    begins = what_before.isNull() & ~F.col("gap_before")
    odd = recorded & (fell | (moved & ~begins & ~F.col("gap_before")))
    refilled = F.coalesce(recorded & moved & F.col("gap_before") & ~fell, F.lit(False))
    # The record of a link's end comes right behind that of its last counts, if it had any.
    last_lost = (what_before == "interval") | (
        (F.coalesce(what_before, F.lit("attached")) == "attached") & F.col("gap_touches")
    )
    cut = F.col("is_last") & (
        (what.isin("interval", "attached") & F.col("gap_after"))
        | ((what == "detached") & F.coalesce(last_lost, F.lit(False)))
    )
    unknown = F.coalesce(odd | cut, F.lit(False))
    at = F.when(what == "detached", F.coalesce("t0_before", "t0")).otherwise(F.col("t0"))
    return steps.where(refilled | unknown).select(
        *key_at(at),
        *[F.when(refilled, F.col(name)).otherwise(0).alias(name) for name in COUNTED],
        F.lit(0).cast("bigint").alias("rows"),
        F.when(refilled, F.col("msgs")).otherwise(0).alias("estimated_msgs"),
        (~unknown).alias("complete"),
    )
