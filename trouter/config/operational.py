"""The types without configuration: running objects and counters of the router, and the bases of all types."""

from __future__ import annotations

from functools import partial
from typing import Final

from trouter.config.schema import BASES, EntityType, Kind, column

NODE_OPERATIONS: Final = (
    "QUERY", "GET-TYPES", "GET-ANNOTATIONS", "GET-OPERATIONS", "GET-ATTRIBUTES", "GET-MGMT-NODES",
)  # fmt: skip

#: Declare a type of running objects or events of a router.
operational: Final = partial(EntityType, bases=BASES["operational"])

ENTITY: Final = EntityType("entity", "What every type is.", inherited=())
CONFIGURATION: Final = EntityType(
    "configurationEntity", "What can be configured.", bases=("entity",), operations=("READ",), inherited=()
)
OPERATIONAL: Final = EntityType(
    "operationalEntity", "What is or happens in a router.", bases=("entity",), operations=("READ",), inherited=()
)
NODE: Final = operational(
    "org.amqp.management",
    "The management node, as the AMQP management draft knows it.",
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
    "How much one module had to say, logged or not.",
    columns=tuple(
        column(f"{level}Count", Kind.INTEGER, f"Events of the level {level}.", graph=True)
        for level in ("trace", "debug", "info", "notice", "warning", "error", "critical")
    ),
)

LINK: Final = operational(
    "router.link",
    "A link attached to the router.",
    operations=("UPDATE",),
    core=True,
    columns=(
        column(
            "adminStatus",
            Kind.ENUM,
            "What was asked of the link.",
            values=("enabled", "disabled"),
            default="enabled",
            update=True,
        ),
        column("operStatus", Kind.ENUM, "How the link is.", values=("up", "down", "quiescing", "idle")),
        column("linkName", Kind.STRING, "The name from its attach."),
        column(
            "linkType",
            Kind.ENUM,
            "Whose messages it carries.",
            values=("endpoint", "router-control", "inter-router", "edge-downlink"),
        ),
        column("linkDir", Kind.ENUM, "Whether messages come or go.", values=("in", "out")),
        column("owningAddr", Kind.STRING, "The key of the address it is bound to."),
        column("capacity", Kind.INTEGER, "The credit that the router gives at most."),
        column("peer", Kind.STRING, "The identity of the link it is joined to, when it is routed."),
        column("undeliveredCount", Kind.INTEGER, "Deliveries that wait to be sent.", graph=True),
        column("unsettledCount", Kind.INTEGER, "Deliveries sent or received and not settled.", graph=True),
        column("deliveryCount", Kind.INTEGER, "Deliveries since it was attached.", graph=True),
        column("presettledCount", Kind.INTEGER, "Those that came settled.", graph=True),
        column("droppedPresettledCount", Kind.INTEGER, "Those that came settled and were dropped.", graph=True),
        column("acceptedCount", Kind.INTEGER, "Those accepted.", graph=True),
        column("rejectedCount", Kind.INTEGER, "Those rejected.", graph=True),
        column("releasedCount", Kind.INTEGER, "Those released.", graph=True),
        column("modifiedCount", Kind.INTEGER, "Those modified.", graph=True),
        column("deliveriesDelayed1Sec", Kind.INTEGER, "Those settled after 1 to 10 seconds.", graph=True),
        column("deliveriesDelayed10Sec", Kind.INTEGER, "Those settled after more than 10 seconds.", graph=True),
        column("deliveriesStuck", Kind.INTEGER, "Those unsettled for more than 10 seconds now.", graph=True),
        column("creditAvailable", Kind.INTEGER, "Credit left on the link.", graph=True),
        column("zeroCreditSeconds", Kind.INTEGER, "For how long there has been no credit."),
        column("settleRate", Kind.INTEGER, "Deliveries settled in a second, over the last five.", graph=True),
        column("ingressHistogram", Kind.LIST, "Deliveries sent, by the router they came into the network at."),
        column("priority", Kind.INTEGER, "The priority of the link's messages."),
        column("overdrawnCount", Kind.INTEGER, "Deliveries that came without credit.", graph=True, extra=True),
        column("connectionId", Kind.STRING, "The identity of the connection that it is on.", extra=True),
    ),
)

