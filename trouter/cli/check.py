"""`trouter check`: would this configuration start?"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from trouter.cli.startup import StartError, existing_path, little_memory, log_files, prepare, tls_material
from trouter.config import Configuration
from trouter.config.networks import remarks
from trouter.config.strict import unsafe

ALWAYS_TOLD: Final = frozenset({"listener(s)", "address rule(s)", "warning(s)"})


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "check",
        help="check a configuration file",
        description="Load a configuration as `trouter run` does, and print every error and warning with its place. "
        "Of several files, those of the routers of a network, also what they say together.",
    )
    parser.add_argument("files", metavar="FILE", type=existing_path, nargs="+", help="the configuration to check")
    parser.add_argument("--strict", action="store_true", help="take all that is unsafe for an error")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print errors and warnings; 0 if the router would start and nothing grave, or with --strict nothing, is found."""
    good: list[Configuration] = []
    status = max([_check(path, good, strict=arguments.strict) for path in arguments.files])
    found = [*remarks(good)]
    for remark in found:
        print(f"{'network' if remark.grave else 'warning'}: {remark.text}", file=sys.stderr)
    return 1 if any(remark.grave for remark in found) else status


def _check(path: Path, good: list[Configuration], *, strict: bool) -> int:
    """Look at one file, and add what it says to those that are ``good``; the exit status."""
    try:
        configuration, _ = prepare(path)
    except StartError as error:
        return _unusable(path, error.lines)
    if lines := [*log_files(configuration), *tls_material(configuration)]:
        return _unusable(path, lines)
    good.append(configuration)
    for warning in configuration.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    findings = [*unsafe(configuration), *little_memory(configuration)]
    if problems := [finding for finding in findings if finding.grave or strict]:
        for problem in problems:
            print(f"unsafe: {problem}", file=sys.stderr)
        print(f"{path}: not safe, {len(problems)} finding(s)", file=sys.stderr)
        return 1
    counts = (
        (len(configuration.listeners), "listener(s)"),
        (len(configuration.connectors), "connector(s)"),
        (len(configuration.addresses), "address rule(s)"),
        (len(configuration.vhosts), "vhost(s)"),
        (len(configuration.warnings), "warning(s)"),
    )
    found = ", ".join(f"{count} {what}" for count, what in counts if count or what in ALWAYS_TOLD)
    print(f"{configuration.source}: good, {found}")
    return 0


def _unusable(path: Path, lines: Sequence[str]) -> int:
    print("\n".join(lines), file=sys.stderr)
    print(f"{path}: not usable, {len(lines)} error(s)", file=sys.stderr)
    return 1
