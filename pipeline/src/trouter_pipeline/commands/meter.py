"""`trouter pipeline meter`: show what tenants, users and addresses used, and which records are missing."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from datetime import date
from typing import TYPE_CHECKING, Any

from trouter.tools.failures import print_problem
from trouter_pipeline.commands.answers import add_table, answered, at_folder, day, show_rows
from trouter_pipeline.commands.spark import add_engine, is_in_process

if TYPE_CHECKING:
    from trouter_pipeline.metering.costs import Costs
    from trouter_pipeline.metering.engines import Engine
    from trouter_pipeline.progress import Progress
    from trouter_pipeline.tables import Table


def add_parser(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser(
        "meter",
        help="count messages of tenants, users and addresses, as a basis for bills",
        description="Bring the tables meter, meter_conn and meter_gaps under ROOT up to date with the records there, "
        "and show what each tenant used. Where records are lost, later ones give their counts, which the table "
        "marks as estimated; if they do not, the row is not complete.",
    )
    parser.add_argument(
        "--closed-before",
        type=day,
        metavar="DATE",
        help="days before this were billed and do not change; the command names records that came too late for them",
    )
    parser.add_argument(
        "--explain",
        action="store_true",
        help="show what each stage of the computation cost, in place of the rows: rows that it read and made, seconds, "
        "bytes that it wrote to spills, shuffles and files, and the most memory of DuckDB or of a task of Spark",
    )
    add_engine(parser)
    add_table(parser, run)


def run(arguments: argparse.Namespace) -> int:
    """Bring the tables up to date and print what each tenant used; return the exit status, 1 for a failure."""
    if not is_in_process(arguments):
        return answered(arguments, _answer_on_spark)
    from trouter_pipeline.metering.engines import InProcess  # noqa: PLC0415  # Arrow, only when it runs
    from trouter_pipeline.progress import Progress  # noqa: PLC0415

    progress = Progress(arguments.command_parser.prog, quiet=arguments.quiet)

    def work() -> int:
        try:
            return answer(InProcess(explain=arguments.explain), progress, arguments)
        finally:
            progress.close()

    return at_folder(arguments, work)


def _answer_on_spark(spark: Any, progress: Progress, arguments: argparse.Namespace) -> int:
    from trouter_pipeline.metering.engines import OnSpark  # noqa: PLC0415  # Arrow, only when it runs

    return answer(OnSpark(spark, explain=arguments.explain), progress, arguments)


def answer(engine: Engine, progress: Progress, arguments: argparse.Namespace) -> int:
    """Bring the tables up to date and show them; return the exit status."""
    from trouter_pipeline.jobs import meter  # noqa: PLC0415  # Arrow, only when it runs
    from trouter_pipeline.metering.counters import KEY  # noqa: PLC0415
    from trouter_pipeline.tables import Table  # noqa: PLC0415

    parameters = meter.Parameters(closed_before=arguments.closed_before, again=arguments.again)
    summary = meter.run(engine, arguments.root, parameters, progress, arguments.as_of)
    progress.close()
    for name in summary.too_late:
        print_problem(arguments, f"{name}: came too late, all its days are closed")
    if summary.nothing is not None:
        print_problem(arguments, summary.nothing)
    if Table(arguments.root, meter.METER).last_commit() is None:
        return 1
    if engine.costs is not None:
        _show_costs(engine.costs, as_json=arguments.json)
        return 0
    rows = _of_days(Table(arguments.root, meter.METER), arguments)
    if arguments.json:
        _show("", rows, KEY, as_json=True)
        return 0
    _show("Tenants", meter.used(rows, _of_days(Table(arguments.root, meter.CONNECTIONS), arguments)), ("vhost",))
    gaps = _of_days(Table(arguments.root, meter.GAPS), arguments).drop_columns(["date"])
    print()
    title = "Records that are missing" if gaps.num_rows else "No records are missing"
    _show(title, gaps, ("router", "boot", "from_n"))
    return 0


def _of_days(table: Table, arguments: argparse.Namespace) -> Any:
    """Return the rows of the chosen days, as a pyarrow.Table."""
    first, last = arguments.since or date.min, arguments.until or date.max
    return table.rows(day for day in table.dates() if first <= day <= last)


def _show_costs(costs: Costs, *, as_json: bool) -> None:
    heads = ("stage", "seconds", "rows_in", "rows_out", "written_bytes", "most_bytes")
    rows = [{"stage": each.stage, "seconds": each.seconds, **asdict(each.used)} for each in costs.known]
    show_rows("Stages", heads, rows, as_json=as_json)


def _show(title: str, rows: Any, order: Sequence[str], *, as_json: bool = False) -> None:
    from trouter_pipeline.jobs.meter import ordered  # noqa: PLC0415  # only when it runs

    show_rows(title, tuple(rows.column_names), ordered(rows, order), as_json=as_json)
