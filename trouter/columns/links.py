"""The columns of ``router.link``: `stat --links` shows those with a head. Compiled, as listings have many rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeGuard

from trouter.core.addresses import EDGE
from trouter.core.pace import settled_count
from trouter.wire.types import UInt, ULong

from .column import Column, Form, Head, count

if TYPE_CHECKING:
    from trouter.core.egress import Egress
    from trouter.core.ingress import Ingress
    from trouter.core.links import Endpoint
    from trouter.core.routed import RoutedLink
    from trouter.core.router import Router

TYPE: Final = "org.apache.qpid.dispatch.router.link"
#: Routers in a histogram, by their index; this one has 0.
ROUTERS: Final = 128
DEFAULT_PRIORITY: Final = 4
_CONTROL_PRIORITY: Final = 9

_NO_ULONG: Final = ULong(0)
_NO_DELIVERIES: Final = (_NO_ULONG,) * ROUTERS


def _is_incoming(endpoint: Endpoint) -> TypeGuard[Ingress]:
    return endpoint.link.incoming


def _is_outgoing(endpoint: Endpoint) -> TypeGuard[Egress]:
    return not endpoint.link.incoming


def undelivered_of(endpoint: Endpoint) -> int:
    """Return the deliveries not sent in full (out), or the message of which too little has come to send it on (in)."""
    if _is_outgoing(endpoint):
        return endpoint.backlog
    return 1 if _is_incoming(endpoint) and endpoint.is_gathering() else 0


def unsettled_of(endpoint: Endpoint) -> int:
    """Return the deliveries that neither side has settled, without the undelivered ones."""
    partial = endpoint.link.partial if _is_incoming(endpoint) else None
    if partial is not None and _is_incoming(endpoint) and (partial.settled or endpoint.is_gathering()):
        return endpoint.unsettled - 1
    return endpoint.unsettled


def _status(router: Router, endpoint: Endpoint) -> str:
    if not endpoint.link.attached:
        return "down"
    return "quiescing" if router.shared.stopping else "up"


def _priority(endpoint: Endpoint) -> int:
    """Return the priority of the link's messages; links of clients and streams have the default."""
    if endpoint.trunk is None:
        return DEFAULT_PRIORITY
    if endpoint.trunk.is_control(endpoint):
        return _CONTROL_PRIORITY
    place = endpoint.trunk.priority_of(endpoint)
    return DEFAULT_PRIORITY if place < 0 else place


def _histogram(router: Router, endpoint: Endpoint) -> list[ULong] | None:
    """Return the deliveries to a client's outgoing link by the router at which they entered the network."""
    if not _is_outgoing(endpoint) or endpoint.trunk is not None:
        return None
    counts = [ULong(endpoint.entered_here), *_NO_DELIVERIES[1:]]
    for origin, tally in ({} if endpoint.origins is None else endpoint.origins.tallies).items():
        index = router.network.index_of(origin)
        if 0 <= index < ROUTERS:
            counts[index] = ULong(counts[index] + tally.count)
    return counts


def _kind(endpoint: Endpoint) -> str:
    """Return the kind of the link in the words of management."""
    if endpoint.trunk is not None:
        return "router-control" if endpoint.trunk.is_control(endpoint) else "inter-router"
    entry = endpoint.entry
    down = not endpoint.link.incoming and entry is not None and entry.key[0] == EDGE
    return "edge-downlink" if down else "endpoint"


def _routed_link(endpoint: Endpoint) -> RoutedLink | None:
    """Return the routed link that a link is an end of; None for other links."""
    owner = endpoint.link.holder
    if owner is None:
        return None
    from trouter.core.routed import RoutedLink  # noqa: PLC0415 - the tools read this table without the core

    return owner if isinstance(owner, RoutedLink) else None


def _owning_address(endpoint: Endpoint) -> str | None:
    """Return the key of the address; for a routed link, the key that its address would have if it were not routed."""
    routed = _routed_link(endpoint)
    if routed is not None:
        return f"M0{routed.text}"
    return None if endpoint.entry is None else endpoint.entry.key


def _peer(endpoint: Endpoint) -> str | None:
    """Return the identity of the link at the other end of a routed one; None for other links."""
    routed = _routed_link(endpoint)
    other = None if routed is None else routed.other_end(endpoint.link)
    return None if other is None else str(getattr(other.sink, "identity", 0))


def _tenant_identity(router: Router, endpoint: Endpoint) -> str | None:
    """Return the identity that the tenant sees; None for a link of no tenant."""
    from trouter.net.view import owner_of  # noqa: PLC0415 - as above

    owner = owner_of(endpoint.link)
    if owner is None or owner.tenant is None:
        return None
    return str(router.table.tenants.identities.links.show(endpoint.identity))


