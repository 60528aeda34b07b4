"""The operations of the management node itself."""

from __future__ import annotations

import re
from dataclasses import asdict
from functools import partial
from typing import Final

from trouter.config.findings import described, first_of
from trouter.config.schema import EntityType
from trouter.config.workers import mode_of_whole
from trouter.core.addresses import MAX_ADDRESS_BYTES
from trouter.core.allocations import owners, waiting_messages
from trouter.core.why import explain

from .arguments import ENTITY, ENTITY_TYPE, IDENTITY, NAME, TYPE, Flag, Number, Text
from .context import Node, Operation
from .entities import apply, check_can, find, on_found, text_in
from .kinds import MANAGEMENT, SELF, attribute_names, bases_of, descendants_of, is_node_type, kind_of, listed_operations
from .ports import POLICY, DrainReport, OpenChange
from .requests import Request, shown, type_of
from .responses import OperationResult, answer
from .rights import Forbidden, check_level
from .schema_text import encoded_schema, schema_text
from .showing import shown_entity
from .status import OK, bad_request, not_implemented
from .tenants import check_listing
from .verbs import ADMIN, OPERATE, READ, VERBS, verb

#: The groupings of GET-MEMORY that the process has, besides ``address``.
MEMORY_BY: Final = ("process", "connection", "user", "vhost")
_GROUPINGS: Final = f"{', '.join(MEMORY_BY)} or address"
#: The most keys without a value in an UPDATE that names its entity by such a key.
MAX_EMPTY: Final = 64


async def query(node: Node, request: Request) -> OperationResult:
    """Answer a QUERY; Refusal."""
    return await node.queries.run(request, check_query(node, request))


def check_query(node: Node, request: Request) -> EntityType | None:
    """Return the type of a QUERY, in entityType, or in type if it has no entityType, None for all; Refusal."""
    text = ENTITY_TYPE.read(request)
    own = TYPE.read(request)
    if not is_node_type(own):
        if NAME.read(request) or IDENTITY.read(request):
            raise not_implemented(f"Not implemented: QUERY of {shown(own)}; it is for the management node")
        text = text or own
    kind = kind_of(text) if text else None
    if node.tenant is not None:
        check_listing(kind)
    return kind


def _kinds_wanted(entity_type: str) -> tuple[EntityType, ...]:
    return descendants_of(kind_of(entity_type) if entity_type else None)


async def update_by_body(node: Node, request: Request) -> OperationResult:
    """Update the entity that the body names, as ``name`` or ``identity`` or as a key without a value; Refusal."""
    body = request.map_body()
    kind, name, identity = (text_in(body, each) for each in ("type", "name", "identity"))
    if name or identity:
        found = find(node, kind_of(kind) if kind else None, name, identity, "UPDATE")
        return await on_found(node, request, "UPDATE", found)
    empty = [key for key, value in body.items() if value is None]
    named = [key for key in empty[:MAX_EMPTY] if node.directory.exists(key)]
    if len(named) != 1 or len(empty) > MAX_EMPTY:
        raise not_implemented("Not implemented: UPDATE on the management node; name an entity")
    found = node.directory.find(None, named[0], "")
    check_level(node.rights(request), "UPDATE", found.kind)
    check_can(found.kind, "UPDATE")
    return await apply(node, request, {key: value for key, value in body.items() if key != named[0]}, found)


@verb(
    "READ",
    answer="the node's own entity",
    level=READ,
    takes=ENTITY,
    tenants=True,
)
async def _read_node(node: Node, _: Request, **__: str) -> OperationResult:
    return shown_entity(node.directory.find(kind_of(MANAGEMENT), SELF, ""))


@verb(
    "GET-TYPES",
    answer="a map from each type to the types that it extends, the nearest first",
    level=READ,
    takes=(ENTITY_TYPE,),
    tenants=True,
)
async def _get_types(_: Node, __: Request, entity_type: str) -> OperationResult:
    return answer({kind.full_name: [base.full_name for base in bases_of(kind)] for kind in _kinds_wanted(entity_type)})


