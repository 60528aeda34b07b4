"""Latencies of deliveries by address, while a user asks for them: exact times in log-linear buckets.

``latency`` always counts, by class of address and in fewer buckets. Only a limited number of addresses have buckets
here; deliveries to further ones are counted there only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from trouter.records.sketch import bucket_of

if TYPE_CHECKING:
    from cython import Py_ssize_t, longlong


class Times:
    """Deliveries to one address by latency in microseconds: ``counts`` by bucket, up to the last used."""

    __slots__ = ("counts", "smallest", "largest")

    def __init__(self) -> None:
        self.counts: list[int] = []
        self.smallest: longlong = 0
        self.largest: longlong = 0

    def add_latency(self, microseconds: longlong) -> None:
        """Count one latency, in microseconds."""
        bucket: Py_ssize_t = bucket_of(microseconds)
        counts: list[int] = self.counts
        if not counts or microseconds < self.smallest:
            self.smallest = microseconds
        if microseconds > self.largest:
            self.largest = microseconds
        if bucket >= len(counts):
            counts.extend([0] * (bucket + 1 - len(counts)))
        counts[bucket] += 1


class Timed(Protocol):
    """An address whose latencies are counted."""

    times: Times | None

    @property
    def text(self) -> str:
        """Return the address as clients write it."""


class TimesByAddress:
    """The latencies of up to ``max_addresses`` addresses."""

    __slots__ = ("max_addresses", "_entries")

    def __init__(self, max_addresses: Py_ssize_t) -> None:
        self.max_addresses = max_addresses
        self._entries: list[Timed] = []

    def count_delivery(self, entry: Timed, age_s: float) -> None:
        """Count a delivery to the address of ``entry`` that ended at this age."""
        times: Times | None = entry.times
        if times is None:
            if len(self._entries) >= self.max_addresses:
                return
            times = Times()
            entry.times = times
            self._entries.append(entry)
        times.add_latency(int(age_s * 1_000_000) if age_s > 0 else 0)

    def collect_times(self) -> list[tuple[str, Times]]:
        """Return the addresses with their latencies since the last call, and start anew."""
        entries, self._entries = self._entries, []
        taken = []
        for entry in entries:
            if entry.times is not None:
                taken.append((entry.text, entry.times))
            entry.times = None
        return taken
