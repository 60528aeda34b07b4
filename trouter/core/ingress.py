"""The routing of a message from an incoming link: its annotations, its address, and the forwarder; else an answer.

Obeys routing.md 2.1-2.6, 4.1-4.3. Before it come ``intake`` (frames become messages) and ``credit``, after it
``settlement`` (the answer to the sender).
"""

from __future__ import annotations

from trouter.engine.link import IncomingLink
from trouter.wire import octets
from trouter.wire.annotations import InvalidAnnotation
from trouter.wire.sections import MAX_ANNOTATIONS_BYTES, AnnotationsTooLarge, InvalidMessage, MessageScan
from trouter.wire.stamp import stamped

from .addresses import DEFAULT_AREA, FALLBACK_NUMBER, MOBILE, UPLINK_KEY
from .annotations import AnnotationRewriter, CachedAnnotations
from .check import NO_TO, RESERVED, TARGET, TARGET_DENIED, USER_ID, USER_ID_DENIED, MessageCheck
from .counters import AddressCounters, Copies
from .entry import AddressEntry
from .intake import INVALID_MESSAGE, Intake
from .message import IncomingDelivery, Message
from .network import Network, Trunk
from .outcomes import REJECTED, RELEASED, RELEASED_STATE, rejected_state
from .pace import Pace
from .ports import MAX_INSIDE_BYTES, Pulse
from .table import MAX_ADDRESS_BYTES, AddressTable, answer_of, is_made_elsewhere
from .tenants import Tenant

#: The most bytes of header, annotations and (anonymous) properties to wait for.
_MAX_HEAD_BYTES = 1048576
_THROUGH_ANNOTATIONS = 3
_THROUGH_PROPERTIES = 4

TOO_MANY_ANNOTATIONS = rejected_state(
    "amqp:invalid-field", f"annotations are limited to {MAX_ANNOTATIONS_BYTES} bytes a map"
)
NO_ADDRESS = rejected_state("amqp:precondition-failed", "Routing failure: no address present")
UNAVAILABLE = rejected_state("amqp:not-found", "Deliveries cannot be sent to an unavailable address")
#: In the words of Qpid Dispatch's policy.
CLOSED = rejected_state("amqp:unauthorized-access", "policy violation on target")
TOO_LARGE_INSIDE = rejected_state(
    "amqp:link:message-size-exceeded", f"messages to this address are limited to {MAX_INSIDE_BYTES} bytes"
)


