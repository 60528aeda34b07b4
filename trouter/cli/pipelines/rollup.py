"""`trouter pipeline rollup`: the meter summed up by hour and by day."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from trouter.cli.pipelines.answers import add_table, answered, of_days, show

_SUBJECTS = ("vhost", "user", "addr", "dir")


def add_parser(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser(
        "rollup",
        help="sum the meter up by hour and by day",
        description="Bring the tables rollup_hour and rollup_day under ROOT up to date with the table meter, and show "
        "the days. A row whose quality is no is made of at least one that is not complete.",
    )
    parser.add_argument(
        "--by",
        type=_subjects,
        default=_SUBJECTS,
        metavar="NAMES",
        help="the columns to sum by: some of vhost,user,addr,dir (all); other than before computes every day again",
    )
    add_table(parser, run)


def _subjects(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if strange := set(names) - set(_SUBJECTS):
        raise argparse.ArgumentTypeError(f"{', '.join(sorted(strange))}: there are {', '.join(_SUBJECTS)}")
    return names


def run(arguments: argparse.Namespace) -> int:
    """Sum up, and print the days; 1 if that cannot be done."""
    return answered(arguments, "rollup", answer)


def answer(spark: Any, progress: Any, arguments: argparse.Namespace) -> int:
    """Bring the tables up to date, and show the days."""
    from trouter.pipeline.jobs import rollup  # noqa: PLC0415  # Spark is here by now
    from trouter.pipeline.tables import Table  # noqa: PLC0415

    summary = rollup.run(spark, arguments.root, rollup.Parameters(arguments.by, again=arguments.again), progress)
    progress.close()
    if summary.nothing is not None:
        print(summary.nothing, file=sys.stderr)
    table = Table(arguments.root, rollup.DAYS)
    if table.manifest() is None:
        return 1
    rows = of_days(table.read(spark), arguments)
    order = ["date", *[name for name in _SUBJECTS if name in rows.columns]]
    wide = [*order, *[name for name in rows.columns if name not in {*order, "day"}]]
    show("Days", rows.select(*wide), order, as_json=arguments.json)
    return 0
