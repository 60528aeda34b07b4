"""Storms over networks in which one router tells lies of the others: all know the same as without it."""

from __future__ import annotations

import random
from functools import partial

import pytest

from tests.sim.network import Network, ring
from tests.sim.oracle import check
from tests.sim.seeds import chosen_seeds
from tests.sim.test_mesh import CALM_S, build, trouble
from trouter.mesh.events import AddressesChanged, Ignored, PathsChanged
from trouter.mesh.faults import MeshFault
from trouter.mesh.mesh import Timers
from trouter.mesh.messages import (
    ALL_ADDRESSES_TO,
    ALL_ROUTERS_TO,
    MAX_SEQUENCE,
    LinkStateUpdate,
    Message,
    MobileAddressUpdate,
    RouterAdvertisement,
    compose,
    mobile_address,
    router_address,
)

pytestmark = pytest.mark.attack

FORGER = "F"
SEEDS = chosen_seeds("TROUTER_SIM_SEEDS", 40)


def lies(network: Network, victim: str, listener: str, chance: random.Random) -> list[tuple[Message, str]]:
    """Return lies about ``victim`` for ``listener`` or for all, with numbers that are absurd or the next ones."""
    known = network.routers[FORGER].routers.get(victim)
    links, mobile = (known.link_sequence + 1, known.mobile_sequence + 1) if known else (1, 1)
    if chance.random() < 0.5:
        links = mobile = MAX_SEQUENCE
    instance = (known.instance or 1) if known else 1
    update = LinkStateUpdate(victim, instance, links, {FORGER: 1})
    return [
        (MobileAddressUpdate(victim, mobile, exist=()), mobile_address(listener)),
        (MobileAddressUpdate(victim, mobile, added=("M0lie",), deleted=("M0a", "M0b", "M0c")), ALL_ADDRESSES_TO),
        (update, router_address(listener)),
        (RouterAdvertisement(victim, instance + 1000, 1, 0), ALL_ROUTERS_TO),
        (RouterAdvertisement(victim, instance, 0, 0), ALL_ROUTERS_TO),
    ]


def lie(network: Network, chance: random.Random) -> None:
    """Send lies about a router over each connection of the forger, now and every second."""
    others = sorted(set(network.routers) - {FORGER})
    victim, listener = chance.sample(others, 2)
    for number, wire in list(network.wires.items()):
        if FORGER in wire.ends:
            for message, to in lies(network, victim, listener, chance):
                network._transmit(FORGER, number, compose(message, to))
    network._later(1.0, partial(lie, network, chance))


def test_a_forger_at_a_calm_ring_changes_nothing_and_is_named() -> None:
    network = Network(1)
    ring(network, [f"R{number}" for number in range(5)])
    network.start(FORGER)
    wire = network.connect(FORGER, "R2")
    listening = {router: {f"M0{router}"} for router in network.routers}
    for router, mesh in network.routers.items():
        mesh.add_address(f"M0{router}", 3)
    network.run(60)
    check(network, listening)
    network.told.clear()
    lie(network, random.Random(1))
    for _ in range(60):
        network.run(1)
        check(network, listening)
    told = [(router, event) for _, router, event in network.told]
    assert not [event for _, event in told if isinstance(event, AddressesChanged | PathsChanged)]
    complaints = {(router, event.who, event.connection) for router, event in told if isinstance(event, Ignored)}
    assert complaints == {("R2", FORGER, wire)}
    assert network.routers["R2"].faults[MeshFault.OFF_PATH] > 0


@pytest.mark.parametrize("seed", SEEDS)
def test_after_a_storm_with_a_forger_every_router_knows_the_truth(seed: int) -> None:
    """The forger has one neighbour at most: nothing but itself lies behind it."""
    chance = random.Random(seed)
    network = Network(seed, Timers(ra_interval_s=10.0, remote_ls_max_age_s=20.0))
    build(network, chance)
    if len(network.routers) < 3:
        network.start("R100", "R101")
        network.connect("R100", "R101")
    network.start(FORGER)
    network.connect(FORGER, chance.choice(sorted(set(network.routers) - {FORGER})))
    listening: dict[str, set[str]] = {router: set() for router in network.routers}
    lie(network, chance)
    for _ in range(chance.randint(1, 20)):
        network.run(chance.choice([0.0, 0.1, 1.0, 3.0, 10.0]))
        trouble(network, chance, listening)
        for number in [number for number, wire in network.wires.items() if FORGER in wire.ends][1:]:
            network.cut(number)
    network.run(network.timers.remote_ls_max_age_s + network.timers.ra_interval_s + CALM_S)
    check(network, listening)
