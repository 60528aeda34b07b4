"""Links: one direction of messages between two termini (AMQP 1.0 part 2, 2.6).

An incoming link is one we receive on (our role is receiver), an outgoing link
one we send on. Credit is counted in deliveries and wraps at 32 bits.
"""

from __future__ import annotations

from typing import Any

from trouter.wire.outgoing import CONTINUATION_OVERHEAD, GENERAL_OVERHEAD, TRANSFER_OVERHEAD, TransferWriter
from trouter.wire.performatives import Attach, Error, Rejected, encode_state
from trouter.wire.transfers import FlowReader, TransferReader

from . import deliveries
from .faults import Fault, Misuse, PeerFault
from .link_base import Link
from .ports import Delivery
from .session import Session
from .states import LINK_NEXT, LinkState, LinkStep

_MASK32 = 0xFFFFFFFF
_HALF = 0x80000000
_FIRST_OVERHEAD = TRANSFER_OVERHEAD
_AGAIN_OVERHEAD = CONTINUATION_OVERHEAD
_GENERAL_OVERHEAD = GENERAL_OVERHEAD
#: With the general overhead it leaves room for payload in the smallest frame there is.
_MAX_TRANSFER_STATE = 256
#: Frames may be as many as they like that bring 256 octets each; the smallest frames there are hold more.
_OCTETS_BITS = 8
#: What the sender of a message that is too large hears of it, before its link ends.
_REJECTED = 0x25
_LONG_TAG = encode_state(Rejected(Error("amqp:invalid-field", "a delivery-tag has at most 32 bytes")))
_TOO_LARGE = encode_state(Rejected(Error(Fault.MESSAGE_SIZE.value.condition, Fault.MESSAGE_SIZE.value.text)))


def add_link(session: Session, name: str, incoming: bool) -> IncomingLink | OutgoingLink:
    """Return a new link with a handle of ours in ``session``; Misuse when none is left."""
    link = IncomingLink(session, name) if incoming else OutgoingLink(session, name)
    link.handle = session.free_handle()
    session.connection.link_count += 1
    session.links_by_handle[link.handle] = link
    session.links[incoming, name] = link
    if isinstance(link, OutgoingLink):
        link.writer = TransferWriter(session.channel, link.handle)
        link.delivery_count = session.limits.first_outgoing_id
    return link


def receive_attach(session: Session, attach: Attach) -> IncomingLink | OutgoingLink:
    """Return the link that the peer's attach makes or answers; PeerFault."""
    incoming = not attach.role
    if attach.handle > session.handle_max:
        raise PeerFault(Fault.HANDLE_MAX, handle=attach.handle, handle_max=session.handle_max)
    if attach.handle in session.links_by_remote_handle:
        raise PeerFault(Fault.HANDLE_IN_USE, name=attach.name, handle=attach.handle)
    link: Any = session.links.get((incoming, attach.name))
    if link is None:
        if len(attach.name.encode()) > session.limits.max_link_name_bytes:
            raise PeerFault(Fault.LINK_NAME_SIZE, limit=session.limits.max_link_name_bytes)
        if session.connection.link_count >= session.limits.max_links:
            raise PeerFault(Fault.LINK_COUNT, limit=session.limits.max_links)
        try:
            link = add_link(session, attach.name, incoming)
        except Misuse:
            raise PeerFault(Fault.HANDLE_MAX, handle=attach.handle, handle_max=session.remote_handle_max) from None
    elif (link.state, LinkStep.RECEIVE_ATTACH) not in LINK_NEXT:
        raise PeerFault(Fault.LINK_NAME_IN_USE, name=attach.name)
    link.step(LinkStep.RECEIVE_ATTACH)
    link.remote_handle = attach.handle
    link.remote_attach = attach
    session.links_by_remote_handle[attach.handle] = link
    if incoming:
        link.delivery_count = attach.initial_delivery_count or 0
        if link.credit > 0:
            link.grant(0)  # given before the attach was answered, and not told yet
    return link  # type: ignore[no-any-return]


