"""The routing of a message from an incoming link: its annotations, its address, and the forwarder; else an answer.

Obeys routing.md 2.1-2.6, 4.1-4.3. ``incoming`` has the parts of the link: credit, frames, answers.
"""

from __future__ import annotations

from trouter.engine.link import IncomingLink
from trouter.engine.ports import Delivery, LinkPort
from trouter.wire import octets
from trouter.wire.annotations import InvalidAnnotation
from trouter.wire.sections import MAX_ANNOTATIONS_BYTES, AnnotationsTooLarge, InvalidMessage

from . import deliveries
from .addresses import DEFAULT_AREA, FALLBACK_NUMBER, MAX_ADDRESS_BYTES, MOBILE, UPLINK_KEY
from .check import NO_TO, RESERVED, TARGET, TARGET_DENIED, USER_ID_DENIED, MessageCheck
from .counters import AddressCounters, Copies
from .entry import AddressEntry
from .incoming_parts import INVALID_MESSAGE, MAX_HEAD_BYTES, CreditAccount, Frames, Settlement, is_gathering
from .message import AnnotationRewriter, CachedAnnotations, IncomingDelivery, Message
from .network import Network, Trunk
from .outcomes import REJECTED, RELEASED, RELEASED_STATE, rejected_state
from .pace import Pace
from .ports import MAX_INSIDE_BYTES, DeliverySource, MessageTap, SharedState
from .table import AddressTable, answer_of, is_made_elsewhere
from .tenants import Tenant
from .tracing import Source, Tracing

_MAX_HEAD_BYTES = MAX_HEAD_BYTES
_THROUGH_ANNOTATIONS = 3
_THROUGH_PROPERTIES = 4

TOO_MANY_ANNOTATIONS = rejected_state(
    "amqp:invalid-field", f"annotations are limited to {MAX_ANNOTATIONS_BYTES} bytes a map"
)
NO_ADDRESS = rejected_state("amqp:precondition-failed", "Routing failure: no address present")
UNAVAILABLE = rejected_state("amqp:not-found", "Deliveries cannot be sent to an unavailable address")
#: In the words of Qpid Dispatch's policy.
ADDRESS_DENIED = rejected_state("amqp:unauthorized-access", "policy violation on target")
TOO_LARGE_INSIDE = rejected_state(
    "amqp:link:message-size-exceeded", f"messages to this address are limited to {MAX_INSIDE_BYTES} bytes"
)


