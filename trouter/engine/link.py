"""Links: one direction of messages between two termini (AMQP 1.0 part 2, 2.6).

We receive on an incoming link (our role is receiver) and send on an outgoing one. Credit is counted in deliveries;
delivery-counts wrap at 32 bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trouter.wire.outgoing import (
    CONTINUATION_OVERHEAD,
    GENERAL_OVERHEAD,
    TRANSFER_OVERHEAD,
    write_abort,
    write_first_frame,
    write_general_frame,
    write_next_frame,
)
from trouter.wire.performatives import Attach, Detach, Error, Rejected, encode_state
from trouter.wire.transfers import FlowReader, TransferReader

from .attaches import drop_unread
from .events import LinkDetached
from .faults import Fault, Misuse, PeerFault
from .link_base import DETACHING, Link
from .ports import Delivery, advance_incoming, advance_outgoing
from .session import Session
from .session_links import RefusedLink
from .states import LINK_NEXT, DeliveryStep, LinkState, LinkStep

if TYPE_CHECKING:
    from cython import Py_ssize_t
    from cython import int as c_int

    from .ports import ConnectionPort, SessionPort, SessionWindows

_MASK32: Final[Py_ssize_t] = 0xFFFFFFFF
_BEGIN: Final[c_int] = int(DeliveryStep.BEGIN)
_FINISH: Final[c_int] = int(DeliveryStep.FINISH)
_ABORT: Final[c_int] = int(DeliveryStep.ABORT)
_SETTLE_THERE: Final[c_int] = int(DeliveryStep.SETTLE_THERE)
_HALF: Final[Py_ssize_t] = 0x80000000
_FIRST_OVERHEAD: Final[Py_ssize_t] = TRANSFER_OVERHEAD
_AGAIN_OVERHEAD: Final[Py_ssize_t] = CONTINUATION_OVERHEAD
_GENERAL_OVERHEAD: Final[Py_ssize_t] = GENERAL_OVERHEAD
#: With the general overhead it leaves room for payload in the smallest frame.
_MAX_TRANSFER_STATE: Final[Py_ssize_t] = 256
#: A delivery may have any number of frames of 256 bytes each; the smallest max-frame-size allows more than that.
_SMALL_FRAME_BITS: Final[c_int] = 8
#: The state for the sender of a message that is too large, before its link ends.
_REJECTED = 0x25
_LONG_TAG = encode_state(Rejected(Error("amqp:invalid-field", "a delivery-tag has at most 32 bytes")))
_TOO_LARGE = encode_state(Rejected(Error(Fault.MESSAGE_SIZE.value.condition, Fault.MESSAGE_SIZE.value.text)))


def add_link(session: Session, name: str, incoming: bool) -> IncomingLink | OutgoingLink:
    """Add a link to ``session`` under a free handle of ours and return it; Misuse if none is left."""
    link = IncomingLink(session, name) if incoming else OutgoingLink(session, name)
    session.links.add_link(link, session.links.free_handle())
    if isinstance(link, OutgoingLink):
        link.delivery_count = session.limits.first_outgoing_id
    return link


def receive_attach(session: Session, attach: Attach) -> IncomingLink | OutgoingLink:
    """Return the link that the peer's attach creates or answers; PeerFault."""
    incoming = not attach.role
    links = session.links
    if attach.handle > links.handle_max:
        raise PeerFault(Fault.HANDLE_MAX, handle=attach.handle, handle_max=links.handle_max)
    if attach.handle in links.by_remote_handle:
        raise PeerFault(Fault.HANDLE_IN_USE, name=attach.name, handle=attach.handle)
    link: Any = links.by_name.get((incoming, attach.name))
    if link is None:
        if len(attach.name.encode()) > session.limits.max_link_name_bytes:
            raise PeerFault(Fault.LINK_NAME_SIZE, limit=session.limits.max_link_name_bytes)
        if session.connection.link_count + session.connection.refused_count >= session.limits.max_links:
            raise PeerFault(Fault.LINK_COUNT, limit=session.limits.max_links)
        try:
            link = add_link(session, attach.name, incoming)
        except Misuse:
            raise PeerFault(Fault.HANDLE_MAX, handle=attach.handle, handle_max=links.remote_handle_max) from None
    elif (link.state, LinkStep.RECEIVE_ATTACH) not in LINK_NEXT:
        raise PeerFault(Fault.LINK_NAME_IN_USE, name=attach.name)
    if not session.limits.whole_attaches:
        drop_unread(attach)
    link.keep_attach(attach)
    link.advance_state(LinkStep.RECEIVE_ATTACH)
    link.remote_handle = attach.handle
    links.by_remote_handle[attach.handle] = link
    if incoming:
        link.delivery_count = attach.initial_delivery_count or 0
        if link.credit > 0:
            link.grant(0)  # granted before the peer's attach came, and not sent yet
    return link  # type: ignore[no-any-return]


