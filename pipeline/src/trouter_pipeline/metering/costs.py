"""What each stage of a job cost: rows, time, bytes, memory, as far as its engine knows them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(slots=True)
class Usage:
    """What an engine used. ``most_bytes`` is the most memory at any time: of DuckDB, or of one task of Spark."""

    rows_in: int = 0
    rows_out: int = 0
    #: To spills, shuffles and files.
    written_bytes: int = 0
    most_bytes: int = 0

    def add(self, more: Usage) -> None:
        """Add what was used after this."""
        self.rows_in += more.rows_in
        self.rows_out += more.rows_out
        self.written_bytes += more.written_bytes
        self.most_bytes = max(self.most_bytes, more.most_bytes)


@dataclass(frozen=True, slots=True)
class Cost:
    """A stage, without those within it."""

    stage: str
    seconds: float
    used: Usage


@dataclass(slots=True)
class _Open:
    begun_s: float
    within_s: float
    used: Usage


class Costs:
    """The costs of a job's stages, in the order in which these ended."""

    def __init__(self, used: Callable[[], Usage], clock: Callable[[], float] = time.perf_counter) -> None:
        """``used`` returns what the engine has used since it was asked last."""
        self.known: list[Cost] = []
        self._used = used
        self._clock = clock
        self._open: list[_Open] = []

    def made(self, rows: int) -> None:
        """Count rows that the open stage has made, beside those that the engine knows."""
        self._open[-1].used.rows_out += rows

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Measure a stage for the block; one within it counts for itself."""
        if self._open:
            self._open[-1].used.add(self._used())
        mine = _Open(self._clock(), 0.0, Usage())
        self._open.append(mine)
        try:
            yield
            mine.used.add(self._used())
        finally:
            self._open.pop()
        took_s = self._clock() - mine.begun_s
        if self._open:
            self._open[-1].within_s += took_s
        self.known.append(Cost(name, took_s - mine.within_s, mine.used))
