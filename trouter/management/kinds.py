"""Entity types in requests: lookups, inheritance, and the operations and columns of each type."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from trouter.config.schema import EntityType
from trouter.config.types import TYPES, type_named

from .requests import shown
from .status import bad_request

MANAGEMENT: Final = "management"
NODE_TYPES: Final = frozenset({MANAGEMENT, "org.amqp.management"})
#: The name and identity of the management node.
SELF: Final = "self"

#: The columns of the types that the core reports, in the order of Qpid Dispatch.
CORE_COLUMNS: Final[dict[str, tuple[str, ...]]] = {
    "router": (
        "name", "identity", "id", "type", "mode", "area", "version", "metadata", "addrCount", "linkCount", "nodeCount",
        "linkRouteCount", "autoLinkCount", "connectionCount", "presettledDeliveries", "droppedPresettledDeliveries",
        "acceptedDeliveries", "rejectedDeliveries", "releasedDeliveries", "modifiedDeliveries", "deliveriesDelayed1Sec",
        "deliveriesDelayed10Sec", "deliveriesStuck", "deliveriesIngress", "deliveriesEgress", "deliveriesTransit",
        "deliveriesIngressRouteContainer", "deliveriesEgressRouteContainer", "deliveriesRedirectedToFallback",
        "linksBlocked", "uptimeSeconds", "memoryUsage", "workerThreads",
    ),
    "router.config.address": (
        "name", "identity", "type", "prefix", "distribution", "waypoint", "ingressPhase", "egressPhase", "pattern",
        "priority", "fallback",
    ),
    "router.config.linkRoute": (
        "name", "identity", "type", "prefix", "distribution", "connection", "containerId", "direction", "dir",
        "operStatus", "pattern", "addExternalPrefix", "delExternalPrefix",
    ),
    "router.config.autoLink": (
        "name", "identity", "type", "address", "addr", "direction", "dir", "phase", "connection", "containerId",
        "externalAddress", "externalAddr", "linkRef", "operStatus", "lastError", "fallback",
    ),
    "router.config.exchange": (
        "name", "identity", "address", "phase", "alternateAddress", "alternatePhase", "matchMethod", "bindingCount",
        "receivedCount", "droppedCount", "forwardedCount", "divertedCount",
    ),
    "router.config.binding": (
        "name", "identity", "exchangeName", "bindingKey", "nextHopAddress", "nextHopPhase", "matchedCount",
    ),
    "router.link": (
        "name", "identity", "type", "linkName", "linkType", "linkDir", "owningAddr", "capacity", "peer",
        "undeliveredCount", "unsettledCount", "deliveryCount", "connectionId", "adminStatus", "operStatus",
        "presettledCount", "droppedPresettledCount", "acceptedCount", "rejectedCount", "releasedCount",
        "modifiedCount", "deliveriesDelayed1Sec", "deliveriesDelayed10Sec", "deliveriesStuck", "ingressHistogram",
        "priority", "settleRate", "creditAvailable", "zeroCreditSeconds", "overdrawnCount",
    ),
    "router.address": (
        "name", "identity", "type", "key", "distribution", "inProcess", "subscriberCount", "remoteCount",
        "containerCount", "remoteHostRouters", "deliveriesIngress", "deliveriesEgress", "deliveriesTransit",
        "deliveriesToContainer", "deliveriesFromContainer", "deliveriesEgressRouteContainer",
        "deliveriesIngressRouteContainer", "transitOutstanding", "trackedDeliveries", "priority",
        "deliveriesRedirectedToFallback",
    ),
    "connection": (
        "name", "identity", "host", "role", "protocol", "dir", "container", "sasl", "isAuthenticated", "user",
        "isEncrypted", "sslProto", "sslCipher", "properties", "sslSsf", "tenant", "type", "ssl", "opened", "active",
        "adminStatus", "operStatus", "uptimeSeconds", "lastDlvSeconds", "enableProtocolTrace",
    ),
    "router.connection.linkRoute": ("name", "identity", "type", "pattern", "direction", "containerId"),
}  # fmt: skip


def kind_of(text: str) -> EntityType:
    """Return the type that a request names, in short or in full; Refusal if there is none."""
    kind = type_named(text)
    if kind is None:
        known = ", ".join(each.short for each in TYPES)
        raise bad_request(f"No such type '{shown(text)}'; the types are {known}")
    return kind


def is_node_type(text: str) -> bool:
    """Return whether a request with this type, and no entity, is for the management node."""
    return not text or ((kind := type_named(text)) is not None and kind.short in NODE_TYPES)


def bases_of(kind: EntityType) -> tuple[EntityType, ...]:
    """Return the types that a type extends, nearest first."""
    return tuple(base for short in kind.bases if (base := type_named(short)) is not None)


def descendants_of(base: EntityType | None) -> tuple[EntityType, ...]:
    """Return a type and all that extend it; every type for None."""
    return tuple(kind for kind in TYPES if base is None or kind is base or base.short in kind.bases)


def is_base(kind: EntityType) -> bool:
    """Return whether other types extend this one."""
    return len(descendants_of(kind)) > 1


def listed_operations(kind: EntityType, of_node: Iterable[str]) -> tuple[str, ...]:
    """Return the operations that work of a type: those of Qpid Dispatch in its order, then the others.

    ``of_node`` are those of the management node. A base type has those that all entities below it have.
    """
    others = of_node if kind.short in NODE_TYPES else kind.extra_operations
    return tuple(dict.fromkeys((*kind.operations, *kind.inherited, *others)))


def attribute_names(kind: EntityType) -> tuple[str, ...]:
    """Return the names of a type's attributes, in the schema's order."""
    return tuple(each.name for each in kind.attributes)


def query_columns(kind: EntityType) -> tuple[str, ...]:
    """Return the columns of a type in the order of Qpid Dispatch, then our own attributes."""
    shared = (each.name for each in kind.attributes if not each.extra or kind.extra)
    return tuple(dict.fromkeys((*CORE_COLUMNS.get(kind.short, ()), *shared, *attribute_names(kind))))


#: The columns of each type when a QUERY names none.
_COLUMNS: Final = {kind.short: query_columns(kind) for kind in TYPES}
#: The attributes of every type, each name once.
ALL_COLUMNS: Final = tuple(dict.fromkeys(name for kind in TYPES for name in attribute_names(kind)))


def columns_of(kind: EntityType | None) -> tuple[str, ...]:
    """Return the columns of a type for a QUERY that names none; of all types for None."""
    return ALL_COLUMNS if kind is None else _COLUMNS[kind.short]


def column_of(kind: EntityType | None, name: str) -> str | None:
    """Return the column of a type's rows (any type's for None) for a current or former name; None if unknown."""
    if name in columns_of(kind):
        return name
    for each in TYPES if kind is None else (kind,):
        attribute = each.attribute(name)
        if attribute is not None:
            return attribute.name
    return None
