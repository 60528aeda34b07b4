"""The operations of the management node itself (management.md 6)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from proton import Message

from tests.management.node import PREFIX, Node, node_of, small
from tests.routers import WORKERS, RunningRouter, StartRouter
from trouter.config import TYPES


def test_get_types_maps_each_type_to_its_base_types(node: Node) -> None:
    types = node.node("GET-TYPES")
    assert len(types) == len(TYPES)
    assert types[PREFIX + "listener"] == [PREFIX + "configurationEntity", PREFIX + "entity"]
    assert types[PREFIX + "management"][0] == PREFIX + "org.amqp.management"
    assert types[PREFIX + "entity"] == []


def test_get_types_of_a_type_includes_its_derived_types(node: Node) -> None:
    assert list(node.node("GET-TYPES", entityType="listener")) == [PREFIX + "listener"]
    found = node.node("GET-TYPES", entityType="operationalEntity")
    assert {PREFIX + "operationalEntity", PREFIX + "connection", PREFIX + "router.link"} <= set(found)
    assert PREFIX + "listener" not in found


@pytest.mark.parametrize("spelling", ["org.amqp.management", PREFIX + "org.amqp.management"])
def test_both_spellings_of_the_standard_type_are_one(node: Node, spelling: str) -> None:
    assert PREFIX + "org.amqp.management" in node.node("GET-TYPES", entityType=spelling)
    assert node.get("READ", type=spelling, name="self")["identity"] == "self"


def test_get_attributes_lists_own_attributes_first(node: Node) -> None:
    attributes = node.node("GET-ATTRIBUTES", entityType="dummy")[PREFIX + "dummy"]
    assert attributes == ["arg1", "arg2", "num1", "num2", "name", "identity", "type"]
    assert len(node.node("GET-ATTRIBUTES")) == len(TYPES)


def test_get_operations_lists_own_operations_before_inherited_ones_and_new_ones_last(node: Node) -> None:
    operations = node.node("GET-OPERATIONS")
    assert operations[PREFIX + "sslProfile"] == ["CREATE", "DELETE", "READ", "UPDATE"]
    assert operations[PREFIX + "router.link"] == ["UPDATE", "READ"]
    assert operations[PREFIX + "management"] == [
        "GET-SCHEMA", "GET-JSON-SCHEMA", "GET-LOG", "PROFILE", "QUERY", "GET-TYPES", "GET-ANNOTATIONS",
        "GET-OPERATIONS", "GET-ATTRIBUTES", "GET-MGMT-NODES", "READ", "DISCOVER-MGMT-NODES", "GET-SCHEMA-JSON",
        "RELOAD", "CHECK", "APPLY", "CONFIRM-CHANGE", "REVERT-CHANGE", "GET-CHANGE", "EXPLAIN", "EXPLAIN-POLICY",
        "GET-MEMORY", "GET-RIGHTS", "DRAIN", "CANCEL-DRAIN", "GET-DRAIN",
    ]  # fmt: skip


def test_there_are_no_annotations(node: Node) -> None:
    assert node.node("GET-ANNOTATIONS") == {}


@pytest.mark.parametrize("operation", ["GET-MGMT-NODES", "DISCOVER-MGMT-NODES"])
def test_a_router_that_stands_alone_reports_no_nodes(node: Node, operation: str) -> None:
    assert node.node(operation) == []


def test_an_interior_router_lists_itself(start_router: StartRouter) -> None:
    router = start_router(
        "router { id: A/B, mode: interior }\nlistener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }\n"
    )
    with node_of(router.port) as node:
        assert node.node("GET-MGMT-NODES") == ["amqp:/_topo/0/A/B/$management"]
        row = node.get("READ", identity="router.node/A/B")
        assert (row["id"], row["nextHop"]) == ("A/B", "(self)")


def test_get_schema_describes_every_type(node: Node) -> None:
    schema = node.node("GET-SCHEMA")
    assert schema["prefix"] == "org.apache.qpid.dispatch"
    assert len(schema["entityTypes"]) == len(TYPES)
    assert {"address", "linkRoute", "autoLink", "org.amqp.management"} <= set(schema["entityTypes"])
    listener = schema["entityTypes"]["listener"]
    assert listener["fullyQualifiedType"] == PREFIX + "listener"
    assert listener["operations"] == ["CREATE", "DELETE", "READ", "UPDATE"]
    assert "type" not in listener["attributes"]
    role = listener["attributes"]["role"]
    assert (role["type"], role["default"]) == (["normal", "inter-router", "route-container", "edge"], "normal")
    assert all(_something(entity) for entity in schema["entityTypes"].values())


def _something(value: Any) -> bool:
    """Check that no value in a schema is false, empty or zero."""
    if isinstance(value, dict):
        return bool(value) and all(map(_something, value.values()))
    return bool(value)


@pytest.mark.parametrize("operation", ["GET-JSON-SCHEMA", "GET-SCHEMA-JSON"])
def test_the_schema_comes_as_json_too(node: Node, operation: str) -> None:
    compact = node.node(operation)
    assert json.loads(compact) == json.loads(node.node(operation, indent=small(2)))
    assert "\n" not in compact
    assert json.loads(compact)["entityTypes"].keys() == node.node("GET-SCHEMA")["entityTypes"].keys()
    assert "\n    " in node.node(operation, indent=small(4))


def test_get_log_gives_the_newest_entries_oldest_first(node: Node) -> None:
    entries = node.node("GET-LOG", limit=small(3))
    assert len(entries) == 3
    module, level, text, file, line, seconds = entries[-1]
    assert (module, level) == ("AGENT", "debug")
    assert "GET-LOG" in text
    assert isinstance(file, str)
    assert isinstance(line, int)
    assert isinstance(seconds, int)
    assert [entry[5] for entry in entries] == sorted(entry[5] for entry in entries)
    assert len(node.node("GET-LOG", limit="2")) == 2
    assert len(node.node("GET-LOG")) > 3


def test_get_log_may_be_limited_to_a_module(node: Node) -> None:
    assert {entry[0] for entry in node.node("GET-LOG", module="SERVER")} == {"SERVER"}
    status, text = node.refused("GET-LOG", module="NONE")
    assert status == 400
    assert "ROUTER_CORE" in text


def test_profile_shows_where_the_time_goes(node: Node) -> None:
    assert node.refused("PROFILE")[0] == 400
    node.node("PROFILE", start=True)
    node.query("router.link")
    assert "cumulative" in node.node("PROFILE", stop=True)
    assert node.refused("PROFILE", stop=True)[0] == 400


@pytest.mark.parametrize("operation", ["REGISTER", "DEREGISTER", "DANCE"])
def test_an_unknown_operation_is_not_implemented(node: Node, operation: str) -> None:
    status, text = node.refused(operation)
    assert status == 501
    assert operation in text


def test_explain_gives_the_reason_why_an_address_does_not_flow(node: Node) -> None:
    explanation = node.node("EXPLAIN", address="nobody/here")
    assert explanation["address"] == "nobody/here"
    assert "verdict" in explanation
    receiver = node.connection.create_receiver("somebody/here", credit=1)
    explanation = node.node("EXPLAIN", address="somebody/here")
    assert [end["connection"] for end in explanation["consumers"]]
    receiver.close()
    status, text = node.refused("EXPLAIN")
    assert status == 400
    assert "'address'" in text


def test_get_memory_shows_count_and_bytes_of_each_type(node: Node) -> None:
    owners = {row["name"]: row for row in node.node("GET-MEMORY")}
    assert owners["qdr_link_t"]["count"] >= 2
    assert all(row["bytes"] == row["size"] * row["count"] for row in owners.values())


def test_the_pools_show_how_many_connections_and_sessions_there_are(router: RunningRouter, own: Node) -> None:
    def pools() -> list[int]:
        names = "qd_connection_t", "qd_session_t"
        return [int(own.get("READ", identity=f"allocator/{name}")["totalAllocFromHeap"]) for name in names]

    before = pools()
    with node_of(router.port):
        connections, sessions = after = pools()
        assert after == [count + 1 for count in before]
        assert connections == 2 + WORKERS * (WORKERS - 1)  # each worker has one with each other one, of many sessions
        assert sessions >= connections if WORKERS > 1 else sessions == 2
    memory = {row["name"]: row["size"] for row in own.node("GET-MEMORY")}
    assert min(memory["qd_connection_t"], memory["qd_session_t"]) > 100


def test_get_memory_groups_memory_by_connection_user_vhost_and_address(node: Node) -> None:
    receiver = node.connection.create_receiver("memory/waiting")
    sender = node.connection.create_sender("memory/waiting")
    sender.link.send(Message(b"x" * 10_000, durable=True))
    (address,) = (row for row in node.node("GET-MEMORY", by="address") if row["address"] == "memory/waiting")
    assert (address["messages"], address["links"]) == (1, 2)
    assert address["bytes"] > 10_000
    (process,) = node.node("GET-MEMORY", by="process")
    assert process["resident"] <= process["limit"]
    assert 10_000 < process["messages"] <= process["messagesLimit"]
    rows = {by: node.node("GET-MEMORY", by=by) for by in ("connection", "user", "vhost")}
    assert max(row["messages"] for row in rows["connection"]) >= address["bytes"]
    assert len({sum(row["bytes"] for row in each) for each in rows.values()}) == 1
    assert {row["user"] for row in rows["user"]} >= {row["user"] for row in rows["connection"]}
    status, text = node.refused("GET-MEMORY", by="colour")
    assert (status, "not by colour" in text) == (400, True)
    sender.close()
    receiver.close()


def test_locales_are_accepted_and_mean_nothing(node: Node) -> None:
    assert node.node("GET-ANNOTATIONS", locales="de-CH") == {}


def test_requests_and_answers_are_logged(node: Node, shared: RunningRouter) -> None:
    node.node("Get-Types", entityType="dummy")
    shared.wait_for_line(r"AGENT \(debug\) Agent request Get-Types .*entityType=dummy")
    shared.wait_for_line(r"AGENT \(debug\) Agent response: 200 to Get-Types")
    node.refused("READ", name="not-there")
    shared.wait_for_line(r"AGENT \(error\) Error performing READ: No entity with name=not-there")
