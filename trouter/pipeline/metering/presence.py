"""How many connections and links there were at a time, and how long connections were there."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, date, datetime, timedelta
from functools import reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812  # its customary name
from pyspark.sql.window import Window as Over

from trouter.pipeline.metering.counters import hour_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_HOUR_US: Final = 3_600_000_000
#: Whose the connections and links of a row are.
_KEY: Final = ("hour", "vhost", "user")
_NUMBERS: Final = ("us", "peak_connections", "peak_links", "opened", "failed")


def connections(
    opened: DataFrame,
    closed: DataFrame,
    attached: DataFrame,
    detached: DataFrame,
    ends: DataFrame,
    days: Collection[date],
) -> DataFrame:
    """The table ``meter_conn`` of some days; the frames hold every day of the kinds of these names.

    ends: of each start of a router the time of its last record, ``until``: a span without an end lasts until then.
    """
    conns = _by_hour(_spans(opened, closed, ends, "conn", F.col("opened_at")), days)
    links = _by_hour(_spans(attached, detached, ends, "link", F.col("attached_at")), days)
    parts = [
        conns.groupBy(*_KEY).agg(F.sum(F.col("to_us") - F.col("from_us")).alias("us")),
        _peaks(conns, "peak_connections"),
        _peaks(links, "peak_links"),
        _counted(opened, "opened"),
        _counted(closed.where("opened_at = 0"), "failed"),
    ]
    every = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), parts)
    numbers = [F.coalesce(F.max(name), F.lit(0).cast("bigint")).alias(name) for name in _NUMBERS]
    return (
        every.groupBy(*_KEY)
        .agg(*numbers)
        .withColumn("connection_hours", F.col("us") / _HOUR_US)
        .select(*_KEY, "connection_hours", *_NUMBERS[1:], F.to_date("hour").alias("date"))
        .where(F.col("date").isin(sorted(days)))
    )


def _spans(begun: DataFrame, ended: DataFrame, ends: DataFrame, what: str, said: Column) -> DataFrame:
    """From when to when each connection or link was there, in microseconds, and whose it was.

    said: when one began that only its end tells of; 0 if it never did.
    """
    first = begun.select("router", "boot", what, "vhost", "user", F.col("t_us").alias("begin_told"))
    last = ended.select(
        "router", "boot", what, F.col("vhost").alias("vhost_"), F.col("user").alias("user_"),
        said.alias("begin_said"), F.col("t_us").alias("end"),
    )  # fmt: skip
    both = first.join(last, ["router", "boot", what], "full_outer").join(F.broadcast(ends), ["router", "boot"])
    return both.select(
        F.coalesce("vhost", "vhost_").alias("vhost"),
        F.coalesce("user", "user_").alias("user"),
        F.coalesce("begin_told", "begin_said").alias("begin"),
        F.coalesce("end", "until").alias("end"),
    ).where("begin > 0")


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


def _peaks(cut: DataFrame, name: str) -> DataFrame:
    """How many there were at once at most; one that ends as another begins is not counted with it."""
    edges = cut.select(*_KEY, F.col("from_us").alias("at"), F.lit(1).alias("change")).unionByName(
        cut.select(*_KEY, F.col("to_us").alias("at"), F.lit(-1).alias("change"))
    )
    so_far = Over.partitionBy(*_KEY).orderBy("at", "change").rowsBetween(Over.unboundedPreceding, Over.currentRow)
    return edges.withColumn("now", F.sum("change").over(so_far)).groupBy(*_KEY).agg(F.max("now").alias(name))


def _counted(told: DataFrame, name: str) -> DataFrame:
    """How many records there are of an hour."""
    return told.groupBy(hour_of(F.col("t_us")), *_KEY[1:]).agg(F.count("*").alias(name))
