"""Landing: messages from spools into tables, partitioned by address.

Each message that a spool accepted is one row: of the table, or of the dead letters if it is invalid or its body does
not fit the schema. With a `Merge` each is a change of a row, and the table has the last state of the rows. From the
spool to the table delivery is exactly once, also after crashes. From a sender to the spool it is at least once;
``deduplicate_within`` leaves out repetitions by message-id (see `repetitions`). A row without a message-id is kept.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812  # its customary name
from pyspark.sql.types import StructField, StructType

from trouter_pipeline.bodies import DEAD_LETTER, DEAD_LETTER_TYPE
from trouter_pipeline.changes import (
    DEBEZIUM,
    OF_LETTERS,
    OWN,
    Merge,
    changes_of,
    debezium_body,
    needed,
    opened,
)
from trouter_pipeline.checkpoints import Torn, is_begun, planned_of, position_of, query_of
from trouter_pipeline.consuming import let_go_of, note_batch, open_source, options_for, require_same_spools
from trouter_pipeline.datasource import register
from trouter_pipeline.landing import DEAD, Landing, NotLanded, Part, columns_of_rows, landed
from trouter_pipeline.merging import Merging
from trouter_pipeline.places import Place, Where
from trouter_pipeline.reasons import reason_of
from trouter_pipeline.repetitions import without_repetitions
from trouter_pipeline.schema import SCHEMA
from trouter_pipeline.spool.cursors import DEFAULT
from trouter_pipeline.streams import StreamFailed, run_to_end

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

#: Columns beside the fields of a body.
ENVELOPE: Final = ("spool_id", "seq", "ingest_time", "address", "message_id", "message_id_type")
#: The column of the day of arrival.
DAY: Final = "date"
#: Seconds between checks whether the job should end.
_LOOK_S: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """The parameters of the job. ``source`` has further options of the source."""

    spools: Sequence[str]
    cursor: str = DEFAULT
    name: str = "landed"
    #: The folder of Spark's checkpoint; by default below the root.
    checkpoint: Path | None = None
    #: Seconds between batches; None lands what is there and ends.
    every_s: int | None = None
    #: Columns of the body in Spark's spelling; "" keeps messages as they are.
    schema: str = ""
    body_format: str = ""
    avro_schema_file: str = ""
    #: The number of messages of a spool for which a message-id is remembered; 0 for not at all.
    deduplicate_within: int = 0
    source: Mapping[str, str] = field(default_factory=dict)
    #: How messages are merged as changes of rows; None for a row for each message.
    merge: Merge | None = None
    #: Whether columns that the tables lack are added, and rows may lack some of theirs.
    merge_schema: bool = False


@dataclass(slots=True)
class Summary:
    """The rows landed since the start, by address."""

    batches: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    dead: Counter[str] = field(default_factory=Counter)
    duplicates: int = 0
    #: The messages of the spools that are not landed yet: for --every the last, else those that came meanwhile.
    left: int = 0
    #: The run was ended before it had landed what was there when it began.
    interrupted: bool = False

    def add(self, counts: Mapping[Part, int]) -> None:
        """Add the counts of a batch."""
        self.batches += bool(counts)
        for part, rows in counts.items():
            (self.dead if part.dead else self.rows)[part.address] += rows


# --- functions of frames


def wanted(parameters: Parameters) -> StructType:
    """Return the columns for the source: all of the message, or some of them and those of the body; NotLanded."""
    merge = parameters.merge
    if not parameters.schema:
        return SCHEMA
    fields = fields_of(parameters.schema)
    if own := [name for name in fields.names if name in ({DAY} if merge is None else OWN)]:
        cure = "make `body` a struct of its fields, or leave it out" if merge is None else "leave it out"
        raise NotLanded(f"--schema: the table has a column {own[0]} of its own, so that it cannot be a field: {cure}")
    needs = dict.fromkeys([*ENVELOPE, *(() if merge is None else needed(merge))])
    _require_distinct([*fields.names, *(name for name in needs if name not in fields.names)])
    if merge is not None and parameters.body_format == DEBEZIUM:
        fields = StructType([StructField("body", debezium_body(fields, merge))])
    mine = [SCHEMA[name] for name in needs if name not in fields.names]
    return StructType([*mine, *fields, StructField(DEAD_LETTER, DEAD_LETTER_TYPE)])


def _require_distinct(names: Sequence[str]) -> None:
    """Raise NotLanded for columns of a table whose names are one, or differ only in case."""
    alike: dict[str, list[str]] = {}
    for name in names:
        alike.setdefault(name.lower(), []).append(name)
    if same := [" and ".join(each) for each in alike.values() if len(each) > 1]:
        raise NotLanded(
            f"--schema: the table would have the columns {', '.join(same)}, whose names differ at most in case: make "
            "`body` a struct of the fields, or leave one out"
        )


def fields_of(schema: str) -> StructType:
    """Return the fields that a schema in Spark's spelling names; NotLanded."""
    try:
        fields = StructType.fromDDL(schema)
    except PySparkException as error:
        raise NotLanded(f"--schema {schema[:100]!r} is not a list of columns: {reason_of(error)}") from None
    if not isinstance(fields, StructType):  # a lone type, such as `bigint`
        raise NotLanded(f"--schema {schema[:100]!r} is not a list of columns: write `name type, name type`")
    return fields


