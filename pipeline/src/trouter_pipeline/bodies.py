"""Bodies in JSON or Avro as columns of a schema that the user gives.

A column with the name of one of the source's is the message's own. `dead_letter` shows why a body could not be read: a
struct of `reason`, `body`, the encoded `message`, its `message_format` and its `application_properties`. Every other
column is a field of the body. If the column `body` is a struct, its fields are the body's, and may have names of the
source's columns.

A body must fit the schema in every field; if not, all its columns are null, and `dead_letter` has the reason and the
whole message, whatever its body is: bytes, text, a map, a number, or none. So a schema without `dead_letter` is refused
unless the query may fail. Fields that the schema does not name are ignored; absent fields that it names are null, if
they are nullable.
"""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from trouter_pipeline.schema import SCHEMA
from trouter_pipeline.shapes import NoShape, arrow_schema, arrow_type, python_type

DEAD_LETTER: Final = "dead_letter"
#: The type of the column.
DEAD_LETTER_TYPE: Final = StructType(
    [
        StructField("reason", StringType()),
        #: The bytes or the text of the body, empty for none; null for a map, a list or another value.
        StructField("body", BinaryType()),
        #: The message as it was sent, from which it can be landed again.
        StructField("message", BinaryType()),
        StructField("message_format", SCHEMA["message_format"].dataType),
        StructField("application_properties", SCHEMA["application_properties"].dataType),
    ]
)
#: The same in the schema of a query that wants reason and bytes alone.
SHORT_DEAD_LETTER_TYPE: Final = StructType(DEAD_LETTER_TYPE.fields[:2])
#: The longest reason that is kept.
MAX_REASON: Final = 500
#: Start of Avro's single-object encoding; eight bytes of the schema's fingerprint follow.
_SINGLE_OBJECT: Final = b"\xc3\x01"

#: Types that fastavro returns as such.
_AVROS: Final = (bytes, date, datetime, Decimal, uuid.UUID)

Parser = Callable[[pa.RecordBatch], pa.RecordBatch]
_Read = Callable[[bytes], Any]


class BadSchema(ValueError):
    """An unusable schema for bodies; the text names the column and the cure."""


class BadBody(Exception):
    """A body does not fit the schema; the text names the message."""


def parser(
    schema: StructType,
    body_format: str,
    *,
    avro_schema_file: str = "",
    failfast: bool = False,
    keeps_messages: bool = False,
) -> Parser | None:
    """Return a function from batches of the source to batches of ``schema``; None without ``body_format``.

    The batches have every message in `raw`; a column `raw` of the schema gets those with an error only, or all with
    ``keeps_messages``.
    ``failfast`` raises BadBody for the first body that does not fit. BadSchema, also for a bad Avro file.
    """
    if not body_format:
        return None
    nested = "body" in schema.names and isinstance(schema["body"].dataType, StructType)
    fields = _fields(schema, nested)
    if not failfast:
        _check_permissive(schema)
    try:
        wanted = python_type(fields)
        struct, made = arrow_type(fields), arrow_schema(schema)
    except NoShape as error:
        raise BadSchema(str(error)) from None
    read = _json(wanted) if body_format.lower() == "json" else _avro(wanted, avro_schema_file)

    def parse(batch: pa.RecordBatch) -> pa.RecordBatch:
        found, dead = _read_all(batch, read, struct, failfast)
        columns = []
        for field in made:
            if field.name == DEAD_LETTER:
                columns.append(pa.array(dead, field.type))
            elif field.name == "body" and nested:
                columns.append(found)
            elif field.name == "raw" and not keeps_messages:
                columns.append(pc.if_else(pc.is_valid(batch.column("error")), batch.column("raw"), None))
            elif field.name in SCHEMA.names:
                columns.append(batch.column(field.name))
            else:
                columns.append(found.field(field.name) if found.null_count == 0 else _child(found, field.name))
        return pa.RecordBatch.from_arrays(columns, schema=made)

    return parse


def _check_permissive(schema: StructType) -> None:
    """Verify that the schema has room for bodies that do not fit; BadSchema."""
    if DEAD_LETTER not in schema.names:
        raise BadSchema(
            f"the schema has no column {DEAD_LETTER} {SHORT_DEAD_LETTER_TYPE.simpleString()} for bodies that do not "
            "fit: add it, or set mode=FAILFAST"
        )
    for each in schema:
        if not each.nullable:
            raise BadSchema(
                f"column {each.name} is NOT NULL, and is null where a body does not fit: let it be null, or make it a "
                "field of a struct `body`"
            )


def _fields(schema: StructType, nested: bool) -> StructType:
    """Return the fields of the body; BadSchema for a useless column."""
    fields = []
    for each in schema:
        kind = each.dataType.simpleString()
        if each.name == DEAD_LETTER:
            if each.dataType not in (DEAD_LETTER_TYPE, SHORT_DEAD_LETTER_TYPE):
                raise BadSchema(f"column {DEAD_LETTER} is {kind}, not {SHORT_DEAD_LETTER_TYPE.simpleString()}")
        elif each.name == "body" and nested:
            continue
        elif each.name in SCHEMA.names:
            ours = SCHEMA[each.name].dataType
            if each.dataType != ours:
                raise BadSchema(
                    f"column {each.name} is {kind}, and the message's own is {ours.simpleString()}; for a field of the "
                    "body with this name make `body` a struct of its fields"
                )
        elif nested:
            raise BadSchema(f"column {each.name} is neither the message's nor a field of the struct `body`")
        else:
            fields.append(each)
    if nested:
        return schema["body"].dataType  # type: ignore[return-value]  # the caller has seen it
    if not fields:
        raise BadSchema("the schema names no field of the body: without it, leave out bodyFormat")
    return StructType(fields)


