"""`trouter top`: the busiest links, addresses, connections or workers of a router, again and again."""

from __future__ import annotations

import argparse
import io
import json
import shutil
import sys
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from trouter.tools.failures import print_problem, run_tool
from trouter.tools.options import ConnectionOptions, add_connection_options, positive, seconds

if TYPE_CHECKING:
    from trouter.tools.busiest import Busiest, Row
    from trouter.tools.node import NodeClient

#: As `tools.busiest` has them, which imports the schema.
KINDS: Final = ("links", "addresses", "connections", "workers")
DEFAULT_INTERVAL_S: Final = 2.0
#: Rows where the output is no terminal, and lines of a terminal that are no rows.
DEFAULT_ROWS: Final = 20
_OTHER_LINES: Final = 5
#: Moves the cursor home and erases what is on the screen.
_CLEAR: Final = "\x1b[H\x1b[2J"

_EPILOG: Final = """examples:
  trouter top                               the busiest links, every two seconds, until Ctrl-C
  trouter top connections --interval 5      the busiest connections
  trouter top addresses --once              once, over two seconds, for scripts
  trouter top workers                       the load of each worker of a router with several
  trouter top --once --json --limit 5

Rates are deliveries a second between two looks: what did not exist at the look before has none yet. With --json each
look is a document on one line.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "top",
        help="show the busiest links, addresses, connections or workers",
        description="Show the busiest links, addresses, connections or workers of a router by their rates.",
        epilog=_EPILOG,
    )
    parser.add_argument("kind", nargs="?", choices=KINDS, default=KINDS[0], metavar="KIND", help=", ".join(KINDS))
    parser.add_argument(
        "--interval",
        type=seconds,
        default=DEFAULT_INTERVAL_S,
        metavar="SECS",
        help="time between two looks; default %(default)g",
    )
    parser.add_argument("--limit", type=positive, metavar="N", help="show N rows; default what fits the terminal")
    parser.add_argument("--once", action="store_true", help="show it once, and end")
    parser.add_argument("--json", action="store_true", help="each look as a JSON document on one line")
    add_connection_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Show the busiest; return the exit status."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    return run_tool(lambda: _top(arguments), arguments)


async def _top(arguments: argparse.Namespace) -> None:
    import trio  # noqa: PLC0415  # a shell that completes does without

    from trouter.tools.busiest import KINDS as BUSY  # noqa: PLC0415
    from trouter.tools.busiest import Busiest  # noqa: PLC0415
    from trouter.tools.interrupts import until_interrupted  # noqa: PLC0415
    from trouter.tools.node import open_node  # noqa: PLC0415

    options = ConnectionOptions.of(arguments)
    busiest = Busiest(BUSY[arguments.kind])
    async with open_node(options) as node:
        with nullcontext() if arguments.once else until_interrupted():
            await node.nodes()  # the answer says whether the router has several workers
            at_s = trio.current_time()
            await busiest.look(node, trio.current_time)
            while True:
                at_s += arguments.interval
                await trio.sleep_until(at_s)
                rows = await busiest.look(node, trio.current_time)
                _show(arguments, node, busiest, rows)
                if arguments.once:
                    node.check_complete()
                    return
                if incomplete := node.take_incomplete():
                    print_problem(arguments, incomplete)


def _show(arguments: argparse.Namespace, node: NodeClient, busiest: Busiest, rows: list[Row]) -> None:
    from trouter.tools import formats  # noqa: PLC0415
    from trouter.tools.table import aligned, may_colour  # noqa: PLC0415

    lives = sys.stdout.isatty() and not arguments.once and not arguments.json
    shown = rows[: arguments.limit or _fitting(lives)]
    if arguments.json:
        document = {
            "time": datetime.now(tz=UTC).isoformat(),
            "router": node.router_id,
            "intervalSeconds": arguments.interval,
            arguments.kind: shown,
        }
        text = json.dumps(document, separators=(",", ":"), default=formats.plain)
    else:
        title = f"{formats.now_utc()}  {formats.plain(node.router_id)}: the busiest of {len(rows):,} {arguments.kind}"
        text = "\n".join(aligned(busiest.grid(title, shown), colour=may_colour(sys.stdout)))
    sys.stdout.write(f"{_CLEAR if lives else ''}{text}\n")
    sys.stdout.flush()


def _fitting(lives: bool) -> int:
    """Return how many rows fit on the terminal."""
    return max(shutil.get_terminal_size().lines - _OTHER_LINES, 1) if lives else DEFAULT_ROWS
