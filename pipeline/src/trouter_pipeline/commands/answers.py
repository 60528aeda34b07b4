"""What actions that show tables share: the options for days, the errors, and the printing of rows."""

from __future__ import annotations

import argparse
import json
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from trouter.records.text import clean
from trouter.tools.failures import print_problem
from trouter_pipeline.commands.roots import add_root
from trouter_pipeline.commands.spark import add_spark, cures, started
from trouter_pipeline.places import Place

#: Does the work with a Spark session and an observer of its progress; returns the exit status.
Answer = Callable[[Any, Any, argparse.Namespace], int]


def day(text: str) -> date:
    """Return a date of the command line; argparse.ArgumentTypeError."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no date such as 2026-03-01") from None


def moment(text: str) -> datetime:
    """Return a moment of the command line, in UTC unless it names a zone; argparse.ArgumentTypeError."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no moment such as 2026-03-01T12:00") from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def version(text: str) -> int | datetime:
    """Return a version of a table on the command line, by number or moment; argparse.ArgumentTypeError."""
    return int(text) if text.isascii() and text.isdecimal() else moment(text)


def add_version(parser: argparse.ArgumentParser, what: str = "the tables") -> None:
    """Add the option for the version of tables that an action reads."""
    parser.add_argument(
        "--as-of",
        type=version,
        metavar="VERSION",
        help=f"read {what} as of this version of Delta's, such as 12, or as they were at a moment, such as "
        "2026-03-01T12:00 (UTC), as far as they are not vacuumed",
    )


def add_again(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("--again", action="store_true", help=f"compute {what} again, even if nothing is new")


def add_table(
    parser: argparse.ArgumentParser, run: Callable[[argparse.Namespace], int], reads: str = "the records"
) -> None:
    """Add the options of an action that brings tables up to date with what it ``reads``, and shows some rows."""
    add_root(parser)
    for name, what in (("since", "first"), ("until", "last")):
        parser.add_argument(
            f"--{name}", type=day, metavar="DATE", help=f"the {what} day to be shown, such as 2026-03-01 (UTC)"
        )
    add_again(parser, "every day")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON, one a line")
    add_version(parser, reads)
    add_spark(parser)
    parser.set_defaults(run=run)


def answered(arguments: argparse.Namespace, answer: Answer) -> int:
    """Run an action on Spark; return its exit status.

    1 with a message if a folder is unusable, Spark cannot run here, or a query fails.
    """

    def run() -> int:
        with started(arguments) as (spark, progress):
            from trouter_pipeline.reasons import FAILURES, reason_of  # noqa: PLC0415  # Spark is here by now
            from trouter_pipeline.session import is_gone  # noqa: PLC0415

            try:
                return answer(spark, progress, arguments)
            except FAILURES as error:
                if is_gone():
                    raise
                progress.close()
                print_problem(arguments, reason_of(error))
        return 1

    try:
        return at_folder(arguments, run)
    except ModuleNotFoundError:
        # without Arrow, before Spark is looked for
        from trouter_pipeline.needs import lines, missing  # noqa: PLC0415

        if not (found := missing()):
            raise
        print_problem(arguments, cures(arguments, "; ".join(lines(found))))
    return 1


def at_folder(arguments: argparse.Namespace, run: Callable[[], int]) -> int:
    """Run an action on the folder of a pipeline; return its exit status, 1 with a message if the folder is unusable."""
    return reported(arguments, run) if is_there(arguments) else 1


def reported(arguments: argparse.Namespace, run: Callable[[], int], *others: type[Exception]) -> int:
    """Run an action; return its exit status, 1 with a message if tables, files, or ``others`` stop it."""
    from trouter_pipeline.datasets import NoRecords  # noqa: PLC0415  # only when it runs
    from trouter_pipeline.delta import BadTable  # noqa: PLC0415
    from trouter_pipeline.files import TableBusy  # noqa: PLC0415

    return reported_as(arguments, run, NoRecords, BadTable, TableBusy, OSError, *others)


def reported_as(arguments: argparse.Namespace, run: Callable[[], int], *expected: type[Exception]) -> int:
    """Run an action; return its exit status, 1 with a message if an expected failure stops it.

    If Spark's Java process ends meanwhile, that is the reason, and reported where Spark was started.
    """
    from trouter_pipeline.session import is_gone  # noqa: PLC0415  # only when it runs

    was_gone = is_gone()
    try:
        return run()
    except BrokenPipeError:  # the reader of our output has gone, which ends every command alike
        raise
    except expected as error:
        if is_gone() and not was_gone:
            raise
        print_problem(arguments, error)
    return 1


def until_signal() -> Callable[[], bool]:
    """Take SIGINT and SIGTERM from now on; return what says whether one came."""
    came: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: came.append(number))
    return lambda: bool(came)


def is_there(arguments: argparse.Namespace) -> bool:
    """Return whether the folder of a pipeline exists, which only its tables say in an object store; print if not."""
    place = Place.of(arguments.root)
    if place.is_local and not Path(place).is_dir():
        print_problem(arguments, f"{place}: there is no such folder")
        return False
    return True


def rows_of(name: str, spark: Any, summary: Any, arguments: argparse.Namespace) -> Any:
    """Return the rows of a table in the chosen days, None without a table; print why nothing was computed."""
    from trouter_pipeline.tables import Table  # noqa: PLC0415  # only when it runs

    if summary.nothing is not None:
        print_problem(arguments, summary.nothing)
    table = Table(arguments.root, name)
    if table.last_commit() is None:
        return None
    frame = table.read(spark)
    if arguments.since is not None:
        frame = frame.where(frame["date"] >= arguments.since)
    if arguments.until is not None:
        frame = frame.where(frame["date"] <= arguments.until)
    return frame


def show(title: str, frame: Any, order: Sequence[str], *, as_json: bool) -> None:
    """Print rows, sorted by the columns of ``order``."""
    rows = [row.asDict(recursive=True) for row in frame.orderBy(*order).collect()]
    show_rows(title, tuple(frame.columns), rows, as_json=as_json)


def show_rows(title: str, heads: tuple[str, ...], rows: Iterable[Mapping[str, Any]], *, as_json: bool) -> None:
    """Print rows in their order, as a table or as JSON, one a line."""
    if as_json:
        for row in rows:
            print(json.dumps(row, default=str), flush=True)
        return
    cells = [[shown(row[name]) for name in heads] for row in rows]
    print("\n".join([title, *_aligned(heads, cells)]), flush=True)


def _aligned(heads: tuple[str, ...], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield lines with columns as wide as needed, as `trouter stat` shows its tables; none without rows."""
    if not rows:
        return
    widths = [max(map(len, column)) + 2 for column in zip(heads, *rows, strict=True)]
    for line in (heads, None, *rows):
        cells = ["=" * sum(widths)] if line is None else map(str.ljust, line, widths)
        yield f"  {''.join(cells)}".rstrip()


def shown(value: object) -> str:
    """Return a value as the text of a cell."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3f}"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M}"
    return clean(str(value))
