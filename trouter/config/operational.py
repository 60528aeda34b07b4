"""The types without configuration: running objects and counters of the router, and the bases of all types."""

from __future__ import annotations

from functools import partial
from typing import Final

from trouter.columns.addresses import ADDRESS as ADDRESS_COLUMNS
from trouter.columns.connections import CONNECTION as CONNECTION_COLUMNS
from trouter.columns.links import LINK as LINK_COLUMNS
from trouter.config.schema import BASES, EntityType, Kind, column, shown

NODE_OPERATIONS: Final = (
    "QUERY", "GET-TYPES", "GET-ANNOTATIONS", "GET-OPERATIONS", "GET-ATTRIBUTES", "GET-MGMT-NODES",
)  # fmt: skip

#: Declare a type of running objects or events of a router.
operational: Final = partial(EntityType, bases=BASES["operational"])

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
    columns=tuple(
        column(f"{level}Count", Kind.INTEGER, f"Number of events of the level {level}.", graph=True)
        for level in ("trace", "debug", "info", "notice", "warning", "error", "critical")
    ),
)

LINK: Final = operational(
    "router.link",
    "A link attached to the router.",
    operations=("UPDATE",),
    core=True,
    columns=shown(LINK_COLUMNS),
)

ADDRESS: Final = operational(
    "router.address",
    "An address in use on the router.",
    core=True,
    columns=shown(ADDRESS_COLUMNS),
)

ROUTER_NODE: Final = operational(
    "router.node",
    "A router of the network.",
    columns=(
        column("id", Kind.STRING, "Id of the router."),
        column("protocolVersion", Kind.INTEGER, "Version of the routing protocol that the router uses."),
        column(
            "instance", Kind.INTEGER, "Start time of the router: milliseconds since 1970, for Qpid Dispatch seconds."
        ),
        column("linkState", Kind.LIST, "Ids of the neighbours of the router."),
        column(
            "nextHop",
            Kind.STRING,
            "Next hop: the neighbour through which the router is reached; `(self)` for this router.",
        ),
        column(
            "validOrigins",
            Kind.LIST,
            "Valid origins: routers whose messages to it pass through this one, in networks of up to 300.",
        ),
        column("address", Kind.STRING, "Address of the router."),
        column("routerLink", Kind.ENTITY_ID, "Link to the router, if it is a neighbour."),
        column("cost", Kind.INTEGER, "Cost of the path to the router."),
        column("lastTopoChange", Kind.INTEGER, "Time of the last change of the topology, in seconds since 1970."),
        column("index", Kind.INTEGER, "Index of the router in lists by router."),
        column(
            "linkCosts",
            Kind.MAP,
            "Cost of each of the router's links, by neighbour, as the router advertises them.",
            extra=True,
        ),
    ),
)

TOPOLOGY_CHANGE: Final = operational(
    "topologyChange",
    "A change of the topology, from the first event until the paths were stable again; the router keeps the last 100.",
    extra=True,
    columns=(
        column("began", Kind.INTEGER, "Time of the first event, in milliseconds since 1970."),
        column("why", Kind.STRING, "The first event."),
        column(
            "cause",
            Kind.STRING,
            "Router whose links changed, and the sequence number of its link state; the same at every router.",
        ),
        column("settled", Kind.BOOLEAN, "Whether the change is complete; if not, it is under way."),
        column(
            "convergenceMs", Kind.INTEGER, "Time from the first event to the last change of a path, in milliseconds."
        ),
        column("rounds", Kind.INTEGER, "Number of recomputations of the paths."),
        column(
            "movedCount",
            Kind.INTEGER,
            "Number of routers whose path changed, that became unreachable, or reachable again.",
        ),
        column("moved", Kind.LIST, "Ids of these routers, at most 100."),
        column("reachableCount", Kind.INTEGER, "Number of reachable routers after the change."),
        column("events", Kind.LIST, "What happened: a line for each event, at most 50."),
    ),
)

CONNECTION: Final = operational(
    "connection",
    "A connection that a peer or the router has opened.",
    extra_operations=("UPDATE",),
    core=True,
    columns=shown(CONNECTION_COLUMNS),
)

ALLOCATOR: Final = operational(
    "allocator",
    "Memory used by objects of one type.",
    columns=(
        column("typeName", Kind.STRING, "Type of the objects."),
        column("typeSize", Kind.INTEGER, "Size of an object, in bytes."),
        column("transferBatchSize", Kind.INTEGER, "Number of objects moved between pools at once."),
        column("localFreeListMax", Kind.INTEGER, "Largest number of free objects that a thread keeps.", graph=True),
        column("globalFreeListMax", Kind.INTEGER, "Largest number of free objects that the process keeps.", graph=True),
        column("totalAllocFromHeap", Kind.INTEGER, "Number of objects allocated.", graph=True),
        column("totalFreeToHeap", Kind.INTEGER, "Number of objects freed.", graph=True),
        column("heldByThreads", Kind.INTEGER, "Number of objects in use.", graph=True),
        column("batchesRebalancedToThreads", Kind.INTEGER, "Number of batches moved to threads.", graph=True),
        column("batchesRebalancedToGlobal", Kind.INTEGER, "Number of batches moved from threads.", graph=True),
    ),
)

