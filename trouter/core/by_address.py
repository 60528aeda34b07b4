"""The routing of a message by its address: its annotations, its address, and the forwarder; else an answer.

Obeys routing.md 2.1-2.6, 4.1-4.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trouter.wire import octets
from trouter.wire.annotations import InvalidAnnotation
from trouter.wire.sections import MAX_ANNOTATIONS_BYTES, AnnotationsTooLarge, InvalidMessage, MessageScan

from .addresses import DEFAULT_AREA, FALLBACK_NUMBER, MAX_ADDRESS_BYTES, MOBILE, UPLINK_KEY
from .arrival import Arrival
from .check import NO_TO, RESERVED, TARGET, TARGET_DENIED, USER_ID_DENIED, MessageCheck
from .counters import AddressCounters, Copies
from .entry import AddressEntry
from .forwarders import Forwarder
from .incoming_parts import INVALID_MESSAGE, MAX_HEAD_BYTES
from .ingress import Destination, Ingress
from .message import AnnotationRewriter, CachedAnnotations, IncomingDelivery, Message
from .network import Network
from .outcomes import REJECTED, RELEASED, RELEASED_STATE, rejected_state
from .ports import MAX_INSIDE_BYTES
from .table import AddressTable, answer_of, is_made_elsewhere
from .tenants import Tenant
from .tracing import Tracing

if TYPE_CHECKING:
    from cython import Py_ssize_t
    from cython import int as c_int

    from .tracing import Span

_MAX_HEAD_BYTES: Final[Py_ssize_t] = MAX_HEAD_BYTES
_THROUGH_ANNOTATIONS: Final[c_int] = 3
_THROUGH_PROPERTIES: Final[c_int] = 4

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


class ByAddress(Destination):
    """The consumers of the link's address, or of the address that each message names."""

    __slots__ = ("table", "totals", "is_fallback", "_known", "_known_phase")

    def __init__(
        self,
        table: AddressTable,
        totals: AddressCounters,
        entry: AddressEntry | None,
        *,
        strips: bool,
        to_override: str | None,
        is_fallback: bool = False,
        tenant: Tenant | None = None,
    ) -> None:
        """Make it for a link to ``entry``, None for one whose messages name their addresses.

        strips: the annotations of routers are not honoured. to_override: see ``AnnotationRewriter``. is_fallback:
        messages go to no fallback.
        """
        super().__init__(
            AnnotationRewriter(
                f"{DEFAULT_AREA}/{table.router_id}",
                table.mode != "edge",
                not strips,
                0 if entry is None else entry.phase,
                to_override,
            )
        )
        self.table = table
        #: The router's address counters.
        self.totals = totals
        self.is_fallback = is_fallback
        #: The cache of addresses without an annotation of the phase, or (-1) without any annotation.
        self._known: dict[bytes, AddressEntry] = table.known_to(tenant)
        self._known_phase: c_int = -1

    def come_from_neighbour(self) -> None:
        """Expect the messages of a neighbouring router, which name their address in annotations."""
        self.rewriter.keeps = True
        self._known = self.table.known_first
        self._known_phase = 0

    def pass_on(self, ingress: Ingress, arrival: Arrival) -> None:
        """See ``Destination.pass_on``: forward the message in hand; answer the sender if it goes nowhere."""
        delivery: IncomingDelivery = arrival.delivery
        if ingress.shared.tracing is not None and delivery.span is None:
            self._begin_span(ingress, arrival)
        if not self._read_message(ingress, arrival):
            return
        entry: AddressEntry | None = ingress.account.entry
        if entry is None:
            entry = self._find_entry(ingress, arrival)
            if entry is None:
                return
            if delivery.span is not None:
                delivery.span.address = entry.text
        message: Message | None = arrival.message
        if message is not None and not message.complete and self._waits_for_more(ingress, arrival, entry):
            return
        if not self.is_fallback and ingress.trunk is None:
            self._count_entered(ingress, entry)
        annotations: CachedAnnotations | None = arrival.annotations
        if annotations is not None and annotations.parsed.trace and self._came_too_far(ingress, annotations):
            ingress.settlement.refuse_delivery(delivery, RELEASED, RELEASED_STATE)
            return
        if entry.priority >= 0:
            arrival.priority = entry.priority
        if message is not None:
            arrival.describe_to(message)
        presettled: bool = delivery.remote_settled
        copies: Copies | None = None
        forwarder: Forwarder = entry.forwarder
        if forwarder.has_destinations():
            copies = forwarder.forward(arrival)
        if copies is not None and copies.total > 0:
            entry.counters.add_copies(copies)
            self.totals.add_copies(copies)
        elif entry.fallback is None or not self._forward_to_fallback(arrival, entry):
            ingress.settlement.release_undeliverable(delivery)
            return
        if message is not None:
            message.now_routed()
        if presettled:
            ingress.settlement.count_presettled(delivery)

    def _begin_span(self, ingress: Ingress, arrival: Arrival) -> None:
        """Begin the span of the message in hand if it has one, and write its context if that goes on.

        Of a message of several frames the beginning suffices.
        """
        tracing: Tracing = ingress.shared.tracing  # type: ignore[assignment]  # the caller has checked
        place: Py_ssize_t = tracing.find_context(arrival)
        if place < -1:
            return
        if ingress.span_source is None:
            ingress.span_source = tracing.describe_source(ingress.link)
        span: Span | None = tracing.begin_span(arrival, place, ingress.span_source)
        if span is None:
            return
        arrival.delivery.span = span
        if ingress.account.entry is not None:
            span.address = ingress.account.entry.text
        if tracing.propagates:
            arrival.replace_data(tracing.write_context(span, arrival))
            if arrival.message is not None:
                arrival.message.replace_kept(arrival.data)

    def _read_message(self, ingress: Ingress, arrival: Arrival) -> bool:
        """Read what routing needs into ``arrival``; return False if more must come first, or it was answered."""
        scan: MessageScan = ingress.shared.anonymous_scan if ingress.by_name else ingress.shared.scan
        check: MessageCheck | None = ingress.check
        annotations: CachedAnnotations | None = None
        complete: bool = arrival.delivery.complete
        message: Message | None = arrival.message
        try:
            depth: c_int = _THROUGH_PROPERTIES if ingress.by_name or check is not None else _THROUGH_ANNOTATIONS
            if not scan.scan_sections(arrival.data, arrival.start, arrival.end, depth, complete):
                if message is None or not ingress.frames.wait_for_more(message, _MAX_HEAD_BYTES):
                    ingress.settlement.refuse_delivery(arrival.delivery, REJECTED, INVALID_MESSAGE)
                return False
            if scan.annotations_start >= 0:
                annotations = self.rewriter.read_section(scan, arrival.data)
            if check is not None and not check.inspect_message(scan, arrival, depth):
                ingress.settlement.refuse_delivery(arrival.delivery, REJECTED, USER_ID_DENIED)
                return False
        except InvalidAnnotation as error:
            state = rejected_state("amqp:invalid-field", str(error))
            ingress.settlement.refuse_delivery(arrival.delivery, REJECTED, state)
            return False
        except InvalidMessage as error:
            too_large = isinstance(error, AnnotationsTooLarge)
            state = TOO_MANY_ANNOTATIONS if too_large else INVALID_MESSAGE
            ingress.settlement.refuse_delivery(arrival.delivery, REJECTED, state)
            return False
        arrival.describe(scan, annotations, ingress.trunk is not None)
        if message is not None and ingress.trunk is not None:
            if ingress.frames.must_gather(message, annotations):
                return False
            ingress.note_received(arrival)
        return True

    def _waits_for_more(self, ingress: Ingress, arrival: Arrival, entry: AddressEntry) -> bool:
        """Return whether an unfinished message waits for more, because the receivers need it; or was refused."""
        max_bytes: Py_ssize_t = entry.bytes_to_gather(arrival)
        if max_bytes > 0 and not ingress.frames.wait_for_more(arrival.message, max_bytes):  # type: ignore[arg-type]
            ingress.settlement.refuse_delivery(arrival.delivery, REJECTED, TOO_LARGE_INSIDE)
        return max_bytes > 0

    def _forward_to_fallback(self, arrival: Arrival, entry: AddressEntry) -> bool:
        """Forward a message without receivers to those of the fallback; return whether there was any."""
        fallback: AddressEntry | None = entry.fallback
        if fallback is None or self.is_fallback or not fallback.forwarder.has_destinations():
            return False
        arrival.to = entry.text
        arrival.phase = FALLBACK_NUMBER
        message: Message | None = arrival.message
        if message is None:
            message = arrival.message = arrival.keep()
            message.routed = False
        else:
            arrival.describe_to(message)
        copies: Copies = fallback.forwarder.forward(arrival)
        message.now_routed()
        if copies.total == 0:
            return False
        entry.counters.redirected += 1
        self.totals.redirected += 1
        return True

    def _count_entered(self, ingress: Ingress, entry: AddressEntry) -> None:
        """Count a message that enters the network here."""
        entry.counters.ingress += 1
        self.totals.ingress += 1
        if ingress.account.of_container:
            entry.counters.ingress_container += 1
            self.totals.ingress_container += 1

    def _came_too_far(self, ingress: Ingress, annotations: CachedAnnotations) -> bool:
        """Return whether the message loops: a trace longer than the network, or with this router in it (2.1)."""
        rewriter: AnnotationRewriter = self.rewriter
        if not rewriter.marks or rewriter.only_traces:
            return False
        network: Network = ingress.shared.network  # type: ignore[assignment]  # behind the port
        if annotations.generation != network.generation:
            trace: tuple[str, ...] = annotations.parsed.trace
            annotations.generation = network.generation
            annotations.loops = len(trace) > network.radius + 1 or (
                ingress.trunk is not None and rewriter.here in trace
            )
        return annotations.loops

    # --- the address of an anonymous message

    def _find_entry(self, ingress: Ingress, arrival: Arrival) -> AddressEntry | None:
        """Return the entry of an anonymous message; None if the sender was answered instead (2.6)."""
        scan: MessageScan = ingress.shared.anonymous_scan
        check: MessageCheck | None = ingress.check
        annotations: CachedAnnotations | None = arrival.annotations
        phase: c_int = -1 if ingress.trunk is None else 0
        entry: AddressEntry | None = None
        text: bytes
        if annotations is not None and annotations.parsed.to is not None:
            if ingress.trunk is not None:
                entry = annotations.entry  # type: ignore[assignment]  # set below
                if entry is not None and not entry.gone and entry.is_reachable():
                    return entry
            text = annotations.parsed.to.encode()
            phase = annotations.parsed.phase
        elif scan.to_start < 0:
            if check is not None:
                check.notify(NO_TO, "")
            ingress.settlement.refuse_delivery(arrival.delivery, REJECTED, NO_ADDRESS)
            return None
        else:
            text = octets.cut(arrival.data, scan.to_start, scan.to_end)
        if check is not None and not check.allows_address(text):
            check.notify(TARGET, str(text[:MAX_ADDRESS_BYTES], errors="replace"))
            ingress.settlement.refuse_delivery(arrival.delivery, REJECTED, TARGET_DENIED)
            return None
        entry = self._known.get(text) if phase == self._known_phase else None
        if entry is None and len(text) <= MAX_ADDRESS_BYTES:
            entry = self.table.find_entry(text, phase, ingress.tenant)
            if annotations is not None and annotations.parsed.to is not None:
                annotations.entry = entry if entry is not None and entry.phase == phase else None
        if entry is None or not entry.is_reachable():
            return self._answer_unreachable(ingress, arrival, text)
        if (ingress.tenant is not None or (entry.phase > 0 and ingress.trunk is None)) and entry.key.startswith(MOBILE):
            arrival.to = entry.text  # other routers know neither the tenant's name nor the phase of here
            arrival.phase = entry.phase
        elif ingress.tenant is not None:
            address = self.table.parse(text.decode("utf-8", "replace"), tenant=ingress.tenant)
            if is_made_elsewhere(address):
                arrival.to = answer_of(ingress.tenant, address)
        return entry

    def _answer_unreachable(self, ingress: Ingress, arrival: Arrival, text: bytes) -> AddressEntry | None:
        """Answer a message to an address without receivers here; on an edge router return the entry of the way up."""
        fits = 0 < len(text) <= MAX_ADDRESS_BYTES
        if fits and ingress.tenant is not None and self.table.is_closed(text, ingress.tenant):
            if ingress.check is not None:
                ingress.check.notify(RESERVED, str(text, errors="replace"))
            ingress.settlement.refuse_delivery(arrival.delivery, REJECTED, ADDRESS_DENIED)
        elif fits and ingress.trunk is None and self.table.is_unavailable(text, ingress.tenant):
            ingress.settlement.refuse_delivery(arrival.delivery, REJECTED, UNAVAILABLE)
        elif fits and not ingress.via_edge and ingress.shared.uplink is not None:
            return self._look_up_way(ingress, arrival, text)
        else:
            ingress.settlement.refuse_delivery(arrival.delivery, RELEASED, RELEASED_STATE)
        return None

    def _look_up_way(self, ingress: Ingress, arrival: Arrival, text: bytes) -> AddressEntry | None:
        """Return the entry of the way up for an address without local receivers; None for this router's own."""
        address = self.table.parse(text.decode("utf-8", "replace"), tenant=ingress.tenant)
        if address.letter != MOBILE and address.key != UPLINK_KEY:
            ingress.settlement.refuse_delivery(arrival.delivery, RELEASED, RELEASED_STATE)
            return None
        phase = self.table.rule_for(address).ingress_phase if address.letter == MOBILE else 0
        if ingress.tenant is not None or phase > 0:
            arrival.to = address.text
            arrival.phase = phase
        up = ingress.shared.uplink
        return None if up is None else up.entry  # type: ignore[return-value]  # behind the port
