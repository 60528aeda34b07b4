"""Sockets are served below trio, or by a task of it, and its other tasks lose nothing by it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.routers import DEADLINE_S
from tests.ways import below_trio, in_both_ways
from trouter.core.router import Router
from trouter.net.host_loop import HostLoop
from trouter.net.hub import Hub
from trouter.net.poller import READABLE, Poller
from trouter.net.timers import NEVER, TimerQueue


class Reader:
    """Counts the octets that come to a socket, and does something for each."""

    def __init__(self, poller: Poller, do: Callable[[], object] = lambda: None) -> None:
        self.sock, self.peer = socket.socketpair()
        self.sock.setblocking(False)
        self.octets = 0
        self.share = poller.shares.join(self.peer)
        self._do = do
        self._poller = poller
        poller.watch(self.sock, self, READABLE)

    def on_readable(self) -> None:
        self.octets += len(self.sock.recv(1))
        self._do()

    def on_events(self, _: int) -> None:
        self.on_readable()

    def drop_after_bug(self, error: Exception) -> None:
        raise error

    def close(self) -> None:
        self._poller.watch(self.sock, self, 0)
        self.sock.close()
        self.peer.close()


@asynccontextmanager
async def serving(timers: TimerQueue | None = None) -> AsyncIterator[Poller]:
    """Run a poller during the block."""
    poller = Poller(Hub(Router("A")), timers or TimerQueue())
    with trio.fail_after(DEADLINE_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(poller.run)
            await wait_all_tasks_blocked()
            yield poller
            nursery.cancel_scope.cancel()


@in_both_ways
async def test_a_task_that_a_reader_wakes_has_its_turn_at_once() -> None:
    async with serving() as poller:
        woken = trio.Event()
        reader = Reader(poller, woken.set)
        reader.peer.send(b"1")
        await woken.wait()
        assert reader.octets == 1
        reader.close()


@in_both_ways
async def test_a_reader_wakes_a_task_after_each_sleep_of_trio() -> None:
    async with serving() as poller:
        for _ in range(3):
            woken = trio.Event()
            reader = Reader(poller, woken.set)
            await wait_all_tasks_blocked(0.02)
            reader.peer.send(b"1")
            await woken.wait()
            reader.close()


@in_both_ways
async def test_tasks_and_sockets_have_turns_while_both_always_have_something_to_do() -> None:
    async with serving() as poller:
        reader = Reader(poller, lambda: reader.peer.send(b"n"))
        reader.peer.send(b"1")
        for _ in range(100):
            await trio.lowlevel.checkpoint()
        before = reader.octets
        for _ in range(100):
            await trio.lowlevel.checkpoint()
        assert 50 <= reader.octets - before <= 800
        with trio.move_on_after(0.01):
            await trio.sleep_forever()
        reader.close()


@pytest.mark.parametrize("in_s", [0.01, 0.0, -0.01])
@in_both_ways
async def test_a_deadline_that_a_reader_sets_is_kept(in_s: float) -> None:
    async with serving() as poller:
        with trio.CancelScope() as scope:
            reader = Reader(poller, lambda: setattr(scope, "deadline", trio.current_time() + in_s))
            reader.peer.send(b"1")
            await trio.sleep_forever()
        assert scope.cancelled_caught
        reader.close()


@in_both_ways
async def test_a_thread_and_a_socket_of_trios_wake_their_tasks() -> None:
    async with serving() as poller:
        served = trio.Event()
        reader = Reader(poller, served.set)
        ours, theirs = socket.socketpair()
        with ours, theirs:

            def send_from_thread() -> None:
                trio.from_thread.run_sync(reader.peer.send, b"1")
                theirs.send(b"1")

            async with trio.open_nursery() as nursery:
                nursery.start_soon(trio.to_thread.run_sync, send_from_thread)
                await trio.lowlevel.wait_readable(ours)
        await served.wait()
        reader.close()


@in_both_ways
async def test_a_task_waits_for_a_socket_by_the_poller() -> None:
    async with serving() as poller:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with ours, theirs:
            await poller.wait_writable(ours)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(poller.wait_readable, ours)
                await wait_all_tasks_blocked()
                theirs.send(b"1")
            assert ours.recv(2) == b"1"
            theirs.close()
            await poller.wait_readable(ours)
            assert ours.recv(1) == b""


@in_both_ways
async def test_a_wait_for_a_socket_that_is_cancelled_wakes_nobody_later() -> None:
    async with serving() as poller:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            with trio.move_on_after(0.0):
                await poller.wait_readable(ours)
            woken = trio.Event()
            reader = Reader(poller, woken.set)
            theirs.send(b"1")
            reader.peer.send(b"1")
            await woken.wait()
            assert woken.is_set()
            reader.close()


class Passes(trio.abc.Instrument):
    """Counts the passes of trio."""

    def __init__(self) -> None:
        self.count = 0

    def after_io_wait(self, _: float) -> None:
        self.count += 1


async def rest() -> int:
    """Do nothing until a deadline; return how often trio looked for something to do."""
    passes = Passes()
    trio.lowlevel.add_instrument(passes)
    with trio.move_on_after(0.1):
        await trio.sleep_forever()
    trio.lowlevel.remove_instrument(passes)
    return passes.count


@pytest.mark.parametrize("with_sockets", [True, False])
@below_trio
async def test_trio_sleeps_while_its_tasks_rest(with_sockets: bool) -> None:
    if with_sockets:
        async with serving():
            assert await rest() < 50
    else:
        assert await rest() < 50


class Waits(trio.abc.Instrument):
    """Notes how long trio means to wait each time."""

    def __init__(self) -> None:
        self.timeouts_s: list[float] = []

    def before_io_wait(self, timeout: float) -> None:
        self.timeouts_s.append(timeout)


@below_trio
async def test_a_task_that_a_deadline_wakes_does_not_keep_trio_awake() -> None:
    async with serving() as poller:
        await wait_all_tasks_blocked(0.02)
        with trio.move_on_after(0.01):
            await trio.sleep_forever()
        waits, woken = Waits(), trio.Event()
        trio.lowlevel.add_instrument(waits)
        reader = Reader(poller, woken.set)
        reader.peer.send(b"1")
        await woken.wait()
        trio.lowlevel.remove_instrument(waits)
        assert waits.timeouts_s[0] > 0.0
        reader.close()


async def test_a_test_waits_until_the_sockets_are_served() -> None:
    async with serving() as poller:
        reader = Reader(poller, lambda: reader.octets < 100 and reader.peer.send(b"n"))
        reader.peer.send(b"1")
        await wait_all_tasks_blocked()
        assert reader.octets == 100
        reader.close()


@in_both_ways
async def test_a_second_poller_is_served_beside_the_first() -> None:
    async with serving() as first, serving() as second:
        for poller in first, second:
            woken = trio.Event()
            reader = Reader(poller, woken.set)
            reader.peer.send(b"1")
            await woken.wait()
            reader.close()


@below_trio
async def test_the_loop_is_free_again_for_the_next_poller() -> None:
    loop = HostLoop.current()
    assert loop is not None
    taken = []
    for _ in range(2):
        taken.append(loop.is_taken)
        async with serving() as poller:
            taken.append(loop.is_taken)
            woken = trio.Event()
            reader = Reader(poller, woken.set)
            reader.peer.send(b"1")
            await woken.wait()
            reader.close()
    assert taken == [False, True, False, True]


async def test_trio_by_itself_has_no_such_loop() -> None:
    assert HostLoop.current() is None


@asynccontextmanager
async def timing(queue: TimerQueue) -> AsyncIterator[None]:
    """Run a queue of timers during the block."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(queue.run, Hub(Router("A")))
        yield
        nursery.cancel_scope.cancel()


