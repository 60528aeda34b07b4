"""The views of connections, links, addresses, and other routers."""

from __future__ import annotations

from collections.abc import Sequence

from trouter.tools import formats

from .lookup import Lookup, address_class, address_phase, address_text, is_address, is_connection, tenant_of
from .model import Field, Filter, Listing, Request, Row, Rows, View, attribute, simple

_MECHANISMS = {"GSSAPI": "Kerberos", "EXTERNAL": "x.509"}


def _security(row: Row) -> str:
    """Return the encryption of a connection."""
    if not row.get("isEncrypted"):
        return "no-security"
    if row.get("sasl") == "GSSAPI":
        return "Kerberos"
    return f"{row.get('sslProto')}({row.get('sslCipher')})"


def _authentication(row: Row) -> object:
    """Return the peer's user with the mechanism of its login."""
    mechanism = row.get("sasl")
    if mechanism == "ANONYMOUS":
        return "anonymous-user"
    if not row.get("isAuthenticated"):
        return "no-auth"
    shown = _MECHANISMS.get(str(mechanism), mechanism)
    return f"{row.get('user')}({shown})" if row.get("user") else shown


def _yes_or_no(value: object) -> str:
    return "yes" if value else "no"


_CONNECTION_START = (
    attribute("id", "identity"),
    attribute("host", "host"),
    attribute("container", "container"),
    attribute("role", "role"),
)
_CONNECTION_END = (
    attribute("dir", "dir"),
    Field("security", _security),
    Field("authentication", _authentication),
    Field("tenant", tenant_of),
)
CONNECTION_FIELDS = (
    *_CONNECTION_START,
    attribute("proto", "protocol"),
    *_CONNECTION_END,
    attribute("last dlv", "lastDlvSeconds", formats.span, needs=True),
    attribute("uptime", "uptimeSeconds", formats.span, needs=True),
)
EDGE_FIELDS = (*_CONNECTION_START, *_CONNECTION_END, attribute("active", "active", _yes_or_no, needs=True))


def _edges(answers: Sequence[Rows]) -> list[Listing]:
    edges = [row for row in answers[0] if row.get("role") == "edge"]
    nothing = "" if answers[0] else "No Edge Router Connections"
    return [Listing("Connections", EDGE_FIELDS, edges, empty=nothing)]


def _of_address(row: Row, wanted: str, lookup: Lookup) -> bool:
    return str(row.get("identity")) in lookup.using(wanted)


CONNECTION_FILTERS = {
    "vhost": Filter(lambda row, wanted, _: tenant_of(row) == wanted),
    "address": Filter(_of_address, links=True),
    "connection": Filter(lambda row, wanted, _: is_connection(row, wanted)),
}


def _delayed(row: Row) -> object:
    """Return the number of deliveries that took more than a second; None if unknown."""
    counts = [formats.number(row.get(name)) for name in ("deliveriesDelayed1Sec", "deliveriesDelayed10Sec")]
    known = [int(count) for count in counts if count is not None]
    return sum(known) if known else None


LINK_FIELDS = (
    attribute("type", "linkType"),
    attribute("dir", "linkDir"),
    attribute("conn id", "connectionId"),
    attribute("id", "identity"),
    attribute("peer", "peer"),
    Field("class", lambda row: address_class(row.get("owningAddr"))),
    Field("addr", lambda row: address_text(row.get("owningAddr"))),
    Field("phs", lambda row: address_phase(row.get("owningAddr"))),
    attribute("cap", "capacity"),
    attribute("pri", "priority", needs=True),
    attribute("undel", "undeliveredCount"),
    attribute("unsett", "unsettledCount"),
    attribute("deliv", "deliveryCount", counter=True),
    attribute("presett", "presettledCount", counter=True),
    attribute("psdrop", "droppedPresettledCount", needs=True, counter=True, alarm=True),
    attribute("acc", "acceptedCount", counter=True),
    attribute("rej", "rejectedCount", counter=True, alarm=True),
    attribute("rel", "releasedCount", counter=True),
    attribute("mod", "modifiedCount", counter=True),
    Field("delay", _delayed, needs="deliveriesDelayed1Sec", alarm=True),
    attribute("rate", "settleRate", needs=True),
    attribute("stuck", "deliveriesStuck", needs=True, alarm=True),
    attribute("cred", "creditAvailable", needs=True),
    attribute("blkd", "zeroCreditSeconds", formats.blocked, needs=True, alarm=True),
    attribute("admin", "adminStatus", detail=True),
    attribute("oper", "operStatus", detail=True),
    attribute("name", "linkName", detail=True),
)
LINK_ATTRIBUTES = (
    "linkType", "linkDir", "connectionId", "identity", "peer", "owningAddr", "capacity", "undeliveredCount",
    "unsettledCount", "deliveryCount", "presettledCount", "droppedPresettledCount", "acceptedCount", "rejectedCount",
    "releasedCount", "modifiedCount", "deliveriesDelayed1Sec", "deliveriesDelayed10Sec", "deliveriesStuck",
    "creditAvailable", "zeroCreditSeconds", "adminStatus", "operStatus", "linkName", "priority", "settleRate",
)  # fmt: skip