def parted(rows: DataFrame) -> DataFrame:
    """Return the rows with their day of arrival, and whether they are dead letters."""
    dead = F.col(DEAD_LETTER if DEAD_LETTER in rows.columns else "error").isNotNull()
    return rows.withColumn(DAY, F.to_date("ingest_time")).withColumn(DEAD, dead)


# --- the job


def run(
    spark: SparkSession,
    root: Where,
    parameters: Parameters,
    progress: Callable[[str], None] = lambda _: None,
    wants_to_end: Callable[[], bool] = bool,
) -> Summary:
    """Land all that is there, or with ``every_s`` until ``wants_to_end``.

    NotLanded, SpoolError, BadOption, BadTable, TableBusy, OSError.
    """
    checkpoint = parameters.checkpoint or _checkpoint_in(root, parameters.name)
    summary = Summary()
    merge = parameters.merge
    wider = {"merge_schema": parameters.merge_schema}
    landing = (
        Landing(root, parameters.name, **wider) if merge is None else Merging(root, parameters.name, merge, **wider)
    )
    with landing.held():
        check_writable(checkpoint)
        check_whole(checkpoint, Landing(root, parameters.name))
        spools = _of_spools(parameters)
        require_same_spools(spools, checkpoint)
        rows = _read(spark, parameters)
        rows = parted(rows) if merge is None else _changes(rows, parameters, merge)
        columns = columns_of_rows(rows)
        within = parameters.deduplicate_within
        first_ones = _FirstOnes(root, parameters, landing, checkpoint, _firsts(parameters) if within else {})
        if _forget_state(checkpoint):
            progress(f"{checkpoint} remembers message-ids by time: from now on the table does, by sequence")

        def claim() -> None:
            landing.claim(checkpoint, columns, {"deduplicate": str(within)})

        if is_begun(checkpoint):  # what does not fit is said whether or not a message comes
            claim()

        def add(batch: DataFrame, number: int) -> None:
            claim()
            if within:
                counts, repeated = first_ones.land(batch, number)
                summary.duplicates += repeated
            else:
                counts = landing.land(batch, number)
            summary.add(counts)
            note_batch(spools, checkpoint, number)

        progress(f"landing in {landing.folder}")
        writer = _writer(rows, parameters, checkpoint).foreachBatch(add)
        try:
            run_to_end(writer.start, partial(_wait, wants_to_end=wants_to_end))
        except StreamFailed as error:
            raise NotLanded(str(error)) from None
        summary.interrupted = wants_to_end() and parameters.every_s is None
        summary.left = let_go_of(spools, checkpoint)
    return summary


@dataclass(frozen=True, slots=True)
class _FirstOnes:
    """Lands messages but those whose message-id came before; ``firsts`` are the first sequences of a new query."""

    root: Where
    parameters: Parameters
    landing: Landing | Merging
    checkpoint: Path
    firsts: Mapping[str, int]

    def land(self, batch: DataFrame, number: int) -> tuple[Counter[Part], int]:
        """Land a batch; return the rows of each part, and the number of repetitions, 0 if it was landed before."""
        root, name = self.root, self.parameters.name
        begins = {**self.firsts, **position_of(self.checkpoint)}
        is_new = Landing(root, name).batches().get(query_of(self.checkpoint), -1) < number
        before = {dead: landed(batch.sparkSession, root, name, dead=dead) for dead in (False, True)}
        fresh = without_repetitions(batch, before, begins, self.parameters.deduplicate_within)
        counts = self.landing.land(fresh, number)
        if not is_new:
            return counts, 0
        came = sum(end - begins.get(spool, end) for spool, end in planned_of(self.checkpoint, number).items())
        return counts, came - counts.total()


