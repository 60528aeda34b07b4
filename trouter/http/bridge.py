"""An AMQP connection inside a WebSocket: binary messages both ways, each side as fast as the other reads.

The AMQP side is one end of a socket pair, served like any accepted connection. Messages are a byte stream: their
boundaries mean nothing. They are passed on in pieces as they arrive, so no message is held whole.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import trio
from wsproto.connection import Connection, ConnectionState, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Event, Ping, Pong, TextMessage
from wsproto.frame_protocol import CloseReason

from trouter._bugs import BUGS
from trouter.net.turns import Turn

from .alive import ClientLife
from .pace import RequestPace
from .settings import LINGER_S, MAX_MESSAGE_BYTES

READ_BYTES: Final = 32768
SEND_BYTES: Final = 65536

log = logging.getLogger("trouter.HTTP")


class AmqpEnd(Protocol):
    """The bridge's end of a connection at whose other end AMQP is served."""

    async def send_all(self, data: bytes | bytearray) -> None:
        """Pass bytes to AMQP; ignore an end that is gone."""

    async def receive(self) -> bytes:
        """Return the next bytes from AMQP, with those written by other tasks of this turn; b"" at the end."""

    async def send_eof(self) -> None:
        """Tell AMQP that no more bytes come."""

    def close(self) -> None:
        """Drop the connection."""


