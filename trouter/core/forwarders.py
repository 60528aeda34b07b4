"""The choice of a message's receivers: closest, balanced, multicast (routing.md 2.2-2.5).

A forwarder has the local consumers of an address, and the other routers with consumers. A consumer's credit does not
affect the choice; what it cannot take yet waits on its link.
"""

from __future__ import annotations

from bisect import insort
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from .arrival import Arrival, DeliverySource
from .counters import Copies
from .egress import Egress
from .message import Fanout, Message
from .network import Network, RemoteRouter, Trunk
from .ports import MAX_INSIDE_BYTES

if TYPE_CHECKING:
    from cython import Py_ssize_t

    from .inprocess import Subscription
    from .message import OutgoingDelivery, Outstanding

#: Consumers that balanced distribution compares for one message, so that its cost is bounded.
_LOOKS: Final[Py_ssize_t] = 64
#: Origins of messages for which the ways on are cached.
_MAX_ORIGINS: Final[Py_ssize_t] = 1000
_ROUTER_ID = attrgetter("id")
_COST = attrgetter("cost")
# What a forwarder returns for a message with at most one copy.
_NONE: Final[Copies] = Copies(0, 0, 0)
_ONE_HERE: Final[Copies] = Copies(1, 0, 0)
_ONE_INSIDE: Final[Copies] = Copies(0, 1, 0)
_ONE_ACROSS: Final[Copies] = Copies(0, 0, 1)
# What most forwarders have none of. All share these, so that an address needs less memory, and a router with many reads
# less of it for each message; they are replaced, and never changed.
_NO_SUBSCRIPTIONS: list[Subscription] = []
_NO_ROUTERS: list[RemoteRouter] = []
_NO_WAYS: dict[str, list[Trunk]] = {}
_NO_CANDIDATES: dict[str, list[RemoteRouter]] = {}


