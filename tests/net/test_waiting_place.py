"""Sockets are served where trio waits, and trio's tasks lose nothing by it."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.routers import DEADLINE_S
from trouter.core.router import Router
from trouter.net.hub import Hub
from trouter.net.poller import READABLE, Poller
from trouter.net.waiting_place import WaitingPlace


class Reader:
    """Counts the octets that come to a socket, and does something for each."""

    def __init__(self, poller: Poller, do: Callable[[], object] = lambda: None) -> None:
        self.sock, self.peer = socket.socketpair()
        self.sock.setblocking(False)
        self.octets = 0
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


def new_poller() -> Poller:
    return Poller(Hub(Router("A")))


def io_manager() -> Any:
    return trio._core._run.GLOBAL_RUN_CONTEXT.runner.io_manager


@asynccontextmanager
async def running(poller: Poller) -> AsyncIterator[Poller]:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(poller.run)
        await wait_all_tasks_blocked()
        yield poller
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def serving(way: str) -> AsyncIterator[Poller]:
    """Run a poller that has the place where trio waits, or one that came second and is a task."""
    with trio.fail_after(DEADLINE_S):
        async with running(new_poller()) as first:
            if way == "where trio waits":
                yield first
            else:
                async with running(new_poller()) as second:
                    yield second


ways = pytest.mark.parametrize("way", ["where trio waits", "as a task"])


@ways
async def test_a_task_that_a_reader_wakes_has_its_turn_at_once(way: str) -> None:
    async with serving(way) as poller:
        woken = trio.Event()
        reader = Reader(poller, woken.set)
        reader.peer.send(b"1")
        await woken.wait()
        assert reader.octets == 1
        reader.close()


@ways
async def test_tasks_and_sockets_have_turns_while_both_always_have_something_to_do(way: str) -> None:
    async with serving(way) as poller:
        reader = Reader(poller, lambda: reader.peer.send(b"n"))
        reader.peer.send(b"1")
        for _ in range(100):
            await trio.lowlevel.checkpoint()
        before = reader.octets
        for _ in range(100):
            await trio.lowlevel.checkpoint()
        assert 100 <= reader.octets - before <= 800
        with trio.move_on_after(0.01):
            await trio.sleep_forever()
        reader.close()


@pytest.mark.parametrize("in_s", [0.01, 0.0, -0.01])
@ways
async def test_a_deadline_that_a_reader_sets_is_kept(way: str, in_s: float) -> None:
    """Also one that is over when the reader returns: epoll would wait for ever for a time below 0."""
    async with serving(way) as poller:
        with trio.CancelScope() as scope:
            reader = Reader(poller, lambda: setattr(scope, "deadline", trio.current_time() + in_s))
            reader.peer.send(b"1")
            await trio.sleep_forever()
        assert scope.cancelled_caught
        reader.close()


@ways
async def test_a_thread_and_a_socket_of_trios_wake_their_tasks(way: str) -> None:
    async with serving(way) as poller:
        reader = Reader(poller)
        ours, theirs = socket.socketpair()
        with ours, theirs:

            def send_from_thread() -> None:
                trio.from_thread.run_sync(reader.peer.send, b"1")
                theirs.send(b"1")

            async with trio.open_nursery() as nursery:
                nursery.start_soon(trio.to_thread.run_sync, send_from_thread)
                await trio.lowlevel.wait_readable(ours)
        await wait_all_tasks_blocked()
        assert reader.octets == 1
        reader.close()


@ways
async def test_a_test_waits_until_the_sockets_are_served(way: str) -> None:
    async with serving(way) as poller:
        reader = Reader(poller, lambda: reader.octets < 100 and reader.peer.send(b"n"))
        reader.peer.send(b"1")
        await wait_all_tasks_blocked()
        assert reader.octets == 100
        reader.close()


@ways
async def test_the_clock_of_a_test_jumps_when_the_sockets_are_served(way: str, autojump_clock: MockClock) -> None:
    async with serving(way) as poller:
        reader = Reader(poller, lambda: reader.octets < 100 and reader.peer.send(b"n"))
        reader.peer.send(b"1")
        await trio.sleep(1.0)
        assert reader.octets == 100
        reader.close()


async def test_the_place_is_given_back_and_is_there_for_the_next() -> None:
    trios = io_manager()
    for _ in range(2):
        async with running(new_poller()):
            taken = io_manager()
            assert taken is not trios
            async with running(new_poller()):
                assert io_manager() is taken
        assert io_manager() is trios


async def test_trio_shows_its_place() -> None:
    """If this fails with a new version of trio, routers still work, but each wait for a message costs more."""
    assert WaitingPlace.find(lambda _: False) is not None
