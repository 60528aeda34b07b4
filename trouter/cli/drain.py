"""`trouter drain`: empty a running router of its clients, which stays up; and take clients again."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any, Final

from trouter.tools.failures import ConnectionException, MalformedAnswer, print_problem, run_tool
from trouter.tools.options import ConnectionOptions, add_connection_options, duration
from trouter.tools.progress import progress

if TYPE_CHECKING:
    from trouter.tools.node import NodeClient

#: Seconds between two questions for the progress.
LOOK_S: Final = 0.5

_EPILOG: Final = """examples:
  trouter drain --over 60s          close the clients' connections one after the other, in a minute
  trouter drain --status            what is left?
  trouter drain --cancel            take clients again

The router stays up. At once it closes its listeners and /readyz answers 503, so that a load balancer sends new clients
elsewhere; then it closes the clients' connections, each once what is under way on it is settled. This command waits
for the last one. As the listeners are closed, later commands need another way in: a listener with `drains: no`, or
another router of the network (-r ID). Without such a listener, or one with `http: yes`, on which /readyz still answers,
the command refuses, unless --force is given or it comes through another router. The exit status is 1 if the drain was
cancelled meanwhile.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "drain",
        help="empty a running router of its clients, one after the other",
        description="Close a router's connections of clients over a stated time, and take no new ones.",
        epilog=_EPILOG,
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--over",
        type=duration,
        metavar="TIME",
        default=60.0,
        help="the time over which clients leave, as in 90, 60s, 5m or 1h; default 60s",
    )
    what.add_argument("--cancel", action="store_true", help="take clients again, and close no more connections")
    what.add_argument("--status", action="store_true", help="show the state, change nothing")
    parser.add_argument(
        "--force", action="store_true", help="drain also if no listener stays open through which a command could come"
    )
    parser.add_argument("--no-wait", action="store_true", help="do not wait for the last connection")
    parser.add_argument("--json", action="store_true", help="the state at the end as one JSON object")
    add_connection_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Drain, cancel or show the state; return the exit status."""
    begun: list[bool] = []
    try:
        return run_tool(lambda: _drain(arguments, begun), arguments)
    except KeyboardInterrupt:
        if begun:
            sys.stderr.write("The drain goes on; `trouter drain --cancel` ends it.\n")
        raise


async def _drain(arguments: argparse.Namespace, begun: list[bool]) -> None:
    from trouter.tools.node import open_node  # noqa: PLC0415  # a shell that completes does without

    async with open_node(ConnectionOptions.of(arguments)) as node:
        if arguments.status:
            state = _state(await node.call_self("GET-DRAIN"))
        elif arguments.cancel:
            state = _state(await node.call_self("CANCEL-DRAIN"))
        else:
            if not (arguments.force or arguments.router or arguments.edge_router):
                await _check_way_back(node)
            # rounded up: a router takes whole seconds
            state = _state(await node.call_self("DRAIN", over=-int(-arguments.over // 1)))
            begun.append(True)
            if not arguments.no_wait:
                if missing := node.take_incomplete():
                    print_problem(arguments, missing)
                state = await _wait(node, state, quiet=arguments.json)
        print(json.dumps(state, indent=2) if arguments.json else _as_text(node.router_id, state))
        if begun and state["state"] == "serving":
            raise ConnectionException("the drain was cancelled before its end")
        node.check_complete()


async def _check_way_back(node: NodeClient) -> None:
    """Raise ConnectionException if every listener closes: no further command could watch or cancel the drain."""
    rows = (await node.query("listener", ["drains", "http", "role"])).dicts()
    if not any(row["drains"] is False or row["http"] for row in rows):
        raise ConnectionException(
            "all listeners of the router would close, and no further command could watch or cancel the drain: give it "
            "a listener with `drains: no`, ask through another router (-r ID), or write --force and wait for the end"
        )


async def _wait(node: NodeClient, state: dict[str, Any], *, quiet: bool) -> dict[str, Any]:
    """Show the progress until no connection is left, or the drain was cancelled; return the last state."""
    import trio  # noqa: PLC0415

    total = state["total"]
    with progress("draining", total, " connections", quiet=quiet) as advance:
        shown = 0
        while state["state"] == "draining":
            gone = min(max(total - state["left"], shown), total)
            advance(gone - shown)
            shown = gone
            await trio.sleep(LOOK_S)
            node.take_incomplete()  # the last answer counts: a worker that ended meanwhile is replaced
            state = _state(await node.call_self("GET-DRAIN"))
    return state


def _state(answer: object) -> dict[str, Any]:
    """Return the map of an answer; MalformedAnswer."""
    if not isinstance(answer, dict) or not isinstance(answer.get("left"), int):
        raise MalformedAnswer("the answer is not the state of a drain")
    return {str(key): value for key, value in answer.items()}


def _as_text(router_id: str, state: dict[str, Any]) -> str:
    """Return the state as a line."""
    if state["state"] == "serving":
        return f"{router_id}: takes clients, and is not draining"
    if state["state"] == "drained":
        return f"{router_id}: drained: no client connection is left, the router closed {state['closed']}"
    left, total = state["left"], state["total"]
    return f"{router_id}: draining: {left} of {total} client connections are left, over {state['overSeconds']:g} s"
