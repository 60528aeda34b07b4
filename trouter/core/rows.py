"""The columns of links, addresses and the router in management: one table each, in the order of display.

Values have their AMQP types. Each is computed when it is read, at a cost that does not grow with the age or number of
links and addresses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from trouter.wire.types import Int, Long, UInt, ULong

from .addresses import EDGE
from .counters import Counters
from .egress import Egress
from .ingress import Ingress
from .pace import settled_count
from .routed import RoutedLink

if TYPE_CHECKING:
    from .entry import AddressEntry
    from .router import Router

Endpoint = Ingress | Egress

LINK_TYPE: Final = "org.apache.qpid.dispatch.router.link"
ADDRESS_TYPE: Final = "org.apache.qpid.dispatch.router.address"
#: Routers in a histogram, by their index; this one has 0.
ROUTERS: Final = 128
DEFAULT_PRIORITY: Final = 4

_NO_UINT: Final = UInt(0)
_NO_ULONG: Final = ULong(0)
_NO_DELIVERIES: Final = (_NO_ULONG,) * ROUTERS
_NOTHING_OUTSTANDING: Final = (Long(0),) * ROUTERS
_CONTROL_PRIORITY: Final = 9
_MAX_UINT: Final = 0xFFFFFFFF


def _uint(value: float) -> UInt:
    """Return a count or a number of seconds as a uint, cut to the largest."""
    return UInt(min(int(value), _MAX_UINT)) if value > 0 else _NO_UINT


def _ulong(value: int) -> ULong:
    return ULong(value) if value > 0 else _NO_ULONG


def _undelivered(endpoint: Endpoint) -> ULong:
    """Return the deliveries not sent in full (out), or the message of which too little has come to send it on (in)."""
    if isinstance(endpoint, Egress):
        return _ulong(endpoint.backlog)
    return _ulong(_is_gathered(endpoint))


def _is_gathered(ingress: Ingress) -> bool:
    """Return whether the link's unfinished delivery is not forwarded yet."""
    partial = ingress.link.partial
    return partial is not None and partial.message is not None and not partial.message.routed


def _unsettled(endpoint: Endpoint) -> ULong:
    """Return the deliveries that neither side has settled, without the undelivered ones."""
    if isinstance(endpoint, Egress):
        return _ulong(endpoint.unsettled)
    partial = endpoint.link.partial
    counted = partial is not None and (partial.settled or _is_gathered(endpoint))
    return _ulong(endpoint.unsettled - counted)


def _oper_status(router: Router, endpoint: Endpoint) -> str:
    if not endpoint.link.attached:
        return "down"
    return "quiescing" if router.pulse.draining else "up"


def _priority(endpoint: Endpoint) -> UInt:
    """Return the priority of the link's messages; links of clients and streams have the default."""
    if endpoint.trunk is None:
        return UInt(DEFAULT_PRIORITY)
    if endpoint.trunk.is_control(endpoint):
        return UInt(_CONTROL_PRIORITY)
    place = endpoint.trunk.priority_of(endpoint)
    return UInt(DEFAULT_PRIORITY if place < 0 else place)


def _histogram(router: Router, endpoint: Endpoint) -> list[ULong] | None:
    """Return the deliveries to a client's outgoing link by the router at which they entered the network."""
    if not isinstance(endpoint, Egress) or endpoint.trunk is not None:
        return None
    counts = [_ulong(endpoint.entered_here), *_NO_DELIVERIES[1:]]
    for origin, tally in endpoint.entered_there.items():
        index = router.network.index_of(origin)
        if 0 <= index < ROUTERS:
            counts[index] = _ulong(counts[index] + tally.count)
    return counts


def _outstanding(router: Router, entry: AddressEntry) -> list[Long] | None:
    """Return the unsettled deliveries of a balanced address by neighbour; None before the first."""
    if entry.treatment != "balanced" or entry.counters.transit == 0:
        return None
    counts = list(_NOTHING_OUTSTANDING)
    for trunk in router.network.trunks:
        under_way = trunk.outstanding.get(entry.forwarder)
        index = router.network.index_of(trunk.neighbour) if trunk.neighbour else -1
        if under_way is not None and 0 <= index < ROUTERS:
            counts[index] = Long(counts[index] + under_way.count)
    return counts


