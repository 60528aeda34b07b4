"""`trouter pipeline run`: make everything that comes from records, one after the other, on one Spark."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from trouter.tools.failures import print_problem
from trouter_pipeline.commands.roots import add_root, local_folder
from trouter_pipeline.commands.spark import add_spark, held

#: Actions that make tables of the records, each after those whose tables it reads.
STEPS: Final = ("meter", "rollup", "top", "audit", "latency", "topology")


def add_parser(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser(
        "run",
        help="compact, make every table, and write the report",
        description=f"Do what `trouter pipeline` compact, {', '.join(STEPS)}, optimize and report do, each with its "
        "defaults and on one Spark, which takes less time than starting it for each. An action without new input does "
        "nothing. The exit status is 1 if any of them fails; the others are done nevertheless.",
    )
    parser.add_argument(
        "segments", nargs="+", type=local_folder, metavar="SEGMENTS_DIR", help="where a router keeps its records"
    )
    add_root(parser, made=True)
    parser.add_argument("--out", "-o", metavar="FILE", help="where the report goes (default: ROOT/report.html)")
    parser.add_argument(
        "--config", "-c", type=Path, metavar="FILE", help="a router's configuration: the report shows its limits"
    )
    add_spark(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run every action; return 1 if any of them fails, else 0."""
    options = [f"--storage-option={name}={value}" for name, value in arguments.storage_option]
    root = [str(arguments.root), *options]
    quiet = ["--quiet"] if arguments.quiet else []
    with held(arguments):
        failed = ["compact"] if _action("compact", *map(str, arguments.segments), *root, *quiet) else []
        failed += [step for step in STEPS if _action(step, *root, *quiet)]
    if _action("optimize", *root):
        failed.append("optimize")
    shown = ["--config", str(arguments.config)] if arguments.config else []
    if _action("report", *root, "--out", arguments.out or str(arguments.root / "report.html"), *shown):
        failed.append("report")
    if failed:
        print_problem(arguments, f"these failed: {', '.join(failed)}")
    return 1 if failed else 0


def _action(*words: str) -> int:
    """Run another action, with its name above its output; return its exit status."""
    from trouter.cli import main  # noqa: PLC0415  # which has imported this module

    print(f"--- {words[0]}", flush=True)
    try:
        return main(["pipeline", *words])
    except SystemExit as ended:
        return 0 if ended.code is None else int(ended.code != 0)
