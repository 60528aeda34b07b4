"""The messages that the router itself sends, and those to its own consumers, such as ``$management``."""

from __future__ import annotations

from .addresses import MOBILE, UPLINK_KEY
from .counters import AddressCounters
from .egress import Egress
from .entry import AddressEntry
from .inprocess import InsideConsumer, InsideSender, Subscription
from .network import Trunk
from .ports import SharedState
from .table import AddressTable
from .tenants import Tenant


class InsideTraffic:
    """The part of one router in its own traffic: its subscriptions, and what it sends, which is pre-settled."""

    def __init__(self, table: AddressTable, shared: SharedState, totals: AddressCounters) -> None:
        """``totals`` counts the messages of the whole router."""
        self._table = table
        self._shared = shared
        self._totals = totals
        self._sender = InsideSender(shared, table.router_id)

    def subscribe(self, address: str, consumer: InsideConsumer, treatment: str = "closest") -> Subscription:
        """Deliver messages for ``address`` to ``consumer`` from now on."""
        entry = self._table.obtain_entry(address, outgoing=True, treatment=treatment)
        assert entry is not None  # noqa: S101 - only the treatment unavailable gives none
        subscription = Subscription(consumer, entry.key)
        entry.add_subscription(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """End a subscription; a second call does nothing."""
        entry = self._table.entries.get(subscription.key)
        if entry is not None and subscription in entry.forwarder.subscriptions:
            entry.forwarder.remove_subscription(subscription)
            self._table.release_entry(entry)

    def send_message(self, address: str, message: bytes, tenant: Tenant | None = None) -> int:
        """Send a message to an address, for ``tenant``; return the number of receivers."""
        entry = self._table.find_entry(address.encode(), tenant=tenant)
        if entry is None or not entry.is_reachable():
            entry = self._find_way_up(address, tenant) or entry
        if entry is None:
            return 0
        copies = self._sender.send_message(entry.forwarder, message)
        for counters in (entry.counters, self._totals):
            counters.from_container += 1
            counters.add_copies(copies)
        return copies.total

    def _find_way_up(self, address: str, tenant: Tenant | None) -> AddressEntry | None:
        """Return the uplink's entry if the address may have receivers elsewhere; else None."""
        parsed = self._table.parse(address, tenant=tenant)
        if self._shared.uplink is None or not (parsed.letter == MOBILE or parsed.key == UPLINK_KEY):
            return None
        up = self._shared.uplink.entry
        return up if isinstance(up, AddressEntry) else None

    def send_control(self, trunk: Trunk, message: bytes) -> bool:
        """Send a control message to a neighbour, unchanged; return whether there is a link for it."""
        outgoing = trunk.control_out
        if outgoing is None:
            return False
        self.send_on(outgoing, message)
        return True

    def send_on(self, outgoing: Egress, message: bytes) -> None:
        """Send a message on one link, whatever its address."""
        self._sender.send_on(outgoing, message)
