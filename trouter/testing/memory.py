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

from collections import deque
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
from trouter.engine.link import IncomingLink, Link, OutgoingLink, add_link
from trouter.engine.ports import Delivery, LinkSink, SessionPort
from trouter.engine.session import Session
from trouter.engine.states import LinkState
from trouter.wire.codec import decode, encode
from trouter.wire.performatives import (
    Accepted,
    Attach,
    Coordinator,
    Error,
    Open,
    Source,
    Target,
    decode_state,
    encode_state,
)
from trouter.wire.sections import MessageScan
from trouter.wire.types import Described, Symbol, UByte, ULong

#: Ids start just below the wrap of 32 bits, so that every test crosses it.
LIMITS: Final = EngineLimits(first_outgoing_id=0xFFFFFFFE, idle_timeout_s=0.0)
_MAX_ROUNDS: Final = 100_000
_AS_ASKED: Final = object()
_DATA: Final = 0x75


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
        """The time that the router goes by."""
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
        """A client with an open connection and one session; ``terms`` and ``limits`` are those of its listener.

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
        """Octets of messages that the router keeps, over all sessions."""
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
        """One more session."""
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
        """The connection breaks: neither side hears from the other again."""
        if not self.dropped:
            self.dropped = True
            self._lose_links()
            self.router.pump()

    # --- carrying octets

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
        """The connection as one on which the router attaches links of its own."""
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


class _MemoryLink(LinkSink):
    """What both kinds of links know of themselves."""

    link: Link

    def __init__(self, client: MemoryClient) -> None:
        self.client = client
        #: The router's attach, and its detach if that came first.
        self.attach: Attach | None = None
        self.detached: LinkDetached | None = None

    def on_attached(self, attach: Attach) -> None:
        """The router's attach came."""
        self.attach = attach

    def answer(self, source: object = _AS_ASKED, target: object = _AS_ASKED) -> None:
        """Answer an attach of the router's, with the termini that it asked for or others; ours are answered already."""
        asked = self.attach
        assert asked is not None  # noqa: S101 - it came
        self.link.attach(
            asked.source if source is _AS_ASKED else source, asked.target if target is _AS_ASKED else target
        )

    def refuse(self, error: Error) -> None:
        """Refuse an attach of the router's."""
        self.link.refuse(error)
        self.client.router.pump()

    @property
    def error(self) -> Error | None:
        """Why the router detached the link; None when it did not, or did not say."""
        return None if self.detached is None else self.detached.error

    def detach(self, closed: bool = True, error: Error | None = None) -> None:
        """Detach in order, and let everything come to rest."""
        self.link.awaited = True
        self.link.detach(closed, error)
        self.client.router.pump()


