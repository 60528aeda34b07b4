"""The streaming source: ``spark.readStream.format("amqp")``.

Spark makes this object in two processes: one lives as long as the query and calls for offsets and slices on its main
thread, the other calls only ``read``. So nothing is opened before the first call, and an embedded receiver runs in a
thread of the first process between calls. If that process dies, the next one finds spool and checkpoint unchanged:
``commit`` of a batch only allows deletion of its messages.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Final, cast

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from trouter_pipeline.connecting import access_of
from trouter_pipeline.embedded import ReceiverThread, open_spool, receiver_settings, wait_for_quiet
from trouter_pipeline.options import Options, Receiver
from trouter_pipeline.shards import Offset, Shards
from trouter_pipeline.slices import Slice, SliceReader, cut

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from trouter_pipeline.spool import Spool

log = logging.getLogger(__name__)

#: Seconds between looks for more shards.
_LOOK_S: Final = 5.0


class _Source(DataSourceStreamReader):
    """The common part for all versions of Spark."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options: Options | None = options
        self._slices = SliceReader(options, schema)
        self._shards: Shards | None = None
        self._spool: Spool | None = None
        self._receiver: ReceiverThread | None = None
        self._looked_at = 0.0
        #: The end of `availableNow`.
        self._target: Offset | None = None
        #: The end of the last planned batch; None before the first.
        self._position: Offset | None = None

    def __getstate__(self) -> dict[str, object]:
        return {"_options": None, "_slices": self._slices}

    def _up(self) -> Shards:
        """Return the shards, opened at the first call together with the receiver; raises the receiver's failure."""
        options = cast("Options", self._options)
        if self._shards is None:
            if options.receiver is Receiver.EMBEDDED:
                settings = receiver_settings(options)
                self._spool = open_spool(options)
                self._receiver = ReceiverThread(self._spool, settings)
                self._end_at_sigterm()
            self._shards = Shards(
                options.spool,
                fail_on_loss=options.fail_on_data_loss,
                cursor=options.cursor,
                access=access_of(options),
            )
            self._looked_at = time.monotonic()
        if self._receiver is not None:
            self._receiver.check()
        elif time.monotonic() - self._looked_at > _LOOK_S:
            self._looked_at = time.monotonic()
            self._shards.look()
        return self._shards

    def _end_at_sigterm(self) -> None:
        """Settle durable messages at SIGTERM, with which Spark ends this process without a call before."""
        if threading.current_thread() is not threading.main_thread():
            return

        def end(number: int, frame: FrameType | None) -> None:
            self.stop()
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)

        signal.signal(signal.SIGTERM, end)

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name, here and below
        return self._up().first()

    def _latest(self, start: Mapping[str, int], limit: int | None) -> Offset:
        """Return the end of the next batch, without access to the disk, because Spark calls every few milliseconds."""
        shards = self._up()
        target = shards.durable()
        if self._target is not None:
            target = {uuid: min(end, target.get(uuid, end)) for uuid, end in self._target.items()}
        return shards.latest(shards.check(start), target, limit)

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Return the slices of a batch; after a restart those of the batch that was planned and not committed."""
        shards = self._up()
        self._position = end
        parallel = cast("Options", self._options).read_parallelism
        return [part for shard, since, to in shards.ranges(start, end) for part in cut(shard, since, to, parallel)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._slices.read(cast("Slice", partition))

    def commit(self, end: Offset) -> None:
        self._up().consumed(end)

    def stop(self) -> None:
        """Close everything; a process that dies without this call loses nothing."""
        if self._receiver is not None:
            self._receiver.stop()
            self._receiver = None
        if self._spool is not None:
            self._spool.close()
            self._spool = None
        if self._shards is not None:
            self._shards.close()
            self._shards = None

    def _limit(self) -> int | None:
        return cast("Options", self._options).max_rows_per_batch or None

    def _settle_on_target(self) -> None:
        """Fix the end of `availableNow`: what is durable now, with a receiver after `minRows` or a quiet time."""
        shards = self._up()
        if self._receiver is not None and self._spool is not None:
            options = cast("Options", self._options)
            enough = self._spool.consumed + options.min_rows if options.min_rows else 1 << 62
            wait_for_quiet(self._receiver, self._spool, enough, options)
        self._target = shards.durable()


class SourceOf40(_Source):
    """For Spark 4.0 and 4.1, which call only for the latest offset: the limit counts from the last planned batch."""

    def latestOffset(self) -> Offset:  # type: ignore[override]  # noqa: N802
        if self._position is None:
            self._position = self._up().first()
        return self._latest(self._position, self._limit())


try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
except ImportError:
    AmqpStreamReader: type[_Source] = SourceOf40
else:

    class SourceOf42(_Source, SupportsTriggerAvailableNow):
        """For Spark 4.2 and later, which pass the start and the limit of a batch."""

        def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
            return self._latest(start, limit.max_rows if isinstance(limit, ReadMaxRows) else None)

        def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
            rows = self._limit()
            return ReadMaxRows(rows) if rows else ReadAllAvailable()

        def reportLatestOffset(self) -> Offset:  # noqa: N802
            return self._up().durable()

        def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
            self._settle_on_target()

    AmqpStreamReader = SourceOf42
