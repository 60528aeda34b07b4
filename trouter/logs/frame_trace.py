"""The frames of one connection as log lines (module PROTOCOL, level trace), read from the bytes themselves.

Nothing here depends on the engine: frames that it refuses are shown too. Any bytes, cut anywhere, raise nothing and use
little memory. Tracing may begin in the middle of a frame; then, and after bytes that are no frames, it waits for bytes
that look like the start of one.

    [C5]:FRAME:   <- AMQP
    [C5]:FRAME: 0 <- @open(16) [container-id="x", channel-max=0x7fff]
    [C5]:FRAME: 0 -> @transfer(20) [handle=0x0, delivery-id=0x0, delivery-tag=b"1", settled=true] (1024) "..."
    [C5]:FRAME: 0 <- EMPTY FRAME

The form is that of Qpid Dispatch's engine, since programs read it. Payloads are not shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from trouter.wire.codec import decode
from trouter.wire.errors import DecodeError
from trouter.wire.framing import FRAME_SASL, HEADER_BYTES
from trouter.wire.types import Described
from trouter.wire.value_text import is_sasl, name_of, trace_text

#: Bytes of a frame that are kept, from its performative on.
KEPT_BYTES: Final = 8192

_PROTOCOLS: Final = {0: "AMQP", 2: "TLS", 3: "SASL"}
# Tracing starts again at a protocol header, an empty frame, or a frame whose performative begins in the usual encoding.
# A position is tested only when it has as many bytes as the longest of these needs.
_LANDMARK: Final = re.compile(
    rb"AMQP[\x00-\x03]\x01\x00\x00|\x00\x00\x00\x08\x02[\x00\x01]..|\x00...\x02[\x00\x01]..\x00\x53[\x10-\x18\x40-\x44]",
    re.DOTALL,
)
_LANDMARK_BYTES: Final = 11


class FrameTrace:
    """Writes lines for the frames that a connection receives and sends; ``label`` begins each line.

    ``midway``: the connection is not new, so its first bytes may be in the middle of a frame.
    """

    __slots__ = ("_in", "_out")

    def __init__(self, label: str, write: Callable[[str], None], *, midway: bool = False) -> None:
        self._in = _Direction(label, "<-", write, midway)
        self._out = _Direction(label, "->", write, midway)

    def received(self, data: bytes | bytearray) -> None:
        """Take the next bytes from the peer."""
        self._in.read_bytes(bytes(data))

    def sent(self, data: bytes | bytearray) -> None:
        """Take the next bytes to the peer."""
        self._out.read_bytes(bytes(data))


class _Direction:
    """One of the two streams: finds the frames and writes a line at the end of each."""

    __slots__ = ("_arrow", "_head", "_kept", "_label", "_left", "_lost", "_skipped", "_unseen", "_write")

    def __init__(self, label: str, arrow: str, write: Callable[[str], None], lost: bool) -> None:
        self._label = label
        self._arrow = arrow
        self._write = write
        #: Bytes of a header; while lost, bytes in which the next frame may begin.
        self._head = b""
        self._kept = bytearray()
        #: Bytes of the present frame still to come: of an extended header, and of the body.
        self._unseen = 0
        self._left = 0
        self._lost = lost
        self._skipped = 0

    def read_bytes(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        at = 0
        while at < len(data):
            if self._lost:
                data, at = self._search(data[at:])
            elif self._unseen or self._left:
                at = self._take_body(data, at)
            else:
                at = self._take_head(data, at)

    def _take_head(self, data: bytes, at: int) -> int:
        behind = at + HEADER_BYTES - len(self._head)
        self._head += data[at:behind]
        if len(self._head) < HEADER_BYTES:
            return len(data)
        head = self._head
        size, offset = int.from_bytes(head[:4], "big"), head[4] * 4
        if head.startswith(b"AMQP"):
            self._log(None, _protocol(head))
            self._head = b""
        elif not HEADER_BYTES <= offset <= size or head[5] > FRAME_SASL:
            self._log(None, "no frame here, waiting for the next one")
            self._lost = True
            self._skipped = 1  # the next frame begins somewhere after this byte
            self._head = head[1:]
        else:
            self._unseen = offset - HEADER_BYTES
            self._left = size - offset
            if size == HEADER_BYTES:
                self._log_frame()
        return behind

    def _take_body(self, data: bytes, at: int) -> int:
        unseen = min(self._unseen, len(data) - at)
        self._unseen -= unseen
        at += unseen
        behind = min(at + self._left, len(data))
        self._kept += data[at : min(behind, at + KEPT_BYTES - len(self._kept))]
        self._left -= behind - at
        if not self._unseen and not self._left:
            self._log_frame()
        return behind

    def _search(self, data: bytes) -> tuple[bytes, int]:
        """Look for the start of a frame; return the bytes to continue with, and their offset."""
        data = self._head + data
        last = len(data) - _LANDMARK_BYTES
        found = _LANDMARK.search(data)
        while found is not None and found.start() <= last:
            if int.from_bytes(found[0][:4], "big") >= len(found[0]):
                self._skipped += found.start()
                if self._skipped:
                    self._log(None, f"{self._skipped} bytes skipped")
                self._head = b""
                self._lost = False
                return data, found.start()
            found = _LANDMARK.search(data, found.start() + 1)
        self._skipped += max(last + 1, 0)
        self._head = data[max(last + 1, 0) :]
        return b"", 0

    def _log_frame(self) -> None:
        """Write the line of the frame that has ended."""
        head, body = self._head, bytes(self._kept)
        octets = int.from_bytes(head[:4], "big") - head[4] * 4
        self._head = b""
        self._kept.clear()
        text = _frame(body, octets, sasl=head[5] == FRAME_SASL) if octets else "EMPTY FRAME"
        self._log(int.from_bytes(head[6:8], "big"), text)

    def _log(self, channel: int | None, text: str) -> None:
        self._write(f"{self._label}:FRAME: {' ' if channel is None else channel} {self._arrow} {text}")


def _protocol(head: bytes) -> str:
    """Return the name of a protocol header, such as `SASL`, with its version if that is not 1.0.0."""
    name = _PROTOCOLS.get(head[4], f"AMQP protocol {head[4]}")
    return name if head[5:] == b"\x01\x00\x00" else f"{name} {head[5]}.{head[6]}.{head[7]}"


def _frame(body: bytes, octets: int, sasl: bool) -> str:
    """Return a frame of ``octets`` bytes as text; ``body`` is its beginning. Only the length of a payload is shown."""
    try:
        value, behind = decode(body, 0, len(body))
    except DecodeError as error:
        why = "too long to be shown" if octets > len(body) else f"cannot be read: {'' if sasl else error}".rstrip(": ")
        return f"{_guess(body)}({octets}), {why}"
    if not isinstance(value, Described) or (sasl and not is_sasl(value.descriptor)):
        return f"no performative ({octets})"
    payload = f' ({octets - behind}) "..."' if octets > behind else ""
    return trace_text(value) + payload


def _guess(body: bytes) -> str:
    """Return the name of a performative that cannot be decoded, if its descriptor can; otherwise ""."""
    try:
        return f"{name_of(decode(body, 1, len(body))[0])} " if body[:1] == b"\x00" else ""
    except DecodeError:
        return ""
