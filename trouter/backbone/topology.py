"""The history of the topology: what changed, why, which routers moved, and how long the network took to converge.

Events of the mesh are gathered into changes. A change begins with its first event and is over when the network has kept
its shape for as long as routers consider it in flux. The last ``MAX_CHANGES`` are kept.
"""

from __future__ import annotations

import hashlib
import logging
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from trouter.columns.network import NodeFacts
from trouter.core.network import Network
from trouter.mesh.events import Event, Ignored, NeighbourDown, NeighbourMoved, NeighbourUp, PathsChanged, RouterLost
from trouter.mesh.faults import MeshFault
from trouter.mesh.mesh import Mesh
from trouter.mesh.messages import VERSION
from trouter.mesh.names import shown
from trouter.records import Alarm, TopologyChange
from trouter.telemetry.recorder import Recorder

from .changes import NetworkChange

#: The changes that are kept.
MAX_CHANGES: Final = 100
#: Moved routers that get a record each when paths change; the others share one.
MAX_RECORDS: Final = 64
#: In a network of more routers, the valid origins of each are not reported: computing them would take seconds.
MAX_ORIGINS: Final = 300
#: Seconds without a fault after which two routers with one id count as gone.
QUIET_ABOUT_ID_S: Final = 60.0
#: Faults that only two routers with one id cause.
ONE_ID: Final = frozenset({MeshFault.SAME_ID, MeshFault.SHARED_ID})

log = logging.getLogger("trouter.ROUTER")

#: The way to a router: the neighbour that leads there, and the cost.
Way = tuple[str, int]