ADDRESS: Final = operational(
    "router.address",
    "An address that is in use.",
    core=True,
    columns=(
        column(
            "distribution",
            Kind.ENUM,
            "To which consumers a message goes.",
            values=("flood", "multicast", "closest", "balanced", "linkBalanced", "unavailable"),
        ),
        column("inProcess", Kind.INTEGER, "Consumers within the router."),
        column("subscriberCount", Kind.INTEGER, "Consumers connected to this router.", graph=True),
        column("remoteCount", Kind.INTEGER, "Other routers with consumers.", graph=True),
        column("containerCount", Kind.INTEGER, "Brokers to which links are routed.", graph=True),
        column("deliveriesIngress", Kind.INTEGER, "Deliveries that clients sent to it here.", graph=True),
        column("deliveriesEgress", Kind.INTEGER, "Deliveries sent from it to clients here.", graph=True),
        column("deliveriesTransit", Kind.INTEGER, "Deliveries passed on to other routers.", graph=True),
        column("deliveriesToContainer", Kind.INTEGER, "Deliveries to consumers within the router.", graph=True),
        column("deliveriesFromContainer", Kind.INTEGER, "Deliveries sent from within the router.", graph=True),
        column("deliveriesIngressRouteContainer", Kind.INTEGER, "Deliveries that brokers sent to it.", graph=True),
        column("deliveriesEgressRouteContainer", Kind.INTEGER, "Deliveries sent from it to brokers.", graph=True),
        column("deliveriesRedirectedToFallback", Kind.INTEGER, "Deliveries that went to a fallback.", graph=True),
        column("key", Kind.STRING, "Its class, its phase if it has one, and the address."),
        column("remoteHostRouters", Kind.LIST, "The ids of the other routers with consumers."),
        column("transitOutstanding", Kind.LIST, "Unsettled deliveries, by the router they were passed on to."),
        column("trackedDeliveries", Kind.INTEGER, "Deliveries held until they are settled."),
        column("priority", Kind.INTEGER, "The priority of its messages; -1 when each has its own."),
    ),
)

ROUTER_NODE: Final = operational(
    "router.node",
    "A router of the network.",
    columns=(
        column("id", Kind.STRING, "Its id."),
        column("protocolVersion", Kind.INTEGER, "The version of the routing protocol it speaks."),
        column("instance", Kind.INTEGER, "When it started: milliseconds since 1970, seconds from older routers."),
        column("linkState", Kind.LIST, "The ids of its neighbours."),
        column("nextHop", Kind.STRING, "The neighbour through which it is reached; `(self)` for this router."),
        column("validOrigins", Kind.LIST, "The routers whose messages to it come this way, among up to 300 routers."),
        column("address", Kind.STRING, "Its address."),
        column("routerLink", Kind.ENTITY_ID, "The link to it, when it is a neighbour."),
        column("cost", Kind.INTEGER, "What it costs to reach it."),
        column("lastTopoChange", Kind.INTEGER, "When the network changed last, in seconds since 1970."),
        column("index", Kind.INTEGER, "Its place in lists by router."),
        column("linkCosts", Kind.MAP, "What the way to each neighbour of its costs, as it says.", extra=True),
    ),
)

TOPOLOGY_CHANGE: Final = operational(
    "topologyChange",
    "A change of the network, from its first sign until the network was at rest; the last 100 are remembered.",
    extra=True,
    columns=(
        column("began", Kind.INTEGER, "When its first sign came, in milliseconds since 1970."),
        column("why", Kind.STRING, "What its first sign was."),
        column("cause", Kind.STRING, "Whose links changed, and which of its link states it was: the same everywhere."),
        column("settled", Kind.BOOLEAN, "Whether the network was at rest afterwards; else it goes on."),
        column("convergenceMs", Kind.INTEGER, "From the first sign to the last change, in milliseconds."),
        column("rounds", Kind.INTEGER, "How often the ways were set anew."),
        column("movedCount", Kind.INTEGER, "Routers that are reached another way, or no longer, or again."),
        column("moved", Kind.LIST, "Their ids, 100 of them."),
        column("reachableCount", Kind.INTEGER, "Routers in reach afterwards."),
        column("events", Kind.LIST, "What happened, a line for each thing, 50 of them."),
    ),
)

