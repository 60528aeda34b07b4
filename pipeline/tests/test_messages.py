"""Rows to encoded messages: python-qpid-proton and trouter's client read them; invalid rows are refused."""

from __future__ import annotations

import math
import re
import uuid
from datetime import UTC, datetime
from typing import Any

import proton
import pyarrow as pa
import pytest

from tests.house.sources import ROOT
from trouter.client import BodyKind, Message, Modified
from trouter.wire.types import (
    Char,
    Int,
    Symbol,
    UByte,
    ULong,
)
from trouter_pipeline.marking import marked, redelivered
from trouter_pipeline.messages import (
    MAPS,
    OTHERS,
    PROPERTIES,
    TYPED,
    BadColumns,
    Encoder,
    RowPosition,
    Unsendable,
    check_columns,
)
from trouter_pipeline.typed import from_text

PLACE = RowPosition("q1", 3, 2)
TEXTS = pa.map_(pa.string(), pa.string())
TYPED_MAP = pa.map_(pa.string(), pa.struct([("type", pa.string()), ("value", pa.string())]))


def encode(**columns: Any) -> list[bytes | Unsendable]:
    return Encoder(PLACE).encode(pa.RecordBatch.from_pydict(columns))


def messages(**columns: Any) -> list[Message]:
    return [Message.decode(each) for each in encode(**columns) if isinstance(each, bytes)]


def only(**columns: Any) -> Message:
    (message,) = messages(**{name: [value] for name, value in columns.items()})
    return message


