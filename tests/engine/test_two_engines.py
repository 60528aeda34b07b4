"""Any operations of two engines joined in memory, with any cut of the stream: nothing is lost or invented.

Credit is conserved, no transfer exceeds credit or window, every unsettled delivery has exactly one outcome, the
receiver buffers no more than its window, and at the end the rings are empty.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.engine.talks import ACCEPTED, MASK32, NEAR_WRAP, RELEASED
from tests.script import decode
from trouter.engine.connection import Connection
from trouter.engine.events import (
    ConnectionClosed,
    ConnectionOpened,
    LinkAttached,
    LinkDetached,
    SessionBegun,
    SessionEnded,
)
from trouter.engine.limits import EngineLimits
from trouter.engine.link import IncomingLink, OutgoingLink, add_link
from trouter.engine.ports import Budget, Delivery, LinkPort, LinkSink
from trouter.wire.performatives import Open, Source, Target

FRAME_BYTES = 512
WINDOW_FRAMES = 6
CREDIT = 5
LINKS = 3
MODIFIED = b"\x00\x53\x27\x45"
OUTCOMES = {0x24: ACCEPTED, 0x26: RELEASED, 0x27: MODIFIED}
LIMITS = EngineLimits(
    max_frame_bytes=FRAME_BYTES,
    session_window_frames=WINDOW_FRAMES,
    first_outgoing_id=NEAR_WRAP,
    idle_timeout_s=0.0,
    high_water_bytes=2000,
)


@dataclass(eq=False)
class Message:
    """One message on its way: the sender's order and what both ends saw of it."""

    link: int
    body: bytes
    settled: bool
    abort_at: int
    delivery: Delivery
    offset: int = 0
    arrived: bytes = b""
    kept: int = 0
    got: Delivery | None = None
    aborted: bool = False
    outcomes: list[int] = field(default_factory=list)
    wanted: int = 0
    second: bool = False


class Sender(LinkSink):
    """A link sink that sends the queue in order, as far as credit, window and output permit."""

    def __init__(self) -> None:
        self.queue: list[Message] = []
        self.messages: dict[Delivery, Message] = {}
        self.begun = 0
        self.given_back = 0

    def on_credit(self, link: LinkPort) -> None:
        assert isinstance(link, OutgoingLink)
        while self.queue:
            message = self.queue[0]
            delivery = message.delivery
            if link.waiting or (not delivery.begun and not link.is_ready()):
                break
            before = delivery.begun
            if 0 <= message.abort_at < len(message.body):
                message.offset = link.send(delivery, message.body, message.offset, message.abort_at, True)
                self.begun += delivery.begun and not before
                if message.offset < message.abort_at or not delivery.begun:
                    break
                link.abort_delivery(delivery)
                message.aborted = True
            else:
                message.offset = link.send(delivery, message.body, message.offset, len(message.body), False)
                self.begun += delivery.begun and not before
                if not delivery.complete:
                    break
            self.queue.pop(0)
        if link.drain and not self.queue and not link.waiting:
            self.given_back += link.credit
            link.return_credit()

    def on_disposition(self, delivery: Delivery) -> None:
        message = self.messages[delivery]
        if message.aborted:
            return
        if delivery.remote_settled:
            message.outcomes.append(delivery.remote_code)
        else:  # three steps: the receiver waits for the sender's settlement
            assert message.second
            message.outcomes.append(delivery.remote_code)
            delivery.link.session.settle_outgoing(delivery, delivery.remote_code, delivery.remote_state, True)


class Receiver(LinkSink):
    """A link sink that keeps deliveries until the machine takes them."""

    def __init__(self, number: int, machine: TwoEngines) -> None:
        self.number = number
        self.machine = machine
        self.granted = 0
        self.begun = 0
        self.drains = 0
        self.open: list[Message] = []
        self.current: Message | None = None
        self.disposed: list[Delivery] = []

    def on_transfer(self, link: LinkPort, delivery: Delivery, data: bytes, start: int, end: int) -> None:
        assert isinstance(link, IncomingLink)
        message = self.current
        if message is None:
            assert delivery.tag is not None
            message = self.machine.by_tag[delivery.tag]
            assert message.got is None
            assert message.link == self.number
            message.got = delivery
            self.begun += 1
            self.current = message
        assert message.got is delivery
        link.session.windows.hold_bytes(end - start)
        message.arrived += data[start:end]
        message.kept += end - start
        self.machine.held += end - start
        if delivery.complete:
            self.current = None
            assert message.arrived == message.body
            self.open.append(message)

    def on_aborted(self, link: LinkPort, delivery: Delivery) -> None:
        assert isinstance(link, IncomingLink)
        message = self.current
        if message is None:
            assert delivery.tag is not None
            message = self.machine.by_tag[delivery.tag]
            self.begun += 1
        self.current = None
        assert message.body.startswith(message.arrived)
        assert message.aborted
        self.machine.let_go(link, message)

    def on_disposition(self, delivery: Delivery) -> None:
        assert delivery.remote_settled
        self.disposed.append(delivery)

    def on_drained(self, link: LinkPort) -> None:
        assert isinstance(link, IncomingLink)
        self.drains += 1
        assert link.credit == 0


