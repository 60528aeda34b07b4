"""Fraud with cards: a thief tries a card with a small payment, and then takes much from it.

The events have a card, a time, an id, a kind and an amount: bodies of landed messages, or a stream of them. The plain
pattern is a join of small and large payments (`pairs`), which may require different places. If alerts are muted for a
while, or several small payments are required, a judge sees each card's payments in order (`judged`). Both sides are
kept until the watermark has passed, because the large payment may come first.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlparse

import msgspec
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import functions as F  # noqa: N812  # its customary name
from pyspark.sql.types import StructType

from trouter_pipeline.alerts import messages as alerts_of
from trouter_pipeline.alerts import without_known
from trouter_pipeline.detector import Judge, Row
from trouter_pipeline.landing import Landing, landed
from trouter_pipeline.places import Where
from trouter_pipeline.reasons import reason_of
from trouter_pipeline.stateful import detect
from trouter_pipeline.streams import Pace, add_to, without_streams
from trouter_pipeline.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

TABLE: Final = "fraud_alerts"
#: Version of the job; another one recomputes the table.
VERSION: Final = 1
#: Small payments of a card that are kept.
MAX_TESTERS: Final = 64
_AMOUNT: Final = "decimal(28,6)"
_SECOND_US: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Pattern:
    """The payments to look for, and their columns. Amounts are decimal texts, times seconds; bounds are inclusive."""

    key: str = "card"
    time: str = "t"
    identity: str = "id"
    kind: str = "channel"
    amount: str = "amount"
    place: str | None = None
    #: The small payment: its kind and highest amount.
    tester: str = "online"
    tester_at_most: str = "2.00"
    #: The large payment: its kind and lowest amount.
    large: str = "atm"
    large_at_least: str = "500"
    #: Longest time between them.
    within_s: int = 3600
    #: Number of small payments before it.
    testers: int = 1
    #: Time without further alerts of a card after one.
    mute_s: int = 0
    #: Only small payments in another ``place`` count.
    elsewhere: bool = False

    def __post_init__(self) -> None:
        for name in ("tester_at_most", "large_at_least"):
            try:
                good = Decimal(getattr(self, name)).is_finite()
            except InvalidOperation:
                good = False
            if not good:
                raise ValueError(f"{name} is {getattr(self, name)!r}: it must be an amount, such as 2.00")
        if not 1 <= self.testers <= MAX_TESTERS:
            raise ValueError(f"testers is {self.testers}: it must be at least 1 and at most {MAX_TESTERS}")
        if self.within_s < 0 or self.mute_s < 0:
            raise ValueError("within_s and mute_s are seconds, and not negative")
        if self.elsewhere and self.place is None:
            raise ValueError("elsewhere needs the column of the place")
        if self.tester == self.large:
            raise ValueError("small and large payments must be of two kinds")

    @property
    def plain(self) -> bool:
        """Whether a join finds it."""
        return self.testers == 1 and self.mute_s == 0


@dataclass(frozen=True, slots=True)
class Summary:
    """The number of alerts; ``unusable`` payments lack a card, a time, an id or an amount."""

    alerts: int
    unusable: int = 0
    nothing: str | None = None


class MissingColumn(Exception):
    """The events lack a column that the pattern names."""


class BadEvents(Exception):
    """There are no events, or Spark cannot read them."""


# --- pure functions of frames


def payments(events: DataFrame, pattern: Pattern) -> DataFrame:
    """Return the events of the two kinds with the columns key, t, t_us, id, kind, amount, place; MissingColumn."""
    wanted = [pattern.key, pattern.time, pattern.identity, pattern.kind, pattern.amount]
    for name in [*wanted, *([] if pattern.place is None else [pattern.place])]:
        _need(events, name)
    t = F.col(pattern.time).try_cast("timestamp")
    place = F.lit(None) if pattern.place is None else F.col(pattern.place)
    return events.where(F.col(pattern.kind).isin(pattern.tester, pattern.large)).select(
        F.col(pattern.key).cast("string").alias("key"),
        t.alias("t"),
        F.unix_micros(t).alias("t_us"),
        F.col(pattern.identity).cast("string").alias("id"),
        F.col(pattern.kind).alias("kind"),
        F.col(pattern.amount).try_cast(_AMOUNT).alias("amount"),
        place.cast("string").alias("place"),
    )


def unusable(paid: DataFrame) -> DataFrame:
    """Return the payments that lack a value."""
    return paid.where(" or ".join(f"{name} is null" for name in ("key", "t", "id", "amount")))


def candidates(paid: DataFrame, pattern: Pattern) -> DataFrame:
    """Return the payments that are small or large enough; ``large`` distinguishes them."""
    small = (F.col("kind") == pattern.tester) & (F.col("amount") <= F.lit(pattern.tester_at_most).cast(_AMOUNT))
    large = (F.col("kind") == pattern.large) & (F.col("amount") >= F.lit(pattern.large_at_least).cast(_AMOUNT))
    usable = paid.where("key is not null and t is not null and id is not null").where(small | large)
    return usable.withColumn("large", large)


def pairs(found: DataFrame, pattern: Pattern) -> DataFrame:
    """Return the plain pattern: each large payment with each small one before it."""
    sides = {}
    for side, large in (("tester", False), ("large", True)):
        names = {name: f"{side}_{name}" for name in ("key", "t", "id", "amount", "place")}
        which = F.col("large") if large else ~F.col("large")
        sides[side] = found.where(which).select(*(F.col(name).alias(new) for name, new in names.items()))
    after = F.expr("tester_key = large_key and large_t >= tester_t") & F.expr(
        f"large_t <= tester_t + interval {pattern.within_s} seconds"
    )
    if pattern.elsewhere:
        after = after & F.expr("tester_place <> large_place")
    return _shaped(sides["tester"].join(sides["large"], after).withColumnRenamed("tester_key", "key"))


def judged(found: DataFrame, pattern: Pattern) -> DataFrame:
    """Return any pattern, found by a judge that sees the payments of each card in order."""
    detected = detect(found.withColumn("amount", F.col("amount").cast("string")), Cards(pattern))
    return _shaped(
        detected.withColumns(
            {
                **{f"{side}_t": F.timestamp_micros(f"{side}_us") for side in ("tester", "large")},
                **{f"{side}_amount": F.col(f"{side}_amount").cast(_AMOUNT) for side in ("tester", "large")},
            }
        )
    )


def _shaped(found: DataFrame) -> DataFrame:
    """Return the columns of ``fraud_alerts``; ``large_n`` is the id if it is a number."""
    columns = ["tester_t", "large_t", "tester_amount", "large_amount", "tester_place", "large_place"]
    number = F.expr("try_cast(large_id as bigint)").alias("large_n")
    return found.select("key", number, "large_id", "tester_id", *columns, F.to_date("large_t").alias("date"))


def alerts(events: DataFrame, pattern: Pattern) -> DataFrame:
    """Return the rows of ``fraud_alerts``; a stream, which needs a watermark, gives each when it is found."""
    found = candidates(payments(events, pattern), pattern)
    alarms = pairs(found, pattern) if pattern.plain else judged(found, pattern)
    return alarms if events.isStreaming else latest(alarms)


def latest(rows: DataFrame) -> DataFrame:
    """Return each large payment once, with the last of the small ones before it."""
    columns = F.struct(*(F.col(name) for name in rows.columns))
    last = F.max_by(columns, F.struct("tester_t", "tester_id")).alias("alert")
    return rows.groupBy("key", "large_id").agg(last).select("alert.*")


def messages(rows: DataFrame) -> DataFrame:
    """Return a message for each alert; its id is a hash of card and payment, because brokers log ids."""
    payment = F.concat(F.lit("fraud-"), F.substring(F.sha2(F.to_json(F.struct("key", "large_id")), 256), 1, 32))
    return alerts_of(rows, payment, payment, F.lit("fraud"), F.col("large_t"))


# --- one card


class Payment(msgspec.Struct, array_like=True, frozen=True):
    """A payment as it is judged."""

    t: int
    large: bool
    id: str
    amount: str
    place: str | None

    @property
    def order(self) -> tuple[int, bool, str]:
        """Sort key; at one moment small payments come first, because they may be the test."""
        return self.t, self.large, self.id


class CardState(msgspec.Struct, array_like=True):
    """The last small payments, and until when the card is mute."""

    testers: list[Payment] = msgspec.field(default_factory=list)
    mute_until: int = -1


class CardJudge:
    """The judge of one card."""

    def __init__(self, pattern: Pattern, state: CardState) -> None:
        self.state = state
        self._pattern = pattern

    def feed(self, seen: Payment) -> Iterator[tuple[Payment, Payment]]:
        state, pattern = self.state, self._pattern
        self._forget(seen.t)
        if not seen.large:
            state.testers = [*state.testers, seen][-MAX_TESTERS:]
            return
        tried = [each for each in state.testers if not pattern.elsewhere or _elsewhere(each, seen)]
        if len(tried) >= pattern.testers and seen.t > state.mute_until:
            if pattern.mute_s:
                state.mute_until = seen.t + pattern.mute_s * _SECOND_US
            yield tried[-1], seen

    def _forget(self, now: int) -> None:
        oldest = now - self._pattern.within_s * _SECOND_US
        self.state.testers = [each for each in self.state.testers if each.t >= oldest]

    def expire(self, now: int) -> Iterator[Any]:
        self._forget(now)
        if self.state.mute_until < now:
            self.state.mute_until = -1
        return iter(())

    def due(self) -> int | None:
        last = self.state.testers[-1].t + self._pattern.within_s * _SECOND_US if self.state.testers else -1
        until = max(last, self.state.mute_until)
        return None if until < 0 else until + 1


def _elsewhere(tester: Payment, large: Payment) -> bool:
    return tester.place is not None and large.place is not None and tester.place != large.place


@dataclass(frozen=True)
class Cards:
    """The detector: `candidates` in, pairs out."""

    pattern: Pattern
    keys: tuple[str, ...] = ("key",)
    columns: tuple[str, ...] = ("t_us", "large", "id", "amount", "place")
    order: tuple[str, ...] = ("t_us", "large", "id")
    output: tuple[tuple[str, str], ...] = (
        ("key", "string"),
        ("tester_us", "bigint"),
        ("tester_id", "string"),
        ("tester_amount", "string"),
        ("tester_place", "string"),
        ("large_us", "bigint"),
        ("large_id", "string"),
        ("large_amount", "string"),
        ("large_place", "string"),
    )

    def sighting(self, values: Row) -> Payment:
        return Payment(*values)

    def types(self, _: Row) -> tuple[type[Any], type[Any]]:
        return Payment, CardState

    def judge(self, _: Row, state: Any) -> Judge:
        return CardJudge(self.pattern, state)

    def to_row(self, key: Row, notice: tuple[Payment, Payment]) -> Row:
        return (*key, *(value for each in notice for value in (each.t, each.id, each.amount, each.place)))


# --- the table


def run(
    root: Where,
    events: DataFrame,
    pattern: Pattern,
    progress: Callable[[str], None],
    inputs: Mapping[str, int] | None = None,
    read: Mapping[str, int] | None = None,
    send: Callable[[DataFrame], None] | None = None,
    *,
    again: bool = False,
) -> Summary:
    """Compute the table; nothing is done if the ``inputs`` are those of the table already, unless ``again``.

    ``read`` has the version of the table that the events are from. ``send`` gets `messages` of the alerts that the
    table did not have before; if it raises, the table stays as it was.

    MissingColumn, BadTable, TableBusy, OSError, and what ``send`` raises.
    """
    table = Table(root, TABLE)
    if not again:
        table.require_own_rows()
    before = table.last_commit()
    used = asdict(pattern)
    same = before is not None and before.is_by(VERSION, used) and without_streams(before.inputs) == inputs
    if inputs and same and not again:
        return Summary(0, nothing="the table is made of these events already")
    progress("looking for small payments and large ones after them")
    found = alerts(events, pattern).persist()
    try:
        days = [row["date"] for row in found.select("date").distinct().collect()]
        if send is not None:
            progress("sending new alerts")
            alarms = messages(found)
            if before is not None:
                alarms = without_known(alarms, messages(table.read(found.sparkSession)))
            send(alarms)
        made_by: dict[str, Any] = {"job": "fraud", "version": VERSION, "parameters": used, "read": read}
        table.commit(found, {*days, *table.dates()}, inputs=inputs or {}, **made_by)
        return Summary(found.count(), unusable(payments(events, pattern)).count())
    finally:
        found.unpersist()


def follow(
    events: DataFrame,
    root: Where,
    checkpoint: Path,
    pattern: Pattern,
    pace: Pace,
    on_batch: Callable[[DataFrame], None] | None = None,
    finished: Callable[[int], None] = lambda _: None,
) -> StreamingQuery:
    """Start adding the alerts of a stream of events to the table; see `streams.add_to` for what is called."""
    paid = payments(events, pattern).withWatermark("t", f"{pace.late_s} seconds")
    found = candidates(paid, pattern)
    alarms = pairs(found, pattern) if pattern.plain else judged(found, pattern)
    made_by: dict[str, Any] = {"job": "fraud", "version": VERSION, "parameters": asdict(pattern)}
    return add_to(Table(root, TABLE), alarms, latest, pace, checkpoint, on_batch, finished, **made_by)


def _need(events: DataFrame, name: str) -> None:
    if name not in events.columns:
        raise MissingColumn(f"the events have no column {name!r}; they have {', '.join(events.columns)}")


def read_bodies(frame: DataFrame, column: str, schema: str) -> DataFrame:
    """Return the fields of a JSON column beside the other columns; MissingColumn, BadEvents."""
    _need(frame, column)
    try:
        StructType.fromDDL(schema)
    except PySparkException as error:
        raise BadEvents(f"the schema {schema[:100]!r} is none: {reason_of(error)}") from None
    fields = F.from_json(F.col(column).cast("string"), schema).alias("said")
    kept = [name for name in frame.columns if name != column]
    read = frame.select(*kept, fields)
    fresh = [name for name in read.select("said.*").columns if name not in kept]
    return read.select(*kept, *(F.col(f"said.`{name}`").alias(name) for name in fresh))


def of_spools(spark: SparkSession, options: Mapping[str, str]) -> DataFrame:
    """Return a stream of the messages in spools; ``options`` are those of the source."""
    from trouter_pipeline.datasource import register  # noqa: PLC0415  # where a spool is read at all

    register(spark)
    return spark.readStream.format("amqp").options(**options).load()


def of_table(
    spark: SparkSession, root: Where, name: str, at: int | datetime | None = None
) -> tuple[DataFrame, dict[str, int], dict[str, int]]:
    """Return the rows of a landed table or of one that a job made, its inputs, and its version; BadTable, NotLanded."""
    landing = Landing(root, name)
    if landing.identity() is not None:
        version = landing.version(at)
        return landed(spark, root, name, at=version), landing.batches(version), {name: version}
    table = Table(root, name, at)
    return table.read(spark), dict(table.inputs()), table.pinned()


def of_files(spark: SparkSession, path: str, form: str, *, stream: bool) -> tuple[DataFrame, dict[str, int]]:
    """Return the rows of files, and each file with a number that changes with it; BadEvents."""
    try:
        there = spark.read.format(form).load(path)
    except AnalysisException as error:
        raise BadEvents(f"{path}: {error.getMessage()}") from None
    if stream:
        return spark.readStream.format(form).schema(there.schema).load(path), {}
    return there, {name: _state_of(name) for name in there.inputFiles()}


def _state_of(name: str) -> int:
    """Return a number for size and time of a file; 0 if this machine does not see it."""
    path = Path(unquote(urlparse(name).path))
    if not path.exists():
        return 0
    state = path.stat()
    return zlib.crc32(f"{state.st_size} {state.st_mtime_ns}".encode())