def _tracked(router: Router, entry: AddressEntry) -> Long:
    """Return the unsettled deliveries of a balanced address to all neighbours together."""
    found = (trunk.outstanding.get(entry.forwarder) for trunk in router.network.trunks)
    return Long(sum(each.count for each in found if each is not None))


def _link_type(_: Router, endpoint: Endpoint) -> str:
    """Return the kind of the link in the words of management."""
    if endpoint.trunk is not None:
        return "router-control" if endpoint.trunk.is_control(endpoint) else "inter-router"
    entry = endpoint.entry
    down = isinstance(endpoint, Egress) and entry is not None and entry.key[0] == EDGE
    return "edge-downlink" if down else "endpoint"


def _owning_address(endpoint: Endpoint) -> str | None:
    """Return the key of the address; for a routed link, the key that its address would have if it were not routed."""
    routed = endpoint.link.context
    if isinstance(routed, RoutedLink):
        return f"M0{routed.text}"
    return None if endpoint.entry is None else endpoint.entry.key


def _peer(endpoint: Endpoint) -> str | None:
    """Return the identity of the link at the other end of a routed one; None for other links."""
    routed = endpoint.link.context
    other = routed.other(endpoint.link) if isinstance(routed, RoutedLink) else None
    return None if other is None else str(getattr(other.sink, "identity", 0))


def _remote_hosts(router: Router, entry: AddressEntry) -> list[str]:
    """Return the other routers that listen on an address, or have containers for it."""
    return [each.id for each in entry.forwarder.remotes] or router.routes.routers(entry.key)


def settle_rate(router: Router, endpoint: Endpoint) -> float:
    """Return settled deliveries per second, over the last seconds (see ``Pace.rate``)."""
    return endpoint.pace.rate(settled_count(endpoint), router.pulse.now_s)


#: Column -> its value for a link.
LINK_COLUMNS: Final[dict[str, Callable[[Router, Endpoint], object]]] = {
    "name": lambda _, link: link.link.name,
    "identity": lambda _, link: str(link.identity),
    "type": lambda _, __: LINK_TYPE,
    "linkName": lambda _, link: link.link.name,
    "linkType": _link_type,
    "linkDir": lambda _, link: "in" if isinstance(link, Ingress) else "out",
    "owningAddr": lambda _, link: _owning_address(link),
    "capacity": lambda _, link: _uint(link.capacity),
    "peer": lambda _, link: _peer(link),
    "undeliveredCount": lambda _, link: _undelivered(link),
    "unsettledCount": lambda _, link: _unsettled(link),
    "deliveryCount": lambda _, link: _ulong(link.counters.deliveries),
    "connectionId": lambda _, link: str(link.connection_number),
    "adminStatus": lambda _, __: "enabled",
    "operStatus": _oper_status,
    "presettledCount": lambda _, link: _ulong(link.counters.presettled),
    "droppedPresettledCount": lambda _, link: _ulong(link.counters.dropped_presettled),
    "acceptedCount": lambda _, link: _ulong(link.counters.accepted),
    "rejectedCount": lambda _, link: _ulong(link.counters.rejected),
    "releasedCount": lambda _, link: _ulong(link.counters.released),
    "modifiedCount": lambda _, link: _ulong(link.counters.modified),
    "deliveriesDelayed1Sec": lambda _, link: _ulong(link.counters.delayed_1s),
    "deliveriesDelayed10Sec": lambda _, link: _ulong(link.counters.delayed_10s),
    "deliveriesStuck": lambda router, link: _ulong(router.deliveries_stuck(link.link)),
    "ingressHistogram": _histogram,
    "priority": lambda _, link: _priority(link),
    "settleRate": lambda router, link: _uint(settle_rate(router, link)),
    "creditAvailable": lambda _, link: _uint(link.link.credit),
    "zeroCreditSeconds": lambda router, link: _uint(router.zero_credit_s(link.link)),
    "overdrawnCount": lambda _, link: _ulong(link.link.overdrawn if isinstance(link, Ingress) else 0),
}