class MemorySender(_MemoryLink):
    """A client's link to send on. What credit, window or room do not take at once is sent when they do."""

    link: OutgoingLink

    def __init__(self, client: MemoryClient, link: OutgoingLink) -> None:
        super().__init__(client)
        self.link = link
        link.sink = self
        #: How often the router asked for the rest of the credit, and with how much of it left.
        self.drains: list[int] = []
        #: Drains are answered as they come.
        self.answers_drain = True
        self._waiting: deque[SentMessage] = deque()

    @property
    def credit(self) -> int:
        """How many more messages the router takes."""
        return self.link.credit

    @property
    def address(self) -> str:
        """The target's address in the router's attach: for a dynamic one, the address made up for it."""
        assert self.attach is not None  # noqa: S101 - asked for after the attach was answered
        assert isinstance(self.attach.target, Target)  # noqa: S101 - as above
        return str(self.attach.target.address)

    def send(
        self,
        message: bytes,
        *,
        settled: bool = False,
        frames: int = 1,
        abort: bool = False,
        state: object = None,
        message_format: int = 0,
    ) -> SentMessage:
        """Send a message in at least ``frames`` frames; with ``abort`` it is taken back instead of completed."""
        size = max(1, -(-len(message) // frames))
        pieces = [message[start : start + size] for start in range(0, len(message), size)] or [b""]
        sent = SentMessage(self, settled, state)
        sent.delivery.message_format = message_format
        for piece in pieces if abort else pieces[:-1]:
            sent.more(piece)
        if abort:
            sent.abort()
        else:
            sent.finish(pieces[-1])
        return sent

    def begin(self, piece: bytes = b"", *, settled: bool = False, state: object = None) -> SentMessage:
        """Begin a message; ``more``, ``finish`` and ``abort`` of what it returns go on."""
        sent = SentMessage(self, settled, state)
        sent.more(piece)
        return sent

    def drained(self) -> None:
        """Answer a drain: give the rest of the credit back."""
        self.link.drained()

    def wait(self, sent: SentMessage) -> None:
        """``sent`` has something to send: now if possible, in its turn otherwise."""
        if sent not in self._waiting:
            self._waiting.append(sent)
        self._push()

    def _push(self) -> None:
        while self._waiting and (self._waiting[0].delivery.begun or self.link.ready()) and not self.link.waiting:
            if not self._waiting[0].push():
                return
            self._waiting.popleft()

    def on_credit(self, link: Any) -> None:
        """See ``LinkSink``."""
        self._push()
        if link.drain and not self._waiting:
            self.drains.append(link.credit)
            if self.answers_drain:
                link.drained()

    def on_disposition(self, delivery: Delivery) -> None:
        """See ``LinkSink``."""
        delivery.context.heard()


class SentMessage:
    """A message that a client sent, and what it heard about it: ``history`` has a (state, settled) for each time."""

    def __init__(self, sender: MemorySender, settled: bool, state: object) -> None:
        self.sender = sender
        self.delivery = Delivery(sender.link)
        self.delivery.settled = settled
        self.delivery.context = self
        self.delivery.transfer_state = None if state is None else _encoded(state)[1]
        self.history: list[tuple[object, bool]] = []
        self._left = bytearray()
        self._more = True
        self._aborted = False

    @property
    def outcome(self) -> object:
        """The last state that came, None before any."""
        return self.history[-1][0] if self.history else None

    @property
    def settled(self) -> bool:
        """The router settled it."""
        return self.delivery.remote_settled

    def more(self, piece: bytes) -> None:
        """Send another piece, not the last one."""
        self._left += piece
        self.sender.wait(self)

    def finish(self, piece: bytes = b"") -> None:
        """Send the last piece."""
        self._more = False
        self.more(piece)

    def abort(self) -> None:
        """Take the message back."""
        self._aborted = True
        self._left.clear()
        self.sender.wait(self)

    def settle(self, state: object = None, settled: bool = True) -> None:
        """Tell the router the sender's own state, and with ``settled`` forget the message."""
        code, encoded = _encoded(state)
        self.delivery.link.session.settle_outgoing(self.delivery, code, encoded, settled)

    def push(self) -> bool:
        """Send what is left and can go; whether the next message may."""
        link = self.sender.link
        if self._aborted:
            if self.delivery.begun:
                link.abort(self.delivery)
            self.delivery.complete = self.delivery.aborted = True
            return True
        if self._left or not self.delivery.begun or not self._more:
            left = bytes(self._left)
            stop = link.send(self.delivery, left, 0, len(left), self._more)
            del self._left[:stop]
        return self.delivery.complete

    def heard(self) -> None:
        """The router said something about it."""
        self.history.append((_decoded(self.delivery.remote_state), self.delivery.remote_settled))


class MemoryReceiver(_MemoryLink):
    """A client's link to receive on; ``received`` has every message whose first frame came."""

    link: IncomingLink

    def __init__(self, client: MemoryClient, link: IncomingLink) -> None:
        super().__init__(client)
        self.link = link
        link.sink = self
        self.received: list[ReceivedMessage] = []
        #: Credit to grant once the attach is answered.
        self.wanted_credit = 0
        #: How often the router answered a drain.
        self.drained = 0

    def on_attached(self, attach: Attach) -> None:
        """See ``_MemoryLink``."""
        super().on_attached(attach)
        if self.wanted_credit > 0:
            self.grant(self.wanted_credit)

    @property
    def credit(self) -> int:
        """How many messages the router may still send."""
        return self.link.credit

    @property
    def address(self) -> str:
        """The source's address in the router's attach: for a dynamic one, the address made up for it."""
        assert self.attach is not None  # noqa: S101 - asked for after the attach was answered
        assert isinstance(self.attach.source, Source)  # noqa: S101 - as above
        return str(self.attach.source.address)

    @property
    def bodies(self) -> list[bytes]:
        """The bodies of the messages that came whole."""
        return [message.body for message in self.received if message.complete]

    def grant(self, count: int) -> None:
        """Let the router send ``count`` more messages."""
        self.link.grant(count)

    def drain(self) -> None:
        """Ask for messages up to the credit, and for the rest of it back."""
        self.link.drain()

    def on_transfer(self, link: Any, delivery: Delivery, data: bytes, start: int, end: int) -> None:
        """See ``LinkSink``."""
        message = delivery.context
        if message is None:
            message = delivery.context = ReceivedMessage(delivery)
            self.received.append(message)
        message.frames.append(data[start:end])

    def on_aborted(self, link: Any, delivery: Delivery) -> None:
        """See ``LinkSink``."""

    def on_disposition(self, delivery: Delivery) -> None:
        """See ``LinkSink``."""
        delivery.context.history.append((_decoded(delivery.remote_state), delivery.remote_settled))

    def on_drained(self, link: Any) -> None:
        """See ``LinkSink``."""
        self.drained += 1


class ReceivedMessage:
    """A message that a client receives; ``history`` has what its sender said later, as (state, settled)."""

    def __init__(self, delivery: Delivery) -> None:
        self.delivery = delivery
        self.frames: list[bytes] = []
        self.history: list[tuple[object, bool]] = []
        #: It came settled.
        self.settled = delivery.remote_settled

    @property
    def complete(self) -> bool:
        """Its last frame is here, and it was not taken back."""
        return self.delivery.complete and not self.delivery.aborted

    @property
    def aborted(self) -> bool:
        """It was taken back."""
        return self.delivery.aborted

    @property
    def payload(self) -> bytes:
        """Every octet that came."""
        return b"".join(self.frames)

    @property
    def transfer_state(self) -> object:
        """The delivery state that the transfer carried, None for none."""
        return _decoded(self.delivery.transfer_state)

    @property
    def annotations(self) -> dict[object, object] | None:
        """The message annotations, None for a message without any."""
        scan = MessageScan()
        payload = self.payload
        scan.scan(payload, 0, len(payload), 3, True)
        if scan.annotations_start < 0:
            return None
        value = decode(payload, scan.annotations_start, scan.annotations_end)[0]
        assert isinstance(value, Described)  # noqa: S101 - every section is
        assert isinstance(value.value, dict)  # noqa: S101 - the scan saw a map
        return value.value

    @property
    def body(self) -> bytes:
        """The content of the data sections, one after the other."""
        payload, offset, body = self.payload, 0, b""
        while offset < len(payload):
            section, offset = decode(payload, offset, len(payload))
            if isinstance(section, Described) and section.descriptor == _DATA:
                assert isinstance(section.value, bytes)  # noqa: S101 - by its section
                body += section.value
        return body

    def settle(self, state: object = Accepted(), settled: bool = True) -> None:
        """Tell the router the receiver's state (None for a settlement without one), and with ``settled`` forget it."""
        code, encoded = _encoded(state)
        self.delivery.link.session.settle_incoming(self.delivery, code, encoded, settled)


def compose(
    body: bytes = b"",
    *,
    to: str | None = None,
    user_id: bytes | None = None,
    subject: str | None = None,
    priority: int | None = None,
    delivery_annotations: dict[str, object] | None = None,
    annotations: dict[str, object] | None = None,
    application_properties: dict[str, object] | None = None,
) -> bytes:
    """An encoded message with ``body`` in one data section, and of the other sections those that are asked for."""
    sections: list[bytes] = []
    if priority is not None:
        sections.append(_section(0x70, [None, UByte(priority)]))
    if delivery_annotations is not None:
        sections.append(_section(0x71, _symbols(delivery_annotations)))
    if annotations is not None:
        sections.append(_section(0x72, _symbols(annotations)))
    if to is not None or user_id is not None or subject is not None:
        properties = [None, user_id, to, subject]
        sections.append(_section(0x73, properties[:3] if subject is None else properties))
    if application_properties is not None:
        sections.append(_section(0x74, application_properties))
    sections.append(_section(_DATA, body))
    return b"".join(sections)


def _section(code: int, value: object) -> bytes:
    return encode(Described(ULong(code), value))


def _symbols(annotations: dict[str, object]) -> dict[Symbol, object]:
    return {Symbol(name): value for name, value in annotations.items()}


def _encoded(state: object) -> tuple[int, bytes | None]:
    """A state's descriptor (0 for none, or for one outside the standard) and its octets."""
    if state is None:
        return 0, None
    encoded = state if isinstance(state, bytes) else encode_state(state)  # type: ignore[arg-type]
    return (encoded[2] if encoded[1] == 0x53 else 0), encoded


def _decoded(state: bytes | None) -> object:
    return None if state is None else decode_state(state, 0, len(state))[0]


def _take(connection: Connection) -> bytes:
    """What stands in a connection's output, which is empty afterwards."""
    taken = bytes(connection.out)
    connection.out.clear()
    return taken
