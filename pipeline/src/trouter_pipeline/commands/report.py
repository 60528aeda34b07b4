"""`trouter pipeline report`: show the tables as one page of HTML, with plots. No Spark is needed."""

from __future__ import annotations

import argparse
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from trouter.tools.failures import print_problem
from trouter_pipeline.commands.answers import day, is_there, moment
from trouter_pipeline.commands.roots import add_root
from trouter_pipeline.files import replace
from trouter_pipeline.places import BadPlace, Place

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
    add_root(parser)
    parser.add_argument(
        "--out",
        "-o",
        default="report.html",
        metavar="FILE",
        help="default: report.html; or a URI in the store of ROOT",
    )
    parser.add_argument(
        "--since", "--from", type=_end, metavar="DATE", help="the first date or moment, such as 2026-03-01 (UTC)"
    )
    parser.add_argument(
        "--until", "--to", type=_end, metavar="DATE", help="the last date or moment, such as 2026-03-01T18:00"
    )
    parser.add_argument(
        "--config", "-c", type=Path, metavar="FILE", help="a router's configuration: shows the limits of its vhosts"
    )
    parser.add_argument(
        "--as-of",
        action="append",
        type=_version,
        default=[],
        metavar="VERSION",
        help="read the tables as they were at a moment, such as 2026-03-01T12:00 (UTC), or one of them at its version, "
        "such as meter=12, as far as these are not vacuumed; may be given again",
    )
    parser.set_defaults(run=run)


def _end(text: str) -> date:
    """Return a date or a moment of the command line; argparse.ArgumentTypeError."""
    return moment(text) if "T" in text or " " in text else day(text)


def _version(text: str) -> datetime | tuple[str, int]:
    """Return a moment, or a table and its version; argparse.ArgumentTypeError."""
    from trouter_pipeline.report.stored import COLUMNS  # noqa: PLC0415  # needs packages that are optional

    name, equals, number = text.partition("=")
    if not equals:
        return moment(text)
    if name not in COLUMNS or not number.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no TABLE=VERSION, such as meter=12; of {', '.join(COLUMNS)}")
    return name, int(number)


def run(arguments: argparse.Namespace) -> int:
    """Write the page; return 1 if it cannot be written or a table cannot be read, else 0."""
    from trouter_pipeline.report import Period, build  # noqa: PLC0415  # needs packages that are optional

    if not is_there(arguments):
        return 1
    try:
        out = Place.of(arguments.out, dict(arguments.storage_option))
    except BadPlace as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    limits = {}
    if arguments.config is not None:
        from trouter.config import ConfigurationError, load  # noqa: PLC0415  # only when it runs

        try:
            limits = limits_of(load(arguments.config))
        except (ConfigurationError, OSError) as error:
            print_problem(arguments, error)
            return 1
    moments = [each for each in arguments.as_of if isinstance(each, datetime)]
    versions = dict(each for each in arguments.as_of if not isinstance(each, datetime))
    period, now = Period(arguments.since, arguments.until), datetime.now(UTC)
    report = build(arguments.root, period, limits, now, moments[-1] if moments else None, versions)
    try:
        _write(report.page, out)
    except OSError as error:
        print_problem(arguments, f"{out}: {error.strerror}")
        return 1
    for text in report.broken:
        print_problem(arguments, text)
    for text in report.attention:
        print(text)
    if report.lacking:
        print(f"Not in the report, because their tables do not exist: {', '.join(report.lacking)}.")
    print(f"The report is in {out}.")
    return 1 if report.broken else 0


def _write(page: str, out: Place) -> None:
    """Write the page, whole or not at all; OSError."""
    if not out.is_local:
        out.write_bytes(page.encode())
        return
    replace(Path(out), page.encode())


def limits_of(configuration: Configuration) -> dict[str, int]:
    """Return the maximum number of connections of each vhost whose section sets it."""
    from trouter.config import VhostEntity  # noqa: PLC0415  # only when it runs
    from trouter.config.entities.group import MAX_CONNECTIONS  # noqa: PLC0415

    return {
        each.hostname: each.max_connections
        for each in configuration.of("vhost")
        if isinstance(each, VhostEntity) and each.max_connections != MAX_CONNECTIONS
    }