def receive_detach(session: Session, detach: Detach) -> LinkDetached | None:
    """Apply the peer's detach; return what the owner of the link is told, None for nothing; PeerFault."""
    link: Any = session.links.find_link(detach.handle, "detach")
    if isinstance(link, RefusedLink):
        link.receive_detach(detach.handle)
        return None
    ours_first = link.state in DETACHING
    link.receive_detach(detach.closed)
    return LinkDetached(link, detach.closed, detach.error) if link.awaited or not ours_first else None


class IncomingLink(Link):
    """A link on which the peer sends to us."""

    __slots__ = (
        "draining",
        "keeps_tags",
        "max_message_bytes",
        "max_credit",
        "overdraft",
        "overdrawn",
        "partial",
        "_frames",
        "_max_frames",
        "_refusing",
    )

    def __init__(self, session: Session, name: str) -> None:
        super().__init__(session, name, True)
        # Credit below zero counts what the sender began without credit; the next grant makes up for it.
        #: The most credit that the sender had at once; it may overdraw its credit by ``overdraft`` times as many
        #: deliveries. The owner of the link may set more.
        self.max_credit: Py_ssize_t = 0
        self.overdraft: Py_ssize_t = 1
        #: Deliveries that came without credit and were accepted.
        self.overdrawn: Py_ssize_t = 0
        self.draining = False
        self.max_message_bytes: Py_ssize_t = session.limits.max_message_bytes
        self._max_frames: Py_ssize_t = session.limits.max_delivery_frames
        #: Deliveries keep their tag; the router sends its own tags and needs none of them.
        self.keeps_tags = True
        #: The delivery whose last frame has not come yet.
        self.partial: Delivery | None = None
        #: The number of its frames that came.
        self._frames: Py_ssize_t = 0
        #: Its frames are discarded.
        self._refusing = False

    def attach(self, source: Any, target: Any, **fields: Any) -> None:
        """Send our attach with the largest message that the link accepts."""
        if self.max_message_bytes > 0:
            fields["max_message_size"] = self.max_message_bytes
        super().attach(source, target, **fields)

    def grant(self, count: Py_ssize_t) -> None:
        """Grant the sender ``count`` more deliveries; this ends a drain."""
        self.credit += count
        if self.credit > self.max_credit:
            self.max_credit = self.credit
        self.draining = False
        self.request_flow()

    def drain(self) -> None:
        """Request the sender to use or give back its credit (2.6.7)."""
        if self.credit > 0 and not self.draining:
            self.draining = True
            self.request_flow()

    def receive_transfer(self, transfer: TransferReader, data: bytes, end: Py_ssize_t) -> None:
        """Begin or continue a delivery and pass the payload to the sink; PeerFault."""
        if not self.attached:
            # the frame crossed our detach
            if self.state is LinkState.ATTACH_RECEIVED:
                raise PeerFault(Fault.TRANSFER_LIMIT)
            return
        delivery: Delivery | None = self.partial
        if delivery is None:
            delivery = self._begin_delivery(transfer)
        elif transfer.delivery_id >= 0 and transfer.delivery_id != delivery.delivery_id:
            raise PeerFault(
                Fault.DELIVERY_ID,
                detail=f"delivery {transfer.delivery_id} began while {delivery.delivery_id} was incomplete",
            )
        if self._refusing:
            self._discard_frame(delivery, transfer, end)
            return
        if transfer.aborted:
            self._abort_delivery(delivery)
            return
        start: Py_ssize_t = transfer.payload
        if transfer.state_code != 0:
            self._store_state(delivery, transfer)
        if transfer.settled == 1 and not delivery.remote_settled:
            advance_incoming(delivery, _SETTLE_THERE)
            self._deliveries.forget_incoming(delivery)
        delivery.payload_bytes += end - start
        self.payload_bytes += end - start
        if self.max_message_bytes > 0 and delivery.payload_bytes > self.max_message_bytes:
            self.session.settle_incoming(delivery, _REJECTED, _TOO_LARGE, True)
            self._abort_delivery(delivery)
            raise PeerFault(Fault.MESSAGE_SIZE)
        if transfer.more:
            self._count_frame(delivery)
            self.partial = delivery
        else:
            self.partial = None
            advance_incoming(delivery, _FINISH)
        self.sink.on_transfer(self, delivery, data, start, end)
        if self.draining and self.credit <= 0:
            self._end_drain()

    def _discard_frame(self, delivery: Delivery, transfer: TransferReader, end: Py_ssize_t) -> None:
        """Discard the frames of a delivery that was rejected for its tag: the sink gets no ``on_transfer`` of it."""
        delivery.payload_bytes += end - transfer.payload
        if transfer.more and not transfer.aborted:
            self._count_frame(delivery)
            self.partial = delivery
        else:
            self._refusing = False
            self._abort_delivery(delivery)

    def _count_frame(self, delivery: Delivery) -> None:
        """Count a frame that is not the last; PeerFault if the delivery's frames are many and nearly empty."""
        self._frames = 1 if self.partial is None else self._frames + 1
        max_frames: Py_ssize_t = self._max_frames + (delivery.payload_bytes >> _SMALL_FRAME_BITS)
        if self._frames > max_frames:
            self._refusing = False
            self._abort_delivery(delivery)
            raise PeerFault(Fault.DELIVERY_FRAMES, payload_bytes=delivery.payload_bytes, frames=max_frames)

    def _store_state(self, delivery: Delivery, transfer: TransferReader) -> None:
        """Keep a state that came on a transfer; PeerFault if it is too large to be forwarded in any frame."""
        state = transfer.state
        if state is not None and len(state) > _MAX_TRANSFER_STATE:
            self._abort_delivery(delivery)
            raise PeerFault(Fault.TRANSFER_STATE, size=len(state), limit=_MAX_TRANSFER_STATE)
        delivery.remote_code = transfer.state_code
        delivery.remote_state = delivery.transfer_state = state

    def _end_drain(self) -> None:
        """End the drain if no delivery is partial: no credit is left (some senders send no flow once it is used up)."""
        if self.partial is None:
            self.draining = False
            self.sink.on_drained(self)

    def _begin_delivery(self, transfer: TransferReader) -> Delivery:
        """Return the delivery that a first transfer frame begins; PeerFault."""
        if self.credit <= 0:
            self._accept_overdrawn()
        if transfer.delivery_id < 0:
            raise PeerFault(Fault.DELIVERY_ID, detail="the first transfer of a delivery carries no delivery-id")
        if not transfer.has_tag():
            raise PeerFault(Fault.DELIVERY_TAG)
        self._deliveries.check_delivery_id(transfer.delivery_id)
        self.credit -= 1
        self.delivery_count = (self.delivery_count + 1) & _MASK32
        delivery: Delivery = self.sink.make_delivery(self)
        advance_incoming(delivery, _BEGIN)
        delivery.delivery_id = transfer.delivery_id
        if self.keeps_tags:
            delivery.tag = transfer.copy_delivery_tag()
        if transfer.message_format > 0:
            delivery.message_format = transfer.message_format
        if transfer.settled == 1:
            advance_incoming(delivery, _SETTLE_THERE)
        else:
            self._deliveries.add_incoming(delivery)
        if transfer.has_long_tag():
            self._refusing = True
            self.session.settle_incoming(delivery, _REJECTED, _LONG_TAG, True)
            self.sink.on_refused(self, delivery)
        return delivery

    def _accept_overdrawn(self) -> None:
        """Accept a delivery without credit; PeerFault beyond the overdraft.

        Some brokers add every flow's credit to what they have under way: after two flows in a row they send more than
        both allow (2.6.7), after ten as much as ten allow. The session's window and the limits on held bytes still
        apply.
        """
        if -self.credit >= self.max_credit * self.overdraft:
            raise PeerFault(Fault.TRANSFER_LIMIT)
        self.overdrawn += 1
        self.sink.on_overdrawn(self)

    def _abort_delivery(self, delivery: Delivery) -> None:
        self.partial = None
        advance_incoming(delivery, _ABORT)
        self._deliveries.forget_incoming(delivery)
        self.sink.on_aborted(self, delivery)
        if self.draining and self.credit <= 0:
            self._end_drain()

    def receive_flow(self, flow: FlowReader) -> None:
        """Apply the sender's view of the link: credit used without sending, and the answer to a drain."""
        if not self.attached:
            return
        if flow.delivery_count >= 0:
            used: Py_ssize_t = (flow.delivery_count - self.delivery_count) & _MASK32
            if 0 < used <= self.credit:
                self.credit -= used
                self.delivery_count = flow.delivery_count
        if self.draining and self.credit <= 0:
            self._end_drain()
        if flow.echo:
            self.request_flow()

    def write_flow(self) -> bool:
        """Write a flow with our credit and drain flag; return whether the link is still attached."""
        return self._write_flow(self.draining)


