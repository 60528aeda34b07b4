"""The PROXY header: every form of both versions, in any pieces, and nothing behind it is read."""

from __future__ import annotations

import socket
import struct
from ipaddress import ip_address

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from trouter.net.proxy_protocol import (
    MAX_BEHIND,
    MAX_LINE,
    SIGNATURE,
    ProxyHeaderError,
    client_of,
    header_length,
    read_proxy_header,
)

pytestmark = pytest.mark.attack


def block(source: str, destination: str, kind: int, command: int = 0x21, more: bytes = b"") -> bytes:
    """Return a header of version 2 for a client at ``source`` with port 4000."""
    octets = ip_address(source).packed + ip_address(destination).packed + struct.pack(">HH", 4000, 5672) + more
    return SIGNATURE + bytes((command, kind)) + struct.pack(">H", len(octets)) + octets


CLIENT = ("192.0.2.7", 4000)
VALID = {
    "line of IPv4": (b"PROXY TCP4 192.0.2.7 192.0.2.1 4000 5672\r\n", CLIENT),
    "line of IPv6": (b"PROXY TCP6 2001:db8::7 2001:db8::1 4000 5672\r\n", ("2001:db8::7", 4000)),
    "mapped address": (b"PROXY TCP6 ::ffff:192.0.2.7 ::1 4000 5672\r\n", CLIENT),
    "unknown client": (b"PROXY UNKNOWN\r\n", None),
    "unknown client with words": (b"PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n", None),
    "block of IPv4": (block("192.0.2.7", "192.0.2.1", 0x11), CLIENT),
    "block of IPv6": (block("2001:db8::7", "2001:db8::1", 0x21), ("2001:db8::7", 4000)),
    "block with TLVs": (block("192.0.2.7", "192.0.2.1", 0x11, more=b"\x02\x00\x01x" * 9), CLIENT),
    "as many TLVs as may be": (block("192.0.2.7", "192.0.2.1", 0x11, more=bytes(MAX_BEHIND - 12)), CLIENT),
    "TLV that claims more than there is": (block("192.0.2.7", "192.0.2.1", 0x11, more=b"\x02\xff\xffx"), CLIENT),
    "longest line": (
        b"PROXY TCP6 " + b" ".join([b":".join([b"ffff"] * 8)] * 2) + b" 65535 65535\r\n",
        (":".join(["ffff"] * 8), 65535),
    ),
    "line with blanks to its end": (b"PROXY UNKNOWN" + b" " * (MAX_LINE - 15) + b"\r\n", None),
    "health check": (block("192.0.2.7", "192.0.2.1", 0x11, command=0x20), None),
    "empty health check": (SIGNATURE + b"\x20\x00\x00\x00", None),
    "no family": (SIGNATURE + b"\x21\x00\x00\x00", None),
    "Unix socket": (SIGNATURE + b"\x21\x31" + struct.pack(">H", 216) + bytes(216), None),
}
INVALID = {
    "AMQP": b"AMQP\x00\x01\x00\x00",
    "TLS": b"\x16\x03\x01\x02\x00\x01",
    "no space": b"PROXYTCP4 192.0.2.7 192.0.2.1 4000 5672\r\n",
    "other protocol": b"PROXY UDP4 192.0.2.7 192.0.2.1 4000 5672\r\n",
    "a word less": b"PROXY TCP4 192.0.2.7 192.0.2.1 4000\r\n",
    "a word more": b"PROXY TCP4 192.0.2.7 192.0.2.1 4000 5672 1\r\n",
    "two spaces": b"PROXY TCP4  192.0.2.7 192.0.2.1 4000 5672\r\n",
    "name": b"PROXY TCP4 localhost 192.0.2.1 4000 5672\r\n",
    "other family": b"PROXY TCP4 2001:db8::7 2001:db8::1 4000 5672\r\n",
    "zone of the source": b"PROXY TCP6 fe80::7%eth0 2001:db8::1 4000 5672\r\n",
    "zone of the destination": b"PROXY TCP6 2001:db8::7 fe80::1%\x9b31m 4000 5672\r\n",
    "port too high": b"PROXY TCP4 192.0.2.7 192.0.2.1 65536 5672\r\n",
    "port below zero": b"PROXY TCP4 192.0.2.7 192.0.2.1 -1 5672\r\n",
    "port of foreign digits": "PROXY TCP4 192.0.2.7 192.0.2.1 ٤ 5672\r\n".encode(),
    "line too long": b"PROXY TCP4 " + b"1" * MAX_LINE,
    "version 3": SIGNATURE + b"\x31\x11\x00\x0c" + bytes(12),
    "other command": SIGNATURE + b"\x22\x11\x00\x0c" + bytes(12),
    "datagrams": SIGNATURE + b"\x21\x12\x00\x0c" + bytes(12),
    "other family of version 2": SIGNATURE + b"\x21\x41\x00\x0c" + bytes(12),
    "addresses cut off": SIGNATURE + b"\x21\x11\x00\x0b" + bytes(11),
    "line an octet too long": b"PROXY UNKNOWN" + b" " * (MAX_LINE - 14) + b"\r\n",
    "destination of another family": b"PROXY TCP4 192.0.2.7 2001:db8::1 4000 5672\r\n",
    "destination port too high": b"PROXY TCP4 192.0.2.7 192.0.2.1 4000 65536\r\n",
    "port of six digits": b"PROXY TCP4 192.0.2.7 192.0.2.1 004000 5672\r\n",
    "Unix addresses cut off": SIGNATURE + b"\x21\x31" + struct.pack(">H", 215) + bytes(215),
    "IPv6 addresses cut off": SIGNATURE + b"\x21\x21\x00\x23" + bytes(35),
    "source of another family": b"PROXY TCP4 2001:db8::7 192.0.2.1 4000 5672\r\n",
    "port of a digit that is no number": b"PROXY TCP4 192.0.2.7 192.0.2.1 \xb2 5672\r\n",
    "too long": block("192.0.2.7", "192.0.2.1", 0x11, more=bytes(MAX_BEHIND - 11)),
}