class IncomingLink(Link):
    """A link on which the peer sends to us."""

    __slots__ = (
        "_frames",
        "_refusing",
        "draining",
        "keeps_tags",
        "max_message_bytes",
        "max_credit",
        "overdrawn",
        "partial",
    )

    def __init__(self, session: Session, name: str) -> None:
        super().__init__(session, name, True)
        # below zero, credit is what the sender began beyond what it had; the next grant makes up for it
        #: The most credit that the sender has had at once: as many deliveries are borne with beyond its credit.
        self.max_credit = 0
        #: Deliveries that came without credit and were taken in.
        self.overdrawn = 0
        self.draining = False
        self.max_message_bytes = session.limits.max_message_bytes
        #: Deliveries keep their tag; the router, which gives its own, has no use for it.
        self.keeps_tags = True
        #: The delivery whose last frame has not come yet.
        self.partial: Delivery | None = None
        #: How many frames of it came.
        self._frames = 0
        #: What comes of it is thrown away.
        self._refusing = False

    def attach(self, source: Any, target: Any, **fields: Any) -> None:
        """Attach as every link does, and with the largest message taken in."""
        if self.max_message_bytes > 0:
            fields["max_message_size"] = self.max_message_bytes
        super().attach(source, target, **fields)

    def grant(self, count: int) -> None:
        """Give the sender ``count`` more deliveries of credit; ends a drain."""
        self.credit += count
        if self.credit > self.max_credit:
            self.max_credit = self.credit
        self.draining = False
        self.request_flow()

    def drain(self) -> None:
        """Ask the sender to use or give back the credit it has (2.6.7)."""
        if self.credit > 0 and not self.draining:
            self.draining = True
            self.request_flow()

    def receive_transfer(self, transfer: TransferReader, data: bytes, end: int) -> None:
        """Begin or continue a delivery and hand the payload to the sink; PeerFault."""
        if not self.attached:
            # our detach and this frame passed each other
            if self.state is LinkState.ATTACH_RECEIVED:
                raise PeerFault(Fault.TRANSFER_LIMIT)
            return
        delivery = self.partial
        if delivery is None:
            delivery = self._begin(transfer)
        elif transfer.delivery_id >= 0 and transfer.delivery_id != delivery.delivery_id:
            raise PeerFault(
                Fault.DELIVERY_ID,
                detail=f"delivery {transfer.delivery_id} began while {delivery.delivery_id} was incomplete",
            )
        if self._refusing:
            self._refuse(delivery, transfer, end)
            return
        if transfer.aborted:
            self._abort(delivery)
            return
        start = transfer.payload
        if transfer.state_code != 0:
            self._take_state(delivery, transfer)
        if transfer.settled == 1 and not delivery.remote_settled:
            delivery.remote_settled = True
            self._session.incoming.remove(delivery.delivery_id)
        delivery.octets += end - start
        self.octets += end - start
        if self.max_message_bytes > 0 and delivery.octets > self.max_message_bytes:
            self._session.settle_incoming(delivery, _REJECTED, _TOO_LARGE, True)
            self._abort(delivery)
            raise PeerFault(Fault.MESSAGE_SIZE)
        if transfer.more:
            self._count_frame(delivery)
            self.partial = delivery
        else:
            self.partial = None
            delivery.complete = True
        self.sink.on_transfer(self, delivery, data, start, end)
        if self.draining and self.credit <= 0:
            self._end_drain()

    def _refuse(self, delivery: Delivery, transfer: TransferReader, end: int) -> None:
        """Throw away what comes of a delivery that was rejected by its tag: the owner of the link never sees it."""
        delivery.octets += end - transfer.payload
        if transfer.more and not transfer.aborted:
            self._count_frame(delivery)
            self.partial = delivery
        else:
            self._refusing = False
            self._abort(delivery)

    def _count_frame(self, delivery: Delivery) -> None:
        """Another frame that is not the last; PeerFault when they are many and bring next to nothing."""
        self._frames = 1 if self.partial is None else self._frames + 1
        max_frames = self._session.limits.max_delivery_frames + (delivery.octets >> _OCTETS_BITS)
        if self._frames > max_frames:
            self._refusing = False
            self._abort(delivery)
            raise PeerFault(Fault.DELIVERY_FRAMES, octets=delivery.octets, frames=max_frames)

    def _take_state(self, delivery: Delivery, transfer: TransferReader) -> None:
        """Keep a state that came on a transfer; PeerFault when it is too large to go on in any frame."""
        state = transfer.state
        if state is not None and len(state) > _MAX_TRANSFER_STATE:
            self._abort(delivery)
            raise PeerFault(Fault.TRANSFER_STATE, size=len(state), limit=_MAX_TRANSFER_STATE)
        delivery.remote_code = transfer.state_code
        delivery.remote_state = delivery.transfer_state = state

    def _end_drain(self) -> None:
        """No credit is left: used up by deliveries (after which some senders say nothing more) or given back."""
        if self.partial is None:
            self.draining = False
            self.sink.on_drained(self)

    def _begin(self, transfer: TransferReader) -> Delivery:
        """The delivery that a first transfer frame starts; PeerFault."""
        if self.credit <= 0:
            self._overdraw()
        if transfer.delivery_id < 0:
            raise PeerFault(Fault.DELIVERY_ID, detail="the first transfer of a delivery carries no delivery-id")
        if not transfer.has_tag():
            raise PeerFault(Fault.DELIVERY_TAG)
        session = self._session
        session.admit(transfer.delivery_id)
        self.credit -= 1
        self.delivery_count = (self.delivery_count + 1) & _MASK32
        delivery = deliveries.new_delivery(self)
        delivery.begun = True
        delivery.delivery_id = transfer.delivery_id
        if self.keeps_tags:
            delivery.tag = transfer.delivery_tag()
        if transfer.message_format > 0:
            delivery.message_format = transfer.message_format
        if transfer.settled == 1:
            delivery.remote_settled = True
        else:
            session.incoming.append(delivery.delivery_id, delivery)
        if transfer.has_long_tag():
            self._refusing = True
            session.settle_incoming(delivery, _REJECTED, _LONG_TAG, True)
            self.sink.on_refused(self, delivery)
        return delivery

    def _overdraw(self) -> None:
        """Bear with a delivery that comes without credit; PeerFault beyond as many as the sender ever had credit for.

        There are brokers that take every flow for credit beside what they have under way: two flows in a row, and
        they send more than both of them allow (2.6.7). The session's window and what may be held bound it as ever.
        """
        if -self.credit >= self.max_credit:
            raise PeerFault(Fault.TRANSFER_LIMIT)
        self.overdrawn += 1
        self.sink.on_overdrawn(self)

    def _abort(self, delivery: Delivery) -> None:
        self.partial = None
        delivery.complete = True
        delivery.aborted = True
        delivery.remote_settled = True
        self._session.incoming.remove(delivery.delivery_id)
        self.sink.on_aborted(self, delivery)
        if self.draining and self.credit <= 0:
            self._end_drain()

    def receive_flow(self, flow: FlowReader) -> None:
        """Take the sender's view of the link: credit it used without sending, and the answer to a drain."""
        if not self.attached:
            return
        if flow.delivery_count >= 0:
            used = (flow.delivery_count - self.delivery_count) & _MASK32
            if 0 < used <= self.credit:
                self.credit -= used
                self.delivery_count = flow.delivery_count
        if self.draining and self.credit <= 0:
            self._end_drain()
        if flow.echo:
            self.request_flow()

    def write_flow(self) -> bool:
        """Write our credit and drain flag; whether the link is still there."""
        return self._write_flow(self.draining)


