"""Connectors and listeners of role inter-router: a peer that is no neighbour gets an error, and is listed elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from proton.utils import BlockingConnection, LinkDetached

from tests.management.node import node_of
from tests.network.conftest import Ring
from tests.networks import OPEN, client_port, interior, router_port
from tests.routers import DEADLINE_S, WORKERS, RunningRouter, StartRouter, process

DIALS = "connector {{ name: out, host: {host}, port: {port}, role: inter-router, saslMechanisms: ANONYMOUS{more} }}\n"


def status_of(router: RunningRouter) -> tuple[str, str]:
    with node_of(client_port(router)) as node:
        (row,) = node.query("connector")
    return str(row["connectionStatus"]), str(row["connectionMsg"])


def test_a_connector_to_a_neighbour_shows_success_and_the_container(ring: Ring) -> None:
    status, message = status_of(ring.routers["B"])
    assert status == "SUCCESS"
    assert "Connection Opened: dir=out host=127.0.0.1:" in message
    assert "container_id=A" in message


def test_a_connector_to_a_listener_for_clients_shows_that_the_peer_is_no_router(
    router: RunningRouter, start_router: StartRouter
) -> None:
    here = start_router(interior("A", {"R": router.port}))
    for _ in range(2):  # it retries
        failed = here.wait_for_line(r"Connection to 127\.0\.0\.1:\d+ failed: (the peer refuses .*)")
    assert failed[1] == (
        "the peer refuses links between routers (qd:forbidden Connectivity to the node is forbidden): "
        "is its listener's role inter-router?"
    )
    here.wait_for_line(r"failed: the peer refuses", 2)
    status, message = status_of(here)
    assert status in {"CONNECTING", "SUCCESS"}
    assert message.endswith("is its listener's role inter-router?") or "Connection Opened" in message
    with node_of(client_port(here)) as node:
        assert [row["id"] for row in node.query("router.node")] == ["A"]


def test_a_client_at_a_listener_for_routers_is_refused_with_that_reason(ring: Ring) -> None:
    client = BlockingConnection(f"127.0.0.1:{router_port(ring.routers['A'])}", timeout=DEADLINE_S)
    try:
        for attach in (
            lambda: client.create_sender("x"),
            lambda: client.create_sender(None),
            lambda: client.create_receiver("x"),
            lambda: client.create_receiver(None, dynamic=True),
        ):
            with pytest.raises(LinkDetached) as refused:
                attach()
            assert refused.value.condition == "qd:connection-role"
            assert "Link attach forbidden on inter-router connection" in str(refused.value)
    finally:
        client.close()
    with node_of(client_port(ring.routers["A"])) as node:
        assert len(node.query("router.node")) == 1 + 3 * WORKERS  # it shows its own workers as one


def test_a_router_dials_the_failover_list_of_a_lost_neighbour(start_router: StartRouter, tmp_path: Path) -> None:
    second = start_router(interior("C", {}))
    listed = f"failoverUrls: 'amqp://127.0.0.1:{router_port(second)}'"
    listener = f"listener {{ {OPEN}, role: inter-router, allowInsecureRole: yes, {listed} }}\n"
    folder = tmp_path / "first"
    folder.mkdir()
    with process(f"router {{ mode: interior, id: B }}\n{listener}", folder) as first:
        first.wait_for_line("Operational")
        port = first.port
        dials = DIALS.format(host="localhost", port=port, more=", protocolFamily: IPv4")
        here = start_router(interior("A", {}, dials))
        here.wait_for_line("router B is a neighbour over")
        with node_of(client_port(here)) as node:
            (row,) = node.query("connector")
            assert row["failoverUrls"] == f"amqp://localhost:{port}, amqp://127.0.0.1:{router_port(second)}"
        first.process.kill()
        here.wait_for_line("router B is no longer a neighbour: connection lost")
        here.wait_for_line("router C is a neighbour over")
    with node_of(client_port(here)) as node:
        (row,) = node.query("connector")
        assert row["connectionStatus"] == "SUCCESS"
        assert row["failoverUrls"] == f"amqp://127.0.0.1:{router_port(second)}, amqp://localhost:{port}"


def test_a_deleted_connector_takes_the_neighbour_along(start_router: StartRouter) -> None:
    there = start_router(interior("B", {}))
    here = start_router(interior("A", {"B": router_port(there)}))
    here.wait_for_line("router B is a neighbour over")
    with node_of(client_port(here)) as node:
        node.get("DELETE", type="connector", name="toB")
        here.wait_for_line("router B is no longer a neighbour: connection lost")
        there.wait_for_line("router A is no longer a neighbour: connection lost")
        found = {row["id"]: row for row in node.query("router.node")}
        assert found["A"]["linkState"] == []
        assert "B" not in found
        made = {"host": "127.0.0.1", "port": str(router_port(there)), "role": "inter-router"}
        node.create("connector", {**made, "saslMechanisms": "ANONYMOUS"}, name="again")
        here.wait_for_line("router B is a neighbour over", 2)
        assert node.get("READ", type="connector", name="again")["connectionStatus"] == "SUCCESS"
