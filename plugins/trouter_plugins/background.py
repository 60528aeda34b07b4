"""Runs slow work for unauthenticated peers in threads of lower priority than the router's own."""

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
    """Return the result of ``work``, run in a thread of low priority; else as ``trio.to_thread.run_sync``."""
    return await trio.to_thread.run_sync(_nicely, work, arguments, limiter=limiter)


def _nicely(work: Callable[..., T], arguments: tuple[Any, ...]) -> T:
    """Return the result of ``work``; lower the thread's priority first, for good, if the system allows that."""
    if not hasattr(_thread, "nice"):
        number = threading.get_native_id()  # for Linux a thread is as good as a process here
        try:
            _thread.nice = min(os.getpriority(os.PRIO_PROCESS, number) + NICER, _LONGEST)
            os.setpriority(os.PRIO_PROCESS, number, _thread.nice)
        except OSError:
            _thread.nice = 0
    return work(*arguments)
