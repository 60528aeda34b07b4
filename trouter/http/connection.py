"""One HTTP/1.1 connection: requests one after another, or one that becomes a WebSocket."""

from __future__ import annotations

import logging
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final

import h11
import trio

from trouter._seldom import SeldomLine
from trouter.config import ListenerEntity
from trouter.net.turns import Turn

from .bridge import Bridge
from .door import Doing, Door, HttpPlace
from .heads import ambiguity_of_framing, ambiguity_of_head, is_chunked
from .names import hosts_in
from .pace import RequestPace, StreamBetweenTurns
from .pages import Pages, Visitor
from .ports import Secured, Site
from .responses import FileBody, Response, refusal
from .settings import (
    IDLE_S,
    LINGER_S,
    MAX_BODY_BYTES,
    MAX_HEAD_BYTES,
    PIECE_BYTES,
    READ_BYTES_PER_S,
    WRITE_S,
    HttpSettings,
)
from .upgrade import Handshake, UpgradeRefused, handshake_in

READ_BYTES: Final = 16384
#: States of a client whose request is answered before it is complete.
UNREAD: Final = frozenset({h11.IDLE, h11.SEND_BODY, h11.ERROR})
#: The beginning of AMQP, and of other protocols whose clients wait for an answer.
OTHER_PROTOCOL: Final = re.compile(rb"[\x21-\x7e]{1,15}[\x00-\x08\x0b\x0c\x0e-\x1f]")

log = logging.getLogger("trouter.HTTP")


