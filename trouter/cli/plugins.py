"""`trouter plugins`: list the installed plugins, with their files and hooks, and whether they load."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from typing import Final

from trouter.cli.startup import existing_path
from trouter.config import ConfigurationError, load
from trouter.config.keepers import keepers_for_operator
from trouter.hooks import (
    ENTRY_POINT_GROUP,
    InstalledPlugin,
    PluginError,
    Plugins,
    allowed_plugins,
    digest_of,
    installed_plugins,
)
from trouter.tools.failures import print_problem

EPILOG: Final = (
    "Plugins that come with trouter always load; others where the attribute `plugins` of the router lists them. "
    "The text after `list as` pins a plugin to its present code."
)


@dataclass(frozen=True, slots=True)
class Row:
    """One plugin in the output."""

    name: str
    loaded: bool
    hooks: tuple[str, ...]
    distribution: str
    version: str
    file: str
    sha256: str


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "plugins",
        help="show which plugins load, from where, and for which hooks",
        description="Show every installed plugin: whether it loads, where it comes from, and for which hooks.",
        epilog=EPILOG,
    )
    parser.add_argument(
        "-c", "--config", metavar="FILE", type=existing_path, help="the configuration that lists plugins"
    )
    parser.add_argument("--json", action="store_true", help="one JSON array of objects")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print a row for each plugin; return 1 if the router would not start with them, else 0."""
    try:
        listed = dict(load(arguments.config, keepers=keepers_for_operator()).router.plugins)
    except ConfigurationError as error:
        print_problem(arguments, error)
        return 1
    found = installed_plugins(ENTRY_POINT_GROUP)
    problem = ""
    try:
        allowed = allowed_plugins(found, listed)
        hooks = {plugin.name: plugin.hooks for plugin in Plugins.load(listed).describe()}
    except PluginError as error:
        allowed, hooks, problem = (), {}, str(error)
    rows = [_row(plugin, hooks.get(plugin.name, ()) if plugin in allowed else None) for plugin in found]
    print(_as_json(rows) if arguments.json else _as_text(rows, failed=bool(problem)))
    if problem:
        print_problem(arguments, f"no plugin loads: {problem}")
        return 1
    return 0


def _row(plugin: InstalledPlugin, hooks: tuple[str, ...] | None) -> Row:
    """Return the row of a plugin; `hooks` is None if the plugin does not load."""
    try:
        digest = digest_of(plugin)
    except PluginError:
        digest = ""
    return Row(plugin.name, hooks is not None, hooks or (), plugin.distribution, plugin.version, plugin.file, digest)


def _as_json(rows: list[Row]) -> str:
    return json.dumps([asdict(row) for row in rows], indent=2)


def _as_text(rows: list[Row], *, failed: bool) -> str:
    absent = "does not load, as no plugin does (see the last line)" if failed else "is not listed, and does not load"
    return "\n\n".join(
        f"{row.name}: {'loads' if row.loaded else absent}\n"
        f"  hooks   {', '.join(row.hooks) or '-'}\n"
        f"  from    {row.distribution} {row.version}, {row.file or '?'}\n"
        f"  list as {row.name}{f'@sha256:{row.sha256}' if row.sha256 else ''}"
        for row in rows
    )
