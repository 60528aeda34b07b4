"""The columns of ``router`` that cannot be configured: `stat --general` shows those with a head, /metrics those with a
series. Counts are since the start of the router.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from trouter.wire.types import UInt, ULong

from .column import COUNTER, GAUGE, Column, Form, Head, Merge, Series, count

if TYPE_CHECKING:
    from trouter.core.router import Router


@dataclass(frozen=True, slots=True)
class UplinkFacts:
    """The uplink of an edge router: why none is usable, empty if one is; since when, in microseconds since 1970."""

    fault: str
    down_since_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessFacts:
    """What the core does not know of the router."""

    connections: int = 0
    link_routes: int = 0
    auto_links: int = 0
    uptime_s: float = 0.0
    #: The size of the process's address space; None if the system does not give it.
    memory_bytes: int | None = None
    #: None for a standalone router.
    duplicate_ids: Sequence[str] | None = None
    mesh_faults: Mapping[str, int] | None = None
    logins_denied: int = 0
    turned_away: int = 0
    handshakes_refused: Mapping[str, int] = field(default_factory=dict)
    log_lines_lost: int = 0
    bugs: int = 0
    #: None for routers that are no edge routers.
    uplink: UplinkFacts | None = None
    drain_state: str = "serving"
    drain_left: int = 0


#: Those of Qpid Dispatch first, in the order of its schema.
ROUTER: Final[tuple[Column[Router, ProcessFacts], ...]] = (
    Column(
        "addrCount",
        ULong,
        "Addresses known now.",
        lambda router, _: len(router.table.entries),
        unit="addresses",
        graph=True,
        head=Head("Addresses", needs=False),
        series=Series("addresses", GAUGE, "Addresses known."),
        merge=Merge.LARGEST,
    ),
    Column(
        "linkCount",
        ULong,
        "Links attached now.",
        lambda router, _: len(router.links),
        unit="links",
        graph=True,
        head=Head("Links", needs=False),
        series=Series("links", GAUGE, "Attached links."),
    ),
    Column(
        "blockedLinkCount",
        UInt,
        "Links that have had no credit for 10 seconds.",
        lambda router, _: router.links_blocked(),
        unit="links",
        graph=True,
        twin="linksBlocked",
        head=Head("Links Blocked", alarm=True, by_twin=True),
        series=Series("links_blocked", GAUGE, "Links that have had no credit for more than 10 seconds."),
    ),
    Column(
        "nodeCount",
        ULong,
        "Other routers known now.",
        lambda router, _: len(router.network.routers),
        unit="routers",
        graph=True,
        head=Head("Nodes", needs=False),
        series=Series("routers", GAUGE, "Other routers known."),
        merge=Merge.FIRST,
    ),
    Column(
        "linkRouteCount",
        ULong,
        "Link routes configured now.",
        lambda _, facts: facts.link_routes,
        unit="link routes",
        graph=True,
        head=Head("Link Routes", needs=False),
        series=Series("link_routes", GAUGE, "Link routes, active or not."),
        merge=Merge.FIRST,
    ),
    Column(
        "autoLinkCount",
        ULong,
        "Auto links configured now.",
        lambda _, facts: facts.auto_links,
        unit="auto links",
        graph=True,
        head=Head("Auto Links", needs=False),
        series=Series("auto_links", GAUGE, "Auto links, active or not."),
        merge=Merge.FIRST,
    ),
    Column(
        "connectionCount",
        ULong,
        "Connections open now.",
        lambda _, facts: facts.connections,
        unit="connections",
        graph=True,
        head=Head("Connections", needs=False),
        series=Series("connections", GAUGE, "Open connections."),
    ),
    count(
        "presettledDeliveries",
        "Deliveries that the sender had settled already (pre-settled).",
        lambda router, _: router.shared.totals.presettled,
        Head("Presettled Count", counter=True),
        series=Series(
            "presettled_deliveries", COUNTER, "Deliveries that the sender had settled already (pre-settled)."
        ),
    ),
    count(
        "droppedPresettledDeliveries",
        "Pre-settled deliveries that were dropped, because no receiver could take them.",
        lambda router, _: router.shared.totals.dropped_presettled,
        Head("Dropped Presettled Count", counter=True, alarm=True),
        series=Series(
            "dropped_presettled_deliveries", COUNTER, "Pre-settled deliveries dropped for want of room or credit."
        ),
    ),
    count(
        "acceptedDeliveries",
        "Deliveries accepted.",
        lambda router, _: router.shared.totals.accepted,
        Head("Accepted Count", counter=True),
        series=Series("accepted_deliveries", COUNTER, "Deliveries that ended accepted."),
    ),
    count(
        "rejectedDeliveries",
        "Deliveries rejected.",
        lambda router, _: router.shared.totals.rejected,
        Head("Rejected Count", counter=True, alarm=True),
        series=Series("rejected_deliveries", COUNTER, "Deliveries that ended rejected."),
    ),
    count(
        "releasedDeliveries",
        "Deliveries released.",
        lambda router, _: router.shared.totals.released,
        Head("Released Count", counter=True),
        series=Series("released_deliveries", COUNTER, "Deliveries that ended released."),
    ),
    count(
        "modifiedDeliveries",
        "Deliveries modified.",
        lambda router, _: router.shared.totals.modified,
        Head("Modified Count", counter=True),
        series=Series("modified_deliveries", COUNTER, "Deliveries that ended modified."),
    ),
    count(
        "deliveriesDelayed1Sec",
        "Deliveries settled after 1 to 10 seconds.",
        lambda router, _: router.shared.totals.delayed_1s,
        Head("Deliveries Delayed > 1sec", counter=True),
        series=Series("deliveries_delayed_1sec", COUNTER, "Deliveries that took between 1 and 10 seconds to settle."),
    ),
    count(
        "deliveriesDelayed10Sec",
        "Deliveries settled after more than 10 seconds.",
        lambda router, _: router.shared.totals.delayed_10s,
        Head("Deliveries Delayed > 10sec", counter=True, alarm=True),
        series=Series("deliveries_delayed_10sec", COUNTER, "Deliveries that took more than 10 seconds to settle."),
    ),
    count(
        "deliveriesStuck",
        "Deliveries that have been unsettled for more than 10 seconds.",
        lambda router, _: router.deliveries_stuck(),
        Head("Deliveries Stuck > 10sec", alarm=True),
        series=Series("deliveries_stuck", GAUGE, "Deliveries that have not been settled for more than 10 seconds."),
    ),
    count(
        "deliveriesIngress",
        "Deliveries that clients sent to this router.",
        lambda router, _: router.totals.ingress,
        Head("Ingress Count", counter=True),
        series=Series("deliveries_ingress", COUNTER, "Deliveries that clients sent to this router."),
    ),
    count(
        "deliveriesEgress",
        "Deliveries that this router sent to clients.",
        lambda router, _: router.totals.egress,
        Head("Egress Count", counter=True),
        series=Series("deliveries_egress", COUNTER, "Deliveries that this router sent to clients."),
    ),
    count(
        "deliveriesTransit",
        "Deliveries passed on to other routers.",
        lambda router, _: router.totals.transit,
        Head("Transit Count", counter=True),
        series=Series("deliveries_transit", COUNTER, "Deliveries forwarded to other routers."),
    ),
    count(
        "deliveriesIngressRouteContainer",
        "Deliveries that brokers sent to this router.",
        lambda router, _: router.totals.ingress_container,
        Head("Deliveries from Route Container", counter=True),
        series=Series("deliveries_ingress_route_container", COUNTER, "Deliveries from brokers (route containers)."),
    ),
    count(
        "deliveriesEgressRouteContainer",
        "Deliveries that this router sent to brokers.",
        lambda router, _: router.totals.egress_container,
        Head("Deliveries to Route Container", counter=True),
        series=Series("deliveries_egress_route_container", COUNTER, "Deliveries to brokers (route containers)."),
    ),
    count(
        "deliveriesRedirectedToFallback",
        "Deliveries that went to a fallback consumer.",
        lambda router, _: router.totals.redirected,
        Head("Deliveries to Fallback", counter=True),
        series=Series("deliveries_redirected_to_fallback", COUNTER, "Deliveries redirected to a fallback consumer."),
    ),
    Column(
        "uptimeSeconds",
        UInt,
        "Seconds since the start of the process.",
        lambda _, facts: facts.uptime_s,
        unit="seconds",
        graph=True,
        head=Head("Uptime", Form.SPAN),
        merge=Merge.LARGEST,
    ),
    Column(
        "memoryUsage",
        ULong,
        "The memory of the program in bytes, if the system shows it.",
        lambda _, facts: facts.memory_bytes,
        unit="bytes",
        graph=True,
        optional=True,
    ),
    Column(
        "duplicateIds",
        list,
        "Ids that two routers of the network have.",
        lambda _, facts: facts.duplicate_ids,
        optional=True,
        extra=True,
    ),
    Column(
        "meshFaults",
        dict,
        "How often the router ignored a message of another router, by the fault in it.",
        lambda _, facts: facts.mesh_faults,
        unit="messages",
        optional=True,
        extra=True,
    ),
    count(
        "overdrawnDeliveries",
        "Deliveries that arrived without credit and were accepted.",
        lambda router, _: router.shared.overdrawn,
        extra=True,
    ),
    Column(
        "loginsDenied",
        ULong,
        "Logins refused since the start.",
        lambda _, facts: facts.logins_denied,
        unit="logins",
        graph=True,
        extra=True,
    ),
    Column(
        "logLinesLost",
        ULong,
        "Log lines that could not be written.",
        lambda _, facts: facts.log_lines_lost,
        unit="lines",
        graph=True,
        extra=True,
    ),
    Column(
        "bugs",
        ULong,
        "Bugs of the router itself since the start: each has ended a connection or a piece of work; the log has it.",
        lambda _, facts: facts.bugs,
        unit="bugs",
        graph=True,
        extra=True,
    ),
    Column(
        "connectionsTurnedAway",
        ULong,
        "Connections closed before their handshake since the start: a decision blocks the host, it connects too fast, "
        "or it has too many handshakes open.",
        lambda _, facts: facts.turned_away,
        unit="connections",
        graph=True,
        extra=True,
    ),
    Column(
        "handshakesRefused",
        dict,
        "Connections refused before their open since the start, by reason: sasl, tls, not-amqp, timeout, policy, "
        "limit, memory, blocked or proxy-header.",
        lambda _, facts: dict(facts.handshakes_refused),
        unit="connections",
        extra=True,
        merge=Merge.JOIN,
    ),
    Column(
        "uplinkFault",
        str,
        "Why an edge router has no usable uplink; empty while it has one, absent for other routers.",
        lambda _, facts: None if facts.uplink is None else facts.uplink.fault,
        optional=True,
        extra=True,
        merge=Merge.ANY_TEXT,
    ),
    Column(
        "uplinkDownSince",
        ULong,
        "Since when an edge router has no usable uplink, in milliseconds since 1970; absent while it has one.",
        lambda _, facts: None if facts.uplink is None else facts.uplink.down_since_us // 1000 or None,
        unit="milliseconds since 1970",
        optional=True,
        extra=True,
        merge=Merge.SMALLEST,
    ),
    Column(
        "drainState",
        str,
        "Whether the router takes clients (`serving`), closes their connections (`draining`), or has closed all "
        "(`drained`).",
        lambda _, facts: facts.drain_state,
        values=("serving", "draining", "drained"),
        head=Head("Drain"),
        extra=True,
        merge=Merge.DRAIN,
    ),
    Column(
        "drainConnectionsLeft",
        UInt,
        "The connections of clients that a drain has not closed yet; 0 without a drain.",
        lambda _, facts: facts.drain_left,
        unit="connections",
        graph=True,
        extra=True,
    ),
)
