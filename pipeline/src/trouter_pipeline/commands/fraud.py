"""`trouter pipeline fraud`: find large payments that follow a small one, which tries the card."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from trouter.tools.failures import print_problem
from trouter_pipeline.commands.answers import add_again, add_version, answered, show, show_rows
from trouter_pipeline.commands.receivers import add_receivers, receivers_of
from trouter_pipeline.commands.roots import add_root
from trouter_pipeline.commands.spark import add_spark
from trouter_pipeline.commands.spools import add_spools, names_consumer, source_of
from trouter_pipeline.commands.streaming import add_pace, pace_of, watched

if TYPE_CHECKING:
    from trouter_pipeline.alerting import Receivers

#: Options of the pattern: field of `Pattern`, type, help.
_PATTERN: Final = (
    ("key", str, "the column of the card"),
    ("time", str, "the column of the time"),
    ("identity", str, "the column of the payment's id"),
    ("kind", str, "the column of the kind of a payment"),
    ("amount", str, "the column of the amount"),
    ("place", str, "the column of the place"),
    ("tester", str, "the kind of small payments"),
    ("tester_at_most", str, "a small payment is at most this"),
    ("large", str, "the kind of large payments"),
    ("large_at_least", str, "a large payment is at least this"),
    ("within_s", int, "the large one comes at most so many seconds later"),
    ("testers", int, "so many small ones must come before"),
    ("mute_s", int, "no further alert of a card for so many seconds"),
)
#: Columns that are left out of what people read.
_HIDDEN: Final = ("large_n", "date")


def add_parser(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser(
        "fraud",
        help="find large payments that follow a small one with the same card",
        description="Find large payments of one kind that come soon after a small one of another kind with the same "
        "card, and write them into the table fraud_alerts under ROOT. Payments are the rows of files or of a table, or "
        "JSON in one of their columns.",
    )
    add_root(parser)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--events", metavar="PATH", help="files, as Spark reads them")
    source.add_argument("--table", metavar="NAME", help="a table under ROOT")
    add_spools(parser, source, also="; a stream of JSON bodies")
    parser.add_argument("--format", default="parquet", help="the format of the files (parquet)")
    parser.add_argument("--body", metavar="COLUMN", help="the column with JSON; of a spool it is body")
    parser.add_argument("--schema", metavar="DDL", help="the schema of the JSON: card STRING, t TIMESTAMP, ...")
    add_again(parser, "the table")
    parser.add_argument("--json", action="store_true", help="print the alerts as JSON, one a line")
    pattern = parser.add_argument_group("pattern")
    for name, kind, text in _PATTERN:
        option = f"--{name.removesuffix('_s').replace('_', '-')}"
        pattern.add_argument(option, dest=name, type=kind, help=text, default=argparse.SUPPRESS)
    pattern.add_argument("--elsewhere", action="store_true", help="only small payments at another place count")
    streams = parser.add_argument_group("streams")
    streams.add_argument("--stream", action="store_true", help="read files that are added, too")
    add_pace(streams)
    add_version(parser, "the table of --table")
    add_receivers(parser)
    add_spark(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Find frauds and print them; return the exit status, 1 for a failure."""
    streams = arguments.stream or arguments.spool is not None
    if arguments.stream and arguments.events is None:
        raise argparse.ArgumentTypeError("--stream is for --events")
    if arguments.spool is None and names_consumer(arguments):
        raise argparse.ArgumentTypeError("--cursor and --spool-... are for --spool")
    if arguments.as_of is not None and arguments.table is None:
        raise argparse.ArgumentTypeError("--as-of is for --table")
    if streams and arguments.again:
        raise argparse.ArgumentTypeError("--again is not for streams")
    if streams != (arguments.checkpoint is not None):
        raise argparse.ArgumentTypeError("a stream needs a --checkpoint" if streams else "--checkpoint is for streams")
    if (arguments.body is not None or arguments.spool is not None) != (arguments.schema is not None):
        raise argparse.ArgumentTypeError(
            "JSON needs a --schema, and a --schema is for the JSON in --body or in a spool"
        )
    try:
        receivers = receivers_of(arguments)
    except (ValueError, OSError) as error:
        print_problem(arguments, error)
        return 1
    return answered(arguments, partial(answer, receivers))


