"""A bridge between two brokers keeps all sections of a message, with every field of the properties and every type."""

from __future__ import annotations

import uuid
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from proton import (
    UNDESCRIBED,
    Array,
    Data,
    Described,
    Message,
    byte,
    char,
    decimal32,
    decimal64,
    decimal128,
    float32,
    int32,
    short,
    symbol,
    timestamp,
    ubyte,
    uint,
    ulong,
    ushort,
)

from tests.brokers import Broker, served
from tests.routers import ROOT, running
from tests.terminal import files_of

pytestmark = pytest.mark.slow

PAGE = (ROOT / "docs" / "instead-of-a-shovel.md").read_text(encoding="utf-8")
#: One value of each primitive type that application properties may have.
VALUES: dict[str, Any] = {
    "null": None,
    "true": True,
    "ubyte": ubyte(255),
    "ushort": ushort(65535),
    "uint": uint(2**32 - 1),
    "ulong": ulong(2**64 - 1),
    "byte": byte(-128),
    "short": short(-32768),
    "int": int32(-(2**31)),
    "long": -(2**63),
    "float": float32(0.5),
    "double": 0.1,
    "decimal32": decimal32(7),
    "decimal64": decimal64(7),
    "decimal128": decimal128(bytes(range(16))),
    "char": char("\u00e9"),
    "timestamp": timestamp(1700000000123),
    "uuid": uuid.UUID(int=7),
    "binary": b"\x00\xff",
    "string": "gr\u00fc\u00dfe",
    "symbol": symbol("a-symbol"),
}
FIELDS: dict[str, Any] = {
    "id": ulong(7),
    "user_id": b"someone",
    "address": "elsewhere",
    "subject": "a subject",
    "reply_to": "answers",
    "correlation_id": uuid.UUID(int=8),
    "content_type": symbol("text/plain"),
    "content_encoding": symbol("gzip"),
    "expiry_time": 1900000000.0,
    "creation_time": 1800000000.0,
    "group_id": "a group",
    "group_sequence": 3,
    "reply_to_group_id": "another group",
    "durable": True,
    "priority": 7,
    "ttl": 60000.0,
}
#: Its constructor has no type for `UNDESCRIBED`.
_ARRAY: Any = Array
BODIES: tuple[Any, ...] = (
    "text",
    b"binary",
    None,
    [1, "two", symbol("three")],
    {"a": 1, symbol("b"): [None]},
    _ARRAY(UNDESCRIBED, Data.INT, 1, 2),
    Described(symbol("a:kind"), "value"),
)


def shown(message: Message) -> dict[str, Any]:
    """Return the sections of a message, with the types of their values."""
    read: Any = message
    values: dict[str, Any] = read.properties
    sections = {"properties": values, "annotations": message.annotations, "body": message.body}
    fields = {name: getattr(message, name) for name in FIELDS}
    types = {name: type(value) for name, value in values.items()}
    return {**sections, **fields, "types": types, "type": type(message.body)}


def test_a_bridge_changes_no_section_of_a_message(tmp_path: Path) -> None:
    annotations = {symbol("x-opt-note"): [1, "two"], symbol("x-opt-map"): {"a": True}}
    messages = [Message(body=body, properties=VALUES, annotations=annotations, **FIELDS) for body in BODIES]
    old, new = Broker("old"), Broker("new")
    with served(old), served(new):
        text = files_of(PAGE)["between.conf"]
        for given, here in (("5672", "0"), ("5673", str(old.port)), ("5674", str(new.port))):
            text = text.replace(f"port: {given}", f"port: {here}")
        with running(text, tmp_path):
            new.wait(lambda b: len(b.attached) == 1)
            for message in messages:
                old.do(partial(Broker.put, address="/amq/queue/orders", message=message))
            new.wait(lambda b: len(b.received) == len(BODIES))
            old.wait(lambda b: b.dispositions == ["accepted"] * len(BODIES))
    for sent, came in zip(messages, new.received, strict=True):
        before = Message()
        before.decode(sent.encode())
        assert len(shown(before)["types"]) == len(VALUES)
        assert shown(came) == shown(before)
