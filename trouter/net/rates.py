"""Rates that hold for all workers of a router together, by numbers that they share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from trouter._buckets import Bucket

from .tallies import SharedNumber, Tallies

#: The part of a token up to which a bucket counts as full: sums of large numbers are not exact.
NEARLY_FULL: Final = 0.001

#: Makes a bucket of a rate, filled at a time, with a burst; the texts name it among all workers.
NewBucket = Callable[[tuple[str, ...], int, float, int | None], Bucket]


class SharedBucket(Bucket):
    """A bucket from which all workers take.

    Each worker writes how many tokens it has taken so far, and its ``base``. The bucket has gained
    ``base + rate * time`` tokens by a time, and what workers have taken beyond these is missing from the burst. A
    worker that finds more gained than taken lowers its base, so that the bucket is just full; the lowest base counts
    for all.

    Workers that take at the same moment may take the same tokens. Then the bucket has a debt, so over time all of them
    together never get more than the rate. When a worker ends, what it has taken is given back.
    """

    __slots__ = ("_base", "_base_then", "_key", "_looked_at_s", "_taken", "_tallies")

    def __init__(
        self, tallies: Tallies, key: tuple[str, ...], rate: int, now_s: float, burst: int | None = None
    ) -> None:
        super().__init__(rate, now_s, burst)
        self._tallies = tallies
        self._key = key
        self._begin(missing=0.0)

    def _begin(self, missing: float) -> None:
        """Use the bucket that other workers have of this rate and burst, else a new one that is not quite full."""
        key = (*self._key, str(self._rate), str(self._burst))
        self._taken = SharedNumber(self._tallies, "taken", *key)
        self._base = SharedNumber(self._tallies, "base", *key)
        self._looked_at_s = float("-inf")
        if missing and not self._base.list_others():
            self._base.write(self._taken.sum_others() - missing - self._rate * self._tallies.now())
        self._look()

    def set_rate(self, rate: int, now_s: float, burst: int | None = None) -> None:
        """Use another rate, and the burst that belongs to it, from now on."""
        size = float(rate if burst is None else burst)
        if rate == self._rate and size == self._burst:
            return
        tokens = min(self.tokens(now_s), size)
        self.give_up()
        self._rate, self._burst = rate, size
        self._begin(missing=size - tokens)

    def give_up(self) -> None:
        """Forget what this worker has taken; to be called when the bucket is full, or not used any more."""
        self._taken.write(0)
        self._base.write(0)

    def take_tokens(self, count: int, now_s: float) -> int:
        """Take up to ``count`` whole tokens; return how many were taken."""
        self._refill(now_s)
        taken = max(0, min(count, int(self._tokens)))
        self._add_taken(taken)
        return taken

    def return_tokens(self, count: int) -> None:
        """Return ``count`` unused tokens to the bucket."""
        self._add_taken(-count)
        self._tokens = min(self._tokens, self._burst)

    def cancel_debt(self) -> None:
        """Cancel a debt."""
        if self._tokens < 0:
            self._add_taken(self._tokens)

    def _add_taken(self, count: float) -> None:
        self._base.write(self._base_then)
        self._taken.write(self._taken.own + count)
        self._tokens -= count

    def _refill(self, now_s: float, used: float = 0) -> None:
        """Look what all workers have taken, ``used`` more by this one; of one time it is looked up once."""
        if used:
            self._add_taken(used)
        elif now_s <= self._looked_at_s:
            return
        self._looked_at_s = now_s
        self._look()

    def _look(self) -> None:
        taken = self._taken.own + sum(self._taken.list_others())
        bases = self._base.list_others()
        if self._base.own:
            bases.append(self._base.own)
        came = self._rate * self._tallies.now()
        base = min(bases, default=taken - came)
        missing = taken - (base + came)
        if missing < NEARLY_FULL:
            base, missing = taken - came, 0.0
        #: The base as it was at this look; it is written once tokens are taken.
        self._base_then = base
        self._tokens = self._burst - missing


def bucket_maker(tallies: Tallies | None) -> NewBucket:
    """Return what makes the buckets of a router: of its own, or among workers such as they share."""

    def new_bucket(key: tuple[str, ...], rate: int, now_s: float, burst: int | None) -> Bucket:
        return Bucket(rate, now_s, burst) if tallies is None else SharedBucket(tallies, key, rate, now_s, burst)

    return new_bucket
