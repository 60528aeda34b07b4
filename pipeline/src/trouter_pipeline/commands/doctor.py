"""`trouter pipeline doctor`: print what Spark needs and does not find here, each with its cure."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trouter.tools.failures import print_problem
from trouter_pipeline.commands import submit
from trouter_pipeline.commands.spark import add_spark, settings_of

if TYPE_CHECKING:
    from trouter_pipeline.needs import Need


def add_parser(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser(
        "doctor",
        help="say what is missing to run on Spark",
        description="Check for the programs and packages that the jobs need: Java, PySpark, Arrow, protobuf, RocksDB, "
        "and a Python for Spark's workers. With --master, also start Spark there, and check its workers: versions, "
        "packages, clocks, and with --path whether they see the same folders. Every fault is a line with its cure; "
        "the exit status is 1 if a job cannot run.",
    )
    parser.add_argument("--submit", action="store_true", help="print the file that spark-submit is to run, and no more")
    parser.add_argument(
        "--path",
        action="append",
        type=_folder,
        default=[],
        metavar="DIR",
        help="a folder that this machine and all workers must share, such as ROOT or a spool; may be given again",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    add_spark(parser)
    parser.set_defaults(run=run)


def _folder(text: str) -> Path:
    if "://" in text:
        raise argparse.ArgumentTypeError(f"{text} is no folder: the jobs check an object store themselves")
    return Path(text)


def run(arguments: argparse.Namespace) -> int:
    if arguments.submit:
        print(submit.__file__)
        return 0
    from trouter_pipeline.needs import lines, missing, scarce  # noqa: PLC0415  # only when it runs
    from trouter_pipeline.session import SUBMITTED, on_one_machine  # noqa: PLC0415

    cluster = SUBMITTED in os.environ if arguments.master is None else not on_one_machine(arguments.master)
    here_alone = arguments.master is None and not cluster
    if here_alone and arguments.path:
        raise argparse.ArgumentTypeError("--path is for a cluster, so it needs --master")
    found = [] if cluster else missing()  # there the session looks, and knows more of the workers' Python
    scarcities = scarce()
    if not found and not here_alone:
        return _check_workers(arguments, scarcities)
    if arguments.json:
        return _print_document(found, scarcities)
    for line in lines([*found, *scarcities]):
        print_problem(arguments, line)
    if not found:
        print("Spark can run here.")
    return 1 if found else 0


def _print_document(found: Iterable[Need], others: Iterable[Need], **more: object) -> int:
    """Print what is missing, and what is merely worth a look, each with its cure; return the exit status."""
    missing = [need._asdict() for need in found]
    print(json.dumps({**more, "missing": missing, "warnings": [need._asdict() for need in others]}, indent=2))
    return 1 if missing else 0


def _check_workers(arguments: argparse.Namespace, scarcities: Sequence[Need]) -> int:
    from trouter_pipeline import workers  # noqa: PLC0415
    from trouter_pipeline.needs import Missing, Need, found_here, found_in, lines  # noqa: PLC0415
    from trouter_pipeline.session import unchecked_session  # noqa: PLC0415

    name = arguments.command_parser.prog
    if not arguments.json:
        for line in lines(scarcities):
            print_problem(arguments, line)
    try:
        spark = unchecked_session(name, master=arguments.master, settings=settings_of(arguments))
    except Missing as error:
        if arguments.json:
            return _print_document([Need(str(error), "")], scarcities)
        print_problem(arguments, error)
        return 1
    here, told = found_here(), workers.reports(spark)
    there = {host: sorted({str(each) for each in map(found_in, outputs) if each}) for host, outputs in told.items()}
    found = workers.lacking(told) or [each for folder in arguments.path for each in workers.unshared(spark, folder)]
    differing = [*workers.differing(here, told), *workers.wrong_clocks(spark)]
    version, master = spark.version, spark.sparkContext.master
    spark.stop()
    if arguments.json:
        return _print_document(found, [*scarcities, *differing], here=str(here), workers=there, spark=version)
    print(f"here: {here}")
    for host, each in ((host, each) for host, several in there.items() for each in several):
        print(f"worker {host}: {each}")
    for line in lines([*found, *differing]):
        print_problem(arguments, line)
    if not found:
        print(f"Spark {version} runs at {master}, and its workers have what they need.")
    return 1 if found else 0
