"""Any bytes from a peer, at any point of a conversation and in any pieces, raise nothing; the engine answers in frames.

The first byte chooses the conversation and the second the size of the pieces. The target also checks that no frame
exceeds the agreed size, that buffered data and deliveries stay within window and credit, that a detached link has no
handle, that what the data path keeps of states (``mapped``, ``silent``, ``attached``) is what the states say, and that
the engine sends nothing after the close.

Allowed: nothing. The engine reports each fault of the peer as an event.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from tests.script import decode
from trouter.engine.connection import Connection
from trouter.engine.events import (
    ConnectionClosed,
    ConnectionOpened,
    Event,
    LinkAttached,
    LinkDetached,
    SaslChallengeReceived,
    SaslFinished,
    SaslInitReceived,
    SaslMechanismsOffered,
    SaslMechanismsWanted,
    SaslResponseReceived,
    SessionBegun,
    SessionEnded,
)
from trouter.engine.limits import EngineLimits
from trouter.engine.link import IncomingLink, OutgoingLink, add_link
from trouter.engine.ports import Budget, Delivery, LinkPort, LinkSink
from trouter.engine.sasl import SaslClient, SaslServer
from trouter.engine.session import Session
from trouter.engine.states import LinkState, SessionState
from trouter.testing.fuzz import behind, frames
from trouter.wire.framing import HEADER_BYTES
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
#: An input is fed in about this many reads at most; the target `framing` also feeds single bytes.
MAX_PIECES = 16
ACCEPTED = b"\x00\x53\x24\x45"

#: The maximum that a connection holds: links (two of them opened by the engine), sessions, and per session handles and
#: deliveries.
MOST_LINKS = LIMITS.max_links + 2
MOST_SESSIONS = LIMITS.channel_max + 2
MOST_HANDLES = LIMITS.handle_max + 1
MOST_INCOMING = LIMITS.max_links * (CREDIT + 1) + 1000
MOST_OUTGOING = MOST_SENT * LIMITS.max_links
#: One side has sent its end.
ENDED: Final = frozenset(
    (
        SessionState.BEGIN_END_RECEIVED,
        SessionState.END_SENT,
        SessionState.END_RECEIVED,
        SessionState.DISCARDING,
        SessionState.END,
    )
)


class Sent(Delivery):
    """A delivery that is sent, and the bytes of it that are written."""

    offset = 0


class Sink(LinkSink):
    """A link sink that settles each delivery that arrives, and sends a small message whenever it has credit."""

    def __init__(self) -> None:
        self.left = MOST_SENT
        self.pending: Sent | None = None

    def on_transfer(self, link: LinkPort, delivery: Delivery, data: bytes, start: int, end: int) -> None:
        assert isinstance(link, IncomingLink)
        assert 0 <= start <= end <= len(data)
        session = link.session
        assert isinstance(session, Session)
        assert session.windows.incoming_frames >= -session.windows.max_incoming_frames
        link.session.windows.hold_bytes(end - start)
        link.session.release_bytes(end - start)
        if delivery.complete:
            second = delivery.tag is not None and delivery.tag[:1] == b"2"
            link.session.settle_incoming(delivery, 0x24, ACCEPTED, not second)
            link.grant(1)

    def on_aborted(self, link: LinkPort, delivery: Delivery) -> None:
        assert isinstance(link, IncomingLink)
        link.grant(1)

    def on_disposition(self, delivery: Delivery) -> None:
        session = delivery.link.session
        session.settle_outgoing(delivery, delivery.remote_code, delivery.remote_state, True)
        session.settle_incoming(delivery, delivery.remote_code, delivery.remote_state, True)

    def on_credit(self, link: LinkPort) -> None:
        assert isinstance(link, OutgoingLink)
        while self.left > 0:
            delivery = self.pending
            if delivery is None:
                if not link.is_ready():
                    break
                delivery = self.pending = Sent(link)
                if self.left % 3 == 0:
                    delivery.mark_settled()
                delivery.message_format = self.left % 2
            delivery.offset = link.send(delivery, bytes(700), delivery.offset, 700, False)
            if not delivery.complete:
                if self.left % 5 == 0:
                    link.abort_delivery(delivery)
                    self.pending = None
                break
            self.pending = None
            self.left -= 1
        if link.drain:
            link.return_credit()


class Holder:
    """The application above the engine: it accepts each event of the peer and checks the limits after each step."""

    def __init__(self, how: int) -> None:
        self.budget = Budget(10_000)
        server, layer = bool(how & 1), bool(how & 2)
        sasl: SaslServer | SaslClient | None = None
        if layer:
            offer = None if how & 16 else OFFER
            sasl = SaslServer(offer, bool(how & 4), LIMITS.max_sasl_rounds) if server else SaslClient(3)
        self.connection = Connection(LIMITS, OPENING, [], sasl, server, self.budget)
        self.sasl = sasl
        self.lazy = bool(how & 8)  # answers only after the whole input was read
        self.closes = 0
        self.agreed = 512
        if not server and not layer:
            self.begin()

    def begin(self) -> None:
        """Open a connection as a client: the open, a session and two links."""
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
        events = self.connection.events
        for _ in range(1000):
            if not events:
                break
            event = events.pop(0)
            assert not self.closes, f"{event} behind the close"
            self.handle(event)
        self.look()

    def handle(self, event: Event) -> None:
        ANSWERS[type(event)](self, event)

    def mechanisms_wanted(self, event: SaslMechanismsWanted) -> None:
        assert isinstance(self.sasl, SaslServer)
        self.sasl.offer_mechanisms(OFFER)
        self.connection.receive_data(b"")

    def sasl_init(self, event: SaslInitReceived) -> None:
        assert isinstance(self.sasl, SaslServer)
        if event.mechanism == "X" and not event.response:
            self.sasl.send_challenge(b"?")
        else:
            self.sasl.send_outcome(0 if event.mechanism == "ANONYMOUS" else 1)
        self.connection.receive_data(b"")

    def sasl_response(self, event: SaslResponseReceived) -> None:
        assert isinstance(self.sasl, SaslServer)
        self.sasl.send_challenge(b"?")
        self.connection.receive_data(b"")

    def mechanisms_offered(self, event: SaslMechanismsOffered) -> None:
        assert isinstance(self.sasl, SaslClient)
        self.sasl.send_init("ANONYMOUS", b"me")

    def sasl_challenge(self, event: SaslChallengeReceived) -> None:
        assert isinstance(self.sasl, SaslClient)
        self.sasl.send_response(b"!")

    def sasl_finished(self, event: SaslFinished) -> None:
        pass

    def opened(self, event: ConnectionOpened) -> None:
        self.agreed = event.open.max_frame_size
        self.connection.open()

    def begun(self, event: SessionBegun) -> None:
        event.session.begin()

    def ended(self, event: SessionEnded) -> None:
        event.session.end()
        self.connection.drop_session(event.session)

    def closed(self, event: ConnectionClosed) -> None:
        self.closes += 1
        self.connection.close()

    def detached(self, event: LinkDetached) -> None:
        event.link.detach(event.closed)

    def attach(self, event: LinkAttached) -> None:
        link = event.link
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
        out = connection.out
        if out or connection.outbox:
            self.look_at_frames(bytes(out))
            out.clear()
            connection.outbox.clear()
        connection.resume_output()
        connection.tick(1.0)
        links = 0
        sessions = connection.sessions()
        for session in sessions:
            by_handle = session.links.by_handle
            links += len(by_handle)
            assert session.silent == (connection.silent or session.state in ENDED)
            assert session.mapped == (session.state is SessionState.MAPPED and not session.silent)
            for link in by_handle.values():
                assert link.attached == (link.state is LinkState.ATTACHED and session.mapped)
                assert link.state is not LinkState.END or link.reported, f"{link.name!r} is gone and has a handle"
            assert session.windows.held_bytes == 0
            assert (
                -session.windows.max_incoming_frames
                <= session.windows.incoming_frames
                <= session.windows.max_incoming_frames
            )
            assert len(session.links.by_remote_handle) <= MOST_HANDLES
            assert session.deliveries.incoming.count <= MOST_INCOMING
            assert session.deliveries.outgoing.count <= MOST_OUTGOING
        assert links == connection.link_count <= MOST_LINKS
        assert self.budget.held == 0
        assert len(sessions) <= MOST_SESSIONS

    def look_at_frames(self, octets: bytes) -> None:
        agreed, at, closed = self.agreed, 0, False
        while at < len(octets):
            assert not closed, "something follows a close"
            size = HEADER_BYTES if octets.startswith(b"AMQP", at) else int.from_bytes(octets[at : at + 4], "big")
            closed = is_close(octets[at : at + size])
            if size > 512 and self.sasl is not None and not self.sasl.done:
                agreed = 600
            assert size <= agreed, f"{size} bytes to a peer that takes {agreed}"
            at += size


ANSWERS: Final[dict[type, Callable[[Holder, Any], None]]] = {
    SaslMechanismsWanted: Holder.mechanisms_wanted,
    SaslInitReceived: Holder.sasl_init,
    SaslResponseReceived: Holder.sasl_response,
    SaslMechanismsOffered: Holder.mechanisms_offered,
    SaslChallengeReceived: Holder.sasl_challenge,
    SaslFinished: Holder.sasl_finished,
    ConnectionOpened: Holder.opened,
    SessionBegun: Holder.begun,
    LinkAttached: Holder.attach,
    LinkDetached: Holder.detached,
    SessionEnded: Holder.ended,
    ConnectionClosed: Holder.closed,
}


@lru_cache(maxsize=20_000)
def is_close(octets: bytes) -> bool:
    """Return whether these bytes, which must be one frame or a protocol header, are a close; most are sent often."""
    (sent,) = decode(octets)
    return isinstance(sent.performative, Close)


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
    holder.connection.drop_references()
    assert not holder.connection.sessions()
