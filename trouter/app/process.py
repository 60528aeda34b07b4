"""The router as a process: its services in one nursery, signals, and a clean stop."""

from __future__ import annotations

import gc
import logging
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final

import trio

import trouter
from trouter import logs
from trouter._bell import Bell
from trouter._bugs import BUGS
from trouter.config import ChangeRefused, Configuration
from trouter.connections.listeners import Standing
from trouter.core.edge.protocol import HEARTBEAT
from trouter.hooks import Plugins
from trouter.management.agent import Agent
from trouter.net.host_loop import HostLoop
from trouter.net.hub import Hub
from trouter.net.parts import Change
from trouter.net.poller import Poller
from trouter.net.reach import Reach, SingleProcess
from trouter.net.sockets import ListenError
from trouter.net.timers import TimerQueue
from trouter.telemetry.observers import Observers
from trouter.wire.performatives import Error

from .periodic import periodic_work, start
from .privileges import PrivilegeError, forbid_core_files
from .python_log import python_logged
from .supervision import Supervisor
from .wiring import assemble

if TYPE_CHECKING:
    from .site import RouterSite

#: Seconds between two checks of a draining router whether unsettled deliveries are left.
DRAIN_LOOK_S: Final = 0.05
#: Seconds for all peers to read the last output when the router stops; with the work before and after them less than 2.
FAREWELL_S: Final = 1.5
#: The signals that the process handles while it routes.
HANDLED: Final = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGUSR1})

log = logging.getLogger("trouter.SERVER")
router_log = logging.getLogger("trouter.ROUTER")
main_log = logging.getLogger("trouter.MAIN")


def run(
    configuration: Configuration,
    plugins: Plugins,
    read: Callable[[], Configuration] | None = None,
    ready: Callable[[], None] | None = None,
    ended: Callable[[], None] | None = None,
    bound: Callable[[], None] | None = None,
    reach: Reach | None = None,
) -> int:
    """Route until a signal stops the router; return the exit status. INT ends the process by INT after a clean stop.

    A bug in a service without which the router cannot go on stops it in the same way, with the status ``EX_SOFTWARE``.

    ``read`` returns the configuration for a reload. ``bound`` is called once every socket is bound and before any
    client is served; it may raise PrivilegeError. ``ready`` is called once every listener is open, ``ended`` at the
    end, also if INT ends the process.
    """
    forbid_core_files()
    # Unsettled deliveries come and go by the thousand and are freed by their count; the collector's default
    # threshold would look through them again and again.
    gc.set_threshold(50_000, 20, 100)
    process = RouterProcess(configuration, plugins, read, ready, bound, reach=reach)
    # Blocked in every later thread and until the end: one task takes the signals one at a time, so that they interrupt
    # no other code.
    signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED)
    try:
        with python_logged():
            HostLoop().run(process.run_with_signals)
    except (ListenError, PrivilegeError) as error:
        for line in error.lines:
            logs.why_it_ends(f"Router start-up failed: {line}")
        return 1
    except Exception as error:  # noqa: BLE001 - it is reported
        BUGS.report("internal error: the router has ended", error)
        return os.EX_SOFTWARE
    finally:
        if ended is not None:
            ended()
    if process.stopped_by == signal.SIGINT:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        signal.raise_signal(signal.SIGINT)
    return os.EX_SOFTWARE if process.failed else 0


