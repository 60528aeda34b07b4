"""The parts of the book: the connections of one vhost, and a meter, which counts the use of one rule's quotas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final, Protocol

from trouter._buckets import Bucket
from trouter.engine.ports import Budget
from trouter.net.rates import bucket_maker
from trouter.net.tallies import NO_ROOM, Tallies

from .compiled import ConnectionLimits
from .kinds import Reason
from .quota_rules import ADDRESSES, LINKS, RATES, QuotaRule
from .shared_meter import SharedAddresses, SharedMeter


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

    def __init__(self, rule: QuotaRule, who: str, buffer: Budget, now_s: float, tallies: Tallies | None = None) -> None:
        """``tallies``: the counts of all workers; None for a router of one process."""
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
        key = rule.owner, rule.per, who
        self._rate_key = key
        self._new_bucket = bucket_maker(tallies)
        self._shared = None if tallies is None else SharedMeter(tallies, key)
        self.replace_rule(rule, now_s)

    def replace_rule(self, rule: QuotaRule, now_s: float) -> None:
        """Replace the limits; the counts stay."""
        self.rule = rule
        for name in RATES:
            rate = getattr(rule.limits, name)
            if rate is None:
                bucket = self.buckets.pop(name, None)
                if bucket is not None:
                    bucket.give_up()
            elif name in self.buckets:
                self.buckets[name].set_rate(rate, now_s)
            else:
                self.buckets[name] = self._new_bucket((name, *self._rate_key), rate, now_s, None)
        if self._shared is not None:
            self._shared.addresses.use_only(self.addresses if rule.limits.max_addresses is not None else ())
        self._share_links()
        self.exchange_held_bytes()

    def give_up(self) -> None:
        """Let the other workers see nothing of it any more."""
        for bucket in self.buckets.values():
            bucket.give_up()
        if self._shared is not None:
            self._shared.give_up()

    # --- counts

    def add_link(self, address: str | None) -> None:
        """Count a link, to an address if that is not None."""
        self.links += 1
        self._share_links()
        if address is not None:
            self.addresses[address] += 1
            if self.addresses[address] == 1 and (shared := self._shared_addresses) is not None:
                shared.begin_use(address)

    def remove_link(self, address: str | None) -> None:
        """Remove a link from the counts."""
        self.links -= 1
        self._share_links()
        if address is None:
            return
        self.addresses[address] -= 1
        if not self.addresses[address]:
            del self.addresses[address]
            if (shared := self._shared_addresses) is not None:
                shared.end_use(address)

    def add_sender(self, count: int) -> None:
        """Count links on which a peer sends; a negative number subtracts."""
        self.senders += count
        if self._shared is not None and self.buckets:
            self._shared.senders.write(self.senders)

    def add_held_bytes(self, size_bytes: int) -> None:
        """Add to the bytes held; a negative number subtracts."""
        self.buffer.held += size_bytes
        if self._shared is not None:
            self.exchange_held_bytes()

    def all_senders(self) -> int:
        """Return the number of links on which the counted peers send, at all workers."""
        return self.senders + (0 if self._shared is None else self._shared.senders.sum_others())

    def is_met(self, name: str, address: str | None, now_s: float) -> bool:
        """Return whether the quota ``name`` leaves no room for one more; ``address`` is None for none."""
        limits = self.rule.limits
        if name in RATES:
            return name in self.buckets and self.buckets[name].tokens(now_s) < 1
        if name == LINKS:
            return limits.max_links is not None and self._all_links() >= limits.max_links
        if name == ADDRESSES:
            return limits.max_addresses is not None and self._lacks_room_for(address, limits.max_addresses)
        return self.free_bytes() <= 0

    def _all_links(self) -> int:
        return self.links + (0 if self._shared is None else self._shared.links.sum_others())

    def _lacks_room_for(self, address: str | None, most: int) -> bool:
        if address is None or address in self.addresses:
            return False
        if self._shared is None:
            return len(self.addresses) >= most
        shared = self._shared.addresses
        return shared.count_all() >= most and not shared.is_used(address)

    def free_bytes(self) -> int:
        """Return how many more bytes may be held; negative if the limit is exceeded."""
        limit = self.rule.limits.max_buffered_bytes
        if limit is None:
            return 2**62
        return limit - self.buffer.held - (0 if self._shared is None else self.exchange_held_bytes())

    @property
    def overfull(self) -> bool:
        """True if the held bytes exceed the limit by a quarter, so that no further connection is admitted."""
        limit = self.rule.limits.max_buffered_bytes
        return limit is not None and (limit - self.free_bytes()) * 4 >= limit * 5

    def is_forgettable(self, now_s: float) -> bool:
        """Return whether a new meter would behave the same."""
        if self._shared is not None and len(self._shared.addresses):  # it counts them for other workers
            return False
        return not self.met_at_s and all(bucket.is_full(now_s) for bucket in self.buckets.values())

    # --- other workers

    @property
    def shows_old_bytes(self) -> bool:
        """True if the other workers see another number of held bytes than the present one."""
        return (
            self._shared is not None
            and self._shared.buffered.own != self.buffer.held
            and self.rule.limits.max_buffered_bytes is not None
        )

    def exchange_held_bytes(self) -> int:
        """Let the other workers see the bytes held here; return those that they hold.

        The limit of the buffer, at half of which the windows of sessions narrow, is what they leave of it.
        """
        limit = self.rule.limits.max_buffered_bytes
        others = 0
        if self._shared is not None:
            self._shared.buffered.write(0 if limit is None else self.buffer.held)
            others = 0 if limit is None else self._shared.buffered.sum_others()
        self.buffer.limit = limit - 2 * others if limit is not None and self.rule.enforced else 2**62
        return others

    def check_addresses(self) -> None:
        """See that each address of the links at all workers is counted by one of them; call once a second."""
        if (shared := self._shared_addresses) is not None:
            shared.check_counted()

    @property
    def _shared_addresses(self) -> SharedAddresses | None:
        """The addresses at all workers; None for a router of one process, or without a limit."""
        if self._shared is None or self.rule.limits.max_addresses is None:
            return None
        return self._shared.addresses

    def _share_links(self) -> None:
        if self._shared is not None:
            self._shared.links.write(0 if self.rule.limits.max_links is None else self.links)


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