class OutgoingLink(Link):
    """A link on which we send to the peer."""

    __slots__ = ("_abort_due", "drain", "waiting", "writer")

    def __init__(self, session: Session, name: str) -> None:
        super().__init__(session, name, False)
        self.drain = False
        #: Stands in the session's queue of links that wait for its window or for output room.
        self.waiting = False
        #: The half-sent delivery is taken back; the peer has not been told yet.
        self._abort_due = False
        self.writer = TransferWriter(session.channel, 0)

    def attach(self, source: Any, target: Any, **fields: Any) -> None:
        """Attach as every link does, and with the count that the receiver's credit starts from (2.6.7)."""
        fields.setdefault("initial_delivery_count", self.delivery_count)
        super().attach(source, target, **fields)

    def ready(self) -> bool:
        """Return whether a new delivery may be begun right now."""
        return self.attached and self.credit > 0 and not self.waiting

    def send(self, delivery: Delivery, data: bytes, start: int, end: int, more: bool) -> int:
        """Send ``data[start:end]`` of a delivery in as many frames as the session takes; where it stopped.

        ``more`` tells that payload follows in a later call. Short of ``end`` (or with
        ``delivery.complete`` unset although ``more`` was false) the link waits and ``on_credit`` follows. The caller
        sees to it that ``ready()`` held when the delivery begins.
        """
        session = self._session
        connection = session.connection
        if not self.attached:
            return start
        out = connection.out
        while True:
            if delivery.begun and start == end and more:
                return start
            if len(out) >= connection.high_water:
                connection.paused = True
                self._wait()
                return start
            if session.remote_incoming_window <= 0:
                self._wait()
                return start
            plain = delivery.tag is None and delivery.message_format == 0 and delivery.transfer_state is None
            overhead = (
                _AGAIN_OVERHEAD if delivery.begun else _FIRST_OVERHEAD if plain else self._general_overhead(delivery)
            )
            stop = end
            if end - start > connection.remote_max_frame_bytes - overhead:
                stop = start + connection.remote_max_frame_bytes - overhead
            frame_more = more or stop < end
            session.remote_incoming_window -= 1
            session.sent_frames += 1
            session.next_outgoing_id = (session.next_outgoing_id + 1) & _MASK32
            if not delivery.begun:
                delivery.begun = True
                delivery.delivery_id = session.next_delivery_id
                session.next_delivery_id = (delivery.delivery_id + 1) & _MASK32
                self.delivery_count = (self.delivery_count + 1) & _MASK32
                self.credit -= 1
                if not delivery.settled:
                    session.outgoing.append(delivery.delivery_id, delivery)
                if plain:
                    self.writer.first(
                        out, delivery.delivery_id, delivery.number, delivery.settled, frame_more, data, start, stop
                    )
                else:
                    self._send_general(delivery, frame_more, data, start, stop)
            else:
                self.writer.again(out, frame_more, data, start, stop)
            connection.touch()
            self.octets += stop - start
            start = stop
            if not frame_more:
                delivery.complete = True
                return start

    def abort(self, delivery: Delivery) -> None:
        """Take back a delivery that was begun and is not complete (2.6.14)."""
        if self.attached and delivery.begun and not delivery.complete:
            if self._session.remote_incoming_window > 0:
                self._write_aborted()
            else:
                self._abort_due = True  # a transfer frame like others, so it waits for the window too
                self._wait()
        delivery.complete = True
        delivery.aborted = True
        self._session.forget_outgoing(delivery)

    def _write_aborted(self) -> None:
        session = self._session
        session.remote_incoming_window -= 1
        session.sent_frames += 1
        session.next_outgoing_id = (session.next_outgoing_id + 1) & _MASK32
        self.writer.aborted(session.connection.out)
        session.connection.touch()

    def receive_flow(self, flow: FlowReader) -> None:
        """Take the receiver's credit, counted from its delivery-count (2.6.7); nonsense reads as none."""
        if flow.link_credit >= 0:
            ahead = 0
            if flow.delivery_count >= 0:
                ahead = (self.delivery_count - flow.delivery_count) & _MASK32
                if ahead >= _HALF:
                    ahead = 0
            credit = flow.link_credit - ahead
            self.credit = credit if credit > 0 else 0
        self.drain = flow.drain
        if flow.echo:
            self.request_flow()
        if self.attached and not self.waiting:
            self.sink.on_credit(self)

    def resume(self) -> None:
        """Go on sending: the session's window or the output has room again."""
        self.waiting = False
        if self.attached:
            if self._abort_due:
                self._abort_due = False
                self._write_aborted()
            self.sink.on_credit(self)

    def write_flow(self) -> bool:
        """Write our delivery-count and what is left of the credit; whether the link is still there."""
        return self._write_flow(self.drain)

    def drained(self) -> None:
        """Answer a drain: give back what credit is left (2.6.7)."""
        if self.drain and self.attached:
            self.delivery_count = (self.delivery_count + self.credit) & _MASK32
            self.credit = 0
            self.request_flow()

    def _wait(self) -> None:
        if not self.waiting:
            self.waiting = True
            self._session.waiting_links.append(self)

    def _general_overhead(self, delivery: Delivery) -> int:
        state = delivery.transfer_state
        if state is None:
            return _GENERAL_OVERHEAD
        if len(state) > _MAX_TRANSFER_STATE:
            raise Misuse(f"a state of {len(state)} octets on a transfer")
        return _GENERAL_OVERHEAD + len(state)

    def _send_general(self, delivery: Delivery, more: bool, data: bytes, start: int, end: int) -> None:
        tag = delivery.number.to_bytes(8, "little") if delivery.tag is None else delivery.tag
        self.writer.general(
            self._session.connection.out,
            delivery.delivery_id,
            tag,
            delivery.message_format,
            delivery.settled,
            more,
            delivery.transfer_state,
            data,
            start,
            end,
        )

    def receive_transfer(self, transfer: TransferReader, data: bytes, end: int) -> None:
        """Raise PeerFault: the peer receives on this link and may not send."""
        if self.attached or self.state is LinkState.ATTACH_RECEIVED:
            raise PeerFault(Fault.ERRANT_LINK, name=self.name)
