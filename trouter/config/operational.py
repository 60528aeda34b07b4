"""The types without configuration: running objects and counters of the router, and the bases of all types."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from trouter.columns import network, process, security
from trouter.columns.addresses import ADDRESS as ADDRESS_COLUMNS
from trouter.columns.column import Column
from trouter.columns.connections import CONNECTION as CONNECTION_COLUMNS
from trouter.columns.links import LINK as LINK_COLUMNS
from trouter.config.entities.base import DECLARED
from trouter.config.schema import BASES, EntityType, Kind, column, shown

NODE_OPERATIONS: Final = (
    "QUERY", "GET-TYPES", "GET-ANNOTATIONS", "GET-OPERATIONS", "GET-ATTRIBUTES", "GET-MGMT-NODES",
)  # fmt: skip


def operational(short: str, doc: str, columns: Iterable[Column[Any, Any]] = (), **settings: Any) -> EntityType:
    """Declare a type of running objects or events of a router; the settings are those of EntityType."""
    kind = EntityType(short, doc, columns=shown(columns), bases=BASES["operational"], **settings)
    DECLARED.append(kind)
    return kind


ENTITY: Final = EntityType("entity", "The base of all types.", inherited=())
CONFIGURATION: Final = EntityType(
    "configurationEntity",
    "The base of all types that can be configured.",
    bases=("entity",),
    operations=("READ",),
    inherited=(),
)
OPERATIONAL: Final = EntityType(
    "operationalEntity",
    "The base of all types of running objects, counters and events of a router.",
    bases=("entity",),
    operations=("READ",),
    inherited=(),
)
NODE: Final = operational(
    "org.amqp.management",
    "The management node as the draft of AMQP Management defines it.",
    operations=NODE_OPERATIONS,
)
MANAGEMENT_NODE: Final = EntityType(
    "management",
    "The management node of a router.",
    bases=("org.amqp.management", *BASES["operational"]),
    operations=("GET-SCHEMA", "GET-JSON-SCHEMA", "GET-LOG", "PROFILE"),
    inherited=(*NODE_OPERATIONS, "READ"),
    singleton=True,
)

LOG_STATS: Final = operational(
    "logStats",
    "Number of log events of one module, written or not.",
    columns=process.LOG_STATS,
    parted=True,
)

LINK: Final = operational(
    "router.link",
    "A link attached to the router.",
    operations=("UPDATE",),
    core=True,
    columns=LINK_COLUMNS,
)

ADDRESS: Final = operational(
    "router.address",
    "An address in use on the router.",
    core=True,
    columns=ADDRESS_COLUMNS,
    parted=True,
)

ROUTER_NODE: Final = operational(
    "router.node",
    "A router of the network.",
    columns=network.NODE,
)

TOPOLOGY_CHANGE: Final = operational(
    "topologyChange",
    "A change of the topology, from the first event until the paths were stable again; the router keeps the last 100.",
    extra=True,
    columns=network.CHANGE,
)

CONNECTION: Final = operational(
    "connection",
    "A connection that a peer or the router has opened.",
    extra_operations=("UPDATE",),
    core=True,
    columns=CONNECTION_COLUMNS,
)

ALLOCATOR: Final = operational(
    "allocator",
    "Memory used by objects of one type.",
    columns=process.ALLOCATOR,
    parted=True,
)

VHOST_STATS: Final = operational(
    "vhostStats",
    "Connections, sessions, links and messages that a vhost allowed and refused.",
    columns=security.VHOST,
    parted=True,
)

AUTH_LOCKOUT: Final = operational(
    "authLockout",
    "Recent failed logins of one user from one host, or of all users from one host.",
    extra=True,
    operations=("DELETE",),
    columns=security.LOCKOUT,
    parted=True,
)

DECISION: Final = operational(
    "decision",
    "A decision in force: a program sent it to lock a user, to block a host or to slow a tenant.",
    extra=True,
    operations=("DELETE",),
    columns=security.DECISION,
    parted=True,
)

FINDING: Final = operational(
    "finding",
    "A finding about the configuration in force: what is not served, what is unsafe, what is worth knowing.",
    extra=True,
    columns=process.FINDING,
)

DENIAL: Final = operational(
    "denial",
    "A recent denial, also of a login; the router keeps the last 100 different ones.",
    extra=True,
    columns=security.DENIAL,
)

ALARM: Final = operational(
    "alarm",
    "A recent alarm that was raised or cleared; the router keeps the last 100 different ones.",
    extra=True,
    columns=security.ALARM,
)

CONNECTION_LINK_ROUTE: Final = EntityType(
    "router.connection.linkRoute",
    "A link route that a client makes for its own connection.",
    bases=BASES["configuration"],
    operations=("CREATE", "DELETE"),
    core=True,
    columns=(
        column("pattern", Kind.STRING, "Pattern of the addresses, by tokens between `.` or `/`.", required=True),
        column(
            "direction",
            Kind.ENUM,
            "Direction of the links: `in` for senders, `out` for receivers.",
            values=("in", "out"),
            required=True,
        ),
        column("containerId", Kind.STRING, "Container id of the client."),
    ),
)
