"""Simulated time: actions that are due, in their order."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable


class Timeline:
    """A clock that runs the actions due; those of one moment in the order in which they were planned."""

    def __init__(self, first_number: int = 0) -> None:
        self.now_s = 1000.0
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count(first_number)

    def run(self, seconds: float) -> None:
        end_s = self.now_s + seconds
        while self._due and self._due[0][0] <= end_s:
            self.now_s, _, action = heapq.heappop(self._due)
            action()
        self.now_s = end_s

    def _later(self, seconds: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._due, (self.now_s + seconds, next(self._order), action))
