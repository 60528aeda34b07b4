"""The credit of the sender on an incoming link: how much, and when (routing.md 1.6, 3.1-3.3).

Credit waits for a consumer, and is granted again as deliveries end; ``_grant`` sends all of it.
"""

from __future__ import annotations

from trouter.engine.link import IncomingLink
from trouter.engine.ports import LinkPort

from .entry import AddressEntry
from .ports import Gate, InEndpoint, Pulse


class Credit(InEndpoint):
    """The sender's credit. ``entry`` is the link's address, None for an anonymous link."""

    __slots__ = ("capacity", "dry_since_s", "gate", "link", "noted", "of_container", "pending", "entry", "unsettled")

    def __init__(self, link: IncomingLink, pulse: Pulse, entry: AddressEntry | None, capacity: int) -> None:
        super().__init__(pulse)
        self.link = link
        self.entry = entry
        self.by_name = entry is None
        self.capacity = capacity
        #: Credit that waits for a consumer, in deliveries.
        self.pending = 0
        #: The number of deliveries when credit was owed that is too little to grant at once; negative for none.
        self.noted = -1
        #: Deliveries that use credit: incomplete, or settled by neither side.
        self.unsettled = 0
        #: The gate that limits credit, or None.
        self.gate: Gate | None = None
        #: The peer is a route container.
        self.of_container = False
        #: When the sender's credit ran out, while it is out; negative if that is unknown.
        self.dry_since_s = pulse.now_s

    def open(self) -> None:
        """Grant the first credit, or keep it until a consumer exists (routing.md 1.6)."""
        self.pending = self.capacity
        if self.entry is None or self.entry.reachable():
            self.destination_appeared()

    def destination_appeared(self) -> None:
        """Grant the credit that was kept back, because the address has a consumer again (3.2); this ends a drain."""
        if (self.pending > 0 or self.link.draining) and not self.pulse.draining:
            count = self.pending
            self.pending = 0
            self._grant(count)

    def on_drained(self, link: LinkPort) -> None:
        """Note that the sender gave its credit back; grant it again if there is a consumer (3.3)."""
        self.pending = self.capacity - self.unsettled
        self.dry_since_s = self.pulse.now_s
        if self.entry is None or self.entry.reachable():
            self.destination_appeared()

    def on_overdrawn(self, link: LinkPort) -> None:
        """Count a delivery without credit; report the link for the log once."""
        self.pulse.overdrawn += 1
        if self.link.overdrawn == 1:
            self.pulse.overdrawing.append(self.link)

    def _top_up(self) -> None:
        """Grant the credit of deliveries that have ended, a few at a time while the sender has plenty.

        The credit owed is what is missing to the capacity, so credit that a sender gave back unasked is not lost. An
        amount too small to grant now is granted when no more deliveries come: some senders continue only after a flow.
        A broker gets more credit only once it has used all of it, however long that takes: RabbitMQ adds a flow's
        credit to what it has under way, so several flows in a row would make it send ever more without credit.
        """
        link = self.link
        owed = self.capacity - self.pending - link.credit
        prompt = self.via_edge or self.trunk is not None  # between routers, credit does not wait for outcomes (3.1)
        if not prompt:
            owed -= self.unsettled
        if link.draining or self.pulse.draining:
            self.pending += owed
        elif owed > 0 and (link.credit <= 0 or link.flow_due if self.of_container else owed >= link.credit):
            if link.credit <= 0 and not prompt and self.entry is not None and not self.entry.reachable():
                self.pending += owed
            else:
                self._grant(owed)
        elif owed > 0 and self.noted < 0 and not self.of_container:
            self.noted = self.counters.deliveries
            self.pulse.note_owing(self)

    def return_owed(self) -> bool:
        """Grant the credit owed, however little; return False if deliveries came since it was noted."""
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
        """Grant the credit owed, because the gate may allow more."""
        self._top_up()

    def _grant(self, count: int) -> None:
        if self.gate is not None:
            count = self.gate.take(self, count)
            if count == 0 and not self.link.draining:
                return
        self.link.grant(count)
        if self.link.credit > 0:
            self.dry_since_s = -1.0
