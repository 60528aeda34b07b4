"""How the rows of the workers of one router become rows of the router.

A row stands for something at one worker (`connection`), for something of which each worker has its part (`router`,
`router.address`), or for something that is the same in all workers (the configuration).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from trouter.columns.addresses import ADDRESS
from trouter.columns.process import ALLOCATOR, LOG_STATS
from trouter.columns.router import ROUTER
from trouter.columns.security import VHOST
from trouter.config.entities import PolicyEntity
from trouter.config.schema import EntityType, all_attributes_of
from trouter.wire.types import Int, UInt

from .ports import DRAINED, DRAINING, SERVING
from .values import to_wire

_MAX_UINT: Final = 0xFFFFFFFF

Merge = Callable[[Sequence[Any]], object]


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


def _any_fault(values: Sequence[Any]) -> object:
    """Return the first text that is not empty, if there is one: each worker of an edge router has uplinks."""
    return next(filter(None, values), "")


def _counts(columns: Sequence[Any], besides: Sequence[str] = ()) -> dict[str, Merge]:
    """Return that the columns that are numbers are added up."""
    return {
        name: _sum
        for each in columns
        if issubclass(each.type, int) and each.type is not bool
        for name in (each.name, each.twin)
        if name and name not in besides
    }


def _joins(columns: Sequence[Any]) -> dict[str, Merge]:
    """Return that the columns that are lists or maps are joined."""
    return {each.name: _joined for each in columns if each.type in (list, dict)}


#: What becomes of each column, by type; of the others the first value stands. A type that is not here has no parts.
_RULES: Final[dict[str, dict[str, Merge]]] = {
    "router": {
        **_counts(ROUTER),
        **dict.fromkeys(("addrCount", "uptimeSeconds"), max),
        **dict.fromkeys(("nodeCount", "linkRouteCount", "autoLinkCount"), _first),
        "uplinkFault": _any_fault,
        "uplinkDownSince": min,
        "workerThreads": _sum,
        "handshakesRefused": _joined,
        "drainState": _drain,
    },
    "router.address": {
        **_counts(ADDRESS, ("priority",)),
        **dict.fromkeys(("inProcess", "remoteCount", "containerCount"), max),
        "remoteHostRouters": _joined,
    },
    "vhostStats": {**_counts(VHOST), **_joins(VHOST)},
    "policy": {each.name: _sum for each in all_attributes_of(PolicyEntity) if each.graph},
    "allocator": _counts(ALLOCATOR, ("typeSize", "transferBatchSize", "localFreeListMax")),
    "logStats": _counts(LOG_STATS),
    "authLockout": dict.fromkeys(("failures", "delaySeconds", "locked", "lockedSeconds"), max),
    "decision": {},
    "recordLog": dict.fromkeys(("maxBytes", "recordsLost"), _sum),
}


def has_parts(kind: EntityType) -> bool:
    """Return whether each worker has a part of the entities of a type."""
    return kind.short in _RULES


def merged(kind: EntityType, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[object]:
    """Return one row from those of the workers for the same entity, the first worker's first."""
    rules = _RULES.get(kind.short, {})
    cells: list[object] = []
    for place, name in enumerate(columns):
        values = [row[place] for row in rows if row[place] is not None]
        cells.append(rules.get(name, _first)(values) if values else None)
    return cells


def merged_maps(kind: EntityType, maps: Sequence[Mapping[str, Any]]) -> dict[str, object]:
    """Return the attributes of one entity from those of the workers."""
    names = list(dict.fromkeys(name for each in maps for name in each))
    cells = merged(kind, names, [[each.get(name) for name in names] for each in maps])
    return dict(zip(names, cells, strict=True))
