"""One address and all its users (routing.md 5.4, 5.5): consumers, senders, treatment, fallback, counters."""

from __future__ import annotations

from typing import Protocol

from .addresses import phase_of
from .counters import AddressCounters
from .egress import Egress
from .forwarders import FORWARDERS, Forwarder
from .inprocess import Subscription
from .network import RemoteRouter
from .outstanding import HINT_OF_TREATMENT
from .times import Times

#: The classes of addresses whose consumers here other routers hear of (inter-router.md 4.8).
_TOLD = "MH"
_MOBILE = "M"


class AddressSender(Protocol):
    """An incoming link, as the address sees it that its messages are for; see ``Ingress``."""

    @property
    def connection_number(self) -> int:
        """Return what management calls the connection that it is on."""

    def destination_appeared(self) -> None:
        """Grant the credit that was kept back: the address has a consumer."""


class AddressListener(Protocol):
    """What is notified of the users of all addresses of a table."""

    def advertise(self, key: str, hint: int) -> None:
        """Note that ``key`` has its first consumer here."""

    def withdraw(self, key: str) -> None:
        """Note that ``key`` has lost its last consumer here."""

    def users_changed(self, entry: AddressEntry) -> None:
        """Note that a mobile address has gained or lost a user."""


class AddressEntry:
    """An address under its lookup ``key``; gone when it has no user any more.

    ``treatment`` is closest, balanced or multicast. Senders are told when the first consumer comes.
    """

    __slots__ = (
        "counters",
        "creator",
        "fallback",
        "fallback_of",
        "forwarder",
        "gone",
        "holders",
        "key",
        "known_as",
        "listener",
        "phase",
        "pinned",
        "priority",
        "remote_listeners",
        "senders",
        "space",
        "text",
        "times",
        "treatment",
    )

    def __init__(
        self, key: str, text: str, treatment: str, priority: int = -1, listener: AddressListener | None = None
    ) -> None:
        """``listener`` is notified when the address gains or loses users."""
        self.key = key
        #: As annotations say it.
        self.phase = phase_of(key)
        #: The entry is no longer in the table.
        self.gone = False
        self.listener = listener
        self.text = text
        self.treatment = treatment
        #: -1 for none configured.
        self.priority = priority
        self.forwarder: Forwarder = FORWARDERS[treatment]()
        self.senders: dict[AddressSender, None] = {}
        self.fallback: AddressEntry | None = None
        self.fallback_of: AddressEntry | None = None
        #: Something other than links and subscriptions keeps the entry.
        self.pinned = False
        #: Exchanges and next hops of theirs, which keep it too.
        self.holders = 0
        #: Other routers that listen on the address, whether they can be reached or not.
        self.remote_listeners = 0
        self.counters = AddressCounters()
        #: The texts of anonymous messages that this entry is remembered by, each with the dictionary it stands in.
        self.known_as: list[tuple[dict[bytes, AddressEntry], bytes]] = []
        #: How long deliveries took; None while no user asks for it, or too many addresses have some.
        self.times: Times | None = None
        #: Of a dynamic address: the number of the connection that it was made for, else -1; and its tenant's space.
        self.creator = -1
        self.space = ""

    def destinations(self) -> int:
        """Return how many consumers the address has: inside the router, on its links, and other routers in reach.

        An exchange is one too.
        """
        forwarder = self.forwarder
        count = len(forwarder.consumers) + len(forwarder.subscriptions) + len(forwarder.remotes)
        return count + 1 if forwarder.standing else count

    def reachable(self) -> bool:
        """Return whether the address or its fallback has a consumer, so that senders may have credit."""
        fallback = self.fallback
        return self.destinations() > 0 or (fallback is not None and fallback.destinations() > 0)

    def gathers(self, data: bytes, start: int, end: int) -> int:
        """Return what ``Forwarder.gathers`` does, of the present receivers of the messages."""
        taker = self if self.destinations() > 0 or self.fallback is None else self.fallback
        return taker.forwarder.gathers(data, start, end)

    def add_consumer(self, egress: Egress) -> None:
        """Add a link that receives from the address."""
        before = self.destinations()
        known = self._is_known()
        self.forwarder.add(egress)
        self._advertise(known)
        if before == 0:
            self._wake_senders()
        self._notify_users()

    def remove_consumer(self, egress: Egress) -> None:
        """Remove a link that received from the address."""
        known = self._is_known()
        self.forwarder.remove(egress)
        self._advertise(known)
        self._notify_users()

    def forward_by(self, forwarder: Forwarder) -> None:
        """Let messages find their consumers by another forwarder from now on, which has the same consumers."""
        before = self.destinations()
        known = self._is_known()
        self.forwarder = forwarder
        self._advertise(known)
        if before == 0:
            self._wake_senders()
        self._notify_users()

    def _is_known(self) -> bool:
        """Whether other routers are to know that messages are taken here."""
        return self.forwarder.standing or len(self.forwarder.consumers) > 0

    def _advertise(self, before: bool) -> None:
        """Let other routers know if messages are taken here now, or are not any more."""
        now = self._is_known()
        if now == before or self.listener is None or self.key[0] not in _TOLD:
            return
        if now:
            self.listener.advertise(self.key, HINT_OF_TREATMENT[self.treatment])
        else:
            self.listener.withdraw(self.key)

    def add_sender(self, ingress: AddressSender) -> None:
        """Add a link that sends to the address."""
        self.senders[ingress] = None
        self._notify_users()

    def remove_sender(self, ingress: AddressSender) -> None:
        """Remove a link that sent to the address; a second call does nothing."""
        if ingress in self.senders:
            del self.senders[ingress]
            self._notify_users()

    def add_remote(self, router: RemoteRouter) -> None:
        """Add another router that listens on the address and can be reached."""
        before = self.destinations()
        self.forwarder.add_remote(router)
        if before == 0:
            self._wake_senders()
        self._notify_users()

    def remove_remote(self, router: RemoteRouter) -> None:
        """Remove another router that listens no longer, or can be reached no longer."""
        self.forwarder.remove_remote(router)
        self._notify_users()

    def add_subscription(self, subscription: Subscription) -> None:
        """Add a consumer inside the router."""
        before = self.destinations()
        self.forwarder.subscriptions.append(subscription)
        if before == 0:
            self._wake_senders()

    def unused(self) -> bool:
        """Return whether nothing refers to the entry any more."""
        fallback_of = self.fallback_of
        return not (self.pinned or self.holders or self.senders or self.remote_listeners or self.destinations()) and (
            fallback_of is None or fallback_of.fallback is not self
        )

    def _notify_users(self) -> None:
        """Notify the listener that a mobile address gained or lost a user."""
        if self.listener is not None and self.key[0] == _MOBILE:
            self.listener.users_changed(self)

    def _wake_senders(self) -> None:
        """The first consumer came: senders get the credit that was kept back (routing.md 3.2)."""
        for sender in list(self.senders):
            sender.destination_appeared()
        if self.fallback_of is not None:
            for sender in list(self.fallback_of.senders):
                sender.destination_appeared()
