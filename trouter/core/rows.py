"""Links, addresses and the router as management shows them: one table of columns each, in the order they are told.

Values carry their AMQP types. Each is read when it is asked for, so it is true at that moment, and none costs more the
longer the link or address lives or the more there are of them.
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

if TYPE_CHECKING:
    from .record import Record
    from .router import Router

Endpoint = Ingress | Egress

LINK_TYPE: Final = "org.apache.qpid.dispatch.router.link"
ADDRESS_TYPE: Final = "org.apache.qpid.dispatch.router.address"
#: Routers that a histogram tells apart, by their index; this one has 0.
ROUTERS: Final = 128
DEFAULT_PRIORITY: Final = 4

_NO_UINT: Final = UInt(0)
_NO_ULONG: Final = ULong(0)
_OTHER_ROUTERS: Final = (_NO_ULONG,) * (ROUTERS - 1)
_NOTHING_OUTSTANDING: Final = (Long(0),) * ROUTERS
_MAX_UINT: Final = 0xFFFFFFFF


def _uint(value: float) -> UInt:
    """A count or a number of seconds; one that is too large reads as the largest."""
    return UInt(min(int(value), _MAX_UINT)) if value > 0 else _NO_UINT


def _ulong(value: int) -> ULong:
    return ULong(value) if value > 0 else _NO_ULONG


def _undelivered(endpoint: Endpoint) -> ULong:
    """Out: deliveries that were not sent in full. In: the message of which too little is here to send it on."""
    if isinstance(endpoint, Egress):
        return _ulong(endpoint.backlog)
    return _ulong(_is_gathered(endpoint))


def _is_gathered(ingress: Ingress) -> bool:
    """The link's unfinished delivery is not on its way yet."""
    partial = ingress.link.partial
    return partial is not None and partial.message is not None and not partial.message.routed


def _unsettled(endpoint: Endpoint) -> ULong:
    """Deliveries that neither side settled, apart from those undelivered."""
    if isinstance(endpoint, Egress):
        return _ulong(endpoint.unsettled)
    partial = endpoint.link.partial
    counted = partial is not None and (partial.settled or _is_gathered(endpoint))
    return _ulong(endpoint.unsettled - counted)


def _oper_status(router: Router, endpoint: Endpoint) -> str:
    if not endpoint.link.attached:
        return "down"
    return "quiescing" if router.pulse.draining else "up"


def _histogram(endpoint: Endpoint) -> list[ULong] | None:
    """Deliveries of an outgoing link by the router they came in on."""
    if isinstance(endpoint, Egress):
        return [_ulong(endpoint.counters.deliveries), *_OTHER_ROUTERS]
    return None


def _link_type(_: Router, endpoint: Endpoint) -> str:
    """Whose messages it carries."""
    record = endpoint.record
    down = isinstance(endpoint, Egress) and record is not None and record.key[0] == EDGE
    return "edge-downlink" if down else "endpoint"


def settle_rate(router: Router, endpoint: Endpoint) -> float:
    """Settled deliveries per second, over the last seconds."""
    return endpoint.pace.rate(settled_count(endpoint), router.pulse.now_s)


#: Column -> its value for a link.
LINK_COLUMNS: Final[dict[str, Callable[[Router, Endpoint], object]]] = {
    "name": lambda _, link: link.link.name,
    "identity": lambda _, link: str(link.identity),
    "type": lambda _, __: LINK_TYPE,
    "linkName": lambda _, link: link.link.name,
    "linkType": _link_type,
    "linkDir": lambda _, link: "in" if isinstance(link, Ingress) else "out",
    "owningAddr": lambda _, link: None if link.record is None else link.record.key,
    "capacity": lambda _, link: _uint(link.capacity),
    "peer": lambda _, __: None,
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
    "ingressHistogram": lambda _, link: _histogram(link),
    "priority": lambda _, __: UInt(DEFAULT_PRIORITY),
    "settleRate": lambda router, link: _uint(settle_rate(router, link)),
    "creditAvailable": lambda _, link: _uint(link.link.credit),
    "zeroCreditSeconds": lambda router, link: _uint(router.zero_credit_s(link.link)),
}

#: Column -> its value for an address. What concerns other routers and route containers is nothing on a lone router.
ADDRESS_COLUMNS: Final[dict[str, Callable[[Router, Record], object]]] = {
    "name": lambda _, record: record.key,
    "identity": lambda _, record: record.key,
    "type": lambda _, __: ADDRESS_TYPE,
    "key": lambda _, record: record.key,
    "distribution": lambda _, record: record.treatment,
    "inProcess": lambda _, record: _uint(len(record.forwarder.subscriptions)),
    "subscriberCount": lambda _, record: _uint(len(record.forwarder.consumers)),
    "remoteCount": lambda _, __: _NO_UINT,
    "containerCount": lambda _, __: _NO_UINT,
    "remoteHostRouters": lambda _, __: [],
    "deliveriesIngress": lambda _, record: _ulong(record.counters.ingress),
    "deliveriesEgress": lambda _, record: _ulong(record.counters.egress),
    "deliveriesTransit": lambda _, record: _ulong(record.counters.transit),
    "deliveriesToContainer": lambda _, record: _ulong(record.counters.to_container),
    "deliveriesFromContainer": lambda _, record: _ulong(record.counters.from_container),
    "deliveriesEgressRouteContainer": lambda _, __: _NO_ULONG,
    "deliveriesIngressRouteContainer": lambda _, __: _NO_ULONG,
    "transitOutstanding": lambda _, record: list(_NOTHING_OUTSTANDING) if record.treatment == "balanced" else None,
    "trackedDeliveries": lambda _, __: Long(0),
    "priority": lambda _, record: Int(record.priority),
    "deliveriesRedirectedToFallback": lambda _, record: _ulong(record.counters.redirected),
}

#: Column -> its value for the router, as far as the core knows it; counts hold since the start.
ROUTER_COLUMNS: Final[dict[str, Callable[[Router, Counters], object]]] = {
    "addrCount": lambda router, _: _ulong(len(router.table.records)),
    "linkCount": lambda router, _: _ulong(len(router.links)),
    "nodeCount": lambda _, __: _NO_ULONG,
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
    "deliveriesIngressRouteContainer": lambda _, __: _NO_ULONG,
    "deliveriesEgressRouteContainer": lambda _, __: _NO_ULONG,
    "deliveriesRedirectedToFallback": lambda router, _: _ulong(router.totals.redirected),
    "linksBlocked": lambda router, _: _uint(router.links_blocked()),
}


def link_row(router: Router, endpoint: Endpoint, names: Sequence[str] = ()) -> dict[str, object]:
    """The columns ``names`` of a link, all of them without names; KeyError for a column that there is not."""
    if names:
        return {name: LINK_COLUMNS[name](router, endpoint) for name in names}
    return {name: read(router, endpoint) for name, read in LINK_COLUMNS.items()}


def address_row(router: Router, record: Record, names: Sequence[str] = ()) -> dict[str, object]:
    """As ``link_row``, of an address."""
    if names:
        return {name: ADDRESS_COLUMNS[name](router, record) for name in names}
    return {name: read(router, record) for name, read in ADDRESS_COLUMNS.items()}


def router_row(router: Router) -> dict[str, object]:
    """What the core counts for the router's row, in the row's order."""
    totals = router.pulse.totals
    return {name: read(router, totals) for name, read in ROUTER_COLUMNS.items()}
