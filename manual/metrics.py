"""Writes the tables of series in the manual's page on metrics from their declarations (`make docs`)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from trouter.http.metrics import SERIES, TENANT_SERIES, TOTALS, DeclaredSeries

PAGE: Final = Path(__file__).parents[1] / "docs" / "metrics.md"
_OLDER: Final = re.compile(r"(?<=\| series \| type \| what it counts \|\n\|---\|---\|---\|\n)(?:\|.*\n)+")
_OWN: Final = re.compile(r"(?<=\| series \| type \| labels \| what it shows \|\n\|---\|---\|---\|---\|\n)(?:\|.*\n)+")


def row_of(declared: DeclaredSeries[Any]) -> str:
    """Return the row of one series."""
    labels = ", ".join(f"`{label}`" for label in declared.labels)
    shows = declared.shows or _lowered(declared.help)
    return f"| `{declared.series}` | {declared.kind} | {labels}{' ' if labels else ''}| {shows} |\n"


def _lowered(text: str) -> str:
    """Return a sentence as the text of a cell."""
    return text[0].lower() + text[1:].removesuffix(".")


def page(declared: Iterable[DeclaredSeries[Any]] = (*SERIES, *TENANT_SERIES)) -> str:
    """Return the whole page, the rest of which is written by hand."""
    older = "".join(f"| `qdr_{each.name}_total` | {each.kind} | {_lowered(each.help)} |\n" for each in TOTALS)
    own = "".join(map(row_of, declared))
    return _OWN.sub(lambda _: own, _OLDER.sub(lambda _: older, PAGE.read_text(encoding="utf-8")))
