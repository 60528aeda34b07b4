"""Encoded messages with another header or more annotations; all other bytes stay (AMQP 1.0 part 3, 3.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trouter.client import Header, Modified
from trouter.wire import codec, composite
from trouter.wire.constants import HEADER, MESSAGE_ANNOTATIONS
from trouter.wire.message import SectionReader, section
from trouter.wire.types import PairMap, Symbol


def redelivered(data: bytes, outcome: Modified) -> bytes:
    """Return ``data`` for another attempt after ``outcome``: delivery-count and annotations (part 3, 3.4.5)."""
    if outcome.message_annotations:
        data = marked(data, outcome.message_annotations)
    if not outcome.delivery_failed:
        return data
    reader = SectionReader(data)
    fields, behind = Header(), 0
    if reader.next_section() == HEADER:
        fields = composite.from_values(Header, reader.read_value())
        behind = reader.find_end()
    fields.delivery_count += 1
    return composite.encode(fields) + data[behind:]


def marked(data: bytes, annotations: Mapping[Any, Any]) -> bytes:
    """Return ``data`` with more message annotations, which replace those with the same key."""
    reader = SectionReader(data)
    start = end = 0
    before: Any = {}
    while 0 < reader.next_section() <= MESSAGE_ANNOTATIONS:
        if reader.code == MESSAGE_ANNOTATIONS:
            before = reader.read_value()
        else:
            start = reader.find_end()
        end = reader.find_end()
    entries: dict[bytes, tuple[Any, Any]] = {}
    for key, value in [*before.items(), *annotations.items()]:
        key = Symbol(key) if type(key) is str else key
        entries[codec.encode(key)] = (key, value)
    return data[:start] + section(MESSAGE_ANNOTATIONS, PairMap(entries.values())) + data[end:]
