"""Rows from frames of a spool: the sections of each message (AMQP 1.0 part 3, 3.2), in columns.

Each frame makes one row. An invalid message becomes a row with the reason in ``error`` and its bytes in ``raw``, and
null in the columns of a message: so a sender's fault costs that message and not the batch. The columns are those of
``trouter_pipeline.schema``; change both together.
"""

from __future__ import annotations

from typing import Any, Final

from trouter.wire.codec import be32, decode, skip
from trouter.wire.constants import (
    AMQP_SEQUENCE,
    AMQP_VALUE,
    APPLICATION_PROPERTIES,
    DATA,
    DELIVERY_ANNOTATIONS,
    FOOTER,
    HEADER,
    MESSAGE_ANNOTATIONS,
    PROPERTIES,
    SECTION_RANKS,
    SECTION_SYMBOLS,
)
from trouter.wire.errors import DecodeError
from trouter.wire.types import Symbol, ULong
from trouter_pipeline.columns import Lists, Numbers, Texts
from trouter_pipeline.fields import content_of, put_flag, put_text, put_time, put_whole, typed_key
from trouter_pipeline.values import ValueReader

#: Entries of one map of annotations or properties.
MAX_ENTRIES: Final = 65_536
_MAX_ENTRIES: Final = MAX_ENTRIES
#: Bytes of the longest reason for a bad message.
_MAX_ERROR: Final = 500
_HEAD_BYTES: Final = 31
_GUARD_BYTES: Final = 8
_MASK32: Final = 1 << 32

_HEADER: Final = HEADER
_DELIVERY_ANNOTATIONS: Final = DELIVERY_ANNOTATIONS
_MESSAGE_ANNOTATIONS: Final = MESSAGE_ANNOTATIONS
_PROPERTIES: Final = PROPERTIES
_APPLICATION_PROPERTIES: Final = APPLICATION_PROPERTIES
_DATA: Final = DATA
_SEQUENCE: Final = AMQP_SEQUENCE
_VALUE: Final = AMQP_VALUE
_FOOTER: Final = FOOTER

#: The ranks and the names of the sections, by their codes from that of the header on.
_RANKS: Final = bytes(SECTION_RANKS.values())
_NAMES: Final = [symbol.split(":")[1] for symbol in SECTION_SYMBOLS]
_IDS: Final = frozenset((b"string", b"ulong", b"uuid", b"binary"))
_COLON: Final = b":"
_STRING: Final = b"string"
_SYMBOL: Final = b"symbol"
#: The texts among the properties, by their position (3.2.4).
_TEXTS: Final = (
    (2, "to"),
    (3, "subject"),
    (4, "reply_to"),
    (6, "content_type"),
    (7, "content_encoding"),
    (10, "group_id"),
    (12, "reply_to_group_id"),
)
#: Every column, in the order of a row.
_COLUMNS: Final[tuple[tuple[str, type], ...]] = (
    ("seq", Numbers),
    ("ingest_time", Numbers),
    ("delivery_tag", Texts),
    ("message_format", Numbers),
    ("settled", Numbers),
    ("header", Numbers),
    ("durable", Numbers),
    ("priority", Numbers),
    ("ttl", Numbers),
    ("first_acquirer", Numbers),
    ("delivery_count", Numbers),
    ("delivery_annotations", Lists),
    ("message_annotations", Lists),
    ("message_id", Texts),
    ("message_id_type", Texts),
    ("user_id", Texts),
    ("correlation_id", Texts),
    ("correlation_id_type", Texts),
    ("absolute_expiry_time", Numbers),
    ("creation_time", Numbers),
    ("group_sequence", Numbers),
    ("application_properties", Lists),
    ("body_kind", Texts),
    ("body", Texts),
    ("body_parts", Lists),
    ("body_value", Texts),
    ("footer", Lists),
    ("error", Texts),
    ("raw", Texts),
    *((name, Texts) for _, name in _TEXTS),
)
_BODY_KINDS: Final = {_DATA: b"data", _SEQUENCE: b"sequence", _VALUE: b"value", 0: b"absent"}


