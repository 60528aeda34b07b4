"""Encoded messages with another header or more annotations; all other bytes stay (AMQP 1.0 part 3, 3.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trouter.client import Header, Modified
from trouter.wire import codec, composite
from trouter.wire.constants import DELIVERY_ANNOTATIONS, HEADER, MESSAGE_ANNOTATIONS
from trouter.wire.types import Described, PairMap, Symbol, ULong


def redelivered(data: bytes, outcome: Modified) -> bytes:
    """Return ``data`` for another attempt after ``outcome``: delivery-count and annotations (part 3, 3.4.5)."""
    if outcome.message_annotations:
        data = marked(data, outcome.message_annotations)
    if not outcome.delivery_failed:
        return data
    header, behind = _section(data, 0, HEADER)
    fields = composite.from_described(header) if header is not None else Header()
    assert isinstance(fields, Header)  # noqa: S101 - the descriptor says so
    fields.delivery_count += 1
    return composite.encode(fields) + data[behind:]


def marked(data: bytes, annotations: Mapping[Any, Any]) -> bytes:
    """Return ``data`` with more message annotations, which replace those with the same key."""
    _, start = _section(data, 0, HEADER)
    _, start = _section(data, start, DELIVERY_ANNOTATIONS)
    found, end = _section(data, start, MESSAGE_ANNOTATIONS)
    before: Any = {} if found is None else found.value
    entries: dict[bytes, tuple[Any, Any]] = {}
    for key, value in [*before.items(), *annotations.items()]:
        key = Symbol(key) if type(key) is str else key
        entries[codec.encode(key)] = (key, value)
    section = codec.encode(Described(ULong(MESSAGE_ANNOTATIONS), PairMap(entries.values())))
    return data[:start] + section + data[end:]


def _section(data: bytes, start: int, code: int) -> tuple[Described | None, int]:
    """Return the section ``code`` if it is at ``start``, otherwise None, and the offset after it."""
    if data[start : start + 3] != bytes((0, 0x53, code)):
        return None, start
    value, end = codec.decode(data, start, len(data))
    return value, end
