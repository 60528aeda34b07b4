"""Which workers the parent takes for hung: those that are silent while it listens."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
import trio
from trio.testing import MockClock

from trouter.workers.calls import pair
from trouter.workers.process import HUNG_S, Lookout, Worker


@pytest.fixture
def worker() -> Iterator[Worker]:
    """A process that waits, and says nothing."""
    with ExitStack() as stack:
        process = stack.enter_context(subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE))
        stack.callback(process.kill)
        channel, theirs = pair()
        stack.callback(theirs.close)
        stack.callback(channel.close)
        made = Worker(1, process, channel, alive_at_s=0.0)
        made.ready.set()
        yield made


def _hung(worker: Worker, steps: list[float]) -> list[bool]:
    """Return after each step of time whether a worker that gives no sign of life is taken for hung."""

    async def look() -> list[bool]:
        clock = trio.lowlevel.current_clock()
        assert isinstance(clock, MockClock)
        worker.alive_at_s = trio.current_time()
        lookout = Lookout()
        found = []
        for step in steps:
            clock.jump(step)
            found.append(bool(lookout.hung_of([worker])))
        return found

    return trio.run(look, clock=MockClock())


def test_a_worker_that_is_silent_for_long_is_hung(worker: Worker) -> None:
    found = _hung(worker, [1.0] * (int(HUNG_S) + 1))
    assert found == [False] * int(HUNG_S) + [True]


def test_a_worker_is_not_hung_because_the_parent_stood_still(worker: Worker) -> None:
    found = _hung(worker, [1.0, 10 * HUNG_S, 1.0, *[1.0] * int(HUNG_S)])
    assert found == [False] * (len(found) - 1) + [True]


def test_a_worker_that_has_not_served_yet_is_not_hung(worker: Worker) -> None:
    worker.ready = trio.Event()
    assert not any(_hung(worker, [4.0] * 40))
