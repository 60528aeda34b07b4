"""Lines with long delays, and pauses in which nothing arrives: the effect of helloMaxAge (docs/networks.md)."""

from __future__ import annotations

import pytest

from tests.sim.network import Network
from trouter.mesh.events import NeighbourDown
from trouter.mesh.mesh import Timers


def lost(network: Network) -> int:
    return sum(isinstance(event, NeighbourDown) for _, _, event in network.told)


@pytest.mark.parametrize("delay_s", [0.5, 2.0, 5.0])
def test_delay_alone_loses_no_neighbour(delay_s: float) -> None:
    network = Network(1)
    network.start("A", "B")
    network.connect("A", "B", delay_s=delay_s)
    network.run(300)
    assert list(network.routers["A"].neighbours) == ["B"]
    assert list(network.routers["B"].neighbours) == ["A"]
    assert lost(network) == 0


@pytest.mark.parametrize(("max_age_s", "losses"), [(3.0, True), (30.0, False)])
def test_a_gap_longer_than_the_hello_age_loses_the_neighbour(max_age_s: float, losses: bool) -> None:
    network = Network(1, Timers(hello_max_age_s=max_age_s))
    network.start("A", "B")
    wire = network.wires[network.connect("A", "B", delay_s=2.0)]
    network.run(30)
    wire.dead.add("A")  # TCP retransmits, and everything waits for it
    network.run(10)
    wire.dead.clear()
    assert (lost(network) > 0) is losses
    network.run(30)
    assert list(network.routers["B"].neighbours) == ["A"]
