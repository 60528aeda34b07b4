"""Shortest paths from one router to all others, exactly as every router of the network works them out (4.4).

Routers are numbers here, in the order of their ids. A candidate list ordered by cost and, where costs are equal, by
number is worked off; a way found later replaces one found earlier only if it costs less. So everybody who knows the
same links gets the same tree. inter-router.md 4.4 and 4.5.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

#: The cost of what cannot be reached.
UNREACHED = -1
#: A candidate is its cost, and in the lowest bits its number.
_BITS = 20
_MASK = (1 << _BITS) - 1
#: As many routers have numbers; costs of ways through all of them stay within 63 bits.
MAX_ROUTERS = 1 << _BITS


class Tree:
    """The network's links, and the tree that ``grow`` made last.

    ``starts[u]`` to ``starts[u + 1]`` are the places in ``ends`` and ``costs`` where the links of router ``u`` stand:
    whom each leads to, and what it costs, from 1 to 2**31 - 1.
    """

    __slots__ = ("_beyond", "_costs", "_done", "_ends", "_heap", "_heaped", "_starts", "cost", "count", "first", "hops")

    def __init__(self, starts: Sequence[int], ends: Sequence[int], costs: Sequence[int]) -> None:
        self.count = len(starts) - 1
        self._starts = array("q", starts)
        self._ends = array("q", ends)
        self._costs = array("q", costs)
        #: By router: what the way costs, UNREACHED if there is none; how many links it has; its first stop.
        self.cost = array("q", bytes(8 * self.count))
        self.hops = array("q", bytes(8 * self.count))
        self.first = array("q", bytes(8 * self.count))
        # By router: whether the way passes through the one that ``grow`` was asked about.
        self._beyond = array("q", bytes(8 * self.count))
        self._done = array("q", bytes(8 * self.count))
        # Candidates, a heap; a router may stand in it once for each better way found.
        self._heap = array("q", bytes(8 * (len(ends) + 1)))
        self._heaped = 0

    def grow(self, root: int, middle: int, whole: bool) -> list[int]:
        """Work out the ways from ``root``; the routers to which they pass through ``middle``.

        Unless ``whole``, no more is worked out than that.
        """
        found = []
        for router in range(self.count):
            self.cost[router] = -1
            self._done[router] = 0
            self._beyond[router] = 0
        self.cost[root] = 0
        self.hops[root] = 0
        self.first[root] = root
        self._heaped = 0
        self._push(root)
        behind = 0  # candidates whose way passes through the middle
        passed = False
        while self._heaped:
            if passed and behind == 0 and not whole:
                break
            router = self._pop() & _MASK
            if self._done[router]:
                continue
            self._done[router] = 1
            if router == middle:
                passed = True
            if self._beyond[router]:
                behind -= 1
                found.append(router)
            is_behind = 1 if router == middle or self._beyond[router] else 0
            cost = self.cost[router]
            for place in range(self._starts[router], self._starts[router + 1]):
                end = self._ends[place]
                through = cost + self._costs[place]
                if self._done[end] or (self.cost[end] >= 0 and self.cost[end] <= through):
                    continue
                behind += is_behind - self._beyond[end]
                self._beyond[end] = is_behind
                self.cost[end] = through
                self.hops[end] = self.hops[router] + 1
                self.first[end] = end if router == root else self.first[router]
                self._push(through << _BITS | end)
        return found

    def _push(self, item: int) -> None:
        place = self._heaped
        self._heaped = place + 1
        while place > 0:
            above = (place - 1) >> 1
            if self._heap[above] <= item:
                break
            self._heap[place] = self._heap[above]
            place = above
        self._heap[place] = item

    def _pop(self) -> int:
        least = self._heap[0]
        last = self._heaped - 1
        self._heaped = last
        item = self._heap[last]
        place = 0
        while True:
            below = 2 * place + 1
            if below >= last:
                break
            if below + 1 < last and self._heap[below + 1] < self._heap[below]:
                below += 1
            if self._heap[below] >= item:
                break
            self._heap[place] = self._heap[below]
            place = below
        self._heap[place] = item
        return least
