"""Find what routing needs in a message (AMQP 1.0 part 3, 3.2) without decoding the rest.

A message is a row of optional sections. The scan steps from section to section by their sizes, notes offsets, and reads
only priority, user-id and to. Bytes that are no section end the scan, so anything may follow the sections asked for; a
recognised section must have the right encoding, be whole, and be in the standard's order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trouter.wire.codec import be32, skip
from trouter.wire.constants import (
    DELIVERY_ANNOTATIONS,
    FOOTER,
    HEADER,
    MESSAGE_ANNOTATIONS,
    PROPERTIES,
    SECTION_SYMBOLS,
)
from trouter.wire.errors import DecodeError

if TYPE_CHECKING:
    from cython import Py_ssize_t, p_uchar
    from cython import int as c_int

NEED_MORE: Final = 0
FOUND: Final = 1

THROUGH_HEADER: Final = 1
THROUGH_ANNOTATIONS: Final = 3
THROUGH_PROPERTIES: Final = 4
THROUGH_APPLICATION_PROPERTIES: Final = 5

MAX_SECTION_BYTES: Final = 1 << 20
#: The largest map of delivery or message annotations (security.md R-6.2b).
MAX_ANNOTATIONS_BYTES: Final = 8192

_HEADER: Final[Py_ssize_t] = HEADER
_DELIVERY_ANNOTATIONS: Final[Py_ssize_t] = DELIVERY_ANNOTATIONS
_MESSAGE_ANNOTATIONS: Final[Py_ssize_t] = MESSAGE_ANNOTATIONS
_PROPERTIES: Final[Py_ssize_t] = PROPERTIES
_FOOTER: Final[Py_ssize_t] = FOOTER
_OTHER: Final[Py_ssize_t] = -1  # not a section
_CUT: Final[Py_ssize_t] = -2  # could become a section with more octets
_MAX_SECTION_BYTES: Final[Py_ssize_t] = MAX_SECTION_BYTES
_MAX_ANNOTATIONS_BYTES: Final[Py_ssize_t] = MAX_ANNOTATIONS_BYTES

#: The codes of the sections by their symbolic descriptors.
SECTIONS_BY_SYMBOL: Final = {symbol.encode(): code for symbol, code in SECTION_SYMBOLS.items()}
_SYMBOLS: Final[dict[bytes, int]] = SECTIONS_BY_SYMBOL
_LONGEST_SYMBOL: Final[Py_ssize_t] = max(map(len, _SYMBOLS))
_WIDE_ULONG: Final[bytes] = bytes((0, 0x80, 0, 0, 0, 0, 0, 0, 0))  # a wide descriptor without its last octet


class InvalidMessage(DecodeError):
    """The message is empty, cut short, or has a section in the wrong place or encoding."""


class AnnotationsTooLarge(InvalidMessage):
    """A map of annotations has more than ``MAX_ANNOTATIONS_BYTES``."""


class MessageScan:
    """What routing needs of one message; one object serves many messages, one after the other.

    ``scan_sections`` sets offsets into its data, -1 for what is absent or beyond the depth: ``annotations_start`` and
    ``annotations_end`` of the message-annotations section, descriptor included; ``insert_at`` where that section is or
    would be; ``properties_start`` and ``properties_end`` of the properties, descriptor included; ``user_id_start``,
    ``user_id_end``, ``to_start`` and ``to_end`` of the contents of these two; and ``priority`` from the header.
    """

    __slots__ = (
        "_content",
        "_items",
        "_count",
        "reads_to",
        "priority",
        "annotations_start",
        "annotations_end",
        "insert_at",
        "properties_start",
        "properties_end",
        "to_start",
        "to_end",
        "user_id_start",
        "user_id_end",
    )

    def __init__(self, *, reads_to: bool = True) -> None:
        """Make a scan; without ``reads_to`` it leaves ``to`` absent."""
        self.reads_to = reads_to
        self._reset_offsets(0)

    def _reset_offsets(self, start: Py_ssize_t) -> None:
        self.priority: Py_ssize_t = -1
        self.annotations_start: Py_ssize_t = -1
        self.annotations_end: Py_ssize_t = -1
        self.insert_at = start
        self.properties_start: Py_ssize_t = -1
        self.properties_end: Py_ssize_t = -1
        self.to_start: Py_ssize_t = -1
        self.to_end: Py_ssize_t = -1
        self.user_id_start: Py_ssize_t = -1
        self.user_id_end: Py_ssize_t = -1
        self._content: Py_ssize_t = 0
        self._items: Py_ssize_t = 0
        self._count: Py_ssize_t = 0

    def scan_sections(self, data: bytes, start: Py_ssize_t, end: Py_ssize_t, depth: c_int, complete: bool) -> c_int:
        """Return FOUND once ``data[start:end]`` has every section up to ``depth``, else NEED_MORE; InvalidMessage.

        ``complete`` says that no more bytes will come. Each scan starts from the beginning; its cost is proportional
        to the number of sections.
        """
        self._reset_offsets(start)
        if start < 0 or end > len(data):
            raise InvalidMessage("range outside the data", start)
        if start >= end and complete:
            raise InvalidMessage("message is empty", start)
        offset: Py_ssize_t = start
        expected: Py_ssize_t = _HEADER
        last: Py_ssize_t = _HEADER - 1 + depth
        while expected <= last:
            if offset >= end:
                return FOUND if complete else NEED_MORE
            code: Py_ssize_t = self._read_section_code(data, offset, end)
            if code > last or code == _OTHER:
                return FOUND
            behind: Py_ssize_t = _CUT
            if code != _CUT:
                if code < expected:
                    raise InvalidMessage(f"section {code:#04x} is out of order", offset)
                behind = self._measure_section(data, end, code)
            if behind == _CUT:
                if complete:
                    raise InvalidMessage("message is cut short", offset)
                return NEED_MORE
            if code == _MESSAGE_ANNOTATIONS:
                self.annotations_start = offset
                self.annotations_end = behind
            elif code == _HEADER:
                self._read_header(data, behind)
                self.insert_at = behind
            elif code == _DELIVERY_ANNOTATIONS:
                self.insert_at = behind
            elif code == _PROPERTIES:
                self.properties_start = offset
                self.properties_end = behind
                self._read_properties(data, behind)
            offset = behind
            expected = code + 1
        return FOUND

    def read_to(self, data: bytes) -> str | None:
        """Return the ``to`` of the properties, None if absent; InvalidMessage if it is not UTF-8."""
        if self.to_start < 0:
            return None
        try:
            return data[self.to_start : self.to_end].decode()
        except UnicodeDecodeError:
            raise InvalidMessage("properties: to is not UTF-8", self.to_start) from None

    def read_user_id(self, data: bytes) -> bytes | None:
        """Return the user-id of the properties, None if absent."""
        return None if self.user_id_start < 0 else data[self.user_id_start : self.user_id_end]

    def _read_section_code(self, data: bytes, offset: Py_ssize_t, end: Py_ssize_t) -> Py_ssize_t:
        """Return the code of the section at ``offset``, or _OTHER or _CUT; set ``_content`` to the start of its
        content.
        """
        octets: p_uchar = data  # compiled, a pointer, here and below: read only what was checked to be there
        if octets[offset]:
            return _OTHER
        if end - offset >= 3 and octets[offset + 1] == 0x53:
            self._content = offset + 3
            code: Py_ssize_t = octets[offset + 2]
            return code if _HEADER <= code <= _FOOTER else _OTHER
        return self._read_rare_section_code(data, offset, end)

    def _read_rare_section_code(self, data: bytes, offset: Py_ssize_t, end: Py_ssize_t) -> Py_ssize_t:
        """Return as ``_read_section_code`` does, for a descriptor that is cut short, wide, or a symbol."""
        left: Py_ssize_t = end - offset
        if left == 1:
            return _CUT
        constructor: Py_ssize_t = data[offset + 1]
        if constructor == 0x53:
            return _CUT
        if constructor == 0x80:
            head = data[offset : min(offset + 9, end)]
            if not _WIDE_ULONG.startswith(head):
                return _OTHER
            if left < 10:
                return _CUT
            self._content = offset + 10
            code: Py_ssize_t = data[offset + 9]
            return code if _HEADER <= code <= _FOOTER else _OTHER
        if constructor not in (0xA3, 0xB3):
            return _OTHER
        name: Py_ssize_t = offset + (3 if constructor == 0xA3 else 6)
        if name > end:
            return _CUT
        size: Py_ssize_t = int.from_bytes(data[offset + 2 : name], "big")
        if size > _LONGEST_SYMBOL:
            return _OTHER
        if size > end - name:
            return _CUT
        self._content = name + size
        return _SYMBOLS.get(data[name : self._content], _OTHER)

    def _measure_section(self, data: bytes, end: Py_ssize_t, code: Py_ssize_t) -> Py_ssize_t:
        """Return the offset behind the list or map at ``_content``, or _CUT; set ``_items`` and ``_count``;
        InvalidMessage.
        """
        offset: Py_ssize_t = self._content
        if offset >= end:
            return _CUT
        octets: p_uchar = data
        constructor: Py_ssize_t = octets[offset]
        offset += 1
        is_list: bool = code in (_HEADER, _PROPERTIES)
        if constructor == 0x45 and is_list:
            self._items = offset
            self._count = 0
            return offset
        if constructor == (0xC0 if is_list else 0xC1):
            if end - offset < 1:
                return _CUT
            size: Py_ssize_t = octets[offset]
            offset += 1
            if size < 1:
                raise InvalidMessage("section has no room for its count", offset)
            if size > end - offset:
                return _CUT
            self._count = octets[offset]
            self._items = offset + 1
            return offset + size
        if constructor != (0xD0 if is_list else 0xD1):
            raise InvalidMessage(f"section {code:#04x} has format code {constructor:#04x}", offset - 1)
        if end - offset < 4:
            return _CUT
        size = be32(data, offset)
        offset += 4
        if size < 4 or size > _MAX_SECTION_BYTES:
            raise InvalidMessage(f"section {code:#04x} claims {size} bytes", offset)
        if size > _MAX_ANNOTATIONS_BYTES and (code == _DELIVERY_ANNOTATIONS or code == _MESSAGE_ANNOTATIONS):
            raise AnnotationsTooLarge(f"annotations of {size} bytes, where {MAX_ANNOTATIONS_BYTES} are taken", offset)
        if size > end - offset:
            return _CUT
        self._count = be32(data, offset)
        self._items = offset + 4
        return offset + size

    def _read_header(self, data: bytes, end: Py_ssize_t) -> None:
        """Read the priority, the second field (durable is the first)."""
        if self._count < 2:
            return
        try:
            offset: Py_ssize_t = skip(data, self._items, end)
            if skip(data, offset, end) == offset + 2 and data[offset] == 0x50:
                self.priority = data[offset + 1]
        except DecodeError as error:
            raise InvalidMessage(f"header: {error}", error.offset) from None

    def _read_properties(self, data: bytes, end: Py_ssize_t) -> None:
        """Read user-id, the second field, and to, the third (message-id is the first).

        Some clients encode the user-id as a string.
        """
        if self._count < 2:
            return
        try:
            octets: p_uchar = data
            start: Py_ssize_t = self._items
            if end - start >= 2 and octets[start] & 0xFE == 0xA0:
                start += 2 + octets[start + 1]
            else:
                start = skip(data, start, end)
            if start < end and octets[start] == 0x40:
                behind: Py_ssize_t = start + 1
            else:
                behind = skip(data, start, end)
                self.user_id_start = start + _prefix(data[start] & 0xFE, 0xA0, 0xB0, "user-id", start)
                self.user_id_end = behind
            if self._count > 2 and self.reads_to:
                start = behind
                behind = skip(data, start, end)
                if data[start] != 0x40:
                    self.to_start = start + _prefix(data[start], 0xA1, 0xB1, "to", start)
                    self.to_end = behind
        except InvalidMessage:
            raise
        except DecodeError as error:
            raise InvalidMessage(f"properties: {error}", error.offset) from None


def _prefix(constructor: Py_ssize_t, short: Py_ssize_t, long: Py_ssize_t, field: str, offset: Py_ssize_t) -> Py_ssize_t:
    """Return the number of bytes before the content; InvalidMessage if the constructor is neither of the two."""
    if constructor == short:
        return 2
    if constructor == long:
        return 5
    raise InvalidMessage(f"properties: {field} has format code {constructor:#04x}", offset)
