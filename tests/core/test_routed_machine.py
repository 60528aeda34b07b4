"""Any operations of both ends of a routed link in any order: nothing is lost, changed, invented or left over."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from trouter.core.egress import Egress
from trouter.core.ingress import Ingress
from trouter.core.routes import LinkRoute
from trouter.engine.limits import EngineLimits
from trouter.testing.memory import MemoryReceiver, MemoryRouter, MemorySender, ReceivedMessage, SentMessage, compose
from trouter.wire.performatives import Accepted, Error, Modified, Rejected, Released

#: Windows so small that large messages wait for them.
LIMITS = EngineLimits(
    first_outgoing_id=0xFFFFFFFE, idle_timeout_s=0.0, max_frame_bytes=4096, session_window_bytes=65536
)
SIZES = st.sampled_from((0, 10, 3_000, 70_000, 200_000))
STATES = st.sampled_from((Accepted(), Released(), Modified(undeliverable_here=True), Rejected(Error("a:b", "c")), None))


class Routed(RuleBasedStateMachine):
    """A sender and a receiver, one of them a client and the other a container."""

    @initialize(towards=st.booleans(), eager=st.booleans())
    def begin(self, towards: bool, eager: bool) -> None:
        """Start; with ``eager`` bytes are carried after every step."""
        self.eager = eager
        self.router = MemoryRouter()
        for way in ("in", "out"):
            self.router.core.routes.add(LinkRoute("q", way, is_prefix=True, container_id="B"), iter(()))
        self.broker = self.router.connect(limits=LIMITS, container_id="B", role="route-container")
        self.client = self.router.connect(limits=LIMITS)
        self.sender: MemorySender
        self.receiver: MemoryReceiver
        if towards:
            self.sender = self.client.sender("q")
            (end,) = self.broker.attached
            assert isinstance(end, MemoryReceiver)
            self.receiver = end
        else:
            self.receiver = self.client.receiver("q")
            (far,) = self.broker.attached
            assert isinstance(far, MemorySender)
            self.sender = far
        self.sent: list[tuple[SentMessage, bytes]] = []
        self.half: tuple[SentMessage, bytes] | None = None
        self.aborted: list[SentMessage] = []
        self.answered: list[tuple[ReceivedMessage, object]] = []
        self.numbers = 0
        self.over = False

    def message(self, size: int) -> bytes:
        self.numbers += 1
        return compose(self.numbers.to_bytes(4, "big") + bytes(size))

    @precondition(lambda self: self.half is None)
    @rule(size=SIZES, settled=st.booleans(), frames=st.integers(1, 3))
    def send(self, size: int, settled: bool, frames: int) -> None:
        message = self.message(size)
        self.sent.append((self.sender.send(message, settled=settled, frames=frames), message))

    @precondition(lambda self: self.half is None)
    @rule(size=SIZES)
    def begin_one(self, size: int) -> None:
        message = self.message(size)
        self.half = self.sender.begin(message[: len(message) // 2]), message

    @precondition(lambda self: self.half is not None)
    @rule(abort=st.booleans())
    def end_one(self, abort: bool) -> None:
        assert self.half is not None
        (sent, message), self.half = self.half, None
        if abort:
            sent.abort()
            self.aborted.append(sent)
        else:
            sent.finish(message[len(message) // 2 :])
            self.sent.append((sent, message))

    @rule(count=st.integers(1, 5))
    def grant(self, count: int) -> None:
        self.receiver.grant(count)

    @rule()
    def drain(self) -> None:
        self.receiver.drain()

    @rule(answers=st.booleans())
    def heed_drains(self, answers: bool) -> None:
        self.sender.answers_drain = answers

    @rule(state=STATES)
    def settle(self, state: object) -> None:
        done = [each for each, _ in self.answered]
        for each in self.receiver.received:
            if each.complete and not each.settled and each not in done:
                each.settle(state)
                self.answered.append((each, state))
                return

    @rule()
    def pump(self) -> None:
        """Carry everything, and check that the sender's credit is the receiver's, less the messages under way.

        Credit that comes while messages wait for room towards the receiver goes to the sender with the first of them.
        """
        self.router.pump()
        incoming, outgoing = self.ends()
        gathered = incoming.is_gathering()
        advertised = incoming.link.credit + outgoing.waiting.count_without_credit() + gathered
        assert advertised <= outgoing.link.credit or outgoing.link.credit == 0
        if not (outgoing.link.drain or incoming.link.draining or outgoing.link.waiting):
            assert advertised >= outgoing.link.credit
        assert self.sender.credit == incoming.link.credit or self.sender.client.stalled

    @rule(stalled=st.booleans())
    def stall(self, stalled: bool) -> None:
        self.receiver.client.stalled = stalled

    @invariant()
    def come_to_rest(self) -> None:
        if self.eager:
            self.pump()

    @invariant()
    def messages_arrive_as_sent_and_in_order(self) -> None:
        came = [each.payload for each in self.receiver.received if each.complete]
        assert came == [message for _, message in self.sent][: len(came)]

    @invariant()
    def kept_bytes_are_bounded(self) -> None:
        assert self.router.held_bytes() <= 2 * 65536

    def teardown(self) -> None:
        """Let both ends finish; then nothing is left."""
        if not hasattr(self, "router"):
            return
        if self.half is not None:
            self.end_one(abort=True)
        self.sender.answers_drain = True
        self.stall(stalled=False)
        self.router.pump()
        self.receiver.grant(len(self.sent) + len(self.aborted))
        self.router.pump()
        assert len([each for each in self.receiver.received if each.complete]) == len(self.sent)
        while any(not each.settled and each.complete for each in self.receiver.received):
            before = len(self.answered)
            self.settle(Accepted())
            if len(self.answered) == before:
                break
        self.router.pump()
        unsettled = [sent for sent, _ in self.sent if not sent.delivery.settled]
        assert len(self.answered) == len(unsettled)
        for sent, (_, state) in zip(unsettled, self.answered, strict=True):
            assert (sent.outcome, sent.settled) == (state, True)
        self.credit_is_the_receivers()
        self.sender.detach()
        assert self.router.held_bytes() == 0
        assert self.router.core.links == {}
        assert [client.closed for client in self.router.clients] == [None, None]

    def ends(self) -> tuple[Ingress, Egress]:
        (incoming,) = [each for each in self.router.core.links.values() if isinstance(each, Ingress)]
        (outgoing,) = [each for each in self.router.core.links.values() if isinstance(each, Egress)]
        return incoming, outgoing

    def credit_is_the_receivers(self) -> None:
        (incoming,) = [each for each in self.router.core.links.values() if isinstance(each, Ingress)]
        (outgoing,) = [each for each in self.router.core.links.values() if isinstance(each, Egress)]
        assert (incoming.link.credit, outgoing.backlog, incoming.unsettled, outgoing.unsettled) == (
            outgoing.link.credit,
            0,
            0,
            0,
        )
        assert self.sender.credit == incoming.link.credit
        assert self.receiver.credit == outgoing.link.credit


Routed.TestCase.settings = settings(settings(), max_examples=min(60, settings().max_examples), stateful_step_count=40)
TestRouted = Routed.TestCase