def check_whole(checkpoint: Path, landing: Landing) -> None:
    """Raise NotLanded if a planned batch of a checkpoint is torn, as after a loss of power."""
    try:
        position_of(checkpoint)
    except Torn as torn:
        last = landing.batches().get(query_of(checkpoint), -1)
        if last < torn.number:
            raise NotLanded(
                f"{torn}. Nothing of batch {torn.number} was landed: delete the file, and run again"
            ) from None
        raise NotLanded(
            f"{torn}. Batch {torn.number} was landed, and only the file says up to which message: restore it from a "
            "backup, or land the spools under another --name"
        ) from None


def _of_spools(parameters: Parameters) -> dict[str, str]:
    """Return the options of the source that name the spools."""
    return options_for(parameters.spools, parameters.cursor, parameters.source)


def _firsts(parameters: Parameters) -> dict[str, int]:
    """Return the first sequence of each spool for a new query."""
    with open_source(_of_spools(parameters)) as (shards, _):
        return {each.uuid: each.begin for each in shards}


def _forget_state(checkpoint: Path) -> bool:
    """Delete the message-ids in a checkpoint of an older version, with which Spark would refuse it."""
    state = checkpoint / "state"
    if not state.is_dir():
        return False
    shutil.rmtree(state)
    return True


def _changes(rows: DataFrame, parameters: Parameters, merge: Merge) -> DataFrame:
    """Return messages as changes, with their day of arrival; NotLanded."""
    fields = fields_of(parameters.schema) if parameters.schema else SCHEMA
    if parameters.body_format == DEBEZIUM:
        rows = opened(rows, fields, merge)
    found = changes_of(rows, merge)
    found = found.drop(*(name for name in OF_LETTERS if name not in fields.names))
    return found.withColumn(DAY, F.to_date("ingest_time"))


def _checkpoint_in(root: Where, name: str) -> Path:
    """Return the folder of a checkpoint below the root; NotLanded if that is in an object store."""
    place = Place.of(root)
    if not place.is_local:
        raise NotLanded(
            f"the tables in {place} are in an object store, and Spark keeps the checkpoint of a stream in a folder: "
            "give --checkpoint DIR, the same one each time"
        )
    return Path(place / f"checkpoints/{name}")


def check_writable(folder: Path) -> None:
    """Raise NotLanded unless Spark can keep a checkpoint in ``folder``."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".probe-{os.getpid()}"
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        raise NotLanded(f"the checkpoint {folder} cannot be written: {error.strerror}") from None


def _read(spark: SparkSession, parameters: Parameters) -> DataFrame:
    register(spark)
    options = _of_spools(parameters)
    if parameters.body_format:
        options |= {"bodyFormat": "json" if parameters.body_format == DEBEZIUM else parameters.body_format}
    if parameters.merge is not None:  # what turns out to be no change is kept with its message
        options |= {"keepMessages": "true"}
    if parameters.avro_schema_file:
        options |= {"avroSchemaFile": parameters.avro_schema_file}
    reader = spark.readStream.format("amqp").options(**options)
    try:
        return (reader.schema(wanted(parameters)) if parameters.schema else reader).load()
    except PySparkException as error:
        raise NotLanded(reason_of(error)) from None


def _writer(rows: DataFrame, parameters: Parameters, checkpoint: Path) -> Any:
    every: dict[str, Any] = {"availableNow": True}
    if parameters.every_s is not None:
        every = {"processingTime": f"{parameters.every_s} seconds"}
    named = rows.writeStream.queryName(parameters.name).option("checkpointLocation", str(checkpoint.absolute()))
    return named.trigger(**every)


def _wait(query: StreamingQuery, wants_to_end: Callable[[], bool]) -> None:
    while not query.awaitTermination(_LOOK_S):
        if wants_to_end():
            query.stop()
