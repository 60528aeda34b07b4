"""An HTTP listener: its sockets, its connections, and protection from too many of them at once."""

from __future__ import annotations

import logging
import socket
from functools import partial

import trio

from trouter._bugs import BUGS
from trouter.config import ListenerEntity
from trouter.net.accepting import AcceptingListener
from trouter.net.turns import Turn

from .connection import HttpConnection, HttpService
from .door import Door, HttpPlace
from .pages import Pages
from .ports import Secured, Site
from .settings import http_settings

log = logging.getLogger("trouter.HTTP")


class HttpListener(AcceptingListener):
    """One configured listener with ``http: yes``, and its connections."""

    def __init__(self, entity: ListenerEntity, sockets: list[socket.socket], site: Site) -> None:
        self.peers: set[HttpConnection] = set()
        self._site = site
        self._door = Door()
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

    async def make_room(self) -> bool:
        place = self._door.give_one_up()
        if place is not None:
            await place.left.wait()
        return place is not None

    def admit_socket(self, sock: socket.socket, address: tuple[str, int], nursery: trio.Nursery) -> bool:
        room = partial(self._door.find_room, address[0], self.entity.max_connections)
        served = self._count_accepted(sock, refused=self._site.turns_away(address, self.entity.name, room))
        if served:
            nursery.start_soon(self._serve, sock, address, self._door.enter(address[0]))
        return served

    def refuse_socket(self, sock: socket.socket, address: tuple[str, int], why: str) -> None:
        self._site.refuses_header(address, self.entity.name, why)
        self._count_accepted(sock, refused=True)

    async def _serve(self, sock: socket.socket, remote: tuple[str, int], place: HttpPlace) -> None:
        """Serve one connection, with TLS if configured; log a bug of ours, which ends only this connection."""
        turn = self._site.turn(remote[0])
        try:
            with place.scope:
                await turn.begin()
                await self._serve_at(place, sock, remote, turn)
        except Exception as error:  # noqa: BLE001 - it is reported
            BUGS.report(f"internal error, connection from {remote[0]}:{remote[1]} dropped", error)
        finally:
            turn.close()
            sock.close()  # if no stream has closed it
            self._door.leave(place)

    async def _serve_at(self, place: HttpPlace, sock: socket.socket, remote: tuple[str, int], turn: Turn) -> None:
        secured = await self._secure(sock, remote, place, turn)
        if secured is None:
            return
        connection = HttpConnection(secured, sock.getsockname()[0], remote, self._service, place, turn)
        self.peers.add(connection)
        try:
            await connection.run()
        finally:
            self.peers.discard(connection)

    async def _secure(
        self, sock: socket.socket, remote: tuple[str, int], place: HttpPlace, turn: Turn
    ) -> Secured | None:
        """Return the client's stream; None if the client left or the handshake was ended."""
        if not self.entity.ssl_profile:
            return Secured(_stream(sock), None)
        with trio.CancelScope() as scope, self._door.waiting(place, scope):
            return await self._site.secure(sock, remote, self.entity, self._service.settings.request_s, turn)
        return None


def _stream(sock: socket.socket) -> trio.SocketStream:
    return trio.SocketStream(trio.socket.from_stdlib_socket(sock))
