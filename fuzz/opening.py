"""Any first bytes on a port for TLS, SASL and AMQP choose one protocol, in whatever pieces they come; none are lost.

Allowed: nothing. A peer that begins with other bytes gets an AMQP header.
"""

from __future__ import annotations

import socket

import trio

from trouter.tls.opening import MAX_OPENING_BYTES, Layer, layer_of, read_opening
from trouter.wire.framing import TLS_HEADER

COVERS = ("trouter.tls.opening",)


def check(data: bytes) -> None:
    answers = [layer_of(data[:end]) for end in range(min(len(data), 16) + 1)]
    decided = [answer for answer in answers if answer is not None]
    assert len(set(decided)) <= 1, "more bytes made another protocol of it"
    assert answers[: len(answers) - len(decided)] == [None] * (len(answers) - len(decided))
    if len(data) >= MAX_OPENING_BYTES:
        assert decided
    if data[:1] == b"A" and not TLS_HEADER.startswith(data[: len(TLS_HEADER)]):
        assert Layer.TLS_HEADER not in decided
    layer, rest = trio.run(over_a_socket, data[:64])
    assert layer is (decided[0] if decided else Layer.OTHER)
    assert data[:64].startswith(rest) or data[: len(TLS_HEADER)] == TLS_HEADER


async def over_a_socket(data: bytes) -> tuple[Layer, bytes]:
    """Return the layer that the opening chooses, and the bytes that were looked at and stay for its reader."""
    near, far = socket.socketpair()
    with near, far:
        near.setblocking(False)
        far.sendall(data)
        far.shutdown(socket.SHUT_WR)
        layer, seen = await read_opening(near, trio.lowlevel)
        left = b""
        while piece := near.recv(256):
            left += piece
        assert seen + left == (data.removeprefix(TLS_HEADER) if layer is Layer.TLS_HEADER else data)
        return layer, seen
