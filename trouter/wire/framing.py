"""Split a byte stream into AMQP frames (AMQP 1.0 part 2, 2.3).

A read rarely ends where a frame does. Whole frames are returned as offsets into the bytes of the read, uncopied; only a
frame cut in two is copied to a buffer, which grows no faster than bytes arrive: a claimed size alone allocates nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from . import octets
from .errors import DecodeError

if TYPE_CHECKING:
    from cython import Py_ssize_t, p_uchar
    from cython import int as c_int

FRAME_AMQP: Final = 0
FRAME_SASL: Final = 1
HEADER_BYTES: Final = 8
MIN_MAX_FRAME_BYTES: Final = 512
AMQP_HEADER: Final = b"AMQP\x00\x01\x00\x00"
TLS_HEADER: Final = b"AMQP\x02\x01\x00\x00"
SASL_HEADER: Final = b"AMQP\x03\x01\x00\x00"
_HEADER_BYTES: Final[Py_ssize_t] = HEADER_BYTES


class FramingError(DecodeError):
    """The byte stream is not a sequence of frames (2.3); nothing after this point can be trusted."""


class FrameReader:
    """A reader of frames from pieces of a stream: ``add_bytes``, then call ``next_frame`` until it returns 0.

    After 1 the frame's body is ``data[start:end]``, with its ``channel`` and ``frame_type``. ``max_frame_bytes`` bounds
    every frame and so the memory held here: what was read is kept only until it was returned in frames.
    """

    __slots__ = (
        "max_frame_bytes",
        "data",
        "start",
        "end",
        "channel",
        "frame_type",
        "_input",
        "_offset",
        "_carry",
        "_wanted",
    )

    def __init__(self, max_frame_bytes: Py_ssize_t) -> None:
        self.max_frame_bytes = max_frame_bytes
        self.data = b""
        self.start: Py_ssize_t = 0
        self.end: Py_ssize_t = 0
        self.channel: c_int = 0
        self.frame_type: c_int = 0
        self._input = b""
        self._offset: Py_ssize_t = 0
        self._carry = bytearray()
        self._wanted: Py_ssize_t = 0

    def add_bytes(self, data: bytes) -> None:
        """Add the next bytes of the stream behind those not read yet."""
        left = len(self._input) - self._offset
        self._input = data if left == 0 else self._input[self._offset :] + data
        self._offset = 0

    def count_pending_bytes(self) -> Py_ssize_t:
        """Return the number of bytes received and not yet returned in frames."""
        return len(self._carry) + len(self._input) - self._offset

    def peek_bytes(self, count: Py_ssize_t) -> bytes:
        """Return up to ``count`` bytes from the stream's front without taking them. Only between frames."""
        return self._input[self._offset : self._offset + count]

    def take_bytes(self, count: Py_ssize_t) -> bytes:
        """Return and remove ``count`` bytes from the stream's front; b"" while there are fewer. Only between frames."""
        if len(self._input) - self._offset < count:
            return b""
        taken = self._input[self._offset : self._offset + count]
        self._offset += count
        return taken

    def next_frame(self) -> c_int:
        """Return 1 if a whole frame is in ``data[start:end]``, 0 if more bytes are needed; FramingError."""
        if self._carry:
            return self._finish_carried()
        offset: Py_ssize_t = self._offset
        left: Py_ssize_t = len(self._input) - offset
        if left < _HEADER_BYTES:
            if left:
                self._carry += self._input[offset:]
                self._wanted = _HEADER_BYTES
            self._drop_input()
            return 0
        size: Py_ssize_t = self._read_header(self._input, offset)
        if left < size:
            self._carry += self._input[offset:]
            self._wanted = size
            self._drop_input()
            return 0
        self.data = self._input
        self.start += offset
        self.end = offset + size
        self._offset = offset + size
        return 1

    def _finish_carried(self) -> c_int:
        """Complete the frame that an earlier read began; return as ``next_frame`` does."""
        while True:
            missing: Py_ssize_t = self._wanted - len(self._carry)
            taken: Py_ssize_t = min(missing, len(self._input) - self._offset)
            if taken > 0:
                self._carry += self._input[self._offset : self._offset + taken]
                self._offset += taken
            if taken < missing:
                self._drop_input()
                return 0
            if self._wanted > _HEADER_BYTES:
                break
            size: Py_ssize_t = self._read_header(bytes(self._carry), 0)
            if size == _HEADER_BYTES:
                break
            self._wanted = size
        whole = bytes(self._carry)
        self._carry = bytearray()
        size = self._read_header(whole, 0)
        self.data = whole
        self.end = size
        return 1

    def _drop_input(self) -> None:
        """Keep nothing of a read whose octets were all taken: the next one may be long in coming."""
        self.data = self._input = b""
        self._offset = 0

    def _read_header(self, data: bytes, offset: Py_ssize_t) -> Py_ssize_t:
        """Return the frame's size; set type, channel and, in ``start``, the body's distance from ``offset``;
        FramingError. The caller has checked that its 8 bytes are there.
        """
        raw: p_uchar = data  # compiled, a pointer
        size: Py_ssize_t = octets.get_uint32(data, offset)
        data_offset: Py_ssize_t = raw[offset + 4] * 4
        if size < _HEADER_BYTES:
            raise FramingError(f"frame of {size} bytes is smaller than its header", offset)
        if size > self.max_frame_bytes:
            raise FramingError(f"frame of {size} bytes exceeds the maximum of {self.max_frame_bytes}", offset)
        if data_offset < _HEADER_BYTES or data_offset > size:
            raise FramingError(f"frame data offset of {data_offset} bytes in a frame of {size}", offset)
        self.frame_type = raw[offset + 5]
        self.channel = raw[offset + 6] << 8 | raw[offset + 7]
        self.start = data_offset
        return size


def frame(channel: int, body: bytes, frame_type: int = FRAME_AMQP) -> bytes:
    """Return a frame with ``body``, an encoded performative and its payload."""
    size = len(body) + HEADER_BYTES
    return b"".join((size.to_bytes(4, "big"), bytes((2, frame_type)), channel.to_bytes(2, "big"), body))
