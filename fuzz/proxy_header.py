"""Any first octets are one PROXY header or raise ProxyHeaderError, in whatever pieces they come; none behind are lost.

The client is the one that a reference finds in the octets, and the host is an address. The first octet of an input says
how large the pieces are. Allowed: ProxyHeaderError.
"""

from __future__ import annotations

import re
import socket
from ipaddress import ip_address

from trouter.net.proxy_protocol import (
    MAX_BEHIND,
    MAX_LINE,
    SIGNATURE,
    ProxyHeaderError,
    read_proxy_header,
)
from trouter.testing.fuzz import behind, octets

COVERS = ("trouter.net.proxy_protocol",)
MUTATOR = behind(1, octets)
#: The most octets that an input has behind its first.
MAX_INPUT = 16 + MAX_BEHIND + 64
_LINE = re.compile(rb"PROXY (?:(UNKNOWN)(?: .*?)?|TCP([46]) (\S+) (\S+) (\d{1,5}) (\d{1,5}))\r\n", re.DOTALL)

#: None for a proxy that names no client.
Client = tuple[str, int] | None


def check(data: bytes) -> None:
    size, given = (data[0] & 63) + 1 if data else 1, data[1 : 1 + MAX_INPUT]
    whole = outcome_of(given, len(given) or 1)
    assert whole == outcome_of(given, size), "the pieces make a difference"
    known = reference(given)
    if isinstance(whole, str):
        assert known is None, f"refused: {whole}"
        return
    client, left = whole
    assert known is not None, "taken, although it is no header"
    expected, length = known
    assert client == expected
    assert left == given[length:]
    if client is not None:
        assert str(ip_address(client[0])) == client[0]
        assert 0 <= client[1] <= 65535


def outcome_of(given: bytes, size: int) -> str | tuple[Client, bytes]:
    """Return the error for octets that come in pieces of ``size``, or the client and the octets behind the header."""
    near, far = socket.socketpair()
    with near, far:
        near.setblocking(False)
        waits = Pieces(far, [given[at : at + size] for at in range(0, len(given), size)])
        try:
            client = finished(read_proxy_header(near, waits))
        except ProxyHeaderError as error:
            return str(error)[:200]
        try:
            left = near.recv(65536)
        except BlockingIOError:
            left = b""
        return client, left + b"".join(waits.pieces)


class Pieces:
    """The waits of a socket whose peer sends its next piece when the socket is waited for, and at last closes."""

    def __init__(self, far: socket.socket, pieces: list[bytes]) -> None:
        self._far = far
        self.pieces = iter(pieces)

    async def wait_readable(self, _: socket.socket) -> None:
        piece = next(self.pieces, None)
        if piece is None:
            self._far.shutdown(socket.SHUT_WR)
        else:
            self._far.sendall(piece)

    async def wait_writable(self, _: socket.socket) -> None:
        raise AssertionError("nothing is written before the header")


def finished(reading: object) -> Client:
    """Run a coroutine that waits for nothing but ``Pieces``."""
    try:
        reading.send(None)  # type: ignore[attr-defined]
    except StopIteration as end:
        found: Client = end.value
        return found
    raise AssertionError("it waits for something else")


def reference(given: bytes) -> tuple[Client, int] | None:
    """Return the client and the length of the header by another reading of the specification; None if it is invalid."""
    return reference_block(given) if given.startswith(SIGNATURE) else reference_line(given)


def reference_line(given: bytes) -> tuple[Client, int] | None:
    found = _LINE.match(given[: given.find(b"\r\n") + 2])
    if found is None or found.end() > MAX_LINE:
        return None
    if found[1]:
        return None, found.end()
    if b"%" in found[3] + found[4]:
        return None  # a zone, which Python's addresses may have
    try:
        source, destination = ip_address(found[3].decode("ascii")), ip_address(found[4].decode("ascii"))
    except ValueError:
        return None
    port = int(found[5])
    if {source.version, destination.version} != {int(found[2])} or port > 65535 or int(found[6]) > 65535:
        return None
    return (plain(source), port), found.end()


def reference_block(given: bytes) -> tuple[Client, int] | None:
    if len(given) < 16:
        return None
    command, kind, size = given[12], given[13], int.from_bytes(given[14:16])
    if size > MAX_BEHIND or len(given) < 16 + size or command not in (0x20, 0x21):
        return None
    block, length = given[16 : 16 + size], 16 + size
    if command == 0x20:
        return None, length
    if kind == 0x00 or (kind == 0x31 and size >= 216):
        return None, length
    if kind == 0x11 and size >= 12:
        return (plain(ip_address(block[:4])), int.from_bytes(block[8:10])), length
    if kind == 0x21 and size >= 36:
        return (plain(ip_address(block[:16])), int.from_bytes(block[32:34])), length
    return None


def plain(address: object) -> str:
    """Return an address as text, one of IPv4 in IPv6 as one of IPv4."""
    return str(getattr(address, "ipv4_mapped", None) or address)
