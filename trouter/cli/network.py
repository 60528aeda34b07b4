"""`trouter network`: the routers of a network as one."""

from __future__ import annotations

import argparse
import io
import json
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Final

from trouter.tools.failures import Incomplete, run_tool
from trouter.tools.options import ConnectionOptions, add_server_options, seconds

if TYPE_CHECKING:
    from trouter.tools.networks.survey import NetworkStatus

#: Moves the cursor home and erases what is on the screen.
_CLEAR: Final = "\x1b[H\x1b[2J"

_EPILOG: Final = """examples:
  trouter network status                    every router and edge router, from the router on this machine
  trouter network status -b amqps://hub     from another one
  trouter network status --watch 5          again every five seconds, until Ctrl-C
  trouter network status --json             for programs

The command asks each router through the one that it is connected to, as `trouter stat -r ID` does. Its user needs the
management level `read` there; a router that does not answer, or refuses, is named with the reason, and the exit status
is 1. Routers of Qpid Dispatch show what they have.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "network",
        help="show all routers of a network as one",
        description="Show all routers of a network as one.",
        epilog=_EPILOG,
    )
    within = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    status = within.add_parser(
        "status",
        help="show every router: version, findings, connections, certificates, drain, policy",
        description="Show the state of every router of the network, and what an operator should look at.",
        epilog=_EPILOG,
    )
    status.add_argument("--json", action="store_true", help="as JSON, each look on one line")
    status.add_argument("--watch", type=seconds, metavar="SECS", help="show it again every so many seconds")
    add_server_options(status)
    status.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Show the state of the network; return the exit status."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    return run_tool(lambda: _status(arguments), arguments)


async def _status(arguments: argparse.Namespace) -> None:
    import trio  # noqa: PLC0415  # a shell that completes does without

    from trouter.tools.interrupts import until_interrupted  # noqa: PLC0415
    from trouter.tools.networks.survey import survey  # noqa: PLC0415
    from trouter.tools.node import open_node  # noqa: PLC0415

    async with open_node(ConnectionOptions.of(arguments)) as node:
        with until_interrupted() if arguments.watch else nullcontext():
            while True:
                began_s = trio.current_time()
                status = await survey(node)
                _show(status, arguments)
                if not arguments.watch:
                    _check_answered(status)
                    return
                await trio.sleep_until(began_s + arguments.watch)


def _show(status: NetworkStatus, arguments: argparse.Namespace) -> None:
    from trouter.tools.networks.show import json_of, text_of  # noqa: PLC0415
    from trouter.tools.table import may_colour  # noqa: PLC0415

    if arguments.json:
        text = json.dumps(json_of(status), separators=(",", ":") if arguments.watch else None)
    else:
        text = "\n".join(text_of(status, colour=may_colour(sys.stdout)))
    clears = arguments.watch and sys.stdout.isatty() and not arguments.json
    sys.stdout.write(f"{_CLEAR if clears else ''}{text}\n")
    sys.stdout.flush()


def _check_answered(status: NetworkStatus) -> None:
    """Raise Incomplete if a router, or a worker of one, did not answer."""
    silent = [router.id for router in status.routers if router.fault]
    if silent:
        raise Incomplete(f"{len(silent)} of {len(status.routers)} routers did not answer: {', '.join(silent)}")
    if status.incomplete:
        raise Incomplete("\n".join(status.incomplete))
