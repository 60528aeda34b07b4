"""Hunting: tries inputs on a check, and returns their number, their speed, and the first failure.

A check is a function of bytes that returns for every input and raises only for a failure.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

#: No input of a few kilobytes may take this long, in seconds of processor time.
SLOW_S: Final = 1.0

Check: TypeAlias = Callable[[bytes], None]


class SlowInput(AssertionError):
    """An input took longer than SLOW_S."""


@dataclass(frozen=True, slots=True)
class Found:
    """The result of a hunt: number of inputs, their processor seconds, and the first failure."""

    tried: int
    took_s: float
    data: bytes | None = None
    error: BaseException | None = None

    @property
    def per_second(self) -> float:
        """Executions per second."""
        return self.tried / self.took_s if self.took_s else 0.0


def try_one(check: Check, data: bytes) -> BaseException | None:
    """Return what ``check`` raises for ``data``, SlowInput if it takes too long, otherwise None."""
    error, took_s = _timed(check, data, time.perf_counter)
    if error is None and took_s > SLOW_S:
        # other processes may have delayed it: again by this thread's clock, which is slow to read
        error, took_s = _timed(check, data, time.thread_time)
    if error is None and took_s > SLOW_S:
        return SlowInput(f"{len(data)} bytes took {took_s:.1f} s")
    return error


def _timed(check: Check, data: bytes, clock: Callable[[], float]) -> tuple[BaseException | None, float]:
    """Return what ``check`` raises for ``data``, or None, and the seconds that it took by ``clock``."""
    begun_s = clock()
    try:
        check(data)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - any exception is a failure
        return error, 0.0
    return None, clock() - begun_s


def hunt(check: Check, inputs: Iterable[bytes]) -> Found:
    """Try ``inputs`` until one fails or there are no more."""
    tried = 0
    begun_s = time.process_time()
    for data in inputs:
        tried += 1
        error = try_one(check, data)
        if error is not None:
            return Found(tried, time.process_time() - begun_s, data, error)
    return Found(tried, time.process_time() - begun_s)


def cuts(data: bytes, maximum: int) -> Iterator[bytes]:
    """Yield ``data`` and up to ``maximum`` of its beginnings, evenly spaced, among them the empty one."""
    yield data
    if maximum > 0 and data:
        for end in range(0, len(data), -(-len(data) // maximum)):
            yield data[:end]
