"""The loop of a router's process: it serves sockets, and trio runs on it as a guest (decision 0034).

A task that waits for a socket costs a turn of trio's scheduler and three system calls, as much as the router's own work
for a small message. So sockets are served here, outside of trio, and trio goes on only when one of its tasks has
something to do. This is ``trio.lowlevel.start_guest_run``: trio asks for a call whenever it wants to go on. Without a
task that can run it sleeps: a thread of its own waits for its deadlines, threads and sockets, and has the call made.

A sleep costs two switches of threads. While sockets wake tasks, as for a login, the next one is woken soon, so trio is
kept awake until they have rested: one task, which does nothing, can then always run. A task that a deadline or a thread
wakes does not keep trio awake: those come every few milliseconds on a busy router, and nothing follows.
"""

from __future__ import annotations

import os
import select
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

import trio

if TYPE_CHECKING:
    from cython import int as c_int

#: Seconds between two calls of trio while it is awake and no task is known to have anything to do: so late at most are
#: its deadlines and what comes for it. They are also the shortest wait that epoll has.
LOOK_S: Final = 0.001
#: Seconds after the last work of a task until trio may sleep, if sockets are always ready meanwhile.
REST_S: Final = 0.005
#: The time for a round that waits for a socket as long as it takes.
_FOREVER_S: Final = -1.0

_LOOP: Final = trio.lowlevel.RunVar["HostLoop | None"]("the loop below trio", default=None)


class SocketServer(Protocol):
    """What serves the sockets."""

    def begin_pass(self) -> None:
        """Prepare the next pass of trio's tasks, of which it may wake some."""

    def serve_round(self, timeout_s: float) -> bool:
        """Wait for so many seconds at most, below 0 for ever; serve what is ready, and return whether anything was."""

    def serve_rounds(self) -> None:
        """Serve what is ready, for so long as tasks may wait for their turns."""


