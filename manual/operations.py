"""Writes the table of operations in the manual's page on management from their declarations (`make docs`)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from trouter.management.operations import NODE_OPERATIONS
from trouter.management.verbs import VERBS, Verb

PAGE: Final = Path(__file__).parents[1] / "docs" / "management.md"
_TABLE: Final = re.compile(r"(?<=\| operation \| answer \|\n\|---\|---\|\n)(?:\|.*\n)+")


def table(verbs: Iterable[Verb] = VERBS) -> str:
    """Return a row for each operation of the management node."""
    assert NODE_OPERATIONS  # noqa: S101 - they are declared once they are imported
    return "".join(f"| {', '.join(each.names)} | {each.answer} |\n" for each in verbs if each.answer)


def page() -> str:
    """Return the whole page, the rest of which is written by hand."""
    return _TABLE.sub(table().replace("\\", r"\\"), PAGE.read_text(encoding="utf-8"))
