"""`trouter pipeline meter`: who used how much, proved against what routers say of themselves."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from trouter.cli.pipelines.answers import add_table, answered, day, of_days, show


def add_parser(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser(
        "meter",
        help="count messages of tenants, users and addresses, to be billed from",
        description="Bring the tables meter, meter_conn and meter_gaps under ROOT up to date with the records there, "
        "and show what each tenant used. What lost records told is known from later ones and counted as estimated; "
        "where it is not, a row is not complete.",
    )
    parser.add_argument(
        "--closed-before",
        type=day,
        metavar="DATE",
        help="days before this were billed and stay as they are; records that came too late for them are told of",
    )
    add_table(parser, run)


def run(arguments: argparse.Namespace) -> int:
    """Meter, and print what each tenant used; 1 if that cannot be done."""
    return answered(arguments, "meter", answer)


def answer(spark: Any, progress: Any, arguments: argparse.Namespace) -> int:
    """Bring the tables up to date, and show them."""
    from trouter.pipeline.jobs import meter  # noqa: PLC0415  # Spark is here by now
    from trouter.pipeline.metering.counters import KEY  # noqa: PLC0415
    from trouter.pipeline.tables import Table  # noqa: PLC0415

    asked = meter.Parameters(closed_before=arguments.closed_before, again=arguments.again)
    summary = meter.run(spark, arguments.root, asked, progress)
    progress.close()
    for name in summary.too_late:
        print(f"{name}: came too late, all its days are closed", file=sys.stderr)
    if summary.nothing is not None:
        print(summary.nothing, file=sys.stderr)
    table = Table(arguments.root, meter.METER)
    if table.manifest() is None:
        return 1
    rows = of_days(table.read(spark), arguments)
    if arguments.json:
        show("", rows, KEY, as_json=True)
        return 0
    there = of_days(Table(arguments.root, meter.CONNECTIONS).read(spark), arguments)
    show("Tenants", meter.used(rows, there), ["vhost"], as_json=False)
    gaps = of_days(Table(arguments.root, meter.GAPS).read(spark), arguments).drop("date")
    print()
    show(
        "Records that are missing" if gaps.take(1) else "No records are missing",
        gaps,
        ["router", "boot", "from_n"],
        as_json=False,
    )
    return 0
