"""One outgoing link: what was offered to it is sent or waits, and the outcomes of its receiver go to the senders.

A delivery goes straight from the input into the receiver's output if there is credit, window and room; otherwise it
waits here. Outcomes go back to the sender unchanged (routing.md 2.4-2.9, 4.5, 4.6). Every outgoing link has one
``Egress``. What differs between links is the ``supplier``, which follows the receiver's credit where more than what
waits depends on it: that of a routed link (``relay``), and of the link on which an edge router is notified
(``edge.peers``). ``losses`` has what becomes of deliveries that end without an outcome of the receiver.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final, Protocol

from trouter.engine.link import OutgoingLink
from trouter.engine.ports import Delivery, LinkPort, LinkSink

from . import deliveries
from .arrival import Arrival, notify_sender
from .backlog import Backlog
from .counters import AddressCounters, Counters, Origins, address_class_of
from .message import IncomingDelivery, Message, OutgoingDelivery, Outstanding, join_copy
from .messagelog import SentLog
from .outcomes import ACCEPTED, ACCEPTED_STATE
from .pace import Pace
from .ports import AddressPort, SharedState, TrunkPort

if TYPE_CHECKING:
    from cython import Py_ssize_t
    from cython import int as c_int

_FIRST_OUTCOME: Final[c_int] = 0x24
_LAST_OUTCOME: Final[c_int] = 0x27
#: The backlog of every link on which nothing has waited yet; replaced, and never changed.
_NO_BACKLOG: Final[Backlog] = Backlog()


class StreamPoolPort(Protocol):
    """The links of one connection for unfinished messages; see ``StreamPool``."""

    def borrow_link(self) -> Egress | None:
        """Return a link for the message that is offered to it next; None if there are no more."""

    def close_idle(self) -> None:
        """Close links that have been idle for long."""

    def return_link(self, outgoing: Egress) -> None:
        """Take the link back: its message has ended or was given up."""

    def forget_link(self, outgoing: Egress) -> None:
        """Forget the link, which is gone."""


class Streaming:
    """How an outgoing link takes part in streaming: unfinished messages go over links of their own.

    A link borrows such links from its ``lender``, or it is one itself and returns to its ``owner``.
    """

    __slots__ = ("lender", "owner", "unsettled")

    def __init__(self, *, lender: StreamPoolPort | None = None, owner: StreamPoolPort | None = None) -> None:
        self.lender = lender
        self.owner = owner
        #: The number of unsettled deliveries that were offered to this link and went over borrowed ones.
        self.unsettled = Outstanding()

    def lend(self, arrival: Arrival) -> OutgoingDelivery | None:
        """Send a copy of an unfinished message over a borrowed link; return it, or None if there is no such link."""
        stream: Egress | None = None if self.lender is None else self.lender.borrow_link()
        if stream is None:
            return None
        out: OutgoingDelivery = stream.offer(arrival)
        if not out.settled:
            self.unsettled.count += 1
            out.outstanding = self.unsettled
        return out

    def return_link(self, outgoing: Egress) -> None:
        """Return ``outgoing`` to its owner: its message has ended or was given up."""
        if self.owner is not None:
            self.owner.return_link(outgoing)

    def forget_link(self, outgoing: Egress) -> None:
        """Let the owner forget ``outgoing``, which is gone."""
        if self.owner is not None:
            self.owner.forget_link(outgoing)


class Supplier:
    """What supplies a link with messages, where that depends on the credit of the receiver."""

    __slots__ = ()

    def follow_credit(self, outgoing: Egress) -> None:
        """Use or pass on the credit that the messages that waited have left, and answer a drain.

        Called when the receiver's credit or drain flag has changed, or a message may no longer have to wait.
        """
        raise NotImplementedError


class Egress(LinkSink):
    """One outgoing link: its deliveries, waiting and unsettled."""

    __slots__ = (
        # What each message reads or counts, in two cache lines.
        "link",
        "shared",
        "waiting",
        "counters",
        "streaming",
        "log",
        "totals",
        "trunk",
        "strips_annotations",
        "sends_settled",
        "next_tag",
        "unsettled",
        "max_unsettled",
        "entered_here",
        # What is used more rarely.
        "supplier",
        "when_sent",
        "address_class",
        "capacity",
        "entry",
        "identity",
        "connection_number",
        "attached_at_s",
        "pace",
        "no_credit_since_s",
        "origins",
    )

    def __init__(
        self,
        link: OutgoingLink,
        shared: SharedState,
        capacity: Py_ssize_t,
        strips_annotations: bool,
        sends_settled: bool,
        supplier: Supplier | None = None,
    ) -> None:
        """Make the endpoint of ``link``; pre-settled deliveries beyond ``capacity`` are dropped, unless it is 0."""
        self.link = link
        self.shared = shared
        self.waiting: Backlog = _NO_BACKLOG
        self.counters = Counters()
        #: What supplies it and follows the receiver's credit; None if nothing but its forwarders does.
        self.supplier = supplier
        #: What to call once no delivery waits; None for nothing.
        self.when_sent: Callable[[], None] | None = None
        #: The class of its address, as an index into ``counters.ADDRESS_CLASSES``.
        self.address_class: Py_ssize_t = 0
        self.capacity = capacity
        #: The router annotations are removed from what is sent.
        self.strips_annotations = strips_annotations
        #: The receiver asked for settled deliveries only.
        self.sends_settled = sends_settled
        #: The number that becomes the next delivery-tag: of the link's own deliveries, so that it counts no others.
        self.next_tag: Py_ssize_t = 0
        self.unsettled: Py_ssize_t = 0
        #: The most unsettled deliveries that the receiver may have; more wait until it has settled some.
        self.max_unsettled: Py_ssize_t = 1 << 62
        #: The address that it serves; None if it serves none (any more).
        self.entry: AddressPort | None = None
        #: The connection to a neighbouring router that it is on; None on other connections.
        self.trunk: TrunkPort | None = None
        #: Deliveries offered to it that entered the network here; those of other routers, None before the first.
        self.entered_here: Py_ssize_t = 0
        self.origins: Origins | None = None
        #: Its part in streaming; None if unfinished messages go over it like others.
        self.streaming: Streaming | None = None
        #: The log of messages, or None.
        self.log: SentLog | None = None
        #: The counters of messages to route containers; None if the peer is none.
        self.totals: AddressCounters | None = None
        #: The numbers of link and connection in management; 0 until the router sets them.
        self.identity: Py_ssize_t = 0
        self.connection_number: Py_ssize_t = 0
        self.attached_at_s: float = shared.now_s
        self.pace: Pace = Pace(shared.now_s)
        #: When the receiver's credit ran out, while it is out; negative if that is unknown.
        self.no_credit_since_s: float = shared.now_s

    @property
    def backlog(self) -> int:
        """Number of deliveries that wait."""
        return self.waiting.count

    @property
    def queue(self) -> Collection[OutgoingDelivery]:
        """Deliveries that wait, in their order; some that were dropped are among them."""
        return self.waiting.queue or ()

    def count_load(self) -> Py_ssize_t:
        """Return the number of deliveries that wait or are unsettled, for balanced distribution (routing.md 2.3)."""
        if self.streaming is None:
            return self.waiting.count + self.unsettled
        return self.waiting.count + self.unsettled + self.streaming.unsettled.count

    def serve_entry(self, entry: AddressPort) -> None:
        """Count its deliveries as those of this address."""
        self.entry = entry
        self.address_class = address_class_of(entry.key)

    # --- sending

    def offer(self, arrival: Arrival) -> OutgoingDelivery:
        """Send a copy of the message in hand, now or later; return the copy."""
        delivery: IncomingDelivery = arrival.delivery
        message: Message | None = arrival.message
        if self.streaming is not None and message is not None and not message.complete:
            out: OutgoingDelivery | None = self.streaming.lend(arrival)
            if out is not None:
                return out
        out = deliveries.new_outgoing(self.link)
        out.tag = delivery.tag
        out.number = self.next_tag
        self.next_tag = out.number + 1
        out.arrived_at_s = delivery.arrived_at_s
        out.message_format = delivery.message_format
        out.transfer_state = delivery.transfer_state
        self._count_offered(arrival)
        if delivery.remote_settled:
            out.mark_settled()
        else:
            join_copy(delivery, out)
            if self.sends_settled:
                out.mark_settled()
        if self.log is not None:
            self.log.note_offered(out, arrival.whole() if message is None else message.first_piece())
        if message is None:
            if self.waiting.count == 0 and self._may_begin(self.link):
                arrival.send(self.link, out, self.strips_annotations)
                if out.complete:
                    self._note_sent(out)
                    return out
            message = arrival.keep()
        message.add_copy(out)
        if self.waiting.count == 0 and self._may_continue(out, message):
            self._send_kept(out, message)
            if out.complete:
                return out
        if out.settled:
            if 0 < self.capacity <= self.waiting.count:
                self.count_dropped(self.waiting.drop_presettled())
            if out.sender_delivery is None:
                self._own_backlog().note_droppable(out)
        self._own_backlog().append(out)
        return out

    def _own_backlog(self) -> Backlog:
        """Return ``waiting``, which may change from now on."""
        if self.waiting is _NO_BACKLOG:
            self.waiting = Backlog()
        return self.waiting

    def _count_offered(self, arrival: Arrival) -> None:
        """Count a delivery by the router where it entered the network, and as one to a container if this is one."""
        if arrival.source.trunk is None:
            self.entered_here += 1
        elif self.trunk is None:
            if self.origins is None:
                self.origins = Origins()
            self.origins.count_origin(arrival.origin)
        if self.totals is not None:
            self.totals.egress_container += 1
            self.entry.counters.egress_container += 1  # type: ignore[union-attr]  # what counts has an address

    def _may_begin(self, link: OutgoingLink) -> bool:
        """Return whether one more delivery may be sent now."""
        return link.credit > 0 and self.unsettled < self.max_unsettled and link.attached and not link.waiting

    def _may_continue(self, out: OutgoingDelivery, message: Message) -> bool:
        """Return whether ``out`` may begin or go on now."""
        if out.begun:
            return self.link.attached and not self.link.waiting
        if not self._may_begin(self.link):
            return False
        return message.complete or self.trunk is not None or not message.waits_for_rest(self.link.session)

    def continue_with(self, out: OutgoingDelivery, arrival: Arrival) -> None:
        """Send more of a message, uncopied if ``out`` can take it; ``arrival`` has then what was not sent.

        Called only while ``out`` is the message's single copy.
        """
        link: OutgoingLink = self.link
        message: Message = arrival.message  # type: ignore[assignment]  # a frame of it is in hand
        if (
            link.attached
            and not link.waiting
            and out.begun
            and not out.complete
            and out.chunk - message.first >= len(message.chunks)
            and self.waiting.begins_with(out)
        ):
            arrival.start = link.send(out, arrival.data, arrival.start, arrival.end, not message.complete)
            if out.complete:
                self.remove_waiting(out)  # type: ignore[unreachable]
                message.remove_copy(out)
                self._note_sent(out)
                if self.waiting.count > 0 or link.drain:
                    self.on_credit(link)

    def send_more(self, out: OutgoingDelivery) -> None:
        """Send more of ``out``, after more of its message has come."""
        if self.waiting.begins_with(out):
            self.on_credit(self.link)

    def on_credit(self, link: LinkPort) -> None:
        """Send what credit, window and output room allow; the rest of the credit is the supplier's, or is returned."""
        sender: OutgoingLink = self.link
        if sender.credit > 0:
            self.no_credit_since_s = -1.0
        self._send_waiting()
        if self.supplier is None:
            self.return_credit()
        else:
            self.supplier.follow_credit(self)
        if sender.credit == 0 and self.no_credit_since_s < 0:
            self.no_credit_since_s = self.shared.now_s
        if self.when_sent is not None and self.waiting.count == 0:
            when_sent, self.when_sent = self.when_sent, None
            when_sent()

    def return_credit(self) -> None:
        """Return the credit of a receiver that drains, unless what waits can still use it."""
        sender: OutgoingLink = self.link
        idle: bool = not sender.waiting and (self.waiting.count == 0 or not self.waiting.first().begun)
        if sender.drain and sender.credit > 0 and idle:
            sender.return_credit()

    def call_when_sent(self, when_sent: Callable[[], None]) -> None:
        """Call ``when_sent`` once no delivery waits, at once if none does."""
        if self.waiting.count == 0:
            when_sent()
        else:
            self.when_sent = when_sent

    def _send_waiting(self) -> None:
        """Send the deliveries that wait, as far as credit, window and output room allow."""
        waiting: Backlog = self.waiting
        while waiting.count > 0:
            out: OutgoingDelivery = waiting.first()
            message: Message = out.message  # type: ignore[assignment]  # until it is sent in full
            if not self._may_continue(out, message):
                break
            self._send_kept(out, message)
            if not out.complete:
                break
            if out.settled:
                self.counters.count_outcome(0, self.shared.now_s - out.arrived_at_s)
            self.remove_waiting(out)
        if waiting.count == 0:
            waiting.forget_droppable()

    def _send_kept(self, out: OutgoingDelivery, message: Message) -> None:
        """Send as much of a kept message as has come and as the link takes."""
        message.send(self.link, out, self.strips_annotations)
        if out.complete:
            message.remove_copy(out)
            self._note_sent(out)
        else:
            message.release_passed()

    def remove_waiting(self, out: OutgoingDelivery) -> None:
        """Remove a delivery from those that wait, if it is there; return a borrowed link that is idle then."""
        if self.waiting.remove(out) and self.streaming is not None and self.waiting.count == 0:
            self.streaming.return_link(self)

    def count_dropped(self, count: Py_ssize_t) -> None:
        """Count pre-settled deliveries that were dropped."""
        self.counters.presettled += count
        self.counters.dropped_presettled += count
        self.shared.outcomes.dropped[self.address_class] += count

    def _note_sent(self, out: OutgoingDelivery) -> None:
        """Count ``out``, whose last frame is written; accept it for its sender if the receiver gets it pre-settled."""
        self.counters.deliveries += 1
        if self.link.credit == 0:
            self.no_credit_since_s = self.shared.now_s
        if self.log is not None:
            self.log.log_sent(out)
        if not out.settled:
            self.unsettled += 1
            return
        self.counters.presettled += 1
        if out.outstanding is not None:
            out.leave_outstanding()
        sender_delivery: IncomingDelivery | None = out.sender_delivery
        if sender_delivery is not None:
            # the receiver wanted it settled, the sender did not: accept it for the receiver
            out.sender_delivery = None
            notify_sender(out, sender_delivery, ACCEPTED, ACCEPTED_STATE, True)

    # --- from the receiver

    def on_disposition(self, delivery: Delivery) -> None:
        """Relay the receiver's state and settlement to the sender."""
        out: OutgoingDelivery = delivery  # type: ignore[assignment]  # made by ``offer``
        sender_delivery: IncomingDelivery | None = out.sender_delivery
        settled: bool = out.remote_settled
        if not out.complete:
            if settled or _FIRST_OUTCOME <= out.remote_code <= _LAST_OUTCOME:
                settled = True  # the receiver will not get the rest
                self._abort_decided(out)
        elif settled:
            self._settled_one()
        if settled:
            self.counters.count_outcome(out.remote_code, self.shared.now_s - out.arrived_at_s)
            out.sender_delivery = None
            if out.outstanding is not None:
                out.leave_outstanding()
        if sender_delivery is not None:
            notify_sender(out, sender_delivery, out.remote_code, out.remote_state, settled)
        elif not settled and out.remote_code >= _FIRST_OUTCOME:
            # no sender waits for this outcome: settle it
            self.settle_with_receiver(out, out.remote_code, out.remote_state)

    def _settled_one(self) -> None:
        """Count one unsettled delivery less; send what waited for that."""
        self.unsettled -= 1
        if self.unsettled + 1 == self.max_unsettled and self.waiting.count > 0:
            self.on_credit(self.link)

    def _abort_decided(self, out: OutgoingDelivery) -> None:
        """Abort a delivery that the receiver decided on before it was sent in full."""
        if out.message is not None:
            out.message.remove_copy(out)
        self.link.abort_delivery(out)
        if self.waiting.begins_with(out):
            self.remove_waiting(out)
        self.on_credit(self.link)

    def settle_with_receiver(self, out: OutgoingDelivery, code: c_int, state: bytes | None) -> None:
        """Settle ``out`` with the receiver, if it is not settled yet."""
        out.leave_outstanding()
        if not (out.settled or out.remote_settled):
            out.link.session.settle_outgoing(out, code, state, True)
            if out.complete:
                self._settled_one()
                self.counters.count_outcome(out.remote_code, self.shared.now_s - out.arrived_at_s)

    # --- from the sender

    def relay_sender_state(self, out: OutgoingDelivery, code: c_int, state: bytes | None, settled: bool) -> None:
        """Relay the sender's state or settlement to the receiver; a delivery not begun becomes pre-settled."""
        if settled:
            out.sender_delivery = None
            if out.begun:
                self.settle_with_receiver(out, code, state)
            else:
                out.mark_settled()
                out.leave_outstanding()
                self._own_backlog().note_droppable(out)
        else:
            out.link.session.settle_outgoing(out, code, state, False)
