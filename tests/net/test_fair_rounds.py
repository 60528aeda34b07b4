"""Rounds of sockets have their time, and what is too late comes in the order of shares."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from trouter.core.router import Router
from trouter.net.hub import Hub
from trouter.net.poller import READABLE, ROUND_S, Poller
from trouter.net.shares import ProcessorShare
from trouter.net.timers import TimerQueue

HEAVY_S = ROUND_S
LIGHT_S = ROUND_S / 1000


class Sockets:
    """A poller whose clock goes on by what its readers cost."""

    def __init__(self, stack: ExitStack) -> None:
        self.now_s = 0.0
        self.poller = Poller(Hub(Router("A")), TimerQueue(), lambda: self.now_s)
        #: Whose sockets were served, in order.
        self.served: list[str] = []
        self._stack = stack

    def open(self, user: str, cost_s: float, count: int = 1) -> list[Reader]:
        """Return readers of a user whose sockets are always ready."""
        share = self.poller.shares.join(user)
        return [Reader(self, user, share, cost_s, self._stack) for _ in range(count)]

    async def serve(self, turns: int) -> list[str]:
        """Return whose sockets were served while another task had so many turns."""
        before = len(self.served)
        for _ in range(turns):
            await trio.lowlevel.checkpoint()
        return self.served[before:]


class Reader:
    """The reader of a socket that is ready until it is closed."""

    def __init__(self, sockets: Sockets, user: str, share: ProcessorShare, cost_s: float, stack: ExitStack) -> None:
        self.share = share
        #: How often it was called; how often it is called again without its socket.
        self.served = 0
        self.rests = 0
        self._sockets = sockets
        self._user = user
        self._cost_s = cost_s
        self.sock, peer = socket.socketpair()
        stack.enter_context(peer)
        stack.enter_context(self.sock)
        peer.send(b"1")
        self.watch(READABLE)
        stack.callback(self.watch, 0)

    def watch(self, events: int) -> None:
        self._sockets.poller.watch(self.sock, self, events)

    def on_readable(self) -> None:
        self._sockets.now_s += self._cost_s
        self._sockets.served.append(self._user)
        self.served += 1
        if self.rests:
            self.rests -= 1
            self._sockets.poller.serve_again(self.sock)

    def on_events(self, _: int) -> None:
        raise AssertionError

    def drop_after_bug(self, error: Exception) -> None:
        raise error


@pytest.fixture
def sockets() -> Iterator[Sockets]:
    with ExitStack() as stack:
        yield Sockets(stack)


async def test_between_two_turns_of_a_task_few_sockets_that_cost_much_are_served(
    sockets: Sockets, nursery: trio.Nursery
) -> None:
    sockets.open("alice", HEAVY_S, 64)
    nursery.start_soon(sockets.poller.run)
    await sockets.serve(5)
    assert len(await sockets.serve(20)) <= 2 * 20
    nursery.cancel_scope.cancel()


async def test_all_sockets_of_one_user_have_their_turn(sockets: Sockets, nursery: trio.Nursery) -> None:
    readers = sockets.open("alice", HEAVY_S, 100)
    nursery.start_soon(sockets.poller.run)
    await sockets.serve(300)
    assert min(reader.served for reader in readers) > 0
    nursery.cancel_scope.cancel()


async def test_a_neighbour_is_served_in_each_round_beside_64_sockets_that_cost_much(
    sockets: Sockets, nursery: trio.Nursery
) -> None:
    sockets.open("alice", HEAVY_S, 64)
    sockets.open("bob", LIGHT_S)
    nursery.start_soon(sockets.poller.run)
    await sockets.serve(10)
    served = await sockets.serve(50)
    longest = max(len(run) for run in "".join(name[0] for name in served).split("b"))
    assert longest <= 2  # of alice's, between two of bob's
    nursery.cancel_scope.cancel()


async def test_two_users_who_want_more_than_there_is_get_the_same(sockets: Sockets, nursery: trio.Nursery) -> None:
    sockets.open("alice", HEAVY_S, 64)
    sockets.open("bob", HEAVY_S)
    nursery.start_soon(sockets.poller.run)
    served = await sockets.serve(100)
    assert abs(served.count("alice") - served.count("bob")) <= 5
    nursery.cancel_scope.cancel()


async def test_a_reader_with_a_rest_is_called_again_though_nothing_comes(
    sockets: Sockets, nursery: trio.Nursery
) -> None:
    (reader,) = sockets.open("alice", LIGHT_S)
    reader.sock.recv(1)
    reader.rests = 7
    sockets.poller.serve_again(reader.sock)
    nursery.start_soon(sockets.poller.run)
    await wait_all_tasks_blocked()
    assert len(sockets.served) == 8
    nursery.cancel_scope.cancel()


async def test_a_socket_that_is_watched_no_more_is_not_served(sockets: Sockets, nursery: trio.Nursery) -> None:
    alices, (bob,) = sockets.open("alice", HEAVY_S, 8), sockets.open("bob", LIGHT_S)
    nursery.start_soon(sockets.poller.run)
    await sockets.serve(5)
    sockets.poller.serve_again(bob.sock)
    bob.watch(0)
    sockets.poller.serve_again(bob.sock)
    for reader in alices:
        reader.watch(0)
    assert await sockets.serve(5) == []
    await wait_all_tasks_blocked()
    nursery.cancel_scope.cancel()