class HostLoop:
    """One run of trio, and the server of sockets that it shares its thread with."""

    __slots__ = (
        "_clock",
        "_calls",
        "_handed_over",
        "_unwrap",
        "bell",
        "share",
        "_server",
        "_serving",
        "_failure",
        "_has_work",
        "_in_trio",
        "_worked_s",
        "_awake",
        "_keeper",
        "_keeper_waits",
    )

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        #: What trio wants to be called here, in order; empty while it sleeps.
        self._calls: deque[Callable[[], object]] = deque()
        #: The same from its thread, which rings the bell after it: so all its calls of the system come before ours.
        self._handed_over: deque[Callable[[], object]] = deque()
        self._unwrap: Callable[[], Any] | None = None
        #: Rung by trio's thread; a descriptor to be watched by what serves the sockets, which calls ``on_readable``.
        self.bell: c_int = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        #: Nobody's: it only takes what trio's thread hands over.
        self.share: None = None
        self._server: SocketServer | None = None
        #: The task that is told when the serving fails, and the exception.
        self._serving: trio.lowlevel.Task | None = None
        self._failure: Exception | None = None
        #: A task has been woken since trio was last called.
        self._has_work = False
        #: Trio is at work: what is scheduled now was not woken by a socket.
        self._in_trio = False
        #: When sockets last woke tasks.
        self._worked_s = 0.0
        #: Trio is to be kept awake, by this task; and whether that waits.
        self._awake = False
        self._keeper: trio.lowlevel.Task | None = None
        self._keeper_waits = False

    @staticmethod
    def current() -> HostLoop | None:
        """Return the loop below this run of trio; None if trio runs by itself, or on another's loop."""
        return _LOOP.get()

    def run(self, async_fn: Callable[..., Awaitable[Any]], *args: object) -> Any:
        """Do as ``trio.run``; once for each loop. KeyboardInterrupt comes where the main task waits."""
        trio.lowlevel.start_guest_run(
            async_fn,
            *args,
            run_sync_soon_threadsafe=self._hand_over,
            run_sync_soon_not_threadsafe=self._calls.append,
            done_callback=self._end,
            instruments=[_Scheduled(self)],
            restrict_keyboard_interrupt_to_checkpoints=True,
        )
        _LOOP.set(self)
        self._keeper = trio.lowlevel.spawn_system_task(self._keep_awake)
        try:
            while self._unwrap is None:
                self._turn()
        finally:
            os.close(self.bell)
        return self._unwrap()

    # --- what trio calls

    def _hand_over(self, call: Callable[[], object]) -> None:
        """Have something called by the loop; any thread may call this."""
        self._handed_over.append(call)
        os.eventfd_write(self.bell, 1)

    def _end(self, outcome: Any) -> None:
        self._unwrap = outcome.unwrap

    def note_scheduled(self, task: trio.lowlevel.Task) -> None:
        """Note that a task can run, and keep trio awake if a socket has woken it."""
        if task is self._keeper:
            return
        self._has_work = True
        if self._in_trio:
            return
        self._awake = True
        if self._keeper_waits and self._keeper is not None:
            self._keeper_waits = False
            trio.lowlevel.reschedule(self._keeper)

    async def _keep_awake(self) -> None:
        """Be a task that can run, as long as trio is to be kept awake."""
        while True:
            if self._awake:
                await trio.lowlevel.checkpoint()
            else:
                self._keeper_waits = True
                await trio.lowlevel.wait_task_rescheduled(self._let_keeper_go)

    def _let_keeper_go(self, _: object) -> trio.lowlevel.Abort:
        self._keeper_waits = False
        return trio.lowlevel.Abort.SUCCEEDED

    # --- what serves the sockets

    @property
    def is_taken(self) -> bool:
        """True if something serves its sockets here."""
        return self._serving is not None

    async def serve(self, server: SocketServer) -> None:
        """Serve the sockets of ``server``, which watches ``bell`` as well, until cancelled; raise what it raises."""
        self._serving, self._server = trio.lowlevel.current_task(), server
        try:
            await trio.lowlevel.wait_task_rescheduled(lambda _: trio.lowlevel.Abort.SUCCEEDED)
        finally:
            self._serving = self._server = None
        if self._failure is not None:
            raise self._failure

    def on_readable(self) -> None:
        """Take what trio's thread has handed over."""
        try:
            os.eventfd_read(self.bell)
        except BlockingIOError:
            return
        while self._handed_over:
            self._calls.append(self._handed_over.popleft())

    def on_events(self, _: int) -> None:
        """Take what trio's thread has handed over."""
        self.on_readable()

    def drop_after_bug(self, error: Exception) -> None:
        """Raise what was a bug of this loop itself."""
        raise error

    # --- the loop

    def _turn(self) -> None:
        """Serve sockets until trio is to go on, and let it."""
        server = self._server
        if server is None:
            self._awake = False
            if not self._calls:
                self._wait_for_bell()
        else:
            try:
                self._serve_sockets(server)
            except Exception as error:  # noqa: BLE001 - the task that serves the sockets raises it
                self._fail(error)
        self._has_work = False
        self._in_trio = True
        try:
            for _ in range(len(self._calls)):
                self._calls.popleft()()
        finally:
            self._in_trio = False

    def _wait_for_bell(self) -> None:
        look = select.poll()
        look.register(self.bell, select.POLLIN)
        look.poll()
        self.on_readable()

    def _fail(self, error: Exception) -> None:
        """End the serving with ``error``: if it left the loop, it would end all tasks without their clean-up."""
        self._failure, self._server = error, None
        if self._serving is not None:
            trio.lowlevel.reschedule(self._serving)

    def _serve_sockets(self, server: SocketServer) -> None:
        server.begin_pass()
        if not self._calls:
            while not self._calls:
                server.serve_round(_FOREVER_S)
        elif self._has_work:
            self._worked_s = self._clock()
            server.serve_rounds()
        else:
            self._serve_while_tasks_rest(server)

    def _serve_while_tasks_rest(self, server: SocketServer) -> None:
        """Serve sockets until one wakes a task, or for ``LOOK_S``; let trio sleep if tasks have rested."""
        until_s: float = self._clock() + LOOK_S
        while not self._has_work:
            is_quiet: bool = not server.serve_round(LOOK_S)
            now_s: float = self._clock()
            if is_quiet or now_s - self._worked_s >= REST_S:
                self._awake = self._has_work
                return
            if now_s >= until_s:
                return


class _Scheduled(trio.abc.Instrument):
    """Tells a loop which tasks can run."""

    def __init__(self, loop: HostLoop) -> None:
        self.task_scheduled = loop.note_scheduled  # type: ignore[method-assign]
