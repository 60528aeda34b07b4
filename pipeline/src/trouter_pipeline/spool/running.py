"""The receiver as a program: one in this process, or several in supervised processes.

A shard is a process `python -m trouter_pipeline.spool`. It reads its job from standard input as one line of JSON, so
that its arguments hold no secret, and writes its progress as lines of JSON. It ends cleanly at a signal, or when its
input ends because the parent process is gone.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, Final

import trio

from trouter.client.errors import ClientError
from trouter.client.servers import Servers, is_lasting, reason_of
from trouter_pipeline.spool.errors import SpoolBusy, SpoolError
from trouter_pipeline.spool.receiver import Progress, ReceiverSettings, receive
from trouter_pipeline.spool.reports import Shard
from trouter_pipeline.spool.writer import Spool

#: Exit statuses of a shard: a clean end; a cause that may pass; a cause that the operator has to fix.
ENDED: Final = 0
FAILED: Final = 1
REFUSED: Final = 3
SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

_FIRST_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 30.0
#: A shard that lived this long is restarted after the first pause.
_WELL_S: Final = 60.0
#: How long opening waits for a busy spool: a reader that consumes holds the lock for a moment.
_BUSY_S: Final = 2.0
#: Time that an ending process gets beyond the grace of its receiver.
_BEYOND_GRACE_S: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One receiver and its spool; ``interval_s`` is the time between a shard's reports, in seconds."""

    folder: Path
    settings: ReceiverSettings
    segment_bytes: int = 16 << 20
    backlog_bytes: int = 1 << 30
    shard: int = 0
    #: See `Spool.open`.
    cursors: Sequence[str] = ()
    interval_s: float = 1.0

    def to_json(self) -> str:
        """Return the job as one line of JSON, which holds secrets; a shard describes failures in its own way."""
        values = asdict(self)
        del values["settings"]["reason"]
        return json.dumps(values, default=os.fspath)

    @classmethod
    def from_json(cls, line: str) -> Job:
        """Return the job that ``to_json`` wrote; ValueError."""
        values: dict[str, Any] = json.loads(line)
        settings = values.pop("settings")
        servers = settings.pop("servers")
        for name in ("trust_file", "certificate", "key"):
            servers[name] = None if servers[name] is None else Path(servers[name])
        for name in ("urls", "mechanisms"):
            servers[name] = tuple(servers[name])
        values["folder"] = Path(values["folder"])
        return cls(settings=ReceiverSettings(servers=Servers(**servers), **settings), **values)


async def run_job(job: Job, progress: Progress) -> None:
    """Open the spool and receive until cancelled; raises as `Spool.open` and `receive`."""
    try:
        spool = await _opened(job)
    except (SpoolError, OSError) as error:
        progress.failed("disk" if isinstance(error, OSError) else "spool", reason_of(error))
        raise
    try:
        progress.next, progress.durable, progress.consumed = spool.next, spool.durable, spool.consumed
        progress.backlog_bytes = spool.backlog_bytes
        await receive(spool, job.settings, progress)
    finally:
        spool.close()


async def _opened(job: Job) -> Spool:
    opening = partial(
        Spool.open,
        job.folder,
        segment_bytes=job.segment_bytes,
        backlog_bytes=job.backlog_bytes,
        address=job.settings.address,
        shard=job.shard,
        cursors=job.cursors,
    )
    deadline = trio.current_time() + _BUSY_S
    while True:
        try:
            return await trio.to_thread.run_sync(opening)
        except SpoolBusy:
            if trio.current_time() >= deadline:
                raise
            await trio.sleep(_BUSY_S / 20)


def ending_of(failure: Exception) -> int:
    """Return the exit status for a failure."""
    return REFUSED if is_lasting(failure) or isinstance(failure, SpoolError | ValueError) else FAILED


@asynccontextmanager
async def until_signal(*, with_input: bool) -> AsyncIterator[None]:
    """Cancel the block at SIGTERM, SIGINT and, ``with_input``, the end of the standard input."""
    with trio.CancelScope() as block:
        async with trio.open_nursery() as nursery:
            with trio.open_signal_receiver(*SIGNALS) as signals:
                nursery.start_soon(_cancel_at_signal, signals, block)
                if with_input:
                    nursery.start_soon(_cancel_at_end_of_input, block)
                try:
                    yield
                finally:
                    nursery.cancel_scope.cancel()


async def _cancel_at_signal(signals: AsyncIterator[int], block: trio.CancelScope) -> None:
    async for _ in signals:
        block.cancel()


async def _cancel_at_end_of_input(block: trio.CancelScope) -> None:
    async with trio.lowlevel.FdStream(os.dup(sys.stdin.fileno())) as stream:
        async for _ in stream:
            pass
    block.cancel()


# --- a shard, from within


