"""Frames: the format of messages in a spool, one after the other, each with its own checksum.

    length u32, crc u32, sequence u64, ingest time u64, message-format u32, tag's length u16, flags u8, tag, message

All big-endian. ``length`` counts the bytes after the crc, and the crc covers the same bytes. Sequences rise by one from
frame to frame. The time is in microseconds since 1970. Flag 1: the sender had settled the message, so that it got no
disposition from this receiver.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from trouter.wire import octets
from trouter.wire.codec import be32
from trouter_pipeline.spool.checksums import crc32

if TYPE_CHECKING:
    from cython import Py_ssize_t
    from cython import int as c_int

_HEAD_BYTES: Final[Py_ssize_t] = 31
#: Bytes before the part that ``length`` counts and the crc covers.
_GUARD_BYTES: Final[Py_ssize_t] = 8
_BLANK: Final[bytes] = bytes(_HEAD_BYTES)
_SETTLED: Final[c_int] = 1
_MASK32: Final[Py_ssize_t] = 0xFFFFFFFF


class Frame(NamedTuple):
    """The fields of a frame."""

    sequence: int
    ingest_us: int
    message_format: int
    presettled: bool
    tag: bytes
    message: bytes


class FrameWriter:
    """Frames in memory: ``count`` whole ones, and perhaps an open one after them whose bytes are still coming."""

    __slots__ = ("next", "gathered", "whole", "count", "_open")

    def __init__(self, sequence: Py_ssize_t) -> None:
        #: The sequence of the next frame, or of the open one.
        self.next = sequence
        self.gathered = bytearray()
        #: Bytes and number of the whole frames.
        self.whole: Py_ssize_t = 0
        self.count: Py_ssize_t = 0
        self._open = False

    def begin(self, message_format: Py_ssize_t, tag: bytes, ingest_us: Py_ssize_t) -> None:
        """Begin a frame for a message that came at ``ingest_us`` (since 1970); ``tag`` has at most 65,535 bytes."""
        out: bytearray = self.gathered
        at: Py_ssize_t = self.whole
        octets.append_slice(out, _BLANK, 0, _HEAD_BYTES)
        octets.put_uint32(out, at + 8, self.next >> 32)
        octets.put_uint32(out, at + 12, self.next & _MASK32)
        octets.put_uint32(out, at + 16, ingest_us >> 32)
        octets.put_uint32(out, at + 20, ingest_us & _MASK32)
        octets.put_uint32(out, at + 24, message_format)
        out[at + 28] = len(tag) >> 8
        out[at + 29] = len(tag) & 0xFF
        octets.append_slice(out, tag, 0, len(tag))
        self._open = True

    def extend(self, data: bytes, start: Py_ssize_t, end: Py_ssize_t) -> None:
        """Add ``data[start:end]`` to the open frame's message."""
        octets.append_slice(self.gathered, data, start, end)

    def finish(self, presettled: bool) -> Py_ssize_t:
        """Complete the open frame and return its sequence."""
        out: bytearray = self.gathered
        if presettled:
            out[self.whole + 30] = _SETTLED
        octets.put_uint32(out, self.whole, len(out) - self.whole - _GUARD_BYTES)
        self.whole = len(out)
        self.count += 1
        self._open = False
        sequence: Py_ssize_t = self.next
        self.next = sequence + 1
        return sequence

    def cancel(self) -> None:
        """Drop the open frame, if there is one; the next frame gets its sequence."""
        if self._open:
            del self.gathered[self.whole :]
            self._open = False

    def take(self) -> bytearray:
        """Remove and return the whole frames, with their crc; an open one stays."""
        taken: bytearray = self.gathered
        self.gathered = taken[self.whole :]
        del taken[self.whole :]
        at: Py_ssize_t = 0
        view = memoryview(taken)
        while at < self.whole:
            end: Py_ssize_t = at + _GUARD_BYTES + _length_at(taken, at)
            octets.put_uint32(taken, at + 4, crc32(view[at + _GUARD_BYTES : end]))
            at = end
        view.release()
        self.whole = 0
        self.count = 0
        return taken


def good_frames(data: bytes, sequence: Py_ssize_t, until: Py_ssize_t, checked: bool) -> tuple[int, int, str]:
    """Walk over the frames of ``data``, whose first should be ``sequence``, as far as that before ``until``.

    Return the offset where the walk ended, the sequence expected there, and the error; "" if that frame is only
    incomplete or not wanted. The crc is verified if ``checked``.
    """
    at: Py_ssize_t = 0
    size: Py_ssize_t = len(data)
    view = memoryview(data)
    while sequence < until and size - at >= _GUARD_BYTES:
        length: Py_ssize_t = be32(data, at)
        if length < _HEAD_BYTES - _GUARD_BYTES:
            return at, sequence, f"a frame whose length is given as {length} bytes"
        end: Py_ssize_t = at + _GUARD_BYTES + length
        if end > size:
            break
        if checked and crc32(view[at + _GUARD_BYTES : end]) != be32(data, at + 4):
            return at, sequence, "a frame with a wrong checksum"
        found: Py_ssize_t = (be32(data, at + 8) << 32) | be32(data, at + 12)
        if found != sequence:
            return at, sequence, f"the frame of message {found}, where that of {sequence} should be"
        at = end
        sequence += 1
    return at, sequence, ""


def wanted_octets(data: bytes, at: Py_ssize_t) -> Py_ssize_t:
    """Return the bytes of the frame at offset ``at``, as far as its length is in ``data``; at least 8."""
    return _GUARD_BYTES if len(data) - at < _GUARD_BYTES else _GUARD_BYTES + be32(data, at)


def parse_frames(data: bytes) -> Iterator[Frame]:
    """Yield the frames of a block of ``SpoolReader.blocks``, which has verified them."""
    at = 0
    while at < len(data):
        end = at + _GUARD_BYTES + be32(data, at)
        after = at + _HEAD_BYTES + (data[at + 28] << 8 | data[at + 29])
        yield Frame(
            sequence=(be32(data, at + 8) << 32) | be32(data, at + 12),
            ingest_us=(be32(data, at + 16) << 32) | be32(data, at + 20),
            message_format=be32(data, at + 24),
            presettled=bool(data[at + 30] & _SETTLED),
            tag=bytes(data[at + _HEAD_BYTES : after]),
            message=bytes(data[after:end]),
        )
        at = end


def _length_at(gathered: bytearray, at: Py_ssize_t) -> Py_ssize_t:
    return gathered[at] << 24 | gathered[at + 1] << 16 | gathered[at + 2] << 8 | gathered[at + 3]
