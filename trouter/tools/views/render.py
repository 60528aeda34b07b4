"""Renders listings as lines of text, or as values for JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trouter.tools import formats
from trouter.tools.table import Grid, Style, TableCell, aligned, comma_separated

from .model import Listing, Row, ViewField
from .rates import Rates

_PER_SECOND = "per second"
#: The key of the rates of a row in JSON, by attribute.
RATES = "rates"


@dataclass(frozen=True, slots=True)
class Look:
    """The options for showing listings."""

    verbose: bool = False
    csv: bool = False
    colour: bool = False
    #: The rates to show beside counters; None for none.
    rates: Rates | None = None
    #: The router of the counters.
    router: str = ""


def lines(listing: Listing, look: Look) -> Iterator[str]:
    """Yield a listing as text."""
    if not listing.rows and listing.empty is not None:
        if listing.empty:
            yield from listing.empty.split("\n")
    elif listing.line is not None:
        yield from map(listing.line, listing.rows)
    else:
        grid = grid_of(listing, look)
        yield from comma_separated(grid) if look.csv else aligned(grid, colour=look.colour)


def grid_of(listing: Listing, look: Look) -> Grid:
    """Return a listing as cells: of an upright one, one row an attribute."""
    return (_upright if listing.upright else _flat)(listing, look)


def data(listing: Listing, look: Look) -> object:
    """Return a listing for JSON: its rows as the router sent them, by attribute; of an upright one, the one map."""
    maps = [_map(listing, row, look) for row in listing.rows]
    return (maps[0] if maps else None) if listing.upright else maps


def _map(listing: Listing, row: Row, look: Look) -> dict[str, object]:
    found = dict(row)
    if look.rates is not None:
        counters = [column for column in listing.columns(verbose=True) if column.counter]
        found[RATES] = {column.reads[0]: _rate(listing, row, column, look) for column in counters}
    return found


def _flat(listing: Listing, look: Look) -> Grid:
    """Return one row an entity; the rate of a counter stands to the right of it."""
    columns = listing.columns(verbose=look.verbose)
    heads: list[str] = []
    for column in columns:
        heads.append(column.head)
        if column.counter and look.rates is not None:
            heads.append(f"{column.head}/s")
    rows: list[list[TableCell]] = []
    for row in listing.rows:
        cells: list[TableCell] = []
        for column in columns:
            cells.append(_cell(column, row))
            if column.counter and look.rates is not None:
                cells.append(TableCell(formats.rate(_rate(listing, row, column, look))))
        rows.append(cells)
    return Grid(listing.title, tuple(heads), rows)


def _upright(listing: Listing, look: Look) -> Grid:
    """Return one row an attribute; the rates are a third column."""
    rows: list[list[TableCell]] = []
    for row in listing.rows:
        for column in listing.columns(verbose=look.verbose):
            if column.needs and column.value(row) is None:
                continue
            cells = [TableCell(column.head), _cell(column, row)]
            if look.rates is not None:
                grown = _rate(listing, row, column, look) if column.counter else None
                cells.append(TableCell(formats.rate(grown)))
            rows.append(cells)
    heads = ("attr", "value") if look.rates is None else ("attr", "value", _PER_SECOND)
    return Grid(listing.title, heads, rows)


def _rate(listing: Listing, row: Row, column: ViewField, look: Look) -> float | None:
    if look.rates is None:
        return None
    place = (look.router, listing.name, formats.plain(row.get(listing.key)), column.head)
    return look.rates.of(place, column.value(row))


def _cell(column: ViewField, row: Row) -> TableCell:
    value = column.value(row)
    return TableCell(column.show(value), Style.ALARM if column.alarm and value else Style.PLAIN)
