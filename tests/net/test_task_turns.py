"""Tasks take turns: a little in each pass of the scheduler, by what their users have taken."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing
from typing import Final

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from trouter.net.shares import ProcessorShare, Shares
from trouter.net.turns import PASS_S, TaskTurns, Threads, Turn

HANG_S: Final = 60.0


class Clock:
    """A clock that stands still until the work of a test takes time."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class Tasks:
    """Tasks of several users; each does some pieces of work, and notes the user at each."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.clock = Clock()
        self.shares = Shares()
        self.turns = TaskTurns(self.shares, self.clock)
        self.done: list[str] = []
        self._nursery = nursery

    def begin(self, user: str, count: int, *, pieces: int = 1, cost_s: float = PASS_S) -> None:
        share = self.shares.join(user)
        for _ in range(count):
            self._nursery.start_soon(self._work, user, share, pieces, cost_s)

    async def _work(self, user: str, share: ProcessorShare, pieces: int, cost_s: float) -> None:
        for _ in range(pieces):
            began_s = await self.turns.take(share)
            self.clock.now_s += cost_s
            self.done.append(user)
            self.turns.end(share, began_s)

    async def passes(self, count: int) -> list[str]:
        """Return whose work was done in so many passes."""
        before = len(self.done)
        for _ in range(count):
            self.turns.begin_pass()
            await wait_all_tasks_blocked()
        return self.done[before:]


async def test_without_others_a_task_waits_for_no_turn(nursery: trio.Nursery) -> None:
    tasks = Tasks(nursery)
    tasks.turns.begin_pass()
    tasks.begin("alice", 1, pieces=10, cost_s=PASS_S / 100)
    await wait_all_tasks_blocked()
    assert len(tasks.done) == 10


async def test_each_pass_has_the_time_of_one_long_turn(nursery: trio.Nursery) -> None:
    tasks = Tasks(nursery)
    tasks.turns.begin_pass()
    tasks.begin("alice", 64)
    await wait_all_tasks_blocked()
    assert len(tasks.done) == 1
    assert tasks.turns.waiting == 63
    assert len(await tasks.passes(10)) == 10


async def test_a_neighbour_is_next_however_many_tasks_of_another_user_wait(nursery: trio.Nursery) -> None:
    tasks = Tasks(nursery)
    tasks.turns.begin_pass()
    tasks.begin("alice", 64, pieces=100)
    await tasks.passes(20)
    tasks.begin("bob", 1, pieces=3, cost_s=PASS_S / 10)
    await wait_all_tasks_blocked()
    assert (await tasks.passes(6)).count("bob") == 3  # trio may let another of the same pass run before


async def test_users_who_ask_for_more_than_there_is_get_the_same(nursery: trio.Nursery) -> None:
    tasks = Tasks(nursery)
    tasks.turns.begin_pass()
    tasks.begin("alice", 64, pieces=100)
    tasks.begin("bob", 1, pieces=100)
    done = await tasks.passes(40)
    assert abs(done.count("alice") - done.count("bob")) <= 2


async def test_short_turns_share_a_pass(nursery: trio.Nursery) -> None:
    tasks = Tasks(nursery)
    tasks.turns.begin_pass()
    tasks.begin("alice", 1)
    await wait_all_tasks_blocked()
    tasks.begin("carol", 1000, cost_s=PASS_S / 100)
    await wait_all_tasks_blocked()
    assert len(await tasks.passes(25)) == 1000


async def test_a_turn_is_over_only_while_others_wait(nursery: trio.Nursery) -> None:
    tasks = Tasks(nursery)
    tasks.turns.begin_pass()
    began_s = await tasks.turns.take(tasks.shares.join("alice"))
    tasks.clock.now_s += 10 * PASS_S
    assert not tasks.turns.is_over(began_s)
    tasks.turns.end(tasks.shares.join("alice"), began_s)
    tasks.begin("bob", 1)
    await wait_all_tasks_blocked()
    assert tasks.turns.is_over(began_s)
    await tasks.passes(1)


async def test_work_for_nobody_waits_for_no_turn(nursery: trio.Nursery) -> None:
    tasks = Tasks(nursery)
    tasks.turns.begin_pass()
    tasks.begin("alice", 8)
    await wait_all_tasks_blocked()
    tasks.turns.end(None, await tasks.turns.take(None))
    assert tasks.turns.waiting == 7
    await tasks.passes(7)


async def test_a_task_that_is_cancelled_waits_no_longer(nursery: trio.Nursery) -> None:
    tasks = Tasks(nursery)
    tasks.turns.begin_pass()
    async with trio.open_nursery() as inner:
        Tasks.begin(tasks, "alice", 1)
        await wait_all_tasks_blocked()
        share = tasks.shares.join("bob")
        inner.start_soon(tasks.turns.take, share)
        await wait_all_tasks_blocked()
        assert tasks.turns.waiting == 1
        inner.cancel_scope.cancel()
    assert tasks.turns.waiting == 0
    assert not tasks.turns.begin_pass()


async def stopped(tasks: Tasks, stop: Callable[[], None]) -> None:
    tasks.turns.begin_pass()
    tasks.begin("alice", 8)
    await wait_all_tasks_blocked()
    stop()
    await wait_all_tasks_blocked()


async def test_tasks_wait_for_nothing_where_nobody_counts_the_passes(nursery: trio.Nursery) -> None:
    tasks = Tasks(nursery)
    tasks.begin("alice", 8)
    await wait_all_tasks_blocked()
    assert len(tasks.done) == 8


async def test_all_tasks_go_on_once_nobody_counts_any_more(nursery: trio.Nursery) -> None:
    tasks = Tasks(nursery)
    await stopped(tasks, tasks.turns.stop_counting)
    assert len(tasks.done) == 8


async def test_a_task_has_no_turn_while_it_waits_outside(nursery: trio.Nursery) -> None:
    tasks, gate = Tasks(nursery), trio.Event()
    tasks.turns.begin_pass()
    with closing(Turn(tasks.turns, "alice")) as turn:
        await turn.begin()
        nursery.start_soon(turn.outside, gate.wait)
        await wait_all_tasks_blocked()
        tasks.clock.now_s += 10 * PASS_S
        gate.set()
        await wait_all_tasks_blocked()
        assert turn.share.spent_s == 0.0
        tasks.clock.now_s += PASS_S / 2
    assert turn.share.spent_s == pytest.approx(PASS_S / 2)
    assert len(tasks.shares) == 0


async def test_a_task_that_comes_back_from_outside_waits_for_those_who_have_taken_less(nursery: trio.Nursery) -> None:
    tasks = Tasks(nursery)
    tasks.turns.begin_pass()
    turn = Turn(tasks.turns, "alice")
    await turn.begin()
    tasks.begin("bob", 2)
    await wait_all_tasks_blocked()
    tasks.clock.now_s += 3 * PASS_S

    async def come_back() -> None:
        await turn.outside(trio.lowlevel.checkpoint)
        tasks.done.append("alice")

    nursery.start_soon(come_back)
    await wait_all_tasks_blocked()
    assert await tasks.passes(3) == ["bob", "alice"]
    turn.close()


async def test_a_long_turn_rests_once_it_has_lasted_long_enough(nursery: trio.Nursery) -> None:
    tasks = Tasks(nursery)
    other = trio.Event()

    async def pass_by() -> None:
        other.set()

    with closing(Turn(tasks.turns, "alice")) as turn:
        await turn.begin()
        nursery.start_soon(pass_by)
        tasks.clock.now_s += PASS_S / 2
        await turn.rest()
        rested_early = other.is_set()
        for _ in range(2):  # the order of tasks within a pass is random
            tasks.clock.now_s += PASS_S
            await turn.rest()
    assert (rested_early, other.is_set()) == (False, True)


class Computing:
    """Tasks of several users that compute in threads, one at a time, and note the user at each."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.shares = Shares()
        self.threads = Threads(self.shares, 1)
        self.done: list[str] = []
        self.first = threading.Event()
        self._nursery = nursery

    async def begin(self, user: str, count: int) -> None:
        for _ in range(count):
            self._nursery.start_soon(self._compute, user, self.shares.join(user))
            await wait_all_tasks_blocked()

    async def _compute(self, user: str, share: ProcessorShare) -> None:
        await self.threads.run(share, self._work)
        self.done.append(user)

    def _work(self) -> None:
        assert self.first.wait(HANG_S)


async def test_a_neighbours_handshake_is_computed_after_the_one_under_way(nursery: trio.Nursery) -> None:
    computing = Computing(nursery)
    await computing.begin("alice", 64)
    await computing.begin("bob", 1)
    computing.first.set()
    while len(computing.done) < 65:
        await trio.lowlevel.checkpoint()
    assert computing.done.index("bob") <= 1


async def test_a_thread_is_free_again_after_work_that_fails_and_a_wait_that_is_given_up(nursery: trio.Nursery) -> None:
    computing = Computing(nursery)
    share = computing.shares.join("alice")

    def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await computing.threads.run(share, fail)
    await computing.begin("alice", 1)
    with trio.CancelScope() as scope:
        scope.cancel()
        await computing.threads.run(share, fail)
    computing.first.set()
    await computing.threads.run(share, lambda: None)
    assert computing.done == ["alice"]