class OutgoingLink(Link):
    """A link on which we send to the peer."""

    __slots__ = ("drain", "waiting", "_abort_due")

    def __init__(self, session: Session, name: str) -> None:
        super().__init__(session, name, False)
        self.drain = False
        #: The link is in the session's queue of links that wait for its window or for room in the output.
        self.waiting = False
        #: The half-sent delivery is aborted; the peer does not know yet.
        self._abort_due = False

    def attach(self, source: Any, target: Any, **fields: Any) -> None:
        """Send our attach with the count from which the receiver's credit starts (2.6.7)."""
        fields.setdefault("initial_delivery_count", self.delivery_count)
        super().attach(source, target, **fields)

    def is_ready(self) -> bool:
        """Return whether a new delivery may begin now."""
        return self.attached and self.credit > 0 and not self.waiting

    def frame_room(self, delivery: Delivery) -> Py_ssize_t:
        """Return the bytes of payload that fit into the next frame of ``delivery``."""
        overhead: Py_ssize_t = _FIRST_OVERHEAD
        if delivery.begun:
            overhead = _AGAIN_OVERHEAD
        elif delivery.tag is not None or delivery.message_format != 0 or delivery.transfer_state is not None:
            overhead = self._general_overhead(delivery)
        return self.session.connection.remote_max_frame_bytes - overhead

    def send(self, delivery: Delivery, data: bytes, start: Py_ssize_t, end: Py_ssize_t, more: bool) -> Py_ssize_t:
        """Send ``data[start:end]`` of a delivery in as many frames as the session takes; return where it stopped.

        ``more`` says that payload follows in a later call. If it stops short of ``end`` (or leaves
        ``delivery.complete`` unset although ``more`` was false), the link waits and ``on_credit`` follows. The caller
        checks ``is_ready`` before a delivery begins.
        """
        windows: SessionWindows = self.session.windows
        connection: ConnectionPort = self.session.connection
        if not self.attached:
            return start
        out: bytearray = connection.out
        while True:
            if delivery.begun and start == end and more:
                return start
            if len(out) >= connection.high_water:
                connection.paused = True
                self._wait_for_room()
                return start
            if windows.outgoing_frames <= 0:
                self._wait_for_room()
                return start
            plain: bool = delivery.tag is None and delivery.message_format == 0 and delivery.transfer_state is None
            room: Py_ssize_t = self.frame_room(delivery)
            stop: Py_ssize_t = end
            if end - start > room:
                stop = start + room
            frame_more: bool = more or stop < end
            windows.spend_frame()
            if not delivery.begun:
                advance_outgoing(delivery, _BEGIN)
                self._deliveries.add_outgoing(delivery)
                self.delivery_count = (self.delivery_count + 1) & _MASK32
                self.credit -= 1
                if plain:
                    write_first_frame(
                        out,
                        self.session.channel,
                        self.handle,
                        delivery.delivery_id,
                        delivery.number,
                        delivery.settled,
                        frame_more,
                        data,
                        start,
                        stop,
                    )
                else:
                    self._send_general(delivery, frame_more, data, start, stop)
            else:
                write_next_frame(out, self.session.channel, self.handle, frame_more, data, start, stop)
            connection.touch()
            self.payload_bytes += stop - start
            start = stop
            if not frame_more:
                advance_outgoing(delivery, _FINISH)
                return start

    def abort_delivery(self, delivery: Delivery) -> None:
        """Abort a delivery that was begun and is not complete (2.6.14); drop one that was not begun."""
        if delivery.begun and not delivery.complete:
            advance_outgoing(delivery, _ABORT)
            if self.attached and self.session.windows.outgoing_frames > 0:
                self._write_aborted()
            elif self.attached:
                self._abort_due = True  # an aborting transfer needs the window like any other
                self._wait_for_room()
        elif not delivery.complete:
            delivery.drop_unsent()
        if delivery.begun:
            self._deliveries.forget_outgoing(delivery)

    def _write_aborted(self) -> None:
        session: SessionPort = self.session
        session.windows.spend_frame()
        write_abort(session.connection.out, session.channel, self.handle)
        session.connection.touch()

    def receive_flow(self, flow: FlowReader) -> None:
        """Apply the receiver's credit, counted from its delivery-count (2.6.7); an impossible count reads as ours."""
        if flow.link_credit >= 0:
            ahead: Py_ssize_t = 0
            if flow.delivery_count >= 0:
                ahead = (self.delivery_count - flow.delivery_count) & _MASK32
                if ahead >= _HALF:
                    ahead = 0
            credit: Py_ssize_t = flow.link_credit - ahead
            self.credit = credit if credit > 0 else 0
        self.drain = flow.drain
        if flow.echo:
            self.request_flow()
        if self.attached and not self.waiting:
            self.sink.on_credit(self)

    def resume_sending(self) -> None:
        """Continue to send: the session's window or the output has room again."""
        self.waiting = False
        if self.attached:
            if self._abort_due:
                self._abort_due = False
                self._write_aborted()
            self.sink.on_credit(self)

    def write_flow(self) -> bool:
        """Write a flow with our delivery-count and the credit left; return whether the link is still attached."""
        return self._write_flow(self.drain)

    def return_credit(self) -> None:
        """Answer a drain: give back the credit that is left (2.6.7)."""
        if self.drain and self.attached:
            self.delivery_count = (self.delivery_count + self.credit) & _MASK32
            self.credit = 0
            self.request_flow()

    def _wait_for_room(self) -> None:
        if not self.waiting:
            self.waiting = True
            session: Session = self.session
            session.wait_for_room(self)

    def _general_overhead(self, delivery: Delivery) -> Py_ssize_t:
        state = delivery.transfer_state
        if state is None:
            return _GENERAL_OVERHEAD
        if len(state) > _MAX_TRANSFER_STATE:
            raise Misuse(f"a state of {len(state)} bytes on a transfer")
        return _GENERAL_OVERHEAD + len(state)

    def _send_general(self, delivery: Delivery, more: bool, data: bytes, start: Py_ssize_t, end: Py_ssize_t) -> None:
        tag = delivery.number.to_bytes(8, "little") if delivery.tag is None else delivery.tag
        write_general_frame(
            self.session.connection.out,
            self.session.channel,
            self.handle,
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

    def receive_transfer(self, transfer: TransferReader, data: bytes, end: Py_ssize_t) -> None:
        """Raise PeerFault: the peer receives on this link and may not send."""
        if self.attached or self.state is LinkState.ATTACH_RECEIVED:
            raise PeerFault(Fault.ERRANT_LINK, name=self.name)
