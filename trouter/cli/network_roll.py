"""`trouter network roll`: the routers of a network restarted by a command, one after the other, each drained first."""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from trouter.cli.network_change import add_order_options
from trouter.tools.failures import ConnectionException, UsageError, print_problem, run_telling
from trouter.tools.options import ConnectionOptions, add_server_options, duration, seconds

if TYPE_CHECKING:
    from trouter.tools.networks.rolling import Roll, RolledRouter
    from trouter.tools.networks.survey import NetworkStatus

#: Seconds for each wait, unless the operator says otherwise.
PATIENCE_S: Final = 300.0

_EPILOG: Final = """examples:
  trouter network roll --edges-first -- ssh {id}.example.com sudo systemctl restart trouter
  trouter network roll --only A --only B -- ./upgrade.sh
  trouter network roll --dry-run                say in which order

For each router: drain it, wait until no client connection is left, run the command, and wait until the router answers
and takes clients, has its neighbours, and its addresses have consumers again, there or at another router. The roll
stops at the first router that does not come back, and at a command whose status is not 0; the exit status is then 1.

In the command {id} stands for the id of the router, which is in the variable TROUTER_ROUTER too. No shell reads it,
unless you write one (sh -c '...'). Its output goes to stderr. It must not end before the restart has begun: a router
that still drains after it was not restarted, and takes clients again. The user needs the management level `operate` at
each router.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "roll",
        help="drain and restart one router after the other, by a command",
        description="Drain one router after the other, run a command for it, and wait until it is back.",
        epilog=_EPILOG,
    )
    parser.add_argument("words", metavar="COMMAND", nargs="*", help="the command and its arguments, behind --")
    parser.add_argument("--dry-run", action="store_true", help="only say in which order the routers would come")
    add_order_options(parser)
    parser.add_argument(
        "--over",
        type=duration,
        metavar="TIME",
        default=60.0,
        help="the time over which the clients of a router leave, as in 90, 60s, 5m or 1h; default 60s",
    )
    parser.add_argument(
        "--patience",
        type=seconds,
        metavar="SECS",
        default=PATIENCE_S,
        help=f"how long each wait may take; that for the drain begins after --over; default {PATIENCE_S:g}",
    )
    parser.add_argument("--json", action="store_true", help="as one JSON document")
    add_server_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Roll; return the exit status. After Ctrl-C the state of each router is printed."""
    _check_words(arguments)
    begun: list[Roll] = []

    def tell() -> None:
        for roll in begun:
            print_problem(arguments, "\n".join(["interrupted", *_lines_left(roll.routers)]))

    return run_telling(lambda: _work(arguments, begun), arguments, tell)


def _check_words(arguments: argparse.Namespace) -> None:
    """Raise UsageError without a command that can be run."""
    from trouter.tools.networks.rolling import PLACEHOLDER  # noqa: PLC0415  # a shell that completes does without

    if not arguments.words:
        if not arguments.dry_run:
            raise UsageError("give the command that restarts a router, behind --")
        return
    program = arguments.words[0]
    if PLACEHOLDER not in program and shutil.which(program) is None:
        raise UsageError(f"there is no command {program!r} that this user may run")


async def _work(arguments: argparse.Namespace, begun: list[Roll]) -> None:
    from trouter.tools.networks.rolling import Roll, RollStopped  # noqa: PLC0415
    from trouter.tools.networks.survey import survey  # noqa: PLC0415
    from trouter.tools.node import open_node  # noqa: PLC0415

    options = ConnectionOptions.of(arguments)
    async with open_node(options) as node:
        status = await survey(node)
        routers = _routers(arguments, status, node.router_id)
    if arguments.dry_run:
        _print_result(arguments, routers, "checked")
        return

    def tell(router: RolledRouter) -> None:
        if not arguments.json:
            print(_line_of(router), flush=True)

    roll = Roll(options, status, routers, over_s=arguments.over, patience_s=arguments.patience, tell=tell)
    begun.append(roll)
    try:
        await roll.run(arguments.words)
    except RollStopped as stopped:
        if arguments.json:
            _print_result(arguments, routers, "stopped")
        raise ConnectionException("\n".join([str(stopped), *_lines_left(routers)])) from stopped
    if arguments.json:
        _print_result(arguments, routers, "rolled")


