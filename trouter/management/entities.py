"""The operations on entities: READ, CREATE, UPDATE, DELETE, and the types that have each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from trouter.config.schema import EntityType

from .arguments import ENTITY_TYPE, IDENTITY, NAME, TYPE
from .context import EntityOperation, Node
from .directory import SCOPED, FoundEntity
from .kinds import NODE_TYPES, is_base, is_node_type, kind_of
from .live import UPDATES
from .providers.configured import Configured
from .providers.process import Lifted
from .requests import Request, shown
from .responses import OperationResult, answer
from .rights import check_level, check_update
from .scoped import create_scoped, delete_scoped
from .showing import shown_entity
from .status import CREATED, NO_CONTENT, REASONS, Refusal, bad_request, forbidden, not_found, not_implemented
from .status import FORBIDDEN as FORBIDDEN_STATUS

#: The most attributes of one change; no type has half as many.
MAX_ATTRIBUTES: Final = 128
_IDENTIFYING: Final = ("name", "identity", "type")


def entity_type_of(request: Request) -> str:
    """Return the type of the entity that an operation is for, if the request's ``type`` is the node's; else empty."""
    if request.operation in ("READ", "UPDATE", "DELETE", "CREATE") and is_node_type(TYPE.read(request)):
        return ENTITY_TYPE.read(request)
    return ""


async def on_entity(node: Node, request: Request, operation: str) -> OperationResult:
    text = entity_type_of(request) or TYPE.read(request)
    kind = kind_of(text) if text else None
    name, identity = NAME.read(request), IDENTITY.read(request)
    if operation == "UPDATE" and not name and not identity:
        body = request.map_body()
        name, identity = text_in(body, "name"), text_in(body, "identity")
    if not name and not identity:
        raise bad_request(nameless(kind))
    if kind is not None and not is_base(kind):
        check_level(node.rights(request), operation, kind)
        check_can(kind, operation)
    return await on_found(node, request, operation, find(node, kind, name, identity, operation))


async def on_found(node: Node, request: Request, operation: str, found: FoundEntity) -> OperationResult:
    check_level(node.rights(request), operation, found.kind)
    check_can(found.kind, operation)
    return await ENTITY_OPERATIONS[operation](node, request, found)


def nameless(kind: EntityType | None) -> str:
    """Return the description for a request without name and identity, in Qpid Dispatch's words."""
    whose = "" if kind is None or kind.core else f"{kind.full_name}: "
    return f"{whose}No name or identity provided"


def find(node: Node, kind: EntityType | None, name: str, identity: str, operation: str) -> FoundEntity:
    try:
        return node.directory.find(kind, name, identity)
    except Refusal as refusal:
        if operation == "UPDATE" and kind is not None and kind.short == "connection":
            raise bad_request(refusal.description, refusal.why) from None
        raise


def check_can(kind: EntityType, operation: str) -> None:
    """Raise Refusal if entities of ``kind`` do not have ``operation``, or if no client may call it."""
    if operation in FORBIDDEN.get(kind.short, ()):
        raise forbidden(REASONS[FORBIDDEN_STATUS])
    if (operation not in ENTITY_OPERATIONS and operation != "CREATE") or operation not in kind.all_operations:
        known = ", ".join(each for each in (*ENTITY_OPERATIONS, "CREATE") if each in kind.all_operations)
        raise not_implemented(f"Not implemented: {shown(operation)} of {kind.full_name}; it has {known}")


def text_in(body: Mapping[str, object], name: str) -> str:
    """Return the body's name, identity or type; empty if absent; Refusal."""
    value = body.get(name)
    if value is None:
        return ""
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise bad_request(f"'{name}' in the body must be a string, not {shown(value)}")
    return str(value)


def _check_count(body: Mapping[str, object]) -> None:
    """Raise Refusal for a body with too many attributes, because each unknown one is compared with every known one."""
    if len(body) > MAX_ATTRIBUTES:
        raise bad_request(f"the body has {len(body)} attributes; at most {MAX_ATTRIBUTES} are accepted")


async def create(node: Node, request: Request) -> OperationResult:
    body = request.new_attributes()
    _check_count(body)
    kind = kind_to_create(request, body)
    check_level(node.rights(request), "CREATE", kind)
    check_can(kind, "CREATE")
    for key, value in body.items():
        if value is None and kind.attribute(key) is None:
            raise bad_request(f"Unknown attribute '{shown(key)}' for '{kind.full_name}'")
    name, inside = NAME.read(request), text_in(body, "name")
    if name and inside and name != inside:
        raise bad_request(f"name={shown(name)} in the properties, but {shown(inside)} in the body")
    name = name or inside
    attributes = {key: value for key, value in body.items() if key not in ("name", "type") and value is not None}
    if kind.short == SCOPED:
        return create_scoped(node, request, kind, name, attributes)
    entity = await node.control.create(kind, name or None, attributes)
    return shown_entity(FoundEntity(node.directory.provider(kind), entity.identity), CREATED)


