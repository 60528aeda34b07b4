"""A whole network of meshes in one process: messages travel as bytes, time is a number, chance comes from a seed."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from tests.sim.timeline import Timeline
from trouter.mesh.events import Event, Forward, PathsChanged, Send
from trouter.mesh.mesh import Mesh, Timers
from trouter.mesh.messages import compose
from trouter.mesh.relay import first_hops

#: Seconds of silence after which a connection is closed.
IDLE_S = 16.0


@dataclass
class Wire:
    """A connection between two routers; each direction can fail independently."""

    number: int
    ends: tuple[str, str]
    cost: int
    delay_s: float
    dead: set[str] = field(default_factory=set)

    def other(self, end: str) -> str:
        return self.ends[1] if end == self.ends[0] else self.ends[0]


class Network(Timeline):
    """Routers, the wires between them, and the messages under way."""

    def __init__(self, seed: int, timers: Timers | None = None) -> None:
        super().__init__()
        self.chance = random.Random(seed)
        self.timers = timers or Timers()
        self.routers: dict[str, Mesh] = {}
        self.wires: dict[int, Wire] = {}
        #: The events of each router's mesh with their times, to explain a failure and to count.
        self.told: list[tuple[float, str, Event]] = []
        self._composed: tuple[object, str, bytes] = (None, "", b"")
        self._boots = itertools.count(1)
        self._wire_numbers = itertools.count(1)

    def start(self, *routers: str) -> None:
        for router in routers:
            mesh = self.routers[router] = Mesh(router, next(self._boots), self.timers)
            self._later(self.chance.random(), partial(self._tick, router, mesh))

    def stop(self, router: str) -> None:
        """Kill the router's process; its peers see the connections close."""
        for number, wire in list(self.wires.items()):
            if router in wire.ends:
                self.cut(number, gone=router)
        del self.routers[router]

    def restart(self, router: str) -> None:
        """Kill the router and start it with the same id; its wires are connected again at once."""
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
        """Close the connection; both ends see it, except the router ``gone``."""
        wire = self.wires.pop(number)
        for router in wire.ends:
            if router != gone:
                self.routers[router].link_down(number, self.now_s)
                self._take(router)

    def go_half_dead(self, number: int, end: str) -> None:
        """Lose everything that ``end`` sends from now on; the other end closes the connection after ``IDLE_S``."""
        wire = self.wires[number]
        wire.dead.add(end)
        self._later(IDLE_S, lambda: self.cut(number) if wire.dead and self.wires.get(number) is wire else None)

    # --- time

    def run_until(self, done: Callable[[], bool], at_most_s: float) -> float:
        """Run in steps of 0.1 s until ``done`` returns true; return the simulated seconds.

        Raise AssertionError after ``at_most_s``.
        """
        begun_s = self.now_s
        while not done():
            if self.now_s - begun_s > at_most_s:
                raise AssertionError(f"not within {at_most_s:g} s of simulated time")
            self.run(0.1)
        return self.now_s - begun_s

    def _tick(self, router: str, mesh: Mesh) -> None:
        if self.routers.get(router) is mesh:
            mesh.tick(self.now_s)
            self._take(router)
            self._later(1.0, partial(self._tick, router, mesh))

    # --- messages under way

    def _take(self, router: str) -> None:
        """Send the messages of the router's mesh, and keep its other events."""
        mesh = self.routers[router]
        while mesh.has_pieces:
            mesh.do_piece()
        taken = mesh.events[:]
        mesh.events.clear()
        for event in taken:
            if isinstance(event, Forward):
                self._send_on(router, event.hops, event.data)
                continue
            if not isinstance(event, Send):
                self.told.append((self.now_s, router, event))
                continue
            data = self._compose(event)
            if event.connection is not None:
                self._transmit(router, event.connection, data)
            else:
                self._send_on(router, first_hops(event.to, mesh.paths), data)

    def _compose(self, event: Send) -> bytes:
        """Return the bytes of a message; a hello that goes over several wires is composed once."""
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
        onward = self.routers[router].take_message(data, wire.number, self.now_s)
        self._send_on(router, onward.hops, onward.data)
        self._take(router)

    # --- expected state

    def live_links(self) -> dict[tuple[str, str], int]:
        """Return the lowest cost between each two routers that a wire with two live directions connects."""
        links: dict[tuple[str, str], int] = {}
        for wire in self.wires.values():
            if not wire.dead:
                for ends in (wire.ends, wire.ends[::-1]):
                    links[ends] = min(links.get(ends, wire.cost), wire.cost)
        return links

    def changes_of_paths(self, router: str) -> list[str]:
        return [event.why for _, who, event in self.told if who == router and isinstance(event, PathsChanged)]


def ring(network: Network, routers: Iterable[str]) -> list[int]:
    """Start the routers and connect them in a circle; return the numbers of the wires."""
    names = list(routers)
    network.start(*names)
    return [network.connect(one, other) for one, other in zip(names, names[1:] + names[:1], strict=True)]
