"""What a network of areas costs: interior routers that all know each other, each with edge routers behind it.

`python -m bench.areas [INTERIOR EDGES]` measures this alone (100 interior routers with 99 edge routers each, that is
10,000 routers, if not given), and prints one JSON object. Whole routers run in one process, joined in memory as in
`tests/sim`; only sockets and tasks are missing. Seconds without CPU in their name are simulated ones. A router's
processor time is that of the process, divided by the routers at work, so it includes the simulation.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from tests.sim.routers import End, Line, Network, Receiver

INTERIOR: Final = 100
EDGES: Final = 99
#: Seconds between the starts of two interior routers, as a person starts them at most.
APART_S: Final = 0.2
#: Seconds of calm that are measured: some rounds of advertisements.
CALM_S: Final = 60.0
#: Simulated seconds after which a network does not converge any more.
PATIENCE_S: Final = 300.0
_STEP_S: Final = 0.25
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


class CountingNetwork(Network):
    """A network that counts the octets between its routers."""

    octets = 0

    def _carry(self, line: Line, end: End, data: bytes) -> None:
        self.octets += len(data)
        super()._carry(line, end, data)


class Areas:
    """Interior routers in a ring with chords, and edge routers, each with an uplink to two of them."""

    def __init__(self, interior: int, edges: int) -> None:
        self.network = CountingNetwork()
        self.interior = [f"R{number:04}" for number in range(interior)]
        self.edges = {f"E{number:05}": number % interior for number in range(interior * edges)}
        self.receivers: dict[str, Receiver] = {}

    def start_interior(self) -> None:
        """Start the interior routers one after another, each joined with those before it."""
        count = len(self.interior)
        for number, name in enumerate(self.interior):
            self.network.start(name)
            for distance in (1, 1 + count // 10, 1 + count // 3):
                if number >= distance:
                    self.network.connect(name, self.interior[number - distance])
            self.network.run(APART_S)
        self.network.connect(self.interior[0], self.interior[-1])

    def start_edges(self) -> None:
        """Start all edge routers at the same moment, each with a consumer of an address of its own."""
        for name, number in self.edges.items():
            self.network.start(name)
            for place in (number, (number + 1) % len(self.interior)):
                self.network.connect(name, self.interior[place])
            self.receivers[name] = self.network.listen(name, f"of.{name}")

    def kill(self, name: str) -> None:
        """Kill an interior router's process."""
        self.network.stop(name)
        self.interior.remove(name)

    def interior_is_known(self) -> bool:
        """Return whether every interior router knows exactly all others."""
        others = set(self.interior)
        return all(self.network.routers[name].paths.next_hop.keys() == others - {name} for name in self.interior)

    def addresses_are_known(self) -> bool:
        """Return whether every interior router knows the addresses of all consumers behind the others."""
        return sum(map(self._consumers_elsewhere, self.interior)) == (len(self.interior) - 1) * len(self.edges)

    def _consumers_elsewhere(self, name: str) -> int:
        routers = self.network.sites[name].memory.core.network.routers.values()
        return len({key for known in routers for key in known.addresses if key.startswith("M0of.")})

    def carry(self, names: Iterable[str]) -> bool:
        """Send from each edge router to the consumer at the next one in ``names``; return whether all arrive."""
        chain = list(names)
        pairs = zip(chain, chain[1:] + chain[:1], strict=True)
        bodies = [self.network.post(one, f"of.{other}") for one, other in pairs]
        self.network.run(2.0)
        return all(self.network.accepted.get(body) == 1 for body in bodies)

    def wait(self, done: Callable[[], bool]) -> tuple[float, float]:
        """Run until ``done``; return the simulated seconds, and the CPU seconds of this process."""
        began_s, began_ns = self.network.now_s, time.process_time_ns()
        while not done():
            if self.network.now_s - began_s > PATIENCE_S:
                sys.exit(f"{len(self.network.sites)} routers have not converged within {PATIENCE_S:g} s")
            self.network.run(_STEP_S)
        return self.network.now_s - began_s, (time.process_time_ns() - began_ns) / 1e9


def resident_bytes() -> int:
    """Return the memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE_BYTES


def measured(interior: int, edges: int) -> dict[str, float]:
    """Return what a network of this size needs."""
    areas = Areas(interior, edges)
    before_bytes, before_ns = resident_bytes(), time.process_time_ns()
    areas.start_interior()
    found_s, _ = areas.wait(areas.interior_is_known)
    found = {
        "interior_known_s": found_s,
        "join_cpu_ms": (time.process_time_ns() - before_ns) / 1e6 / interior,
        "interior_kilobytes": (resident_bytes() - before_bytes) / 1000 / interior,
    }
    found |= _calm(areas, "interior", interior)
    if not edges:
        return found
    before_bytes, before_ns = resident_bytes(), time.process_time_ns()
    areas.start_edges()
    addresses_s, _ = areas.wait(areas.addresses_are_known)
    found |= {
        "addresses_known_s": addresses_s,
        "edge_join_cpu_ms": (time.process_time_ns() - before_ns) / 1e6 / len(areas.edges),
        "edge_kilobytes": (resident_bytes() - before_bytes) / 1000 / len(areas.edges),
    }
    found |= _calm(areas, "all", interior + len(areas.edges))
    names = list(areas.edges)
    if not areas.carry(names[:: max(1, len(names) // 100)]):
        sys.exit("messages between edge routers did not arrive")
    areas.kill(areas.interior[len(areas.interior) // 2])
    began_s = areas.network.now_s
    areas.network.run(1.0)
    moved = [name for name, number in areas.edges.items() if number == len(areas.interior) // 2]
    while not areas.carry(moved[:10]):
        if areas.network.now_s - began_s > PATIENCE_S:
            sys.exit("edge routers get no messages after their interior router was killed")
    found["edges_moved_s"] = areas.network.now_s - began_s
    found["killed_forgotten_s"] = areas.wait(areas.interior_is_known)[0] + found["edges_moved_s"]
    return found


def _calm(areas: Areas, what: str, routers: int) -> dict[str, float]:
    """Let nothing happen; return the CPU and the octets of a router in a second."""
    before, before_ns = areas.network.octets, time.process_time_ns()
    areas.network.run(CALM_S)
    return {
        f"calm_{what}_cpu_us": (time.process_time_ns() - before_ns) / 1e3 / routers / CALM_S,
        f"calm_{what}_octets": (areas.network.octets - before) / routers / CALM_S,
    }


def main() -> None:
    sizes = [int(each) for each in sys.argv[1:]] or [INTERIOR, EDGES]
    print(json.dumps(measured(*sizes)))


if __name__ == "__main__":
    main()
