"""`trouter pipeline spool`: receive an address into a durable spool, each message accepted once the disk has it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from functools import partial
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Final

from trouter.records.text import escaped
from trouter.tools.failures import print_problem
from trouter_pipeline.commands.cursors import cursor_name
from trouter_pipeline.commands.roots import local_folder
from trouter_pipeline.commands.servers import add_servers, servers_of
from trouter_pipeline.spool.cursors import DEFAULT

if TYPE_CHECKING:
    from trouter_pipeline.spool.reports import Shard
    from trouter_pipeline.spool.running import Job

_UNITS: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_MAX_SHARDS: Final = 256
#: How long connecting and attaching may take.
_TIMEOUT_S: Final = 30.0
#: Earlier names of options.
_EARLIER: Final = (
    "user",
    "password_file",
    "tls_trust_file",
    "tls_certificate",
    "tls_key",
    "tls_key_password_file",
    "tls_any_name",
)
#: Seconds between two lines of progress: on a terminal, which shows the last one, and elsewhere.
_LIVE_S: Final = 1.0
_PLAIN_S: Final = 10.0
#: Seconds between two looks at the cursors.
_CURSORS_S: Final = 10.0


def add_parser(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser(
        "spool",
        help="receive an address into a durable spool",
        description="Receive the messages of an address and keep them in a spool: a folder of numbered, checksummed "
        "files that Spark, or another program, consumes. The command accepts a message once the disk has it, not "
        "before; up to --credit of them may come twice after a crash. On SIGTERM or Ctrl-C it writes and settles the "
        "messages that have come, and exits with 0; on a full disk, refused credentials or a damaged spool it exits "
        "with 1 and the reason, except with --shards, where it starts a process that dies again.",
    )
    parser.add_argument("--address", required=True, help="the address to receive from")
    parser.add_argument(
        "--dir",
        required=True,
        type=local_folder,
        metavar="FOLDER",
        help="the spool, on this machine; the command makes it if it does not exist",
    )
    parser.add_argument(
        "--shards",
        type=int,
        default=1,
        metavar="N",
        help="N processes, each with a spool of its own, FOLDER/shard-000 and so on, among which the server spreads "
        "the messages; default %(default)s, in this process and FOLDER itself",
    )
    parser.add_argument(
        "--cursor",
        action="append",
        type=cursor_name,
        default=[],
        metavar="NAME",
        help="a consumer of the spool, which keeps each message until every one has it; may be given again. Without "
        f"it a new spool has the cursor {DEFAULT!r}, which is that of consumers that name none",
    )
    add_servers(
        parser,
        "a server; may be given again: if the command loses one, it tries the others in turn",
        f"the link; default {_TIMEOUT_S:g}",
        _EARLIER,
    )
    _add_bounds(parser.add_argument_group("bounds; K, M, G and T are powers of 1024"))
    reporting = parser.add_argument_group("progress and metrics")
    reporting.add_argument(
        "--metrics",
        metavar="HOST:PORT",
        help="serve metrics (/metrics) and health (/readyz, /healthz, /livez) over HTTP there, to every client; "
        "port 0 takes a free port and prints it",
    )
    reporting.add_argument("--metrics-file", type=Path, metavar="FILE", help="for Prometheus's text file collector")
    reporting.add_argument("--quiet", action="store_true", help="no lines of progress")
    parser.set_defaults(run=run)


def _add_bounds(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--credit",
        type=int,
        default=2000,
        metavar="N",
        help="messages without an outcome at a time: the most that come twice after a crash; default %(default)s",
    )
    group.add_argument(
        "--linger-ms",
        type=float,
        default=5.0,
        metavar="MS",
        help="how long to gather messages before writing and syncing them together; default %(default)g",
    )
    for name, default, what in (
        ("max-group-bytes", "1M", "the size of a group of messages that is written at once"),
        ("max-message-bytes", "64M", "the largest message; larger ones are rejected"),
        ("segment-bytes", "16M", "the size of a file"),
        ("backlog-bytes", "1G", "bytes in a spool that are not consumed, at which the command gives no more credit"),
    ):
        group.add_argument(
            f"--{name}", type=size, default=size(default), metavar="SIZE", help=f"{what}; default {default}"
        )
    group.add_argument(
        "--cursor-age",
        type=_hours,
        default=24.0,
        metavar="HOURS",
        help="report a cursor for which a message waits longer; default %(default)g",
    )
    group.add_argument(
        "--attempts",
        type=int,
        default=0,
        metavar="N",
        help="rounds of all servers without a message before giving up; default 0, never",
    )


def _hours(text: str) -> float:
    hours = float(text)
    if not hours > 0:
        raise ValueError
    return hours


def size(text: str) -> int:
    """Return the bytes of a size such as 64M, with a unit or without; ValueError."""
    digits = text.rstrip("kKmMgGtT")
    unit = text[len(digits) :].lower()
    value = int(digits) * _UNITS[unit] if unit in _UNITS else 0
    if value <= 0:
        raise ValueError
    return value


def run(arguments: argparse.Namespace) -> int:
    import trio  # noqa: PLC0415  # only when it runs

    from trouter.client.servers import reason_of  # noqa: PLC0415
    from trouter_pipeline.spool.running import first_of  # noqa: PLC0415

    try:
        jobs = jobs_of(arguments)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    except OSError as error:
        print_problem(arguments, error)
        return 1
    receiving = ReportedRun(jobs, arguments)
    names = ", ".join(jobs[0].settings.servers.labels)
    receiving.print_line(f"from {arguments.address} of {names} into {arguments.dir}")
    try:
        trio.run(receiving.work)
    except Exception as failure:
        cause = first_of(failure)
        if not isinstance(cause, receiving.expected):
            raise
        receiving.print_line(receiving.trouble or reason_of(cause))
        return 1
    return 0


def jobs_of(arguments: argparse.Namespace) -> list[Job]:
    """Return the jobs of the command line, one for each shard; ValueError, OSError."""
    from trouter_pipeline.spool.reader import spools_in  # noqa: PLC0415
    from trouter_pipeline.spool.receiver import ReceiverSettings  # noqa: PLC0415
    from trouter_pipeline.spool.running import Job  # noqa: PLC0415

    count: int = arguments.shards
    if not 1 <= count <= _MAX_SHARDS:
        raise ValueError(f"--shards is {count}, and has to be from 1 to {_MAX_SHARDS}")
    folder: Path = arguments.dir.absolute()
    folders = [folder] if count == 1 else [folder / f"shard-{number:03}" for number in range(count)]
    if unused := [path for path in spools_in(folder) if path not in folders]:
        raise ValueError(
            f"{unused[0]} is a spool that --shards {count} does not receive into: take the same number as before, or "
            "another folder, so that nothing in it is forgotten"
        )
    servers = servers_of(arguments, os.environ)
    settings = ReceiverSettings(
        servers=servers,
        address=arguments.address,
        credit=arguments.credit,
        linger_s=arguments.linger_ms / 1000,
        connect_timeout_s=arguments.timeout or _TIMEOUT_S,
        max_group_bytes=arguments.max_group_bytes,
        max_message_bytes=arguments.max_message_bytes,
        attempts=arguments.attempts,
    )
    return [
        Job(
            folder=path,
            settings=settings,
            segment_bytes=arguments.segment_bytes,
            backlog_bytes=arguments.backlog_bytes,
            shard=number,
            cursors=arguments.cursor,
        )
        for number, path in enumerate(folders)
    ]


class ReportedRun:
    """Runs the receivers, and reports on them on standard error and in the metrics file."""

    def __init__(self, jobs: list[Job], arguments: argparse.Namespace) -> None:
        import trio  # noqa: PLC0415

        from trouter.client.errors import ClientError  # noqa: PLC0415
        from trouter_pipeline.spool.errors import SpoolError  # noqa: PLC0415

        #: Failures that are reported without a traceback.
        self.expected: tuple[type[Exception], ...] = (
            ClientError,
            SpoolError,
            OSError,
            ValueError,
            trio.TooSlowError,
        )
        self._jobs = jobs
        self._cursor_age_s: float = 3600 * arguments.cursor_age
        self._metrics: Path | None = arguments.metrics_file
        self._served: str | None = arguments.metrics
        self._quiet: bool = arguments.quiet
        self._live = sys.stderr.isatty() and not self._quiet
        self._troubles: dict[int, str] = {}
        self._line = ""
        #: Why the only receiver ended.
        self.trouble = ""

    async def work(self) -> None:
        """Receive until a signal; raise a failure that ends the receivers."""
        import trio  # noqa: PLC0415

        from trouter_pipeline.spool.receiver import Progress  # noqa: PLC0415
        from trouter_pipeline.spool.reports import Shard  # noqa: PLC0415
        from trouter_pipeline.spool.running import Shards, run_job, until_signal  # noqa: PLC0415

        receive: Callable[[], Awaitable[None]]
        if len(self._jobs) == 1:
            job = self._jobs[0]
            shards = [Shard(0, job.settings.address, Progress())]
            receive = partial(run_job, job, shards[0].progress)
        else:
            several = Shards(self._jobs, self.print_line)
            shards = several.shards
            receive = several.run
        async with self._showing(shards), trio.open_nursery() as nursery:
            nursery.start_soon(self._again_and_again, shards)
            nursery.start_soon(self._look_at_cursors, shards)
            try:
                async with until_signal(with_input=False):
                    await receive()
            finally:
                self.trouble = shards[0].progress.trouble if len(self._jobs) == 1 else ""
                self._finish(shards)
            nursery.cancel_scope.cancel()

    def _showing(self, shards: list[Shard]) -> AbstractAsyncContextManager[None]:
        """Return the context in which metrics are served; an empty one without --metrics."""
        if self._served is None:
            return nullcontext()
        from trouter_pipeline.commands.scraped import shown  # noqa: PLC0415

        return shown(self._served, shards, self.print_line)

    def print_line(self, text: str) -> None:
        """Print one line."""
        if self._line:
            sys.stderr.write("\r\x1b[K")
        print(f"trouter pipeline spool: {escaped(text)}", file=sys.stderr, flush=True)
        if self._line:
            sys.stderr.write(self._line)
            sys.stderr.flush()

    async def _again_and_again(self, shards: list[Shard]) -> None:
        import trio  # noqa: PLC0415

        reported_at = trio.current_time()
        before = _totals(shards)
        while True:
            self._write_metrics(shards)
            await trio.sleep(_LIVE_S)
            self._report_troubles(shards)
            now = trio.current_time()
            if self._live or now - reported_at >= _PLAIN_S:
                after = _totals(shards)
                self._report(shards, [(b - a) / (now - reported_at) for a, b in zip(before, after, strict=True)])
                reported_at, before = now, after

    async def _look_at_cursors(self, shards: list[Shard]) -> None:
        """Measure and report how far cursors are behind, again and again."""
        import trio  # noqa: PLC0415

        from trouter_pipeline.spool.cursors import lags_of  # noqa: PLC0415
        from trouter_pipeline.spool.errors import SpoolError  # noqa: PLC0415
        from trouter_pipeline.spool.reports import stalled  # noqa: PLC0415

        told: dict[tuple[int, str], bool] = {}
        while True:
            for job, shard in zip(self._jobs, shards, strict=True):
                with suppress(SpoolError, OSError):  # which the receiver reports, or which pass
                    shard.lags = await trio.to_thread.run_sync(lags_of, job.folder)
                for lag in shard.lags:
                    finding = stalled(lag, time(), self._cursor_age_s)
                    if finding and not told.get((shard.number, lag.cursor)):
                        self.print_line(finding if len(shards) == 1 else f"shard {shard.number}: {finding}")
                    told[shard.number, lag.cursor] = bool(finding)
            await trio.sleep(_CURSORS_S)

    def _report_troubles(self, shards: list[Shard]) -> None:
        """Print the trouble of each shard when it changes."""
        for shard in shards:
            trouble = shard.progress.trouble
            if trouble and trouble != self._troubles.get(shard.number):
                self.print_line(trouble if len(shards) == 1 else f"shard {shard.number}: {trouble}")
            self._troubles[shard.number] = trouble

    def _report(self, shards: list[Shard], rates: list[float]) -> None:
        from trouter_pipeline.spool.reports import line_of  # noqa: PLC0415

        line = line_of(shards, *rates)
        if self._live:
            self._line = line
            sys.stderr.write(f"\r\x1b[K{line}")
            sys.stderr.flush()
        elif not self._quiet:
            print(line, file=sys.stderr, flush=True)

    def _finish(self, shards: list[Shard]) -> None:
        if self._line:
            sys.stderr.write("\n")
            self._line = ""
        self._write_metrics(shards)
        messages = sum(shard.progress.messages for shard in shards)
        self.print_line(f"{messages:,} messages kept")

    def _write_metrics(self, shards: list[Shard]) -> None:
        from trouter_pipeline.spool.metrics import write_metrics  # noqa: PLC0415

        if self._metrics is not None:
            try:
                write_metrics(self._metrics, shards)
            except OSError as error:
                trouble = f"no metrics: {error.strerror}: {self._metrics}"
                if trouble != self._troubles.get(-1):
                    self.print_line(trouble)
                self._troubles[-1] = trouble


def _totals(shards: list[Shard]) -> list[int]:
    return [sum(shard.progress.messages for shard in shards), sum(shard.progress.octets for shard in shards)]
