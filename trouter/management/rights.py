"""Who may do what through the agent: the level that each operation takes, by the type that it is about (R-4.15).

Levels are those of a group's attribute ``management``. What is not in the tables takes the highest.
"""

from __future__ import annotations

from typing import Any, Final

from trouter.config.entities.group import LEVELS
from trouter.config.schema import EntityType

from .ports import Rights
from .status import Refusal, forbidden

NONE, READ, OPERATE, ADMIN = LEVELS
#: The older router's words.
NOT_ALLOWED: Final = "You are not allowed to perform this operation."

#: Operations that only look, whatever they are about; the log shows more of others than anything else does.
LOOKING: Final = frozenset({
    "READ", "QUERY", "CALLME", "GET-TYPES", "GET-ATTRIBUTES", "GET-OPERATIONS", "GET-ANNOTATIONS", "GET-MGMT-NODES",
    "DISCOVER-MGMT-NODES", "GET-SCHEMA", "GET-JSON-SCHEMA", "GET-SCHEMA-JSON", "GET-MEMORY", "GET-RIGHTS", "EXPLAIN",
    "EXPLAIN-POLICY",
})  # fmt: skip
#: Operations of the node that change nothing in what is configured, or follow the file that the operator keeps.
OPERATING: Final = frozenset({"GET-LOG", "PROFILE", "RELOAD"})
#: What runs, and what messages go by; files, secrets, ways in and rights are none of it.
OPERATED: Final = frozenset({
    "connection", "router.link", "router.config.address", "router.config.linkRoute", "router.config.autoLink",
    "router.config.exchange", "router.config.binding", "router.connection.linkRoute",
})  # fmt: skip


def level_for(operation: str, kind: EntityType | None) -> str:
    """Return the least level for ``operation``, in capitals, on entities of ``kind``; None for the node."""
    if operation in LOOKING:
        return READ
    if operation in OPERATING and kind is None:
        return OPERATE
    return OPERATE if kind is not None and kind.short in OPERATED else ADMIN


def check_level(rights: Rights, operation: str, kind: EntityType | None) -> None:
    """Raise Refusal unless ``rights`` go that far."""
    if LEVELS.index(rights.level) < LEVELS.index(level_for(operation, kind)):
        raise Forbidden
    if operation == "CREATE" and kind is not None and kind.short == "router.connection.linkRoute":
        _check(rights.allow_dynamic_link_routes)


def check_update(rights: Rights, kind: EntityType, attributes: dict[str, Any]) -> None:
    """Raise Refusal if an UPDATE sets what a flag of the group forbids."""
    if kind.short == "connection" and attributes.get("adminStatus") is not None:
        _check(rights.allow_admin_status_update)


def _check(allowed: bool) -> None:
    if not allowed:
        raise Forbidden


class Forbidden(Refusal):
    """The requester may not do this."""

    def __init__(self) -> None:
        refusal = forbidden(NOT_ALLOWED)
        super().__init__(refusal.status, refusal.description)
