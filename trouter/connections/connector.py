"""Connectors: connections that the router makes, and makes again when they are lost (routing.md 6.6).

A connector has its configured endpoint and those that a peer's open names for failover; it tries each twice, then the
next. With several endpoints it waits up to one second between tries, with a single one up to five; a random part is
subtracted, so that a thousand routers do not return at the same moment.
"""

from __future__ import annotations

import ipaddress
import logging
import random
import socket
from functools import partial
from typing import Final

import trio

from trouter._bugs import BUGS
from trouter.auth.client_mechanisms import client_mechanisms
from trouter.config import ConnectorEntity
from trouter.hooks import ConnectorFacts, ListenerFacts, PeerFacts, Plugins
from trouter.net.dialing import Endpoint, cause
from trouter.net.reach import Reach
from trouter.telemetry.clocks import now_us
from trouter.telemetry.connection_records import describe_open
from trouter.tls.problems import TlsFailed
from trouter.tls.secure import PLAINTEXT, Resumable, Secure, SecuredPeer, SecurityLayer, resumable
from trouter.wire.performatives import Error

from .dialled import DialledLogin
from .failover import FailoverList, allowed_hosts
from .lifetime import DialledLifetime, Lifetime
from .listen import ConnectionNumbers
from .peer import Peer
from .router_parts import RouterParts
from .serving import serve
from .shared import PeerSettings

DIAL_TIMEOUT_S: Final = 20.0
FIRST_WAIT_S: Final = 1.0
LONGEST_WAIT_S: Final = 5.0
#: Seconds for a neighbour's first hello or the links of an uplink, also on a slow line that loses much.
HELLO_TIMEOUT_S: Final = 60.0
#: By the role of a connector to another router: the failure if that router does not serve the connection in time.
NO_ANSWER: Final = {
    "inter-router": f"no hello of a router within {HELLO_TIMEOUT_S:g} s: is there a listener of role inter-router?",
    "edge": f"no links of a router within {HELLO_TIMEOUT_S:g} s: is there a listener of role edge?",
}

log = logging.getLogger("trouter.SERVER")


