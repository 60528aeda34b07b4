"""Connections before their open (security.md 8.2): how many there may be, and how slow each may be. No I/O.

A connection costs a descriptor and some memory before it is known whose it is, so strangers get few of them at a
time, get them no faster than they need them, and have to get on with it. Routers of the network have a count of their
own: no flood of clients keeps them out. Who is exempt is not counted at all.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from trouter.core.terms import ROUTER_ROLES

from .lockout import LOOPBACK, Network, place_of, within

#: For so long after its start no handshake counts as too slow.
GRACE_S: Final = 2.0
#: Places whose arrivals are remembered.
MAX_PLACES: Final = 100_000
#: A connection whose login is turned away because too many before it failed counts as so many arrivals more.
IN_VAIN: Final = 10


@dataclass(frozen=True, slots=True)
class HandshakeRules:
    """The numbers; 0 stands for no limit."""

    #: At a time: all, and from one place.
    max_handshakes: int = 1000
    max_by_place: int = 20
    #: Octets a second that a peer has to send, once it has begun to.
    least_rate: int = 64
    #: Connections from one place: a second, and at once.
    arrivals_per_second: int = 50
    arrivals_at_once: int = 100
    exempt: tuple[Network, ...] = LOOPBACK


class Newcomer:
    """A connection that has not come as far as its Open."""

    __slots__ = ("came_s", "cut", "host", "place", "received_bytes", "role", "_asked_s", "_waited_s")

    def __init__(self, host: str, role: str, now_s: float) -> None:
        self.host = host
        self.place = place_of(host)
        self.role = role
        self.came_s = now_s
        #: What it has sent so far.
        self.received_bytes = 0
        #: Ends the connection; the code that serves it sets this.
        self.cut: Callable[[], None] | None = None
        #: Since when it waits for us, and how long it has waited before.
        self._asked_s: float | None = None
        self._waited_s = 0.0

    def waits(self, since_s: float) -> None:
        """Note that it is the router's turn: the peer is not at fault for its silence meanwhile."""
        self._asked_s = since_s

    def answered(self, now_s: float) -> None:
        """Note that it is the peer's turn again."""
        if self._asked_s is not None:
            self._waited_s += now_s - self._asked_s
            self._asked_s = None

    def due_bytes(self, now_s: float, rate: int) -> float:
        """Return what it should have sent by now at least."""
        waited_s = self._waited_s + (0.0 if self._asked_s is None else now_s - self._asked_s)
        return rate * (now_s - self.came_s - waited_s - GRACE_S)


class Handshakes:
    """Counts newcomers. ``now`` tells the time in seconds, from anywhere."""

    def __init__(self, now: Callable[[], float], rules: HandshakeRules | None = None) -> None:
        self.rules = rules or HandshakeRules()
        self._now = now
        self._newcomers: dict[Newcomer, None] = {}
        #: By kind of role and place; the place is empty for all of them.
        self._counts: Counter[tuple[bool, str]] = Counter()
        self._arrivals: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._newcomers)

    def too_fast(self, host: str) -> str:
        """Return why a connection from ``host`` is to be closed; empty, and it is counted, if it is not."""
        rules = self.rules
        if not rules.arrivals_per_second or within(rules.exempt, host):
            return ""
        place = place_of(host)
        left = self._left(place)
        if left < 1:
            return f"more than acceptRatePerHost {rules.arrivals_per_second} a second from {place}"
        self._arrive(place, left - 1)
        return ""

    def came_in_vain(self, host: str) -> None:
        """Count a login from ``host`` that was turned away because too many before it failed.

        Closing a connection when it arrives costs much less than refusing its login.
        """
        if self.rules.arrivals_per_second and not within(self.rules.exempt, host):
            place = place_of(host)
            self._arrive(place, max(self._left(place) - IN_VAIN, -self._burst))

    @property
    def _burst(self) -> int:
        return max(self.rules.arrivals_at_once, 1)

    def _left(self, place: str) -> float:
        """Return how many more may arrive from a place now; negative for how many less in time to come."""
        now_s = self._now()
        left, then_s = self._arrivals.get(place, (float(self._burst), now_s))
        return min(self._burst, left + (now_s - then_s) * self.rules.arrivals_per_second)

    def _arrive(self, place: str, left: float) -> None:
        """So many are left from now on."""
        self._arrivals[place] = (left, self._now())
        self._arrivals.move_to_end(place)
        if len(self._arrivals) > MAX_PLACES:
            self._arrivals.popitem(last=False)

    def too_many(self, host: str, role: str) -> str:
        """Return why ``host`` may have no more connections before others have come to their Open; empty if it may."""
        rules, kind = self.rules, role in ROUTER_ROLES
        if within(rules.exempt, host):
            return ""
        if rules.max_handshakes and self._counts[kind, ""] >= rules.max_handshakes:
            return f"maxHandshakes {rules.max_handshakes}"
        if rules.max_by_place and self._counts[kind, place_of(host)] >= rules.max_by_place:
            return f"maxHandshakesPerHost {rules.max_by_place} from {place_of(host)}"
        return ""

    def begin(self, host: str, role: str) -> Newcomer:
        """Count a connection that is past ``too_many``, and return it as a newcomer."""
        newcomer = Newcomer(host, role, self._now())
        if not within(self.rules.exempt, host):
            self._newcomers[newcomer] = None
            for place in ("", newcomer.place):
                self._counts[role in ROUTER_ROLES, place] += 1
        return newcomer

    def end(self, newcomer: Newcomer) -> None:
        """Forget a peer that came to its Open, or is gone; a second call does nothing."""
        newcomer.cut = None
        if newcomer not in self._newcomers:
            return
        del self._newcomers[newcomer]
        for place in ("", newcomer.place):
            key = newcomer.role in ROUTER_ROLES, place
            self._counts[key] -= 1
            if not self._counts[key]:
                del self._counts[key]

    def cut_slow(self) -> None:
        """End handshakes that have begun and take too long; call about once a second."""
        now_s, rate = self._now(), self.rules.least_rate
        for each in list(self._newcomers):
            if each.received_bytes and each.received_bytes < each.due_bytes(now_s, rate) and each.cut is not None:
                each.cut()
