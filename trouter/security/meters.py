"""Meters: what one user, one host or all have used of the quotas of a rule."""

from __future__ import annotations

from collections import Counter
from typing import Protocol

from trouter.security.buckets import Bucket
from trouter.security.quota_rules import ADDRESSES, LINKS, RATES, QuotaRule


class Buffer(Protocol):
    """Counts octets of messages that are kept, and of sessions; their keeper changes ``held``."""

    held: int
    limit: int


class Counted(Protocol):
    """What came on a link."""

    deliveries: int


class Credited(Protocol):
    """What may come on a link."""

    credit: int


class Paced(Protocol):
    """A link on which a peer sends."""

    @property
    def counters(self) -> Counted: ...

    @property
    def link(self) -> Credited: ...

    def top_up(self) -> None:
        """Ask for credit again, if any is wanted."""


class Meter:
    """Counts for one vhost, group, user or host."""

    def __init__(self, rule: QuotaRule, who: str, buffer: Buffer, now_s: float) -> None:
        self.rule = rule
        self.who = who
        self.links = 0
        self.addresses: Counter[str] = Counter()
        self.buffer = buffer
        #: Links on which its peers send.
        self.senders = 0
        self.connections = 0
        self.buckets: dict[str, Bucket] = {}
        #: When each quota was last met, of those about which there is an alarm.
        self.met_at_s: dict[str, float] = {}
        self.become(rule, now_s)

    def become(self, rule: QuotaRule, now_s: float) -> None:
        """Apply other numbers from now on; what is counted stays."""
        self.rule = rule
        for name in RATES:
            rate = getattr(rule.limits, name)
            if rate is None:
                self.buckets.pop(name, None)
            elif name in self.buckets:
                self.buckets[name].become(rate, now_s)
            else:
                self.buckets[name] = Bucket(rate, now_s)
        limit = rule.limits.max_buffered_bytes
        self.buffer.limit = limit if limit is not None and rule.enforced else 2**62

    def met(self, name: str, address: str | None, now_s: float) -> bool:
        """Return whether one more attach (by ``name``: the number of links, the rate and so on) is too much."""
        limits = self.rule.limits
        if name in RATES:
            return name in self.buckets and self.buckets[name].tokens(now_s) < 1
        if name == LINKS:
            return limits.max_links is not None and self.links >= limits.max_links
        if name == ADDRESSES:
            full = limits.max_addresses is not None and len(self.addresses) >= limits.max_addresses
            return full and address is not None and address not in self.addresses
        return self.room() <= 0

    def room(self) -> int:
        """Return how many octets may be kept besides those that are."""
        limit = self.rule.limits.max_buffered_bytes
        return 2**62 if limit is None else limit - self.buffer.held

    @property
    def overfull(self) -> bool:
        """Return whether a quarter more is kept than may be, so that no further connection is let in."""
        limit = self.rule.limits.max_buffered_bytes
        return limit is not None and self.buffer.held * 4 >= limit * 5

    def forgettable(self, now_s: float) -> bool:
        """Return whether a new one would be the same."""
        return not self.met_at_s and all(bucket.is_full(now_s) for bucket in self.buckets.values())