CONNECTION: Final = operational(
    "connection",
    "A connection to the router or from it.",
    extra_operations=("UPDATE",),
    core=True,
    columns=(
        column(
            "adminStatus",
            Kind.ENUM,
            "What was asked of it; `deleted` closes it.",
            values=("enabled", "deleted"),
            default="enabled",
            update=True,
        ),
        column("operStatus", Kind.ENUM, "How it is.", values=("up", "closing")),
        column("protocol", Kind.STRING, "What is spoken on it."),
        column("container", Kind.STRING, "The container id of the peer."),
        column("opened", Kind.BOOLEAN, "Whether the peer has sent its Open."),
        column("host", Kind.STRING, "The address and the port of the peer."),
        column("dir", Kind.ENUM, "Who called whom: `in` when the peer did.", values=("in", "out")),
        column("role", Kind.STRING, "The role of its listener or connector."),
        column("isAuthenticated", Kind.BOOLEAN, "Whether the peer has proved who it is."),
        column("isEncrypted", Kind.BOOLEAN, "Whether it is encrypted."),
        column("enableProtocolTrace", Kind.BOOLEAN, "Whether its frames are logged.", default=False, update=True),
        column("sasl", Kind.STRING, "The mechanism by which the peer authenticated."),
        column("user", Kind.STRING, "Who the peer is."),
        column("ssl", Kind.BOOLEAN, "Whether it uses TLS."),
        column("sslProto", Kind.STRING, "The version of TLS."),
        column("sslCipher", Kind.STRING, "The cipher."),
        column("sslSsf", Kind.INTEGER, "The strength of the cipher in bits."),
        column("tenant", Kind.STRING, "The space of addresses it is held to."),
        column("uptimeSeconds", Kind.INTEGER, "Since it was opened.", graph=True),
        column("properties", Kind.MAP, "The properties from the Open of the peer."),
        column("lastDlvSeconds", Kind.INTEGER, "Since the last delivery.", graph=True),
        column("active", Kind.BOOLEAN, "No only for an uplink that stands by.", extra=True),
    ),
)

ALLOCATOR: Final = operational(
    "allocator",
    "The memory that objects of one kind take.",
    columns=(
        column("typeName", Kind.STRING, "What the objects are."),
        column("typeSize", Kind.INTEGER, "The size of one in bytes."),
        column("transferBatchSize", Kind.INTEGER, "How many are moved between pools at once."),
        column("localFreeListMax", Kind.INTEGER, "How many a thread keeps at most.", graph=True),
        column("globalFreeListMax", Kind.INTEGER, "How many the program keeps at most.", graph=True),
        column("totalAllocFromHeap", Kind.INTEGER, "How many there are.", graph=True),
        column("totalFreeToHeap", Kind.INTEGER, "How many were given back.", graph=True),
        column("heldByThreads", Kind.INTEGER, "How many are in use.", graph=True),
        column("batchesRebalancedToThreads", Kind.INTEGER, "Batches moved to threads.", graph=True),
        column("batchesRebalancedToGlobal", Kind.INTEGER, "Batches moved from threads.", graph=True),
    ),
)

VHOST_STATS: Final = operational(
    "vhostStats",
    "What was allowed and refused under a host name.",
    columns=(
        column("id", Kind.STRING, "The host name."),
        column("hostname", Kind.STRING, "The host name."),
        column("connectionsApproved", Kind.INTEGER, "Connections allowed.", graph=True),
        column("connectionsDenied", Kind.INTEGER, "Connections refused.", graph=True),
        column("connectionsCurrent", Kind.INTEGER, "Connections open now.", graph=True),
        column("perUserState", Kind.MAP, "The connections of each user."),
        column("perHostState", Kind.MAP, "The connections from each host."),
        column("sessionDenied", Kind.INTEGER, "Sessions refused.", graph=True),
        column("senderDenied", Kind.INTEGER, "Senders refused.", graph=True),
        column("receiverDenied", Kind.INTEGER, "Receivers refused.", graph=True),
        column("maxMessageSizeDenied", Kind.INTEGER, "Messages refused as too large.", graph=True),
        column("quotaAlarms", Kind.INTEGER, "Alarms about quotas, those of its groups too.", graph=True, extra=True),
        column("quotaAlarmsRaised", Kind.LIST, "Those that are raised now.", extra=True),
    ),
)

