"""The rate at which links settle (routing.md 5.6, settleRate), measured without work on the data path.

A link has settled its deliveries less the unsettled ones, so an earlier count and the current one give the rate. Links
are measured a portion at a time.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, Protocol

from .counters import Counters

#: The least time that a rate covers; at most twice as much while the router calls ``scan``.
PERIOD_S: Final = 5.0
#: Links of one call, or a fifth of all if that is more.
PORTION: Final = 2000


class Pace:
    """The count of a link's settled deliveries at two moments, the later up to a period ago."""

    __slots__ = ("_count", "_earlier_at_s", "_earlier_count", "_noted_at_s")

    def __init__(self, now_s: float) -> None:
        self._earlier_at_s = self._noted_at_s = now_s
        self._earlier_count = self._count = 0

    def note_count(self, settled: int, now_s: float) -> None:
        """Set the current count; the last one becomes the earlier."""
        self._earlier_at_s, self._earlier_count = self._noted_at_s, self._count
        self._noted_at_s, self._count = now_s, settled

    def rate(self, settled: int, now_s: float) -> float:
        """Return the settlements per second."""
        for_s = now_s - self._noted_at_s
        if for_s >= PERIOD_S:
            return (settled - self._count) / for_s
        return (settled - self._earlier_count) / max(now_s - self._earlier_at_s, PERIOD_S)


class Settling(Protocol):
    """A link whose pace is measured."""

    @property
    def counters(self) -> Counters:
        """Return the counters of its deliveries."""

    @property
    def unsettled(self) -> int:
        """Return the number of its open deliveries."""

    @property
    def pace(self) -> Pace:
        """Return its earlier counts."""


class Paces:
    """The rounds that note the counts of settled deliveries."""

    def __init__(self) -> None:
        self._round: list[Settling] = []
        self._portion = PORTION
        self._begun_at_s = float("-inf")

    def scan(self, endpoints: Collection[Settling], now_s: float) -> None:
        """Note the next portion of links; to be called about once a second."""
        if not self._round:
            if now_s - self._begun_at_s < PERIOD_S:
                return
            self._begun_at_s = now_s
            self._round = list(endpoints)
            self._portion = max(PORTION, len(endpoints) // 5)
        for endpoint in self._round[-self._portion :]:
            endpoint.pace.note_count(settled_count(endpoint), now_s)
        del self._round[-self._portion :]


def settled_count(endpoint: Settling) -> int:
    """Return the number of a link's settled deliveries, whatever their outcome."""
    return endpoint.counters.deliveries - endpoint.unsettled
