"""The busiest tenants, users and addresses of each hour, with their shares of all messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812  # its customary name
from pyspark.sql.window import Window as Over

from trouter_pipeline.jobs.derived import Summary, changed_days, generations, summary_of
from trouter_pipeline.jobs.meter import METER
from trouter_pipeline.places import Where
from trouter_pipeline.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TOP: Final = "top"
#: Version of the job; another one recomputes the table.
VERSION: Final = 1
DIMENSIONS: Final = ("vhost", "user", "addr")
MEASURES: Final = ("msgs", "bytes")


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of the job.

    limit: rows of each dimension in each hour.
    measure: the column for ranks and ``share``: msgs or bytes.
    again: compute every day again, even without new records.
    """

    limit: int = 10
    measure: str = "msgs"
    again: bool = False

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise ValueError("most must be at least 1")
        if self.measure not in MEASURES:
            raise ValueError(f"{self.measure}: there are {', '.join(MEASURES)}")


def top(meter: DataFrame, limit: int, measure: str) -> DataFrame:
    """Return the busiest subjects of each hour and dimension, ranked; equal ones by name.

    Incoming and outgoing messages both count, so a message that passed counts twice, for every subject alike. Unknown
    subjects, such as those of messages without an address, are null.
    """
    of_hour = Over.partitionBy("hour", "dimension")
    ranked = of_hour.orderBy(F.col(measure).desc(), F.col("subject").asc_nulls_last())
    parts = [
        meter.groupBy("date", "hour", F.lit(name).alias("dimension"), F.col(name).alias("subject")).agg(
            *[F.sum(each).alias(each) for each in MEASURES]
        )
        for name in DIMENSIONS
    ]
    every = reduce(lambda one, other: one.unionByName(other), parts)
    all_of_it = F.sum(measure).over(of_hour)
    return (
        every.withColumn("share", F.when(all_of_it > 0, F.col(measure) / all_of_it).otherwise(0.0))
        .withColumn("rank", F.row_number().over(ranked))
        .where(F.col("rank") <= limit)
        .select("hour", "dimension", "rank", "subject", *MEASURES, "share", "date")
    )


def run(
    spark: SparkSession,
    root: Where,
    parameters: Parameters | None = None,
    progress: Callable[[str], None] = lambda _: None,
    at: int | datetime | None = None,
) -> Summary:
    """Bring the table up to date with the meter; BadTable, TableBusy, OSError."""
    given = parameters or Parameters()
    source, table = Table(root, METER, at), Table(root, TOP)
    recorded = {"most": given.limit, "measure": given.measure}
    inputs = generations(source)
    days = changed_days(table, source, inputs, VERSION, recorded, again=given.again)
    if days:
        progress(f"ranking {len(days)} days")
        frame = top(source.read(spark, days), given.limit, given.measure).orderBy("date", "hour", "dimension", "rank")
        table.commit(frame, days, inputs=inputs, job="top", version=VERSION, parameters=recorded, read=source.pinned())
    return summary_of(root, days)