VHOST_STATS: Final = operational(
    "vhostStats",
    "Connections, sessions, links and messages that a vhost allowed and refused.",
    columns=(
        column("id", Kind.STRING, "Host name of the vhost."),
        column("hostname", Kind.STRING, "Host name of the vhost."),
        column("connectionsApproved", Kind.INTEGER, "Number of connections allowed.", graph=True),
        column("connectionsDenied", Kind.INTEGER, "Number of connections refused.", graph=True),
        column("connectionsCurrent", Kind.INTEGER, "Number of open connections.", graph=True),
        column("perUserState", Kind.MAP, "Open connections by user."),
        column("perHostState", Kind.MAP, "Open connections by host."),
        column("sessionDenied", Kind.INTEGER, "Number of sessions refused.", graph=True),
        column("senderDenied", Kind.INTEGER, "Number of senders refused.", graph=True),
        column("receiverDenied", Kind.INTEGER, "Number of receivers refused.", graph=True),
        column(
            "maxMessageSizeDenied", Kind.INTEGER, "Number of messages refused because they were too large.", graph=True
        ),
        column(
            "quotaAlarms", Kind.INTEGER, "Number of quota alarms of the vhost and its groups.", graph=True, extra=True
        ),
        column("quotaAlarmsRaised", Kind.LIST, "Quota alarms that are active.", extra=True),
    ),
)

AUTH_LOCKOUT: Final = operational(
    "authLockout",
    "Recent failed logins of one user from one host, or of all users from one host.",
    extra=True,
    operations=("DELETE",),
    columns=(
        column("host", Kind.STRING, "Host: an address, or an IPv6 network of 64 bits."),
        column("user", Kind.STRING, "User name that was tried; absent for all users from the host."),
        column("failures", Kind.INTEGER, "Number of failed logins that count.", graph=True),
        column("delaySeconds", Kind.INTEGER, "Seconds that the next login has to wait."),
        column("locked", Kind.BOOLEAN, "Whether the user is locked out at the host."),
        column("lockedSeconds", Kind.INTEGER, "Seconds until the lockout ends."),
    ),
)

DECISION: Final = operational(
    "decision",
    "A decision in force: a program sent it to lock a user, to block a host or to slow a tenant.",
    extra=True,
    operations=("DELETE",),
    columns=(
        column("id", Kind.STRING, "Id of the decision, given by its sender."),
        column("action", Kind.ENUM, "Action of the router.", values=("lock-user", "block-host", "slow-tenant")),
        column("subject", Kind.STRING, "Subject of the decision: the user, the address of the host, or the tenant."),
        column("vhost", Kind.STRING, "Vhost or tenant from which the user is locked out; absent for all."),
        column("rate", Kind.INTEGER, "Messages per second to which the tenant is limited."),
        column("reason", Kind.STRING, "Reason that the sender gave."),
        column("evidence", Kind.LIST, "Numbers of the records that justify the decision."),
        column("decidedBy", Kind.STRING, "User who sent the decision."),
        column("secondsLeft", Kind.INTEGER, "Seconds remaining."),
    ),
)

FINDING: Final = operational(
    "finding",
    "A finding about the configuration in force: what is not served, what is unsafe, what is worth knowing.",
    extra=True,
    columns=(
        column("severity", Kind.ENUM, "Severity of the finding.", values=("problem", "unsafe", "warning", "accepted")),
        column("entity", Kind.STRING, "Identity of the entity concerned, if it is one entity."),
        column("section", Kind.STRING, "Section of the configuration file."),
        column("attribute", Kind.STRING, "Attribute concerned, if it is one attribute."),
        column("message", Kind.STRING, "Consequence: what is not served, or who is admitted."),
        column("cure", Kind.STRING, "What to write instead."),
        column("place", Kind.STRING, "Place in the configuration: file, line and column."),
        column("point", Kind.STRING, "Row of the table of the migration page, if there is one."),
        column("page", Kind.STRING, "Page of the manual about it."),
        column("reason", Kind.STRING, "Reason for which the operator accepts the finding, if the file gives one."),
    ),
)

DENIAL: Final = operational(
    "denial",
    "A recent denial, also of a login; the router keeps the last 100 different ones.",
    extra=True,
    columns=(
        column("at", Kind.INTEGER, "Time of the last occurrence, in milliseconds since 1970."),
        column("count", Kind.INTEGER, "Number of occurrences.", graph=True),
        column(
            "operation",
            Kind.STRING,
            "Operation denied: `login`, `accept`, `open`, `begin`, `attach`, `send` or `manage`.",
        ),
        column("reason", Kind.STRING, "Reason, as in records."),
        column("user", Kind.STRING, "User, if known."),
        column("host", Kind.STRING, "Host from which the connection came."),
        column("vhost", Kind.STRING, "Vhost whose policy denied it."),
        column("rule", Kind.STRING, "Rule that denied it, as in docs/policy.md; for a login, the listener."),
        column(
            "about", Kind.STRING, "Object of the operation: the address, the request, the host name or the mechanism."
        ),
    ),
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
