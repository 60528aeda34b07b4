"""Makes text from peers safe to keep and show: one line, no control characters, bounded length."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from trouter._text import escape_unprintable
from trouter.records.schema import KINDS, MessageSampled, PolicyLoaded, Record

#: Characters kept of one text, and texts kept of one list or map. The operator writes the rules of a vhost, and needs
#: all of them.
MAX_CHARACTERS: Final = 256
MAX_TEXTS: Final = 256
MAX_RULES: Final = 65_536
#: Longer texts: a body in base64 has the configured length, at most this.
_LENGTHS: Final[dict[tuple[type[Record], str], int]] = {(MessageSampled, "body"): 87_384}


def clean(text: str) -> str:
    """Return the text, cut to ``MAX_CHARACTERS``, with escapes for characters that are not printable."""
    if len(text) <= MAX_CHARACTERS and text.isprintable():
        return text
    return escape_unprintable(text[:MAX_CHARACTERS])[:MAX_CHARACTERS]


def escaped(text: str) -> str:
    """Return the whole text, with escapes for characters that are not printable."""
    return escape_unprintable(text)


def tidy(record: Record) -> None:
    """Clean every text of a record, in place."""
    for name, limit in _TEXTS[type(record)]:
        value = getattr(record, name)
        if value is not None and not (len(value) <= limit and value.isprintable()):
            setattr(record, name, clean(value))
    for name, limit in _COLLECTIONS[type(record)]:
        value = getattr(record, name)
        if isinstance(value, list):
            setattr(record, name, [clean(text) for text in value[:limit]])
        elif isinstance(value, dict):
            setattr(record, name, {clean(key): clean(text) for key, text in list(value.items())[:limit]})


def _fields(kind: type[Record], *shapes: Any) -> tuple[str, ...]:
    """Return the names of the fields of one of these types, optional or not."""
    return tuple(
        field.name
        for field in msgspec.structs.fields(kind)
        if any(field.type in {shape, shape | None} for shape in shapes)
    )


_TEXTS: Final = {
    kind: tuple((name, _LENGTHS.get((kind, name), MAX_CHARACTERS)) for name in _fields(kind, str))
    for kind in KINDS.values()
}
_COLLECTIONS: Final = {
    kind: tuple(
        (name, MAX_RULES if kind is PolicyLoaded else MAX_TEXTS) for name in _fields(kind, list[str], dict[str, str])
    )
    for kind in KINDS.values()
}
