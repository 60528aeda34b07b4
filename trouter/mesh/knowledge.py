"""The state of the network as one router knows it, and the events that follow from changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

from .events import (
    AddressesChanged,
    Event,
    Ignored,
    NeighbourDown,
    NeighbourMoved,
    NeighbourUp,
    PathsChanged,
    RouterLost,
    Send,
)
from .faults import MeshFault, MeshFaults
from .hellos import ControlLink, Hellos
from .messages import (
    ALL_ADDRESSES_TO,
    ALL_ROUTERS_TO,
    MAX_COST,
    Message,
    MobileAddressUpdate,
    RouterAdvertisement,
    mobile_address,
)
from .names import shown
from .nodes import NO_HINT, MeshNode, MeshNodes
from .own import OwnAddresses
from .paths import Paths
from .pieces import PieceQueue, Pieces, parts_of
from .requests import Requests
from .strays import StrayClaim, Strays

#: Links followed between two ticks to compute the ways; they are computed at least once.
LINKS_PER_TICK: Final = 50_000
#: Changes of our own links that are advertised at once between two ticks; further ones wait for the tick.
NEWS_PER_TICK: Final = 20
#: Advertisements of changes of our addresses between two ticks; further changes wait for the tick.
ADDRESS_NEWS_PER_TICK: Final = 4
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

    Changes add to ``events``. ``Mesh`` has it, and does the receiving and the clock.
    """

    def __init__(self, me: str, instance: int, timers: Timers | None = None) -> None:
        self.me = me
        self.instance = instance
        self.events: list[Event] = []
        self.paths = Paths(me, {})
        #: When the network last changed.
        self.last_change_s = NEVER
        self.timers = timers or Timers()
        self.hellos = Hellos(me, instance, self.timers.hello_interval_s, self.timers.hello_max_age_s)
        self.links: Mapping[int, ControlLink] = self.hellos.links
        #: By router, the connection over which it is our neighbour.
        self.neighbours: dict[str, int] = {}
        self.nodes = MeshNodes()
        self.own = OwnAddresses(me)
        self.requests = Requests(me, self.nodes)
        self._faults = MeshFaults()
        self.strays = Strays(self.nodes)
        #: What is done about addresses, in its order.
        self.later = PieceQueue()
        self.link_sequence = 0
        #: What other routers are told that each of our links costs more; 0 unless they are to go around this router.
        self._detour_cost = 0
        self._links_changed = False
        self._reshaped = ""
        self._cause = ""
        self._links_left = LINKS_PER_TICK
        self._news_left = NEWS_PER_TICK
        self.address_news_left = ADDRESS_NEWS_PER_TICK
        self.last_ra_s = NEVER

    # --- the state of the network

    @property
    def faults(self) -> Mapping[MeshFault, int]:
        """Counts of the faults of other routers."""
        return self._faults.counts

    def renew_bounds(self) -> None:
        """Allow the next tick's amount of work and news."""
        self._links_left = LINKS_PER_TICK
        self._news_left = NEWS_PER_TICK
        self.address_news_left = ADDRESS_NEWS_PER_TICK

    # --- advertising

    def own_links(self) -> dict[str, int]:
        """Return the cost of the link to each neighbour, as it is advertised."""
        return {
            router: min(self.links[connection].cost + self._detour_cost, MAX_COST)
            for router, connection in self.neighbours.items()
        }

    def set_detour_cost(self, cost: int, now_s: float) -> None:
        """Advertise that our links cost so much more; this router remains reachable at the neighbours' own costs."""
        if cost != self._detour_cost:
            self._detour_cost = cost
            self._change_links(now_s, "other routers go around this one" if cost else "no router goes around this one")
            self.advertise_at_once(now_s)

    def count_links(self) -> bool:
        """Increment the sequence of our link state if that changed; return whether it did."""
        changed, self._links_changed = self._links_changed, False
        self.link_sequence += changed
        return changed

    def advertise_address_changes(self) -> bool:
        """Advertise the changes of our addresses since the last time; return whether there were any."""
        update = self.own.collect_changes()
        if update is not None and self.links:
            self.queue_message(update, ALL_ADDRESSES_TO)
        return update is not None

    def query_links(self, node: MeshNode, now_s: float) -> None:
        self.events += self.requests.about_links(node, self.paths.next_hop, now_s)

    def advertise_sequences(self, now_s: float) -> None:
        self.last_ra_s = now_s
        advertisement = RouterAdvertisement(self.me, self.instance, self.link_sequence, self.own.sequence)
        self.queue_message(advertisement, ALL_ROUTERS_TO)

    def queue_message(self, message: Message, to: str) -> None:
        self.events.append(Send(message, to))

    def answer_addresses(self) -> None:
        """Send all our addresses to the routers that requested them; some wait for the next tick if that is much."""
        for router, update in self.own.due_answers():
            self.queue_message(update, mobile_address(router))

    # --- whom to believe

    def may_come_over(self, connection: int, router: str) -> bool:
        """Return whether messages of ``router`` may come over ``connection``: it leads there, directly or not."""
        link = self.links.get(connection)
        return link is not None and (link.router == router or self.paths.may_come_from(link.router, router))

    def note_doubtful_claim(self, node: MeshNode, claim: StrayClaim, now_s: float, at_once: bool = False) -> None:
        """Report a message about ``node`` that was ignored, unless the router says the same soon; or ``at_once``."""
        if at_once:
            self.report_claim(claim, now_s)
        else:
            self.strays.note_claim(node, claim, now_s)

    def report_claim(self, claim: StrayClaim, now_s: float) -> None:
        self.report_fault(claim.fault, claim.detail, claim.connection, now_s)

    def is_calm(self, now_s: float) -> bool:
        """Return whether the network has kept its shape for so long that all routers know it."""
        return now_s - self.last_change_s > 2 * self.timers.ra_interval_flux_s

    # --- learning

    def store_update(self, node: MeshNode, update: MobileAddressUpdate, connection: int, now_s: float) -> Pieces[None]:
        """Store the addresses of ``node`` in its ``update``, unless they are all deleted meanwhile."""
        voided, node.mobile_sequence = node.voided, update.sequence
        present = update.added if update.exist is None else update.exist
        hints = update.hints or (NO_HINT,) * len(present)
        gone: Sequence[str] = update.deleted
        if update.exist is not None and node.addresses:
            gone = yield from _missing(tuple(node.addresses), update.exist)
        changes = zip_longest(parts_of(gone), parts_of(present), parts_of(hints), fillvalue=())
        for number, (deleted, added, of_added) in enumerate(changes):
            if number:
                yield
            if node.voided != voided:
                break
            if not self._change_addresses(node, dict(zip(added, of_added, strict=True)), deleted):
                what = f"{len(present)} addresses beside all others"
                self.report_fault(MeshFault.TOO_MANY, what, connection, now_s, node.id)
                break

    def _change_addresses(self, node: MeshNode, present: Mapping[str, int], gone: Iterable[str]) -> bool:
        """Add and remove addresses of ``node``; return whether there was room for all."""
        change = self.nodes.change_addresses(node, present, gone)
        if change.added or change.deleted:
            self.events.append(AddressesChanged(node.id, change.added, change.deleted))
        return change.complete

    def delete_addresses(self, node: MeshNode) -> None:
        node.mobile_sequence = 0
        node.voided += 1
        self.later.begin(self._delete(node), node.id)

    def note_updates_under_way(self, now_s: float) -> None:
        """Let no request be repeated to which the answer has come, and waits."""
        for router in self.later.origins():
            if router in self.nodes:
                self.nodes[router].requested_addresses_s = now_s

    def _delete(self, node: MeshNode) -> Pieces[None]:
        for part in parts_of(tuple(node.addresses)):
            self._change_addresses(node, {}, part)
            if node.addresses:
                yield

    def forget_node(self, node: MeshNode) -> None:
        """Forget another router, and its addresses before."""
        self.delete_addresses(node)
        self.nodes.forget_node(node)
        self.later.begin(self._lose(node.id), node.id)

    def _lose(self, router: str) -> Pieces[None]:
        """Report a router as lost, unless it came back while its addresses were deleted."""
        yield from ()
        if router not in self.nodes:
            self.events.append(RouterLost(router))

    def obtain_node(self, router: str, connection: int, now_s: float) -> MeshNode | None:
        node = self.nodes.obtain_node(router, now_s)
        if node is None:
            self.report_fault(MeshFault.TOO_MANY, "routers", connection, now_s)
        return node

    def note_instance(self, node: MeshNode, instance: int, now_s: float) -> None:
        """Note the instance of a router; another one than before is a restart, which voids what it sent before."""
        if node.instance is not None and node.instance != instance:
            self.restart_node(node, now_s)
        node.instance = instance

    def restart_node(self, node: MeshNode, now_s: float) -> None:
        self.nodes.set_neighbours(node, {})
        node.instance = None
        node.link_sequence, node.answered = 0, False
        node.advertised_links = 1
        node.advertised_addresses, node.advertises = 0, False
        node.requested_links_s = node.requested_addresses_s = NEVER
        node.restarted_s = now_s
        node.older_in_a_row = node.strange_starts = 0
        node.spread, node.spread_change = None, 0
        self.delete_addresses(node)
        self.note_changed_links(now_s, f"{shown(node.id)} has restarted", f"{node.id}:0")

    def choose_way(self, router: str, now_s: float, why: str) -> None:
        """Choose the connection over which ``router`` is a neighbour: the cheapest, then the first, or none.

        Only connections with recent hellos of its newest instance count; ``why`` is the reason to leave the former one.
        """
        links = self.links.items()
        fresh = [(link, connection) for connection, link in links if self.hellos.is_fresh(link, router, now_s)]
        former = self.neighbours.get(router)
        if not fresh:
            if former is not None:
                del self.neighbours[router]
                self._change_links(now_s, f"{shown(router)} is no neighbour: {why}")
                self.events.append(NeighbourDown(router, why))
            return
        started = max(link.instance for link, _ in fresh)
        cost, connection = min((link.cost, connection) for link, connection in fresh if link.instance == started)
        if connection == former:
            return
        self.neighbours[router] = connection
        self._change_links(now_s, f"{shown(router)} is a neighbour over another connection")
        if former is None:
            self.nodes[router].requested_links_s = NEVER
            self.events.append(NeighbourUp(router, connection, cost))
        else:
            self.events.append(NeighbourMoved(router, connection))

    def advertise_at_once(self, now_s: float) -> None:
        """Compute the ways now, and advertise our links if they changed; at the next tick if they change often."""
        self.compute_ways(now_s)
        if self._links_changed and self._news_left > 0:
            self._news_left -= 1
            self.count_links()
            self.advertise_address_changes()
            if self.links:
                self.advertise_sequences(now_s)

    def _change_links(self, now_s: float, why: str) -> None:
        """Note that our link state changed, to be advertised."""
        self._links_changed = True
        self._links_left = LINKS_PER_TICK
        self.note_changed_links(now_s, why, f"{self.me}:{self.link_sequence + 1}")

    def note_changed_links(self, now_s: float, why: str, cause: str) -> None:
        self.last_change_s = now_s
        if not self._reshaped:
            self._reshaped, self._cause = why, cause

    def compute_ways(self, now_s: float) -> None:
        """Compute the ways if the network changed; at the next tick if that took much work recently."""
        if not self._reshaped or self._links_left <= 0:
            return
        self._links_left -= self.nodes.links + len(self.nodes)
        why, self._reshaped = self._reshaped, ""
        self.last_change_s = now_s
        links: dict[str, Mapping[str, int]] = {router: node.peers for router, node in self.nodes.items() if node.peers}
        links[self.me] = self.own_links()
        former, self.paths = self.paths.next_hop, Paths(self.me, links)
        self.events.append(PathsChanged(why, self._cause))
        for router, node in self.nodes.items():
            if node.requested_links_s == NEVER or former.get(router) != self.paths.next_hop.get(router):
                self.query_links(node, now_s)  # for the first time, or because the former request had no way

    def report_fault(self, fault: MeshFault, detail: str, connection: int, now_s: float, who: str = "") -> None:
        """Count a fault, and report it once in an interval."""
        link = self.links.get(connection)
        who = who or (link.router if link else "")
        times = self._faults.note_fault((who, connection), fault, now_s)
        if times:
            self.events.append(Ignored(who, connection, fault, detail, times))


def _missing(known: Sequence[str], exist: Sequence[str]) -> Pieces[list[str]]:
    """Return the keys of ``known`` that ``exist`` does not have."""
    present: set[str] = set()
    for number, part in enumerate(parts_of(exist)):
        if number:
            yield
        present.update(part)
    missing: list[str] = []
    for number, part in enumerate(parts_of(known)):
        if number:
            yield
        missing += [key for key in part if key not in present]
    return missing
