"""The PROXY protocol, versions 1 and 2: a load balancer tells, before the first octet, which client it speaks for.

The header is specified by HAProxy's document ``proxy-protocol.txt``; TLVs behind the addresses are passed over.
"""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from .waits import SocketWaits

SIGNATURE: Final = b"\r\n\r\n\x00\r\nQUIT\n"
#: Octets of the longest header of version 1, and those that version 2 may have behind its first 16.
MAX_LINE: Final = 107
MAX_BEHIND: Final = 4096
_FIXED: Final = 16
_LINE: Final = b"PROXY "
_LOCAL, _PROXY = 0x20, 0x21
#: By the octet of version 2 that names family and transport: the size of an address, 0 for one without a host.
_ADDRESS_BYTES: Final = {0x00: 0, 0x11: 4, 0x21: 16, 0x31: 0}
_UNIX_BYTES: Final = 216
_VERSIONS: Final = {"TCP4": 4, "TCP6": 6}


class ProxyHeaderError(Exception):
    """The connection does not begin with a valid PROXY header; the text says why."""


class HeaderReader:
    """The reading of the header of one connection, and of nothing behind it."""

    __slots__ = ("_head", "_sock")

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._head = b""

    def read_available(self) -> bool:
        """Read as much of the header as has come; return whether it is complete. ProxyHeaderError, OSError."""
        try:
            ahead = self._sock.recv(_FIXED + MAX_BEHIND, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        if not ahead:
            raise ProxyHeaderError("it was closed before its PROXY header")
        head = self._head
        length = header_length(head + ahead)
        wanted = length - len(head) if length else len(ahead)
        self._head = head + self._sock.recv(min(wanted, len(ahead)))
        return len(self._head) == length

    def client(self) -> tuple[str, int] | None:
        """Return the client that the complete header names, None if it names none; ProxyHeaderError."""
        return client_of(self._head)


async def read_proxy_header(sock: socket.socket, waits: SocketWaits) -> tuple[str, int] | None:
    """Read the header from ``sock`` and nothing behind it; return the client's host and port.

    None if the proxy speaks for itself, as in its health checks, or for a client without an IP address.
    ProxyHeaderError, OSError.
    """
    return await finish_header(HeaderReader(sock), sock, waits)


async def finish_header(reader: HeaderReader, sock: socket.socket, waits: SocketWaits) -> tuple[str, int] | None:
    """Do as ``read_proxy_header`` with a reader that may have begun."""
    while not reader.read_available():
        await waits.wait_readable(sock)
    return reader.client()


def header_length(start: bytes) -> int:
    """Return the length of the header that a connection starts with, 0 while it is not known; ProxyHeaderError."""
    if start[: len(SIGNATURE)] == SIGNATURE[: len(start)]:
        if len(start) < _FIXED:
            return 0
        behind = int.from_bytes(start[14:_FIXED])
        if behind > MAX_BEHIND:
            raise ProxyHeaderError(
                f"its PROXY header has {behind} octets behind the first 16, at most {MAX_BEHIND} may be"
            )
        return _FIXED + behind
    if start[: len(_LINE)] != _LINE[: len(start)]:
        raise ProxyHeaderError("it does not begin with a PROXY header")
    end = start.find(b"\r\n", 0, MAX_LINE)
    if end < 0 and len(start) >= MAX_LINE:
        raise ProxyHeaderError(f"its PROXY line has more than {MAX_LINE} octets")
    return end + 2 if end >= 0 else 0


def client_of(header: bytes) -> tuple[str, int] | None:
    """Return host and port of the client that a whole header names, None if it names none; ProxyHeaderError."""
    return _client_of_line(header) if header.startswith(_LINE) else _client_of_block(header)


def _client_of_line(header: bytes) -> tuple[str, int] | None:
    words = header[len(_LINE) : -2].decode("latin-1").split(" ")
    if words[0] == "UNKNOWN":
        return None
    version = _VERSIONS.get(words[0])
    if version is None or len(words) != 5:
        raise ProxyHeaderError("its PROXY line is not: PROXY TCP4|TCP6 SOURCE DESTINATION PORT PORT")
    try:
        source, destination = _address_of(words[1]), _address_of(words[2])
    except ValueError:
        raise ProxyHeaderError("its PROXY line has an invalid address") from None
    if source.version != version or destination.version != version:
        raise ProxyHeaderError("its PROXY line has an address of another family")
    port, _ = _port_of(words[3]), _port_of(words[4])
    return _host_of(source), port


def _address_of(text: str) -> IPv4Address | IPv6Address:
    """Return an address. ValueError, also for one with a zone, which no header has and which may be any text."""
    if "%" in text:
        raise ValueError("it has a zone")
    return ip_address(text)


def _port_of(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and int(text) <= 65535):
        raise ProxyHeaderError("its PROXY line has an invalid port")
    return int(text)


def _client_of_block(header: bytes) -> tuple[str, int] | None:
    command, kind = header[12], header[13]
    if command not in (_LOCAL, _PROXY):
        raise ProxyHeaderError(f"its PROXY header has version and command 0x{command:02x}, not 0x20 or 0x21")
    if command == _LOCAL:
        return None
    size = _ADDRESS_BYTES.get(kind)
    if size is None:
        raise ProxyHeaderError(f"its PROXY header has family and transport 0x{kind:02x}, not those of a stream")
    needed = _UNIX_BYTES if kind == 0x31 else 2 * size + (4 if size else 0)
    block = header[_FIXED:]
    if len(block) < needed:
        raise ProxyHeaderError(f"its PROXY header has {len(block)} octets of addresses, {needed} are needed")
    if not size:
        return None
    return _host_of(ip_address(block[:size])), int.from_bytes(block[2 * size : 2 * size + 2])


def _host_of(address: IPv4Address | IPv6Address) -> str:
    """Return an address as text; one of IPv4 that is written as one of IPv6 is one of IPv4."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)
