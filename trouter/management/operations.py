"""The operations: one table for the management node, one for entities.

Each takes what is asked and gives an answer, or raises Refusal or ChangeRefused.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from trouter.config.schema import EntityType
from trouter.core.memory import owners
from trouter.core.router import Router
from trouter.core.table import MAX_ADDRESS_BYTES
from trouter.core.why import explain
from trouter.wire.performatives import Error

from .directory import Directory, Found
from .kinds import (
    MANAGEMENT,
    NODE_TYPES,
    SELF,
    attribute_names,
    bases_of,
    columns_of,
    descendants_of,
    is_base,
    is_node_type,
    kind_of,
    listed_operations,
)
from .ports import Control, LogBook
from .profile import Profile
from .providers.configured import Configured
from .query import Queries
from .requests import Request, shown
from .responses import Answer, answer
from .schema_text import encoded_schema, schema_text
from .status import CREATED, NO_CONTENT, OK, Refusal, bad_request, forbidden, not_implemented

log = logging.getLogger("trouter.AGENT")

#: Words that stand for a boolean, in any case.
BOOLEANS: Final = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}
#: Roles whose connections belong to the network itself.
NETWORK_ROLES: Final = frozenset({"inter-router", "edge"})
_IDENTIFYING: Final = ("name", "identity", "type")


@dataclass(frozen=True, slots=True)
class Node:
    """What operations work with."""

    directory: Directory
    queries: Queries
    control: Control
    book: LogBook
    router: Router
    profile: Profile


Operation = Callable[[Node, Request], Awaitable[Answer]]
EntityOperation = Callable[[Node, Request, Found], Awaitable[Answer]]


async def perform(node: Node, request: Request) -> Answer:
    """Do what ``request`` asks; Refusal, ChangeRefused."""
    if request.malformed is not None:
        raise request.malformed
    said = request.text("operation")
    if not said:
        raise bad_request("the property 'operation' is missing")
    operation = said.upper().replace("_", "-")
    if operation == "CREATE":
        return await _create(node, request)
    if operation == "QUERY":
        return await _query(node, request)
    if _is_for_node(request):
        known = NODE_OPERATIONS.get(operation)
        if known is None:
            raise not_implemented(f"Not implemented: {shown(said)} on the management node")
        return await known(node, request)
    return await _on_entity(node, request, operation)


def _is_for_node(request: Request) -> bool:
    """Whether the request is for the management node itself and not for an entity."""
    name, identity = request.text("name"), request.text("identity")
    if name or identity:
        return {name, identity} <= {"", SELF} and is_node_type(request.text("type"))
    return is_node_type(request.text("type")) and not _entity_type_of(request)


def _entity_type_of(request: Request) -> str:
    """The type of the entity that an operation on an entity is for, in whichever property it stands."""
    operation = request.text("operation").upper()
    if operation in ("READ", "UPDATE", "DELETE", "CREATE") and is_node_type(request.text("type")):
        return request.text("entityType")
    return ""


# --- entities


async def _on_entity(node: Node, request: Request, operation: str) -> Answer:
    text = _entity_type_of(request) or request.text("type")
    kind = kind_of(text) if text else None
    name, identity = request.text("name"), request.text("identity")
    if operation == "UPDATE" and not name and not identity:
        body = request.map_body()
        name, identity = _text_in(body, "name"), _text_in(body, "identity")
    if not name and not identity:
        raise bad_request("the properties 'name' and 'identity' are both missing: one of them must name the entity")
    if kind is not None and not is_base(kind):
        _check_can(kind, operation)
    return await _on_found(node, request, operation, _find(node, kind, name, identity, operation))


async def _on_found(node: Node, request: Request, operation: str, found: Found) -> Answer:
    _check_can(found.kind, operation)
    return await ENTITY_OPERATIONS[operation](node, request, found)


def _find(node: Node, kind: EntityType | None, name: str, identity: str, operation: str) -> Found:
    try:
        return node.directory.find(kind, name, identity)
    except Refusal as refusal:
        if operation == "UPDATE" and kind is not None and kind.short == "connection":
            raise bad_request(refusal.description) from None
        raise


def _check_can(kind: EntityType, operation: str) -> None:
    """Refuse what entities of ``kind`` do not have, or what nobody may do with them."""
    if operation in FORBIDDEN.get(kind.short, ()):
        raise forbidden(f"Forbidden: {operation} of {kind.full_name}")
    if (operation not in ENTITY_OPERATIONS and operation != "CREATE") or operation not in kind.all_operations:
        known = ", ".join(each for each in (*ENTITY_OPERATIONS, "CREATE") if each in kind.all_operations)
        raise not_implemented(f"Not implemented: {shown(operation)} of {kind.full_name}; it has {known}")


def _text_in(body: Mapping[str, object], name: str) -> str:
    """What the body says of name, identity or type; empty when it says nothing."""
    value = body.get(name)
    if value is None:
        return ""
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise bad_request(f"'{name}' in the body must be a string, not {shown(value)}")
    return str(value)


def _row(found: Found, status: int = 200) -> Answer:
    """The answer that shows an entity; only types that routing reports say null for what is absent."""
    row = found.provider.row(found.key)
    if row is None:
        raise Refusal(404, f"No entity with identity={shown(str(found.key))}")
    columns = columns_of(found.kind)
    keep = found.kind.core
    return answer({name: value for name in columns if (value := row.get(name)) is not None or keep}, status)


async def _create(node: Node, request: Request) -> Answer:
    body = request.map_body()
    kind = _kind_to_create(request, body)
    _check_can(kind, "CREATE")
    name, inside = request.text("name"), _text_in(body, "name")
    if name and inside and name != inside:
        raise bad_request(f"name={shown(name)} in the properties, but {shown(inside)} in the body")
    name = name or inside
    attributes = {key: value for key, value in body.items() if key not in ("name", "type") and value is not None}
    entity = await node.control.create(kind, name or None, attributes)
    return _row(Found(node.directory.provider(kind), entity.identity), CREATED)


def _kind_to_create(request: Request, body: Mapping[str, object]) -> EntityType:
    texts = [request.text("type"), request.text("entityType"), _text_in(body, "type")]
    kinds = {kind.short: kind for kind in (kind_of(text) for text in texts if text)}
    if len(kinds) > 1:  # who addresses the management node as such says the type elsewhere
        kinds = {short: kind for short, kind in kinds.items() if short not in NODE_TYPES}
    if not kinds:
        raise bad_request("the property 'type' is missing")
    if len(kinds) > 1:
        raise bad_request("the request names several types: " + ", ".join(each.full_name for each in kinds.values()))
    return next(iter(kinds.values()))


async def _read(_: Node, __: Request, found: Found) -> Answer:
    return _row(found)


async def _delete(node: Node, _: Request, found: Found) -> Answer:
    await node.control.delete(_entity(found))
    found.provider.keys()  # so that its number goes with it, whatever is made under its identity afterwards
    return answer({}, NO_CONTENT)


async def _update(node: Node, request: Request, found: Found) -> Answer:
    return await _apply(node, request.map_body(), found)


async def _apply(node: Node, body: Mapping[str, Any], found: Found) -> Answer:
    """Change what ``body`` says; what identifies the entity, and what only is observed, may stand there unchanged."""
    row = found.provider.row(found.key) or {}
    _check_identifying(body, found)
    attributes = {name: value for name, value in body.items() if name not in _IDENTIFYING}
    special = UPDATES.get(found.kind.short)
    if special is not None:
        return await special(node, attributes, found, row)
    wanted = {name: value for name, value in attributes.items() if not _stands(found.kind, name, value, row)}
    entity = await node.control.update(_entity(found), wanted)
    return _row(Found(found.provider, entity.identity))


def _stands(kind: EntityType, name: str, value: object, row: Mapping[str, object]) -> bool:
    """Whether a read-only attribute is mentioned with the value that it has."""
    attribute = kind.attribute(name)
    return attribute is not None and not attribute.update and value is not None and row.get(attribute.name) == value


def _check_identifying(body: Mapping[str, object], found: Found) -> None:
    """Name, identity and type may be said again in the body, not changed."""
    kind, name, identity = (_text_in(body, each) for each in ("type", "name", "identity"))
    if kind and kind_of(kind) is not found.kind:
        raise bad_request(f"'type' cannot be changed: it is {found.kind.full_name}, not {shown(kind)}")
    if name and found.key not in found.provider.by_name(name):
        raise bad_request(f"'name' cannot be changed to {shown(name)}")
    if identity and found.provider.by_identity(identity) != found.key:
        raise bad_request(f"'identity' cannot be changed to {shown(identity)}")


def _entity(found: Found) -> Any:
    provider = found.provider
    assert isinstance(provider, Configured)  # noqa: S101 - no other type has operations that change it
    return provider.entities()[found.key]


async def _update_connection(node: Node, attributes: Mapping[str, Any], found: Found, row: Mapping[str, Any]) -> Answer:
    """Close a connection, or trace its frames."""
    connection = node.control.connections().get(found.key)
    if connection is None:
        raise bad_request(f"No entity with identity={found.key}")
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
    if trace is not None:
        connection.trace = _boolean("enableProtocolTrace", trace)
    if status == "deleted":
        if connection.role in NETWORK_ROLES:
            raise forbidden(f"Forbidden: a connection of role {connection.role} cannot be closed")
        log.info("[C%d] closed by management", connection.number)
        connection.force_close(Error("amqp:connection:forced", "closed by management"))
    return answer(connection.row(node.router.pulse.now_s))


def _boolean(name: str, value: object) -> bool:
    """A boolean as requests may say it."""
    if isinstance(value, int):
        return bool(value)
    meant = BOOLEANS.get(value.lower()) if isinstance(value, str) else None
    if meant is None:
        raise bad_request(f"{name} must be one of {', '.join(BOOLEANS)}, not {shown(value)}")
    return meant


async def _update_link(_: Node, attributes: Mapping[str, Any], found: Found, row: Mapping[str, Any]) -> Answer:
    """The administrative status of a link may be set, and changes nothing, as in the older router."""
    for name, value in attributes.items():
        if name == "adminStatus":
            if value not in (None, "enabled", "disabled"):
                raise bad_request(f"adminStatus must be enabled or disabled, not {shown(value)}")
            if value == "disabled":
                log.warning("adminStatus=disabled of link %s has no effect", found.key)
        elif row.get(name, _ABSENT) != value:
            raise bad_request(f"'{shown(name)}' of a link cannot be changed; adminStatus can")
    return _row(found)


async def _call_me(_: Node, request: Request, __: Found) -> Answer:
    return answer(request.properties)


_ABSENT: Final = object()
#: What nobody may do, by type.
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
UPDATES: Final[dict[str, Callable[[Node, Mapping[str, Any], Found, Mapping[str, Any]], Awaitable[Answer]]]] = {
    "connection": _update_connection,
    "router.link": _update_link,
}


# --- the management node


async def _query(node: Node, request: Request) -> Answer:
    """The type to list stands in entityType; a request without one may say it in type."""
    text = request.text("entityType")
    own = request.text("type")
    if not is_node_type(own):
        if request.text("name") or request.text("identity"):
            raise not_implemented(f"Not implemented: QUERY of {shown(own)}; it is for the management node")
        text = text or own
    return await node.queries.run(request, kind_of(text) if text else None)


def _kinds_asked(request: Request) -> tuple[EntityType, ...]:
    text = request.text("entityType")
    return descendants_of(kind_of(text) if text else None)


async def _get_types(_: Node, request: Request) -> Answer:
    return answer({kind.full_name: [base.full_name for base in bases_of(kind)] for kind in _kinds_asked(request)})


async def _get_attributes(_: Node, request: Request) -> Answer:
    return answer({kind.full_name: list(attribute_names(kind)) for kind in _kinds_asked(request)})


async def _get_operations(_: Node, request: Request) -> Answer:
    return answer({kind.full_name: list(listed_operations(kind)) for kind in _kinds_asked(request)})


async def _get_annotations(_: Node, request: Request) -> Answer:
    _kinds_asked(request)
    return answer({})


async def _get_nodes(node: Node, _: Request) -> Answer:
    table = node.router.table
    return answer([f"amqp:/_topo/0/{table.router_id}/$management"] if table.mode == "interior" else [])


async def _get_schema(_: Node, __: Request) -> Answer:
    return Answer(OK, encoded_schema())


async def _get_json_schema(_: Node, request: Request) -> Answer:
    return answer(schema_text(request.number("indent")))


async def _get_log(node: Node, request: Request) -> Answer:
    module = request.text("module")
    known = node.book.counts()
    if module and module not in known:
        raise bad_request(f"no such module '{shown(module)}'; the modules are {', '.join(known)}")
    entries = node.book.recent(max(0, request.number("limit") or 0), module)
    return answer([[each.module, each.level, each.text, each.file, each.line, int(each.seconds)] for each in entries])


async def _profile(node: Node, request: Request) -> Answer:
    if "start" in request.properties:
        node.profile.start()
        return answer(None)
    if "stop" in request.properties:
        return answer(node.profile.stop())
    raise bad_request("PROFILE needs the property 'start' or 'stop'")


async def _read_node(node: Node, _: Request) -> Answer:
    return _row(node.directory.find(kind_of(MANAGEMENT), SELF, ""))


async def _update_by_body(node: Node, request: Request) -> Answer:
    """An UPDATE that names its entity in the body, as ``name`` or ``identity`` or as a key without a value."""
    body = request.map_body()
    kind, name, identity = (_text_in(body, each) for each in ("type", "name", "identity"))
    if name or identity:
        found = _find(node, kind_of(kind) if kind else None, name, identity, "UPDATE")
        return await _on_found(node, request, "UPDATE", found)
    named = [key for key, value in body.items() if value is None and node.directory.exists(key)]
    if len(named) != 1:
        raise not_implemented("Not implemented: UPDATE on the management node; name an entity")
    found = node.directory.find(None, named[0], "")
    _check_can(found.kind, "UPDATE")
    return await _apply(node, {key: value for key, value in body.items() if key != named[0]}, found)


async def _reload(node: Node, _: Request) -> Answer:
    return answer(asdict(await node.control.reload()))


async def _explain(node: Node, request: Request) -> Answer:
    address = request.text("address")
    if not 0 < len(address.encode()) <= MAX_ADDRESS_BYTES:
        raise bad_request(f"EXPLAIN needs the property 'address', of 1 to {MAX_ADDRESS_BYTES} octets")
    return answer(explain(node.router, address).as_map())


async def _get_memory(node: Node, _: Request) -> Answer:
    held = owners(node.router)
    return answer([{"name": name, "size": size, "count": count, "bytes": size * count} for name, size, count in held])


NODE_OPERATIONS: Final[dict[str, Operation]] = {
    "READ": _read_node,
    "UPDATE": _update_by_body,
    "GET-TYPES": _get_types,
    "GET-ATTRIBUTES": _get_attributes,
    "GET-OPERATIONS": _get_operations,
    "GET-ANNOTATIONS": _get_annotations,
    "GET-MGMT-NODES": _get_nodes,
    "DISCOVER-MGMT-NODES": _get_nodes,
    "GET-SCHEMA": _get_schema,
    "GET-JSON-SCHEMA": _get_json_schema,
    "GET-SCHEMA-JSON": _get_json_schema,
    "GET-LOG": _get_log,
    "PROFILE": _profile,
    "RELOAD": _reload,
    "EXPLAIN": _explain,
    "GET-MEMORY": _get_memory,
}
#: Operations that change the router; they are done one after the other, beside those that only look.
CHANGES: Final = frozenset({"CREATE", "UPDATE", "DELETE", "RELOAD"})
