"""The two clocks that records know, in microseconds."""

from __future__ import annotations

import time


def now_us() -> int:
    """Return the time of the day, since 1970."""
    return time.time_ns() // 1000


def mono_us() -> int:
    """Return the time in microseconds, by a clock that cannot be set."""
    return time.monotonic_ns() // 1000
