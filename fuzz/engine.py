"""Any octets from a peer, at any point of a conversation and in any pieces, raise nothing; what we answer is frames.

The first octet chooses the conversation and the second how the rest is cut. Beyond that: no frame of ours is larger
than was agreed, what is held stays within window and credit, what is gone holds no link, and nothing follows the close.

Allowed: nothing. Every fault of a peer is an event.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from trouter.engine.connection import Connection
from trouter.engine.events import (
    ConnectionClosed,
    ConnectionOpened,
    Event,
    LinkAttached,
    LinkDetached,
    SaslChallengeReceived,
    SaslInitReceived,
    SaslMechanismsOffered,
    SaslMechanismsWanted,
    SaslResponseReceived,
    SessionBegun,
    SessionEnded,
)
from trouter.engine.limits import EngineLimits
from trouter.engine.link import IncomingLink, OutgoingLink, add_link
from trouter.engine.ports import Budget, Delivery, LinkSink
from trouter.engine.sasl import SaslClient, SaslServer
from trouter.engine.states import LinkState
from trouter.testing.fuzz import behind, frames
from trouter.testing.script import decode
from trouter.wire.performatives import Close, Open, Source, Target

MUTATOR = behind(2, frames)
COVERS = ("trouter.engine", "trouter.wire.framing", "trouter.wire.transfers", "trouter.wire.outgoing")

LIMITS = EngineLimits(
    max_frame_bytes=512,
    max_sasl_frame_bytes=600,
    channel_max=7,
    handle_max=7,
    max_links=12,
    session_window_frames=8,
    max_message_bytes=3000,
    max_sasl_rounds=3,
    high_water_bytes=4096,
    first_outgoing_id=0xFFFFFFFE,
)
OPENING = Open("fuzzed", max_frame_size=LIMITS.max_frame_bytes, channel_max=LIMITS.channel_max)
OFFER = ("ANONYMOUS", "X")
CREDIT = 5
MOST_SENT = 40
#: An input comes in about as many reads at most; target framing reads octet by octet.
MAX_PIECES = 16
ACCEPTED = b"\x00\x53\x24\x45"


class Sink(LinkSink):
    """Takes what comes, settles it, and sends a little whenever it may."""

    def __init__(self) -> None:
        self.left = MOST_SENT
        self.pending: Delivery | None = None

    def on_transfer(self, link: Any, delivery: Delivery, data: bytes, start: int, end: int) -> None:
        assert 0 <= start <= end <= len(data)
        assert link.session.incoming_window >= -link.session.window_frames
        link.session.hold(end - start)
        link.session.release(end - start)
        if delivery.complete:
            second = delivery.tag is not None and delivery.tag[:1] == b"2"
            link.session.settle_incoming(delivery, 0x24, ACCEPTED, not second)
            link.grant(1)

    def on_aborted(self, link: Any, delivery: Delivery) -> None:
        link.grant(1)

    def on_disposition(self, delivery: Delivery) -> None:
        session = delivery.link.session
        session.settle_outgoing(delivery, delivery.remote_code, delivery.remote_state, True)
        session.settle_incoming(delivery, delivery.remote_code, delivery.remote_state, True)

    def on_credit(self, link: Any) -> None:
        while self.left > 0:
            delivery = self.pending
            if delivery is None:
                if not link.ready():
                    break
                delivery = self.pending = Delivery(link)
                delivery.settled = self.left % 3 == 0
                delivery.message_format = self.left % 2
            delivery.offset = link.send(delivery, bytes(700), delivery.offset, 700, False)
            if not delivery.complete:
                if self.left % 5 == 0:
                    link.abort(delivery)
                    self.pending = None
                break
            self.pending = None
            self.left -= 1
        if link.drain:
            link.drained()


class Holder:
    """Says yes to everything, and looks at all that happens."""

    def __init__(self, how: int) -> None:
        self.budget = Budget(10_000)
        server, layer = bool(how & 1), bool(how & 2)
        sasl: Any = None
        if layer:
            offer = None if how & 16 else OFFER
            sasl = SaslServer(offer, bool(how & 4), LIMITS.max_sasl_rounds) if server else SaslClient(3)
        self.connection = Connection(LIMITS, OPENING, [], sasl, server, self.budget)
        self.sasl = sasl
        self.lazy = bool(how & 8)  # answers only when everything has been read
        self.closes = 0
        self.agreed = 512
        if not server and not layer:
            self.begin()

    def begin(self) -> None:
        """Send a client's first words."""
        connection = self.connection
        connection.open()
        session = connection.add_session()
        session.begin()
        for number in range(2):
            link = add_link(session, str(number), number == 0)
            link.sink = Sink()
            link.attach(Source("a"), Target("b"))
            if isinstance(link, IncomingLink):
                link.grant(CREDIT)

    def feed(self, octets: bytes) -> None:
        self.connection.receive_data(octets)
        if not self.lazy:
            self.answer()

    def answer(self) -> None:
        connection = self.connection
        for _ in range(1000):
            if not connection.events:
                break
            event: Event = connection.events.pop(0)
            assert not self.closes, f"{event} behind the close"
            self.handle(event)
        self.look()

    def handle(self, event: Event) -> None:
        connection = self.connection
        if isinstance(event, SaslMechanismsWanted):
            self.sasl.offer(OFFER)
            connection.receive_data(b"")
        elif isinstance(event, SaslInitReceived | SaslResponseReceived):
            if isinstance(event, SaslResponseReceived) or (event.mechanism == "X" and not event.response):
                self.sasl.challenge(b"?")
            else:
                self.sasl.finish(0 if event.mechanism == "ANONYMOUS" else 1)
            connection.receive_data(b"")
        elif isinstance(event, SaslMechanismsOffered):
            self.sasl.begin("ANONYMOUS", b"me")
        elif isinstance(event, SaslChallengeReceived):
            self.sasl.respond(b"!")
        elif isinstance(event, ConnectionOpened):
            self.agreed = event.open.max_frame_size
            connection.open()
        elif isinstance(event, SessionBegun):
            event.session.begin()
        elif isinstance(event, LinkAttached):
            self.attach(event)
        elif isinstance(event, LinkDetached):
            event.link.detach(event.closed)
        elif isinstance(event, SessionEnded):
            event.session.end()
            connection.drop_session(event.session)
        elif isinstance(event, ConnectionClosed):
            self.closes += 1
            connection.close()

    def attach(self, event: LinkAttached) -> None:
        link: Any = event.link
        if not isinstance(link.sink, Sink):
            link.sink = Sink()
            if event.attach.name.startswith("no"):
                link.refuse(None)
            else:
                link.attach(event.attach.source, event.attach.target)
        if isinstance(link, IncomingLink):
            link.grant(CREDIT)
        elif isinstance(link, OutgoingLink) and link.credit > 0:
            link.sink.on_credit(link)

    def look(self) -> None:
        connection = self.connection
        connection.flush()
        if connection.out or connection.outbox:
            self.look_at_frames(bytes(connection.out))
            connection.out.clear()
            connection.outbox.clear()
        connection.resume_output()
        connection.tick(1.0)
        assert connection.link_count <= LIMITS.max_links + 2
        links = 0
        for session in connection.sessions():
            links += len(session.links_by_handle)
            for link in session.links_by_handle.values():
                assert link.state is not LinkState.DETACHED or link.reported, f"{link.name!r} is gone and has a handle"
            assert session.held_bytes == 0
            assert -session.window_frames <= session.incoming_window <= session.window_frames
            assert len(session.links_by_remote_handle) <= LIMITS.handle_max + 1
            assert session.incoming.count <= LIMITS.max_links * (CREDIT + 1) + 1000
            assert session.outgoing.count <= MOST_SENT * LIMITS.max_links
        assert links == connection.link_count
        assert self.budget.held == 0
        assert len(connection.sessions()) <= LIMITS.channel_max + 2

    def look_at_frames(self, octets: bytes) -> None:
        sizes, closes = summary(octets)
        largest = max(sizes, default=0)
        agreed = 600 if largest > 512 and self.sasl is not None and not self.sasl.done else self.agreed
        assert largest <= agreed, f"{largest} octets to a peer that takes {agreed}"
        assert closes in ((), (len(sizes) - 1,))


@lru_cache(maxsize=10_000)
def summary(octets: bytes) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the sizes of the frames that these octets are, and which of them close; most is said again and again."""
    sent = decode(octets)
    closes = (at for at, one in enumerate(sent) if isinstance(one.performative, Close))
    return tuple(one.size for one in sent), tuple(closes)


def check(data: bytes) -> None:
    how, cut = (data[0], data[1]) if len(data) >= 2 else (0, 0)
    stream = data[2:]
    holder = Holder(how)
    step = max(cut, len(stream) // MAX_PIECES) if cut else len(stream) or 1
    for start in range(0, len(stream), step):
        holder.feed(stream[start : start + step])
    if holder.lazy:
        holder.answer()
    holder.connection.close()
    holder.answer()
    holder.connection.tick(100.0)
    holder.answer()
