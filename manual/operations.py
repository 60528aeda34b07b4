"""Writes the tables of operations and of their arguments in the manual's page on management (`make docs`)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from trouter.management.operations import NODE_OPERATIONS
from trouter.management.verbs import VERBS, Verb, arguments

PAGE: Final = Path(__file__).parents[1] / "docs" / "management.md"
_TABLE: Final = re.compile(r"(?<=\| operation \| answer \|\n\|---\|---\|\n)(?:\|.*\n)+")

_ARGUMENTS: Final = re.compile(r"(?<=\| property \| type \| for \| what it is \|\n\|---\|---\|---\|---\|\n)(?:\|.*\n)+")


def table(verbs: Iterable[Verb] = VERBS) -> str:
    """Return a row for each operation of the management node."""
    assert NODE_OPERATIONS  # noqa: S101 - they are declared once they are imported
    return "".join(f"| {', '.join(each.names)} | {each.answer} |\n" for each in verbs if each.answer)


def arguments_table(verbs: Iterable[Verb] = VERBS) -> str:
    """Return a row for each argument."""
    verbs = tuple(verbs)
    rows = (
        (each, ", ".join(verb.names[0] for verb in verbs if each in verb.takes) or "all") for each in arguments(verbs)
    )
    return "".join(f"| `{each.name}` | {each.kind} | {takers} | {each.text} |\n" for each, takers in rows)


def page() -> str:
    """Return the whole page, the rest of which is written by hand."""
    written = PAGE.read_text(encoding="utf-8")
    for place, rows in ((_TABLE, table()), (_ARGUMENTS, arguments_table())):
        written = place.sub(rows.replace("\\", r"\\"), written)
    return written
