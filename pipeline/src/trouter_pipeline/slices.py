"""The work of a task: reads some messages of one spool as Arrow batches.

A task may run on any worker and more than once, and must then give the same rows. So a slice contains all that the task
needs, and no secret. Missing rows are an error; a slice never silently has fewer.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql.datasource import InputPartition

from trouter.records.disk import sync
from trouter_pipeline.arrow import ARROW_SCHEMA, Origin, batches
from trouter_pipeline.bodies import parser
from trouter_pipeline.connecting import access_of
from trouter_pipeline.flight.access import Access, is_served
from trouter_pipeline.options import BadOption, Mode, Options
from trouter_pipeline.schema import SCHEMA
from trouter_pipeline.shards import OpenSpool
from trouter_pipeline.spool import SpoolReader, SpoolReplaced

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from trouter_pipeline.flight.client import Granted


#: Bytes read at a time: few enough to stay in the processor's cache while they are decoded.
BLOCK_BYTES: Final = 1 << 18
#: The messages of a slice, and the fewest slices of a shard, if no number of slices is given.
SLICE_MESSAGES: Final = 50_000
FEWEST_SLICES: Final = 2


class Undecodable(Exception):
    """A message cannot be decoded in the mode FAILFAST; the text names it."""


class RowsMissing(Exception):
    """A slice gave another number of rows than it has."""


class Slice(InputPartition):
    """Messages ``start`` to ``end`` - 1 of the spool ``uuid`` in ``folder``, or of a server, which has ``granted``."""

    def __init__(self, folder: str, uuid: str, start: int, end: int, granted: Granted | None = None) -> None:
        super().__init__((folder, uuid, start, end))
        self.granted = granted
        self.folder = folder
        self.uuid = uuid
        self.start = start
        self.end = end


def cut(shard: OpenSpool, start: int, end: int, parts: int) -> Iterator[Slice]:
    """Yield at most ``parts`` slices with about the same number of messages, none of them empty.

    With ``parts`` 0 a slice has at most ``SLICE_MESSAGES``, and there are ``FEWEST_SLICES`` at least.
    """
    count = end - start
    parts = min(parts or max(FEWEST_SLICES, -(-count // SLICE_MESSAGES)), count)
    for part in range(parts):
        first, last = start + count * part // parts, start + count * (part + 1) // parts
        granted = None if isinstance(shard, SpoolReader) else shard.granted(first, last)
        yield Slice(str(shard.folder), shard.uuid, first, last, granted)


@contextmanager
def _opened(part: Slice, access: Access) -> Iterator[tuple[Origin, Iterator[bytes]]]:
    """Yield what rows say of their spool, and its blocks; SpoolError, OSError."""
    if part.granted is not None:
        from trouter_pipeline.flight.client import read_granted  # noqa: PLC0415  # Flight, for those who use it

        blocks = read_granted(part.folder, part.granted, part.start, part.end, access)
        yield Origin(part.uuid, part.granted.shard, part.granted.address), blocks
        return
    with closing(SpoolReader(part.folder)) as spool:
        if spool.uuid != part.uuid:
            raise SpoolReplaced(f"{part.folder} is spool {spool.uuid}, and the slice is of {part.uuid}")
        blocks = spool.blocks(part.start, part.end, block_bytes=BLOCK_BYTES)
        yield Origin(spool.uuid, spool.shard, spool.address), blocks


class SliceReader:
    """A reader of slices; Spark pickles it for the workers."""

    def __init__(self, options: Options, schema: StructType) -> None:
        """Verify the schema; BadOption, BadSchema if it is unusable."""
        #: Workers have no token: what they read is granted.
        self._access = replace(access_of(options), token=b"") if any(map(is_served, options.spool)) else Access()
        self._mode = options.mode
        self._dead_letters = options.dead_letter_path
        self._max_message = options.max_message_bytes
        self._keeps_messages = options.keep_messages
        self._schema = schema
        self._body_format = options.body_format
        self._avro_schema_file = options.avro_schema_file
        if not self._body_format:
            _check_columns(schema)
        self._make_parser()

    def _make_parser(self) -> Any:
        return parser(
            self._schema,
            self._body_format,
            avro_schema_file=self._avro_schema_file,
            failfast=self._mode is Mode.FAILFAST,
            keeps_messages=self._keeps_messages,
        )

    def read(self, part: Slice) -> Iterator[pa.RecordBatch]:
        """Yield every row of ``part``; SpoolError, FrameFault, Undecodable, RowsMissing, BadBody, OSError."""
        parse = self._make_parser()
        names = None if parse or self._schema == SCHEMA else self._schema.names
        letters = DeadLetters(Path(self._dead_letters), part) if self._mode is Mode.DEADLETTER else None
        count = 0
        kept = self._keeps_messages or parse is not None  # a body that does not fit is kept with its message
        try:
            with _opened(part, self._access) as (origin, blocks):
                found = batches(blocks, origin, part.start, part.end, self._max_message, keeps_messages=kept)
                for batch, rows in found:
                    count += batch.num_rows
                    if rows.refused:
                        if self._mode is Mode.FAILFAST:
                            raise Undecodable(f"spool {part.folder}: {rows.first_error}")
                        if letters:
                            batch = letters.take(batch)
                    if batch.num_rows:
                        yield parse(batch) if parse else batch.select(names) if names else batch
            if count != part.end - part.start:
                raise RowsMissing(f"{part.folder}: messages {part.start} to {part.end - 1} gave {count} rows")
            if letters:
                letters.finish()
        finally:
            if letters:
                letters.close()


def _check_columns(schema: StructType) -> None:
    ours = {field.name: field.dataType for field in SCHEMA}
    for field in schema:
        if field.name not in ours:
            raise BadOption(f"the schema has a column {field.name!r} that is not the source's; is bodyFormat missing?")
        if field.dataType != ours[field.name]:
            kind, own = field.dataType.simpleString(), ours[field.name].simpleString()
            raise BadOption(f"the schema has {field.name} as {kind}, and the source has {own}")


class DeadLetters:
    """The invalid messages of one slice, in a Parquet file that appears as a whole.

    Its name identifies the slice, so a repeated task replaces the file.
    """

    def __init__(self, folder: Path, part: Slice) -> None:
        self._path = folder / f"{part.uuid}-{part.start:016}-{part.end:016}.parquet"
        self._part = folder / f".{self._path.name}.{os.getpid()}"
        self._writer: Any = None

    def take(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of valid messages, and write the others."""
        good = pc.is_null(batch.column("error"))
        if self._writer is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._writer = pq.ParquetWriter(self._part, ARROW_SCHEMA, compression="zstd")
        self._writer.write_batch(batch.filter(pc.invert(good)))
        return batch.filter(good)

    def finish(self) -> None:
        """Make the complete file durable and visible."""
        if self._writer is None:
            return
        self._writer.close()
        self._writer = None
        sync(self._part)
        self._part.replace(self._path)
        sync(self._path.parent)

    def close(self) -> None:
        """Delete an unfinished file."""
        if self._writer is not None:
            self._writer.close()
            with suppress(FileNotFoundError):
                self._part.unlink()
