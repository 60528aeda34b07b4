"""A connection as a trio task group: one task reads, one writes what cannot be written at once, one keeps time.

The reading task processes each read completely: it wakes the tasks that wait and writes the answers at once. The output
of other tasks is written at the end of their turn, all together, or at once if a task waits for the answer.
"""

from __future__ import annotations

import ssl
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final

import trio

from trouter.engine.connection import Connection as Engine
from trouter.engine.events import ConnectionClosed as ClosedEvent
from trouter.engine.events import (
    ConnectionOpened,
    Event,
    LinkAttached,
    LinkDetached,
    SaslChallengeReceived,
    SaslFinished,
    SaslMechanismsOffered,
    SessionBegun,
    SessionEnded,
)
from trouter.engine.faults import Misuse
from trouter.engine.limits import EngineLimits
from trouter.engine.ports import ConnectionPort
from trouter.engine.sasl import SASL_OK, SaslClient
from trouter.wire.performatives import Error, Open
from trouter.wire.transfers import Undecodable

from .address import ServerAddress, parse_url
from .closable import Closable
from .errors import AuthenticationFailed, ClientError, ConnectionClosed, LimitReached
from .link import AttachedLink
from .opening import LinkOpener
from .ports import ClientSessionPort, Departing
from .sasl import REFUSALS, Anonymous, SaslMechanism, check_success, with_password
from .session import Session
from .transport import Transport, dial

#: Calls without a wait before other tasks get their turn.
CALLS_IN_A_ROW: Final = 64
_NOT_OURS: Final = Error("amqp:not-allowed", "this client begins its sessions and attaches its links itself")


@asynccontextmanager
async def connect(
    url: str,
    *,
    user: str | None = None,
    password: str | None = None,
    sasl: Sequence[SaslMechanism] | None = None,
    ssl_context: ssl.SSLContext | None = None,
    container_id: str | None = None,
    hostname: str | None = None,
    max_frame_size: int = 16384,
    idle_timeout: float = 60.0,
    channel_max: int = 1023,
    properties: Mapping[str, Any] | None = None,
    desired_capabilities: Sequence[str] = (),
    timeout: float = 30.0,
    close_timeout: float = 5.0,
    limits: EngineLimits | None = None,
) -> AsyncIterator[Connection]:
    """Open a connection to ``amqp[s]://[user[:password]@]host[:port]``, and close it at the end of the block.

    ``sasl`` are mechanisms, the preferred first; by default SCRAM and PLAIN, with ``user`` and ``password`` (which
    precede those of the URL), or ANONYMOUS without a user; an empty sequence skips SASL. ``ssl_context`` turns TLS on,
    as does ``amqps``, then with the system's certificate authorities. ``hostname`` is that of our open, by default the
    URL's. A server that is silent for ``idle_timeout`` seconds, unless 0, counts as lost.

    Raises within ``timeout`` seconds: OSError if there is no server (ssl.SSLError if it is not trusted),
    AuthenticationFailed, ConnectionClosed, or trio.TooSlowError. ValueError for an invalid URL. If the connection ends
    later, every call that waits on it raises ConnectionClosed; the block itself is not cancelled. At its end the server
    has ``close_timeout`` seconds to answer our close.
    """
    address = parse_url(url)
    context = ssl_context or (ssl.create_default_context() if address.secure else None)
    local_open = Open(
        container_id=container_id or str(uuid.uuid4()),
        hostname=hostname or address.host,
        max_frame_size=max_frame_size,
        channel_max=channel_max,
        idle_time_out=round(idle_timeout * 500) or None,
        desired_capabilities=tuple(desired_capabilities),
        properties=None if properties is None else dict(properties),
    )
    limits = replace(
        limits or EngineLimits(),
        max_frame_bytes=max_frame_size,
        idle_timeout_s=idle_timeout,
        channel_max=channel_max,
        undecodable_states=Undecodable.KEPT,
    )
    mechanisms = default_mechanisms(address, user, password) if sasl is None else tuple(sasl)
    deadline = trio.current_time() + timeout
    with trio.fail_at(deadline):
        transport = await dial(address.host, address.port, context)
    try:
        connection = Connection(transport, local_open, limits, mechanisms)
        with trio.fail_at(deadline):
            await connection._log_in_and_open()
        async with _running(connection, close_timeout):
            yield connection
    finally:
        transport.close()


@asynccontextmanager
async def _running(connection: Connection, close_timeout_s: float) -> AsyncIterator[None]:
    """Read, write and keep time during the block, and close the connection at its end."""
    raised: BaseException | None = None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection._read_input)
        nursery.start_soon(connection._write_output)
        nursery.start_soon(connection._check_timeouts)
        try:
            yield
        except BaseException as error:  # noqa: BLE001 - raised again below, outside of a group
            raised = error
        try:
            with trio.move_on_after(close_timeout_s):
                await connection.aclose()
        except trio.Cancelled:
            if raised is None:
                raise
        nursery.cancel_scope.cancel()
    if raised is not None:
        raise raised


