"""Any operations of a few clients in any order, against the invariants of one router.

Every unsettled delivery gets one terminal outcome or its link is gone; no message is accepted that no receiver
accepted; a pre-settled message gets no outcome; credit, buffered bytes and entries are neither lost nor left over.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule

from trouter.core.table import AddressRule
from trouter.core.terms import PeerTerms
from trouter.engine.limits import EngineLimits
from trouter.engine.unsettled import DeliveryRing
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
ADDRESSES = st.sampled_from(["closest", "multicast", "multicast", "balanced", "fall"])
#: Small frames and windows, so that every buffer can fill up.
LIMITS = EngineLimits(
    max_frame_bytes=512,
    session_window_frames=8,
    first_outgoing_id=0xFFFFFFFA,
    idle_timeout_s=0.0,
    high_water_bytes=4096,
)
SIZES = st.sampled_from([0, 1, 600, 1500, 3000, 20_000])
OUTCOMES = st.sampled_from([Accepted(), Accepted(), Released(), Rejected(), Modified(True)])
TERMS = st.builds(
    PeerTerms, link_capacity=st.sampled_from([1, 2, 5, 20]), strip_in=st.booleans(), strip_out=st.booleans()
)
#: An operation that would end the run too early is rare.
SELDOM = st.sampled_from([False, False, False, False, True])
PLANS = st.tuples(ADDRESSES, st.sampled_from([0, 1, 5, 50]))
TERMINAL = (Accepted, Rejected, Released, Modified)


class RouterMachine(RuleBasedStateMachine):
    """Clients, their links and their messages."""

    clients: Bundle[MemoryClient] = Bundle("clients")
    senders: Bundle[MemorySender] = Bundle("senders")
    receivers: Bundle[MemoryReceiver] = Bundle("receivers")
    unfinished: Bundle[SentMessage] = Bundle("unfinished")

    def __init__(self) -> None:
        super().__init__()
        self.router = MemoryRouter(RULES)
        self.sent: list[SentMessage] = []
        self.receiving: list[MemoryReceiver] = []
        self.numbers = 0
        self.turn = 0
        #: Numbers of bodies that some receiver accepted.
        self.accepted: set[int] = set()
        #: Whether some receivers want settled messages, which the router accepts itself.
        self.some_take_settled = False

    # --- connections

    @initialize(target=clients, terms=st.lists(TERMS, min_size=3, max_size=3))
    def begin_with_clients(self, terms: list[PeerTerms]) -> Any:
        return multiple(*(self.connected(each) for each in terms))

    @initialize(target=receivers, plans=st.lists(PLANS, min_size=3, max_size=6))
    def begin_with_receivers(self, plans: list[tuple[str, int]]) -> Any:
        return multiple(*(self.received_by(self.any_client(), address, credit) for address, credit in plans))

    @initialize(target=senders, addresses=st.lists(ADDRESSES, min_size=1, max_size=3))
    def begin_with_senders(self, addresses: list[str]) -> Any:
        return multiple(*(self.any_client().sender(address) for address in (None, *addresses)))

    def any_client(self) -> MemoryClient:
        """Return the clients in turn; there is always one."""
        if not self.router.clients:
            self.connected(PeerTerms(5))
        self.turn += 1
        return self.router.clients[self.turn % len(self.router.clients)]

    def connected(self, terms: PeerTerms) -> MemoryClient:
        return self.router.connect(terms, limits=LIMITS, client_limits=LIMITS)

    def received_by(self, client: MemoryClient, address: str, credit: int, **how: Any) -> MemoryReceiver:
        receiver = client.receiver(address, credit=credit, **how)
        self.receiving.append(receiver)
        return receiver

    @rule(target=clients, terms=TERMS)
    def connect(self, terms: PeerTerms) -> Any:
        if sum(not client.dropped for client in self.router.clients) >= 3:
            return multiple()
        return self.connected(terms)

    @rule(
        target=senders,
        client=clients,
        address=st.one_of(st.none(), ADDRESSES, st.just("way")),
        waypoint=st.booleans(),
        pump=st.booleans(),
        really=SELDOM,
    )
    def attach_sender(self, client: MemoryClient, address: str | None, waypoint: bool, pump: bool, really: bool) -> Any:
        if not really or client.dropped or len(client.session.links.by_name) > 8:
            return multiple()
        capabilities = ("qd.waypoint",) if waypoint and address == "way" else ()
        return client.sender(address, capabilities=capabilities, pump=pump)

    @rule(
        target=receivers,
        client=clients,
        address=st.one_of(ADDRESSES, st.just("way")),
        special=st.booleans(),
        credit=st.integers(0, 5),
        settled=SELDOM,
        pump=st.booleans(),
    )
    def attach_receiver(
        self, client: MemoryClient, address: str, special: bool, credit: int, settled: bool, pump: bool
    ) -> Any:
        if client.dropped or len(client.session.links.by_name) > 8:
            return multiple()
        capabilities = {"way": ("qd.waypoint",), "fall": ("qd.fallback",)}.get(address, ()) if special else ()
        self.some_take_settled = self.some_take_settled or settled
        return self.received_by(
            client, address, credit, capabilities=capabilities, snd_settle_mode=1 if settled else 2, pump=pump
        )

    @rule(link=st.one_of(senders, receivers), closed=st.booleans(), really=SELDOM)
    def detach(self, link: MemorySender | MemoryReceiver, closed: bool, really: bool) -> None:
        if really and not link.client.dropped:
            link.link.detach(closed)

    @rule(client=clients, really=SELDOM)
    def drop(self, client: MemoryClient, really: bool) -> None:
        if really:
            client.drop()

    @rule(client=clients, really=SELDOM)
    def end(self, client: MemoryClient, really: bool) -> None:
        if really and not client.dropped:
            client.end()
            client.session = client.add_session()

    # --- messages

    def body(self, size: int) -> bytes:
        self.numbers += 1
        return self.numbers.to_bytes(4, "big") + bytes(size)

    @rule(
        sender=senders,
        sizes=st.lists(SIZES, min_size=1, max_size=5),
        settled=st.booleans(),
        frames=st.integers(1, 4),
        abort=SELDOM,
        to=st.one_of(ADDRESSES, ADDRESSES, st.sampled_from(["nowhere", "closed"])),
    )
    def send(self, sender: MemorySender, sizes: list[int], settled: bool, frames: int, abort: bool, to: str) -> None:
        for size in sizes:
            if sender.link.credit <= 0:
                self.router.pump()
            if sender.link.credit > 0:
                message = compose(self.body(size), to=to)
                self.note(sender.send(message, settled=settled, frames=frames, abort=abort and size > 1000))

    @rule(target=unfinished, sender=senders, size=SIZES, settled=st.booleans(), to=ADDRESSES)
    def begin(self, sender: MemorySender, size: int, settled: bool, to: str) -> Any:
        if sender.link.credit <= 0:
            self.router.pump()
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

    @rule(data=st.data(), settled=st.booleans(), state=st.one_of(st.none(), OUTCOMES), really=SELDOM)
    def sender_settles(self, data: st.DataObject, settled: bool, state: object, really: bool) -> None:
        if not really:
            return
        mine = [sent for sent in self.sent if sent.delivery.begun and not sent.delivery.settled]
        if mine:
            data.draw(st.sampled_from(mine)).settle(state, settled)

    # --- receivers

    @rule(receiver=receivers, count=st.integers(1, 30))
    def grant(self, receiver: MemoryReceiver, count: int) -> None:
        if receiver.attach is not None:
            receiver.grant(count)

    @rule(receiver=receivers, really=SELDOM)
    def drain(self, receiver: MemoryReceiver, really: bool) -> None:
        if really:
            receiver.drain()

    @rule(
        data=st.data(),
        state=st.one_of(st.none(), OUTCOMES, OUTCOMES, st.just(Received(1, 2))),
        settled=st.sampled_from([True, True, False]),
        many=st.booleans(),
    )
    def settle(self, data: st.DataObject, state: object, settled: bool, many: bool) -> None:
        self.router.pump()
        unsettled = [
            message
            for receiver in self.receiving
            if not receiver.client.dropped
            for message in receiver.received
            if not (message.delivery.settled or message.delivery.remote_settled)
        ]
        if unsettled:
            for message in unsettled[::2] if many else [data.draw(st.sampled_from(unsettled))]:
                self.note_outcome(message, state)
                message.settle(state, settled)

    def note_outcome(self, message: ReceivedMessage, state: object) -> None:
        number = number_of(message)
        if isinstance(state, Accepted) or state is None:
            self.accepted.add(number)  # a settlement without a state counts as accepted by a multicast

    # --- progress of the bytes

    @rule()
    def pump(self) -> None:
        self.router.pump()

    @rule(client=clients, how=st.sampled_from(["write", "read", "stall"]))
    def carry(self, client: MemoryClient, how: str) -> None:
        client.stalled = how == "stall"
        if how == "write":
            client.write()
            self.router.flush()
        else:
            client.read()

    # --- invariants

    @invariant()
    def no_connection_has_a_fault(self) -> None:
        for client in self.router.clients:
            assert client.faults == []
            assert client.closed is None
            assert [event for event in client.ended if event.error is not None] == []

    @invariant()
    def credit_is_conserved(self) -> None:
        core = self.router.core
        for incoming in core.incoming_endpoints():
            owed = incoming.capacity - incoming.link.credit - incoming.account.kept_credit - incoming.unsettled
            assert owed >= 0
            assert incoming.account.kept_credit >= 0
            assert incoming.unsettled >= 0
            # until a message in pieces has arrived completely, its sender could not use new credit
            assert incoming.link.credit > 0 or owed == 0 or incoming.link.partial is not None

    @invariant()
    def links_count_their_deliveries(self) -> None:
        for outgoing in self.router.core.outgoing_endpoints():
            assert outgoing.backlog == sum(not out.aborted for out in outgoing.queue)
            ring: DeliveryRing = outgoing.link.session.deliveries.outgoing
            mine = [each for each in ring.all() if each.link is outgoing.link and each.complete]
            assert outgoing.unsettled == len(mine)

    @invariant()
    def held_bytes_are_never_negative(self) -> None:
        for client in self.router.clients:
            for session in client.server.sessions():
                assert session.windows.held_bytes >= 0

    @invariant()
    def windows_stay_within_their_limits(self) -> None:
        for client in self.router.clients:
            if client.dropped:
                continue
            for session in [*client.server.sessions(), *client.connection.sessions()]:
                assert (
                    -session.windows.max_incoming_frames
                    <= session.windows.incoming_frames
                    <= session.windows.max_incoming_frames
                )
                assert 0 <= session.windows.outgoing_frames <= LIMITS.window_frames

    @invariant()
    def each_end_settles_a_delivery_once(self) -> None:
        for receiver in self.receiving:
            for message in receiver.received:
                settled = [settled for _, settled in message.history].count(True)
                assert settled <= 1
                assert not (message.settled and message.history)

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
        """Let all clients read and settle: everything ends in order, and nothing is left."""
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
        self.no_connection_has_a_fault()
        self.credit_is_conserved()
        self.outcomes_are_final_and_true()
        self.every_message_has_its_end()
        assert self.router.held_bytes() == 0
        for incoming in self.router.core.incoming_endpoints():
            assert incoming.unsettled == 0
        for outgoing in self.router.core.outgoing_endpoints():
            assert (outgoing.unsettled, outgoing.backlog) == (0, 0)
        for client in self.router.clients:
            self.both_ends_count_the_same_frames(client)
            for session in client.server.sessions():
                assert session.deliveries.incoming.count == session.deliveries.outgoing.count == 0
            client.drop()
        assert not self.router.core.table.entries
        assert not self.router.core.links
        assert self.router.held_bytes() == 0

    def both_ends_count_the_same_frames(self, client: MemoryClient) -> None:
        """Check that at rest nothing is under way, and that a sender's window is no wider than the receiver's."""
        if client.dropped:
            return
        ours, theirs = client.server.sessions(), client.connection.sessions()
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            for here, there in ((one, other), (other, one)):
                assert here.windows.next_incoming_id == there.windows.next_outgoing_id
                assert there.windows.outgoing_frames <= here.windows.incoming_frames

    def every_message_has_its_end(self) -> None:
        for sent in self.sent:
            link = sent.sender.link
            over = sent.sender.client.dropped or not link.attached
            if sent.presettled or over or sent.delivery.aborted or not sent.delivery.begun:  # type: ignore[attr-defined]
                continue
            assert sent.delivery.complete
            assert sent.settled or sent.delivery.settled


def number_of(message: ReceivedMessage) -> int:
    """Return the number in the first bytes of a message's body; -1 while these have not arrived."""
    payload = message.payload
    start = payload.find(b"\0\x53\x75")
    start += 5 if payload[start + 3 : start + 4] == b"\xa0" else 8
    return int.from_bytes(payload[start : start + 4], "big") if 5 <= start <= len(payload) - 4 else -1


RouterMachine.TestCase.settings = settings(settings(), stateful_step_count=80)
TestRouterMachine = RouterMachine.TestCase