def _read_all(
    batch: pa.RecordBatch, read: _Read, struct: pa.DataType, failfast: bool
) -> tuple[pa.StructArray, list[dict[str, Any] | None]]:
    """Return the fields of each row, null for bodies that do not fit, and the dead letters."""
    bodies = batch.column("body").to_pylist()
    errors, kinds = (batch.column(name).to_pylist() for name in ("error", "body_kind"))
    letters = _Letters(batch)
    values: list[Any] = []
    dead: list[dict[str, Any] | None] = []
    for row, body in enumerate(bodies):
        value, reason = None, errors[row]
        if reason is None:
            try:
                value = _octets(body, kinds[row], read)
            except Exception as error:  # noqa: BLE001 - whatever a body does, it does to its own row
                reason = str(error) or type(error).__name__
        values.append(value)
        dead.append(None if reason is None else letters.letter(row, reason))
    try:
        found = pa.array(values, struct)
    except (pa.ArrowException, ValueError, OverflowError, TypeError):
        found = _one_by_one(values, dead, letters, struct)
    if failfast:
        _fail(batch, dead)
    return found, dead


def _octets(body: bytes | None, kind: str | None, read: _Read) -> Any:
    if body is None:
        raise ValueError(f"the body is {kind or 'absent'}, not bytes or text")
    return read(body)


class _Letters:
    """The dead letters that rows of a batch become."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._batch = batch

    def letter(self, row: int, reason: str) -> dict[str, Any]:
        """Return the dead letter of a row."""
        body, kind, value, error, message, code, properties = (
            self._batch.column(name)[row].as_py()
            for name in (
                "body", "body_kind", "body_value", "error", "raw", "message_format", "application_properties",
            )
        )  # fmt: skip
        if error is not None:
            body = message
        elif body is None and (kind == "absent" or value == "null"):
            body = b""
        return {
            "reason": reason[:MAX_REASON],
            "body": body,
            "message": message,
            "message_format": code,
            "application_properties": properties,
        }


def _one_by_one(
    values: list[Any], dead: list[dict[str, Any] | None], letters: _Letters, struct: pa.DataType
) -> pa.StructArray:
    """Return the same array with null for values that exceed Arrow's type, such as too long decimals."""
    for row, value in enumerate(values):
        try:
            pa.array([value], struct)
        except (pa.ArrowException, ValueError, OverflowError, TypeError) as error:
            values[row] = None
            dead[row] = letters.letter(row, str(error))
    return pa.array(values, struct)


def _fail(batch: pa.RecordBatch, dead: Sequence[dict[str, Any] | None]) -> None:
    for row, each in enumerate(dead):
        if each is not None:
            number = batch.column("seq")[row].as_py()
            raise BadBody(f"the body of message seq {number} does not fit the schema: {each['reason']}")


def _child(found: pa.StructArray, name: str) -> pa.Array:
    """Return a field of the struct, null where the struct is."""
    return found.flatten()[found.type.get_field_index(name)]


def _json(wanted: Any) -> _Read:
    decoder = msgspec.json.Decoder(wanted)
    return decoder.decode


def _avro(wanted: Any, schema_file: str) -> _Read:
    """Return a reader of bodies with one value of the file's schema, with or without the single-object header."""
    try:
        import fastavro  # noqa: PLC0415  # only for users of Avro
        from fastavro.schema import fingerprint, parse_schema, to_parsing_canonical_form  # noqa: PLC0415
    except ImportError:
        raise BadSchema("bodyFormat=avro needs the package fastavro: pip install 'trouter[spark]'") from None
    if not schema_file:
        raise BadSchema("bodyFormat=avro needs avroSchemaFile, the schema that bodies were written with")
    try:
        parsed = parse_schema(json.loads(Path(schema_file).read_bytes()))
    except OSError as error:
        raise BadSchema(f"avroSchemaFile: {schema_file}: {error.strerror}") from None
    except Exception as error:  # noqa: BLE001 - fastavro raises what it likes
        raise BadSchema(f"avroSchemaFile: {schema_file} is no Avro schema: {error}") from None
    ours = bytes.fromhex(fingerprint(to_parsing_canonical_form(parsed), "CRC-64-AVRO"))

    def read(body: bytes) -> Any:
        start = 0
        if body.startswith(_SINGLE_OBJECT):
            if body[2:10] != ours:
                raise ValueError(f"written with another schema, of fingerprint {body[2:10].hex()}, not {ours.hex()}")
            start = 10
        stream = io.BytesIO(body)
        stream.seek(start)
        value = fastavro.schemaless_reader(stream, parsed, None)
        if (left := len(body) - stream.tell()) > 0:
            raise ValueError(f"{left} bytes behind the value")
        return msgspec.convert(value, wanted, builtin_types=_AVROS)

    return read
