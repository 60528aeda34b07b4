"""How long routers need to learn each other's addresses: many that appear at once, and all of them for a new router.

`python -m bench.syncing` measures this alone, and prints one JSON object. Whole routers run in one process, joined in
memory as in `tests/sim`: the figures are the CPU time of all of them, and the simulated seconds that pass.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Final

from tests.sim.routers import Network

ADDRESSES: Final = 100_000
#: The hint of an address with balanced distribution.
HINT: Final = 3


def until(network: Network, done: Callable[[], bool]) -> float:
    """Run until ``done``; return the seconds of CPU time and of simulated time."""
    began_s, began_ns = network.now_s, time.process_time_ns()
    while not done():
        network.run(0.05)
    return network.now_s - began_s + (time.process_time_ns() - began_ns) / 1e9


def known_by(network: Network, router: str) -> int:
    """Return the count of R1's addresses that another router knows."""
    found = network.sites[router].memory.core.network.routers.get("R1")
    return 0 if found is None else sum(key.startswith("M") for key in found.addresses)


def main() -> None:
    network = Network()
    network.start("R1", "R2")
    network.connect("R1", "R2")
    network.run(10.0)
    advertise = network.sites["R1"].memory.core.network.advertise
    for number in range(ADDRESSES):
        advertise(f"M0queue.number.{number}", HINT)
    told_s = until(network, lambda: known_by(network, "R2") == ADDRESSES)
    network.start("R3")
    network.connect("R2", "R3")
    joined_s = until(network, lambda: known_by(network, "R3") == ADDRESSES)
    print(json.dumps({"told_s": told_s, "joined_s": joined_s}))


if __name__ == "__main__":
    main()
