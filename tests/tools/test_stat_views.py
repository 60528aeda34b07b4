"""Views of objects that a single router never has: other routers, edges, groups of users, prefixes, silence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from textwrap import dedent

import pytest

from trouter.tools.views import VIEWS, View
from trouter.tools.views.events import LOG
from trouter.tools.views.lookup import Lookup, address_class, address_phase, address_text
from trouter.tools.views.model import Row, Rows
from trouter.tools.views.overview import GENERAL, POLICY, POOL_FIELDS, POOLS
from trouter.tools.views.owners import OWNER_FIELDS, OWNERS
from trouter.tools.views.rates import Rates
from trouter.tools.views.render import Look, data, lines
from trouter.tools.views.routes import AUTO_LINKS, LINK_ROUTES
from trouter.tools.views.traffic import (
    ADDRESS_FIELDS,
    ADDRESSES,
    CONNECTION_FIELDS,
    CONNECTIONS,
    EDGE_FIELDS,
    EDGES,
    LINK_FIELDS,
    LINKS,
    NODE_FIELDS,
    NODES,
)
from trouter.tools.views.vhosts import VHOST_GROUPS, VHOST_STATS, VHOSTS
from trouter.tools.views.why import LINK_FIELDS as WHY_FIELDS


def shown(view: View, *answers: Rows, verbose: bool = False, csv: bool = False) -> str:
    look = Look(verbose=verbose, csv=csv)
    found = [line.rstrip() for listing in view.listings(answers) for line in lines(listing, look)]
    return "\n".join([*found, ""]) if found else ""


def table(text: str) -> str:
    return dedent(text).lstrip("\n")


def connection(**attributes: object) -> dict[str, object]:
    common: dict[str, object] = {
        "identity": "7",
        "host": "127.0.0.1:5",
        "container": "c",
        "role": "normal",
        "dir": "in",
    }
    return (
        common | {"isAuthenticated": True, "isEncrypted": False, "sasl": "ANONYMOUS", "user": "anonymous"} | attributes
    )


@pytest.mark.parametrize(
    ("attributes", "security", "authentication"),
    [
        ({"isAuthenticated": False, "sasl": None, "user": None}, "no-security", "no-auth"),
        ({}, "no-security", "anonymous-user"),  # as in Qpid Dispatch
        ({"isAuthenticated": False}, "no-security", "anonymous-user"),
        ({"sasl": "PLAIN", "user": "ann"}, "no-security", "ann(PLAIN)"),
        ({"sasl": "GSSAPI", "user": "ann", "isEncrypted": True}, "Kerberos", "ann(Kerberos)"),
        (
            {"sasl": "EXTERNAL", "user": "CN=a", "isEncrypted": True, "sslProto": "TLSv1.3", "sslCipher": "X"},
            "TLSv1.3(X)",
            "CN=a(x.509)",
        ),
        ({"sasl": "EXTERNAL", "user": None}, "no-security", "x.509"),
    ],
)
def test_a_connection_shows_its_security_and_its_authentication(
    attributes: Row, security: str, authentication: str
) -> None:
    row = connection(**attributes)
    cells = {field.head: field.value(row) for field in CONNECTIONS.listings([[row]])[0].fields}
    assert (cells["security"], cells["authentication"]) == (security, authentication)


def test_columns_that_qpid_dispatch_does_not_have_are_left_out() -> None:
    old = connection(protocol="AMQP")
    assert shown(CONNECTIONS, [old]) == table(
        """
        Connections
          id  host         container  role    proto  dir  security     authentication  tenant
          =====================================================================================
          7   127.0.0.1:5  c          normal  AMQP   in   no-security  anonymous-user
        """
    )
    new = old | {"uptimeSeconds": 61, "lastDlvSeconds": None, "tenant": "shop/"}
    assert shown(CONNECTIONS, [new]).splitlines()[-1].endswith("anonymous-user  shop    -         000:00:01:01")


def test_only_connections_of_edge_routers_are_edges() -> None:
    active = connection(role="edge", active=True, identity="8")
    standby = connection(role="edge", active=False, identity="9")
    assert shown(EDGES, [connection(active=True), active, standby]) == table(
        """
        Connections
          id  host         container  role  dir  security     authentication  tenant  active
          ====================================================================================
          8   127.0.0.1:5  c          edge  in   no-security  anonymous-user          yes
          9   127.0.0.1:5  c          edge  in   no-security  anonymous-user          no
        """
    )
    assert shown(EDGES, [connection()]) == ""
    assert shown(EDGES, []) == "No Edge Router Connections\n"


def test_routers_are_sorted_and_the_last_change_of_the_network_is_reported() -> None:
    nodes: list[Row] = [
        {"id": "C", "nextHop": "B", "routerLink": None, "lastTopoChange": 1_700_000_000, "cost": 2,
         "protocolVersion": 1, "linkState": ["B"], "validOrigins": ["A"]},
        {"id": "A", "nextHop": "(self)", "routerLink": None, "lastTopoChange": None, "cost": None,
         "protocolVersion": 1, "linkState": ["B"], "validOrigins": []},
        {"id": "B", "nextHop": None, "routerLink": 3, "lastTopoChange": 1_600_000_000, "cost": 1,
         "protocolVersion": 1, "linkState": ["A", "C"], "validOrigins": []},
    ]  # fmt: skip
    assert shown(NODES, nodes) == table(
        """
        Routers in the Network
        Last Topology Change: Tuesday Nov 14 22:13:20 2023 GMT
          router-id  next-hop  link
          ===========================
          A          (self)    -
          B          -         3
          C          B         -
        """
    )
    assert shown(NODES, nodes, verbose=True).splitlines()[-3:] == [
        "  A          (self)    -     1          ['B']       []",
        "  B          -         3     1    1     ['A', 'C']  []",
        "  C          B         -     1    2     ['B']       ['A']",
    ]
    assert shown(NODES, []) == "Router is Standalone - No Router List\n"


@pytest.mark.parametrize(
    ("key", "parts"),
    [
        ("M0orders", ("mobile", "orders", "0")),
        ("M1a/b", ("mobile", "a/b", "1")),
        ("Ltemp.x", ("local", "temp.x", "")),
        ("RB", ("router", "B", "")),
        ("AB", ("area", "B", "")),
        ("Tqdrouter", ("topo", "qdrouter", "")),
        ("Cc", ("link-in", "c", "")),
        ("Ec.#", ("link-in", "c.#", "")),
        ("Dc", ("link-out", "c", "")),
        ("Fc.#", ("link-out", "c.#", "")),
        ("HE1", ("edge", "E1", "")),
        ("?x", ("unknown: ?", "x", "")),
        (None, ("", "", "")),
    ],
)
def test_an_address_key_has_a_class_a_text_and_perhaps_a_phase(key: object, parts: tuple[str, str, str]) -> None:
    assert (address_class(key), address_text(key), address_phase(key)) == parts


def test_a_link_route_counts_containers_where_others_count_consumers() -> None:
    counts = {"subscriberCount": 1000, "containerCount": 2, "distribution": "linkBalanced", "priority": -1}
    assert shown(ADDRESSES, [counts | {"name": "M0b"}, counts | {"name": "Ca"}]) == table(
        """
        Router Addresses
          class    addr  phs  distrib       pri  local  remote  in  out  thru  fallback
          ===============================================================================
          link-in  a          linkBalanced  -    2
          mobile   b     0    linkBalanced  -    1,000
        """
    )


def test_links_add_both_kinds_of_delay() -> None:
    row = {"deliveriesDelayed1Sec": 2, "deliveriesDelayed10Sec": 3, "zeroCreditSeconds": 3_700}
    cells = {field.head: field.show(field.value(row)) for field in LINKS.listings([[row]])[0].fields}
    assert (cells["delay"], cells["blkd"]) == ("5", "01:01:40")


def test_auto_links_are_sorted_by_address() -> None:
    rows: list[Row] = [
        {"address": "b", "direction": "out", "phase": 0, "operStatus": "inactive"},
        {"address": "a", "direction": "in", "phase": 1, "externalAddress": "x", "linkRef": "9", "operStatus": "failed",
         "lastError": "Node not found: x"},
    ]  # fmt: skip
    assert shown(AUTO_LINKS, rows) == table(
        """
        AutoLinks
          addr  dir  phs  extAddr  link  status    lastErr
          ============================================================
          a     in   1    x        9     failed    Node not found: x
          b     out  0                   inactive
        """
    )
    assert shown(AUTO_LINKS, []) == "AutoLinks\nNo AutoLinks found\n"


def test_link_routes_show_prefixes_if_any_has_them() -> None:
    rows: list[Row] = [
        {"prefix": None, "pattern": "b.#", "direction": "in", "distribution": "linkBalanced", "operStatus": "inactive"},
        {"prefix": "a", "direction": "out", "distribution": "linkBalanced", "operStatus": "active"},
    ]
    assert shown(LINK_ROUTES, rows) == table(
        """
        Link Routes
          address  dir  distrib       status
          ======================================
          a        out  linkBalanced  active
          b.#      in   linkBalanced  inactive
        """
    )
    rows.append({"prefix": "c", "direction": "in", "delExternalPrefix": "x."})
    assert shown(LINK_ROUTES, rows).splitlines()[1] == (
        "  address  dir  distrib       status    add-ext-prefix  del-ext-prefix"
    )
    assert shown(LINK_ROUTES, []) == "Link Routes\nNo Link Routes found\n"


POOL = {"identity": "allocator/qdr_link_t", "typeSize": 1000, "transferBatchSize": 64, "localFreeListMax": 128,
        "totalAllocFromHeap": 2048, "heldByThreads": 2048, "batchesRebalancedToThreads": 0,
        "batchesRebalancedToGlobal": 0}  # fmt: skip


def test_pools_have_a_summary() -> None:
    other = POOL | {"identity": "allocator/qdr_address_t", "totalAllocFromHeap": 0}
    assert shown(POOLS, [POOL, other], [{"memoryUsage": 50 * 1024**2}]) == table(
        """
        Memory Pools
          type           size   batch  thread-max  total  in-threads  rebal-in  rebal-out
          =================================================================================
          qdr_address_t  1,000  64     128         0      2,048       0         0
          qdr_link_t     1,000  64     128         2,048  2,048       0         0

        Memory Summary
          VmSize    Pooled
          ====================
          50.0 MiB  1.95 MiB
        """
    )


@pytest.mark.parametrize("pools", [[], [POOL | {"totalAllocFromHeap": None}]])
def test_without_pools_there_is_no_summary(pools: Rows) -> None:
    assert shown(POOLS, pools, []) == "No memory statistics available\n"


def test_memory_that_is_not_known_is_a_dash() -> None:
    assert shown(POOLS, [POOL], []).splitlines()[-1] == "  -       1.95 MiB"


def test_owners_of_memory_are_sorted_by_size() -> None:
    request = OWNERS.requests[0]
    assert request.rows is not None
    reply = [
        {"name": "link", "size": 1024, "count": 2},
        {"name": "buffer", "size": 512, "count": 9},
        "?",
        {"name": "x"},
    ]
    older = [each.rows(reply) for each in OWNERS.requests[2:] if each.rows is not None]
    assert shown(OWNERS, request.rows(reply), [{"memoryUsage": 10 * 1024}], *older) == table(
        """
        Memory by Owner
          owner   each      count  total
          ===================================
          buffer  512       9      4.50 KiB
          link    1.00 KiB  2      2.00 KiB

        Memory Summary
          VmSize    Owned
          ====================
          10.0 KiB  6.50 KiB
        """
    )


def test_memory_is_shown_by_connection_user_vhost_and_address() -> None:
    taken = {"connections": 1, "sessions": 2, "links": 3, "messages": 2048, "output": 0, "bytes": 20_480}
    connection = {"connection": "7", "host": "10.0.0.1", "user": "ann", "vhost": "shop", **taken}
    others = {"connection": "", "host": "", "user": "", "vhost": "", "others": 9, **taken, "connections": 9}
    process = {"resident": 1 << 26, "limit": 1 << 30, "messages": 2048, "messagesLimit": 1 << 28}
    address = {"address": "orders", "links": 2, "messages": 1, "bytes": 1024}
    text = shown(OWNERS, [], [], [process], [connection, others], [], [], [address])
    assert text == table(
        """
        Memory by Owner

        Memory by Connection
          connection  host      user  vhost  sessions  links  messages  output  total
          ================================================================================
          7           10.0.0.1  ann   shop   2         3      2.00 KiB  0       20.0 KiB
          9 others                           2         3      2.00 KiB  0       20.0 KiB

        Memory by Address
          address  links  waiting  total
          ===================================
          orders   2      1        1.00 KiB

        Memory Summary
          VmSize  Resident  Limit     Messages  Messages Limit  Owned
          =============================================================
                  64.0 MiB  1.00 GiB  2.00 KiB  256 MiB         0
        """
    )


def test_a_policy_without_a_directory_shows_nil() -> None:
    row = {"maxConnections": 10, "maxMessageSize": 0, "policyDir": "", "defaultVhost": "", "enableVhostPolicy": False}
    text = shown(POLICY, [row])
    assert "  Policy Directory                (nil)\n  Default Vhost                   (nil)\n" in text
    assert "\n\nPolicy Status\n  attr " in text


GROUPS = {"admin": {"users": "ann", "maxSessions": 5, "allowDynamicSource": True}, "guests": {}}
SCHEMA = {"entityTypes": {"vhostUserGroupSettings": {"attributes": {
    "maxSenders": {"default": 2147483647}, "allowWaypointLinks": {"default": True}, "users": {}}}}}  # fmt: skip


def test_vhosts_count_their_groups() -> None:
    row = {"hostname": "h", "maxConnections": 1, "maxConnectionsPerUser": 2, "maxConnectionsPerHost": 3,
           "allowUnknownUser": False, "groups": GROUPS}  # fmt: skip
    assert shown(VHOSTS, [row]) == table(
        """
        Vhosts
          hostname  maxConnections  maxConnectionsPerUser  maxConnectionsPerHost  allowUnknownUser  groups
          ==================================================================================================
          h         1               2                      3                      False             2
        """
    )
    assert shown(VHOSTS, []) == "No Vhosts\n"


def test_an_unset_attribute_of_a_group_has_the_default_of_the_schema() -> None:
    schema = VHOST_GROUPS.requests[1].rows
    assert schema is not None
    text = shown(VHOST_GROUPS, [{"hostname": "h", "groups": GROUPS}], schema(SCHEMA))
    heads, _, admin, guests = (line.split() for line in text.splitlines()[1:5])
    for row, name, sessions, dynamic in ((admin, "admin", "5", "True"), (guests, "guests", "(nil)", "False")):
        cells = dict(zip(heads, row, strict=True))
        assert (cells["group"], cells["maxSessions"], cells["allowDynamicSource"]) == (name, sessions, dynamic)
        assert (cells["maxSenders"], cells["allowWaypointLinks"]) == ("2147483647", "True")
    assert "maxMessageSize" not in heads
    assert text.endswith(
        table(
            """
            Vhost 'h' UserGroup 'guests'
              attr           value
              =======================
              vhost          h
              group          guests
              users          (nil)
              remoteHosts    (nil)
              sources        (nil)
              targets        (nil)
              sourcePattern  (nil)
              targetPattern  (nil)
            """
        )
    )
    assert shown(VHOST_GROUPS, [], []) == "No Vhosts\n"


def test_vhost_statistics_name_the_users_and_where_they_are() -> None:
    counts = dict.fromkeys(("connectionsApproved", "connectionsDenied", "connectionsCurrent", "sessionDenied",
                            "senderDenied", "receiverDenied", "maxMessageSizeDenied"), 1)  # fmt: skip
    row = counts | {"hostname": "h", "perUserState": {"ann": ["10.0.0.1", "10.0.0.2"]}}
    assert shown(VHOST_STATS, [row]).split("\n\n")[1] == table(
        """
        Vhost User Stats
          vhost  user  remote hosts
          =======================================
          h      ann   ['10.0.0.1', '10.0.0.2']
        """
    )
    assert shown(VHOST_STATS, []) == "No Vhost Stats\n"


def test_log_entries_are_lines_also_for_other_programs() -> None:
    rows = LOG.requests[0].rows
    assert rows is not None
    entries = rows([["ROUTER", "info", "a\nb", None, None, 1_700_000_000], "?"])
    assert shown(LOG, entries).endswith(" ROUTER (info) a\\nb\n")
    assert shown(LOG, entries, csv=True) == shown(LOG, entries)
    assert shown(LOG, []) == ""


def test_the_general_view_leaves_out_absent_values() -> None:
    text = shown(GENERAL, [{"version": "1", "mode": "standalone", "id": "R", "memoryUsage": None, "linksBlocked": 2}])
    assert "VmSize" not in text
    assert "Uptime" not in text
    assert "  Links Blocked  2\n" in text


def test_a_rate_is_growth_by_time_and_nothing_when_a_counter_began_anew() -> None:
    rates = Rates()
    place = ("R", "Router Links", "7", "acc")
    for at_s, count, rate in ((10.0, 100, None), (12.0, 150, 25.0), (13.0, 20, None), (14.0, 20, 0.0)):
        rates.begin_look(at_s)
        assert rates.of(place, count) == rate
        assert rates.of((*place[:3], "rel"), None) is None


def test_rates_stand_beside_the_counters() -> None:
    rates = Rates()
    row = {"hostname": "h", "connectionsApproved": 5, "perUserState": {}}
    general = {"version": "1", "acceptedDeliveries": 5}
    look = Look(rates=rates)
    for at_s in (1.0, 2.0):
        rates.begin_look(at_s)
        flat, upright = VHOST_STATS.listings([[row]])[0], GENERAL.listings([[general]])[0]
        texts = list(lines(flat, look)), list(lines(upright, look))
        row, general = row | {"connectionsApproved": 8}, general | {"acceptedDeliveries": 1000}
    assert texts[0][1].split()[:3] == ["hostname", "connectionsApproved", "connectionsApproved/s"]
    assert texts[0][3].split()[:3] == ["h", "8", "3.0"]
    assert texts[1][1].split() == ["attr", "value", "per", "second"]
    assert texts[1][-1].split() == ["Accepted", "Count", "1000", "995"]
    found = data(upright, look)
    assert isinstance(found, dict)
    assert found["rates"] == {"acceptedDeliveries": 995.0}


def test_json_has_values_not_texts() -> None:
    listing = LINKS.listings([[{"linkType": "endpoint", "capacity": 250, "zeroCreditSeconds": 0, "peer": None}]])[0]
    found = data(listing, Look())
    assert isinstance(found, list)
    assert found[0]["capacity"] == 250
    assert found[0]["zeroCreditSeconds"] == 0
    assert found[0]["peer"] is None
    assert "name" not in found[0]


def test_no_two_views_share_an_option_or_a_name() -> None:
    flags = [flag for view in VIEWS for flag in view.flags]
    assert len(set(flags)) == len(flags)
    assert len({view.name for view in VIEWS}) == len(VIEWS)


NETWORK = Lookup(
    [
        {"identity": "1", "container": "shop", "host": "10.0.0.1:5", "tenant": "v/"},
        {"identity": "2", "container": "cart", "host": "10.0.0.2:5", "tenant": None},
    ],
    [
        {"connectionId": "1", "owningAddr": "M0orders.eu"},
        {"connectionId": "2", "owningAddr": "Ltemp.x"},
        {"connectionId": "2", "owningAddr": None},
    ],
)


@pytest.mark.parametrize(
    ("view", "name", "wanted", "row", "kept"),
    [
        (CONNECTIONS, "vhost", "v", {"tenant": "v/"}, True),
        (CONNECTIONS, "vhost", "", {"tenant": "v/"}, False),
        (CONNECTIONS, "address", "orders.*", {"identity": "1"}, True),
        (CONNECTIONS, "address", "orders.*", {"identity": "2"}, False),
        (CONNECTIONS, "connection", "cart", {"identity": "2", "container": "cart"}, True),
        (CONNECTIONS, "connection", "2", {"identity": "12", "container": "cart"}, False),
        (LINKS, "vhost", "v", {"connectionId": "1"}, True),
        (LINKS, "vhost", "v", {"connectionId": "2"}, False),
        (LINKS, "address", "orders.eu", {"owningAddr": "M0orders.eu"}, True),
        (LINKS, "address", "a[b]", {"owningAddr": "M0a[b]"}, True),
        (LINKS, "address", "orders", {"owningAddr": "M0orders.eu"}, False),
        (LINKS, "connection", "10.0.0.2:5", {"connectionId": "2"}, True),
        (ADDRESSES, "vhost", "v", {"name": "M0v/orders"}, True),
        (ADDRESSES, "vhost", "v", {"name": "M0vendor/orders"}, False),
        (ADDRESSES, "address", "*", {"name": "M0v/orders"}, True),
        (ADDRESSES, "connection", "cart", {"name": "Ltemp.x"}, True),
        (ADDRESSES, "connection", "cart", {"name": "M0orders.eu"}, False),
        (AUTO_LINKS, "address", "q?", {"address": "q1"}, True),
        (LINK_ROUTES, "address", "b.#", {"prefix": None, "pattern": "b.#"}, True),
        (VHOSTS, "vhost", "v", {"hostname": "v"}, True),
        (LOG, "connection", "cart", {"text": "[C2] Connection Opened"}, True),
        (LOG, "connection", "cart", {"text": "[C21] Connection Opened"}, False),
        (LOG, "connection", "9", {"text": "[C9][L3] gone"}, True),
    ],
)
def test_a_filter_keeps_its_rows(view: View, name: str, wanted: str, row: Row, kept: bool) -> None:
    assert view.filters[name].keep(row, wanted, NETWORK) is kept


def test_every_shown_attribute_is_requested() -> None:
    for view in VIEWS:
        request = view.requests[0]
        if request.attributes:
            asked: Sequence[str] = (*request.attributes, *request.of_workers)
            answer = [dict.fromkeys(asked, 0) | {"name": "M0a", "owningAddr": "M0a", "totalAllocFromHeap": 0}]
            known = Recorder(answer[0])
            for listing in view.listings([[known], []]):
                for field in listing.fields:
                    field.value(known)
            assert known.missed <= {"memoryUsage", "pooled"}, view.name


class Recorder(dict[str, object]):
    """A row that records the requested columns that it does not have."""

    def __init__(self, row: Row) -> None:
        super().__init__(row)
        self.missed: set[str] = set()

    def get(self, key: str, default: object = None) -> object:
        if key not in self:
            self.missed.add(key)
        return super().get(key, default)


def test_the_manual_explains_every_column() -> None:
    docs = Path(__file__).parents[2] / "docs"
    manual = (docs / "tools.md").read_text(encoding="utf-8")
    explained = set(re.findall(r"`([^`]+)`", manual.partition("### What the columns say")[2].partition("###")[0]))
    tables = (CONNECTION_FIELDS, EDGE_FIELDS, LINK_FIELDS, ADDRESS_FIELDS, NODE_FIELDS, POOL_FIELDS, OWNER_FIELDS)
    heads = {field.head for fields in (*tables, WHY_FIELDS) for field in fields}
    generated = set(re.findall(r"`([^`]+)`", (docs / "columns.md").read_text(encoding="utf-8")))
    assert heads <= explained | generated
