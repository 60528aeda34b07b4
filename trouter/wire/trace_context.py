"""The trace context of a message, by W3C Trace Context and its draft for AMQP: found and written without decoding.

A context is ``traceparent`` and ``tracestate``, two strings among the message annotations, where routers put it, or
among the application properties, where the sender put it; that of the annotations counts. The scan steps over other
sections by their sizes and stops at the body. A message whose sections have unusual encodings has no context.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trouter.wire import octets
from trouter.wire.codec import be32, skip
from trouter.wire.constants import APPLICATION_PROPERTIES, MESSAGE_ANNOTATIONS
from trouter.wire.errors import DecodeError
from trouter.wire.sections import MAX_ANNOTATIONS_BYTES

if TYPE_CHECKING:
    from cython import Py_ssize_t

#: The characters of ``traceparent``: "00-" + 32 + "-" + 16 + "-" + 2.
CONTEXT_BYTES: Final = 55
#: The most of ``tracestate`` that is read, in bytes; the standard asks for as much.
MAX_STATE_BYTES: Final = 512
#: What ``find_context`` returns for a message without a context, and for one whose context is not readable.
ABSENT: Final = -1
UNREADABLE: Final = -2

_CONTEXT: Final[Py_ssize_t] = CONTEXT_BYTES
_ABSENT: Final[Py_ssize_t] = ABSENT
_UNREADABLE: Final[Py_ssize_t] = UNREADABLE
_ANNOTATIONS: Final[Py_ssize_t] = MESSAGE_ANNOTATIONS
_PROPERTIES: Final[Py_ssize_t] = APPLICATION_PROPERTIES
#: The bytes at the beginning of a section in which its context is looked for.
_SEARCHED: Final[Py_ssize_t] = 4096
_PARENT: Final[bytes] = b"\x0btraceparent"
_STATE: Final = b"\x0atracestate"
_PARENT_ENTRY: Final = b"\xa3\x0btraceparent\xa1\x37"
_STATE_KEY: Final = b"\xa3\x0atracestate"
_OUR_KEYS: Final = frozenset({b"traceparent", b"tracestate"})


class TraceContextScan:
    """Where the trace context of one message is; one object serves many messages, one after the other."""

    __slots__ = ("_annotations_start", "_annotations_end", "_insert_at", "_items", "_behind", "_writable")

    def __init__(self) -> None:
        self._annotations_start: Py_ssize_t = -1
        self._annotations_end: Py_ssize_t = -1
        #: Where the annotations would be, if there are none; and whether that is certain.
        self._insert_at: Py_ssize_t = 0
        self._writable = False
        #: The section that was searched last: its first entry, and the offset behind it.
        self._items: Py_ssize_t = 0
        self._behind: Py_ssize_t = 0

    def find_context(self, data: bytes, start: Py_ssize_t, end: Py_ssize_t) -> Py_ssize_t:
        """Return the offset of the value of ``traceparent`` in the message ``data[start:end]``, or of its beginning.

        ABSENT without one, UNREADABLE if it is no string of CONTEXT_BYTES. The value is not checked.
        """
        offset: Py_ssize_t = start
        before: Py_ssize_t = 0
        self._annotations_start = -1
        self._insert_at = start
        self._writable = False
        while end - offset > 5:
            if octets.octet_at(data, offset) != 0 or octets.octet_at(data, offset + 1) != 0x53:
                return _ABSENT
            code: Py_ssize_t = octets.octet_at(data, offset + 2)
            if code <= before:
                return _ABSENT
            if code > _ANNOTATIONS:
                self._writable = True
                if code > _PROPERTIES:
                    return _ABSENT
            kind: Py_ssize_t = octets.octet_at(data, offset + 3)
            size: Py_ssize_t = octets.octet_at(data, offset + 4)
            if kind == 0x45:
                items: Py_ssize_t
                behind: Py_ssize_t
                behind = items = offset + 4
            elif kind == 0xC1 or kind == 0xC0:
                behind = offset + 5 + size
                items = offset + 6
            elif (kind == 0xD1 or kind == 0xD0) and end - offset >= 12:
                behind = offset + 8 + be32(data, offset + 4)
                items = offset + 12
            else:
                return _ABSENT
            if behind > end:
                return _ABSENT
            if code == _ANNOTATIONS:
                self._annotations_start = offset
                self._annotations_end = behind
                self._writable = True
            elif code < _ANNOTATIONS:
                self._insert_at = behind
            if (code == _ANNOTATIONS or code == _PROPERTIES) and items < behind:
                self._items = items
                self._behind = behind
                last: Py_ssize_t = behind if behind - items < _SEARCHED else items + _SEARCHED
                place: Py_ssize_t = octets.find_part(_PARENT, data, items, last)
                if place >= 0:
                    return self._value_behind(data, place)
            before = code
            offset = behind
        return _ABSENT

    def _value_behind(self, data: bytes, place: Py_ssize_t) -> Py_ssize_t:
        """Return the offset of the value whose key is at ``place``; UNREADABLE for another value."""
        place += 12
        if self._behind - place >= _CONTEXT + 2 and octets.octet_at(data, place) == 0xA1:
            return place + 2 if octets.octet_at(data, place + 1) == _CONTEXT else _UNREADABLE
        if self._behind - place >= _CONTEXT + 5 and octets.octet_at(data, place) == 0xB1:
            return place + 5 if be32(data, place + 1) == _CONTEXT else _UNREADABLE
        return _UNREADABLE

    def read_context(self, data: bytes, place: Py_ssize_t) -> bytes:
        """Return the ``traceparent`` that ``find_context`` has found at ``place``, b"" if it is no valid one."""
        if not self._has_form(data, place) or not self._is_value(data, place):
            return b""
        return octets.cut(data, place, place + _CONTEXT)

    def _has_form(self, data: bytes, place: Py_ssize_t) -> bool:
        """Return whether a version, a trace id, a span id and flags are at ``place``, as the standard wants them."""
        zeros: Py_ssize_t = 0
        index: Py_ssize_t
        for index in range(_CONTEXT):
            octet: Py_ssize_t = octets.octet_at(data, place + index)
            if index == 2 or index == 35 or index == 52:
                if octet != 0x2D:
                    return False
            elif not (0x30 <= octet <= 0x39 or 0x61 <= octet <= 0x66):  # 0-9, a-f
                return False
            elif octet == 0x30 and index > 2:
                zeros += 1
            if index == 1 and octet == 0x66 and octets.octet_at(data, place) == 0x66:
                return False
            if index == 35 or index == 52:
                if zeros == (32 if index == 35 else 16):
                    return False
                zeros = 0
        return True

    def _is_value(self, data: bytes, place: Py_ssize_t) -> bool:
        """Return whether a value of the section that was searched last begins shortly before ``place``."""
        try:
            offset: Py_ssize_t = self._items
            while offset < place:
                value: Py_ssize_t = skip(data, offset, self._behind)
                if value < place <= value + 5:
                    return 13 <= value - offset <= 16
                offset = skip(data, value, self._behind)
        except DecodeError:
            return False
        return False

    def read_state(self, data: bytes) -> bytes:
        """Return the ``tracestate`` beside the context that was found; b"" if it has none or a longer one."""
        place = data.find(_STATE, self._items, min(self._behind, self._items + _SEARCHED))
        if place < 0:
            return b""
        place += len(_STATE)
        kind = data[place : place + 1]
        first = place + (2 if kind == b"\xa1" else 5)
        if kind not in (b"\xa1", b"\xb1") or first > self._behind:
            return b""
        size = int.from_bytes(data[place + 1 : first])
        fits = size <= MAX_STATE_BYTES and first + size <= self._behind
        return data[first : first + size] if fits else b""

    def write_context(self, data: bytes, start: Py_ssize_t, end: Py_ssize_t, context: bytes, state: bytes) -> bytes:
        """Return the message that ``find_context`` has scanned, with another context in its message annotations.

        Other bytes stay as they are. Return ``data[start:end]`` where the annotations have an unusual encoding or no
        room.
        """
        first, behind = self._annotations_start, self._annotations_end
        count, kept = 0, b""
        if first < 0:
            first = behind = self._insert_at
        else:
            try:
                count, kept = _other_entries(data, first, behind)
            except DecodeError:
                return data[start:end]
        entries = kept + _PARENT_ENTRY + context
        if state:
            size = bytes((0xA1, len(state))) if len(state) < 256 else b"\xb1" + len(state).to_bytes(4)
            entries += _STATE_KEY + size + state
        if not self._writable or len(entries) > MAX_ANNOTATIONS_BYTES - 16:
            return data[start:end]
        count += 4 if state else 2
        section = b"\x00\x53\x72\xd1" + (len(entries) + 4).to_bytes(4) + count.to_bytes(4) + entries
        return octets.replaced(data, start, first, section, behind, end)


def _other_entries(data: bytes, start: int, end: int) -> tuple[int, bytes]:
    """Return how many values a section of annotations has beside a context, and these; DecodeError."""
    wide = data[start + 3] == 0xD1
    if (not wide and data[start + 3] != 0xC1) or end - start < (12 if wide else 6):
        raise DecodeError("annotations are not a map", start + 3)
    offset = start + (12 if wide else 6)
    left = be32(data, start + 8) if wide else data[start + 5]
    count, kept = 0, bytearray()
    while left > 1:
        value = skip(data, offset, end)
        behind = skip(data, value, end)
        if data[offset + (5 if data[offset] == 0xB3 else 2) : value] not in _OUR_KEYS:
            kept += data[offset:behind]
            count += 2
        offset = behind
        left -= 2
    if left or offset != end:
        raise DecodeError("annotations have an odd number of values, or bytes behind the last one", offset)
    return count, bytes(kept)