class Connector:
    """One configured connector, dialling until it is stopped."""

    def __init__(
        self,
        entity: ConnectorEntity,
        settings: PeerSettings,
        numbers: ConnectionNumbers,
        reach: Reach,
        secure: Secure,
        plugins: Plugins,
        parts: RouterParts,
    ) -> None:
        self.entity = entity
        self._reach = reach
        self._status = "INITIALIZING"
        self._message = ""
        self._settings = settings
        self._numbers = numbers
        self._secure = secure
        self._plugins = plugins
        self._parts = parts
        self._failover = FailoverList(Endpoint(entity.host, entity.port, "amqps" if entity.ssl_profile else "amqp"))
        self._stopped = False
        #: The scope that stopping cancels: of dialling, or of the wait before it.
        self._idle = trio.CancelScope()
        self._peer: Peer | None = None
        self._waited = 0
        #: Attempts to connect since the start.
        self.attempts = 0
        self._down_since_us = now_us()
        #: The endpoint of the connection.
        self._dialled = self._failover.current
        #: The TLS session of the last connection, for resumption.
        self._known: Resumable | None = None
        #: Set once the connector has ended completely.
        self.done = trio.Event()

    @property
    def status(self) -> str:
        """State: INITIALIZING, CONNECTING (also between tries), SUCCESS once the peer has opened, or CLOSING."""
        return "SUCCESS" if self.is_up else self._status

    @property
    def message(self) -> str:
        """Text for the status: the log line of the peer's open, or why the last try failed."""
        peer = self._peer
        if peer is None or not (peer.lifetime.failure or self.is_up):
            return self._message
        remote = peer.engine.remote_open
        return self._failure_of(peer) if peer.lifetime.failure or remote is None else describe_open(peer, remote)

    @property
    def down_since_us(self) -> int:
        """Since when it has no open connection, in microseconds since 1970; 0 while it has one."""
        return 0 if self.is_up else self._down_since_us

    @property
    def is_up(self) -> bool:
        """True once the peer has opened the connection, until it fails."""
        peer = self._peer
        return self._status == "CONNECTING" and peer is not None and peer.lifetime.opened and not peer.lifetime.failure

    def _failure_of(self, peer: Peer) -> str:
        """Return why a connection failed, in the words of the log."""
        why = peer.lifetime.failure or "the peer closed it"
        return f"{peer.lifetime.label} Connection to {self._dialled.host}:{self._dialled.port} failed: {why}"

    @property
    def _has_certificate(self) -> bool:
        """True if the connector shows the server a certificate."""
        return self._secure.has_certificate(self.entity.ssl_profile)

    @property
    def failover_urls(self) -> str:
        """Endpoints that it may dial, the next first, as text."""
        return str(self._failover)

    def stop(self, error: Error | None = None) -> None:
        """Stop dialling, and close the connection if there is one."""
        self._status = "CLOSING"
        self._stopped = True
        self._idle.cancel()
        if self._peer is not None and not self._peer.lifetime.closing:
            self._peer.close_at_once(error or Error("amqp:connection:forced", "the connector was deleted"))

    async def run(self) -> None:
        """Dial, serve, and dial again, until stopped."""
        try:
            while not self._stopped:
                try:
                    await self._connect_once()
                except Exception as error:  # noqa: BLE001 - it is reported
                    self._message = "internal error"
                    BUGS.report(f"internal error in connector {self.entity.name!r}, which tries again", error)
                if not self._stopped:
                    with trio.CancelScope() as self._idle:
                        await trio.sleep(self._next_wait_s())
        finally:
            self.done.set()

    async def _connect_once(self) -> None:
        """Dial, and serve the connection if there is one."""
        sock = None
        with trio.CancelScope() as self._idle:
            sock = await self._dial_endpoint()
        if sock is not None:
            await self._serve_socket(sock)

    async def _dial_endpoint(self) -> socket.socket | None:
        endpoint = self._failover.current
        self._status = "CONNECTING"
        self.attempts += 1
        why = f"no answer within {DIAL_TIMEOUT_S:g} s"
        with trio.move_on_after(DIAL_TIMEOUT_S):
            try:
                sock = await self._reach.connect(endpoint, self.entity.protocol_family)
                if self._stopped:  # connected in the pass in which the connector stopped
                    sock.close()
                    return None
                return sock
            except OSError as error:
                why = cause(error)
        self._log_failure(endpoint, why)
        return None

    def _log_failure(self, endpoint: Endpoint, why: str) -> None:
        self._message = f"Connection to {endpoint.host}:{endpoint.port} failed: {why}"
        self._failover.note_failed()
        log.info("%s", self._message)

    async def _serve_socket(self, sock: socket.socket) -> None:
        """Serve the connection; a bug of ours ends it, and the connector continues."""
        self._dialled = endpoint = self._failover.current
        try:
            facts = self._peer_facts(sock, endpoint)
        except OSError:  # the peer has gone
            sock.close()
            self._failover.note_failed()
            return
        try:
            met = await self._secure_socket(sock, facts, endpoint)
        except BaseException:  # the router ends within the handshake
            sock.close()
            raise
        if met is None:
            sock.close()
            return
        facts, security = met
        try:
            await serve(partial(self._make_peer, sock, facts, security, endpoint), self._follow_open)
        except Exception as error:  # noqa: BLE001 - it is reported
            BUGS.report(f"[C{facts.connection_id}] internal error, connection dropped", error)
        finally:
            peer, self._peer = self._peer, None
            if peer is not None and peer.lifetime.opened:
                self._down_since_us = now_us()
                self._known = resumable(endpoint.host, security)  # on Python 3.11 each stays for ever, with 5 kB
        if self._stopped:
            return
        if peer is not None and peer.lifetime.was_in_use:
            self._waited = 0
            self._failover.note_opened()
        else:
            self._failover.note_failed()
        self._message = "internal error" if peer is None else self._failure_of(peer)

    def _make_peer(
        self,
        sock: socket.socket,
        facts: PeerFacts,
        security: SecurityLayer,
        endpoint: Endpoint,
        scope: trio.CancelScope,
    ) -> Peer:
        """Make a connection that ends with ``scope``."""
        lifetime = DialledLifetime(facts, scope, awaits_router=self._settings.role in NO_ANSWER)
        login = self._make_login(facts, lifetime, endpoint)
        self._peer = peer = Peer(sock, facts, security, self._settings, lifetime, login, self._parts)
        return peer

    async def _secure_socket(self, sock: socket.socket, facts: PeerFacts, endpoint: Endpoint) -> SecuredPeer | None:
        """Make the TLS handshake if configured; return None if it fails, which is logged, or the connector stops."""
        if not self.entity.ssl_profile:
            return facts, PLAINTEXT
        known, self._known = self._known, None
        met: SecuredPeer | None = None
        try:
            with trio.CancelScope() as self._idle:
                met = await self._secure.dial(sock, facts, self.entity, endpoint.host, known)
        except (OSError, TlsFailed) as error:
            self._log_failure(endpoint, str(error))
            return None
        return None if self._stopped else met

    def _make_login(self, facts: PeerFacts, lifetime: Lifetime, endpoint: Endpoint) -> DialledLogin:
        """Return the login of a connection to ``endpoint``, with the connector's credentials."""
        entity, password = self.entity, self.entity.sasl_password
        secret = "" if password is None else password.reveal()
        mechanisms = tuple(client_mechanisms(entity, facts, has_certificate=self._has_certificate))
        listed = tuple(name.upper() for name in entity.sasl_mechanisms)
        may_send_password = facts.may_send_password
        credentials = ConnectorFacts(entity.name, endpoint.host, may_send_password, entity.sasl_username or "", secret)
        return DialledLogin(self._settings, self._plugins, lifetime, mechanisms, listed, credentials)

    async def _follow_open(self, peer: Peer) -> None:
        """Learn from the peer's open; end the connection if it is not in use in time."""
        lifetime = peer.lifetime
        assert isinstance(lifetime, DialledLifetime)  # noqa: S101 - that of ``_make_peer``
        await lifetime.established.wait()
        remote = peer.engine.remote_open
        if remote is not None and isinstance(remote.properties, dict):
            allowed = allowed_hosts(self.entity, has_certificate=self._has_certificate)
            self._failover.apply_server_list(remote.properties.get("failover-server-list"), allowed)
        with trio.move_on_after(HELLO_TIMEOUT_S) as patience:
            await lifetime.serving.wait()
        if patience.cancelled_caught:
            lifetime.end_unusable(NO_ANSWER[self._settings.role])

    def _next_wait_s(self) -> float:
        longest_s = FIRST_WAIT_S if len(self._failover) > 1 else min(LONGEST_WAIT_S, FIRST_WAIT_S * 2**self._waited)
        self._waited = min(self._waited + 1, 10)
        return longest_s * random.uniform(0.5, 1.0)

    def _peer_facts(self, sock: socket.socket, endpoint: Endpoint) -> PeerFacts:
        entity = self.entity
        address = sock.getpeername()[0]
        return PeerFacts(
            connection_id=self._numbers.next_number(),
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
