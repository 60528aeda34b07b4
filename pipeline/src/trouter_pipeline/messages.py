"""Rows as encoded messages (AMQP 1.0 part 3, 3.2), batch by batch and column by column.

The columns are those that the source makes of a message; null sections are left out. Each message has an id, its own or
one made of the row's position in the query, by which a receiver recognizes a repetition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, Final, NamedTuple

import pyarrow as pa

from trouter.client import Header
from trouter.wire import codec, composite
from trouter.wire.constants import (
    AMQP_SEQUENCE,
    AMQP_VALUE,
    APPLICATION_PROPERTIES,
    DELIVERY_ANNOTATIONS,
    FOOTER,
    MESSAGE_ANNOTATIONS,
)
from trouter.wire.constants import PROPERTIES as PROPERTIES_SECTION
from trouter.wire.errors import EncodeError
from trouter.wire.message import data_section, encoded_section, section
from trouter.wire.parts import NULL, encode_binary, encode_string, encode_symbol, join_list, join_map
from trouter.wire.types import Symbol, UInt
from trouter_pipeline.typed import BadValue, from_json, from_text, key_from_text

TEXT: Final = frozenset(("string",))
WHOLE: Final = frozenset(("tinyint", "smallint", "int", "bigint"))
ID: Final = TEXT | WHOLE | {"binary", "decimal(20,0)"}
#: Types of values in maps; the struct is that of the source, with the AMQP type of each value.
TYPED: Final = "struct<type:string,value:string>"
IN_MAP: Final = TEXT | WHOLE | {"boolean", "float", "double", "binary", TYPED}
HEADER: Final = {
    "durable": frozenset(("boolean",)),
    "priority": WHOLE,
    "ttl": WHOLE,
    "first_acquirer": frozenset(("boolean",)),
    "delivery_count": WHOLE,
}

#: The properties in the order of the wire (3.2.4), each with the types that its column may have.
PROPERTIES: Final = {
    "message_id": ID,
    "user_id": TEXT | {"binary"},
    "to": TEXT,
    "subject": TEXT,
    "reply_to": TEXT,
    "correlation_id": ID,
    "content_type": TEXT,
    "content_encoding": TEXT,
    "absolute_expiry_time": frozenset(("timestamp",)),
    "creation_time": frozenset(("timestamp",)),
    "group_id": TEXT,
    "group_sequence": WHOLE,
    "reply_to_group_id": TEXT,
}
#: Map sections in the order of the wire, with their codes.
MAPS: Final = {
    "delivery_annotations": DELIVERY_ANNOTATIONS,
    "message_annotations": MESSAGE_ANNOTATIONS,
    "application_properties": APPLICATION_PROPERTIES,
    "footer": FOOTER,
}
#: The other columns by name.
OTHERS: Final = {
    "message_id_type": TEXT,
    "correlation_id_type": TEXT,
    "body_value": TEXT,
    "body_parts": frozenset(("array<binary>",)),
    "body": TEXT | {"binary"},
    "body_kind": TEXT,
}
BODIES: Final = ("body", "body_parts", "body_value")
#: The types of ids (3.2.11 to 3.2.14), and the kinds of bodies.
ID_KINDS: Final = ("string", "ulong", "uuid", "binary")
BODY_KINDS: Final = ("data", "value", "sequence", "absent")
#: Columns of the source about the arrival of a message, which cannot be sent.
CAME: Final = frozenset((
    "spool_id", "seq", "ingest_time", "shard", "address", "delivery_tag", "message_format", "settled", "error", "raw",
))  # fmt: skip

_NULL_BODY: Final = section(AMQP_VALUE, None)


class BadColumns(ValueError):
    """Columns that make no message; the text names the column and the cure."""


class Unsendable(NamedTuple):
    """A row that makes no message, and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class RowPosition:
    """The position of rows: query (or the given prefix), batch and partition."""

    query: str
    batch: int
    partition: int