class Ingress(Intake):
    """One incoming link. ``entry`` is its address, None for an anonymous link, whose messages name theirs."""

    __slots__ = (
        "_known",
        "_known_phase",
        "_scan",
        "attached_at_s",
        "identity",
        "is_fallback",
        "rewriter",
        "pace",
        "table",
        "totals",
    )

    def __init__(
        self,
        link: IncomingLink,
        pulse: Pulse,
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
        super().__init__(link, pulse, entry, capacity)
        self.table = table
        self.tenant = tenant
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
        self._scan = MessageScan(reads_to=entry is None)
        #: The link's number in management; 0 until the router sets it.
        self.identity = 0
        self.attached_at_s = pulse.now_s
        self.pace = Pace(pulse.now_s)

    def comes_from(self, trunk: Trunk) -> None:
        """Mark the link as a neighbour's, whose annotations give the destination and the trace of each message."""
        self.trunk = trunk
        self.rewriter.keeps = True
        self._known = self.table.known_first
        self._known_phase = 0

    def comes_from_edge(self) -> None:
        """Mark the link as one between an edge router and its interior router."""
        self.via_edge = True
        self.rewriter.via_edge = True

    # --- where a message goes

    def _route(self, delivery: IncomingDelivery, data: bytes, start: int, end: int, message: Message | None) -> None:
        """Forward a message to its address; answer the sender if the message goes nowhere."""
        scan = self._scan
        entry = self.entry
        annotations: CachedAnnotations | None = None
        try:
            depth = _THROUGH_ANNOTATIONS if entry is not None and self.check is None else _THROUGH_PROPERTIES
            if not scan.scan(data, start, end, depth, delivery.complete):
                self._await_head(delivery, message)
                return
            if scan.annotations_start >= 0:
                annotations = self.rewriter.read(data, scan.annotations_start, scan.annotations_end)
            if self.check is not None:
                inspected = self._inspect(self.check, delivery, data, start, end, depth, message)
                if inspected is None:
                    return
                if inspected is not data:
                    data = inspected
                    start = 0
                    end = len(data)
        except InvalidAnnotation as error:
            self._refuse(delivery, message, REJECTED, rejected_state("amqp:invalid-field", str(error)))
            return
        except InvalidMessage as error:
            too_large = isinstance(error, AnnotationsTooLarge)
            self._refuse(delivery, message, REJECTED, TOO_MANY_ANNOTATIONS if too_large else INVALID_MESSAGE)
            return
        self.arrival.begin(scan, annotations, self.trunk is not None)
        if message is not None and self.trunk is not None:
            if self._must_gather(message, annotations):
                return
            if self.log is not None:
                self._log_received(message, data)
        if entry is None:
            entry = self._find(delivery, message, data, annotations)
            if entry is None:
                return
        if message is not None and not message.complete:
            max_bytes = entry.gathers(data, start, end)
            if max_bytes > 0:
                if not self._waits_on(message, max_bytes):
                    self._refuse(delivery, message, REJECTED, TOO_LARGE_INSIDE)
                return
        if not self.is_fallback and self.trunk is None:
            self._count(entry)
        if annotations is not None and annotations.parsed.trace and self._came_too_far(annotations):
            self._refuse(delivery, message, RELEASED, RELEASED_STATE)
            return
        if entry.priority >= 0:
            self.arrival.priority = entry.priority
        if message is not None:
            self.arrival.describe(message, self.arrival.to, self.arrival.phase, start)
        self._forward(delivery, entry, data, start, end, message)

    def _await_head(self, delivery: IncomingDelivery, message: Message | None) -> None:
        """Wait for more of a message whose head is incomplete; refuse it if it is complete or too long."""
        if message is None or not self._waits_on(message, _MAX_HEAD_BYTES):
            self._refuse(delivery, message, REJECTED, INVALID_MESSAGE)

    def _count(self, entry: AddressEntry) -> None:
        """Count a message that enters the network here."""
        entry.counters.ingress += 1
        self.totals.ingress += 1
        if self.of_container:
            entry.counters.ingress_container += 1
            self.totals.ingress_container += 1

    def _inspect(
        self,
        check: MessageCheck,
        delivery: IncomingDelivery,
        data: bytes,
        start: int,
        end: int,
        depth: int,
        message: Message | None,
    ) -> bytes | None:
        """Return ``data``, or the whole message stamped; None if ``check`` rejected the message. InvalidMessage."""
        scan = self._scan
        if message is None:
            check.order.whole(data, start, end)
        if scan.user_id_start < scan.user_id_end:
            if not check.is_own(data, scan.user_id_start, scan.user_id_end):
                whose = data[scan.user_id_start : min(scan.user_id_end, scan.user_id_start + MAX_ADDRESS_BYTES)]
                check.notify(USER_ID, str(whose, errors="replace"))
                self._refuse(delivery, message, REJECTED, USER_ID_DENIED)
                return None
        elif check.stamp is not None:
            data = self._stamp(check, data, start, end, depth, delivery.complete)
            if message is not None:
                message.rewrite(data)
        return data

    def _stamp(self, check: MessageCheck, data: bytes, start: int, end: int, depth: int, complete: bool) -> bytes:
        """Return the message with the user's name in it; the scan then describes that one."""
        assert check.stamp is not None  # noqa: S101 - the caller has checked
        data = stamped(data, start, end, self._scan, check.stamp)
        self._scan.scan(data, 0, len(data), depth, complete)
        return data

    def _came_too_far(self, annotations: CachedAnnotations) -> bool:
        """Return whether the message loops: a trace longer than the network, or with this router in it (2.1)."""
        rewriter = self.rewriter
        if not rewriter.marks or rewriter.only_traces:
            return False
        network: Network = self.pulse.network  # type: ignore[assignment]  # behind the port
        if annotations.generation != network.generation:
            trace = annotations.parsed.trace
            annotations.generation = network.generation
            annotations.loops = len(trace) > network.radius + 1 or (self.trunk is not None and rewriter.here in trace)
        return annotations.loops

    def _find(
        self, delivery: IncomingDelivery, message: Message | None, data: bytes, annotations: CachedAnnotations | None
    ) -> AddressEntry | None:
        """Return the entry of an anonymous message; None if the sender was answered instead (2.6)."""
        scan = self._scan
        check = self.check
        phase = -1 if self.trunk is None else 0
        entry: AddressEntry | None = None
        if annotations is not None and annotations.parsed.to is not None:
            if self.trunk is not None:
                entry = annotations.entry  # type: ignore[assignment]  # set below
                if entry is not None and not entry.gone and entry.reachable():
                    return entry
            text = annotations.parsed.to.encode()
            phase = annotations.parsed.phase
        elif scan.to_start < 0:
            if check is not None:
                check.notify(NO_TO, "")
            self._refuse(delivery, message, REJECTED, NO_ADDRESS)
            return None
        else:
            text = octets.cut(data, scan.to_start, scan.to_end)
        if check is not None and not check.allows(text):
            check.notify(TARGET, str(text[:MAX_ADDRESS_BYTES], errors="replace"))
            self._refuse(delivery, message, REJECTED, TARGET_DENIED)
            return None
        entry = self._known.get(text) if phase == self._known_phase else None
        if entry is None and len(text) <= MAX_ADDRESS_BYTES:
            entry = self.table.find(text, phase, self.tenant)
            if annotations is not None and annotations.parsed.to is not None:
                annotations.entry = entry if entry is not None and entry.phase == phase else None
        if entry is None or not entry.reachable():
            fits = 0 < len(text) <= MAX_ADDRESS_BYTES
            if fits and self.tenant is not None and self.table.is_closed(text, self.tenant):
                if check is not None:
                    check.notify(RESERVED, str(text, errors="replace"))
                self._refuse(delivery, message, REJECTED, CLOSED)
            elif fits and self.trunk is None and self.table.is_unavailable(text, self.tenant):
                self._refuse(delivery, message, REJECTED, UNAVAILABLE)
            elif fits and not self.via_edge and self.pulse.uplink is not None:
                return self._look_up(delivery, message, text)
            else:
                self._refuse(delivery, message, RELEASED, RELEASED_STATE)
            return None
        if (self.tenant is not None or (entry.phase > 0 and self.trunk is None)) and entry.key.startswith(MOBILE):
            self.arrival.to = entry.text  # other routers know neither the tenant's name nor the phase of here
            self.arrival.phase = entry.phase
        elif self.tenant is not None:
            address = self.table.parse(text.decode("utf-8", "replace"), tenant=self.tenant)
            if is_made_elsewhere(address):
                self.arrival.to = answer_of(self.tenant, address)
        return entry

    def _look_up(self, delivery: IncomingDelivery, message: Message | None, text: bytes) -> AddressEntry | None:
        """Return the entry of the way up for an address without local receivers; None for this router's own."""
        address = self.table.parse(text.decode("utf-8", "replace"), tenant=self.tenant)
        if address.letter != MOBILE and address.key != UPLINK_KEY:
            self._refuse(delivery, message, RELEASED, RELEASED_STATE)
            return None
        phase = self.table.rule_for(address).ingress_phase if address.letter == MOBILE else 0
        if self.tenant is not None or phase > 0:
            self.arrival.to = address.text
            self.arrival.phase = phase
        up = self.pulse.uplink
        return None if up is None else up.entry  # type: ignore[return-value]  # behind the port

    def _forward(
        self,
        delivery: IncomingDelivery,
        entry: AddressEntry,
        data: bytes,
        start: int,
        end: int,
        message: Message | None,
    ) -> None:
        presettled = delivery.remote_settled
        copies: Copies | None = None
        if entry.destinations() > 0:
            copies = entry.forwarder.forward(self, delivery, data, start, end, message)
        if copies is not None and copies.total > 0:
            entry.counters.add_copies(copies)
            self.totals.add_copies(copies)
        elif entry.fallback is not None and not self.is_fallback and entry.fallback.destinations() > 0:
            if message is None:
                message = self._keep(data, start, end)
            self.arrival.describe(message, entry.text, FALLBACK_NUMBER, start)
            if entry.fallback.forwarder.forward(self, delivery, data, start, end, message).total == 0:
                self._undeliverable(delivery, message)
                return
            entry.counters.redirected += 1
            self.totals.redirected += 1
        else:
            self._undeliverable(delivery, message)
            return
        if message is not None:
            message.now_routed()
        if presettled:
            self._count_presettled()

    # --- the message as it leaves

    def build_message(self, delivery: IncomingDelivery, data: bytes, start: int, end: int) -> Message:
        """Return the message in ``data[start:end]`` as a kept one, for a single copy."""
        message = Message(self.link.session, self)
        message.append(octets.cut(data, start, end))
        message.complete = delivery.complete
        message.routed = True
        self.arrival.describe(message, self.arrival.to, self.arrival.phase, start)
        return message

    def _keep(self, data: bytes, start: int, end: int) -> Message:
        """Return a complete message as a kept one, for any copies."""
        message = Message(self.link.session, self)
        message.append(octets.cut(data, start, end))
        message.complete = True
        return message

    def write_head(self, message: Message, head: bytes, plain: bool) -> bytes:
        """See ``InEndpoint.write_head``."""
        annotations = message.annotations
        if plain:
            section = b"" if annotations is None else annotations.plain()
        else:
            section = self.rewriter.onward(annotations, message.to, message.phase)
        return octets.replaced(head, 0, message.cut_from, section, message.cut_to, len(head))

    def write_onward(self, message: Message, to: str, phase: int) -> bytes:
        """See ``InEndpoint.write_onward``."""
        head: bytes = message.chunks[0]
        section = self.rewriter.anew(message.annotations, to, phase)
        return octets.replaced(head, 0, message.cut_from, section, message.cut_to, len(head))

    def write(self, data: bytes, start: int, end: int, plain: bool) -> bytes:
        """See ``InEndpoint.write``; for the message under way only."""
        arrival = self.arrival
        annotations = arrival.annotations
        if plain:
            section = b"" if annotations is None else annotations.plain()
        else:
            section = self.rewriter.onward(annotations, arrival.to, arrival.phase)
        return octets.replaced(data, start, arrival.cut_from, section, arrival.cut_to, end)
