"""Connectors: connections that the router itself makes, and makes again when they are lost (routing.md 6.6).

A connector knows its configured endpoint and those that a peer's open names for the case of failure; it tries each
twice and goes on to the next. Waiting grows from one second to ten, a random part of it left out, so that a thousand
routers do not come back at the same moment.
"""

from __future__ import annotations

import ipaddress
import logging
import random
import socket
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import trio

from trouter.auth.client_mechanisms import OWN_MECHANISMS, PluginMechanism, client_mechanisms
from trouter.client.errors import AuthenticationFailed
from trouter.client.sasl import SaslMechanism, check_success
from trouter.config import ConnectorEntity
from trouter.engine.connection import Connection
from trouter.engine.events import (
    ConnectionClosed,
    Event,
    LinkDetached,
    SaslChallengeReceived,
    SaslFinished,
    SaslMechanismsOffered,
)
from trouter.engine.sasl import SASL_OK, SaslClient
from trouter.hooks import (
    CLEARTEXT_MECHANISMS,
    ConnectorFacts,
    ListenerFacts,
    PeerFacts,
)
from trouter.net.dialing import Endpoint, cause, connect
from trouter.telemetry.connection_records import describe_open
from trouter.tls.problems import TlsFailed
from trouter.tls.secure import PLAINTEXT, Resumable, SecurityLayer, resumable
from trouter.wire.performatives import Error, Open

from .failover import FailoverList, allowed_hosts
from .listen import ConnectionNumbers
from .peer import Peer
from .shared import PeerSettings, Services

DIAL_TIMEOUT_S: Final = 20.0
FIRST_WAIT_S: Final = 1.0
LONGEST_WAIT_S: Final = 10.0
#: How long a neighbour's first hello may take, over a line that is slow and loses much.
HELLO_TIMEOUT_S: Final = 60.0
NO_HELLO: Final = f"no hello of a router within {HELLO_TIMEOUT_S:g} s: is there a listener of role inter-router?"

log = logging.getLogger("trouter.SERVER")
error_log = logging.getLogger("trouter.ERROR")


class OutgoingPeer(Peer):
    """A connection that we dialled: we ask to be let in, and open first."""

    outgoing = True

    def __init__(
        self,
        sock: socket.socket,
        facts: PeerFacts,
        settings: PeerSettings,
        services: Services,
        mechanisms: tuple[SaslMechanism, ...],
        name: str = "",
        listed: tuple[str, ...] = (),
        credentials: ConnectorFacts | None = None,
        security: SecurityLayer = PLAINTEXT,
    ) -> None:
        """``name`` is who we say that we are, for listings.

        For mechanisms ``listed`` that none of ``mechanisms`` is, plugins may do something with ``credentials``.
        """
        self._mechanisms = mechanisms
        self._listed = listed
        self._credentials = credentials
        self._own_name = name or "anonymous"
        self._chosen: SaslMechanism | None = None
        #: Set when the opens are exchanged; the log line that said so.
        self.established = trio.Event()
        self.opening = ""
        #: Set when it serves the purpose of its role: at once, or when a neighbour's first hello has come.
        self.serving = trio.Event()
        super().__init__(sock, facts, settings, services, security)

    def _converse(self) -> Connection:
        self._client = SaslClient(self.settings.limits.max_sasl_rounds)
        return Connection(
            self.settings.limits,
            replace(self.settings.open(self.number), hostname=self.facts.remote_host),
            self._hub.outbox,
            self._client,
            server=False,
            budget=self._budget,
        )

    async def _handle(self, event: Event) -> None:
        if isinstance(event, SaslMechanismsOffered):
            await self._begin_sasl(event.mechanisms)
        elif isinstance(event, SaslChallengeReceived):
            await self._answer(event.challenge)
        elif isinstance(event, SaslFinished):
            await self._finish_sasl(event.code, event.additional)
        else:
            if isinstance(event, ConnectionClosed):
                self._note_close(event)
            elif isinstance(event, LinkDetached):
                self._note_detach(event)
            await super()._handle(event)

    async def _begin_sasl(self, offered: tuple[str, ...]) -> None:
        for mechanism in (*self._mechanisms, *self._of_plugins(offered)):
            if mechanism.name in offered:
                self._chosen = mechanism
                self.mechanism = mechanism.name
                try:
                    response = await mechanism.start()
                except AuthenticationFailed as failed:
                    self._lost(str(failed.description))
                    return
                self._client.begin(mechanism.name, response)
                return
        self._lost(f"no mechanism available: the peer offers {' '.join(offered)[:200] or 'none'}")

    def _of_plugins(self, offered: tuple[str, ...]) -> Iterator[SaslMechanism]:
        """What a plugin can do where we can do nothing, if the connector lists it."""
        credentials = self._credentials
        able = {mechanism.name for mechanism in self._mechanisms}
        if credentials is None or able & set(offered):
            return
        known = {name.upper(): name for name in reversed(offered)}
        wanted = [
            known[name]
            for name in self._listed
            if name in known
            and name not in OWN_MECHANISMS
            and (credentials.may_send_password or name not in CLEARTEXT_MECHANISMS)
        ]
        exchange = self._plugins.open_sasl_client(wanted, credentials) if wanted else None
        if exchange is not None:
            yield PluginMechanism(self._plugins, exchange, self.settings.sasl_timeout_s)

    async def _answer(self, challenge: bytes) -> None:
        if self._chosen is None:
            return
        try:
            response = await self._chosen.respond(challenge)
        except AuthenticationFailed as failed:
            self._lost(str(failed.description))
            return
        self._client.respond(response)

    async def _finish_sasl(self, code: int, additional: bytes | None) -> None:
        if code != SASL_OK:
            self.tell_failure(f"amqp:unauthorized-access Authentication failed [mech={self.mechanism}]")
            return
        try:
            if isinstance(self._chosen, PluginMechanism):
                await self._chosen.finish(additional)
            else:
                check_success(self._chosen, additional)
        except AuthenticationFailed as failed:  # the peer is not the server that we called
            self._lost(str(failed.description))
            return
        self.user = self._own_name
        self.connection.open()
        self.connection.receive_data(b"")

    def _note_close(self, event: ConnectionClosed) -> None:
        if event.error is not None:
            self.tell_failure(f"{event.error.condition} {event.error.description or ''}".rstrip())

    def _note_detach(self, event: LinkDetached) -> None:
        """Without the links that routers tell each other on, the connection is of no use."""
        trunk = self._membership.trunk
        if trunk is None or not trunk.is_control(event.link.sink) or self.closing or self._farewell is not None:
            return
        why = "for no reason" if event.error is None else f"{event.error.condition} {event.error.description or ''}"
        self.give_up(f"the peer refuses links between routers ({why.rstrip()}): is its listener's role inter-router?")

    def give_up(self, why: str) -> None:
        """The peer is not who it should be: end the connection, and let the connector try again later."""
        self.tell_failure(why)
        self.turn_out(Error("amqp:connection:forced", "there is no router at the other end"))

    def _hear_router(self) -> None:
        self.serving.set()

    def _open(self, remote: Open) -> None:
        super()._open(remote)
        if self.opened:
            self.opening = describe_open(self, remote)
            self.established.set()
            if self.role != "inter-router":
                self.serving.set()

    def turn_out(self, error: Error) -> None:
        """Close the connection; that is why it failed."""
        self.failure = self.failure or f"{error.condition} {error.description}"
        super().turn_out(error)


