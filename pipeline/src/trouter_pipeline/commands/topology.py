"""`trouter pipeline topology`: show when routers were connected, and which neighbours flap."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

from trouter.tools.failures import print_problem
from trouter_pipeline.commands.answers import add_table, answered, rows_of, show


def add_parser(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser(
        "topology",
        help="show when which routers were connected, and which flap",
        description="Bring the tables topology_history and topology_changes under ROOT up to date with the records "
        "there, and show when each router had which neighbour.",
    )
    parser.add_argument("--flaps", type=int, default=5, metavar="N", help="a neighbour flaps that is lost so often (5)")
    parser.add_argument("--window", type=int, default=600, metavar="SECONDS", help="within so many seconds (600)")
    add_table(parser, partial(answered, answer=answer))


def answer(spark: Any, progress: Any, arguments: argparse.Namespace) -> int:
    """Bring the tables up to date and show the history; return the exit status."""
    from trouter_pipeline.jobs import topology  # noqa: PLC0415  # Spark is here by now

    try:
        parameters = topology.Parameters(arguments.flaps, arguments.window, arguments.again)
    except ValueError as error:
        print_problem(arguments, error)
        return 1
    summary = topology.run(spark, arguments.root, parameters, progress, arguments.as_of)
    progress.close()
    rows = rows_of(topology.HISTORY, spark, summary, arguments)
    if rows is None:
        return 1
    if not arguments.json:
        rows = rows.drop("date")
    show("Neighbours", rows, ["up_at", "router", "peer"], as_json=arguments.json)
    return 0
