"""TaskTurns: the work of tasks for one user after the other, a little in each pass of trio's scheduler.

The rare requests of a connection (begins, attaches, ends), and what comes before its open, are the work of a task, as
HTTP is. Trio gives each task that can run a turn in every pass, however long the others take: many connections of one
user would make each pass as long as all their work, and a login needs a dozen passes. So the tasks share ``PASS_S`` of
each pass. Those that are too late wait, and whoever has taken least is next (``shares``). While there is time for all,
a turn costs two looks at a clock.

The passes are counted by the loop below trio (``host_loop``). Where trio runs by itself, nobody counts, and tasks have
their turns as trio gives them.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Awaitable, Callable, Hashable
from math import inf
from typing import Final, ParamSpec, TypeVar

import trio

from trouter.config.hosts import place_of

from .shares import FairQueue, ProcessorShare, Shares
from .waits import SocketWaits

#: Seconds of a pass for all tasks that take turns, and of a turn while others wait.
PASS_S: Final = 0.002
#: The most seconds that a turn is charged: a task may have waited within it.
MOST_S: Final = 0.02
#: The most tasks that have their turns in one pass, if they are short.
MOST_AT_ONCE: Final = 64

P = ParamSpec("P")
T = TypeVar("T")


def host_key(host: str) -> Hashable:
    """Return the key of the share of those on ``host`` whose user is not known; a host may have many addresses."""
    return "host", place_of(host)


class TaskTurns:
    """The turns of one router's tasks."""

    def __init__(self, shares: Shares, clock: Callable[[], float] = time.perf_counter) -> None:
        self.shares = shares
        self._clock = clock
        self._queue = FairQueue(shares)
        #: Somebody calls ``begin_pass``.
        self._counted = False
        #: What the tasks took of this pass; how many get turns in the next one; one of them found no time left.
        self._used_s = 0.0
        self._at_once = 1
        self._turned_back = False

    @property
    def waiting(self) -> int:
        """The tasks that wait for their turn."""
        return self._queue.count

    async def take(self, share: ProcessorShare | None) -> float:
        """Wait until it is the turn of a task that works for ``share``; return when the turn began, for ``end``.

        None is for work that waits for nobody and is not counted.
        """
        if share is not None and self._counted and (self._used_s >= PASS_S or self._queue.count):
            await _wait_in(self._queue, share)
            while self._used_s >= PASS_S:  # others that were let go with it took it all
                self._turned_back = True
                await _wait_in(self._queue, share)
        return self._clock()

    def is_over(self, began_s: float) -> bool:
        """Return whether a turn has lasted long enough, because others wait."""
        return self._queue.count > 0 and self._clock() - began_s >= PASS_S

    def now(self) -> float:
        """Return when a turn begins that waits for nobody."""
        return self._clock()

    def lasts_long(self, began_s: float) -> bool:
        """Return whether a turn has lasted long enough for a task that others shall not wait for."""
        return self._clock() - began_s >= PASS_S

    def end(self, share: ProcessorShare | None, began_s: float) -> None:
        """Charge a turn that began then."""
        if share is not None:
            took_s = min(self._clock() - began_s, MOST_S)
            self._used_s += took_s
            share.charge(took_s)

    async def give_way(self, share: ProcessorShare | None, began_s: float) -> float:
        """End a turn, let all other tasks run, and take the next turn; return when that began."""
        self.end(share, began_s)
        await trio.lowlevel.checkpoint()
        return await self.take(share)

    # --- the passes

    def begin_pass(self) -> bool:
        """Let the next tasks have their turns; return whether there are any."""
        self._counted = True
        brief, self._used_s = self._used_s < PASS_S / 2, 0.0
        if not self._queue.count:
            return False
        if self._turned_back:
            self._at_once = max(1, self._at_once // 2)
        elif brief:
            self._at_once = min(2 * self._at_once, MOST_AT_ONCE)
        self._turned_back = False
        self._let_go(self._at_once)
        return True

    def stop_counting(self) -> None:
        """Let all tasks go: ``begin_pass`` is not called any more."""
        self._counted = False
        self._used_s = -inf
        self._let_go(self._queue.count)

    def _let_go(self, most: int) -> None:
        for _ in range(min(most, self._queue.count)):
            trio.lowlevel.reschedule(self._queue.pop()[0])


class Turn:
    """The turns of one task, which has its turn except while it waits."""

    __slots__ = ("_began_s", "_closed", "_turns", "share")

    def __init__(self, turns: TaskTurns, key: Hashable) -> None:
        """``key`` is that of the share for which the task works."""
        self._turns = turns
        self.share = turns.shares.join(key)
        self._began_s: float | None = None
        self._closed = False

    async def begin(self) -> None:
        """Wait for the turn of this task."""
        self._began_s = await self._turns.take(self.share)

    def go_on(self) -> None:
        """Begin a turn at once."""
        self._began_s = self._turns.now()

    def end(self) -> None:
        """End the turn, if it has begun."""
        if self._began_s is not None:
            self._turns.end(self.share, self._began_s)
            self._began_s = None

    def close(self) -> None:
        """End the last turn; a second call does nothing."""
        self.end()
        if not self._closed:
            self._closed = True
            self._turns.shares.leave(self.share)

    async def rest(self) -> None:
        """Let all other tasks run, if the turn has lasted long enough."""
        if self._began_s is not None and self._turns.lasts_long(self._began_s):
            self._began_s = await self._turns.give_way(self.share, self._began_s)

    async def outside(self, wait: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what ``wait`` returns; the task has no turn meanwhile, and none after an exception."""
        self.end()
        result = await wait(*args, **kwargs)
        await self.begin()
        return result


class UncountedWaits:
    """How a task waits for its socket: that time is none of its turn, which goes on afterwards."""

    def __init__(self, turn: Turn, waits: SocketWaits) -> None:
        self._turn = turn
        self._waits = waits

    async def wait_readable(self, sock: socket.socket) -> None:
        """Wait until ``sock`` is readable."""
        self._turn.end()
        await self._waits.wait_readable(sock)
        self._turn.go_on()

    async def wait_writable(self, sock: socket.socket) -> None:
        """Wait until ``sock`` takes more."""
        self._turn.end()
        await self._waits.wait_writable(sock)
        self._turn.go_on()


class Threads:
    """Threads that compute for tasks, ``count`` at once: who waits for one gets it by share."""

    def __init__(self, shares: Shares, count: int, clock: Callable[[], float] = time.perf_counter) -> None:
        self._free = count
        self._queue = FairQueue(shares)
        self._clock = clock

    async def run(self, share: ProcessorShare, work: Callable[[], T]) -> T:
        """Return what ``work`` returns, and charge its time."""
        if self._free:
            self._free -= 1
        else:
            await _wait_in(self._queue, share)  # who ends its work leaves the thread to this task
        began_s = self._clock()
        try:
            return await trio.to_thread.run_sync(work)
        finally:
            share.charge(self._clock() - began_s)
            if self._queue.count:
                trio.lowlevel.reschedule(self._queue.pop()[0])
            else:
                self._free += 1


async def _wait_in(queue: FairQueue, share: ProcessorShare) -> None:
    """Wait in ``queue`` until this task is taken from it and rescheduled."""
    task = trio.lowlevel.current_task()

    def leave(_: object) -> trio.lowlevel.Abort:
        queue.discard(task)
        return trio.lowlevel.Abort.SUCCEEDED

    queue.add(share, task)
    await trio.lowlevel.wait_task_rescheduled(leave)
