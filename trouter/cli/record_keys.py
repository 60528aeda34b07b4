"""`trouter records keys`: make the first keys with which a router seals its records, and print the verification key."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from trouter.config.workers import worker_id
from trouter.records.seals import key_path, new_verification_key, verification_key, write_first
from trouter.records.segments import file_label
from trouter.tools.failures import print_problem


def add_keys(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    keys = actions.add_parser(
        "keys",
        help="make the keys that seal records",
        description="Make the first key with which a router seals its records, for a folder in which it has none, and "
        "print the verification key, once. Keep that on another machine: who has it can verify seals, and forge them. "
        "The router seals from its next start on.",
    )
    keys.add_argument("path", type=Path, metavar="DIR", help="the folder of a recordLog section, which exists")
    keys.add_argument("--router", "-r", required=True, metavar="ID", help="the id of the router")
    keys.add_argument("--workers", "-w", type=int, default=1, metavar="N", help="the number of its workers")
    keys.set_defaults(run=run_keys)


def run_keys(arguments: argparse.Namespace) -> int:
    """Make the keys; return 1 if there are some already or the folder cannot be used, else 0."""
    folder: Path = arguments.path
    labels = [file_label(worker_id(arguments.router, place)) for place in range(1, max(1, arguments.workers) + 1)]
    if present := [path for label in labels if (path := key_path(folder, label)).exists()]:
        print_problem(arguments, f"{present[0]} is there already: begin another folder to seal with other keys")
        return 1
    verification = new_verification_key()
    try:
        for label in labels:
            write_first(folder, label, verification_key(verification))
    except OSError as error:
        print_problem(arguments, error)
        return 1
    print(verification)
    return 0


def key_in(name: str) -> bytes:
    """Return the verification key in a file, or in the standard input for "-"; OSError, ValueError."""
    return verification_key(sys.stdin.readline(256) if name == "-" else Path(name).read_text(encoding="ascii")[:256])
