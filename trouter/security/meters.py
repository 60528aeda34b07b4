"""Meters: the use of a rule's quotas by one user, by one host or by all."""

from __future__ import annotations

from collections import Counter
from typing import Protocol

from trouter._buckets import Bucket
from trouter.security.quota_rules import ADDRESSES, LINKS, RATES, QuotaRule


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

    def top_up(self) -> None:
        """Request credit again, if the link wants any."""


class Meter:
    """The counts of one quota rule for a vhost, group, user or host; ``QuotaBook`` owns it."""

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
        self.become(rule, now_s)

    def become(self, rule: QuotaRule, now_s: float) -> None:
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

    def met(self, name: str, address: str | None, now_s: float) -> bool:
        """Return whether the quota ``name`` leaves no room for one more; ``address`` is None for none."""
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
        """Return how many more bytes may be held; negative if the limit is exceeded."""
        limit = self.rule.limits.max_buffered_bytes
        return 2**62 if limit is None else limit - self.buffer.held

    @property
    def overfull(self) -> bool:
        """True if the held bytes exceed the limit by a quarter, so that no further connection is admitted."""
        limit = self.rule.limits.max_buffered_bytes
        return limit is not None and self.buffer.held * 4 >= limit * 5

    def forgettable(self, now_s: float) -> bool:
        """Return whether a new meter would behave the same."""
        return not self.met_at_s and all(bucket.is_full(now_s) for bucket in self.buckets.values())
