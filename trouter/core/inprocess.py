"""Consumers and senders inside the router: how ``$management`` and others take part in routing.

A consumer gets only complete messages, so their size is bounded (``ports.MAX_INSIDE_BYTES``, below a session's window).
"""

from __future__ import annotations

from typing import Protocol

from trouter.wire.sections import THROUGH_ANNOTATIONS, MessageScan

from .addresses import DEFAULT_AREA
from .arrival import NO_LINK, Arrival, DeliverySource, notify_sender
from .counters import Copies
from .message import AnnotationRewriter, IncomingDelivery, OutgoingDelivery, join_copy, presettled
from .outcomes import ACCEPTED, ACCEPTED_STATE
from .ports import SharedState
from .tenants import Tenant


class InsideMessage:
    """A message to a consumer inside the router, which calls ``settle`` with its outcome."""

    __slots__ = ("_out", "message", "origin", "tenant")

    def __init__(self, out: OutgoingDelivery, message: bytes, origin: int = 0, tenant: Tenant | None = None) -> None:
        self._out = out
        #: The number of the sender's connection; 0 for the router itself.
        self.origin = origin
        #: The tenant of its sender, or None.
        self.tenant = tenant
        #: All sections, without the routers' annotations.
        self.message = message

    def settle(self, code: int = ACCEPTED, state: bytes | None = ACCEPTED_STATE) -> None:
        """Settle the message with an encoded outcome; do nothing if it is settled already."""
        sender_delivery = self._out.sender_delivery
        if sender_delivery is not None:
            self._out.sender_delivery = None
            notify_sender(self._out, sender_delivery, code, state, True)


class InsideConsumer(Protocol):
    """A receiver of messages inside the router."""

    def receive(self, received: InsideMessage) -> None:
        """Receive a message, without blocking; settle it now or later."""


class Subscription:
    """One consumer of the address with the lookup key ``key``."""

    __slots__ = ("consumer", "count", "key")

    def __init__(self, consumer: InsideConsumer, key: str) -> None:
        self.consumer = consumer
        self.key = key
        self.count = 0

    def offer(self, arrival: Arrival) -> OutgoingDelivery:
        """Deliver a copy of a complete message; return the copy."""
        delivery = arrival.delivery
        out = OutgoingDelivery(delivery.link)
        if delivery.remote_settled:
            out.mark_settled()
        else:
            join_copy(delivery, out)
        if arrival.message is None:
            message = arrival.keep()
            body = message.whole_message(strips_annotations=True)
            message.discard_rest()
        else:
            body = arrival.message.whole_message(strips_annotations=True)
        self.count += 1
        self.consumer.receive(InsideMessage(out, body, arrival.source.connection_number, arrival.source.tenant))
        return out


class MessageTaker(Protocol):
    """An outgoing link; see ``Egress``."""

    def offer(self, arrival: Arrival) -> OutgoingDelivery:
        """Send a copy of the message in hand, now or later; return the copy."""


class MessageForwarder(Protocol):
    """The consumers of an address; see ``Forwarder``."""

    def forward(self, arrival: Arrival) -> Copies:
        """Forward the message in hand to its consumers; return the number of copies."""


class InsideSender(DeliverySource):
    """The endpoint of messages that the router itself sends, without waiting for their outcomes."""

    __slots__ = ("_rewriter", "_scan")

    def __init__(self, shared: SharedState, router_id: str = "") -> None:
        super().__init__(shared)
        self._rewriter = AnnotationRewriter(f"{DEFAULT_AREA}/{router_id}", True, False, 0, None)
        self._scan = MessageScan()

    def send_message(self, forwarder: MessageForwarder, message: bytes) -> Copies:
        """Forward a (pre-settled) message to the consumers of an address; InvalidMessage."""
        return forwarder.forward(self._take(message))

    def send_on(self, outgoing: MessageTaker, message: bytes) -> None:
        """Send a (pre-settled) message on one link, whatever its address; InvalidMessage."""
        outgoing.offer(self._take(message))

    def _take(self, message: bytes) -> Arrival:
        """Return a message of the router's in hand, one for each: a consumer inside may send another meanwhile."""
        self._scan.scan_sections(message, 0, len(message), THROUGH_ANNOTATIONS, True)
        delivery = presettled(NO_LINK, True)
        delivery.arrived_at_s = self.shared.now_s
        arrival = Arrival()
        arrival.take(self, self._rewriter, delivery, message, 0, len(message))
        has_annotations = self._scan.annotations_start >= 0
        arrival.describe(
            self._scan, self._rewriter.read_section(self._scan, message) if has_annotations else None, False
        )
        arrival.rewrites = False  # a neighbour gets the annotations of a control message as they were written
        return arrival

    def answer_delivery(self, delivery: IncomingDelivery, code: int, state: bytes | None, settled: bool) -> None:
        """Ignore the outcome: the router does not wait for it."""
