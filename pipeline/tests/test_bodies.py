"""A user's schema over bodies in JSON and Avro: each value is checked, each body that does not match is kept."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import proton
import pyarrow as pa
import pytest
from fastavro.schema import fingerprint, parse_schema, to_parsing_canonical_form
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as T  # noqa: N812 - as everybody calls it

from trouter_pipeline.arrow import ARROW_SCHEMA, Origin, batches
from trouter_pipeline.bodies import (
    DEAD_LETTER,
    DEAD_LETTER_TYPE,
    SHORT_DEAD_LETTER_TYPE,
    BadBody,
    BadSchema,
    parser,
)
from trouter_pipeline.spool.frames import FrameWriter

ID = T.StructField("id", T.LongType())
NAME = T.StructField("name", T.StringType())
DEAD = T.StructField(DEAD_LETTER, DEAD_LETTER_TYPE)


def schema(*fields: T.StructField) -> T.StructType:
    return T.StructType([*fields, DEAD])


def batch(*bodies: bytes | None, error: str | None = None, raw: bytes | None = None) -> pa.RecordBatch:
    count = len(bodies)
    return pa.RecordBatch.from_pydict(
        {
            "seq": list(range(100, 100 + count)),
            "subject": ["s"] * count,
            "body": pa.array(bodies, pa.binary()),
            "body_kind": ["value" if body is None else "data" for body in bodies],
            "body_value": pa.array(["7" if body is None else None for body in bodies], pa.string()),
            "error": pa.array([error] * count, pa.string()),
            "raw": pa.array([raw or b"whole"] * count, pa.binary()),
            "message_format": pa.array([0] * count, pa.int64()),
            "application_properties": pa.array(
                [[("site", {"type": "string", "value": "x"})]] * count,
                ARROW_SCHEMA.field("application_properties").type,
            ),
        }
    )


def letter(reason: str, body: bytes | None, message: bytes = b"whole") -> dict[str, Any]:
    of_message = {"message_format": 0, "application_properties": [("site", {"type": "string", "value": "x"})]}
    return {"reason": reason, "body": body, "message": message, **of_message}


def read(wanted: T.StructType, *bodies: bytes | None, **given: Any) -> list[dict[str, Any]]:
    parse = parser(wanted, given.pop("body_format", "json"), **given)
    assert parse is not None
    found = parse(batch(*bodies))
    assert found.schema.names == wanted.names
    return list(found.to_pylist())


EVERY_TYPE = {
    "b": (T.BooleanType(), "true", True),
    "i8": (T.ByteType(), "-128", -128),
    "i16": (T.ShortType(), "32767", 32767),
    "i32": (T.IntegerType(), "-2147483648", -(2**31)),
    "i64": (T.LongType(), "9223372036854775807", 2**63 - 1),
    "f": (T.FloatType(), "1.5", 1.5),
    "d": (T.DoubleType(), "2", 2.0),
    "dec": (T.DecimalType(10, 2), "12345678.9", Decimal("12345678.90")),
    "s": (T.StringType(), '"grüße"', "grüße"),
    "bin": (T.BinaryType(), '"AAE="', b"\0\1"),
    "day": (T.DateType(), '"2026-02-28"', date(2026, 2, 28)),
    "at": (T.TimestampType(), '"2026-01-01T02:00:00+02:00"', datetime(2026, 1, 1, tzinfo=UTC)),
    "local": (T.TimestampNTZType(), '"2026-01-01T02:00:00"', datetime(2026, 1, 1, 2)),  # noqa: DTZ001 - that is what it is
    "list": (T.ArrayType(T.LongType()), "[1,null]", [1, None]),
    "map": (T.MapType(T.StringType(), T.LongType()), '{"x":1}', [("x", 1)]),
    "struct": (T.StructType([ID, NAME]), '{"id":1}', {"id": 1, "name": None}),
}


def test_every_type_is_read() -> None:
    wanted = schema(*(T.StructField(name, kind) for name, (kind, _, _) in EVERY_TYPE.items()))
    body = "{" + ",".join(f'"{name}":{text}' for name, (_, text, _) in EVERY_TYPE.items()) + "}"
    (row,) = read(wanted, body.encode())
    assert row.pop(DEAD_LETTER) is None
    assert row == {name: value for name, (_, _, value) in EVERY_TYPE.items()}


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (T.LongType(), "9223372036854775808"), (T.ByteType(), "128"), (T.LongType(), "1.5"), (T.LongType(), '"1"'),
        (T.StringType(), "1"), (T.BooleanType(), "1"), (T.DoubleType(), '"NaN"'), (T.DateType(), '"2026-02-30"'),
        (T.TimestampType(), '"yesterday"'), (T.TimestampNTZType(), '"2026-01-01T00:00:00Z"'), (T.BinaryType(), '"?"'),
        (T.DecimalType(4, 2), "123.45"), (T.DecimalType(4, 2), "1.234"), (T.ArrayType(T.LongType()), "{}"),
        (T.ArrayType(T.LongType(), containsNull=False), "[null]"), (T.MapType(T.StringType(), T.LongType()), "[]"),
        (T.StructType([T.StructField("id", T.LongType(), nullable=False)]), "{}"),
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit_costs_its_body_only(kind: T.DataType, text: str) -> None:
    bad = f'{{"id":2,"x":{text}}}'.encode()
    good, row, after = read(schema(ID, T.StructField("x", kind)), b'{"id":1}', bad, b'{"id":3}')
    assert (good["id"], good[DEAD_LETTER], after["id"], after[DEAD_LETTER]) == (1, None, 3, None)
    assert (row["id"], row["x"], row[DEAD_LETTER]["body"]) == (None, None, bad)
    assert row[DEAD_LETTER]["reason"]


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b"7", b"\xff", b'{"id":1}{}', b"[" * 100_000, b'{"id":' * 50_000]
)
def test_a_body_that_is_no_json_object_is_kept(body: bytes) -> None:
    (row,) = read(schema(ID), body)
    assert (row["id"], row[DEAD_LETTER]["body"]) == (None, body)
    assert 0 < len(row[DEAD_LETTER]["reason"]) <= 500


def test_the_reason_names_the_field() -> None:
    (row,) = read(schema(ID), b'{"id":"1"}')
    assert row[DEAD_LETTER]["reason"] == "Expected `int | null`, got `str` - at `$.id`"


def test_columns_of_the_message_stand_beside_columns_of_the_body() -> None:
    wanted = schema(T.StructField("subject", T.StringType()), ID, T.StructField("seq", T.LongType()))
    (row,) = read(wanted, b'{"id":1,"subject":"of the body","more":2}')
    assert row == {"subject": "s", "id": 1, "seq": 100, DEAD_LETTER: None}


def test_a_struct_for_the_body_keeps_names_apart_and_may_demand_fields() -> None:
    fields = T.StructType([T.StructField("subject", T.LongType(), nullable=False)])
    wanted = schema(T.StructField("subject", T.StringType()), T.StructField("body", fields))
    good, bad = read(wanted, b'{"subject":5}', b"{}")
    assert good == {"subject": "s", "body": {"subject": 5}, DEAD_LETTER: None}
    assert bad["body"] is None
    assert bad[DEAD_LETTER] == letter("Object missing required field `subject`", b"{}")


def test_a_message_that_was_none_is_a_dead_letter_too() -> None:
    parse = parser(schema(ID), "json")
    assert parse is not None
    (row,) = parse(batch(None, error="not a section of a message", raw=b"junk")).to_pylist()
    assert row == {"id": None, DEAD_LETTER: letter("not a section of a message", b"junk", b"junk")}


def test_a_body_without_octets_is_a_dead_letter_that_names_its_kind() -> None:
    (row,) = read(schema(ID), None)
    assert row[DEAD_LETTER] == letter("the body is value, not bytes or text", None)


@pytest.mark.parametrize(
    ("body", "inferred", "octets"),
    [
        ({"amount": 5}, False, None),
        ([1, 2], False, None),
        (7, False, None),
        ([1], True, None),
        (None, False, b""),
        ("text", False, b"text"),
        (b"bytes", True, b"bytes"),
    ],
    ids=["map", "list", "number", "sequence", "null", "text", "data"],
)
def test_a_dead_letter_has_the_whole_message_whatever_its_body_is(
    body: Any, inferred: bool, octets: bytes | None
) -> None:
    message = bytes(proton.Message(body, inferred=inferred, properties={"site": "x"}).encode())
    row = dead_letter_of(message)
    assert row[DEAD_LETTER]["body"] == octets
    assert row[DEAD_LETTER]["message"] == message
    assert row[DEAD_LETTER]["application_properties"] == [("site", {"type": "string", "value": "x"})]
    assert row["raw"] is None  # that is for messages that cannot be decoded


def test_the_body_of_a_message_without_one_is_empty() -> None:
    message = bytes(proton.Message(None, properties={"site": "x"}).encode()).removesuffix(b"\0Sw@")
    letter = dead_letter_of(message)[DEAD_LETTER]
    assert (letter["body"], letter["message"]) == (b"", message)


def dead_letter_of(message: bytes) -> dict[str, Any]:
    """Return the row of a message whose body is no JSON of the schema."""
    frames = FrameWriter(0)
    frames.begin(0, b"", 0)
    frames.extend(message, 0, len(message))
    frames.finish(presettled=False)
    ((found, _),) = batches([bytes(frames.take())], Origin("u", 0, "a"), 0, 1, 10**6, keeps_messages=True)
    parse = parser(schema(ID, T.StructField("raw", T.BinaryType())), "json")
    assert parse is not None
    (row,) = parse(found).to_pylist()
    return dict(row)


def test_a_query_may_want_reason_and_bytes_alone() -> None:
    (row,) = read(T.StructType([ID, T.StructField(DEAD_LETTER, SHORT_DEAD_LETTER_TYPE)]), b"[]")
    assert row[DEAD_LETTER]["body"] == b"[]"
    assert set(row[DEAD_LETTER]) == {"reason", "body"}


def test_failfast_names_the_message() -> None:
    with pytest.raises(BadBody, match=r"the body of message seq 101 does not fit the schema: Expected `int"):
        read(T.StructType([ID]), b'{"id":1}', b'{"id":"x"}', failfast=True)


def test_without_a_format_there_is_nothing_to_do() -> None:
    assert parser(T.StructType([ID]), "") is None


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ([ID], "the schema has no column dead_letter struct<reason:string,body:binary>"),
        ([DEAD], "the schema names no field of the body"),
        ([ID, T.StructField(DEAD_LETTER, T.StringType())], "column dead_letter is string, not struct<reason"),
        ([T.StructField("id", T.LongType(), nullable=False), DEAD], "column id is NOT NULL, and is null where a body"),
        (
            [T.StructField("subject", T.LongType()), ID, DEAD],
            "column subject is bigint, and the message's own is string",
        ),
        (
            [T.StructField("x", T.MapType(T.LongType(), T.LongType())), DEAD],
            "map<bigint,bigint> cannot be read from a body",
        ),
        ([T.StructField("x", T.DayTimeIntervalType()), DEAD], "interval day to second cannot be read from a body"),
        ([T.StructField("body", T.StructType([ID])), NAME, DEAD], "column name is neither the message's nor a field"),
    ],
)
def test_schemas_that_cannot_be(fields: list[T.StructField], wrong: str) -> None:
    with pytest.raises(BadSchema, match=wrong[:60].replace("(", r"\(")):
        parser(T.StructType(fields), "json")


# --- Avro

RECORD = {
    "type": "record",
    "name": "Sale",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}},
        {"name": "tags", "type": {"type": "map", "values": "int"}},
        {"name": "note", "type": ["null", "string"]},
    ],
}
SALE = {"id": 7, "at": datetime(2026, 1, 1, tzinfo=UTC), "price": Decimal("12.50"), "tags": {"x": 1}, "note": None}
SALES = schema(
    ID,
    T.StructField("at", T.TimestampType()),
    T.StructField("price", T.DecimalType(6, 2)),
    T.StructField("tags", T.MapType(T.StringType(), T.IntegerType())),
    T.StructField("note", T.StringType()),
)


@pytest.fixture
def schema_file(tmp_path: Path) -> str:
    path = tmp_path / "sale.avsc"
    path.write_text(json.dumps(RECORD))
    return str(path)


def avro(value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, parse_schema(RECORD), value)
    return out.getvalue()


def test_avro_is_read_with_and_without_the_mark_of_a_single_object(schema_file: str) -> None:
    mark = b"\xc3\x01" + bytes.fromhex(fingerprint(to_parsing_canonical_form(parse_schema(RECORD)), "CRC-64-AVRO"))
    rows = read(SALES, avro(SALE), mark + avro(SALE), body_format="avro", avro_schema_file=schema_file)
    assert rows == [{**SALE, "tags": [("x", 1)], DEAD_LETTER: None}] * 2


def test_avro_that_is_none_is_kept_with_the_reason(schema_file: str) -> None:
    whole = avro(SALE)
    other = b"\xc3\x01" + b"\0" * 8 + whole
    rows = read(SALES, whole[:-3], whole + b"x", other, b"", body_format="avro", avro_schema_file=schema_file)
    assert [row["id"] for row in rows] == [None] * 4
    assert [row[DEAD_LETTER]["body"] for row in rows] == [whole[:-3], whole + b"x", other, b""]
    assert "1 bytes behind the value" in rows[1][DEAD_LETTER]["reason"]
    assert "written with another schema" in rows[2][DEAD_LETTER]["reason"]


def test_avro_of_another_type_than_wanted_is_kept(schema_file: str) -> None:
    (row,) = read(
        schema(T.StructField("id", T.StringType())), avro(SALE), body_format="avro", avro_schema_file=schema_file
    )
    assert row[DEAD_LETTER]["reason"] == "Expected `str | null`, got `int` - at `$.id`"


@given(octets=st.binary(max_size=60))
def test_any_octets_are_a_row_or_a_dead_letter(octets: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "any.avsc"
    path.write_text(json.dumps(RECORD))
    for how in ({"body_format": "json"}, {"body_format": "avro", "avro_schema_file": str(path)}):
        (row,) = read(SALES, octets, **how)
        assert (row[DEAD_LETTER] is None) != (row["id"] is None)


@pytest.mark.parametrize(
    ("text", "wrong"), [(None, "No such file"), ("{", "is no Avro schema"), ('{"type":"quad"}', "is no Avro schema")]
)
def test_a_schema_file_that_is_none(tmp_path: Path, text: str | None, wrong: str) -> None:
    path = tmp_path / "x.avsc"
    if text is not None:
        path.write_text(text)
    with pytest.raises(BadSchema, match=f"avroSchemaFile: .*{wrong}"):
        parser(SALES, "avro", avro_schema_file=str(path))
    with pytest.raises(BadSchema, match="needs avroSchemaFile"):
        parser(SALES, "avro")
