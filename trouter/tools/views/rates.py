"""How fast counters grow, from one look to the next."""

from __future__ import annotations

from trouter.tools import formats

#: Router, listing, row and column of a counter.
RateKey = tuple[str, str, str, str]


class Rates:
    """What counters showed at the last look and at this one."""

    def __init__(self) -> None:
        self._before: dict[RateKey, float] = {}
        self._now: dict[RateKey, float] = {}
        self._before_s = self._now_s = 0.0

    def look(self, at_s: float) -> None:
        """Begin a new look: what `of` is told from here on is compared with what it was told since the last."""
        self._before, self._now = self._now, {}
        self._before_s, self._now_s = self._now_s, at_s

    def of(self, key: RateKey, value: object) -> float | None:
        """Return how much the counter grew in a second; None where that cannot be told, as when it began anew."""
        count = formats.number(value)
        if count is None:
            return None
        self._now[key] = count
        before = self._before.get(key)
        passed_s = self._now_s - self._before_s
        if before is None or count < before or passed_s <= 0:
            return None
        return (count - before) / passed_s
