"""The two ends of a routed link: messages pass unchanged from one to the other (routing.md 3.5, 4.5).

The receiver's credit, less the deliveries that wait here for it, is the sender's credit. A drain goes through to the
sender, and its answer back.
"""

from __future__ import annotations

from collections.abc import Callable

from trouter.engine.link import IncomingLink, OutgoingLink
from trouter.engine.ports import Delivery, LinkPort
from trouter.wire import octets
from trouter.wire.sections import InvalidMessage

from . import deliveries
from .check import USER_ID_DENIED, MessageCheck
from .counters import AddressCounters
from .entry import AddressEntry
from .incoming_parts import INVALID_MESSAGE, MAX_HEAD_BYTES, CreditAccount, Frames, Settlement, is_gathering
from .message import IncomingDelivery, Message
from .outcomes import REJECTED
from .outgoing import OutgoingEndpoint
from .pace import Pace
from .ports import DeliverySource, MessageTap, SharedState
from .tenants import Tenant

_THROUGH_HEADER = 1
_THROUGH_PROPERTIES = 4
_MAX_HEAD_BYTES = MAX_HEAD_BYTES


class RoutedIncomingEndpoint(DeliverySource):
    """The incoming end of a routed link; ``outgoing`` is the other end, None while they are not joined."""

    __slots__ = (
        "_drained",
        "account",
        "attached_at_s",
        "check",
        "outgoing",
        "entry",
        "frames",
        "identity",
        "link",
        "pace",
        "settlement",
        "tap",
        "totals",
    )

    def __init__(
        self,
        link: IncomingLink,
        shared: SharedState,
        entry: AddressEntry,
        totals: AddressCounters,
        tenant: Tenant | None,
    ) -> None:
        super().__init__(shared)
        self.link = link
        #: The address of the link route, which counts its messages.
        self.entry = entry
        self.by_name = False
        self.tenant = tenant
        self.totals = totals
        # Credit comes from the other end only.
        self.account = CreditAccount(link, shared, entry, 0)
        self.counters = self.account.counters
        self.frames = Frames(link)
        self.settlement = Settlement(self.account)
        #: The tap and the check of messages; None for none.
        self.tap: MessageTap | None = None
        self.check: MessageCheck | None = None
        #: The link's number in management; 0 until the router sets it.
        self.identity = 0
        self.attached_at_s = shared.now_s
        self.pace = Pace(shared.now_s)
        self.outgoing: RoutedOutgoingEndpoint | None = None
        #: The sender has answered the receiver's drain.
        self._drained = False

    @property
    def capacity(self) -> int:
        """Credit that its sender may have."""
        return self.account.capacity

    @property
    def unsettled(self) -> int:
        """Number of its open deliveries."""
        return self.account.unsettled

    def join_ends(self, outgoing: RoutedOutgoingEndpoint) -> None:
        """Join the two ends, which are attached or will be."""
        self.outgoing = outgoing
        self._drained = False
        outgoing.incoming = self

    def part_ends(self) -> None:
        """Separate the two ends: the link has ended."""
        if self.outgoing is not None:
            self.outgoing.incoming = None
            self.outgoing = None

    # --- credit

    def follow_receiver(self) -> None:
        """Grant the sender the receiver's credit, and drain it if the receiver drains."""
        link = self.link
        outgoing = self.outgoing
        if outgoing is None or not link.attached or self.shared.stopping:
            return
        out = outgoing.link
        if out.drain and self._drained:
            if outgoing.waiting.count == 0 and not is_gathering(self.link):
                self._drained = False
                out.return_credit()
            return
        self._drained = False
        owed = out.credit - outgoing.count_without_credit() - link.credit
        if is_gathering(self.link):
            owed -= 1
        if owed > 0 or (link.draining and not out.drain):
            self.account.grant_credit(owed if owed > 0 else 0)
        if out.drain and out.credit > 0:
            if link.credit > 0:
                link.drain()
            else:
                self._drained = True
                self.follow_receiver()

    def is_gathering(self) -> bool:
        """Return whether the sender has begun a delivery that was not forwarded yet."""
        return is_gathering(self.link)

    def on_drained(self, link: LinkPort) -> None:
        """Answer the receiver's drain: the sender used up its credit or gave it back."""
        self.account.no_credit_since_s = self.shared.now_s
        self._drained = True
        self.follow_receiver()

    def on_overdrawn(self, link: LinkPort) -> None:
        """Count a delivery without credit."""
        self.account.note_overdrawn()

    # --- messages

    def make_delivery(self, link: LinkPort) -> Delivery:
        """Return a new delivery of the link."""
        return deliveries.new_incoming(link)

    def on_transfer(self, link: LinkPort, arrived: Delivery, data: bytes, start: int, end: int) -> None:
        """Pass a whole message on at once; gather a longer one until it is complete or long enough to stream."""
        delivery: IncomingDelivery = arrived  # type: ignore[assignment]  # made by ``make_delivery``
        message = delivery.message
        if message is None:
            self.account.begin_delivery(delivery)
            if delivery.complete:
                if self.tap is not None:
                    self.tap.note_received(self.link, data[start:end])
                self._pass_message_on(delivery, data, start, end, None)
                if delivery.settled or self.link.credit <= 0 or self.account.between_routers:
                    self.follow_receiver()
                return
            message = self.frames.begin_message(delivery, self, self.check is not None)
        was_settled = delivery.settled
        ready = False
        try:
            ready = self.frames.add_frame(delivery, message, data, start, end)
        except InvalidMessage:
            self.settlement.refuse_delivery(delivery, message, REJECTED, INVALID_MESSAGE)
        if ready:
            whole = message.join_pieces()
            if self.tap is not None and not message.logged:
                message.logged = True
                self.tap.note_received(self.link, whole)
            self._pass_message_on(delivery, whole, 0, len(whole), message)
        if self.settlement.end_frame(delivery, was_settled):
            self.follow_receiver()
        elif message.copies:
            self.frames.release_blocked_copies(message)

    def _pass_message_on(
        self, delivery: IncomingDelivery, data: bytes, start: int, end: int, message: Message | None
    ) -> None:
        """Read only what is necessary, and pass the message on unchanged."""
        check = self.check
        scan = self.shared.scan
        try:
            depth = _THROUGH_HEADER if check is None else _THROUGH_PROPERTIES
            if not scan.scan_sections(data, start, end, depth, delivery.complete):
                if message is None or not self.frames.wait_for_more(message, _MAX_HEAD_BYTES):
                    self.settlement.refuse_delivery(delivery, message, REJECTED, INVALID_MESSAGE)
                return
            if check is not None:
                inspected = check.inspect_message(scan, data, start, end, depth, delivery.complete, message)
                if inspected is None:
                    self.settlement.refuse_delivery(delivery, message, REJECTED, USER_ID_DENIED)
                    return
                if inspected is not data:
                    data = inspected
                    start = 0
                    end = len(data)
        except InvalidMessage:
            self.settlement.refuse_delivery(delivery, message, REJECTED, INVALID_MESSAGE)
            return
        outgoing = self.outgoing
        if outgoing is None:
            return  # credit is granted only while both ends are attached
        self._count_message(outgoing)
        outgoing.offer_delivery(self, delivery, data, start, end, message)
        if message is not None:
            message.now_routed()
        if delivery.remote_settled:
            self.settlement.count_presettled(delivery)

    def _count_message(self, outgoing: RoutedOutgoingEndpoint) -> None:
        """Count a message that comes in, from a client or another router, and leaves the network or goes on.

        One from another worker of this router came in there.
        """
        counters = self.entry.counters
        if not self.settlement.of_router:
            counters.ingress += 1
            self.totals.ingress += 1
        if self.account.of_container:
            counters.ingress_container += 1
            self.totals.ingress_container += 1
        if outgoing.is_trunk:
            counters.transit += 1
            self.totals.transit += 1
        else:
            counters.egress += 1
            self.totals.egress += 1

    def build_message(self, delivery: IncomingDelivery, data: bytes, start: int, end: int) -> Message:
        """Return the message in ``data[start:end]`` as a kept one; nothing of it is rewritten."""
        message = Message(self.link.session, self)
        message.append_chunk(octets.cut(data, start, end))
        message.complete = delivery.complete
        message.routed = True
        return message

    def on_aborted(self, link: LinkPort, arrived: Delivery) -> None:
        """Drop a delivery that the sender aborted."""
        delivery: IncomingDelivery = arrived  # type: ignore[assignment]  # made by ``make_delivery``
        if self.settlement.abort_delivery(delivery) and self.tap is not None:
            self.tap.note_aborted(self.link)
        self.follow_receiver()

    def on_disposition(self, arrived: Delivery) -> None:
        """Relay the sender's state or settlement to the receiver."""
        delivery: IncomingDelivery = arrived  # type: ignore[assignment]  # made by ``make_delivery``
        if self.settlement.relay_disposition(delivery):
            self.follow_receiver()

    def on_refused(self, link: LinkPort, arrived: Delivery) -> None:
        """Count a delivery that its link rejected."""
        delivery: IncomingDelivery = arrived  # type: ignore[assignment]  # made by ``make_delivery``
        self.settlement.count_refused(delivery)

    def accept_delivery(self, delivery: IncomingDelivery) -> None:
        """See ``DeliverySource.accept_delivery``."""
        if self.settlement.accept_delivery(delivery):
            self.follow_receiver()

    def answer_delivery(self, delivery: IncomingDelivery, code: int, state: bytes | None, settled: bool) -> None:
        """See ``DeliverySource.answer_delivery``."""
        if self.settlement.answer_delivery(delivery, code, state, settled):
            self.follow_receiver()

    def lose_link(self, own: list[Delivery] | None = None) -> None:
        """Abort unfinished input, and ignore outcomes still to come; ``own`` is its deliveries, if they are known."""
        self.settlement.lose_deliveries(own)


