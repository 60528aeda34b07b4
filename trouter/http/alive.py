"""Signs of life of a WebSocket's client, where it sends no AMQP frames.

A browser holds up the timers of a tab that is out of sight, so that a console in it keeps no idle time-out of AMQP; but
it answers pings by itself. A pong that was asked for counts as the empty frame that the client would have sent.
"""

from __future__ import annotations

from typing import Final

import trio

#: An AMQP frame without a body (AMQP 1.0, 2.4.5).
EMPTY_FRAME: Final = bytes((0, 0, 0, 8, 2, 0, 0, 0))
#: How long a client is silent before it is asked.
SILENT_S: Final = 0.5
_HEADER_BYTES: Final = 8
_AMQP_TYPE: Final = 0


class ClientLife:
    """What a bridge knows of its client's life: where its frames end, and since when it is silent."""

    def __init__(self) -> None:
        self._header = bytearray()
        #: Octets of the frame under way that are still to come.
        self._left = 0
        #: The client has begun an AMQP frame: the login is over.
        self._speaks = False
        self._heard_at_s = trio.current_time()
        self._asked = False

    def take(self, octets: bytes | bytearray) -> None:
        """Follow the client's frames through ``octets``."""
        self._heard_at_s = trio.current_time()
        at = 0
        while at < len(octets):
            if self._left:
                taken = min(self._left, len(octets) - at)
                self._left -= taken
                at += taken
                continue
            before = len(self._header)
            self._header += octets[at : at + _HEADER_BYTES - before]
            at += len(self._header) - before
            if len(self._header) == _HEADER_BYTES:
                self._begin(bytes(self._header))
                self._header.clear()

    def _begin(self, header: bytes) -> None:
        """Note the header of a frame, or of a protocol, which has nothing behind it."""
        if not header.startswith(b"AMQP"):
            self._left = max(int.from_bytes(header[:4], "big") - _HEADER_BYTES, 0)
            self._speaks = self._speaks or header[5] == _AMQP_TYPE

    def must_ask(self) -> bool:
        """Return whether the client is to be pinged now: it is silent, and no ping is under way."""
        if self._asked or not self._speaks or trio.current_time() - self._heard_at_s < SILENT_S:
            return False
        self._asked = True
        return True

    def answered(self) -> bytes:
        """Return what a pong stands for: an empty frame if it was asked for and no frame is under way."""
        asked, self._asked = self._asked, False
        return EMPTY_FRAME if asked and not (self._left or self._header) else b""
