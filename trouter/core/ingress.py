"""Where deliveries of one incoming link enter: parse what must be known, find the address, forward, return credit.

Obeys routing.md 2.6-2.8 (undeliverable, loss, pre-settled), 3.1-3.3 (credit), 3.7-3.8 (streaming), 4.1-4.4.
"""

from __future__ import annotations

from typing import Any

from trouter.engine.link import IncomingLink
from trouter.engine.ports import Delivery, LinkPort
from trouter.wire import octets
from trouter.wire.annotations import InvalidAnnotation
from trouter.wire.order import SectionOrder
from trouter.wire.sections import MAX_ANNOTATIONS_BYTES, AnnotationsTooLarge, InvalidMessage, MessageScan
from trouter.wire.stamp import stamped

from .addresses import DEFAULT_AREA, FALLBACK_NUMBER, MOBILE, UPLINK_KEY
from .check import NO_TO, RESERVED, TARGET, TARGET_DENIED, USER_ID, USER_ID_DENIED, MessageCheck
from .counters import AddressCounters
from .egress import Egress
from .latency import family_of
from .message import Message
from .network import Network, Trunk
from .outcomes import (
    ACCEPTED,
    ACCEPTED_STATE,
    FAILED_STATE,
    MODIFIED,
    REJECTED,
    RELEASED,
    RELEASED_STATE,
    rejected_state,
)
from .pace import Pace
from .passage import Marker, Passage
from .ports import DEFAULT_PRIORITY, MAX_INSIDE_BYTES, InEndpoint, Pulse
from .record import Record
from .table import MAX_ADDRESS_BYTES, AddressTable, answer_of, is_made_elsewhere
from .tenants import Tenant

#: Octets of an unfinished message that are waited for before it is sent on piece by piece (Q2's upper mark).
_STREAM_AT = 131072
#: Octets of header, annotations and (anonymous) properties after which a message is no longer waited for.
_MAX_HEAD_BYTES = 1048576
_THROUGH_ANNOTATIONS = 3
_THROUGH_PROPERTIES = 4
_DEFAULT_PRIORITY = DEFAULT_PRIORITY
_HIGHEST_PRIORITY = 9

INVALID_MESSAGE = rejected_state("amqp:decode-error", "invalid message format")
TOO_MANY_ANNOTATIONS = rejected_state(
    "amqp:invalid-field", f"annotations are limited to {MAX_ANNOTATIONS_BYTES} octets a map"
)
NO_ADDRESS = rejected_state("amqp:precondition-failed", "Routing failure: no address present")
UNAVAILABLE = rejected_state("amqp:not-found", "Deliveries cannot be sent to an unavailable address")
#: As the older router's policy says it.
CLOSED = rejected_state("amqp:unauthorized-access", "policy violation on target")
TOO_LARGE_INSIDE = rejected_state(
    "amqp:link:message-size-exceeded", f"messages to this address are limited to {MAX_INSIDE_BYTES} octets"
)


