"""Limits of connections before their open (security.md 8.2): their number and their slowness. No I/O.

A connection costs a descriptor and some memory before its user is known, so clients may have few of them at a time, may
open them at a limited rate, and must make progress. Routers of the network are counted separately: no flood of clients
excludes them. Exempt hosts are not counted.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from trouter._buckets import Bucket
from trouter.config.hosts import place_of
from trouter.core.terms import ROUTER_ROLES
from trouter.net.rates import bucket_maker
from trouter.net.tallies import Tallies
from trouter.net.view import ConnectionView

from .lockout import LOOPBACK, Network, within

#: Seconds after its start in which no handshake counts as too slow.
GRACE_S: Final = 2.0
#: Places whose arrivals are stored.
MAX_PLACES: Final = 100_000
#: Handshakes at a time, one of each place, while the router is short of memory.
FEW: Final = 32
#: Why a connection is aborted that sends less than the least rate.
TOO_SLOW: Final = "too slow: less than minHandshakeRate before its open"
#: The end of the reason why a host is refused that may stand for many clients.
CURE: Final = "; if many clients share this address, put it into handshakeExempt, or let their proxy send PROXY headers"
#: The arrivals that a login counts as if it is refused because too many before it failed.
IN_VAIN: Final = 10


@dataclass(frozen=True, slots=True)
class HandshakeRules:
    """The limits; 0 for none."""

    #: Handshakes at a time: of all places, and of one.
    max_handshakes: int = 1000
    max_by_place: int = 20
    #: The least octets a second of a peer that has begun to send.
    least_rate: int = 64
    #: Connections from one place: in a second, and in a burst.
    arrivals_per_second: int = 50
    arrivals_at_once: int = 100
    exempt: tuple[Network, ...] = LOOPBACK


class Newcomer:
    """A connection before its open."""

    __slots__ = ("host", "place", "role", "_asked_s", "_came_s", "_waited_s")

    def __init__(self, host: str, role: str, now_s: float) -> None:
        self.host = host
        self.place = place_of(host)
        self.role = role
        self._came_s = now_s
        #: When it began to wait for the router, and the seconds that it has waited before.
        self._asked_s: float | None = None
        self._waited_s = 0.0

    def restart_clock(self, now_s: float) -> None:
        """Let its time begin now: the TLS handshake had its own time limit."""
        self._came_s = now_s

    def note_wait(self, since_s: float) -> None:
        """Note that the peer waits for the router, and need not send meanwhile."""
        self._asked_s = since_s

    def note_answer(self, now_s: float) -> None:
        """Note that the router waits for the peer again."""
        if self._asked_s is not None:
            self._waited_s += now_s - self._asked_s
            self._asked_s = None

    def due_bytes(self, now_s: float, rate: int) -> float:
        """Return the bytes that it must have sent by now, at ``rate`` a second."""
        waited_s = self._waited_s + (0.0 if self._asked_s is None else now_s - self._asked_s)
        return rate * (now_s - self._came_s - waited_s - GRACE_S)


class Handshakes:
    """The newcomers and their counts. ``now`` returns the time in seconds from any start."""

    def __init__(
        self, now: Callable[[], float], rules: HandshakeRules | None = None, tallies: Tallies | None = None
    ) -> None:
        """``tallies``: the counts of all workers; None for a router of one process."""
        self.rules = rules or HandshakeRules()
        self._now = now
        self._tallies = tallies
        self._new_bucket = bucket_maker(tallies)
        #: By newcomer, the connection that is aborted if it is too slow; None during its TLS handshake.
        self._newcomers: dict[Newcomer, ConnectionView | None] = {}
        #: By kind of role and place; the place is empty for all.
        self._counts: Counter[tuple[bool, str]] = Counter()
        #: By place: the connections that it may open now, the place that opened one last at the end.
        self._arrivals: OrderedDict[str, Bucket] = OrderedDict()

    def __len__(self) -> int:
        return len(self._newcomers)

    def too_fast(self, host: str) -> str:
        """Return why to close a connection from ``host``; empty, and it is counted, if it may stay."""
        rules = self.rules
        if not rules.arrivals_per_second or within(rules.exempt, host):
            return ""
        place = place_of(host)
        if not self._bucket_of(place).take_tokens(1, self._now()):
            return f"more than acceptRatePerHost {rules.arrivals_per_second} a second from {place}{CURE}"
        self._note_arrival(place)
        return ""

    def count_failed_login(self, host: str) -> None:
        """Count a login from ``host`` that was refused because too many before it failed.

        Closing a connection when it arrives costs much less than refusing its login.
        """
        if self.rules.arrivals_per_second and not within(self.rules.exempt, host):
            place, now_s = place_of(host), self._now()
            bucket = self._bucket_of(place)
            bucket.owe_tokens(min(IN_VAIN, bucket.tokens(now_s) + self._burst), now_s)
            self._note_arrival(place)

    @property
    def _burst(self) -> int:
        return max(self.rules.arrivals_at_once, 1)

    def _bucket_of(self, place: str) -> Bucket:
        """Return the connections that a place may open now, by the present rules."""
        rate, now_s = self.rules.arrivals_per_second, self._now()
        bucket = self._arrivals.get(place)
        if bucket is None:
            bucket = self._arrivals[place] = self._new_bucket(("arrivals", place), rate, now_s, self._burst)
        else:
            bucket.set_rate(rate, now_s, self._burst)
        return bucket

    def _note_arrival(self, place: str) -> None:
        """Note that ``place`` opened a connection last; forget those whose last is oldest.

        They are forgotten if there are too many, or a new bucket would be the same.
        """
        self._arrivals.move_to_end(place)
        now_s = self._now()
        for _ in range(2):  # more than come
            oldest, bucket = next(iter(self._arrivals.items()))
            if oldest != place and (len(self._arrivals) > MAX_PLACES or bucket.is_full(now_s)):
                bucket.give_up()
                del self._arrivals[oldest]

    def too_many(self, host: str, role: str) -> str:
        """Return why ``host`` may open no connection before others have sent their open; empty if it may."""
        rules, kind = self.rules, role in ROUTER_ROLES
        if within(rules.exempt, host):
            return ""
        if rules.max_handshakes and self._count_all(kind, "") >= rules.max_handshakes:
            return f"maxHandshakes {rules.max_handshakes}"
        if rules.max_by_place and self._count_all(kind, place_of(host)) >= rules.max_by_place:
            return f"maxHandshakesPerHost {rules.max_by_place} from {place_of(host)}{CURE}"
        return ""

    def _count_all(self, kind: bool, place: str) -> int:
        """Return the handshakes of all workers; of connections that come at the same moment, each may miss others."""
        others = 0 if self._tallies is None else self._tallies.count_others(*_tally_key(kind, place))
        return self._counts[kind, place] + others

    def is_busy(self, host: str, role: str) -> bool:
        """Return whether all hosts have ``FEW`` handshakes under way, or ``host`` has one and hosts are limited."""
        kind = role in ROUTER_ROLES
        alone = self.rules.max_by_place > 0 and self._counts[kind, place_of(host)] > 0
        return alone or self._counts[kind, ""] >= FEW

    def begin_handshake(self, host: str, role: str) -> Newcomer:
        """Count a connection that ``too_many`` allows, and return it as a newcomer."""
        newcomer = Newcomer(host, role, self._now())
        if not within(self.rules.exempt, host):
            self._newcomers[newcomer] = None
            for place in ("", newcomer.place):
                self._counts[role in ROUTER_ROLES, place] += 1
                if self._tallies is not None:
                    self._tallies.raise_count(*_tally_key(role in ROUTER_ROLES, place))
        return newcomer

    def watch_handshake(self, newcomer: Newcomer, connection: ConnectionView) -> None:
        """Abort ``connection``, which serves ``newcomer``, if it is too slow; its time begins now."""
        newcomer.restart_clock(self._now())
        if newcomer in self._newcomers:
            self._newcomers[newcomer] = connection

    def end_handshake(self, newcomer: Newcomer) -> None:
        """Forget a peer that sent its open or is gone; a second call does nothing."""
        if newcomer not in self._newcomers:
            return
        del self._newcomers[newcomer]
        for place in ("", newcomer.place):
            key = newcomer.role in ROUTER_ROLES, place
            self._counts[key] -= 1
            if self._tallies is not None:
                self._tallies.lower_count(*_tally_key(*key))
            if not self._counts[key]:
                del self._counts[key]

    def abort_slow(self) -> None:
        """Abort connections whose handshakes have begun and are too slow; to be called about once a second."""
        now_s, rate = self._now(), self.rules.least_rate
        for newcomer, connection in list(self._newcomers.items()):
            if connection is not None and 0 < connection.received_bytes() < newcomer.due_bytes(now_s, rate):
                connection.abort_connection(TOO_SLOW)


def _tally_key(kind: bool, place: str) -> tuple[str, ...]:
    """Return the key by which all workers count the handshakes of routers, or of clients, from a place."""
    return "handshakes", "routers" if kind else "clients", place
