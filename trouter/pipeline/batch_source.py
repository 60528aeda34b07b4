"""``spark.read.format("amqp")``.

With `receiver=none` it reads all that the spools keep, and changes nothing. With a receiver of its own it receives when
the query is planned, once for each DataFrame, until it has `maxMessages` or none came for `idleTimeoutMs`; the messages
are accepted when they are in the spool, and the DataFrame, however often it is asked, has just these. The next ``load``
has the next ones, and what the one before had counts as consumed then. So a job that failed finds its messages again
with `receiver=none`, until the next ``load`` with a receiver.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from pyspark.sql.datasource import DataSourceReader, InputPartition

from trouter.pipeline.embedded import open_spool, receive_some
from trouter.pipeline.options import Options, Receiver
from trouter.pipeline.shards import open_shards
from trouter.pipeline.slices import Slice, SliceReader, cut

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

#: In the folder of the spool: up to where messages were handed out.
_HANDED_OUT: Final = "batch.json"


class AmqpReader(DataSourceReader):
    """Plans slices of spools; ``read`` of it, and nothing that is secret, goes to the workers."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options: Options | None = options
        self._slices = SliceReader(options, schema)

    def __getstate__(self) -> dict[str, object]:
        return {"_options": None, "_slices": self._slices}

    def partitions(self) -> Sequence[InputPartition]:
        """The slices of the spools; receives before, if a receiver is embedded."""
        options = cast("Options", self._options)
        if options.receiver is Receiver.EMBEDDED:
            return _receive(options)
        return [
            part
            for shard in open_shards(options.spool)
            for part in cut(str(shard.folder), shard.uuid, shard.first, shard.durable(), options.read_parallelism)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._slices.read(cast("Slice", partition))


def _receive(options: Options) -> list[InputPartition]:
    """Receive what this DataFrame is to have, and cut it into slices."""
    with open_spool(options) as spool:
        (shard,) = open_shards(options.spool)
        mark = Path(options.spool[0]) / _HANDED_OUT
        start = max(_handed_out(mark, spool.uuid), shard.first)
        shard.consumed(start)
        receive_some(spool, options, start)
        end = min(spool.durable, start + options.max_messages)
        _hand_out(mark, spool.uuid, end)
        return list(cut(str(shard.folder), spool.uuid, start, end, options.read_parallelism))


def _handed_out(mark: Path, uuid: str) -> int:
    try:
        said = json.loads(mark.read_bytes())
    except FileNotFoundError:
        return 0
    return int(said["end"]) if said["spool"] == uuid else 0


def _hand_out(mark: Path, uuid: str, end: int) -> None:
    part = mark.with_name(f".{mark.name}")
    with part.open("w", encoding="ascii") as file:
        json.dump({"spool": uuid, "end": end}, file)
        file.flush()
        os.fsync(file.fileno())
    part.replace(mark)
