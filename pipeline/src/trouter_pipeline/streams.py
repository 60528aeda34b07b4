"""Tables that grow while a stream runs: its rows are merged into them batch by batch, and late rows are counted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pyspark.errors import PySparkException

from trouter_pipeline.checkpoints import Torn, check_whole, query_of
from trouter_pipeline.files import TableBusy
from trouter_pipeline.reasons import reason_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from trouter_pipeline.tables import Table

Value = TypeVar("Value")
#: Prefix of a stream's name among a table's inputs, before the checkpoint's name; the value is the last batch.
STREAM: Final = "stream "
#: How often a batch is merged if other writers change the table meanwhile.
_TRIES: Final = 5
#: Part of Spark's error if the Python of a source took too long to start, and how often a query is started then.
_LATE_PYTHON: Final = "worker failed to connect back"
_STARTS: Final = 4


@dataclass(frozen=True, slots=True)
class Pace:
    """The pace of a stream."""

    #: How much later than others a row may come and still count, in seconds.
    late_s: int = 120
    #: Seconds between batches; None takes what is there and ends.
    every_s: int | None = None
    #: Whether a stream that dropped a late row goes on (drop) or ends (fail).
    late: str = "fail"

    def __post_init__(self) -> None:
        if self.late not in {"drop", "fail"}:
            raise ValueError(f"late is {self.late!r}: it must be drop or fail")
        if self.late_s < 0 or (self.every_s is not None and self.every_s < 0):
            raise ValueError("how late rows may come, and how often to look, are seconds and not negative")


class LateRows(Exception):
    """Rows came later than the watermark allows, and ``Pace.late`` is fail."""


def without_streams(inputs: Mapping[str, Value]) -> dict[str, Value]:
    """Return the inputs of a table, or their changes, without those of streams."""
    return {name: value for name, value in inputs.items() if not name.startswith(STREAM)}


def add_to(
    table: Table,
    found: DataFrame,
    merged: Callable[[DataFrame], DataFrame],
    pace: Pace,
    checkpoint: Path,
    on_batch: Callable[[DataFrame], None] | None,
    finished: Callable[[int], None] = lambda _: None,
    **made_by: Any,
) -> StreamingQuery:
    """Start merging the rows of a stream into a table, by days of the column ``date``.

    ``merged`` selects among old and new rows. A batch that is repeated after a crash is known by the number that
    its commit has, and changes nothing. ``on_batch`` is called with the new rows of a batch, which ``merged`` has
    selected, once they are in the table, and again if the batch is repeated; what it raises ends the stream.
    ``finished`` is called with the number of each batch after that. ``made_by``: job, version and parameters. The
    rows stay in Spark's tasks. StreamFailed if a planned batch of the checkpoint is torn.
    """
    _check_whole(checkpoint, table)

    def add(batch: DataFrame, number: int) -> None:
        new = merged(batch).persist()  # else Spark would compute the batch, and its state, once for each use
        try:
            if days := {row["date"] for row in new.select("date").distinct().collect()}:
                merge_in_turn(new, days, number)
                if on_batch is not None:
                    on_batch(new)
            finished(number)
        finally:
            new.unpersist()

    def merge_in_turn(new: DataFrame, days: Collection[date], number: int) -> None:
        for again in reversed(range(_TRIES)):
            try:
                merge(new, days, number)
            except TableBusy:
                if not again:
                    raise
            else:
                break

    def merge(new: DataFrame, days: Collection[date], number: int) -> None:
        """Merge rows into the last version, unless it has this batch already."""
        table.refresh()
        version, before, query = table.version(), table.last_commit(), query_of(checkpoint)
        if version is not None and version.last_batch(query) >= number:
            return
        rows = new
        if before is not None:
            rows = merged(new.unionByName(table.read(new.sparkSession, days).select(*new.columns)))
        inputs = {**({} if before is None else before.inputs), f"{STREAM}{checkpoint.name}": number}
        table.commit(rows, days, inputs=inputs, batch=(query, number), **made_by)

    writer = found.writeStream.outputMode("append").queryName(table.name)
    writer = writer.option("checkpointLocation", str(checkpoint.absolute()))
    return writer.trigger(processingTime=f"{pace.every_s or 0} seconds").foreachBatch(add).start()


class StreamFailed(Exception):
    """A stream cannot go on, or Spark ended it; the text says why."""


def _check_whole(checkpoint: Path, table: Table) -> None:
    try:
        check_whole(checkpoint)
    except Torn as torn:
        version = table.version()
        if version is None or version.last_batch(query_of(checkpoint)) < torn.number:
            raise StreamFailed(
                f"{torn}. Nothing of batch {torn.number} is in {table.name}: delete the file, and run again"
            ) from None
        raise StreamFailed(
            f"{torn}. Batch {torn.number} is in {table.name}, and only the file says where it ends: restore it from a "
            "backup, or give another --checkpoint, which finds again what is in the table"
        ) from None


def run_to_end(start: Callable[[], StreamingQuery], wait: Callable[[StreamingQuery], None]) -> StreamingQuery:
    """Start a query, wait for its end or stop it with ``wait``, and return it; StreamFailed.

    Spark gives the Python of a source ten seconds to start, and no setting changes that. On a machine that is too busy
    for it the query is started again; it continues at its checkpoint.
    """
    for left in reversed(range(_STARTS)):
        query = start()
        try:
            wait(query)
        except PySparkException as error:
            reason = reason_of(error)
            if not left or _LATE_PYTHON not in reason:
                raise StreamFailed(reason) from error
        else:
            break
    return query


def watch(start: Callable[[], StreamingQuery], pace: Pace) -> Counted:
    """Start a stream, and wait until it has ended or has nothing left to do; return its counts.

    LateRows, StreamFailed.
    """
    counted = Counted()
    run_to_end(start, partial(_wait, pace=pace, counted=counted))
    if counted.late and pace.late == "fail":
        raise LateRows(
            f"{counted.late} rows came more than {pace.late_s} s after others: let more time pass (--late-by), or go "
            "on without them (--late drop)"
        )
    return counted


def _wait(query: StreamingQuery, pace: Pace, counted: Counted) -> None:
    try:
        _wait_for_end(query, pace, counted)
    except KeyboardInterrupt:
        query.stop()
        raise


def _wait_for_end(query: StreamingQuery, pace: Pace, counted: Counted) -> None:
    if pace.every_s is None:  # and not availableNow, which with some sources ends before the watermark has moved
        query.processAllAvailable()
        query.stop()
        counted.add(query)
    else:
        while not query.awaitTermination(1):
            counted.add(query)
            if counted.late and pace.late == "fail":
                query.stop()


class Counted:
    """The counts of a stream: batches, rows, and relevant rows that came too late."""

    def __init__(self) -> None:
        self.batches = 0
        self.rows = 0
        self.late = 0
        self._last = -1

    def add(self, query: StreamingQuery) -> None:
        """Count the batches that are not counted yet."""
        for done in query.recentProgress:
            if done["batchId"] > self._last and done["stateOperators"]:
                self._last = done["batchId"]
                self.batches += 1
                self.rows += done["numInputRows"]
                self.late += sum(each["numRowsDroppedByWatermark"] for each in done["stateOperators"])
