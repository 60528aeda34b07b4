"""A router and its clients joined in memory: no sockets, no tasks, and a clock that the test sets.

Each client has an engine that speaks AMQP with an engine of the router; received messages are kept in lists. Nothing
moves by itself: ``MemoryRouter.pump`` carries bytes both ways until neither side has more to send, and
``MemoryClient.write`` and ``read`` carry one direction only, so that frames may cross.

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
from trouter.core.links import Endpoint
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
from trouter.engine.faults import PeerFault
from trouter.engine.limits import EngineLimits
from trouter.engine.link import IncomingLink, OutgoingLink, add_link
from trouter.engine.link_base import Link
from trouter.engine.ports import ConnectionPort, SessionPort
from trouter.engine.session import Session
from trouter.engine.states import LinkState
from trouter.wire.performatives import Coordinator, Error, Open, Source, Target

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
    """A routing core and its clients. ``core`` is the router, ``now_s`` its clock, which the test sets."""

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
        self._outbox: list[ConnectionPort] = []

    @property
    def now_s(self) -> float:
        """The time of the router's clock in seconds."""
        return self.core.shared.now_s

    @now_s.setter
    def now_s(self, now_s: float) -> None:
        self.core.shared.now_s = now_s

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

        Connections count from 1. ``name`` is the connector or listener of a connection with the ``role`` of a route
        container.
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
        """Carry bytes both ways until neither side has more to send; AssertionError if that never ends."""
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
        """Write out the gathered output of the router's connections, as at the end of an event loop's pass."""
        while self._outbox:
            touched = self._outbox[:]
            self._outbox.clear()
            for connection in touched:
                connection.flush()

    def held_bytes(self) -> int:
        """Return the bytes of messages that the router holds, over all sessions."""
        return sum(session.windows.held_bytes for client in self.clients for session in client.server.sessions())


def serve_links(core: Router, engine: Connection, terms: PeerTerms, event: Event) -> PeerFault | None:
    """Handle an event of a session or link as `trouter.connections` does; return the peer's fault, or None."""
    if isinstance(event, SessionBegun):
        if not core.session_begun(event.session):
            event.session.begin()
    elif isinstance(event, LinkAttached):
        ours = isinstance(event.link.sink, Endpoint)
        if not core.handle_own_attach(event.link) and not ours:
            core.answer_attach(event.link, terms)
    elif isinstance(event, LinkDetached):
        core.detach_link(event.link, event.closed, remote_error=event.error)
    elif isinstance(event, SessionEnded):
        core.lose_session(event.session, event.error)
        event.session.end()
        engine.drop_session(event.session)
    return event.fault if isinstance(event, ConnectionClosed | LinkDetached | SessionEnded) else None


class MemoryClient:
    """One connection: ``connection`` is the client's engine, ``server`` the router's. Links are on ``session``."""

    session: Session

    def __init__(
        self,
        router: MemoryRouter,
        container_id: str,
        terms: PeerTerms,
        limits: EngineLimits,
        client_limits: EngineLimits,
        router_outbox: list[ConnectionPort],
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
        #: The client does not read; the router's output waits.
        self.stalled = False
        self.dropped = False
        #: The events that ended the connection or sessions at the client.
        self.closed: ConnectionClosed | None = None
        self.ended: list[SessionEnded] = []
        #: Faults that the router's engine reported.
        self.faults: list[Any] = []
        #: Links that the router attached, in order; answered at once if ``answers``.
        self.attached: list[MemorySender | MemoryReceiver] = []
        self.answers = True
        #: Answer the router's detaches at once.
        self.answers_detaches = True
        #: Sessions that the router began.
        self._begun_there: list[SessionPort] = []
        #: Bytes that reached the router.
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
        """Return a new sender after its attach; without an address it is anonymous. ``fields`` are those of Attach."""
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
        """Return a new receiver after its attach, and grant ``credit``. ``fields`` are those of Attach."""
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
        """Return a further session after its begin."""
        session = self.connection.add_session()
        session.begin()
        return session

    def _name(self) -> str:
        self._names += 1
        return f"link-{self._names}"

    # --- the end

    def end(self, session: Session | None = None, error: Error | None = None) -> None:
        """End a session and pump."""
        (session or self.session).end(error)
        self.router.pump()

    def close(self, error: Error | None = None) -> None:
        """Close the connection and pump."""
        self.connection.close(error)
        self.router.pump()

    def drop(self) -> None:
        """Break the connection: nothing is carried any more."""
        if not self.dropped:
            self.dropped = True
            self._lose_links()
            self.router.pump()

    # --- carrying bytes

    def pump(self) -> None:
        """Carry the bytes of all clients both ways until nothing moves."""
        self.router.pump()

    def write(self) -> bool:
        """Carry the client's output to the router; return whether there was any."""
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
        """Carry the router's output to the client; return whether there was any."""
        if self.stalled and not self.dropped:
            return False
        moved = _take(self.server)
        if not moved or self.dropped:
            return False
        if self.server.paused:
            self.server.resume_output()
        self.connection.receive_data(moved)
        while self.connection.events:
            self._serve_client(self.connection.events.pop(0))
        return True

    def _serve(self, event: Event) -> None:
        """Handle an event of the router's engine, like `trouter.connections` but without tasks."""
        if isinstance(event, ConnectionOpened):
            self.server.open()
        elif isinstance(event, ConnectionClosed):
            self._note(event.fault)
            self._lose_links(event.error)
            self.server.close()
        else:
            self._note(serve_links(self.router.core, self.server, self.terms, event))

    def _serve_client(self, event: Event) -> None:
        """Handle an event of the client's engine."""
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
            if self.answers_detaches or event.link.state is LinkState.END:
                event.link.detach(event.closed)
        elif isinstance(event, SessionEnded):
            self.ended.append(event)
            event.session.end()
            self.connection.drop_session(event.session)
        elif isinstance(event, ConnectionClosed):
            self.closed = event
            self.connection.close()

    def _take_in(self, link: Link) -> MemorySender | MemoryReceiver:
        """Return a new end for a link that the router attached."""
        made = MemoryReceiver(self, link) if isinstance(link, IncomingLink) else MemorySender(self, link)  # type: ignore[arg-type]
        self.attached.append(made)
        made.attach = link.remote_attach
        if self.answers:
            made.answer()
        return made

    def as_container(self, name: str = "") -> Container:
        """Return the connection as a container on which the router attaches links."""
        remote = self.server.remote_open
        assert remote is not None  # noqa: S101 - it is open
        return Container(self.server, self.terms, remote.container_id, name, self.terms.role)

    def _note(self, fault: PeerFault | None) -> None:
        if fault is not None:
            self.faults.append(fault.with_traceback(None))  # its frames hold what the peer sent

    def _lose_links(self, error: Error | None = None) -> None:
        self.router.core.container_gone(self.terms.connection_number, error)
        for session in self.server.sessions():
            self.router.core.lose_session(session, error)


def _take(connection: Connection) -> bytes:
    """Return and clear a connection's output."""
    taken = bytes(connection.out)
    connection.out.clear()
    return taken
