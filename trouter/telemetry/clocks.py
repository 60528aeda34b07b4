"""The two clocks of records, in microseconds."""

from __future__ import annotations

import time


def now_us() -> int:
    """Return microseconds since 1970 by the system clock."""
    return time.time_ns() // 1000


def mono_us() -> int:
    """Return microseconds by the monotonic clock."""
    return time.monotonic_ns() // 1000
