"""`trouter pipeline audit`: find attacks, and rules of the policy that never decide."""

from __future__ import annotations

import argparse
import json
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any

from trouter.tools.failures import print_problem
from trouter_pipeline.commands.answers import add_again, add_version, answered
from trouter_pipeline.commands.receivers import add_receivers, receivers_of
from trouter_pipeline.commands.roots import add_root, local_folder
from trouter_pipeline.commands.spark import add_spark
from trouter_pipeline.commands.streaming import add_pace, pace_of, watched

if TYPE_CHECKING:
    from trouter_pipeline.alerting import Receivers
    from trouter_pipeline.attacks import Limits
    from trouter_pipeline.streams import Pace


def add_parser(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser(
        "audit",
        help="find attacks in logins and denials, and rules that never decide",
        description="Look for attacks in the records under ROOT and replace the tables audit_alerts and audit_rules by "
        "the result; the command does nothing if the tables already cover these records. With --follow or --stream, "
        "read records as they come and add their alerts to audit_alerts instead.",
    )
    add_root(parser)
    add_again(parser, "the tables")
    parser.add_argument("--json", action="store_true", help="print the alerts as JSON, one a line")
    streams = parser.add_argument_group("streams")
    streams.add_argument(
        "--follow",
        action="append",
        type=local_folder,
        metavar="DIR",
        help="read the segments that a router completes in this folder; may be given again",
    )
    streams.add_argument("--stream", action="store_true", help="read what compaction adds under ROOT")
    add_pace(streams)
    add_version(parser, "the records")
    _add_limits(parser.add_argument_group("limits", "A count that reaches one of these numbers is an alert."))
    add_receivers(parser)
    add_spark(parser)
    parser.set_defaults(run=run)


def _add_limits(group: argparse._ArgumentGroup) -> None:
    from trouter_pipeline.attacks import Limits  # noqa: PLC0415

    for each in fields(Limits):
        name = each.name.replace("_", "-").removesuffix("-s")
        text = f"{each.metadata['help']} ({each.default})"
        group.add_argument(f"--{name}", dest=each.name, type=int, default=each.default, metavar="N", help=text)


def run(arguments: argparse.Namespace) -> int:
    """Find attacks and print them; return the exit status, 1 for a failure."""
    from trouter_pipeline.attacks import Limits  # noqa: PLC0415  # only when it runs

    streams = bool(arguments.follow) or arguments.stream
    if arguments.follow and arguments.stream:
        raise argparse.ArgumentTypeError("choose one of --follow and --stream")
    if streams and arguments.as_of is not None:
        raise argparse.ArgumentTypeError("--as-of is not for streams")
    if streams and arguments.again:
        raise argparse.ArgumentTypeError("--again is not for streams")
    if streams != (arguments.checkpoint is not None):
        raise argparse.ArgumentTypeError("a stream needs a --checkpoint" if streams else "--checkpoint is for streams")
    for folder in arguments.follow or ():
        if not folder.is_dir():
            print_problem(arguments, f"{folder}: there is no such folder")
            return 1
    try:
        limits = Limits(**{each.name: getattr(arguments, each.name) for each in fields(Limits)})
        pace = pace_of(arguments)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    try:
        receivers = receivers_of(arguments)
    except (ValueError, OSError) as error:
        print_problem(arguments, error)
        return 1

    def answer(spark: Any, progress: Any, arguments: argparse.Namespace) -> int:
        return (_follow if streams else _recompute)(spark, progress, arguments, limits, pace, receivers)

    return answered(arguments, answer)


def _recompute(
    spark: Any, progress: Any, arguments: argparse.Namespace, limits: Limits, pace: Pace, receivers: Receivers | None
) -> int:
    from trouter_pipeline.jobs import audit  # noqa: PLC0415  # Spark is here by now
    from trouter_pipeline.kafka.failures import NotForwarded  # noqa: PLC0415
    from trouter_pipeline.tables import Table  # noqa: PLC0415

    parameters = audit.Parameters(limits, pace, again=arguments.again)
    send = None if receivers is None else receivers.send
    try:
        summary = audit.run(spark, arguments.root, parameters, progress, arguments.as_of, send)
    except NotForwarded as error:
        progress.close()
        print_problem(arguments, error)
        return 1
    progress.close()
    if summary.nothing is not None:
        print_problem(arguments, summary.nothing)
    table = Table(arguments.root, audit.ALERTS)
    if table.last_commit() is None:
        return 1
    rows = table.read(spark).orderBy("first_at", "alert_id").collect()
    _print(rows, as_json=arguments.json)
    if not arguments.json and summary.nothing is None:
        print(f"{len(rows)} alerts in {summary.segments} segments; {summary.unused_rules} rules never decided anything")
    return 0


def _follow(
    spark: Any, progress: Any, arguments: argparse.Namespace, limits: Limits, pace: Pace, receivers: Receivers | None
) -> int:
    from trouter_pipeline.jobs import audit  # noqa: PLC0415  # Spark is here by now

    stream = audit.compacted(spark, arguments.root) if arguments.stream else audit.followed(spark, arguments.follow)

    def show_and_send(alerts: Any) -> None:
        if receivers is not None:
            receivers.send(audit.messages(alerts))
        progress.close()
        _print(alerts.sort("first_at", "alert_id").toLocalIterator(), as_json=arguments.json)

    parameters = audit.Parameters(limits, pace)
    start = partial(audit.follow, stream, arguments.root, arguments.checkpoint, parameters, show_and_send)
    return watched(arguments, start, pace, progress)


def _print(rows: Any, *, as_json: bool) -> None:
    for row in rows:
        if as_json:
            print(json.dumps(row.asDict(), default=str))
            continue
        who = " ".join(f"{name} {row[name]}" for name in ("user", "host", "vhost") if row[name] is not None)
        over = f"to {row['last_at']:%H:%M:%S}" if row["ended"] else "and goes on"
        print(f"{row['first_at']:%Y-%m-%d %H:%M:%S} {over}  {row['rule']}: {who}, {row['failures']} times", flush=True)