def check_columns(columns: Iterable[tuple[str, str]], address: str) -> None:
    """Verify that columns (name, Spark type) can be sent to ``address``, or "" for each row's own; BadColumns."""
    seen = dict(columns)
    if superfluous := sorted(CAME & seen.keys()):
        drop = ", ".join(map(repr, superfluous))
        raise BadColumns(f"{', '.join(superfluous)} describe how a message came and cannot be sent: .drop({drop})")
    for name, kind in seen.items():
        _check_column(name, kind.replace(" ", "").lower())
    if not any(name in seen for name in BODIES):
        raise BadColumns(f"no column has the body to send: give {', '.join(BODIES[:-1])} or {BODIES[-1]}")
    if not address and "to" not in seen:
        raise BadColumns("the destination is missing: give the option address, or a column `to`")


def _check_column(name: str, kind: str) -> None:
    if name == "header":
        _check_header(kind)
    elif name in MAPS:
        value = kind.removeprefix("map<string,").removesuffix(">") if kind.startswith("map<string,") else ""
        if value + ">" == TYPED:
            value = TYPED
        if value not in IN_MAP:
            raise BadColumns(f"column {name} is {kind}, not map<string, V> with V one of {', '.join(sorted(IN_MAP))}")
    else:
        wanted = PROPERTIES.get(name) or OTHERS.get(name)
        if wanted is None:
            near = get_close_matches(name, known := _names(), n=1, cutoff=0.5)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
            raise BadColumns(f"a message has no field for column {name[:64]!r}: {hint}")
        if kind not in wanted:
            raise BadColumns(f"column {name} is {kind}, not {' or '.join(sorted(wanted))}: cast it")


def _check_header(kind: str) -> None:
    fields = kind.removeprefix("struct<").removesuffix(">").split(",") if kind.startswith("struct<") else [kind]
    for field in fields:
        name, _, inner = field.partition(":")
        if inner not in HEADER.get(name, ()):
            raise BadColumns(f"column header is {kind}, not a struct of {', '.join(HEADER)}")


def _names() -> list[str]:
    return ["header", *PROPERTIES, *MAPS, *OTHERS]


class Encoder:
    """Encodes the rows of one partition, batch after batch. If ``anonymous``, each row needs a destination."""

    def __init__(self, place: RowPosition, *, anonymous: bool = False) -> None:
        self._row = 0
        self._anonymous = anonymous
        self._id = f"{place.query}/{place.batch}/{place.partition}/".encode()
        ours = {"spark-query": place.query, "spark-batch": place.batch, "spark-partition": place.partition}
        self._ours = b"".join(codec.encode(key) + codec.encode(value) for key, value in ours.items())
        self._ours += codec.encode("spark-row")

    def encode(self, batch: pa.RecordBatch) -> list[bytes | Unsendable]:
        """Return a message for each row, in order; an Unsendable names the column at fault."""
        first = self._row
        self._row += batch.num_rows
        try:
            return list(self._messages(batch, first))
        except (BadValue, EncodeError, pa.ArrowInvalid, ValueError) as error:
            if batch.num_rows == 1:
                return [Unsendable(str(error))]
        # One of many rows failed: encode each by itself to find it.
        found: list[bytes | Unsendable] = []
        self._row = first
        for number in range(batch.num_rows):
            found += self.encode(batch.slice(number, 1))
        return found

    def _messages(self, batch: pa.RecordBatch, first: int) -> Iterator[bytes]:
        columns = {name: batch.column(number) for number, name in enumerate(batch.schema.names)}
        rows = range(first, first + batch.num_rows)
        if self._anonymous and columns["to"].null_count:
            raise BadValue("to: the destination is missing")
        sections = [
            *([list(map(_header, columns["header"].to_pylist()))] if "header" in columns else []),
            *(_map(columns, name) for name in ("delivery_annotations", "message_annotations") if name in columns),
            self._properties(columns, rows),
            self._application_properties(columns, rows),
            _bodies(columns, len(rows)),
            *(_map(columns, name) for name in ("footer",) if name in columns),
        ]
        return map(b"".join, zip(*sections, strict=True))

    def _properties(self, columns: Mapping[str, pa.Array], rows: range) -> list[bytes]:
        fields: list[Sequence[bytes]] = []
        for name in PROPERTIES:
            if name == "message_id":
                fields.append(self._ids(columns, rows))
            else:
                fields.append(_field(columns, name) if name in columns else ())
        while not fields[-1]:
            fields.pop()
        nulls = [NULL] * len(rows)
        count = len(fields)
        contents = map(b"".join, zip(*(field or nulls for field in fields), strict=True))
        return [encoded_section(PROPERTIES_SECTION, join_list(content, count)) for content in contents]

    def _ids(self, columns: Mapping[str, pa.Array], rows: range) -> list[bytes]:
        """Return the id of each row, made for those that have none."""
        given = _field(columns, "message_id") if "message_id" in columns else [NULL] * len(rows)
        prefix = self._id
        return [
            encode_string(b"%b%d" % (prefix, row)) if value is NULL else value
            for value, row in zip(given, rows, strict=True)
        ]

    def _application_properties(self, columns: Mapping[str, pa.Array], rows: range) -> list[bytes]:
        ours = [b"%b\x81%b" % (self._ours, row.to_bytes(8)) for row in rows]
        if "application_properties" not in columns:
            return [encoded_section(APPLICATION_PROPERTIES, join_map(each, 8)) for each in ours]
        entries = _entries(columns["application_properties"], "application_properties")
        return [
            encoded_section(APPLICATION_PROPERTIES, join_map(content + each, count + 8))
            for (content, count), each in zip(entries, ours, strict=True)
        ]


