"""Link routes: which links belong to a container as a whole, and whose turn it is (routing.md 2.5, 6.3, 6.4).

A pattern is known for as long as something speaks of it: a configured route, whether or not its container is there; a
route that a connection asked for itself; or another router that has such a container. Each direction has its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from .containers import Container
from .entry import AddressEntry
from .network import MAX_KEY, Network
from .patterns import MANY, WILDCARDS, PatternError, PatternTree, normalise_pattern, pattern_tokens, prefix_pattern
from .table import AddressTable

IN: Final = "in"
OUT: Final = "out"
#: How the treatment of such addresses is called, and what other routers are told of it (inter-router.md 7.1).
LINK_BALANCED: Final = "linkBalanced"
LINK_BALANCED_HINT: Final = 4
#: The first letter of a key by direction: of a prefix, of a pattern.
LETTERS: Final = {IN: ("C", "E"), OUT: ("D", "F")}
_MEANING: Final = {letter: (way, letter in "CD") for way, letters in LETTERS.items() for letter in letters}

#: The direction of a pattern, and its tokens.
Identity = tuple[str, tuple[str, ...]]

#: Routes that one connection may ask for itself.
MAX_SCOPED: Final = 1000


@dataclass(frozen=True, slots=True)
class LinkRoute:
    """Links to matching addresses go to a container; ``direction`` is ``in`` for links that clients send on.

    ``pattern`` is a pattern, or a prefix when ``is_prefix``. The container is that with the id ``container_id``, or any
    on the listener or connector ``connection``; without either the route never gets one.
    """

    pattern: str
    direction: str
    is_prefix: bool = False
    container_id: str = ""
    connection: str = ""
    #: Put before the address towards the container, after what is taken from there.
    add_prefix: str = ""
    del_prefix: str = ""
    name: str = ""

    @property
    def tree_pattern(self) -> str:
        """Return the route as a pattern of the tree; PatternError when it has no token."""
        return prefix_pattern(self.pattern) if self.is_prefix else self.pattern

    @property
    def key(self) -> str:
        """Return the lookup key; PatternError when it has no token."""
        return key_of(self.tree_pattern, self.direction)


class Hop(NamedTuple):
    """Where a link may go on to, and by which route; ``router`` is the one it is for, empty for a container here."""

    container: Container
    route: LinkRoute
    router: str = ""


class RoutePattern:
    """The links of one direction to one pattern of addresses."""

    def __init__(self, key: str, entry: AddressEntry) -> None:
        self.key = key
        #: Its row among the addresses, and what is counted of it.
        self.entry = entry
        #: Configured routes, also those without a container.
        self.routes: list[LinkRoute] = []
        #: Containers that are there, each by its route; the one that was served last stands last.
        self.hops: list[Hop] = []
        #: Other routers that have such containers, in the same order.
        self.routers: dict[str, None] = {}

    @property
    def unused(self) -> bool:
        """Return whether no route, container or other router refers to it."""
        return not (self.routes or self.hops or self.routers)


#: The connection that leads to another router as a container, None when none does, by the router's id.
Reach = Callable[[str], Container | None]


@dataclass(frozen=True, slots=True)
class Scoped:
    """A route that a connection asked for itself."""

    container: Container
    route: LinkRoute


class Routes:
    """All link routes of one router.

    ``advertise`` and ``withdraw`` are called with the key of each pattern that gets its first container here, or loses
    its last; ``changed`` with a route, its container and whether it has it now.
    """

    def __init__(self, table: AddressTable) -> None:
        self._table = table
        self._trees: dict[str, PatternTree[RoutePattern]] = {IN: PatternTree(), OUT: PatternTree()}
        self._patterns: dict[Identity, RoutePattern] = {}
        self._scoped: dict[int, Scoped] = {}
        self.advertise: Callable[[str], None] = _ignore_event
        self.withdraw: Callable[[str], None] = _ignore_event
        self.changed: Callable[[LinkRoute, Container, bool], None] = _ignore_change
        #: Termini that outlive their links may be routed.
        self.resumable = True
        self.reach: Reach = _nowhere
        table.is_routed = self._takes_senders

    def __len__(self) -> int:
        return len(self._patterns)

    # --- where a link goes

    def _takes_senders(self, text: str, space: str) -> bool:
        return self.find(text, IN, space) is not None

    def find(self, text: str, direction: str, space: str = "") -> RoutePattern | None:
        """Return the pattern that the address ``text``, qualified by its tenant, falls under, or None.

        Addresses in the ``space`` of a tenant fall under patterns that begin with it, as it is written: to a pattern as
        such a dot in it would be as good as the slash behind it.
        """
        pattern = self._trees[direction].match(text) if len(self._trees[direction]) else None
        return None if pattern is None or (space and not pattern.key.startswith(f"{space}/", 1)) else pattern

    def next_hop(self, pattern: RoutePattern, coming_from: int) -> Hop | None:
        """Return where the next link goes: containers here first, each in turn, then other routers, each in turn.

        It never goes back to another router on the connection that it came on.
        """
        for hop in pattern.hops:
            pattern.hops.remove(hop)
            pattern.hops.append(hop)
            return hop
        for router in list(pattern.routers):
            container = self.reach(router)
            if container is not None and container.number != coming_from:
                del pattern.routers[router]
                pattern.routers[router] = None
                return Hop(container, AS_IT_IS, router)
        return None

    # --- what is configured

    def add(self, route: LinkRoute, containers: Iterator[Container]) -> None:
        """Configure a route; PatternError when it has no token."""
        pattern = self._obtain(route.key)
        pattern.routes.append(route)
        for container in containers:
            self._begin(pattern, Hop(container, route))

    def remove(self, route: LinkRoute) -> None:
        """Take a configured route out again; links that it carries stay."""
        pattern = self._patterns[identify(route.key)]
        pattern.routes.remove(route)
        for hop in [each for each in pattern.hops if each.route is route]:
            self._end(pattern, hop)
        self._release(pattern)

    def is_active(self, route: LinkRoute) -> bool:
        """Return whether a container of the route's is there."""
        pattern = self._patterns.get(identify(route.key))
        return pattern is not None and any(hop.route is route for hop in pattern.hops)

    # --- containers

    def container_came(self, container: Container) -> None:
        """Begin the routes that are for a container, which is connected."""
        for pattern in list(self._patterns.values()):
            for route in pattern.routes:
                if container.is_meant(route.container_id, route.connection):
                    self._begin(pattern, Hop(container, route))

    def container_gone(self, container: Container) -> None:
        """End the routes to a container whose connection is over, and delete those that it asked for."""
        for number in [number for number, scoped in self._scoped.items() if scoped.container is container]:
            del self._scoped[number]
        for pattern in list(self._patterns.values()):
            for hop in [each for each in pattern.hops if each.container is container]:
                self._end(pattern, hop)
            self._release(pattern)

    def container_count(self, key: str) -> int:
        """Return how many containers here the pattern with this key has."""
        pattern = self._patterns.get(identify(key)) if key[0] in _MEANING else None
        return 0 if pattern is None else len({hop.container.number for hop in pattern.hops})

    def routers(self, key: str) -> list[str]:
        """Return the other routers that have containers for the pattern with this key."""
        pattern = self._patterns.get(identify(key)) if key[0] in _MEANING else None
        return [] if pattern is None else sorted(pattern.routers)

    # --- what connections ask for themselves

    def add_scoped(self, container: Container, route: LinkRoute, number: int) -> bool:
        """Route links to the connection that asks for them, for as long as it stands; ``number`` is its identity.

        False when the connection has as many as it may. PatternError when the pattern has no token.
        """
        key = route.key  # finds fault first
        if sum(scoped.container is container for scoped in self._scoped.values()) >= MAX_SCOPED:
            return False
        self._scoped[number] = Scoped(container, route)
        self._begin(self._obtain(key), Hop(container, route))
        return True

    def remove_scoped(self, number: int) -> None:
        """End what ``add_scoped`` began; KeyError."""
        scoped = self._scoped.pop(number)
        pattern = self._patterns[identify(scoped.route.key)]
        self._end(pattern, next(hop for hop in pattern.hops if hop.route is scoped.route))
        self._release(pattern)

    def scoped(self) -> dict[int, Scoped]:
        """Return the routes that connections asked for."""
        return dict(self._scoped)

    # --- other routers

    def join(self, network: Network) -> None:
        """Tell the other routers what is here, and hear what is there."""
        self.advertise = lambda key: network.advertise(key, LINK_BALANCED_HINT)
        self.withdraw = network.withdraw
        network.on_route = lambda key, router, has: (self.add_remote if has else self.delete_remote)(key, router)
        network.on_forgotten = self.forget_remote

    def add_remote(self, key: str, router: str) -> None:
        """Note that another router has containers for the pattern with this key; keys of other kinds are ignored."""
        if is_key(key) and len(key) <= MAX_KEY:
            self._obtain(key).routers.setdefault(router)

    def forget_remote(self, router: str) -> None:
        """Remove all routes of another router that is gone."""
        for pattern in list(self._patterns.values()):
            if router in pattern.routers:
                del pattern.routers[router]
                self._release(pattern)

    def delete_remote(self, key: str, router: str) -> None:
        """Remove a route of another router, which has no container for it any more."""
        pattern = self._patterns.get(identify(key)) if is_key(key) else None
        if pattern is not None:
            pattern.routers.pop(router, None)
            self._release(pattern)

    def local_keys(self) -> list[str]:
        """Return the keys of all patterns that have containers here."""
        return [pattern.key for pattern in self._patterns.values() if pattern.hops]

    # --- their beginning and end

    def _obtain(self, key: str) -> RoutePattern:
        identity = identify(key)
        pattern = self._patterns.get(identity)
        if pattern is None:
            entry = AddressEntry(key, key[1:], LINK_BALANCED)
            entry.pinned = True
            pattern = self._patterns[identity] = RoutePattern(key, entry)
            self._trees[identity[0]].insert("/".join(identity[1]), pattern)
            self._table.entries[key] = entry
            self._table.forget_spellings()
        return pattern

    def _release(self, pattern: RoutePattern) -> None:
        identity = identify(pattern.key)
        if pattern.unused and self._patterns.pop(identity, None) is not None:
            self._trees[identity[0]].remove("/".join(identity[1]))
            del self._table.entries[pattern.key]
            self._table.forget_spellings()

    def _begin(self, pattern: RoutePattern, hop: Hop) -> None:
        pattern.hops.insert(0, hop)
        if len(pattern.hops) == 1:
            self.advertise(pattern.key)
        self.changed(hop.route, hop.container, True)

    def _end(self, pattern: RoutePattern, hop: Hop) -> None:
        pattern.hops.remove(hop)
        if not pattern.hops:
            self.withdraw(pattern.key)
        self.changed(hop.route, hop.container, False)


