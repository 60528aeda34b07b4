"""One outgoing link: its queue of deliveries, and the outcomes that its receiver sends.

A delivery goes straight from the input into the receiver's output if there is credit, window and room; otherwise it
waits here. Outcomes go back to the sender unchanged (routing.md 2.4-2.9, 4.5, 4.6).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from typing import TYPE_CHECKING, Final, Protocol

from trouter.engine.link import OutgoingLink
from trouter.engine.ports import Delivery, LinkPort, LinkSink

from . import deliveries
from .arrival import Arrival, notify_sender
from .counters import AddressCounters, Counters, Origins, address_class_of
from .message import IncomingDelivery, Message, OutgoingDelivery, Outstanding, join_copy
from .messagelog import SentLog
from .outcomes import (
    ACCEPTED,
    ACCEPTED_STATE,
    FAILED_STATE,
    MODIFIED,
    RELEASED,
    RELEASED_STATE,
    TRANSACTIONAL,
    has_outcome_in_transaction,
)
from .pace import Pace
from .ports import AddressPort, SharedState, TrunkPort

if TYPE_CHECKING:
    from cython import Py_ssize_t
    from cython import int as c_int

_FIRST_OUTCOME: Final[c_int] = 0x24
_LAST_OUTCOME: Final[c_int] = 0x27


class StreamPoolPort(Protocol):
    """The links of one connection for unfinished messages; see ``StreamPool``."""

    def borrow_link(self) -> OutgoingEndpoint | None:
        """Return a link for the message that is offered to it next; None if there are no more."""

    def close_idle(self) -> None:
        """Close links that have been idle for long."""

    def return_link(self, outgoing: OutgoingEndpoint) -> None:
        """Take the link back: its message has ended or was given up."""

    def forget_link(self, outgoing: OutgoingEndpoint) -> None:
        """Forget the link, which is gone."""


class Backlog:
    """The deliveries that wait for one outgoing link, in their order; pre-settled ones may be dropped (routing.md 2.8).

    ``count`` is their number, and ``queue`` has them, None before the first; dropped ones keep their position there.
    """

    __slots__ = ("queue", "count", "_dropped", "_presettled")

    def __init__(self) -> None:
        self.queue: deque[OutgoingDelivery] | None = None
        self.count: Py_ssize_t = 0
        #: The dropped deliveries in the queue, of which none is the first.
        self._dropped: Py_ssize_t = 0
        #: The deliveries in the queue that may be dropped, and some that have left it; None before the first.
        self._presettled: list[OutgoingDelivery] | None = None

    def first(self) -> OutgoingDelivery:
        """Return the delivery that is next; there must be one."""
        return self.queue[0]  # type: ignore[index]  # none waits without a queue

    def begins_with(self, out: OutgoingDelivery) -> bool:
        """Return whether ``out`` is next."""
        return self.count > 0 and self.first() is out

    def append(self, out: OutgoingDelivery) -> None:
        """Add the last delivery."""
        if self.queue is None:
            self.queue = deque()
        self.queue.append(out)
        self.count += 1

    def remove(self, out: OutgoingDelivery) -> bool:
        """Remove a delivery from any position; return False if it is not there."""
        if self.begins_with(out):
            self.queue.popleft()  # type: ignore[union-attr]  # it is there
        elif self.queue is None or out not in self.queue:
            return False
        else:
            self.queue.remove(out)
        self.count -= 1
        self._pass_dropped()
        return True

    def clear(self) -> list[OutgoingDelivery]:
        """Remove and return all deliveries that wait."""
        waiting = [] if self.queue is None else [each for each in self.queue if not each.aborted]
        self.queue = None
        self._presettled = None
        self.count = self._dropped = 0
        return waiting

    def _pass_dropped(self) -> None:
        """Remove dropped deliveries from the front of the queue."""
        while self._dropped > 0:
            out: OutgoingDelivery = self.first()
            if not out.aborted:
                break
            self.queue.popleft()  # type: ignore[union-attr]  # the first was there
            self._dropped -= 1

    def note_droppable(self, out: OutgoingDelivery) -> None:
        """Note a delivery whose outcome no sender waits for; keep the list of these about as short as the backlog."""
        if self._presettled is None:
            self._presettled = []
        self._presettled.append(out)
        if len(self._presettled) > 2 * self.count + 8:
            self._presettled = [each for each in self._presettled if not (each.begun or each.complete)]

    def forget_droppable(self) -> None:
        """Forget what was noted: no delivery waits."""
        self._presettled = None

    def drop_presettled(self) -> Py_ssize_t:
        """Drop the pre-settled deliveries, except the queue's first and any half-written one; return how many (2.8).

        The cost does not depend on the other deliveries in the queue.
        """
        if self._presettled is None:
            return 0
        dropped: Py_ssize_t = 0
        for each in self._presettled:
            waiting: OutgoingDelivery = each
            if not (waiting.begun or waiting.complete or waiting is self.first()):
                if waiting.message is not None:
                    waiting.message.remove_copy(waiting)
                waiting.drop_unsent()
                dropped += 1
        self._presettled = None
        self.count -= dropped
        self._dropped += dropped
        if self._dropped > self.count:
            self.queue = deque([each for each in self.queue if not each.aborted])  # type: ignore[union-attr]
            self._dropped = 0
        return dropped


#: The backlog of every link on which nothing has waited yet; replaced, and never changed.
_NO_BACKLOG: Final[Backlog] = Backlog()


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
        stream: OutgoingEndpoint | None = None if self.lender is None else self.lender.borrow_link()
        if stream is None:
            return None
        out: OutgoingDelivery = stream.offer(arrival)
        if not out.settled:
            self.unsettled.count += 1
            out.outstanding = self.unsettled
        return out

    def return_link(self, outgoing: OutgoingEndpoint) -> None:
        """Return ``outgoing`` to its owner: its message has ended or was given up."""
        if self.owner is not None:
            self.owner.return_link(outgoing)

    def forget_link(self, outgoing: OutgoingEndpoint) -> None:
        """Let the owner forget ``outgoing``, which is gone."""
        if self.owner is not None:
            self.owner.forget_link(outgoing)


class OutgoingEndpoint(LinkSink):
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
    ) -> None:
        self.link = link
        self.shared = shared
        self.waiting: Backlog = _NO_BACKLOG
        self.counters = Counters()
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
            self._send_available(out, message)
            if out.complete:
                return out
        if out.settled:
            if 0 < self.capacity <= self.waiting.count:
                self._count_dropped(self.waiting.drop_presettled())
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
                self._remove_waiting(out)  # type: ignore[unreachable]
                message.remove_copy(out)
                self._note_sent(out)
                if self.waiting.count > 0 or link.drain:
                    self.on_credit(link)

    def send_more(self, out: OutgoingDelivery) -> None:
        """Send more of ``out``, after more of its message has come."""
        if self.waiting.begins_with(out):
            self.on_credit(self.link)

    def on_credit(self, link: LinkPort) -> None:
        """Send what credit, window and output room allow; return the rest of the credit if the receiver drains."""
        self.send_waiting()
        sender: OutgoingLink = self.link
        idle: bool = not sender.waiting and (self.waiting.count == 0 or not self.waiting.first().begun)
        if sender.drain and sender.credit > 0 and idle:
            sender.return_credit()
            self.note_credit()

    def send_waiting(self) -> None:
        """Send the deliveries that wait, as far as credit, window and output room allow."""
        sender: OutgoingLink = self.link
        waiting: Backlog = self.waiting
        if sender.credit > 0:
            self.no_credit_since_s = -1.0
        while waiting.count > 0:
            out: OutgoingDelivery = waiting.first()
            message: Message = out.message  # type: ignore[assignment]  # until it is sent in full
            if not self._may_continue(out, message):
                break
            self._send_available(out, message)
            if not out.complete:
                break
            if out.settled:
                self.counters.count_outcome(0, self.shared.now_s - out.arrived_at_s)
            self._remove_waiting(out)
        if waiting.count == 0:
            waiting.forget_droppable()
        self.note_credit()

    def note_credit(self) -> None:
        """Note when the credit has run out."""
        if self.link.credit == 0 and self.no_credit_since_s < 0:
            self.no_credit_since_s = self.shared.now_s

    def _remove_waiting(self, out: OutgoingDelivery) -> None:
        """Remove a delivery from those that wait, if it is there; return a borrowed link that is idle then."""
        if self.waiting.remove(out) and self.streaming is not None and self.waiting.count == 0:
            self.streaming.return_link(self)

    def _count_dropped(self, count: Py_ssize_t) -> None:
        """Count pre-settled deliveries that were dropped."""
        self.counters.presettled += count
        self.counters.dropped_presettled += count
        self.shared.outcomes.dropped[self.address_class] += count

    def _send_available(self, out: OutgoingDelivery, message: Message) -> None:
        """Send as much of the message as has come and as the link takes."""
        link: OutgoingLink = self.link
        while not out.complete:
            if out.chunk > 0:
                piece: bytes | None = message.piece_for(out.chunk, self.strips_annotations)
            else:
                piece = message.head_of(out, self.strips_annotations)
            if piece is None:
                if message.complete and not message.discard:
                    link.send(out, b"", 0, 0, False)
                break
            more: Py_ssize_t = message.count_joinable(out.chunk, len(piece) - out.offset, link.frame_room(out))
            if more > 0:  # the joined pieces go in one frame, or stay
                joined: bytes = message.join_on(piece[out.offset :], out.chunk, more)
                if link.send(out, joined, 0, len(joined), not message.ends_with(out.chunk + more)) < len(joined):
                    break
            else:
                last: bool = message.ends_with(out.chunk)
                size: Py_ssize_t = len(piece)
                out.offset = link.send(out, piece, out.offset, size, not last)
                if out.offset < size or (last and not out.complete):
                    break
            out.chunk += 1 + more
            out.offset = 0
        if out.complete:
            message.remove_copy(out)
            self._note_sent(out)
        else:
            message.release_passed()

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
        _leave_outstanding(out)
        sender_delivery: IncomingDelivery | None = out.sender_delivery
        if (
            sender_delivery is not None
        ):  # the receiver wanted it settled, the sender did not: accept it for the receiver
            out.sender_delivery = None
            notify_sender(out, sender_delivery, ACCEPTED, ACCEPTED_STATE, True)

    # --- from the receiver

    def on_disposition(self, delivery: Delivery) -> None:
        """Relay the receiver's state and settlement to the sender."""
        out: OutgoingDelivery = delivery  # type: ignore[assignment]  # made by ``offer_delivery``
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
            _leave_outstanding(out)
        if sender_delivery is not None:
            notify_sender(out, sender_delivery, out.remote_code, out.remote_state, settled)
        elif not settled and out.remote_code >= _FIRST_OUTCOME:
            # no sender waits for this outcome: settle it
            self._settle_with_receiver(out, out.remote_code, out.remote_state)

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
            self._remove_waiting(out)
        self.on_credit(self.link)

    def _settle_with_receiver(self, out: OutgoingDelivery, code: c_int, state: bytes | None) -> None:
        """Settle ``out`` with the receiver, if it is not settled yet."""
        _leave_outstanding(out)
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
                self._settle_with_receiver(out, code, state)
            else:
                out.mark_settled()
                _leave_outstanding(out)
                self._own_backlog().note_droppable(out)
        else:
            out.link.session.settle_outgoing(out, code, state, False)

    def abort_delivery(self, out: OutgoingDelivery) -> None:
        """Abort a delivery whose message will never be complete; forget it if it was not begun."""
        out.sender_delivery = None
        _leave_outstanding(out)
        if out.message is not None:
            out.message.remove_copy(out)
        self._remove_waiting(out)
        self.link.abort_delivery(out)
        self.on_credit(self.link)

    def release_blocked_copy(self, out: OutgoingDelivery) -> None:
        """Release ``out`` if it waits for another message to end while its session has hardly any window left.

        The other message may need that window to end, and then neither would continue. A pre-settled copy of an
        exchange is dropped instead if the message can continue without it.
        """
        if not out.begun and _may_do_without(out):
            self._remove_waiting(out)
            self._release_to_sender(out)
            out.drop_unsent()
            return
        if out.begun or self.waiting.begins_with(out) or self.waiting.count == 0:
            return
        ahead: Message | None = self.waiting.first().message
        if ahead is None or ahead.complete:
            return
        self._remove_waiting(out)
        self._release_to_sender(out)
        out.drop_unsent()

    def cut_off(self, out: OutgoingDelivery) -> None:
        """Abort a pre-settled message whose receiver takes no more of it, because others wait for it."""
        self._count_dropped(1)
        self.abort_delivery(out)

    # --- the end of the link

    def fail_sent(self) -> None:
        """Fail what a silent peer was sent, and release what waits for it. The link stays.

        A peer that returns learns that all this is settled.
        """
        session = self.link.session
        for out in [each for each in self.queue if not each.aborted]:
            self._remove_waiting(out)
            if out.begun:
                self.link.abort_delivery(out)
            self._release_to_sender(out)
            if not out.begun:
                out.drop_unsent()
        for each in session.deliveries.deliveries_of(self.link, False):
            out = each  # type: ignore[assignment]  # made by ``offer_delivery``, as all of the link
            code, state, sender_delivery = out.remote_code, out.remote_state, out.sender_delivery
            if state is None or not _FIRST_OUTCOME <= code <= _LAST_OUTCOME:
                code, state = out.remote_code, out.remote_state = MODIFIED, FAILED_STATE
            out.sender_delivery = None
            self._settle_with_receiver(out, code, state)
            if sender_delivery is not None:
                notify_sender(out, sender_delivery, code, state, True)

    def lose_link(self, own: list[Delivery] | None = None) -> None:
        """Fail what the lost link had sent in full, and release the rest (routing.md 2.7).

        ``own`` is the link's unsettled deliveries, if its session is lost with it. Else an outcome in a transaction
        stays: the transaction may still be committed, on the link to its coordinator.
        """
        detached = own is None
        waiting = self.waiting.clear()
        session = self.link.session
        if own is None and (self.unsettled > 0 or waiting):
            own = session.deliveries.deliveries_of(self.link, False)
        out: OutgoingDelivery
        for out in waiting:
            self._release_to_sender(out)
        for each in own or ():
            out = each  # type: ignore[assignment]  # made by ``offer_delivery``
            session.deliveries.forget_outgoing(out)
            if out.complete:
                code: c_int = out.remote_code
                state: bytes | None = out.remote_state
                if state is None or not (
                    _FIRST_OUTCOME <= code <= _LAST_OUTCOME
                    or (detached and code == TRANSACTIONAL and has_outcome_in_transaction(state))
                ):
                    code = MODIFIED
                    state = FAILED_STATE
                self.counters.count_outcome(code, self.shared.now_s - out.arrived_at_s)
                self._notify_lost(out, code, state)
        self.unsettled = 0

    def _release_to_sender(self, out: OutgoingDelivery) -> None:
        """Release ``out``, which will not be sent in full; drop it if its sender does not wait for an outcome."""
        if out.settled and out.sender_delivery is None:
            self._count_dropped(1)
        if out.message is not None:
            out.message.remove_copy(out)
        self._notify_lost(out, RELEASED, RELEASED_STATE)

    def _notify_lost(self, out: OutgoingDelivery, code: c_int, state: bytes) -> None:
        _leave_outstanding(out)
        sender_delivery: IncomingDelivery | None = out.sender_delivery
        if sender_delivery is not None:
            out.sender_delivery = None
            notify_sender(out, sender_delivery, code, state, True)


def _leave_outstanding(out: OutgoingDelivery) -> None:
    """Count ``out`` as no longer under way to another router."""
    if out.outstanding is not None:
        out.outstanding.count -= 1
        out.outstanding = None


def _may_do_without(out: OutgoingDelivery) -> bool:
    """Return whether a pre-settled copy of an exchange may be dropped: its message can continue without it."""
    message: Message | None = out.message
    if message is None or message.heads is None or not out.settled or out.sender_delivery is not None:
        return False
    if message.complete:
        return True
    for each in message.copies:
        copy: OutgoingDelivery = each
        if copy.begun:
            return True
    return False
