"""One router's part in finding the others (inter-router.md 4): neighbours, link states, ways, and mobile addresses.

Time is an argument, in seconds of any clock that only goes forward. Messages and control links go in by the methods;
what comes of them stands in ``events`` until it is taken. ``tick`` is called once a second.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from trouter.wire.errors import DecodeError

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
from .faults import Fault, Faults
from .messages import (
    ALL_ADDRESSES_TO,
    ALL_ROUTERS_TO,
    HELLO_TO,
    Hello,
    LinkStateRequest,
    LinkStateUpdate,
    Message,
    MobileAddressRequest,
    MobileAddressUpdate,
    Newer,
    RouterAdvertisement,
    mobile_address,
    parse,
    router_address,
)
from .paths import Paths
from .relay import HELLO_ADDRESS, LINKS_ADDRESS, MOBILE_ADDRESS, Dropped, Relay, relay

#: Routers that are remembered, neighbours of one router, and addresses of one router: what a stranger could make many.
MAX_ROUTERS: Final = 10_000
MAX_ADDRESSES: Final = 1_000_000
#: Ticks for which a router that nobody lists is kept.
ORPHAN_TICKS: Final = 3
#: A question that was not answered, for it or the answer was lost on the way, is asked again after so long.
ASK_AGAIN_S: Final = 2.0
#: The hint of an address that came without one.
NO_HINT: Final = -1
#: Where each message is taken: nobody is a neighbour whose hello was sent on by others.
TAKEN_AT: Final[Mapping[type, str]] = {
    Hello: HELLO_ADDRESS,
    RouterAdvertisement: LINKS_ADDRESS,
    LinkStateRequest: LINKS_ADDRESS,
    LinkStateUpdate: LINKS_ADDRESS,
    MobileAddressRequest: MOBILE_ADDRESS,
    MobileAddressUpdate: MOBILE_ADDRESS,
}


@dataclass(frozen=True, slots=True)
class Timers:
    """The periods of the router entity, in seconds (inter-router.md 3.3)."""

    hello_interval_s: float = 1.0
    hello_max_age_s: float = 3.0
    ra_interval_s: float = 30.0
    ra_interval_flux_s: float = 4.0
    remote_ls_max_age_s: float = 60.0


@dataclass(slots=True)
class _Link:
    """A control link to whoever is at the other end of a connection."""

    cost: int
    #: Who said hello over it and has heard us, and when last.
    router: str = ""
    confirmed_s: float = float("-inf")


@dataclass(slots=True)
class _Node:
    """What is known of another router."""

    instance: int | None = None
    link_sequence: int = 0
    peers: Mapping[str, int] = field(default_factory=dict)
    heard_s: float = 0.0
    mobile_sequence: int = 0
    addresses: dict[str, int] = field(default_factory=dict)
    #: The sequences that it has advertised; 1 for its links from the start, for it must have some.
    advertised_links: int = 1
    advertised_addresses: int = 0
    #: When it was asked last.
    asked_links_s: float = float("-inf")
    asked_addresses_s: float = float("-inf")
    orphan_ticks: int = 0


class Mesh:
    """What the router ``me``, started at ``instance`` (seconds since 1970), knows of the network.

    An ``instance`` must be greater than that of every former start with the same id: the others tell by it.
    """

    def __init__(self, me: str, instance: int, timers: Timers | None = None) -> None:
        self.me = me
        self.instance = instance
        self.events: list[Event] = []
        self.paths = Paths(me, {})
        self._timers = timers or Timers()
        self._links: dict[int, _Link] = {}
        #: By router: the connection over which it is our neighbour.
        self._neighbours: dict[str, int] = {}
        self._seen: dict[str, float] = {}
        self._nodes: dict[str, _Node] = {}
        self._link_sequence = 0
        self._links_changed = False
        self._reshaped = ""
        self._last_change_s = float("-inf")
        self._last_hello_s = float("-inf")
        self._last_ra_s = float("-inf")
        self._mobile_sequence = 0
        #: Our addresses as they are, and as they were told to the others at ``_mobile_sequence``.
        self._addresses: dict[str, int] = {}
        self._told: dict[str, int] = {}
        self._faults = Faults()

    # --- what there is

    @property
    def neighbours(self) -> Mapping[str, int]:
        """The connection that leads to each neighbour."""
        return self._neighbours

    @property
    def routers(self) -> tuple[str, ...]:
        """The other routers that are known, reachable or not."""
        return tuple(self._nodes)

    @property
    def faults(self) -> Mapping[Fault, int]:
        """How often what others sent was not believed."""
        return self._faults.counts

    def addresses_of(self, router: str) -> Mapping[str, int]:
        """The address keys that another router listens on, each with its hint; nothing if it is not known."""
        node = self._nodes.get(router)
        return {} if node is None else node.addresses

    # --- what happens here

    def link_up(self, connection: int, cost: int) -> None:
        """There is a control link over ``connection``; hellos go there from the next tick on."""
        self._links[connection] = _Link(cost)
        self._last_hello_s = float("-inf")

    def link_down(self, connection: int, now_s: float) -> None:
        """The control link is gone, and with it the neighbour, unless it is heard over another connection."""
        link = self._links.pop(connection, None)
        if link is not None and link.router:
            self._choose_way(link.router, now_s, "connection lost")
            self._recompute(now_s)

    def add_address(self, key: str, hint: int) -> None:
        """Somebody here listens on ``key``; told to the others at the next tick."""
        self._addresses[key] = hint

    def delete_address(self, key: str) -> None:
        """Nobody here listens on ``key`` any longer."""
        self._addresses.pop(key, None)

    # --- time

    def tick(self, now_s: float) -> None:
        """What a second brings: hellos, advertisements, and the end of what was not heard of for too long."""
        self._say_hello(now_s)
        flux = now_s - self._last_change_s <= 2 * self._timers.ra_interval_flux_s
        interval_s = self._timers.ra_interval_flux_s if flux else self._timers.ra_interval_s
        advertise = now_s - self._last_ra_s >= interval_s
        self._expire(now_s)
        if self._links_changed:
            self._links_changed = False
            self._link_sequence += 1
            self._last_change_s = now_s
            advertise = True
        self._recompute(now_s)
        self._ask(now_s)
        if self._tell_addresses():
            advertise = True
        if advertise and self._links:
            self._advertise(now_s)

    def _say_hello(self, now_s: float) -> None:
        timers = self._timers
        if now_s - self._last_hello_s < timers.hello_interval_s:
            return
        self._last_hello_s = now_s
        self._seen = {router: at_s for router, at_s in self._seen.items() if now_s - at_s <= timers.hello_max_age_s}
        hello = Hello(self.me, self.instance, tuple(self._seen))
        for connection in self._links:
            self.events.append(Send(hello, HELLO_TO, connection))

    def _expire(self, now_s: float) -> None:
        for router in list(self._neighbours):
            self._choose_way(router, now_s, "no hello")
        for router, node in self._nodes.items():
            if node.peers and now_s - node.heard_s > self._timers.remote_ls_max_age_s:
                node.peers = {}
                node.link_sequence = 0
                self._reshaped = self._reshaped or f"{router} is silent"
        listed = {peer for node in self._nodes.values() for peer in node.peers}
        for router, node in list(self._nodes.items()):
            if node.peers or router in self._neighbours or router in listed:
                node.orphan_ticks = 0
                continue
            node.orphan_ticks += 1
            if node.orphan_ticks >= ORPHAN_TICKS:
                self._forget(router)

    def _forget(self, router: str) -> None:
        self._unmap(router)
        del self._nodes[router]
        self.events.append(RouterLost(router))

    def _ask(self, now_s: float) -> None:
        """Ask whoever can be reached for what they have advertised and we have not heard."""
        for router, node in self._nodes.items():
            if router not in self.paths.next_hop:
                continue
            if node.link_sequence < node.advertised_links and now_s - node.asked_links_s >= ASK_AGAIN_S:
                self._ask_links(router, node, now_s)
            behind = node.mobile_sequence < node.advertised_addresses
            if behind and now_s - node.asked_addresses_s >= ASK_AGAIN_S:
                self._ask_addresses(router, node, now_s)

    def _ask_links(self, router: str, node: _Node, now_s: float) -> None:
        node.asked_links_s = now_s
        self._send(LinkStateRequest(self.me), router_address(router))

    def _ask_addresses(self, router: str, node: _Node, now_s: float) -> None:
        node.asked_addresses_s = now_s
        self._send(MobileAddressRequest(self.me, node.mobile_sequence), mobile_address(router))

    def _tell_addresses(self) -> bool:
        """Tell the others how our addresses have changed since we told them last; whether they had."""
        added = {key: hint for key, hint in self._addresses.items() if key not in self._told}
        deleted = tuple(key for key in self._told if key not in self._addresses)
        if not (added or deleted):
            return False
        self._mobile_sequence += 1
        self._told = dict(self._addresses)
        update = MobileAddressUpdate(self.me, self._mobile_sequence, None, tuple(added), deleted, tuple(added.values()))
        if self._links:
            self._send(update, ALL_ADDRESSES_TO)
        return True

    def _advertise(self, now_s: float) -> None:
        self._last_ra_s = now_s
        advertisement = RouterAdvertisement(self.me, self.instance, self._link_sequence, self._mobile_sequence)
        self._send(advertisement, ALL_ROUTERS_TO)

    def _send(self, message: Message, to: str) -> None:
        self.events.append(Send(message, to))

    # --- what arrives

    def take(self, data: bytes, connection: int, now_s: float) -> Relay:
        """Take the message ``data`` that came over the control link of ``connection``: which neighbours get it next."""
        try:
            way = relay(data, self.me, self.paths)
            if way.address:
                message = parse(data)
                if TAKEN_AT.get(type(message), way.address) != way.address:
                    raise DecodeError(f"{type(message).__name__} is not taken at {way.address[:32]!r}")
                self.receive(message, connection, now_s)
        except Dropped as dropped:
            self._complain(dropped.fault, "", connection, now_s)
        except DecodeError as error:
            self._complain(Fault.MALFORMED, str(error), connection, now_s)
        else:
            return way
        return Relay("")

    def receive(self, message: Message | Newer, connection: int, now_s: float) -> None:
        """Take a message that came in over the control link of ``connection``; what makes no sense changes nothing."""
        if isinstance(message, Newer):
            self._complain(Fault.NEWER_VERSION, f"version {message.version}", connection, now_s, message.id)
        elif message.id == self.me:
            if isinstance(message, Hello) and message.instance != self.instance:
                self._complain(Fault.SAME_ID, f"instance {message.instance}", connection, now_s, self.me)
        elif isinstance(message, Hello):
            self._hear_hello(message, connection, now_s)
        elif isinstance(message, RouterAdvertisement):
            self._hear_advertisement(message, connection, now_s)
        elif isinstance(message, LinkStateRequest):
            if self._obtain(message.id, connection, now_s) is not None:
                self._answer_links(message.id)
        elif isinstance(message, LinkStateUpdate):
            self._hear_links(message, connection, now_s)
        elif isinstance(message, MobileAddressRequest):
            self._answer_addresses(message, connection, now_s)
        else:
            self._hear_addresses(message, connection, now_s)

    def _hear_hello(self, hello: Hello, connection: int, now_s: float) -> None:
        link = self._links.get(connection)
        if link is None:
            return
        node = self._obtain(hello.id, connection, now_s)
        if node is None:
            return
        if hello.id in self._seen or len(self._seen) < MAX_ROUTERS:
            self._seen[hello.id] = now_s
        self._note_instance(hello.id, node, hello.instance)
        if self.me in hello.seen:
            former, link.router, link.confirmed_s = link.router, hello.id, now_s
            node.heard_s = now_s
            if former and former != hello.id:
                self._choose_way(former, now_s, f"{hello.id} speaks over its connection")
            self._choose_way(hello.id, now_s, "")
        self._recompute(now_s)

    def _hear_advertisement(self, heard: RouterAdvertisement, connection: int, now_s: float) -> None:
        node = self._obtain(heard.id, connection, now_s)
        if node is None:
            return
        node.heard_s = now_s
        self._note_instance(heard.id, node, heard.instance)
        node.advertised_links = max(heard.link_sequence, 1)
        node.advertised_addresses = heard.mobile_sequence
        if heard.link_sequence > node.link_sequence and heard.id in self.paths.next_hop:
            self._ask_links(heard.id, node, now_s)
        self._recompute(now_s)

    def _hear_links(self, heard: LinkStateUpdate, connection: int, now_s: float) -> None:
        node = self._obtain(heard.id, connection, now_s)
        if node is None or heard.link_sequence <= node.link_sequence:
            return
        node.heard_s = now_s
        node.link_sequence = heard.link_sequence
        peers = {peer: cost for peer, cost in heard.peers.items() if peer != heard.id}
        for peer in peers:
            if peer != self.me and self._obtain(peer, connection, now_s) is None:
                return
        if peers != node.peers:
            node.peers = peers
            self._reshape(now_s, f"{heard.id} has other neighbours")
        self._recompute(now_s)

    def _answer_links(self, router: str) -> None:
        peers = {neighbour: self._links[connection].cost for neighbour, connection in self._neighbours.items()}
        update = LinkStateUpdate(self.me, self.instance, self._link_sequence, peers)
        self._send(update, router_address(router))

    def _answer_addresses(self, request: MobileAddressRequest, connection: int, now_s: float) -> None:
        if request.id not in self._nodes:
            self._complain(Fault.UNKNOWN_ROUTER, "it asks for addresses", connection, now_s, request.id)
        elif request.have_sequence < self._mobile_sequence:
            keys, hints = tuple(self._told), tuple(self._told.values())
            update = MobileAddressUpdate(self.me, self._mobile_sequence, keys, hints=hints)
            self._send(update, mobile_address(request.id))

    def _hear_addresses(self, heard: MobileAddressUpdate, connection: int, now_s: float) -> None:
        node = self._nodes.get(heard.id)
        if node is None:
            self._complain(Fault.UNKNOWN_ROUTER, "it tells addresses", connection, now_s, heard.id)
            return
        if heard.exist is not None:
            if heard.sequence < node.mobile_sequence:
                return  # on its way since before what we know
            hints = heard.hints or (NO_HINT,) * len(heard.exist)
            told = dict(zip(heard.exist, hints, strict=True))
            fits = self._map(heard.id, node, told, tuple(key for key in node.addresses if key not in told))
        elif heard.sequence == node.mobile_sequence + 1:
            hints = heard.hints or (NO_HINT,) * len(heard.added)
            fits = self._map(heard.id, node, dict(zip(heard.added, hints, strict=True)), heard.deleted)
        else:
            if heard.sequence > node.mobile_sequence:
                node.advertised_addresses = max(heard.sequence, node.advertised_addresses)
                self._ask_addresses(heard.id, node, now_s)
            return
        node.mobile_sequence = heard.sequence
        if not fits:
            self._complain(Fault.TOO_MANY, f"more than {MAX_ADDRESSES} addresses", connection, now_s, heard.id)

    # --- what comes of it

    def _map(self, router: str, node: _Node, told: Mapping[str, int], gone: tuple[str, ...]) -> bool:
        """``router`` listens on what it ``told``, and not on what is ``gone``; whether there was room for all of it."""
        deleted = tuple(key for key in gone if node.addresses.pop(key, None) is not None)
        added = {key: hint for key, hint in told.items() if key not in node.addresses}
        room = MAX_ADDRESSES - len(node.addresses)
        fits = len(added) <= room
        if not fits:
            added = dict(list(added.items())[:room])
        node.addresses.update(added)
        if added or deleted:
            self.events.append(AddressesChanged(router, added, deleted))
        return fits

    def _unmap(self, router: str) -> None:
        node = self._nodes[router]
        node.mobile_sequence = 0
        self._map(router, node, {}, tuple(node.addresses))

    def _obtain(self, router: str, connection: int, now_s: float) -> _Node | None:
        """The node of ``router``, made if it is new; None if there are too many."""
        node = self._nodes.get(router)
        if node is None:
            if len(self._nodes) >= MAX_ROUTERS:
                self._complain(Fault.TOO_MANY, f"more than {MAX_ROUTERS} routers", connection, now_s)
                return None
            node = self._nodes[router] = _Node(heard_s=now_s)
        return node

    def _note_instance(self, router: str, node: _Node, instance: int) -> None:
        """Another instance is another start: whatever it said before is void."""
        if node.instance is not None and node.instance != instance:
            node.peers = {}
            node.link_sequence = 0
            node.advertised_links = 1
            node.advertised_addresses = 0
            node.asked_links_s = node.asked_addresses_s = float("-inf")
            self._unmap(router)
            self._reshaped = self._reshaped or f"{router} has restarted"
        node.instance = instance

    def _choose_way(self, router: str, now_s: float, why: str) -> None:
        """Settle over which connection ``router`` is a neighbour: the cheapest, and of those the first, or none.

        Only one over which it was heard lately will do; ``why`` says what is wrong with the one there was.
        """
        fresh_s = now_s - self._timers.hello_max_age_s
        ways = [
            (link.cost, connection)
            for connection, link in self._links.items()
            if link.router == router and link.confirmed_s >= fresh_s
        ]
        former = self._neighbours.get(router)
        if not ways:
            if former is not None:
                del self._neighbours[router]
                self._change_links(now_s, f"{router} is no neighbour: {why}")
                self.events.append(NeighbourDown(router, why))
            return
        cost, connection = min(ways)
        if connection == former:
            return
        self._neighbours[router] = connection
        self._change_links(now_s, f"{router} is a neighbour over another connection")
        if former is None:
            self._nodes[router].asked_links_s = float("-inf")
            self.events.append(NeighbourUp(router, connection, cost))
        else:
            self.events.append(NeighbourMoved(router, connection))

    def _change_links(self, now_s: float, why: str) -> None:
        """Our own link state is another, and the others shall know."""
        self._links_changed = True
        self._reshape(now_s, why)

    def _reshape(self, now_s: float, why: str) -> None:
        self._last_change_s = now_s
        self._reshaped = self._reshaped or why

    def _recompute(self, now_s: float) -> None:
        """Find the ways anew if the network has another shape."""
        if not self._reshaped:
            return
        why, self._reshaped = self._reshaped, ""
        self._last_change_s = now_s
        links: dict[str, Mapping[str, int]] = {router: node.peers for router, node in self._nodes.items() if node.peers}
        links[self.me] = {router: self._links[connection].cost for router, connection in self._neighbours.items()}
        self.paths = Paths(self.me, links)
        self.events.append(PathsChanged(why))

    def _complain(self, fault: Fault, detail: str, connection: int, now_s: float, who: str = "") -> None:
        """Count something wrong, and tell of it once in a while."""
        link = self._links.get(connection)
        who = who or (link.router if link else "")
        times = self._faults.note((who, connection), fault, now_s)
        if times:
            self.events.append(Ignored(who, connection, fault, detail, times))
