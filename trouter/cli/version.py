"""`trouter version`: print the versions that belong into the report of a problem."""

from __future__ import annotations

import argparse
import json

from trouter.tools.versions import versions


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "version",
        help="print the versions of trouter and of what it runs on",
        description="Print the versions of trouter, its libraries and plugins; `-` stands for what is not installed.",
        epilog="examples:\n  trouter version\n  trouter version --json | jq -r .trouter\n",
    )
    parser.add_argument("--json", action="store_true", help="as one JSON object; null for what is not installed")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the versions; return the exit status."""
    found = versions()
    if arguments.json:
        print(json.dumps(found, indent=2))
        return 0
    plugins = found.pop("plugins")
    for name, version in found.items():
        print(f"{name:10} {version or '-'}")
    for name, origin in plugins.items():
        print(f"{'plugin':10} {name} ({origin})")
    return 0
