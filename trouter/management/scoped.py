"""Link routes that a connection creates for itself; it alone sees and deletes them (routing.md 6.4).

They last as long as the connection. Its client answers the attaches that they bring.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from trouter.config.schema import EntityType
from trouter.core.addresses import MAX_ADDRESS_BYTES
from trouter.core.patterns import PatternError
from trouter.core.routes import MAX_SCOPED, LinkRoute

from .context import Node
from .directory import FoundEntity
from .requests import Request, shown
from .responses import OperationResult
from .rights import Forbidden, is_operator
from .showing import shown_entity
from .status import CREATED, Refusal, bad_request

_ATTRIBUTES: Final = ("pattern", "direction")
_DIRECTIONS: Final = ("in", "out")


def create_scoped(
    node: Node, request: Request, kind: EntityType, name: str, attributes: Mapping[str, Any]
) -> OperationResult:
    """Route links to the requester's own connection, and return the answer; Refusal."""
    route = _route_of(kind, name, attributes)
    if not is_operator(node.rights(request)):
        _check_addresses(node, request, route)
    connection = node.control.running.connections().get(request.origin)
    if connection is None:
        raise bad_request("Parent connection no longer exists")
    router = node.router
    provider = node.directory.provider(kind)
    if name and provider.by_name(name):
        raise bad_request("Name conflicts with an existing entity")
    container = router.containers.get(request.origin)
    if container is None:
        container = connection.as_container()
        router.container_came(container)
    number = router.next_identity()
    try:
        added = router.routes.add_scoped(container, route, number)
    except PatternError as error:
        raise bad_request(f"Pattern invalid - {error}") from None
    if not added:
        raise Refusal(_FULL, f"a connection has at most {MAX_SCOPED} link routes of its own")
    given = {"pattern": route.pattern, "direction": route.direction}
    node.control.record_change("CREATE", kind.full_name, name or str(number), given)
    return shown_entity(FoundEntity(provider, number), CREATED)


def delete_scoped(node: Node, found: FoundEntity) -> None:
    """Delete a link route of the requester's connection."""
    node.router.routes.remove_scoped(found.key)
    node.control.record_change("DELETE", found.kind.full_name, str(found.key), {})


def _check_addresses(node: Node, request: Request, route: LinkRoute) -> None:
    """Raise Forbidden if the route would take an address that the requester may not use itself; Refusal."""
    try:
        beside = node.control.running.uncovered(request.origin, route.pattern, route.direction)
    except PatternError as error:
        raise bad_request(f"Pattern invalid - {error}") from None
    if beside is not None:
        entries = "sources" if route.direction == "in" else "targets"
        raise Forbidden(
            f"The pattern '{shown(route.pattern)}', direction {route.direction}, takes '{shown(beside)}', which the "
            f"{entries} of your group do not cover"
        )


def _route_of(kind: EntityType, name: str, attributes: Mapping[str, Any]) -> LinkRoute:
    for attribute in attributes:
        if attribute not in _ATTRIBUTES:
            raise bad_request(f"'{shown(attribute)}' of {kind.full_name} cannot be set; pattern and direction can")
    pattern, direction = attributes.get("pattern"), attributes.get("direction")
    if pattern is None:
        raise bad_request("Pattern field is required")
    if not isinstance(pattern, str) or not pattern:
        raise bad_request("Pattern must be a non-empty string type")
    if len(pattern.encode()) > MAX_ADDRESS_BYTES:
        raise bad_request(f"Pattern is longer than {MAX_ADDRESS_BYTES} bytes")
    if direction is None:
        raise bad_request("No 'direction' attribute provided - it is mandatory")
    if direction not in _DIRECTIONS:
        raise bad_request(f"Invalid value for 'direction': {shown(direction)}; it is in or out")
    return LinkRoute(pattern, direction, name=name)


#: The status for too many entities, when the request itself is valid.
_FULL: Final = 403