@verb(
    "GET-ATTRIBUTES",
    answer="a map from each type to its attributes; with `entityType` only that type and those that extend it",
    level=READ,
    takes=(ENTITY_TYPE,),
    tenants=True,
)
async def _get_attributes(_: Node, __: Request, entity_type: str) -> OperationResult:
    return answer({kind.full_name: list(attribute_names(kind)) for kind in _kinds_wanted(entity_type)})


@verb(
    "GET-OPERATIONS",
    answer="a map from each type to every operation that works: those of Qpid Dispatch in its order, then "
    "those that only this router has; with `entityType` only that type and those that extend it",
    level=READ,
    takes=(ENTITY_TYPE,),
    tenants=True,
)
async def _get_operations(_: Node, __: Request, entity_type: str) -> OperationResult:
    return answer(
        {kind.full_name: list(listed_operations(kind, NODE_OPERATIONS)) for kind in _kinds_wanted(entity_type)}
    )


@verb(
    "GET-ANNOTATIONS",
    answer="an empty map: there are none",
    level=READ,
    takes=(ENTITY_TYPE,),
    tenants=True,
)
async def _get_annotations(_: Node, __: Request, entity_type: str) -> OperationResult:
    _kinds_wanted(entity_type)
    return answer({})


@verb(
    "GET-MGMT-NODES",
    "DISCOVER-MGMT-NODES",
    answer="the addresses of the network's management nodes; none on a standalone router",
    level=READ,
    tenants=True,
)
async def _get_nodes(node: Node, _: Request) -> OperationResult:
    table, part = node.router.table, node.directory.part
    mode = table.mode if part is None else mode_of_whole(node.control.configuration.router)
    if node.tenant is not None or mode != "interior":
        return answer([])
    routers = (table.router_id, *sorted(router.id for router in node.router.network.routers.values() if router.trunk))
    return answer([f"amqp:/_topo/0/{router_id}/$management" for router_id in routers])


@verb(
    "GET-SCHEMA",
    answer="every type with its attributes, types, defaults and descriptions, without values that are "
    "false, empty or zero",
    level=READ,
    tenants=True,
)
async def _get_schema(node: Node, _: Request) -> OperationResult:
    return OperationResult(OK, encoded_schema(tuple(NODE_OPERATIONS), node.directory.part is not None))


@verb(
    "GET-JSON-SCHEMA",
    "GET-SCHEMA-JSON",
    answer="the same as JSON text",
    level=READ,
    takes=(Number("indent", "formats the answer with line breaks, and so many blanks a level"),),
    tenants=True,
)
async def _get_json_schema(node: Node, _: Request, indent: int | None) -> OperationResult:
    return answer(schema_text(tuple(NODE_OPERATIONS), indent, node.directory.part is not None))


LIMIT: Final = Number("limit", "the number of newest entries to get; without it (or 0, or less) all", logged=True)


@verb(
    "GET-LOG",
    answer="entries, oldest first: module, level, text, file, line, seconds since 1970; at most the last 1000",
    level=OPERATE,
    takes=(
        LIMIT,
        Text("module", "only the entries of this module", logged=True),
    ),
)
async def _get_log(node: Node, _: Request, limit: int | None, module: str) -> OperationResult:
    known = node.book.counts()
    if module and module not in known:
        raise bad_request(f"no such module '{shown(module)}'; the modules are {', '.join(known)}")
    entries = node.book.recent(max(0, limit or 0), module)
    as_time = float if node.directory.part is not None else int  # parts of a router are put together by it
    rows = [[each.module, each.level, each.text, each.file, each.line, as_time(each.seconds)] for each in entries]
    return answer(rows)


@verb(
    "PROFILE",
    answer="where the management node spends its time between `start` and `stop`",
    level=OPERATE,
    takes=(Flag("start", "begins to count"), Flag("stop", "ends it; the answer has what was counted")),
)
async def _profile(node: Node, _: Request, start: bool, stop: bool) -> OperationResult:
    if start:
        node.profile.start()
        return answer(None)
    if stop:
        return answer(node.profile.stop())
    raise bad_request("PROFILE needs the property 'start' or 'stop'")


