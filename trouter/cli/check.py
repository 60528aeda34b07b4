"""`trouter check`: would this configuration start?"""

from __future__ import annotations

import argparse
import sys

from trouter.cli.startup import StartError, existing_path, prepare


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "check",
        help="check a configuration file",
        description="Load a configuration as `trouter run` does, and print every error and warning with its place.",
    )
    parser.add_argument("file", metavar="FILE", type=existing_path, help="the configuration to check")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print errors and warnings; 0 if the router would start."""
    try:
        configuration, _ = prepare(arguments.file)
    except StartError as error:
        print(error, file=sys.stderr)
        print(f"{arguments.file}: not usable, {len(error.lines)} error(s)", file=sys.stderr)
        return 1
    for warning in configuration.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    counts = (
        (len(configuration.listeners), "listener(s)"),
        (len(configuration.addresses), "address rule(s)"),
        (len(configuration.warnings), "warning(s)"),
    )
    print(f"{configuration.source}: good, {', '.join(f'{count} {what}' for count, what in counts)}")
    return 0
