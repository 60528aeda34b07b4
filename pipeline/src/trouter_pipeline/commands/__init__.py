"""`trouter pipeline`: receive messages into a spool, make tables of records and query them, partly on Spark."""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Final

from trouter_pipeline.commands.roots import with_root

#: Modules beside this one, each with `add_parser(actions)`, in the order in which data passes them.
ACTIONS: Final[tuple[str, ...]] = (
    "spool",
    "cursors",
    "serve",
    "land",
    "forward",
    "compact",
    "meter",
    "rollup",
    "top",
    "audit",
    "latency",
    "topology",
    "fraud",
    "report",
    "run",
    "publish",
    "prune",
    "optimize",
    "vacuum",
    "doctor",
    "pack",
)


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "pipeline",
        help="land, meter and audit what routers carried and recorded",
        description="Receive messages into a spool, make tables of a router's records, and query these: usage, "
        "attacks, latency. `trouter pipeline doctor` says whether Spark can run here.",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for action in ACTIONS:
        import_module(f"trouter_pipeline.commands.{action}").add_parser(actions)
        added = actions.choices[action]
        if added.get_default("run") is not None and any(each.dest == "storage_option" for each in added._actions):
            added.set_defaults(run=with_root(added.get_default("run")))