@verb(
    "RELOAD",
    answer="reads the configuration file again: a map of `created`, `updated`, `deleted`, `kept` and "
    "`restart`; or 400 with all errors of the file, and nothing changes",
    level=OPERATE,
    changes=True,
)
async def _reload(node: Node, _: Request) -> OperationResult:
    return answer(asdict(await node.control.reload()))


_PART: Final = Text(
    "part",
    "`policy`: the text has only vhosts, and perhaps a section `policy`; they take the place of those in the router's "
    "file, and all else stays",
    max_bytes=16,
)


def check_part(part: str) -> None:
    """Check that a part of a configuration can be changed without the others; Refusal."""
    if part not in {"", POLICY}:
        raise bad_request(f"the property 'part' must be '{POLICY}', not {shown(part)}")


@verb(
    "CHECK",
    answer="what a reload of the configuration in the body, a string, would change, without any change: a map of "
    "`findings`, as `trouter check --json` shows them, and `plan`, as RELOAD answers, null if the text cannot be used; "
    "and `apply`, what APPLY needs: `state`, `same` (it is the text of the file), `open` (the id of an open change), "
    "`part`, that of the request, and `refusals`, why it would be refused",
    level=READ,
    takes=(
        Text("file", "the name of the text in the findings; it is JSON if that ends in `.json`", max_bytes=4096),
        _PART,
        Text(
            "expectations",
            "with `part`: a table as `trouter policy test` takes it; `refusals` names what the router would not "
            "meet with this policy",
        ),
    ),
    slow=True,
)
async def _check(node: Node, request: Request, file: str, part: str, expectations: str) -> OperationResult:
    check_part(part)
    if not isinstance(request.body, str):
        raise bad_request(f"CHECK needs a configuration, as a string, in the body, not {type_of(request.body)}")
    may_change = node.rights(request).level == ADMIN
    name = file or "(request)"
    if part:
        if not may_change:  # the router reads its file for it
            raise Forbidden
        report = await node.control.network_changes.check_policy(request.body, name, expectations)
    else:
        report = await node.control.check(request.body, name, may_change=may_change)
    return answer(
        {
            "findings": [described(finding) for finding in first_of(report.findings)],
            "plan": None if report.plan is None else asdict(report.plan),
            "apply": {
                "state": report.state,
                "same": report.is_same,
                "open": report.open_change,
                "part": part,
                "refusals": [*report.refusals, *([way] if (way := why_not_by_this_way(node, request)) else [])],
            },
        }
    )


#: The id of a change, and what may be in it.
_CHANGE: Final = Text("change", "the id of the change: 1 to 64 letters, digits and `-`", required=True, max_bytes=64)
_CHANGE_ID: Final = re.compile(r"[0-9A-Za-z-]+")
#: The most bytes of the ids of all routers of a change.
_MAX_ROUTERS_BYTES: Final = 65_536


def why_not_by_this_way(node: Node, request: Request) -> str:
    """Return why a change may not come by the connection that a request came by; empty if it may.

    With secureDefaults that has TLS, or is of this machine, unless the router has allowNetworkChanges. Another worker
    that passes a request on has judged it.
    """
    router = node.control.configuration.router
    if not router.secure_defaults or router.allow_network_changes or request.granted is not None or not request.origin:
        return ""
    connection = node.control.running.connections().get(request.origin)
    if connection is not None and (connection.facts.encrypted or connection.facts.loopback):
        return ""
    return (
        "with secureDefaults a change over the network comes by TLS, or from the router's own machine; "
        "allowNetworkChanges: yes in its router section allows it without"
    )


def check_change(node: Node, request: Request) -> None:
    """Check that a step of a change may come by its way, and has an id; Refusal."""
    if why := why_not_by_this_way(node, request):
        raise Forbidden(why)
    if not _CHANGE_ID.fullmatch(_CHANGE.read(request)):
        raise bad_request(
            f"the property 'change' must have letters, digits and '-', not {shown(_CHANGE.read(request))}"
        )


