"""The requests that a tenant may make: about its own connections, links and addresses, and about types."""

from __future__ import annotations

from typing import Final

from trouter.config.schema import EntityType

from .kinds import is_base
from .providers.owned import OWNED
from .requests import shown
from .status import forbidden

#: The operations of tenants; each shows only the tenant's own entities, or what is the same for all tenants.
OPERATIONS: Final = frozenset(
    {
        "QUERY", "READ", "GET-TYPES", "GET-ATTRIBUTES", "GET-OPERATIONS", "GET-ANNOTATIONS", "GET-MGMT-NODES",
        "DISCOVER-MGMT-NODES", "GET-SCHEMA", "GET-JSON-SCHEMA", "GET-SCHEMA-JSON", "GET-RIGHTS",
    }
)  # fmt: skip
#: The type of the node itself.
_NODE: Final = "management"


def check_operation(operation: str, policy: bool) -> None:
    """Raise Refusal for an operation closed to tenants; with a ``policy`` UPDATE is open, by the group's rights."""
    if operation not in OPERATIONS and not (policy and operation == "UPDATE"):
        raise forbidden(f"Forbidden: {shown(operation)} by a tenant")


def check_listing(kind: EntityType | None) -> None:
    """Raise Refusal for a listing of a type without tenants' entities; of a base type a tenant sees its own."""
    if kind is not None and kind.short not in OWNED and kind.short != _NODE and not is_base(kind):
        raise forbidden(f"Forbidden: QUERY of {kind.full_name} by a tenant; it may list {', '.join(OWNED)}")
