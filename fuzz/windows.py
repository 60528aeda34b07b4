"""Any acts of both ends keep both windows of a session as the standard computes them; only an overrun ends the session.

Each byte is an act: its low three bits choose it, the others its count or size. The reference computes the peer's
windows (AMQP 1.0 part 2, 2.5.6) from the frames alone. The target also checks that the engine narrows no advertised
window, that no transfer that fits in the peer's window waits, and that a window that is half used opens again unless
the application holds data.

Allowed: nothing. Only a transfer beyond the window ends the session.
"""

from __future__ import annotations

from typing import Any

from tests.script import decode, encode
from trouter.engine.connection import Connection
from trouter.engine.events import LinkAttached, SessionBegun
from trouter.engine.limits import EngineLimits
from trouter.engine.link import IncomingLink, OutgoingLink
from trouter.engine.ports import Budget, Delivery, LinkPort, LinkSink
from trouter.wire.framing import AMQP_HEADER
from trouter.wire.performatives import Attach, Begin, End, Flow, Open, Source, Target, Transfer

COVERS = ("trouter.engine.session", "trouter.engine.link")

MASK32 = 0xFFFFFFFF
FRAME_BYTES = 512
WINDOW = 8
WINDOW_BYTES = WINDOW * FRAME_BYTES
PAYLOAD = bytes(400)
CREDIT = 100_000
#: Both sides count from a number just below the wrap.
OUR_FIRST = 0xFFFFFFFE
PEER_FIRST = 0xFFFFFFF0
LIMITS = EngineLimits(max_frame_bytes=FRAME_BYTES, session_window_frames=WINDOW, first_outgoing_id=OUR_FIRST)
OPENING = (
    Open("peer", max_frame_size=FRAME_BYTES),
    Begin(next_outgoing_id=PEER_FIRST, incoming_window=4, outgoing_window=WINDOW),
    Attach("in", 0, False, source=Source("a"), target=Target("b"), initial_delivery_count=0),
    Attach("out", 1, True, source=Source("a"), target=Target("b")),
)


class Sent(Delivery):
    """A delivery that is sent, and the bytes of it that are written."""

    offset = 0


class Sink(LinkSink):
    """A link sink that holds incoming data until it is released, and sends the queued messages in order."""

    def __init__(self) -> None:
        self.queue: list[tuple[Sent, int]] = []

    def on_transfer(self, link: LinkPort, delivery: Delivery, data: bytes, start: int, end: int) -> None:
        assert isinstance(link, IncomingLink)
        link.session.windows.hold_bytes(end - start)

    def on_credit(self, link: LinkPort) -> None:
        assert isinstance(link, OutgoingLink)
        while self.queue and (self.queue[0][0].begun or link.is_ready()):
            delivery, size = self.queue[0]
            delivery.offset = link.send(delivery, bytes(size), delivery.offset, size, False)
            if not delivery.complete:
                break
            del self.queue[0]