def _routers(arguments: argparse.Namespace, status: NetworkStatus, connected: str) -> list[RolledRouter]:
    """Return the routers in their order; ConnectionException if the roll cannot begin."""
    from trouter.tools.networks.rolling import RolledRouter, check_ids, ordered  # noqa: PLC0415
    from trouter.tools.networks.show import why_lost  # noqa: PLC0415

    known = status.configured()
    if unknown := sorted(set(arguments.only).difference(known)):
        raise ConnectionException(f"{', '.join(unknown)} is not in reach: nothing was begun")
    if silent := [f"{router.id}: {router.fault}" for router in status.routers if router.fault]:
        raise ConnectionException("\n".join([*silent, "not every router answers: nothing was begun"]))
    if status.lost and not arguments.only:
        gone = [f"{router}: {why_lost(at_ms)}" for router, at_ms in status.lost.items()]
        end = "the others may have to carry its clients: nothing was begun; --only rolls the routers that it names"
        raise ConnectionException("\n".join([*gone, end]))
    wanted = [
        router
        for router in status.routers
        if router.id in known and (not arguments.only or router.id in arguments.only)
    ]
    if other := [router.id for router in wanted if router.drain_state is None]:
        raise ConnectionException(
            f"{', '.join(other)} cannot be drained, or does not show it: nothing was begun; --only leaves it out"
        )
    modes = {router.id: router.mode for router in status.routers}
    if modes.get(connected) == "edge" and any(router.id != connected for router in wanted):
        raise ConnectionException(
            f"{connected} is an edge router, and would lose its way to the others: nothing was begun; connect to an "
            "interior router (-b)"
        )
    routers = [RolledRouter(router.id, router.mode == "edge") for router in wanted]
    check_ids(routers)
    first = next((each for each in known if connected.startswith(f"{each}.") and connected not in known), connected)
    return ordered(routers, first, edges_first=arguments.edges_first)


def _line_of(router: RolledRouter) -> str:
    how = {None: "", True: ", restarted", False: ", not restarted"}[router.restarted]
    return f"{router.id}: {router.stage}{how}"


def _lines_left(routers: Sequence[RolledRouter]) -> list[str]:
    """Return how far an ended roll came, and what ends the drain of the router at which it ended."""
    from trouter.tools.networks.rolling import Stage  # noqa: PLC0415

    lines = [f"{router.id}: {router.stage}" for router in routers if router.stage not in {Stage.WAITING, Stage.DONE}]
    for title, stage in (("done", Stage.DONE), ("not begun", Stage.WAITING)):
        lines.append(f"{title}: {', '.join(router.id for router in routers if router.stage is stage) or 'none'}")
    for router in routers:
        if router.may_drain:
            option = "-d" if router.edge else "-r"
            lines.append(
                f"if {router.id} still drains: `trouter drain {option} {router.id} --cancel`, through another router, "
                "lets it take clients again"
            )
    if left := [router.id for router in routers if router.stage is not Stage.DONE]:
        lines.append(f"go on with: {' '.join(f'--only {router}' for router in left)}")
    return lines


def _print_result(arguments: argparse.Namespace, routers: Sequence[RolledRouter], state: str) -> None:
    if not arguments.json:
        for router in routers:
            print(router.id)
        return
    document = {
        "state": state,
        "routers": [
            {"router": each.id, "stage": str(each.stage), "why": each.why, "restarted": each.restarted}
            for each in routers
        ],
    }
    print(json.dumps(document, indent=2))