def answer(receivers: Receivers | None, spark: Any, progress: Any, arguments: argparse.Namespace) -> int:
    """Bring the table up to date and print it, or print the new alerts of a stream; return the exit status."""
    from trouter_pipeline.consuming import let_go_of, note_batch, require_same_spools  # noqa: PLC0415  # Spark is here by now
    from trouter_pipeline.jobs import fraud  # noqa: PLC0415
    from trouter_pipeline.kafka.failures import NotForwarded  # noqa: PLC0415
    from trouter_pipeline.landing import NotLanded  # noqa: PLC0415
    from trouter_pipeline.spool import SpoolError  # noqa: PLC0415
    from trouter_pipeline.tables import Table  # noqa: PLC0415

    try:
        chosen = {name: getattr(arguments, name) for name, *_ in _PATTERN if hasattr(arguments, name)}
        pattern = fraud.Pattern(**chosen, elsewhere=arguments.elsewhere)
        pace = pace_of(arguments)
        events, inputs, read = _events(spark, arguments)
        if events.isStreaming:

            def show_and_send(alarms: Any) -> None:
                if receivers is not None:
                    receivers.send(fraud.messages(alarms))
                progress.close()
                found = (row.asDict(recursive=True) for row in alarms.sort("large_t").toLocalIterator())
                heads = tuple(name for name in alarms.columns if name not in _HIDDEN)
                show_rows("Frauds", heads, found, as_json=arguments.json)

            progress("following")
            checkpoint = arguments.checkpoint
            start = partial(fraud.follow, events, arguments.root, checkpoint, pattern, pace, show_and_send)
            if arguments.spool is None:
                return watched(arguments, start, pace, progress)
            spools = _of_spools(arguments)
            require_same_spools(spools, checkpoint)
            start = partial(start, finished=partial(note_batch, spools, checkpoint))
            return watched(arguments, start, pace, progress, lambda: let_go_of(spools, checkpoint))
        send = None if receivers is None else receivers.send
        summary = fraud.run(arguments.root, events, pattern, progress, inputs, read, send, again=arguments.again)
    except (ValueError, fraud.MissingColumn, fraud.BadEvents, NotLanded, NotForwarded, SpoolError) as error:
        print_problem(arguments, error)
        return 1
    progress.close()
    if summary.nothing is not None:
        print_problem(arguments, summary.nothing)
    if summary.unusable:
        print_problem(arguments, f"{summary.unusable} payments have no card, time, id or amount")
    table = Table(arguments.root, fraud.TABLE).read(spark)
    show("Frauds", table if arguments.json else table.drop(*_HIDDEN), ["large_t", "key"], as_json=arguments.json)
    return 0


def _of_spools(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the options of the source for the spools of the command line."""
    from trouter_pipeline.consuming import options_for  # noqa: PLC0415  # Arrow, only when it runs

    return options_for(arguments.spool, arguments.cursor, source_of(arguments))


def _events(spark: Any, arguments: argparse.Namespace) -> tuple[Any, dict[str, int], dict[str, int]]:
    """Return the payments, the inputs that they come from, and the version of their table, for the commit."""
    from trouter_pipeline.jobs import fraud  # noqa: PLC0415

    inputs: dict[str, int] = {}
    read: dict[str, int] = {}
    if arguments.spool is not None:
        frame = fraud.of_spools(spark, _of_spools(arguments))
    elif arguments.table is not None:
        frame, inputs, read = fraud.of_table(spark, arguments.root, arguments.table, arguments.as_of)
    else:
        frame, inputs = fraud.of_files(spark, arguments.events, arguments.format, stream=arguments.stream)
    if arguments.schema is not None:
        frame = fraud.read_bodies(frame, arguments.body or "body", arguments.schema)
    return frame, inputs, read
