"""`trouter run`: start a router in the foreground."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from trouter import logs
from trouter.cli.startup import StartError, existing_path, prepare
from trouter.config import ConfigurationError, load
from trouter.config.strict import unsafe

#: The addresses are those of the built-in configuration.
LOOK_AROUND: Final = """\

The router takes clients of this machine on 127.0.0.1:5672. From another terminal:
  {command} stat                   how it is; --connections, --links, --address, --watch 1
  {command} stat --why ADDRESS     why nothing arrives there
  {command} manage query --type listener
  http://127.0.0.1:5680/metrics    for Prometheus; /readyz and /livez for probes
Ctrl-C stops it. `{command} run -c FILE` uses a configuration of your own.

"""


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
    return route(arguments.config, None if arguments.config else show_around)


def show_around() -> None:
    """Tell whoever started the built-in configuration where to look next."""
    command = sys.argv[0] if Path(sys.argv[0]).name == "trouter" else f"{sys.executable} -m trouter"
    print(LOOK_AROUND.format(command=command), end="", flush=True)


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
    for finding in unsafe(configuration):
        logs.of("MAIN").warning("unsafe: %s", finding)
    from trouter.net.router import run as serve  # noqa: PLC0415  # the whole router, which other commands do without

    return serve(configuration, plugins, partial(load, path), ready, ended)