class IncomingEndpoint(DeliverySource):
    """One incoming link whose messages are routed: what it does with them, and the parts that do the rest."""

    __slots__ = (
        "_known",
        "_known_phase",
        "account",
        "attached_at_s",
        "check",
        "entry",
        "frames",
        "identity",
        "is_fallback",
        "link",
        "pace",
        "rewriter",
        "settlement",
        "source",
        "table",
        "tap",
        "totals",
    )

    def __init__(
        self,
        link: IncomingLink,
        shared: SharedState,
        table: AddressTable,
        entry: AddressEntry | None,
        *,
        capacity: int,
        strips: bool,
        to_override: str | None,
        totals: AddressCounters,
        is_fallback: bool = False,
        tenant: Tenant | None = None,
    ) -> None:
        super().__init__(shared)
        self.link = link
        self.table = table
        self.tenant = tenant
        #: Its address; None for an anonymous link, whose messages name theirs.
        self.entry = entry
        self.by_name = entry is None
        self.account = CreditAccount(link, shared, entry, capacity)
        self.counters = self.account.counters
        self.frames = Frames(link)
        self.settlement = Settlement(self.account)
        #: The tap of messages; None for none.
        self.tap: MessageTap | None = None
        #: Where its messages come from, for spans; None before the first one.
        self.source: Source | None = None
        #: The check of messages; None for none.
        self.check: MessageCheck | None = None
        #: The cache of addresses without an annotation of the phase, or (-1) without any annotation.
        self._known = table.known_to(tenant)
        self._known_phase = -1
        #: Reads and writes the router annotations of its messages.
        self.rewriter = AnnotationRewriter(
            f"{DEFAULT_AREA}/{table.router_id}",
            table.mode != "edge",
            not strips,
            0 if entry is None else entry.phase,
            to_override,
        )
        self.is_fallback = is_fallback
        #: The router's address counters.
        self.totals = totals
        #: The link's number in management; 0 until the router sets it.
        self.identity = 0
        self.attached_at_s = shared.now_s
        self.pace = Pace(shared.now_s)

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

    def comes_from(self, trunk: Trunk) -> None:
        """Mark the link as a neighbour's, whose annotations give the destination and the trace of each message."""
        self.trunk = trunk
        self.account.between_routers = True
        self.frames.of_router = self.settlement.of_router = True
        self.rewriter.keeps = True
        self._known = self.table.known_first
        self._known_phase = 0

    def comes_from_edge(self) -> None:
        """Mark the link as one between an edge router and its interior router."""
        self.via_edge = True
        self.account.between_routers = True
        self.rewriter.via_edge = True

    def move_to(self, entry: AddressEntry) -> None:
        """Send to another entry from now on, whose address is the same."""
        self.entry = self.account.entry = entry

    def destination_appeared(self) -> None:
        """Grant the credit that was kept back: the address has a consumer."""
        self.account.grant_kept()

    # --- what happens on the link

    def make_delivery(self, link: LinkPort) -> Delivery:
        """Return a new delivery of the link."""
        return deliveries.new_incoming(link)

    def on_transfer(self, link: LinkPort, arrived: Delivery, data: bytes, start: int, end: int) -> None:
        """Route a whole message at once; gather a longer one until it is complete or long enough to stream."""
        delivery: IncomingDelivery = arrived  # type: ignore[assignment]  # made by ``make_delivery``
        message = delivery.message
        account = self.account
        if message is None:
            account.begin_delivery(delivery)
            if delivery.complete:
                if self.tap is not None:
                    self.tap.note_received(self.link, data[start:end])
                if self.shared.tracing is not None:
                    traced = self._begin_span(delivery, data, start, end)
                    if traced is not data:
                        data = traced
                        start = 0
                        end = len(traced)
                self._route_message(delivery, data, start, end, None)
                if delivery.settled or account.link.credit <= 0 or account.between_routers:
                    account.top_up_credit()
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
            if self.tap is not None and self.trunk is None:
                self._note_received(message, whole)
            if self.shared.tracing is not None and delivery.span is None:
                traced = self._begin_span(delivery, whole, 0, len(whole))
                if traced is not whole:
                    message.replace_kept(traced)
                    whole = traced
            self._route_message(delivery, whole, 0, len(whole), message)
        if self.settlement.end_frame(delivery, was_settled):
            account.top_up_credit()
        elif message.copies:
            self.frames.release_blocked_copies(message)

    def _begin_span(self, delivery: IncomingDelivery, data: bytes, start: int, end: int) -> bytes:
        """Begin the span of the message in ``data[start:end]`` if it has one; return ``data``, or the message with it.

        Of a message of several frames the beginning suffices.
        """
        tracing: Tracing = self.shared.tracing  # type: ignore[assignment]  # the caller has checked
        place = tracing.find_context(data, start, end)
        if place < -1:
            return data
        if self.source is None:
            self.source = tracing.describe_source(self.link)
        span = tracing.begin_span(data, place, self.source)
        if span is None:
            return data
        delivery.span = span
        if self.entry is not None:
            span.address = self.entry.text
        return tracing.write_context(span, data, start, end) if tracing.propagates else data

    def _note_received(self, message: Message, whole: bytes) -> None:
        """Pass a message that came to the tap, once."""
        if not message.logged and self.tap is not None:
            message.logged = True
            self.tap.note_received(self.link, whole)

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

    def answer_delivery(self, delivery: IncomingDelivery, code: int, state: bytes | None, settled: bool) -> None:
        """See ``DeliverySource.answer_delivery``."""
        if self.settlement.answer_delivery(delivery, code, state, settled):
            self.account.top_up_credit()

    # --- where a message goes

    def _route_message(
        self, delivery: IncomingDelivery, data: bytes, start: int, end: int, message: Message | None
    ) -> None:
        """Forward a message, complete in ``data[start:end]`` or long enough; answer the sender if it goes nowhere.

        ``message`` is it if it has several frames. If more of it must come first it stays unrouted, and
        ``message.wanted`` is how many bytes to wait for.
        """
        read = self._read_message(delivery, data, start, end, message)
        if read is None:
            return
        if read is not data:
            data = read
            start = 0
            end = len(data)
        arrival = self.arrival
        entry = self.entry
        if entry is None:
            entry = self._find_entry(delivery, message, data, arrival.annotations)
            if entry is None:
                return
            if delivery.span is not None:
                delivery.span.address = entry.text
        if (
            message is not None
            and not message.complete
            and self._waits_for_more(entry, delivery, data, start, end, message)
        ):
            return
        if not self.is_fallback and self.trunk is None:
            self._count_entered(entry)
        annotations = arrival.annotations
        if annotations is not None and annotations.parsed.trace and self._came_too_far(annotations):
            self.settlement.refuse_delivery(delivery, message, RELEASED, RELEASED_STATE)
            return
        if entry.priority >= 0:
            arrival.priority = entry.priority
        if message is not None:
            arrival.copy_state_to(message, arrival.to, arrival.phase, start)
        presettled = delivery.remote_settled
        copies: Copies | None = None
        forwarder = entry.forwarder
        if forwarder.has_destinations():
            copies = forwarder.forward_message(self, delivery, data, start, end, message)
        if copies is not None and copies.total > 0:
            entry.counters.add_copies(copies)
            self.totals.add_copies(copies)
        elif entry.fallback is None or not self._forward_to_fallback(delivery, entry, data, start, end, message):
            self.settlement.release_undeliverable(delivery, message)
            return
        if message is not None:
            message.now_routed()
        if presettled:
            self.settlement.count_presettled(delivery)

    def _read_message(
        self, delivery: IncomingDelivery, data: bytes, start: int, end: int, message: Message | None
    ) -> bytes | None:
        """Read what routing needs into ``arrival``; return ``data``, or the whole message with the user's name in it.

        None if more of the message must come first, or it was answered.
        """
        scan = self.shared.anonymous_scan if self.by_name else self.shared.scan
        check = self.check
        annotations: CachedAnnotations | None = None
        try:
            depth = _THROUGH_PROPERTIES if self.by_name or check is not None else _THROUGH_ANNOTATIONS
            if not scan.scan_sections(data, start, end, depth, delivery.complete):
                if message is None or not self.frames.wait_for_more(message, _MAX_HEAD_BYTES):
                    self.settlement.refuse_delivery(delivery, message, REJECTED, INVALID_MESSAGE)
                return None
            if scan.annotations_start >= 0:
                annotations = self.rewriter.read_section(data, scan.annotations_start, scan.annotations_end)
            if check is not None:
                inspected = check.inspect_message(scan, data, start, end, depth, delivery.complete, message)
                if inspected is None:
                    self.settlement.refuse_delivery(delivery, message, REJECTED, USER_ID_DENIED)
                    return None
                data = inspected
        except InvalidAnnotation as error:
            self.settlement.refuse_delivery(
                delivery, message, REJECTED, rejected_state("amqp:invalid-field", str(error))
            )
            return None
        except InvalidMessage as error:
            too_large = isinstance(error, AnnotationsTooLarge)
            self.settlement.refuse_delivery(
                delivery, message, REJECTED, TOO_MANY_ANNOTATIONS if too_large else INVALID_MESSAGE
            )
            return None
        self.arrival.begin_message(scan, annotations, self.trunk is not None)
        if message is not None and self.trunk is not None:
            if self.frames.must_gather(message, annotations):
                return None
            if self.tap is not None:
                self._note_received(message, data)
        return data

    def _waits_for_more(
        self, entry: AddressEntry, delivery: IncomingDelivery, data: bytes, start: int, end: int, message: Message
    ) -> bool:
        """Return whether an unfinished message waits for more, because the receivers need it; or was refused."""
        max_bytes = entry.bytes_to_gather(data, start, end)
        if max_bytes > 0 and not self.frames.wait_for_more(message, max_bytes):
            self.settlement.refuse_delivery(delivery, message, REJECTED, TOO_LARGE_INSIDE)
        return max_bytes > 0

    def _forward_to_fallback(
        self,
        delivery: IncomingDelivery,
        entry: AddressEntry,
        data: bytes,
        start: int,
        end: int,
        message: Message | None,
    ) -> bool:
        """Forward a message without receivers to those of the fallback; return whether there was any."""
        fallback = entry.fallback
        if fallback is None or self.is_fallback or not fallback.forwarder.has_destinations():
            return False
        kept = self._keep_message(data, start, end) if message is None else message
        self.arrival.copy_state_to(kept, entry.text, FALLBACK_NUMBER, start)
        copies = fallback.forwarder.forward_message(self, delivery, data, start, end, kept)
        kept.now_routed()
        if copies.total == 0:
            return False
        entry.counters.redirected += 1
        self.totals.redirected += 1
        return True

    def _count_entered(self, entry: AddressEntry) -> None:
        """Count a message that enters the network here."""
        entry.counters.ingress += 1
        self.totals.ingress += 1
        if self.account.of_container:
            entry.counters.ingress_container += 1
            self.totals.ingress_container += 1

    def _came_too_far(self, annotations: CachedAnnotations) -> bool:
        """Return whether the message loops: a trace longer than the network, or with this router in it (2.1)."""
        rewriter = self.rewriter
        if not rewriter.marks or rewriter.only_traces:
            return False
        network: Network = self.shared.network  # type: ignore[assignment]  # behind the port
        if annotations.generation != network.generation:
            trace = annotations.parsed.trace
            annotations.generation = network.generation
            annotations.loops = len(trace) > network.radius + 1 or (self.trunk is not None and rewriter.here in trace)
        return annotations.loops

    def _find_entry(
        self, delivery: IncomingDelivery, message: Message | None, data: bytes, annotations: CachedAnnotations | None
    ) -> AddressEntry | None:
        """Return the entry of an anonymous message; None if the sender was answered instead (2.6)."""
        scan = self.shared.anonymous_scan
        check = self.check
        phase = -1 if self.trunk is None else 0
        entry: AddressEntry | None = None
        if annotations is not None and annotations.parsed.to is not None:
            if self.trunk is not None:
                entry = annotations.entry  # type: ignore[assignment]  # set below
                if entry is not None and not entry.gone and entry.is_reachable():
                    return entry
            text = annotations.parsed.to.encode()
            phase = annotations.parsed.phase
        elif scan.to_start < 0:
            if check is not None:
                check.notify(NO_TO, "")
            self.settlement.refuse_delivery(delivery, message, REJECTED, NO_ADDRESS)
            return None
        else:
            text = octets.cut(data, scan.to_start, scan.to_end)
        if check is not None and not check.allows_address(text):
            check.notify(TARGET, str(text[:MAX_ADDRESS_BYTES], errors="replace"))
            self.settlement.refuse_delivery(delivery, message, REJECTED, TARGET_DENIED)
            return None
        entry = self._known.get(text) if phase == self._known_phase else None
        if entry is None and len(text) <= MAX_ADDRESS_BYTES:
            entry = self.table.find_entry(text, phase, self.tenant)
            if annotations is not None and annotations.parsed.to is not None:
                annotations.entry = entry if entry is not None and entry.phase == phase else None
        if entry is None or not entry.is_reachable():
            fits = 0 < len(text) <= MAX_ADDRESS_BYTES
            if fits and self.tenant is not None and self.table.is_closed(text, self.tenant):
                if check is not None:
                    check.notify(RESERVED, str(text, errors="replace"))
                self.settlement.refuse_delivery(delivery, message, REJECTED, ADDRESS_DENIED)
            elif fits and self.trunk is None and self.table.is_unavailable(text, self.tenant):
                self.settlement.refuse_delivery(delivery, message, REJECTED, UNAVAILABLE)
            elif fits and not self.via_edge and self.shared.uplink is not None:
                return self._look_up_way(delivery, message, text)
            else:
                self.settlement.refuse_delivery(delivery, message, RELEASED, RELEASED_STATE)
            return None
        if (self.tenant is not None or (entry.phase > 0 and self.trunk is None)) and entry.key.startswith(MOBILE):
            self.arrival.to = entry.text  # other routers know neither the tenant's name nor the phase of here
            self.arrival.phase = entry.phase
        elif self.tenant is not None:
            address = self.table.parse(text.decode("utf-8", "replace"), tenant=self.tenant)
            if is_made_elsewhere(address):
                self.arrival.to = answer_of(self.tenant, address)
        return entry

    def _look_up_way(self, delivery: IncomingDelivery, message: Message | None, text: bytes) -> AddressEntry | None:
        """Return the entry of the way up for an address without local receivers; None for this router's own."""
        address = self.table.parse(text.decode("utf-8", "replace"), tenant=self.tenant)
        if address.letter != MOBILE and address.key != UPLINK_KEY:
            self.settlement.refuse_delivery(delivery, message, RELEASED, RELEASED_STATE)
            return None
        phase = self.table.rule_for(address).ingress_phase if address.letter == MOBILE else 0
        if self.tenant is not None or phase > 0:
            self.arrival.to = address.text
            self.arrival.phase = phase
        up = self.shared.uplink
        return None if up is None else up.entry  # type: ignore[return-value]  # behind the port

    # --- the message as it leaves

    def build_message(self, delivery: IncomingDelivery, data: bytes, start: int, end: int) -> Message:
        """Return the message in ``data[start:end]`` as a kept one, for a single copy."""
        message = Message(self.link.session, self)
        message.append_chunk(octets.cut(data, start, end))
        message.complete = delivery.complete
        message.routed = True
        self.arrival.copy_state_to(message, self.arrival.to, self.arrival.phase, start)
        return message

    def _keep_message(self, data: bytes, start: int, end: int) -> Message:
        """Return a complete message as a kept one, for any copies."""
        message = Message(self.link.session, self)
        message.append_chunk(octets.cut(data, start, end))
        message.complete = True
        return message

    def write_head(self, message: Message, head: bytes, strips_annotations: bool) -> bytes:
        """See ``DeliverySource.write_head``."""
        annotations = message.annotations
        if strips_annotations:
            section = b"" if annotations is None else annotations.plain_section()
        else:
            section = self.rewriter.onward_section(annotations, message.to, message.phase)
        return octets.replaced(head, 0, message.cut_from, section, message.cut_to, len(head))

    def write_onward(self, message: Message, to: str, phase: int) -> bytes:
        """See ``DeliverySource.write_onward``."""
        head: bytes = message.chunks[0]
        section = self.rewriter.fresh_section(message.annotations, to, phase)
        return octets.replaced(head, 0, message.cut_from, section, message.cut_to, len(head))

    def write_whole(self, data: bytes, start: int, end: int, strips_annotations: bool) -> bytes:
        """See ``DeliverySource.write_whole``; for the message under way only."""
        arrival = self.arrival
        annotations = arrival.annotations
        if strips_annotations:
            section = b"" if annotations is None else annotations.plain_section()
        else:
            section = self.rewriter.onward_section(annotations, arrival.to, arrival.phase)
        return octets.replaced(data, start, arrival.cut_from, section, arrival.cut_to, end)