def kind_to_create(request: Request, body: Mapping[str, object]) -> EntityType:
    """Return the type of the entity that a CREATE is for; Refusal."""
    texts = [TYPE.read(request), ENTITY_TYPE.read(request), text_in(body, "type")]
    kinds = {kind.short: kind for kind in (kind_of(text) for text in texts if text)}
    if len(kinds) > 1:  # requests to the management node have the entity's type elsewhere
        kinds = {short: kind for short, kind in kinds.items() if short not in NODE_TYPES}
    if not kinds:
        raise bad_request("the property 'type' is missing")
    if len(kinds) > 1:
        raise bad_request("the request names several types: " + ", ".join(each.full_name for each in kinds.values()))
    return next(iter(kinds.values()))


async def _read(_: Node, __: Request, found: FoundEntity) -> OperationResult:
    return shown_entity(found)


async def _delete(node: Node, _: Request, found: FoundEntity) -> OperationResult:
    if isinstance(found.provider, Lifted):
        row = found.provider.row(found.key)
        if row is None or not found.provider.remove_entity(found.key):
            raise not_found(f"there is no such {found.kind.short} any more")
        node.control.record_change("DELETE", found.kind.full_name, str(row["identity"]), {})
        return answer({}, NO_CONTENT)
    if found.kind.short == SCOPED:
        delete_scoped(node, found)
        return answer({}, NO_CONTENT)
    await node.control.delete(_entity(found))
    found.provider.keys()  # so that its number is released before its identity is used again
    return answer({}, NO_CONTENT)


async def _update(node: Node, request: Request, found: FoundEntity) -> OperationResult:
    return await apply(node, request, request.map_body(), found)


async def apply(node: Node, request: Request, body: Mapping[str, Any], found: FoundEntity) -> OperationResult:
    """Apply the attributes in ``body`` and return the entity; others may be repeated unchanged. Refusal."""
    _check_count(body)
    row = found.provider.row(found.key) or {}
    _check_identifying(body, found)
    attributes = {name: value for name, value in body.items() if name not in _IDENTIFYING}
    check_update(node.rights(request), found.kind, attributes)
    special = UPDATES.get(found.kind.short)
    if special is not None:
        return await special(node, attributes, found, row)
    wanted = {name: value for name, value in attributes.items() if not _stands(found.kind, name, value, row)}
    entity = await node.control.update(_entity(found), wanted)
    return shown_entity(FoundEntity(found.provider, entity.identity))


def _stands(kind: EntityType, name: str, value: object, row: Mapping[str, object]) -> bool:
    """Return whether a read-only attribute is repeated with its current value."""
    attribute = kind.attribute(name)
    return attribute is not None and not attribute.update and value is not None and row.get(attribute.name) == value


def _check_identifying(body: Mapping[str, object], found: FoundEntity) -> None:
    """Raise Refusal if the body changes name, identity or type, which it may only repeat."""
    kind, name, identity = (text_in(body, each) for each in ("type", "name", "identity"))
    if kind and kind_of(kind) is not found.kind:
        raise bad_request(f"'type' cannot be changed: it is {found.kind.full_name}, not {shown(kind)}")
    if name and found.key not in found.provider.by_name(name):
        raise bad_request(f"'name' cannot be changed to {shown(name)}")
    if identity and found.provider.by_identity(identity) != found.key:
        raise bad_request(f"'identity' cannot be changed to {shown(identity)}")


def _entity(found: FoundEntity) -> Any:
    provider = found.provider
    assert isinstance(provider, Configured)  # noqa: S101 - no other type has operations that change it
    return provider.entity(found.key)


async def _call_me(_: Node, request: Request, __: FoundEntity) -> OperationResult:
    return answer(request.properties)


#: Operations that no client may call, by type.
FORBIDDEN: Final = {
    "router": frozenset({"CREATE", "DELETE"}),
    "connection": frozenset({"DELETE"}),
    "console": frozenset({"CREATE", "UPDATE", "DELETE"}),
}
ENTITY_OPERATIONS: Final[dict[str, EntityOperation]] = {
    "READ": _read,
    "UPDATE": _update,
    "DELETE": _delete,
    "CALLME": _call_me,
}
