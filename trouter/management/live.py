"""UPDATE of entities that no configuration creates: connections and links."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from trouter.config.changes import Why
from trouter.core.terms import ROUTER_ROLES
from trouter.wire.performatives import Error

from .context import Node
from .directory import FoundEntity
from .requests import shown
from .responses import OperationResult, answer
from .showing import shown_entity
from .status import bad_request, forbidden

log = logging.getLogger("trouter.AGENT")

#: Texts for booleans, in any case.
BOOLEANS: Final = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}
_ABSENT: Final = object()

LiveUpdate = Callable[[Node, Mapping[str, Any], FoundEntity, Mapping[str, Any]], Awaitable[OperationResult]]


async def _update_connection(
    node: Node, attributes: Mapping[str, Any], found: FoundEntity, row: Mapping[str, Any]
) -> OperationResult:
    """Close a connection, or trace its frames."""
    connection = node.control.running.connections().get(found.key)
    if connection is None:
        raise bad_request(f"No entity with identity={row.get('identity')}", Why.ABSENT)
    for name, value in attributes.items():
        if name not in ("adminStatus", "enableProtocolTrace") and row.get(name, _ABSENT) != value:
            raise bad_request(
                f"'{shown(name)}' of a connection cannot be changed; adminStatus and enableProtocolTrace can"
            )
    status = attributes.get("adminStatus")
    trace = attributes.get("enableProtocolTrace")
    if status is None and trace is None:
        raise bad_request("nothing to change: a connection has adminStatus (enabled, deleted) and enableProtocolTrace")
    if status not in (None, "enabled", "deleted"):
        raise bad_request(f"adminStatus must be enabled or deleted, not {shown(status)}")
    role = connection.facts.listener.role
    if status == "deleted" and role in ROUTER_ROLES:
        raise forbidden(f"Forbidden: a connection of role {role} cannot be closed")
    if trace is not None:
        connection.trace = _boolean("enableProtocolTrace", trace)
    changed = {"adminStatus": status, "enableProtocolTrace": None if trace is None else str(connection.trace)}
    given = {name: value for name, value in changed.items() if value is not None}
    node.control.record_change("UPDATE", found.kind.full_name, str(connection.number), given)
    if status == "deleted":
        log.info("[C%d] closed by management", connection.number)
        connection.force_close(Error("amqp:connection:forced", "closed by management"))
    return answer(found.provider.shown_row(connection.build_management_row(node.router.shared.now_s)))


def _boolean(name: str, value: object) -> bool:
    """Return a boolean from a request's value; Refusal."""
    if isinstance(value, int):
        return bool(value)
    meant = BOOLEANS.get(value.lower()) if isinstance(value, str) else None
    if meant is None:
        raise bad_request(f"{name} must be one of {', '.join(BOOLEANS)}, not {shown(value)}")
    return meant


async def _update_link(
    _: Node, attributes: Mapping[str, Any], found: FoundEntity, row: Mapping[str, Any]
) -> OperationResult:
    """Accept the administrative status of a link, which changes nothing, as in Qpid Dispatch; Refusal."""
    for name, value in attributes.items():
        if name == "adminStatus":
            if value not in (None, "enabled", "disabled"):
                raise bad_request(f"adminStatus must be enabled or disabled, not {shown(value)}")
            if value == "disabled":
                log.warning("adminStatus=disabled of link %s has no effect", found.key)
        elif row.get(name, _ABSENT) != value:
            raise bad_request(f"'{shown(name)}' of a link cannot be changed; adminStatus can")
    return shown_entity(found)


#: The types whose entities are changed by functions of this module.
UPDATES: Final[dict[str, LiveUpdate]] = {"connection": _update_connection, "router.link": _update_link}
