"""Read and write numbers that other processes write and read at the same time, in a stated order.

The compiled twin takes these from ``atomics.pxd``, where they are atomic operations of C11. The interpreted twin runs
this module, which states no order, so it has no workers (``trouter/config/workers.py``): there one process alone uses
the memory. They need two bodies because Python has no word for the order of memory. ``tests/net/order/`` proves that
the orders stated here are enough, and that each of them is needed.
"""

from __future__ import annotations


def read_number(numbers: memoryview[float], index: int) -> float:
    """Return a number; what was read before is read before, and what is read after is read after (acquire)."""
    return numbers[index]


def write_number(numbers: memoryview[float], index: int, value: float) -> None:
    """Write a number, after all that was written before it (release)."""
    numbers[index] = value


def put_in_order() -> None:
    """Let other processes see what was written before this call before anything is read or written after it."""
