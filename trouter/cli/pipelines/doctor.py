"""`trouter pipeline doctor`: what Spark needs and does not find here, each with its cure."""

from __future__ import annotations

import argparse
import sys


def add_parser(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser(
        "doctor",
        help="tell what is missing to run on Spark",
        description="Look for what the jobs need: Java, PySpark, Arrow, protobuf, and a Python for Spark's workers. "
        "The exit status is 1 if something is missing.",
    )
    parser.set_defaults(run=run)


def run(_: argparse.Namespace) -> int:
    from trouter.pipeline.needs import missing  # noqa: PLC0415  # only when asked

    found = missing()
    for need in found:
        print(f"{need.what}: {need.cure}", file=sys.stderr)
    if not found:
        print("Spark can run here.")
    return 1 if found else 0
