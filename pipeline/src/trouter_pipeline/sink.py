"""The sink: ``write.format("amqp")`` and ``writeStream``, each row a message, settled before the batch is done.

A task sends its partition and returns a tally. ``commit`` raises refusals and lasting failures, because Spark does not
retry it: a task that raised would send everything three times more. A row of a repeated task or batch has the same
message id.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.types import Row, StructType

from trouter_pipeline.connecting import peers
from trouter_pipeline.messages import Encoder, RowPosition, Unsendable, check_columns
from trouter_pipeline.options import BadOption, OnReject, Options
from trouter_pipeline.sending import Tally, Terms, send_rows
from trouter_pipeline.shapes import arrow_schema

log = logging.getLogger(__name__)

#: Rows and bytes that are encoded at a time.
CHUNK_ROWS: Final = 1024
CHUNK_BYTES: Final = 4 << 20
#: Number of reasons in the exception for Spark; the log has all.
MAX_REASONS: Final = 5
#: Spark's properties of a task about its stream.
_QUERY: Final = "sql.streaming.queryId"
_EPOCH: Final = "streaming.sql.batchId"

#: Spark passes Arrow batches to stream writers since 4.1, rows before.
StreamWriter: Final[Any] = getattr(datasource, "DataSourceStreamArrowWriter", DataSourceStreamWriter)


class NotAccepted(Exception):
    """Rows were refused, or not all could be sent; the text says how many and why."""


@dataclass(slots=True)
class Sent(WriterCommitMessage):
    """The result of one partition."""

    partition: int
    tally: Tally


class _Sink:
    """The common part of both writers; Spark pickles it for the workers, so it holds plain values."""

    def __init__(self, options: Options, schema: StructType) -> None:
        check_columns(((each.name, each.dataType.simpleString()) for each in schema), options.address)
        peers(options)  # raises BadOption before anything is sent
        self.options = options
        self.schema = schema
        self.query = options.id_prefix or str(uuid.uuid4())

    def send(self, batches: Iterable[pa.RecordBatch]) -> Sent:
        """Send one partition, in a task of Spark, and return its result."""
        context = TaskContext.get()
        partition = context.partitionId() if context is not None else 0
        local = (lambda _: None) if context is None else context.getLocalProperty
        query = self.options.id_prefix or local(_QUERY) or self.query
        place = RowPosition(query, int(local(_EPOCH) or 0), partition)
        options = self.options
        terms = Terms(
            peers(options),
            options.address,
            options.window,
            options.settle_timeout_s,
            options.dead_letter_address if options.on_reject is OnReject.DEADLETTER else "",
        )
        return Sent(partition, send_rows(terms, chunks(batches, Encoder(place, anonymous=not options.address))))

    def report(self, what: str, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Log the results of ``what``; NotAccepted if a row was refused or not sent."""
        sent = sorted((each for each in messages if isinstance(each, Sent)), key=lambda each: each.partition)
        tally = total(sent)
        where = self.options.address or "the addresses in `to`"
        if not (tally.failure or tally.refused):
            log.info("%s to %s: %s", what, where, tally)
            return
        reasons = [f"partition {each.partition}, {reason}" for each in sent for reason in each.tally.reasons]
        log.error("%s to %s failed: %s; %s", what, where, tally, "; ".join([tally.failure, *reasons]).strip("; "))
        shown = "; ".join([*([tally.failure] if tally.failure else []), *reasons[:MAX_REASONS]])
        more = f"; and {tally.refused - MAX_REASONS} more" if tally.refused > MAX_REASONS else ""
        raise NotAccepted(f"{what} to {where}: {tally}: {shown}{more}")

    def count(self, what: str, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Log how much of ``what`` was sent before it was aborted."""
        sent = [each for each in messages if isinstance(each, Sent)]
        log.warning(
            "%s to %s was aborted after %d of %d partitions; messages already sent are not taken back: %s",
            what,
            self.options.address or "the addresses in `to`",
            len(sent),
            len(messages),
            total(sent),
        )


class AmqpWriter(DataSourceArrowWriter):
    """One batch of rows, each a message."""

    def __init__(self, options: Options, schema: StructType, overwrite: bool) -> None:
        if overwrite:
            raise BadOption('what was sent cannot be overwritten: write with mode("append")')
        self._sink = _Sink(options, schema)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Sent:
        return self._sink.send(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self._sink.report("the batch", messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self._sink.count("the batch", messages)


class AmqpStreamWriter(StreamWriter):  # type: ignore[misc]  # the newest that there is
    """A stream of rows, each a message."""

    def __init__(self, options: Options, schema: StructType, overwrite: bool) -> None:
        if overwrite:
            raise BadOption('what was sent cannot be overwritten: write with outputMode("append") or "update"')
        self._sink = _Sink(options, schema)

    def write(self, iterator: Iterator[pa.RecordBatch | Row]) -> Sent:
        return self._sink.send(as_batches(iterator, self._sink.schema))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        self._sink.report(f"micro-batch {batchId}", messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        self._sink.count(f"micro-batch {batchId}", messages)


def total(sent: Iterable[Sent]) -> Tally:
    """Return the sum of the partitions' tallies."""
    tally = Tally()
    for each in sent:
        tally.add(each.tally)
    return tally


def as_batches(rows: Iterator[pa.RecordBatch | Row], schema: StructType) -> Iterator[pa.RecordBatch]:
    """Yield Spark's rows as Arrow batches."""
    waiting: list[dict[str, object]] = []
    for each in rows:
        if isinstance(each, pa.RecordBatch):
            yield each
            continue
        waiting.append(each.asDict(recursive=True))
        if len(waiting) == CHUNK_ROWS:
            yield pa.RecordBatch.from_pylist(waiting, schema=arrow_schema(schema))
            waiting = []
    if waiting:
        yield pa.RecordBatch.from_pylist(waiting, schema=arrow_schema(schema))


def chunks(batches: Iterable[pa.RecordBatch], encoder: Encoder) -> Iterator[list[bytes | Unsendable]]:
    """Yield the messages of ``batches`` in small chunks, so that large bodies are not in memory twice."""
    for batch in batches:
        rows = max(1, min(CHUNK_ROWS, CHUNK_BYTES * batch.num_rows // max(1, batch.nbytes)))
        for start in range(0, batch.num_rows, rows):
            yield encoder.encode(batch.slice(start, rows))
