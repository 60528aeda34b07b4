"""Routers that are away while the others are changed: skipped, and noted in the folder until they have the change."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from trouter.tools.failures import ConnectionException, print_problem

if TYPE_CHECKING:
    from trouter.tools.networks.folder import RouterFile
    from trouter.tools.networks.survey import NetworkStatus


def add_absence_options(parser: argparse.ArgumentParser, what: argparse._MutuallyExclusiveGroup) -> None:
    """Add the option that skips routers, and to ``what`` the one that lists those that were."""
    what.add_argument("--pending", action="store_true", help="list the routers that were away, and since when")
    parser.add_argument(
        "--skip-absent", action="store_true", help="leave out routers that are away; the change waits for them"
    )


def list_pending(arguments: argparse.Namespace) -> int:
    """Print the routers for which a change waits; return the exit status."""
    from trouter.tools.networks.pending import read_pending  # noqa: PLC0415  # a shell that completes does without

    waiting = read_pending(arguments.folder)
    if arguments.json:
        print(json.dumps({"pending": waiting}, indent=2))
        return 0
    for router, since in sorted(waiting.items()):
        print(f"{router}: the change waits since {since}")
    return 0


def present_of(
    arguments: argparse.Namespace, wanted: Sequence[RouterFile], status: NetworkStatus
) -> tuple[list[RouterFile], list[str]]:
    """Return the files whose routers answer, and the ids of the others; ConnectionException if there may be none."""
    from trouter.tools.networks.show import why_lost  # noqa: PLC0415  # a shell that completes does without

    faults = {router: why_lost(at_ms) for router, at_ms in status.lost.items()}
    faults |= {router.id: router.fault for router in status.routers}
    present = [file for file in wanted if faults.get(file.id) == ""]
    absent = [file.id for file in wanted if file not in present]
    if absent and not arguments.skip_absent:
        for router in absent:
            print_problem(arguments, f"{router}: {faults.get(router) or 'it is not in reach'}")
        raise ConnectionException(
            f"{', '.join(absent)} would miss the change: nothing was changed (--skip-absent lets it wait for them)"
        )
    return present, absent


def note_absent(arguments: argparse.Namespace, present: Sequence[RouterFile], absent: Sequence[str]) -> None:
    """Note in the folder for which routers the change waits, and for which it does not any more."""
    from trouter.tools.networks.pending import note_pending  # noqa: PLC0415

    note_pending(arguments.folder, absent, [file.id for file in present])


def print_absent(arguments: argparse.Namespace, absent: Sequence[str]) -> None:
    """Print which routers the change waits for."""
    for router in absent:
        print_problem(arguments, f"{router} is away: the change waits for it; the next run makes it there")
