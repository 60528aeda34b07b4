"""The manual's page on what management shows, written from the types and their columns; `make docs` puts it into docs/.

The names of the types and their attributes become types of the console, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from trouter.config.schema import Attribute, EntityType
from trouter.config.types import TYPES

INTRODUCTION: Final = """\
# What management shows

*This page is written from the tables that the router and its tools are made of (`make docs`).*

`trouter manage query --type TYPE` lists the entities of a type. `trouter stat` shows some of their attributes: the
column *in stat* has the head. Attributes that can be configured are in [configuration.md](configuration.md). Every
entity has a `name`, an `identity` and a `type`, too. Attributes marked + are not of Qpid Dispatch.
"""
HEAD: Final = """\
| attribute | type | unit | in stat | what it is |
|---|---|---|---|---|
"""
TYPES_OF_CONSOLE: Final = Path(__file__).parents[1] / "console" / "src" / "model" / "attributes.ts"


def page(types: Iterable[EntityType] = TYPES) -> str:
    """Return the whole page."""
    return "\n".join([INTRODUCTION, *(_section(kind) for kind in types if any(_shown(kind)))])


def _shown(kind: EntityType) -> Iterator[Attribute]:
    """Yield the attributes that nobody can configure."""
    return (row for row in kind.own if not row.create)


def _section(kind: EntityType) -> str:
    rows = "".join(
        f"| `{row.name}`{' +' if row.extra or kind.extra else ''} | {_type(row)} | {row.unit} "
        f"| {f'`{row.head.text}`' if row.head else ''} | {row.doc} |\n"
        for row in _shown(kind)
    )
    return f"## {kind.short}\n\n{kind.doc}\n\n{HEAD}{rows}"


def _type(row: Attribute) -> str:
    return ", ".join(f"`{value}`" for value in row.values) or str(row.type_name)


def console_types(types: Iterable[EntityType] = TYPES) -> str:
    """Return the module of the console with the names of all types and of their attributes."""
    entities = "".join(
        f'  "{kind.short}":\n' + "".join(f'    | "{name}"\n' for name in _names(kind))[:-1] + ";\n"
        for kind in types
        if kind.own
    )
    return (
        "/** The attributes of each type, written from the declarations of the router (`make docs`). */\n"
        "/* eslint-disable max-lines */\n\n"
        f"export interface Attributes {{\n{entities}}}\n"
    )


def _names(kind: EntityType) -> Iterator[str]:
    return (name for row in kind.attributes for name in (row.name, row.twin) if name)
