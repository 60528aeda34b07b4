"""`trouter pipeline vacuum`: delete files that no version of the last hours has."""

from __future__ import annotations

import argparse
import json

from trouter_pipeline.commands.answers import at_folder
from trouter_pipeline.commands.roots import add_root

#: Hours for which versions stay readable: a week, as everywhere with Delta tables.
KEEP_HOURS = 168


def add_parser(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser(
        "vacuum",
        help="delete files that no version of a table has any more",
        description="Print the files of the tables under ROOT that no version of the last hours has: those that were "
        "replaced or pruned, and those that a killed run left behind. With --yes delete them; versions that had them "
        "can no longer be read, and a job or query that is reading them fails.",
    )
    add_root(parser)
    parser.add_argument(
        "--keep",
        type=_hours,
        default=KEEP_HOURS,
        metavar="HOURS",
        help=f"how long versions stay readable ({KEEP_HOURS}); more than the longest job or query takes",
    )
    parser.add_argument("--yes", action="store_true", help="delete the files")
    parser.add_argument("--json", action="store_true", help="print the files of each table as JSON")
    parser.set_defaults(run=run)


def _hours(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no number of hours")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """Delete files, or print which would be deleted; return 1 if that fails, else 0."""
    return at_folder(arguments, lambda: _vacuum(arguments))


def _vacuum(arguments: argparse.Namespace) -> int:
    from trouter_pipeline.delta import Folder  # noqa: PLC0415  # only when it runs

    found: dict[str, list[str]] = {}
    tables = [f"tables/{each.name}" for each in (arguments.root / "tables").folders()]
    for name in ("records", *tables):
        folder = Folder(arguments.root / name)
        if folder.version() is not None:
            found[name] = sorted(folder.vacuum(arguments.keep, really=arguments.yes))
    if arguments.json:
        print(json.dumps({"done": arguments.yes, "files": found}))
        return 0
    for name, files in found.items():
        for file in files:
            print(f"{name}/{file}")
    count = sum(map(len, found.values()))
    if not count:
        print(f"There is nothing to delete in {len(found)} tables.")
    elif arguments.yes:
        print(f"These {count} files are deleted.")
    else:
        print(f"Nothing was changed: --yes deletes these {count} files.")
    return 0
