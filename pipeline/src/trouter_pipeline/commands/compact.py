"""`trouter pipeline compact`: make Parquet files of segments of records, for Spark, DuckDB and others."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from trouter.tools.failures import print_problem
from trouter_pipeline.commands.answers import reported
from trouter_pipeline.commands.roots import add_root, local_folder
from trouter_pipeline.commands.spark import add_spark, started

if TYPE_CHECKING:
    from trouter_pipeline.compact import Runner, Summary
    from trouter_pipeline.gaps import Gap
    from trouter_pipeline.progress import Progress

#: Maximum number of gaps that are printed.
_SHOWN = 20


def add_parser(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser(
        "compact",
        help="prove segments of records, and make tables of them",
        description="Prove the segments in the folders of routers' recordLog sections, and add them to the Delta "
        "table ROOT/records. The command skips segments that it has read before, so it "
        "may run at any time; it leaves a segment that is still being written for the next time. If a segment is not "
        "as the router wrote it, the command prints file and offset and leaves it out, and the exit status is 1. One "
        "ROOT takes one recordLog of each router. Tasks of Spark do the work; on a cluster every machine must see the "
        "folders under the same names. Where Spark cannot run, and with --jobs, processes of this machine do it.",
    )
    parser.add_argument(
        "segments", nargs="+", type=local_folder, metavar="SEGMENTS_DIR", help="where a router keeps its records"
    )
    add_root(parser, made=True)
    parser.add_argument(
        "--jobs",
        type=int,
        metavar="N",
        help="work in up to so many processes of this machine, without Spark; where Spark cannot run they are as many "
        "as there are cores",
    )
    parser.add_argument(
        "--mark",
        action="store_true",
        help="write a mark beside each segment that ROOT has: a router that must make room deletes marked segments "
        "first. Only for the ROOT that is kept; the folders must be writable",
    )
    parser.add_argument(
        "--accept-changes",
        action="store_true",
        help="take the records in ROOT as they are if another program has changed them, which is an error otherwise; "
        "what is computed --again is made of what is left",
    )
    parser.add_argument("--json", action="store_true", help="print what was done as JSON")
    add_spark(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Compact, and print the result; return 1 for a faulty segment or another error, else 0."""
    from trouter_pipeline.compact import in_processes  # noqa: PLC0415  # Arrow, only when it runs
    from trouter_pipeline.needs import missing  # noqa: PLC0415
    from trouter_pipeline.progress import Progress  # noqa: PLC0415

    chosen = arguments.master or arguments.conf
    if arguments.jobs is not None and chosen:
        raise argparse.ArgumentTypeError("--jobs is for processes of this machine, --master and --conf for Spark")
    progress = Progress(arguments.command_parser.prog, quiet=arguments.quiet)
    lacks = [] if arguments.jobs is not None or chosen else missing()
    if arguments.jobs is not None or lacks:
        jobs = arguments.jobs or os.cpu_count() or 1
        if lacks:
            progress(f"Spark cannot run here ({lacks[0].what}): up to {jobs} processes work instead")
        return reported(arguments, lambda: _compact(arguments, in_processes(jobs), jobs, progress))
    # Tasks have another working folder.
    arguments.segments = [folder.absolute() for folder in arguments.segments]
    arguments.root = arguments.root.absolute()
    with ExitStack() as stack:
        runner = _InSpark(arguments, stack, progress)
        cores = runner.cores()
        return reported(arguments, lambda: _compact(arguments, runner, cores, progress))


class _InSpark:
    """A runner of Spark's tasks. Spark starts with the first work, because often no segment is new."""

    def __init__(self, arguments: argparse.Namespace, stack: ExitStack, progress: Progress) -> None:
        """``stack`` stops Spark at its end."""
        self._arguments = arguments
        self._stack = stack
        self._progress = progress
        self._spark: Any = None

    def __call__(self, work: Callable[[Any], Any], items: Sequence[Any]) -> Iterable[Any]:
        if not items:
            return ()
        return self._start()(work, items)

    def cores(self) -> int:
        """Return the number of tasks that Spark runs at once: on this machine all of its cores, before it starts."""
        if not self._arguments.master:
            return os.cpu_count() or 1
        self._start()
        assert self._spark is not None  # noqa: S101 - it was started
        cores: int = self._spark.sparkContext.defaultParallelism
        return cores

    def _start(self) -> Runner:
        from trouter_pipeline.compact import in_tasks  # noqa: PLC0415

        if self._spark is None:
            self._progress.close()
            self._spark, _ = self._stack.enter_context(started(self._arguments))
        return in_tasks(self._spark)


def _compact(arguments: argparse.Namespace, runner: Runner, cores: int, progress: Progress) -> int:
    from trouter_pipeline.compact import compact  # noqa: PLC0415

    try:
        summary = compact(
            arguments.segments,
            arguments.root,
            run=runner,
            cores=cores,
            mark=arguments.mark,
            accept=arguments.accept_changes,
            progress=progress.detail,
        )
    finally:
        progress.close()
    if arguments.json:
        gaps = [{**gap._asdict(), "explained": gap.explained} for gap in summary.gaps]
        print(json.dumps({**asdict(summary), "gaps": gaps}))
    else:
        _print(arguments, summary)
    return 1 if summary.errors else 0


def _print(arguments: argparse.Namespace, summary: Summary) -> None:
    told = [*summary.errors, *(f"note: {note}" for note in summary.notes)]
    told += [f"missing: {_text_of(gap)}" for gap in summary.gaps[:_SHOWN]]
    if len(summary.gaps) > _SHOWN:
        told.append(f"missing: {len(summary.gaps) - _SHOWN} more gaps; --json prints all")
    for text in told:
        print_problem(arguments, text)
    days = f", of {summary.dates[0]} to {summary.dates[-1]}" if summary.dates else ""
    print(
        f"{summary.segments} segments with {summary.records} new records{days}; {summary.known} known before, "
        f"{summary.unfinished} still being written, {len(summary.errors)} errors"
    )


def _text_of(gap: Gap) -> str:
    numbers = str(gap.from_n) if gap.from_n == gap.to_n else f"{gap.from_n}-{gap.to_n}"
    return f"{numbers} of {gap.router}, start {gap.boot}: {gap.reason or 'no record gives the reason'}"
