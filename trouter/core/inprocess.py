"""Consumers and senders inside the router: how ``$management`` and others take part in routing.

A consumer gets only complete messages, so their size is bounded (``ports.MAX_INSIDE_BYTES``, below a session's window).
"""

from __future__ import annotations

from typing import Final, Protocol

from trouter.engine.link_base import Link
from trouter.wire.annotations import compose_annotations
from trouter.wire.sections import THROUGH_ANNOTATIONS, MessageScan

from .addresses import DEFAULT_AREA
from .counters import Copies
from .message import DEFAULT_PRIORITY, IncomingDelivery, Message, OutgoingDelivery, join_copy, presettled
from .outcomes import ACCEPTED, ACCEPTED_STATE
from .ports import DeliverySource, SharedState, notify_sender
from .tenants import Tenant

_HIGHEST_PRIORITY: Final = 9


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

    def offer_delivery(
        self,
        source: DeliverySource,
        delivery: IncomingDelivery,
        data: bytes,
        start: int,
        end: int,
        message: Message | None,
    ) -> OutgoingDelivery:
        """Deliver a copy of a complete message; return the copy."""
        out = OutgoingDelivery(delivery.link)
        if delivery.remote_settled:
            out.mark_settled()
        else:
            join_copy(delivery, out)
        if message is None:
            message = source.build_message(delivery, data, start, end)
            body = message.whole_message(strips_annotations=True)
            message.discard_rest()
        else:
            body = message.whole_message(strips_annotations=True)
        self.count += 1
        self.consumer.receive(InsideMessage(out, body, source.connection_number, source.tenant))
        return out


class MessageTaker(Protocol):
    """An outgoing link; see ``OutgoingEndpoint``."""

    def offer_delivery(
        self,
        source: DeliverySource,
        delivery: IncomingDelivery,
        data: bytes,
        start: int,
        end: int,
        message: Message | None,
    ) -> OutgoingDelivery:
        """Send a copy of the delivery, now or later; return the copy."""


class MessageForwarder(Protocol):
    """The consumers of an address; see ``Forwarder``."""

    def forward_message(
        self,
        source: DeliverySource,
        delivery: IncomingDelivery,
        data: bytes,
        start: int,
        end: int,
        message: Message | None,
    ) -> Copies:
        """Forward the message to its consumers; return the number of copies."""


class InsideSender(DeliverySource):
    """The endpoint of messages that the router itself sends, without waiting for their outcomes."""

    __slots__ = ("_here", "_scan")

    def __init__(self, shared: SharedState, router_id: str = "") -> None:
        super().__init__(shared)
        self._here = f"{DEFAULT_AREA}/{router_id}"
        self._scan = MessageScan()

    def send_message(self, forwarder: MessageForwarder, message: bytes) -> Copies:
        """Forward a (pre-settled) message to the consumers of an address; InvalidMessage."""
        self._describe_message(message)
        return forwarder.forward_message(self, self._make_presettled(), message, 0, len(message), None)

    def send_on(self, outgoing: MessageTaker, message: bytes) -> None:
        """Send a (pre-settled) message on one link, whatever its address."""
        outgoing.offer_delivery(self, self._make_presettled(), message, 0, len(message), None)

    def _make_presettled(self) -> IncomingDelivery:
        """Return a delivery for a message from inside the router."""
        delivery = presettled(_NOWHERE, True)
        delivery.arrived_at_s = self.shared.now_s
        return delivery

    def _describe_message(self, message: bytes) -> None:
        """Set the fields for ``message``, which is sent next; InvalidMessage."""
        self._scan.scan_sections(message, 0, len(message), THROUGH_ANNOTATIONS, True)
        priority = self._scan.priority
        self.arrival.priority = DEFAULT_PRIORITY if priority < 0 else min(priority, _HIGHEST_PRIORITY)

    def build_message(self, delivery: IncomingDelivery, data: bytes, start: int, end: int) -> Message:
        """Return the message unchanged: it has no annotations to remove."""
        message = Message(None, self)
        message.append_chunk(data[start:end])
        message.complete = True
        message.routed = True
        return message

    def write_head(self, message: Message, head: bytes, strips_annotations: bool) -> bytes:
        """Return ``head`` with the router's annotations, as for a message that enters the network here."""
        return self.write_whole(head, 0, len(head), strips_annotations)

    def write_whole(self, data: bytes, start: int, end: int, strips_annotations: bool) -> bytes:
        """See ``DeliverySource.write_whole``."""
        if strips_annotations:
            return data[start:end]
        self._scan.scan_sections(data, start, end, THROUGH_ANNOTATIONS, True)
        section = compose_annotations(b"", 0, 0, False, None, self._here, (self._here,))
        return b"".join((data[start : self._scan.insert_at], section, data[self._scan.insert_at : end]))

    def write_onward(self, message: Message, to: str, phase: int) -> bytes:
        """Return the beginning of ``message`` for the address ``to``, as if it had entered the network here."""
        head = message.chunks[0]
        self._scan.scan_sections(head, 0, len(head), THROUGH_ANNOTATIONS, message.complete)
        section = compose_annotations(b"", 0, phase, False, to, self._here, (self._here,))
        return b"".join((head[: self._scan.insert_at], section, head[self._scan.insert_at :]))

    def answer_delivery(self, delivery: IncomingDelivery, code: int, state: bytes | None, settled: bool) -> None:
        """Ignore the outcome: the router does not wait for it."""


class _Nowhere(Link):
    """The link of messages from inside the router: none."""

    def __init__(self) -> None:
        """Make it without a session."""


_NOWHERE = _Nowhere()
