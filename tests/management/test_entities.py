"""READ, and the ways to name an entity in a request (management.md 6 and 8)."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

import pytest
from proton import int32, uint, ulong

from tests.management.node import PREFIX, Node, node_of
from tests.routers import WORKERS, running

#: Type, name and identity of one entity each, in the spelling that is unique among all types.
ENTITIES = [
    ("router", "router/R", "router/R"),
    ("listener", "l0", "listener/127.0.0.1:0:l0"),
    ("connector", "out", "connector/127.0.0.1:1:out"),
    ("log", "log/DEFAULT", "log/DEFAULT"),
    ("logStats", "AGENT", "logStats/AGENT"),
    ("policy", "policy/None", "policy/None"),
    ("vhost", "vhost/example.com", "vhost/example.com"),
    ("vhostStats", "vhostStats/example.com", "vhostStats/example.com"),
    ("allocator", "allocator/qdr_address_t", "allocator/qdr_address_t"),
    ("management", "self", "self"),
    ("router.config.address", "near", "address/0"),
    ("router.config.address", "address/1", "address/1"),
    ("router.config.linkRoute", "linkRoute/0", "linkRoute/0"),
    ("router.config.autoLink", "autoLink/0", "autoLink/0"),
]


@pytest.mark.parametrize(("kind", "name", "identity"), ENTITIES)
def test_an_entity_is_read_by_name_and_by_identity_with_and_without_its_type(
    node: Node, kind: str, name: str, identity: str
) -> None:
    for by in ({"name": name}, {"identity": identity}, {"name": name, "identity": identity}):
        for type_ in ({}, {"type": kind}, {"type": PREFIX + kind}):
            assert node.get("READ", **by, **type_)["type"] == PREFIX + kind


@pytest.mark.parametrize("base", ["entity", "configurationEntity", PREFIX + "configurationEntity"])
def test_a_base_type_is_good_enough(node: Node, base: str) -> None:
    assert node.get("READ", type=base, name="l0")["type"] == PREFIX + "listener"


def test_the_router_has_its_counts_for_every_requester(node: Node) -> None:
    row = node.get("READ", type="router", identity="1")
    assert (row["name"], row["identity"], row["id"], row["mode"], row["area"]) == ("R", "1", "R", "standalone", "0")
    assert row["connectionCount"] >= 1
    assert row["linkCount"] >= 2
    assert (type(row["linkCount"]), type(row["uptimeSeconds"]), type(row["workerThreads"])) == (ulong, uint, int32)
    assert (row["workerThreads"], row["hostName"]) == (WORKERS, platform.node())
    assert row["memoryUsage"] > os.sysconf("SC_PAGE_SIZE")
    assert node.get("READ", name="R", type="router")["identity"] == "1"


def test_the_router_shows_the_time_limit_of_a_handshake_that_is_in_force(node: Node) -> None:
    assert node.get("READ", type="listener", name="l0")["initialHandshakeTimeoutSeconds"] == 10
    described = node.node("GET-SCHEMA")["entityTypes"]["listener"]["attributes"]["initialHandshakeTimeoutSeconds"]
    assert "default" not in described  # 0, as in Qpid Dispatch's schema


def test_a_connection_is_read_by_either(node: Node) -> None:
    row = node.query("connection")[0]
    assert re.fullmatch(r"\d+", row["identity"])
    assert row["name"].startswith("connection/127.0.0.1:")
    for by in ({"identity": row["identity"]}, {"name": row["name"]}):
        read = node.get("READ", type="connection", **by)
        assert (read["container"], read["role"], read["opened"], read["user"]) == (
            node.connection.container.container_id, "normal", True, "anonymous",
        )  # fmt: skip


def test_a_link_is_read_by_either(node: Node) -> None:
    row = next(row for row in node.query("router.link") if row["linkDir"] == "out")
    for by in ({"identity": row["identity"]}, {"name": row["name"]}):
        read = node.get("READ", type="router.link", **by)
        assert read["owningAddr"].startswith("Ltemp.")
        assert read["peer"] is None


def test_an_address_is_read_by_its_key(node: Node) -> None:
    read = node.get("READ", type="router.address", name="M0$management")
    assert (read["identity"], read["inProcess"], read["distribution"]) == ("M0$management", 1, "closest")


def test_configured_addresses_have_two_identities(node: Node) -> None:
    row = node.get("READ", type="router.config.address", name="near")
    assert re.fullmatch(r"\d+", row["identity"])
    assert (row["prefix"], row["pattern"], row["distribution"], row["fallback"]) == ("near", None, "closest", False)
    assert node.get("READ", type="router.config.address", identity=row["identity"]) == row
    assert node.get("READ", type="router.config.address", identity="address/0") == row


def test_routes_have_old_and_new_names_and_show_that_they_are_inactive(node: Node) -> None:
    auto = node.get("READ", type="router.config.autoLink", name="autoLink/0")
    assert (auto["address"], auto["addr"], auto["direction"], auto["dir"]) == ("queue", "queue", "in", "in")
    assert (auto["operStatus"], auto["externalAddr"]) == ("inactive", None)
    assert (auto["lastError"], auto["linkRef"]) == (None, None)
    route = node.get("READ", type="router.config.linkRoute", name="linkRoute/0")
    assert (route["direction"], route["dir"], route["operStatus"]) == ("in", "in", "inactive")


AS_WRITTEN = """
router { id: R }
listener { host: 127.0.0.1, port: 0 }
linkRoute { prefix: pulp., direction: in, containerId: B }
linkRoute { pattern: a.#.*.b, direction: in, containerId: B }
address { prefix: devices/, distribution: multicast }
"""


def test_prefixes_and_patterns_are_shown_as_the_file_has_them(tmp_path: Path) -> None:
    """A tool that compares the wanted with the running ones must find them equal."""
    with running(AS_WRITTEN, tmp_path) as there, node_of(there.port) as node:
        routes = node.query("router.config.linkRoute", names=["prefix", "pattern"])
        assert routes == [{"prefix": "pulp.", "pattern": None}, {"prefix": None, "pattern": "a.#.*.b"}]
        assert [row["prefix"] for row in node.query("router.config.address")] == ["devices/"]
        assert node.get("READ", identity="linkRoute/0")["prefix"] == "pulp."
        made = node.create("router.config.linkRoute", {"name": "cbs", "prefix": "$cbs/", "direction": "in"})
        assert made["prefix"] == "$cbs/"
        assert {"Cpulp", "Ea/*/#/b"} <= {row["key"] for row in node.query("router.address")}


def test_only_routing_entities_show_null_for_absent_attributes(node: Node) -> None:
    assert None not in node.get("READ", name="l0").values()
    assert None in node.get("READ", type="router.config.address", name="near").values()


def test_a_pool_that_is_not_there_is_an_empty_one(node: Node) -> None:
    """Monitoring programs divide by the batch size and the retained size of a thread."""
    rows = {row["typeName"]: row for row in node.query("allocator")}
    bounds = [rows["qd_bitmask_t"][name] for name in ("transferBatchSize", "localFreeListMax", "totalAllocFromHeap")]
    assert bounds == [64, 128, 0]
    assert all(row["transferBatchSize"] > 0 and row["localFreeListMax"] > 0 for row in rows.values())


def test_secrets_are_never_shown(node: Node) -> None:
    assert node.get("READ", name="out")["saslPassword"] == "*****"
    assert node.get("READ", name="out")["saslUsername"] == "u"
    assert "hush-hush" not in str(node.query("connector"))
    assert "hush-hush" not in str(node.query())


def test_the_placeholder_of_a_secret_keeps_the_secret_and_creates_none(node: Node) -> None:
    before = node.get("READ", name="out")
    node.get("UPDATE", {**before, "saslUsername": "v"}, type="connector", name="out")
    assert node.get("READ", name="out")["saslPassword"] == "*****"
    node.get("UPDATE", {"saslUsername": "u"}, type="connector", name="out")
    made = {"host": "127.0.0.1", "port": "1", "saslUsername": "u", "saslPassword": "*****"}
    status, why = node.refused("CREATE", made, type="connector", name="copy")
    assert status == 400
    assert why == "connector.saslPassword: ***** stands for a secret that is not shown; write the secret"


def test_a_log_module_exists_with_and_without_configuration(node: Node) -> None:
    assert node.get("READ", name="log/SERVER")["module"] == "SERVER"
    assert len(node.query("log")) == 18
    assert len(node.query("logStats")) == 20


def test_log_statistics_have_all_their_counters(node: Node) -> None:
    row = node.get("READ", type="logStats", identity="logStats/AGENT")
    counters = {"traceCount", "debugCount", "infoCount", "noticeCount", "warningCount", "errorCount", "criticalCount"}
    assert counters <= set(row)
    assert row["debugCount"] > 0


def test_no_entity_is_found_under_an_unknown_name(node: Node) -> None:
    assert node.refused("READ", name="nobody") == (404, "No entity with name=nobody")
    assert node.refused("READ", identity="listener/nobody") == (404, "No entity with identity=listener/nobody")
    assert node.refused("READ", type="connection", identity="99999")[0] == 404
    assert node.refused("READ", type="listener", identity="99999")[0] == 404


def test_a_name_and_an_identity_must_agree(node: Node) -> None:
    status, text = node.refused("READ", name="l0", identity="log/DEFAULT")
    assert status == 400
    assert "two different entities" in text
    assert node.refused("READ", name="l0", identity="listener/nobody")[0] == 404
    assert node.refused("READ", name="nobody", identity="log/DEFAULT")[0] == 404


def test_a_type_must_fit_the_name(node: Node) -> None:
    status, text = node.refused("READ", type="connector", name="l0")
    assert status == 400
    assert PREFIX + "listener" in text


def test_an_ambiguous_identity_is_refused(node: Node) -> None:
    status, text = node.refused("READ", identity="1")  # the router's, and that of the first configured address
    assert status == 400
    assert "give the type" in text


def test_a_dummy_calls_back(node: Node) -> None:
    node.create("dummy", {"name": "d"})
    try:
        answer = node.get("CALLME", type="dummy", name="d", foo="bar")
        assert answer == {"operation": "CALLME", "type": "dummy", "name": "d", "foo": "bar"}
    finally:
        node.get("DELETE", type="dummy", name="d")