class FrameFault(Exception):
    """Frames are not the expected ones: another sequence, an incomplete frame, or a too large message."""


class Rows:
    """A batch of at most ``capacity`` rows; a message that takes it to ``limit`` bytes is the last.

    ``refused`` counts rows whose message could not be decoded; ``first_error`` is the error of the first.
    """

    __slots__ = (
        "_application_properties",
        "_body",
        "_body_kind",
        "_body_parts",
        "_body_value",
        "_capacity",
        "_correlation_id",
        "_correlation_id_type",
        "_creation_time",
        "_delivery_annotations",
        "_delivery_tag",
        "_durable",
        "_delivery_count",
        "_error",
        "_expiry_time",
        "_first",
        "_first_acquirer",
        "_first_end",
        "_footer",
        "_group_sequence",
        "_has_header",
        "_ingest_time",
        "_item_count",
        "_items",
        "_limit",
        "_max_message",
        "_message_annotations",
        "_message_format",
        "_message_id",
        "_message_id_type",
        "_parts",
        "_priority",
        "_raw",
        "_reader",
        "_seq",
        "_settled",
        "_texts",
        "_ttl",
        "_user_id",
        "columns",
        "count",
        "first_error",
        "next",
        "octets",
        "refused",
    )

    def __init__(self, sequence: int, capacity: int, limit: int, max_message: int) -> None:
        """``sequence`` is that of the first frame to come."""
        self.next = sequence
        self.count = 0
        self.octets = 0
        self.refused = 0
        self.first_error = ""
        self._capacity = capacity
        self._limit = limit
        self._max_message = max_message
        self._items = self._item_count = 0
        self._parts = self._first = self._first_end = 0
        self._reader = ValueReader()
        columns: dict[str, Any] = {name: kind(capacity) for name, kind in _COLUMNS}
        self._seq = columns["seq"]
        self._ingest_time = columns["ingest_time"]
        self._delivery_tag = columns["delivery_tag"]
        self._message_format = columns["message_format"]
        self._settled = columns["settled"]
        self._has_header = columns["header"]
        self._durable = columns["durable"]
        self._priority = columns["priority"]
        self._ttl = columns["ttl"]
        self._first_acquirer = columns["first_acquirer"]
        self._delivery_count = columns["delivery_count"]
        self._delivery_annotations = columns["delivery_annotations"]
        self._message_annotations = columns["message_annotations"]
        self._message_id = columns["message_id"]
        self._message_id_type = columns["message_id_type"]
        self._user_id = columns["user_id"]
        self._correlation_id = columns["correlation_id"]
        self._correlation_id_type = columns["correlation_id_type"]
        self._expiry_time = columns["absolute_expiry_time"]
        self._creation_time = columns["creation_time"]
        self._group_sequence = columns["group_sequence"]
        self._application_properties = columns["application_properties"]
        self._body_kind = columns["body_kind"]
        self._body = columns["body"]
        self._body_parts = columns["body_parts"]
        self._body_value = columns["body_value"]
        self._footer = columns["footer"]
        self._error = columns["error"]
        self._raw = columns["raw"]
        #: The texts among the properties, by their position (3.2.4).
        self._texts = {place: (name, columns[name]) for place, name in _TEXTS}
        #: All columns by their names, with those of the header.
        self.columns: dict[str, Numbers | Texts | Lists] = columns

    def expect_like(self, other: Rows) -> None:
        """Make room for bodies as large as those of ``other``, a batch that came before."""
        self._body.expected_bytes = len(other._body.data)

    def full(self) -> bool:
        """Return whether the batch takes no more."""
        return self.count >= self._capacity or self.octets >= self._limit

    def add(self, data: bytes, offset: int) -> int:
        """Add frames of ``data`` from ``offset`` until its end or a full batch; return the new offset. FrameFault."""
        size = len(data)
        while offset < size and self.count < self._capacity and self.octets < self._limit:
            if size - offset < _HEAD_BYTES:
                raise FrameFault(f"{size - offset} bytes behind the last frame")
            end = offset + _GUARD_BYTES + be32(data, offset)
            tag = offset + _HEAD_BYTES
            message = tag + (data[offset + 28] << 8) + data[offset + 29]
            if end > size or message > end:
                raise FrameFault(f"a frame of {end - offset} bytes where {size - offset} are left")
            if (data[offset + 8] | data[offset + 16]) >= 0x80:
                raise FrameFault("a sequence or a time of more than 63 bits")
            if be32(data, offset + 8) * _MASK32 + be32(data, offset + 12) != self.next:
                raise FrameFault(f"another message stands where that of sequence {self.next} should be")
            if end - message > self._max_message:
                raise FrameFault(
                    f"message {self.next} has {end - message} bytes, and maxMessageBytes is {self._max_message}: "
                    "raise it to read the message"
                )
            row = self.count
            self._seq.put(row, self.next)
            self._ingest_time.put(row, be32(data, offset + 16) * _MASK32 + be32(data, offset + 20))
            self._message_format.put(row, be32(data, offset + 24))
            self._settled.put(row, data[offset + 30] & 1)
            self._delivery_tag.put(row, data, tag, message)
            try:
                if be32(data, offset + 24) != 0:
                    raise DecodeError(f"message format {be32(data, offset + 24):#010x} is not that of AMQP itself")
                self._message(row, data, message, end)
            except DecodeError as error:
                self._refuse(row, data, message, end, error)
            self.count = row + 1
            self.next += 1
            self.octets += end - message
            offset = end
        return offset

    def finish(self) -> None:
        """Make the columns as long as the batch."""
        for column in self.columns.values():
            if not isinstance(column, Numbers):
                column.finish(self.count)

    def _refuse(self, row: int, data: bytes, start: int, end: int, error: DecodeError) -> None:
        """Replace the row's values by error and raw bytes."""
        for name, column in self.columns.items():
            if name not in {"seq", "ingest_time", "message_format", "settled", "delivery_tag"}:
                column.undo(row)
        place = f" (at byte {error.offset - start} of {end - start})" if error.offset >= start else ""
        why = f"{error}{place}".encode()[:_MAX_ERROR].decode(errors="ignore")
        text = why.encode()
        self._error.put(row, text, 0, len(text))
        self._raw.put(row, data, start, end)
        if not self.refused:
            self.first_error = f"message {self.next}: {why}"
        self.refused += 1

    def _message(self, row: int, data: bytes, offset: int, end: int) -> None:
        """Read the sections in order; DecodeError."""
        if offset >= end:
            raise DecodeError("the message is empty: it has no section at all", offset)
        last = 0
        body = 0
        text = None
        self._parts = 0
        while offset < end:
            start = offset
            if end - offset > 3 and data[offset] == 0 and data[offset + 1] == 0x53:
                code = data[offset + 2]
                offset += 3
            else:
                code = self._rare_section(data, offset, end)
                offset = self._items
            if not _HEADER <= code <= _FOOTER:
                raise DecodeError("not a section of a message", start)
            rank = _RANKS[code - _HEADER]
            if rank <= last and not (code == body and code != _VALUE and rank == last):
                raise DecodeError(f"the section {_NAMES[code - _HEADER]} is out of order, or comes twice", start)
            last = rank
            if code == _DATA:
                body = code
                offset = self._data_section(row, data, offset, end)
            elif code == _SEQUENCE:
                if offset < end and data[offset] not in {0x45, 0xC0, 0xD0}:
                    raise DecodeError(f"a sequence section has format code {data[offset]:#04x}", offset)
                if text is None:
                    text = bytearray(b"[")
                else:
                    text += b","
                body = code
                offset = self._reader.json(text, data, offset, end)
            elif code == _VALUE:
                body = code
                first = offset
                if offset < end and data[offset] & 0xEF == 0xA0:  # a binary needs no JSON
                    offset = skip(data, offset, end)
                else:
                    text = bytearray()
                    offset = self._reader.json(text, data, offset, end)
                if data[first] & 0xEE == 0xA0:  # a binary or a string
                    self._body.put(row, data, first + (5 if data[first] & 0x10 else 2), offset)
            else:
                offset = self._fields(code, row, data, offset, end)
        if self._parts > 1:
            self._body_parts.end(row)
        if text is not None:
            if body == _SEQUENCE:
                text += b"]"
            self._put_text(self._body_value, row, bytes(text))
        self._put_text(self._body_kind, row, _BODY_KINDS[body])

    def _data_section(self, row: int, data: bytes, offset: int, end: int) -> int:
        """Add a data section to the body, and from the second one on to its parts; return its end."""
        behind = skip(data, offset, end)
        offset = content_of(data, offset, behind, "a data section", 0xA0)
        if self._parts == 0:
            self._first = offset
            self._first_end = behind
        else:
            if self._parts == 1:
                self._body_parts.begin(row)
                self._body_parts.values.add(data, self._first, self._first_end)
            self._body_parts.values.add(data, offset, behind)
        self._parts += 1
        self._body.put(row, data, offset, behind)
        return behind

    def _fields(self, code: int, row: int, data: bytes, offset: int, end: int) -> int:
        """Put a section that is no body into its columns; return its end."""
        if code == _HEADER:
            return self._header(row, data, offset, end)
        if code == _PROPERTIES:
            return self._properties(row, data, offset, end)
        if code == _APPLICATION_PROPERTIES:
            return self._map(row, self._application_properties, data, offset, end, _STRING)
        if code == _MESSAGE_ANNOTATIONS:
            return self._map(row, self._message_annotations, data, offset, end, _SYMBOL)
        if code == _DELIVERY_ANNOTATIONS:
            return self._map(row, self._delivery_annotations, data, offset, end, _SYMBOL)
        return self._map(row, self._footer, data, offset, end, _SYMBOL)

    def _put_text(self, column: Texts, row: int, text: bytes) -> None:
        column.put(row, text, 0, len(text))

    def _rare_section(self, data: bytes, offset: int, end: int) -> int:
        """Return the code of a section with a wide or symbolic descriptor; set ``_items`` to its content."""
        if data[offset]:
            raise DecodeError("not a section of a message", offset)
        descriptor, self._items = decode(data, offset + 1, end, 16)
        if type(descriptor) is Symbol:
            return SECTION_SYMBOLS.get(descriptor, 0)
        return int(descriptor) if type(descriptor) is ULong and descriptor < 256 else 0

    def _open(self, data: bytes, offset: int, end: int, short: int) -> int:
        """Return the end of a list (``short`` 0xC0) or map (0xC1); set ``_items`` and ``_item_count``."""
        if offset >= end:
            raise DecodeError("the section is cut short", offset)
        code = data[offset]
        if code == 0x45 and short == 0xC0:
            self._items = offset + 1
            self._item_count = 0
            return offset + 1
        if code != short and code != short + 0x10:
            raise DecodeError(f"the section has format code {code:#04x}", offset)
        behind = skip(data, offset, end)
        width = 1 if code == short else 4
        self._items = offset + 1 + 2 * width
        if self._items > behind:
            raise DecodeError("the section has no room for its count", offset)
        self._item_count = data[offset + 2] if width == 1 else be32(data, offset + 5)
        if self._item_count > behind - self._items:
            raise DecodeError(f"{self._item_count} items claimed in {behind - self._items} bytes", offset)
        return behind

    def _header(self, row: int, data: bytes, offset: int, end: int) -> int:
        behind = self._open(data, offset, end, 0xC0)
        self._has_header.put(row, 1)
        offset = self._items
        if self._item_count > 5:
            raise DecodeError(f"a header of {self._item_count} fields", offset)
        for place in range(self._item_count):
            if place == 0:
                offset = put_flag(self._durable, row, data, offset, behind, "durable")
            elif place == 1:
                offset = put_whole(self._priority, row, data, offset, behind, "priority", False)
            elif place == 2:
                offset = put_whole(self._ttl, row, data, offset, behind, "ttl", True)
            elif place == 3:
                offset = put_flag(self._first_acquirer, row, data, offset, behind, "first-acquirer")
            else:
                offset = put_whole(self._delivery_count, row, data, offset, behind, "delivery-count", True)
        if offset != behind:
            raise DecodeError("bytes behind the last field of the header", offset)
        return behind

    def _properties(self, row: int, data: bytes, offset: int, end: int) -> int:
        behind = self._open(data, offset, end, 0xC0)
        offset = self._items
        if self._item_count > 13:
            raise DecodeError(f"properties of {self._item_count} fields", offset)
        for place in range(self._item_count):
            if offset < behind and data[offset] == 0x40:
                offset += 1
            elif place == 0:
                offset = self._id(self._message_id, self._message_id_type, row, data, offset, behind)
            elif place == 5:
                offset = self._id(self._correlation_id, self._correlation_id_type, row, data, offset, behind)
            elif place == 1:
                offset = self._user(row, data, offset, behind)
            elif place == 8:
                offset = put_time(self._expiry_time, row, data, offset, behind, "absolute-expiry-time")
            elif place == 9:
                offset = put_time(self._creation_time, row, data, offset, behind, "creation-time")
            elif place == 11:
                offset = put_whole(self._group_sequence, row, data, offset, behind, "group-sequence", True)
            else:
                name, column = self._texts[place]
                offset = put_text(column, row, data, offset, behind, name)
        if offset != behind:
            raise DecodeError("bytes behind the last field of the properties", offset)
        return behind

    def _id(self, column: Texts, kinds: Texts, row: int, data: bytes, offset: int, end: int) -> int:
        """Read a message-id or correlation-id: string, ulong, uuid or binary (3.2.11 to 3.2.14); return its end."""
        if offset < end and data[offset] & 0xEF == 0xA1:
            kinds.put(row, _STRING, 0, 6)
            return put_text(column, row, data, offset, end, "an id")
        behind = self._reader.read(data, offset, end)
        if self._reader.kind not in _IDS:
            raise DecodeError(f"an id of type {self._reader.kind.decode() or 'unknown'}", offset)
        self._put_text(column, row, self._reader.text)
        self._put_text(kinds, row, self._reader.kind)
        return behind

    def _user(self, row: int, data: bytes, offset: int, end: int) -> int:
        """Read the user-id, a binary that some clients send as a string; return its end."""
        behind = skip(data, offset, end)
        self._user_id.put(row, data, content_of(data, offset, behind, "user-id", 0xA0), behind)
        return behind

    def _map(self, row: int, column: Lists, data: bytes, offset: int, end: int, usual: bytes) -> int:
        """Read a map section; keys of another type than ``usual`` get their type as prefix. Return its end."""
        behind = self._open(data, offset, end, 0xC1)
        count = self._item_count
        offset = self._items
        if count & 1:
            raise DecodeError("Odd Number of Elements in a Map", offset)
        if count > 2 * _MAX_ENTRIES:
            raise DecodeError(f"a map of {count >> 1} entries; at most {MAX_ENTRIES} are accepted", offset)
        column.begin(row)
        reader = self._reader
        keys = set()
        for _ in range(count >> 1):
            offset = reader.read(data, offset, behind)
            key = reader.text
            if reader.kind != usual or _COLON in key:
                key = typed_key(key, reader.kind, usual)
            keys.add(key)
            column.keys.add(key, 0, len(key))
            offset = reader.read(data, offset, behind)
            column.kinds.add(reader.kind, 0, len(reader.kind))
            if reader.kind == b"null":
                column.values.add_null()
            else:
                column.values.add(reader.text, 0, len(reader.text))
        if len(keys) != count >> 1:
            raise DecodeError("map has the same key twice", self._items)
        if offset != behind:
            raise DecodeError("bytes behind the last entry of a map", offset)
        column.end(row)
        return behind
