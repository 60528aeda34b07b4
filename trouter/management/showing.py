"""Entities as answers."""

from __future__ import annotations

from .directory import FoundEntity
from .kinds import columns_of
from .providers.parted import WORKER
from .requests import shown
from .responses import OperationResult, answer
from .status import OK, not_found


def shown_entity(found: FoundEntity, status: int = OK) -> OperationResult:
    """Return the attributes of an entity; only types that the core reports have null for absent ones. Refusal."""
    row = found.provider.row(found.key)
    if row is None:
        raise not_found(f"No entity with identity={shown(str(found.key))}")
    columns = (*columns_of(found.kind), WORKER) if WORKER in row else columns_of(found.kind)
    keep = found.kind.core
    return answer({name: value for name in columns if (value := row.get(name)) is not None or keep}, status)
