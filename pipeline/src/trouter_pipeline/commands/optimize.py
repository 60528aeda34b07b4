"""`trouter pipeline optimize`: make few files of many small ones."""

from __future__ import annotations

import argparse
import json

from trouter_pipeline.commands.answers import at_folder
from trouter_pipeline.commands.roots import add_root


def add_parser(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser(
        "optimize",
        help="merge the small files of tables",
        description="Merge the small files (8 MB) of each partition of the tables under ROOT that has sixteen or more "
        "of them, as batches of `land` leave them. A table may be landed and read meanwhile: its rows are the same, "
        "and former versions keep the small files until `trouter pipeline vacuum` deletes them. `compact` does the "
        "same for the records by itself.",
    )
    add_root(parser)
    parser.add_argument("--json", action="store_true", help="print the number of merged files of each table as JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Merge files, and print their numbers; return 1 if that fails, else 0."""
    return at_folder(arguments, lambda: _optimize(arguments))


def _optimize(arguments: argparse.Namespace) -> int:
    from trouter_pipeline.delta import Folder  # noqa: PLC0415  # only when it runs

    counts: dict[str, int] = {}
    for each in (arguments.root / "tables").folders():
        folder = Folder(each)
        if folder.version() is not None:
            counts[each.name] = folder.optimize()
    if arguments.json:
        print(json.dumps(counts))
        return 0
    for name, count in counts.items():
        if count:
            print(f"{name}: {count} small files are merged")
    if not any(counts.values()):
        print(f"There are few small files in {len(counts)} tables.")
    return 0
