"""The socket below a connection: bytes as they come, and writes that never wait.

Calls go straight to the socket; a task waits only while it is not ready. TLS uses memory buffers, so that it can be
written without waiting too.
"""

from __future__ import annotations

import socket
import ssl
from typing import Final

import trio

READ_BYTES: Final = 131072
#: Full reads in a row before other tasks get their turn.
READS_IN_A_ROW: Final = 4
#: Bytes that are encrypted at a time, which bounds what is encrypted and not sent.
_TLS_PIECE_BYTES: Final = 65536


class Transport:
    """A connected socket. Its failures are OSErrors."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._drained = False
        self._in_a_row = 0

    async def receive(self) -> bytes:
        """Return the next bytes; b"" once the peer has closed."""
        if self._drained:
            await trio.lowlevel.wait_readable(self._sock)
        elif self._in_a_row >= READS_IN_A_ROW:
            self._in_a_row = 0
            await trio.lowlevel.checkpoint()
        while True:
            try:
                data = self._sock.recv(READ_BYTES)
            except BlockingIOError:
                await trio.lowlevel.wait_readable(self._sock)
                continue
            self._drained = len(data) < READ_BYTES
            self._in_a_row += 1
            return data

    def send(self, out: bytearray) -> bool:
        """Send from the front of ``out`` what the socket takes now; return whether that was all."""
        while out:
            try:
                sent = self._sock.send(out)
            except BlockingIOError:
                return False
            del out[:sent]
        return True

    async def wait_writable(self) -> None:
        """Wait until the socket takes more."""
        await trio.lowlevel.wait_writable(self._sock)

    def close(self) -> None:
        """Close the socket at once."""
        self._sock.close()


class TlsTransport(Transport):
    """A connected socket with TLS; ``handshake`` comes first."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, hostname: str) -> None:
        super().__init__(sock)
        self._arrived = ssl.MemoryBIO()
        self._leaving = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._arrived, self._leaving, server_hostname=hostname)
        self._encrypted = bytearray()

    async def handshake(self) -> None:
        """Agree on keys and verify the server; ssl.SSLError, which is an OSError."""
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._send_all_encrypted()
                await self._receive_encrypted()
            else:
                await self._send_all_encrypted()
                return

    async def receive(self) -> bytes:
        while True:
            try:
                return self._tls.read(READ_BYTES)
            except ssl.SSLWantReadError:
                await self._receive_encrypted()
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                return b""

    def send(self, out: bytearray) -> bool:
        while self._send_encrypted():
            if not out:
                return True
            piece = bytes(out[:_TLS_PIECE_BYTES])
            try:
                taken = self._tls.write(piece)
            except ssl.SSLWantReadError:
                raise OSError("the server wants to renegotiate TLS, which is not supported") from None
            del out[:taken]
        return False

    def _send_encrypted(self) -> bool:
        self._encrypted += self._leaving.read()
        return super().send(self._encrypted)

    async def _send_all_encrypted(self) -> None:
        while not self._send_encrypted():
            await self.wait_writable()

    async def _receive_encrypted(self) -> None:
        data = await super().receive()
        if data:
            self._arrived.write(data)
        else:
            self._arrived.write_eof()


async def dial(host: str, port: int, context: ssl.SSLContext | None) -> Transport:
    """Return a connected transport, with TLS if ``context`` is given; OSError."""
    stream = await trio.open_tcp_stream(host, port)
    sock = socket.socket(fileno=stream.socket.detach())
    if context is None:
        return Transport(sock)
    try:
        transport = TlsTransport(sock, context, host)
        await transport.handshake()
    except BaseException:
        sock.close()
        raise
    return transport
