"""Changes of rows in messages: which columns are the key, the sequence and the operation, and what is no change.

A change says what the row with its key is from its sequence on: these columns, or deleted. Names are columns of the
message or of its body; ``property:NAME`` is an application property, which becomes the column NAME. A message that
lacks a key or a sequence, or whose operation is unknown, is no change; it goes to the dead letters with the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812  # its customary name
from pyspark.sql import types as T  # noqa: N812

from trouter_pipeline.bodies import DEAD_LETTER, DEAD_LETTER_TYPE
from trouter_pipeline.landing import DEAD, NotLanded
from trouter_pipeline.reasons import reason_of
from trouter_pipeline.schema import SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: The column that separates deletions; it is in no table.
DELETED: Final = "_deleted"
#: What begins the name of an application property, and the column in which these are.
PROPERTY: Final = "property:"
PROPERTIES: Final = "application_properties"
#: The sequence where no other is named: the order of arrival.
ARRIVAL: Final = ("ingest_time", "seq")
#: The column that has the operation if none is named, and what it may say, in small letters.
OPERATION: Final = "op"
UPSERTS: Final = ("c", "r", "u", "i", "create", "read", "insert", "update", "upsert")
DELETES: Final = ("d", "delete")
#: The format of bodies in Debezium's envelope, and the types of the fields of its `source` that order changes.
DEBEZIUM: Final = "debezium"
SOURCE: Final = "source."
_NUMBERS: Final = ("lsn", "pos", "row", "event_serial_no", "ord", "ts_ms", "ts_us", "ts_ns")
_TEXTS: Final = ("file", "change_lsn", "commit_lsn")
SOURCE_FIELDS: Final[dict[str, T.DataType]] = {
    **dict.fromkeys(_NUMBERS, T.LongType()),
    **dict.fromkeys(_TEXTS, T.StringType()),
    "scn": T.DecimalType(38, 0),
}
#: The column of the encoded message, which the source gives for each with its option `keepMessages`.
MESSAGE: Final = "raw"
#: The number made of the key, by which a merged table is divided.
BUCKET: Final = "bucket"
#: Columns that fields of a body cannot be, because merged tables have their own.
OWN: Final = ("date", BUCKET, DEAD, DELETED)
#: Columns of a message that its row in a merged table lacks, because they say that it was not understood.
#: What a dead letter has of its message, and a table for changes of a schema has not.
OF_LETTERS: Final = (MESSAGE, "message_format", PROPERTIES)
FAULTS: Final = ("error", MESSAGE, DEAD_LETTER)
_NO_KEYS: Final = (T.FloatType, T.DoubleType, T.ArrayType, T.MapType, T.StructType)
_NO_SEQUENCES: Final = (T.ArrayType, T.MapType, T.StructType, T.BooleanType, T.BinaryType)


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """How changes are merged. Names are those of columns, or ``property:NAME``."""

    keys: Sequence[str]
    #: What orders the changes of a key; by default their arrival.
    sequence: Sequence[str] = ARRIVAL
    #: The column of the operation; "" for ``op`` if there is one.
    operation: str = ""
    #: A condition in Spark's SQL for deletions, instead of an operation.
    delete_when: str = ""
    #: Into how many parts each source is divided by its keys; None for those of the table, or 16 for a new one.
    buckets: int | None = None
    #: How long a deletion is remembered, in hours of arrival.
    keep_deleted_h: int = 168

    @property
    def names(self) -> tuple[str, ...]:
        """All names of columns that are not the body's alone."""
        return (*self.keys, *self.sequence, *([self.operation] if self.operation else []))


def column_of(name: str) -> str:
    """Return the column that a name refers to."""
    return name.removeprefix(PROPERTY).removeprefix(SOURCE)


def quoted(name: str) -> str:
    """Return the name of a column as Spark reads it, whatever is in it."""
    return f"`{name.replace('`', '``')}`"


def needed(merge: Merge) -> list[str]:
    """Return the columns of the message that the source must give for the names of a merge, and its dead letters."""
    names = [PROPERTIES if name.startswith(PROPERTY) else name for name in (*merge.names, *OF_LETTERS)]
    return list(dict.fromkeys(name for name in names if name in SCHEMA.names))


def debezium_body(fields: T.StructType, merge: Merge) -> T.StructType:
    """Return the type of a body in Debezium's envelope for rows of these fields, with or without its schema.

    NotLanded if no sequence is named, or one that is unknown.
    """
    source = T.StructType()
    for name in merge.sequence:
        if not name.startswith(SOURCE) or name.removeprefix(SOURCE) not in SOURCE_FIELDS:
            known = ", ".join(SOURCE + each for each in SOURCE_FIELDS)
            raise NotLanded(f"--sequence {name}: changes of Debezium are ordered by one or more of {known}")
        source.add(name.removeprefix(SOURCE), SOURCE_FIELDS[name.removeprefix(SOURCE)])
    change = T.StructType().add("before", fields).add("after", fields).add(OPERATION, "string").add("source", source)
    return T.StructType([*change, T.StructField("payload", change)])