#: Those of Qpid Dispatch first, in the order of its schema.
LINK: Final[tuple[Column[Router, Endpoint], ...]] = (
    Column("name", str, "", lambda _, link: link.link.name),
    Column("identity", str, "", lambda _, link: str(link.identity), head=Head("id", needs=False)),
    Column("type", str, "", lambda _, __: TYPE),
    Column(
        "adminStatus",
        str,
        "Administrative state of the link; a change has no effect.",
        lambda _, __: "enabled",
        values=("enabled", "disabled"),
        default="enabled",
        update=True,
        head=Head("admin", needs=False, detail=True),
    ),
    Column(
        "operStatus",
        str,
        "Operational state of the link.",
        _status,
        values=("up", "down", "quiescing", "idle"),
        head=Head("oper", needs=False, detail=True),
    ),
    Column(
        "linkName",
        str,
        "Name of the link, from its attach.",
        lambda _, link: link.link.name,
        head=Head("name", needs=False, detail=True),
    ),
    Column(
        "linkType",
        str,
        "Type of the link: `endpoint` for links of clients and brokers, the others for links between routers.",
        lambda _, link: _kind(link),
        values=("endpoint", "router-control", "inter-router", "edge-downlink"),
        head=Head("type", needs=False),
    ),
    Column(
        "linkDir",
        str,
        "Direction of the messages: `in` to the router, `out` to the peer.",
        lambda _, link: "in" if link.link.incoming else "out",
        values=("in", "out"),
        head=Head("dir", needs=False),
    ),
    Column(
        "owningAddr",
        str,
        "Key of the address that the link is bound to.",
        lambda _, link: _owning_address(link),
        optional=True,
    ),
    Column(
        "capacity",
        UInt,
        "Largest credit that the router grants on the link.",
        lambda _, link: link.capacity,
        unit="deliveries",
        head=Head("cap", needs=False),
    ),
    Column(
        "peer",
        str,
        "For a routed link: identity of the link at its other end.",
        lambda _, link: _peer(link),
        optional=True,
        head=Head("peer", needs=False),
    ),
    count(
        "undeliveredCount",
        "Deliveries that wait for credit or room to be sent.",
        lambda _, link: undelivered_of(link),
        Head("undel", needs=False),
    ),
    count(
        "unsettledCount",
        "Deliveries sent or received on the link and not settled yet.",
        lambda _, link: unsettled_of(link),
        Head("unsett", needs=False),
    ),
    count(
        "deliveryCount",
        "Deliveries on the link since it was attached.",
        lambda _, link: link.counters.deliveries,
        Head("deliv", needs=False, counter=True),
    ),
    count(
        "presettledCount",
        "Deliveries that the sender had settled already (pre-settled).",
        lambda _, link: link.counters.presettled,
        Head("presett", needs=False, counter=True),
    ),
    count(
        "droppedPresettledCount",
        "Pre-settled deliveries that were dropped, because no receiver could take them.",
        lambda _, link: link.counters.dropped_presettled,
        Head("psdrop", counter=True, alarm=True),
    ),
    count(
        "acceptedCount",
        "Deliveries with the outcome accepted.",
        lambda _, link: link.counters.accepted,
        Head("acc", needs=False, counter=True),
    ),
    count(
        "rejectedCount",
        "Deliveries with the outcome rejected.",
        lambda _, link: link.counters.rejected,
        Head("rej", needs=False, counter=True, alarm=True),
    ),
    count(
        "releasedCount",
        "Deliveries with the outcome released.",
        lambda _, link: link.counters.released,
        Head("rel", needs=False, counter=True),
    ),
    count(
        "modifiedCount",
        "Deliveries with the outcome modified.",
        lambda _, link: link.counters.modified,
        Head("mod", needs=False, counter=True),
    ),
    count(
        "deliveriesDelayed1Sec", "Deliveries settled after 1 to 10 seconds.", lambda _, link: link.counters.delayed_1s
    ),
    count(
        "deliveriesDelayed10Sec",
        "Deliveries settled after more than 10 seconds.",
        lambda _, link: link.counters.delayed_10s,
    ),
    count(
        "deliveriesStuck",
        "Deliveries that have been unsettled for more than 10 seconds.",
        lambda router, link: router.deliveries_stuck(link.link),
        Head("stuck", alarm=True),
    ),
    Column(
        "creditAvailable",
        UInt,
        "Credit available on the link.",
        lambda _, link: link.link.credit,
        unit="deliveries",
        graph=True,
        head=Head("cred"),
    ),
    Column(
        "zeroCreditSeconds",
        UInt,
        "Seconds since the link ran out of credit; 0 while it has credit.",
        lambda router, link: router.zero_credit_s(link.link),
        unit="seconds",
        head=Head("blkd", Form.BLOCKED, alarm=True),
    ),
    Column(
        "settleRate",
        UInt,
        "Deliveries settled per second, averaged over the last five seconds.",
        lambda router, link: link.pace.rate(settled_count(link), router.shared.now_s),
        unit="deliveries a second",
        graph=True,
        head=Head("rate"),
    ),
    Column(
        "ingressHistogram",
        list,
        "Deliveries sent on the link, by the router where they entered the network.",
        _histogram,
        unit="deliveries",
        optional=True,
    ),
    Column(
        "priority", UInt, "Priority of the messages on the link.", lambda _, link: _priority(link), head=Head("pri")
    ),
    count(
        "overdrawnCount",
        "Deliveries that arrived without credit.",
        lambda _, link: link.link.overdrawn if _is_incoming(link) else 0,
        extra=True,
    ),
    Column(
        "connectionId",
        str,
        "Identity of the connection that the link belongs to.",
        lambda _, link: str(link.connection_number),
        extra=True,
        head=Head("conn id", needs=False),
    ),
    Column(
        "tenantIdentity",
        str,
        "Identity of the link as its tenant sees it.",
        _tenant_identity,
        extra=True,
        optional=True,
    ),
)