class Forwarder:
    """The consumers of one address, and the rule that chooses among them; the base chooses none."""

    __slots__ = (
        "_sole",
        "remotes",
        "siblings",
        "subscriptions",
        "consumers",
        "is_exchange",
        "_turn",
        "_turn_inside",
        "_turn_across",
        "_generation",
        "_nearest",
        "_across",
        "_candidates",
    )

    def __init__(self) -> None:
        self.consumers: list[Egress] = []
        #: The consumer if there is only one.
        self._sole: Egress | None = None
        #: Consumers inside the router.
        self.subscriptions: list[Subscription] = _NO_SUBSCRIPTIONS
        #: Reachable other routers with consumers, sorted by id.
        self.remotes: list[RemoteRouter] = _NO_ROUTERS
        #: Those of ``remotes`` that are other workers of this router.
        self.siblings: list[RemoteRouter] = _NO_ROUTERS
        #: Messages are taken even without consumers: the address is that of an exchange.
        self.is_exchange = False
        self._turn: Py_ssize_t = 0
        self._turn_inside: Py_ssize_t = 0
        self._turn_across: Py_ssize_t = 0
        #: Caches for the shape of the network that ``_generation`` counts: those of ``remotes`` with the lowest cost;
        #: and, by origin of messages, the connections that lead to some, and the nearest router over each.
        self._generation: Py_ssize_t = -1
        self._nearest: list[RemoteRouter] = _NO_ROUTERS
        self._across: dict[str, list[Trunk]] = _NO_WAYS
        self._candidates: dict[str, list[RemoteRouter]] = _NO_CANDIDATES

    def has_destinations(self) -> bool:
        """Return whether there is any consumer, or this is an exchange."""
        return self._sole is not None or self.count_destinations() > 0

    def count_destinations(self) -> Py_ssize_t:
        """Return the number of consumers: on links, inside the router, and reachable other routers.

        An exchange counts as one too.
        """
        count: Py_ssize_t = len(self.consumers) + len(self.subscriptions) + len(self.remotes)
        return count + 1 if self.is_exchange else count

    def add(self, outgoing: Egress) -> None:
        """Add a consumer, the last in turn."""
        self.consumers.append(outgoing)
        self._note_sole()

    def remove(self, outgoing: Egress) -> None:
        """Remove a consumer that is gone; the turn stays with the consumer that has it."""
        position = self.consumers.index(outgoing)
        del self.consumers[position]
        if position < self._turn:
            self._turn -= 1
        self._note_sole()

    def _note_sole(self) -> None:
        self._sole = self.consumers[0] if len(self.consumers) == 1 else None

    def add_subscription(self, subscription: Subscription) -> None:
        """Add a consumer inside the router, the last in turn."""
        self.subscriptions = [*self.subscriptions, subscription]

    def remove_subscription(self, subscription: Subscription) -> None:
        """Remove a consumer inside the router; do nothing if it is not there."""
        self.subscriptions = [kept for kept in self.subscriptions if kept is not subscription]

    def add_remote(self, router: RemoteRouter) -> None:
        """Add a reachable router with consumers."""
        self.remotes = _with_router(self.remotes, router)
        if router.sibling:
            self.siblings = _with_router(self.siblings, router)
        self._generation = -1

    def remove_remote(self, router: RemoteRouter) -> None:
        """Remove a router that has no consumers any more, or cannot be reached."""
        self.remotes.remove(router)
        if router.sibling:
            self.siblings.remove(router)
        self._generation = -1

    def _work_out(self, network: Network) -> None:
        """Rebuild the caches after a change of the network or of the routers with consumers."""
        self._generation = network.generation
        self._across = {}
        self._candidates = {}
        lowest = min([router.cost for router in self.remotes])
        self._nearest = [router for router in self.remotes if router.cost == lowest]

    def forward(self, arrival: Arrival) -> Copies:
        """Forward the message in hand to its consumers; return the number of copies."""
        return _NONE

    def bytes_to_gather(self, arrival: Arrival) -> Py_ssize_t:
        """Return up to how many bytes of an unfinished message to wait for before it is forwarded; 0 for no more.

        Consumers inside the router take only complete messages.
        """
        return MAX_INSIDE_BYTES if self.subscriptions else 0

    def _to_inside(self, arrival: Arrival) -> Copies:
        """Forward the message to one consumer inside the router, in turn."""
        if self._turn_inside >= len(self.subscriptions):
            self._turn_inside = 0
        subscription = self.subscriptions[self._turn_inside]
        self._turn_inside += 1
        subscription.offer(arrival)
        return _ONE_INSIDE

    def _to_nearest(self, arrival: Arrival) -> Copies:
        """Forward the message towards one of the nearest routers, in turn (2.2), if there is a way."""
        network: Network = arrival.source.shared.network  # type: ignore[assignment]  # behind the port
        if self._generation != network.generation:
            self._work_out(network)
        count: Py_ssize_t = len(self._nearest)
        looks: Py_ssize_t = count
        while looks > 0:
            looks -= 1
            if self._turn_across >= count:
                self._turn_across = 0
            router: RemoteRouter = self._nearest[self._turn_across]
            self._turn_across += 1
            outgoing: Egress | None = None if router.trunk is arrival.source.trunk else _way(router.trunk, arrival)
            if outgoing is not None:
                outgoing.offer(arrival)
                return _ONE_ACROSS
        return _NONE


def _way(trunk: Trunk | None, arrival: Arrival) -> Egress | None:
    """Return the link of ``trunk`` for the message: by priority, or its own if it is unfinished; None if none."""
    if trunk is None:
        return None
    message: Message | None = arrival.message
    if message is not None and not message.complete and trunk.stream_pool is not None:
        stream: Egress | None = trunk.stream_pool.borrow_link()
        if stream is not None:
            return stream
    return trunk.link_for(arrival.priority)


def _with_router(routers: list[RemoteRouter], router: RemoteRouter) -> list[RemoteRouter]:
    """Return ``routers``, sorted by id, with one more; the same list unless it is the shared empty one."""
    sorted_by_id = routers or []
    insort(sorted_by_id, router, key=_ROUTER_ID)
    return sorted_by_id


