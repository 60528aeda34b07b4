"""`trouter pipeline latency`: how long deliveries took, by hour and address."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from trouter.cli.pipelines.answers import add_table, answered, of_days, show


def add_parser(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser(
        "latency",
        help="add up how long deliveries took, by hour and address",
        description="Bring the table latency under ROOT up to date with the records there, and show its hours: the "
        "time within which half, 95, 99 and 99.9 of 100 deliveries were settled, in microseconds, at most 1/64 off.",
    )
    add_table(parser, run)


def run(arguments: argparse.Namespace) -> int:
    """Add up, and print the hours; 1 if that cannot be done."""
    return answered(arguments, "latency", answer)


def answer(spark: Any, progress: Any, arguments: argparse.Namespace) -> int:
    """Bring the table up to date, and show it."""
    from trouter.pipeline.jobs import latency  # noqa: PLC0415  # Spark is here by now
    from trouter.pipeline.tables import Table  # noqa: PLC0415

    try:
        summary = latency.run(spark, arguments.root, latency.Parameters(again=arguments.again), progress)
    except latency.OtherBuckets as error:
        print(error, file=sys.stderr)
        return 1
    progress.close()
    if summary.nothing is not None:
        print(summary.nothing, file=sys.stderr)
    table = Table(arguments.root, latency.TABLE)
    if table.manifest() is None:
        return 1
    rows = of_days(table.read(spark), arguments)
    if not arguments.json:
        rows = rows.drop("bi", "bc", "date", "path")
    show(
        "Deliveries, and microseconds until they were settled",
        rows,
        ["hour", *latency.SUBJECT[:3]],
        as_json=arguments.json,
    )
    return 0
