"""Writes the table of differences in the manual's page on the policy from the table of strictness (`make docs`)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from manual.migration import SHOWN
from trouter.config.strictness import POINTS

PAGE: Final = Path(__file__).parents[1] / "docs" / "policy.md"
_ROWS: Final = re.compile(r"(?<=\| there \| here \| direction \| reported as \|\n\|---\|---\|---\|---\|\n)(?:\|.*\n)*")


def page() -> str:
    """Return the whole page, the rest of which is written by hand."""
    rows = "".join(
        f"| {point.there} | {point.compatible} | {point.direction} | {SHOWN[point.severity]} `{point.name}` |\n"
        for point in POINTS.values()
        if point.there and point.page == PAGE.name
    )
    return _ROWS.sub(lambda _: rows, PAGE.read_text(encoding="utf-8"))
