"""A grid of cells as text: aligned columns, or comma-separated."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TextIO

_INDENT = "  "
_GAP = 2


class Style(Enum):
    """The style of a cell on a terminal with colours."""

    PLAIN = ""
    STRONG = "\x1b[1m"
    QUIET = "\x1b[2m"
    ALARM = "\x1b[31m"
    WARNING = "\x1b[33m"

    def paint(self, text: str) -> str:
        """Return the text between the codes of the style."""
        return f"{self.value}{text}\x1b[0m" if self.value and text else text


def may_colour(stream: TextIO) -> bool:
    """Return whether a stream is a terminal with colours that the user has not turned off."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


@dataclass(frozen=True, slots=True)
class TableCell:
    text: str
    style: Style = Style.PLAIN


@dataclass(frozen=True, slots=True)
class Grid:
    """A title, the heads of the columns, and rows as wide as these. Without rows only the title is shown."""

    title: str
    heads: tuple[str, ...]
    rows: Sequence[Sequence[TableCell]]


def aligned(grid: Grid, *, colour: bool = False) -> Iterator[str]:
    """Return lines with columns as wide as needed; the last one is not filled up."""
    yield from (_painted(line, Style.STRONG, colour) for line in grid.title.split("\n"))
    if not grid.rows:
        return
    widths = [
        max(len(head), *(len(row[column].text) for row in grid.rows)) + _GAP for column, head in enumerate(grid.heads)
    ]
    yield _line([TableCell(head, Style.STRONG) for head in grid.heads], widths, colour)
    yield _painted(_INDENT + "=" * sum(widths), Style.QUIET, colour)
    for row in grid.rows:
        yield _line(row, widths, colour)


def _line(row: Sequence[TableCell], widths: Sequence[int], colour: bool) -> str:
    parts = [_INDENT]
    last = len(row) - 1
    for column, (cell, width) in enumerate(zip(row, widths, strict=True)):
        parts.append(_painted(cell.text, cell.style, colour))
        if column != last:
            parts.append(" " * (width - len(cell.text)))
    return "".join(parts)


def _painted(text: str, style: Style, colour: bool) -> str:
    return style.paint(text) if colour else text


def comma_separated(grid: Grid) -> Iterator[str]:
    """Return lines for other programs: the title as it is, then every cell that is not empty in quotes."""
    yield from grid.title.split("\n")
    if not grid.rows:
        return
    yield csv_line(grid.heads)
    for row in grid.rows:
        yield csv_line(cell.text for cell in row)


def csv_line(cells: Iterable[str]) -> str:
    """Return a line of CSV (RFC 4180) without its end."""
    return ",".join(map(_quoted, cells))


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if text else ""
