"""The parent of the workers: it listens for them, hands them their connections, joins them, and replaces them.

It knows nothing of the configuration: a worker asks for the sockets of its listeners. The first worker starts before
the others, so that what keeps the router from starting is found once, and nothing is half started; its configuration,
which the parent does not read, is that of the others, and of each worker that replaces one.
"""

from __future__ import annotations

import errno
import logging
import os
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, Final

import trio

from trouter import logs
from trouter.app.supervision import Supervisor
from trouter.config import ListenerEntity
from trouter.config.workers import FIRST
from trouter.net.parts import Key
from trouter.net.sockets import ListenError, close_all, open_for, place_of
from trouter.net.tallies import SharedMemory

from .handed import OF_A_CLIENT
from .line import MAX_TEXT, Line, Message
from .line import close_all as close_descriptors
from .worker import WorkerTerms

#: A worker that ends so often within so many seconds, after it has served, ends the router.
MOST_ENDS: Final = 5
ENDS_WITHIN_S: Final = 60.0
#: Without a sign of life for so many seconds a worker gets no more connections and calls; and is ended.
SILENT_S: Final = 5.0
HUNG_S: Final = 30.0
#: Connections handed over from one socket before other tasks get their turn.
IN_A_ROW: Final = 16
#: Seconds to wait while no worker takes a connection, or the system has no descriptor left.
PAUSE_S: Final = 0.1
#: Seconds within which the workers take over a configuration; one that does so later is behind for so long.
ADOPTED_WITHIN_S: Final = 10.0
#: Seconds in which the end of a worker is known after its sockets have closed.
ENDED_AFTER_S: Final = 1.0
HANDLED: Final = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGUSR1})
_OVERLOAD: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})

log = logging.getLogger("trouter.MAIN")


class WorkersFailed(Exception):
    """The workers cannot serve; the text says why."""


@dataclass(eq=False, slots=True)
class Worker:
    """One running worker process, and what the parent holds of it."""

    place: int
    process: subprocess.Popen[bytes]
    line: Line
    #: Where its connections go: by listener one socket for each address; and the one for connections of workers.
    channels: dict[Key, list[socket.socket]] = field(default_factory=dict)
    siblings: socket.socket | None = None
    #: Where the sockets of the calls of other workers go.
    calls: socket.socket | None = None
    ready: trio.Event = field(default_factory=trio.Event)
    ended: trio.Event = field(default_factory=trio.Event)
    alive_at_s: float = 0.0
    #: The number of the configuration that it has, or of the last one that it has refused, and why.
    version: int = 0
    refusal: str = ""

    def close(self) -> None:
        """Close what the parent holds of it."""
        self.line.close()
        for key in list(self.channels):
            self.close_listener(key)
        for sock in (self.siblings, self.calls):
            if sock is not None:
                sock.close()

    def close_listener(self, key: Key) -> None:
        """Hand it no more connections of a listener."""
        for sock in self.channels.pop(key, ()):
            trio.lowlevel.notify_closing(sock)  # a task waits for its end
            sock.close()

    @property
    def serves(self) -> bool:
        """Return whether it has begun to serve, and has not ended."""
        return self.ready.is_set() and self.process.returncode is None

    @property
    def is_silent(self) -> bool:
        """Return whether it has given no sign of life for a while."""
        return trio.current_time() - self.alive_at_s > SILENT_S

    def signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.process.returncode is None:
            self.process.send_signal(number)


@dataclass(eq=False, slots=True)
class Bound:
    """The sockets of one listener, and the scope of the task that accepts from each."""

    sockets: list[socket.socket]
    scopes: list[trio.CancelScope]

    @classmethod
    def of(cls, sockets: list[socket.socket]) -> Bound:
        """Return the sockets with new scopes."""
        return cls(sockets, [trio.CancelScope() for _ in sockets])

    def cancel(self) -> None:
        """Accept no more."""
        for scope in self.scopes:
            scope.cancel()