class Closest(Forwarder):
    """Chooses a consumer inside the router if there is one, else a local link, else a nearest router (2.2).

    Links and routers take turns, whatever their credit and backlog.
    """

    __slots__ = ()

    def forward(self, arrival: Arrival) -> Copies:
        """See ``Forwarder.forward``."""
        if self.subscriptions:
            return self._to_inside(arrival)
        if self.siblings:
            way: Egress | None = self._next_sibling(arrival)
            if way is not None:
                way.offer(arrival)
                return _ONE_ACROSS
        outgoing: Egress | None = self._next_here(arrival)
        if outgoing is None:
            return self._to_nearest(arrival) if self.remotes else _NONE
        outgoing.offer(arrival)
        return _ONE_HERE

    def _next_sibling(self, arrival: Arrival) -> Egress | None:
        """Return the link to the worker whose turn it is among the local links and the workers with consumers.

        None if it is the turn of a local link, or the message comes from a worker: each of these passes it on once.
        """
        origin: Trunk | None = arrival.source.trunk  # type: ignore[assignment]  # behind the port
        if origin is not None and origin.to_sibling:
            return None
        if self._turn_across >= len(self.consumers) + len(self.siblings):
            self._turn_across = 0
        place: Py_ssize_t = self._turn_across - len(self.consumers)
        self._turn_across += 1
        if place < 0:
            return None
        sibling: RemoteRouter = self.siblings[place]
        return _way(sibling.trunk, arrival)

    def _next_here(self, arrival: Arrival) -> Egress | None:
        """Return the local link whose turn it is; None if there is none for this source."""
        if self._sole is not None:
            outgoing: Egress = self._sole
            self._turn = 1
            return None if arrival.came_over_edge(outgoing.connection_number) else outgoing
        count: Py_ssize_t = len(self.consumers)
        looks: Py_ssize_t = count
        while looks > 0:
            looks -= 1
            if self._turn >= count:
                self._turn = 0
            outgoing = self.consumers[self._turn]
            self._turn += 1
            if not arrival.came_over_edge(outgoing.connection_number):
                return outgoing
        return None


class Balanced(Forwarder):
    """Chooses the local link with the fewest deliveries waiting or unsettled (2.3); one without any ends the search.

    Another router competes with the deliveries under way to its side, plus the cost of the way.
    """

    __slots__ = ()

    def forward(self, arrival: Arrival) -> Copies:
        """See ``Forwarder.forward``. A consumer inside the router gets it only if no link does."""
        if self.remotes:
            return self._weigh(arrival)
        chosen: Egress | None = self._best_here(arrival)
        if chosen is None:
            if self.subscriptions:
                return self._to_inside(arrival)
            return _NONE
        chosen.offer(arrival)
        return _ONE_HERE

    def _weigh(self, arrival: Arrival) -> Copies:
        """Choose between the links here and the routers elsewhere; a tie goes to the links, then by id."""
        best: Egress | None = self._best_here(arrival)
        best_load: Py_ssize_t = 0
        best_eligible: bool = False
        outstanding: Outstanding | None = None
        way: Trunk | None = None
        if best is not None:
            best_load = best.count_load()
            best_eligible = best_load < best.capacity
        if best is None or best_load > 0:
            router: RemoteRouter
            for router in self._find_candidates(arrival):
                trunk: Trunk = router.trunk  # type: ignore[assignment]  # it can be reached
                if trunk is arrival.source.trunk or trunk.link_for(arrival.priority) is None:
                    continue
                under_way: Outstanding = trunk.outstanding_of(self)
                load: Py_ssize_t = under_way.count + router.cost
                eligible: bool = trunk.capacity > under_way.count
                if (
                    (best is None and way is None)
                    or (eligible and not best_eligible)
                    or (eligible == best_eligible and load < best_load)
                ):
                    way = trunk
                    best_load = load
                    best_eligible = eligible
                    outstanding = under_way
            if way is not None:
                best = _way(way, arrival)
        if best is None:
            if self.subscriptions:
                return self._to_inside(arrival)
            return _NONE
        out: OutgoingDelivery = best.offer(arrival)
        if outstanding is None:
            return _ONE_HERE
        if out.sender_delivery is not None and not out.settled:
            outstanding.count += 1
            out.outstanding = outstanding
        return _ONE_ACROSS

    def _find_candidates(self, arrival: Arrival) -> list[RemoteRouter]:
        """Return the nearest router behind each connection that leads on from the message's origin, sorted by id.

        Deliveries under way are counted by connection, so the other routers behind it are never better. Only the
        ``_LOOKS`` nearest are returned.
        """
        network: Network = arrival.source.shared.network  # type: ignore[assignment]  # behind the port
        if self._generation != network.generation:
            self._work_out(network)
        candidates = self._candidates.get(arrival.origin)
        if candidates is None:
            beyond = network.routers_beyond(arrival.origin)
            if not beyond and not network.is_known(arrival.origin):
                beyond = network.routers_beyond("")
            nearest: dict[Trunk | None, RemoteRouter] = {}
            for router in self.remotes:
                if router.id in beyond and (router.trunk not in nearest or router.cost < nearest[router.trunk].cost):
                    nearest[router.trunk] = router
            candidates = sorted(nearest.values(), key=_COST)[:_LOOKS]
            candidates.sort(key=_ROUTER_ID)
            if len(self._candidates) > _MAX_ORIGINS:
                self._candidates.clear()
            self._candidates[arrival.origin] = candidates
        return candidates

    def _best_here(self, arrival: Arrival) -> Egress | None:
        """Return the local link for the message; None if there is none for this source."""
        if self._sole is None:
            count: Py_ssize_t = len(self.consumers)
            if count == 0:
                return None
            if self._turn >= count:
                self._turn = 0
            return self._least_loaded(arrival, count)
        outgoing: Egress = self._sole
        return None if arrival.came_over_edge(outgoing.connection_number) else outgoing

    def _least_loaded(self, arrival: Arrival, count: Py_ssize_t) -> Egress | None:
        """Return the best of the next links: below capacity first, then fewer deliveries, then earlier in turn."""
        best: Egress | None = None
        best_load: Py_ssize_t = 0
        best_eligible: bool = False
        position: Py_ssize_t = self._turn
        looks: Py_ssize_t = count if count < _LOOKS else _LOOKS
        while looks > 0:
            looks -= 1
            outgoing: Egress = self.consumers[position]
            position += 1
            if position == count:
                position = 0
            if arrival.came_over_edge(outgoing.connection_number):
                continue
            load: Py_ssize_t = outgoing.count_load()
            if load == 0:
                self._turn += 1
                return outgoing
            eligible: bool = load < outgoing.capacity
            if best is None or (eligible and not best_eligible) or (eligible == best_eligible and load < best_load):
                best = outgoing
                best_load = load
                best_eligible = eligible
        if count > _LOOKS:
            self._turn = position
        return best


