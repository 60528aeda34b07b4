"""The batch source: ``spark.read.format("amqp")``.

With `receiver=none` it reads everything in the spools and changes nothing. With its own receiver it receives when the
query is first planned, until it has `maxMessages` or none came for `idleTimeoutMs`. Messages are accepted once they are
in the spool, and the DataFrame always has just these, although Spark 4.0 plans each action anew. The next ``load`` gets
the next messages and consumes those of the one before. So a failed job finds its messages again with `receiver=none`,
until the next ``load`` with a receiver.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import msgspec
from pyspark.sql.datasource import DataSourceReader, InputPartition

from trouter_pipeline.connecting import access_of
from trouter_pipeline.embedded import open_spool, receive_some
from trouter_pipeline.files import replace
from trouter_pipeline.options import Options, Receiver
from trouter_pipeline.shards import OpenSpool, open_shards
from trouter_pipeline.slices import Slice, SliceReader, cut
from trouter_pipeline.spool import SpoolCorrupt
from trouter_pipeline.spool.cursors import DEFAULT

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

#: The file in a spool's folder that says which messages were handed out.
_HANDED_OUT: Final = "batch.json"
#: Number of loads that are remembered, so that one that is planned again gets the same messages.
_MAX_LOADS: Final = 256


class LoadedAnew(Exception):
    """A DataFrame is read again although a later ``load`` has consumed its messages."""


class AmqpReader(DataSourceReader):
    """Plans slices of spools; only its slice reader goes to the workers, and no secret."""

    def __init__(self, options: Options, schema: StructType, load: str = "") -> None:
        self._options: Options | None = options
        self._load = load
        self._slices = SliceReader(options, schema)

    def __getstate__(self) -> dict[str, object]:
        return {"_options": None, "_load": "", "_slices": self._slices}

    def partitions(self) -> Sequence[InputPartition]:
        """Return the slices of the spools; an embedded receiver receives first."""
        options = cast("Options", self._options)
        if options.receiver is Receiver.EMBEDDED:
            return _receive(options, self._load)
        return [
            part
            for shard in open_shards(options.spool, options.cursor, access_of(options))
            for part in cut(shard, _start(shard), shard.durable(), options.read_parallelism)
        ]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        if partition is None:  # Spark passes None if there are no partitions
            return iter(())
        return self._slices.read(cast("Slice", partition))


def _start(shard: OpenSpool) -> int:
    """Return the first message to read: the oldest, or where a named cursor is."""
    return shard.first if shard.cursor == DEFAULT else shard.begin


class _HandedOut(msgspec.Struct):
    """The messages of the last load of a spool, and the ids of its loads."""

    spool: str
    start: int = 0
    end: int = 0
    loads: list[str] = []


def _receive(options: Options, load: str) -> list[InputPartition]:
    """Receive the messages of this load unless it has some, and return their slices; LoadedAnew."""
    with open_spool(options) as spool:
        (shard,) = open_shards(options.spool)
        mark = Path(options.spool[0]) / _HANDED_OUT
        out = _handed_out(mark, spool.uuid)
        if not load or load not in out.loads:
            start = max(out.end, shard.first)
            shard.consumed(start)
            receive_some(spool, options, start)
            end = min(spool.durable, start + options.max_messages)
            out = _HandedOut(spool.uuid, start, end, [*out.loads, load][-_MAX_LOADS:])
            replace(mark, msgspec.json.encode(out))
        elif load != out.loads[-1]:
            raise LoadedAnew("what this DataFrame had is consumed, for a later one was loaded: cache it before that")
        return list(cut(shard, out.start, out.end, options.read_parallelism))


def _handed_out(mark: Path, uuid: str) -> _HandedOut:
    """Return the messages of this spool that were handed out; SpoolCorrupt, OSError."""
    try:
        stored = msgspec.json.decode(mark.read_bytes(), type=_HandedOut)
    except FileNotFoundError:
        return _HandedOut(uuid)
    except ValueError:
        why = "it has no record of messages handed out; delete it, and all messages of the spool come again"
        raise SpoolCorrupt(mark, 0, why) from None
    return stored if stored.spool == uuid else _HandedOut(uuid)