class SocketEnd:
    """One end of a pair of sockets."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._stream = trio.SocketStream(trio.socket.from_stdlib_socket(sock))

    async def send_all(self, data: bytes | bytearray) -> None:
        """See ``AmqpEnd``."""
        try:
            await self._stream.send_all(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            await trio.lowlevel.checkpoint()  # AMQP has ended, and the other direction closes the WebSocket

    async def receive(self) -> bytes:
        """See ``AmqpEnd``."""
        try:
            await trio.lowlevel.wait_readable(self._sock)
            await trio.lowlevel.checkpoint()
            return bytes(await self._stream.receive_some(SEND_BYTES))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return b""

    async def send_eof(self) -> None:
        """See ``AmqpEnd``."""
        try:
            await self._stream.send_eof()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass

    def close(self) -> None:
        """See ``AmqpEnd``."""
        self._sock.close()


def socket_pair() -> tuple[AmqpEnd, socket.socket]:
    """Return an end for the bridge, and the socket on which AMQP is served."""
    near, far = socket.socketpair()
    near.setblocking(False)
    far.setblocking(False)
    return SocketEnd(near), far


class Bridge:
    """Passes one WebSocket's bytes to an AMQP connection and back until one of the two ends."""

    def __init__(
        self,
        stream: trio.abc.Stream,
        early: bytes,
        label: str,
        going_away: Callable[[], bool],
        turn: Turn,
        make_pair: Callable[[], tuple[AmqpEnd, socket.socket]] = socket_pair,
    ) -> None:
        """Make a bridge; ``early`` bytes follow the handshake; ``going_away`` returns whether the listener stopped.

        What the client sends is processed in ``turn``.
        """
        self._turn = turn
        self._stream = stream
        self._label = label
        self._going_away = going_away
        self._sockets = Connection(ConnectionType.SERVER, trailing_data=early)
        self._sending = trio.Lock()
        self._message_bytes = 0
        self._life = ClientLife()
        self._pace = RequestPace()
        self._failed = False
        #: The client broke the rules: its input is ignored from now on.
        self._refused = False
        #: The client's input is not WebSocket frames: it is not parsed any more.
        self._deaf = False
        self._scope = trio.CancelScope()
        self._near, self._far = make_pair()

    async def run(self, serve: Callable[[socket.socket], Awaitable[None]]) -> None:
        """Pass bytes until both sides have ended, or one has and the other does not follow in time."""
        try:
            with self._scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._serve, serve)
                    nursery.start_soon(self._carry_out)
                    nursery.start_soon(self._carry_in)
        finally:
            self._near.close()
            self._far.close()

    async def _serve(self, serve: Callable[[socket.socket], Awaitable[None]]) -> None:
        try:
            await serve(self._far)
        except Exception as error:  # noqa: BLE001 - it is reported
            BUGS.report(f"internal error, WebSocket from {self._label} dropped", error)
            self._failed = True
        finally:
            self._far.close()
            self._finish()

    def _finish(self) -> None:
        """Give the other side ``LINGER_S`` to end, because one side has."""
        self._scope.deadline = min(self._scope.deadline, trio.current_time() + LINGER_S)

    # --- from the client

    async def _carry_in(self) -> None:
        try:
            await self._handle_events()
            while self._sockets.state is not ConnectionState.CLOSED:
                data = await self._turn.outside(self._stream.receive_some, READ_BYTES)
                if not data:
                    break
                if not self._deaf:
                    self._sockets.receive_data(bytes(data))
                    await self._handle_events()
        except trio.BrokenResourceError:
            pass
        self._turn.end()
        self._finish()
        await self._near.send_eof()

    async def _handle_events(self) -> None:
        """Handle WebSocket events in turns; those without bytes for AMQP also keep to the pace of the client."""
        data = bytearray()
        for event in self._sockets.events():
            if not isinstance(event, BytesMessage):  # its answer may wait for the client; bytes before it must not
                await self._pass_on(data)
                data.clear()
            if not (isinstance(event, BytesMessage) and event.data):
                await self._turn.outside(self._pace.take_turn)
            match event:
                case BytesMessage() if not self._refused:
                    data += await self._taken(event)
                case TextMessage() if not self._refused:
                    await self._refuse(CloseReason.UNSUPPORTED_DATA, "AMQP is binary")
                case Ping():
                    await self._turn.outside(self._send, event.response())
                case Pong() if not self._refused:
                    data += self._life.answered()
                case CloseConnection() if self._sockets.state in {ConnectionState.OPEN, ConnectionState.LOCAL_CLOSING}:
                    self._deaf = True  # wsproto reports input that is no frames so
                    await self._refuse(event.code, "")
                case CloseConnection():
                    self._finish()
                    await self._turn.outside(self._send, event.response())
            await self._turn.rest()
        await self._pass_on(data)

    async def _taken(self, message: BytesMessage) -> bytes:
        """Return the bytes of ``message`` to pass on; none if the message is too big."""
        self._message_bytes += len(message.data)
        if self._message_bytes > MAX_MESSAGE_BYTES:
            await self._refuse(CloseReason.MESSAGE_TOO_BIG, "")
            return b""
        if message.message_finished:
            self._message_bytes = 0
        return bytes(message.data)

    async def _pass_on(self, data: bytearray) -> None:
        """Pass bytes on to AMQP, all messages of one read in one call."""
        if not data:
            return
        self._life.note_bytes(data)
        await self._turn.outside(self._near.send_all, data)

    async def _refuse(self, code: int, reason: str) -> None:
        """Close the WebSocket because the client broke the rules."""
        log.info("WebSocket from %s ended with %d: %s", self._label, code, reason or CloseReason(code).name)
        self._refused = True
        self._finish()
        await self._turn.outside(self._send, CloseConnection(code=code, reason=reason))

    # --- to the client

    async def _carry_out(self) -> None:
        while data := await self._near.receive():
            await self._send(BytesMessage(data=data))
            if self._life.must_ping():
                await self._send(Ping())
        code = CloseReason.INTERNAL_ERROR if self._failed else CloseReason.NORMAL_CLOSURE
        await self._send(CloseConnection(code=CloseReason.GOING_AWAY if self._going_away() else code, reason=""))

    async def _send(self, event: Event) -> None:
        """Send ``event`` if the state of the WebSocket allows it; ignore a client that is gone."""
        async with self._sending:
            state = self._sockets.state
            closes = isinstance(event, CloseConnection) and state is ConnectionState.REMOTE_CLOSING
            if state is ConnectionState.OPEN or closes:
                try:
                    await self._stream.send_all(self._sockets.send(event))
                except (trio.BrokenResourceError, trio.ClosedResourceError):
                    self._finish()
