"""An HTTP listener: its sockets, its connections, and protection from too many of them at once."""

from __future__ import annotations

import logging
import socket

import trio

from trouter.config import ListenerEntity
from trouter.net.accepting import AcceptingListener

from .connection import HttpConnection, HttpService
from .door import Door
from .pages import Pages
from .ports import Secured, Site
from .settings import MAX_PLAIN, http_settings

log = logging.getLogger("trouter.HTTP")


class HttpListener(AcceptingListener):
    """One configured listener with ``http: yes``, and its connections."""

    def __init__(self, entity: ListenerEntity, sockets: list[socket.socket], site: Site) -> None:
        self.peers: set[HttpConnection] = set()
        self._site = site
        self._door = Door()
        #: Connections whose tasks have not begun, or whose TLS handshakes have not ended.
        self._greeting = 0
        super().__init__(entity, sockets, log)

    @property
    def websockets(self) -> int:
        """Number of open WebSockets."""
        return self._door.websockets

    def configure(self, entity: ListenerEntity) -> None:
        super().configure(entity)
        settings = http_settings(entity)
        self._service = HttpService(entity, settings, self._site, Pages(settings, self._site), self._door)

    def drain(self) -> None:
        """Accept no more WebSockets; pages are still served, so that the operator can watch the router shut down."""
        self._door.draining = True

    def stop(self) -> None:
        """Accept no more connections and requests, and close the sockets; open WebSockets continue."""
        super().stop()
        self._door.stop()

    def admit_socket(self, sock: socket.socket, address: tuple[str, int], nursery: trio.Nursery) -> bool:
        served = self._count_accepted(sock, refused=self._site.turns_away(address, self.entity.name, self._full))
        if served:
            self._greeting += 1
            nursery.start_soon(self._serve, sock, address)
        return served

    def refuse_socket(self, sock: socket.socket, address: tuple[str, int], why: str) -> None:
        self._site.refuses_header(address, self.entity.name, why)
        self._count_accepted(sock, refused=True)

    def _full(self) -> str:
        """Return why no further connection has room, empty if one has; an idle connection may be ended for it."""
        maximum = self.entity.max_connections
        if maximum is not None and self._count >= maximum:
            return f"maxConnections {maximum}"
        if self._count - self._door.websockets >= MAX_PLAIN and not self._door.give_up_one():
            return f"{MAX_PLAIN} requests are being answered"
        return ""

    @property
    def _count(self) -> int:
        return len(self.peers) + self._greeting

    async def _serve(self, sock: socket.socket, remote: tuple[str, int]) -> None:
        """Serve one connection, with TLS if configured; log a bug of ours, which ends only this connection."""
        secured: Secured | None = None
        try:
            secured = await self._secure(sock, remote)
        except Exception:
            log.exception("internal error, connection from %s:%s dropped", *remote)
        finally:
            self._greeting -= 1
            if secured is None:
                sock.close()
        if secured is None:
            return
        connection = HttpConnection(secured, sock.getsockname()[0], remote, self._service)
        self.peers.add(connection)
        try:
            await connection.run()
        except Exception:
            log.exception("internal error, connection from %s:%s dropped", *remote)
        finally:
            self.peers.discard(connection)

    async def _secure(self, sock: socket.socket, remote: tuple[str, int]) -> Secured | None:
        """Return the client's stream; None if the client left or the handshake was ended."""
        if not self.entity.ssl_profile:
            return Secured(_stream(sock), None)
        with trio.CancelScope() as scope, self._door.waiting(scope):
            return await self._site.secure(sock, remote, self.entity, self._service.settings.request_s)
        return None


def _stream(sock: socket.socket) -> trio.SocketStream:
    return trio.SocketStream(trio.socket.from_stdlib_socket(sock))
