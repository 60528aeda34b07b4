"""`trouter pipeline forward`: send messages of spools to a topic of Kafka, each once, in the order of its source."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from trouter_pipeline.commands.answers import reported_as, until_signal
from trouter_pipeline.commands.cluster import add_cluster, settings_of, wrong_cluster
from trouter_pipeline.commands.roots import local_folder
from trouter_pipeline.commands.spark import SPARK, add_spark, refuse_spark, started
from trouter_pipeline.commands.spools import add_spools, source_of

if TYPE_CHECKING:
    from trouter_pipeline.kafka.local import Summary
    from trouter_pipeline.kafka.settings import Settings

LOCAL: Final = "local"
_AROUND: Final = f"--engine {LOCAL}, for which `pip install 'trouter[kafka]'` is enough"


def add_parser(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser(
        "forward",
        help="send messages of spools to a topic of Kafka, a partition for each source",
        description="Send the messages that `trouter pipeline spool` received to a topic of Kafka: each once, and in "
        "the order of its source within a partition. The command continues where it stopped, or was killed: each "
        "record has the number of its message in its headers, and the end of the topic is read at the start.",
    )
    add_spools(parser, required=True)
    parser.add_argument("--kafka", required=True, metavar="HOST:PORT,...", help="some brokers of the cluster")
    parser.add_argument("--topic", required=True, help="the topic, which must exist")
    _add_records(parser)
    parser.add_argument(
        "--engine",
        choices=(SPARK, LOCAL),
        default=SPARK,
        help="what sends: tasks of Spark (the default), or this process, without Java",
    )
    parser.add_argument(
        "--checkpoint", type=local_folder, metavar="DIR", help="for Spark: the folder of the stream's checkpoint"
    )
    parser.add_argument(
        "--every",
        type=int,
        metavar="SECONDS",
        help="look for new messages so often, until interrupted; else end when all are sent",
    )
    parser.add_argument(
        "--max-rows", type=int, default=10_000, metavar="N", help="messages of one batch at most (10000)"
    )
    parser.add_argument("--json", action="store_true", help="print what was sent as JSON")
    _add_cluster(parser)
    add_spark(parser)
    parser.set_defaults(run=run, around=_AROUND)


def _add_records(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--partition-by",
        default="source",
        metavar="source|FIELD",
        help="what chooses the partition: the source, which is the address of its spool and has a partition of its own "
        "(the default), or a field, as Kafka's own clients do by its hash",
    )
    parser.add_argument(
        "--partition",
        action="append",
        type=_place,
        default=[],
        metavar="SOURCE=NUMBER",
        help="the partition of a source; by default one that no other source has gone to; may be given again",
    )
    parser.add_argument(
        "--key",
        type=_names,
        default=[],
        metavar="FIELD,...",
        help="the key of records: a property of the message such as message_id or subject, property:NAME for an "
        "application property, or a field of a JSON body such as id or after.id; several make a JSON list",
    )


def _add_cluster(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the cluster")
    group.add_argument(
        "--transactions",
        choices=("auto", "off"),
        default="auto",
        help="whether a batch is a transaction of Kafka, which fences an older writer: if the brokers have them (auto)",
    )
    add_cluster(group)


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise argparse.ArgumentTypeError("write FIELD,FIELD")
    return names


def _place(text: str) -> tuple[str, int]:
    source, equals, number = text.rpartition("=")
    if not equals or not source or not (number.isascii() and number.isdecimal()):
        raise argparse.ArgumentTypeError("write SOURCE=NUMBER, such as changes/east=0")
    return source, int(number)


def run(arguments: argparse.Namespace) -> int:
    """Forward messages, and print their numbers; return the exit status, 1 for a failure."""
    if wrong := _wrong(arguments):
        raise argparse.ArgumentTypeError(wrong)
    if arguments.engine == LOCAL:
        refuse_spark(arguments, LOCAL)
        return _reported(arguments, lambda wants_to_end: _here(arguments, wants_to_end))
    with started(arguments) as (spark, progress):

        def work(wants_to_end: Callable[[], bool]) -> Summary:
            from trouter_pipeline.jobs import forward  # noqa: PLC0415  # Spark, once it was seen to be there

            try:
                return forward.run(
                    spark,
                    _settings(arguments),
                    arguments.spool,
                    dict(arguments.partition),
                    arguments.checkpoint,
                    cursor=arguments.cursor,
                    source=source_of(arguments),
                    every_s=arguments.every,
                    max_rows=arguments.max_rows,
                    wants_to_end=wants_to_end,
                    progress=progress,
                )
            finally:
                progress.close()

        return _reported(arguments, work)


def _here(arguments: argparse.Namespace, wants_to_end: Callable[[], bool]) -> Summary:
    from trouter_pipeline.kafka import local  # noqa: PLC0415  # librdkafka, only when it runs
    from trouter_pipeline.progress import Progress  # noqa: PLC0415
    from trouter_pipeline.spool.writer import MAX_MESSAGE_BYTES  # noqa: PLC0415

    progress = Progress(arguments.command_parser.prog, quiet=arguments.quiet)
    try:
        return local.run(
            _settings(arguments),
            arguments.spool,
            dict(arguments.partition),
            cursor=arguments.cursor,
            source=source_of(arguments),
            every_s=arguments.every,
            max_rows=arguments.max_rows,
            max_message=MAX_MESSAGE_BYTES,
            wants_to_end=wants_to_end,
            progress=progress,
        )
    finally:
        progress.close()


def _wrong(arguments: argparse.Namespace) -> str:
    """Return the fault of the options, "" for none."""
    if arguments.engine == SPARK and arguments.checkpoint is None:
        return "--checkpoint DIR is needed on Spark: the same one each time"
    if arguments.engine == LOCAL and arguments.checkpoint is not None:
        return f"--checkpoint is for --engine {SPARK}: without it the spool keeps the place"
    if arguments.partition and arguments.partition_by != "source":
        return "--partition is for --partition-by source"
    if arguments.max_rows < 1 or (arguments.every is not None and arguments.every < 1):
        return "--max-rows and --every are greater than 0"
    return wrong_cluster(arguments)


def _settings(arguments: argparse.Namespace) -> Settings:
    return settings_of(
        arguments,
        arguments.topic,
        partition_by=arguments.partition_by,
        keys=arguments.key,
        transactions=arguments.transactions == "auto",
    )


def _reported(arguments: argparse.Namespace, work: Callable[[Callable[[], bool]], Summary]) -> int:
    from trouter_pipeline.kafka.failures import NotForwarded  # noqa: PLC0415
    from trouter_pipeline.options import BadOption  # noqa: PLC0415
    from trouter_pipeline.spool import SpoolError  # noqa: PLC0415

    wants_to_end = until_signal()

    def run() -> int:
        _print(work(wants_to_end), as_json=arguments.json)
        return 0

    return reported_as(arguments, run, NotForwarded, BadOption, SpoolError, OSError)


def _print(summary: Summary, *, as_json: bool) -> None:
    if as_json:
        document: dict[str, Any] = {"sent": summary.sent, "known": summary.known, "waiting": summary.left}
        print(json.dumps(document))
        return
    for source in sorted(summary.sent):
        known = f", {summary.known[source]:,} were there already" if summary.known[source] else ""
        print(f"{source}: {summary.sent[source]:,} sent{known}")
    if summary.left:
        print(f"{summary.left:,} messages wait in the spools: run again to send them")
    elif not summary.sent:
        print("nothing new: all messages of the spools are sent")
