"""The readiness of sockets: one epoll for all connections, which is served by the loop below trio, or by one task.

A task per socket would cost a scheduler's turn and a system call for each read. Here one round serves every ready
socket: all are read and processed, then each connection's output is written once (decision 0003). Tasks have their
turns between rounds (decision 0034). A round has its time; sockets that are too late for it come in the
next one, those of users who have taken least of the processor first (decision 0033). Linux only, like epoll.
"""

from __future__ import annotations

import logging
import select
import socket
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

import trio

from .host_loop import HostLoop
from .hub import Hub
from .shares import FairQueue, ProcessorShare, Shares
from .timers import NEVER, TimerQueue
from .turns import TaskTurns
from .waits import SocketWait

if TYPE_CHECKING:
    from cython import Py_ssize_t
    from cython import int as c_int

#: Sockets served before the output is written, and seconds after which no further one is served before that.
SOCKETS_PER_ROUND: Final = 64
ROUND_S: Final = 0.002
#: Rounds in a row while tasks wait for their turn, and seconds after which there is no further one.
ROUNDS_IN_A_ROW: Final = 4
ROUNDS_S: Final = 0.002

READABLE: Final = select.EPOLLIN
WRITABLE: Final = select.EPOLLOUT
#: The peer will send no more; earlier bytes may still wait to be read.
HUNG_UP: Final = select.EPOLLRDHUP
#: The peer will not read any more, either; epoll says so unasked.
GONE: Final = select.EPOLLHUP

log = logging.getLogger("trouter.SERVER")


class SocketReader(Protocol):
    """The object that is called when its socket is ready."""

    @property
    def share(self) -> ProcessorShare | None:
        """Return whose work it does; None for what costs next to nothing and never waits."""

    def on_readable(self) -> None:
        """Read once and process the input; must not block."""

    def on_events(self, events: int) -> None:
        """Do what any other combination of epoll's events asks for; must not block."""

    def drop_after_bug(self, error: Exception) -> None:
        """End this reader only: one of its methods raised, which is a bug of ours."""


