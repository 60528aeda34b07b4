"""`trouter network events`: what happened lately at all routers of a network, as one stream."""

from __future__ import annotations

import argparse
import io
import json
import sys
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Final

from trouter.tools.failures import Incomplete, print_problem, run_tool
from trouter.tools.options import ConnectionOptions, add_server_options, moment

if TYPE_CHECKING:
    from trouter.tools.networks.events import RouterEvent

#: Seconds between two questions with --follow.
LOOK_S: Final = 2.0

_EPILOG: Final = """examples:
  trouter network events                    what every router remembers, the oldest first
  trouter network events --since 10m        of the last ten minutes
  trouter network events --follow           and what happens from now on, until Ctrl-C
  trouter network events --json             one JSON object a line

Kinds: `network`, a change of the network as that router saw it; `login`, a refused login; `denial`, what the policy
refused; `alarm`, raised or cleared. A router keeps the last hundred changes, denials with logins, and alarms. What
happens again is one event, with a count and the last time. Times are those of the routers' clocks. The user needs the
management level `read`.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "events",
        help="show changes of the network, refused logins, denials and alarms of all routers",
        description="Show what happened lately at every router of the network, in the order of time.",
        epilog=_EPILOG,
    )
    parser.add_argument(
        "--since",
        metavar="TIME",
        type=moment,
        help="only from then on: 2026-03-01T12:00 (UTC), or 90s, 10m, 2h, 7d ago",
    )
    parser.add_argument("--follow", action="store_true", help="go on with what happens, until Ctrl-C")
    parser.add_argument("--json", action="store_true", help="as JSON, each event on one line")
    add_server_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Show the events; return the exit status."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    return run_tool(lambda: _work(arguments), arguments)


async def _work(arguments: argparse.Namespace) -> None:
    import trio  # noqa: PLC0415  # a shell that completes does without

    from trouter.tools.interrupts import until_interrupted  # noqa: PLC0415
    from trouter.tools.networks.events import read_events  # noqa: PLC0415
    from trouter.tools.node import open_node  # noqa: PLC0415

    shown: dict[str, frozenset[RouterEvent]] = {}
    faults: Mapping[str, str] = {}
    async with open_node(ConnectionOptions.of(arguments)) as node:
        with until_interrupted() if arguments.follow else nullcontext():
            while True:
                found = await read_events(node)
                _show(
                    arguments,
                    (
                        each
                        for router, events in found.by_router.items()
                        for each in events - shown.get(router, frozenset())
                    ),
                )
                former, faults = faults, found.faults
                if not arguments.follow:
                    break
                for router, why in faults.items():
                    if former.get(router) != why:
                        print_problem(arguments, f"{router}: {why}")
                shown |= found.by_router
                await trio.sleep(LOOK_S)
    if faults:
        raise Incomplete("\n".join(f"{router}: {why}" for router, why in faults.items()))


def _show(arguments: argparse.Namespace, events: Iterable[RouterEvent]) -> None:
    for event in sorted(events, key=lambda each: each.order):
        if arguments.since is None or event.at_ms * 1000 >= arguments.since:
            print(json.dumps(event.json()) if arguments.json else event.line(), flush=True)
