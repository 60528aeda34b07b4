"""The requests that a tenant may make: about its own connections, links and addresses, and about types."""

from __future__ import annotations

from typing import Final

from trouter.config.schema import EntityType

from .kinds import is_base
from .providers.owned import OWNED
from .requests import shown
from .status import forbidden
from .verbs import verb_of

#: The type of the node itself.
_NODE: Final = "management"


def check_operation(operation: str, policy: bool) -> None:
    """Raise Refusal for an operation closed to tenants; with a ``policy`` UPDATE is open, by the group's rights."""
    known = verb_of(operation)
    if (known is None or not known.tenants) and not (policy and operation == "UPDATE"):
        raise forbidden(f"Forbidden: {shown(operation)} by a tenant")


def check_listing(kind: EntityType | None) -> None:
    """Raise Refusal for a listing of a type without tenants' entities; of a base type a tenant sees its own."""
    if kind is not None and kind.short not in OWNED and kind.short != _NODE and not is_base(kind):
        raise forbidden(f"Forbidden: QUERY of {kind.full_name} by a tenant; it may list {', '.join(OWNED)}")
