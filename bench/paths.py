"""The CPU that a router needs to compute the paths through a large network: its own, and those that pass through it.

`python -m bench.paths` measures this alone, and prints one JSON object. Times are CPU times of this process in ms.
"""

from __future__ import annotations

import json
import random
import time
from typing import Final

from trouter.mesh.paths import Paths

ROUTERS: Final = 1000
#: By name: the maximum cost of a link.
COSTS: Final = {"all links cost 1": 1, "links cost 1 to 10": 10}
RUNS: Final = 5


def network(dearest: int, rng: random.Random) -> dict[str, dict[str, int]]:
    """Return a random tree with two more links for each router: costs by neighbour, by router."""
    ids = [f"R{number:04}" for number in range(ROUTERS)]
    links: dict[str, dict[str, int]] = {router: {} for router in ids}
    pairs = [(ids[number], rng.choice(ids[:number])) for number in range(1, ROUTERS)]
    pairs += [(one, other) for one, other in (rng.sample(ids, 2) for _ in range(2 * ROUTERS))]
    for one, other in pairs:
        links[one][other] = links[other][one] = rng.randint(1, dearest)
    return links


def working_out(links: dict[str, dict[str, int]]) -> tuple[float, float]:
    """Return the times for the paths from one router, and for the routers behind it for every origin."""
    began_ns = time.process_time_ns()
    paths = Paths("R0007", links)
    own_ns = time.process_time_ns()
    for origin in links:
        paths.routers_beyond(origin)
    return (own_ns - began_ns) / 1e6, (time.process_time_ns() - began_ns) / 1e6


def main() -> None:
    rng = random.Random(20261122)
    found = {}
    for name, dearest in COSTS.items():
        links = network(dearest, rng)
        runs = [working_out(links) for _ in range(RUNS)]
        found[name] = {"own_ms": min(own for own, _ in runs), "all_ms": min(everything for _, everything in runs)}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
