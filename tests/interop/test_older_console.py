"""The requests of Qpid Dispatch's console, unchanged, to routers of a network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop.consoles import PREFIX, ask, operation, query, rows
from tests.management.node import node_of
from tests.networks import wait_for_reach
from tests.routers import RunningRouter, running

pytestmark = pytest.mark.interop

INTERIOR = """
router {{ mode: interior, id: {name} }}
listener {{ host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }}
listener {{ name: between, host: 127.0.0.1, port: 0, role: inter-router, saslMechanisms: ANONYMOUS }}
listener {{ name: below, host: 127.0.0.1, port: 0, role: edge, saslMechanisms: ANONYMOUS }}
listener {{ name: web, host: 127.0.0.1, port: 0, http: yes, saslMechanisms: ANONYMOUS }}
"""
DIALS = """
router {{ mode: {mode}, id: {name} }}
listener {{ host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }}
connector {{ name: up, host: 127.0.0.1, port: {port}, role: {role}, saslMechanisms: ANONYMOUS }}
"""


class Network:
    """Two interior routers, and an edge below the first."""

    def __init__(self, first: RunningRouter, second: RunningRouter, edge: RunningRouter) -> None:
        self.first, self.second, self.edge = first, second, edge
        port = first.wait_for_line(r"Listening for HTTP on \S+:(\d+) \(web\)")[1]
        self.url = f"ws://127.0.0.1:{port}"

    def ask(self, *requests: dict[str, Any]) -> list[dict[str, Any]]:
        return ask(self.url, requests)


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    folder: Path = tmp_path_factory.mktemp("network")
    with running(INTERIOR.format(name="A"), folder) as first:
        between = DIALS.format(mode="interior", name="B", port=first.ports[1], role="inter-router")
        below = DIALS.format(mode="edge", name="E", port=first.ports[2], role="edge")
        with running(between, folder) as second, running(below, folder) as edge:
            edge.wait_for_line(r"Edge connection \(id=\d+\) to interior established")
            wait_for_reach({"A": first, "B": second})
            yield Network(first, second, edge)


def test_the_console_reads_the_schema_the_nodes_and_its_own_connection(network: Network) -> None:
    schema, nodes, connections = network.ask(
        operation("GET-SCHEMA"), operation("GET-MGMT-NODES"), query("connection", [])
    )
    assert schema["status"] == nodes["status"] == 200
    entities = schema["body"]["entityTypes"]
    assert entities["router.link"]["fullyQualifiedType"] == PREFIX + "router.link"
    assert set(nodes["body"]) == {"amqp:/_topo/0/A/$management", "amqp:/_topo/0/B/$management"}
    own = [row for row in rows(connections) if row["properties"].get("console_identifier") == "Dispatch console"]
    assert [row["user"] for row in own] == ["anonymous"]


@pytest.mark.parametrize(
    ("to", "name"),
    [("_topo/0/A/$management", "A"), ("_topo/0/B/$management", "B"), ("_edge/E/$management", "E")],
)
def test_the_console_queries_each_router_by_an_anonymous_sender(network: Network, to: str, name: str) -> None:
    router, links, nodes = network.ask(
        query("router", [], to),
        query("router.link", ["undeliveredCount", "unsettledCount", "linkType", "linkDir"], to),
        query("router.node", ["id", "nextHop"], to),
    )
    assert [row["id"] for row in rows(router)] == [name]
    assert links["body"]["attributeNames"] == ["undeliveredCount", "unsettledCount", "linkType", "linkDir"]
    assert rows(links)
    assert ("nextHop" in nodes["body"]["attributeNames"]) or nodes["body"]["results"] == []


@pytest.mark.parametrize("attributes", [[], None, "all"], ids=["an empty list", "null", "no list at all"])
def test_attribute_names_may_be_odd(network: Network, attributes: Any) -> None:
    (reply,) = network.ask(query("listener", attributes))
    assert {row["name"] for row in rows(reply)} >= {"web", "between", "below"}
    assert {"host", "port", "role", "http"} <= set(reply["body"]["attributeNames"])


def test_the_replies_to_more_than_ten_requests_are_distinguished(network: Network) -> None:
    wanted = ["router", "listener", "connector", "router.link", "router.node", "log", "connection"] * 5
    replies = network.ask(*(query(entity, ["type", "name"]) for entity in wanted))
    types = [{row["type"] for row in rows(reply)} - {None} for reply in replies]
    assert types == [{PREFIX + entity} if found else set() for entity, found in zip(wanted, types, strict=True)]
    assert sum(map(len, types)) >= 5 * 5


def test_the_console_closes_a_connection(network: Network) -> None:
    with node_of(network.first.port) as other:
        container = other.connection.container.container_id
        (connections,) = network.ask(query("connection", []))
        (row,) = [each for each in rows(connections) if each["container"] == container]
        update = {
            "to": "/_topo/0/A/$management",
            "body": {"adminStatus": "deleted", "identity": row["identity"]},
            "application_properties": {
                "operation": "UPDATE",
                "type": PREFIX + "connection",
                "identity": row["identity"],
                "name": row["name"],
            },
        }
        (closed,) = network.ask(update)
        (left,) = network.ask(query("connection", ["container"]))
        assert closed["status"] == 200, closed
        assert container not in [each["container"] for each in rows(left)]


def test_its_forms_create_change_and_delete(network: Network) -> None:
    name = {"type": PREFIX + "router.config.address", "name": "from-the-form"}
    body = {"name": "from-the-form", "prefix": "form", "distribution": "multicast"}
    created, again, deleted, gone = (
        network.ask({"to": "/$management", "body": each, "application_properties": {"operation": verb, **name}})[0]
        for verb, each in (("CREATE", body), ("CREATE", body), ("DELETE", []), ("READ", []))
    )
    assert created["status"] == 201, created
    assert created["body"]["prefix"] == "form"
    assert (again["status"], again["description"]) == (400, "Name conflicts with an existing entity")
    assert deleted["status"] == 204
    assert gone["status"] == 404


def test_a_log_without_a_file_is_sent_as_null(network: Network) -> None:
    change = {
        "to": "/$management",
        "body": {"identity": "log/AGENT", "enable": "info+", "outputFile": None},
        "application_properties": {"operation": "UPDATE", "type": PREFIX + "log", "identity": "log/AGENT"},
    }
    changed, logged, counted = network.ask(
        change, operation("GET-LOG", module="SERVER", limit=100), query("logStats", [])
    )
    assert changed["status"] == 200, changed
    assert 0 < len(logged["body"]) <= 100
    assert rows(counted)
