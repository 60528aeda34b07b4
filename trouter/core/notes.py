"""Small messages between an edge router and its interior router (inter-router.md 6.4-6.6).

The peer may be hostile: ``read`` raises DecodeError for an invalid message, without its contents.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from trouter.wire.codec import encode
from trouter.wire.constants import AMQP_VALUE, APPLICATION_PROPERTIES, HEADER, PROPERTIES
from trouter.wire.message import SectionReader, encoded_section
from trouter.wire.parts import wide_list, wide_map

_NOT_DURABLE: Final = encoded_section(HEADER, wide_list([encode(False)]))
_REPLY_TO, _CORRELATION_ID = 4, 5
_NOTHING: Final[Mapping[str, object]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Note:
    """One message between an edge router and its interior router."""

    body: object
    to: str | None = None
    reply_to: str | None = None
    correlation_id: object = None
    properties: Mapping[str, object] = field(default_factory=lambda: _NOTHING)
    #: It has no header section, like heartbeats.
    headless: bool = False


def write(note: Note) -> bytes:
    """Return the encoded message, without annotations, in the encodings of Qpid Dispatch."""
    sections = [] if note.headless else [_NOT_DURABLE]
    if note.to is not None or note.reply_to is not None or note.correlation_id is not None:
        fields = [None, None, note.to, None, note.reply_to, note.correlation_id]
        sections.append(encoded_section(PROPERTIES, _wide(fields)))
    if note.properties:
        sections.append(encoded_section(APPLICATION_PROPERTIES, _wide(dict(note.properties))))
    sections.append(encoded_section(AMQP_VALUE, _wide(note.body)))
    return b"".join(sections)


def read(data: bytes) -> Note:
    """Return the note of an encoded message; DecodeError."""
    found: dict[int, object] = {}
    reader = SectionReader(data)
    while code := reader.next_section():
        found.setdefault(code, reader.read_value())
    fields, properties = found.get(PROPERTIES), found.get(APPLICATION_PROPERTIES)
    fields = fields if isinstance(fields, list) else []
    return Note(
        body=found.get(AMQP_VALUE),
        reply_to=_text(fields, _REPLY_TO),
        correlation_id=fields[_CORRELATION_ID] if len(fields) > _CORRELATION_ID else None,
        properties=properties if isinstance(properties, dict) else _NOTHING,
    )


def _text(fields: list[object], place: int) -> str | None:
    value = fields[place] if len(fields) > place else None
    return value if isinstance(value, str) else None


def _wide(value: object) -> bytes:
    """Return an encoded value; lists and maps with sizes of 32 bits."""
    if isinstance(value, dict):
        return wide_map(encode(each) for pair in value.items() for each in pair)
    return wide_list(map(encode, value)) if isinstance(value, list) else encode(value)
