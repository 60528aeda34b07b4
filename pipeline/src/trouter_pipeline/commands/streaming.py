"""What actions that read a stream share: its options, and waiting for its end."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from trouter.tools.failures import print_problem
from trouter_pipeline.commands.roots import local_folder

if TYPE_CHECKING:
    from trouter_pipeline.streams import Pace


def add_pace(group: argparse._ArgumentGroup) -> None:
    """Add the options that say how a stream runs."""
    group.add_argument(
        "--checkpoint",
        type=local_folder,
        metavar="DIR",
        help="the folder of the stream's checkpoint, on this machine, where it continues after a stop",
    )
    group.add_argument(
        "--every", type=int, metavar="SECONDS", help="look again so often, until interrupted; else end at the end"
    )
    group.add_argument(
        "--late-by", type=int, default=120, metavar="SECONDS", help="how much later than others a row may come (120)"
    )
    group.add_argument(
        "--late",
        choices=("drop", "fail"),
        default="fail",
        help="what to do about those still later: end (fail, the default), or go on without them (drop) to status 1",
    )


def pace_of(arguments: argparse.Namespace) -> Pace:
    """Return the pace that the command line gives; ValueError."""
    from trouter_pipeline.streams import Pace  # noqa: PLC0415  # only when an action runs

    return Pace(arguments.late_by, arguments.every, arguments.late)


def watched(
    arguments: argparse.Namespace,
    start: Callable[[], Any],
    pace: Pace,
    progress: Any,
    at_end: Callable[[], object] = lambda: None,
) -> int:
    """Start a stream, wait until it ends or is interrupted, and call ``at_end`` unless it failed; return the status."""
    from trouter_pipeline.streams import LateRows, StreamFailed, watch  # noqa: PLC0415  # Spark is here by now

    try:
        done = watch(start, pace)
    except KeyboardInterrupt:
        at_end()
        return 0
    except (LateRows, StreamFailed) as error:
        progress.close()
        print_problem(arguments, error)
        return 1
    at_end()
    progress.close()
    if done.late:
        print_problem(arguments, f"{done.late} rows came too late and were left out")
    return 1 if done.late else 0
