"""The columns of ``router.address``: `stat --address` shows those with a head. Only reachable other routers count.

Compiled, as listings have many rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trouter.wire.types import Int, Long, UInt

from .column import Column, Form, Head, Merge, count
from .links import ROUTERS

if TYPE_CHECKING:
    from trouter.core.entry import AddressEntry
    from trouter.core.router import Router

TYPE: Final = "org.apache.qpid.dispatch.router.address"
_NOTHING_OUTSTANDING: Final = (Long(0),) * ROUTERS


def _remote_hosts(router: Router, entry: AddressEntry) -> list[str]:
    """Return the other routers that listen on an address, or have containers for it."""
    return [each.id for each in entry.forwarder.remotes] or router.routes.routers_of(entry.key)


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


def _tracked(router: Router, entry: AddressEntry) -> int:
    """Return the unsettled deliveries of a balanced address to all neighbours together."""
    found = (trunk.outstanding.get(entry.forwarder) for trunk in router.network.trunks)
    return sum(each.count for each in found if each is not None)


#: Those of Qpid Dispatch first, in the order of its schema.
ADDRESS: Final[tuple[Column[Router, AddressEntry], ...]] = (
    Column("name", str, "", lambda _, entry: entry.key),
    Column("identity", str, "", lambda _, entry: entry.key),
    Column("type", str, "", lambda _, __: TYPE),
    Column(
        "distribution",
        str,
        "Distribution: which consumers get a message.",
        lambda _, entry: entry.treatment,
        values=("flood", "multicast", "closest", "balanced", "linkBalanced", "unavailable"),
        head=Head("distrib", needs=False),
    ),
    Column(
        "inProcess",
        UInt,
        "Number of consumers inside the router.",
        lambda _, entry: len(entry.forwarder.subscriptions),
        head=Head("in-proc", Form.COMMAS, needs=False, detail=True),
        merge=Merge.LARGEST,
    ),
    Column(
        "subscriberCount",
        UInt,
        "Number of consumers attached to this router.",
        lambda _, entry: len(entry.forwarder.consumers),
        graph=True,
    ),
    Column(
        "remoteCount",
        UInt,
        "Number of other routers with consumers.",
        lambda router, entry: len(_remote_hosts(router, entry)),
        graph=True,
        head=Head("remote", Form.COMMAS, needs=False),
        merge=Merge.LARGEST,
    ),
    Column(
        "containerCount",
        UInt,
        "Number of brokers to which links with this address are routed.",
        lambda router, entry: router.routes.container_count(entry.key),
        graph=True,
        merge=Merge.LARGEST,
    ),
    count(
        "deliveriesIngress",
        "Deliveries from clients of this router to the address.",
        lambda _, entry: entry.counters.ingress,
        Head("in", Form.COMMAS, needs=False, counter=True),
    ),
    count(
        "deliveriesEgress",
        "Deliveries from the address to clients of this router.",
        lambda _, entry: entry.counters.egress,
        Head("out", Form.COMMAS, needs=False, counter=True),
    ),
    count(
        "deliveriesTransit",
        "Deliveries forwarded to other routers.",
        lambda _, entry: entry.counters.transit,
        Head("thru", Form.COMMAS, needs=False, counter=True),
    ),
    count(
        "deliveriesToContainer",
        "Deliveries to consumers inside the router.",
        lambda _, entry: entry.counters.to_container,
        Head("to-proc", Form.COMMAS, needs=False, detail=True, counter=True),
    ),
    count(
        "deliveriesFromContainer",
        "Deliveries from senders inside the router.",
        lambda _, entry: entry.counters.from_container,
        Head("from-proc", Form.COMMAS, needs=False, detail=True, counter=True),
    ),
    count(
        "deliveriesIngressRouteContainer",
        "Deliveries from brokers to the address.",
        lambda _, entry: entry.counters.ingress_container,
    ),
    count(
        "deliveriesEgressRouteContainer",
        "Deliveries from the address to brokers.",
        lambda _, entry: entry.counters.egress_container,
    ),
    count(
        "deliveriesRedirectedToFallback",
        "Deliveries redirected to a fallback consumer.",
        lambda _, entry: entry.counters.redirected,
        Head("fallback", Form.COMMAS, needs=False, counter=True),
    ),
    Column(
        "key", str, "Key of the address: its class, its phase if it has one, and its text.", lambda _, entry: entry.key
    ),
    Column(
        "remoteHostRouters",
        list,
        "Ids of the other routers with consumers.",
        _remote_hosts,
        merge=Merge.JOIN,
    ),
    Column(
        "transitOutstanding",
        list,
        "Unsettled deliveries, by the router that they were forwarded to.",
        _outstanding,
        unit="deliveries",
        optional=True,
    ),
    Column(
        "trackedDeliveries",
        Long,
        "Deliveries that the router keeps until they are settled.",
        _tracked,
        unit="deliveries",
    ),
    Column(
        "priority",
        Int,
        "Priority of messages to the address; -1 if each message has its own.",
        lambda _, entry: entry.priority,
        head=Head("pri", Form.DASHED),
        merge=Merge.FIRST,
    ),
)