@verb(
    "APPLY",
    answer="puts the configuration in the body, a string, into force and into the router's configuration file, as a "
    "whole or not at all: the same map as RELOAD. The change stays open until it is confirmed or taken back; 409 if "
    "the router was changed since the check, or another change is open",
    level=ADMIN,
    takes=(
        _CHANGE,
        Text("state", "`state` in `apply` of the answer to CHECK", required=True, max_bytes=64),
        Text(
            "by",
            "the name of the operator who orders the change; management shows it while the change is open",
            max_bytes=256,
            logged=True,
        ),
        Text("routers", "the ids of all routers of the change, with commas", max_bytes=_MAX_ROUTERS_BYTES),
        _PART,
    ),
    changes=True,
)
async def _apply(
    node: Node, request: Request, change: str, state: str, by: str, routers: str, part: str
) -> OperationResult:
    check_change(node, request)
    check_part(part)
    if not isinstance(request.body, str):
        raise bad_request(f"APPLY needs a configuration, as a string, in the body, not {type_of(request.body)}")
    ids = tuple(filter(None, routers.split(",")))
    return answer(asdict(await node.control.network_changes.apply(change, by, ids, request.body, state, part)))


def _as_map(change: OpenChange) -> dict[str, object]:
    values = asdict(change)
    return {**values, "at": values.pop("at_s"), "routers": list(change.routers)}


@verb(
    "CONFIRM-CHANGE",
    answer="ends an open change as it is: the map of GET-CHANGE; 404 if it is not open",
    level=ADMIN,
    takes=(_CHANGE,),
    changes=True,
)
async def _confirm_change(node: Node, request: Request, change: str) -> OperationResult:
    check_change(node, request)
    return answer(_as_map(await node.control.network_changes.confirm(change)))


@verb(
    "REVERT-CHANGE",
    answer="takes an open change back: what was in force and in the file before is again; the map of GET-CHANGE; 404 "
    "if it is not open, 409 if the file was edited since",
    level=ADMIN,
    takes=(_CHANGE,),
    changes=True,
)
async def _revert_change(node: Node, request: Request, change: str) -> OperationResult:
    check_change(node, request)
    return answer(_as_map(await node.control.network_changes.revert(change)))


@verb(
    "GET-CHANGE",
    answer="the change that is open: a map of `id`, `by`, `user` and `host` of the connection that ordered it, `at` "
    "(seconds since 1970), `routers` and `state`: `begun` (the file is the old one), `made`, or `edited` (the file is "
    "another one since); an empty map without one",
    level=READ,
)
async def _get_change(node: Node, _: Request) -> OperationResult:
    change = await node.control.network_changes.open_change()
    return answer({} if change is None else _as_map(change))


@verb(
    "EXPLAIN",
    answer="why messages for an address flow or not: distribution, consumers, senders, and a `verdict`",
    level=READ,
    takes=(Text("address", "the address to explain", required=True, max_bytes=MAX_ADDRESS_BYTES, logged=True),),
)
async def _explain(node: Node, _: Request, address: str) -> OperationResult:
    return answer(explain(node.router, address).as_map())


_about: Final = partial(Text, max_bytes=MAX_ADDRESS_BYTES)
#: What EXPLAIN-POLICY is asked: about a connection, by at least one of the first three, and about an address.
_QUESTION: Final = (
    _about("vhost", "the host name that a client asks for"),
    _about("user", "the user of a client; without it the client has no name"),
    _about("host", "the address that a client comes from"),
    _about("policyVhost", "the `policyVhost` of the listener"),
    _about("source", "an address to receive from"),
    _about("target", "an address to send to"),
)


@verb(
    "EXPLAIN-POLICY",
    answer="the policy's decision about a connection, and about an address if one is named: `allowed`, "
    "`rule`, `vhost`, `group`, `reason` if it denies, `settings`, `limits` and the `steps`",
    level=READ,
    takes=_QUESTION,
)
async def _explain_policy(node: Node, request: Request, **texts: str) -> OperationResult:
    given = (each for each in _QUESTION if request.properties.get(each.name) is not None)
    question = {each.name: texts[each.parameter] for each in given}
    if not {"vhost", "user", "host"} & set(question):
        raise bad_request("EXPLAIN-POLICY needs at least one of the properties 'vhost', 'user' and 'host'")
    if {"source", "target"} <= set(question):
        raise bad_request("EXPLAIN-POLICY explains one address: the property 'source' or 'target', not both")
    return answer(dict(node.control.running.explain_policy(question)))


