"""Storms over whole networks: afterwards every router knows the same paths and addresses as an oracle.

TROUTER_SIM_SEEDS is the count of storms, TROUTER_SIM_SEED the seed of a single one.
"""

from __future__ import annotations

import itertools
import random
from functools import lru_cache

import pytest

from tests.sim.network import IDLE_S, Network, ring
from tests.sim.oracle import check, next_hops, oracle
from tests.sim.seeds import chosen_seeds
from trouter.mesh import pieces
from trouter.mesh.mesh import Timers
from trouter.mesh.messages import parse

#: The seeds, or the one that is repeated.
SEEDS = chosen_seeds("TROUTER_SIM_SEEDS", 200)
#: The default timers of routers, and shorter ones, which take less time.
TIMERS = [Timers(), *[Timers(ra_interval_s=10.0, remote_ls_max_age_s=20.0)] * 5]
#: Seconds for updates to cross a line of twelve, and for a half-dead connection to be closed.
CALM_S = 20.0 + IDLE_S


@pytest.fixture(autouse=True)
def read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parse the same bytes only once, though many routers get them."""
    monkeypatch.setattr(pieces, "parse", lru_cache(4096)(parse))


def build(network: Network, chance: random.Random) -> None:
    """Build a line, ring, star, tree, full mesh or random graph, with random costs and delays."""
    names = [f"R{number}" for number in chance.sample(range(100), chance.randint(2, 12))]
    network.start(*names)
    shape = chance.choice(["line", "ring", "star", "tree", "mesh", "random"])
    pairs = {
        "line": list(itertools.pairwise(names)),
        "ring": list(zip(names, names[1:] + names[:1], strict=True)) if len(names) > 2 else [(names[0], names[1])],
        "star": [(names[0], name) for name in names[1:]],
        "tree": [(names[(number - 1) // 2], names[number]) for number in range(1, len(names))],
        "mesh": [(one, other) for place, one in enumerate(names) for other in names[place + 1 :]],
        "random": [(name, chance.choice(names[:place])) for place, name in enumerate(names) if place],
    }[shape]
    if shape == "random":
        pairs += [tuple(chance.sample(names, 2)) for _ in names]  # type: ignore[misc]
    for one, other in dict.fromkeys(pairs):
        network.connect(one, other, chance.choice([1, 1, 1, 2, 3, 10]), chance.choice([0.0, 0.001, 0.05, 0.5]))


def trouble(network: Network, chance: random.Random, listening: dict[str, set[str]]) -> None:
    """Cause one random failure, repair or change of addresses."""
    kind = chance.choice(["cut", "connect", "half", "heal", "restart", "listen", "listen", "leave"])
    wires = sorted(network.wires)
    names = sorted(network.routers)
    router = chance.choice(names)
    if kind == "cut" and wires:
        network.cut(chance.choice(wires))
    elif kind == "connect":
        one, other = chance.sample(names, 2)
        if not any({one, other} == set(wire.ends) for wire in network.wires.values()):
            network.connect(one, other, chance.choice([1, 2, 5]), chance.choice([0.0, 0.01, 0.3]))
    elif kind == "half" and wires:
        number = chance.choice(wires)
        network.go_half_dead(number, chance.choice(network.wires[number].ends))
    elif kind == "heal" and wires:
        network.wires[chance.choice(wires)].dead.clear()
    elif kind == "restart":
        network.restart(router)
        if chance.random() < 0.5:
            listening[router].clear()
        for key in sorted(listening[router]):
            network.routers[router].add_address(key, 3)
    elif kind == "listen":
        key = f"M0{chance.choice('abcdefgh')}"
        network.routers[router].add_address(key, 3)
        listening[router].add(key)
    elif kind == "leave" and listening[router]:
        key = chance.choice(sorted(listening[router]))
        network.routers[router].delete_address(key)
        listening[router].discard(key)


def storm(seed: int) -> None:
    """Run a network with random failures, and check its knowledge after a long enough calm."""
    chance = random.Random(seed)
    network = Network(seed, chance.choice(TIMERS))
    build(network, chance)
    listening: dict[str, set[str]] = {router: set() for router in network.routers}
    for _ in range(chance.randint(1, 25)):
        network.run(chance.choice([0.0, 0.1, 1.0, 3.0, 10.0]))
        trouble(network, chance, listening)
    network.run(network.timers.remote_ls_max_age_s + network.timers.ra_interval_s + CALM_S)
    check(network, listening)


@pytest.mark.parametrize("seed", SEEDS)
def test_after_a_storm_every_router_knows_the_paths_and_addresses_of_the_oracle(seed: int) -> None:
    storm(seed)


def test_a_ring_of_sixteen_finds_its_new_ways_within_four_seconds() -> None:
    """A wire that is cut is known at the next tick, and advertised, requested and answered at once."""
    network = Network(1)
    wires = ring(network, [f"R{number:02}" for number in range(16)])
    network.run(30)
    check(network, {router: set() for router in network.routers})
    network.cut(wires[3])
    graph = oracle(network)

    def converged() -> bool:
        return all(known.paths.next_hop == next_hops(graph, router) for router, known in network.routers.items())

    assert network.run_until(converged, 10) <= 4


def test_a_silent_neighbour_is_noticed_within_its_age_and_a_tick() -> None:
    timers = Timers()
    network = Network(2, timers)
    wires = ring(network, ["R1", "R2", "R3"])
    network.run(30)
    network.wires[wires[0]].dead.update(("R1", "R2"))
    network.run_until(lambda: "R2" not in network.routers["R1"].neighbours, timers.hello_max_age_s + 2)
    network.run_until(lambda: network.routers["R1"].paths.next_hop.get("R2") == "R3", 4)
