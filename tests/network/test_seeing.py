"""Management's rows on a network: its routers, their links and addresses, from any router about any other."""

from __future__ import annotations

import urllib.request
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.management.node import Node, node_of
from tests.network.conftest import RING, Ring
from tests.networks import client_port
from tests.routers import DEADLINE_S, RunningRouter
from trouter.client import Message, connect

Routers = dict[str, RunningRouter]


@pytest.fixture
def routers(ring: Ring) -> Routers:
    return ring.routers


@pytest.fixture
def at_a(routers: Routers) -> Iterator[Node]:
    with node_of(client_port(routers["A"])) as node:
        yield node


def nodes(node: Node) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in node.query("router.node")}


def test_every_router_is_listed_with_its_next_hop_and_cost(at_a: Node) -> None:
    found = nodes(at_a)
    assert list(found) == ["A", "B", "C", "D"]
    assert {row["identity"] for row in found.values()} == {f"router.node/{name}" for name in "ABCD"}
    assert {row["address"] for row in found.values()} == {f"amqp:/_topo/0/{name}" for name in "ABCD"}
    shown = {name: (row["nextHop"], row["cost"], row["linkState"], row["validOrigins"]) for name, row in found.items()}
    assert shown == {
        "A": ("(self)", None, ["B", "C"], []),
        "B": (None, 1, ["A", "D"], ["C"]),
        "C": (None, 1, ["A", "D"], ["B"]),
        "D": ("B", 2, ["B", "C"], []),
    }
    assert found["D"]["linkCosts"] == {"B": 1, "C": 1}
    assert sorted(row["index"] for row in found.values()) == [0, 1, 2, 3]
    assert found["A"]["index"] == 0
    assert all(row["lastTopoChange"] > 1_700_000_000 for row in found.values())
    assert all(row["instance"] > 1_700_000_000_000 and row["protocolVersion"] == 1 for row in found.values())


def test_a_neighbour_is_listed_with_its_router_link(at_a: Node) -> None:
    links = {row["identity"]: row for row in at_a.query("router.link")}
    found = nodes(at_a)
    assert found["A"]["routerLink"] is None
    assert found["D"]["routerLink"] is None
    link = links[str(int(found["B"]["routerLink"]))]
    assert (link["linkType"], link["linkDir"], link["priority"]) == ("router-control", "out", 9)
    connection = at_a.get("READ", type="connection", identity=link["connectionId"])
    assert (connection["container"], connection["role"], connection["operStatus"]) == ("B", "inter-router", "up")


def test_a_router_is_read_by_its_identity(at_a: Node) -> None:
    assert at_a.get("READ", identity="router.node/C")["id"] == "C"
    assert at_a.refused("READ", type="router.node", identity="router.node/X")[0] == 404


def test_links_between_routers_have_their_types_and_priorities(at_a: Node) -> None:
    rows = [row for row in at_a.query("router.link") if row["linkType"] != "endpoint"]
    kinds = Counter((row["linkType"], row["linkDir"]) for row in rows)
    assert kinds == {
        ("router-control", "in"): 2,
        ("router-control", "out"): 2,
        ("inter-router", "in"): 20,
        ("inter-router", "out"): 20,
    }
    for direction in ("in", "out"):
        data = [row for row in rows if (row["linkType"], row["linkDir"]) == ("inter-router", direction)]
        assert Counter(row["priority"] for row in data) == dict.fromkeys(range(10), 2)
    assert all(row["ingressHistogram"] is None and row["owningAddr"] is None for row in rows)


def test_the_router_counts_the_others(at_a: Node) -> None:
    (row,) = at_a.query("router")
    assert (row["nodeCount"], row["connectionCount"]) == (3, 3)
    assert row["duplicateIds"] == []
    assert row["meshFaults"]["same-id"] == row["meshFaults"]["malformed"] == 0
    # Messages between routers, and forwarded ones, do not count here.
    assert at_a.query("router", names=["presettledDeliveries"]) == [{"presettledDeliveries": 0}]


def test_a_connection_between_routers_is_not_closed_by_management(at_a: Node) -> None:
    row = next(row for row in at_a.query("connection") if row["role"] == "inter-router")
    body = {"adminStatus": "deleted"}
    status, text = at_a.refused("UPDATE", body, type="connection", identity=row["identity"])
    assert (status, text) == (403, "Forbidden: a connection of role inter-router cannot be closed")


@pytest.mark.parametrize("asked", list(RING))
def test_every_router_lists_the_management_nodes_of_all(routers: Routers, asked: str) -> None:
    with node_of(client_port(routers[asked])) as node:
        found = node.node("GET-MGMT-NODES")
    assert found[0] == f"amqp:/_topo/0/{asked}/$management"
    assert sorted(found) == [f"amqp:/_topo/0/{name}/$management" for name in RING]


