"""Messages for tests, encoded from the parts that a test names."""

from __future__ import annotations

from typing import Final

from trouter.wire.codec import encode
from trouter.wire.types import Described, Symbol, UByte, ULong

DATA: Final = 0x75


def compose(
    body: bytes = b"",
    *,
    to: str | None = None,
    user_id: bytes | None = None,
    subject: str | None = None,
    priority: int | None = None,
    delivery_annotations: dict[str, object] | None = None,
    annotations: dict[str, object] | None = None,
    application_properties: dict[str, object] | None = None,
) -> bytes:
    """Return an encoded message with ``body`` in one data section, and the sections for the other arguments."""
    sections: list[bytes] = []
    if priority is not None:
        sections.append(_section(0x70, [None, UByte(priority)]))
    if delivery_annotations is not None:
        sections.append(_section(0x71, _symbols(delivery_annotations)))
    if annotations is not None:
        sections.append(_section(0x72, _symbols(annotations)))
    if to is not None or user_id is not None or subject is not None:
        properties = [None, user_id, to, subject]
        sections.append(_section(0x73, properties[:3] if subject is None else properties))
    if application_properties is not None:
        sections.append(_section(0x74, application_properties))
    sections.append(_section(DATA, body))
    return b"".join(sections)


def _section(code: int, value: object) -> bytes:
    return encode(Described(ULong(code), value))


def _symbols(annotations: dict[str, object]) -> dict[Symbol, object]:
    return {Symbol(name): value for name, value in annotations.items()}
