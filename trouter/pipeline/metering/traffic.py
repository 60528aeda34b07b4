"""What went through in each hour, by tenant, user, address and direction: rows to be billed from."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # its customary name

from trouter.pipeline.metering.counters import COUNTED, KEY, key_at
from trouter.pipeline.metering.repairs import Missing, repairs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from trouter.pipeline.gaps import Boot


def meter(
    intervals: DataFrame,
    attached: DataFrame,
    detached: DataFrame,
    missing: Mapping[Boot, Sequence[Missing]],
    days: Collection[date],
) -> DataFrame:
    """The table ``meter`` of some days.

    The frames are data sets of the kinds ``delivery.interval``, ``link.attached`` and ``link.detached``; of starts with
    something ``missing`` they hold every day, of others at least those asked for.
    """
    asked = F.col("date").isin(sorted(days))
    sums = (
        intervals.where(asked)
        .groupBy(*key_at(F.col("t0")))
        .agg(
            *[F.sum(f"d_{source}").alias(name) for name, source in COUNTED.items()],
            F.count("*").alias("rows"),
            F.lit(0).cast("bigint").alias("estimated_msgs"),
            F.lit(True).alias("complete"),
        )
    )
    if missing:
        sums = sums.unionByName(repairs(intervals, attached, detached, missing))
    merged = sums.groupBy(*KEY).agg(
        *[F.sum(name).alias(name) for name in (*COUNTED, "rows", "estimated_msgs")], F.min("complete").alias("complete")
    )
    return merged.withColumn("date", F.to_date("hour")).where(asked)
