"""A whole network of meshes in one process: messages travel as octets, time is a number, chance is a seed."""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from trouter.mesh.events import Event, PathsChanged, Send
from trouter.mesh.mesh import Mesh, Timers
from trouter.mesh.messages import compose
from trouter.mesh.relay import first_hops

#: A connection over which nothing comes for so long is closed.
IDLE_S = 16.0


@dataclass
class Wire:
    """A connection between two routers; each direction can be dead on its own."""

    number: int
    ends: tuple[str, str]
    cost: int
    delay_s: float
    dead: set[str] = field(default_factory=set)

    def other(self, end: str) -> str:
        return self.ends[1] if end == self.ends[0] else self.ends[0]


class Network:
    """Routers, the wires between them, and what is under way."""

    def __init__(self, seed: int, timers: Timers | None = None) -> None:
        self.chance = random.Random(seed)
        self.now_s = 1000.0
        self.timers = timers or Timers()
        self.routers: dict[str, Mesh] = {}
        self.wires: dict[int, Wire] = {}
        #: What every router was told, for the reader of a failure and for counting.
        self.told: list[tuple[float, str, Event]] = []
        self._composed: tuple[object, str, bytes] = (None, "", b"")
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._boots = itertools.count(1)
        self._wire_numbers = itertools.count(1)

    def start(self, *routers: str) -> None:
        for router in routers:
            mesh = self.routers[router] = Mesh(router, next(self._boots), self.timers)
            self._later(self.chance.random(), partial(self._tick, router, mesh))

    def stop(self, router: str) -> None:
        """The process is killed; its peers see the connection go."""
        for number, wire in list(self.wires.items()):
            if router in wire.ends:
                self.cut(number, gone=router)
        del self.routers[router]

    def restart(self, router: str) -> None:
        """Kill and start with the same id; the wires are plugged in again at once."""
        wires = [wire for wire in self.wires.values() if router in wire.ends]
        self.stop(router)
        self.start(router)
        for wire in wires:
            self.connect(*wire.ends, cost=wire.cost, delay_s=wire.delay_s)

    def connect(self, one: str, other: str, cost: int = 1, delay_s: float = 0.001) -> int:
        number = next(self._wire_numbers)
        self.wires[number] = Wire(number, (one, other), cost, delay_s)
        for router in (one, other):
            self.routers[router].link_up(number, cost, self.now_s)
            self._take(router)
        return number

    def cut(self, number: int, gone: str = "") -> None:
        """The connection closes; both ends see it."""
        wire = self.wires.pop(number)
        for router in wire.ends:
            if router != gone:
                self.routers[router].link_down(number, self.now_s)
                self._take(router)

    def go_half_dead(self, number: int, end: str) -> None:
        """What ``end`` sends is lost from now on; the other end closes the connection when it was silent for long."""
        wire = self.wires[number]
        wire.dead.add(end)
        self._later(IDLE_S, lambda: self.cut(number) if wire.dead and self.wires.get(number) is wire else None)

    # --- time

    def run(self, seconds: float) -> None:
        end_s = self.now_s + seconds
        while self._due and self._due[0][0] <= end_s:
            self.now_s, _, action = heapq.heappop(self._due)
            action()
        self.now_s = end_s

    def run_until(self, done: Callable[[], bool], at_most_s: float) -> float:
        """Run in steps of a tenth of a second; how long it took."""
        begun_s = self.now_s
        while not done():
            if self.now_s - begun_s > at_most_s:
                raise AssertionError(f"not within {at_most_s:g} s of simulated time")
            self.run(0.1)
        return self.now_s - begun_s

    def _later(self, seconds: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._due, (self.now_s + seconds, next(self._order), action))

    def _tick(self, router: str, mesh: Mesh) -> None:
        if self.routers.get(router) is mesh:
            mesh.tick(self.now_s)
            self._take(router)
            self._later(1.0, partial(self._tick, router, mesh))

    # --- messages under way

    def _take(self, router: str) -> None:
        """Send and note what the mesh of ``router`` has to say."""
        mesh = self.routers[router]
        taken = mesh.events[:]
        mesh.events.clear()
        for event in taken:
            if not isinstance(event, Send):
                self.told.append((self.now_s, router, event))
                continue
            data = self._compose(event)
            if event.connection is not None:
                self._transmit(router, event.connection, data)
            else:
                self._send_on(router, first_hops(event.to, mesh.paths), data)

    def _compose(self, event: Send) -> bytes:
        """The octets of a message; the same hello goes over all wires."""
        if self._composed[0] is not event.message or self._composed[1] != event.to:
            self._composed = event.message, event.to, compose(event.message, event.to)
        return self._composed[2]

    def _send_on(self, router: str, hops: Iterable[str], data: bytes) -> None:
        for hop in hops:
            self._transmit(router, self.routers[router].neighbours[hop], data)

    def _transmit(self, router: str, number: int, data: bytes) -> None:
        wire = self.wires.get(number)
        if wire is not None and router not in wire.dead:
            self._later(wire.delay_s, lambda: self._arrive(wire, wire.other(router), data))

    def _arrive(self, wire: Wire, router: str, data: bytes) -> None:
        if self.wires.get(wire.number) is not wire:
            return
        onward = self.routers[router].take(data, wire.number, self.now_s)
        self._send_on(router, onward.hops, onward.data)
        self._take(router)

    # --- what should be

    def live_links(self) -> dict[tuple[str, str], int]:
        """The cost of the way between each two routers that a wire which is wholly alive connects."""
        links: dict[tuple[str, str], int] = {}
        for wire in self.wires.values():
            if not wire.dead:
                for ends in (wire.ends, wire.ends[::-1]):
                    links[ends] = min(links.get(ends, wire.cost), wire.cost)
        return links

    def changes_of_paths(self, router: str) -> list[str]:
        return [event.why for _, who, event in self.told if who == router and isinstance(event, PathsChanged)]


def ring(network: Network, routers: Iterable[str]) -> list[int]:
    """Start the routers and connect them in a circle; the wires."""
    names = list(routers)
    network.start(*names)
    return [network.connect(one, other) for one, other in zip(names, names[1:] + names[:1], strict=True)]