@pytest.mark.parametrize("address", ["_topo/0/D/$management", "amqp:/_topo/0/D/$management", "_topo/all/D/$management"])
@pytest.mark.parametrize("anonymous", [False, True])
def test_a_router_is_managed_from_any_other(routers: Routers, address: str, anonymous: bool) -> None:
    with node_of(client_port(routers["A"]), address, anonymous=anonymous) as node:
        assert [row["id"] for row in node.query("router")] == ["D"]
        assert node.get("READ", type="router.node", identity="router.node/D")["nextHop"] == "(self)"
        made = node.create("router.config.address", {"prefix": "made.from.afar"}, name="afar")
        assert made["prefix"] == "made.from.afar"
        node.get("DELETE", type="router.config.address", name="afar")
        assert node.refused("READ", type="listener", name="none")[0] == 404


async def test_addresses_and_links_show_ingress_transit_and_egress(routers: Routers) -> None:
    a, d = client_port(routers["A"]), client_port(routers["D"])
    async with (
        connect(f"amqp://127.0.0.1:{a}") as sending,
        connect(f"amqp://127.0.0.1:{d}") as receiving,
        receiving.open_receiver("seen.afar") as receiver,
        sending.open_sender("seen.afar") as sender,
        receiving.open_sender("seen.afar") as near,
    ):
        trackers = [await sender.submit(Message(number)) for number in range(3)]
        deliveries = [await receiver.receive() for _ in trackers]
        own = await near.submit(Message("near"))
        deliveries.append(await receiver.receive())
        with node_of(a) as node:
            (row,) = [row for row in node.query("router.address") if row["key"] == "M0seen.afar"]
            others = nodes(node)
            assert (row["remoteCount"], row["remoteHostRouters"], row["subscriberCount"]) == (1, ["D"], 0)
            assert (row["deliveriesIngress"], row["deliveriesTransit"], row["deliveriesEgress"]) == (3, 3, 0)
            outstanding = row["transitOutstanding"]
            assert len(outstanding) == 128
            assert outstanding[others["B"]["index"]] == sum(outstanding) == row["trackedDeliveries"] == 3
        with node_of(d) as node:
            (link,) = [each for each in node.query("router.link") if each["owningAddr"] == "M0seen.afar"][:1]
            histogram = link["ingressHistogram"]
            assert (link["linkDir"], link["deliveryCount"], len(histogram), sum(histogram)) == ("out", 4, 128, 4)
            assert (histogram[nodes(node)["A"]["index"]], histogram[0]) == (3, 1)
        for delivery in deliveries:
            await delivery.accept()
        for tracker in (*trackers, own):
            await tracker.outcome()
        with node_of(a) as node:
            (row,) = [row for row in node.query("router.address") if row["key"] == "M0seen.afar"]
            assert (sum(row["transitOutstanding"]), row["trackedDeliveries"]) == (0, 0)


async def test_transit_is_counted_where_messages_pass(routers: Routers) -> None:
    def transit(name: str) -> int:
        with node_of(client_port(routers[name])) as node:
            (row,) = node.query("router", names=["deliveriesTransit", "deliveriesIngress", "deliveriesEgress"])
            return int(row["deliveriesTransit"])

    before = transit("B")
    async with (
        connect(f"amqp://127.0.0.1:{client_port(routers['A'])}") as asking,
        connect(f"amqp://127.0.0.1:{client_port(routers['D'])}") as answering,
        answering.open_receiver("passing.by") as receiver,
        asking.open_sender("passing.by") as sender,
    ):
        for number in range(5):
            tracker = await sender.submit(Message(number))
            await (await receiver.receive()).accept()
            await tracker.outcome()
    assert transit("B") >= before + 5


def test_the_network_is_among_the_metrics(routers: Routers) -> None:
    port = routers["A"].wait_for_line(r"Listening for HTTP on 127\.0\.0\.1:(\d+)")[1]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=DEADLINE_S) as page:
        samples = dict(line.rsplit(" ", 1) for line in page.read().decode().splitlines() if not line.startswith("#"))
    assert [samples[f"trouter_network_{name}"] for name in ("routers", "routers_reachable", "neighbours")] == [
        "3.0", "3.0", "2.0",
    ]  # fmt: skip
    assert samples["qdr_routers_total"] == "3.0"
    assert samples["trouter_network_duplicate_ids"] == "0.0"
    assert float(samples["trouter_network_changes_total"]) >= 1
    for direction in ("in", "out"):
        assert float(samples[f'trouter_network_control_messages_total{{direction="{direction}"}}']) > 10
    assert samples['trouter_network_faults_total{fault="malformed"}'] == "0.0"