AUTH_LOCKOUT: Final = operational(
    "authLockout",
    "Failed logins of a user from a place, or of all from a place, while they are remembered.",
    extra=True,
    operations=("DELETE",),
    columns=(
        column("host", Kind.STRING, "The place: an address, or an IPv6 network of 64 bits."),
        column("user", Kind.STRING, "The user whose name was tried; nothing where all from the place are meant."),
        column("failures", Kind.INTEGER, "Failed logins since the first that is remembered.", graph=True),
        column("delaySeconds", Kind.INTEGER, "How long the next login has to wait."),
        column("locked", Kind.BOOLEAN, "Whether the user is locked out there."),
        column("lockedSeconds", Kind.INTEGER, "For how long yet."),
    ),
)

DECISION: Final = operational(
    "decision",
    "A decision about a user, a host or a tenant that was sent to the router, while it is in force.",
    extra=True,
    operations=("DELETE",),
    columns=(
        column("id", Kind.STRING, "The id that it came with."),
        column("action", Kind.ENUM, "What is done.", values=("lock-user", "block-host", "slow-tenant")),
        column("subject", Kind.STRING, "About whom: the user, the address of the host, or the tenant."),
        column("vhost", Kind.STRING, "The vhost or tenant that the user is locked out of; nothing for all."),
        column("rate", Kind.INTEGER, "The messages a second that the tenant is held to."),
        column("reason", Kind.STRING, "Why, as the decision says."),
        column("evidence", Kind.LIST, "The numbers of records that it rests upon."),
        column("decidedBy", Kind.STRING, "The user who sent it."),
        column("secondsLeft", Kind.INTEGER, "For how long yet."),
    ),
)

FINDING: Final = operational(
    "finding",
    "What is to be told of the configuration in force: what is not served, what is unsafe, what is worth knowing.",
    extra=True,
    columns=(
        column("severity", Kind.ENUM, "How much it matters.", values=("problem", "unsafe", "warning", "accepted")),
        column("entity", Kind.STRING, "The identity of what it is about, if that is one entity."),
        column("section", Kind.STRING, "The section of the file."),
        column("attribute", Kind.STRING, "The attribute, where it is about one."),
        column("message", Kind.STRING, "The consequence: what will not be served, or who is let in."),
        column("cure", Kind.STRING, "What to write."),
        column("place", Kind.STRING, "Where it stands: file, line and column."),
        column("point", Kind.STRING, "The row of the migration table, where it has one."),
        column("page", Kind.STRING, "The page of the manual."),
        column("reason", Kind.STRING, "Why the operator accepts it, where the file says so."),
    ),
)

DENIAL: Final = operational(
    "denial",
    "What a peer was denied lately, refused logins too; the last 100 that differ are remembered.",
    extra=True,
    columns=(
        column("at", Kind.INTEGER, "When it happened last, in milliseconds since 1970."),
        column("count", Kind.INTEGER, "How often it happened while it is remembered.", graph=True),
        column(
            "operation", Kind.STRING, "What was denied: `login`, `accept`, `open`, `begin`, `attach`, `send`, `manage`."
        ),
        column("reason", Kind.STRING, "Why, as records call it."),
        column("user", Kind.STRING, "The user, as far as it is known."),
        column("host", Kind.STRING, "The address that the connection came from."),
        column("vhost", Kind.STRING, "The vhost that decided."),
        column("rule", Kind.STRING, "The rule that decided, as in docs/policy.md; of a login the listener."),
        column("about", Kind.STRING, "The address, the request, the host name or the mechanism that it was about."),
    ),
)

CONNECTION_LINK_ROUTE: Final = EntityType(
    "router.connection.linkRoute",
    "A link route that a client makes for its own connection.",
    bases=BASES["configuration"],
    operations=("CREATE", "DELETE"),
    core=True,
    columns=(
        column("pattern", Kind.STRING, "Matches by tokens between `.` or `/`.", required=True),
        column(
            "direction",
            Kind.ENUM,
            "Whose links: `in` of senders, `out` of receivers.",
            values=("in", "out"),
            required=True,
        ),
        column("containerId", Kind.STRING, "The container id of the client."),
    ),
)
