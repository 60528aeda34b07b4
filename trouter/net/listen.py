"""Listeners: addresses to sockets, sockets to peers, and protection from too many of them at once."""

from __future__ import annotations

import errno
import ipaddress
import logging
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import trio

from trouter.config import ListenerEntity
from trouter.hooks import ListenerFacts, PeerFacts

from .peer import Peer, PeerSettings, Services

BACKLOG: Final = 1024
#: Connections taken from one socket before other tasks get their turn.
ACCEPTS_IN_A_ROW: Final = 16
#: How long to wait when the system has no more descriptors or memory for a connection.
OUT_OF_RESOURCES_PAUSE_S: Final = 0.1
_OVERLOAD: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})

log = logging.getLogger("trouter.SERVER")


class ListenError(Exception):
    """A listener cannot stand: which, and why."""


class AcceptRate:
    """A token bucket: ``per_second`` connections on average, as many at once."""

    def __init__(self, per_second: int) -> None:
        self._per_second = per_second
        self._tokens = float(per_second)
        self._at_s = trio.current_time()

    async def wait_turn(self) -> None:
        """Return when one more connection may be taken."""
        while True:
            now_s = trio.current_time()
            self._tokens = min(self._per_second, self._tokens + (now_s - self._at_s) * self._per_second)
            self._at_s = now_s
            if self._tokens >= 1:
                return
            await trio.sleep((1 - self._tokens) / self._per_second)

    def take(self) -> None:
        """A connection was taken."""
        self._tokens -= 1


@dataclass(frozen=True, slots=True)
class ConnectionNumbers:
    """Hands out the numbers that stand as ``[C<n>]`` in logs."""

    given: list[int]

    def next(self) -> int:
        """The next number, from 1."""
        self.given[0] += 1
        return self.given[0]


class Listener:
    """One configured listener: its sockets and its peers."""

    def __init__(
        self,
        entity: ListenerEntity,
        settings: PeerSettings,
        services: Services,
        numbers: ConnectionNumbers,
    ) -> None:
        self.entity = entity
        self.facts = ListenerFacts(
            name=entity.name,
            host=entity.host,
            port=entity.port,
            role=entity.role,
            sasl_mechanisms=entity.sasl_mechanisms,
            authenticate_peer=entity.authenticate_peer,
            allow_insecure_plain=entity.allow_insecure_plain,
            strip_annotations=entity.strip_annotations,
        )
        self.peers: set[Peer] = set()
        self.sockets: list[socket.socket] = []
        self._settings = settings
        self._services = services
        self._numbers = numbers
        self._accepting = trio.CancelScope()
        #: Set when the listener has stopped and its last peer has gone.
        self.done = trio.Event()

    async def bind(self) -> None:
        """Open the sockets; ListenError names host, port and cause."""
        entity = self.entity
        try:
            self.sockets = list(open_sockets(await resolve(entity)))
        except OSError as error:
            where = f"{entity.host or '*'}:{entity.port}"
            raise ListenError(f"cannot listen on {where}: {error.strerror or error}") from error
        for sock in self.sockets:
            host, port = sock.getsockname()[:2]
            name = f" ({entity.name})" if entity.name else ""
            log.info("Listening on %s:%s%s", f"[{host}]" if ":" in host else host, port, name)

    async def run(self) -> None:
        """Accept until ``stop``, and serve the peers until they are done."""
        rate = AcceptRate(self.entity.accept_rate) if self.entity.accept_rate else None
        async with trio.open_nursery() as nursery:
            try:
                with self._accepting:
                    async with trio.open_nursery() as accepting:
                        for sock in self.sockets:
                            accepting.start_soon(self._accept, sock, rate, nursery)
            finally:
                self._close()
        self.done.set()

    def stop(self) -> None:
        """Take no more connections; those there are go on."""
        self._accepting.cancel()

    def _close(self) -> None:
        for sock in self.sockets:
            sock.close()

    async def _accept(self, sock: socket.socket, rate: AcceptRate | None, nursery: trio.Nursery) -> None:
        in_a_row = 0
        while True:
            if rate is not None:
                await rate.wait_turn()
            try:
                accepted, address = sock.accept()
            except BlockingIOError:
                in_a_row = 0
                await trio.lowlevel.wait_readable(sock)
                continue
            except OSError as error:
                if error.errno in _OVERLOAD:
                    log.error("cannot accept on %s: %s; pausing", self.entity.name or self.entity.port, error.strerror)
                    await trio.sleep(OUT_OF_RESOURCES_PAUSE_S)
                continue
            if rate is not None:
                rate.take()
            self._admit(accepted, address, nursery)
            in_a_row += 1
            if in_a_row >= ACCEPTS_IN_A_ROW:
                in_a_row = 0
                await trio.lowlevel.checkpoint()

    def _admit(self, sock: socket.socket, address: tuple[str, int], nursery: trio.Nursery) -> None:
        entity = self.entity
        if self._accepting.cancel_called:  # it came in the turn in which we stopped
            sock.close()
            return
        if entity.max_connections is not None and len(self.peers) >= entity.max_connections:
            log.warning("connection from %s:%s refused: maxConnections %d", *address[:2], entity.max_connections)
            sock.close()
            return
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        facts = PeerFacts(
            connection_id=self._numbers.next(),
            listener=self.facts,
            remote_host=address[0],
            remote_port=address[1],
            encrypted=False,
            loopback=ipaddress.ip_address(address[0].partition("%")[0]).is_loopback,
        )
        where = sock.getsockname()
        log.info("[C%d] Accepted connection to %s:%s from %s:%s", facts.connection_id, *where[:2], *address[:2])
        nursery.start_soon(self._serve, sock, facts)

    async def _serve(self, sock: socket.socket, facts: PeerFacts) -> None:
        """Run one peer; a bug of ours ends this peer and nobody else."""
        peer = Peer(sock, facts, self._settings, self._services)
        self.peers.add(peer)
        try:
            await peer.run()
        except Exception:
            log.exception("[C%d] internal error, connection dropped", facts.connection_id)
        finally:
            self.peers.discard(peer)


async def resolve(entity: ListenerEntity) -> list[tuple[socket.AddressFamily, tuple[str, int]]]:
    """The addresses that host, port and family stand for; OSError when there are none."""
    families = {"IPv4": socket.AF_INET, "IPv6": socket.AF_INET6}
    family = families.get(entity.socket_address_family or "", socket.AF_UNSPEC)
    found = await trio.socket.getaddrinfo(
        entity.host or None, entity.port_or_service, family=family, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    return list(dict.fromkeys((each, (str(address[0]), int(address[1]))) for each, _, _, _, address in found))


def open_sockets(addresses: Iterable[tuple[socket.AddressFamily, tuple[str, int]]]) -> Iterable[socket.socket]:
    """A listening socket for each address; OSError, with none left open, when one cannot be had."""
    opened: list[socket.socket] = []
    try:
        for family, address in addresses:
            sock = socket.socket(family, socket.SOCK_STREAM)
            opened.append(sock)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            sock.bind(address)
            sock.listen(BACKLOG)
            sock.setblocking(False)
    except OSError:
        for sock in opened:
            sock.close()
        raise
    return opened
