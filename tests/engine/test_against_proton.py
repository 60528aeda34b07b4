"""trouter's engine and Proton's, joined in memory: each as client and as server of the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import proton
import pytest

from tests.engine.talks import ACCEPTED, NEAR_WRAP, RELEASED, Recorder, Sent, with_limits
from trouter.engine.connection import Connection
from trouter.engine.events import (
    ConnectionClosed,
    ConnectionOpened,
    LinkAttached,
    LinkDetached,
    SaslFinished,
    SaslInitReceived,
    SaslMechanismsOffered,
    SessionBegun,
    SessionEnded,
)
from trouter.engine.link import IncomingLink, OutgoingLink, add_link
from trouter.engine.ports import Delivery, LinkPort
from trouter.engine.sasl import SaslClient, SaslServer
from trouter.engine.states import ConnectionState
from trouter.wire.performatives import Error, Modified, Open, Rejected, Source, Target, encode_state

pytestmark = pytest.mark.interop
FRAME_BYTES = 512


class Feeder(Recorder):
    """A link sink that sends the queue as far as it may."""

    def __init__(self) -> None:
        super().__init__()
        self.queue: list[tuple[Sent, bytes]] = []

    def on_credit(self, link: LinkPort) -> None:
        assert isinstance(link, OutgoingLink)
        super().on_credit(link)
        while self.queue:
            delivery, body = self.queue[0]
            if link.waiting or (not delivery.begun and not link.is_ready()):
                return
            delivery.offset = link.send(delivery, body, delivery.offset, len(body), False)
            if not delivery.complete:
                return
            self.queue.pop(0)
        if link.drain:
            link.return_credit()


class Pair:
    """``ours`` is a server or a client, Proton the other; both accept each endpoint that the other opens."""

    def __init__(self, *, we_serve: bool, sasl: bool = False) -> None:
        layer: SaslServer | SaslClient | None = None
        if sasl:
            layer = SaslServer(("ANONYMOUS",), True) if we_serve else SaslClient()
        self.ours = Connection(
            with_limits(max_frame_bytes=FRAME_BYTES, session_window_frames=6),
            Open("ours", "host", max_frame_size=FRAME_BYTES),
            [],
            layer,
            we_serve,
        )
        self.sinks: dict[str, Feeder] = {}
        self.links: dict[str, Any] = {}
        self.seen: list[object] = []
        self.theirs = proton.Connection()
        self.theirs.container = "theirs"
        self.theirs.hostname = "host"
        self.collector = proton.Collector()
        self.theirs.collect(self.collector)
        self.transport = proton.Transport(proton.Transport.CLIENT if we_serve else proton.Transport.SERVER)
        self.transport.max_frame_size = FRAME_BYTES
        if sasl:
            # Not `require_auth`: a server with Cyrus SASL that demands authentication does not offer ANONYMOUS.
            theirs = self.transport.sasl()
            theirs.allowed_mechs("ANONYMOUS")
        self.transport.bind(self.theirs)
        self.proton_events: list[Any] = []
        if we_serve:
            self.theirs.open()
        elif not sasl:
            self.ours.open()
        self.pump()

    def pump(self) -> None:
        """Carry bytes until both are silent."""
        for _ in range(10_000):
            self.ours.flush()
            data = bytes(self.ours.out)
            self.ours.out.clear()
            self.ours.resume_output()
            pending = self.transport.pending()
            back = bytes(self.transport.peek(pending) or b"") if pending > 0 else b""
            if pending > 0:
                self.transport.pop(pending)
            if not data and not back:
                return
            while data:
                room = self.transport.capacity()
                if room <= 0:
                    break
                self.transport.push(data[:room])
                data = data[room:]
            self.answer_proton()
            self.ours.receive_data(back)
            self.answer()
        raise AssertionError("never at rest")

    def answer(self) -> None:
        ours = self.ours
        while ours.events:
            event = ours.events.pop(0)
            self.seen.append(event)
            if isinstance(event, SaslInitReceived):
                assert isinstance(ours.sasl, SaslServer)
                ours.sasl.send_outcome(0)
                ours.receive_data(b"")
            elif isinstance(event, SaslMechanismsOffered):
                assert isinstance(ours.sasl, SaslClient)
                ours.sasl.send_init("ANONYMOUS", b"us")
            elif isinstance(event, SaslFinished | ConnectionOpened):
                ours.open()
            elif isinstance(event, SessionBegun):
                event.session.begin()
            elif isinstance(event, LinkAttached):
                name = event.link.name
                self.links[name] = event.link
                event.link.sink = self.sinks.setdefault(name, Feeder())
                event.link.attach(event.attach.source, event.attach.target)
            elif isinstance(event, LinkDetached):
                event.link.detach(event.closed)
            elif isinstance(event, SessionEnded):
                event.session.end()
                ours.drop_session(event.session)
            elif isinstance(event, ConnectionClosed):
                ours.close()

    def answer_proton(self) -> None:
        while (event := self.collector.peek()) is not None:
            self.handle_proton(event)
            self.collector.pop()

    def handle_proton(self, event: Any) -> None:
        kind = event.type
        self.proton_events.append(kind)
        if kind == proton.Event.CONNECTION_REMOTE_OPEN and not event.connection.state & proton.Endpoint.LOCAL_ACTIVE:
            event.connection.open()
        elif kind == proton.Event.SESSION_REMOTE_OPEN and not event.session.state & proton.Endpoint.LOCAL_ACTIVE:
            event.session.open()
        elif kind == proton.Event.LINK_REMOTE_OPEN and not event.link.state & proton.Endpoint.LOCAL_ACTIVE:
            event.link.source.copy(event.link.remote_source)
            event.link.target.copy(event.link.remote_target)
            self.links[event.link.name + " theirs"] = event.link
            event.link.open()
        elif kind == proton.Event.LINK_REMOTE_CLOSE:
            event.link.close()
        elif kind == proton.Event.SESSION_REMOTE_CLOSE:
            event.session.close()
        elif kind == proton.Event.CONNECTION_REMOTE_CLOSE:
            event.connection.close()

    def to_them(self, name: str, *, by_us: bool) -> tuple[OutgoingLink, Any]:
        """Return a link on which trouter sends, attached by either side."""
        return self.attach(name, by_us=by_us, we_send=True)

    def to_us(self, name: str, *, by_us: bool) -> tuple[IncomingLink, Any]:
        """Return a link on which Proton sends, attached by either side."""
        return self.attach(name, by_us=by_us, we_send=False)

    def attach(self, name: str, *, by_us: bool, we_send: bool) -> tuple[Any, Any]:
        if by_us:
            mine = self.ours.add_session()
            mine.begin()
            link = add_link(mine, name, not we_send)
            self.links[name] = link
            self.sinks[name] = Feeder()
            link.sink = self.sinks[name]
            link.attach(Source("here"), Target("there"))
            self.pump()
            return link, self.links[name + " theirs"]
        session = self.theirs.session()
        session.open()
        theirs = session.receiver(name) if we_send else session.sender(name)
        theirs.source.address = "here"
        theirs.target.address = "there"
        theirs.open()
        self.pump()
        return self.links[name], theirs


@pytest.fixture(
    params=[(True, False), (False, False), (True, True), (False, True)],
    ids=["server", "client", "sasl server", "sasl client"],
)
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    """Connect both; at the end both close in order, whichever side begins."""
    we_serve, sasl = request.param
    both = Pair(we_serve=we_serve, sasl=sasl)
    assert both.ours.state.name == "OPENED"
    assert both.ours.remote_open is not None
    assert both.ours.remote_open.container_id == "theirs"
    assert both.theirs.remote_container == "ours"
    assert both.transport.sasl().mech == ("ANONYMOUS" if sasl else None)
    yield both
    if we_serve:
        both.theirs.close()
    else:
        both.ours.close()
    both.pump()
    assert both.ours.state is ConnectionState.END
    assert not both.theirs.state & proton.Endpoint.REMOTE_ACTIVE
    assert both.transport.condition is None
    assert both.theirs.remote_condition is None
    assert [event for event in both.seen if getattr(event, "fault", None) is not None] == []


BY = pytest.mark.parametrize("by_us", [True, False], ids=["we attach", "they attach"])


def received(theirs: Any) -> list[tuple[Any, bytes]]:
    """Return Proton's complete deliveries with their bodies."""
    found = []
    while (delivery := theirs.current) is not None and delivery.readable and not delivery.partial:
        found.append((delivery, theirs.recv(delivery.pending) if delivery.pending else b""))
        theirs.advance()
    return found


