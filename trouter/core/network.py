"""The other routers in the routing core: the way to each, and the addresses of each (inter-router.md 4.4-4.8)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final, Protocol

from trouter.engine.connection import Connection
from trouter.engine.ports import LinkSink

from .addresses import DEFAULT_AREA, EDGE, MOBILE, ROUTER
from .arrival import DeliverySource
from .egress import Egress, StreamPoolPort
from .listeners import EventListeners
from .message import Outstanding
from .messagelog import MessageLog

if TYPE_CHECKING:
    from cython import Py_ssize_t

#: The treatment of each advertised number (inter-router.md 2.6).
TREATMENT_OF_HINT: Final = {0: "multicast", 1: "multicast", 2: "closest", 3: "balanced"}
HINT_OF_TREATMENT: Final = {"multicast": 1, "closest": 2, "balanced": 3}
#: Data links in one direction, by priority.
PRIORITIES: Final = 10
#: The first letters of the keys of link routes: prefixes and patterns, in and out.
LINK_ROUTE_LETTERS: Final = frozenset("CDEF")

_ROUTER_PREFIX: Final = f"{DEFAULT_AREA}/"
#: The longest key; longer ones are of addresses that no client can use here.
MAX_KEY: Final = 4096
_LAST: Final[Py_ssize_t] = PRIORITIES - 1


class Ways(Protocol):
    """The ways through the network, computed for one shape of it."""

    @property
    def next_hop(self) -> Mapping[str, str]:
        """The neighbour that leads to each router."""

    @property
    def cost(self) -> Mapping[str, int]:
        """The cost of the way to each router."""

    @property
    def radius(self) -> int:
        """Number of links on the way to the farthest router."""

    def routers_beyond(self, origin: str) -> frozenset[str]:
        """Return the routers to which messages that entered at ``origin`` travel through this one."""


class RemoteAddress(Protocol):
    """What the network needs of an address; see ``AddressEntry``."""

    pinned: bool
    remote_listeners: int

    @property
    def key(self) -> str:
        """Return the lookup key."""

    def add_remote(self, router: RemoteRouter) -> None:
        """Add a reachable router that listens on the address."""

    def remove_remote(self, router: RemoteRouter) -> None:
        """Remove a router that can no longer be reached or no longer listens."""


class RemoteTable(Protocol):
    """What the network needs of the addresses; see ``AddressTable``."""

    @property
    def router_id(self) -> str:
        """Return the id of this router."""

    def obtain_remote(self, key: str, treatment: str | None) -> RemoteAddress:
        """Return the address that another router listens on, created if necessary."""

    def release_remote(self, key: str) -> None:
        """Remove the address if it has no user left."""


class RouteListener(Protocol):
    """What follows the link routes of other routers; see ``Routes``."""

    def update_remote(self, key: str, router: str, present: bool) -> None:
        """Add or remove the link route of another router."""

    def forget_remote(self, router: str) -> None:
        """Remove all link routes of another router, which is forgotten."""


class TrunkListener(Protocol):
    """What follows the connections to neighbours."""

    def receive_control(self, trunk: Trunk, message: bytes) -> None:
        """Process a complete control message."""

    def update_trunk(self, trunk: Trunk) -> None:
        """Note that a trunk may have become ready, or no longer is."""


class Trunk:
    """A connection to a neighbouring router, and the links on it: control, and data by priority."""

    __slots__ = (
        "number",
        "engine",
        "capacity",
        "cost",
        "neighbour",
        "name",
        "to_sibling",
        "remote_container",
        "control_in",
        "control_out",
        "data_in",
        "came",
        "log",
        "stream_pool",
        "_senders",
        "_places",
        "_ladder",
        "outstanding",
    )

    def __init__(
        self,
        number: Py_ssize_t,
        engine: Connection,
        capacity: Py_ssize_t,
        cost: Py_ssize_t = 1,
        remote_container: str = "",
        log: MessageLog | None = None,
    ) -> None:
        """``log`` is that of the messages on its data links, None for none."""
        #: The connection's number in management.
        self.number = number
        self.engine = engine
        #: Unsettled deliveries of one address that make the connection full.
        self.capacity = capacity
        self.cost = cost
        #: The id of the router at the other end, "" before its hello; and its name in annotations.
        self.neighbour = ""
        self.name: str = _ROUTER_PREFIX
        #: The neighbour is another worker of this router.
        self.to_sibling = False
        self.remote_container = remote_container
        self.control_in: DeliverySource | None = None
        self.control_out: Egress | None = None
        #: The data links on which the neighbour sends, and how many it ever attached.
        self.data_in: Py_ssize_t = 0
        self.came: Py_ssize_t = 0
        self.log = log
        #: The links for unfinished messages; None if the neighbour wants none.
        self.stream_pool: StreamPoolPort | None = None
        self._senders: list[Egress | None] = []
        #: The priority of each data link, in both directions; links without one are absent.
        self._places: dict[LinkSink, int] = {}
        #: By priority, the link for it: its own or that of the next lower one.
        self._ladder: list[Egress | None] = [None] * PRIORITIES
        #: By forwarder.
        self.outstanding: dict[object, Outstanding] = {}

    @property
    def ready(self) -> bool:
        """True if all links are attached that a neighbour needs (inter-router.md 1.5)."""
        both = self.control_in is not None and self.control_out is not None
        return both and self.data_in > 0 and self._ladder[_LAST] is not None

    def set_neighbour(self, neighbour: str) -> None:
        """Set the id of the router at the other end; "" if it is unknown again."""
        self.neighbour = neighbour
        self.name = _ROUTER_PREFIX + neighbour

    def add_data(self, outgoing: Egress) -> None:
        """Add a data link to send on; its position is its priority, and the eleventh has none."""
        self._rank(outgoing, len(self._senders))
        self._senders.append(outgoing)
        self._climb()

    def add_data_in(self, incoming: DeliverySource) -> None:
        """Add a data link on which the neighbour sends; its priority as with ``add_data``."""
        self._rank(incoming, self.came)
        self.data_in += 1
        self.came += 1

    def _rank(self, endpoint: LinkSink, place: int) -> None:
        if place < PRIORITIES:
            self._places[endpoint] = place

    def is_control(self, endpoint: LinkSink) -> bool:
        """Return whether a link of the trunk is one of its control links."""
        return endpoint is self.control_in or endpoint is self.control_out

    def priority_of(self, endpoint: LinkSink) -> int:
        """Return the priority of a data link, -1 for a stream's, which has none."""
        return self._places.get(endpoint, -1)

    @property
    def data_out(self) -> int:
        """Number of data links to send on that were ever attached, without those of streams."""
        return len(self._senders)

    def remove_link(self, endpoint: LinkSink) -> None:
        """Remove a link that has ended; its priority falls to the next lower one."""
        self._places.pop(endpoint, None)
        if endpoint is self.control_in:
            self.control_in = None
        elif endpoint is self.control_out:
            self.control_out = None
        elif endpoint in self._senders:
            self._senders[self._senders.index(endpoint)] = None
            self._climb()
        elif not isinstance(endpoint, Egress):
            self.data_in -= 1

    def _climb(self) -> None:
        last = None
        for priority in range(PRIORITIES):
            if priority < len(self._senders) and self._senders[priority] is not None:
                last = self._senders[priority]
            self._ladder[priority] = last

    def link_for(self, priority: Py_ssize_t) -> Egress | None:
        """Return the link for messages of ``priority``, 0 to 9; None if there is none."""
        return self._ladder[priority]

    def outstanding_of(self, forwarder: object) -> Outstanding:
        """Return the count of an address's deliveries under way on this connection, by its forwarder."""
        found = self.outstanding.get(forwarder)
        if found is None:
            found = self.outstanding[forwarder] = Outstanding()
        return found


