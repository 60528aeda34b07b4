"""QUERY: rows of one type, of a base type's descendants, or of all types, whole or in pages.

Rows are made for a few milliseconds at a time, with turns for other tasks in between.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from trouter.config.schema import EntityType

from .arguments import ATTRIBUTE_NAMES, COUNT, OFFSET
from .cells import encode_row
from .cursor import Asker, Cursors, Group
from .directory import Directory
from .kinds import column_of, is_base
from .providers.base import Provider
from .requests import Request, shown
from .responses import OperationResult, table
from .status import bad_request

#: Seconds for which rows are made at a time.
PORTION_S: Final = 0.002
#: The longest answer: it is held in one piece.
MAX_ANSWER_BYTES: Final = 64 * 1024 * 1024
#: python-qpid-proton, which Qpid Dispatch's tools use, reads 65,535 values of a message and drops the others
#: silently. If all attributes are requested, long lists beyond this many values become null.
MAX_VALUES: Final = 60_000
#: Lists up to this length are kept.
_SHORT_LIST: Final = 16

Breathe = Callable[[], Awaitable[None]]


class Queries:
    """The QUERY operation, with the positions of each requester's pages."""

    def __init__(
        self, directory: Directory, now: Callable[[], float], let_others_run: Breathe, max_values: int = MAX_VALUES
    ) -> None:
        """``max_values`` is the number of values of an answer beyond which long lists become null."""
        self._max_values = max_values
        self.cursors = Cursors()
        self._directory = directory
        self._now = now
        self._let_others_run = let_others_run

    async def run(self, request: Request, kind: EntityType | None) -> OperationResult:
        """Return the rows of ``kind`` and its descendants, of all types for None; Refusal."""
        wanted = ATTRIBUTE_NAMES.read(request)
        names = wanted or self._directory.columns_of(kind)
        columns = self.columns(kind, names)
        offset = OFFSET.read(request) or 0
        count = COUNT.read(request) or 0
        if offset < 0:
            return table(names, ())
        rows = await self._rows(request, kind, columns, offset, count, thins=not wanted)
        return table(names, rows)

    def columns(self, kind: EntityType | None, names: Sequence[str]) -> list[str]:
        """Return the column for each name; an unknown name is one of nulls. Refusal if all are unknown."""
        known = self._directory.columns_of(kind)
        return _columns(kind, known, names)

    async def _rows(
        self, request: Request, kind: EntityType | None, columns: Sequence[str], offset: int, count: int, *, thins: bool
    ) -> list[bytes]:
        asker: Asker = (request.reply_to, "" if kind is None else kind.short, str(hash(tuple(columns))))
        listing = self.cursors.find_listing(asker, offset, self._now()) if count > 0 else None
        if listing is None:
            listing = self.cursors.begin_listing(self._groups(kind), self._now())
        start = listing.places.get(offset)
        skip = 0
        if start is None:
            start, skip = (offset, 0) if kind is not None else (0, offset)
        next_place = len(listing)
        mixed = kind is None or is_base(kind)
        rows: list[bytes] = []
        size = 0
        expected = min(count, len(listing)) if count > 0 else len(listing)
        spare = self._max_values - expected * (len(columns) + 1)
        turn_at_s = time.perf_counter() + PORTION_S
        for place, owner, key in listing.walk(start):
            provider: Provider = owner
            if 0 < count <= len(rows):
                next_place = place
                break
            cells = provider.plain_cells(key, columns) if mixed else provider.cells(key, columns)
            if cells is not None and (kind is not None or any(cell is not None for cell in cells)):
                if skip > 0:
                    skip -= 1
                    continue
                if thins:
                    cells, spare = _thinned(cells, spare)
                rows.append(encode_row(cells))
                size += len(rows[-1])
                if size > MAX_ANSWER_BYTES:
                    raise bad_request(
                        f"the answer would have more than {MAX_ANSWER_BYTES} bytes: "
                        "ask for fewer attributes, or for pages with offset and count"
                    )
            if time.perf_counter() > turn_at_s:
                await self._let_others_run()
                turn_at_s = time.perf_counter() + PORTION_S
        if count > 0:
            self.cursors.turn_page(asker, listing, (offset, start), (offset + count, next_place))
        return rows

    def _groups(self, kind: EntityType | None) -> Sequence[Group]:
        if kind is None:
            return [(each, each.named_keys()) for each in self._directory.providers(None, passing=False)]
        return [(each, each.keys()) for each in self._directory.providers(kind)]


def _thinned(cells: list[object], spare: int) -> tuple[list[object], int]:
    """Return a row without the long lists for which ``spare`` values are too few, and the values left."""
    for place, cell in enumerate(cells):
        if isinstance(cell, list) and len(cell) > _SHORT_LIST:
            if len(cell) > spare:
                cells = [*cells[:place], None, *cells[place + 1 :]]
            else:
                spare -= len(cell)
    return cells, spare


def _columns(kind: EntityType | None, known_columns: Sequence[str], names: Sequence[str]) -> list[str]:
    columns = [name if name in known_columns else column_of(kind, name) for name in names]
    if names and not any(columns):
        unknown = ", ".join(repr(shown(name)) for name in names[:5])
        whose = "any type" if kind is None else f"'{kind.full_name}'"
        known = "" if kind is None else f"; its attributes are {', '.join(known_columns)}"
        raise bad_request(f"Unknown attribute {unknown} for {whose}{known}")
    return [column or name for name, column in zip(names, columns, strict=True)]
