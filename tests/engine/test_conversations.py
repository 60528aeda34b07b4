"""Faults of the engine that the client met, each as the conversation that showed it."""

from __future__ import annotations

from trouter.engine.connection import Connection
from trouter.engine.events import ConnectionClosed, ConnectionOpened, LinkAttached, SessionBegun
from trouter.engine.limits import EngineLimits
from trouter.engine.link import IncomingLink, OutgoingLink, add_link
from trouter.engine.ports import Delivery, LinkPort, LinkSink
from trouter.wire.performatives import Error, Open, Source, Target
from trouter.wire.types import Float, UInt

WINDOW_FRAMES = 4


class Keeper(LinkSink):
    """A link sink that keeps the bytes of its session until it is set to release them."""

    def __init__(self) -> None:
        self.received: list[bytes] = []
        self.aborted = 0
        self.link: IncomingLink | None = None

    def on_transfer(self, link: LinkPort, delivery: Delivery, data: bytes, start: int, end: int) -> None:
        assert isinstance(link, IncomingLink)
        self.link = link
        self.received.append(data[start:end])
        link.session.windows.hold_bytes(end - start)

    def on_aborted(self, link: LinkPort, delivery: Delivery) -> None:
        self.aborted += 1

    def let_go(self) -> None:
        assert self.link is not None
        self.link.session.release_bytes(self.link.session.windows.held_bytes)


class Talk:
    """A client's and a server's engine, with one attached link from the client to the server's keeper."""

    def __init__(self) -> None:
        limits = EngineLimits(
            first_outgoing_id=0xFFFFFFFE, session_window_frames=WINDOW_FRAMES, max_frame_bytes=512, idle_timeout_s=0.0
        )
        self.client = Connection(limits, Open("client", max_frame_size=512), [], None, False)
        self.server = Connection(limits, Open("server", max_frame_size=512), [], None, True)
        self.keeper = Keeper()
        self.seen: list[object] = []
        self.client.open()
        self.pump()
        session = self.client.add_session()
        session.begin()
        link = add_link(session, "link", False)
        assert isinstance(link, OutgoingLink)
        self.link = link
        link.attach(Source("a"), Target("b"), initial_delivery_count=link.delivery_count)
        self.pump()

    def pump(self) -> None:
        """Carry bytes in both directions until both are silent."""
        moved = True
        while moved:
            moved = False
            for giver, taker in ((self.client, self.server), (self.server, self.client)):
                giver.flush()
                if giver.out:
                    moved = True
                    content = bytes(giver.out)
                    giver.out.clear()
                    taker.receive_data(content)
                    self._answer(taker)

    def _answer(self, engine: Connection) -> None:
        while engine.events:
            event = engine.events.pop(0)
            if engine is self.client:
                self.seen.append(event)
            elif isinstance(event, ConnectionOpened):
                engine.open()
            elif isinstance(event, SessionBegun):
                event.session.begin()
            elif isinstance(event, LinkAttached):
                event.link.attach(event.attach.source, event.attach.target)
                event.link.sink = self.keeper
                event.link.grant(10)  # type: ignore[attr-defined]


def test_a_delivery_taken_back_while_the_window_is_closed_waits_for_the_window() -> None:
    talk = Talk()
    session = talk.link.session
    half_sent = Delivery(talk.link)
    talk.link.send(half_sent, bytes(100_000), 0, 100_000, False)
    assert session.windows.outgoing_frames == 0
    talk.pump()
    before = len(talk.seen)

    talk.link.abort_delivery(half_sent)
    assert half_sent.aborted
    assert not talk.link.is_ready()
    talk.pump()
    assert talk.seen[before:] == []  # in particular no end for a window violation
    assert talk.keeper.aborted == 0

    talk.keeper.let_go()
    talk.pump()
    assert talk.keeper.aborted == 1
    assert len(talk.keeper.received) == WINDOW_FRAMES
    assert talk.link.is_ready()
    following = Delivery(talk.link)
    talk.link.send(following, b"next", 0, 4, False)
    talk.pump()
    assert following.complete
    assert talk.keeper.received[-1] == b"next"
    assert talk.seen[before:] == []


def test_a_link_detached_before_its_abort_was_sent_sends_no_abort() -> None:
    talk = Talk()
    half_sent = Delivery(talk.link)
    talk.link.send(half_sent, bytes(100_000), 0, 100_000, False)
    talk.link.abort_delivery(half_sent)
    talk.link.detach(True)
    talk.pump()
    talk.keeper.let_go()
    talk.pump()
    assert talk.keeper.aborted == 0
    assert not talk.link.attached


def test_a_number_from_the_wire_prints_as_a_number() -> None:
    talk = Talk()
    assert talk.client.remote_open is not None
    assert isinstance(talk.client.remote_open.max_frame_size, UInt)
    assert f"{talk.client.remote_open.max_frame_size} {Float(0.5)}" == "512 0.5"
    assert repr(UInt(512)) == "UInt(512)"
    server = Connection(EngineLimits(), Open("server"), [], None, True)
    client = Connection(EngineLimits(), Open("client", max_frame_size=100), [], None, False)
    client.open()
    server.receive_data(bytes(client.out))
    (event,) = server.events
    assert isinstance(event, ConnectionClosed)
    assert str(event.fault) == "amqp:invalid-field: max-frame-size 100 is below the minimum of 512"


def test_a_server_that_answers_without_a_name_is_read_to_the_end() -> None:
    server = Connection(EngineLimits(), Open(""), [], None, True)
    client = Connection(EngineLimits(), Open("client"), [], None, False)
    client.open()
    server.receive_data(bytes(client.out))
    server.open()
    server.close(Error("amqp:connection:framing-error", "the reason"))
    client.receive_data(bytes(server.out))
    opened, closed = client.events
    assert isinstance(opened, ConnectionOpened)
    assert isinstance(closed, ConnectionClosed)
    assert closed.error is not None
    assert closed.error.description == "the reason"