class Connector:
    """One configured connector, dialling until it is stopped."""

    def __init__(
        self, entity: ConnectorEntity, settings: PeerSettings, services: Services, numbers: ConnectionNumbers
    ) -> None:
        self.entity = entity
        self._status = "INITIALIZING"
        self._message = ""
        self._settings = settings
        self._services = services
        self._numbers = numbers
        self._failover = FailoverList(Endpoint(entity.host, entity.port, "amqps" if entity.ssl_profile else "amqp"))
        self._stopped = False
        #: What stopping cuts short: dialling, and the wait before dialling again.
        self._idle = trio.CancelScope()
        self._peer: OutgoingPeer | None = None
        self._waited = 0
        #: Where the connection goes.
        self._dialled = self._failover.current
        #: What the next connection may go on with of the last one's TLS.
        self._known: Resumable | None = None
        #: Set when nothing of it is left.
        self.done = trio.Event()

    @property
    def status(self) -> str:
        """INITIALIZING, CONNECTING (between tries too), SUCCESS once the peer has opened, or CLOSING."""
        return "SUCCESS" if self._is_open() else self._status

    @property
    def message(self) -> str:
        """What the status is about: the open of the peer, or why the last try failed."""
        peer = self._peer
        if peer is None or not (peer.failure or self._is_open()):
            return self._message
        return self._failure_of(peer) if peer.failure else peer.opening

    def _is_open(self) -> bool:
        """The peer has opened, and nothing has failed since."""
        peer = self._peer
        return self._status == "CONNECTING" and peer is not None and peer.established.is_set() and not peer.failure

    def _failure_of(self, peer: OutgoingPeer) -> str:
        """Why the connection of a peer failed, as the log says it."""
        why = peer.failure or "the peer closed it"
        return f"[C{peer.number}] Connection to {peer.facts.remote_host}:{self._dialled.port} failed: {why}"

    @property
    def _has_certificate(self) -> bool:
        """Whether the server that is called is shown a certificate."""
        return self._services.secure.has_certificate(self.entity.ssl_profile)

    @property
    def failover_urls(self) -> str:
        """Where it would dial, the next endpoint first."""
        return str(self._failover)

    @property
    def peers(self) -> set[OutgoingPeer]:
        """The connection, if there is one."""
        return set() if self._peer is None else {self._peer}

    def stop(self, error: Error | None = None) -> None:
        """Dial no more; a connection there is gets closed."""
        self._status = "CLOSING"
        self._stopped = True
        self._idle.cancel()
        if self._peer is not None:
            self._peer.force_close(error or Error("amqp:connection:forced", "the connector was deleted"))

    async def run(self) -> None:
        """Dial, serve, and dial again, until stopped."""
        try:
            while not self._stopped:
                sock = None
                with trio.CancelScope() as self._idle:
                    sock = await self._dial()
                if sock is not None:
                    await self._serve(sock)
                if not self._stopped:
                    with trio.CancelScope() as self._idle:
                        await trio.sleep(self._next_wait_s())
        finally:
            self.done.set()

    async def _dial(self) -> socket.socket | None:
        endpoint = self._failover.current
        self._status = "CONNECTING"
        why = f"no answer within {DIAL_TIMEOUT_S:g} s"
        with trio.move_on_after(DIAL_TIMEOUT_S):
            try:
                sock = await connect(endpoint, self.entity.protocol_family)
                if self._stopped:  # it came in the turn in which we were stopped
                    sock.close()
                    return None
                return sock
            except OSError as error:
                why = cause(error)
        self._tell_failure(endpoint, why)
        return None

    def _tell_failure(self, endpoint: Endpoint, why: str) -> None:
        self._message = f"Connection to {endpoint.host}:{endpoint.port} failed: {why}"
        self._failover.failed()
        log.info("%s", self._message)

    async def _serve(self, sock: socket.socket) -> None:
        """Run the connection; a bug of ours ends it, and the connector goes on."""
        self._dialled = endpoint = self._failover.current
        try:
            facts = self._facts(sock, endpoint)
        except OSError:  # gone again already
            sock.close()
            self._failover.failed()
            return
        security = PLAINTEXT
        if self.entity.ssl_profile:
            known, self._known = self._known, None
            try:
                with trio.CancelScope() as self._idle:
                    facts, security = await self._services.secure.dial(sock, facts, self.entity, endpoint.host, known)
            except (OSError, TlsFailed) as error:
                sock.close()
                self._tell_failure(endpoint, str(error))
                return
            if self._stopped:
                sock.close()
                return
        mechanisms = tuple(client_mechanisms(self.entity, facts, has_certificate=self._has_certificate))
        user, password = self.entity.sasl_username or "", self.entity.sasl_password
        secret = "" if password is None else password.reveal()
        credentials = ConnectorFacts(self.entity.name, endpoint.host, facts.may_send_password, user, secret)
        listed = tuple(name.upper() for name in self.entity.sasl_mechanisms)
        peer = OutgoingPeer(
            sock, facts, self._settings, self._services, mechanisms, user, listed, credentials, security
        )
        self._peer = peer
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._go_by_open, peer)
                await peer.run()
                nursery.cancel_scope.cancel()
        except Exception:  # noqa: BLE001 - it is logged with its traceback
            error_log.exception("[C%d] internal error, connection dropped", facts.connection_id)
        finally:
            self._peer = None
            self._known = resumable(endpoint.host, security)
        if self._stopped:
            return
        if peer.serving.is_set():
            self._waited = 0
        else:
            self._failover.failed()
        self._message = self._failure_of(peer)

    async def _go_by_open(self, peer: OutgoingPeer) -> None:
        """Take over what the peer's open says; give it up if it does not serve its purpose in time."""
        await peer.established.wait()
        remote = peer.connection.remote_open
        if remote is not None and isinstance(remote.properties, dict):
            allowed = allowed_hosts(self.entity, has_certificate=self._has_certificate)
            self._failover.learn(remote.properties.get("failover-server-list"), allowed)
        with trio.move_on_after(HELLO_TIMEOUT_S) as patience:
            await peer.serving.wait()
        if patience.cancelled_caught:
            peer.give_up(NO_HELLO)
            return
        self._failover.opened()

    def _next_wait_s(self) -> float:
        longest_s = FIRST_WAIT_S if len(self._failover) > 1 else min(LONGEST_WAIT_S, FIRST_WAIT_S * 2**self._waited)
        self._waited = min(self._waited + 1, 10)
        return longest_s * random.uniform(0.5, 1.0)

    def _facts(self, sock: socket.socket, endpoint: Endpoint) -> PeerFacts:
        entity = self.entity
        address = sock.getpeername()[0]
        return PeerFacts(
            connection_id=self._numbers.next(),
            listener=ListenerFacts(
                name=entity.name,
                host=entity.host,
                port=entity.port,
                role=entity.role,
                allow_insecure_plain=entity.allow_insecure_plain,
                strip_annotations=entity.strip_annotations,
            ),
            remote_host=endpoint.host,
            remote_port=sock.getpeername()[1],
            encrypted=False,
            loopback=ipaddress.ip_address(address.partition("%")[0]).is_loopback,
        )
