"""Slow work lets the event loop's thread run."""

from __future__ import annotations

import os
import threading

import pytest
import trio

from trouter_plugins.background import NICER, in_background


def nice() -> int:
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


async def test_the_worker_thread_has_a_lower_priority_and_the_main_thread_keeps_its_own() -> None:
    own = nice()
    limiter = trio.CapacityLimiter(1)
    for _ in range(3):  # most likely in the same thread
        assert await in_background(nice, limiter=limiter) == min(own + NICER, 19)
    assert nice() == own


async def test_the_result_and_the_exception_of_the_work_are_passed_on() -> None:
    limiter = trio.CapacityLimiter(1)
    assert await in_background(max, 1, 3, 2, limiter=limiter) == 3
    with pytest.raises(ZeroDivisionError):
        await in_background(divmod, 1, 0, limiter=limiter)


async def test_no_more_threads_than_the_limiter_has_room_for() -> None:
    limiter = trio.CapacityLimiter(1)
    await limiter.acquire_on_behalf_of("another")
    with trio.move_on_after(0):
        await in_background(nice, limiter=limiter)
        pytest.fail("it ran beside the limiter")
