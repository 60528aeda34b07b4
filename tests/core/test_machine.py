"""Anything a few clients may do in any order, against what must always hold of one router.

Every unsettled delivery gets one terminal outcome or its link is gone; nothing is reported accepted that nobody
accepted; a pre-settled message is never answered; credit, held octets and records are neither lost nor left over.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from trouter.core.attach import PeerTerms
from trouter.core.table import AddressRule
from trouter.engine.limits import EngineLimits
from trouter.engine.ring import DeliveryRing
from trouter.testing import (
    MemoryClient,
    MemoryReceiver,
    MemoryRouter,
    MemorySender,
    ReceivedMessage,
    SentMessage,
    compose,
)
from trouter.wire.performatives import Accepted, Modified, Received, Rejected, Released

RULES = (
    AddressRule("closest", distribution="closest"),
    AddressRule("multicast", distribution="multicast"),
    AddressRule("fall", enable_fallback=True),
    AddressRule("way", ingress_phase=0, egress_phase=1),
    AddressRule("closed", distribution="unavailable"),
)
ADDRESSES = st.sampled_from(["closest", "multicast", "balanced", "fall", "way"])
#: Small frames and windows, so that everything that can fill up does.
LIMITS = EngineLimits(
    max_frame_bytes=512,
    session_window_frames=8,
    first_outgoing_id=0xFFFFFFFA,
    idle_timeout_s=0.0,
    high_water_bytes=4096,
)
SIZES = st.sampled_from([0, 1, 600, 1500, 3000, 20_000])
OUTCOMES = st.sampled_from([Accepted(), Released(), Rejected(), Modified(True)])
TERMS = st.builds(
    PeerTerms, link_capacity=st.sampled_from([1, 2, 5, 20]), strip_in=st.booleans(), strip_out=st.booleans()
)
TERMINAL = (Accepted, Rejected, Released, Modified)


class RouterMachine(RuleBasedStateMachine):
    """Clients, their links and their messages, each known to the test that made it."""

    clients: Bundle[MemoryClient] = Bundle("clients")
    senders: Bundle[MemorySender] = Bundle("senders")
    receivers: Bundle[MemoryReceiver] = Bundle("receivers")
    unfinished: Bundle[SentMessage] = Bundle("unfinished")

    def __init__(self) -> None:
        super().__init__()
        self.router = MemoryRouter(RULES)
        self.sent: list[SentMessage] = []
        self.receiving: list[MemoryReceiver] = []
        self.sending: list[MemorySender] = []
        self.numbers = 0
        #: Bodies' numbers for which some receiver said that it accepts.
        self.accepted: set[int] = set()
        #: For receivers that want settled messages, the router accepts.
        self.some_take_settled = False

    # --- who comes and goes

    @rule(target=clients, terms=TERMS)
    def connect(self, terms: PeerTerms) -> Any:
        if len(self.router.clients) >= 4:
            return multiple()
        return self.router.connect(terms, limits=LIMITS, client_limits=LIMITS)

    @rule(target=senders, client=clients, address=st.one_of(st.none(), ADDRESSES), waypoint=st.booleans())
    def attach_sender(self, client: MemoryClient, address: str | None, waypoint: bool) -> Any:
        if client.dropped:
            return multiple()
        capabilities = ("qd.waypoint",) if waypoint and address == "way" else ()
        sender = client.sender(address, capabilities=capabilities, pump=False)
        self.sending.append(sender)
        return sender

    @rule(
        target=receivers,
        client=clients,
        address=ADDRESSES,
        special=st.booleans(),
        credit=st.integers(0, 5),
        settled=st.sampled_from([False, False, False, True]),
    )
    def attach_receiver(self, client: MemoryClient, address: str, special: bool, credit: int, settled: bool) -> Any:
        if client.dropped:
            return multiple()
        capabilities = {"way": ("qd.waypoint",), "fall": ("qd.fallback",)}.get(address, ()) if special else ()
        receiver = client.receiver(
            address, credit=credit, capabilities=capabilities, snd_settle_mode=1 if settled else 2, pump=False
        )
        self.receiving.append(receiver)
        self.some_take_settled = self.some_take_settled or settled
        return receiver

    @rule(link=st.one_of(consumes(senders), consumes(receivers)), closed=st.booleans())
    def detach(self, link: MemorySender | MemoryReceiver, closed: bool) -> None:
        if not link.client.dropped:
            link.link.detach(closed)

    @rule(client=consumes(clients))
    def drop(self, client: MemoryClient) -> None:
        client.drop()

    @rule(client=clients)
    def end(self, client: MemoryClient) -> None:
        if not client.dropped:
            client.end()
            client.session = client.add_session()

    # --- messages

    def body(self, size: int) -> bytes:
        self.numbers += 1
        return self.numbers.to_bytes(4, "big") + bytes(size)

    @rule(
        sender=senders,
        size=SIZES,
        settled=st.booleans(),
        frames=st.integers(1, 4),
        abort=st.booleans(),
        to=st.one_of(ADDRESSES, st.sampled_from(["nowhere", "closed"])),
    )
    def send(self, sender: MemorySender, size: int, settled: bool, frames: int, abort: bool, to: str) -> None:
        if sender.link.credit > 0:
            message = compose(self.body(size), to=to)
            sent = sender.send(message, settled=settled, frames=frames, abort=abort and size > 1000)
            self.note(sent)

    @rule(target=unfinished, sender=senders, size=SIZES, settled=st.booleans(), to=ADDRESSES)
    def begin(self, sender: MemorySender, size: int, settled: bool, to: str) -> Any:
        if sender.link.credit <= 0:
            return multiple()
        sent = sender.begin(compose(self.body(size), to=to), settled=settled)
        self.note(sent)
        return sent

    @rule(sent=unfinished, size=SIZES)
    def go_on(self, sent: SentMessage, size: int) -> None:
        sent.more(bytes(size))

    @rule(sent=consumes(unfinished), abort=st.booleans())
    def finish(self, sent: SentMessage, abort: bool) -> None:
        if abort:
            sent.abort()
        else:
            sent.finish()

    def note(self, sent: SentMessage) -> None:
        sent.number = self.numbers  # type: ignore[attr-defined]
        sent.presettled = sent.delivery.settled  # type: ignore[attr-defined]
        self.sent.append(sent)

    @rule(data=st.data(), settled=st.booleans(), state=st.one_of(st.none(), OUTCOMES))
    def sender_settles(self, data: st.DataObject, settled: bool, state: object) -> None:
        mine = [sent for sent in self.sent if sent.delivery.begun and not sent.delivery.settled]
        if mine:
            data.draw(st.sampled_from(mine)).settle(state, settled)

    # --- receivers

    @rule(receiver=receivers, count=st.integers(1, 10))
    def grant(self, receiver: MemoryReceiver, count: int) -> None:
        if receiver.attach is not None:
            receiver.grant(count)

    @rule(receiver=receivers)
    def drain(self, receiver: MemoryReceiver) -> None:
        receiver.drain()

    @rule(data=st.data(), state=st.one_of(st.none(), OUTCOMES, st.just(Received(1, 2))), settled=st.booleans())
    def settle(self, data: st.DataObject, state: object, settled: bool) -> None:
        open_ = [
            message
            for receiver in self.receiving
            if not receiver.client.dropped
            for message in receiver.received
            if not (message.delivery.settled or message.delivery.remote_settled)
        ]
        if open_:
            message = data.draw(st.sampled_from(open_))
            self.note_outcome(message, state)
            message.settle(state, settled)

    def note_outcome(self, message: ReceivedMessage, state: object) -> None:
        number = number_of(message)
        if isinstance(state, Accepted) or state is None:
            self.accepted.add(number)  # a settlement without a state counts as accepted by a multicast

    # --- how far octets get

    @rule()
    def pump(self) -> None:
        self.router.pump()

    @rule(client=clients)
    def write(self, client: MemoryClient) -> None:
        client.write()
        self.router.flush()

    @rule(client=clients)
    def read(self, client: MemoryClient) -> None:
        client.read()

    @rule(client=clients, stalled=st.booleans())
    def stall(self, client: MemoryClient, stalled: bool) -> None:
        client.stalled = stalled

    # --- what must hold

    @invariant()
    def nobody_is_at_fault(self) -> None:
        for client in self.router.clients:
            assert client.faults == []
            assert client.closed is None
            assert [event for event in client.ended if event.error is not None] == []

    @invariant()
    def credit_is_conserved(self) -> None:
        core = self.router.core
        for ingress in core.ingresses():
            owed = ingress.capacity - ingress.link.credit - ingress.pending - ingress.unsettled
            assert owed >= 0
            assert ingress.pending >= 0
            assert ingress.unsettled >= 0
            assert ingress.link.credit > 0 or owed == 0

    @invariant()
    def links_count_what_they_have(self) -> None:
        for egress in self.router.core.egresses():
            assert egress.backlog == len(egress.queue)
            outgoing: DeliveryRing = egress.link.session.outgoing  # type: ignore[attr-defined]
            mine = [each for each in outgoing.all() if each.link is egress.link and each.complete]
            assert egress.unsettled == len(mine)

    @invariant()
    def what_is_held_belongs_to_a_message(self) -> None:
        for client in self.router.clients:
            for session in client.server.sessions():
                assert session.held_bytes >= 0

    @invariant()
    def each_receiver_hears_of_a_message_once(self) -> None:
        for receiver in self.receiving:
            numbers = Counter(number_of(message) for message in receiver.received)
            assert not [number for number, count in numbers.items() if number >= 0 and count > 1]

    @invariant()
    def outcomes_are_final_and_true(self) -> None:
        for sent in self.sent:
            terminal = [state for state, _ in sent.history if isinstance(state, TERMINAL)]
            assert len({repr(state) for state in terminal}) <= 1
            assert [settled for _, settled in sent.history].count(True) <= 1
            assert not (sent.presettled and sent.history)  # type: ignore[attr-defined]
            if isinstance(sent.outcome, Accepted) and not self.some_take_settled:
                assert sent.number in self.accepted  # type: ignore[attr-defined]

    # --- the end

    def teardown(self) -> None:
        """Everybody reads on and settles: everything ends in order, and nothing is left."""
        for client in self.router.clients:
            client.stalled = False
        self.router.pump()
        for sent in self.sent:
            if sent._more and not sent._aborted and not sent.sender.client.dropped:
                sent.finish()
        for _ in range(50):
            self.router.pump()
            for receiver in self.receiving:
                if receiver.client.dropped:
                    continue
                if receiver.attach is not None and receiver.link.attached:
                    receiver.grant(100)
                for message in receiver.received:
                    if not (message.delivery.settled or message.delivery.remote_settled):
                        self.note_outcome(message, Accepted())
                        message.settle()
        self.router.pump()
        self.nobody_is_at_fault()
        self.credit_is_conserved()
        self.outcomes_are_final_and_true()
        self.every_message_has_its_end()
        assert self.router.held_bytes() == 0
        for ingress in self.router.core.ingresses():
            assert ingress.unsettled == 0
        for egress in self.router.core.egresses():
            assert (egress.unsettled, egress.backlog) == (0, 0)
        for client in self.router.clients:
            for session in client.server.sessions():
                assert session.incoming.count == session.outgoing.count == 0
            client.drop()
        assert not self.router.core.table.records
        assert not self.router.core.links
        assert self.router.held_bytes() == 0

    def every_message_has_its_end(self) -> None:
        for sent in self.sent:
            link = sent.sender.link
            over = sent.sender.client.dropped or not link.attached
            if sent.presettled or over or sent.delivery.aborted or not sent.delivery.begun:  # type: ignore[attr-defined]
                continue
            assert sent.delivery.complete
            assert sent.settled or sent.delivery.settled


def number_of(message: ReceivedMessage) -> int:
    """Which message it is, by the first octets of its body; -1 while these are not here."""
    payload = message.payload
    start = payload.find(b"\0\x53\x75")
    start += 5 if payload[start + 3 : start + 4] == b"\xa0" else 8
    return int.from_bytes(payload[start : start + 4], "big") if 5 <= start <= len(payload) - 4 else -1


RouterMachine.TestCase.settings = settings(settings(), stateful_step_count=60)
TestRouterMachine = RouterMachine.TestCase