def test_proton_reads_the_fields_of_a_row() -> None:
    (octets,) = encode(
        header=pa.array([{"durable": True, "priority": 7, "ttl": 5000}]),
        message_annotations=pa.array([[("x-opt-source", "east")]], TEXTS),
        message_id=["m1"],
        user_id=pa.array([b"alice"]),
        to=["there"],
        subject=["grüße"],
        reply_to=["here"],
        correlation_id=["c1"],
        content_type=["text/plain"],
        content_encoding=["gzip"],
        absolute_expiry_time=pa.array([datetime(2030, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC")),
        creation_time=pa.array([datetime(2026, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC")),
        group_id=["g"],
        group_sequence=[4_000_000_000],
        reply_to_group_id=["h"],
        application_properties=pa.array([[("colour", "red")]], TEXTS),
        body=pa.array([b"\0\1\2"]),
    )
    read: Any = proton.Message()
    assert isinstance(octets, bytes)
    read.decode(octets)
    assert (read.durable, read.priority, read.ttl) == (True, 7, 5.0)
    assert read.annotations == {"x-opt-source": "east"}
    assert (read.id, read.user_id, read.address, read.subject) == ("m1", b"alice", "there", "grüße")
    assert (read.reply_to, read.correlation_id, read.content_type) == ("here", "c1", "text/plain")
    assert (read.content_encoding, read.group_id, read.group_sequence) == ("gzip", "g", 4_000_000_000)
    assert (read.expiry_time, read.creation_time, read.reply_to_group_id) == (1893456000, 1767225600, "h")
    assert read.properties == {
        "colour": "red", "spark-query": "q1", "spark-batch": 3, "spark-partition": 2, "spark-row": 0,
    }  # fmt: skip
    assert bytes(read.body) == b"\0\1\2"


def test_ids_name_the_place_of_a_row_and_never_change() -> None:
    encoder = Encoder(PLACE)
    batch = pa.RecordBatch.from_pydict({"body": [b"a", b"b", b"c"], "message_id": ["mine", None, None]})
    read = [
        Message.decode(each) for each in (*encoder.encode(batch), *encoder.encode(batch)) if isinstance(each, bytes)
    ]
    assert [each.properties.message_id for each in read] == [
        "mine",
        "q1/3/2/1",
        "q1/3/2/2",
        "mine",
        "q1/3/2/4",
        "q1/3/2/5",
    ]
    assert [each.application_properties["spark-row"] for each in read] == list(range(6))


def test_ids_of_every_kind() -> None:
    name = uuid.uuid4()
    read = messages(
        body=[b""] * 4,
        message_id=["7", str(name), "AAE=", "plain"],
        message_id_type=["ulong", "uuid", "binary", None],
        correlation_id=pa.array([2**64 - 1, 0, None, 5], pa.decimal128(20, 0)),
    )
    assert [each.properties.message_id for each in read] == [7, name, b"\0\1", "plain"]
    assert [each.properties.correlation_id for each in read] == [2**64 - 1, 0, None, 5]


def test_maps_keep_the_types_of_their_values() -> None:
    kinds: list[tuple[str, Any]] = [
        ("ulong", "18446744073709551615"), ("int", "-5"), ("symbol", "red"), ("null", None), ("boolean", "true"),
        ("double", "NaN"), ("char", "é"), ("binary", "AAE="), ("decimal128", "1.50"), ("list", '["a",{"$ubyte":"1"}]'),
    ]  # fmt: skip
    entries = [(kind, {"type": kind, "value": value}) for kind, value in kinds]
    read = only(
        body=b"",
        application_properties=pa.scalar(entries, TYPED_MAP),
        footer=pa.scalar([("ulong:7", kinds_of("x"))], TYPED_MAP),
    )
    found = read.application_properties
    assert (found["ulong"], type(found["ulong"])) == (2**64 - 1, ULong)
    assert (found["int"], type(found["int"])) == (-5, Int)
    assert (found["symbol"], type(found["symbol"])) == ("red", Symbol)
    assert found["null"] is None
    assert found["boolean"] is True
    assert math.isnan(found["double"])
    assert found["char"] == Char("é")
    assert (found["binary"], found["decimal128"]) == (b"\0\1", from_text("decimal128", "1.50"))
    assert found["list"] == ["a", UByte(1)]
    assert read.footer == {ULong(7): "x"}


def kinds_of(text: str) -> dict[str, str]:
    return {"type": "string", "value": text}


def test_a_map_of_plain_values_is_sent_as_they_are() -> None:
    numbers = pa.map_(pa.string(), pa.int64())
    assert only(body=b"", message_annotations=pa.scalar([("a", 5), ("b", None)], numbers)).message_annotations == {
        "a": 5,
        "b": None,
    }


def test_a_row_number_from_an_earlier_sink_is_replaced() -> None:
    read = only(body=b"", application_properties=pa.scalar([("spark-row", "99"), ("k", "v")], TEXTS))
    assert read.application_properties["spark-row"] == 0
    assert read.application_properties["k"] == "v"


def test_empty_sections_are_left_out() -> None:
    (octets,) = encode(
        header=pa.array([None], pa.struct([("durable", pa.bool_())])),
        message_annotations=pa.array([[]], TEXTS),
        footer=pa.array([None], TEXTS),
        body=[b"x"],
    )
    assert isinstance(octets, bytes)
    assert octets.startswith(b"\0\x53\x73")
    assert octets.endswith(b"\0\x53\x75\xa0\x01x")


@pytest.mark.parametrize(
    ("columns", "kind", "body"),
    [
        ({"body": pa.array([b"x" * 300])}, BodyKind.DATA, b"x" * 300),
        ({"body": pa.array(["text"])}, BodyKind.VALUE, "text"),
        ({"body": pa.array(["text"]), "body_kind": ["data"]}, BodyKind.DATA, b"text"),
        ({"body": pa.array([b"octets"]), "body_kind": ["value"]}, BodyKind.VALUE, b"octets"),
        ({"body": pa.array([None], pa.binary())}, BodyKind.VALUE, None),
        ({"body": pa.array([None], pa.binary()), "body_kind": ["data"]}, BodyKind.DATA, b""),
        ({"body": pa.array([None], pa.binary()), "body_kind": ["absent"]}, BodyKind.ABSENT, None),
        ({"body_parts": pa.array([[b"a", b"bc"]])}, BodyKind.DATA, b"abc"),
        ({"body_value": ['{"$ulong":"7"}'], "body_kind": ["value"]}, BodyKind.VALUE, ULong(7)),
        ({"body_value": ['[[1],["a",null]]'], "body_kind": ["sequence"]}, BodyKind.SEQUENCE, [[1], ["a", None]]),
        ({"body_value": ['{"$map":[["a",1.5]]}']}, BodyKind.VALUE, {"a": 1.5}),
        ({"body_value": ['{"plain":{"json":[true]}}']}, BodyKind.VALUE, {"plain": {"json": [True]}}),
    ],
)
def test_bodies(columns: dict[str, Any], kind: BodyKind, body: Any) -> None:
    (read,) = messages(**columns)
    assert (read.kind, read.body) == (kind, body)


def test_one_row_that_is_no_message_costs_itself_only() -> None:
    encoder = Encoder(PLACE)
    batch = pa.RecordBatch.from_pydict({"body": [b"a", b"b", b"c"], "content_type": ["a/b", "ä/b", None]})
    first, second, third = encoder.encode(batch)
    assert isinstance(first, bytes)
    assert second == Unsendable("content_type: 'ä/b' is not ASCII")
    assert isinstance(third, bytes)
    assert Message.decode(third).properties.message_id == "q1/3/2/2"


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"group_sequence": [-1]}, "group_sequence: UInt out of range: -1"),
        ({"group_sequence": [1 << 32]}, "group_sequence: UInt out of range: 4294967296"),
        ({"message_id": [-1]}, "message_id: '-1' is no ulong"),
        ({"message_id": ["x"], "message_id_type": ["ulong"]}, "message_id: 'x' is no ulong"),
        ({"message_id": ["x"], "message_id_type": ["float"]}, "message_id: an id is a string, ulong, uuid or binary"),
        ({"header": pa.array([{"priority": 256}])}, "header: "),
        ({"body_value": ["{"]}, "body: no JSON: "),
        ({"body_value": ["[1]"], "body_kind": ["sequence"]}, "body: a sequence is a list of lists"),
        ({"body_kind": ["sequence"]}, "body: body_kind is 'sequence': give the items in body_value"),
        ({"body_kind": ["gift"]}, "body: body_kind is 'gift', not one of data, value, sequence, absent"),
        (
            {"application_properties": pa.array([[("a", {"type": "quad", "value": "1"})]], TYPED_MAP)},
            "application_properties: there is no type 'quad' in AMQP",
        ),
        (
            {"application_properties": pa.array([[("a", {"type": "int", "value": None})]], TYPED_MAP)},
            "application_properties: a int without",
        ),
        ({"message_annotations": pa.array([[("ä", "v")]], TEXTS)}, "message_annotations: symbol is not ASCII"),
        ({"subject": pa.array([b"\xff"]).cast(pa.string(), safe=False)}, "subject: "),
    ],
)  # fmt: skip
def test_an_unsendable_row_is_reported_with_its_column(columns: dict[str, Any], reason: str) -> None:
    (found,) = encode(**{"body": [b"x"], **columns})
    assert isinstance(found, Unsendable)
    assert found.reason.startswith(reason)


def test_a_row_that_goes_nowhere_is_reported() -> None:
    batch = pa.RecordBatch.from_pydict({"body": [b"a", b"b"], "to": ["x", None]})
    first, second = Encoder(PLACE, anonymous=True).encode(batch)
    assert isinstance(first, bytes)
    assert second == Unsendable("to: the destination is missing")


@pytest.mark.parametrize(
    ("columns", "address", "wrong"),
    [
        ([("boddy", "binary")], "a", "a message has no field for column 'boddy': did you mean body?"),
        ([("body", "binary"), ("x", "int")], "a", "a message has no field for column 'x': there are header, "),
        ([("body", "int")], "a", "column body is int, not binary or string: cast it"),
        ([("subject", "string")], "a", "no column has the body to send: give body, body_parts or body_value"),
        ([("body", "binary"), ("seq", "bigint"), ("raw", "binary")], "a", "raw, seq describe how a message came and"),
        ([("body", "binary")], "", "the destination is missing: give the option address, or a column `to`"),
        ([("body", "binary"), ("header", "struct<durable:string>")], "a", "column header is struct<durable:string>"),
        ([("body", "binary"), ("header", "string")], "a", "column header is string, not a struct of durable, "),
        ([("body", "binary"), ("footer", "map<int,string>")], "a", "column footer is map<int,string>, not map<"),
        ([("body", "binary"), ("footer", "map<string,array<int>>")], "a", "column footer is map<string,array<int>>"),
    ],
)  # fmt: skip
def test_columns_that_make_no_message_are_refused(columns: list[tuple[str, str]], address: str, wrong: str) -> None:
    with pytest.raises(BadColumns) as caught:
        check_columns(columns, address)
    assert str(caught.value).startswith(wrong)


def test_columns_of_the_source_are_welcome() -> None:
    header = "struct<durable:boolean,priority:smallint,ttl:bigint,first_acquirer:boolean,delivery_count:bigint>"
    check_columns(
        [("header", header), ("footer", f"map<string,{TYPED}>"), ("body_parts", "array<binary>"), ("to", "string")], "a"
    )
    check_columns([("body", "string"), ("to", "string"), ("application_properties", "map<string, double>")], "")


def test_a_modified_message_counts_its_failures_and_keeps_its_octets() -> None:
    (octets,) = encode(body=[b"x"], message_annotations=pa.array([[("a", "1"), ("b", "2")]], TEXTS))
    assert isinstance(octets, bytes)
    once = redelivered(octets, Modified(delivery_failed=True, message_annotations={"a": 5, "c": 6}))
    twice = redelivered(once, Modified(delivery_failed=True))
    read = Message.decode(twice)
    assert read.header.delivery_count == 2
    assert read.message_annotations == {"a": 5, "b": "2", "c": 6}
    assert twice.endswith(octets[octets.index(b"\0\x53\x73") :])
    assert redelivered(octets, Modified()) == octets
    assert Message.decode(marked(octets, {"z": 1})).message_annotations["z"] == 1


def test_the_manual_names_every_column() -> None:
    manual = (ROOT / "docs" / "sink.md").read_text(encoding="utf-8")
    table = manual.partition("## Columns")[2].partition("## Ids")[0]
    named = {
        name
        for line in table.splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`(\w+)`", line.split("|")[1])
    }
    assert named == {"header", *PROPERTIES, *MAPS, *OTHERS}
