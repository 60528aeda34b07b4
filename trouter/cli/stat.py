"""`trouter stat`: show what a running router holds and does. `qdstat` is the same with fewer options."""

from __future__ import annotations

import argparse
import io
import sys
from contextlib import AsyncExitStack
from typing import Final, NoReturn

import trio

from trouter.tools.failures import Incomplete, UsageError, as_text, print_problem, run_tool
from trouter.tools.interrupts import until_interrupted
from trouter.tools.options import ConnectionOptions, add_connection_options, seconds
from trouter.tools.table import may_colour
from trouter.tools.views import ALL_ENTITIES, GENERAL, OWN_VIEWS, VIEWS, View
from trouter.tools.views.paths import paths
from trouter.tools.views.rates import Rates
from trouter.tools.views.render import Look
from trouter.tools.views.show import Window, Wishes
from trouter.tools.views.traffic import ADDRESSES, CONNECTIONS
from trouter.tools.views.why import why

_EVERYTHING: Final = "all-entities"
#: Filter -> the view that it shows if none is named.
_FILTERS: Final = {"vhost": CONNECTIONS, "address": ADDRESSES, "connection": CONNECTIONS}
#: Flags of views of qdstat that are options of another meaning here.
_ELSEWHERE: Final = frozenset({"--memory", "-a", "--address"})
#: Moves the cursor home and erases what is on the screen.
_CLEAR: Final = "\x1b[H\x1b[2J"
_BY_NAME: Final = {view.name: view for view in (*VIEWS, *OWN_VIEWS)}

_EPILOG: Final = """examples:
  trouter stat -c                        who is connected
  trouter stat -l --address 'orders*'    the links of some addresses
  trouter stat -a --watch 2              addresses with their rates, every two seconds
  trouter stat --why orders              why does nothing arrive?
  trouter stat --paths A B               which routers a message from A to B passes
  trouter stat --topology                what changed in the network, why, and for how long
  trouter stat -g --json                 for programs
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "stat",
        help="show what a running router holds and does",
        description="Ask a router's management node, and show the answer as a table.",
        epilog=_EPILOG,
        intermixed=True,  # so that this command reports a word too many
    )
    add_options(parser)


def add_options(parser: argparse.ArgumentParser, *, older: bool = False) -> None:
    """Add every option; with ``older`` exactly those of qdstat, with their meaning there."""
    choice = parser.add_argument_group("what to show")
    one = choice.add_mutually_exclusive_group()
    for view in VIEWS:
        flags = view.flags if older else tuple(flag for flag in view.flags if flag not in _ELSEWHERE)
        if not flags:
            continue
        one.add_argument(*flags, action="store_const", dest="view", const=view.name, help=view.help)
    one.add_argument(
        "--all-entities", action="store_const", dest="view", const=_EVERYTHING, help="show most of the above"
    )
    if not older:
        for view in OWN_VIEWS:
            one.add_argument(*view.flags, action="store_const", dest="view", const=view.name, help=view.help)
        one.add_argument("--why", metavar="ADDRESS", help="say why messages for an address do not flow")
        one.add_argument(
            "--paths", nargs=2, metavar=("A", "B"), help="show the way from router A to router B, hop by hop"
        )
    target = add_connection_options(parser, contexts=not older)
    target.add_argument("--all-routers", action="store_true", help="show it of every router of the network")
    parser.add_argument("--limit", type=int, default=0, metavar="N", help="show N rows at most; 0 is all")
    parser.add_argument(
        "--csv",
        action="store_true",
        help="cells in quotes, with commas between them"
        if older
        else "one CSV table, with a column `table` if there are several",
    )
    parser.set_defaults(run=run, view=None, older=older)
    if older:
        parser.set_defaults(why=None, paths=None, json=False, watch=None, vhost=None, address=None, connection=None)
    else:
        _add_own_options(parser)


def _add_own_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="what is shown as JSON, with numbers as numbers")
    parser.add_argument(
        "--watch", type=seconds, metavar="SECS", help="show it again every so many seconds, with rates, until Ctrl-C"
    )
    chosen = parser.add_argument_group("of what")
    chosen.add_argument("--vhost", metavar="NAME", help="only what belongs to this vhost")
    chosen.add_argument(
        "-a",
        "--address",
        nargs="?",
        const="",
        metavar="TEXT",
        help="only what belongs to this address, `*` and `?` stand for anything; without TEXT show all addresses",
    )
    chosen.add_argument(
        "--connection",
        nargs="?",
        const="",
        metavar="ID",
        help="only what belongs to the connection with this number, container or host; without ID the same as -c",
    )


def run(arguments: argparse.Namespace) -> int:
    """Show the chosen views; return the exit status."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    return run_tool(lambda: _stat(arguments), arguments)


