"""The parts of the book: the connections of one vhost, and a meter, which counts the use of one rule's quotas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final, Protocol

from trouter._buckets import Bucket
from trouter.net.tallies import NO_ROOM, Tallies

from .compiled import ConnectionLimits
from .kinds import Reason
from .quota_rules import ADDRESSES, LINKS, RATES, QuotaRule


class Buffer(Protocol):
    """The count of bytes held for messages and sessions, and its limit; the holder changes ``held``."""

    held: int
    limit: int


class Counted(Protocol):
    """The counter of deliveries received on a link."""

    deliveries: int


class Credited(Protocol):
    """The credit of a link."""

    credit: int


class Paced(Protocol):
    """A link on which a peer sends."""

    @property
    def counters(self) -> Counted: ...

    @property
    def link(self) -> Credited: ...

    def top_up_credit(self) -> None:
        """Request credit again, if the link wants any."""


class Meter:
    """The counts of one quota rule for a vhost, group, user or host; ``Book`` owns it."""

    def __init__(self, rule: QuotaRule, who: str, buffer: Buffer, now_s: float) -> None:
        self.rule = rule
        self.who = who
        self.links = 0
        self.addresses: Counter[str] = Counter()
        self.buffer = buffer
        #: Number of links on which the counted peers send.
        self.senders = 0
        self.connections = 0
        self.buckets: dict[str, Bucket] = {}
        #: Quota with an alarm -> when it was last met.
        self.met_at_s: dict[str, float] = {}
        self.replace_rule(rule, now_s)

    def replace_rule(self, rule: QuotaRule, now_s: float) -> None:
        """Replace the limits; the counts stay."""
        self.rule = rule
        for name in RATES:
            rate = getattr(rule.limits, name)
            if rate is None:
                self.buckets.pop(name, None)
            elif name in self.buckets:
                self.buckets[name].set_rate(rate, now_s)
            else:
                self.buckets[name] = Bucket(rate, now_s)
        limit = rule.limits.max_buffered_bytes
        self.buffer.limit = limit if limit is not None and rule.enforced else 2**62

    def is_met(self, name: str, address: str | None, now_s: float) -> bool:
        """Return whether the quota ``name`` leaves no room for one more; ``address`` is None for none."""
        limits = self.rule.limits
        if name in RATES:
            return name in self.buckets and self.buckets[name].tokens(now_s) < 1
        if name == LINKS:
            return limits.max_links is not None and self.links >= limits.max_links
        if name == ADDRESSES:
            full = limits.max_addresses is not None and len(self.addresses) >= limits.max_addresses
            return full and address is not None and address not in self.addresses
        return self.free_bytes() <= 0

    def free_bytes(self) -> int:
        """Return how many more bytes may be held; negative if the limit is exceeded."""
        limit = self.rule.limits.max_buffered_bytes
        return 2**62 if limit is None else limit - self.buffer.held

    @property
    def overfull(self) -> bool:
        """True if the held bytes exceed the limit by a quarter, so that no further connection is admitted."""
        limit = self.rule.limits.max_buffered_bytes
        return limit is not None and self.buffer.held * 4 >= limit * 5

    def is_forgettable(self, now_s: float) -> bool:
        """Return whether a new meter would behave the same."""
        return not self.met_at_s and all(bucket.is_full(now_s) for bucket in self.buckets.values())


class VhostConnections:
    """The open connections of a vhost, by name, in the order of opening; also those of each user and of each host.

    Users and hosts without a connection are forgotten, so the memory is bounded by the number of connections.
    """

    def __init__(self) -> None:
        self._connections: Final[dict[str, tuple[str, str]]] = {}
        self._of_user: Final[dict[str, dict[str, None]]] = {}
        self._of_host: Final[dict[str, dict[str, None]]] = {}

    def __len__(self) -> int:
        return len(self._connections)

    def __contains__(self, name: object) -> bool:
        return name in self._connections

    def limits_reached(self, limits: ConnectionLimits, user: str, host: str) -> tuple[Reason, ...]:
        """Return every limit that one more connection of this user and host would exceed; if none, it may open.

        All groups of the vhost count together, also groups with their own limits.
        """
        counted = (
            (len(self._connections), limits.connections, Reason.MAX_CONNECTIONS),
            (len(self._of_user.get(user, ())), limits.per_user, Reason.MAX_CONNECTIONS_PER_USER),
            (len(self._of_host.get(host, ())), limits.per_host, Reason.MAX_CONNECTIONS_PER_HOST),
        )
        return tuple(reason for count, limit, reason in counted if count >= limit)

    def add_connection(self, name: str, user: str, host: str) -> None:
        """Count a connection; ValueError if one of this name is counted already."""
        if name in self._connections:
            raise ValueError("a connection of this name is counted already")
        self._connections[name] = user, host
        self._of_user.setdefault(user, {})[name] = None
        self._of_host.setdefault(host, {})[name] = None

    def remove_connection(self, name: str) -> None:
        """Remove a connection from the counts; KeyError if it is not counted."""
        user, host = self._connections.pop(name)
        for of_key, key in ((self._of_user, user), (self._of_host, host)):
            names = of_key[key]
            del names[name]
            if not names:
                del of_key[key]

    def by_user(self) -> Mapping[str, list[str]]:
        """Return the names of the connections of each user that has any."""
        return {user: list(names) for user, names in self._of_user.items()}

    def by_host(self) -> Mapping[str, list[str]]:
        """Return the names of the connections from each host that has any."""
        return {host: list(names) for host, names in self._of_host.items()}


class SharedConnections:
    """The counts of the connections of all workers: those of each vhost, of its users and from its hosts."""

    def __init__(self, tallies: Tallies) -> None:
        self._tallies = tallies
        #: The vhost, user and host of a place that is taken, for a connection that is not counted yet.
        self._taken: tuple[str, str, str] | None = None

    def take_place(self, vhost: str, limits: ConnectionLimits, user: str, host: str) -> tuple[Reason, ...]:
        """Take a place for one more connection; return the limits that it would exceed, and then take none."""
        self.release_place()
        if not vhost:  # nothing limits it
            return ()
        counted = (
            (limits.connections, Reason.MAX_CONNECTIONS),
            (limits.per_user, Reason.MAX_CONNECTIONS_PER_USER),
            (limits.per_host, Reason.MAX_CONNECTIONS_PER_HOST),
        )
        keys = _keys_of(vhost, user, host)
        counts = [self._tallies.raise_count(*key) for key in keys]
        over = tuple(reason for count, (limit, reason) in zip(counts, counted, strict=True) if count > limit)
        if not over:
            self._taken = vhost, user, host
            return ()
        for key, count in zip(keys, counts, strict=True):
            if count < NO_ROOM:
                self._tallies.lower_count(*key)
        return over

    def release_place(self) -> None:
        """Give a place back that is taken and not used."""
        if self._taken is not None:
            taken, self._taken = self._taken, None
            self.remove_connection(*taken)

    def add_connection(self, vhost: str, user: str, host: str) -> None:
        """Count a connection, at the place that is taken for it if there is one."""
        if self._taken == (vhost, user, host):
            self._taken = None
            return
        for key in _keys_of(vhost, user, host):
            self._tallies.raise_count(*key)

    def remove_connection(self, vhost: str, user: str, host: str) -> None:
        """Remove a connection from the counts."""
        for key in _keys_of(vhost, user, host):
            self._tallies.lower_count(*key)


def _keys_of(vhost: str, user: str, host: str) -> tuple[tuple[str, ...], ...]:
    return ("vhost", vhost), ("user", vhost, user), ("host", vhost, host)