class RoutedOutgoingEndpoint(OutgoingEndpoint):
    """The outgoing end of a routed link; ``incoming`` is the other end, as in ``RoutedIncomingEndpoint``."""

    __slots__ = ("_emptied", "closing", "incoming", "is_trunk")

    def __init__(
        self, link: OutgoingLink, shared: SharedState, sends_settled: bool, is_trunk: bool, emptied: Callable[[], None]
    ) -> None:
        """``emptied`` is called once no delivery waits, while the link is ``closing``."""
        super().__init__(link, shared, 0, True, sends_settled)
        self.incoming: RoutedIncomingEndpoint | None = None
        #: It leads to a neighbouring router.
        self.is_trunk = is_trunk
        #: The link is to end, once no delivery waits here.
        self.closing = False
        self._emptied = emptied

    def count_without_credit(self) -> int:
        """Return the number of deliveries that have not used a credit of the receiver yet."""
        waiting = self.waiting
        if waiting.count > 0 and waiting.first().begun:
            return waiting.count - 1
        return waiting.count

    def on_credit(self, link: LinkPort) -> None:
        """Send what may be sent, and grant the sender the receiver's credit or drain it.

        Without a sender, report once that no delivery waits.
        """
        self.send_waiting()
        if self.incoming is not None:
            self.incoming.follow_receiver()
            self.note_credit()
        elif self.closing and self.waiting.count == 0:
            self.closing = False
            self._emptied()
