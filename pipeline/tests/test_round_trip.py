"""The sink sends the rows that the source reads: a message through Spark's columns keeps its meaning."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

from trouter.client import BodyKind, Header, Message, Properties
from trouter.wire import codec
from trouter.wire.types import (
    Array,
    Char,
    Decimal128,
    Described,
    Float,
    Int,
    PairMap,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
)
from trouter_pipeline.arrow import ARROW_SCHEMA, Origin, batches
from trouter_pipeline.messages import CAME, OURS, Encoder, RowPosition
from trouter_pipeline.spool import Spool, SpoolReader

VALUES: list[Any] = [
    None, True, UByte(7), UInt(2**32 - 1), ULong(2**64 - 1), Int(-1), -(2**63), Float(1.5), 2.5, Char("é"),
    Timestamp(1_769_904_000_000), uuid.UUID(int=5), b"\0\xff", "grüße", Symbol("red"),
    Decimal128(b"\x30\x40" + b"\0" * 13 + b"\1"),
    [1, ["a", None]], {"k": ULong(1)}, PairMap([(ULong(1), "a"), (UInt(1), "b")]), Array("symbol", ["a", "b"]),
    Described(Symbol("urn:x"), [1]), "", [], "ulong:7",
]  # fmt: skip


def through_spark(folder: Path, *messages: Message) -> list[Message]:
    """Return messages that were converted to columns and back."""
    spool = Spool.open(folder)
    for message in messages:
        spool.append(message.encode(), ingest_us=0)
    end = spool.sync()
    spool.close()
    encoder = Encoder(RowPosition("q", 0, 0))
    found: list[Message] = []
    blocks = SpoolReader(folder).blocks(0, end)
    for batch, _ in batches(blocks, Origin("s", 0, "a"), 0, end, 1 << 20):
        rows = batch.select([name for name in ARROW_SCHEMA.names if name not in CAME])
        for octets in encoder.encode(rows):
            assert isinstance(octets, bytes), octets
            found.append(Message.decode(octets))
    for message in found:
        for name in OURS:
            del message.application_properties[name]
    return found


def test_every_section_comes_back(tmp_path: Path) -> None:
    whole = Message(
        [[1, "a"], [None]],
        kind=BodyKind.SEQUENCE,
        header=Header(durable=True, priority=UByte(9), ttl=UInt(5), first_acquirer=True, delivery_count=UInt(3)),
        delivery_annotations={Symbol("x-d"): ULong(1), ULong(7): "seven"},
        message_annotations={Symbol("x-opt-a"): [1, 2], Symbol("list:x"): "a name like a type"},
        properties=Properties(
            message_id=ULong(7),
            user_id=b"u",
            to="there",
            subject="s",
            reply_to="here",
            correlation_id=uuid.UUID(int=9),
            content_type=Symbol("a/b"),
            content_encoding=Symbol("gzip"),
            absolute_expiry_time=Timestamp(1_769_904_000_001),
            creation_time=Timestamp(-1),
            group_id="g",
            group_sequence=UInt(4_000_000_000),
            reply_to_group_id="h",
        ),
        application_properties={str(number): value for number, value in enumerate(VALUES)} | {"int:x": "not a type"},
        footer={Symbol("x-f"): b"f"},
    )
    assert through_spark(tmp_path / "spool", whole) == [whole]


def test_every_value_comes_back_as_a_body(tmp_path: Path) -> None:
    given = [Message(value, kind=BodyKind.VALUE, properties=Properties(message_id="m")) for value in VALUES]
    found = through_spark(tmp_path / "spool", *given)
    assert [codec.encode(each.body) for each in found] == [codec.encode(each.body) for each in given]
    assert {each.kind for each in found} == {BodyKind.VALUE}


def test_octets_and_no_body_come_back(tmp_path: Path) -> None:
    name = Properties(message_id=b"\0\1")
    given = [
        Message(b"", properties=name),
        Message(b"x" * 70_000, properties=name),
        Message(kind=BodyKind.ABSENT, properties=name),
    ]
    assert through_spark(tmp_path / "spool", *given) == given
