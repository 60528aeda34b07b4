"""`trouter pipeline rollup`: sum the meter up by hour and by day."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

from trouter_pipeline.commands.answers import add_table, answered, rows_of, show

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
    add_table(parser, partial(answered, answer=answer), "the meter")


def _subjects(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if strange := set(names) - set(_SUBJECTS):
        raise argparse.ArgumentTypeError(f"{', '.join(sorted(strange))}: there are {', '.join(_SUBJECTS)}")
    return names


def answer(spark: Any, progress: Any, arguments: argparse.Namespace) -> int:
    """Bring the tables up to date and show the days; return the exit status."""
    from trouter_pipeline.jobs import rollup  # noqa: PLC0415  # Spark is here by now

    parameters = rollup.Parameters(arguments.by, again=arguments.again)
    summary = rollup.run(spark, arguments.root, parameters, progress, arguments.as_of)
    progress.close()
    rows = rows_of(rollup.DAYS, spark, summary, arguments)
    if rows is None:
        return 1
    order = ["date", *[name for name in _SUBJECTS if name in rows.columns]]
    wide = [*order, *[name for name in rows.columns if name not in {*order, "day"}]]
    show("Days", rows.select(*wide), order, as_json=arguments.json)
    return 0
