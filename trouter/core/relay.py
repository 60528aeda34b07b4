"""The two ends of a routed link: messages pass unchanged from one to the other (routing.md 3.5, 4.5).

The receiver's credit, less the deliveries that wait here for it, is the sender's credit. A drain goes through to the
sender, and its answer back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trouter.engine.link import IncomingLink, OutgoingLink
from trouter.wire.sections import InvalidMessage, MessageScan

from .arrival import UNCHANGED, Arrival
from .check import USER_ID_DENIED, MessageCheck
from .counters import AddressCounters
from .egress import Egress, Supplier
from .entry import AddressEntry
from .incoming_parts import INVALID_MESSAGE, MAX_HEAD_BYTES, CreditAccount, is_gathering
from .ingress import Destination, Ingress
from .message import IncomingDelivery, Message
from .outcomes import REJECTED
from .ports import SharedState

if TYPE_CHECKING:
    from cython import Py_ssize_t
    from cython import int as c_int

_THROUGH_HEADER: Final[c_int] = 1
_THROUGH_PROPERTIES: Final[c_int] = 4
_MAX_HEAD_BYTES: Final[Py_ssize_t] = MAX_HEAD_BYTES


class MirroredCredit(CreditAccount):
    """The credit of a routed link's sender: that of the receiver on ``outgoing``, the other end."""

    __slots__ = ("outgoing", "to_router", "_drained")

    def __init__(self, link: IncomingLink, shared: SharedState, entry: AddressEntry) -> None:
        super().__init__(link, shared, entry, 0)
        #: None while the two ends are not joined.
        self.outgoing: Egress | None = None
        #: The other end leads to a neighbouring router.
        self.to_router = False
        #: The sender has answered the receiver's drain.
        self._drained = False

    def join_ends(self, outgoing: Egress) -> None:
        """Join the two ends, which are attached or will be; ``FromOtherEnd`` supplies the outgoing one."""
        supplier: FromOtherEnd = outgoing.supplier  # type: ignore[assignment]  # made by ``make_routed_outgoing``
        supplier.mirror = self
        self.outgoing = outgoing
        self.to_router = supplier.to_router
        self._drained = False

    def part_ends(self) -> None:
        """Separate the two ends: the link has ended."""
        if self.outgoing is not None:
            supplier: FromOtherEnd = self.outgoing.supplier  # type: ignore[assignment]  # as in ``join_ends``
            supplier.mirror = None
            self.outgoing = None

    def top_up_credit(self) -> None:
        """Grant the sender the receiver's credit, and drain it if the receiver drains."""
        link: IncomingLink = self.link
        outgoing: Egress | None = self.outgoing
        if outgoing is None or not link.attached or self.shared.stopping:
            return
        out: OutgoingLink = outgoing.link
        if out.drain and self._drained:
            if outgoing.waiting.count == 0 and not is_gathering(link):
                self._drained = False
                out.return_credit()
            return
        self._drained = False
        owed: Py_ssize_t = out.credit - outgoing.waiting.count_without_credit() - link.credit
        if is_gathering(link):
            owed -= 1
        if owed > 0 or (link.draining and not out.drain):
            self.grant_credit(owed if owed > 0 else 0)
        if out.drain and out.credit > 0:
            if link.credit > 0:
                link.drain()
            else:
                self._drained = True
                self.top_up_credit()

    def note_drained(self) -> None:
        """Answer the receiver's drain: the sender used up its credit or gave it back."""
        self.no_credit_since_s = self.shared.now_s
        self._drained = True
        self.top_up_credit()


class FromOtherEnd(Supplier):
    """The other end of a routed link, whose sender gets the receiver's credit and answers its drain."""

    __slots__ = ("mirror", "to_router")

    def __init__(self, to_router: bool) -> None:
        """``to_router``: the receiver is a neighbouring router."""
        #: The credit of the sender; None while the two ends are not joined.
        self.mirror: MirroredCredit | None = None
        self.to_router = to_router

    def follow_credit(self, outgoing: Egress) -> None:
        """See ``Supplier.follow_credit``."""
        if self.mirror is not None:
            self.mirror.top_up_credit()


class ToOtherEnd(Destination):
    """The other end of a routed link: nothing of a message is read but what is necessary."""

    __slots__ = ("_credit", "_entry", "_totals")

    def __init__(self, credit: MirroredCredit, entry: AddressEntry, totals: AddressCounters) -> None:
        """``entry`` is the address of the link route, which counts its messages; ``totals`` are the router's."""
        super().__init__(UNCHANGED)
        self._credit = credit
        self._entry = entry
        self._totals = totals

    def pass_on(self, ingress: Ingress, arrival: Arrival) -> None:
        """See ``Destination.pass_on``."""
        delivery: IncomingDelivery = arrival.delivery
        if not self._may_pass(ingress, arrival):
            return
        outgoing: Egress | None = self._credit.outgoing
        if outgoing is None:
            return  # credit is granted only while both ends are attached
        self._count_message(ingress)
        arrival.leave_unchanged()
        message: Message | None = arrival.message
        outgoing.offer(arrival)
        if message is not None:
            message.now_routed()
        if delivery.remote_settled:
            ingress.settlement.count_presettled(delivery)

    def _may_pass(self, ingress: Ingress, arrival: Arrival) -> bool:
        """Return whether the message may go on; False if more must come first, or it was answered."""
        check: MessageCheck | None = ingress.check
        scan: MessageScan = ingress.shared.scan
        try:
            depth: c_int = _THROUGH_HEADER if check is None else _THROUGH_PROPERTIES
            complete: bool = arrival.delivery.complete
            if not scan.scan_sections(arrival.data, arrival.start, arrival.end, depth, complete):
                message: Message | None = arrival.message
                if message is None or not ingress.frames.wait_for_more(message, _MAX_HEAD_BYTES):
                    ingress.settlement.refuse_delivery(arrival.delivery, REJECTED, INVALID_MESSAGE)
                return False
            if check is not None and not check.inspect_message(scan, arrival, depth):
                ingress.settlement.refuse_delivery(arrival.delivery, REJECTED, USER_ID_DENIED)
                return False
        except InvalidMessage:
            ingress.settlement.refuse_delivery(arrival.delivery, REJECTED, INVALID_MESSAGE)
            return False
        return True

    def _count_message(self, ingress: Ingress) -> None:
        """Count a message that comes in, from a client or another router, and leaves the network or goes on.

        One from another worker of this router came in there.
        """
        counters: AddressCounters = self._entry.counters
        totals: AddressCounters = self._totals
        if not ingress.settlement.of_router:
            counters.ingress += 1
            totals.ingress += 1
        if ingress.account.of_container:
            counters.ingress_container += 1
            totals.ingress_container += 1
        if self._credit.to_router:
            counters.transit += 1
            totals.transit += 1
        else:
            counters.egress += 1
            totals.egress += 1