@verb(
    "GET-MEMORY",
    answer="the router's objects by kind: `name`, `size` of one, `count` and `bytes` of all. With the "
    "property `by` of `connection`, `user`, `vhost` or `address`: what they take, the largest 20 "
    "first and the others in one row; `by` `process`: `resident`, `limit`, `messages` and "
    "`messagesLimit`",
    level=READ,
    takes=(Text("by", f"the router groups the memory by it: {_GROUPINGS}; without it by the kind of object"),),
)
async def _get_memory(node: Node, _: Request, by: str) -> OperationResult:
    if by == "address":
        return answer([asdict(each) for each in waiting_messages(node.router)])
    if by in MEMORY_BY:
        return answer([dict(row) for row in node.control.running.memory(by)])
    if by:
        raise bad_request(f"GET-MEMORY groups by {_GROUPINGS}, not by {shown(by)}")
    held = owners(node.router, [each.engine for each in node.control.running.connections().values()])
    return answer([{"name": name, "size": size, "count": count, "bytes": size * count} for name, size, count in held])


@verb(
    "GET-RIGHTS",
    answer="the rights of the requester: its `level` (below), whether it is a `tenant`, "
    "`allowAdminStatusUpdate`, `allowDynamicLinkRoutes`",
    level=READ,
    tenants=True,
)
async def _get_rights(node: Node, request: Request) -> OperationResult:
    rights = node.rights(request)
    tenant = node.tenant
    policy = node.control.configuration.policy.enable_vhost_policy
    return answer(
        {
            # without a policy a tenant's changes are refused, whatever its level
            "level": rights.level if tenant is None or policy else READ,
            "tenant": tenant is not None,
            "allowAdminStatusUpdate": rights.allow_admin_status_update,
            "allowDynamicLinkRoutes": rights.allow_dynamic_link_routes,
        }
    )


#: What the three operations about a drain answer.
_DRAIN_ANSWER: Final = (
    "a map of `state` (`serving`, `draining`, `drained`), `total` (client connections at the beginning), `closed` (by "
    "the router), `left`, `overSeconds` and `forSeconds`"
)
#: The seconds over which clients leave if a request does not say it, and the most.
DRAIN_S: Final = 60
MAX_DRAIN_S: Final = 86_400


def _shown_drain(report: DrainReport) -> OperationResult:
    return answer(
        {
            "state": report.state,
            "total": report.total,
            "closed": report.closed,
            "left": report.left,
            "overSeconds": round(report.over_s, 3),
            "forSeconds": round(report.for_s, 3),
        }
    )


@verb(
    "DRAIN",
    answer="takes no new clients from now on, and closes the connections of clients one after the other, over the "
    f"stated time: {_DRAIN_ANSWER}. The requester's own connection stays",
    level=OPERATE,
    takes=(
        Number(
            "over",
            f"the seconds over which the router closes client connections, 0 to {MAX_DRAIN_S}; default {DRAIN_S}",
            logged=True,
        ),
    ),
    changes=True,
)
async def _drain(node: Node, _: Request, over: int | None) -> OperationResult:
    over_s = DRAIN_S if over is None else over
    if not 0 <= over_s <= MAX_DRAIN_S:
        raise bad_request(f"the property 'over' is {over_s}; it must be 0 to {MAX_DRAIN_S} seconds")
    return _shown_drain(await node.control.start_drain(float(over_s)))


@verb(
    "CANCEL-DRAIN",
    answer="takes clients again, and closes no more connections; nothing changes without a drain. The same map",
    level=OPERATE,
    changes=True,
)
async def _cancel_drain(node: Node, _: Request) -> OperationResult:
    return _shown_drain(await node.control.cancel_drain())


@verb("GET-DRAIN", answer="the state of a drain: the same map", level=READ)
async def _get_drain(node: Node, _: Request) -> OperationResult:
    return _shown_drain(node.control.drain_report())


#: What the node does and GET-OPERATIONS lists, beside QUERY; an UPDATE sent to it is of the entity that its body names.
NODE_OPERATIONS: Final[dict[str, Operation]] = {
    name: each.perform for each in VERBS if each.perform is not None for name in each.names
}
