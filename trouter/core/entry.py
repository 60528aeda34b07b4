"""One address and all its users (routing.md 5.4, 5.5): consumers, senders, treatment, fallback, counters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from .addresses import phase_of
from .arrival import Arrival
from .counters import AddressCounters
from .egress import Egress
from .forwarders import FORWARDERS, Forwarder
from .inprocess import Subscription
from .network import HINT_OF_TREATMENT, RemoteRouter
from .times import Times

if TYPE_CHECKING:
    from cython import Py_ssize_t
    from cython import int as c_int

#: The classes of addresses whose consumers here are advertised to other routers (inter-router.md 4.8).
_ADVERTISED = "MH"
_MOBILE = "M"
# Shared by the addresses of which no spelling is cached; replaced, and never changed.
_NO_SPELLINGS: list[tuple[dict[bytes, AddressEntry], bytes]] = []


class AddressSender(Protocol):
    """What an address needs of an incoming link that sends to it; see ``Ingress``."""

    @property
    def connection_number(self) -> int:
        """Return the connection's number in management."""

    def destination_appeared(self) -> None:
        """Grant the credit that was kept back: the address has a consumer."""


# Shared by the addresses to which no link sends; replaced, and never changed.
_NO_SENDERS: dict[AddressSender, None] = {}


class AddressListener(Protocol):
    """The receiver of events about the users of a table's addresses."""

    def advertise(self, key: str, hint: int) -> None:
        """Advertise ``key``, which has its first consumer here."""

    def withdraw(self, key: str) -> None:
        """Withdraw ``key``, which has lost its last consumer here."""

    def users_changed(self, entry: AddressEntry) -> None:
        """Note that a mobile address has gained or lost a user."""


class AddressEntry:
    """An address under its lookup ``key``, kept while it has a user.

    ``treatment`` is closest, balanced or multicast. The first consumer wakes the senders.
    """

    __slots__ = (
        # What each message reads, in one cache line.
        "forwarder",
        "counters",
        "fallback",
        "phase",
        "priority",
        "gone",
        "pinned",
        "key",
        "text",
        "treatment",
        "senders",
        "fallback_of",
        "holders",
        "remote_listeners",
        "listener",
        "known_as",
        "creator",
        "space",
        "times",
    )

    def __init__(
        self, key: str, text: str, treatment: str, priority: c_int = -1, listener: AddressListener | None = None
    ) -> None:
        """Make an entry; ``listener`` is notified when the address gains or loses users."""
        self.key = key
        #: Its number in annotations.
        self.phase: c_int = phase_of(key)
        #: The entry is no longer in the table.
        self.gone = False
        self.listener = listener
        self.text = text
        self.treatment = treatment
        #: -1 for none configured.
        self.priority = priority
        self.forwarder: Forwarder = FORWARDERS[treatment]()
        self.senders: dict[AddressSender, None] = _NO_SENDERS
        self.fallback: AddressEntry | None = None
        self.fallback_of: AddressEntry | None = None
        #: Something other than links and subscriptions keeps the entry.
        self.pinned = False
        #: Exchanges and next hops of exchanges, which also keep it.
        self.holders: Py_ssize_t = 0
        #: Other routers that listen on the address, also unreachable ones.
        self.remote_listeners: Py_ssize_t = 0
        self.counters = AddressCounters()
        #: The addresses of anonymous messages cached for this entry, each with its cache.
        self.known_as: list[tuple[dict[bytes, AddressEntry], bytes]] = _NO_SPELLINGS
        #: Latencies of deliveries; None if no user asks for them, or too many addresses have some.
        self.times: Times | None = None
        #: The connection that a dynamic address was made for, else -1; and its tenant's space.
        self.creator: Py_ssize_t = -1
        self.space = ""

    def count_destinations(self) -> Py_ssize_t:
        """Return the number of consumers: inside the router, on its links, and reachable other routers.

        An exchange counts as one too.
        """
        return self.forwarder.count_destinations()

    def is_reachable(self) -> bool:
        """Return whether the address or its fallback has a consumer, so that senders may have credit."""
        fallback = self.fallback
        return self.forwarder.has_destinations() or (fallback is not None and fallback.forwarder.has_destinations())

    def bytes_to_gather(self, arrival: Arrival) -> Py_ssize_t:
        """Return what ``Forwarder.bytes_to_gather`` does, for the current receivers."""
        taker: AddressEntry = self if self.forwarder.has_destinations() or self.fallback is None else self.fallback
        return taker.forwarder.bytes_to_gather(arrival)

    def add_consumer(self, outgoing: Egress) -> None:
        """Add a link that receives from the address."""
        before = self.count_destinations()
        known = self._is_known()
        self.forwarder.add(outgoing)
        self._advertise(known)
        if before == 0:
            self._wake_senders()
        self._notify_users()

    def remove_consumer(self, outgoing: Egress) -> None:
        """Remove a link that received from the address."""
        known = self._is_known()
        self.forwarder.remove(outgoing)
        self._advertise(known)
        self._notify_users()

    def forward_by(self, forwarder: Forwarder) -> None:
        """Replace the forwarder by one with the same consumers."""
        before = self.count_destinations()
        known = self._is_known()
        self.forwarder = forwarder
        self._advertise(known)
        if before == 0:
            self._wake_senders()
        self._notify_users()

    def _is_known(self) -> bool:
        """Return whether other routers should send messages to this one."""
        return self.forwarder.is_exchange or len(self.forwarder.consumers) > 0

    def _advertise(self, before: bool) -> None:
        """Advertise or withdraw the address if that changed."""
        now = self._is_known()
        if now == before or self.listener is None or self.key[0] not in _ADVERTISED:
            return
        if now:
            self.listener.advertise(self.key, HINT_OF_TREATMENT[self.treatment])
        else:
            self.listener.withdraw(self.key)

    def add_sender(self, incoming: AddressSender) -> None:
        """Add a link that sends to the address."""
        if not self.senders:
            self.senders = {}
        self.senders[incoming] = None
        self._notify_users()

    def remove_sender(self, incoming: AddressSender) -> None:
        """Remove a link that sent to the address; a second call does nothing."""
        if incoming in self.senders:
            del self.senders[incoming]
            self._notify_users()

    def add_remote(self, router: RemoteRouter) -> None:
        """Add another router that listens on the address and can be reached."""
        before = self.count_destinations()
        self.forwarder.add_remote(router)
        if before == 0:
            self._wake_senders()
        self._notify_users()

    def remove_remote(self, router: RemoteRouter) -> None:
        """Remove another router that no longer listens or can be reached."""
        self.forwarder.remove_remote(router)
        self._notify_users()

    def add_subscription(self, subscription: Subscription) -> None:
        """Add a consumer inside the router."""
        before = self.count_destinations()
        self.forwarder.add_subscription(subscription)
        if before == 0:
            self._wake_senders()

    def is_unused(self) -> bool:
        """Return whether the entry has no users left."""
        fallback_of = self.fallback_of
        return not (
            self.pinned or self.holders or self.senders or self.remote_listeners or self.count_destinations()
        ) and (fallback_of is None or fallback_of.fallback is not self)

    def _notify_users(self) -> None:
        """Notify the listener that a mobile address gained or lost a user."""
        if self.listener is not None and self.key[0] == _MOBILE:
            self.listener.users_changed(self)

    def _wake_senders(self) -> None:
        """Grant the senders the credit that was kept back, because the first consumer came (routing.md 3.2)."""
        for sender in list(self.senders):
            sender.destination_appeared()
        if self.fallback_of is not None:
            for sender in list(self.fallback_of.senders):
                sender.destination_appeared()