class Multicast(Forwarder):
    """Copies to every local link, every consumer inside the router, and every connection that leads to some.

    Other routers whose way from the message's origin does not lead through here get it from elsewhere (inter-router.md
    4.5), so that no consumer gets two copies (routing.md 2.4).
    """

    __slots__ = ()

    def forward(self, arrival: Arrival) -> Copies:
        """See ``Forwarder.forward``. The sender of an unsettled message gets one outcome for all copies."""
        across: list[Egress] = self._find_across(arrival) if self.remotes else []
        here: list[Egress] = self.consumers
        source: DeliverySource = arrival.source
        if source.via_edge:
            here = [each for each in here if each.connection_number != source.connection_number]
        elif source.by_name and source.shared.uplink is not None:
            uplink: Egress = source.shared.uplink  # type: ignore[assignment]  # behind the port
            if not self._goes_up(uplink):
                across = [uplink]
        copies: Copies = Copies(len(here), len(self.subscriptions), len(across))
        if copies.total == 0:
            return _NONE
        if not arrival.delivery.remote_settled:
            arrival.delivery.fanout = Fanout(copies.total)
        outgoing: Egress
        for outgoing in here + across:
            out: OutgoingDelivery = outgoing.offer(arrival)
            if arrival.message is None:
                arrival.message = out.message  # the first copy that has to wait has kept it for the others
        for subscription in list(self.subscriptions):
            subscription.offer(arrival)
        return copies

    def _goes_up(self, uplink: Egress) -> bool:
        """Return whether the consumers include a link of the edge router's uplink."""
        for consumer in self.consumers:
            outgoing: Egress = consumer
            if outgoing.connection_number == uplink.connection_number:
                return True
        return False

    def _find_across(self, arrival: Arrival) -> list[Egress]:
        """Return the links to other routers for the message in hand."""
        network: Network = arrival.source.shared.network  # type: ignore[assignment]  # behind the port
        if self._generation != network.generation:
            self._work_out(network)
        trunks: list[Trunk] | None = self._across.get(arrival.origin)
        if trunks is None:
            beyond = network.routers_beyond(arrival.origin)
            trunks = list(dict.fromkeys([each.trunk for each in self.remotes if each.id in beyond]))  # type: ignore[misc]
            if len(self._across) > _MAX_ORIGINS:
                self._across.clear()
            self._across[arrival.origin] = trunks
        ways: list[Egress] = []
        trunk: Trunk
        for trunk in trunks:
            if trunk is arrival.source.trunk or trunk.name in arrival.trace:
                continue
            outgoing: Egress | None = _way(trunk, arrival)
            if outgoing is not None:
                ways.append(outgoing)
        return ways


#: The forwarder for each treatment in the configuration (routing.md 5.1).
FORWARDERS: dict[str, type[Forwarder]] = {
    "closest": Closest,
    "balanced": Balanced,
    "multicast": Multicast,
    "linkBalanced": Forwarder,  # links are routed before there is any message
}