class Ingress(InEndpoint):
    """One incoming link. ``record`` is its address, None for an anonymous link, whose messages name theirs."""

    __slots__ = (
        "_cut_from",
        "_cut_to",
        "_known",
        "_known_phase",
        "_order",
        "_passage",
        "_scan",
        "_to",
        "_to_phase",
        "_window_bytes",
        "attached_at_s",
        "capacity",
        "check",
        "dry_since_s",
        "family",
        "gate",
        "identity",
        "is_fallback",
        "link",
        "log",
        "marker",
        "noted",
        "of_container",
        "pace",
        "pending",
        "prompt",
        "record",
        "table",
        "totals",
        "unsettled",
    )

    def __init__(
        self,
        link: IncomingLink,
        pulse: Pulse,
        table: AddressTable,
        record: Record | None,
        *,
        capacity: int,
        strips: bool,
        to_override: str | None,
        totals: AddressCounters,
        is_fallback: bool = False,
        tenant: Tenant | None = None,
    ) -> None:
        super().__init__(pulse)
        self.link = link
        self.table = table
        self.tenant = tenant
        #: Where addresses are looked for first that come without an annotation, or (-1) with none for the phase.
        self._known = table.known if tenant is None else tenant.known
        self._known_phase = -1
        self.record = record
        self.by_name = record is None
        self.capacity = capacity
        #: Reads and writes what routers say of its messages.
        self.marker = Marker(
            f"{DEFAULT_AREA}/{table.router_id}",
            table.mode != "edge",
            not strips,
            0 if record is None else record.phase,
            to_override,
        )
        self.is_fallback = is_fallback
        #: The router's address counters.
        self.totals = totals
        #: Credit that waits for a consumer.
        self.pending = 0
        #: What had come when less credit was owed than is granted at once, negative where none is owed so.
        self.noted = -1
        #: Deliveries that have taken a credit for now: not here in full, or settled by neither side.
        self.unsettled = 0
        self._window_bytes = self.link._session.window_bytes
        self._scan = MessageScan(reads_to=record is None)
        #: An unfinished message is routed as soon as it can be.
        self.prompt = False
        #: Where annotations stand in the message under way, or would stand.
        self._cut_from = self._cut_to = 0
        #: What the message under way is to go by elsewhere, where that is not what its sender wrote.
        self._to: str | None = None
        self._to_phase = 0
        #: What routers said of the message under way, None if it came without annotations.
        self._passage: Passage | None = None
        #: A ``MessageLog`` where messages are logged.
        self.log: Any = None
        #: What messages are held to, None for nothing.
        self.check: MessageCheck | None = None
        #: The ``Gate`` that is asked before credit is granted, or None.
        self.gate: Any = None
        #: How far a message in several frames keeps to the order of sections, where that is checked.
        self._order: SectionOrder | None = None
        #: What management calls the link; 0 until the router gives it a number.
        self.identity = 0
        self.attached_at_s = pulse.now_s
        self.pace = Pace(pulse.now_s)
        #: The peer is a route container.
        self.of_container = False
        #: The class of its address, an index into ``latency.FAMILIES``.
        self.family = family_of(None if record is None else record.key)
        #: When the sender's credit ran out, as long as it is out; negative for not known.
        self.dry_since_s = pulse.now_s

    def comes_from(self, trunk: Trunk) -> None:
        """Mark the link as a neighbour's, whose annotations say of each message where it goes and where it has been."""
        self.trunk = trunk
        self.marker.keeps = True
        self._known = self.table.known_first
        self._known_phase = 0

    def comes_from_edge(self) -> None:
        """The link is that of an edge router, or of one that takes this router for its edge."""
        self.via_edge = True
        self.marker.via_edge = True

    # --- credit

    def open(self) -> None:
        """Give the sender its first credit, or keep it until a consumer exists (routing.md 1.6)."""
        self.pending = self.capacity
        if self.record is None or self.record.reachable():
            self.destination_appeared()

    def destination_appeared(self) -> None:
        """The address has a consumer again: hand out what was kept back (3.2); a drain is called off."""
        if (self.pending > 0 or self.link.draining) and not self.pulse.draining:
            count = self.pending
            self.pending = 0
            self._grant(count)

    def on_drained(self, link: LinkPort) -> None:
        """The sender gave its credit back (3.3)."""
        self.pending = self.capacity - self.unsettled
        self.dry_since_s = self.pulse.now_s
        if self.record is None or self.record.reachable():
            self.destination_appeared()

    def on_overdrawn(self, link: LinkPort) -> None:
        """Count a delivery that comes without credit; the log is to tell of the link once."""
        self.pulse.overdrawn += 1
        if self.link.overdrawn == 1:
            self.pulse.overdrawing.append(self.link)

    def on_refused(self, link: LinkPort, delivery: Delivery) -> None:
        """Count a delivery that its link has rejected."""
        delivery.arrived_at = self.pulse.now_s
        self.counters.deliveries += 1
        if delivery.remote_settled:
            self._count_dropped()
        else:
            self._count_end(delivery, REJECTED)

    def _top_up(self) -> None:
        """Give back the credit of deliveries that are done with, a few at a time while the sender has plenty.

        What is owed is what is missing to the capacity, so credit that a sender gave back unasked is not lost. What is
        too little to be granted now is granted when nothing more comes: there are senders that go on only for a flow.

        A broker is granted more only once all that it was granted has come, however long that takes. RabbitMQ takes a
        flow for credit besides what it has under way: several in a row would have it send more and more without credit.
        """
        link = self.link
        owed = self.capacity - self.pending - link.credit
        prompt = self.via_edge or self.trunk is not None  # between routers, credit does not wait for outcomes (3.1)
        if not prompt:
            owed -= self.unsettled
        if link.draining or self.pulse.draining:
            self.pending += owed
        elif owed > 0 and (link.credit <= 0 or link.flow_due if self.of_container else owed >= link.credit):
            if link.credit <= 0 and not prompt and self.record is not None and not self.record.reachable():
                self.pending += owed
            else:
                self._grant(owed)
        elif owed > 0 and self.noted < 0 and not self.of_container:
            self.noted = self.counters.deliveries
            self.pulse.note_owing(self)

    def return_owed(self) -> bool:
        """Grant what is owed, however little, if nothing has come since that was noted; False if something has."""
        came = self.counters.deliveries
        if came != self.noted:
            self.noted = came
            return False
        self.noted = -1
        link = self.link
        if link.attached and link.credit > 0 and not link.draining and not self.pulse.draining:
            owed = self.capacity - self.pending - link.credit
            if not (self.via_edge or self.trunk is not None):
                owed -= self.unsettled
            if owed > 0:
                self._grant(owed)
        return True

    def top_up(self) -> None:
        """Grant what is owed, now that the gate may let more of it through."""
        self._top_up()

    def _grant(self, count: int) -> None:
        if self.gate is not None:
            count = self.gate.take(self, count)
            if count == 0 and not self.link.draining:
                return
        self.link.grant(count)
        if self.link.credit > 0:
            self.dry_since_s = -1.0

    # --- messages

    def on_transfer(self, link: LinkPort, delivery: Delivery, data: bytes, start: int, end: int) -> None:
        """Route a whole message at once; gather a longer one until it is complete or long enough to stream."""
        message: Message | None = delivery.message
        if message is None:
            delivery.arrived_at = self.pulse.now_s
            self.counters.deliveries += 1
            if delivery.remote_settled:
                delivery.settled = True
            else:
                self.unsettled += 1
            if self.link.credit <= 0:
                self.dry_since_s = delivery.arrived_at
            if delivery.complete:
                if self.log is not None:
                    self.log.received(self.link, data[start:end])
                self._route(delivery, data, start, end, None)
                if delivery.settled or self.link.credit <= 0 or self.via_edge or self.trunk is not None:
                    self._top_up()
                return
            if delivery.settled:
                self.unsettled += 1
            message = Message(self.link.session, self)
            message.wanted = _STREAM_AT if self.trunk is None else 1  # which may not be for waiting
            delivery.message = message
            self._order = None if self.check is None else SectionOrder()
        self._continue(delivery, message, data, start, end)

    def _continue(self, delivery: Delivery, message: Message, data: bytes, start: int, end: int) -> None:
        """The next frame of a message in several."""
        message.complete = delivery.complete
        settled = delivery.settled
        if self._order is not None and not self._stands_in_order(delivery, message, data, start, end):
            self._order = None
        elif not message.routed:
            message.append(octets.cut(data, start, end))
            if message.complete or message.held >= message.wanted or self._must_not_wait(message):
                whole = message.join()
                if self.log is not None and self.trunk is None:
                    self._tell_of(message, whole)
                self._route(delivery, whole, 0, len(whole), message)
        elif not message.discard:
            self._send_on(message, data, start, end)
        if delivery.remote_settled and not delivery.settled:
            settled = delivery.settled = True  # the flag came on a later frame than the first
            self._relay_sender(delivery, 0, None, True)
            self._count_end(delivery, delivery.state_code)
        if delivery.complete:
            delivery.message = None
            if settled:
                self.unsettled -= 1
            elif isinstance(delivery.context, bytes) and not delivery.settled:
                # an outcome from before the input was complete (4.4)
                self._finish(delivery, delivery.state_code, delivery.context or None)
            self._top_up()
        elif message.copies and self.link.session.held_bytes * 4 > self._window_bytes * 3:
            for each in message.copies[:]:
                copy = each
                egress: Egress = copy.link.sink  # type: ignore[assignment]
                egress.relieve(copy)

    def _tell_of(self, message: Message, whole: bytes) -> None:
        """Log that a message came; once, however often it is looked at."""
        if not message.told:
            message.told = True
            self.log.received(self.link, whole)

    def _stands_in_order(self, delivery: Delivery, message: Message, data: bytes, start: int, end: int) -> bool:
        """Check the next frame of a message; one that breaks the order is taken back and rejected as a whole."""
        try:
            self._order.feed(data, start, end, delivery.complete)  # type: ignore[union-attr]  # the caller looked
        except InvalidMessage:
            if message.copies:
                self._take_back(delivery)
                delivery.message = message
            self._refuse(delivery, message, REJECTED, INVALID_MESSAGE)
            return False
        return True

    def _must_not_wait(self, message: Message) -> bool:
        """Unfinished messages fill half of what the session takes in: wait no longer, or none of them could go on."""
        return message.wanted == _STREAM_AT and self.link.session.held_bytes * 2 > self._window_bytes

    def _send_on(self, message: Message, data: bytes, start: int, end: int) -> None:
        """Pass a frame of a message on its way to every copy; what no receiver takes now is kept."""
        if len(message.copies) == 1:
            only: Delivery = message.copies[0]
            sole: Egress = only.link.sink  # type: ignore[assignment]
            start = sole.continue_with(only, message, data, start, end)
            if only.complete:
                return
            if start == end and not message.complete:
                return
        message.append(octets.cut(data, start, end))
        for each in message.copies[:]:
            copy = each
            egress: Egress = copy.link.sink  # type: ignore[assignment]
            egress.progress(copy)

    def _route(self, delivery: Delivery, data: bytes, start: int, end: int, message: Message | None) -> None:
        """Find the address and forward; answer the sender when that is not to be."""
        scan = self._scan
        record = self.record
        check = self.check
        passage: Passage | None = None
        self._to = None
        self._to_phase = 0
        self.rewrites = False
        try:
            depth = _THROUGH_ANNOTATIONS if record is not None and check is None else _THROUGH_PROPERTIES
            if not scan.scan(data, start, end, depth, delivery.complete):
                if message is not None and self._waits_on(message, _MAX_HEAD_BYTES):
                    return  # more of the head is to come
                self._refuse(delivery, message, REJECTED, INVALID_MESSAGE)
                return
            if scan.annotations_start >= 0:
                passage = self.marker.read(data, scan.annotations_start, scan.annotations_end)
                self.rewrites = passage.annotations.had_router_keys
            if check is not None:
                inspected = self._inspect(check, delivery, data, start, end, depth, message)
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
        if message is not None and self.trunk is not None:
            if self._must_gather(message, passage):
                return
            if self.log is not None:
                self._tell_of(message, data)
        self._passage = passage
        self._cut_from = scan.insert_at
        self._cut_to = scan.insert_at if scan.annotations_end < 0 else scan.annotations_end
        if self.trunk is not None:
            self.origin = "" if passage is None or passage.annotations.ingress is None else passage.annotations.ingress
            self.trace = () if passage is None else passage.annotations.trace
        priority = scan.priority
        if record is None:
            record = self._find(delivery, message, data, passage)
            if record is None:
                return
        if message is not None and not message.complete:
            most = record.gathers(data, start, end)
            if most > 0:
                if not self._waits_on(message, most):
                    self._refuse(delivery, message, REJECTED, TOO_LARGE_INSIDE)
                return
        if not self.is_fallback and self.trunk is None:
            record.counters.ingress += 1
            self.totals.ingress += 1
            if self.of_container:
                record.counters.ingress_container += 1
                self.totals.ingress_container += 1
        if passage is not None and passage.annotations.trace and self._came_too_far(passage):
            self._refuse(delivery, message, RELEASED, RELEASED_STATE)
            return
        if record.priority >= 0:
            self.priority = record.priority
        else:
            if priority > _HIGHEST_PRIORITY:
                priority = _HIGHEST_PRIORITY
            self.priority = _DEFAULT_PRIORITY if priority < 0 else priority
        if message is not None:
            self._describe(message, self._to, self._to_phase, start)
        self._forward(delivery, record, data, start, end, message)

    def _inspect(
        self,
        check: MessageCheck,
        delivery: Delivery,
        data: bytes,
        start: int,
        end: int,
        depth: int,
        message: Message | None,
    ) -> bytes | None:
        """Hold what was scanned to ``check``: ``data``, or the whole message stamped; None when it was rejected."""
        scan = self._scan
        if message is None:
            check.order.whole(data, start, end)
        if scan.user_id_start < scan.user_id_end:
            if not check.is_own(data, scan.user_id_start, scan.user_id_end):
                whose = data[scan.user_id_start : min(scan.user_id_end, scan.user_id_start + MAX_ADDRESS_BYTES)]
                check.tell(USER_ID, str(whose, errors="replace"))
                self._refuse(delivery, message, REJECTED, USER_ID_DENIED)
                return None
        elif check.stamp is not None:
            data = self._stamp(check, data, start, end, depth, delivery.complete)
            if message is not None:
                message.rewrite(data)
        return data

    def _stamp(self, check: MessageCheck, data: bytes, start: int, end: int, depth: int, complete: bool) -> bytes:
        """The message with the user's name in it; the scan is of that one then."""
        assert check.stamp is not None  # noqa: S101 - the caller looked
        data = stamped(data, start, end, self._scan, check.stamp)
        self._scan.scan(data, 0, len(data), depth, complete)
        return data

    def _waits_on(self, message: Message, most: int) -> bool:
        """Wait for more of an unfinished message before looking at it again, unless ``most`` octets are here."""
        if message.held >= most or self.link.session.held_bytes * 4 > self._window_bytes * 3:
            return False
        more = message.held if message.held * 8 < self._window_bytes else self._window_bytes // 8
        message.wanted = message.held + (more if more > 0 else 1)
        if message.wanted > most:
            message.wanted = most
        return True

    def _must_gather(self, message: Message, passage: Passage | None) -> bool:
        """A neighbour's unfinished message, on a link for whole ones, that no receiver wants piece by piece."""
        if message.complete or self.prompt or message.held >= _STREAM_AT:
            return False
        if passage is not None and passage.annotations.stream:
            return False
        message.wanted = _STREAM_AT
        return not self._must_not_wait(message)

    def _came_too_far(self, passage: Passage) -> bool:
        """More routers than the network has hops, or this one among them: a loop (2.1). Alone, it has radius 0."""
        marker = self.marker
        if not marker.marks or marker.only_traces:
            return False
        network: Network = self.pulse.network
        if passage.generation != network.generation:
            trace = passage.annotations.trace
            passage.generation = network.generation
            passage.loops = len(trace) > network.radius + 1 or (self.trunk is not None and marker.here in trace)
        return passage.loops

    def _find(self, delivery: Delivery, message: Message | None, data: bytes, passage: Passage | None) -> Record | None:
        """The record of an anonymous message; None when the sender was answered instead (2.6)."""
        scan = self._scan
        check = self.check
        phase = -1 if self.trunk is None else 0
        record: Record | None = None
        if passage is not None and passage.annotations.to is not None:
            if self.trunk is not None:
                record = passage.record
                if record is not None and not record.gone and record.reachable():
                    return record
            text = passage.annotations.to.encode()
            phase = passage.annotations.phase
        elif scan.to_start < 0:
            if check is not None:
                check.tell(NO_TO, "")
            self._refuse(delivery, message, REJECTED, NO_ADDRESS)
            return None
        else:
            text = octets.cut(data, scan.to_start, scan.to_end)
        if check is not None and not check.allows(text):
            check.tell(TARGET, str(text[:MAX_ADDRESS_BYTES], errors="replace"))
            self._refuse(delivery, message, REJECTED, TARGET_DENIED)
            return None
        record = self._known.get(text) if phase == self._known_phase else None
        if record is None and len(text) <= MAX_ADDRESS_BYTES:
            record = self.table.find(text, phase, self.tenant)
            if passage is not None and passage.annotations.to is not None:
                passage.record = record if record is not None and record.phase == phase else None
        if record is None or not record.reachable():
            fits = 0 < len(text) <= MAX_ADDRESS_BYTES
            if fits and self.tenant is not None and self.table.is_closed(text, self.tenant):
                if check is not None:
                    check.tell(RESERVED, str(text, errors="replace"))
                self._refuse(delivery, message, REJECTED, CLOSED)
            elif fits and self.trunk is None and self.table.is_unavailable(text, self.tenant):
                self._refuse(delivery, message, REJECTED, UNAVAILABLE)
            elif fits and not self.via_edge and self.pulse.uplink is not None:
                return self._look_up(delivery, message, text)
            else:
                self._refuse(delivery, message, RELEASED, RELEASED_STATE)
            return None
        if (self.tenant is not None or (record.phase > 0 and self.trunk is None)) and record.key.startswith(MOBILE):
            self._to = record.text  # others go neither by what a tenant calls it nor by what is configured here
            self._to_phase = record.phase
        elif self.tenant is not None:
            address = self.table.parse(text.decode("utf-8", "replace"), tenant=self.tenant)
            if is_made_elsewhere(address):
                self._to = answer_of(self.tenant, address)
        return record

    def _look_up(self, delivery: Delivery, message: Message | None, text: bytes) -> Record | None:
        """Return the record of the way up for an address without local receivers; None for this router's own."""
        address = self.table.parse(text.decode("utf-8", "replace"), tenant=self.tenant)
        if address.letter != MOBILE and address.key != UPLINK_KEY:
            self._refuse(delivery, message, RELEASED, RELEASED_STATE)
            return None
        phase = self.table.rule_for(address).ingress_phase if address.letter == MOBILE else 0
        if self.tenant is not None or phase > 0:
            self._to = address.text
            self._to_phase = phase
        up: Record = self.pulse.uplink.record
        return up

    def _forward(
        self, delivery: Delivery, record: Record, data: bytes, start: int, end: int, message: Message | None
    ) -> None:
        presettled = delivery.remote_settled
        count = 0
        if record.destinations() > 0:
            count = record.forwarder.forward(self, delivery, data, start, end, message)
        if count == 0 and record.fallback is not None and not self.is_fallback and record.fallback.destinations() > 0:
            if message is None:
                message = self._keep(data, start, end)
            self._describe(message, record.text, FALLBACK_NUMBER, start)
            if record.fallback.forwarder.forward(self, delivery, data, start, end, message) == 0:
                self._undeliverable(delivery, message)
                return
            record.counters.redirected += 1
            self.totals.redirected += 1
        elif count == 0:
            self._undeliverable(delivery, message)
            return
        else:
            inside = record.forwarder.inside
            through = record.forwarder.through
            record.counters.to_container += inside
            self.totals.to_container += inside
            record.counters.transit += through
            self.totals.transit += through
            count -= inside + through + record.forwarder.beside
            record.counters.egress += count
            self.totals.egress += count
        if message is not None:
            message.now_routed()
        if presettled:
            self._count_presettled()

    # --- what the sender hears

    def _undeliverable(self, delivery: Delivery, message: Message | None) -> None:
        """The message has no receiver (2.6): released, or dropped; a targeted link is drained rather than paid back."""
        if self.record is None or self.via_edge or self.record.forwarder.standing:
            self._refuse(delivery, message, RELEASED, RELEASED_STATE)
            return
        self.counters.undeliverable += 1
        if message is not None:
            message.now_routed()
        self.link.drain()
        if delivery.remote_settled:
            self._count_dropped()
        else:
            self._end(delivery, RELEASED, RELEASED_STATE)

    def _refuse(self, delivery: Delivery, message: Message | None, code: int, state: bytes) -> None:
        """The router itself answers a delivery."""
        if message is not None:
            message.now_routed()
            message.forget()
        if code == RELEASED:
            self.counters.undeliverable += 1
        if delivery.remote_settled:
            self._count_dropped()
        else:
            self._end(delivery, code, state)

    def _end(self, delivery: Delivery, code: int, state: bytes | None) -> None:
        """Give a delivery its outcome; while input still comes, the settlement waits for its end."""
        if delivery.complete:
            self._finish(delivery, code, state)
            return
        delivery.context = b"" if state is None else state
        if state is not None:
            delivery.link.session.settle_incoming(delivery, code, state, False)

    def _finish(self, delivery: Delivery, code: int, state: bytes | None) -> None:
        """Settle towards the sender a delivery that is here in full, and count its end."""
        delivery.link.session.settle_incoming(delivery, code, state, True)
        self.unsettled -= 1
        self._count_end(delivery, code)

    def _count_end(self, delivery: Delivery, code: int) -> None:
        age_s = self.pulse.now_s - delivery.arrived_at
        self.counters.count(code, age_s)
        self.pulse.latency.count(self.family, code, age_s)
        if self.pulse.times is not None and self.record is not None:
            times = self.pulse.times
            times.count(self.record, age_s)

    def _count_presettled(self) -> None:
        self.counters.presettled += 1
        if self.trunk is None:  # the router's own count is of what clients send
            self.pulse.outcomes.presettled[self.family] += 1

    def _count_dropped(self) -> None:
        self._count_presettled()
        self.counters.dropped_presettled += 1
        self.pulse.outcomes.dropped[self.family] += 1

    def accept(self, delivery: Delivery) -> None:
        """See ``InEndpoint.accept``; nothing is said to the sender while its message is still coming."""
        if delivery.complete:
            self.answer(delivery, ACCEPTED, ACCEPTED_STATE, True)
        else:
            delivery.state_code = ACCEPTED
            delivery.context = ACCEPTED_STATE

    def answer(self, delivery: Delivery, code: int, state: bytes | None, settled: bool) -> None:
        """Tell the sender what its receiver said; an outcome that it heard once is final."""
        if delivery.remote_settled:
            return
        if delivery.state_code != 0 and isinstance(delivery.context, bytes):
            code = delivery.state_code
            state = delivery.context
        if settled and delivery.complete:
            self._finish(delivery, code, state)
            self._top_up()
        elif settled:
            message: Message | None = delivery.message
            if message is not None:
                message.forget()
            self._end(delivery, code, state)
        elif state is not delivery.context:
            delivery.link.session.settle_incoming(delivery, code, state, False)
            if delivery.copies is None and ACCEPTED <= code <= MODIFIED:
                delivery.context = state

    # --- what the sender says

    def on_disposition(self, delivery: Delivery) -> None:
        """Relay the sender's state or settlement to the receivers of the message."""
        settled = delivery.remote_settled
        self._relay_sender(delivery, delivery.remote_code, delivery.remote_state, settled)
        if settled and not delivery.settled:
            delivery.settled = True
            self._count_end(delivery, delivery.state_code)
            if delivery.complete:
                self.unsettled -= 1
                self._top_up()

    def _relay_sender(self, delivery: Delivery, code: int, state: bytes | None, settled: bool) -> None:
        """Tell every copy that the sender's word still matters to."""
        for each in delivery.copies[:] if delivery.copies is not None else [delivery.partner]:
            out = each
            if out is None:
                continue
            if isinstance(out.link.sink, Egress):
                egress = out.link.sink
                egress.sender_says(out, code, state, settled)
            elif settled:
                out.partner = None
        if settled:
            delivery.partner = None
            delivery.copies = None

    def on_aborted(self, link: LinkPort, delivery: Delivery) -> None:
        """The sender aborted a delivery (4.4): only receivers that got part of it are notified."""
        if delivery.message is not None:  # else it never began
            self._take_back(delivery)
            self.unsettled -= 1
            if self.log is not None:
                self.log.aborted(self.link)
        delivery.settled = True
        self._top_up()

    def _take_back(self, delivery: Delivery) -> None:
        message: Message | None = delivery.message
        delivery.message = None
        if message is None:
            return
        message.aborted = True
        for each in message.copies[:]:
            out = each
            egress: Egress = out.link.sink  # type: ignore[assignment]
            egress.abort(out)
        # Nothing more is said to the copies: one whose abort waits for its receiver's window must not settle before.
        delivery.copies = None
        delivery.partner = None
        message.routed = True
        message.forget()

    def lost(self, own: list[Delivery] | None = None) -> None:
        """The link is gone (2.7): unfinished input is taken back, and outcomes still to come are dropped.

        ``own`` holds the link's deliveries if the caller knows them already.
        """
        if self.link.partial is not None:
            self._take_back(self.link.partial)
            self.link.partial = None
        ring = self.link._session.incoming
        if own is None and self.unsettled > 0:
            own = [each for each in ring.all() if each.link is self.link]
        if own is not None:
            for each in own:
                delivery = each
                ring.remove(delivery.delivery_id)
                if delivery.copies is not None:
                    self._relay_sender(delivery, MODIFIED, FAILED_STATE, True)
                elif delivery.partner is not None:
                    delivery.partner.partner = None
                    delivery.partner = None
        self.unsettled = 0

    # --- the message as it leaves

    def build_message(self, delivery: Delivery, data: bytes, start: int, end: int) -> Message:
        """The message in ``data[start:end]``, kept, for a single copy."""
        message = Message(self.link.session, self)
        message.append(octets.cut(data, start, end))
        message.complete = delivery.complete
        message.routed = True
        self._describe(message, self._to, self._to_phase, start)
        return message

    def _keep(self, data: bytes, start: int, end: int) -> Message:
        """A whole message, kept for whatever copies will be made of it."""
        message = Message(self.link.session, self)
        message.append(octets.cut(data, start, end))
        message.complete = True
        return message

    def _describe(self, message: Message, to: str | None, phase: int, start: int) -> None:
        """Note what the router says of the message under way, which began at ``start``."""
        message.passage = self._passage
        message.rewrites = self.rewrites
        message.to = to
        message.phase = phase
        message.cut_from = self._cut_from - start
        message.cut_to = self._cut_to - start

    def write_head(self, message: Message, head: bytes, plain: bool) -> bytes:
        """``head`` with the router's annotations, or (``plain``) without those of any router."""
        passage = message.passage
        if plain:
            section = b"" if passage is None else passage.plain()
        else:
            section = self.marker.onward(passage, message.to, message.phase)
        return octets.replaced(head, 0, message.cut_from, section, message.cut_to, len(head))

    def write_onward(self, message: Message, to: str, phase: int) -> bytes:
        """The first piece of ``message`` as it goes on to another address: it enters the network here, for ``to``."""
        head: bytes = message.chunks[0]
        section = self.marker.anew(message.passage, to, phase)
        return octets.replaced(head, 0, message.cut_from, section, message.cut_to, len(head))

    def write(self, data: bytes, start: int, end: int, plain: bool) -> bytes:
        """See ``InEndpoint.write``; for the message under way only."""
        passage = self._passage
        if plain:
            section = b"" if passage is None else passage.plain()
        else:
            section = self.marker.onward(passage, self._to, self._to_phase)
        return octets.replaced(data, start, self._cut_from, section, self._cut_to, end)
