"""The meter summed up by hour and by day, and by any of tenant, user, address and direction.

``quality`` is false if a row of the meter was not complete. Only days whose meter has changed are computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812  # its customary name

from trouter_pipeline.jobs.derived import Summary, changed_days, generations, summary_of
from trouter_pipeline.jobs.meter import METER
from trouter_pipeline.metering.counters import COUNTED, SUBJECTS
from trouter_pipeline.places import Where
from trouter_pipeline.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HOURS: Final = "rollup_hour"
DAYS: Final = "rollup_day"
#: Version of the job; another one recomputes the tables.
VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of the job.

    by: the columns to group by, of vhost, user, addr and dir.
    again: compute every day again, even without new records.
    """

    by: Sequence[str] = SUBJECTS
    again: bool = False

    def __post_init__(self) -> None:
        if strange := set(self.by) - set(SUBJECTS):
            raise ValueError(f"{', '.join(sorted(strange))}: there are {', '.join(SUBJECTS)}")


def rollup(meter: DataFrame, by: Sequence[str], period: str) -> DataFrame:
    """Return rows of the meter summed by ``period`` (hour or day) and by these columns."""
    begins = F.date_trunc(period, F.col("hour")).alias("begins")
    return (
        meter.withColumn("begins", begins)
        .groupBy("date", "begins", *[name for name in SUBJECTS if name in by])
        .agg(
            *[F.sum(name).alias(name) for name in (*COUNTED, "rows", "estimated_msgs")],
            F.min("complete").alias("quality"),
        )
        .withColumnRenamed("begins", period)
    )


def run(
    spark: SparkSession,
    root: Where,
    parameters: Parameters | None = None,
    progress: Callable[[str], None] = lambda _: None,
    at: int | datetime | None = None,
) -> Summary:
    """Bring both tables up to date with the meter; BadTable, TableBusy, OSError."""
    given = parameters or Parameters()
    source = Table(root, METER, at)
    inputs = generations(source)
    recorded = {"by": [name for name in SUBJECTS if name in given.by]}
    done: set[date] = set()
    for name, period in ((HOURS, "hour"), (DAYS, "day")):
        table = Table(root, name)
        days = changed_days(table, source, inputs, VERSION, recorded, again=given.again)
        if days:
            progress(f"{name}: {len(days)} days")
            frame = rollup(source.read(spark, days), given.by, period).orderBy("date", *recorded["by"][:1])
            table.commit(
                frame, days, inputs=inputs, job="rollup", version=VERSION, parameters=recorded, read=source.pinned()
            )
            done |= days
    return summary_of(root, done)
