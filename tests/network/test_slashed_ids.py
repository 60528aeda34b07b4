"""Routers with slashes in their ids: management by the address of the topology, over the network and by the tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.management.node import node_of
from tests.networks import EDGE_LISTENER, client_port, edge, edge_port, network
from tests.routers import running
from tests.tools.live import run

pytestmark = pytest.mark.slow

PLACES = ("site/A", "site/B", "site")


async def test_routers_with_slashes_in_their_ids_are_managed_from_each_other(tmp_path: Path) -> None:
    dials = {"site/A": (), "site/B": ("site/A",), "site": ("site/B",)}
    with network(tmp_path, dials, {"site/B": EDGE_LISTENER}) as routers:
        with running(edge("site/E", [edge_port(routers["site/B"])]), tmp_path) as below:
            below.wait_for_line("Edge connection .* to interior established")
            for port in (client_port(routers["site/A"]), client_port(below)):
                addresses = [f"_topo/0/{place}/$management" for place in PLACES] + ["_edge/site/E/$management"]
                for address in addresses:
                    with node_of(port, address) as node:
                        (row,) = node.query("router")
                        assert f"/{row['id']}/$management" in address
                with node_of(port, None, anonymous=True) as node:
                    node.address = addresses[1]
                    assert node.query("router")[0]["id"] == "site/B"
        shown = await run("stat", "-g", "-r", "site/B", "-b", f"127.0.0.1:{client_port(routers['site'])}")
        assert "site/B" in shown.out
        shown = await run("stat", "-n", "-b", f"127.0.0.1:{client_port(routers['site'])}")
        assert {line.split()[0] for line in shown.out.splitlines()[-3:]} == set(PLACES)
