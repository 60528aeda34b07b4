"""The first octets of a connection: whether TLS begins with them (security.md 1.1)."""

from __future__ import annotations

import socket
from enum import Enum
from typing import Final

import trio

from trouter.wire.framing import TLS_HEADER

#: No answer needs more.
MAX_OPENING_BYTES: Final = 8


class Layer(Enum):
    """What a connection begins with."""

    TLS = "TLS"
    #: AMQP's own header for TLS, behind which TLS begins.
    TLS_HEADER = "AMQP-TLS"
    #: AMQP in clear, SASL, or nothing that TLS has to do with.
    OTHER = "other"


def layer_of(seen: bytes) -> Layer | None:
    """Return what ``seen`` begins; None while that is open."""
    if not seen:
        return None
    if TLS_HEADER.startswith(seen[: len(TLS_HEADER)]):
        return Layer.TLS_HEADER if len(seen) >= len(TLS_HEADER) else None
    if seen[0] == 0x16:
        return _decided(seen[1:], (b"\x03\x00", b"\x03\x01", b"\x03\x02", b"\x03\x03"))
    # A hello in the manner of SSL 2: two octets of length, then its kind and the version.
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


async def read_opening(sock: socket.socket) -> tuple[Layer, bytes]:
    """Return what the peer begins with, and the octets read to know it, without AMQP's header for TLS. OSError.

    A peer that ends before that is clear has begun with something else.
    """
    seen = b""
    while (layer := layer_of(seen)) is None:
        try:
            data = sock.recv(MAX_OPENING_BYTES - len(seen))
        except BlockingIOError:
            await trio.lowlevel.wait_readable(sock)
            continue
        if not data:
            return Layer.OTHER, seen
        seen += data
    return layer, seen.removeprefix(TLS_HEADER)
