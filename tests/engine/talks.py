"""Conversations brought to the state that a test needs, and other parts that the tests of the engine share."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from tests.script import Script
from trouter.engine.connection import Connection
from trouter.engine.events import ConnectionOpened, LinkAttached, SessionBegun
from trouter.engine.limits import EngineLimits
from trouter.engine.link import IncomingLink, OutgoingLink
from trouter.engine.link_base import Link
from trouter.engine.ports import Delivery, LinkPort, LinkSink
from trouter.engine.sasl import SaslClient, SaslServer
from trouter.engine.session import Session
from trouter.wire.framing import AMQP_HEADER
from trouter.wire.performatives import Attach, Begin, Flow, Open, Source, Target, Transfer

#: Just below the wrap of 32 bits, for both ends, so that every counter crosses it.
NEAR_WRAP = 0xFFFFFFF0
MASK32 = 0xFFFFFFFF
LIMITS = EngineLimits(first_outgoing_id=NEAR_WRAP, idle_timeout_s=0.0)
ACCEPTED = b"\x00\x53\x24\x45"
RELEASED = b"\x00\x53\x26\x45"
OPEN = Open("peer")

SomeLink = TypeVar("SomeLink", bound=Link)


class Sent(Delivery):
    """A delivery that is sent, and the bytes of it that are written."""

    offset = 0


class Recorder(LinkSink):
    """An owner of a link that records each call and does nothing."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.deliveries: list[Delivery] = []
        self.bodies: dict[int, bytes] = {}

    def names(self) -> list[str]:
        """Return the names of the calls since the last time."""
        names = [name for name, _ in self.calls]
        self.calls.clear()
        return names

    def on_transfer(self, link: LinkPort, delivery: Delivery, data: bytes, start: int, end: int) -> None:
        self.calls.append(("transfer", data[start:end]))
        if delivery not in self.deliveries:
            self.deliveries.append(delivery)
        number = self.deliveries.index(delivery)
        self.bodies[number] = self.bodies.get(number, b"") + data[start:end]

    def on_aborted(self, link: LinkPort, delivery: Delivery) -> None:
        self.calls.append(("aborted", delivery))

    def on_disposition(self, delivery: Delivery) -> None:
        self.calls.append(("disposition", delivery))

    def on_credit(self, link: LinkPort) -> None:
        assert isinstance(link, OutgoingLink)
        self.calls.append(("credit", link.credit))

    def on_drained(self, link: LinkPort) -> None:
        assert isinstance(link, IncomingLink)
        self.calls.append(("drained", link.credit))

    def on_overdrawn(self, link: LinkPort) -> None:
        assert isinstance(link, IncomingLink)
        self.calls.append(("overdrawn", link.credit))

    def on_refused(self, link: LinkPort, delivery: Delivery) -> None:
        self.calls.append(("refused", delivery))


def server(limits: EngineLimits = LIMITS, sasl: SaslServer | None = None, **fields: Any) -> Connection:
    """Return an engine at the server's end."""
    return Connection(limits, Open("R1", **fields), [], sasl, server=True)


def client(limits: EngineLimits = LIMITS, sasl: SaslClient | None = None, **fields: Any) -> Connection:
    """Return an engine at the client's end."""
    return Connection(limits, Open("C1", **fields), [], sasl, server=False)


def opened(limits: EngineLimits = LIMITS, peer: Open = OPEN, *, piecemeal: bool = False) -> Script:
    """Return the script of a server that has exchanged opens."""
    talk = Script(server(limits), piecemeal=piecemeal)
    talk.peer_sends(AMQP_HEADER, peer).engine_reports(ConnectionOpened)
    talk.connection.open()
    talk.engine_sends(AMQP_HEADER, Open)
    return talk


def begin(**fields: Any) -> Begin:
    """Return the peer's begin, its ids near the wrap too."""
    numbers = {"next_outgoing_id": NEAR_WRAP, "incoming_window": 1000, "outgoing_window": 1000}
    return Begin(**(numbers | fields))


