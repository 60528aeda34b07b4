"""What one router knows of the others: neighbours, link states, ways and addresses, and what follows from a change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from .events import AddressesChanged, Event, Ignored, NeighbourDown, NeighbourMoved, NeighbourUp, PathsChanged, Send
from .faults import MeshFault, MeshFaults
from .hellos import ControlLink, Hellos
from .messages import ALL_ADDRESSES_TO, ALL_ROUTERS_TO, Message, RouterAdvertisement
from .names import shown
from .nodes import MeshNode, MeshNodes
from .own import OwnAddresses
from .paths import Paths
from .questions import Questions

#: Links followed between two ticks to find the ways anew, once at least.
LINKS_PER_TICK: Final = 50_000
#: Changes of our own links that are told at once between two ticks; those beyond are told with the tick.
NEWS_PER_TICK: Final = 20
NEVER: Final = float("-inf")


@dataclass(frozen=True, slots=True)
class Timers:
    """The periods of the router entity, in seconds (inter-router.md 3.3)."""

    hello_interval_s: float = 1.0
    hello_max_age_s: float = 3.0
    ra_interval_s: float = 30.0
    ra_interval_flux_s: float = 4.0
    remote_ls_max_age_s: float = 60.0


class Knowledge:
    """The network as the router ``me``, started at ``instance`` (seconds since 1970), knows it.

    What follows from a change of it stands in ``events``. ``Mesh`` adds what is heard and the clock.
    """

    def __init__(self, me: str, instance: int, timers: Timers | None = None) -> None:
        self.me = me
        self.instance = instance
        self.events: list[Event] = []
        self.paths = Paths(me, {})
        #: When the network last had another shape.
        self.last_change_s = NEVER
        self._timers = timers or Timers()
        self._hellos = Hellos(me, instance, self._timers.hello_interval_s, self._timers.hello_max_age_s)
        self._links: Mapping[int, ControlLink] = self._hellos.links
        #: By router: the connection over which it is our neighbour.
        self._neighbours: dict[str, int] = {}
        self._nodes = MeshNodes()
        self._own = OwnAddresses(me)
        self._questions = Questions(me, self._nodes)
        self._faults = MeshFaults()
        self._link_sequence = 0
        self._links_changed = False
        self._reshaped = ""
        self._cause = ""
        self._links_left = LINKS_PER_TICK
        self._news_left = NEWS_PER_TICK
        self._last_ra_s = NEVER

    # --- the state of the network

    @property
    def neighbours(self) -> Mapping[str, int]:
        """Return the connection that leads to each neighbour."""
        return self._neighbours

    @property
    def routers(self) -> Mapping[str, MeshNode]:
        """Return the other routers that are known, reachable or not, by id."""
        return self._nodes

    @property
    def faults(self) -> Mapping[MeshFault, int]:
        """Return how often what others sent was not believed."""
        return self._faults.counts

    def addresses_of(self, router: str) -> Mapping[str, int]:
        """Return the address keys that another router listens on, each with its hint; nothing if it is not known."""
        node = self._nodes.get(router)
        return {} if node is None else node.addresses

    def _renew_bounds(self) -> None:
        """Allow as much work and news until the next tick as there may be between two."""
        self._links_left = LINKS_PER_TICK
        self._news_left = NEWS_PER_TICK

    # --- what the others are told

    def _count_links(self) -> bool:
        """Give our link state its next number if it is another; whether it is."""
        changed, self._links_changed = self._links_changed, False
        self._link_sequence += changed
        return changed

    def _advertise_addresses(self) -> bool:
        """Tell the others how our addresses have changed since we told them last; whether they had."""
        update = self._own.news()
        if update is not None and self._links:
            self._send(update, ALL_ADDRESSES_TO)
        return update is not None

    def _query_links(self, node: MeshNode, now_s: float) -> None:
        self.events += self._questions.about_links(node, self.paths.next_hop, now_s)

    def _advertise(self, now_s: float) -> None:
        self._last_ra_s = now_s
        advertisement = RouterAdvertisement(self.me, self.instance, self._link_sequence, self._own.sequence)
        self._send(advertisement, ALL_ROUTERS_TO)

    def _send(self, message: Message, to: str) -> None:
        self.events.append(Send(message, to))

    # --- what comes of what they say

    def _learn(
        self,
        node: MeshNode,
        sequence: int,
        told: Mapping[str, int],
        gone: tuple[str, ...],
        connection: int,
        now_s: float,
    ) -> None:
        """Take in the addresses that ``node`` told at ``sequence``."""
        node.mobile_sequence = sequence
        if not self._map(node, told, gone):
            self._complain(MeshFault.TOO_MANY, f"{len(told)} addresses beside all others", connection, now_s, node.id)

    def _map(self, node: MeshNode, told: Mapping[str, int], gone: tuple[str, ...]) -> bool:
        """``node`` listens on what it ``told``, and not on what is ``gone``; whether there was room for all of it."""
        change = self._nodes.listen(node, told, gone)
        if change.added or change.deleted:
            self.events.append(AddressesChanged(node.id, change.added, change.deleted))
        return change.complete

    def _unmap(self, node: MeshNode) -> None:
        node.mobile_sequence = 0
        self._map(node, {}, tuple(node.addresses))

    def _obtain(self, router: str, connection: int, now_s: float) -> MeshNode | None:
        node = self._nodes.obtain(router, now_s)
        if node is None:
            self._complain(MeshFault.TOO_MANY, "routers", connection, now_s)
        return node

    def _note_instance(self, node: MeshNode, instance: int, now_s: float) -> None:
        """Another instance is another start: whatever the router said before is void."""
        if node.instance is not None and node.instance != instance:
            self._restart(node, now_s)
        node.instance = instance

    def _restart(self, node: MeshNode, now_s: float) -> None:
        self._nodes.link(node, {})
        node.instance = None
        node.link_sequence, node.answered = 0, False
        node.advertised_links = 1
        node.advertised_addresses = 0
        node.asked_links_s = node.asked_addresses_s = NEVER
        node.restarted_s = now_s
        node.older_in_a_row = node.strange_starts = 0
        node.spread, node.spread_change = None, 0
        self._unmap(node)
        self._reshape(now_s, f"{shown(node.id)} has restarted", f"{node.id}:0")

    def _choose_way(self, router: str, now_s: float, why: str) -> None:
        """Settle over which connection ``router`` is a neighbour: the cheapest, and of those the first, or none.

        Only one over which it was heard lately will do, and it only as it was started last; ``why`` says what is wrong
        with the one there was.
        """
        links = self._links.items()
        fresh = [(link, connection) for connection, link in links if self._hellos.is_fresh(link, router, now_s)]
        former = self._neighbours.get(router)
        if not fresh:
            if former is not None:
                del self._neighbours[router]
                self._change_links(now_s, f"{shown(router)} is no neighbour: {why}")
                self.events.append(NeighbourDown(router, why))
            return
        started = max(link.instance for link, _ in fresh)
        cost, connection = min((link.cost, connection) for link, connection in fresh if link.instance == started)
        if connection == former:
            return
        self._neighbours[router] = connection
        self._change_links(now_s, f"{shown(router)} is a neighbour over another connection")
        if former is None:
            self._nodes[router].asked_links_s = NEVER
            self.events.append(NeighbourUp(router, connection, cost))
        else:
            self.events.append(NeighbourMoved(router, connection))

    def _advertise_at_once(self, now_s: float) -> None:
        """Go by what our links are now; if they are others, tell all routers, or at the next tick if they often are."""
        self._recompute(now_s)
        if self._links_changed and self._news_left > 0:
            self._news_left -= 1
            self._count_links()
            self._advertise_addresses()
            if self._links:
                self._advertise(now_s)

    def _change_links(self, now_s: float, why: str) -> None:
        """Our own link state is another, and the others shall know."""
        self._links_changed = True
        self._links_left = LINKS_PER_TICK
        self._reshape(now_s, why, f"{self.me}:{self._link_sequence + 1}")

    def _reshape(self, now_s: float, why: str, cause: str) -> None:
        self.last_change_s = now_s
        if not self._reshaped:
            self._reshaped, self._cause = why, cause

    def _recompute(self, now_s: float) -> None:
        """Find the ways anew if the network has another shape; if that was done much lately, at the next tick."""
        if not self._reshaped or self._links_left <= 0:
            return
        self._links_left -= self._nodes.links + len(self._nodes)
        why, self._reshaped = self._reshaped, ""
        self.last_change_s = now_s
        links: dict[str, Mapping[str, int]] = {router: node.peers for router, node in self._nodes.items() if node.peers}
        links[self.me] = {router: self._links[connection].cost for router, connection in self._neighbours.items()}
        former, self.paths = self.paths.next_hop, Paths(self.me, links)
        self.events.append(PathsChanged(why, self._cause))
        for router, node in self._nodes.items():
            if node.asked_links_s == NEVER or former.get(router) != self.paths.next_hop.get(router):
                self._query_links(node, now_s)  # for the first time, or for the former way was none

    def _complain(self, fault: MeshFault, detail: str, connection: int, now_s: float, who: str = "") -> None:
        """Count something wrong, and tell of it once in a while."""
        link = self._links.get(connection)
        who = who or (link.router if link else "")
        times = self._faults.note((who, connection), fault, now_s)
        if times:
            self.events.append(Ignored(who, connection, fault, detail, times))