# --- values


def _symbol(octets: bytes) -> bytes:
    if not octets.isascii():
        raise BadValue(f"{octets.decode()[:64]!r} is not ASCII")
    return encode_symbol(octets)


def _milliseconds(microseconds: int) -> bytes:
    return b"\x83" + (microseconds // 1000).to_bytes(8, signed=True)


def _sequence(number: int) -> bytes:
    return codec.encode(UInt(number))


def _ulong(number: int) -> bytes:
    return codec.encode(from_text("ulong", str(number)))


_ENCODE: Final[dict[str, Callable[[Any], bytes]]] = {
    "user_id": encode_binary,
    "content_type": _symbol,
    "content_encoding": _symbol,
    "absolute_expiry_time": _milliseconds,
    "creation_time": _milliseconds,
    "group_sequence": _sequence,
}


def _raw(column: pa.Array) -> list[Any]:
    """Return the values: text as bytes of valid UTF-8, times as microseconds."""
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column.validate(full=True)
        wide = pa.types.is_large_string(column.type)
        column = column.cast(pa.large_binary() if wide else pa.binary())
    elif pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    return list(column.to_pylist())


def _field(columns: Mapping[str, pa.Array], name: str) -> list[bytes]:
    """Return the encoded column ``name`` of the properties; BadValue names it."""
    column = columns[name]
    try:
        if name in {"message_id", "correlation_id"}:
            return _ids(column, columns.get(f"{name}_type"))
        encode = _ENCODE.get(name, encode_string)
        return [NULL if value is None else encode(value) for value in _raw(column)]
    except (BadValue, EncodeError, OverflowError, ValueError) as error:
        raise BadValue(f"{name}: {error}") from None


def _ids(column: pa.Array, kinds: pa.Array | None) -> list[bytes]:
    encode: Callable[[Any], bytes]
    if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        encode = encode_binary
    elif pa.types.is_integer(column.type) or pa.types.is_decimal(column.type):
        encode = _ulong
    elif kinds is None:
        encode = encode_string
    else:
        pairs = zip(column.to_pylist(), kinds.to_pylist(), strict=True)
        return [NULL if text is None else _typed_id(kind or "string", text) for text, kind in pairs]
    return [NULL if value is None else encode(value) for value in _raw(column)]


def _typed_id(kind: str, text: str) -> bytes:
    if kind not in ID_KINDS:
        raise BadValue(f"an id is a {', '.join(ID_KINDS[:-1])} or {ID_KINDS[-1]}, not {kind[:32]!r}")
    return codec.encode(from_text(kind, text))


@lru_cache(maxsize=4096)
def _known_header(fields: tuple[tuple[str, Any], ...]) -> bytes:
    return composite.encode(Header(**dict(fields)))


def _header(given: Mapping[str, Any] | None) -> bytes:
    """Return a header with the fields that are not null."""
    if given is None:
        return b""
    try:
        return _known_header(tuple((name, value) for name, value in given.items() if value is not None))
    except EncodeError as error:
        raise BadValue(f"header: {error}") from None


def _map(columns: Mapping[str, pa.Array], name: str) -> list[bytes]:
    """Return a section for each row, b"" without entries."""
    code = MAPS[name]
    return [
        encoded_section(code, join_map(content, count)) if count else b""
        for content, count in _entries(columns[name], name)
    ]


#: The keys with the position of a row; those in the row itself are from an earlier delivery, and are dropped.
OURS: Final = frozenset(("spark-query", "spark-batch", "spark-partition", "spark-row"))


def _entries(column: pa.Array, name: str) -> Iterator[tuple[bytes, int]]:
    """Yield for each row its encoded keys and values, and their number."""
    key_of = _property_key if name == "application_properties" else _annotation_key
    left_out = OURS if name == "application_properties" else frozenset[str]()
    for pairs in column.to_pylist():
        parts: list[bytes] = []
        try:
            for key, value in pairs or ():
                if key not in left_out:
                    parts.append(key_of(key))
                    parts.append(_map_value(value))
        except (BadValue, EncodeError) as error:
            raise BadValue(f"{name}: {error}") from None
        yield b"".join(parts), len(parts)


@lru_cache(maxsize=4096)
def _property_key(key: str) -> bytes:
    return codec.encode(key_from_text(key, str))


@lru_cache(maxsize=4096)
def _annotation_key(key: str) -> bytes:
    return codec.encode(key_from_text(key, Symbol))


def _map_value(value: Any) -> bytes:
    if type(value) is str:
        return encode_string(value.encode())
    if type(value) is dict:
        kind = value["type"]
        return NULL if kind is None else codec.encode(from_text(kind, value["value"]))
    return codec.encode(value)


# --- bodies


def _bodies(columns: Mapping[str, pa.Array], count: int) -> list[bytes]:
    """Return the body of each row: the first of value, parts and bytes that is set, otherwise null."""
    kinds = columns["body_kind"].to_pylist() if "body_kind" in columns else None
    found: list[bytes | None] = [None] * count
    try:
        if "body_value" in columns:
            values = columns["body_value"].to_pylist()
            found = [
                None if text is None else _value_body(text, None if kinds is None else kinds[row])
                for row, text in enumerate(values)
            ]
        if "body_parts" in columns:
            several = columns["body_parts"].to_pylist()
            found = [
                b"".join(data_section(len(part)) + part for part in parts) if known is None and parts else known
                for known, parts in zip(found, several, strict=True)
            ]
        if "body" in columns:
            found = [
                octets if known is None else known
                for known, octets in zip(found, _plain_bodies(columns["body"], kinds), strict=True)
            ]
    except (BadValue, EncodeError, ValueError) as error:
        raise BadValue(f"body: {error}") from None
    return [_NULL_BODY if known is None else known for known in found]


def _plain_bodies(column: pa.Array, kinds: list[str | None] | None) -> list[bytes | None]:
    """Return bytes as data sections; text as values, unless the kind is data."""
    text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    default = "value" if text else "data"
    found: list[bytes | None] = []
    for row, octets in enumerate(_raw(column)):
        given = None if kinds is None else kinds[row]
        kind = given or default
        if kind == "absent":
            found.append(b"")
        elif octets is None:
            found.append(data_section(0) if given == "data" else None)
        elif kind == "data":
            found.append(data_section(len(octets)) + octets)
        elif kind == "value":
            found.append(encoded_section(AMQP_VALUE, encode_string(octets) if text else encode_binary(octets)))
        elif kind == "sequence":
            raise BadValue("body_kind is 'sequence': give the items in body_value")
        else:
            raise BadValue(f"body_kind is {kind[:64]!r}, not one of {', '.join(BODY_KINDS)}")
    return found


def _value_body(text: str, kind: str | None) -> bytes:
    value = from_json(text)
    if kind == "sequence":
        if not isinstance(value, list) or not all(isinstance(each, list) for each in value):
            raise BadValue("a sequence is a list of lists")
        return b"".join(encoded_section(AMQP_SEQUENCE, codec.encode(each)) for each in value)
    return encoded_section(AMQP_VALUE, codec.encode(value))
