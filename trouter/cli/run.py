"""`trouter run`: start a router in the foreground."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from trouter import logs
from trouter.cli.startup import StartError, existing_path, prepare
from trouter.config import ConfigurationError, load


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "run",
        help="start a router in the foreground",
        description="Start a router in the foreground. TERM or INT once: drain and stop; a second time: stop at once.",
        epilog="Without a file: a standalone router on 127.0.0.1:5672 that lets in everybody on this machine.",
    )
    parser.add_argument(
        "-c", "--config", metavar="FILE", type=existing_path, help="configuration, in .conf or (named *.json) JSON form"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Route until told to stop; the exit status."""
    return route(arguments.config)


def route(path: Path | None, ready: Callable[[], None] | None = None, ended: Callable[[], None] | None = None) -> int:
    """Load, log what is doubtful, and route until told to stop; the exit status. ready, ended: as the router calls."""
    try:
        configuration, plugins = prepare(path)
        logs.configure(configuration)
    except (StartError, ConfigurationError) as error:
        print(error, file=sys.stderr)
        logs.of("MAIN").critical("Router start-up failed: see the lines above")
        return 1
    for warning in configuration.warnings:
        logs.of("MAIN").warning("%s", warning)
    from trouter.net.router import run as serve  # noqa: PLC0415  # the whole router, which other commands do without

    return serve(configuration, plugins, partial(load, path), ready, ended)
