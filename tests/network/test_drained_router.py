"""While a router drains, messages between other routers go around it, and it is reachable itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.management.node import node_of
from tests.networks import client_port, network, wait_for_links
from tests.routers import RunningRouter
from tests.waiting import until
from trouter.cli import main

pytestmark = pytest.mark.slow

#: The cheap way from A to D is by B, the dear one by C.
SHAPE = {"A": (), "B": ("A",), "C": ("A",), "D": ("B", "C")}
COSTS = {("C", "A"): 5, ("D", "C"): 5}


def next_hops(router: RunningRouter) -> dict[str, str | None]:
    """Return the neighbour on the way to each other router; None for a neighbour that is reached directly."""
    with node_of(client_port(router)) as node:
        return {row["id"]: row["nextHop"] for row in node.query("router.node")}


def test_messages_of_others_go_around_a_router_that_drains(tmp_path: Path) -> None:
    more = {"B": "listener { name: own, host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS, drains: no }\n"}
    with network(tmp_path, SHAPE, more, COSTS) as routers:
        wait_for_links(routers, SHAPE)
        straight = next_hops(routers["A"])
        assert "B" in str(straight["D"])
        by_a = f"127.0.0.1:{client_port(routers['A'])}"
        assert main(["drain", "-b", by_a, "-r", "B", "--over", "1s"]) == 0
        until(lambda: "C" in str(next_hops(routers["A"])["D"]), "the way around")
        assert next_hops(routers["A"])["B"] == straight["B"]
        assert main(["drain", "-b", by_a, "-r", "B", "--cancel"]) == 0
        until(lambda: next_hops(routers["A"]) == straight, "the straight way")
