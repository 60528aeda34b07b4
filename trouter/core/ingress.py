"""One incoming link: its deliveries, its sender's credit, and where its messages go (routing.md 2, 3).

Every incoming link has one ``Ingress``. What differs between links is the ``account``, which says how much credit the
sender gets and when, and the ``destination``, which reads a message and passes it on: by its address (``by_address``),
to the other end of a routed link (``relay``), or to a function of the router (``readers``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trouter.engine.link import IncomingLink
from trouter.engine.ports import Delivery, LinkPort
from trouter.wire.sections import InvalidMessage

from . import deliveries
from .arrival import Arrival, DeliverySource, MessageTap
from .check import MessageCheck
from .entry import AddressEntry
from .incoming_parts import INVALID_MESSAGE, CreditAccount, Frames, Settlement, is_gathering
from .message import AnnotationRewriter, IncomingDelivery, Message
from .network import Trunk
from .outcomes import REJECTED
from .pace import Pace
from .ports import SharedState
from .tenants import Tenant
from .tracing import Source

if TYPE_CHECKING:
    from cython import Py_ssize_t
    from cython import int as c_int


class Destination:
    """Where the messages of a link go. It refers to no link, which comes with each message."""

    __slots__ = ("rewriter",)

    def __init__(self, rewriter: AnnotationRewriter) -> None:
        #: Reads and writes the annotations of the messages.
        self.rewriter = rewriter

    def pass_on(self, ingress: Ingress, arrival: Arrival) -> None:
        """Pass on the message in hand, complete or long enough, or answer its delivery.

        If more of it must come first, ``arrival.message`` says how much, and this is called again.
        """
        raise NotImplementedError

    def come_from_neighbour(self) -> None:
        """Expect the messages of a neighbouring router."""


class Ingress(DeliverySource):
    """One incoming link, and its parts."""

    __slots__ = (
        "link",
        "arrival",
        "account",
        "destination",
        "frames",
        "settlement",
        "tap",
        "check",
        "span_source",
        "identity",
        "attached_at_s",
        "pace",
    )

    def __init__(
        self,
        link: IncomingLink,
        shared: SharedState,
        arrival: Arrival,
        account: CreditAccount,
        destination: Destination,
        tenant: Tenant | None = None,
    ) -> None:
        """Make the ingress of ``link``; all links of a router take their messages in the same hand, ``arrival``."""
        super().__init__(shared)
        self.link = link
        self.arrival = arrival
        self.account = account
        self.counters = account.counters
        self.destination = destination
        self.by_name = account.entry is None
        self.tenant = tenant
        self.frames = Frames(link)
        self.settlement = Settlement(account)
        #: The tap of messages; None for none.
        self.tap: MessageTap | None = None
        #: The check of messages; None for none.
        self.check: MessageCheck | None = None
        #: Where its messages come from, for spans; None before the first one.
        self.span_source: Source | None = None
        #: The link's number in management; 0 until the router sets it.
        self.identity: Py_ssize_t = 0
        self.attached_at_s: float = shared.now_s
        self.pace: Pace = Pace(shared.now_s)

    @property
    def entry(self) -> AddressEntry | None:
        """Its address; None if its messages name theirs, or the router reads them."""
        return self.account.entry

    @property
    def capacity(self) -> int:
        """Credit that its sender may have."""
        return self.account.capacity

    @property
    def unsettled(self) -> int:
        """Number of its open deliveries."""
        return self.account.unsettled

    def is_gathering(self) -> bool:
        """Return whether the sender has begun a delivery that was not forwarded yet."""
        return is_gathering(self.link)

    def come_from(self, trunk: Trunk) -> None:
        """Expect a neighbour's messages, whose annotations give the destination and the trace of each."""
        self.trunk = trunk
        self.account.between_routers = True
        self.frames.of_router = self.settlement.of_router = True
        self.destination.come_from_neighbour()

    def move_to(self, entry: AddressEntry) -> None:
        """Send to another entry from now on, whose address is the same."""
        self.account.entry = entry

    def destination_appeared(self) -> None:
        """Grant the credit that was kept back: the address has a consumer."""
        self.account.grant_kept()

    # --- what happens on the link

    def make_delivery(self, link: LinkPort) -> Delivery:
        """Return a new delivery of the link."""
        return deliveries.new_incoming(link)

    def on_transfer(self, link: LinkPort, arrived: Delivery, data: bytes, start: Py_ssize_t, end: Py_ssize_t) -> None:
        """Pass a whole message on at once; gather a longer one until it is complete or long enough to stream."""
        delivery: IncomingDelivery = arrived  # type: ignore[assignment]  # made by ``make_delivery``
        account: CreditAccount = self.account
        destination: Destination = self.destination
        arrival: Arrival = self.arrival
        if delivery.message is None:
            account.begin_delivery(delivery)
            if delivery.complete:
                arrival.take(self, destination.rewriter, delivery, data, start, end)
                try:
                    if self.tap is not None:
                        self.tap.note_received(arrival)
                    destination.pass_on(self, arrival)
                finally:
                    arrival.put_down()
                if delivery.settled or account.link.credit <= 0 or account.between_routers:
                    account.top_up_credit()
                return
            self.frames.begin_message(delivery, destination.rewriter, self.check is not None)
        was_settled: bool = delivery.settled
        message: Message = delivery.message  # type: ignore[assignment]  # it has begun
        arrival.take(self, destination.rewriter, delivery, data, start, end)
        try:
            if self._is_ready(arrival):
                arrival.replace_data(message.join_pieces())
                if self.trunk is None:
                    self.note_received(arrival)
                destination.pass_on(self, arrival)
        finally:
            arrival.put_down()
        if self.settlement.end_frame(delivery, was_settled):
            account.top_up_credit()
        elif message.copies:
            self.frames.release_blocked_copies(message)

    def _is_ready(self, arrival: Arrival) -> bool:
        """Add the frame in hand to its message; return whether the message is to be passed on now."""
        try:
            return self.frames.add_frame(arrival)
        except InvalidMessage:
            self.settlement.refuse_delivery(arrival.delivery, REJECTED, INVALID_MESSAGE)
            return False

    def note_received(self, arrival: Arrival) -> None:
        """Show the tap a message of several frames, once."""
        message: Message | None = arrival.message
        if self.tap is not None and message is not None and not message.logged:
            message.logged = True
            self.tap.note_received(arrival)

    def on_aborted(self, link: LinkPort, arrived: Delivery) -> None:
        """Drop a delivery that the sender aborted."""
        delivery: IncomingDelivery = arrived  # type: ignore[assignment]  # made by ``make_delivery``
        if self.settlement.abort_delivery(delivery) and self.tap is not None:
            self.tap.note_aborted(self.link)
        self.account.top_up_credit()

    def on_disposition(self, arrived: Delivery) -> None:
        """Relay the sender's state or settlement to the receivers of the message."""
        delivery: IncomingDelivery = arrived  # type: ignore[assignment]  # made by ``make_delivery``
        if self.settlement.relay_disposition(delivery):
            self.account.top_up_credit()

    def on_drained(self, link: LinkPort) -> None:
        """Note that the sender gave its credit back."""
        self.account.note_drained()

    def on_overdrawn(self, link: LinkPort) -> None:
        """Count a delivery without credit."""
        self.account.note_overdrawn()

    def on_refused(self, link: LinkPort, arrived: Delivery) -> None:
        """Count a delivery that its link rejected."""
        delivery: IncomingDelivery = arrived  # type: ignore[assignment]  # made by ``make_delivery``
        self.settlement.count_refused(delivery)

    def lose_link(self, own: list[Delivery] | None = None) -> None:
        """Abort unfinished input, and ignore outcomes still to come; ``own`` is its deliveries, if they are known."""
        self.settlement.lose_deliveries(own)

    # --- what its receivers say

    def accept_delivery(self, delivery: IncomingDelivery) -> None:
        """See ``DeliverySource.accept_delivery``."""
        if self.settlement.accept_delivery(delivery):
            self.account.top_up_credit()

    def answer_delivery(self, delivery: IncomingDelivery, code: c_int, state: bytes | None, settled: bool) -> None:
        """See ``DeliverySource.answer_delivery``."""
        if self.settlement.answer_delivery(delivery, code, state, settled):
            self.account.top_up_credit()
