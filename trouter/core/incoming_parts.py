"""The parts of an incoming link: its sender's credit, the frames of unfinished messages, and the answers.

The endpoint of a link has one of each. They refer to the link and to what all links share, and never to the endpoint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trouter.engine.link import IncomingLink
from trouter.engine.ports import Delivery
from trouter.wire.order import SectionOrder
from trouter.wire.sections import InvalidMessage

from .arrival import Arrival
from .counters import Counters, address_class_of
from .egress import Egress
from .entry import AddressEntry
from .losses import abort_copy, release_blocked_copy
from .message import AnnotationRewriter, CachedAnnotations, IncomingDelivery, Message
from .outcomes import (
    ACCEPTED,
    ACCEPTED_STATE,
    BARE,
    FAILED_STATE,
    MODIFIED,
    REJECTED,
    RELEASED,
    RELEASED_STATE,
    rejected_state,
)
from .ports import Gate, SharedState

if TYPE_CHECKING:
    from cython import Py_ssize_t
    from cython import int as c_int

    from .message import OutgoingDelivery
    from .times import TimesByAddress

#: Bytes of an unfinished message to wait for before it is streamed (Q2's upper mark).
_STREAM_AT: Final[Py_ssize_t] = 131072
#: The most bytes of header, annotations and (anonymous) properties to wait for.
MAX_HEAD_BYTES = 1048576

#: The code that ends the span of a message whose sender aborted it, or left.
LOST = -1

INVALID_MESSAGE = rejected_state("amqp:decode-error", "invalid message format")


def end_span(delivery: IncomingDelivery, code: c_int) -> None:
    """End the span of a delivery, if it has one, by the code of its outcome: 0 for none, negative if it is lost."""
    span, delivery.span = delivery.span, None
    if span is not None:
        span.end(code)


class CreditAccount:
    """The credit of a link's sender: how much, and when (routing.md 1.6, 3.1-3.3).

    Credit waits for a consumer of ``entry``, the link's address (None for a link without one, whose credit waits for
    nothing), and is granted again as deliveries end. ``relay`` has the one that follows a receiver's credit.
    """

    __slots__ = (
        "link",
        "shared",
        "entry",
        "counters",
        "capacity",
        "kept_credit",
        "deliveries_when_owed",
        "unsettled",
        "gate",
        "no_credit_since_s",
        "of_container",
        "between_routers",
        "goes_on",
    )

    def __init__(
        self, link: IncomingLink, shared: SharedState, entry: AddressEntry | None, capacity: Py_ssize_t
    ) -> None:
        self.link = link
        self.shared = shared
        self.entry = entry
        self.counters = Counters()
        self.capacity = capacity
        #: Credit that waits for a consumer, in deliveries.
        self.kept_credit: Py_ssize_t = 0
        #: The number of deliveries when credit was owed that is too little to grant at once; negative for none.
        self.deliveries_when_owed: Py_ssize_t = -1
        #: Deliveries that use credit: incomplete, or settled by neither side.
        self.unsettled: Py_ssize_t = 0
        #: The gate that limits credit, or None.
        self.gate: Gate | None = None
        #: The peer is a route container.
        self.of_container = False
        #: Credit does not wait for outcomes (3.1).
        self.between_routers = False
        #: Credit is granted also while the router drains or stops: the messages are about the routers themselves.
        self.goes_on = False
        #: When the sender's credit ran out, while it is out; negative if that is unknown.
        self.no_credit_since_s: float = shared.now_s

    def grant_first_credit(self) -> None:
        """Grant the first credit, or keep it until a consumer exists (routing.md 1.6)."""
        self.kept_credit = self.capacity - self.link.credit - self.unsettled  # a broker may have begun without credit
        if self.entry is None or self.entry.is_reachable():
            self.grant_kept()

    def grant_kept(self) -> None:
        """Grant the credit that was kept back, because the address has a consumer again (3.2); this ends a drain."""
        if (self.kept_credit > 0 or self.link.draining) and (self.goes_on or not self.shared.stopping):
            count = self.kept_credit
            self.kept_credit = 0
            self.grant_credit(count)

    def note_drained(self) -> None:
        """Note that the sender gave its credit back; grant it again if there is a consumer (3.3)."""
        self.kept_credit = self.capacity - self.unsettled
        self.no_credit_since_s = self.shared.now_s
        if self.entry is None or self.entry.is_reachable():
            self.grant_kept()

    def note_overdrawn(self) -> None:
        """Count a delivery without credit; report the link for the log once."""
        self.shared.overdrawn += 1
        if self.link.overdrawn == 1:
            self.shared.overdrawing.append(self.link)

    def begin_delivery(self, delivery: IncomingDelivery) -> None:
        """Count a delivery whose first frame came; one in several frames uses credit until its last."""
        delivery.arrived_at_s = self.shared.now_s
        self.counters.deliveries += 1
        if delivery.remote_settled:
            delivery.mark_settled()
            if not delivery.complete:
                self.unsettled += 1
        else:
            self.unsettled += 1
        if self.link.credit <= 0:
            self.no_credit_since_s = delivery.arrived_at_s

    def top_up_credit(self) -> None:
        """Grant the credit of deliveries that have ended, a few at a time while the sender has plenty.

        The credit owed is what is missing to the capacity, so credit that a sender gave back unasked is not lost. An
        amount too small to grant now is granted when no more deliveries come: some senders continue only after a flow.
        A broker gets more credit only once it has used all of it, however long that takes: RabbitMQ adds a flow's
        credit to what it has under way, so several flows in a row would make it send ever more without credit.
        """
        link: IncomingLink = self.link
        owed: Py_ssize_t = self.capacity - self.kept_credit - link.credit
        if not self.between_routers:
            owed -= self.unsettled
        if link.draining or (self.shared.stopping and not self.goes_on):
            self.kept_credit += owed
        elif owed > 0 and (link.credit <= 0 or link.flow_due if self.of_container else owed >= link.credit):
            waits: bool = link.credit <= 0 and not self.between_routers and self.entry is not None
            if waits and not self.entry.is_reachable():  # type: ignore[union-attr]  # just compared
                self.kept_credit += owed
            else:
                self.grant_credit(owed)
        elif owed > 0 and self.deliveries_when_owed < 0 and not self.of_container:
            self.deliveries_when_owed = self.counters.deliveries
            self.shared.note_owed(self)

    def return_owed(self) -> bool:
        """Grant the credit owed, however little; return False if deliveries came since it was noted."""
        came: Py_ssize_t = self.counters.deliveries
        if came != self.deliveries_when_owed:
            self.deliveries_when_owed = came
            return False
        self.deliveries_when_owed = -1
        link: IncomingLink = self.link
        if link.attached and link.credit > 0 and not link.draining and not self.shared.stopping:
            owed: Py_ssize_t = self.capacity - self.kept_credit - link.credit
            if not self.between_routers:
                owed -= self.unsettled
            if owed > 0:
                self.grant_credit(owed)
        return True

    def grant_credit(self, count: Py_ssize_t) -> None:
        """Grant credit, as far as the gate allows; this ends a drain."""
        if self.gate is not None:
            count = self.gate.take_credit(self, count)
            if count == 0 and not self.link.draining:
                return
        self.link.grant(count)
        if self.link.credit > 0:
            self.no_credit_since_s = -1.0


class Settlement:
    """The answers to the sender of a link, the sender's own states, and the counts of both.

    Obeys routing.md 2.6 (undeliverable), 2.7 (loss), 2.8 (pre-settled) and 4.4 (outcomes while a message is still
    coming). An answer that ends a delivery returns True: its credit may be granted again.
    """

    __slots__ = ("account", "shared", "address_class", "of_router")

    def __init__(self, account: CreditAccount) -> None:
        self.account = account
        self.shared: SharedState = account.shared
        #: The class of the link's address, as an index into ``counters.ADDRESS_CLASSES``.
        self.address_class: Py_ssize_t = address_class_of(None if account.entry is None else account.entry.key)
        #: The sender is a neighbouring router; the router's own counts of pre-settled deliveries are of clients' only.
        self.of_router = False

    # --- to the sender

    def release_undeliverable(self, delivery: IncomingDelivery) -> None:
        """Release or drop a message without receivers (2.6); drain a link with an address instead of granting."""
        account: CreditAccount = self.account
        if account.entry is None or account.between_routers or account.entry.forwarder.is_exchange:
            self.refuse_delivery(delivery, RELEASED, RELEASED_STATE)
            return
        account.counters.undeliverable += 1
        if delivery.message is not None:
            delivery.message.now_routed()
        account.link.drain()
        if delivery.remote_settled:
            self._count_dropped(delivery)
        else:
            self._give_outcome(delivery, RELEASED, RELEASED_STATE)

    def refuse_delivery(self, delivery: IncomingDelivery, code: c_int, state: bytes) -> None:
        """Answer a delivery by the router itself."""
        message: Message | None = delivery.message
        if message is not None:
            message.now_routed()
            message.discard_rest()
        if code == RELEASED:
            self.account.counters.undeliverable += 1
        if delivery.remote_settled:
            self._count_dropped(delivery)
        else:
            self._give_outcome(delivery, code, state)

    def answer_uncounted(self, delivery: IncomingDelivery, code: c_int) -> None:
        """Answer a complete delivery, which the router has read itself, and count it on the link only."""
        if delivery.remote_settled:
            self.account.counters.presettled += 1
        else:
            delivery.link.session.settle_incoming(delivery, code, BARE[code], True)
            self.account.unsettled -= 1

    def _give_outcome(self, delivery: IncomingDelivery, code: c_int, state: bytes | None) -> None:
        """Give a delivery its outcome; settle it once the message is complete."""
        if delivery.complete:
            self._finish_delivery(delivery, code, state)
            return
        delivery.outcome = b"" if state is None else state
        if state is not None:
            delivery.link.session.settle_incoming(delivery, code, state, False)

    def _finish_delivery(self, delivery: IncomingDelivery, code: c_int, state: bytes | None) -> None:
        """Settle a complete delivery with the sender, and count its end."""
        delivery.link.session.settle_incoming(delivery, code, state, True)
        self.account.unsettled -= 1
        self._count_end(delivery, code)

    def accept_delivery(self, delivery: IncomingDelivery) -> bool:
        """Accept a delivery for all its receivers; the sender gets no state while its message is still coming."""
        if delivery.complete:
            return self.answer_delivery(delivery, ACCEPTED, ACCEPTED_STATE, True)
        delivery.state_code = ACCEPTED
        delivery.outcome = ACCEPTED_STATE
        return False

    def answer_delivery(self, delivery: IncomingDelivery, code: c_int, state: bytes | None, settled: bool) -> bool:
        """Relay a receiver's state to the sender; an outcome that was sent is final."""
        if delivery.remote_settled:
            return False
        if delivery.state_code != 0 and delivery.outcome is not None:
            code = delivery.state_code
            state = delivery.outcome
        if settled and delivery.complete:
            self._finish_delivery(delivery, code, state)
            return True
        if settled:
            if delivery.message is not None:
                delivery.message.discard_rest()
            self._give_outcome(delivery, code, state)
        elif state is not delivery.outcome:
            delivery.link.session.settle_incoming(delivery, code, state, False)
            if delivery.fanout is None and ACCEPTED <= code <= MODIFIED:
                delivery.outcome = state
        return False

    # --- from the sender

    def relay_disposition(self, delivery: IncomingDelivery) -> bool:
        """Relay the sender's state or settlement to the receivers of the message."""
        settled: bool = delivery.remote_settled
        self._relay_state(delivery, delivery.remote_code, delivery.remote_state, settled)
        if settled and not delivery.settled:
            delivery.mark_settled()
            self._count_end(delivery, delivery.state_code)
            if delivery.complete:
                self.account.unsettled -= 1
                return True
        return False

    def end_frame(self, delivery: IncomingDelivery, was_settled: bool) -> bool:
        """Apply what a later frame of a message says of its settlement; return whether it was the last frame."""
        if delivery.remote_settled and not delivery.settled:
            was_settled = True  # the flag came after the first frame
            delivery.mark_settled()
            self._relay_state(delivery, 0, None, True)
            self._count_end(delivery, delivery.state_code)
        if not delivery.complete:
            return False
        delivery.message = None
        if was_settled:
            self.account.unsettled -= 1
        elif delivery.outcome is not None and not delivery.settled:
            # an outcome from before the message was complete (4.4)
            self._finish_delivery(delivery, delivery.state_code, delivery.outcome or None)
        return True

    def _relay_state(self, delivery: IncomingDelivery, code: c_int, state: bytes | None, settled: bool) -> None:
        """Relay the sender's state to every copy that still refers to the delivery."""
        out: OutgoingDelivery | None
        for out in [delivery.single_copy] if delivery.fanout is None else delivery.fanout.copies[:]:
            if out is None:
                continue
            if isinstance(out.link.sink, Egress):
                outgoing: Egress = out.link.sink
                outgoing.relay_sender_state(out, code, state, settled)
            elif settled:
                out.sender_delivery = None
        if settled:
            delivery.single_copy = None
            delivery.fanout = None

    # --- the end of unfinished messages, and of the link

    def abort_delivery(self, delivery: IncomingDelivery) -> bool:
        """Drop a delivery that the sender aborted (4.4): only receivers of a part of it are notified.

        Return False if it had been refused.
        """
        if delivery.message is None:
            return False
        abort_copies(delivery)
        end_span(delivery, LOST)
        self.account.unsettled -= 1
        return True

    def lose_deliveries(self, own: list[Delivery] | None) -> None:
        """Abort unfinished input, and ignore outcomes still to come: the link is lost (2.7).

        ``own`` is the link's unsettled deliveries, if the caller knows them.
        """
        link: IncomingLink = self.account.link
        if link.partial is not None:
            abort_copies(link.partial)  # type: ignore[arg-type]  # made by ``new_incoming``
            link.partial = None
        session = link.session
        if own is None and self.account.unsettled > 0:
            own = session.deliveries.deliveries_of(link, True)
        if own is not None:
            for lost in own:
                delivery: IncomingDelivery = lost  # type: ignore[assignment]  # made by ``new_incoming``
                session.deliveries.forget_incoming(delivery)
                end_span(delivery, LOST)
                if delivery.fanout is not None:
                    self._relay_state(delivery, MODIFIED, FAILED_STATE, True)
                elif delivery.single_copy is not None:
                    delivery.single_copy.sender_delivery = None
                    delivery.single_copy = None
        self.account.unsettled = 0

    # --- counts

    def count_refused(self, delivery: IncomingDelivery) -> None:
        """Count a delivery that its link rejected."""
        delivery.arrived_at_s = self.shared.now_s
        self.account.counters.deliveries += 1
        if delivery.remote_settled:
            self._count_dropped(delivery)
        else:
            self._count_end(delivery, REJECTED)

    def _count_end(self, delivery: IncomingDelivery, code: c_int) -> None:
        shared: SharedState = self.shared
        account: CreditAccount = self.account
        age_s: float = shared.now_s - delivery.arrived_at_s
        account.counters.count_outcome(code, age_s)
        shared.latency.count_delivery(self.address_class, code, age_s)
        if shared.times is not None and account.entry is not None:
            times: TimesByAddress = shared.times
            times.count_delivery(account.entry, age_s)
        if delivery.span is not None:
            end_span(delivery, code)

    def count_presettled(self, delivery: IncomingDelivery) -> None:
        """Count a pre-settled delivery that went to its receivers."""
        if delivery.span is not None:
            end_span(delivery, 0)
        self.account.counters.presettled += 1
        if not self.of_router:
            self.shared.outcomes.presettled[self.address_class] += 1

    def _count_dropped(self, delivery: IncomingDelivery) -> None:
        self.count_presettled(delivery)
        self.account.counters.dropped_presettled += 1
        self.shared.outcomes.dropped[self.address_class] += 1


