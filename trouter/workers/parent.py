"""The parent of the workers: it starts, supervises and replaces them, and accepts their connections.

It knows nothing of the configuration: a worker asks for the sockets of its listeners (``shared_listeners.py``) and for
the way to the other workers (``introductions.py``). The first worker starts before the others, so that what keeps the
router from starting is found once, and nothing is half started; its configuration, which the parent keeps as text and
does not read, is that with which the others start, and each worker that replaces one.
"""

from __future__ import annotations

import logging
import os
import signal
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Final

import trio

from trouter import logs
from trouter.app.supervision import Supervisor
from trouter.config.workers import FIRST
from trouter.net.tallies import SharedMemory
from trouter.net.workers import CallCode, CallFailed

from .calls import NOTHING, Answer, BadMessage, Content, Take
from .introductions import Introductions
from .process import PROGRAM, Lookout, SpareProcess, Worker
from .shared_listeners import SharedListeners
from .worker import WorkerTerms

#: A worker that ends so often within so many seconds, after it has served, ends the router.
MOST_ENDS: Final = 5
ENDS_WITHIN_S: Final = 60.0
HANDLED: Final = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGUSR1})

log = logging.getLogger("trouter.MAIN")


class WorkersFailed(Exception):
    """The workers cannot serve; the text says why."""