class Poller:
    """The readers of all sockets."""

    __slots__ = ("_hub", "_clock", "_epoll", "_readers", "shares", "turns", "_late", "_timers", "_serves_timers")

    def __init__(self, hub: Hub, timers: TimerQueue, clock: Callable[[], float] = time.perf_counter) -> None:
        """``timers`` are served between the rounds where the sockets are served below trio."""
        self._hub = hub
        self._clock = clock
        self._epoll: select.epoll = select.epoll()
        self._readers: dict[int, SocketReader] = {}
        self.shares = Shares()
        self.turns: TaskTurns = TaskTurns(self.shares, clock)
        #: Descriptors that were ready, or have more to do, and are served in a later round, with epoll's events.
        self._late = FairQueue(self.shares)
        self._timers = timers
        self._serves_timers = False

    # --- who waits for what

    def watch(self, sock: socket.socket, reader: SocketReader, events: c_int) -> None:
        """Call ``reader`` whenever one of ``events`` is true of ``sock``; 0, before the socket is closed, for never."""
        number = sock.fileno()
        if self._late.count:
            self._late.discard(number)  # what was ready is no longer true of what is watched now
        if self._epoll.closed:  # the process ends
            self._readers.pop(number, None)
        elif not events:
            if self._readers.pop(number, None) is not None:
                self._epoll.unregister(number)
        elif number in self._readers:
            self._epoll.modify(number, events)
        else:
            self._readers[number] = reader
            self._epoll.register(number, events)

    def serve_again(self, sock: socket.socket) -> None:
        """Call the reader of ``sock`` again, as if it were readable, after the others that are ready."""
        number = sock.fileno()
        reader = self._readers.get(number)
        if reader is not None and reader.share is not None:
            self._late.add(reader.share, number, READABLE)

    async def wait_readable(self, sock: socket.socket) -> None:
        """Wait until ``sock``, which is not watched, is readable."""
        await SocketWait(sock, self.watch).wait(READABLE)

    async def wait_writable(self, sock: socket.socket) -> None:
        """Wait until ``sock``, which is not watched, takes more."""
        await SocketWait(sock, self.watch).wait(WRITABLE)

    # --- the two ways to be served

    async def run(self) -> None:
        """Wait for sockets and call their readers until cancelled; a bug in this class itself is raised."""
        loop = HostLoop.current()
        try:
            if loop is None or loop.is_taken:
                await self._run_as_task()
            else:
                await self._run_below_trio(loop)
        finally:
            self._epoll.close()

    async def _run_below_trio(self, loop: HostLoop) -> None:
        """Serve the sockets outside of trio."""
        self._readers[loop.bell] = loop
        self._epoll.register(loop.bell, READABLE)
        try:
            with self._timers.served_below():
                self._serves_timers = True
                await loop.serve(self)
        finally:
            self._serves_timers = False
            self.turns.stop_counting()

    async def _run_as_task(self) -> None:
        """Serve the sockets in turn with all other tasks."""
        while True:
            if self._late.count:
                await trio.lowlevel.checkpoint()
            else:
                await trio.lowlevel.wait_readable(self._epoll.fileno())
            self.serve_rounds()

    # --- the rounds

    def begin_pass(self) -> None:
        """Let the next tasks that wait for their turns have them."""
        self.turns.begin_pass()

    def serve_rounds(self) -> None:
        """Serve the sockets that are ready, in a few rounds: tasks do not wait for long."""
        began_s: float = self._clock()
        for _ in range(ROUNDS_IN_A_ROW):
            if not self.serve_round(0.0) or self._clock() - began_s >= ROUNDS_S:
                return

    def serve_round(self, timeout_s: float) -> bool:
        """Wait for so many seconds at most, below 0 for ever; serve what is ready, and return whether anything was."""
        late: Py_ssize_t = self._late.count
        due_s: float = NEVER
        if late:
            timeout_s = 0.0
        elif self._serves_timers:
            due_s = self._timers.due_s
            timeout_s = _wait_until(due_s, timeout_s)
        ready = self._epoll.poll(timeout_s, SOCKETS_PER_ROUND)
        if ready or late:
            self._hub.update_clock()
            self._serve_sockets(ready, late)
        elif due_s == NEVER or trio.current_time() < due_s:
            return False
        else:
            self._hub.update_clock()
        if self._serves_timers:
            self._serve_timers()
        self._hub.flush()
        return True

    def _serve_timers(self) -> None:
        """Do what is due."""
        now_s: float = self._hub.router.shared.now_s
        if self._timers.due_s <= now_s:
            self._timers.do_due_below(now_s)

    def _serve_sockets(self, ready: list[tuple[int, int]], late: Py_ssize_t) -> None:
        """Serve what is ready, and what was so in earlier rounds."""
        if not late and len(ready) == 1:
            events: c_int
            number: c_int
            number, events = ready[0]
            self._call_reader(number, events)
        else:
            self._serve_in_time(ready)

    def _call_reader(self, number: c_int, events: c_int) -> None:
        reader = self._readers.get(number)
        if reader is None:
            return  # an earlier reader of this round ended it
        try:
            if events == READABLE:
                reader.on_readable()
            else:
                reader.on_events(events)
        except Exception as error:  # noqa: BLE001 - a bug in one connection's path must not end the others
            reader.drop_after_bug(error)

    def _serve_in_time(self, ready: list[tuple[int, int]]) -> None:
        """Serve sockets until the time of a round is up, the others later; return whether there was time for all.

        While none is late, they come as epoll has them: there is time for all, or almost. Else all wait together, and
        the share that has taken least is next.
        """
        late: FairQueue = self._late
        clock = self._clock
        began_s: float = clock()
        now_s: float = began_s
        position: Py_ssize_t = 0
        if late.count == 0:
            while position < len(ready) and now_s - began_s < ROUND_S:
                events: c_int
                number: c_int
                number, events = ready[position]
                position += 1
                now_s = self._serve_and_charge(number, events, now_s)
        self._postpone(ready[position:])
        if position == 0:
            while late.count and now_s - began_s < ROUND_S:
                number, events = late.pop()
                now_s = self._serve_and_charge(number, events, now_s)

    def _serve_and_charge(self, number: c_int, events: c_int, began_s: float) -> float:
        """Call a reader and charge its share with the time since ``began_s``; return the time."""
        reader = self._readers.get(number)
        share: ProcessorShare | None = None if reader is None else reader.share  # it may be another one afterwards
        self._call_reader(number, events)
        now_s: float = self._clock()
        if share is not None:
            share.charge(now_s - began_s)
        return now_s

    def _postpone(self, ready: list[tuple[int, int]]) -> None:
        """Let sockets wait for the next round, except those that never wait."""
        events: c_int
        number: c_int
        for number, events in ready:
            reader = self._readers.get(number)
            if reader is not None:
                share: ProcessorShare | None = reader.share
                if share is None:
                    self._call_reader(number, events)
                else:
                    self._late.add(share, number, events)


def _wait_until(due_s: float, most_s: float) -> float:
    """Return the seconds until a time, but at most ``most_s``, of which those below 0 are for ever."""
    if due_s == NEVER or most_s == 0.0:
        return most_s
    wait_s: float = max(0.0, due_s - trio.current_time())
    return wait_s if most_s < 0.0 or wait_s < most_s else most_s
