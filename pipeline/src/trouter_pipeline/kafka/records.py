"""Records for Kafka, made of messages: key, value, headers, and what chooses the partition.

The value is the body: bytes, or text, or the JSON that the column `body_value` has of an AMQP value of another type. A
message without a body, or with null, is a tombstone: its value is null. What is not a valid message goes as it is, with
the reason in a header, because nothing may be lost.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from trouter_pipeline.kafka.settings import SOURCE, Settings

#: The names of our own headers, which come first, so that no property of a sender can stand for them.
OWN: Final = "trouter-"
SPOOL: Final = "trouter-spool"
SEQUENCE: Final = "trouter-seq"
SOURCE_HEADER: Final = "trouter-source"
ERROR: Final = "trouter-error"
BODY: Final = "trouter-body"
#: Before the names of properties of the sender that begin as ours, and of annotations.
PROPERTY: Final = "property:"
ANNOTATION: Final = "annotation:"
#: Headers of the message's own properties, by column.
_PROPERTIES: Final = {
    name: f"amqp-{name.replace('_', '-')}"
    for name in (
        "message_id",
        "correlation_id",
        "subject",
        "to",
        "reply_to",
        "group_id",
        "content_type",
        "content_encoding",
    )
}
#: The columns of the source that records are made of.
COLUMNS: Final = (
    *("spool_id", "seq", "address", *_PROPERTIES, "user_id", "application_properties", "message_annotations"),
    *("body_kind", "body", "body_value", "error", "raw"),
)
#: Columns that a field may name, beside properties and fields of a JSON body.
NAMED: Final = frozenset({*_PROPERTIES, "address", "user_id"})


class Record(NamedTuple):
    """A record for a topic; ``chooser`` is hashed for its partition, None for that of the source."""

    seq: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes]]
    chooser: bytes | None


def records_of(rows: Sequence[Mapping[str, Any]], settings: Settings) -> Iterator[Record]:
    """Yield a record for each row of the source."""
    by_source = settings.partition_by == SOURCE
    for row in rows:
        fields = _Fields(row)
        texts = [fields.text(name) for name in settings.keys]
        chooser = None if by_source else _octets(fields.text(settings.partition_by) or "")
        yield Record(row["seq"], _key(texts), _value(row), list(_headers(row)), chooser)


def _key(texts: Sequence[str | None]) -> bytes | None:
    """Return the text of one field, or the JSON list of several; None if the first is not there."""
    if not texts or texts[0] is None:
        return None
    return _octets(texts[0] if len(texts) == 1 else json.dumps(texts, ensure_ascii=False, separators=(",", ":")))


def _octets(text: str) -> bytes:
    """Return a text in UTF-8; half of a surrogate pair, which only JSON can have, as JSON spells it."""
    return text.encode(errors="backslashreplace")


class _Fields:
    """The fields of a message, by the names that the command line has for them."""

    def __init__(self, row: Mapping[str, Any]) -> None:
        self._row = row
        self._body: Any = _Fields  # which no body is

    def text(self, name: str) -> str | None:
        """Return the text of a field; None if it is not there, or null."""
        if name.startswith(PROPERTY):
            entry = dict(self._row["application_properties"] or ()).get(name.removeprefix(PROPERTY))
            return None if entry is None else entry["value"]
        if name in NAMED:
            value = self._row[name]
            return value.decode(errors="replace") if isinstance(value, bytes) else value
        value = self._json()
        for part in name.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if value is None or isinstance(value, str):
            return value
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    def _json(self) -> Any:
        if self._body is _Fields:
            try:
                # numbers keep their spelling, so that equal ones have equal keys
                self._body = json.loads(self._row["body"] or b"null", parse_float=str)
            except (ValueError, RecursionError):
                self._body = None
        return self._body


def _value(row: Mapping[str, Any]) -> bytes | None:
    if row["error"] is not None:
        return row["raw"] or b""
    if row["body"] is not None:
        return bytes(row["body"])
    text = row["body_value"]
    return None if text is None or text == "null" else text.encode()


def _headers(row: Mapping[str, Any]) -> Iterator[tuple[str, bytes]]:
    yield SPOOL, row["spool_id"].encode()
    yield SEQUENCE, b"%d" % row["seq"]
    yield SOURCE_HEADER, row["address"].encode()
    if row["error"] is not None:
        yield ERROR, row["error"].encode()
        return
    if row["body"] is None and row["body_value"] not in {None, "null"}:
        yield BODY, row["body_kind"].encode()
    for column, name in _PROPERTIES.items():
        if row[column] is not None:
            yield name, row[column].encode()
    for name, entry in row["application_properties"] or ():
        header = f"{PROPERTY}{name}" if name.lower().startswith((OWN, PROPERTY, ANNOTATION, "amqp-")) else name
        yield header, (entry["value"] or "").encode()
    for name, entry in row["message_annotations"] or ():
        yield f"{ANNOTATION}{name}", (entry["value"] or "").encode()


def origin_of(headers: Sequence[tuple[str, Any]] | None) -> tuple[str, str, int] | None:
    """Return source, spool and sequence of a record; None if it is not one of ours."""
    own = [(name, value) for name, value in (headers or ())[:3] if isinstance(value, bytes)]
    if [name for name, _ in own] != [SPOOL, SEQUENCE, SOURCE_HEADER]:
        return None
    spool, number, source = (value for _, value in own)
    if not number.isdigit() or len(number) > 19:
        return None
    return source.decode(errors="replace"), spool.decode(errors="replace"), int(number)


def murmur2(octets: bytes) -> int:
    """Return the hash by which Kafka's own clients choose the partition of a key: 32 bits, not negative."""
    m, mask = 0x5BD1E995, 0xFFFFFFFF
    length = len(octets)
    h = 0x9747B28C ^ length
    whole = length & ~3
    for at in range(0, whole, 4):
        k = int.from_bytes(octets[at : at + 4], "little") * m & mask
        k = (k ^ k >> 24) * m & mask
        h = (h * m & mask) ^ k
    if rest := octets[whole:]:
        h = (h ^ int.from_bytes(rest, "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    return (h ^ h >> 15) & 0x7FFFFFFF
