"""Detection of TLS in the first bytes of a connection (security.md 1.1)."""

from __future__ import annotations

import socket
from enum import Enum
from typing import Final

from trouter.net.waits import SocketWaits
from trouter.wire.framing import TLS_HEADER

#: The longest opening that has to be read.
MAX_OPENING_BYTES: Final = 8


class Layer(Enum):
    """The protocol that a connection begins with."""

    TLS = "TLS"
    #: AMQP's own header for TLS, followed by TLS.
    TLS_HEADER = "AMQP-TLS"
    #: Plain AMQP, SASL, or anything else.
    OTHER = "other"


def layer_of(seen: bytes) -> Layer | None:
    """Return the layer that ``seen`` begins; None if more bytes are needed."""
    if not seen:
        return None
    if TLS_HEADER.startswith(seen[: len(TLS_HEADER)]):
        return Layer.TLS_HEADER if len(seen) >= len(TLS_HEADER) else None
    if seen[0] == 0x16:
        return _decided(seen[1:], (b"\x03\x00", b"\x03\x01", b"\x03\x02", b"\x03\x03"))
    # An SSL 2 hello: two bytes of length, then its kind and the version.
    if len(seen) < 3:
        return None
    if seen[2] != 0x01 or not seen[0] & 0x80:
        return Layer.OTHER
    return _decided(seen[3:], (b"\x02\x00", b"\x03\x00", b"\x03\x01", b"\x03\x02", b"\x03\x03"))


def _decided(seen: bytes, versions: tuple[bytes, ...]) -> Layer | None:
    if seen[:2] in versions:
        return Layer.TLS
    undecided = len(seen) < 2 and any(version.startswith(seen) for version in versions)
    return None if undecided else Layer.OTHER


async def read_opening(sock: socket.socket, waits: SocketWaits) -> tuple[Layer, bytes]:
    """Return the peer's first layer and the bytes read for it, without AMQP's header for TLS; OSError.

    A peer that ends before it is clear has the layer OTHER.
    """
    seen = b""
    while (layer := layer_of(seen)) is None:
        try:
            data = sock.recv(MAX_OPENING_BYTES - len(seen))
        except BlockingIOError:
            await waits.wait_readable(sock)
            continue
        if not data:
            return Layer.OTHER, seen
        seen += data
    return layer, seen.removeprefix(TLS_HEADER)
