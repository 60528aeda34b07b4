"""Any bytes as the body of a message become columns that the schema describes, or a dead letter with the message.

The first byte chooses the format, JSON or Avro. The bodies in the rows before and behind stay what they are.

Allowed: nothing. A body that does not fit has null columns, and a reason of bounded length.
"""

from __future__ import annotations

import io
import json
import tempfile
from pathlib import Path
from typing import Any, Final

import fastavro
import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812 - as everybody calls it

from trouter.testing.fuzz import behind, text
from trouter_pipeline.arrow import ARROW_SCHEMA
from trouter_pipeline.bodies import DEAD_LETTER, DEAD_LETTER_TYPE, MAX_REASON, Parser, parser

MUTATOR = behind(1, text)
COVERS = ("trouter_pipeline.bodies",)
WANTED: Final = T.StructType(
    [
        T.StructField("id", T.LongType()),
        T.StructField("name", T.StringType()),
        T.StructField("price", T.DecimalType(10, 2)),
        T.StructField("day", T.DateType()),
        T.StructField("at", T.TimestampType()),
        T.StructField("tags", T.ArrayType(T.StringType())),
        T.StructField("counts", T.MapType(T.StringType(), T.IntegerType())),
        T.StructField(DEAD_LETTER, DEAD_LETTER_TYPE),
    ]
)
AVRO_WANTED: Final = T.StructType(
    [
        T.StructField("id", T.LongType()),
        T.StructField("name", T.StringType()),
        T.StructField("tags", T.ArrayType(T.StringType())),
        T.StructField(DEAD_LETTER, DEAD_LETTER_TYPE),
    ]
)
AVRO: Final[dict[str, Any]] = {
    "type": "record",
    "name": "sale",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["null", "string"]},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
    ],
}
GOOD: Final[dict[str, Any]] = {"id": 7, "name": "pen", "tags": ["a", "b"]}


def avro_parser() -> Parser:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "sale.avsc")
        path.write_text(json.dumps(AVRO))
        made = parser(AVRO_WANTED, "avro", avro_schema_file=str(path))
    assert made is not None
    return made


def avro_body(value: dict[str, Any]) -> bytes:
    written = io.BytesIO()
    fastavro.schemaless_writer(written, fastavro.parse_schema(AVRO), value)
    return written.getvalue()


JSON_PARSER = parser(WANTED, "json")
AVRO_PARSER = avro_parser()
JSON_GOOD: Final = json.dumps(GOOD).encode()
AVRO_GOOD: Final = avro_body(GOOD)


def batch(*bodies: bytes) -> pa.RecordBatch:
    count = len(bodies)
    return pa.RecordBatch.from_pydict(
        {
            "seq": list(range(count)),
            "body": pa.array(bodies, pa.binary()),
            "body_kind": ["data"] * count,
            "body_value": pa.array([None] * count, pa.string()),
            "error": pa.array([None] * count, pa.string()),
            "raw": pa.array([b"message"] * count, pa.binary()),
            "message_format": pa.array([0] * count, pa.int64()),
            "application_properties": pa.nulls(count, ARROW_SCHEMA.field("application_properties").type),
        }
    )


def check(data: bytes) -> None:
    how, body = (data[0], data[1:]) if data else (0, b"")
    parse, good, wanted = (AVRO_PARSER, AVRO_GOOD, AVRO_WANTED) if how & 1 else (JSON_PARSER, JSON_GOOD, WANTED)
    assert parse is not None
    found = parse(batch(good, body, good))
    found.validate(full=True)
    assert found.schema.names == wanted.names
    before, row, behind_it = found.to_pylist()
    assert before == behind_it
    assert {name: before[name] for name in GOOD} == GOOD
    dead = row.pop(DEAD_LETTER)
    if dead is not None:
        assert set(row.values()) == {None}
        assert (dead["body"], dead["message"]) == (body, b"message")
        assert 0 < len(dead["reason"]) <= MAX_REASON
    elif not how & 1:
        given = json.loads(body.decode("utf-8", "replace"))  # fields that are not wanted may be anything
        assert {name for name, value in row.items() if value is not None} == {
            name for name in row if given.get(name) is not None
        }
