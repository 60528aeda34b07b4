"""Slow work for strangers, in threads that give way to the router's own."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar

import trio

T = TypeVar("T")

#: How much nicer such a thread is than the rest of the process: beside a busy event loop it has a third of its share.
NICER: Final = 5
_LONGEST: Final = 19

_thread: Final = threading.local()


async def in_background(work: Callable[..., T], *arguments: Any, limiter: trio.CapacityLimiter) -> T:
    """Return what ``work`` returns, called in a thread of low priority; as ``trio.to_thread.run_sync`` otherwise."""
    return await trio.to_thread.run_sync(_nicely, work, arguments, limiter=limiter)


def _nicely(work: Callable[..., T], arguments: tuple[Any, ...]) -> T:
    """A thread stays nice, whatever is done in it later; where the system allows no such thing, it is as others are."""
    if not hasattr(_thread, "nice"):
        number = threading.get_native_id()  # for Linux a thread is as good as a process here
        try:
            _thread.nice = min(os.getpriority(os.PRIO_PROCESS, number) + NICER, _LONGEST)
            os.setpriority(os.PRIO_PROCESS, number, _thread.nice)
        except OSError:
            _thread.nice = 0
    return work(*arguments)