class RemoteRouter:
    """Another router: the connection that leads there, None for none, and the cost of the way."""

    __slots__ = ("id", "sibling", "index", "trunk", "cost", "addresses")

    def __init__(self, router_id: str, index: Py_ssize_t = 0, *, sibling: bool = False) -> None:
        self.id = router_id
        #: It is another worker of this router: its consumers count as local.
        self.sibling = sibling
        #: Its position in lists by router, where this router has 0; it keeps it while it is known.
        self.index = index
        self.trunk: Trunk | None = None
        self.cost: Py_ssize_t = 0
        #: The addresses that it listens on, by key.
        self.addresses: dict[str, RemoteAddress] = {}


class Network:
    """All other routers, and the connections to neighbours."""

    __slots__ = (
        "table",
        "siblings",
        "routers",
        "radius",
        "generation",
        "_freed",
        "_trunks",
        "stream_pools",
        "_ways",
        "_beyond",
        "local_listeners",
        "_route_listeners",
        "_trunk_listeners",
    )

    def __init__(self, table: RemoteTable) -> None:
        self.table = table
        #: The ids of the other workers of this router.
        self.siblings: frozenset[str] = frozenset()
        self.routers: dict[str, RemoteRouter] = {}
        #: Links on the way to the farthest router.
        self.radius: Py_ssize_t = 0
        #: Counts the shapes of the network so far.
        self.generation: Py_ssize_t = 0
        #: Positions in lists by router that are free again.
        self._freed: list[int] = []
        #: By connection number.
        self._trunks: dict[int, Trunk] = {}
        #: The links for unfinished messages between edge and interior routers, by connection number.
        self.stream_pools: dict[int, StreamPoolPort] = {}
        self._ways: Ways | None = None
        self._beyond: dict[str, frozenset[str]] = {}
        #: Called with (key, hint, present) when a key gains its first or loses its last consumer here.
        self.local_listeners: EventListeners[str, int, bool] = EventListeners()
        self._route_listeners: list[RouteListener] = []
        self._trunk_listeners: list[TrunkListener] = []

    # --- listeners

    def add_route_listener(self, listener: RouteListener) -> None:
        """Notify ``listener`` of the link routes of other routers from now on."""
        self._route_listeners.append(listener)

    def add_trunk_listener(self, listener: TrunkListener) -> None:
        """Notify ``listener`` of control messages and of the states of trunks from now on."""
        self._trunk_listeners.append(listener)

    def receive_control(self, trunk: Trunk, message: bytes) -> None:
        """Pass on a complete control message that came on ``trunk``."""
        for listener in self._trunk_listeners:
            listener.receive_control(trunk, message)

    def update_trunk(self, trunk: Trunk) -> None:
        """Notify that ``trunk`` may have become ready, or no longer is."""
        for listener in self._trunk_listeners:
            listener.update_trunk(trunk)

    # --- connections

    @property
    def trunks(self) -> Iterable[Trunk]:
        """Connections to neighbours, and to routers that may become neighbours."""
        return self._trunks.values()

    def trunk_on(self, number: int) -> Trunk | None:
        """Return the trunk on the connection with this number; None if there is none."""
        return self._trunks.get(number)

    def add_trunk(self, trunk: Trunk) -> None:
        """Add an open connection in the role inter-router."""
        self._trunks[trunk.number] = trunk

    def remove_trunk(self, trunk: Trunk) -> None:
        """Remove the trunk of a lost connection; routers behind it are unreachable until the next ways are set."""
        if self._trunks.pop(trunk.number, None) is not None:
            for router in self.routers.values():
                if router.trunk is trunk:
                    self._route_over(router, None)
            self._note_change()

    def close_idle_streams(self) -> None:
        """Close idle links for streams if there are many; to be called every ``streams.SCRUB_EVERY_S``."""
        for trunk in self._trunks.values():
            if trunk.stream_pool is not None:
                trunk.stream_pool.close_idle()
        for pool in self.stream_pools.values():
            pool.close_idle()

    # --- ways

    def set_ways(self, ways: Ways, neighbours: Mapping[str, int]) -> None:
        """Apply a new shape of the network; ``neighbours`` gives the connection number of each."""
        self._ways = ways
        self.radius = ways.radius
        for trunk in self._trunks.values():
            trunk.set_neighbour("")
            trunk.to_sibling = False
        for name, number in neighbours.items():
            if number in self._trunks:
                self._trunks[number].set_neighbour(name)
                self._trunks[number].to_sibling = name in self.siblings
        for router_id, hop in ways.next_hop.items():
            router = self.obtain_router(router_id)
            router.cost = 0 if router.sibling else ways.cost[router_id]
            self._route_over(router, self._trunks.get(neighbours.get(hop, -1)))
        for router in self.routers.values():
            if router.id not in ways.next_hop:
                self._route_over(router, None)
        self._note_change()

    def _note_change(self) -> None:
        self.generation += 1
        self._beyond.clear()

    def _route_over(self, router: RemoteRouter, trunk: Trunk | None) -> None:
        """Route to ``router`` over ``trunk`` from now on; its addresses come and go with the way to it."""
        former, router.trunk = router.trunk, trunk
        if (former is None) != (trunk is None):
            for entry in list(router.addresses.values()):
                if trunk is None:
                    entry.remove_remote(router)
                else:
                    entry.add_remote(router)

    def routers_beyond(self, origin: str) -> frozenset[str]:
        """Return the routers to which this one sends on messages that entered at ``origin``, a name in annotations.

        "" and this router's own name give all routers, an unknown origin none.
        """
        found = self._beyond.get(origin)
        if found is None:
            found = self._beyond[origin] = self._find_beyond(origin)
        return found

    def _find_beyond(self, origin: str) -> frozenset[str]:
        if self._ways is None:
            return frozenset()
        me = self.table.router_id
        name = origin.removeprefix(_ROUTER_PREFIX) if origin else me
        if origin and not origin.startswith(_ROUTER_PREFIX):
            return frozenset()
        if len(self._beyond) > _MAX_ORIGINS:
            self._beyond.clear()  # a peer can make up names
        return self._ways.routers_beyond(name)

    def is_known(self, origin: str) -> bool:
        """Return whether ``origin`` in annotations names a known router or this one."""
        name = origin.removeprefix(_ROUTER_PREFIX)
        return name != origin and (name in self.routers or name == self.table.router_id)

    # --- addresses

    def obtain_router(self, router_id: str) -> RemoteRouter:
        """Return the router with this id, added if unknown; messages may be sent to it by name."""
        router = self.routers.get(router_id)
        if router is None:
            router = self.routers[router_id] = RemoteRouter(
                router_id, self._free_index(), sibling=router_id in self.siblings
            )
            entry = self.table.obtain_remote(ROUTER + router_id, "closest")
            entry.pinned = True
            router.addresses[entry.key] = entry
            entry.remote_listeners += 1
        return router

    def _free_index(self) -> int:
        """Return the lowest position that no router has."""
        if self._freed:
            return heappop(self._freed)
        return len(self.routers) + 1

    def index_of(self, origin: str) -> int:
        """Return the position in lists of the router that annotations name; 0 for this one, -1 if unknown."""
        name = origin.removeprefix(_ROUTER_PREFIX)
        router = self.routers.get(name)
        if router is not None:
            return router.index
        return 0 if name in ("", self.table.router_id) else -1

    def forget_router(self, router_id: str) -> None:
        """Forget a router and its addresses; ignore an unknown one."""
        router = self.routers.pop(router_id, None)
        if router is None:
            return
        heappush(self._freed, router.index)
        self._route_over(router, None)
        for listener in self._route_listeners:
            listener.forget_remote(router_id)
        for entry in list(router.addresses.values()):
            entry.pinned = entry.pinned and entry.key != ROUTER + router_id
            self._remove_address(router, entry.key)

    def change_addresses(self, router_id: str, added: Mapping[str, int], deleted: Iterable[str]) -> None:
        """Note that a router listens on the keys ``added``, with their hints, and no longer on those ``deleted``."""
        router = self.obtain_router(router_id)
        for key in deleted:
            if key[:1] in LINK_ROUTE_LETTERS:
                self._update_route(key, router_id, present=False)
            else:
                self._remove_address(router, key)
        for key, hint in added.items():
            if key[:1] in LINK_ROUTE_LETTERS:
                self._update_route(key, router_id, present=True)
            elif key[:1] in (MOBILE, EDGE) and 1 < len(key) <= MAX_KEY and key not in router.addresses:
                entry = self.table.obtain_remote(key, TREATMENT_OF_HINT.get(hint))
                router.addresses[key] = entry
                entry.remote_listeners += 1
                if router.trunk is not None:
                    entry.add_remote(router)

    def _update_route(self, key: str, router_id: str, *, present: bool) -> None:
        for listener in self._route_listeners:
            listener.update_remote(key, router_id, present)

    def _remove_address(self, router: RemoteRouter, key: str) -> None:
        entry = router.addresses.pop(key, None)
        if entry is not None:
            if router.trunk is not None:
                entry.remove_remote(router)
            entry.remote_listeners -= 1
            self.table.release_remote(key)

    def drop_forwarder(self, forwarder: object) -> None:
        """Forget the counts for the address with this forwarder, which is removed."""
        for trunk in self._trunks.values():
            trunk.outstanding.pop(forwarder, None)

    def advertise(self, key: str, hint: int) -> None:
        """Notify that ``key`` has its first consumer here."""
        self.local_listeners.notify(key, hint, True)

    def withdraw(self, key: str) -> None:
        """Notify that ``key`` has lost its last consumer here."""
        self.local_listeners.notify(key, 0, False)


#: Origins for which the routers beyond are cached.
_MAX_ORIGINS: Final[Py_ssize_t] = 10_000
