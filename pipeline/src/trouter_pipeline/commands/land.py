"""`trouter pipeline land`: write messages of spools into tables, or merge them as changes of rows."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from trouter_pipeline.commands.answers import reported, until_signal
from trouter_pipeline.commands.roots import add_root, local_folder
from trouter_pipeline.commands.spark import add_spark, started
from trouter_pipeline.commands.spools import add_spools, source_of

if TYPE_CHECKING:
    from trouter_pipeline.jobs.land import Parameters, Summary
    from trouter_pipeline.jobs.land_again import Summary as Again


def add_parser(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser(
        "land",
        help="write messages of spools into tables, one partition for each source; merge changes of rows",
        description="Write the messages that `trouter pipeline spool` received into the table NAME under ROOT, "
        "partitioned by the address from which they came and the day. Messages that cannot be decoded, or whose body "
        "does not fit, go to NAME_dead. The command continues where it stopped. Each message of the spool comes into "
        "the table exactly once.",
    )
    add_spools(parser)
    parser.add_argument(
        "--from-dead",
        action="store_true",
        help="in place of --spool: try the dead letters of the table again, with --body and --schema as they landed; "
        "those that are understood now become rows, once",
    )
    add_root(parser, option="--out")
    parser.add_argument("--name", default="landed", help="the table (landed)")
    parser.add_argument(
        "--checkpoint",
        type=local_folder,
        metavar="DIR",
        help="the folder of the stream's checkpoint, on this machine; default ROOT/checkpoints/NAME, and needed if "
        "ROOT is a URI",
    )
    parser.add_argument(
        "--every",
        type=int,
        metavar="SECONDS",
        help="look for new messages so often, until interrupted; else end when all are landed",
    )
    parser.add_argument(
        "--deduplicate",
        type=int,
        default=0,
        metavar="MESSAGES",
        help="leave out a message whose message-id landed from the same address among so many messages of the spool "
        "before it",
    )
    parser.add_argument("--max-rows", type=int, metavar="N", help="messages of one batch at most")
    parser.add_argument("--json", action="store_true", help="print what was landed as JSON")
    _add_bodies(parser)
    _add_changes(parser)
    add_spark(parser)
    parser.set_defaults(run=run)


def _add_bodies(parser: argparse.ArgumentParser) -> None:
    bodies = parser.add_argument_group("bodies")
    bodies.add_argument(
        "--body",
        choices=("json", "avro", "debezium"),
        default="",
        help="the format of bodies; with --schema their fields are columns; debezium is JSON in its envelope",
    )
    bodies.add_argument(
        "--schema",
        default="",
        metavar="COLUMNS",
        help="'id bigint, amount decimal(10,2), at timestamp', or a file that says so",
    )
    bodies.add_argument(
        "--merge-schema",
        action="store_true",
        help="add columns that the table lacks; those that --schema lacks are null. A column keeps its type",
    )
    bodies.add_argument(
        "--avro-schema", default="", metavar="FILE", help="the schema that Avro bodies were written with"
    )


def _add_changes(parser: argparse.ArgumentParser) -> None:
    changes = parser.add_argument_group(
        "changes",
        "With --merge each message is a change of a row, and the table has the last state of each row. COLUMN is one "
        "of the message or of its body, or property:NAME for an application property.",
    )
    changes.add_argument(
        "--merge",
        type=_names,
        default=[],
        metavar="COLUMN,...",
        help="the key: of messages with the same address and key the last one is the row",
    )
    changes.add_argument(
        "--sequence",
        type=_names,
        default=[],
        metavar="COLUMN,...",
        help="what orders changes, the greatest last, such as source.lsn of Debezium; by default their arrival",
    )
    changes.add_argument(
        "--op", default="", metavar="COLUMN", help="the operation; by default op if there is such a column"
    )
    changes.add_argument(
        "--delete-when",
        default="",
        metavar="CONDITION",
        help="a condition in Spark's SQL for deletions, such as \"state = 'gone'\", instead of an operation",
    )
    changes.add_argument(
        "--buckets",
        type=_count,
        metavar="N",
        help="into how many parts a new table divides each source; a batch writes the parts again that it changes (16)",
    )
    changes.add_argument(
        "--keep-deleted",
        type=_count,
        default=168,
        metavar="HOURS",
        help="how long a deletion is remembered, against older changes that come later (168)",
    )


def _names(text: str) -> list[str]:
    found = [name.strip() for name in text.split(",")]
    if not all(found) or len(set(found)) < len(found):
        raise argparse.ArgumentTypeError("write NAME,NAME, each once")
    return found


def _count(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 10**6:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to 999999")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """Land messages, and print their numbers; return the exit status, 1 for a failure."""
    from trouter_pipeline.landing import NotLanded, require_name  # noqa: PLC0415  # Arrow, only when it runs

    try:
        require_name(arguments.name)
    except NotLanded as wrong:
        raise argparse.ArgumentTypeError(str(wrong)) from None
    if fault := _wrong(arguments):
        raise argparse.ArgumentTypeError(fault)
    with started(arguments) as (spark, progress):
        from trouter_pipeline.jobs import land, land_again  # noqa: PLC0415  # Spark, once it was seen to be there
        from trouter_pipeline.options import BadOption  # noqa: PLC0415
        from trouter_pipeline.spool import SpoolError  # noqa: PLC0415

        wants_to_end = until_signal()

        def work() -> int:
            parameters = _parameters(arguments)
            try:
                if arguments.from_dead:
                    again = land_again.run(spark, arguments.root, parameters, progress)
                else:
                    summary = land.run(spark, arguments.root, parameters, progress, wants_to_end)
            finally:
                progress.close()
            if arguments.from_dead:
                _print_again(again, arguments.name, as_json=arguments.json)
            else:
                _print(summary, as_json=arguments.json)
            return 0

        return reported(arguments, work, NotLanded, SpoolError, BadOption)


def _wrong(arguments: argparse.Namespace) -> str:
    """Return the fault of the options, "" for none."""
    if bool(arguments.spool) == arguments.from_dead:
        return "give --spool, or --from-dead"
    if arguments.from_dead:
        for name in ("merge", "every", "deduplicate", "checkpoint", "max_rows"):
            if getattr(arguments, name):
                return f"--{name.replace('_', '-')} is not for --from-dead"
    if bool(arguments.body) != bool(arguments.schema):
        return "--body and --schema go together"
    if arguments.avro_schema and arguments.body != "avro":
        return "--avro-schema is for --body avro"
    if arguments.merge and arguments.deduplicate:
        return "--deduplicate is not for --merge, to which a repetition is nothing new"
    if not arguments.merge:
        for name in ("sequence", "op", "delete_when", "buckets"):
            if getattr(arguments, name):
                return f"--{name.replace('_', '-')} is for --merge"
        if arguments.body == "debezium":
            return "--body debezium is for --merge"
    if arguments.op and arguments.delete_when:
        return "--op and --delete-when do not go together"
    if arguments.body == "debezium" and not arguments.sequence:
        return "--body debezium needs --sequence: source.lsn, source.file,source.pos,source.row or another one"
    for name in ("every", "deduplicate", "max_rows"):
        if (getattr(arguments, name) or 0) < 0:
            return f"--{name.replace('_', '-')} is not negative"
    return ""


def _parameters(arguments: argparse.Namespace) -> Parameters:
    """Return the parameters of the job; OSError if the file with the schema cannot be read."""
    from trouter_pipeline.changes import ARRIVAL, Merge  # noqa: PLC0415
    from trouter_pipeline.jobs.land import Parameters  # noqa: PLC0415

    merge = None
    if arguments.merge:
        merge = Merge(
            keys=arguments.merge,
            sequence=arguments.sequence or ARRIVAL,
            operation=arguments.op,
            delete_when=arguments.delete_when,
            buckets=arguments.buckets,
            keep_deleted_h=arguments.keep_deleted,
        )
    source = source_of(arguments)
    if arguments.max_rows:
        source["maxRowsPerBatch"] = str(arguments.max_rows)
    schema = arguments.schema
    if schema and " " not in schema.strip():
        schema = Path(schema).read_text(encoding="utf-8")
    return Parameters(
        spools=arguments.spool or [],
        cursor=arguments.cursor,
        name=arguments.name,
        checkpoint=arguments.checkpoint,
        every_s=arguments.every,
        schema=schema,
        body_format=arguments.body,
        avro_schema_file=arguments.avro_schema,
        deduplicate_within=arguments.deduplicate,
        merge=merge,
        merge_schema=arguments.merge_schema,
        source=source,
    )


def _print(summary: Summary, *, as_json: bool) -> None:
    if as_json:
        counts = {
            "batches": summary.batches,
            "duplicates": summary.duplicates,
            "rows": summary.rows,
            "dead": summary.dead,
            "waiting": summary.left,
        }
        print(json.dumps(counts))
        return
    if not summary.batches:
        print(_nothing(summary))
        return
    sources = sorted({*summary.rows, *summary.dead})
    width = max(map(len, ["source", *sources]))
    print(f"{'source':{width}}  {'rows':>12}  {'dead letters':>12}")
    for source in sources:
        print(f"{source:{width}}  {summary.rows[source]:>12,}  {summary.dead[source]:>12,}")
    rows, dead = summary.rows.total(), summary.dead.total()
    print(f"{rows:,} rows and {dead:,} dead letters in {summary.batches} batches{_left_out(summary)}")
    if summary.left:
        print(f"{summary.left:,} messages wait in the spools: run again to land them")


def _left_out(summary: Summary) -> str:
    return f", {summary.duplicates:,} duplicates left out" if summary.duplicates else ""


def _nothing(summary: Summary) -> str:
    """Return what is said of a run that landed no message."""
    if not summary.left:
        return f"nothing new: all messages of the spools are landed{_left_out(summary)}"
    why = "ended before its first batch was landed" if summary.interrupted else "they came meanwhile"
    return f"nothing was landed: {summary.left:,} messages wait in the spools ({why}): run again to land them"


def _print_again(summary: Again, name: str, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"rows": summary.rows, "dead": summary.dead}))
        return
    for source, rows in sorted(summary.rows.items()):
        print(f"{source}: {rows:,} dead letters are rows now")
    print(f"{summary.dead:,} dead letters are still not understood: {name}_dead says why")
