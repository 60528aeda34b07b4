"""The rates of counters between two looks."""

from __future__ import annotations

from trouter.tools import formats

#: Router, listing, row and column of a counter.
RateKey = tuple[str, str, str, str]


class Rates:
    """The values of counters at the last look and at this one."""

    def __init__(self) -> None:
        self._before: dict[RateKey, float] = {}
        self._now: dict[RateKey, float] = {}
        self._before_s = self._now_s = 0.0

    def begin_look(self, at_s: float) -> None:
        """Begin a look at ``at_s`` seconds; `of` compares values passed from here on with those of the last look."""
        self._before, self._now = self._now, {}
        self._before_s, self._now_s = self._now_s, at_s

    def of(self, key: RateKey, value: object) -> float | None:
        """Return the growth of the counter per second; None if unknown, as after a restart."""
        count = formats.number(value)
        if count is None:
            return None
        self._now[key] = count
        before = self._before.get(key)
        passed_s = self._now_s - self._before_s
        if before is None or count < before or passed_s <= 0:
            return None
        return (count - before) / passed_s