class Frames:
    """The frames of a link's unfinished messages: gathered whole, or sent on while more of them come.

    Obeys routing.md 3.7-3.8 (streaming). ``of_router``: the sender is a neighbouring router.
    """

    __slots__ = ("_link", "_order", "_window_bytes", "of_router", "routes_at_once", "max_read_bytes")

    def __init__(self, link: IncomingLink) -> None:
        self._link = link
        self._window_bytes: Py_ssize_t = self._link.session.windows.max_incoming_bytes
        self.of_router = False
        #: Unfinished messages are routed as soon as possible.
        self.routes_at_once = False
        #: The router reads the messages itself, whole and up to this size, and no session holds them; 0 for others.
        self.max_read_bytes: Py_ssize_t = 0
        #: The order of sections in a message of several frames, if that is checked.
        self._order: SectionOrder | None = None

    def begin_message(self, delivery: IncomingDelivery, rewriter: AnnotationRewriter, is_checked: bool) -> None:
        """Make the message of a delivery whose first frame is not its last; ``rewriter`` writes its annotations."""
        if self.max_read_bytes > 0:
            message: Message = Message(None, rewriter)
            message.wanted = self.max_read_bytes + 1
        else:
            message = Message(self._link.session, rewriter)
            message.wanted = 1 if self.of_router else _STREAM_AT  # a neighbour's may be a stream
        delivery.message = message
        self._order = SectionOrder() if is_checked else None

    def add_frame(self, arrival: Arrival) -> bool:
        """Keep or send on the next frame, which is in hand; return whether the message is to be passed on now.

        InvalidMessage for a frame that breaks the order of sections.
        """
        message: Message = arrival.message  # type: ignore[assignment]  # ``begin_message`` has made it
        message.complete = arrival.delivery.complete
        if self._order is not None:
            self._check_order(arrival, message)
        if message.routed:
            if not message.discard:
                self._send_frame_on(arrival, message)
            return False
        message.append_chunk(arrival.whole())
        return message.complete or message.held >= message.wanted or self._must_not_wait(message)

    def _check_order(self, arrival: Arrival, message: Message) -> None:
        """Check the next frame; if it breaks the order, abort the copies; InvalidMessage."""
        delivery: IncomingDelivery = arrival.delivery
        order: SectionOrder = self._order  # type: ignore[assignment]  # the caller has checked
        self._order = None
        try:
            order.check_bytes(arrival.data, arrival.start, arrival.end, delivery.complete)
        except InvalidMessage:
            if message.copies:
                abort_copies(delivery)
                delivery.message = message
            raise
        self._order = order

    def _send_frame_on(self, arrival: Arrival, message: Message) -> None:
        """Send a frame of a routed message to every copy; keep what a receiver does not take now."""
        if len(message.copies) == 1:
            only: OutgoingDelivery = message.copies[0]
            sole: Egress = only.link.sink  # type: ignore[assignment]
            sole.continue_with(only, arrival)
            if only.complete:
                return
            if arrival.start == arrival.end and not message.complete:
                return
        message.append_chunk(arrival.whole())
        copy: OutgoingDelivery
        for copy in message.copies[:]:
            outgoing: Egress = copy.link.sink  # type: ignore[assignment]
            outgoing.send_more(copy)

    def release_blocked_copies(self, message: Message) -> None:
        """Release copies that wait for others, if the session has hardly any window left for the message."""
        if message.copies and self._link.session.windows.held_bytes * 4 > self._window_bytes * 3:
            for copy in message.copies[:]:
                release_blocked_copy(copy)

    # --- whether an unfinished message waits

    def _must_not_wait(self, message: Message) -> bool:
        """Return whether to wait no longer: unfinished messages fill half the window, and might all be stuck."""
        return message.wanted == _STREAM_AT and self._link.session.windows.held_bytes * 2 > self._window_bytes

    def wait_for_more(self, message: Message, max_bytes: Py_ssize_t) -> bool:
        """Wait for more of an unfinished message; return False if ``max_bytes`` or too much is here already."""
        if message.held >= max_bytes or self._link.session.windows.held_bytes * 4 > self._window_bytes * 3:
            return False
        more: Py_ssize_t = message.held if message.held * 8 < self._window_bytes else self._window_bytes // 8
        message.wanted = message.held + (more if more > 0 else 1)
        if message.wanted > max_bytes:
            message.wanted = max_bytes
        return True

    def must_gather(self, message: Message, annotations: CachedAnnotations | None) -> bool:
        """Return whether to wait for more of a neighbour's unfinished message, which is not marked as a stream."""
        if message.complete or self.routes_at_once or message.held >= _STREAM_AT:
            return False
        if annotations is not None and annotations.parsed.stream:
            return False
        message.wanted = _STREAM_AT
        return not self._must_not_wait(message)


def is_gathering(link: IncomingLink) -> bool:
    """Return whether the sender has begun a delivery that was not forwarded yet."""
    partial: IncomingDelivery | None = link.partial  # type: ignore[assignment]  # made by ``new_incoming``
    return partial is not None and partial.message is not None and not partial.message.routed


def abort_copies(delivery: IncomingDelivery) -> None:
    """Abort every copy of an unfinished message whose rest will not come."""
    message: Message | None = delivery.message
    delivery.message = None
    if message is None:
        return
    message.aborted = True
    for out in message.copies[:]:
        abort_copy(out)
    # The copies get no further answer: one whose abort waits for its receiver's window must not be settled before.
    delivery.fanout = None
    delivery.single_copy = None
    message.routed = True
    message.discard_rest()
