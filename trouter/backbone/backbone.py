"""Joins the mesh, which finds other routers, with the core, which routes to them, and the connections between them.

There are no sockets or tasks here; the owner of a ``Backbone`` calls ``tick`` once a second and writes the output.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from trouter.core.network import Trunk
from trouter.core.router import Router
from trouter.core.streams import SCRUB_EVERY_S
from trouter.logs import TRACE
from trouter.mesh.events import (
    AddressesChanged,
    Event,
    Forward,
    Ignored,
    NeighbourDown,
    NeighbourMoved,
    NeighbourUp,
    PathsChanged,
    RouterLost,
    Send,
)
from trouter.mesh.mesh import Mesh, Timers
from trouter.mesh.messages import (
    MAX_COST,
    Hello,
    Message,
    MobileAddressRequest,
    MobileAddressUpdate,
    Newer,
    compose,
    parse,
)
from trouter.mesh.names import shown
from trouter.mesh.relay import first_hops
from trouter.telemetry.recorder import Recorder
from trouter.wire.errors import DecodeError
from trouter.wire.performatives import Open

from .mesh_text import text_of
from .topology import Topology

#: Most reachable routers for which a change is logged with the valid origins: each origin costs a tree.
SMALL_NETWORK: Final = 32
#: Seconds from a change of our addresses to its advertisement, for which others wait to come with it.
NEWS_AFTER_S: Final = 0.01
#: Seconds of work on large messages before other connections have a turn.
PIECES_S: Final = 0.002
_NO_NEWS: Final = float("inf")
#: Added to the cost of each link of a router that drains: more than any way around it costs.
DETOUR_COST: Final = 1_000_000

hello_log = logging.getLogger("trouter.ROUTER_HELLO")
links_log = logging.getLogger("trouter.ROUTER_LS")
mobile_log = logging.getLogger("trouter.ROUTER_MA")


def announced_cost(remote: Open) -> int:
    """Return the cost of a connection from the peer's open; 1 if it has no valid one (inter-router.md 1.2)."""
    properties = remote.properties if isinstance(remote.properties, Mapping) else {}
    cost = properties.get("qd.inter-router-cost")
    if isinstance(cost, int) and not isinstance(cost, bool) and 1 <= cost <= MAX_COST:
        return int(cost)
    return 1