def opened(rows: DataFrame, fields: T.StructType, merge: Merge) -> DataFrame:
    """Return rows with the columns of a change in place of the body in Debezium's envelope."""

    def part(name: str) -> Column:
        return F.coalesce(F.col(f"body.payload.{name}"), F.col(f"body.{name}"))

    row = F.coalesce(part("after"), part("before"))
    others = [each for each in rows.columns if each != "body"]
    given = [*fields.names, OPERATION, *map(column_of, merge.sequence)]
    if twice := sorted({each for each in given if [*others, *given].count(each) > 1}):
        raise NotLanded(
            f"--schema: the column {twice[0]} would be there twice: the message or its envelope has it, too"
        )
    return rows.select(
        *map(quoted, others),
        *(row[each].alias(each) for each in fields.names),
        part(OPERATION).alias(OPERATION),
        *(part(name).alias(column_of(name)) for name in merge.sequence),
    )


def changes_of(rows: DataFrame, merge: Merge) -> DataFrame:
    """Return rows with the columns DELETED, DEAD and DEAD_LETTER, and application properties as columns. NotLanded."""
    rows = _with_properties(rows, merge)
    _check(rows, merge)
    keys, sequence = [[column_of(name) for name in names] for names in (merge.keys, merge.sequence)]
    whole = F.lit(True)
    for name in (*keys, *sequence):
        whole = whole & F.col(quoted(name)).isNotNull()
    empty = whole & _is_empty(rows)
    deleted, unknown = _operation(rows, merge)
    reasons = [F.when(~empty, _fault(rows))]
    reasons += [F.when(F.col(quoted(name)).isNull(), F.lit(f"the key {name} is null")) for name in keys]
    for name in sequence:
        reasons.append(F.when(F.col(quoted(name)).isNull(), F.lit(f"the sequence {name} is null")))
        if isinstance(rows.schema[name].dataType, T.FloatType | T.DoubleType):
            reasons.append(F.when(F.isnan(quoted(name)), F.lit(f"the sequence {name} is not a number")))
    reasons.append(F.when(~empty, unknown))
    body = F.col(f"{DEAD_LETTER}.body") if DEAD_LETTER in rows.columns else F.lit(None).cast("binary")
    reason = F.coalesce(*reasons)
    parts = [reason.alias("reason"), body.alias("body"), F.col(MESSAGE).alias("message")]
    parts += [F.col("message_format"), F.col(PROPERTIES)]
    letter = F.when(reason.isNotNull(), F.struct(*parts)).cast(DEAD_LETTER_TYPE)
    marked = rows.withColumn(DELETED, F.coalesce(empty | deleted, F.lit(False)))
    return marked.withColumn(DEAD_LETTER, letter).withColumn(DEAD, F.col(DEAD_LETTER).isNotNull())


def _with_properties(rows: DataFrame, merge: Merge) -> DataFrame:
    """Return the rows with the named application properties as columns of their own; NotLanded."""
    for name in merge.names:
        if not name.startswith(PROPERTY):
            continue
        if column_of(name) in rows.columns:
            raise NotLanded(f"{name}: there is a column {column_of(name)} already")
        text = F.col(PROPERTIES)[name.removeprefix(PROPERTY)]["value"]
        rows = rows.withColumn(
            column_of(name), F.try_to_number(text, F.lit("9" * 20)) if name in merge.sequence else text
        )
    return rows


def _check(rows: DataFrame, merge: Merge) -> None:
    """Verify that the named columns are there and have types that can be compared; NotLanded."""
    for option, names, wrong in (
        ("--merge", merge.keys, _NO_KEYS),
        ("--sequence", merge.sequence, _NO_SEQUENCES),
        ("--op", [merge.operation] if merge.operation else [], ()),
    ):
        for name in names:
            if column_of(name) not in rows.columns:
                raise NotLanded(f"{option} {name}: there is no such column; there are {', '.join(rows.columns)}")
            kind = rows.schema[column_of(name)].dataType
            if isinstance(kind, tuple(wrong)):
                raise NotLanded(f"{option} {name}: a column of type {kind.simpleString()} cannot be that")


def _fault(rows: DataFrame) -> Column:
    """Return why a message or its body was not understood, null if it was."""
    if DEAD_LETTER in rows.columns:
        return F.col(f"{DEAD_LETTER}.reason")
    return F.col("error")


def _is_empty(rows: DataFrame) -> Column:
    """Return whether a good message has no body, which is a deletion."""
    if DEAD_LETTER in rows.columns:
        letter = F.col(DEAD_LETTER)
        return letter.isNotNull() & F.coalesce(F.length(letter["body"]) == 0, F.lit(False))
    no_value = F.coalesce(F.col("body_value"), F.lit("null")) == "null"
    return F.col("error").isNull() & (F.coalesce(F.length("body"), F.lit(0)) == 0) & no_value


def _operation(rows: DataFrame, merge: Merge) -> tuple[Column, Column]:
    """Return whether a change is a deletion, and why its operation is unknown (null if it is not). NotLanded."""
    fine = F.lit(None).cast("string")
    if merge.delete_when:
        condition = F.expr(merge.delete_when)
        try:
            rows.where(condition).schema  # noqa: B018  # Spark resolves it now
        except PySparkException as error:
            raise NotLanded(f"--delete-when {merge.delete_when[:100]!r}: {reason_of(error)}") from None
        return condition, fine
    name = column_of(merge.operation or OPERATION)
    if name not in rows.columns:
        return F.lit(False), fine
    word = F.lower(F.col(quoted(name)).cast("string"))
    known = F.coalesce(word.isin(*UPSERTS, *DELETES), F.lit(False))
    shown = F.concat(F.lit("the operation "), F.coalesce(F.substring(word, 1, 40), F.lit("null")), F.lit(" is unknown"))
    return word.isin(*DELETES), F.when(~known, shown)
