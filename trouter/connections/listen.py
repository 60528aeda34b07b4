"""A listener of AMQP: its sockets, its peers, and protection from too many of them at once."""

from __future__ import annotations

import ipaddress
import logging
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import trio

from trouter._bugs import BUGS
from trouter.admission.guard import Guard
from trouter.admission.handshakes import Newcomer
from trouter.config import ListenerEntity
from trouter.config.facts import listener_facts
from trouter.config.workers import WORKERS_HOST
from trouter.hooks import PeerFacts
from trouter.net.accepting import AcceptingListener
from trouter.net.poller import Poller
from trouter.net.rates import bucket_maker
from trouter.net.turns import Turn, host_key
from trouter.policy.router_policy import RouterPolicy
from trouter.telemetry.refusals import BLOCKED, LIMIT, MEMORY, PROXY_HEADER
from trouter.tls.secure import PLAINTEXT, Secure, SecuredPeer, SecurityLayer
from trouter.wire.performatives import Error

from .lifetime import Lifetime
from .logins import LoginMaker
from .peer import Peer
from .router_parts import RouterParts
from .serving import serve
from .shared import PeerSettings

#: Seconds without accepting after a refusal, so that a flood is handled in batches.
FLOOD_PAUSE_S: Final = 0.01

#: The name of every connection's task in dumps; trio would make a text of its own for each.
_TASK_NAME: Final = f"{__name__}.Listener._serve_peer"

log = logging.getLogger("trouter.SERVER")


@dataclass(slots=True)
class ConnectionNumbers:
    """The source of the numbers ``[C<n>]`` in logs.

    Each of several workers gives out every ``step``-th number, from another ``first`` one on, so that all of the
    router's connections have different numbers.
    """

    first: int = 1
    step: int = 1
    _given: int = 0

    def next_number(self) -> int:
        """Return the next number."""
        number = self.first + self._given * self.step
        self._given += 1
        return number


