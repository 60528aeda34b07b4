"""`trouter pipeline prune`: delete rows of old days from records and tables, of all tenants or of some."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from trouter.tools.failures import print_problem
from trouter_pipeline.commands.answers import day, reported
from trouter_pipeline.commands.roots import add_root

if TYPE_CHECKING:
    from trouter_pipeline.prune import Scope, Summary


def add_parser(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser(
        "prune",
        help="delete rows of old days, of all tenants or of some",
        description="Print which rows of days before DATE would be deleted, and with --yes delete them: the command "
        "writes new files without them, and replaces all of a table at once; "
        "`trouter pipeline vacuum` deletes the former ones. Without --kind and --table it deletes "
        "records of every kind that may be pruned. Tables that are not named keep their rows of these days, and no job "
        "computes them again. The command deletes records only when every existing table includes them. It keeps rows "
        "that later days need, such as the beginnings of connections that have not ended.",
    )
    add_root(parser)
    parser.add_argument("--before", type=day, required=True, metavar="DATE", help="days before this one")
    parser.add_argument(
        "--tenant", action="append", default=[], metavar="VHOST", help="only rows of this vhost; may be given again"
    )
    parser.add_argument(
        "--kind", action="append", default=[], metavar="KIND", help="only records of this kind; may be given again"
    )
    parser.add_argument(
        "--table", action="append", default=[], metavar="NAME", help="rows of this table; may be given again"
    )
    parser.add_argument("--yes", action="store_true", help="delete the rows")
    parser.add_argument(
        "--at-once",
        action="store_true",
        help="delete replaced files at once, though a job may be reading them; else `trouter pipeline vacuum` does",
    )
    parser.add_argument("--json", action="store_true", help="print the deleted rows as JSON")
    parser.add_argument("--quiet", action="store_true", help="no lines of progress")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Delete rows, or print which would be deleted; return 1 if that is refused or fails, else 0."""
    from trouter_pipeline.prune import Refused  # noqa: PLC0415  # Arrow, only when it runs

    return reported(arguments, lambda: _prune(arguments), Refused)


def _prune(arguments: argparse.Namespace) -> int:
    from trouter_pipeline.progress import Progress  # noqa: PLC0415
    from trouter_pipeline.prune import prune  # noqa: PLC0415

    progress = Progress(arguments.command_parser.prog, quiet=arguments.quiet)
    try:
        summary = prune(
            arguments.root,
            scope_of(arguments),
            really=arguments.yes,
            at_once=arguments.at_once,
            progress=progress.detail,
        )
    finally:
        progress.close()
    if arguments.json:
        parts = [
            {"what": part.what, "days": part.days, "kept": part.kept, "octets": part.octets} for part in summary.parts
        ]
        print(json.dumps({"done": summary.done, "parts": parts, "notes": summary.notes}))
    else:
        _print(arguments, summary)
    return 0


def scope_of(arguments: argparse.Namespace) -> Scope:
    """Return the scope that the command line gives."""
    from trouter_pipeline.prune import Scope, prunable  # noqa: PLC0415

    kinds = arguments.kind if arguments.kind or arguments.table else prunable(arguments.tenant)
    return Scope(arguments.before, *(tuple(dict.fromkeys(each)) for each in (arguments.tenant, kinds, arguments.table)))


def _print(arguments: argparse.Namespace, summary: Summary) -> None:
    for note in summary.notes:
        print_problem(arguments, f"note: {note}")
    if not summary.parts:
        print("There is nothing to delete.")
        return
    print(f"{'what':<28}{'days':>6}  {'from':<12}{'to':<12}{'rows':>12}{'rows that stay':>16}{'bytes':>14}")
    for part in summary.parts:
        first, last = min(part.days), max(part.days)
        print(
            f"{part.what:<28}{len(part.days):>6}  {first:<12}{last:<12}{part.rows:>12}{part.kept:>16}{part.octets:>14}"
        )
    if summary.done:
        print("These rows are deleted.")
    else:
        print("Nothing was changed: --yes deletes these rows. The bytes are those of the files that are replaced.")
