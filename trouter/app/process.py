"""The router as a process: its services in one nursery, signals, and a clean stop."""

from __future__ import annotations

import gc
import logging
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final

import trio

import trouter
from trouter import logs
from trouter._bell import Bell
from trouter.config import ChangeRefused, Configuration
from trouter.connections.listeners import Standing
from trouter.connections.stream import LINGER_S
from trouter.core.edge.protocol import HEARTBEAT
from trouter.hooks import Plugins
from trouter.management.agent import Agent
from trouter.management.ports import SERVING
from trouter.management.sibling import ANSWERED_WITHIN_S, MANAGE
from trouter.net.hub import Hub
from trouter.net.parts import Change
from trouter.net.poller import Poller
from trouter.net.reach import Alone, News, Reach, Workers
from trouter.net.sockets import ListenError
from trouter.telemetry.observers import Observers
from trouter.wire.performatives import Error

from .draining import ASKED, ask_workers
from .periodic import periodic_work, start
from .privileges import PrivilegeError, forbid_core_files
from .python_log import python_logged
from .supervision import Supervisor
from .wiring import assemble, number_apart

if TYPE_CHECKING:
    from .site import RouterSite

#: Seconds between two checks of a draining router whether unsettled deliveries are left.
DRAIN_LOOK_S: Final = 0.05
#: By what a worker asks another one for its decisions.
DECISIONS: Final = "decisions"
#: Seconds between two times.
DECISIONS_EVERY_S: Final = 5.0
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
            trio.run(process.run_with_signals)
    except (ListenError, PrivilegeError) as error:
        for line in error.lines:
            main_log.critical("Router start-up failed: %s", line)
        return 1
    finally:
        if ended is not None:
            ended()
    if process.stopped_by == signal.SIGINT:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        signal.raise_signal(signal.SIGINT)
    return 0


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
        make_poller: Callable[[Hub], Poller] = Poller,
        reach: Reach | None = None,
    ) -> None:
        """``calendar`` returns seconds since 1970, by which certificates expire."""
        self._reach = reach = reach or Alone()
        self._assembly = assembly = assemble(configuration, plugins, read, calendar, make_poller, reach)
        if reach.workers is not None:
            number_apart(assembly.router, assembly.services.recorder, reach.workers)
        self.router = assembly.router
        self.services = assembly.services
        self.in_force = assembly.in_force
        self.control = assembly.control
        self.stopped_by: signal.Signals | None = None
        self._ready = ready
        self._bound = bound
        self._supervisor = Supervisor()

    @property
    def listeners(self) -> list[Standing]:
        """The listeners that are open now."""
        return self.in_force.parts.listeners.running

    async def run_with_signals(self) -> None:
        """Run until a signal stops the router; ListenError if the configuration cannot be served, PrivilegeError."""
        await self._follow_drain(serves=False)
        change = await self.in_force.prepare_start()
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
                    nursery.start_soon(self._stop, nursery)
                else:
                    break
            nursery.cancel_scope.cancel()

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Start the router and serve until cancelled; ListenError if the configuration cannot be served."""
        await self._follow_drain(serves=False)
        change = await self.in_force.prepare_start()
        async with self._recording(), trio.open_nursery() as nursery:
            await self._start(nursery, change)
            task_status.started()

    @asynccontextmanager
    async def _recording(self) -> AsyncIterator[None]:
        """Run the record logs and observers around the block, so that they outlive everything that emits records."""
        async with trio.open_nursery() as nursery:
            self.in_force.parts.record_logs.run_in(nursery)
            observers = Observers(self.services.plugins, self.services.recorder)
            observers.update_kinds()
            nursery.start_soon(observers.run)
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
        nursery.start_soon(self._reach.run, self._hear_news, self._adopt)
        self.in_force.run_in(nursery)
        if self.router.table.mode != "edge":
            self._keep_heartbeat()
        workers = self._reach.workers
        agent = Agent(self.router, self.control, logs.book, trio.current_time, self.services.hub.flush, workers)
        await nursery.start(agent.run)
        if workers is not None:
            nursery.start_soon(workers.answer_calls, self._worker_answers(agent))
        change.apply()
        self._assembly.telemetry.begin_timing()  # the configuration says whether records are wanted
        self.in_force.record_start()
        log.log(logs.NOTICE, "Operational, 1 Threads Running (process ID %d)", os.getpid())
        await self.control.publish()
        await self._follow_drain(serves=True)  # it may have begun or ended before this worker took calls
        self._reach.note_ready()
        if workers is not None:
            nursery.start_soon(self._ask_for_decisions, workers)
        if self._ready is not None:
            self._ready()

    def _hear_news(self, news: News) -> None:
        """Take in what another worker tells."""
        self.services.guard.lockout.hear_news(news)
        self._assembly.decisions.hear_news(news)

    async def _ask_for_decisions(self, workers: Workers) -> None:
        """Carry out the decisions in force at the other workers: they were there before, or did not get through."""
        while True:
            for number in workers.ids:
                if number != workers.number and self._assembly.consumers.consume:
                    with suppress(OSError):  # it does not serve yet, and so has none
                        told = await workers.ask(number, DECISIONS, limit_s=ANSWERED_WITHIN_S)
                        self._assembly.decisions.hear_told(told)
            await trio.sleep(DECISIONS_EVERY_S)

    async def _follow_drain(self, *, serves: bool) -> None:
        """Drain if the other workers do: this one may take the place of one that ended."""
        workers, drain = self._reach.workers, self.in_force.drain
        report = None if workers is None else await ask_workers(workers)
        if report is None or (report.state != SERVING) == drain.active:
            return
        left_s = max(report.over_s - report.for_s, 0.0)
        try:
            if not serves:
                drain.start(left_s, 0)
            elif drain.active:
                await self.control.cancel_drain()
            else:
                await self.control.start_drain(left_s)
        except ChangeRefused as refused:
            log.error("cannot follow the drain of the other workers: %s", refused.description)

    def _worker_answers(self, agent: Agent) -> Mapping[str, Callable[[bytes], Awaitable[bytes]]]:
        """Return the functions that answer what other workers ask this one."""

        async def ready(request: bytes) -> bytes:
            return await self.site.answer_ready(request)

        async def metrics(request: bytes) -> bytes:
            return await self.site.answer_metrics(request)

        async def decisions(_: bytes) -> bytes:
            return self._assembly.decisions.list_told()

        # The site is made, and its room imported, once it is asked for.
        return {
            MANAGE: agent.answer_worker,
            "ready": ready,
            "metrics": metrics,
            DECISIONS: decisions,
            ASKED: self.in_force.drain.answer_state,
        }

    def _look_after(self, nursery: trio.Nursery) -> None:
        """Start the poller, the timers and the periodic work."""
        services = self.services
        nursery.start_soon(services.poller.run)
        nursery.start_soon(services.timers.run, services.hub)
        for row in periodic_work(self._assembly, self._supervisor):
            start(row, services.timers, nursery)

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

    async def _adopt(self, whole: Configuration, reloaded: bool) -> str:
        """Put in force what the first worker has; return why it is not, empty if it is."""
        try:
            await self.control.adopt(whole, reloaded=reloaded)
        except ChangeRefused as refused:
            return refused.description
        except Exception:  # noqa: BLE001 - a bug of ours must not end the router
            main_log.exception("internal error, this worker does not have the configuration of the first one")
            return "internal error; its log has the details"
        return ""

    async def _dump(self) -> None:
        """Write the state of the router into a file, on USR1."""
        try:
            path = await self._assembly.state_dump.write(self.in_force)
        except (OSError, ValueError) as error:  # no such folder, or a name that no file can have
            main_log.error("cannot write the state to a file: %s", error)
        else:
            main_log.info("The state was written to %s", path.absolute())

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
        with trio.move_on_after(LINGER_S):
            await self.in_force.parts.wait_ended()
        nursery.cancel_scope.cancel()


async def _answer_rings(bell: Bell, act: Callable[[], Awaitable[None]]) -> None:
    """Act on every ring; rings that come meanwhile cause one more act."""
    while True:
        await bell.wait()
        try:
            await act()
        except Exception:  # noqa: BLE001 - a bug of ours must not end the router
            main_log.exception("internal error, a signal had no effect")