class NotTaken(Exception):
    """The request is answered with an error, and the connection ends."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.status)
        self.response = response


def _seldom() -> SeldomLine:
    return SeldomLine(log, trio.current_time)


@dataclass(frozen=True, slots=True)
class HttpService:
    """The settings and objects that the connections of a listener share."""

    entity: ListenerEntity
    settings: HttpSettings
    site: Site
    pages: Pages
    door: Door
    refused_names: SeldomLine = field(default_factory=_seldom)
    refused_websockets: SeldomLine = field(default_factory=_seldom)


class HttpConnection:
    """Serves one accepted connection until it ends."""

    def __init__(
        self,
        secured: Secured,
        local: str,
        remote: tuple[str, int],
        service: HttpService,
        place: HttpPlace,
        turn: Turn,
    ) -> None:
        """Make a connection; ``local`` is the address that the client connected to, ``place`` is at the door.

        Its task has its ``turn``, except while it waits.
        """
        self.remote = remote
        self._turn = turn
        self._stream = StreamBetweenTurns(secured.stream, turn)
        self._below = secured.below
        self._on_loopback = ip_address(local.partition("%")[0]).is_loopback
        self._service = service
        self._settings = service.settings
        self._door = service.door
        self._place = place
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD_BYTES)
        self._pace = RequestPace()
        self._is_new = True
        self._is_head = False
        #: No request is read after this one.
        self._is_last = False

    async def run(self) -> None:
        """Serve until either side ends the connection."""
        async with self._stream:
            try:
                while await self._serve_one():
                    self._http.start_next_cycle()
            except (trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError):
                log.debug("%s:%d closed the connection, or does not read the answer", *self.remote)

    async def _serve_one(self) -> bool:
        """Answer the next request; return whether another may follow."""
        await self._turn.outside(self._pace.take_turn)
        try:
            request = await self._next_request()
        except NotTaken as problem:
            response = problem.response
        else:
            if request is None:
                return False
            handshake = handshake_in(request) if self._settings.websockets else None
            is_probe = handshake is None and self._service.pages.is_probe(request)
            if self._settings.requires_tls and self._below is None:
                response = refusal(403, why="this port speaks HTTPS")
            elif not is_probe and (refused := self._refused_name(request)) is not None:
                response = refused
            elif handshake is not None:
                refused = await self._become_websocket(handshake)
                if refused is None:
                    return False
                response = refused
            else:
                response = await self._answer(request, Doing.PROBED if is_probe else Doing.ANSWERING)
            log.debug("%s:%d %r %r: %d", *self.remote, request.method[:256], request.target[:256], response.status)
        await self._send(response)
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            return True
        await self._linger()
        return False

    def _refused_name(self, request: h11.Request) -> Response | None:
        """Return the refusal of a request that names another host, None if it may name it."""
        if self._below is not None:
            return None
        named = hosts_in(request)
        if all(self._settings.names.hold(each) for each in named):
            return None
        self._service.refused_names.write(
            "request for %r from %s:%d refused: allowedHosts has no such name", named[-1][:256], *self.remote
        )
        return refusal(421, why="this listener is not known by that name; allowedHosts can name it")

    async def _answer(self, request: h11.Request, doing: Doing) -> Response:
        visitor = Visitor(self.remote[0], self._below is not None)
        with self._door.busy(self._place, doing):
            return await self._service.pages.answer(request, visitor)

    # --- reading

    async def _next_request(self) -> h11.Request | None:
        """Return the next request, its body discarded; None if none came in time."""
        begun = self._is_new or bool(self._http.trailing_data[0])
        limit_s = self._settings.request_s if begun else IDLE_S
        self._is_new = False
        self._is_head = False
        request: h11.Request | None = None
        body_bytes = 0
        with trio.CancelScope(deadline=trio.current_time() + limit_s) as scope, self._door.waiting(self._place, scope):
            while True:
                event = self._parsed()
                if isinstance(event, h11.Request):
                    request = event
                    self._is_head = event.method == b"HEAD"
                    self._is_last = is_chunked(event)
                    if _head_bytes(event) > MAX_HEAD_BYTES:  # h11 counts only the bytes of incomplete heads
                        raise NotTaken(refusal(431))
                    if not event.http_version.startswith(b"1."):
                        raise NotTaken(refusal(505))
                    if why := ambiguity_of_framing(event):
                        raise NotTaken(refusal(400, why=why))
                elif isinstance(event, h11.Data):
                    body_bytes += len(event.data)
                    if body_bytes > MAX_BODY_BYTES:
                        raise NotTaken(refusal(413))
                elif event is h11.NEED_DATA:
                    if self._http.they_are_waiting_for_100_continue:
                        return request  # answer without the body, and end the connection
                    self._http.receive_data(bytes(await self._stream.receive_some(READ_BYTES)))
                    if request is None and OTHER_PROTOCOL.match(self._http.trailing_data[0]):
                        raise NotTaken(refusal(400, why="this port speaks HTTP"))
                    if not begun:
                        begun = True
                        scope.deadline = trio.current_time() + self._settings.request_s
                else:
                    return request if isinstance(event, h11.EndOfMessage) else None
        if self._http.trailing_data[0] or request is not None:
            raise NotTaken(refusal(408))
        return None

    def _parsed(self) -> h11.Event | type[h11.NEED_DATA | h11.PAUSED]:
        if self._http.their_state is h11.IDLE and (why := ambiguity_of_head(self._http.trailing_data[0])):
            raise NotTaken(refusal(400, why=why))
        try:
            return self._http.next_event()
        except h11.RemoteProtocolError as error:
            raise NotTaken(refusal(error.error_status_hint, why="the request is not understood")) from error

    # --- writing

    async def _send(self, response: Response) -> None:
        """Send ``response``, and close its file; TooSlowError if the client does not read it in time."""
        try:
            with self._writing(response.size_bytes):
                await self._send_all(response)
        finally:
            response.close()

    @contextmanager
    def _writing(self, size_bytes: int = 0, doing: Doing = Doing.WRITING) -> Iterator[None]:
        """Limit the time for ``size_bytes``: one limit for all of an answer, however it is read."""
        with trio.fail_after(WRITE_S + size_bytes / READ_BYTES_PER_S), self._door.busy(self._place, doing):
            yield

    async def _send_all(self, response: Response) -> None:
        body = response.body
        unread = self._http.their_state in UNREAD
        head = self._http.send(response.head(last=unread or self._is_last or self._door.stopping)) or b""
        if self._is_head or not response.size_bytes:
            await self._write(head)
        elif isinstance(body, FileBody):
            await self._write(head)
            await self._send_file(body)
        else:
            await self._write(head + (self._http.send(h11.Data(data=body)) or b""))
        self._http.send(h11.EndOfMessage())

    async def _send_file(self, body: FileBody) -> None:
        left = body.size_bytes
        while left:
            try:
                data = await trio.to_thread.run_sync(body.file.read, min(left, PIECE_BYTES))
            except OSError as error:
                raise trio.BrokenResourceError from error
            if not data:
                raise trio.BrokenResourceError("the file became shorter")  # its size was sent already
            left -= len(data)
            await self._write(self._http.send(h11.Data(data=data)) or b"")

    async def _write(self, data: bytes) -> None:
        view = memoryview(data)
        for start in range(0, len(data), PIECE_BYTES):
            await self._stream.send_all(view[start : start + PIECE_BYTES])

    async def _linger(self) -> None:
        """Wait for the client to read the answer, which closing over unread input would discard."""
        with trio.CancelScope(deadline=trio.current_time() + LINGER_S) as scope, self._door.waiting(self._place, scope):
            await self._stream.send_eof()
            while await self._stream.receive_some(READ_BYTES):
                pass

    # --- WebSockets

    async def _become_websocket(self, handshake: Handshake) -> Response | None:
        """Serve a WebSocket until it ends and return None, or return the answer that refuses it."""
        service = self._service
        why = "the router is stopping" if self._door.draining else service.site.refuses_clients(service.entity)
        if why:
            return refusal(503, why=why)
        try:
            accepted, subprotocol = handshake.accept(self._settings.origins, on_loopback=self._on_loopback)
        except UpgradeRefused as refused:
            service.refused_websockets.write("WebSocket from %s:%d refused: %s", *self.remote, refused)
            return refused.response
        if why := self._door.why_no_websocket(service.entity.max_connections):
            service.site.refuses_upgrade(self.remote, service.entity.name, why)
            return refusal(503, why=why)
        with self._writing(doing=Doing.UPGRADING):
            await self._write(self._http.send(accepted) or b"")
        log.info("WebSocket from %s:%d opened, subprotocol %s", *self.remote, subprotocol or "not named")
        early, _ = self._http.trailing_data
        with self._door.websocket(self._place):
            label = f"{self.remote[0]}:{self.remote[1]}"
            bridge = Bridge(self._stream.below, early, label, lambda: self._door.stopping, self._turn)
            await bridge.run(self._serve_amqp)
        return None

    async def _serve_amqp(self, sock: socket.socket) -> None:
        await self._service.site.serve_amqp(sock, self.remote, self._service.entity, self._below)


def _head_bytes(request: h11.Request) -> int:
    """Return the length of a request's line and headers in bytes, at least."""
    line = len(request.method) + len(request.target)
    return line + sum(len(name) + len(value) + 4 for name, value in request.headers)