def _consumers(row: Row) -> object:
    """Return the local consumers of an address; for a link route, the containers that serve it."""
    is_route = str(row.get("name")).startswith(("C", "D", "E", "F"))
    return row.get("containerCount" if is_route else "subscriberCount")


ADDRESS_FIELDS = (
    Field("class", lambda row: address_class(row.get("name"))),
    Field("addr", lambda row: address_text(row.get("name"))),
    Field("phs", lambda row: address_phase(row.get("name"))),
    attribute("distrib", "distribution"),
    attribute("pri", "priority", formats.dashed, needs=True),
    attribute("in-proc", "inProcess", formats.commas, detail=True),
    Field("local", _consumers, formats.commas),
    attribute("remote", "remoteCount", formats.commas),
    attribute("in", "deliveriesIngress", formats.commas, counter=True),
    attribute("out", "deliveriesEgress", formats.commas, counter=True),
    attribute("thru", "deliveriesTransit", formats.commas, counter=True),
    attribute("fallback", "deliveriesRedirectedToFallback", formats.commas, counter=True),
    attribute("to-proc", "deliveriesToContainer", formats.commas, detail=True, counter=True),
    attribute("from-proc", "deliveriesFromContainer", formats.commas, detail=True, counter=True),
)
ADDRESS_ATTRIBUTES = (
    "distribution", "inProcess", "subscriberCount", "remoteCount", "containerCount", "deliveriesIngress",
    "deliveriesEgress", "deliveriesRedirectedToFallback", "deliveriesTransit", "deliveriesToContainer",
    "deliveriesFromContainer", "name", "priority",
)  # fmt: skip

NODE_FIELDS = (
    attribute("router-id", "id"),
    Field("next-hop", lambda row: row.get("nextHop") or "-"),
    Field("link", lambda row: "-" if row.get("nextHop") is not None else row.get("routerLink")),
    attribute("ver", "protocolVersion", detail=True),
    Field("cost", lambda row: row.get("cost") or None, detail=True),
    attribute("neighbors", "linkState", formats.listed, detail=True),
    attribute("valid-origins", "validOrigins", formats.listed, detail=True),
)


def _nodes(answers: Sequence[Rows]) -> list[Listing]:
    changes = (formats.number(row.get("lastTopoChange")) for row in answers[0])
    last = max((change for change in changes if change is not None), default=0)
    title = "Routers in the Network"
    if last > 1:
        title += f"\nLast Topology Change: {formats.topology_time(last)}"
    return simple(title, NODE_FIELDS, sort="router-id", empty="Router is Standalone - No Router List")(answers)


CONNECTIONS = View(
    "connections",
    ("-c", "--connections"),
    "show connections",
    (Request("connection", limited=True),),
    simple("Connections", CONNECTION_FIELDS),
    filters=CONNECTION_FILTERS,
)

EDGES = View(
    "edges",
    ("-e", "--edge"),
    "show connections of edge routers",
    (Request("connection", limited=True),),
    _edges,
    filters=CONNECTION_FILTERS,
)

LINKS = View(
    "links",
    ("-l", "--links"),
    "show links",
    (Request("router.link", LINK_ATTRIBUTES, limited=True),),
    simple("Router Links", LINK_FIELDS),
    filters={
        "vhost": Filter(
            lambda row, wanted, lookup: str(row.get("connectionId")) in lookup.of_vhost(wanted), connections=True
        ),
        "address": Filter(lambda row, wanted, _: is_address(address_text(row.get("owningAddr")), wanted)),
        "connection": Filter(
            lambda row, wanted, lookup: str(row.get("connectionId")) in lookup.like(wanted), connections=True
        ),
    },
)

ADDRESSES = View(
    "addresses",
    ("-a", "--address"),
    "show addresses",
    (Request("router.address", ADDRESS_ATTRIBUTES, limited=True),),
    simple("Router Addresses", ADDRESS_FIELDS, sort="addr", key="name"),
    filters={
        "vhost": Filter(lambda row, wanted, _: address_text(row.get("name")).startswith(f"{wanted}/")),
        "address": Filter(lambda row, wanted, _: is_address(address_text(row.get("name")), wanted)),
        "connection": Filter(
            lambda row, wanted, lookup: row.get("name") in lookup.keys_of(wanted), connections=True, links=True
        ),
    },
)

NODES = View(
    "nodes", ("-n", "--nodes"), "show the routers of the network", (Request("router.node", limited=True),), _nodes
)
