"""The meter summed up: by hour and by day, by whichever of tenant, user, address and direction are of interest.

A row is as good as the worst of what it is made of: ``quality`` is false where a row of the meter was not complete.
Only days whose meter has changed are computed again.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

from trouter.pipeline.jobs.meter import COUNTED, KEY, METER
from trouter.pipeline.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HOURS: Final = "rollup_hour"
DAYS: Final = "rollup_day"
#: Of the job; another one recomputes the tables.
VERSION: Final = 1
#: What may be told apart, in the order of the columns.
SUBJECTS: Final = KEY[1:]


@dataclass(frozen=True, slots=True)
class Parameters:
    """What the job may be told.

    by: what is told apart: some of vhost, user, addr and dir.
    again: compute every day again, whether or not anything is new.
    """

    by: Sequence[str] = SUBJECTS
    again: bool = False

    def __post_init__(self) -> None:
        if strange := set(self.by) - set(SUBJECTS):
            raise ValueError(f"{', '.join(sorted(strange))}: there are {', '.join(SUBJECTS)}")


@dataclass(frozen=True, slots=True)
class Summary:
    """Which days were computed, and why none if none was."""

    days: Sequence[date] = ()
    nothing: str | None = None


def rollup(meter: DataFrame, by: Sequence[str], period: str) -> DataFrame:
    """Rows of the meter summed by ``period``, hour or day, and by these columns."""
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
    root: Path,
    parameters: Parameters | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Summary:
    """Bring both tables up to date with the meter; BadTable, TableBusy, OSError."""
    asked = parameters or Parameters()
    source = Table(root, METER)
    told = {"by": [name for name in SUBJECTS if name in asked.by]}
    done: set[date] = set()
    for name, period in ((HOURS, "hour"), (DAYS, "day")):
        table = Table(root, name)
        inputs = generations(source)
        days = changed_days(table, inputs, VERSION, told, again=asked.again)
        if days:
            progress(f"{name}: {len(days)} days")
            frame = rollup(source.read(spark, days), asked.by, period).orderBy("date", *told["by"][:1])
            table.commit(frame, days, inputs=inputs, job="rollup", version=VERSION, parameters=told)
            done |= days
    return Summary(sorted(done), None if done else why_nothing(source))


# --- tables made of one other table


def generations(source: Table) -> dict[str, int]:
    """The days of a table, each with a number that is another once the day is; BadTable, OSError."""
    manifest = source.manifest()
    days = {} if manifest is None else manifest.days
    return {f"{source.name}/{day}": zlib.crc32(path.encode()) for day, path in days.items()}


def changed_days(
    table: Table, inputs: Mapping[str, int], version: int, parameters: Mapping[str, object], *, again: bool
) -> set[date]:
    """Days that must be computed again; those that the source has no more are among them. BadTable, OSError."""
    before = table.manifest()
    same = before is not None and before.job_version == version and before.parameters == dict(parameters) and not again
    held = before.inputs if before is not None and same else {}
    names: Collection[str] = {name for name in inputs.keys() | held.keys() if inputs.get(name) != held.get(name)}
    days = {date.fromisoformat(name.rpartition("/")[2]) for name in names}
    if before is not None and not same:
        days |= {date.fromisoformat(day) for day in before.days}
    return days


def why_nothing(source: Table) -> str:
    if source.manifest() is None:
        return "there is no meter yet: run `trouter pipeline meter` first"
    return "nothing is new"
