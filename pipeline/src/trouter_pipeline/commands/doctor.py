"""`trouter pipeline doctor`: print what Spark needs and does not find here, each with its cure."""

from __future__ import annotations

import argparse
import sys

from trouter_pipeline.commands import submit
from trouter_pipeline.commands.spark import add_spark, settings_of


def add_parser(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser(
        "doctor",
        help="say what is missing to run on Spark",
        description="Check for the programs and packages that the jobs need: Java, PySpark, Arrow, protobuf, RocksDB, "
        "and a Python for Spark's workers. With --master, also start Spark there and check its workers. The exit "
        "status is 1 if something is missing.",
    )
    parser.add_argument("--submit", action="store_true", help="print the file that spark-submit is to run, and no more")
    add_spark(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    if arguments.submit:
        print(submit.__file__)
        return 0
    from trouter_pipeline.needs import lines, missing, scarce  # noqa: PLC0415  # only when it runs

    found = missing()
    for line in lines([*found, *scarce()]):
        print(line, file=sys.stderr)
    if found:
        return 1
    if arguments.master is None:
        print("Spark can run here.")
        return 0
    return _check_workers(arguments)


def _check_workers(arguments: argparse.Namespace) -> int:
    from trouter_pipeline.needs import Missing, lines, missing_at_workers  # noqa: PLC0415
    from trouter_pipeline.session import session  # noqa: PLC0415

    try:
        spark = session("trouter pipeline doctor", master=arguments.master, settings=settings_of(arguments))
    except Missing as error:
        print(error, file=sys.stderr)
        return 1
    found = missing_at_workers(spark)
    for line in lines(found):
        print(line, file=sys.stderr)
    if not found:
        print(f"Spark {spark.version} runs at {spark.sparkContext.master}, and its workers have what they need.")
    spark.stop()
    return 1 if found else 0