class TwoEngines(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        opening = Open("one", max_frame_size=FRAME_BYTES)
        self.budget = Budget(10**9)
        self.one = Connection(LIMITS, opening, [], None, server=False)
        self.two = Connection(LIMITS, Open("two", max_frame_size=FRAME_BYTES), [], None, True, self.budget)
        self.cable = {self.one: bytearray(), self.two: bytearray()}  # the bytes on their way to each
        self.by_tag: dict[bytes, Message] = {}
        self.messages: list[Message] = []
        self.held = 0
        self.serial = 0
        self.out: list[Any] = []
        self.senders: list[Sender] = []
        self.incoming: dict[int, Any] = {}
        self.receivers: dict[int, Receiver] = {}
        self.one.open()
        self.session = self.one.add_session()
        self.session.begin()
        for number in range(LINKS):
            link = add_link(self.session, str(number), False)
            sender = Sender()
            link.sink = sender
            link.attach(Source("a"), Target("b"))
            self.out.append(link)
            self.senders.append(sender)
        self.carry_all()
        self.session_two = self.two.sessions()[0]

    # --- the cable

    def write(self, connection: Connection) -> None:
        """Move the engine's output to the cable; it must be frames, of an agreed size."""
        connection.flush()
        if connection.out:
            content = bytes(connection.out)
            connection.out.clear()
            for sent in decode(content):
                assert sent.size <= FRAME_BYTES
            self.cable[self.two if connection is self.one else self.one] += content
            connection.resume_output()

    def read(self, connection: Connection, count: int) -> None:
        """Deliver some of the bytes on the cable."""
        cable = self.cable[connection]
        content = bytes(cable[:count])
        del cable[:count]
        connection.receive_data(content)
        for event in connection.events:
            self.handle(connection, event)
        connection.events.clear()

    def handle(self, connection: Connection, event: object) -> None:
        assert not isinstance(event, ConnectionClosed | SessionEnded | LinkDetached), event
        if connection is self.one:
            return
        if isinstance(event, ConnectionOpened):
            connection.open()
        elif isinstance(event, SessionBegun):
            event.session.begin()
        elif isinstance(event, LinkAttached):
            number = int(event.link.name)
            assert isinstance(event.link, IncomingLink)
            receiver = Receiver(number, self)
            event.link.sink = receiver
            self.incoming[number] = event.link
            self.receivers[number] = receiver
            event.link.attach(event.attach.source, event.attach.target)

    def carry_all(self) -> None:
        for _ in range(100):
            self.write(self.one)
            self.write(self.two)
            if not any(self.cable.values()):
                return
            self.read(self.two, len(self.cable[self.two]))
            self.read(self.one, len(self.cable[self.one]))
        raise AssertionError("never at rest")

    def let_go(self, link: IncomingLink, message: Message) -> None:
        link.session.release_bytes(message.kept)
        self.held -= message.kept
        message.kept = 0

    # --- operations

    @rule(to_two=st.booleans(), count=st.integers(1, 2000))
    def arrive(self, to_two: bool, count: int) -> None:
        self.read(self.two if to_two else self.one, count)

    @rule(first=st.booleans())
    def speak(self, first: bool) -> None:
        self.write(self.one if first else self.two)

    @rule()
    def rest(self) -> None:
        self.carry_all()

    @rule(
        number=st.integers(0, LINKS - 1),
        size=st.sampled_from([0, 1, 100, 475, 476, 1500, 5000]),
        settled=st.booleans(),
        abort_at=st.sampled_from([-1, -1, -1, 0, 1, 476, 1499]),
        odd_tag=st.booleans(),
        outcome=st.sampled_from(sorted(OUTCOMES)),
        second=st.booleans(),
    )
    def send(
        self, number: int, size: int, settled: bool, abort_at: int, odd_tag: bool, outcome: int, second: bool
    ) -> None:
        delivery = Delivery(self.out[number])
        if settled:
            delivery.mark_settled()
        self.serial += 1
        delivery.number = self.serial
        tag = self.serial.to_bytes(8, "little")
        if odd_tag:
            tag = delivery.tag = b"odd" + tag
        body = bytes((self.serial + at) & 0xFF for at in range(size))
        message = Message(number, body, settled, abort_at, delivery, wanted=outcome, second=second and not settled)
        self.by_tag[tag] = message
        self.messages.append(message)
        sender = self.senders[number]
        sender.messages[delivery] = message
        sender.queue.append(message)
        sender.on_credit(self.out[number])

    @rule(number=st.integers(0, LINKS - 1), count=st.integers(1, CREDIT))
    def grant(self, number: int, count: int) -> None:
        link = self.incoming[number]
        if link.credit + count <= 2 * CREDIT:
            link.grant(count)
            self.receivers[number].granted += count

    @rule(number=st.integers(0, LINKS - 1))
    def drain(self, number: int) -> None:
        self.incoming[number].drain()

    @precondition(lambda self: any(receiver.open for receiver in self.receivers.values()))
    @rule(data=st.data())
    def take(self, data: st.DataObject) -> None:
        """Finish one message of the slow receiver, not always the oldest."""
        waiting = [message for receiver in self.receivers.values() for message in receiver.open]
        self.finish(data.draw(st.sampled_from(waiting)))

    @rule(number=st.integers(0, LINKS - 1))
    def swallow(self, number: int) -> None:
        """Release the bytes of an incomplete message at the slow receiver."""
        message = self.receivers[number].current
        if message is not None:
            self.let_go(self.incoming[number], message)

    def finish(self, message: Message) -> None:
        link = self.incoming[message.link]
        self.receivers[message.link].open.remove(message)
        assert message.got is not None
        self.let_go(link, message)
        settle = link.session.settle_incoming
        settle(message.got, message.wanted, OUTCOMES[message.wanted], not message.second)

    # --- invariants

    @invariant()
    def credit_is_conserved(self) -> None:
        for number, link in self.incoming.items():
            sender, receiver, out = self.senders[number], self.receivers[number], self.out[number]
            # granted credit is used, returned, still with the sender, or on its way
            assert receiver.begun <= sender.begun
            assert sender.begun + sender.given_back + out.credit <= receiver.granted
            assert ((out.delivery_count - NEAR_WRAP) & MASK32) == sender.begun + sender.given_back
            assert link.credit + ((link.delivery_count - NEAR_WRAP) & MASK32) == receiver.granted

    @invariant()
    def held_bytes_stay_within_the_window(self) -> None:
        session = self.session_two
        assert session.windows.held_bytes == self.budget.held == self.held
        assert self.held <= WINDOW_FRAMES * FRAME_BYTES
        assert 0 <= session.windows.incoming_frames <= WINDOW_FRAMES
        assert 0 <= self.session.windows.outgoing_frames <= WINDOW_FRAMES

    @invariant()
    def an_outcome_comes_once(self) -> None:
        for message in self.messages:
            assert len(message.outcomes) <= 1

    def teardown(self) -> None:
        """Serve all links; nothing may be left."""
        for _ in range(1000):
            self.carry_all()
            for number in range(LINKS):
                self.swallow(number)
            for receiver in self.receivers.values():
                for message in receiver.open[:]:
                    self.finish(message)
            self.carry_all()
            if not any(sender.queue for sender in self.senders):
                break
            for number in range(LINKS):
                if self.incoming[number].credit == 0:
                    self.grant(number, CREDIT)
        self.carry_all()
        for receiver in self.receivers.values():
            for message in receiver.open[:]:
                self.finish(message)
        self.carry_all()
        assert not any(sender.queue for sender in self.senders)
        for message in self.messages:
            if message.aborted:
                assert message.outcomes == []
            else:
                assert message.arrived == message.body
                assert message.got is not None
                assert message.got.remote_settled == (message.settled or message.second)
                assert message.outcomes == ([] if message.settled else [message.wanted])
        assert self.session.deliveries.outgoing.count == self.session_two.deliveries.incoming.count == 0
        assert self.held == self.budget.held == 0
        assert all(link.credit == self.incoming[number].credit for number, link in enumerate(self.out))
        for number in range(LINKS):
            self.incoming[number].drain()
        self.carry_all()
        assert all(link.credit == 0 for link in [*self.out, *self.incoming.values()])
        assert not any(link.draining for link in self.incoming.values())


TestTwoEngines = TwoEngines.TestCase
TestTwoEngines.settings = settings(stateful_step_count=60)
TestTwoEngines.pytestmark = [pytest.mark.fuzz]  # type: ignore[attr-defined]