def they_send(theirs: Any, tag: str, body: bytes, *, settled: bool = False) -> Any:
    """Return a delivery that Proton sent."""
    delivery = theirs.delivery(tag)
    theirs.stream(body)
    if settled:
        delivery.settle()
    else:
        theirs.advance()
    return delivery


def queue(pair: Pair, link: OutgoingLink, *bodies: bytes, settled: bool = False) -> list[Delivery]:
    """Return trouter's deliveries for ``bodies``, sent as far as possible."""
    deliveries: list[Delivery] = []
    for number, body in enumerate(bodies):
        delivery = Sent(link)
        delivery.number = number
        if settled:
            delivery.mark_settled()
        deliveries.append(delivery)
        pair.sinks[link.name].queue.append((delivery, body))
    link.sink.on_credit(link)
    return deliveries


BODIES = [bytes([number]) * size for number, size in enumerate((1, 400, 475, 476, 3000, 10_000))]


@BY
def test_bodies_sent_to_proton_arrive_and_every_outcome_comes_back(pair: Pair, by_us: bool) -> None:
    link, theirs = pair.to_them("out", by_us=by_us)
    theirs.flow(20)
    pair.pump()
    assert link.credit == 20
    sent = queue(pair, link, *BODIES)
    pair.pump()
    got = received(theirs)
    assert [body for _, body in got] == BODIES
    assert [delivery.tag for delivery, _ in got][1] == "\x01" + "\0" * 7
    assert link.credit == 20 - len(BODIES)
    pair.sinks["out"].names()
    states = [
        proton.Delivery.ACCEPTED, proton.Delivery.RELEASED, proton.Delivery.MODIFIED,
        proton.Delivery.REJECTED, proton.Delivery.ACCEPTED, proton.Delivery.ACCEPTED,
    ]  # fmt: skip
    got[2][0].local.failed = True
    got[3][0].local.condition = proton.Condition("amqp:not-allowed", "no")
    for (delivery, _), state in zip(got, states, strict=True):
        delivery.update(state)
        delivery.settle()
    pair.pump()
    assert pair.sinks["out"].names().count("disposition") == len(BODIES)
    assert [delivery.remote_code for delivery in sent] == [0x24, 0x26, 0x27, 0x25, 0x24, 0x24]
    assert sent[0].remote_state == ACCEPTED
    assert sent[1].remote_state == RELEASED
    assert sent[2].remote_state == encode_state(Modified(True, False)) or sent[2].remote_code == 0x27
    assert sent[3].remote_state == encode_state(Rejected(Error("amqp:not-allowed", "no")))
    assert all(delivery.remote_settled for delivery in sent)
    assert link.session.deliveries.outgoing.count == 0


