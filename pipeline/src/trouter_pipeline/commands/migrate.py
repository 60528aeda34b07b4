"""`trouter pipeline migrate`: take over the tables of an earlier version in place."""

from __future__ import annotations

import argparse

from trouter_pipeline.commands.answers import at_folder
from trouter_pipeline.commands.roots import local_folder


def add_parser(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser(
        "migrate",
        help="make Delta tables of the tables of an earlier version",
        description="Take over the records and tables under ROOT that an earlier version of trouter wrote, whose files "
        "a manifest names: they become Delta tables in the same folders. Files get new names and are not written "
        "again. Run it once, while no other command works on ROOT; a run that was stopped is continued by the next.",
    )
    parser.add_argument("root", type=local_folder, metavar="ROOT", help="the folder of the pipeline")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Take over the tables, and print their names; return 1 if that fails, else 0."""

    def take() -> int:
        from trouter_pipeline.migrate import migrate  # noqa: PLC0415  # Arrow, only when it runs

        for name in migrate(arguments.root):
            print(f"{name} is a Delta table now")
        print(f"All tables of {arguments.root} are Delta tables.")
        return 0

    return at_folder(arguments, take)
