"""Any acts of a peer and of ours keep both windows of a session as the standard's sums say; overruns alone end one.

Each octet is an act: its low three bits say which, the others how often or how large. The reference keeps the peer's
sums (AMQP 1.0 part 2, 2.5.6) from the frames alone. Beyond them: no promised window is narrowed, no transfer that fits
in the peer's window waits, and a window that is half used opens again unless something is held.

Allowed: nothing. Only a transfer beyond the window ends the session.
"""

from __future__ import annotations

from typing import Any

from tests.script import decode, encode
from trouter.engine.connection import Connection
from trouter.engine.events import LinkAttached, SessionBegun
from trouter.engine.limits import EngineLimits
from trouter.engine.ports import Budget, Delivery, LinkSink
from trouter.wire.framing import AMQP_HEADER
from trouter.wire.performatives import Attach, Begin, End, Flow, Open, Source, Target, Transfer

COVERS = ("trouter.engine.session", "trouter.engine.link")

MASK32 = 0xFFFFFFFF
FRAME_BYTES = 512
WINDOW = 8
WINDOW_BYTES = WINDOW * FRAME_BYTES
PAYLOAD = bytes(400)
CREDIT = 100_000
#: Both sides count from just below the wrap.
OUR_FIRST = 0xFFFFFFFE
PEER_FIRST = 0xFFFFFFF0
LIMITS = EngineLimits(max_frame_bytes=FRAME_BYTES, session_window_frames=WINDOW, first_outgoing_id=OUR_FIRST)
OPENING = (
    Open("peer", max_frame_size=FRAME_BYTES),
    Begin(next_outgoing_id=PEER_FIRST, incoming_window=4, outgoing_window=WINDOW),
    Attach("in", 0, False, source=Source("a"), target=Target("b"), initial_delivery_count=0),
    Attach("out", 1, True, source=Source("a"), target=Target("b")),
)


class Sink(LinkSink):
    """Holds what comes until it is released, and sends what is queued, in order."""

    def __init__(self) -> None:
        self.queue: list[tuple[Delivery, int]] = []

    def on_transfer(self, link: Any, delivery: Delivery, data: bytes, start: int, end: int) -> None:
        link.session.hold(end - start)

    def on_credit(self, link: Any) -> None:
        while self.queue and (self.queue[0][0].begun or link.ready()):
            delivery, size = self.queue[0]
            delivery.offset = link.send(delivery, bytes(size), delivery.offset, size, False)
            if not delivery.complete:
                break
            del self.queue[0]


class Talk:
    """A peer that counts as the standard says, and the engine that it talks to."""

    def __init__(self) -> None:
        self.sink = Sink()
        self.connection = Connection(LIMITS, Open("we", max_frame_size=FRAME_BYTES), [], None, True, Budget(1 << 30))
        #: Transfer frames that the peer sent, and how many it may still send.
        self.sent = 0
        self.remote_window = WINDOW
        #: The last of them leaves its message incomplete.
        self.begun = False
        #: Transfer frames that the peer received, and how many more it takes.
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
                link: Any = event.link
                link.sink = self.sink
                link.attach(event.attach.source, event.attach.target)
                if link.incoming:
                    link.grant(CREDIT)
                else:
                    self.out = link
        self.look()
        self.flow(0, handle=1, delivery_count=OUR_FIRST, link_credit=CREDIT)

    def transfers(self, count: int, more: bool) -> None:
        """Send this many frames of the peer's at once; ``more`` says whether each leaves its message incomplete."""
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
        """Send a frame whatever the window is: only the rest of a message is borne with, for a window more."""
        bearable = self.remote_window > 0 or (self.begun and self.remote_window > -WINDOW)
        self.transfers(1, more)
        if not bearable:
            self.ended = True
            self.sent -= 1  # what ends the session is not received

    def flow(self, unseen: int, **fields: Any) -> None:
        """Open the peer's window, before it saw the last ``unseen`` frames."""
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
        """We send a message, as far as it goes now."""
        delivery = Delivery(self.out)
        delivery.settled = True
        self.sink.queue.append((delivery, size))
        if not self.out.waiting:
            self.sink.on_credit(self.out)

    def look(self) -> None:
        """Hold everything that we wrote to the peer's sums."""
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
            assert self.session.held_bytes or self.remote_window * 2 > WINDOW, "a window that stays half closed"

    def take(self, flow: Flow) -> None:
        """Check a flow of ours by the peer's sums: it saw every frame, and the window is as it was or opened again."""
        assert flow.next_incoming_id == (PEER_FIRST + self.sent) & MASK32, "next-incoming-id"
        assert flow.next_outgoing_id == (OUR_FIRST + self.received) & MASK32, "next-outgoing-id"
        room = WINDOW - -(-self.session.held_bytes * WINDOW // WINDOW_BYTES)
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
            talk.session.release(min(talk.session.held_bytes, count * len(PAYLOAD)))
        talk.look()
        if talk.ended:
            break
