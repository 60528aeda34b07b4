"""Link routes: the addresses whose links are routed to a container as a whole (routing.md 2.5, 6.3, 6.4).

A pattern exists while something refers to it: a configured route, with or without its container; a route that a
connection requested for itself; or another router that has such a container. Each direction has its own patterns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from trouter.wire.performatives import Coordinator, Source, Target

from .containers import Container
from .entry import AddressEntry
from .network import MAX_KEY
from .patterns import (
    ADDRESSES,
    MANY,
    Pattern,
    PatternError,
    PatternTree,
    TooManyStepsError,
    is_exact,
    prefix_pattern,
)
from .table import AddressTable

IN: Final = "in"
OUT: Final = "out"
#: The treatment of these addresses, and its hint for other routers (inter-router.md 7.1).
LINK_BALANCED: Final = "linkBalanced"
LINK_BALANCED_HINT: Final = 4
#: The first letter of a key by direction: for a prefix, for a pattern.
LETTERS: Final = {IN: ("C", "E"), OUT: ("D", "F")}
_MEANING: Final = {letter: (way, letter in "CD") for way, letters in LETTERS.items() for letter in letters}

#: The address of link routes to a coordinator (routing.md 6.3).
COORDINATOR: Final = "$coordinator"
#: The property by which a dynamic terminus names its link route (1.3a).
ADDRESS_PROPERTY: Final = "x-opt-qd.address"

#: The direction of a pattern, and the pattern.
Identity = tuple[str, Pattern]

#: The most steps of a search: clients and other routers bring patterns, and only patterns made for it come near.
MAX_STEPS: Final = 20_000
#: Routes that one connection may request for itself.
MAX_SCOPED: Final = 1000


@dataclass(frozen=True, slots=True)
class LinkRoute:
    """A route of links to matching addresses; ``direction`` is ``in`` for links on which clients send.

    ``pattern`` is a pattern, or a prefix if ``is_prefix``. The container is the one with the id ``container_id``, or
    any on the listener or connector ``connection``; without either the route never gets one.
    """

    pattern: str
    direction: str
    is_prefix: bool = False
    container_id: str = ""
    connection: str = ""
    #: Put before the address towards the container, after ``del_prefix`` is removed.
    add_prefix: str = ""
    del_prefix: str = ""
    name: str = ""

    @property
    def tree_pattern(self) -> str:
        """Pattern for the tree; PatternError if it has no token."""
        return prefix_pattern(self.pattern) if self.is_prefix else self.pattern

    @property
    def key(self) -> str:
        """Lookup key; PatternError if it has no token."""
        return key_of(self.tree_pattern, self.direction)


class Hop(NamedTuple):
    """The next hop of a link, and its route; ``router`` is the destination, empty for a container here.

    With ``goes_up`` it is the interior router of this edge router.
    """

    container: Container
    route: LinkRoute
    router: str = ""
    goes_up: bool = False


class RoutePattern:
    """The links of one direction to one pattern of addresses."""

    def __init__(self, key: str, entry: AddressEntry) -> None:
        self.key = key
        #: Its entry in the table of addresses, with its counters.
        self.entry = entry
        #: Configured routes, with or without a container.
        self.routes: list[LinkRoute] = []
        #: Connected containers, each by its route; the one used last comes last.
        self.hops: list[Hop] = []
        #: Other routers with such containers, in the same order.
        self.routers: dict[str, None] = {}

    @property
    def unused(self) -> bool:
        """True if no route, container or other router refers to it."""
        return not (self.routes or self.hops or self.routers)


#: The pattern of addresses whose search is given up.
_UNDECIDED: Final = RoutePattern("E#", AddressEntry("E#", "#", LINK_BALANCED))

#: Returns the connection that leads to another router, by its id; None for none.
Reach = Callable[[str], Container | None]


@dataclass(frozen=True, slots=True)
class Scoped:
    """A route that a connection requested for itself."""

    container: Container
    route: LinkRoute


class Routes:
    """The link routes of one router.

    Other routers are notified of each pattern that gets its first container here, or loses its last. ``changed`` is
    called with a route, its container and whether it has it now. ``reach`` finds other routers.
    """

    def __init__(
        self,
        table: AddressTable,
        reach: Reach,
        changed: Callable[[LinkRoute, Container, bool], None] | None = None,
    ) -> None:
        self._table = table
        self._trees: dict[str, PatternTree[RoutePattern]] = {IN: PatternTree(), OUT: PatternTree()}
        self._patterns: dict[Identity, RoutePattern] = {}
        self._scoped: dict[int, Scoped] = {}
        self._network = table.network
        self._changed = changed
        #: Termini that outlive their links are routed too.
        self.resumable = True
        self._reach = reach
        table.add_claim(self._takes_senders)
        self._network.add_route_listener(self)

    def __len__(self) -> int:
        return len(self._patterns)

    # --- lookup

    def _takes_senders(self, text: str, space: str) -> bool:
        return self.find(text, IN, space) is not None

    def find(self, text: str, direction: str, space: str = "") -> RoutePattern | None:
        """Return the pattern that matches the address ``text``, qualified by its tenant; None for none.

        Addresses in the ``space`` of a tenant match only patterns that begin with it literally: to the tree, a dot in
        it would be the same as the slash behind it. A search of more than ``MAX_STEPS`` is given up; its answer is a
        pattern that never has a container, so that the link is refused.
        """
        try:
            pattern = self._trees[direction].match(text, MAX_STEPS) if len(self._trees[direction]) else None
        except TooManyStepsError:
            return _UNDECIDED
        return None if pattern is None or (space and not pattern.key.startswith(f"{space}/", 1)) else pattern

    def next_hop(self, pattern: RoutePattern, coming_from: int) -> Hop | None:
        """Return the next hop of a link: containers here first, each in turn, then other routers, each in turn.

        It is never a router on the connection that the link came on; None for none.
        """
        for hop in pattern.hops:
            pattern.hops.remove(hop)
            pattern.hops.append(hop)
            return hop
        for router in list(pattern.routers):
            container = self._reach(router)
            if container is not None and container.number != coming_from:
                del pattern.routers[router]
                pattern.routers[router] = None
                return Hop(container, AS_IT_IS, router)
        return None

    # --- configured routes

    def add(self, route: LinkRoute, containers: Iterator[Container]) -> None:
        """Configure a route; PatternError if it has no token."""
        pattern = self._obtain_pattern(route.key)
        pattern.routes.append(route)
        for container in containers:
            self._add_hop(pattern, Hop(container, route))

    def remove(self, route: LinkRoute) -> None:
        """Remove a configured route; the links that it carries stay."""
        pattern = self._patterns[identify(route.key)]
        pattern.routes.remove(route)
        for hop in [each for each in pattern.hops if each.route is route]:
            self._remove_hop(pattern, hop)
        self._release_pattern(pattern)

    def is_active(self, route: LinkRoute) -> bool:
        """Return whether a container of the route is connected."""
        pattern = self._patterns.get(identify(route.key))
        return pattern is not None and any(hop.route is route for hop in pattern.hops)

    # --- containers

    def container_came(self, container: Container) -> None:
        """Activate the routes that match a container, which has connected."""
        for pattern in list(self._patterns.values()):
            for route in pattern.routes:
                if container.matches(route.container_id, route.connection):
                    self._add_hop(pattern, Hop(container, route))

    def container_gone(self, container: Container) -> None:
        """End the routes to a container whose connection has ended, and delete those that it requested."""
        for number in [number for number, scoped in self._scoped.items() if scoped.container is container]:
            del self._scoped[number]
        for pattern in list(self._patterns.values()):
            for hop in [each for each in pattern.hops if each.container is container]:
                self._remove_hop(pattern, hop)
            self._release_pattern(pattern)

    def container_count(self, key: str) -> int:
        """Return the number of containers here for the pattern with this key."""
        pattern = self._patterns.get(identify(key)) if key[0] in _MEANING else None
        return 0 if pattern is None else len({hop.container.number for hop in pattern.hops})

    def routers_of(self, key: str) -> list[str]:
        """Return the ids of the other routers with containers for the pattern with this key, sorted."""
        pattern = self._patterns.get(identify(key)) if key[0] in _MEANING else None
        return [] if pattern is None else sorted(pattern.routers)

    # --- routes of connections

    def add_scoped(self, container: Container, route: LinkRoute, number: int) -> bool:
        """Add a route that a connection requests for its own lifetime; ``number`` is the route's identity.

        Return False if the connection has ``MAX_SCOPED`` already. PatternError if the pattern has no token.
        """
        key = route.key  # raises PatternError before any change
        if sum(scoped.container is container for scoped in self._scoped.values()) >= MAX_SCOPED:
            return False
        self._scoped[number] = Scoped(container, route)
        self._add_hop(self._obtain_pattern(key), Hop(container, route))
        return True

    def remove_scoped(self, number: int) -> None:
        """Remove a route that a connection requested; KeyError."""
        scoped = self._scoped.pop(number)
        pattern = self._patterns[identify(scoped.route.key)]
        self._remove_hop(pattern, next(hop for hop in pattern.hops if hop.route is scoped.route))
        self._release_pattern(pattern)

    def scoped_routes(self) -> dict[int, Scoped]:
        """Return the routes that connections requested, by identity."""
        return dict(self._scoped)

    # --- other routers

    def update_remote(self, key: str, router: str, present: bool) -> None:
        """See ``RouteListener``."""
        if present:
            self.add_remote(key, router)
        else:
            self.delete_remote(key, router)

    def add_remote(self, key: str, router: str) -> None:
        """Add a route of another router; ignore keys of other kinds."""
        if is_key(key) and len(key) <= MAX_KEY:
            self._obtain_pattern(key).routers.setdefault(router)

    def forget_remote(self, router: str) -> None:
        """Remove all routes of another router that is forgotten."""
        for pattern in list(self._patterns.values()):
            if router in pattern.routers:
                del pattern.routers[router]
                self._release_pattern(pattern)

    def delete_remote(self, key: str, router: str) -> None:
        """Remove a route of another router, which has no container for it any more."""
        pattern = self._patterns.get(identify(key)) if is_key(key) else None
        if pattern is not None:
            pattern.routers.pop(router, None)
            self._release_pattern(pattern)

    def local_keys(self) -> list[str]:
        """Return the keys of all patterns with containers here."""
        return [pattern.key for pattern in self._patterns.values() if pattern.hops]

    # --- patterns

    def _obtain_pattern(self, key: str) -> RoutePattern:
        identity = identify(key)
        pattern = self._patterns.get(identity)
        if pattern is None:
            entry = AddressEntry(key, key[1:], LINK_BALANCED)
            entry.pinned = True
            pattern = self._patterns[identity] = RoutePattern(key, entry)
            self._trees[identity[0]].insert(identity[1], pattern)
            self._table.entries[key] = entry
            self._table.forget_spellings()
        return pattern

    def _release_pattern(self, pattern: RoutePattern) -> None:
        identity = identify(pattern.key)
        if pattern.unused and self._patterns.pop(identity, None) is not None:
            self._trees[identity[0]].remove(identity[1])
            del self._table.entries[pattern.key]
            self._table.forget_spellings()

    def _add_hop(self, pattern: RoutePattern, hop: Hop) -> None:
        pattern.hops.insert(0, hop)
        if len(pattern.hops) == 1:
            self._network.advertise(pattern.key, LINK_BALANCED_HINT)
        if self._changed is not None:
            self._changed(hop.route, hop.container, True)

    def _remove_hop(self, pattern: RoutePattern, hop: Hop) -> None:
        pattern.hops.remove(hop)
        if not pattern.hops:
            self._network.withdraw(pattern.key)
        if self._changed is not None:
            self._changed(hop.route, hop.container, False)


def key_of(tree_pattern: str, direction: str) -> str:
    """Return the key of a pattern: that of a prefix if its only wildcard is a ``#`` at the end; PatternError."""
    pattern = ADDRESSES.parse(tree_pattern)
    as_prefix, as_pattern = LETTERS[direction]
    normalised = ADDRESSES.normalise(tree_pattern)
    if len(pattern) > 1 and pattern[-1] is MANY and is_exact(pattern[:-1]):
        return as_prefix + normalised[:-2]
    return as_pattern + normalised


def identify(key: str) -> Identity:
    """Return the identity of a key, equal for all spellings of the same pattern; PatternError."""
    direction, is_prefix = _MEANING[key[0]]
    return direction, ADDRESSES.parse(prefix_pattern(key[1:]) if is_prefix else key[1:])


def is_key(text: str) -> bool:
    """Return whether a text from another router is the key of a pattern."""
    try:
        return text[:1] in _MEANING and bool(identify(text))
    except PatternError:
        return False


#: The route to another router, which changes no address.
AS_IT_IS: Final = LinkRoute("#", IN)


def dynamic_address(properties: object) -> str | None:
    """Return the link-route address that the first property of a dynamic terminus names; None for none."""
    if isinstance(properties, dict) and properties:
        first = next(iter(properties))
        named = properties[first]
        if first == ADDRESS_PROPERTY and isinstance(named, str) and named:
            return named
    return None


def routed_address(terminus: object) -> str | None:
    """Return the address for the lookup of link routes; None for none."""
    if isinstance(terminus, Coordinator):
        return COORDINATOR
    if not isinstance(terminus, Source | Target):
        return None
    if terminus.dynamic:
        return dynamic_address(terminus.dynamic_node_properties)
    address = terminus.address
    return address if isinstance(address, str) and address else None
