"""Shortest paths from one router to all others, the same on every router of the network (inter-router.md 4.4, 4.5).

Routers are numbers, in the order of their ids. Of several shortest ways, the one is taken whose last link starts at the
router with the least cost, and among those with the lowest number. This is the way found first if candidates are
processed in the order of cost and number, so all routers that know the same links compute the same tree.

No sorting is needed: candidates of one cost are processed in any order. If every link costs less than the number of
heaps, each cost has its own heap, in a circle: no candidate costs more than one round beyond the current cost.
Otherwise it is a radix heap. A candidate's cost is never below the current one; its heap is the highest bit in which
they differ, and once the lower heaps are empty, the next one is spread over them.

Indices are not checked where they are used (pyproject.toml, `unchecked`): those from outside are checked when a tree is
made, and the arguments of ``compute_ways`` when it begins.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

if TYPE_CHECKING:
    from cython import Py_ssize_t, longlong
    from cython import int as c_int

    _Ints: TypeAlias = Annotated[array[int], "int[::1]"]
    _Longs: TypeAlias = Annotated[array[int], "long long[::1]"]

#: The cost of an unreachable router.
UNREACHED = -1
#: One heap for each bit of a cost, and one for the current cost; a power of two.
_HEAPS: Final[c_int] = 64
_ROUND: Final[c_int] = _HEAPS - 1
_NONE: Final[c_int] = -1


class Tree:
    """The network's links, and the tree that ``compute_ways`` made last.

    ``starts[u]`` to ``starts[u + 1]`` are the positions of router ``u``'s links in ``ends`` and ``costs``: the router
    that each leads to, and its cost, from 1 to 2**31 - 1.
    """

    __slots__ = (
        "count",
        "_starts",
        "_ends",
        "_costs",
        "cost",
        "hops",
        "first",
        "_previous",
        "_beyond",
        "_who",
        "_keys",
        "_following",
        "_heaps",
        "_near",
    )

    def __init__(self, starts: Sequence[int], ends: Sequence[int], costs: Sequence[int]) -> None:
        """Make a tree; ValueError if the lists do not match, a link leads nowhere, or a cost is out of range."""
        self.count: Py_ssize_t = len(starts) - 1
        if not starts or list(starts) != sorted(starts) or starts[0] != 0 or starts[self.count] != len(ends):
            raise ValueError("the links of routers do not follow one another")
        if len(ends) != len(costs):
            raise ValueError("not every link has a cost")
        if ends and not (min(ends) >= 0 and max(ends) < self.count and min(costs) > 0 and max(costs) < 1 << 31):
            raise ValueError("a link leads nowhere, or has no cost")
        self._starts: _Ints = array("i", starts)
        self._ends: _Ints = array("i", ends)
        self._costs: _Ints = array("i", costs)
        #: By router, its way's cost (UNREACHED for none), number of links, and first hop.
        self.cost: _Longs = array("q", bytes(8 * self.count))
        self.hops: _Ints = array("i", bytes(4 * self.count))
        self.first: _Ints = array("i", bytes(4 * self.count))
        # By router, the one before it on its way, and whether the way passes through ``middle``.
        self._previous: _Ints = array("i", bytes(4 * self.count))
        self._beyond: _Ints = array("i", bytes(4 * self.count))
        # Candidates: one for each better way to a router that was found; those of a heap form a linked list.
        candidates = len(ends) + 1
        self._who: _Ints = array("i", bytes(4 * candidates))
        self._keys: _Longs = array("q", bytes(8 * candidates))
        self._following: _Ints = array("i", bytes(4 * candidates))
        self._heaps: _Ints = array("i", bytes(4 * _HEAPS))
        self._near: bool = max(costs, default=0) < _HEAPS

    def compute_ways(self, root: Py_ssize_t, middle: Py_ssize_t, whole: bool) -> list[int]:
        """Compute the ways from ``root``; return the routers whose way passes through ``middle``; IndexError.

        Unless ``whole``, stop once these are known.
        """
        if not (0 <= root < self.count and 0 <= middle < self.count):
            raise IndexError("no such router")
        starts, ends, costs = self._starts, self._ends, self._costs
        cost, hops, first, previous, beyond = self.cost, self.hops, self.first, self._previous, self._beyond
        who, keys, following, heaps = self._who, self._keys, self._following, self._heaps
        found: list[int] = []
        self._reset_to_root(root)
        candidates: c_int = 1
        near: bool = self._near
        now: longlong = 0  # the cost that is processed, and its heap
        here: c_int = 0
        behind: Py_ssize_t = 0  # candidates whose way passes through the middle
        passed: bool = False
        while True:
            if heaps[here] == _NONE:
                now = self._next_cost(now) if near else self._spread_heap()
                if now < 0:
                    break
                if near:
                    here = now & _ROUND
            if passed and behind == 0 and not whole:
                break
            candidate: c_int = heaps[here]
            heaps[here] = following[candidate]
            router: Py_ssize_t = who[candidate]
            if cost[router] != now:
                continue  # a better way was found since
            if router == middle:
                passed = True
            if beyond[router]:
                behind -= 1
                found.append(router)
            is_behind: c_int = 1 if router == middle or beyond[router] else 0
            place: Py_ssize_t
            for place in range(starts[router], starts[router + 1]):
                end: Py_ssize_t = ends[place]
                through: longlong = now + costs[place]
                known: longlong = cost[end]
                if 0 <= known <= through:
                    if known < through or cost[previous[end]] < now or previous[end] < router:
                        continue
                else:
                    heap: c_int = through & _ROUND if near else _bits(through ^ now)
                    who[candidates] = end
                    keys[candidates] = through
                    following[candidates] = heaps[heap]
                    heaps[heap] = candidates
                    candidates += 1
                behind += is_behind - beyond[end]
                beyond[end] = is_behind
                cost[end] = through
                hops[end] = hops[router] + 1
                first[end] = end if router == root else first[router]
                previous[end] = router
        return found

    def _reset_to_root(self, root: Py_ssize_t) -> None:
        """Clear the last tree; leave ``root`` as the only candidate, with cost 0."""
        cost: _Longs = self.cost
        beyond: _Ints = self._beyond
        heaps: _Ints = self._heaps
        router: Py_ssize_t
        for router in range(self.count):
            cost[router] = -1
            beyond[router] = 0
        heap: c_int
        for heap in range(_HEAPS):
            heaps[heap] = _NONE
        cost[root] = 0
        self.hops[root] = 0
        self.first[root] = root
        self._previous[root] = root
        self._who[0] = root
        self._keys[0] = 0
        self._following[0] = _NONE
        heaps[0] = 0

    def _next_cost(self, now: longlong) -> longlong:
        """Return the next cost of a candidate in the circle; -1 if there is none."""
        heaps: _Ints = self._heaps
        cost: longlong
        for cost in range(now + 1, now + _HEAPS):
            if heaps[cost & _ROUND] != _NONE:
                return cost
        return -1

    def _spread_heap(self) -> longlong:
        """Spread the next heap over the lower ones; return the least cost of a candidate, -1 if there is none."""
        heaps: _Ints = self._heaps
        keys: _Longs = self._keys
        following: _Ints = self._following
        heap: c_int = 1
        while heap < _HEAPS and heaps[heap] == _NONE:
            heap += 1
        if heap == _HEAPS:
            return -1
        candidate: c_int = heaps[heap]
        heaps[heap] = _NONE
        least: longlong = keys[candidate]
        behind: c_int = following[candidate]
        while behind != _NONE:
            least = min(least, keys[behind])
            behind = following[behind]
        while candidate != _NONE:
            behind = following[candidate]
            heap = _bits(keys[candidate] ^ least)
            following[candidate] = heaps[heap]
            heaps[heap] = candidate
            candidate = behind
        return least


def _bits(differs: longlong) -> c_int:
    """Return the number of bits of a number that is not negative."""
    bits: c_int = 0
    while differs:
        differs >>= 1
        bits += 1
    return bits
