"""The rights of requesters: the level that each operation needs, by the type that it is about (R-4.15).

Levels are those of a group's attribute ``management``. An unknown operation needs the highest.
"""

from __future__ import annotations

from typing import Any, Final

from trouter.config.changes import Why
from trouter.config.entities.group import LEVELS, OPERATORS
from trouter.config.schema import EntityType

from .ports import Rights
from .status import FORBIDDEN, Refusal
from .verbs import ADMIN, NONE, OPERATE, READ, verb_of

#: In Qpid Dispatch's words.
NOT_ALLOWED: Final = "You are not allowed to perform this operation."

#: Types of running entities and of routing; files, secrets, listeners and rights are not among them.
OPERATED: Final = frozenset({
    "connection", "router.link", "router.config.address", "router.config.linkRoute", "router.config.autoLink",
    "router.config.exchange", "router.config.binding", "router.connection.linkRoute",
})  # fmt: skip
#: The link routes of a connection, which only it sees: a right of their own allows to make and delete them.
OWN_ROUTE: Final = "router.connection.linkRoute"


def level_for(operation: str, kind: EntityType | None) -> str:
    """Return the lowest level for ``operation``, in capitals, on entities of ``kind``; None for the node."""
    known = verb_of(operation)
    if known is not None and (known.level == READ or (known.level and kind is None)):
        return known.level
    return OPERATE if kind is not None and kind.short in OPERATED else ADMIN


def check_level(rights: Rights, operation: str, kind: EntityType | None) -> None:
    """Raise Forbidden unless ``rights`` suffice."""
    enough = LEVELS.index(rights.level) >= LEVELS.index(level_for(operation, kind))
    if kind is not None and kind.short == OWN_ROUTE:
        if operation == "CREATE":
            enough = rights.allow_dynamic_link_routes
        elif operation == "DELETE":
            enough = enough or rights.allow_dynamic_link_routes
    _check(enough)


def may_begin(rights: Rights, operation: str, kind: EntityType | None) -> bool:
    """Return whether a request is looked at: one of a user without any level only if it is about its link routes."""
    own = kind is not None and kind.short == OWN_ROUTE and operation in ("CREATE", "DELETE")
    return rights.level != NONE or (own and rights.allow_dynamic_link_routes)


def is_operator(rights: Rights) -> bool:
    """Return whether the rights suffice for changes of what runs, of whatever addresses."""
    return rights.level in OPERATORS


def check_update(rights: Rights, kind: EntityType, attributes: dict[str, Any]) -> None:
    """Raise Forbidden if an UPDATE sets an attribute that a flag of the group forbids."""
    if kind.short == "connection" and attributes.get("adminStatus") is not None:
        _check(rights.allow_admin_status_update)


def _check(allowed: bool) -> None:
    if not allowed:
        raise Forbidden


class Forbidden(Refusal):
    """The requester's rights do not suffice; ``why`` says what is missing."""

    def __init__(self, why: str = "") -> None:
        super().__init__(FORBIDDEN, f"{NOT_ALLOWED} {why}".rstrip(), Why.RIGHTS)
