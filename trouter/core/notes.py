"""Small messages between an edge router and its interior router (inter-router.md 6.4-6.6).

The peer may be hostile: ``read`` raises DecodeError for an invalid message, without its contents.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from trouter.wire.codec import decode, encode
from trouter.wire.errors import DecodeError
from trouter.wire.types import Described

_HEADER: Final = b"\x00\x53\x70\xd0\x00\x00\x00\x05\x00\x00\x00\x01\x42"  # durable=false
_PROPERTIES, _APPLICATION_PROPERTIES, _VALUE = 0x73, 0x74, 0x77
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
    sections = [] if note.headless else [_HEADER]
    if note.to is not None or note.reply_to is not None or note.correlation_id is not None:
        fields = [None, None, note.to, None, note.reply_to, note.correlation_id]
        sections.append(_section(_PROPERTIES, fields))
    if note.properties:
        sections.append(_section(_APPLICATION_PROPERTIES, dict(note.properties)))
    sections.append(_section(_VALUE, note.body))
    return b"".join(sections)


def read(data: bytes) -> Note:
    """Return the note of an encoded message; DecodeError."""
    offset, end = 0, len(data)
    found: dict[object, object] = {}
    while offset < end:
        section, offset = decode(data, offset, end)
        if not isinstance(section, Described):
            raise DecodeError("a section without its descriptor", offset)
        found.setdefault(section.descriptor, section.value)
    fields, properties = found.get(_PROPERTIES), found.get(_APPLICATION_PROPERTIES)
    fields = fields if isinstance(fields, list) else []
    return Note(
        body=found.get(_VALUE),
        reply_to=_text(fields, _REPLY_TO),
        correlation_id=fields[_CORRELATION_ID] if len(fields) > _CORRELATION_ID else None,
        properties=properties if isinstance(properties, dict) else _NOTHING,
    )


def _text(fields: list[object], place: int) -> str | None:
    value = fields[place] if len(fields) > place else None
    return value if isinstance(value, str) else None


def _section(code: int, value: object) -> bytes:
    return b"\x00\x53" + bytes([code]) + _wide(value)


def _wide(value: object) -> bytes:
    """Return an encoded value; lists and maps with sizes of 32 bits."""
    if isinstance(value, dict):
        code, items = b"\xd1", [item for pair in value.items() for item in pair]
    elif isinstance(value, list):
        code, items = b"\xd0", value
    else:
        return encode(value)
    body = b"".join(map(encode, items))
    return code + (len(body) + 4).to_bytes(4, "big") + len(items).to_bytes(4, "big") + body