class Topology:
    """The network as one router sees it, and its latest changes."""

    def __init__(
        self, mesh: Mesh, network: Network, quiet_s: float, recorder: Recorder, calendar: Callable[[], float]
    ) -> None:
        """A change is over after ``quiet_s`` without another; ``calendar`` returns seconds since 1970."""
        self._mesh = mesh
        self._network = network
        self._quiet_s = quiet_s
        self._recorder = recorder
        self._calendar = calendar
        self._changes: deque[NetworkChange] = deque(maxlen=MAX_CHANGES)
        #: Changes since the start.
        self.count = 0
        self._ways: dict[str, Way] = {}
        #: Neighbours that came and went; their records wait for the cause, which comes with the next paths.
        self._neighbours: list[TopologyChange] = []
        #: Router -> when its links or the way to it last changed, in seconds since 1970.
        self._changed_at_s: dict[str, int] = {}
        #: Ids that two routers share; the number of such faults at the last look, and the time of the last one.
        self._shared: dict[str, None] = {}
        self._shared_count = 0
        self._shared_s = 0.0
        self._origins: tuple[int, dict[str, list[str]]] = (-1, {})

    # --- events of the mesh

    def note_event(self, event: Event, now_s: float) -> None:
        """Add an event to the history; events about messages to send and addresses are ignored."""
        if isinstance(event, PathsChanged):
            self._set_ways(event, now_s)
        elif isinstance(event, NeighbourUp):
            self._say(f"neighbour {shown(event.router)} came: [C{event.connection}], cost {event.cost}", now_s)
            self._neighbours.append(TopologyChange(what="neighbour-up", peer=event.router, cost_new=event.cost))
        elif isinstance(event, NeighbourMoved):
            self._say(f"neighbour {shown(event.router)} is reached over [C{event.connection}]", now_s)
        elif isinstance(event, NeighbourDown):
            self._say(f"neighbour {shown(event.router)} went: {event.why}", now_s)
            self._neighbours.append(TopologyChange(what="neighbour-down", peer=event.router, why=event.why))
        elif isinstance(event, RouterLost):
            last = self._last()
            if last is not None:  # it ends the former change and begins none
                last.add_line(f"router {shown(event.router)} is forgotten")
            self._changed_at_s.pop(event.router, None)
            self._recorder.emit(TopologyChange(what="node-lost", peer=event.router, cause_id=self._cause()))
        elif isinstance(event, Ignored) and event.fault in ONE_ID:
            self._raise_alarm(event, now_s)

    def tick(self, now_s: float) -> None:
        """End a change that is over, and alarms about shared ids; call once a second."""
        last = self._last()
        if last is not None and not last.settled and now_s - last.last_s >= self._quiet_s:
            self._settle(last)
        if self._shared:
            self._look_for_quiet(now_s)

    def _last(self) -> NetworkChange | None:
        return self._changes[-1] if self._changes else None

    def _cause(self) -> str | None:
        last = self._last()
        return None if last is None else last.cause or None

    def _current(self, why: str, now_s: float) -> NetworkChange:
        """Return the change under way, or a new one if there is none."""
        last = self._last()
        if last is not None and not last.settled:
            return last
        self.count += 1
        change = NetworkChange(self.count, int(self._calendar() * 1000), now_s, why, now_s, reachable=len(self._ways))
        self._changes.append(change)
        return change

    def _say(self, line: str, now_s: float) -> None:
        change = self._current(line, now_s)
        change.last_s = now_s
        change.add_line(line)

    def _set_ways(self, event: PathsChanged, now_s: float) -> None:
        paths = self._mesh.paths
        ways = {router: (hop, paths.cost[router]) for router, hop in paths.next_hop.items()}
        former, self._ways = self._ways, ways
        change = self._current(event.why, now_s)
        change.cause = change.cause or event.cause
        change.last_s = now_s
        change.rounds += 1
        change.reachable = len(ways)
        moved = [router for router in {**former, **ways} if former.get(router) != ways.get(router)]
        for router in moved:
            change.add_line(f"{_line(router, former.get(router), ways.get(router))} ({event.why})")
            change.moved[router] = None
        if not moved and event.why:
            change.add_line(f"no way is another ({event.why})")
        at_s = int(self._calendar())
        for router in (*moved, event.cause.rpartition(":")[0], self._mesh.me):
            if router in ways or router in self._mesh.routers or router == self._mesh.me:
                self._changed_at_s[router] = at_s
        self._record(event, former, ways, moved)

    def _record(
        self, event: PathsChanged, former: Mapping[str, Way], ways: Mapping[str, Way], moved: list[str]
    ) -> None:
        neighbours, self._neighbours = self._neighbours, []
        if not self._recorder.active:
            return
        cause = event.cause or None
        for record in neighbours:
            record.cause_id = cause
            self._recorder.emit(record)
        shape = _hash_of(ways)
        for router in moved[:MAX_RECORDS]:
            old, new = former.get(router), ways.get(router)
            self._recorder.emit(
                TopologyChange(
                    what="cost" if old and new and old[0] == new[0] else "path",
                    peer=router,
                    why=event.why,
                    cost_old=old[1] if old else None,
                    cost_new=new[1] if new else None,
                    next_hop=new[0] if new else None,
                    path_hash=shape,
                    cause_id=cause,
                )
            )
        if len(moved) > MAX_RECORDS:
            rest = len(moved) - MAX_RECORDS
            self._recorder.emit(
                TopologyChange(what="path", why=event.why, routers=rest, path_hash=shape, cause_id=cause)
            )

    def _settle(self, change: NetworkChange) -> None:
        change.settled = True
        if change.rounds:
            log.info(
                "the network has converged: change %d (%s) moved the paths to %d routers and took %.3f s; %d routers "
                "can be reached",
                change.number,
                change.why,
                len(change.moved),
                change.took_s,
                change.reachable,
            )
            self._recorder.emit(
                TopologyChange(
                    what="converged",
                    why=change.why,
                    routers=len(change.moved),
                    path_hash=_hash_of(self._ways),
                    cause_id=change.cause or None,
                    converge_us=int(change.took_s * 1_000_000),
                )
            )

    # --- two routers with one id

    def _raise_alarm(self, event: Ignored, now_s: float) -> None:
        self._shared_s = now_s
        self._shared_count = self._one_id_count()
        if event.who in self._shared:
            return
        self._shared[event.who] = None
        whose = (
            "another router has the id of this router,"
            if event.fault is MeshFault.SAME_ID
            else "two routers have one id,"
        )
        log.critical(
            "%s %s ([C%d], %s): messages get lost until you stop one of the two, or give it another id in its "
            "section router",
            whose,
            shown(event.who),
            event.connection,
            event.detail,
        )
        self._say(f"{whose} {shown(event.who)} ([C{event.connection}], {event.detail})", now_s)
        self._record_alarm(event.who, "raised", event.detail)

    def _one_id_count(self) -> int:
        return sum(self._mesh.faults[fault] for fault in ONE_ID)

    def _look_for_quiet(self, now_s: float) -> None:
        count = self._one_id_count()
        if count != self._shared_count:
            self._shared_count, self._shared_s = count, now_s
        elif now_s - self._shared_s >= QUIET_ABOUT_ID_S:
            for router in self._shared:
                log.info("no second router with the id %s was seen for %.0f s", shown(router), QUIET_ABOUT_ID_S)
                self._record_alarm(router, "cleared", None)
            self._shared.clear()

    def _record_alarm(self, router: str, state: str, detail: str | None) -> None:
        self._recorder.alarm(
            Alarm(name="duplicateRouterId", severity="critical", subject=router, state=state, value=detail)
        )

    @property
    def duplicate_ids(self) -> list[str]:
        """The ids that two routers share."""
        return list(self._shared)

    # --- the state of the network

    @property
    def faults(self) -> Mapping[str, int]:
        """The number of faults in messages of other routers, by the name of the fault."""
        return {fault.name.lower().replace("_", "-"): count for fault, count in self._mesh.faults.items()}

    def changes(self) -> Iterator[tuple[int, NetworkChange]]:
        """Yield the kept changes by number, the oldest first."""
        for change in self._changes:
            yield change.number, change

    def nodes(self) -> Iterator[tuple[str, NodeFacts]]:
        """Yield the reachable routers by id, this one first.

        A router must have answered this one: then it also answers requests of clients here.
        """
        mesh, me = self._mesh, self._mesh.me
        own = {neighbour: self._cost_over(connection) for neighbour, connection in mesh.neighbours.items()}
        yield (
            me,
            NodeFacts(
                id=me,
                protocol_version=VERSION,
                instance=mesh.instance,
                links=own,
                changed_at_s=self._changed_at_s.get(me, 0),
                next_hop="(self)",
                index=0,
            ),
        )
        origins = self.origins()
        for router, node in sorted(mesh.routers.items()):
            known = self._network.routers.get(router)
            hop = mesh.paths.next_hop.get(router)
            if hop is None or not node.answered:
                continue
            trunk = self._network.trunk_on(mesh.neighbours.get(router, -1)) if hop == router else None
            control = None if trunk is None else trunk.control_out
            yield (
                router,
                NodeFacts(
                    id=router,
                    protocol_version=VERSION,
                    instance=node.instance,
                    links=node.peers,
                    changed_at_s=self._changed_at_s.get(router, 0),
                    next_hop=None if hop == router else hop,
                    router_link=None if control is None else control.identity,
                    cost=mesh.paths.cost.get(router),
                    valid_origins=None if origins is None else origins.get(router, []),
                    index=None if known is None else known.index,
                ),
            )

    def _cost_over(self, connection: int) -> int:
        trunk = self._network.trunk_on(connection)
        return 1 if trunk is None else trunk.cost

    def origins(self) -> dict[str, list[str]] | None:
        """Return for each router those whose messages to it pass here; None in a network of over ``MAX_ORIGINS``."""
        mesh = self._mesh
        if len(mesh.routers) > MAX_ORIGINS:
            return None
        generation, found = self._origins
        if generation != self._network.generation:
            found = {}
            for origin in sorted(mesh.routers):
                for router in mesh.paths.routers_beyond(origin):
                    found.setdefault(router, []).append(origin)
            self._origins = (self._network.generation, found)
        return found

    @property
    def neighbour_count(self) -> int:
        """Number of neighbours."""
        return len(self._mesh.neighbours)

    @property
    def known_count(self) -> int:
        """Number of other routers that are known."""
        return len(self._mesh.routers)

    @property
    def reachable_count(self) -> int:
        """Number of known routers that can be reached."""
        return len(self._mesh.paths.next_hop)


def _line(router: str, former: Way | None, way: Way | None) -> str:
    """Return the change of the way to a router in words."""
    name = shown(router)
    if way is None:
        return f"{name} is out of reach"
    through = "directly" if way[0] == router else f"via {shown(way[0])}"
    if former is None:
        return f"{name} is in reach {through}, cost {way[1]}"
    before = "directly" if former[0] == router else f"via {shown(former[0])}"
    return f"{name} is reached {through}, cost {way[1]}; it was {before}, cost {former[1]}"


def _hash_of(ways: Mapping[str, Way]) -> str:
    """Return a hash of the shape of the network, to distinguish it from others."""
    text = "\n".join(f"{router} {hop} {cost}" for router, (hop, cost) in sorted(ways.items()))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
