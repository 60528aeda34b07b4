"""The queue of timers: work is done when it is due, in the order of its times, and kept no longer than needed."""

from __future__ import annotations

import weakref

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from trouter.core.router import Router
from trouter.net.hub import Hub
from trouter.net.timers import _SPARE_TIMERS, NEVER, TimerQueue, every


class Notes:
    """Work that notes when it was done."""

    def __init__(self, *next_s: float) -> None:
        self.done_s: list[float] = []
        self._next_s = list(next_s)

    def do(self, now_s: float) -> float:
        self.done_s.append(now_s)
        return self._next_s.pop(0) if self._next_s else NEVER


def test_work_is_done_once_when_it_is_due_and_again_when_it_says_so() -> None:
    queue, notes = TimerQueue(), Notes(5.0, 5.5)
    queue.add("work", notes.do, 2.0)
    for now_s in (1.9, 2.0, 4.9, 7.0, 9.0):
        queue.do_due(now_s)
    assert notes.done_s == [2.0, 7.0, 9.0]


def test_a_timer_is_advanced_and_never_put_off() -> None:
    queue, notes = TimerQueue(), Notes()
    timer = queue.add("work", notes.do)
    queue.do_due(1e9)
    queue.advance(timer, 8.0)
    queue.advance(timer, 3.0)
    queue.advance(timer, 5.0)
    queue.do_due(4.0)
    queue.do_due(9.0)
    assert notes.done_s == [4.0]


def test_work_that_advances_its_own_timer_is_due_at_the_earlier_time() -> None:
    queue = TimerQueue()
    done_s: list[float] = []

    def do(now_s: float) -> float:
        done_s.append(now_s)
        if len(done_s) == 1:
            queue.advance(timer, now_s + 1)
        return NEVER

    timer = queue.add("work", do, 1.0)
    for now_s in (1.0, 1.5, 2.0):
        queue.do_due(now_s)
    assert done_s == [1.0, 2.0]


def test_work_of_one_pass_can_cancel_later_work_of_it() -> None:
    queue, notes = TimerQueue(), Notes()

    def cancel(_: float) -> float:
        queue.cancel(later)
        return NEVER

    queue.add("work", cancel, 1.0)
    later = queue.add("work", notes.do, 1.0)
    queue.do_due(1.0)
    assert notes.done_s == []


def test_a_cancelled_timer_keeps_nothing_of_its_owner() -> None:
    queue, notes = TimerQueue(), Notes()
    timer, gone = queue.add("work", notes.do, 60.0), weakref.ref(notes)
    queue.cancel(timer)
    queue.cancel(timer)
    del notes
    assert gone() is None


def test_the_queue_is_cleared_of_cancelled_timers() -> None:
    queue, notes = TimerQueue(), Notes()
    kept = queue.add("work", notes.do, 50.0)
    for _ in range(20):
        for timer in [queue.add("work", notes.do, 60.0) for _ in range(_SPARE_TIMERS)]:
            queue.cancel(timer)
    assert len(queue._due) <= 3 * _SPARE_TIMERS
    assert kept.due_s == 50.0
    queue.do_due(60.0)
    assert notes.done_s == [60.0]


async def test_the_task_sleeps_until_the_first_is_due_and_wakes_for_an_earlier_one(
    nursery: trio.Nursery, mock_clock: MockClock
) -> None:
    queue, early, late = TimerQueue(), Notes(), Notes()
    nursery.start_soon(queue.run, Hub(Router("R")))
    began_s = trio.current_time()
    queue.add("work", late.do, began_s + 10)
    await wait_all_tasks_blocked()
    queue.add("work", early.do, began_s + 2)
    mock_clock.jump(3)
    await wait_all_tasks_blocked()
    mock_clock.jump(7)
    await wait_all_tasks_blocked()
    assert [*early.done_s, *late.done_s] == [pytest.approx(began_s + 3), pytest.approx(began_s + 10)]
    nursery.cancel_scope.cancel()


async def test_plain_work_waits_a_period_and_awaited_work_does_not_lose_its_own_duration(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    queue, plain, awaited = TimerQueue(), Notes(), Notes()
    began_s = trio.current_time()

    async def work() -> None:
        awaited.do(trio.current_time() - began_s)
        await trio.sleep(2 if len(awaited.done_s) == 2 else 0.25)

    queue.add("work", every("work", lambda: 0.5, lambda: plain.do(trio.current_time() - began_s)), began_s + 0.5)
    nursery.start_soon(queue.repeat, "work", lambda: 1.0, work)
    nursery.start_soon(queue.run, Hub(Router("R")))
    await trio.sleep(6.1)
    assert plain.done_s[:3] == [pytest.approx(0.5), pytest.approx(1.0), pytest.approx(1.5)]
    assert awaited.done_s == [pytest.approx(at_s) for at_s in (1, 2, 4, 5, 6)]
    nursery.cancel_scope.cancel()