def key_of(tree_pattern: str, direction: str) -> str:
    """Return the key of a pattern, a prefix if only a ``#`` at its end is a wildcard; PatternError without a token."""
    tokens = pattern_tokens(tree_pattern)
    as_prefix, as_pattern = LETTERS[direction]
    normalised = normalise_pattern(tree_pattern)
    if len(tokens) > 1 and tokens[-1] == MANY and WILDCARDS.isdisjoint(tokens[:-1]):
        return as_prefix + normalised[:-2]
    return as_pattern + normalised


def identify(key: str) -> Identity:
    """Return what is equal for two keys of the same pattern, however its separators are written; PatternError."""
    direction, is_prefix = _MEANING[key[0]]
    return direction, pattern_tokens(prefix_pattern(key[1:]) if is_prefix else key[1:])


def is_key(text: str) -> bool:
    """Return whether another router's text is the key of a pattern."""
    try:
        return text[:1] in _MEANING and bool(identify(text))
    except PatternError:
        return False


#: How links go on to another router, which knows what the container wants.
AS_IT_IS: Final = LinkRoute("#", IN)


def _ignore_event(_: str) -> None:
    """A router without neighbours notifies no other router of its routes."""


def _ignore_change(_: LinkRoute, __: Container, ___: bool) -> None:
    """Ignore the event."""


def _nowhere(_: str) -> Container | None:
    """A router without neighbours leads nowhere."""
    return None
