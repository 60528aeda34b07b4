"""The ways through a network from one router: next hops, costs, and the origins of messages that pass through it."""

from __future__ import annotations

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
        self._beyond: dict[str, frozenset[str]] = {}
        #: By router, the neighbour that leads there, and the cost of the way.
        self.next_hop: dict[str, str] = {}
        self.cost: dict[str, int] = {}
        #: The number of links on the way to the farthest router.
        self.radius = 0
        self._grow()

    def _grow(self) -> None:
        tree, ids = self._tree, self._ids
        tree.grow(self._place, self._place, True)
        for number, router in enumerate(ids):
            if number != self._place and tree.cost[number] >= 0:
                self.next_hop[router] = ids[tree.first[number]]
                self.cost[router] = tree.cost[number]
                self.radius = max(self.radius, tree.hops[number])

    def beyond(self, origin: str) -> frozenset[str]:
        """Return the routers to which messages from ``origin`` travel through this one; all, if it is the origin.

        Each tree is computed on demand, so that after a change of the network no message waits for a thousand trees.
        The set is empty for an unknown origin.
        """
        found = self._beyond.get(origin)
        if found is None:
            found = self._beyond[origin] = self._find_beyond(origin)
        return found

    def _find_beyond(self, origin: str) -> frozenset[str]:
        if origin == self._me:
            return frozenset(self.next_hop)
        root = self._numbers.get(origin)
        if root is None:
            return frozenset()
        return frozenset([self._ids[number] for number in self._tree.grow(root, self._place, False)])