class Parent:
    """The parent process of a router with workers."""

    def __init__(
        self,
        router_id: str,
        count: int,
        path: str | None,
        workers: str | None,
        ready: Callable[[], None] | None = None,
        program: Sequence[str] = PROGRAM,
    ) -> None:
        """``path`` and ``workers`` are those of ``WorkerTerms``; ``ready`` is called once every worker serves.

        ``program`` is the command of a worker without its last argument, the number of the descriptor of its channel.
        """
        self._router_id = router_id
        self._count = count
        self._path = path
        self._workers_text = workers
        self._ready = ready
        self._program = program
        self._workers: dict[int, Worker] = {}
        self._spares: list[SpareProcess] = []
        self._shared = SharedMemory(count)
        self._introductions = Introductions(self._workers)
        self._listeners: SharedListeners | None = None
        #: The last configuration that the first worker put into force, as text, and its number, from 1.
        self._configuration = b""
        self._version = 0
        self._supervisor = Supervisor()
        self._stops = 0
        self._reload_wanted = False
        self.stopped_by: signal.Signals | None = None
        self._failure = ""

    async def run(self) -> None:
        """Serve until a signal stops the router; WorkersFailed if the workers cannot serve."""
        async with trio.open_nursery() as nursery:
            self._listeners = SharedListeners(self._workers, self._count, nursery)
            nursery.start_soon(self._take_signals)
            nursery.start_soon(self._watch)
            self._spares += [SpareProcess.start(self._program) for _ in range(self._count)]
            async with trio.open_nursery() as serving:
                await serving.start(self._keep, FIRST)
                async with trio.open_nursery() as starting:
                    for place in range(FIRST + 1, self._count + 1):
                        starting.start_soon(serving.start, self._keep, place)
                if not self._is_stopping():
                    self._spares.append(SpareProcess.start(self._program))
                    self._supervisor.ready()
                    log.log(logs.NOTICE, "%d workers serve (parent process ID %d)", self._count, os.getpid())
                    if self._ready is not None:
                        self._ready()
            nursery.cancel_scope.cancel()
        for spare in self._spares:
            spare.end()
        self._shared.close()
        if self._failure:
            raise WorkersFailed(self._failure)

    def _is_stopping(self) -> bool:
        return self._stops > 0

    # --- the processes

    async def _keep(self, place: int, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Start a worker, and start it again whenever it ends; the first time it is awaited until it serves."""
        ends: deque[float] = deque(maxlen=MOST_ENDS)
        served = False
        while not self._is_stopping():
            worker = self._start(place)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._listen_to, worker)
                if not served:
                    nursery.start_soon(_tell_ready, worker, task_status.started)
                await worker.wait_end()
                nursery.cancel_scope.cancel()
                worker.close()
            self._shared.clear_part(place)
            served = served or worker.ready.is_set()
            if self._is_stopping():
                break
            if not served:
                self._fail(f"worker {place} {worker.describe_end()} before it served: see the lines above")
                break
            now_s = trio.current_time()
            ends.append(now_s)
            if len(ends) == MOST_ENDS and now_s - ends[0] < ENDS_WITHIN_S:
                often = f"worker {place} has ended {MOST_ENDS} times within {ENDS_WITHIN_S:g} s"
                self._fail(f"{often}: {worker.describe_end()}")
                break
            self._spares.append(SpareProcess.start(self._program))
            log.critical(
                "worker %d (process ID %d) %s: it is started again", place, worker.process.pid, worker.describe_end()
            )
        if not served:
            task_status.started()

    def _start(self, place: int) -> Worker:
        """Make a worker of a process that is ready for it."""
        spare = self._spares.pop(0)
        worker = self._workers[place] = Worker(place, spare.process, spare.channel)
        terms = WorkerTerms(
            place=place,
            count=self._count,
            router_id=self._router_id,
            path=self._path,
            workers=self._workers_text,
            version=self._version,
        )
        memory = os.dup(self._shared.descriptor)
        # A process that has ended while it waited is replaced like any worker.
        worker.channel.note("start", Content(asdict(terms), self._configuration, (memory,)))
        return worker

    def _fail(self, why: str) -> None:
        """End the router because its workers cannot serve."""
        self._failure = self._failure or why
        self._stop()

    async def _watch(self) -> None:
        """End workers that give no sign of life, and give those of this process."""
        pause_s = min(self._supervisor.pause_s or 1.0, 1.0)
        lookout = Lookout()
        while True:
            await trio.sleep(pause_s)
            self._supervisor.send_sign_of_life()
            self._introductions.note_silence()
            for worker in lookout.hung_of(self._workers.values()):
                log.critical("worker %d gave no sign of life for %d s: it is ended", worker.place, worker.silent_s)
                worker.signal(signal.SIGKILL)

    # --- signals

    async def _take_signals(self) -> None:
        waiter = trio.CapacityLimiter(1)
        while True:
            number = signal.Signals(
                await trio.to_thread.run_sync(signal.sigwait, HANDLED, abandon_on_cancel=True, limiter=waiter)
            )
            if number == signal.SIGHUP:
                logs.reopen()
                self._reload()
            elif number == signal.SIGUSR1:
                self._signal_all(number)
            else:
                self.stopped_by = self.stopped_by or number
                self._stop()

    def _stop(self) -> None:
        """Stop all workers; a second time at once; from the third time on without their help."""
        self._stops += 1
        if self._stops == 1:
            self._supervisor.stopping()
            if self._listeners is not None:
                self._listeners.close()
        self._signal_all(signal.SIGTERM if self._stops <= 2 else signal.SIGKILL)

    def _signal_all(self, number: int) -> None:
        for worker in self._workers.values():
            worker.signal(number)

    def _reload(self) -> None:
        """Have the first worker read the configuration, as soon as it serves; the others follow if it is in force."""
        first = self._workers.get(FIRST)
        self._reload_wanted = first is None or not first.serves
        if first is not None and first.serves:
            first.signal(signal.SIGHUP)

    # --- what workers ask for

    async def _listen_to(self, worker: Worker) -> None:
        """Answer a worker until it ends. If it sends what is no message, its channel ends, and so it stops."""
        assert self._listeners is not None  # noqa: S101  # workers run within `run`
        answers: dict[str, Answer] = {
            "meet": partial(self._introductions.meet, worker),
            "siblings": partial(self._introductions.open_for_siblings, worker),
            "join": partial(self._introductions.join, worker),
            "listen": partial(self._listeners.open, worker),
            "keep": partial(self._keep_configuration, worker),
        }
        notes: dict[str, Take] = {
            "alive": partial(self._note_alive, worker),
            "reload": lambda _: self._reload(),
        }
        try:
            await worker.channel.run(answers.get, notes)
        except BadMessage as bad:
            log.error("worker %d sent a bad message: %s; its channel is closed, and it stops", worker.place, bad)
            worker.signal(signal.SIGTERM)

    def _note_alive(self, worker: Worker, content: Content) -> None:
        worker.alive_at_s = trio.current_time()
        self._introductions.note_alive(worker)
        if content.facts["ready"] and not worker.ready.is_set():
            self._note_ready(worker)

    def _note_ready(self, worker: Worker) -> None:
        assert self._listeners is not None  # noqa: S101  # workers run within `run`
        worker.ready.set()
        self._listeners.close_unused()
        if worker.place == FIRST and self._reload_wanted:
            self._reload()

    async def _keep_configuration(self, worker: Worker, content: Content) -> Content:
        """Keep the text of a configuration of the first worker for workers to come; CallFailed if it is another's."""
        await trio.lowlevel.checkpoint()
        if worker.place != FIRST:
            raise CallFailed(CallCode.REFUSED, f"only worker {FIRST} has the configuration")
        self._version, self._configuration = int(content.facts["version"]), content.body
        return NOTHING


async def _tell_ready(worker: Worker, started: Callable[[], None]) -> None:
    await worker.ready.wait()
    started()


def run_parent(parent: Parent) -> int:
    """Run the parent until a signal stops it; return the exit status. INT ends the process by INT, after a clean stop.

    The workers inherit that these signals are blocked, so that none is lost before they take them.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED)
    try:
        trio.run(parent.run)
    except WorkersFailed as failed:
        logs.why_it_ends(str(failed))
        return 1
    if parent.stopped_by == signal.SIGINT:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        signal.raise_signal(signal.SIGINT)
    return 0
