"""`trouter pipeline cursors`: show how far each consumer of a spool has come; add and remove cursors."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from trouter.tools.failures import print_problem
from trouter_pipeline.commands.answers import show_rows
from trouter_pipeline.commands.roots import local_folder
from trouter_pipeline.spool.cursors import DEFAULT, check_name

_HEADS = ("spool", "cursor", "position", "messages", "bytes", "oldest")


def add_parser(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser(
        "cursors",
        help="show how far each consumer of a spool has come; add and remove cursors",
        description="Show the cursors of a spool: for each consumer the first message that it has not finished, the "
        "number and bytes of those that wait for it, and when the oldest of them came. A spool deletes a message once "
        "every cursor has passed it. A consumer names its cursor with --cursor; it has to be added before.",
    )
    parser.add_argument("folder", type=local_folder, metavar="DIR", help="a spool, or a folder of its shards")
    change = parser.add_mutually_exclusive_group()
    change.add_argument("--add", type=cursor_name, metavar="NAME", help="add a cursor, at the oldest message")
    change.add_argument("--remove", type=cursor_name, metavar="NAME", help="remove a cursor: it keeps no messages")
    parser.add_argument("--newest", action="store_true", help="with --add: at the end, so that only new messages count")
    parser.add_argument("--json", action="store_true", help="print the cursors as JSON, one a line")
    parser.set_defaults(run=run)


def cursor_name(text: str) -> str:
    """Return the name of a cursor on the command line; argparse.ArgumentTypeError."""
    try:
        return check_name(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def add_cursor(parser: argparse.ArgumentParser) -> None:
    """Add the option with which a consumer names its cursor."""
    parser.add_argument(
        "--cursor",
        type=cursor_name,
        default=DEFAULT,
        metavar="NAME",
        help="the cursor of this consumer, if the spool has several (%(default)s); `trouter pipeline cursors` adds it",
    )


def run(arguments: argparse.Namespace) -> int:
    """Change and show the cursors; return the exit status."""
    from trouter_pipeline.spool import SpoolError, spools_in  # noqa: PLC0415  # only when it runs

    if arguments.newest and not arguments.add:
        raise argparse.ArgumentTypeError("--newest is for --add")
    try:
        spools = spools_in(arguments.folder)
        if not spools:
            print_problem(arguments, f"{arguments.folder}: there is no spool")
            return 1
        _change(spools, arguments)
        _show(spools, as_json=arguments.json)
    except BrokenPipeError:
        raise
    except (SpoolError, ValueError, OSError) as error:
        print_problem(arguments, error)
        return 1
    return 0


def _change(spools: Sequence[Path], arguments: argparse.Namespace) -> None:
    """Add or remove a cursor in each spool; those of several that have it, or have it no more, stay as they are."""
    from trouter_pipeline.spool import cursors  # noqa: PLC0415

    name = arguments.add or arguments.remove
    if not name:
        return
    having = [spool for spool in spools if name in cursors.cursors_in(spool)]
    if arguments.add:
        for spool in [spool for spool in spools if spool not in having] or spools:
            cursors.add_cursor(spool, name, newest=arguments.newest)
    else:
        for spool in having or spools:
            cursors.remove_cursor(spool, name)


def _show(spools: Sequence[Path], *, as_json: bool) -> None:
    from trouter_pipeline.spool.cursors import lags_of  # noqa: PLC0415

    rows = []
    for spool in spools:
        for lag in lags_of(spool):
            oldest = datetime.fromtimestamp(lag.oldest_us // 10**6, UTC) if lag.messages else None
            rows.append(dict(zip(_HEADS, (str(spool), *lag[:-1], oldest), strict=True)))
    show_rows("cursors", _HEADS, rows, as_json=as_json)
