"""How the rows of the workers of one router become rows of the router.

A row stands for something at one worker (`connection`), for something of which each worker has its part (`router`,
`router.address`), or for something that is the same in all workers (the configuration). What becomes of each column
stands at the column (``Column.merge``), and whether workers have parts at the type (``EntityType.parted``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from trouter.columns.column import Merge
from trouter.config.schema import EntityType
from trouter.wire.types import Int, UInt

from .ports import DRAINED, DRAINING, SERVING
from .values import to_wire

_MAX_UINT: Final = 0xFFFFFFFF

MergeValues = Callable[[Sequence[Any]], object]


def _first(values: Sequence[Any]) -> object:
    return values[0]


def _sum(values: Sequence[Any]) -> object:
    total, kind = sum(values), type(values[0])
    if kind is Int:  # the sum may be a long
        return to_wire(total)
    return kind(min(total, _MAX_UINT)) if kind is UInt else kind(total)


def _joined(values: Sequence[Any]) -> object:
    """Return the items of all lists, each once; of maps each key, with the sum or the items of its values."""
    if isinstance(values[0], Mapping):
        names = dict.fromkeys(name for value in values for name in value)
        return {name: _joined([value[name] for value in values if name in value]) for name in names}
    if isinstance(values[0], list):
        return list(dict.fromkeys(item for value in values for item in value))
    return sum(values)


def _drain(values: Sequence[Any]) -> object:
    """Return the state of a drain: it goes on until all workers are done."""
    present = set(values)
    return next((state for state in (DRAINED, SERVING) if present == {state}), DRAINING)


def _any_text(values: Sequence[Any]) -> object:
    """Return the first text that is not empty, if there is one."""
    return next(filter(None, values), "")


_MERGED: Final[dict[Merge, MergeValues]] = {
    Merge.FIRST: _first,
    Merge.SUM: _sum,
    Merge.LARGEST: max,
    Merge.SMALLEST: min,
    Merge.JOIN: _joined,
    Merge.ANY_TEXT: _any_text,
    Merge.DRAIN: _drain,
}


def has_parts(kind: EntityType) -> bool:
    """Return whether each worker has a part of the entities of a type."""
    return kind.parted


def merged(kind: EntityType, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[object]:
    """Return one row from those of the workers for the same entity, the first worker's first."""
    cells: list[object] = []
    for place, name in enumerate(columns):
        values = [row[place] for row in rows if row[place] is not None]
        attribute = kind.attribute(name)
        merge = attribute.merge if kind.parted and attribute is not None else Merge.FIRST
        cells.append(_MERGED[merge](values) if values else None)
    return cells


def merged_maps(kind: EntityType, maps: Sequence[Mapping[str, Any]]) -> dict[str, object]:
    """Return the attributes of one entity from those of the workers."""
    names = list(dict.fromkeys(name for each in maps for name in each))
    cells = merged(kind, names, [[each.get(name) for name in names] for each in maps])
    return dict(zip(names, cells, strict=True))
