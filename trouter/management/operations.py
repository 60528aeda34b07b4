"""The operations by name: one table for the management node, one for entities.

Each operation takes a request and returns an answer, or raises ChangeRefused, the base of Refusal.
"""

from __future__ import annotations

from typing import Final

from trouter.config.schema import EntityType

from .arguments import IDENTITY, NAME, TYPE
from .context import Node
from .entities import ENTITY_OPERATIONS, create, entity_type_of, on_entity
from .kinds import SELF, is_node_type, kind_of
from .own import NODE_OPERATIONS, query, update_by_body
from .requests import Request, shown
from .responses import OperationResult
from .rights import Forbidden, check_level, may_begin
from .status import Refusal, not_implemented
from .tenants import check_operation
from .verbs import VERBS, arguments

__all__ = ["CHANGES", "CHECKS", "ENTITY_OPERATIONS", "LOGGED", "NODE_OPERATIONS", "perform"]

#: Operations that change the router; they are done one after the other, beside those that only read.
CHANGES: Final = frozenset(name for each in VERBS if each.changes for name in each.names)
#: Operations that change nothing and take long; likewise.
CHECKS: Final = frozenset(name for each in VERBS if each.slow for name in each.names)
#: The arguments that the log's line about a request shows.
LOGGED: Final = tuple(each.name for each in arguments() if each.logged)


def check_request(node: Node, request: Request) -> str:
    """Return the operation of a request that its requester may make at all; Refusal."""
    if request.malformed is not None:
        raise request.malformed
    operation = request.operation
    if not may_begin(node.rights(request), operation, kind_named(request)):
        raise Forbidden
    if node.tenant is not None:
        check_operation(operation, node.control.configuration.policy.enable_vhost_policy)
    return operation


async def perform(node: Node, request: Request) -> OperationResult:
    """Perform ``request`` and return the answer; ChangeRefused."""
    with node.profile.working():
        return await _perform(node, request)


async def _perform(node: Node, request: Request) -> OperationResult:
    operation = check_request(node, request)
    if operation == "CREATE":
        return await create(node, request)
    if operation == "QUERY":
        return await query(node, request)
    if is_for_node(request):
        if operation == "UPDATE":
            return await update_by_body(node, request)
        check_level(node.rights(request), operation, None)
        known = NODE_OPERATIONS.get(operation)
        if known is None:
            raise not_implemented(f"Not implemented: {shown(request.text('operation'))} on the management node")
        return await known(node, request)
    return await on_entity(node, request, operation)


def kind_named(request: Request) -> EntityType | None:
    """Return the type of the entity that a request is about; None if it names no type that is known."""
    try:
        return kind_of(entity_type_of(request) or TYPE.read(request))
    except Refusal:
        return None


def is_for_node(request: Request) -> bool:
    """Return whether the request is for the management node itself and not for an entity."""
    name, identity = NAME.read(request), IDENTITY.read(request)
    if name or identity:
        return {name, identity} <= {"", SELF} and is_node_type(TYPE.read(request))
    return is_node_type(TYPE.read(request)) and not entity_type_of(request)
