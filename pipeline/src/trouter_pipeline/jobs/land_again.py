"""Landing dead letters again: those that are understood now become rows of their table.

A table keeps its dead letters with their whole messages. They are worth another try after what was wrong with the
reader is right: the file of the Avro schema, or a release of trouter that decodes more. A dead letter that has become a
row stays a dead letter too, and is known by its spool and sequence: so another run, also of two at once or after a
crash, lands none twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812  # its customary name

from trouter_pipeline.arrow import Origin, batches
from trouter_pipeline.bodies import DEAD_LETTER, parser
from trouter_pipeline.jobs.land import parted, wanted
from trouter_pipeline.landing import DEAD, Landing, NotLanded, landed
from trouter_pipeline.spool.frames import FrameWriter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from trouter_pipeline.jobs.land import Parameters
    from trouter_pipeline.places import Where

#: What identifies a message, and where it came from.
_ORIGIN = ("spool_id", "seq", "ingest_time", "address")


@dataclass(frozen=True, slots=True)
class Summary:
    """How many dead letters have become rows, by address, and how many are still none."""

    rows: Mapping[str, int]
    dead: int


def run(
    spark: SparkSession, root: Where, parameters: Parameters, progress: Callable[[str], None] = lambda _: None
) -> Summary:
    """Land the dead letters of a table again. NotLanded, BadTable, TableBusy, OSError."""
    landing = Landing(root, parameters.name, merge_schema=parameters.merge_schema)
    with landing.held():
        letters = _left(spark, root, landing)
        read = _Reader(wanted(parameters), parameters.body_format, parameters.avro_schema_file)
        rows = parted(letters.mapInArrow(read, read.schema)).cache()
        try:
            progress(f"landing dead letters of {landing.folder} again")
            dead = rows.where(DEAD).count()
            counts = landing.land_again(rows.where(~F.col(DEAD)))
        finally:
            rows.unpersist()
    return Summary(counts, dead)


def _left(spark: SparkSession, root: Where, landing: Landing) -> DataFrame:
    """Return the messages of the dead letters that are no rows yet, with their origin; NotLanded."""
    name = landing.name
    known = landing.identity()
    if known is None:
        raise NotLanded(f"{landing.folder}: no message was landed here yet")
    if "merge" in known.parameters:
        raise NotLanded(
            f"{landing.folder} was landed with --merge, which orders changes by when they came: send the messages of "
            "its dead letters again, which are in dead_letter.message"
        )
    letters = landed(spark, root, name, dead=True)
    message, code = F.col("raw"), F.col("message_format")
    if DEAD_LETTER in letters.columns:
        message, code = F.col(f"{DEAD_LETTER}.message"), F.col(f"{DEAD_LETTER}.message_format")
    rows = landed(spark, root, name).select("spool_id", "seq")
    messages = letters.select(*_ORIGIN, message.alias("message"), code.alias("message_format"))
    return messages.join(rows, ["spool_id", "seq"], "left_anti")


@dataclass(frozen=True)
class _Reader:
    """What a task does: read messages as the source does."""

    schema: StructType
    body_format: str
    avro_schema_file: str

    def __call__(self, found: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of messages."""
        parse = parser(self.schema, self.body_format, avro_schema_file=self.avro_schema_file)
        for batch in found:
            for letter in batch.to_pylist():
                for row in _decoded(letter):
                    yield parse(row) if parse is not None else row.select(self.schema.names)


def _decoded(letter: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
    """Yield the row of one message, as it is in a spool."""
    message, number = letter["message"], letter["seq"]
    frames = FrameWriter(number)
    frames.begin(letter["message_format"], b"", int(letter["ingest_time"].timestamp() * 1e6))
    frames.extend(message, 0, len(message))
    frames.finish(presettled=False)
    origin = Origin(letter["spool_id"], 0, letter["address"])
    for row, _ in batches([bytes(frames.take())], origin, number, number + 1, len(message), keeps_messages=True):
        yield row
