"""A WebSocket with the methods of a socket, for a peer of the tests."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Any

from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, BytesMessage, CloseConnection, Ping, RejectConnection, Request


class Rejected(AssertionError):
    """The server rejected the handshake; ``status`` is that of its answer."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class WebSocket:
    """An open WebSocket."""

    def __init__(
        self,
        sock: socket.socket,
        subprotocol: str = "amqp",
        headers: Sequence[tuple[bytes, bytes]] = (),
    ) -> None:
        """Shake hands over ``sock``, which may be within TLS, with these headers added; raise Rejected."""
        self._sock: Any = sock
        self._protocol = WSConnection(ConnectionType.CLIENT)
        self._octets = bytearray()
        self._accepted = self._ended = False
        host = "{}:{}".format(*sock.getpeername()[:2])
        request = Request(host=host, target="/", subprotocols=[subprotocol], extra_headers=list(headers))
        self._sock.sendall(self._protocol.send(request))
        while not self._accepted:
            self._receive()

    def _receive(self) -> None:
        try:
            data = self._sock.recv(65536)
        except ConnectionResetError:
            data = b""
        self._protocol.receive_data(data or None)
        for event in self._protocol.events():
            if isinstance(event, AcceptConnection):
                self._accepted = True
            elif isinstance(event, RejectConnection):
                raise Rejected(event.status_code)
            elif isinstance(event, BytesMessage):
                self._octets += event.data
            elif isinstance(event, Ping):
                self._sock.sendall(self._protocol.send(event.response()))
            elif isinstance(event, CloseConnection):
                self._ended = True
        self._ended |= not data

    def recv(self, most: int) -> bytes:
        while not (self._octets or self._ended):
            self._receive()
        taken = bytes(self._octets[:most])
        del self._octets[:most]
        return taken

    def sendall(self, octets: bytes) -> None:
        self._sock.sendall(self._protocol.send(BytesMessage(data=octets)))

    def getsockname(self) -> Any:
        return self._sock.getsockname()

    def close(self) -> None:
        """Close the socket without a close frame."""
        self._sock.close()
