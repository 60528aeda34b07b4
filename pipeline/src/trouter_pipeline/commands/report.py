"""`trouter pipeline report`: show the tables as one page of HTML, with plots. No Spark is needed."""

from __future__ import annotations

import argparse
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from trouter_pipeline.commands.answers import add_version, day

if TYPE_CHECKING:
    from trouter.config import Configuration


def add_parser(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = actions.add_parser(
        "report",
        help="show the tables as one page of HTML",
        description="Write one page of HTML with what the tables hold: traffic, outcomes, connections, latencies, "
        "the top ten, alerts, gaps and neighbours. The page contains its plots; it has no scripts and loads nothing. "
        "The page says what is missing. The exit status is 1 if a table cannot be read.",
    )
    parser.add_argument("root", type=Path, metavar="ROOT", help="the pipeline's folder, with tables/ in it")
    parser.add_argument("--out", "-o", type=Path, default=Path("report.html"), help="default: report.html")
    parser.add_argument("--since", type=day, metavar="DATE", help="the first date, such as 2026-03-01 (UTC)")
    parser.add_argument("--until", type=day, metavar="DATE", help="the last date")
    parser.add_argument(
        "--config", "-c", type=Path, metavar="FILE", help="a router's configuration: shows the limits of its vhosts"
    )
    add_version(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the page; return 1 if it cannot be written or a table cannot be read, else 0."""
    from trouter_pipeline.report import Period, build  # noqa: PLC0415  # needs packages that are optional

    if not arguments.root.is_dir():
        print(f"{arguments.root}: there is no such folder", file=sys.stderr)
        return 1
    limits = {}
    if arguments.config is not None:
        from trouter.config import ConfigurationError, load  # noqa: PLC0415  # only when it runs

        try:
            limits = limits_of(load(arguments.config))
        except (ConfigurationError, OSError) as error:
            print(error, file=sys.stderr)
            return 1
    report = build(arguments.root, Period(arguments.since, arguments.until), limits, datetime.now(UTC), arguments.as_of)
    temporary = arguments.out.with_name(f".{arguments.out.name}.{os.getpid()}")
    try:
        temporary.write_text(report.page, encoding="utf-8")
        temporary.replace(arguments.out)
    except OSError as error:
        print(f"{arguments.out}: {error.strerror}", file=sys.stderr)
        return 1
    for text in report.broken:
        print(text, file=sys.stderr)
    for text in report.attention:
        print(text)
    if report.lacking:
        print(f"Not in the report, because their tables do not exist: {', '.join(report.lacking)}.")
    print(f"The report is in {arguments.out}.")
    return 1 if report.broken else 0


def limits_of(configuration: Configuration) -> dict[str, int]:
    """Return the maximum number of connections of each vhost whose section sets it."""
    from trouter.config import VhostEntity  # noqa: PLC0415  # only when it runs
    from trouter.config.entities.group import MAX_CONNECTIONS  # noqa: PLC0415

    return {
        each.hostname: each.max_connections
        for each in configuration.of("vhost")
        if isinstance(each, VhostEntity) and each.max_connections != MAX_CONNECTIONS
    }
