"""How long deliveries to each address took, while a user asks for it: exact times in log-linear buckets.

Beside ``latency``, which counts always, by class of address and roughly. So many addresses have buckets at a time; what
is delivered from senders to others is counted there only.
"""

from __future__ import annotations

from typing import Protocol

# As ints of C in the compiled twin; a test holds the buckets to those that records know.
_SMALL = 32
_SMALL_BITS = 5


class Times:
    """Deliveries to one address by how long they took, in microseconds: ``counts`` by bucket, up to the last."""

    __slots__ = ("counts", "largest", "smallest")

    def __init__(self) -> None:
        self.counts: list[int] = []
        self.smallest = 0
        self.largest = 0

    def add(self, microseconds: int) -> None:
        """Count one more time, in microseconds."""
        bucket = microseconds
        if microseconds >= _SMALL:
            shift = 0
            while microseconds >> shift >= 2 * _SMALL:
                shift += 1
            bucket = ((shift + 1) << _SMALL_BITS) + (microseconds >> shift) - _SMALL
        counts = self.counts
        if not counts or microseconds < self.smallest:
            self.smallest = microseconds
        if microseconds > self.largest:
            self.largest = microseconds
        if bucket >= len(counts):
            counts.extend([0] * (bucket + 1 - len(counts)))
        counts[bucket] += 1


class Timed(Protocol):
    """An address whose times are counted."""

    times: Times | None

    @property
    def text(self) -> str:
        """Return the address as clients write it."""


class TimesByAddress:
    """The times of up to ``max_addresses`` addresses."""

    __slots__ = ("_entries", "max_addresses")

    def __init__(self, max_addresses: int) -> None:
        self.max_addresses = max_addresses
        self._entries: list[Timed] = []

    def count(self, entry: Timed, age_s: float) -> None:
        """Count a delivery of this age to the address of ``entry``, which ended."""
        times = entry.times
        if times is None:
            if len(self._entries) >= self.max_addresses:
                return
            times = Times()
            entry.times = times
            self._entries.append(entry)
        times.add(int(age_s * 1_000_000) if age_s > 0 else 0)

    def take(self) -> list[tuple[str, Times]]:
        """Return the addresses and what was counted of them since the last call."""
        entries, self._entries = self._entries, []
        taken = []
        for entry in entries:
            if entry.times is not None:
                taken.append((entry.text, entry.times))
            entry.times = None
        return taken
