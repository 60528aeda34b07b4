"""The manual's table of Qpid Dispatch's options and what trouter does with them (`make docs`).

It is written from the tables that the router and its tools use.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from typing import Final

from trouter.cli.names import PROGRAMS
from trouter.config.earlier import ATTRIBUTES as FORMER
from trouter.config.earlier import VALUES
from trouter.config.entities import GROUP_SETTINGS, LOG_MODULES
from trouter.config.migrate.foreign import ATTRIBUTES, SECTIONS
from trouter.config.schema import Attribute, EntityType
from trouter.config.types import CONFIGURED, TYPES
from trouter.http.metrics import ALLOCATOR_FIELDS, TOTALS

INTRODUCTION: Final = """\
# Compatibility with Qpid Dispatch

*This page is written from the tables that the router and its tools are made of (`make docs`).*

Each entity, attribute, operation, option, log module and metric of Apache Qpid Dispatch Router 1.19 (and AMQ
Interconnect), and what becomes of it here. *Served* means: the same meaning. What trouter has besides is not listed; it
is marked + in [configuration.md](configuration.md). [migration.md](migration.md) tells where the same word has another
default with `secureDefaults`, and what stays different. Old names go on working; `trouter migrate` replaces them.
"""
SETTABLE: Final = """\
## Sections of files

*File* means: in files and in CREATE; *update*: in UPDATE, too; *shown*: management shows it, and it cannot be set.
"""
SHOWN: Final = """\
## Types that only management shows

| type | attributes |
|---|---|
"""
OPERATIONS: Final = """\
## Operations

REGISTER and DEREGISTER are answered with 501, as there. Names of operations may be in capitals or not. GET-OPERATIONS
lists these in this order, and behind them the operations that only this router has, such as UPDATE of a listener.

| type | operations |
|---|---|
"""
TOOLS: Final = """\
## Options of the tools

The programs `qdstat`, `qdmanage` and `qdrouterd` take these, and print and exit as Qpid Dispatch's do; `--help` tells
what each does.
"""
LOGS: Final = """\
## Log modules

Each can be configured in a `log` section, and is counted in `logStats`. [logging.md](logging.md) shows the lines.
"""
METRICS: Final = """\
## Metrics

What `/metrics` of a listener with `http: yes` shows under the names of Qpid Dispatch, with the types it has there.

| series | type | what it counts |
|---|---|---|
"""
BESIDE: Final = """\
## What is not here

| of files of earlier releases of Qpid Dispatch, 0.x too, or of skupper-router | instead |
|---|---|
"""
#: Modules that Qpid Dispatch does not have.
OWN_MODULES: Final = frozenset({"AUDIT"})


def page() -> str:
    """Return the whole page."""
    known = [kind for kind in TYPES if not kind.extra]
    kinds = [kind for kind in CONFIGURED if not kind.extra]
    shown = [kind for kind in known if kind not in kinds and kind is not GROUP_SETTINGS and kind.own]
    parts = [INTRODUCTION, SETTABLE]
    parts += [_section(kind.section, kind) for kind in kinds]
    parts += [_section("vhost: groups", GROUP_SETTINGS)]
    parts += [SHOWN + "".join(f"| `{kind.short}` | {_names(row.name for row in _kept(kind))} |\n" for kind in shown)]
    operations = [(kind, _names(dict.fromkeys((*kind.operations, *kind.inherited)))) for kind in known]
    parts += [OPERATIONS + "".join(f"| `{kind.short}` | {names} |\n" for kind, names in operations)]
    parts += [TOOLS, *(_program(make()) for make in PROGRAMS.values())]
    parts += [LOGS, f"{_names(name for name in LOG_MODULES if name not in OWN_MODULES)}\n"]
    parts += [METRICS + "".join(_metrics())]
    parts += [BESIDE + "".join(_beside())]
    return "\n".join(parts)


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _kept(kind: EntityType) -> list[Attribute]:
    """Return the attributes that Qpid Dispatch has, too."""
    return [row for row in kind.own if not row.extra]


def _section(title: str, kind: EntityType) -> str:
    """Return one section of configuration files as a table."""
    lines = [f"### {title}", ""]
    if kind.unserved:
        lines += [f"Accepted, and not served: {kind.unserved}.", ""]
    if rows := _kept(kind):
        lines += ["| attribute | old name | where | here |", "|---|---|---|---|"]
    here = "not served" if kind.unserved else ""
    lines += [
        f"| `{row.name}` | {_names(row.old_names) or '-'} | {_where(row)} | {here or _here(row)} |" for row in rows
    ]
    return "\n".join([*lines, ""])


def _where(row: Attribute) -> str:
    return "shown" if not row.settable else "file, update" if row.update else "file"


def _here(row: Attribute) -> str:
    if not row.settable:
        return "shown"
    if row.inert:
        return f"without effect: {row.inert}"
    return "served; `trouter migrate` writes its successor" if row.deprecated else "served"


def _program(parser: argparse.ArgumentParser) -> str:
    """Return the options of one program as a table."""
    lines = [f"### {parser.prog}", "", "| option or word | here |", "|---|---|"]
    for action in parser._actions:  # argparse has no other way to list its actions
        if action.help != argparse.SUPPRESS:
            given = action.option_strings or [str(action.metavar or action.dest).upper()]
            accepted = str(action.help).startswith("accepted")
            lines.append(f"| {_names(given)} | {'accepted, without effect' if accepted else 'served'} |")
    return "\n".join([*lines, ""])


def _metrics() -> Iterator[str]:
    for series in TOTALS:
        yield f"| `qdr_{series.name}_total` | {series.kind} | {series.help} |\n"
    for name, counts in ALLOCATOR_FIELDS:
        what = "objects alive, though its name ends in bytes, as there" if counts else "always 0: there are no pools"
        yield f"| `qdr_allocator_TYPE:{name}_bytes` | gauge | {what} |\n"


def _beside() -> Iterator[str]:
    for name, instead in SECTIONS.items():
        yield f"| section `{name}` | {instead} |\n"
    for (section, name), former in FORMER.items():
        yield f"| `{section}.{name}` | {former.instead} |\n"
    for (section, name), values in VALUES.items():
        for value, today in values.items():
            yield f"| `{section}.{name}: {value}` | it is called {today} today |\n"
    for (section, name), instead in ATTRIBUTES.items():
        yield f"| `{section}.{name}` | {instead} |\n"