async def _stat(arguments: argparse.Namespace) -> None:
    wishes = wishes_of(arguments)
    look = Look(
        verbose=arguments.verbose > 0,
        csv=arguments.csv and arguments.older,
        colour=not (arguments.csv or arguments.json) and may_colour(sys.stdout),
        rates=Rates() if arguments.watch else None,
    )
    async with AsyncExitStack() as stack:
        window = Window(wishes, look, sys.stdout)
        await window.open(ConnectionOptions.of(arguments), stack)
        if look.rates is None:
            silence = await window.show()
            if incomplete := window.take_incomplete():
                raise Incomplete(incomplete if silence is None else f"{incomplete}\n{as_text(silence)}")
            if silence is not None:
                raise silence
        else:
            with until_interrupted():
                await _watch(window, look.rates, arguments)


def _between_looks(arguments: argparse.Namespace) -> str:
    """Return the text between two looks; on a terminal it clears the screen."""
    if arguments.json:
        return ""
    return _CLEAR if sys.stdout.isatty() and not arguments.csv else "\n"


async def _watch(window: Window, rates: Rates, arguments: argparse.Namespace) -> NoReturn:
    """Show the views every so many seconds, and name workers that are missing, until cancelled."""
    between = _between_looks(arguments)
    before = between if between == _CLEAR else ""
    while True:
        began_s = trio.current_time()
        rates.begin_look(began_s)
        await window.show(before)
        sys.stdout.flush()
        if incomplete := window.take_incomplete():
            print_problem(arguments, incomplete)
        before = between
        await trio.sleep_until(began_s + arguments.watch)


def wishes_of(arguments: argparse.Namespace) -> Wishes:
    """Return the views and filters that a command line chooses; UsageError."""
    given = [name for name in _FILTERS if getattr(arguments, name) is not None]
    filters = {name: getattr(arguments, name) for name in given if getattr(arguments, name)}
    if arguments.vhost == "":
        raise UsageError("argument --vhost: a name is needed")
    named = [_FILTERS[name].name for name in given if name not in filters]
    own = next((name for name in ("why", "paths") if getattr(arguments, name) is not None), None)
    if arguments.view is not None or own is not None:
        named.append(arguments.view or own or "")
    if len(set(named)) > 1:
        raise UsageError(f"one view at a time, not {' and '.join(sorted(set(named)))}")
    views = _views(arguments, named[0] if named else None, next(iter(filters), None))
    for name in filters:
        if not all(name in view.filters for view in views):
            shown = f"--{_EVERYTHING}" if len(views) > 1 else views[0].flags[0]
            raise UsageError(f"argument --{name}: has no effect with {shown}")
    if arguments.paths is not None and (arguments.all_routers or _one_router(arguments)):
        raise UsageError("argument --paths: it queries the routers on the way, not those of -r, -d or --all-routers")
    if arguments.csv and arguments.json:
        raise UsageError("argument --json: not allowed with argument --csv")
    return Wishes(
        views,
        limit=max(arguments.limit, 0),
        filters=filters,
        all_routers=arguments.all_routers or (arguments.why is not None and not _one_router(arguments)),
        json=arguments.json,
        csv=arguments.csv and not arguments.older,
        repeated=arguments.watch is not None,
    )


def _one_router(arguments: argparse.Namespace) -> bool:
    return bool(arguments.router or arguments.edge_router)


def _views(arguments: argparse.Namespace, named: str | None, filtered: str | None) -> tuple[View, ...]:
    """Return the named views, else the view of the filter, else the general one."""
    if named == "why":
        return (why(arguments.why),)
    if named == "paths":
        return (paths(*arguments.paths),)
    if named == _EVERYTHING:
        return ALL_ENTITIES
    if named is not None:
        return (_BY_NAME[named],)
    return (_FILTERS[filtered] if filtered is not None else GENERAL,)