@BY
def test_bodies_from_proton_arrive_and_proton_gets_every_outcome(pair: Pair, by_us: bool) -> None:
    link, theirs = pair.to_us("in", by_us=by_us)
    link.grant(20)
    pair.pump()
    assert theirs.credit == 20
    sent = []
    for number, body in enumerate(BODIES):
        sent.append(they_send(theirs, f"tag{number}", body))
    pair.pump()
    sink = pair.sinks["in"]
    assert [sink.bodies[number] for number in range(len(BODIES))] == BODIES
    assert [delivery.tag for delivery in sink.deliveries] == [b"tag%d" % number for number in range(len(BODIES))]
    assert link.credit == 20 - len(BODIES)
    outcomes = [
        ACCEPTED,
        RELEASED,
        encode_state(Modified(True)),
        encode_state(Rejected(Error("amqp:x", "y"))),
        ACCEPTED,
    ]
    for delivery, state in zip(sink.deliveries, [*outcomes, ACCEPTED], strict=True):
        link.session.settle_incoming(delivery, state[2], state, True)
    pair.pump()
    assert [delivery.remote_state for delivery in sent] == [
        proton.Delivery.ACCEPTED, proton.Delivery.RELEASED, proton.Delivery.MODIFIED,
        proton.Delivery.REJECTED, proton.Delivery.ACCEPTED, proton.Delivery.ACCEPTED,
    ]  # fmt: skip
    assert all(delivery.settled for delivery in sent)
    assert sent[2].remote.failed
    assert sent[3].remote.condition.name == "amqp:x"
    for delivery in sent:
        delivery.settle()
    pair.pump()
    assert link.session.deliveries.incoming.count == 0