class Talk:
    """A peer that computes its windows as the standard defines them, and the engine that it talks to."""

    def __init__(self) -> None:
        self.sink = Sink()
        self.connection = Connection(LIMITS, Open("we", max_frame_size=FRAME_BYTES), [], None, True, Budget(1 << 30))
        #: Count of transfer frames that the peer sent, and of those that it may still send.
        self.sent = 0
        self.remote_window = WINDOW
        #: Whether the message of the peer's last frame is incomplete.
        self.begun = False
        #: Count of transfer frames that the peer received, and of those that it still takes.
        self.received = 0
        self.window = 4
        self.ended = False
        self.connection.receive_data(AMQP_HEADER + encode(OPENING[0]))
        self.connection.open()
        self.connection.receive_data(b"".join(map(encode, OPENING[1:])))
        for event in self.connection.events:
            if isinstance(event, SessionBegun):
                self.session = event.session
                self.session.begin()
            elif isinstance(event, LinkAttached):
                link = event.link
                link.sink = self.sink
                link.attach(event.attach.source, event.attach.target)
                if isinstance(link, IncomingLink):
                    link.grant(CREDIT)
                elif isinstance(link, OutgoingLink):
                    self.out = link
        self.look()
        self.flow(0, handle=1, delivery_count=OUR_FIRST, link_credit=CREDIT)

    def transfers(self, count: int, more: bool) -> None:
        """Send ``count`` frames of the peer at once; ``more`` says whether each leaves its message incomplete."""
        octets = b""
        for _ in range(count):
            first = None if self.begun else (PEER_FIRST + self.sent) & MASK32
            transfer = Transfer(0, first, b"t" if first is not None else None, 0, settled=True, more=more)
            octets += encode(transfer, payload=PAYLOAD)
            self.begun = more
            self.sent += 1
            self.remote_window -= 1
        self.connection.receive_data(octets)

    def overrun(self, more: bool) -> None:
        """Send one frame regardless of the window; the engine tolerates the rest of a message for one more window."""
        bearable = self.remote_window > 0 or (self.begun and self.remote_window > -WINDOW)
        self.transfers(1, more)
        if not bearable:
            self.ended = True
            self.sent -= 1  # the frame that ends the session does not count as received

    def flow(self, unseen: int, **fields: Any) -> None:
        """Send a flow of the peer that has not seen the last ``unseen`` frames."""
        seen = OUR_FIRST + self.received - unseen
        flow = Flow(
            next_incoming_id=seen & MASK32,
            incoming_window=self.window + unseen,
            next_outgoing_id=(PEER_FIRST + self.sent) & MASK32,
            outgoing_window=WINDOW,
            **fields,
        )
        self.connection.receive_data(encode(flow))

    def message(self, size: int) -> None:
        """Send a message of ``size`` bytes, as far as the window permits now."""
        delivery = Sent(self.out)
        delivery.mark_settled()
        self.sink.queue.append((delivery, size))
        if not self.out.waiting:
            self.sink.on_credit(self.out)

    def look(self) -> None:
        """Check the frames that the engine wrote against the peer's windows."""
        connection = self.connection
        connection.flush()
        octets = bytes(connection.out)
        connection.out.clear()
        connection.outbox.clear()
        ends = 0
        for one in decode(octets):
            what = one.performative
            if isinstance(what, Transfer):
                self.window -= 1
                self.received += 1
                assert self.window >= 0, "a transfer beyond the peer's window"
            elif isinstance(what, Flow):
                self.take(what)
            elif isinstance(what, End):
                ends += 1
                assert what.error is not None
                assert what.error.condition == "amqp:session:window-violation"
        assert ends == self.ended, f"{ends} ends of a session with {self.remote_window} frames left"
        if not ends:
            assert not self.sink.queue or self.window == 0, "a transfer that fits waits"
            assert self.session.windows.held_bytes or self.remote_window * 2 > WINDOW, "a window that stays half closed"

    def take(self, flow: Flow) -> None:
        """Check a flow of the engine: it counts every frame, and its window is unchanged or wider."""
        assert flow.next_incoming_id == (PEER_FIRST + self.sent) & MASK32, "next-incoming-id"
        assert flow.next_outgoing_id == (OUR_FIRST + self.received) & MASK32, "next-outgoing-id"
        room = WINDOW - -(-self.session.windows.held_bytes * WINDOW // WINDOW_BYTES)
        left = max(self.remote_window, 0)
        assert flow.incoming_window in (left, max(left, room)), (
            f"window {flow.incoming_window}, {left} left, {room} free"
        )
        if flow.incoming_window > left:
            self.remote_window = flow.incoming_window


def check(data: bytes) -> None:
    talk = Talk()
    talk.look()
    for act in data:
        kind, count = act & 7, act >> 3
        if kind <= 1:
            talk.transfers(min(count, max(talk.remote_window, 0)), kind == 1)
        elif kind == 2:
            for _ in range(1 + (count >> 1)):
                if not talk.ended:
                    talk.overrun(bool(count & 1))
        elif kind == 3:
            talk.window = count & 15
            talk.flow(min(count >> 4, talk.received))
        elif kind == 4:
            talk.flow(0, echo=True)
        elif kind == 5:
            talk.message(count * 100)
        else:
            talk.session.release_bytes(min(talk.session.windows.held_bytes, count * len(PAYLOAD)))
        talk.look()
        if talk.ended:
            break