class RouterProcess:
    """A running router, from its first listener to its last close."""

    def __init__(
        self,
        configuration: Configuration,
        plugins: Plugins,
        read: Callable[[], Configuration] | None = None,
        ready: Callable[[], None] | None = None,
        bound: Callable[[], None] | None = None,
        calendar: Callable[[], float] = time.time,
        make_poller: Callable[[Hub, TimerQueue], Poller] = Poller,
        reach: Reach | None = None,
    ) -> None:
        """``calendar`` returns seconds since 1970, by which certificates expire."""
        self._reach = reach = reach or SingleProcess()
        self._assembly = assembly = assemble(configuration, plugins, read, calendar, make_poller, reach)
        self.router = assembly.router
        self.services = assembly.services
        self.in_force = assembly.in_force
        self.control = assembly.control
        self.stopped_by: signal.Signals | None = None
        #: A bug has ended a service without which the router cannot go on.
        self.failed = False
        self._stopping = False
        self._ready = ready
        self._bound = bound
        self._supervisor = Supervisor()
        self._others = assembly.others

    @property
    def listeners(self) -> list[Standing]:
        """The listeners that are open now."""
        return self.in_force.parts.listeners.running

    async def run_with_signals(self) -> None:
        """Run until a signal stops the router; ListenError if the configuration cannot be served, PrivilegeError."""
        await self._run_joined(self._run_with_signals)

    async def _run_joined(self, run: Callable[[], Awaitable[None]]) -> None:
        """Run the router, and beside it, from before its start, what joins it with other workers, if there are any."""
        if self._others is None:
            await run()
            return
        failure: Exception | None = None
        async with trio.open_nursery() as nursery:
            self._run_service(nursery, "the channels to the other workers", self._others.run)
            try:
                await run()
            except (ListenError, PrivilegeError) as error:  # not in a group, as without workers
                failure = error
            nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure

    async def _run_with_signals(self) -> None:
        change = await self._prepare_start()
        try:
            if self._bound is not None:
                self._bound()
        except BaseException:
            change.drop()
            raise
        async with self._recording(), trio.open_nursery() as nursery:
            await self._start(nursery, change)
            self._supervisor.ready()
            gc.freeze()  # configured objects stay: the collector need not traverse them again and again
            hups, usr1s = Bell(), Bell()
            nursery.start_soon(_answer_rings, hups, self._reload)
            nursery.start_soon(_answer_rings, usr1s, self._dump)
            waiter = trio.CapacityLimiter(1)  # its own limiter: signals arrive while other threads are busy
            while True:
                number = signal.Signals(
                    await trio.to_thread.run_sync(signal.sigwait, HANDLED, abandon_on_cancel=True, limiter=waiter)
                )
                if number == signal.SIGHUP:
                    hups.ring()
                elif number == signal.SIGUSR1:
                    usr1s.ring()
                elif self.stopped_by is None:
                    self.stopped_by = number
                    self._begin_stop(nursery)
                else:
                    break
            nursery.cancel_scope.cancel()

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Start the router and serve until cancelled; ListenError if the configuration cannot be served."""
        await self._run_joined(partial(self._run_unsignalled, task_status))

    async def _run_unsignalled(self, task_status: trio.TaskStatus[None]) -> None:
        change = await self._prepare_start()
        async with self._recording(), trio.open_nursery() as nursery:
            await self._start(nursery, change)
            task_status.started()

    async def _prepare_start(self) -> Change:
        """Return the first change; ListenError if the configuration cannot be served."""
        if self._others is not None:
            await self._others.start_their_drain()
        return await self.in_force.prepare_start()

    @asynccontextmanager
    async def _recording(self) -> AsyncIterator[None]:
        """Run the record logs and observers around the block, so that they outlive everything that emits records."""
        async with trio.open_nursery() as nursery:
            self.in_force.parts.record_logs.run_in(nursery)
            observers = Observers(self.services.plugins, self.services.recorder)
            observers.update_kinds()
            nursery.start_soon(_run_beside, "the observers of records", observers.run)
            try:
                yield
            finally:
                self._assembly.telemetry.record_last_second()
            nursery.cancel_scope.cancel()

    async def _start(self, nursery: trio.Nursery, change: Change) -> None:
        log.info("Container Name: %s", self.router.table.router_id)
        router_log.info("Router started in %s mode", self.in_force.configuration.router.mode.capitalize())
        router_log.info("Version: %s", trouter.__version__)
        self._look_after(nursery)
        others = self._others
        self.in_force.run_in(nursery)
        for name, run in self.in_force.services():
            self._run_service(nursery, name, run)
        if self.router.table.mode != "edge":
            self._keep_heartbeat()
        flush, workers = self.services.hub.flush, self._reach.workers
        agent = Agent(self.router, self.control, logs.book, trio.current_time, flush, workers)
        await nursery.start(partial(self._run_until_bug, nursery, "management", agent.run))
        if others is not None:
            answer_calls = partial(others.answer_calls, agent, lambda: self.site)
            self._run_service(nursery, "the answers to other workers", answer_calls)
        change.apply()
        self._assembly.telemetry.begin_timing()  # the configuration says whether records are wanted
        self.in_force.record_start()
        log.log(logs.NOTICE, "Operational, 1 Threads Running (process ID %d)", os.getpid())
        await self.control.publish()
        if others is not None:
            await others.follow_drain()  # it may have begun or ended before this worker took calls
            self._run_service(nursery, "the decisions of other workers", others.follow_decisions)
        self._reach.note_ready()
        if self._ready is not None:
            self._ready()

    def _look_after(self, nursery: trio.Nursery) -> None:
        """Start the poller, the timers and the periodic work."""
        services = self.services
        self._run_service(nursery, "the sockets", services.poller.run)
        self._run_service(nursery, "the timers", partial(services.timers.run, services.hub))
        for row in periodic_work(self._assembly, self._supervisor):
            start(row, services.timers, nursery)

    def _run_service(self, nursery: trio.Nursery, name: str, run: Callable[[], Awaitable[None]]) -> None:
        nursery.start_soon(self._run_until_bug, nursery, name, run)

    async def _run_until_bug(
        self, nursery: trio.Nursery, name: str, run: Callable[..., Awaitable[None]], **options: object
    ) -> None:
        """Run a service without which the router cannot go on; after a bug in it the router stops in order."""
        try:
            await run(**options)
        except Exception as error:  # noqa: BLE001 - it is reported
            self.failed = True
            BUGS.report(f"internal error in {name}: the router stops", error)
            self._begin_stop(nursery)

    def _keep_heartbeat(self) -> None:
        """Keep the address of the heartbeats in the table even without an edge router."""
        entry = self.router.table.obtain_entry(HEARTBEAT, outgoing=True, treatment="balanced")
        if entry is not None:
            entry.pinned = True

    @property
    def site(self) -> RouterSite:
        """This router as its HTTP listeners see it."""
        return self._assembly.makers.site(self.in_force)

    async def _reload(self) -> None:
        """Reopen the log files, which may have been rotated, and reload the configuration; log the result."""
        logs.reopen()
        if self._reach.why_fixed:
            self._reach.ask_for_reload()
            return
        self._reach.reopen_logs()
        with suppress(ChangeRefused):
            await self.control.reload()

    async def _dump(self) -> None:
        """Write the state of the router into a file, on USR1."""
        try:
            path = await self._assembly.state_dump.write(self.in_force)
        except (OSError, ValueError) as error:  # no such folder, or a name that no file can have
            main_log.error("cannot write the state to a file: %s", error)
        else:
            main_log.info("The state was written to %s", path.absolute())

    def _begin_stop(self, nursery: trio.Nursery) -> None:
        """Begin to stop the router, unless it stops already."""
        if not self._stopping:
            self._stopping = True
            nursery.start_soon(self._stop, nursery)

    async def _stop(self, nursery: trio.Nursery) -> None:
        """Stop connections and credit, wait for unsettled deliveries until the deadline, then close everything."""
        deadline_s = self.in_force.configuration.router.drain_timeout_seconds
        self._supervisor.stopping()
        log.info("Stopping: draining for at most %d s", deadline_s)
        self.in_force.refuse_work()
        self.router.stop_credit()
        self.services.hub.flush()
        with trio.move_on_after(deadline_s):
            while self.router.count_unsettled() > 0:  # noqa: ASYNC110 - the core has no tasks to wake
                await trio.sleep(DRAIN_LOOK_S)
        self.in_force.stop(Error("amqp:connection:forced", "the router is shutting down"))
        with trio.move_on_after(FAREWELL_S):
            await self.in_force.parts.wait_ended()
        nursery.cancel_scope.cancel()


async def _run_beside(name: str, run: Callable[[], Awaitable[None]]) -> None:
    """Run a service without which the router goes on."""
    with BUGS.contained(f"internal error in {name}, which have ended"):
        await run()


async def _answer_rings(bell: Bell, act: Callable[[], Awaitable[None]]) -> None:
    """Act on every ring; rings that come meanwhile cause one more act."""
    while True:
        await bell.wait()
        with BUGS.contained("internal error, a signal had no effect"):
            await act()
