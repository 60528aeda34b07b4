"""The rights of requesters: the level that each operation needs, by the type that it is about (R-4.15).

Levels are those of a group's attribute ``management``. An operation that is not in the tables needs the highest.
"""

from __future__ import annotations

from typing import Any, Final

from trouter.config.entities.group import LEVELS
from trouter.config.schema import EntityType

from .ports import Rights
from .status import Refusal, forbidden

NONE, READ, OPERATE, ADMIN = LEVELS
#: In the older router's words.
NOT_ALLOWED: Final = "You are not allowed to perform this operation."

#: Operations that only read, of whatever type; not GET-LOG, because the log shows more of other clients.
LOOKING: Final = frozenset({
    "READ", "QUERY", "CALLME", "GET-TYPES", "GET-ATTRIBUTES", "GET-OPERATIONS", "GET-ANNOTATIONS", "GET-MGMT-NODES",
    "DISCOVER-MGMT-NODES", "GET-SCHEMA", "GET-JSON-SCHEMA", "GET-SCHEMA-JSON", "GET-MEMORY", "GET-RIGHTS", "EXPLAIN",
    "EXPLAIN-POLICY",
})  # fmt: skip
#: Operations of the node that do not change the configuration, or apply the operator's file.
OPERATING: Final = frozenset({"GET-LOG", "PROFILE", "RELOAD"})
#: Types of running entities and of routing; files, secrets, listeners and rights are not among them.
OPERATED: Final = frozenset({
    "connection", "router.link", "router.config.address", "router.config.linkRoute", "router.config.autoLink",
    "router.config.exchange", "router.config.binding", "router.connection.linkRoute",
})  # fmt: skip


def level_for(operation: str, kind: EntityType | None) -> str:
    """Return the lowest level for ``operation``, in capitals, on entities of ``kind``; None for the node."""
    if operation in LOOKING:
        return READ
    if operation in OPERATING and kind is None:
        return OPERATE
    return OPERATE if kind is not None and kind.short in OPERATED else ADMIN


def check_level(rights: Rights, operation: str, kind: EntityType | None) -> None:
    """Raise Forbidden unless ``rights`` suffice."""
    if LEVELS.index(rights.level) < LEVELS.index(level_for(operation, kind)):
        raise Forbidden
    if operation == "CREATE" and kind is not None and kind.short == "router.connection.linkRoute":
        _check(rights.allow_dynamic_link_routes)


def check_update(rights: Rights, kind: EntityType, attributes: dict[str, Any]) -> None:
    """Raise Forbidden if an UPDATE sets an attribute that a flag of the group forbids."""
    if kind.short == "connection" and attributes.get("adminStatus") is not None:
        _check(rights.allow_admin_status_update)


def _check(allowed: bool) -> None:
    if not allowed:
        raise Forbidden


class Forbidden(Refusal):
    """The requester's rights do not suffice."""

    def __init__(self) -> None:
        refusal = forbidden(NOT_ALLOWED)
        super().__init__(refusal.status, refusal.description)