def default_mechanisms(address: ServerAddress, user: str | None, password: str | None) -> tuple[SaslMechanism, ...]:
    """Return SCRAM and PLAIN for a user, else ANONYMOUS; ValueError for a user without a password."""
    user = address.user if user is None else user
    password = address.password if password is None else password
    if user is None:
        return (Anonymous(),)
    if password is None:
        raise ValueError("a user without a password")
    return with_password(user, password)


class Connection(Closable, LinkOpener):
    """A connection to a server; made by ``connect``. Its links share a session, except streaming receivers."""

    def __init__(
        self, transport: Transport, local_open: Open, limits: EngineLimits, mechanisms: Sequence[SaslMechanism]
    ) -> None:
        super().__init__("connection")
        self._transport = transport
        self._mechanisms = mechanisms
        self._mechanism: SaslMechanism | None = None
        self._limits = limits
        self._outbox: list[ConnectionPort] = []
        self._sasl = SaslClient(limits.max_sasl_rounds) if mechanisms else None
        self._engine = Engine(limits, local_open, self._outbox, self._sasl, server=False)
        self._remote: Open | None = None
        self._sessions: set[ClientSessionPort] = set()
        self._default: Session | None = None
        self._leaving: set[Departing] = set()
        self._writer = trio.lowlevel.ParkingLot()
        self._written = trio.lowlevel.ParkingLot()
        self._write_due = False
        #: The writing task is at work: it also writes what is added.
        self._writing = False
        self._reading = trio.CancelScope()
        self._over = False
        self._calls = 0

    @property
    def container_id(self) -> str:
        """Container id of this client's open."""
        return self._engine.local_open.container_id

    @property
    def remote(self) -> Open:
        """Open of the server."""
        assert self._remote is not None  # noqa: S101 - `connect` yields a connection after the opens
        return self._remote

    # --- sessions

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Session]:
        """Begin a session, which ends with its links at the end of the block; LimitReached."""
        session = self._begin_session()
        try:
            await session._session_for_links()
            yield session
        finally:
            await session.aclose()

    def _begin_session(self) -> Session:
        self._check_usable()
        try:
            begun = self._engine.add_session()
        except Misuse as full:
            raise LimitReached(None, str(full)) from None
        session = Session(self, begun)
        self._sessions.add(session)
        begun.begin()
        self._flush()
        return session

    async def _session_for_links(self) -> Session:
        if self._default is None or not self._default.usable:
            self._default = self._begin_session()
        return await self._default._session_for_links()

    async def _session_for_stream(self) -> tuple[Session, bool]:
        session = self._begin_session()
        try:
            await session._session_for_links()
        except BaseException:
            await session.aclose()
            raise
        return session, True

    # --- the end

    async def aclose(self) -> None:
        """Close, and wait until the server has closed too. Sessions and links end with it."""
        if self.usable:
            self._engine.close()
            self._end(None)
            self._flush()
        while not self._over:
            await self._changed.park()
        await trio.lowlevel.checkpoint()

    def _end(self, failure: ClientError | None) -> None:
        if self.usable:
            super()._end(failure)
            for session in list(self._sessions):
                session._end(failure)
            self._wake_leaving()

    def _lose_socket(self, why: str) -> None:
        """End the connection, because the socket failed."""
        self._over = True
        self._end(ConnectionClosed(None, why))
        self._wake_leaving()
        self._wake_all()
        self._reading.cancel()

    async def _wait_until_over(self, end: Departing) -> None:
        """Wait until the peer has ended ``end`` too, or cannot any more."""
        self._leaving.add(end)
        try:
            while not (end._is_over() or self._over or not self.usable):
                await end._changed.park()
        finally:
            self._leaving.discard(end)

    def _wake_leaving(self) -> None:
        """Wake the tasks that wait for the peer's end of a session or link."""
        for end in list(self._leaving):
            if end._is_over() or self._over or not self.usable:
                end._changed.unpark_all()

    # --- login and open

    async def _log_in_and_open(self) -> None:
        """Authenticate and exchange opens; ConnectionClosed, OSError, and the errors of a mechanism."""
        if self._sasl is None:
            self._engine.open()
        while True:
            while self._engine.events:
                await self._handle_login_event(self._engine.events.pop(0))
            self._engine.flush()
            while not self._transport.send(self._engine.out):
                await self._transport.wait_writable()
            self._check_usable()
            if self._remote is not None:
                return
            data = await self._transport.receive()
            if not data:
                raise ConnectionClosed(None, "the server closed the socket")
            self._engine.receive_data(data)

    async def _handle_login_event(self, event: Event) -> None:
        sasl = self._sasl
        if isinstance(event, SaslMechanismsOffered) and sasl is not None:
            self._mechanism = next((each for each in self._mechanisms if each.name in event.mechanisms), None)
            if self._mechanism is None:
                offered = ", ".join(event.mechanisms)[:200] or "none"
                wanted = ", ".join(each.name for each in self._mechanisms)
                raise AuthenticationFailed(
                    None, f"the server offers the SASL mechanisms {offered}, the client can use {wanted}"
                )
            response = await self._mechanism.start()
            sasl.send_init(self._mechanism.name, response, self._engine.local_open.hostname)
            self._engine.receive_data(b"")
        elif isinstance(event, SaslChallengeReceived) and sasl is not None and self._mechanism is not None:
            sasl.send_response(await self._mechanism.respond(event.challenge))
            self._engine.receive_data(b"")
        elif isinstance(event, SaslFinished):
            if event.code != SASL_OK:
                why = REFUSALS.get(event.code, f"SASL outcome {event.code}")
                raise AuthenticationFailed("amqp:unauthorized-access", why, {"sasl-code": event.code})
            check_success(self._mechanism, event.additional)
            self._engine.open()
            self._engine.receive_data(b"")
        else:
            self._handle_event(event)

    # --- reading

    async def _read_input(self) -> None:
        """Read and process the input, until the connection has ended."""
        engine = self._engine
        with self._reading:
            self._handle_events()
            while not engine.finished:
                try:
                    data = await self._transport.receive()
                except OSError as error:
                    self._lose_socket(str(error))
                    return
                if not data:
                    self._lose_socket("the server closed the socket")
                    return
                engine.receive_data(data)
                self._handle_events()
            while engine.out and not self._over:
                self._flush_soon()
                await self._written.park()
        self._over = True
        self._wake_all()
        self._wake_leaving()

    def _handle_events(self) -> None:
        """Handle the engine's events, and write the answers."""
        engine = self._engine
        while engine.events:
            events = engine.events[:]
            engine.events.clear()
            for event in events:
                self._handle_event(event)
        if self._leaving:
            self._wake_leaving()
        self._flush_if_touched()

    def _handle_event(self, event: Event) -> None:
        if isinstance(event, LinkAttached):
            if isinstance(event.link.holder, AttachedLink):
                event.link.holder.on_attached(event.attach)
            else:
                event.link.refuse(_NOT_OURS)
        elif isinstance(event, LinkDetached):
            if isinstance(event.link.holder, AttachedLink):
                event.link.holder.on_detached(event.error, event.closed, event.fault)
            else:
                event.link.detach(event.closed)
        elif isinstance(event, SessionBegun):
            if isinstance(event.session.holder, Session):
                event.session.holder.on_begun()
            else:
                event.session.begin()
                event.session.end(_NOT_OURS)
        elif isinstance(event, SessionEnded):
            if isinstance(event.session.holder, Session):
                event.session.holder.on_ended(event.error, event.fault)
            else:
                event.session.end()
            self._engine.drop_session(event.session)
        elif isinstance(event, ConnectionOpened):
            self._remote = event.open
        elif isinstance(event, ClosedEvent):
            self._closed_by_peer(event)

    def _closed_by_peer(self, event: ClosedEvent) -> None:
        if event.fault is None:
            self._end(ConnectionClosed.from_peer(event.error, "the server closed the connection"))
            self._engine.close()
        else:
            self._end(ConnectionClosed(event.fault.condition, event.fault.text))

    async def _check_timeouts(self) -> None:
        """Keep a silent connection alive, and end one whose peer is silent for too long (2.4.5)."""
        period_s = self._engine.idle.tick_period_s
        while period_s > 0:
            await trio.sleep(period_s)
            self._engine.tick(trio.current_time())
            self._handle_events()
            if self._engine.failed:
                self._over = True
                self._reading.cancel()

    # --- writing

    def _flush(self) -> None:
        """Write the pending bytes now; leave the rest to the writing task."""
        if self._writing or self._over:
            return
        engine = self._engine
        self._outbox.clear()
        engine.flush()
        try:
            done = self._transport.send(engine.out)
        except OSError as error:
            self._lose_socket(str(error))
            return
        if not done or engine.paused:
            self._flush_soon()

    def _flush_soon(self) -> None:
        """Write the pending bytes when the current task next waits."""
        if not self._write_due:
            self._write_due = True
            self._writer.unpark_all()

    def _flush_if_touched(self) -> None:
        if self._engine.touched:
            self._flush()

    async def _write_output(self) -> None:
        """Write the rest as the socket takes it; resume paused links once there is room again."""
        engine = self._engine
        low = self._limits.low_water_bytes
        while not self._over:
            if not (self._write_due or engine.out or engine.paused):
                self._writing = False
                await self._writer.park()
            self._writing = True
            self._write_due = False
            self._outbox.clear()
            engine.flush()
            try:
                done = self._transport.send(engine.out)
            except OSError as error:
                self._lose_socket(str(error))
                return
            if engine.paused and len(engine.out) <= low:
                engine.resume_output()
            if not done:
                await self._transport.wait_writable()
            elif engine.out:
                await trio.lowlevel.checkpoint()
            else:
                self._written.unpark_all()

    async def _let_others_run(self) -> None:
        """Give other tasks a turn after many calls that did not wait. Never raises."""
        self._calls += 1
        if self._calls >= CALLS_IN_A_ROW:
            self._calls = 0
            await trio.lowlevel.cancel_shielded_checkpoint()
