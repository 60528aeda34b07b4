"""Several routing cores in one process, joined in memory by the links that routers have between them.

Each core gets its paths straight from ``Paths`` and the addresses of the others at once: the mesh has its own tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from trouter.core.containers import Container
from trouter.core.messagelog import MessageLog
from trouter.core.network import PRIORITIES, Trunk
from trouter.core.table import AddressRule
from trouter.core.terms import PeerTerms
from trouter.core.trunking import begin_links, open_streams
from trouter.engine.connection import Connection
from trouter.engine.events import ConnectionOpened, Event
from trouter.engine.limits import EngineLimits
from trouter.engine.session import Session
from trouter.mesh.paths import Paths
from trouter.testing import MemoryClient, MemoryRouter
from trouter.testing.memory import LIMITS, serve_links
from trouter.wire.performatives import Open

MAX_ROUNDS = 100_000


class JoinedRouter(MemoryRouter):
    """A router of the network; it carries data until the whole network is at rest."""

    def __init__(self, joined: Joined, router_id: str, rules: Iterable[AddressRule]) -> None:
        super().__init__(rules, router_id=router_id, mode="interior")
        self.joined = joined

    def connect(self, terms: PeerTerms | None = None, **options: Any) -> MemoryClient:
        """Connect a client, under the limits of all routers."""
        return super().connect(terms, **{"limits": self.joined.limits} | options)

    def pump(self) -> None:
        """Carry all data of the network."""
        self.joined.pump()


class Side:
    """One router's side of a connection to another."""

    def __init__(
        self, router: JoinedRouter, number: int, cost: int, capacity: int, streams: bool, limits: EngineLimits
    ) -> None:
        self.router = router
        self.number = number
        name = router.core.table.router_id
        self.engine = Connection(
            limits, Open(container_id=name, max_frame_size=limits.max_frame_bytes), router._outbox, None, server=False
        )
        self.trunk = Trunk(number, self.engine, capacity, cost, name)
        self.streams = streams
        self.terms = PeerTerms(capacity, False, False, connection_number=number, trunk=self.trunk, role="inter-router")
        self.faults: list[object] = []
        self.stalled = False
        self.ended: list[Session] = []

    def begin_session(self) -> Session:
        session = self.engine.add_session()
        session.begin()
        return session

    def end_session(self, session: Session) -> None:
        self.ended.append(session)
        session.end()

    def serve(self, event: Event) -> None:
        """Handle an event as `trouter.connections` does, without tasks."""
        core = self.router.core
        if isinstance(event, ConnectionOpened):
            core.network.add_trunk(self.trunk)
            core.container_came(Container(self.engine, self.terms, event.open.container_id, "", self.terms.role))
            if self.streams:
                open_streams(core, self.trunk, self.begin_session, self.end_session)
        fault = serve_links(core, self.engine, self.terms, event)
        if fault is not None:
            self.faults.append(fault)

    def lose(self) -> None:
        """Remove the connection from the core."""
        self.router.core.container_gone(self.number)
        for session in self.engine.sessions():
            self.router.core.lose_session(session)
        self.router.core.network.remove_trunk(self.trunk)


class Joined:
    """The routers by name, each with its clients; ``links`` has the cost of the link between each pair of names."""

    def __init__(
        self,
        links: Mapping[tuple[str, str], int],
        rules: Iterable[AddressRule] = (),
        *,
        more_rules: Mapping[str, Iterable[AddressRule]] | None = None,
        capacity: int = 250,
        streams: bool = True,
        limits: EngineLimits = LIMITS,
        logs: Mapping[str, MessageLog] | None = None,
    ) -> None:
        """Start the routers; those named in ``logs`` log the messages on their connections to others."""
        self.limits = limits
        self.routers: dict[str, JoinedRouter] = {}
        self.sides: dict[tuple[str, str], Side] = {}
        self.costs = dict(links)
        for name in sorted({name for pair in links for name in pair}):
            router = self.routers[name] = JoinedRouter(self, name, (*rules, *(more_rules or {}).get(name, ())))
            router.core.network.local_listeners.add(partial(self._tell, name))
        for number, ((one, other), cost) in enumerate(links.items(), 1001):
            for name, neighbour in ((one, other), (other, one)):
                self.sides[name, neighbour] = Side(self.routers[name], number, cost, capacity, streams, limits)
            for side in (self.sides[one, other], self.sides[other, one]):
                side.trunk.log = (logs or {}).get(side.router.core.table.router_id)
                side.engine.open()
            self.pump()
            dialler = self.sides[one, other]
            sessions = [dialler.begin_session() for _ in range(1 + PRIORITIES)]
            begin_links(dialler.router.core, dialler.trunk, sessions, capacity)
            self.pump()
        self.find_ways()

    def __getitem__(self, name: str) -> JoinedRouter:
        return self.routers[name]

    def find_ways(self) -> None:
        """Give each router the paths of the network as it is now."""
        peers: dict[str, dict[str, int]] = {name: {} for name in self.routers}
        for one, other in self.sides:
            peers[one][other] = self.costs.get((one, other)) or self.costs[other, one]
        for name, router in self.routers.items():
            neighbours = {other: side.number for (one, other), side in self.sides.items() if one == name}
            router.core.network.set_ways(
                Paths(name, {each: links for each, links in peers.items() if links}), neighbours
            )
        self.pump()

    def cut(self, one: str, other: str, *, found: bool = True) -> None:
        """Cut the connection between two routers; all routers get new paths at once if ``found``."""
        for pair in ((one, other), (other, one)):
            self.sides.pop(pair).lose()
        self.pump()
        if found:
            self.find_ways()

    def _tell(self, name: str, key: str, hint: int, present: bool) -> None:
        for other, router in self.routers.items():
            if other != name:
                router.core.network.change_addresses(name, {key: hint} if present else {}, () if present else (key,))

    def pump(self) -> None:
        """Carry data until no router and no client has anything to send."""
        for _ in range(MAX_ROUNDS):
            moved = False
            clients = [client for router in self.routers.values() for client in router.clients]
            for client in clients:
                moved = client.write() or moved
            for router in self.routers.values():
                router.flush()
            for client in clients:
                moved = client.read() or moved
            for (one, other), side in list(self.sides.items()):
                moved = self._carry(side, self.sides[other, one]) or moved
            if not moved:
                return
        raise AssertionError("the routers never come to rest")

    def _carry(self, side: Side, other: Side) -> bool:
        """Carry the output of ``side`` to ``other``; return whether there was any."""
        if side.stalled:
            return False
        moved = bytes(side.engine.out)
        side.engine.out.clear()
        if not moved:
            return False
        if side.engine.paused:
            side.engine.resume_output()
        other.engine.receive_data(moved)
        while other.engine.events:
            other.serve(other.engine.events.pop(0))
        return True

    def under_way(self) -> int:
        """Return the count of deliveries that balanced distribution counts as under way, in all routers."""
        return sum(count.count for side in self.sides.values() for count in side.trunk.outstanding.values())

    def held_bytes(self) -> int:
        """Return the bytes of messages that all routers and sessions keep."""
        sessions = [session for side in self.sides.values() for session in side.engine.sessions()]
        return sum(router.held_bytes() for router in self.routers.values()) + sum(
            each.windows.held_bytes for each in sessions
        )
