"""Records of a segment that the table has under the same numbers: equal ones are known, others are errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from trouter_pipeline.places import Place
from trouter_pipeline.rows import Rows


class Conflict(Exception):
    """Two segments hold different records under one number of one start of a router."""

    def __init__(self, rows: Rows, why: str) -> None:
        """``rows`` are those of the segment that is left out."""
        super().__init__(why)
        self.rows = rows


def new_rows(rows: Rows, files: Mapping[str, Iterable[Place]]) -> tuple[dict[str, pa.Table], Counter[str]]:
    """Return the new rows by kind, and the number of known ones by their segment; Conflict, OSError.

    ``files`` are those of the table by kind.
    """
    facts = rows.facts
    wanted = (
        (pc.field("router") == facts.router)
        & (pc.field("boot") == facts.boot)
        & (pc.field("n") >= facts.first)
        & (pc.field("n") <= facts.last)
    )
    there: dict[str, list[pa.Table]] = {}
    for kind, places in files.items():
        for place in places:
            for group in _groups(place, facts.first, facts.last):
                table = group.filter(wanted)
                if table.num_rows:
                    there.setdefault(kind, []).append(table)
    kinds: dict[int, str] = {}
    segments: dict[int, str] = {}
    for kind, tables in there.items():
        for table in tables:
            for n, segment in zip(table["n"].to_pylist(), table["seg"].to_pylist(), strict=True):
                kinds[n], segments[n] = kind, segment
    fresh = {}
    found: Counter[str] = Counter()
    for kind, table in rows.tables.items():
        numbers = table["n"].to_pylist()
        for n in numbers:
            if n in kinds and kinds[n] != kind:
                raise _conflict(rows, table, n, segments[n])
        both = pa.array([n for n in numbers if n in kinds], pa.int64())
        if len(both):
            _compare(rows, _only(table, both), _only(pa.concat_tables(there[kind]), both))
        found.update(segments[n] for n in both.to_pylist())
        if len(both) < table.num_rows:
            fresh[kind] = table.filter(pc.invert(pc.is_in(table["n"], both)))
    return fresh, found


def _groups(place: Place, first: int, last: int) -> Iterator[pa.Table]:
    """Yield the row groups of a file that may have numbers from ``first`` to ``last``, by its statistics; OSError."""
    with place.parquet() as opened:
        file = opened.metadata
        at = file.schema.names.index("n")
        for group in range(file.num_row_groups):
            known = file.row_group(group).column(at).statistics
            if known is None or not known.has_min_max or (known.min <= last and known.max >= first):
                yield opened.read_group(group)


def _only(table: pa.Table, numbers: pa.Array) -> pa.Table:
    return table.filter(pc.is_in(table["n"], numbers)).sort_by("n")


def _compare(rows: Rows, own: pa.Table, other: pa.Table) -> None:
    """Verify that rows with the same numbers have the same content; Conflict."""
    if own.drop_columns(["seg"]).equals(other.drop_columns(["seg"])):
        return
    for mine, theirs in zip(own.to_pylist(), other.to_pylist(), strict=True):
        if {**mine, "seg": ""} != {**theirs, "seg": ""}:
            raise _conflict(rows, own, mine["n"], theirs["seg"])


def _conflict(rows: Rows, table: pa.Table, n: int, other: str) -> Conflict:
    facts = rows.facts
    return Conflict(
        rows,
        f"{table['seg'][0].as_py()} and {other} hold different records under the number {n} of {facts.router}, start "
        f"{facts.boot}: the first is left out. Either one of them is not what the router wrote, or two routers have "
        "this id: give each its own",
    )
