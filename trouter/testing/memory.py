"""A router and its clients in one process, joined in memory: no sockets, no tasks, no time but what a test sets.

Each client is the engine's other side, and speaks real AMQP to an engine of the router's; what the clients receive is
kept in lists. Nothing moves by itself: ``MemoryRouter.pump`` carries octets to and fro until neither the router nor a
client has more to send, and ``MemoryClient.write`` and ``read`` carry one direction only, so that frames may pass each
other on their way.

    router = MemoryRouter()
    client = router.connect()
    receiver = client.receiver("queue", credit=10)
    sender = client.sender("queue")
    sent = sender.send(compose(b"hello"))
    router.pump()
    assert receiver.received[0].body == b"hello"
    receiver.received[0].settle()
    router.pump()
    assert sent.outcome == Accepted()
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from trouter.core.containers import Container
from trouter.core.egress import Egress
from trouter.core.ingress import Ingress
from trouter.core.router import Router
from trouter.core.table import AddressRule
from trouter.core.terms import ROUTE_CONTAINER, PeerTerms
from trouter.engine.connection import Connection
from trouter.engine.events import (
    ConnectionClosed,
    ConnectionOpened,
    Event,
    LinkAttached,
    LinkDetached,
    SessionBegun,
    SessionEnded,
)
from trouter.engine.limits import EngineLimits
from trouter.engine.link import IncomingLink, OutgoingLink, add_link
from trouter.engine.link_base import Link
from trouter.engine.ports import SessionPort
from trouter.engine.session import Session
from trouter.engine.states import LinkState
from trouter.wire.performatives import Coordinator, Open, Source, Target

from .memory_links import MemoryReceiver, MemorySender, ReceivedMessage, SentMessage
from .messages import compose

__all__ = [
    "LIMITS",
    "MemoryClient",
    "MemoryReceiver",
    "MemoryRouter",
    "MemorySender",
    "ReceivedMessage",
    "SentMessage",
    "compose",
]

#: Ids start just below the wrap of 32 bits, so that every test crosses it.
LIMITS: Final = EngineLimits(first_outgoing_id=0xFFFFFFFE, idle_timeout_s=0.0)
_MAX_ROUNDS: Final = 100_000


class MemoryRouter:
    """A routing core with any number of clients. ``core`` is the router; ``now_s`` its clock, moved by hand."""

    def __init__(
        self,
        rules: Iterable[AddressRule] = (),
        *,
        router_id: str = "R1",
        mode: str = "standalone",
        default_distribution: str = "balanced",
    ) -> None:
        self.core = Router(router_id, mode, default_distribution, rules)
        self.clients: list[MemoryClient] = []
        self._outbox: list[Connection] = []

    @property
    def now_s(self) -> float:
        """Return the time that the router goes by."""
        return self.core.pulse.now_s

    @now_s.setter
    def now_s(self, now_s: float) -> None:
        self.core.pulse.now_s = now_s

    def connect(
        self,
        terms: PeerTerms | None = None,
        *,
        limits: EngineLimits = LIMITS,
        client_limits: EngineLimits = LIMITS,
        container_id: str = "",
        role: str = "normal",
        name: str = "",
    ) -> MemoryClient:
        """Return a client with an open connection and one session; ``terms`` and ``limits`` are those of its listener.

        Connections count from 1. One in the ``role`` of a route container has come through the connector or listener
        ``name``.
        """
        container_id = container_id or f"client-{len(self.clients)}"
        own = replace(terms or PeerTerms(), connection_number=len(self.clients) + 1, role=role)
        client = MemoryClient(self, container_id, own, limits, client_limits, self._outbox)
        self.clients.append(client)
        client.connection.open()
        client.session = client.add_session()
        self.pump()
        if role == ROUTE_CONTAINER:
            self.core.container_came(client.as_container(name))
            self.pump()
        return client

    def pump(self) -> None:
        """Carry octets both ways until neither the router nor a client has more to send."""
        for _ in range(_MAX_ROUNDS):
            moved = False
            for client in self.clients:
                moved = client.write() or moved
            self.flush()
            for client in self.clients:
                moved = client.read() or moved
            if not moved:
                return
        raise AssertionError("client and router never come to rest")

    def flush(self) -> None:
        """Write out what the router gathered for each of its connections, as the end of a pass does."""
        while self._outbox:
            touched = self._outbox[:]
            self._outbox.clear()
            for connection in touched:
                connection.flush()

    def held_bytes(self) -> int:
        """Return octets of messages that the router keeps, over all sessions."""
        return sum(session.held_bytes for client in self.clients for session in client.server.sessions())


class MemoryClient:
    """One connection: ``connection`` is the client's engine, ``server`` the router's. Links live on ``session``."""

    session: Session

    def __init__(
        self,
        router: MemoryRouter,
        container_id: str,
        terms: PeerTerms,
        limits: EngineLimits,
        client_limits: EngineLimits,
        router_outbox: list[Connection],
    ) -> None:
        self.router = router
        self.terms = terms
        self.connection = Connection(
            client_limits,
            Open(
                container_id=container_id,
                max_frame_size=client_limits.max_frame_bytes,
                channel_max=client_limits.channel_max,
            ),
            [],
            None,
            server=False,
        )
        self.server = Connection(
            limits,
            Open(container_id=router.core.table.router_id, max_frame_size=limits.max_frame_bytes),
            router_outbox,
            None,
            server=True,
        )
        #: The client does not look at what the router sends; it waits in the router's output.
        self.stalled = False
        self.dropped = False
        #: The events that ended the connection or a session, as the client heard of them.
        self.closed: ConnectionClosed | None = None
        self.ended: list[SessionEnded] = []
        #: What the router's end heard as faults.
        self.faults: list[Any] = []
        #: Links that the router attached, in their order; answered at once as long as ``answers`` says so.
        self.attached: list[MemorySender | MemoryReceiver] = []
        self.answers = True
        #: A detach of the router's is answered at once.
        self.answers_detaches = True
        #: Sessions that the router began.
        self._begun_there: list[SessionPort] = []
        #: Octets that reached the router.
        self.written_bytes = 0
        self._names = 0

    # --- links

    def sender(
        self,
        address: str | None = None,
        *,
        name: str = "",
        target: Target | Coordinator | None = None,
        source: Source | None = None,
        capabilities: tuple[str, ...] = (),
        dynamic: bool = False,
        session: Session | None = None,
        pump: bool = True,
        **fields: Any,
    ) -> MemorySender:
        """Attach a link to send on; without an address it is an anonymous one. ``fields`` as in Attach."""
        if target is None and (address is not None or dynamic or capabilities):
            target = Target(address, dynamic=dynamic, capabilities=capabilities)
        link = add_link(session or self.session, name or self._name(), False)
        assert isinstance(link, OutgoingLink)  # noqa: S101 - by its direction
        sender = MemorySender(self, link)
        link.attach(source or Source(), target, initial_delivery_count=link.delivery_count, **fields)
        if pump:
            self.router.pump()
        return sender

    def receiver(
        self,
        address: str | None = None,
        *,
        credit: int = 0,
        name: str = "",
        source: Source | None = None,
        target: Target | None = None,
        capabilities: tuple[str, ...] = (),
        dynamic: bool = False,
        session: Session | None = None,
        pump: bool = True,
        **fields: Any,
    ) -> MemoryReceiver:
        """Attach a link to receive on, and grant ``credit``. ``fields`` as in Attach."""
        if source is None:
            source = Source(address, dynamic=dynamic, capabilities=capabilities)
        link = add_link(session or self.session, name or self._name(), True)
        assert isinstance(link, IncomingLink)  # noqa: S101 - by its direction
        receiver = MemoryReceiver(self, link)
        receiver.wanted_credit = credit
        link.attach(source, target or Target(), **fields)
        if pump:
            self.router.pump()
        return receiver

    def add_session(self) -> Session:
        """Begin one more session."""
        session = self.connection.add_session()
        session.begin()
        return session

    def _name(self) -> str:
        self._names += 1
        return f"link-{self._names}"

    # --- the end

    def end(self, session: Session | None = None) -> None:
        """End a session in order."""
        (session or self.session).end()
        self.router.pump()

    def close(self) -> None:
        """Close the connection in order."""
        self.connection.close()
        self.router.pump()

    def drop(self) -> None:
        """Break the connection: neither side hears from the other again."""
        if not self.dropped:
            self.dropped = True
            self._lose_links()
            self.router.pump()

    # --- carrying octets

    def pump(self) -> None:
        """Carry the octets of all clients both ways until everything has come to rest."""
        self.router.pump()

    def write(self) -> bool:
        """Carry to the router what the client has said; whether that was anything."""
        self.connection.flush()
        moved = _take(self.connection)
        if not moved or self.dropped:
            return False
        if self.connection.paused:
            self.connection.resume_output()
        self.written_bytes += len(moved)
        self.server.receive_data(moved)
        while self.server.events:
            self._serve(self.server.events.pop(0))
        return True

    def read(self) -> bool:
        """Carry to the client what the router has said; whether that was anything."""
        if self.stalled and not self.dropped:
            return False
        moved = _take(self.server)
        if not moved or self.dropped:
            return False
        if self.server.paused:
            self.server.resume_output()
        self.connection.receive_data(moved)
        while self.connection.events:
            self._hear(self.connection.events.pop(0))
        return True

    def _serve(self, event: Event) -> None:
        """The router's end of an event: what `trouter.connections` does, without tasks."""
        core = self.router.core
        if isinstance(event, ConnectionOpened):
            self.server.open()
        elif isinstance(event, SessionBegun):
            if not core.session_begun(event.session):
                event.session.begin()
        elif isinstance(event, LinkAttached):
            ours = isinstance(event.link.sink, Ingress | Egress)
            if not core.answered(event.link) and not ours:
                core.attach(event.link, self.terms)
        elif isinstance(event, LinkDetached):
            self._note(event.fault)
            core.detach(event.link, event.closed, heard=event.error)
        elif isinstance(event, SessionEnded):
            self._note(event.fault)
            core.lose_session(event.session, event.error)
            event.session.end()
            self.server.drop_session(event.session)
        elif isinstance(event, ConnectionClosed):
            self._note(event.fault)
            self._lose_links()
            self.server.close()

    def _hear(self, event: Event) -> None:
        """The client's end of an event."""
        if isinstance(event, SessionBegun):
            if event.begin.remote_channel is None:
                self._begun_there.append(event.session)
            event.session.begin()
        elif isinstance(event, LinkAttached):
            sink = event.link.sink
            if event.link.session in self._begun_there:
                sink = self._take_in(event.link)
            if isinstance(sink, MemorySender | MemoryReceiver):
                sink.on_attached(event.attach)
        elif isinstance(event, LinkDetached):
            sink = event.link.sink
            if isinstance(sink, MemorySender | MemoryReceiver):
                sink.detached = event
            if self.answers_detaches or event.link.state is LinkState.DETACHED:
                event.link.detach(event.closed)
        elif isinstance(event, SessionEnded):
            self.ended.append(event)
            event.session.end()
            self.connection.drop_session(event.session)
        elif isinstance(event, ConnectionClosed):
            self.closed = event
            self.connection.close()

    def _take_in(self, link: Link) -> MemorySender | MemoryReceiver:
        """The router attached a link."""
        made = MemoryReceiver(self, link) if isinstance(link, IncomingLink) else MemorySender(self, link)  # type: ignore[arg-type]
        self.attached.append(made)
        made.attach = link.remote_attach
        if self.answers:
            made.answer()
        return made

    def as_container(self, name: str = "") -> Container:
        """Return the connection as one on which the router attaches links of its own."""
        remote = self.server.remote_open
        assert remote is not None  # noqa: S101 - it is open
        return Container(self.server, self.terms, remote.container_id, name, self.terms.role)

    def _note(self, fault: object) -> None:
        if fault is not None:
            self.faults.append(fault)

    def _lose_links(self) -> None:
        self.router.core.container_gone(self.terms.connection_number)
        for session in self.server.sessions():
            self.router.core.lose_session(session)


def _take(connection: Connection) -> bytes:
    """Return what stands in a connection's output, which is empty afterwards."""
    taken = bytes(connection.out)
    connection.out.clear()
    return taken
