"""The answers to the sender on an incoming link, the sender's states of its deliveries, and the counts.

Obeys routing.md 2.6 (undeliverable), 2.8 (pre-settled) and 4.4 (outcomes while a message is still coming).
"""

from __future__ import annotations

from trouter.engine.link import IncomingLink
from trouter.engine.ports import Delivery, LinkPort

from .credit import Credit
from .egress import Egress
from .entry import AddressEntry
from .latency import family_of
from .message import IncomingDelivery, Message
from .outcomes import ACCEPTED, ACCEPTED_STATE, MODIFIED, REJECTED, RELEASED, RELEASED_STATE
from .ports import Pulse


class Settlement(Credit):
    """The end of an incoming link's deliveries: each returns its credit."""

    __slots__ = ("family",)

    def __init__(self, link: IncomingLink, pulse: Pulse, entry: AddressEntry | None, capacity: int) -> None:
        super().__init__(link, pulse, entry, capacity)
        #: The class of its address, as an index into ``latency.FAMILIES``.
        self.family = family_of(None if entry is None else entry.key)

    # --- to the sender

    def _undeliverable(self, delivery: IncomingDelivery, message: Message | None) -> None:
        """Release or drop a message without receivers (2.6); drain a link with an address instead of granting."""
        if self.entry is None or self.via_edge or self.entry.forwarder.standing:
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

    def _refuse(self, delivery: IncomingDelivery, message: Message | None, code: int, state: bytes) -> None:
        """Answer a delivery by the router itself."""
        if message is not None:
            message.now_routed()
            message.forget()
        if code == RELEASED:
            self.counters.undeliverable += 1
        if delivery.remote_settled:
            self._count_dropped()
        else:
            self._end(delivery, code, state)

    def _end(self, delivery: IncomingDelivery, code: int, state: bytes | None) -> None:
        """Give a delivery its outcome; settle it once the message is complete."""
        if delivery.complete:
            self._finish(delivery, code, state)
            return
        delivery.outcome = b"" if state is None else state
        if state is not None:
            delivery.link.session.settle_incoming(delivery, code, state, False)

    def _finish(self, delivery: IncomingDelivery, code: int, state: bytes | None) -> None:
        """Settle a complete delivery with the sender, and count its end."""
        delivery.link.session.settle_incoming(delivery, code, state, True)
        self.unsettled -= 1
        self._count_end(delivery, code)

    def accept(self, delivery: IncomingDelivery) -> None:
        """See ``InEndpoint.accept``; the sender gets no state while its message is still coming."""
        if delivery.complete:
            self.answer(delivery, ACCEPTED, ACCEPTED_STATE, True)
        else:
            delivery.state_code = ACCEPTED
            delivery.outcome = ACCEPTED_STATE

    def answer(self, delivery: IncomingDelivery, code: int, state: bytes | None, settled: bool) -> None:
        """Relay a receiver's state to the sender; an outcome that was sent is final."""
        if delivery.remote_settled:
            return
        if delivery.state_code != 0 and delivery.outcome is not None:
            code = delivery.state_code
            state = delivery.outcome
        if settled and delivery.complete:
            self._finish(delivery, code, state)
            self._top_up()
        elif settled:
            if delivery.message is not None:
                delivery.message.forget()
            self._end(delivery, code, state)
        elif state is not delivery.outcome:
            delivery.link.session.settle_incoming(delivery, code, state, False)
            if delivery.copies is None and ACCEPTED <= code <= MODIFIED:
                delivery.outcome = state

    # --- from the sender

    def on_disposition(self, arrived: Delivery) -> None:
        """Relay the sender's state or settlement to the receivers of the message."""
        delivery: IncomingDelivery = arrived  # type: ignore[assignment]  # made by ``make_delivery``
        settled = delivery.remote_settled
        self._relay_sender(delivery, delivery.remote_code, delivery.remote_state, settled)
        if settled and not delivery.settled:
            delivery.settled = True
            self._count_end(delivery, delivery.state_code)
            if delivery.complete:
                self.unsettled -= 1
                self._top_up()

    def _relay_sender(self, delivery: IncomingDelivery, code: int, state: bytes | None, settled: bool) -> None:
        """Relay the sender's state to every copy that still refers to the delivery."""
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

    # --- counts

    def on_refused(self, link: LinkPort, arrived: Delivery) -> None:
        """Count a delivery that its link rejected."""
        delivery: IncomingDelivery = arrived  # type: ignore[assignment]  # made by ``make_delivery``
        delivery.arrived_at_s = self.pulse.now_s
        self.counters.deliveries += 1
        if delivery.remote_settled:
            self._count_dropped()
        else:
            self._count_end(delivery, REJECTED)

    def _count_end(self, delivery: IncomingDelivery, code: int) -> None:
        age_s = self.pulse.now_s - delivery.arrived_at_s
        self.counters.count(code, age_s)
        self.pulse.latency.count(self.family, code, age_s)
        if self.pulse.times is not None and self.entry is not None:
            times = self.pulse.times
            times.count(self.entry, age_s)

    def _count_presettled(self) -> None:
        self.counters.presettled += 1
        if self.trunk is None:  # the router's own count is of clients' deliveries
            self.pulse.outcomes.presettled[self.family] += 1

    def _count_dropped(self) -> None:
        self._count_presettled()
        self.counters.dropped_presettled += 1
        self.pulse.outcomes.dropped[self.family] += 1
