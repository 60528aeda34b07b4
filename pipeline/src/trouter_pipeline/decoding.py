"""Rows from frames of a spool: the sections of each message (AMQP 1.0 part 3, 3.2), in columns.

Each frame makes one row. An invalid message becomes a row with the reason in ``error`` and its bytes in ``raw``, and
null in the columns of a message: so a sender's fault costs that message and not the batch. The columns are those of
``trouter_pipeline.schema``; change both together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

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

if TYPE_CHECKING:
    from cython import Py_ssize_t

#: Entries of one map of annotations or properties.
MAX_ENTRIES: Final = 65_536
_MAX_ENTRIES: Final[Py_ssize_t] = MAX_ENTRIES
#: Bytes of the longest reason for a bad message.
_MAX_ERROR: Final[Py_ssize_t] = 500
_HEAD_BYTES: Final[Py_ssize_t] = 31
_GUARD_BYTES: Final[Py_ssize_t] = 8
_MASK32: Final[Py_ssize_t] = 1 << 32

_HEADER: Final[Py_ssize_t] = HEADER
_DELIVERY_ANNOTATIONS: Final[Py_ssize_t] = DELIVERY_ANNOTATIONS
_MESSAGE_ANNOTATIONS: Final[Py_ssize_t] = MESSAGE_ANNOTATIONS
_PROPERTIES: Final[Py_ssize_t] = PROPERTIES
_APPLICATION_PROPERTIES: Final[Py_ssize_t] = APPLICATION_PROPERTIES
_DATA: Final[Py_ssize_t] = DATA
_SEQUENCE: Final[Py_ssize_t] = AMQP_SEQUENCE
_VALUE: Final[Py_ssize_t] = AMQP_VALUE
_FOOTER: Final[Py_ssize_t] = FOOTER

#: The ranks and the names of the sections, by their codes from that of the header on.
_RANKS: Final[bytes] = bytes(SECTION_RANKS.values())
_NAMES: Final[list[str]] = [symbol.split(":")[1] for symbol in SECTION_SYMBOLS]
_IDS: Final[frozenset[bytes]] = frozenset((b"string", b"ulong", b"uuid", b"binary"))
_COLON: Final[bytes] = b":"
_STRING: Final[bytes] = b"string"
_SYMBOL: Final[bytes] = b"symbol"
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
_BODY_KINDS: Final[dict[int, bytes]] = {_DATA: b"data", _SEQUENCE: b"sequence", _VALUE: b"value", 0: b"absent"}


class FrameFault(Exception):
    """Frames are not the expected ones: another sequence, an incomplete frame, or a too large message."""


class Rows:
    """A batch of at most ``capacity`` rows; a message that takes it to ``limit`` bytes is the last.

    ``refused`` counts rows whose message could not be decoded; ``first_error`` is the error of the first.
    """

    __slots__ = (
        "next",
        "count",
        "octets",
        "refused",
        "first_error",
        "columns",
        "_capacity",
        "_limit",
        "_max_message",
        "_keeps_messages",
        "_items",
        "_item_count",
        "_parts",
        "_first",
        "_first_end",
        "_texts",
        "_reader",
        "_seq",
        "_ingest_time",
        "_delivery_tag",
        "_message_format",
        "_settled",
        "_has_header",
        "_durable",
        "_priority",
        "_ttl",
        "_first_acquirer",
        "_delivery_count",
        "_delivery_annotations",
        "_message_annotations",
        "_message_id",
        "_message_id_type",
        "_user_id",
        "_correlation_id",
        "_correlation_id_type",
        "_expiry_time",
        "_creation_time",
        "_group_sequence",
        "_application_properties",
        "_body_kind",
        "_body",
        "_body_parts",
        "_body_value",
        "_footer",
        "_error",
        "_raw",
    )

    def __init__(
        self,
        sequence: Py_ssize_t,
        capacity: Py_ssize_t,
        limit: Py_ssize_t,
        max_message: Py_ssize_t,
        *,
        keeps_messages: bool = False,
    ) -> None:
        """``sequence`` is that of the first frame to come; ``keeps_messages``: the column ``raw`` has each message."""
        self.next = sequence
        self.count: Py_ssize_t = 0
        self.octets: Py_ssize_t = 0
        self.refused: Py_ssize_t = 0
        self.first_error = ""
        self._capacity = capacity
        self._limit = limit
        self._max_message = max_message
        self._keeps_messages: bool = keeps_messages
        self._items: Py_ssize_t = 0
        self._item_count: Py_ssize_t = 0
        self._parts: Py_ssize_t = 0
        self._first: Py_ssize_t = 0
        self._first_end: Py_ssize_t = 0
        self._reader = ValueReader()
        columns: dict[str, Any] = {name: kind(capacity) for name, kind in _COLUMNS}
        self._seq: Numbers = columns["seq"]
        self._ingest_time: Numbers = columns["ingest_time"]
        self._delivery_tag: Texts = columns["delivery_tag"]
        self._message_format: Numbers = columns["message_format"]
        self._settled: Numbers = columns["settled"]
        self._has_header: Numbers = columns["header"]
        self._durable: Numbers = columns["durable"]
        self._priority: Numbers = columns["priority"]
        self._ttl: Numbers = columns["ttl"]
        self._first_acquirer: Numbers = columns["first_acquirer"]
        self._delivery_count: Numbers = columns["delivery_count"]
        self._delivery_annotations: Lists = columns["delivery_annotations"]
        self._message_annotations: Lists = columns["message_annotations"]
        self._message_id: Texts = columns["message_id"]
        self._message_id_type: Texts = columns["message_id_type"]
        self._user_id: Texts = columns["user_id"]
        self._correlation_id: Texts = columns["correlation_id"]
        self._correlation_id_type: Texts = columns["correlation_id_type"]
        self._expiry_time: Numbers = columns["absolute_expiry_time"]
        self._creation_time: Numbers = columns["creation_time"]
        self._group_sequence: Numbers = columns["group_sequence"]
        self._application_properties: Lists = columns["application_properties"]
        self._body_kind: Texts = columns["body_kind"]
        self._body: Texts = columns["body"]
        self._body_parts: Lists = columns["body_parts"]
        self._body_value: Texts = columns["body_value"]
        self._footer: Lists = columns["footer"]
        self._error: Texts = columns["error"]
        self._raw: Texts = columns["raw"]
        #: The texts among the properties, by their position (3.2.4).
        self._texts: dict[int, tuple[str, Texts]] = {place: (name, columns[name]) for place, name in _TEXTS}
        #: All columns by their names, with those of the header.
        self.columns: dict[str, Numbers | Texts | Lists] = columns

    def expect_like(self, other: Rows) -> None:
        """Make room for bodies as large as those of ``other``, a batch that came before."""
        self._body.expected_bytes = len(other._body.data)

    def full(self) -> bool:
        """Return whether the batch takes no more."""
        return self.count >= self._capacity or self.octets >= self._limit

    def add(self, data: bytes, offset: Py_ssize_t) -> Py_ssize_t:
        """Add frames of ``data`` from ``offset`` until its end or a full batch; return the new offset. FrameFault."""
        size: Py_ssize_t = len(data)
        while offset < size and self.count < self._capacity and self.octets < self._limit:
            if size - offset < _HEAD_BYTES:
                raise FrameFault(f"{size - offset} bytes behind the last frame")
            end: Py_ssize_t = offset + _GUARD_BYTES + be32(data, offset)
            tag: Py_ssize_t = offset + _HEAD_BYTES
            message: Py_ssize_t = tag + (data[offset + 28] << 8) + data[offset + 29]
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
            row: Py_ssize_t = self.count
            self._seq.put(row, self.next)
            self._ingest_time.put(row, be32(data, offset + 16) * _MASK32 + be32(data, offset + 20))
            self._message_format.put(row, be32(data, offset + 24))
            self._settled.put(row, data[offset + 30] & 1)
            self._delivery_tag.put(row, data, tag, message)
            try:
                if be32(data, offset + 24) != 0:
                    raise DecodeError(f"message format {be32(data, offset + 24):#010x} is not that of AMQP itself")
                self._message(row, data, message, end)
                if self._keeps_messages:
                    self._raw.put(row, data, message, end)
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

    def _refuse(self, row: Py_ssize_t, data: bytes, start: Py_ssize_t, end: Py_ssize_t, error: DecodeError) -> None:
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

    def _message(self, row: Py_ssize_t, data: bytes, offset: Py_ssize_t, end: Py_ssize_t) -> None:
        """Read the sections in order; DecodeError."""
        if offset >= end:
            raise DecodeError("the message is empty: it has no section at all", offset)
        last: Py_ssize_t = 0
        body: Py_ssize_t = 0
        text: bytearray | None = None
        self._parts = 0
        while offset < end:
            start: Py_ssize_t = offset
            if end - offset > 3 and data[offset] == 0 and data[offset + 1] == 0x53:
                code: Py_ssize_t = data[offset + 2]
                offset += 3
            else:
                code = self._rare_section(data, offset, end)
                offset = self._items
            if not _HEADER <= code <= _FOOTER:
                raise DecodeError("not a section of a message", start)
            rank: Py_ssize_t = _RANKS[code - _HEADER]
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
                first: Py_ssize_t = offset
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

    def _data_section(self, row: Py_ssize_t, data: bytes, offset: Py_ssize_t, end: Py_ssize_t) -> Py_ssize_t:
        """Add a data section to the body, and from the second one on to its parts; return its end."""
        behind: Py_ssize_t = skip(data, offset, end)
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

    def _fields(
        self, code: Py_ssize_t, row: Py_ssize_t, data: bytes, offset: Py_ssize_t, end: Py_ssize_t
    ) -> Py_ssize_t:
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

    def _put_text(self, column: Texts, row: Py_ssize_t, text: bytes) -> None:
        column.put(row, text, 0, len(text))

    def _rare_section(self, data: bytes, offset: Py_ssize_t, end: Py_ssize_t) -> Py_ssize_t:
        """Return the code of a section with a wide or symbolic descriptor; set ``_items`` to its content."""
        if data[offset]:
            raise DecodeError("not a section of a message", offset)
        descriptor, self._items = decode(data, offset + 1, end, 16)
        if type(descriptor) is Symbol:
            return SECTION_SYMBOLS.get(descriptor, 0)
        return int(descriptor) if type(descriptor) is ULong and descriptor < 256 else 0

    def _open(self, data: bytes, offset: Py_ssize_t, end: Py_ssize_t, short: Py_ssize_t) -> Py_ssize_t:
        """Return the end of a list (``short`` 0xC0) or map (0xC1); set ``_items`` and ``_item_count``."""
        if offset >= end:
            raise DecodeError("the section is cut short", offset)
        code: Py_ssize_t = data[offset]
        if code == 0x45 and short == 0xC0:
            self._items = offset + 1
            self._item_count = 0
            return offset + 1
        if code != short and code != short + 0x10:
            raise DecodeError(f"the section has format code {code:#04x}", offset)
        behind: Py_ssize_t = skip(data, offset, end)
        width: Py_ssize_t = 1 if code == short else 4
        self._items = offset + 1 + 2 * width
        if self._items > behind:
            raise DecodeError("the section has no room for its count", offset)
        self._item_count = data[offset + 2] if width == 1 else be32(data, offset + 5)
        if self._item_count > behind - self._items:
            raise DecodeError(f"{self._item_count} items claimed in {behind - self._items} bytes", offset)
        return behind

    def _header(self, row: Py_ssize_t, data: bytes, offset: Py_ssize_t, end: Py_ssize_t) -> Py_ssize_t:
        behind: Py_ssize_t = self._open(data, offset, end, 0xC0)
        self._has_header.put(row, 1)
        offset = self._items
        if self._item_count > 5:
            raise DecodeError(f"a header of {self._item_count} fields", offset)
        place: Py_ssize_t
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

    def _properties(self, row: Py_ssize_t, data: bytes, offset: Py_ssize_t, end: Py_ssize_t) -> Py_ssize_t:
        behind: Py_ssize_t = self._open(data, offset, end, 0xC0)
        offset = self._items
        if self._item_count > 13:
            raise DecodeError(f"properties of {self._item_count} fields", offset)
        place: Py_ssize_t
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
                name: str
                column: Texts
                name, column = self._texts[place]
                offset = put_text(column, row, data, offset, behind, name)
        if offset != behind:
            raise DecodeError("bytes behind the last field of the properties", offset)
        return behind

    def _id(
        self, column: Texts, kinds: Texts, row: Py_ssize_t, data: bytes, offset: Py_ssize_t, end: Py_ssize_t
    ) -> Py_ssize_t:
        """Read a message-id or correlation-id: string, ulong, uuid or binary (3.2.11 to 3.2.14); return its end."""
        if offset < end and data[offset] & 0xEF == 0xA1:
            kinds.put(row, _STRING, 0, 6)
            return put_text(column, row, data, offset, end, "an id")
        behind: Py_ssize_t = self._reader.read(data, offset, end)
        if self._reader.kind not in _IDS:
            raise DecodeError(f"an id of type {self._reader.kind.decode() or 'unknown'}", offset)
        self._put_text(column, row, self._reader.text)
        self._put_text(kinds, row, self._reader.kind)
        return behind

    def _user(self, row: Py_ssize_t, data: bytes, offset: Py_ssize_t, end: Py_ssize_t) -> Py_ssize_t:
        """Read the user-id, a binary that some clients send as a string; return its end."""
        behind: Py_ssize_t = skip(data, offset, end)
        self._user_id.put(row, data, content_of(data, offset, behind, "user-id", 0xA0), behind)
        return behind

    def _map(
        self, row: Py_ssize_t, column: Lists, data: bytes, offset: Py_ssize_t, end: Py_ssize_t, usual: bytes
    ) -> Py_ssize_t:
        """Read a map section; keys of another type than ``usual`` get their type as prefix. Return its end."""
        behind: Py_ssize_t = self._open(data, offset, end, 0xC1)
        count: Py_ssize_t = self._item_count
        offset = self._items
        if count & 1:
            raise DecodeError("Odd Number of Elements in a Map", offset)
        if count > 2 * _MAX_ENTRIES:
            raise DecodeError(f"a map of {count >> 1} entries; at most {MAX_ENTRIES} are accepted", offset)
        column.begin(row)
        reader: ValueReader = self._reader
        keys: set[bytes] = set()
        _: Py_ssize_t
        for _ in range(count >> 1):
            offset = reader.read(data, offset, behind)
            key: bytes = reader.text
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
