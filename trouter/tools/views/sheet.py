"""Writes every table of a command as one CSV document: one line of heads, then rows as wide as it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TextIO

from trouter.tools.table import Grid, csv_line

from .model import Listing
from .render import Look, grid_of

#: The columns that say where a row belongs if that differs from row to row.
TIME, ROUTER, TABLE = "time", "router", "table"


@dataclass(frozen=True, slots=True)
class SheetPart:
    """One table of one router."""

    router: str
    table: str
    grid: Grid

    def rows(self) -> Iterator[dict[str, str]]:
        """Yield the rows by their heads."""
        for row in self.grid.rows:
            yield {head: cell.text for head, cell in zip(self.grid.heads, row, strict=True)}


def parts_of(router: str, listings: Sequence[Listing], look: Look) -> list[SheetPart]:
    """Return the tables of a router; a text that explains a table is none."""
    look = replace(look, router=router)
    return [SheetPart(router, listing.name, grid_of(listing, look)) for listing in listings if listing.fields]


class Sheet:
    """The document. The first look decides on its columns: later ones have the same, and the time of each look."""

    def __init__(self, out: TextIO, *, several_routers: bool, repeated: bool) -> None:
        self._out = out
        self._leading = [name for name, wanted in ((TIME, repeated), (ROUTER, several_routers)) if wanted]
        self._heads: list[str] = []

    def write(self, parts: Sequence[SheetPart]) -> None:
        """Write the rows of a look, and before those of the first look the heads."""
        if not self._heads:
            several = len({part.table for part in parts}) > 1
            self._leading += [TABLE] if several else []
            self._heads = list(dict.fromkeys(head for part in parts for head in part.grid.heads))
            if self._heads:
                self._line([*self._leading, *self._heads])
        now = datetime.now(tz=UTC).isoformat(timespec="seconds")
        for part in parts:
            places = {TIME: now, ROUTER: part.router, TABLE: part.table}
            for row in part.rows():
                self._line([*(places[name] for name in self._leading), *(row.get(head, "") for head in self._heads)])

    def _line(self, cells: Sequence[str]) -> None:
        self._out.write(f"{csv_line(cells)}\n")
