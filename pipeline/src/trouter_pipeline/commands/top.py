"""`trouter pipeline top`: rank the busiest tenants, users and addresses of each hour."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

from trouter_pipeline.commands.answers import add_table, answered, rows_of, show


def add_parser(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser(
        "top",
        help="rank the busiest tenants, users and addresses of each hour",
        description="Bring the table top under ROOT up to date with the table meter, and show it.",
    )
    parser.add_argument("--most", type=_positive, default=10, metavar="N", help="how many of each in each hour (10)")
    parser.add_argument("--measure", choices=("msgs", "bytes"), default="msgs", help="the measure to rank by (msgs)")
    add_table(parser, partial(answered, answer=answer), "the meter")


def _positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError("this must be a number, 1 or more")
    return int(text)


def answer(spark: Any, progress: Any, arguments: argparse.Namespace) -> int:
    """Bring the table up to date and show it; return the exit status."""
    from trouter_pipeline.jobs import top  # noqa: PLC0415  # Spark is here by now

    parameters = top.Parameters(arguments.most, arguments.measure, again=arguments.again)
    summary = top.run(spark, arguments.root, parameters, progress, arguments.as_of)
    progress.close()
    rows = rows_of(top.TOP, spark, summary, arguments)
    if rows is None:
        return 1
    show("Busiest", rows.drop("date"), ["hour", "dimension", "rank"], as_json=arguments.json)
    return 0
