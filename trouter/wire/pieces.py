"""Bodies in pieces: bytes are put into data sections, and taken out of them, as they come.

A message of any length passes without being held whole (AMQP 1.0 part 3, 3.2.6).
"""

from __future__ import annotations

from typing import Final

from trouter.wire.constants import DATA, FOOTER
from trouter.wire.errors import DecodeError

from .message import BodyKind, Message, SectionReader, data_section

#: The most bytes that are held of the sections before the body, or after it.
MAX_HEAD_BYTES: Final = 1 << 20

#: The longest symbolic descriptor of a section, in bytes.
MAX_DESCRIPTOR_BYTES: Final = 64

#: Bytes of fixed-width values, and the kinds with one byte of size, by the high half of the format code (1.3).
_FIXED: Final = {4: 0, 5: 1, 6: 2, 7: 4, 8: 8, 9: 16}
_SHORT: Final = frozenset((0xA, 0xC, 0xE))

_DATA_DESCRIPTORS: Final = frozenset(
    (
        bytes((0, 0x53, DATA)),
        bytes((0, 0x80, 0, 0, 0, 0, 0, 0, 0, DATA)),
        b"\0\xa3\x10amqp:data:binary",
        b"\0\xb3\0\0\0\x10amqp:data:binary",
    )
)


class BodyWriter:
    """Encodes a body piece by piece: a data section for each piece, or a single one if the ``size`` of all is known."""

    def __init__(self, head: Message | None, size: int | None) -> None:
        if head is not None and (head.body is not None or head.footer):
            raise ValueError("the head of a streamed message has neither body nor footer")
        self._before = b"" if head is None else head.encode_head()
        self._left = size
        if size is not None:
            self._before += data_section(size)
        self._empty = True

    def encode_piece(self, data: bytes | bytearray | memoryview) -> bytes:
        """Return the encoding of the next bytes of the body; ValueError if there are more than ``size``."""
        before, self._before = self._before, b""
        if self._left is None:
            before += data_section(len(data))
        else:
            self._left -= len(data)
            if self._left < 0:
                raise ValueError(f"the stream is {-self._left} bytes longer than its size")
        self._empty = False
        return b"".join((before, data))

    def encode_end(self) -> bytes:
        """Return the last bytes to send; ValueError if bytes of the body are missing."""
        if self._left:
            raise ValueError(f"the stream is {self._left} bytes shorter than its size")
        return self.encode_piece(b"") if self._empty else b""


class BodyReader:
    """Extracts the bytes of the data sections from a message that arrives piece by piece."""

    def __init__(self) -> None:
        #: The sections before the body, once the body began.
        self.head: Message | None = None
        self._before = b""
        self._left = 0
        #: The start of a section: the part with its size, or all of it unless it is data.
        self._section = bytearray()
        self._past_body = False

    def read_piece(self, piece: bytes) -> list[bytes]:
        """Return the body's bytes in ``piece``; DecodeError."""
        found: list[bytes] = []
        offset = 0
        while offset < len(piece):
            if self._left > 0:
                data = piece[offset : offset + self._left]
                self._left -= len(data)
                found.append(data)
                offset += len(data)
            else:
                offset = self._read_section(piece, offset)
        return found

    def check_end(self) -> None:
        """Check that the message is complete and has a body; DecodeError."""
        if self._left > 0 or self._section:
            raise DecodeError("the message is cut short")
        if self.head is None:
            raise DecodeError("the message has no body")

    def _read_section(self, piece: bytes, offset: int) -> int:
        """Read from ``piece`` what the current section still needs; return the new offset; DecodeError."""
        section = self._section
        missing = _wanted(section) - len(section)
        section += piece[offset : offset + missing]
        if _wanted(section) == len(section):
            self._end_section(bytes(section))
            section.clear()
        return min(offset + missing, len(piece))

    def _end_section(self, section: bytes) -> None:
        """Process the head of a data section, or a whole other section; DecodeError."""
        size = _data_size(section)
        if size >= 0:
            if self._past_body:
                raise DecodeError("data behind the footer")
            if self.head is None:
                self.head = Message.decode(self._before) if self._before else Message(kind=BodyKind.ABSENT)
            self._left = size
        elif self.head is None:
            self._before += section
            if len(self._before) > MAX_HEAD_BYTES:
                raise DecodeError(f"more than {MAX_HEAD_BYTES} bytes before the body")
            if Message.decode(self._before).kind is not BodyKind.ABSENT:
                raise DecodeError("the body of the message is not data")
        elif self._past_body or not _is_footer(section):
            raise DecodeError("a section behind the data that is neither data nor the footer")
        else:
            self._past_body = True


def _descriptor_end(section: bytearray | bytes) -> int:
    """Return where the descriptor of a section ends, or how many bytes are needed to know; DecodeError."""
    if section and section[0] != 0:
        raise DecodeError("not a section of a message")
    if len(section) < 2:
        return 2
    if section[1] == 0x53:
        return 3
    if section[1] == 0x80:
        return 10
    if section[1] == 0xA3:
        return 3 if len(section) < 3 else 3 + section[2]
    if section[1] == 0xB3:
        size = int.from_bytes(section[2:6], "big")
        if len(section) < 6 or size <= MAX_DESCRIPTOR_BYTES:
            return 6 if len(section) < 6 else 6 + size
    raise DecodeError("not a section of a message")


def _wanted(section: bytearray) -> int:
    """Return the length that ``section`` must have for the next step, its own if nothing is missing; DecodeError."""
    end = _descriptor_end(section)
    if len(section) <= end:
        return end + 1
    code = section[end]
    if code >> 4 in _FIXED:
        return end + 1 + _FIXED[code >> 4]
    if code < 0xA0:
        raise DecodeError(f"a section holds a value of type {code:#04x}")
    head = end + 2 if code >> 4 in _SHORT else end + 5
    if len(section) < head or _is_data(section, end):
        return head
    total = head + int.from_bytes(section[end + 1 : head], "big")
    if total > MAX_HEAD_BYTES:
        raise DecodeError(f"more than {MAX_HEAD_BYTES} bytes outside the body")
    return total


def _is_data(section: bytearray | bytes, end: int) -> bool:
    return section[end] in {0xA0, 0xB0} and bytes(section[:end]) in _DATA_DESCRIPTORS


def _is_footer(section: bytes) -> bool:
    """Return whether the whole ``section`` is a footer; DecodeError if it is none of a message."""
    reader = SectionReader(section)
    found = reader.next_section() == FOOTER
    reader.read_value()
    return found


def _data_size(section: bytes) -> int:
    """Return the bytes of data behind the head ``section``; -1 if it is no data section."""
    end = _descriptor_end(section)
    return int.from_bytes(section[end + 1 :], "big") if _is_data(section, end) else -1