async def read_in_pieces(pieces: list[bytes]) -> tuple[tuple[str, int] | None, bytes]:
    """Return what the header names, and the octets that were left behind it."""
    near, far = socket.socketpair()
    with near, far:
        near.setblocking(False)
        found: list[tuple[str, int] | None] = []

        async def read() -> None:
            found.append(await read_proxy_header(near, trio.lowlevel))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            for piece in pieces:
                far.sendall(piece)
                await trio.testing.wait_all_tasks_blocked()
        far.close()
        left = b""
        while data := near.recv(4096):
            left += data
        return found[0], left


@pytest.mark.parametrize("name", VALID)
async def test_the_client_is_known_and_what_follows_is_left(name: str) -> None:
    header, client = VALID[name]
    assert await read_in_pieces([header + b"AMQP\x00\x01\x00\x00"]) == (client, b"AMQP\x00\x01\x00\x00")


@pytest.mark.parametrize("name", ["line of IPv4", "block with TLVs"])
async def test_a_header_may_come_octet_by_octet(name: str) -> None:
    header, client = VALID[name]
    pieces = [bytes((octet,)) for octet in header]
    assert await read_in_pieces([*pieces, b"AMQP"]) == (client, b"AMQP")


@pytest.mark.parametrize("name", INVALID)
def test_what_is_no_header_is_refused(name: str) -> None:
    with pytest.raises(ProxyHeaderError):
        _read_whole(INVALID[name])


@pytest.mark.parametrize("octets", [b"POST /", b"PROXY\t", b"\r\n\r\n\r\n", b"\x00"])
def test_what_begins_otherwise_is_refused_at_once(octets: bytes) -> None:
    with pytest.raises(ProxyHeaderError, match="does not begin with a PROXY header"):
        header_length(octets)


def _read_whole(octets: bytes) -> None:
    length = header_length(octets)
    assert length, "it waits for more"
    client_of(octets[:length])


@pytest.mark.parametrize("name", ["line of IPv4", "block of IPv6", "health check"])
async def test_a_connection_that_ends_anywhere_within_its_header_is_an_error(name: str) -> None:
    header, _ = VALID[name]
    for end in range(len(header)):
        near, far = socket.socketpair()
        with near:
            near.setblocking(False)
            far.sendall(header[:end])
            far.close()
            with pytest.raises(ProxyHeaderError, match="closed before"):
                await read_proxy_header(near, trio.lowlevel)


@given(
    st.one_of(
        st.binary(max_size=300),
        st.binary(max_size=300).map(lambda rest: SIGNATURE + rest),
        st.binary(max_size=120).map(lambda rest: b"PROXY " + rest),
    )
)
def test_any_octets_are_a_header_or_an_error_and_each_is_needed(octets: bytes) -> None:
    try:
        length = header_length(octets)
    except ProxyHeaderError:
        return
    assert length <= 16 + MAX_BEHIND
    if not length:
        assert len(octets) < MAX_LINE
        return
    for cut in range(min(length, len(octets))):
        assert header_length(octets[:cut]) in (0, length)
    if length <= len(octets):
        try:
            client_of(octets[:length])
        except ProxyHeaderError:
            return
