"""`trouter pipeline latency`: show how long deliveries took, by hour and address."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

from trouter.tools.failures import print_problem
from trouter_pipeline.commands.answers import add_table, answered, rows_of, show


def add_parser(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser(
        "latency",
        help="add up how long deliveries took, by hour and address",
        description="Bring the table latency under ROOT up to date with the records there, and show its hours: the "
        "time within which half, 95, 99 and 99.9 of 100 deliveries were settled, in microseconds, at most 1/64 off.",
    )
    add_table(parser, partial(answered, answer=answer))


def answer(spark: Any, progress: Any, arguments: argparse.Namespace) -> int:
    """Bring the table up to date and show it; return the exit status."""
    from trouter_pipeline.jobs import latency  # noqa: PLC0415  # Spark is here by now

    try:
        parameters = latency.Parameters(again=arguments.again)
        summary = latency.run(spark, arguments.root, parameters, progress, arguments.as_of)
    except latency.OtherBuckets as error:
        print_problem(arguments, error)
        return 1
    progress.close()
    rows = rows_of(latency.TABLE, spark, summary, arguments)
    if rows is None:
        return 1
    if not arguments.json:
        rows = rows.drop("bi", "bc", "date", "path")
    show(
        "Deliveries, and microseconds until they were settled",
        rows,
        ["hour", *latency.SUBJECT[:3]],
        as_json=arguments.json,
    )
    return 0
