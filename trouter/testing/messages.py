"""Messages for tests, encoded from the parts that a test names."""

from __future__ import annotations

from trouter.wire.constants import (
    APPLICATION_PROPERTIES,
    DATA,
    DELIVERY_ANNOTATIONS,
    HEADER,
    MESSAGE_ANNOTATIONS,
    PROPERTIES,
)
from trouter.wire.message import section
from trouter.wire.types import Symbol, UByte


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
        sections.append(section(HEADER, [None, UByte(priority)]))
    if delivery_annotations is not None:
        sections.append(section(DELIVERY_ANNOTATIONS, _symbols(delivery_annotations)))
    if annotations is not None:
        sections.append(section(MESSAGE_ANNOTATIONS, _symbols(annotations)))
    if to is not None or user_id is not None or subject is not None:
        properties = [None, user_id, to, subject]
        sections.append(section(PROPERTIES, properties[:3] if subject is None else properties))
    if application_properties is not None:
        sections.append(section(APPLICATION_PROPERTIES, application_properties))
    sections.append(section(DATA, body))
    return b"".join(sections)


def _symbols(annotations: dict[str, object]) -> dict[Symbol, object]:
    return {Symbol(name): value for name, value in annotations.items()}
