"""Forwarding to Kafka on Spark: a stream over spools, of which each batch sends a range of each spool in its own task.

Spark plans the ranges and keeps them in its checkpoint. A batch that comes again after a crash, or a task that Spark
runs again, finds in the topic what was sent. A spool has one task in a batch, and so one writer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from trouter_pipeline.checkpoints import Torn, check_whole, planned_of, settled
from trouter_pipeline.consuming import open_source, options_for
from trouter_pipeline.datasource import register
from trouter_pipeline.kafka.failures import NotForwarded
from trouter_pipeline.kafka.local import Summary, held, partitions_of
from trouter_pipeline.kafka.records import COLUMNS, records_of
from trouter_pipeline.kafka.settings import Settings
from trouter_pipeline.kafka.writer import Counts, Writer
from trouter_pipeline.lasts import note, require_same
from trouter_pipeline.shards import let_go
from trouter_pipeline.spool.cursors import DEFAULT
from trouter_pipeline.streams import StreamFailed, run_to_end

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

#: Spark runs a slow task a second time beside the first with this: two writers of a spool.
SPECULATION: Final = "spark.speculation"
_COUNTS: Final = "source string, sent bigint, known bigint"
_LOOK_S: Final = 1


@dataclass(frozen=True)
class Sender:
    """What a task does: send the rows of a spool. ``partitions`` has the partition of each source."""

    settings: Settings
    partitions: Mapping[str, int]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the counts of each spool; NotForwarded."""
        writer, spool, source = None, "", ""
        try:
            for batch in batches:
                for rows in _by_spool(batch.to_pylist()):
                    if rows[0]["spool_id"] != spool:
                        if writer is not None:
                            yield _counted(source, writer.finish())
                            writer.close()
                        spool, source = rows[0]["spool_id"], rows[0]["address"]
                        writer = Writer(self.settings, spool, rows[0]["seq"], self.partitions.get(source))
                    assert writer is not None  # noqa: S101 - made for the first row
                    writer.send(records_of(rows, self.settings))
            if writer is not None:
                yield _counted(source, writer.finish())
        finally:
            if writer is not None:
                writer.close()


def _by_spool(rows: Sequence[Mapping[str, Any]]) -> Iterator[Sequence[Mapping[str, Any]]]:
    """Yield the rows of each spool, which are together."""
    first = 0
    for at in range(1, len(rows) + 1):
        if at == len(rows) or rows[at]["spool_id"] != rows[first]["spool_id"]:
            yield rows[first:at]
            first = at


def _counted(source: str, counts: Counts) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"source": source, "sent": counts.sent, "known": counts.known}])


def run(
    spark: SparkSession,
    settings: Settings,
    folders: Sequence[str],
    given: Mapping[str, int],
    checkpoint: Path,
    *,
    cursor: str = DEFAULT,
    source: Mapping[str, str] | None = None,
    every_s: int | None = None,
    max_rows: int = 10_000,
    wants_to_end: Callable[[], bool] = bool,
    progress: Callable[[str], None] = lambda _: None,
) -> Summary:
    """Forward all that is there, or with ``every_s`` until ``wants_to_end``.

    ``source`` are options of the source for servers of spools. NotForwarded, BadOption, SpoolError, OSError.
    """
    if spark.sparkContext.getConf().get(SPECULATION, "false") == "true":
        raise NotForwarded(f"{SPECULATION} gives a spool two writers at once: leave it off")
    check_planned(checkpoint)
    summary = Summary()
    with ExitStack() as stack:
        options = options_for(folders, cursor, source or {})
        shards, access = stack.enter_context(open_source(options))
        stack.enter_context(held(shards))
        require_same(checkpoint, shards, access)
        sender = Sender(settings, partitions_of(settings, [shard.address for shard in shards], given))

        def send(batch: DataFrame, number: int) -> None:
            for row in batch.select(*COLUMNS).mapInArrow(sender, _COUNTS).collect():
                summary.add(row["source"], Counts(row["sent"], row["known"]))
            note(checkpoint, shards, planned_of(checkpoint, number), access)

        progress(f"forwarding to {settings.topic}")
        register(spark)
        limits = {"readParallelism": "1", "maxRowsPerBatch": str(max_rows)}
        rows = spark.readStream.format("amqp").options(**options, **limits).load()
        every: dict[str, Any] = {"availableNow": True}
        if every_s is not None:
            every = {"processingTime": f"{every_s} seconds"}
        writer = rows.writeStream.queryName("forward").option("checkpointLocation", str(checkpoint.absolute()))
        try:
            run_to_end(writer.trigger(**every).foreachBatch(send).start, partial(_wait, wants_to_end=wants_to_end))
        except StreamFailed as error:
            raise NotForwarded(str(error)) from None
        summary.left = let_go(shards, settled(checkpoint))
    return summary


def check_planned(checkpoint: Path) -> None:
    """Raise NotForwarded if a planned batch of a checkpoint is torn, as after a loss of power."""
    try:
        check_whole(checkpoint)
    except Torn as torn:
        raise NotForwarded(
            f"{torn}. Delete the file, and run again: what was sent of batch {torn.number} is found in the topic"
        ) from None


def _wait(query: StreamingQuery, wants_to_end: Callable[[], bool]) -> None:
    while not query.awaitTermination(_LOOK_S):
        if wants_to_end():
            query.stop()
