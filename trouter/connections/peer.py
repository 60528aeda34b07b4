"""One connection: an engine, the octets that it is made of, and a nursery with what belongs to them.

The poller reads and routes (``transport``); ``run``'s own task handles what is rare, and nothing more is read until it
has. Whatever ends the peer ends all of them.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from typing import Any, Final

import trio

from trouter.admission.handshakes import Newcomer
from trouter.admission.hold import Hold
from trouter.admission.policing import CONNECTION_DENIED
from trouter.admission.tenancy import NoTenant
from trouter.auth.login import Login
from trouter.core.containers import Container, DetachReason
from trouter.core.egress import Egress
from trouter.core.ingress import Ingress
from trouter.core.messagelog import MessageLog
from trouter.core.tenants import Tenant
from trouter.core.terms import ROUTE_CONTAINER, ROUTER_ROLES, PeerTerms
from trouter.engine.connection import Connection
from trouter.engine.events import (
    ConnectionClosed,
    ConnectionOpened,
    Event,
    LinkAttached,
    LinkDetached,
    SaslInitReceived,
    SaslMechanismsWanted,
    SaslResponseReceived,
    SessionBegun,
    SessionEnded,
)
from trouter.engine.link_base import Link
from trouter.engine.sasl import SaslServer
from trouter.hooks import PeerFacts
from trouter.logs import TRACE
from trouter.logs.frame_log import FrameLog
from trouter.security.policy import Admission
from trouter.telemetry.connection_records import Account, describe_open
from trouter.tls.secure import PLAINTEXT, SecurityLayer
from trouter.wire.performatives import Error, Open

from .entrance import Entrance, go_by
from .membership import Membership
from .registry import connection_row
from .sessions import Sessions
from .shared import PeerSettings, Services
from .transport import Transport

TENANT_CHANGED: Final = Error("amqp:connection:forced", "the connection belongs to another tenant now")

server_log = logging.getLogger("trouter.SERVER")
message_log = logging.getLogger("trouter.MESSAGE")
error_log = logging.getLogger("trouter.ERROR")
core_log = logging.getLogger("trouter.ROUTER_CORE")


class Peer:
    """Serves one accepted connection until it ends."""

    #: We dialled.
    outgoing = False

    def __init__(
        self,
        sock: socket.socket,
        facts: PeerFacts,
        settings: PeerSettings,
        services: Services,
        security: SecurityLayer = PLAINTEXT,
    ) -> None:
        self._security = security
        self.facts = facts
        self.settings = settings
        self.user = ""
        self.mechanism = ""
        self.opened = False
        self.tenant: Tenant | None = None
        #: The end was ordered by management.
        self.closing = False
        #: Why the connection failed, if it did.
        self.failure = ""
        self._opened_at_s = 0.0
        self._hub = services.hub
        self._plugins = services.plugins
        self._connections = services.connections
        self._budget = services.budget
        self._ticker = services.ticker
        self._guard = services.guard
        self._auth_services = services.auth_services
        self._policing = services.policing
        #: What the policy holds the connection to, once it is open.
        self._hold: Hold | None = None
        self._recorder = services.recorder
        self._account = Account(services.recorder)
        self._login: Login | None = None
        self._entrance: Entrance | None = None
        #: What the close says when it is ours.
        self._farewell: Error | None = None
        self._label = f"[C{facts.connection_id}]"
        self.connection = self._converse()
        self.connection.owner = self
        self._frames = FrameLog(self._label, self.connection.out)
        self._transport = Transport(
            self,
            sock,
            security.channel,
            self.connection,
            settings.limits,
            self._account,
            self._frames,
            services.hub,
            services.poller,
        )
        #: Straight to the socket: the hub calls it for every write.
        self.write_nowait = self._transport.write_nowait
        self._sessions = Sessions(
            self._hub, self.connection, self._label, self.turn_out, self._recorder, services.uplinks
        )
        self._sessions.max_links = settings.max_links
        self._membership = Membership(
            self.number,
            self.outgoing,
            self.connection,
            self._sessions,
            settings,
            services,
            self.turn_out,
            self._hear_router,
        )
        self.follow_log()

    def _converse(self) -> Connection:
        """Return the engine's connection for a peer that dialled us."""
        settings = self.settings
        listener = self.facts.listener
        asks = bool(listener.auth_service)
        mechanisms = None if asks else self._plugins.sasl_mechanisms_for(self.facts)
        sasl = SaslServer(
            mechanisms,
            settings.require_sasl,
            settings.limits.max_sasl_rounds,
            tls_due=settings.require_tls and not self.facts.encrypted,
        )
        service = self._auth_services.of(listener, self._plugins) if asks else None
        step_s = settings.sasl_timeout_s
        self._login = Login(
            self.facts, self._plugins, self._guard, sasl, step_s, self._postpone, service, self._recorder
        )
        return Connection(
            settings.limits,
            settings.open(self.number),
            self._hub.outbox,
            sasl,
            server=True,
            budget=self._budget,
        )

    # --- what others may know and order

    @property
    def number(self) -> int:
        return self.facts.connection_id

    @property
    def engine(self) -> Connection:
        return self.connection

    @property
    def role(self) -> str:
        return self.settings.role

    @property
    def listener(self) -> str:
        return self.settings.name

    @property
    def security(self) -> SecurityLayer:
        """What the connection stands on."""
        return self._security

    @property
    def trace(self) -> bool:
        """Whether a user asked for this connection's frames in the log, whatever the level of the module PROTOCOL."""
        return self._frames.wanted

    @trace.setter
    def trace(self, wanted: bool) -> None:
        self._frames.follow(wanted, midway=self.opened)

    def follow_log(self) -> None:
        """Show frames from here on if they are wanted or the module's level says so, else no more."""
        self._frames.follow(self._frames.wanted, midway=self.opened)

    def links(self) -> Iterator[int]:
        """The identities of its links."""
        for session in self.connection.sessions():
            for link in session.all_links():
                if isinstance(link.sink, Ingress | Egress):
                    yield link.sink.identity

    def as_container(self) -> Container:
        """The connection as one on which the router attaches links of its own."""
        return self._sessions.as_container(self.settings.given_name)

    def link_ended(self, link: Link, reason: DetachReason) -> None:
        """The router ends a link of the connection's for a reason of its own."""
        self._sessions.ended(link, reason)

    def row(self, now_s: float) -> dict[str, object]:
        """What management shows (management.md 11)."""
        return connection_row(
            number=self.number,
            name=self.name,
            host=self._other,
            outgoing=self.outgoing,
            role=self.role,
            mechanism=self.mechanism,
            user=self.user,
            engine=self.connection,
            tls=self.facts.tls,
            opened_s=now_s - self._opened_at_s,
            last_delivery_s=self._connections.last_delivery_s(self.number, now_s),
            closing=self.closing,
            active=self._membership.is_active,
            trace=self.trace,
            tenant=self.tenant,
        )

    async def run(self) -> None:
        """Serve until the connection is over; its links and deliveries are settled on the way out."""
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = self._transport.nursery = nursery
                self._hub.flush()  # what an outgoing connection begins with
                began_s = trio.current_time() if self._security.began_s is None else self._security.began_s
                with trio.CancelScope(deadline=began_s + self.settings.handshake_timeout_s) as handshake:
                    self._handshake = handshake
                    await self._receive_early()
                    await self._serve()
                if handshake.cancelled_caught and self.opened and trio.current_time() >= self._expires_at_s:
                    self._expire()
                ordered = self.opened or self._transport.gone or self._farewell is not None or self.connection.finished
                if handshake.cancelled_caught and not ordered:
                    self.tell_failure(f"timed out: no open within {self.settings.handshake_timeout_s:g} s")
                elif not self._transport.gone:
                    self.connection.close(self._farewell)
                    self._hub.flush()
                await self._membership.lose_by_and_by()
                if not self._transport.gone:
                    await self._transport.linger()
                nursery.cancel_scope.cancel()
        finally:
            self._forget()

    @property
    def _expires_at_s(self) -> float:
        """When the credentials end, by the clock of the event loop."""
        return float("inf") if self._login is None else self._login.expires_at_s

    def _expire(self) -> None:
        """The credentials that the peer came in with are good no longer."""
        if self._farewell is None and not self.connection.finished:
            self._farewell = Error("amqp:connection:forced", "credentials no longer valid")
            server_log.info("%s Connection from %s closed: credentials no longer valid", self._label, self._other)

    def check_standing(self) -> None:
        """Close the connection if the credentials that it came in with are good no longer."""
        if self._login is not None and not self._login.good() and not self.closing:
            self._expire()
            self._handshake.cancel()

    @property
    def name(self) -> str:
        """The name in management."""
        return f"connection/{self._other}"

    @property
    def _other(self) -> str:
        return f"{self.facts.remote_host}:{self.facts.remote_port}"

    @property
    def _own(self) -> str:
        """Where the connection came in."""
        return f"{self.facts.listener.host}:{self.facts.listener.port}"

    def tell_failure(self, why: str) -> None:
        """Log that the connection ends for no good reason."""
        self.failure = why
        way = f"to {self._other}" if self.outgoing else f"from {self._other} (to {self._own})"
        server_log.info("%s Connection %s failed: %s", self._label, way, why)

    async def _receive_early(self) -> None:
        """Take in what came before our turn."""
        self._hub.tell_time()
        if self._transport.receive_early(self._security.early):
            self._hub.flush()
            await self._handle_events()
            await self._transport.wait_for_room()

    async def _serve(self) -> None:
        """Let the poller read, and handle the events of a read before the next one."""
        while not (self.connection.finished or self._transport.gone):
            await self._transport.wait_for_events()
            await self._handle_events()
            await self._transport.wait_for_room()

    def crash(self, error: Exception) -> None:
        """A bug of ours ends this connection; the peer hears no details."""
        error_log.error("%s internal error, connection dropped", self._label, exc_info=error)
        self._farewell = Error("amqp:internal-error", "the router failed on this connection")
        self._handshake.cancel()

    def _lost(self, why: str) -> None:
        self._transport.lose(why)

    # --- what happened

    async def _handle_events(self) -> None:
        connection = self.connection
        while connection.events:
            events = connection.events[:]
            connection.events.clear()
            for event in events:
                if self._farewell is None:  # else nothing counts any more
                    await self._handle(event)
            self._hub.flush()
            if connection.has_more:
                await trio.lowlevel.checkpoint()
                await self._transport.wait_for_room()
                connection.receive_data(b"")

    async def _handle(self, event: Event) -> None:
        if self._farewell is not None and not isinstance(event, ConnectionClosed):
            return  # it is over: nothing else of what the peer sent counts
        if isinstance(event, LinkAttached | LinkDetached):
            await self._sessions.pass_on(event, self._nursery)
        elif isinstance(event, SessionBegun):
            self._sessions.begin(event.session, ours=event.begin.remote_channel is not None)
        elif isinstance(event, SessionEnded):
            self._sessions.end(event)
        elif isinstance(event, ConnectionOpened):
            self._open(event.open)
        elif isinstance(event, ConnectionClosed):
            self._close(event)
        elif isinstance(event, SaslMechanismsWanted | SaslInitReceived | SaslResponseReceived):
            await self._log_in(event)

    async def _log_in(self, event: SaslMechanismsWanted | SaslInitReceived | SaslResponseReceived) -> None:
        """One step of the login; what the peer sent after it is read."""
        login = self._login
        if login is None:
            return
        newcomer = self._transport.newcomer
        if newcomer is not None:
            newcomer.waits(trio.current_time())
        with self._transport.noticing_absence():
            entered = await self._take_step(login, event)
        if newcomer is not None:
            newcomer.answered(trio.current_time())
        if entered:
            self.user = login.user
            self._hub.tell_time()
        if entered or isinstance(event, SaslMechanismsWanted):
            self.connection.receive_data(b"")

    async def _take_step(
        self, login: Login, event: SaslMechanismsWanted | SaslInitReceived | SaslResponseReceived
    ) -> bool:
        """Let the login answer what came; whether the peer is in."""
        if isinstance(event, SaslMechanismsWanted):
            await login.offer()
            return False
        if isinstance(event, SaslInitReceived):
            self.mechanism = event.mechanism.upper()  # names differ by their letters, not by the case of these
            return await login.begin(event)
        return await login.respond(event.response)

    def _postpone(self, seconds: float) -> None:
        """The peer is made to wait: its handshake may take so much longer."""
        self._handshake.deadline += seconds

    def comes_as(self, newcomer: Newcomer) -> None:
        """It is counted so until its Open, and ends when it is too slow."""
        self._transport.newcomer = newcomer
        newcomer.came_s = trio.current_time()  # TLS has had a time of its own
        newcomer.cut = self._too_slow

    def _too_slow(self) -> None:
        self.tell_failure("too slow: less than minHandshakeRate before its open")
        self._transport.gone = True
        self._handshake.cancel()

    def vanish(self) -> None:
        """Drop the connection: the peer has hung up, so no answer need be waited for."""
        self.cut("peer closed the socket")

    def cut(self, why: str) -> None:
        """Drop the connection without a word to the other end."""
        self._lost(why)
        self._handshake.cancel()

    def _settled_in(self) -> None:
        """It is no newcomer any more; a second call does nothing."""
        if self._transport.newcomer is not None:
            self._guard.handshakes.end(self._transport.newcomer)
            self._transport.newcomer = None

    def _open(self, remote: Open) -> None:
        """Admit the peer if the policy allows it, and notify the parts of the router that have to know."""
        if not (self.user or self.outgoing) and self.facts.tls is not None:
            self.user = self.facts.tls.subject  # who came without SASL is whom its certificate names
        entrance = Entrance(remote, self.facts, self.user, self._login, self.settings.tenancy, self._plugins)
        admission = self._admit(entrance)
        if admission is None:
            return
        self.opened = True
        self._settled_in()
        self._opened_at_s = trio.current_time()
        self._handshake.deadline = self._expires_at_s
        components = self.settings.logged_components
        message_log = MessageLog(components, self._log_message) if components else None
        self._membership.come(remote, self.user, message_log)
        assert self._hold is not None  # noqa: S101 - an admitted peer has one
        self._sessions.admit(self._terms(message_log), self._hold)
        if not self.outgoing:
            go_by(admission.settings, self.connection)
        self.connection.open()
        self._membership.join(remote)
        self._connections.add(self)
        self.follow_log()
        self._ticker.add(self.connection)
        core_log.info("%s", describe_open(self, remote))
        self._account.open(self, remote)
        self._membership.stand_by()
        if self.role in (ROUTE_CONTAINER, "inter-router"):
            self._hub.router.container_came(self.as_container())

    def _admit(self, entrance: Entrance) -> Admission | None:
        """What the policy lets the peer in as, whose it is and what it is held to; None if it was turned away."""
        settings = self.settings
        request = entrance.request(
            mechanism=self.mechanism,
            listener=self.listener,
            role=self.role,
            policy_vhost=settings.policy_vhost,
            outgoing=self.outgoing,
        )
        try:
            entrance.check()
            admission = self._policing.admit(request)
            if admission is None:
                self._turn_away(CONNECTION_DENIED)
                return None
            self.tenant = entrance.tenant(self._hub.router.table.tenants, admission.vhost)
        except NoTenant as refusal:
            self._policing.deny_tenant(request, str(refusal))
            server_log.info("%s Connection from %s refused: %s", self._label, self._other, refusal)
            self._turn_away(refusal.error)
            return None
        tenant = "" if self.tenant is None else self.tenant.name
        if self._policing.is_blocked(request, admission, tenant):
            self._turn_away(CONNECTION_DENIED)
            return None
        self._entrance = entrance
        held = self._policing.hold(request, admission, self, tenant)
        self._hold = Hold(self._policing, self._plugins, held, stamps=settings.stamp_user_id)
        return admission

    def _terms(self, message_log: MessageLog | None) -> PeerTerms:
        """What its links are held to."""
        strips = self._plugins.annotation_filter(self.facts.listener)
        return PeerTerms(
            connection_number=self.number,
            link_capacity=self.settings.link_capacity,
            max_unsettled=self.settings.max_unsettled,
            strip_in=strips.strip_in,
            only_traces=self.role not in ROUTER_ROLES,
            strip_out=strips.strip_out,
            log=message_log,
            tenant=self.tenant,
            trunk=self._membership.trunk,
            role=self.role,
            edge=self._membership.edge,
        )

    def _hear_router(self) -> None:
        """Note that the peer speaks as a router."""

    def _turn_away(self, error: Error) -> None:
        """Answer the peer's open, and close at once; nothing that came with it is looked at."""
        self.connection.open()
        self.turn_out(error)

    def follow(self, admission: Admission) -> None:
        """The policy has changed: what stands is held to it, and what comes. Links do not move to another tenant."""
        if self._farewell is not None or self.connection.finished:
            return  # it is on its way out
        if self._entrance is not None and not self._entrance.stays(self.tenant, admission.vhost):
            self.turn_out(TENANT_CHANGED)
            return
        self._sessions.judge_again()
        self._hub.flush()

    def turn_out(self, error: Error) -> None:
        """Close the connection, saying why; the peer has ``LINGER_S`` to answer."""
        self._farewell = error
        self._handshake.cancel()

    def withhold(self, withheld: bool) -> None:
        """Let the peer have no more credit for now, or again what it is owed."""
        self._sessions.withhold(withheld)

    def received_bytes(self) -> int:
        """Octets that came in on the connection, within TLS."""
        return self._account.bytes_in

    def about(self) -> dict[str, Any]:
        """What every record about this peer says."""
        remote = self.connection.remote_open
        vhost = remote.hostname if remote is not None else None
        if self._hold is not None:
            vhost = self._hold.admission.vhost or vhost
        return {
            "conn": self.number,
            "vhost": vhost or None,
            "user": self.user or None,
            "host": self.facts.remote_host,
            "tenant": None if self.tenant is None else self.tenant.name,
        }

    def _log_message(self, link: Link, text: str) -> None:
        message_log.log(TRACE, "%s: %s", self._label, text)

    def _close(self, event: ConnectionClosed) -> None:
        if event.fault is not None:
            self._account.ends("local", event.fault.condition)
            self.tell_failure(str(event.fault))
        else:
            self._account.ends("peer", "" if event.error is None else event.error.condition)
        self.connection.close()

    # --- the end

    def idle(self) -> None:
        """The engine gave the connection up for its silence; ``run`` hears of it."""
        for event in self.connection.events:
            if isinstance(event, ConnectionClosed):
                self._close(event)
        self.connection.events.clear()
        self._hub.flush()
        self._handshake.cancel()

    def force_close(self, error: Error) -> None:
        """Say why and close; the peer has ``LINGER_S`` to answer, and is listed no longer."""
        self.closing = True
        self._connections.remove(self.number)
        self.turn_out(error)

    def _forget(self) -> None:
        """Sync, so that no cancellation can skip it."""
        self._settled_in()
        self._transport.stop()
        if self._login is not None:
            self._login.close()
        self._ticker.remove(self.connection)
        self._connections.remove(self.number)
        self._membership.lose_all_links()
        if self._hold is not None:
            self._hold.leave(self._sessions.had)
        self._sessions.forget()
        self._membership.leave()
        self._hub.flush()
        self._account.close(self, self._farewell)
        if self.tenant is not None:
            self._hub.router.table.tenants.leave(self.tenant, self.number)
        self.connection.forget()
        self._transport.close()
        if self.opened:
            core_log.info("%s Connection Closed", self._label)
