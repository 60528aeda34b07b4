"""The place where trio waits, taken by what serves the sockets of all connections (decision 0031).

A task that waits for a socket costs a turn of trio's scheduler and three system calls, as much as the router's own work
for a small message. So the sockets are served where trio itself waits. While no task has anything to do, that is until
trio's next deadline, or until trio's epoll, which is watched beside the sockets, has something for a task. While tasks
have something to do, their turns and rounds of sockets alternate.

Trio has no call for that: this replaces the object by which it waits, and is the one place that reads what trio keeps
to itself. Where a version of trio keeps it elsewhere, the sockets are served by a task.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import trio

#: Rounds of sockets in a row while other tasks wait for their turn.
ROUNDS_IN_A_ROW: Final = 4

_TAKEN: Final = trio.lowlevel.RunVar[bool]("the place where trio waits", default=False)


class WaitingPlace:
    """Trio's object for waiting, which serves sockets as well; and the reader of trio's own epoll."""

    def __init__(self, runner: Any, serve_round: Callable[[float], bool]) -> None:
        """``serve_round`` waits for so many seconds at most, and returns whether a socket was ready."""
        self._runner = runner
        self._serve_round = serve_round
        self._own = runner.io_manager
        #: Whether trio's epoll has something for a task.
        self._woken = False
        #: The descriptor of trio's epoll.
        self.descriptor: int = self._own._epoll.fileno()
        _ = runner.runq, runner.deadlines.next_deadline, runner.clock.deadline_to_sleep_time

    @staticmethod
    def find(serve_round: Callable[[float], bool]) -> WaitingPlace | None:
        """Return the place of this run of trio; None if it is taken, or not where it is known to be."""
        if _TAKEN.get():
            return None
        try:
            runner: Any = trio._core._run.GLOBAL_RUN_CONTEXT.runner
            return None if runner.is_guest else WaitingPlace(runner, serve_round)
        except AttributeError:
            return None

    def take(self) -> None:
        """Have trio wait here."""
        self._runner.io_manager = self
        _TAKEN.set(True)

    def give_back(self) -> None:
        """Have trio wait as it does by itself."""
        self._runner.io_manager = self._own
        _TAKEN.set(False)

    def get_events(self, timeout: float) -> Any:
        """Serve sockets until a task has something to do; return trio's events.

        ``timeout`` is in seconds, and 0 while tasks have something to do. It begins again after each round of sockets,
        as for a test that waits until nothing happens any more, but ends with the next deadline.
        """
        left_s, rounds = timeout, 1
        while self._serve_round(left_s) and not self._woken and rounds < ROUNDS_IN_A_ROW:
            others_s = self._until_others_s()
            if others_s == 0.0:
                rounds += 1
            left_s = min(timeout, others_s)
        if not self._woken:
            return []
        self._woken = False
        return self._own.get_events(0)

    def _until_others_s(self) -> float:
        """Return the seconds until a task has something to do, 0 if one has it now; epoll takes no less."""
        runner = self._runner
        if runner.runq:
            return 0.0
        return max(0.0, float(runner.clock.deadline_to_sleep_time(runner.deadlines.next_deadline())))

    def __getattr__(self, name: str) -> Any:
        """Do all else as trio does."""
        return getattr(self._own, name)

    def on_readable(self) -> None:
        """Note that trio has something for a task."""
        self._woken = True

    def on_events(self, _: int) -> None:
        """Note that trio has something for a task."""
        self._woken = True

    def drop_after_bug(self, error: Exception) -> None:
        """Never called: the others raise nothing."""
        raise error