@below_trio
async def test_timers_are_served_without_a_pass_of_trio() -> None:
    queue, passes, ended = TimerQueue(), Passes(), trio.Event()
    passes_when_done: list[int] = []

    def work(now_s: float) -> float:
        passes_when_done.append(passes.count)
        if len(passes_when_done) < 5:
            return now_s + 0.001
        ended.set()
        return NEVER

    async with serving(queue), timing(queue):
        await wait_all_tasks_blocked(0.02)
        trio.lowlevel.add_instrument(passes)
        queue.add("work", work, trio.current_time() + 0.01)
        await ended.wait()
        trio.lowlevel.remove_instrument(passes)
    assert passes_when_done == [passes_when_done[0]] * 5


@in_both_ways
async def test_a_timer_is_due_while_a_socket_is_always_ready() -> None:
    queue, done = TimerQueue(), trio.Event()

    def work(_: float) -> float:
        done.set()
        return NEVER

    async with serving(queue) as poller, timing(queue):
        reader = Reader(poller, lambda: reader.peer.send(b"n"))
        reader.peer.send(b"1")
        queue.add("work", work, trio.current_time() + 0.01)
        await done.wait()
        reader.close()


@in_both_ways
async def test_the_timers_are_served_before_the_poller_runs_and_after_it() -> None:
    queue = TimerQueue()

    def begin(due_in_s: float) -> trio.Event:
        done = trio.Event()

        def work(_: float) -> float:
            done.set()
            return NEVER

        queue.add("work", work, trio.current_time() + due_in_s)
        return done

    with trio.fail_after(DEADLINE_S):
        async with timing(queue):
            await begin(0.01).wait()
            async with serving(queue):
                await begin(0.01).wait()
                later = begin(0.05)
            await later.wait()
            await begin(0.0).wait()


class Bug(Exception):
    """What a bug raises."""


class BrokenServer:
    """Its rounds have a bug, from the first one that waits for sockets on."""

    def begin_pass(self) -> None:
        """Wake no task."""

    def serve_round(self, timeout_s: float) -> bool:
        raise Bug

    def serve_rounds(self) -> None:
        """Serve nothing."""


@below_trio
async def test_a_bug_in_serving_is_raised_by_the_task_that_serves_and_trio_goes_on() -> None:
    loop = HostLoop.current()
    assert loop is not None
    with trio.fail_after(DEADLINE_S):
        try:
            await loop.serve(BrokenServer())
        except Bug:
            await trio.to_thread.run_sync(os.getpid)
        else:
            raise AssertionError
    assert not loop.is_taken


def test_a_run_returns_and_raises_what_its_task_does() -> None:
    async def give(value: int) -> int:
        await trio.sleep(0.01)
        return value

    async def fail() -> None:
        raise Bug

    assert HostLoop().run(give, 7) == 7
    with pytest.raises(Bug):
        HostLoop().run(fail)


INTERRUPTED = """
import trio
from trouter.net.host_loop import HostLoop
from trouter.net.hub import Hub
from trouter.net.poller import Poller
from trouter.net.timers import TimerQueue
from trouter.core.router import Router

async def main():
    async with trio.open_nursery() as nursery:
        {serving}
        print("ready", flush=True)
        try:
            await trio.sleep_forever()
        finally:
            print("cleaned up", flush=True)

try:
    HostLoop().run(main)
except* KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize("serving", ["nursery.start_soon(Poller(Hub(Router('A')), TimerQueue()).run)", ""])
def test_an_interrupt_ends_the_run_with_its_clean_up(serving: str) -> None:
    program = [sys.executable, "-c", INTERRUPTED.format(serving=serving)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=DEADLINE_S)[0] == "cleaned up\ninterrupted\n"
    assert process.returncode == 0
