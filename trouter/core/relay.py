"""The two ends of a routed link: messages pass unchanged from one to the other (routing.md 3.5, 4.5).

The receiver's credit, less the deliveries that wait here for it, is the sender's credit. A drain goes through to the
sender, and its answer back.
"""

from __future__ import annotations

from collections.abc import Callable

from trouter.engine.link import IncomingLink, OutgoingLink
from trouter.engine.ports import LinkPort
from trouter.wire.sections import InvalidMessage

from .counters import AddressCounters
from .egress import Egress
from .entry import AddressEntry
from .ingress import Ingress
from .intake import INVALID_MESSAGE
from .message import IncomingDelivery, Message
from .outcomes import REJECTED
from .ports import Pulse
from .table import AddressTable
from .tenants import Tenant

_THROUGH_HEADER = 1
_THROUGH_PROPERTIES = 4


class RoutedIngress(Ingress):
    """The incoming end of a routed link; ``egress`` is the other end, None while they are not joined."""

    __slots__ = ("_drained", "egress")

    def __init__(
        self,
        link: IncomingLink,
        pulse: Pulse,
        table: AddressTable,
        entry: AddressEntry,
        totals: AddressCounters,
        tenant: Tenant | None,
    ) -> None:
        super().__init__(
            link, pulse, table, entry, capacity=0, strips=True, to_override=None, totals=totals, tenant=tenant
        )
        self.egress: RoutedEgress | None = None
        #: The sender has answered the receiver's drain.
        self._drained = False

    def join(self, egress: RoutedEgress) -> None:
        """Join the two ends, which are attached or will be."""
        self.egress = egress
        self._drained = False
        egress.ingress = self

    def part(self) -> None:
        """Separate the two ends: the link has ended."""
        if self.egress is not None:
            self.egress.ingress = None
            self.egress = None

    # --- credit

    def follow(self) -> None:
        """Grant the sender the receiver's credit, and drain it if the receiver drains."""
        link = self.link
        egress = self.egress
        if egress is None or not link.attached or self.pulse.draining:
            return
        out = egress.link
        if out.drain and self._drained:
            if egress.backlog == 0 and not self.is_gathering():
                self._drained = False
                out.drained()
            return
        self._drained = False
        owed = out.credit - egress.waiting() - link.credit
        if self.is_gathering():
            owed -= 1
        if owed > 0 or (link.draining and not out.drain):
            self._grant(owed if owed > 0 else 0)
        if out.drain and out.credit > 0:
            if link.credit > 0:
                link.drain()
            else:
                self._drained = True
                self.follow()

    def on_drained(self, link: LinkPort) -> None:
        """Answer the receiver's drain: the sender used up its credit or gave it back."""
        self.dry_since_s = self.pulse.now_s
        self._drained = True
        self.follow()

    def _top_up(self) -> None:
        self.follow()

    # --- messages

    def _route(self, delivery: IncomingDelivery, data: bytes, start: int, end: int, message: Message | None) -> None:
        """Read only what is necessary, and pass the message on unchanged."""
        check = self.check
        depth = _THROUGH_HEADER if check is None else _THROUGH_PROPERTIES
        try:
            if not self._scan.scan(data, start, end, depth, delivery.complete):
                self._await_head(delivery, message)
                return
            if check is not None:
                inspected = self._inspect(check, delivery, data, start, end, depth, message)
                if inspected is None:
                    return
                if inspected is not data:
                    data = inspected
                    start = 0
                    end = len(data)
        except InvalidMessage:
            self._refuse(delivery, message, REJECTED, INVALID_MESSAGE)
            return
        self._pass_on(delivery, data, start, end, message)

    def _pass_on(self, delivery: IncomingDelivery, data: bytes, start: int, end: int, message: Message | None) -> None:
        entry = self.entry
        egress = self.egress
        if egress is None or entry is None:
            return  # credit is granted only while both ends are attached
        self._count(entry)
        egress.offer(self, delivery, data, start, end, message)
        if egress.is_trunk:
            entry.counters.transit += 1
            self.totals.transit += 1
        else:
            entry.counters.egress += 1
            self.totals.egress += 1
        if message is not None:
            message.now_routed()
        if delivery.remote_settled:
            self._count_presettled()


class RoutedEgress(Egress):
    """The outgoing end of a routed link; ``ingress`` is the other end, as in ``RoutedIngress``."""

    __slots__ = ("ingress", "is_trunk", "on_empty")

    def __init__(self, link: OutgoingLink, pulse: Pulse, presettles: bool, is_trunk: bool) -> None:
        super().__init__(link, pulse, 0, True, presettles)
        self.ingress: RoutedIngress | None = None
        #: It leads to a neighbouring router.
        self.is_trunk = is_trunk
        #: Called once, when no delivery waits here.
        self.on_empty: Callable[[], None] | None = None

    def waiting(self) -> int:
        """Return the number of deliveries that have not used a credit of the receiver yet."""
        if self.backlog > 0 and self.queue[0].begun:
            return self.backlog - 1
        return self.backlog

    def _give_back_credit(self) -> None:
        """Grant the sender the receiver's credit or drain it; without a sender, report once that the queue is empty."""
        if self.ingress is not None:
            self.ingress.follow()
        elif self.on_empty is not None and self.backlog == 0:
            on_empty, self.on_empty = self.on_empty, None
            on_empty()