#: Column -> its value for an address. Only reachable other routers count.
ADDRESS_COLUMNS: Final[dict[str, Callable[[Router, AddressEntry], object]]] = {
    "name": lambda _, entry: entry.key,
    "identity": lambda _, entry: entry.key,
    "type": lambda _, __: ADDRESS_TYPE,
    "key": lambda _, entry: entry.key,
    "distribution": lambda _, entry: entry.treatment,
    "inProcess": lambda _, entry: _uint(len(entry.forwarder.subscriptions)),
    "subscriberCount": lambda _, entry: _uint(len(entry.forwarder.consumers)),
    "remoteCount": lambda router, entry: _uint(len(_remote_hosts(router, entry))),
    "containerCount": lambda router, entry: _uint(router.routes.container_count(entry.key)),
    "remoteHostRouters": _remote_hosts,
    "deliveriesIngress": lambda _, entry: _ulong(entry.counters.ingress),
    "deliveriesEgress": lambda _, entry: _ulong(entry.counters.egress),
    "deliveriesTransit": lambda _, entry: _ulong(entry.counters.transit),
    "deliveriesToContainer": lambda _, entry: _ulong(entry.counters.to_container),
    "deliveriesFromContainer": lambda _, entry: _ulong(entry.counters.from_container),
    "deliveriesEgressRouteContainer": lambda _, entry: _ulong(entry.counters.egress_container),
    "deliveriesIngressRouteContainer": lambda _, entry: _ulong(entry.counters.ingress_container),
    "transitOutstanding": _outstanding,
    "trackedDeliveries": _tracked,
    "priority": lambda _, entry: Int(entry.priority),
    "deliveriesRedirectedToFallback": lambda _, entry: _ulong(entry.counters.redirected),
}

#: Column -> its value for the router, as far as the core has it; counts are since the start.
ROUTER_COLUMNS: Final[dict[str, Callable[[Router, Counters], object]]] = {
    "addrCount": lambda router, _: _ulong(len(router.table.entries)),
    "linkCount": lambda router, _: _ulong(len(router.links)),
    "nodeCount": lambda router, _: _ulong(len(router.network.routers)),
    "presettledDeliveries": lambda _, totals: _ulong(totals.presettled),
    "droppedPresettledDeliveries": lambda _, totals: _ulong(totals.dropped_presettled),
    "acceptedDeliveries": lambda _, totals: _ulong(totals.accepted),
    "rejectedDeliveries": lambda _, totals: _ulong(totals.rejected),
    "releasedDeliveries": lambda _, totals: _ulong(totals.released),
    "modifiedDeliveries": lambda _, totals: _ulong(totals.modified),
    "deliveriesDelayed1Sec": lambda _, totals: _ulong(totals.delayed_1s),
    "deliveriesDelayed10Sec": lambda _, totals: _ulong(totals.delayed_10s),
    "deliveriesStuck": lambda router, _: _ulong(router.deliveries_stuck()),
    "deliveriesIngress": lambda router, _: _ulong(router.totals.ingress),
    "deliveriesEgress": lambda router, _: _ulong(router.totals.egress),
    "deliveriesTransit": lambda router, _: _ulong(router.totals.transit),
    "deliveriesIngressRouteContainer": lambda router, _: _ulong(router.totals.ingress_container),
    "deliveriesEgressRouteContainer": lambda router, _: _ulong(router.totals.egress_container),
    "deliveriesRedirectedToFallback": lambda router, _: _ulong(router.totals.redirected),
    "linksBlocked": lambda router, _: _uint(router.links_blocked()),
    "overdrawnDeliveries": lambda router, _: _ulong(router.pulse.overdrawn),
}


def link_row(router: Router, endpoint: Endpoint, names: Sequence[str] = ()) -> dict[str, object]:
    """Return the columns ``names`` of a link, all of them without names; KeyError for an unknown column."""
    if names:
        return {name: LINK_COLUMNS[name](router, endpoint) for name in names}
    return {name: read(router, endpoint) for name, read in LINK_COLUMNS.items()}


def address_row(router: Router, entry: AddressEntry, names: Sequence[str] = ()) -> dict[str, object]:
    """Return the columns ``names`` of an address, all of them without names; KeyError for an unknown column."""
    if names:
        return {name: ADDRESS_COLUMNS[name](router, entry) for name in names}
    return {name: read(router, entry) for name, read in ADDRESS_COLUMNS.items()}


def router_row(router: Router) -> dict[str, object]:
    """Return the core's columns of the router's row, in their order."""
    totals = router.pulse.totals
    return {name: read(router, totals) for name, read in ROUTER_COLUMNS.items()}