class Listener(AcceptingListener):
    """One configured listener of AMQP, and its peers."""

    def __init__(
        self,
        entity: ListenerEntity,
        sockets: list[socket.socket],
        settings_of: Callable[[ListenerEntity], PeerSettings],
        numbers: ConnectionNumbers,
        guard: Guard,
        policy: RouterPolicy,
        secure: Secure,
        poller: Poller,
        logins: LoginMaker,
        parts: RouterParts,
    ) -> None:
        """``settings_of`` returns the settings of the peers of an entity."""
        #: Its connections by their numbers: those that are peers, and those that are not yet: their tasks have not
        #: begun, their protocol is being detected, or TLS has begun.
        self.peers: dict[int, Peer] = {}
        self._newcomers: dict[int, tuple[Newcomer, Turn]] = {}
        self._refused_before = 0
        self._settings_of = settings_of
        self._guard = guard
        self._policy = policy
        self._secure = secure
        self._task_turns = poller.turns
        self._logins = logins
        self._parts = parts
        #: The counts of all workers, and the key of this listener's connections there.
        self._tallies = guard.tallies
        self._tally_key = "listener", entity.identity
        self._is_between_workers = entity.host == WORKERS_HOST
        self._numbers = numbers
        #: The scopes of those whose protocol is being detected.
        self._greeting: set[trio.CancelScope] = set()
        super().__init__(entity, sockets, log, bucket_maker(self._tallies), poller)

    def configure(self, entity: ListenerEntity) -> None:
        super().configure(entity)
        self.facts = listener_facts(entity)
        self._settings = self._settings_of(entity)

    def drain(self) -> None:
        """Do as ``stop``: a new client would be of no use."""
        self.stop()

    def stop(self) -> None:
        super().stop()
        for scope in self._greeting:
            scope.cancel()

    def end_peers(self, error: Error) -> None:
        """Close every connection with ``error``, also those whose opens are not exchanged yet."""
        for peer in list(self.peers.values()):
            peer.close_at_once(error)

    async def serve_socket(
        self, sock: socket.socket, remote: tuple[str, int], below: SecuredPeer | None = None
    ) -> None:
        """Serve a connection that was accepted elsewhere until it ends; ``below`` describes the TLS there."""
        if not self._may_connect(sock, remote, handed_over=True):
            return
        facts = self._facts_of(remote)
        security = PLAINTEXT
        if below is not None:  # the octets come in clear from the end of TLS
            facts = replace(facts, encrypted=True, tls=below[0].tls, channel_bindings=below[0].channel_bindings)
            security = replace(below[1], channel=None, early=b"", began_s=None)
        self._begin_handshake(facts)
        await self._serve_peer(sock, facts, security)

    async def wait_readable(self, sock: socket.socket) -> None:
        """Wait until another connection comes, or for a moment after a refusal."""
        if self.refused == self._refused_before:
            await super().wait_readable(sock)
        else:
            self._refused_before = self.refused
            await trio.sleep(FLOOD_PAUSE_S)

    def admit_socket(self, sock: socket.socket, address: tuple[str, int], nursery: trio.Nursery) -> bool:
        if not self._may_connect(sock, address, handed_over=False):
            return False
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        where = sock.getsockname()
        facts = self._facts_of(address)
        log.info("[C%d] Accepted connection to %s:%s from %s:%s", facts.connection_id, *where[:2], *address)
        self._begin_handshake(facts)
        security = None if self.entity.ssl_profile else PLAINTEXT
        nursery.start_soon(self._serve_peer, sock, facts, security, name=_TASK_NAME)
        return True

    def refuse_socket(self, sock: socket.socket, address: tuple[str, int], why: str) -> None:
        self._guard.refusals.count_refused(self.entity.name, PROXY_HEADER)
        self._count_accepted(sock, refused=self._guard.refuses_connection(*address, why))

    def _may_connect(self, sock: socket.socket, remote: tuple[str, int], *, handed_over: bool) -> bool:
        """Count the connection and return True, unless there is a reason to close it: the first of all counts."""
        guard = self._guard
        reasons = self._reasons_to_refuse(remote[0], handed_over=handed_over)
        kind, why = next((reason for reason in reasons if reason[1]), ("", ""))
        if kind:
            guard.refuses_connection(*remote, why)
        elif not self._policy.accept_socket(self.entity.role, remote[0], sibling=self._is_between_workers):
            kind = LIMIT
        if kind:
            guard.refusals.count_refused(self.entity.name, kind)
        return self._count_accepted(sock, refused=bool(kind))

    def _reasons_to_refuse(self, host: str, *, handed_over: bool) -> Iterator[tuple[str, str]]:
        """Yield a kind and a reason for each check, the reason empty if ``host`` passes it.

        Each check is made when it is asked for: that of the rate counts the connection. One that another listener has
        handed over has passed that listener's limits.
        """
        guard, role = self._guard, self.entity.role
        yield MEMORY, guard.memory.refusal_reason(guard.handshakes.is_busy(host, role))
        yield BLOCKED, guard.blocking_reason(host, role)
        if not handed_over:
            yield LIMIT, self._full_reason()
            yield LIMIT, guard.handshakes.too_fast(host)
        yield LIMIT, guard.handshakes.too_many(host, role)

    def _full_reason(self) -> str:
        """Return why there is no room for another connection, empty if there is."""
        most = self.entity.max_connections
        if most is None:
            return ""
        others = 0 if self._tallies is None else self._tallies.count_others(*self._tally_key)
        return f"maxConnections {most}" if len(self.peers) + len(self._newcomers) + others >= most else ""

    def _facts_of(self, remote: tuple[str, int]) -> PeerFacts:
        return PeerFacts(
            connection_id=self._numbers.next_number(),
            listener=self.facts,
            remote_host=remote[0],
            remote_port=remote[1],
            encrypted=False,
            loopback=ipaddress.ip_address(remote[0].partition("%")[0]).is_loopback,
        )

    def _begin_handshake(self, facts: PeerFacts) -> None:
        newcomer = self._guard.handshakes.begin_handshake(facts.remote_host, self.entity.role)
        turn = Turn(self._task_turns, host_key(facts.remote_host))
        self._newcomers[facts.connection_id] = newcomer, turn
        if self._tallies is not None:
            self._tallies.raise_count(*self._tally_key)

    async def _serve_peer(self, sock: socket.socket, facts: PeerFacts, security: SecurityLayer | None) -> None:
        """Serve one peer until it ends; ``security`` None is detected first. A bug of ours ends only this peer."""
        try:
            await self._newcomers[facts.connection_id][1].begin()
            met = await self._secure_socket(sock, facts) if security is None else (facts, security)
            if met is not None:
                await serve(partial(self._make_peer, sock, *met))
        except Exception as error:  # noqa: BLE001 - it is reported
            BUGS.report(f"[C{facts.connection_id}] internal error, connection dropped", error)
        finally:
            if facts.connection_id in self._newcomers:
                newcomer, turn = self._newcomers.pop(facts.connection_id)
                turn.close()
                self._guard.handshakes.end_handshake(newcomer)
            peer = self.peers.pop(facts.connection_id, None)
            if peer is None:
                sock.close()
            elif peer.refusal:
                self._guard.refusals.count_refused(facts.listener.name, peer.refusal)
            if self._tallies is not None:
                self._tallies.lower_count(*self._tally_key)
            self._policy.release_socket(sibling=self._is_between_workers)

    async def _secure_socket(self, sock: socket.socket, facts: PeerFacts) -> SecuredPeer | None:
        """Detect TLS and make its handshake; return None if that fails."""
        met: SecuredPeer | None = None
        _, turn = self._newcomers[facts.connection_id]
        scope = trio.CancelScope()
        self._greeting.add(scope)
        try:
            with scope:
                timeout_s = self._settings.handshake_timeout_s
                refused = partial(self._guard.refusals.count_refused, self.entity.name)
                met = await self._secure.accept(sock, facts, self.entity, timeout_s, turn, refused)
        finally:
            self._greeting.discard(scope)
        return met

    def _make_peer(
        self, sock: socket.socket, facts: PeerFacts, security: SecurityLayer, scope: trio.CancelScope
    ) -> Peer:
        """Make and register a connection that ends with ``scope``; its login forgets the newcomer at its open.

        From then on its events have turns.
        """
        newcomer, turn = self._newcomers.pop(facts.connection_id)
        settings, lifetime = self._settings, Lifetime(facts, scope, outgoing=False)
        login = self._logins.make_login(facts, settings, scope, newcomer)
        peer = Peer(sock, facts, security, settings, lifetime, login, self._parts)
        self._guard.handshakes.watch_handshake(newcomer, peer)
        self.peers[peer.number] = peer
        turn.close()
        return peer
