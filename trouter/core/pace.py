"""How fast links settle (routing.md 5.6, settleRate), found without a word from the data path.

What a link has settled is what it has seen less what is still open, so a count that was noted a while ago and the
present one give the rate. Links are looked at a portion at a time.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, Protocol

from .counters import Counters

#: What a rate is averaged over: at least this, and less than twice as much while the router calls ``scan``.
PERIOD_S: Final = 5.0
#: Links to look at in one call, a fifth of all if that is more.
PORTION: Final = 2000


class Pace:
    """What a link had settled at two moments, the later of them up to a period ago."""

    __slots__ = ("_count", "_earlier_at_s", "_earlier_count", "_noted_at_s")

    def __init__(self, now_s: float) -> None:
        self._earlier_at_s = self._noted_at_s = now_s
        self._earlier_count = self._count = 0

    def note(self, settled: int, now_s: float) -> None:
        """Remember the count of this moment, and the one before."""
        self._earlier_at_s, self._earlier_count = self._noted_at_s, self._count
        self._noted_at_s, self._count = now_s, settled

    def rate(self, settled: int, now_s: float) -> float:
        """Return the rate in settlements per second."""
        for_s = now_s - self._noted_at_s
        if for_s >= PERIOD_S:
            return (settled - self._count) / for_s
        return (settled - self._earlier_count) / max(now_s - self._earlier_at_s, PERIOD_S)


class Settling(Protocol):
    """A link, incoming or outgoing, as its pace is measured."""

    @property
    def counters(self) -> Counters:
        """Return what became of its deliveries."""

    @property
    def unsettled(self) -> int:
        """Return how many of its deliveries are open."""

    @property
    def pace(self) -> Pace:
        """Return what it had settled a while ago."""


class Paces:
    """The rounds that note what links have settled."""

    def __init__(self) -> None:
        self._round: list[Settling] = []
        self._portion = PORTION
        self._begun_at_s = float("-inf")

    def scan(self, endpoints: Collection[Settling], now_s: float) -> None:
        """Look at the next portion; call about once a second."""
        if not self._round:
            if now_s - self._begun_at_s < PERIOD_S:
                return
            self._begun_at_s = now_s
            self._round = list(endpoints)
            self._portion = max(PORTION, len(endpoints) // 5)
        for endpoint in self._round[-self._portion :]:
            endpoint.pace.note(settled_count(endpoint), now_s)
        del self._round[-self._portion :]


def settled_count(endpoint: Settling) -> int:
    """Return how many deliveries of a link are settled, whatever their outcome."""
    return endpoint.counters.deliveries - endpoint.unsettled
