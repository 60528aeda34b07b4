"""What is due: one queue for all work that the router does by the clock, and one task that serves it.

Below trio the poller serves it between its rounds, because a deadline of trio's costs two switches of threads there
(decision 0034); the task only waits then. Work is a plain function that says when it is due again. Work that has to
wait runs in a task of its own, which the queue wakes (``repeat``). ``app/periodic.py`` lists what a router does
periodically; the others are the heartbeats and idle time-outs of connections (AMQP 1.0 part 2, 2.4.5).
"""

from __future__ import annotations

import heapq
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Final

import trio

from trouter._bell import Bell
from trouter._bugs import BUGS

if TYPE_CHECKING:
    from trouter.engine.ports import ConnectionOwner

    from .hub import Hub

#: The due time of work that waits until it is made due.
NEVER: Final = float("inf")
#: Cancelled timers that the queue may hold before it is cleared of them.
_SPARE_TIMERS: Final = 64
#: Seconds until work is due again that has failed by a bug.
AFTER_BUG_S: Final = 1.0

#: Called with the time, by the loop's clock; returns when it is due again, in the same seconds.
Work = Callable[[float], float]


class Timer:
    """One entry of the queue; ``TimerQueue`` makes it."""

    __slots__ = ("due_s", "name", "owner", "work")

    def __init__(self, name: str, work: Work | None, owner: ConnectionOwner | None) -> None:
        self.name = name
        #: Both are None once cancelled, so that the queue keeps nothing of an ended connection until it would be due.
        self.work = work
        self.owner = owner
        #: When it is due, by the loop's clock.
        self.due_s = NEVER


class TimerQueue:
    """The timers of one router. ``run`` serves them; until it runs, nothing is due."""

    def __init__(self) -> None:
        #: Times and timers; a timer whose ``due_s`` is another time by now has a later entry, or none.
        self._due: list[tuple[float, int, Timer]] = []
        self._numbers = count()
        self._cancelled = 0
        #: When the first timer is due, or was before it was cancelled.
        self.due_s = NEVER
        self._sleep = trio.CancelScope()
        #: The poller serves the timers, and the task need not; the exception with which that failed.
        self._is_below = False
        self._failure: Exception | None = None

    def add(self, name: str, work: Work, due_s: float = NEVER, owner: ConnectionOwner | None = None) -> Timer:
        """Return a timer of ``work``, due at ``due_s``.

        A bug in it ends the connection ``owner``, and it is never due again; without ``owner`` the bug is logged with
        ``name``, and the work is due again after ``AFTER_BUG_S``.
        """
        timer = Timer(name, work, owner)
        self._schedule(timer, due_s)
        return timer

    def advance(self, timer: Timer, due_s: float) -> None:
        """Make a timer due at ``due_s`` at the latest."""
        if due_s < timer.due_s:
            self._schedule(timer, due_s)

    def cancel(self, timer: Timer) -> None:
        """Make a timer due never again; a second call does nothing."""
        if timer.work is None:
            return
        timer.work = timer.owner = None
        self._cancelled += 1
        if self._cancelled > len(self._due) // 2 + _SPARE_TIMERS:
            self._cancelled = 0
            self._due = [entry for entry in self._due if entry[2].work is not None]
            heapq.heapify(self._due)
            self._note_first()

    async def repeat(self, name: str, period_s: Callable[[], float], work: Callable[[], Awaitable[object]]) -> None:
        """Await ``work`` every ``period_s`` seconds until cancelled, first after one period.

        The duration of the work does not add to the period, which is asked for each time. A bug in it is logged with
        ``name``, and ends this time's work only.
        """
        bell = Bell()

        def ring(_: float) -> float:
            bell.ring()
            return NEVER

        at_s = trio.current_time() + period_s()
        timer = self.add(name, ring, at_s)
        try:
            while True:
                await bell.wait()
                with BUGS.contained(f"internal error in the periodic work '{name}'"):
                    await work()
                at_s = max(at_s + period_s(), trio.current_time())
                self.advance(timer, at_s)
        finally:
            self.cancel(timer)

    async def run(self, hub: Hub) -> None:
        """Do what is due, and write the output that this causes, until cancelled; raise what failed below trio."""
        while self._failure is None:
            if not self._is_below:
                hub.update_clock()
                self.do_due(trio.current_time())
                hub.flush()
            with trio.CancelScope(deadline=NEVER if self._is_below else self.due_s) as self._sleep:
                await trio.sleep_forever()
        raise self._failure

    @contextmanager
    def served_below(self) -> Iterator[None]:
        """Let the caller call ``do_due_below`` within the context, whenever ``due_s`` has come."""
        self._is_below = True
        self._sleep.deadline = NEVER
        try:
            yield
        finally:
            self._is_below = False
            self._sleep.deadline = self.due_s

    def do_due_below(self, now_s: float) -> None:
        """Do what is due, as below trio, where nothing may be raised: the task raises what is no bug of a timer."""
        try:
            self.do_due(now_s)
        except Exception as error:  # noqa: BLE001 - the task that serves the timers raises it
            self._failure = error
            self._sleep.cancel()

    def do_due(self, now_s: float) -> None:
        """Do what is due, each once.

        It is apart from ``run``, whose local variables would keep an ended connection alive while it sleeps.
        """
        ready: list[Timer] = []
        while self._due and self._due[0][0] <= now_s:
            due_s, _, timer = heapq.heappop(self._due)
            if timer.work is None:
                self._cancelled = max(0, self._cancelled - 1)
            elif timer.due_s == due_s:
                ready.append(timer)
        self._note_first()
        for timer in ready:
            if timer.work is not None:  # else an earlier one has cancelled it
                timer.due_s = NEVER
                self.advance(timer, self._do(timer, timer.work, now_s))

    def _do(self, timer: Timer, work: Work, now_s: float) -> float:
        """Do the work of a timer; return when it is due again."""
        try:
            return work(now_s)
        except Exception as error:  # noqa: BLE001 - a bug in one timer's work must not end the others
            if timer.owner is not None:
                timer.owner.drop_after_bug(error)
                return NEVER
            BUGS.report(f"internal error in the work '{timer.name}'", error)
            return now_s + AFTER_BUG_S

    def _schedule(self, timer: Timer, due_s: float) -> None:
        timer.due_s = due_s
        if due_s != NEVER:
            heapq.heappush(self._due, (due_s, next(self._numbers), timer))
            if due_s < self.due_s:
                self.due_s = due_s
                if not self._is_below:
                    self._sleep.deadline = due_s

    def _note_first(self) -> None:
        self.due_s = self._due[0][0] if self._due else NEVER


def every(name: str, period_s: Callable[[], float], work: Callable[[], object]) -> Work:
    """Return ``work`` as work that is due again ``period_s`` seconds after it was done, also if a bug ended it."""

    def do(now_s: float) -> float:
        with BUGS.contained(f"internal error in the periodic work '{name}'"):
            work()
        return now_s + period_s()

    return do
