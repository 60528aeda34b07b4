"""Keep-alive of a WebSocket's client that sends no AMQP frames.

A browser delays the timers of a hidden tab, so a console in it misses its AMQP idle time-out; but the browser answers
pings by itself. A pong that was requested counts as the empty frame that the client would have sent.
"""

from __future__ import annotations

from typing import Final

import trio

#: An AMQP frame without a body (AMQP 1.0, 2.4.5).
EMPTY_FRAME: Final = bytes((0, 0, 0, 8, 2, 0, 0, 0))
#: Seconds of silence before the client is pinged.
SILENT_S: Final = 0.5
_HEADER_BYTES: Final = 8
_AMQP_TYPE: Final = 0


class ClientLife:
    """A client's activity as its bridge sees it: frame boundaries, and the time of the last byte."""

    def __init__(self) -> None:
        self._header = bytearray()
        #: Bytes of the current frame still to come.
        self._left = 0
        #: The client has begun an AMQP frame: the login is over.
        self._speaks = False
        self._received_at_s = trio.current_time()
        self._pinged = False

    def note_bytes(self, data: bytes | bytearray) -> None:
        """Note ``data`` of the client and follow its frames through them."""
        self._received_at_s = trio.current_time()
        at = 0
        while at < len(data):
            if self._left:
                taken = min(self._left, len(data) - at)
                self._left -= taken
                at += taken
                continue
            before = len(self._header)
            self._header += data[at : at + _HEADER_BYTES - before]
            at += len(self._header) - before
            if len(self._header) == _HEADER_BYTES:
                self._begin(bytes(self._header))
                self._header.clear()

    def _begin(self, header: bytes) -> None:
        """Process the header of a frame, or of a protocol, which has no body."""
        if not header.startswith(b"AMQP"):
            self._left = max(int.from_bytes(header[:4], "big") - _HEADER_BYTES, 0)
            self._speaks = self._speaks or header[5] == _AMQP_TYPE

    def must_ping(self) -> bool:
        """Return whether to ping the client now: it is silent, and no ping is under way."""
        if self._pinged or not self._speaks or trio.current_time() - self._received_at_s < SILENT_S:
            return False
        self._pinged = True
        return True

    def answered(self) -> bytes:
        """Return the bytes that a pong stands for: an empty frame if it was requested between two frames; else b""."""
        pinged, self._pinged = self._pinged, False
        return EMPTY_FRAME if pinged and not (self._left or self._header) else b""
