"""The ways through a network from one router: next hops, costs, and the origins of messages that pass through it."""

from __future__ import annotations

from array import array
from collections.abc import Mapping

from .tree import Tree


class Paths:
    """The ways from ``me`` to all routers, computed from the ``links``: costs by neighbour, by router.

    A router that others list and that lists none itself counts as having one link back, at cost 1, to the first that
    lists it (inter-router.md 4.4): its own link state has yet to come. Unreachable routers are absent.
    """

    def __init__(self, me: str, links: Mapping[str, Mapping[str, int]]) -> None:
        self._me = me
        known: dict[str, Mapping[str, int]] = dict(links)
        known.setdefault(me, {})
        for router, neighbours in sorted(links.items()):
            for neighbour in neighbours:
                known.setdefault(neighbour, {router: 1})
        self._ids = sorted(known)
        self._numbers = {router: number for number, router in enumerate(self._ids)}
        starts, ends, costs = [0], list[int](), list[int]()
        for router in self._ids:
            for neighbour, cost in known[router].items():
                ends.append(self._numbers[neighbour])
                costs.append(cost)
            starts.append(len(ends))
        self._tree = Tree(starts, ends, costs)
        self._place = self._numbers[me]
        #: The routers with a link to this one, each with its cost, and the costs of this router's own links.
        self._towards = [(self._numbers[router], peers[me]) for router, peers in known.items() if me in peers]
        self._own = known[me]
        #: By router, what ``_routers_and_neighbours`` found; by neighbour, the costs of its ways.
        self._found: dict[str, tuple[frozenset[str], frozenset[str]]] = {}
        self._costs: dict[str, array[int]] = {}
        #: By router, the neighbour that leads there, and the cost of the way.
        self.next_hop: dict[str, str] = {}
        self.cost: dict[str, int] = {}
        #: The number of links on the way to the farthest router.
        self.radius = 0
        self._compute_tree()

    def _compute_tree(self) -> None:
        tree, ids = self._tree, self._ids
        tree.compute_ways(self._place, self._place, True)
        for number, router in enumerate(ids):
            if number != self._place and tree.cost[number] >= 0:
                self.next_hop[router] = ids[tree.first[number]]
                self.cost[router] = tree.cost[number]
                self.radius = max(self.radius, tree.hops[number])

    def routers_beyond(self, origin: str) -> frozenset[str]:
        """Return the routers to which messages from ``origin`` travel through this one; all, if it is the origin.

        Each tree is computed on demand, so that after a change of the network no message waits for a thousand trees.
        The set is empty for an unknown origin.
        """
        return self._routers_and_neighbours(origin)[0]

    def may_come_from(self, neighbour: str, router: str) -> bool:
        """Return whether messages of ``router`` may arrive from ``neighbour``: a shortest way passes it.

        Of several shortest ways every one counts, and those in both directions: the routers on the way chose it, and
        what ``router`` lists may be unknown yet. Nothing leads to a router that cannot be reached.
        """
        hop = self.next_hop.get(router)
        if hop is None or hop == neighbour:
            return hop is not None
        return neighbour in self._routers_and_neighbours(router)[1] or self._begins_with(neighbour, router)

    def _begins_with(self, neighbour: str, router: str) -> bool:
        """Return whether a shortest way from this router to ``router`` begins with ``neighbour``."""
        if neighbour not in self._own:
            return False
        costs = self._costs.get(neighbour)
        if costs is None:
            self._tree.compute_ways(self._numbers[neighbour], self._place, True)
            costs = self._costs[neighbour] = array("q", self._tree.cost)  # the tree keeps its own for the next one
        rest = costs[self._numbers[router]]
        return rest >= 0 and self._own[neighbour] + rest == self.cost[router]

    def _routers_and_neighbours(self, origin: str) -> tuple[frozenset[str], frozenset[str]]:
        """Return the routers beyond this one for ``origin``, and the neighbours from which its ways come here."""
        found = self._found.get(origin)
        if found is None:
            found = self._found[origin] = self._find_passing(origin)
        return found

    def _find_passing(self, origin: str) -> tuple[frozenset[str], frozenset[str]]:
        if origin == self._me:
            return frozenset(self.next_hop), frozenset()
        root = self._numbers.get(origin)
        if root is None:
            return frozenset(), frozenset()
        ids = self._ids
        beyond = frozenset([ids[number] for number in self._tree.compute_ways(root, self._place, False)])
        costs = self._tree.cost
        here = costs[self._place]
        return beyond, frozenset([ids[each] for each, cost in self._towards if 0 <= costs[each] == here - cost])
