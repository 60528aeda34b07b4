"""`trouter diagnose`: writes an archive with the state of a router or a network, without secrets."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from trouter.tools.diagnosis import Archive, diagnose
from trouter.tools.failures import Timeout, as_text, print_problem, run_tool
from trouter.tools.formats import size
from trouter.tools.node import NodeClient, open_node
from trouter.tools.options import ConnectionOptions, add_router_options, positive
from trouter.tools.versions import versions

DEFAULT_LOG_LINES: Final = 1000

_EPILOG: Final = """examples:
  trouter diagnose                                    the router at $TROUTER_BUS, or on this machine
  trouter diagnose --all-routers -o network.tar.gz    each router of the network
  trouter diagnose --config /etc/trouter.conf --file /var/log/trouter.log --file /var/tmp/trouter.dump

The archive holds every table of management, memory, the last lines of the log and versions, and what --config and
--file name (the state that a router dumps at SIGUSR1 is such a file). Passwords, tokens and private keys are struck
out; names of users, hosts and addresses are not. Read it before you hand it on.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "diagnose",
        help="collect a router's tables, logs and versions in one archive, without secrets",
        description="Write an archive from which an engineer can find the cause of a problem.",
        epilog=_EPILOG,
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="default trouter-DATE.tar.gz; a new file")
    parser.add_argument(
        "--log", type=positive, default=DEFAULT_LOG_LINES, metavar="N", help="lines; default %(default)s"
    )
    parser.add_argument("--config", type=Path, action="append", default=[], metavar="FILE", help="a configuration file")
    parser.add_argument("--file", type=Path, action="append", default=[], metavar="FILE", help="any other text file")
    add_router_options(parser).add_argument("--all-routers", action="store_true", help="of the whole network")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the archive and list its content; return the exit status."""
    problems: list[str] = []
    status = run_tool(lambda: _diagnose(arguments, problems), arguments)
    return status or (1 if problems else 0)


async def _diagnose(arguments: argparse.Namespace, problems: list[str]) -> None:
    options = ConnectionOptions.of(arguments)
    path: Path = arguments.output or Path(f"trouter-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.tar.gz")
    archive = Archive(path, (options.password, options.key_password))
    try:
        archive.add_json("versions.json", versions())
        for folder, files in (("configuration", arguments.config), ("files", arguments.file)):
            for file in files:
                try:
                    archive.add_file(folder, file)
                except OSError as failure:
                    problems.append(as_text(failure))
        try:
            async with open_node(options) as node:
                await _ask_routers(node, archive, arguments, problems)
        except Exception as failure:  # noqa: BLE001  # a router out of reach is a finding: the rest is of use
            problems.append(as_text(failure))
        if problems:
            archive.add("problems.txt", "".join(f"{each}\n" for each in problems))
    finally:
        archive.close()
    for name, octets in archive.contents.items():
        print(f"{size(octets):>9}  {name}")
    for problem in problems:
        print_problem(arguments, problem)
    print(path)


async def _ask_routers(node: NodeClient, archive: Archive, arguments: argparse.Namespace, problems: list[str]) -> None:
    """Add the state of one router, or of each in the network; a router without answer is only reported."""
    problems += await diagnose(node, archive, arguments.log)
    problems += filter(None, [node.take_incomplete()])
    if not arguments.all_routers:
        return
    for router in await node.routers():
        if router == node.router_id:
            continue
        try:
            async with node.of_router(router) as other:
                problems += await diagnose(other, archive, arguments.log)
        except Timeout as silent:
            problems.append(f"{router}: {silent}")