async def run_shard(line: str) -> int:
    """Do the work of a shard's process; return its exit status."""
    job = Job.from_json(line)
    progress = Progress()
    status = ENDED
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_report_repeatedly, job, progress)
        try:
            async with until_signal(with_input=True):
                await run_job(job, progress)
        except* (SpoolError, ClientError, OSError, ValueError, trio.TooSlowError) as group:
            failure = first_of(group)
            status = ending_of(failure)
            progress.state, progress.trouble = "failed", progress.trouble or reason_of(failure)
        nursery.cancel_scope.cancel()
    _report(progress)
    return status


async def _report_repeatedly(job: Job, progress: Progress) -> None:
    while True:
        _report(progress)
        await trio.sleep(job.interval_s)


def _report(progress: Progress) -> None:
    try:
        sys.stdout.write(json.dumps(asdict(progress)) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        pass  # the parent is gone, and the end of the input says so too


def first_of(failure: BaseException) -> Exception:
    """Return the first plain exception in a group; raise it if it is no ``Exception``."""
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    if not isinstance(failure, Exception):
        raise failure
    return failure


# --- shards, from without


class ShardsRefused(SpoolError):
    """A shard ended for a lasting reason before it had any link."""


class Shards:
    """Processes, one for each job, kept alive until cancelled."""

    def __init__(self, jobs: list[Job], report: Callable[[str], None]) -> None:
        self.shards = [Shard(job.shard, job.settings.address, Progress(), running=False) for job in jobs]
        self._jobs = jobs
        self._report = report
        self._refused: str = ""

    async def run(self) -> None:
        """Run the shards until cancelled and their processes have ended; ShardsRefused."""
        async with trio.open_nursery() as nursery:
            for job, shard in zip(self._jobs, self.shards, strict=True):
                nursery.start_soon(self._keep, job, shard, nursery.cancel_scope)
        if self._refused:
            raise ShardsRefused(self._refused)

    async def _keep(self, job: Job, shard: Shard, everything: trio.CancelScope) -> None:
        """Run one shard, and restart it whenever it ends, with growing pauses."""
        pause_s = _FIRST_PAUSE_S
        before = Progress()
        while True:
            began_s = trio.current_time()
            process = await trio.lowlevel.open_process(
                [sys.executable, "-m", "trouter_pipeline.spool"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,  # a terminal's Ctrl-C is for the parent, which ends the shards
            )
            shard.running = True
            try:
                status = await self._see_to_its_end(process, job, shard, before)
            finally:
                shard.running = False
                if process.poll() is None:
                    process.kill()
            if status == REFUSED and not shard.progress.links:
                self._refused = f"shard {shard.number}: {shard.progress.trouble}"
                everything.cancel()
            before = shard.progress
            before.server, before.state, before.full = "", "down", False
            if status < 0:
                before.failed("killed", before.trouble)
            shard.restarts += 1
            if trio.current_time() - began_s >= _WELL_S:
                pause_s = _FIRST_PAUSE_S
            how = f"was killed by signal {-status}" if status < 0 else before.trouble or f"ended with {status}"
            self._report(f"shard {shard.number} (process {process.pid}): {how}; started again in {pause_s:g} s")
            await trio.sleep(pause_s * random.uniform(0.8, 1.2))
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    async def _see_to_its_end(self, process: trio.Process, job: Job, shard: Shard, before: Progress) -> int:
        """Send a shard its job and follow it; if cancelled, end it cleanly. Return its exit status."""
        async with trio.open_nursery() as nursery:
            with trio.CancelScope(shield=True) as scope:
                nursery.start_soon(_end_when_cancelled, process, job, scope)
                assert process.stdin is not None  # noqa: S101 - it is a pipe
                with suppress(trio.BrokenResourceError):
                    await process.stdin.send_all(f"{job.to_json()}\n".encode())
                await self._follow(process, shard, before)
                await process.wait()
            nursery.cancel_scope.cancel()
        return process.returncode or 0

    async def _follow(self, process: trio.Process, shard: Shard, before: Progress) -> None:
        """Read the progress lines to their end, and add the counts of the processes before."""
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        rest = b""
        async for octets in process.stdout:
            *lines, rest = (rest + octets).split(b"\n")
            for line in lines:
                shard.progress = added(before, Progress(**json.loads(line)))


async def _end_when_cancelled(process: trio.Process, job: Job, scope: trio.CancelScope) -> None:
    try:
        await trio.sleep_forever()
    finally:
        scope.deadline = trio.current_time() + job.settings.grace_s + _BEYOND_GRACE_S
        if process.poll() is None:
            process.terminate()


_COUNTS: Final = ("messages", "octets", "groups", "accepted", "presettled", "refused", "aborted", "links", "sync_s")


def added(before: Progress, now: Progress) -> Progress:
    """Return ``now`` with the counts and the last fault of ``before`` added."""
    values = {field.name: getattr(now, field.name) for field in fields(Progress)}
    for name in _COUNTS:
        values[name] += getattr(before, name)
    values["began_at"] = before.began_at
    if not now.fault:
        values["fault"], values["fault_at"] = before.fault, before.fault_at
    values["last_message_at"] = now.last_message_at or before.last_message_at
    return Progress(**values)
