"""The views of connections, links, addresses, and other routers."""

from __future__ import annotations

from collections.abc import Sequence

from trouter.columns.addresses import ADDRESS
from trouter.columns.connections import CONNECTION
from trouter.columns.links import LINK
from trouter.columns.network import NODE
from trouter.tools import formats

from .lookup import Lookup, address_class, address_phase, address_text, is_address, is_connection, tenant_of
from .model import Filter, Listing, Row, Rows, View, ViewField, ViewRequest, attribute, attributes_of, fields_of, simple

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


_PEER = ("id", "host", "container", "role")
_LOGIN = (
    "dir",
    ViewField("security", _security),
    ViewField("authentication", _authentication),
    ViewField("tenant", tenant_of),
)
#: The number of the worker at which a row lives, of a router with several.
_WORKER = attribute("worker", "worker", needs=True)
#: In the order of qdstat; other columns with a head follow.
CONNECTION_FIELDS = (*fields_of(CONNECTION, (*_PEER, "proto", *_LOGIN, "last dlv", "uptime")), _WORKER)
EDGE_FIELDS = (
    *fields_of(CONNECTION, (*_PEER, *_LOGIN), others=False),
    attribute("active", "active", formats.yes_or_no, needs=True),
    _WORKER,
)


def _edges(answers: Sequence[Rows]) -> list[Listing]:
    edges = [row for row in answers[0] if row.get("role") == "edge"]
    nothing = "" if answers[0] else "No Edge Router Connections"
    return [Listing("Connections", EDGE_FIELDS, edges, empty=nothing, table="connection")]


def _of_address(row: Row, wanted: str, lookup: Lookup) -> bool:
    return str(row.get("identity")) in lookup.using(wanted)


CONNECTION_FILTERS = {
    "vhost": Filter(lambda row, wanted, _: tenant_of(row) == wanted),
    "address": Filter(_of_address, links=True),
    "connection": Filter(lambda row, wanted, _: is_connection(row, wanted)),
}


_DELAYED = ("deliveriesDelayed1Sec", "deliveriesDelayed10Sec")


def _delayed(row: Row) -> object:
    """Return the number of deliveries that took more than a second; None if unknown."""
    counts = [formats.number(row.get(name)) for name in _DELAYED]
    known = [int(count) for count in counts if count is not None]
    return sum(known) if known else None


_OWNING = ("owningAddr",)
#: In the order of qdstat; other columns with a head follow.
_ONE_LINK_FIELDS = fields_of(
    LINK,
    (
        "type", "dir", "conn id", "id", "peer",
        ViewField("class", lambda row: address_class(row.get("owningAddr")), reads=_OWNING),
        ViewField("addr", lambda row: address_text(row.get("owningAddr")), reads=_OWNING),
        ViewField("phs", lambda row: address_phase(row.get("owningAddr")), reads=_OWNING),
        "cap", "pri", "undel", "unsett", "deliv", "presett", "psdrop", "acc", "rej", "rel", "mod",
        ViewField("delay", _delayed, needs="deliveriesDelayed1Sec", alarm=True, reads=_DELAYED),
        "rate", "stuck", "cred", "blkd", "admin", "oper", "name",
    ),
)  # fmt: skip
LINK_FIELDS = (*_ONE_LINK_FIELDS, _WORKER)


def _consumers(row: Row) -> object:
    """Return the local consumers of an address; for a link route, the containers that serve it."""
    is_route = str(row.get("name")).startswith(("C", "D", "E", "F"))
    return row.get("containerCount" if is_route else "subscriberCount")


_NAME = ("name",)
#: In the order of qdstat; other columns with a head follow.
ADDRESS_FIELDS = fields_of(
    ADDRESS,
    (
        ViewField("class", lambda row: address_class(row.get("name")), reads=_NAME),
        ViewField("addr", lambda row: address_text(row.get("name")), reads=_NAME),
        ViewField("phs", lambda row: address_phase(row.get("name")), reads=_NAME),
        "distrib", "pri", "in-proc",
        ViewField("local", _consumers, formats.commas, reads=("subscriberCount", "containerCount")),
        "remote", "in", "out", "thru", "fallback", "to-proc", "from-proc",
    ),
)  # fmt: skip

#: In the order of qdstat; other columns with a head follow.
NODE_FIELDS = fields_of(
    NODE,
    (
        "router-id",
        "next-hop",
        ViewField("link", lambda row: "-" if row.get("nextHop") is not None else row.get("routerLink")),
        "ver", "cost", "neighbors", "valid-origins",
    ),
)  # fmt: skip


def _nodes(answers: Sequence[Rows]) -> list[Listing]:
    changes = (formats.number(row.get("lastTopoChange")) for row in answers[0])
    last = max((change for change in changes if change is not None), default=0)
    title = "Routers in the Network"
    if last > 1:
        title += f"\nLast Topology Change: {formats.topology_time(last)}"
    return simple(title, NODE_FIELDS, "router.node", sort="router-id", empty="Router is Standalone - No Router List")(
        answers
    )


CONNECTIONS = View(
    "connections",
    ("-c", "--connections"),
    "show connections",
    (ViewRequest("connection", limited=True),),
    simple("Connections", CONNECTION_FIELDS, "connection"),
    filters=CONNECTION_FILTERS,
)

EDGES = View(
    "edges",
    ("-e", "--edge"),
    "show connections of edge routers",
    (ViewRequest("connection", limited=True),),
    _edges,
    filters=CONNECTION_FILTERS,
)

LINKS = View(
    "links",
    ("-l", "--links"),
    "show links",
    (
        ViewRequest(
            "router.link",
            attributes_of(_ONE_LINK_FIELDS, last=("priority", "settleRate")),
            limited=True,
            of_workers=_WORKER.reads,
        ),
    ),
    simple("Router Links", LINK_FIELDS, "router.link"),
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
    (ViewRequest("router.address", attributes_of(ADDRESS_FIELDS, last=("name", "priority")), limited=True),),
    simple("Router Addresses", ADDRESS_FIELDS, "router.address", sort="addr", key="name"),
    filters={
        "vhost": Filter(lambda row, wanted, _: address_text(row.get("name")).startswith(f"{wanted}/")),
        "address": Filter(lambda row, wanted, _: is_address(address_text(row.get("name")), wanted)),
        "connection": Filter(
            lambda row, wanted, lookup: row.get("name") in lookup.keys_of(wanted), connections=True, links=True
        ),
    },
)

NODES = View(
    "nodes", ("-n", "--nodes"), "show the routers of the network", (ViewRequest("router.node", limited=True),), _nodes
)