def attach(name: str = "one", handle: int = 0, *, sends: bool = True, **fields: Any) -> Attach:
    """Return the peer's attach of a link on which it ``sends`` or receives."""
    if sends:
        fields.setdefault("initial_delivery_count", NEAR_WRAP)
    return Attach(name, handle, not sends, source=Source("here"), target=Target("there"), **fields)


def transfer(number: int = 0, *, handle: int = 0, **fields: Any) -> Transfer:
    """Return the first frame of the peer's delivery ``number``."""
    return Transfer(handle, (NEAR_WRAP + number) & MASK32, b"tag%d" % number, **fields)


def flow(sent: int = 0, window: int = 1000, **fields: Any) -> Flow:
    """Return the peer's flow after it received ``sent`` transfer frames."""
    return Flow(
        next_incoming_id=(NEAR_WRAP + sent) & MASK32,
        incoming_window=window,
        next_outgoing_id=NEAR_WRAP,
        outgoing_window=1000,
        **fields,
    )


@dataclass
class Talk(Generic[SomeLink]):
    """A server with one session and one link, of either direction."""

    script: Script
    session: Session
    link: SomeLink
    sink: Recorder = field(default_factory=Recorder)

    @property
    def connection(self) -> Connection:
        return self.script.connection


def begun(
    limits: EngineLimits = LIMITS, peer: Open = OPEN, *, piecemeal: bool = False, **fields: Any
) -> tuple[Script, Session]:
    """Return the script and session of a server with the peer's session on channel 0."""
    talk = opened(limits, peer, piecemeal=piecemeal)
    talk.peer_sends(begin(**fields))
    (event,) = talk.connection.events
    assert isinstance(event, SessionBegun)
    talk.connection.events.clear()
    event.session.begin()
    talk.engine_sends(Begin)
    return talk, event.session


def attached(talk: Script, peer: Attach, channel: int = 0) -> tuple[Link, Recorder]:
    """Accept the link that ``peer`` attaches; return it, with a recorder as its owner."""
    talk.peer_sends(peer, channel=channel)
    (event,) = talk.connection.events
    assert isinstance(event, LinkAttached)
    talk.connection.events.clear()
    sink = Recorder()
    event.link.sink = sink
    event.link.attach(peer.source, peer.target)
    talk.engine_sends(Attach)
    return event.link, sink


def receiving(
    credit: int = 100, limits: EngineLimits = LIMITS, peer: Open = OPEN, *, piecemeal: bool = False, **fields: Any
) -> Talk[IncomingLink]:
    """Return a server that receives on a link with credit."""
    script, session = begun(limits, peer, piecemeal=piecemeal)
    link, sink = attached(script, attach(**fields))
    assert isinstance(link, IncomingLink)
    if credit:
        link.grant(credit)
        script.engine_sends(Flow)
    return Talk(script, session, link, sink)


def sending(
    credit: int = 100,
    window: int = 1000,
    limits: EngineLimits = LIMITS,
    peer: Open = OPEN,
    *,
    piecemeal: bool = False,
    **fields: Any,
) -> Talk[OutgoingLink]:
    """Return a server that sends on a link with credit."""
    script, session = begun(limits, peer, piecemeal=piecemeal)
    link, sink = attached(script, attach(sends=False, **fields))
    assert isinstance(link, OutgoingLink)
    script.peer_sends(flow(window=window, handle=0, delivery_count=NEAR_WRAP, link_credit=credit))
    sink.names()
    return Talk(script, session, link, sink)


def send(link: OutgoingLink, body: bytes = b"body", *, number: int = 0, settled: bool = False) -> Sent:
    """Send a delivery, as far as the window permits now."""
    delivery = Sent(link)
    delivery.number = number
    if settled:
        delivery.mark_settled()
    delivery.offset = link.send(delivery, body, 0, len(body), False)
    return delivery


def with_limits(**fields: Any) -> EngineLimits:
    """Return the limits of most tests, with ``fields`` changed."""
    return replace(LIMITS, **fields)