class Backbone:
    """The mesh of one router, joined to its routing."""

    def __init__(
        self,
        router: Router,
        instance: int,
        timers: Timers,
        now: Callable[[], float],
        wake: Callable[[float], None],
        recorder: Recorder | None = None,
        calendar: Callable[[], float] = time.time,
    ) -> None:
        """``instance`` is that of ``Mesh``; ``now`` returns the time in seconds, ``calendar`` seconds since 1970.

        ``wake`` is called with the time at which ``advertise_news`` must be called, and with the present time if
        ``do_pieces`` must be.
        """
        self.mesh = Mesh(router.table.router_id, instance, timers)
        #: A change is over once the routers no longer consider the network in flux.
        quiet_s = 2 * timers.ra_interval_flux_s
        self.topology = Topology(self.mesh, router.network, quiet_s, recorder or Recorder(), calendar)
        #: Control messages received and sent.
        self.taken = 0
        self.sent = 0
        self._router = router
        self._network = router.network
        self._now = now
        #: By connection: the callback for the first message of its router.
        self._unheard: dict[int, Callable[[], None]] = {}
        #: The connections that the mesh uses.
        self._linked: set[int] = set()
        self._scrubbed_s = float("-inf")
        #: When changes of our addresses are to be advertised; inf while there are none.
        self.news_at_s = _NO_NEWS
        self._wake = wake
        self._network.add_trunk_listener(self)
        self._network.local_listeners.add(self._advertise_local)

    # --- connections

    def add_trunk(self, trunk: Trunk, heard: Callable[[], None] | None = None) -> None:
        """Add an open connection to another router; its links are attached from here on.

        ``heard`` is called once, when the first control message comes over it.
        """
        self._network.add_trunk(trunk)
        if heard is not None:
            self._unheard[trunk.number] = heard

    def remove_trunk(self, trunk: Trunk) -> None:
        """Remove a connection that is gone."""
        self._unheard.pop(trunk.number, None)
        self._network.remove_trunk(trunk)
        self._unlink(trunk)

    def update_trunk(self, trunk: Trunk) -> None:
        """Add or remove a connection in the mesh, as its links have changed."""
        if self._network.trunk_on(trunk.number) is not trunk:
            return
        if not trunk.ready:
            self._unlink(trunk)
        elif trunk.number not in self._linked:
            self._linked.add(trunk.number)
            self.mesh.link_up(trunk.number, trunk.cost, self._now())
            self._work()

    def _unlink(self, trunk: Trunk) -> None:
        if trunk.number in self._linked:
            self._linked.discard(trunk.number)
            self.mesh.link_down(trunk.number, self._now())
            self._work()

    def avoid_transit(self, wanted: bool) -> None:
        """Let messages between other routers go around this one if they can, or no longer."""
        self.mesh.set_detour_cost(DETOUR_COST if wanted else 0, self._now())
        self._work()

    # --- input and time

    def tick(self) -> None:
        """Do the work of each second: scrub streams, advance mesh and topology."""
        now_s = self._now()
        if now_s - self._scrubbed_s >= SCRUB_EVERY_S:
            self._scrubbed_s = now_s
            self._network.close_idle_streams()
        self.news_at_s = _NO_NEWS
        self.mesh.tick(now_s)
        self._work()
        self.topology.tick(self._now())

    @property
    def silent_at_s(self) -> float:
        """The time at which a neighbour is silent for too long; see ``Mesh``."""
        return self.mesh.silent_at_s

    def check_silence(self) -> None:
        """Drop neighbours that have been silent for too long."""
        self.mesh.check_silence(self._now())
        self._work()

    def receive_control(self, trunk: Trunk, message: bytes) -> None:
        """Process a control message of a neighbour."""
        self.taken += 1
        heard = self._unheard.pop(trunk.number, None)
        if heard is not None:
            heard()
        if self._is_traced:
            _trace_received(message)
        way = self.mesh.take_message(message, trunk.number, self._now())
        self._forward(way.hops, way.data)
        self._work()

    def _advertise_local(self, key: str, hint: int, present: bool) -> None:
        """Advertise an address that has its first consumer here, or withdraw it; a router that stops does neither."""
        if self._router.shared.stopping:
            return
        if present:
            self.mesh.add_address(key, hint)
        else:
            self.mesh.delete_address(key)
        if self.news_at_s == _NO_NEWS:
            self.news_at_s = self._now() + NEWS_AFTER_S
            self._wake(self.news_at_s)

    def advertise_news(self) -> None:
        """Advertise the changes of our addresses, at ``news_at_s``."""
        self.news_at_s = _NO_NEWS
        self.mesh.advertise_addresses(self._now())
        self._work()

    # --- output

    def _work(self) -> None:
        """Carry out the events of the mesh."""
        mesh = self.mesh
        while mesh.events:
            events = mesh.events[:]
            mesh.events.clear()
            for event in events:
                self._do(event)
        if mesh.has_pieces:
            self._wake(self._now())

    def do_pieces(self) -> None:
        """Do some of the work on large messages, if there is any; ``wake`` is called if there is more."""
        began_s = time.perf_counter()
        while self.mesh.has_pieces and time.perf_counter() - began_s < PIECES_S:
            self.mesh.do_piece()
            self._work()

    def _do(self, event: Event) -> None:
        if isinstance(event, Send):
            self._send(event)
            return
        if isinstance(event, Forward):
            self._forward(event.hops, event.data)
            return
        self.topology.note_event(event, self._now())
        if isinstance(event, PathsChanged):
            self._network.set_ways(self.mesh.paths, self.mesh.neighbours)
            reach = len(self.mesh.paths.next_hop)
            links_log.info("paths through the network recomputed: %s; %d routers can be reached", event.why, reach)
            self._log_paths()
        elif isinstance(event, AddressesChanged):
            self._network.change_addresses(event.router, event.added, event.deleted)
            mobile_log.debug(
                "router %s: %d addresses added, %d deleted", shown(event.router), len(event.added), len(event.deleted)
            )
        elif isinstance(event, RouterLost):
            self._network.forget_router(event.router)
            links_log.info("router %s is gone from the network", shown(event.router))
        elif isinstance(event, NeighbourUp):
            name = shown(event.router)
            hello_log.info("router %s is a neighbour over [C%d], cost %d", name, event.connection, event.cost)
        elif isinstance(event, NeighbourMoved):
            hello_log.info("neighbour %s is now reached over [C%d]", shown(event.router), event.connection)
        elif isinstance(event, NeighbourDown):
            hello_log.info("router %s is no longer a neighbour: %s", shown(event.router), event.why)
            for trunk in self._network.trunks:
                if trunk.neighbour == event.router:
                    self._router.fail_sent(trunk)
        elif isinstance(event, Ignored):
            detail = f" ({event.detail})" if event.detail else ""
            links_log.warning(
                "[C%d] a message of router %s was ignored: %s%s, %d times since the last such line",
                event.connection,
                shown(event.who) or "unknown",
                event.fault.value,
                detail,
                event.times,
            )

    def _log_paths(self) -> None:
        """Log the computed paths in the words of Qpid Dispatch: programs draw networks from these lines."""
        paths = self.mesh.paths
        links_log.info("Computed next hops: %r", dict(sorted(paths.next_hop.items())))
        links_log.info("Computed costs: %r", dict(sorted(paths.cost.items())))
        if len(paths.next_hop) <= SMALL_NETWORK:
            links_log.info("Computed valid origins: %r", self.topology.origins())
        links_log.info("Computed radius: %d", paths.radius)

    @property
    def _is_traced(self) -> bool:
        """True if control messages of any kind are logged."""
        return any(log.isEnabledFor(TRACE) for log in (hello_log, links_log, mobile_log))

    def _send(self, event: Send) -> None:
        _log_of(event.message).log(TRACE, "SENT: %s", _Text(event.message))
        octets = compose(event.message, event.to)
        if event.connection is not None:
            trunk = self._network.trunk_on(event.connection)
            if trunk is not None:
                self.sent += self._router.inside.send_control(trunk, octets)
            return
        self._forward(first_hops(event.to, self.mesh.paths), octets)

    def _forward(self, hops: Iterable[str], octets: bytes) -> None:
        for hop in hops:
            self._send_to(hop, octets)

    def _send_to(self, neighbour: str, octets: bytes) -> None:
        trunk = self._network.trunk_on(self.mesh.neighbours.get(neighbour, -1))
        if trunk is not None:
            self.sent += self._router.inside.send_control(trunk, octets)


class _Text:
    """The text of a message, made only if a line is logged."""

    def __init__(self, message: Message | Newer) -> None:
        self._message = message

    def __str__(self) -> str:
        return text_of(self._message)


def _log_of(message: Message | Newer) -> logging.Logger:
    """Return the logger of messages of this kind."""
    if isinstance(message, Hello):
        return hello_log
    return mobile_log if isinstance(message, MobileAddressRequest | MobileAddressUpdate) else links_log


def _trace_received(data: bytes) -> None:
    """Log a message of another router; ``Mesh`` reports a malformed one."""
    try:
        message = parse(data)
    except DecodeError:
        return
    _log_of(message).log(TRACE, "RCVD: %s", _Text(message))