@BY
def test_settled_deliveries_stay_settled_both_ways(pair: Pair, by_us: bool) -> None:
    out, to_them = pair.to_them("out", by_us=by_us)
    into, to_us = pair.to_us("in", by_us=by_us)
    to_them.flow(5)
    into.grant(5)
    pair.pump()
    queue(pair, out, b"a", b"b" * 2000, settled=True)
    for number in range(2):
        they_send(to_us, str(number), b"x" * (1 + 2000 * number), settled=True)
    pair.pump()
    got = received(to_them)
    assert [(delivery.settled, len(body)) for delivery, body in got] == [(True, 1), (True, 2000)]
    for delivery, _ in got:
        delivery.settle()
    assert all(delivery.remote_settled for delivery in pair.sinks["in"].deliveries)
    assert out.session.deliveries.outgoing.count == into.session.deliveries.incoming.count == 0


@BY
def test_thousands_go_over_the_wrap_of_ids_windows_and_counts(pair: Pair, by_us: bool) -> None:
    out, to_them = pair.to_them("out", by_us=by_us)
    into, to_us = pair.to_us("in", by_us=by_us)
    for turn in range(40):
        to_them.flow(50)
        into.grant(50)
        pair.pump()
        sent = queue(pair, out, *[b"%d" % turn] * 50)
        theirs = [they_send(to_us, f"{turn}-{number}", b"x") for number in range(50)]
        pair.pump()
        got = received(to_them)
        assert len(got) == 50
        for delivery, _ in got:
            delivery.update(proton.Delivery.ACCEPTED)
            delivery.settle()
        sink = pair.sinks["in"]
        assert len(sink.deliveries) == 50
        for mine in sink.deliveries:
            into.session.settle_incoming(mine, 0x24, ACCEPTED, True)
        sink.deliveries.clear()
        sink.bodies.clear()
        pair.pump()
        assert all(delivery.remote_settled for delivery in sent)
        for delivery in theirs:
            assert delivery.settled
            delivery.settle()
    assert out.credit == into.credit == to_them.credit == to_us.credit == 0
    assert out.delivery_count == (NEAR_WRAP + 2000) & 0xFFFFFFFF
    assert out.session.deliveries.outgoing.count == into.session.deliveries.incoming.count == 0


@BY
@pytest.mark.parametrize("queued", [0, 2, 5, 8])
def test_proton_drains_the_engine(pair: Pair, by_us: bool, queued: int) -> None:
    link, theirs = pair.to_them("out", by_us=by_us)
    theirs.drain(5)
    queue(pair, link, *[b"x"] * queued)
    pair.pump()
    assert len(received(theirs)) == min(queued, 5)
    assert (link.credit, theirs.credit) == (0, 0)
    assert not theirs.draining()
    theirs.drain_mode = False
    theirs.flow(3)
    pair.pump()
    assert len(received(theirs)) == max(0, queued - 5)
    assert link.credit == theirs.credit == 3 - max(0, queued - 5)


@BY
@pytest.mark.parametrize("queued", [0, 2, 5])
def test_the_engine_drains_proton(pair: Pair, by_us: bool, queued: int) -> None:
    link, theirs = pair.to_us("in", by_us=by_us)
    link.grant(5)
    link.drain()
    pair.pump()
    assert theirs.drain_mode
    for number in range(queued):
        they_send(theirs, str(number), b"x", settled=True)
    pair.pump()
    theirs.drained()
    pair.pump()
    sink = pair.sinks["in"]
    assert sink.names() == ["transfer"] * queued + ["drained"]
    assert (link.credit, link.draining, theirs.credit) == (0, False, 0)
    link.grant(2)
    pair.pump()
    assert (theirs.credit, theirs.drain_mode) == (2, False)