class Parent:
    """The parent process of a router with workers."""

    def __init__(
        self, router_id: str, count: int, path: str | None, workers: str | None, ready: Callable[[], None] | None = None
    ) -> None:
        """``path`` and ``workers`` are those of ``WorkerTerms``; ``ready`` is called once every worker serves."""
        self._router_id = router_id
        self._count = count
        self._path = path
        self._workers_text = workers
        self._ready = ready
        self._workers: dict[int, Worker] = {}
        self._bound: dict[Key, Bound] = {}
        #: Requests to be joined with a worker that does not listen yet, by its number: who asks, and where to answer.
        self._joins: dict[int, list[tuple[int, Line]]] = {}
        #: Processes that are ready to become a worker.
        self._spares: list[tuple[subprocess.Popen[bytes], Line]] = []
        self._shared = SharedMemory(count)
        #: The number of the last configuration that the first worker put into force, from 1, and its descriptor.
        self._version = 0
        self._configuration: int | None = None
        #: Where a task waits until the workers have taken over a configuration.
        self._adopting = trio.lowlevel.ParkingLot()
        self._turn = 0
        self._supervisor = Supervisor()
        self._stops = 0
        self._reload_wanted = False
        self.stopped_by: signal.Signals | None = None
        self._failure = ""
        self._nursery: trio.Nursery | None = None
        #: Two workers that ask for one listener at once get the same sockets.
        self._binding = trio.Lock()

    async def run(self) -> None:
        """Serve until a signal stops the router; WorkersFailed if the workers cannot serve."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            nursery.start_soon(self._take_signals)
            nursery.start_soon(self._watch)
            self._spares += [_spawn() for _ in range(self._count)]
            async with trio.open_nursery() as serving:
                await serving.start(self._keep, FIRST)
                async with trio.open_nursery() as starting:
                    for place in range(FIRST + 1, self._count + 1):
                        starting.start_soon(serving.start, self._keep, place)
                if not self._is_stopping():
                    self._spares.append(_spawn())
                    self._supervisor.ready()
                    log.log(logs.NOTICE, "%d workers serve (parent process ID %d)", self._count, os.getpid())
                    if self._ready is not None:
                        self._ready()
            nursery.cancel_scope.cancel()
        for process, line in self._spares:
            process.kill()
            process.wait()
            line.close()
        self._shared.close()
        if self._configuration is not None:
            os.close(self._configuration)
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
                await _wait_end(worker)
                nursery.cancel_scope.cancel()
                worker.close()
            self._shared.clear_part(place)
            self._note_followers()
            served = served or worker.ready.is_set()
            if self._is_stopping():
                break
            if not served:
                self._fail(f"worker {place} {_end_of(worker)} before it served: see the lines above")
                break
            now_s = trio.current_time()
            ends.append(now_s)
            if len(ends) == MOST_ENDS and now_s - ends[0] < ENDS_WITHIN_S:
                self._fail(f"worker {place} has ended {MOST_ENDS} times within {ENDS_WITHIN_S:g} s: {_end_of(worker)}")
                break
            self._spares.append(_spawn())
            log.critical(
                "worker %d (process ID %d) %s: it is started again", place, worker.process.pid, _end_of(worker)
            )
        if not served:
            task_status.started()

    def _start(self, place: int) -> Worker:
        """Make a worker of a process that is ready for it."""
        process, line = self._spares.pop(0)
        worker = self._workers[place] = Worker(place, process, line)
        worker.alive_at_s = trio.current_time()
        worker.version = self._version
        terms = WorkerTerms(
            place=place,
            count=self._count,
            router_id=self._router_id,
            path=self._path,
            workers=self._workers_text,
            version=self._version,
        )
        sealed = [] if self._configuration is None else [self._configuration]
        with suppress(OSError):  # it has ended while it waited: it is replaced like any worker
            line.send(asdict(terms), [self._shared.descriptor, *sealed])
        return worker

    def _fail(self, why: str) -> None:
        """End the router because its workers cannot serve."""
        self._failure = self._failure or why
        self._stop()

    async def _watch(self) -> None:
        """End workers that give no sign of life, and give those of this process."""
        pause_s = min(self._supervisor.pause_s or 1.0, 1.0)
        while True:
            await trio.sleep(pause_s)
            self._supervisor.send_sign_of_life()
            self._adopting.unpark_all()  # a worker may have become silent
            for worker in self._workers.values():
                silent_s = trio.current_time() - worker.alive_at_s
                if worker.ready.is_set() and silent_s > HUNG_S and worker.process.returncode is None:
                    log.critical("worker %d gave no sign of life for %d s: it is ended", worker.place, silent_s)
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
            for bound in self._bound.values():
                bound.cancel()
                close_all(bound.sockets)
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

    # --- the configuration that all workers have

    async def _publish(self, publisher: Worker, descriptor: int, answers: Line, *, reloaded: bool) -> None:
        """Keep a configuration for workers to come, and have the others take it over; answer once they have."""
        if self._configuration is not None:
            os.close(self._configuration)
        self._version += 1
        self._configuration = descriptor
        publisher.version = self._version
        for worker in self._workers.values():
            if worker is not publisher and worker.ready.is_set():
                self._hand_configuration(worker, reloaded=reloaded)
        with trio.move_on_after(ADOPTED_WITHIN_S):
            while any(self._is_awaited(each) for each in self._workers.values()):
                await self._adopting.park()
        with closing(answers), suppress(OSError):
            answers.send({"behind": self._behind()})

    def _hand_configuration(self, worker: Worker, *, reloaded: bool = False) -> None:
        assert self._configuration is not None  # noqa: S101  # the first worker published one before it served
        with suppress(OSError):  # it has ended, or has not read for a long time: it is behind
            worker.line.send({"adopt": self._version, "reloaded": reloaded}, [self._configuration])

    def _is_awaited(self, worker: Worker) -> bool:
        """Return whether a worker that serves will say whether it has taken over the last configuration."""
        return worker.serves and worker.version < self._version and not worker.is_silent

    def _behind(self) -> dict[int, str]:
        """Return the workers that serve with another configuration than the first one, and why."""
        return {
            each.place: each.refusal[: MAX_TEXT // self._count] or "it has not taken over the configuration yet"
            for each in self._workers.values()
            if each.serves and (each.refusal or each.version < self._version)
        }

    def _note_followers(self) -> None:
        """Tell the first worker which others are behind, as one has changed."""
        self._adopting.unpark_all()
        first = self._workers.get(FIRST)
        if first is not None and first.serves:
            with suppress(OSError):
                first.line.send({"behind": self._behind()})

    # --- what workers ask for

    async def _listen_to(self, worker: Worker) -> None:
        with suppress(OSError):
            while True:
                message, descriptors = await worker.line.receive()
                await self._answer(worker, message, descriptors)

    async def _answer(self, worker: Worker, message: Message, descriptors: list[int]) -> None:
        worker.alive_at_s = trio.current_time()
        if "ready" in message:
            worker.ready.set()
            self._close_unused()
            if worker.version < self._version:  # the configuration has changed while it started
                self._hand_configuration(worker)
            if worker.place == FIRST and self._reload_wanted:
                self._reload()
        elif "news" in message or "reopen" in message:
            self._pass_on(worker, message)
        elif "reload" in message:
            self._reload()
        elif "adopted" in message:
            worker.version, worker.refusal = int(str(message["adopted"])), str(message["refusal"])
            self._note_followers()
        if not descriptors:
            return
        answers = Line.at(descriptors[0])
        if "publish" in message:
            assert self._nursery is not None  # noqa: S101  # workers run within it
            reloaded = bool(message["reloaded"])
            self._nursery.start_soon(partial(self._publish, worker, descriptors[1], answers, reloaded=reloaded))
            return
        close_descriptors(descriptors[1:])
        if "join" in message:
            self._join(worker.place, int(str(message["join"])), answers)
            return
        try:
            with suppress(OSError):  # it has ended meanwhile
                if "siblings" in message:
                    self._open_for_siblings(worker, answers)
                elif "calls" in message:
                    self._open_for_calls(worker, answers)
                elif "call" in message:
                    self._connect_call(worker, int(str(message["call"])), answers)
                elif "listen" in message:
                    await self._open(worker, message, answers)
        finally:
            answers.close()

    def _pass_on(self, teller: Worker, message: Message) -> None:
        """Pass what a worker tells to the others; one that has not read for a long time misses it."""
        for worker in self._workers.values():
            if worker is not teller and worker.ready.is_set():
                with suppress(OSError):
                    worker.line.send(message)

    def _open_for_siblings(self, worker: Worker, answers: Line) -> None:
        """Let other workers join this one; those that wait for it are joined at once."""
        worker.siblings, theirs = _channel()
        with theirs:
            answers.send({}, [theirs.fileno()])
        for place, waiting in self._joins.pop(worker.place, []):
            self._join(place, worker.place, waiting)

    def _join(self, place: int, other_place: int, answers: Line) -> None:
        """Connect two workers; the answer waits until the other one listens."""
        other = self._workers.get(other_place)
        if other is None or other.siblings is None or other.process.returncode is not None:
            self._joins.setdefault(other_place, []).append((place, answers))
            return
        one_end, other_end = socket.socketpair()
        with one_end, other_end, suppress(OSError):
            answers.send({}, [one_end.fileno()])
            socket.send_fds(other.siblings, [bytes([place])], [other_end.fileno()])
        answers.close()

    def _open_for_calls(self, worker: Worker, answers: Line) -> None:
        """Let other workers call this one."""
        worker.calls, theirs = _channel()
        with theirs:
            answers.send({}, [theirs.fileno()])

    def _connect_call(self, worker: Worker, other_place: int, answers: Line) -> None:
        """Answer with a socket for one call to another worker."""
        other = self._workers.get(other_place)
        if other is None or other.calls is None or other.process.returncode is not None:
            answers.send({"error": "it does not serve"})
            return
        if other.is_silent:
            answers.send({"error": "it gives no sign of life"})
            return
        one_end, other_end = socket.socketpair()
        with one_end, other_end:
            try:
                socket.send_fds(other.calls, [bytes([worker.place])], [other_end.fileno()])
            except OSError:  # it has ended, or hangs
                answers.send({"error": "it takes no calls"})
            else:
                answers.send({}, [one_end.fileno()])

    async def _open(self, worker: Worker, message: Message, answers: Line) -> None:
        """Answer with a socket for each address of a listener, which the parent binds if no worker has it yet."""
        given: Any = message["listen"]
        host, port, name, number = given
        key: Key = (str(host), str(port), str(name), int(number))
        try:
            async with self._binding:
                bound = await self._bind(key, message)
        except ListenError as error:
            answers.send({"error": str(error)[:MAX_TEXT]})
            return
        channels = [_channel() for _ in bound.sockets]
        try:
            places = [place_of(each) for each in bound.sockets]
            answers.send({"places": places}, [theirs.fileno() for _, theirs in channels])
        finally:
            close_all([theirs for _, theirs in channels])
        worker.close_listener(key)
        worker.channels[key] = [ours for ours, _ in channels]
        assert self._nursery is not None  # noqa: S101  # workers run within it
        for ours, _ in channels[:1]:
            self._nursery.start_soon(self._follow, worker, key, ours)

    async def _bind(self, key: Key, message: Message) -> Bound:
        """Return the bound sockets of a listener; ListenError."""
        bound = self._bound.get(key)
        if bound is not None:
            return bound
        given = message["leaving"]
        left = {tuple(each) for each in given} if isinstance(given, list) else set()
        leaving = [each for one in self._bound.values() for each in one.sockets if place_of(each) in left]
        family = message["family"]
        entity = ListenerEntity(host=key[0], port=key[1], socket_address_family=None if family is None else str(family))
        bound = self._bound[key] = Bound.of(await open_for(entity, leaving))
        assert self._nursery is not None  # noqa: S101  # workers run within it
        for index in range(len(bound.sockets)):
            self._nursery.start_soon(self._hand_over, key, bound, index)
        return bound

    async def _follow(self, worker: Worker, key: Key, channel: socket.socket) -> None:
        """Wait until a worker closes a listener; stop listening if no worker has it any more."""
        with suppress(OSError, trio.ClosedResourceError):
            await trio.lowlevel.wait_readable(channel)
        with trio.move_on_after(ENDED_AFTER_S):
            await worker.ended.wait()
        channels = worker.channels.get(key)
        if worker.ended.is_set() or not channels or channels[0] is not channel:
            return  # it has ended, and the next one will ask for the listener; or it has asked for it anew
        worker.close_listener(key)
        self._close_unused()

    def _close_unused(self) -> None:
        """Close the sockets of listeners that no worker has, once all workers serve."""
        if not all(worker.ready.is_set() and not worker.ended.is_set() for worker in self._workers.values()):
            return
        for key in [key for key in self._bound if not any(key in each.channels for each in self._workers.values())]:
            bound = self._bound.pop(key)
            bound.cancel()
            close_all(bound.sockets)

    # --- connections

    async def _hand_over(self, key: Key, bound: Bound, index: int) -> None:
        """Accept the connections of one socket, and hand each to the worker whose turn it is."""
        sock, in_a_row = bound.sockets[index], 0
        with bound.scopes[index]:
            while True:
                try:
                    accepted, _ = sock.accept()
                except BlockingIOError:
                    in_a_row = 0
                    await trio.lowlevel.wait_readable(sock)
                    continue
                except OSError as error:
                    await trio.sleep(PAUSE_S if error.errno in _OVERLOAD else 0)
                    continue
                with accepted:
                    while not self._hand(key, index, accepted):  # noqa: ASYNC110 - the kernel has no event for it
                        await trio.sleep(PAUSE_S)
                in_a_row += 1
                if in_a_row >= IN_A_ROW:
                    in_a_row = 0
                    await trio.lowlevel.checkpoint()

    def _hand(self, key: Key, index: int, accepted: socket.socket) -> bool:
        """Hand a connection to the next worker that takes it; return whether one did."""
        for _ in range(self._count):
            self._turn = self._turn % self._count + 1
            worker = self._workers.get(self._turn)
            channels = worker.channels.get(key) if worker is not None else None
            if worker is None or not channels or worker.is_silent:
                continue
            with suppress(OSError):  # it has ended, or has many that it has not taken yet
                socket.send_fds(channels[index], [bytes([OF_A_CLIENT])], [accepted.fileno()])
                return True
        return False


async def _tell_ready(worker: Worker, started: Callable[[], None]) -> None:
    await worker.ready.wait()
    started()


async def _wait_end(worker: Worker) -> None:
    """Wait until the process has ended."""
    descriptor = os.pidfd_open(worker.process.pid)
    try:
        await trio.lowlevel.wait_readable(descriptor)
    finally:
        os.close(descriptor)
    worker.process.wait()
    worker.ended.set()


def _spawn() -> tuple[subprocess.Popen[bytes], Line]:
    """Return a process that waits for its number, all modules imported, and the line to it."""
    line, theirs = Line.pair()
    with theirs:
        process = subprocess.Popen(  # noqa: S603  # this very program
            [sys.executable, "-P", "-m", "trouter.cli.worker", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            process_group=0,  # Ctrl-C reaches the parent alone
        )
    return process, line


def _channel() -> tuple[socket.socket, socket.socket]:
    """Return the two ends on which connections are handed over; the parent's does not wait."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    return ours, theirs


def _end_of(worker: Worker) -> str:
    """Return how a process ended."""
    status = worker.process.returncode
    return f"ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"


def run_parent(parent: Parent) -> int:
    """Run the parent until a signal stops it; return the exit status. INT ends the process by INT, after a clean stop.

    The workers inherit that these signals are blocked, so that none is lost before they take them.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED)
    try:
        trio.run(parent.run)
    except WorkersFailed as failed:
        logs.always("MAIN", logging.CRITICAL, str(failed))
        return 1
    if parent.stopped_by == signal.SIGINT:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        signal.raise_signal(signal.SIGINT)
    return 0
