"""`trouter network`: the routers of a network as one."""

from __future__ import annotations

import argparse
import io
import json
import sys
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from trouter.cli import network_apply, network_events, network_policy, network_roll
from trouter.cli.startup import existing_path
from trouter.tools.failures import ConnectionException, Incomplete, print_problem, run_tool
from trouter.tools.options import ConnectionOptions, add_server_options, seconds

if TYPE_CHECKING:
    from trouter.tools.networks.checking import CheckedRouter
    from trouter.tools.networks.folder import RouterFile
    from trouter.tools.networks.survey import NetworkStatus

#: Moves the cursor home and erases what is on the screen.
_CLEAR: Final = "\x1b[H\x1b[2J"

_EPILOG: Final = """examples:
  trouter network status                    every router and edge router, from the router on this machine
  trouter network status -b amqps://hub     from another one
  trouter network status --watch 5          again every five seconds, until Ctrl-C
  trouter network check network/            what every file would change at its router, and what is wrong with it
  trouter network diff network/             the same without the findings
  trouter network apply network/            make the change at every router, or at none (--help tells more)
  trouter network policy push policy/       give every router the same policy (--help tells more)
  trouter network roll -- ./restart.sh {id} drain and restart one router after the other (--help tells more)
  trouter network events --since 10m        what happened lately at every router

Each command asks every router in reach through the one that it is connected to, as `trouter stat -r ID` does, and names
the routers that do not answer, or refuse, with the reason; the exit status is then 1. A router that has stopped is not
in reach.
"""
_FOLDER: Final = """A folder of a network:
  network/common.conf         sections that all routers have; optional
  network/routers/A.conf      what router A has beside them
  network/routers/B.conf

The router judges the text itself, on its machine, as it would at a reload, and changes nothing. Lines: `+` created,
`~` updated, with the attributes, `-` deleted, `!` needs a restart. The user needs the management level `read`. For a
user below `admin` a router judges no password that is in the text, and no file or folder that it does not use already.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "network",
        help="show, check and change all routers of a network as one",
        description="Show, check and change all routers of a network as one.",
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
    status.set_defaults(run=_command(_status))
    for name, text in (
        ("check", "say what a file for each router would change there, and what is wrong with it"),
        ("diff", "say what a file for each router would change there"),
    ):
        checking = within.add_parser(
            name,
            help=text,
            description=f"{text[0].upper()}{text[1:]}. Nothing changes.",
            epilog=_FOLDER,
        )
        checking.add_argument("folder", metavar="FOLDER", type=existing_path, help="the folder with the files")
        checking.add_argument("--json", action="store_true", help="as one JSON document")
        add_server_options(checking)
        checking.set_defaults(run=_command(_check), shows_findings=name == "check")
    network_apply.add_parser(within)
    network_roll.add_parser(within)
    network_policy.add_parser(within)
    network_events.add_parser(within)


def _command(work: Callable[[argparse.Namespace], Awaitable[None]]) -> Callable[[argparse.Namespace], int]:
    """Return the function that runs a command and returns its exit status."""

    def run(arguments: argparse.Namespace) -> int:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")
        return run_tool(lambda: work(arguments), arguments)

    return run


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


async def _check(arguments: argparse.Namespace) -> None:
    from trouter.tools.networks.checking import check_files  # noqa: PLC0415
    from trouter.tools.networks.folder import contradictions, read_folder  # noqa: PLC0415
    from trouter.tools.networks.survey import survey  # noqa: PLC0415
    from trouter.tools.node import open_node  # noqa: PLC0415

    files = read_folder(arguments.folder)
    remarks = list(contradictions(files))
    async with open_node(ConnectionOptions.of(arguments)) as node:
        status = await survey(node)
        checked = await check_files(node, files, status)
    named = {file.id for file in files}
    without = [router for router in status.configured() if router not in named]
    _show_checked(arguments, files, checked, remarks, without)
    bad = [each.router for each in checked if not each.is_good]
    if bad or any(is_grave for _, is_grave in remarks):
        routers = f"of {len(bad)} of {len(files)} routers ({', '.join(bad)})" if bad else "of the network"
        raise ConnectionException(f"the files {routers} are not good: nothing was changed")


def _show_checked(
    arguments: argparse.Namespace,
    files: list[RouterFile],
    checked: list[CheckedRouter],
    remarks: list[tuple[str, bool]],
    without: list[str],
) -> None:
    from trouter.tools.networks.checking import lines_of  # noqa: PLC0415

    if arguments.json:
        document = {
            "routers": [{**asdict(each), "good": each.is_good} for each in checked],
            "network": [{"message": text, "grave": is_grave} for text, is_grave in remarks],
            "withoutFile": without,
        }
        # the values of other routers: JSON has no place for some that AMQP has
        print(json.dumps(document, indent=2, default=str, skipkeys=True))
        return
    for file, each in zip(files, checked, strict=True):
        print("\n".join(lines_of(file, each, findings=arguments.shows_findings)))
    for text, _ in remarks:
        print_problem(arguments, text)
    if without:
        print_problem(arguments, f"no file for {', '.join(without)}: left as it is")