@BY
def test_three_steps_both_ways(pair: Pair, by_us: bool) -> None:
    out, to_them = pair.to_them("out", by_us=by_us)
    into, to_us = pair.to_us("in", by_us=by_us)
    to_them.flow(1)
    into.grant(1)
    pair.pump()
    (mine,) = queue(pair, out, b"x")
    theirs = they_send(to_us, "t", b"y")
    pair.pump()
    ((got, _),) = received(to_them)
    got.update(proton.Delivery.ACCEPTED)
    (arrived,) = pair.sinks["in"].deliveries
    into.session.settle_incoming(arrived, 0x24, ACCEPTED, False)
    pair.pump()
    assert (mine.remote_code, mine.remote_settled) == (0x24, False)
    assert (theirs.remote_state, theirs.settled) == (proton.Delivery.ACCEPTED, False)
    out.session.settle_outgoing(mine, 0x24, ACCEPTED, True)
    theirs.settle()
    pair.pump()
    assert got.settled
    got.settle()
    assert [arrived.remote_settled] == [True]
    assert out.session.deliveries.outgoing.count == into.session.deliveries.incoming.count == 0


@BY
def test_deliveries_taken_back_both_ways(pair: Pair, by_us: bool) -> None:
    out, to_them = pair.to_them("out", by_us=by_us)
    into, to_us = pair.to_us("in", by_us=by_us)
    to_them.flow(3)
    into.grant(3)
    pair.pump()
    half = Delivery(out)
    out.send(half, b"x" * 700, 0, 700, True)
    theirs = to_us.delivery("t")
    to_us.stream(b"y" * 700)
    pair.pump()
    out.abort_delivery(half)
    theirs.abort()
    pair.pump()
    assert to_them.current is None or to_them.current.aborted
    if to_them.current is not None:
        aborted = to_them.current
        to_them.advance()
        aborted.settle()
    assert pair.sinks["in"].names()[-1] == "aborted"
    assert into.partial is None
    queue(pair, out, b"whole")
    they_send(to_us, "u", b"whole", settled=True)
    pair.pump()
    assert [body for _, body in received(to_them)] == [b"whole"]
    assert pair.sinks["in"].names() == ["transfer"]


@BY
@pytest.mark.parametrize("closed", [True, False], ids=["closed", "detached"])
@pytest.mark.parametrize("we_first", [True, False], ids=["we first", "they first"])
def test_links_and_sessions_end_and_come_back(pair: Pair, by_us: bool, closed: bool, we_first: bool) -> None:
    for _ in range(3):
        link, theirs = pair.to_them("out", by_us=by_us)
        if we_first:
            link.detach(closed)
        elif closed:
            theirs.close()
        else:
            theirs.detach()
        pair.pump()
        if not we_first:
            assert any(isinstance(event, LinkDetached) and event.link is link for event in pair.seen)
        elif not closed:
            theirs.detach()
            pair.pump()
        assert pair.ours.link_count == 0
        link.session.end()
        theirs.session.close()
        pair.pump()
        assert pair.ours.sessions() == []


def test_proton_understands_a_refusal_of_the_engine(pair: Pair) -> None:
    session = pair.theirs.session()
    session.open()
    theirs = session.sender("in")
    theirs.target.address = "nowhere"
    theirs.open()
    pair.answer = lambda: refuse(pair)  # type: ignore[method-assign]
    pair.pump()
    assert theirs.state & proton.Endpoint.REMOTE_CLOSED
    assert theirs.remote_condition is not None
    assert theirs.remote_condition.name == "amqp:not-found"
    assert theirs.remote_target.address is None
    del pair.answer
    pair.pump()


def refuse(pair: Pair) -> None:
    while pair.ours.events:
        event = pair.ours.events.pop(0)
        if isinstance(event, SessionBegun):
            event.session.begin()
        elif isinstance(event, LinkAttached):
            event.link.refuse(Error("amqp:not-found", "Node not found"))


def test_proton_understands_a_fault_of_the_engine() -> None:
    both = Pair(we_serve=True)
    link, theirs = both.to_us("in", by_us=False)
    link.max_message_bytes = 1000
    link.grant(5)
    both.pump()
    they_send(theirs, "t", b"x" * 3000)
    both.pump()
    condition: Any = theirs.remote_condition
    assert condition.name == "amqp:link:message-size-exceeded"
    assert both.theirs.state & proton.Endpoint.REMOTE_ACTIVE
