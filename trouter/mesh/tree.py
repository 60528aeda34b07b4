"""Shortest paths from one router to all others, exactly as every router of the network works them out (4.4).

Routers are numbers here, in the order of their ids. Of all ways that cost least, one is taken: where its last link
starts at the router that costs least, and among equals at the one with the lowest number. That is the one that is found
first when candidates are worked off in the order of cost and number, so all routers that know the same links get the
same tree. inter-router.md 4.4 and 4.5.

Nothing has to be sorted for that: candidates of one cost are worked off as they come. Where every link costs less than
there are heaps, each cost has a heap of its own, in a circle: no candidate costs more than one round beyond what is
worked off. Otherwise it is a radix heap. What a candidate costs is never less than what was worked off last, so it
stands in the heap by the highest bit in which it differs from that; when the lower bits are worked off, the next heap
is spread over them.

No index is checked where it is used (pyproject.toml, `unchecked`): numbers from elsewhere are when a tree is made, and
those of ``grow`` when it begins.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

#: The cost of what cannot be reached.
UNREACHED = -1
#: As many heaps as a cost has bits, and one for what costs as much as what was worked off last; a power of two.
_HEAPS = 64
_ROUND = _HEAPS - 1
_NONE = -1


class Tree:
    """The network's links, and the tree that ``grow`` made last.

    ``starts[u]`` to ``starts[u + 1]`` are the places in ``ends`` and ``costs`` where the links of router ``u`` stand:
    the router that each leads to, and what it costs, from 1 to 2**31 - 1.
    """

    __slots__ = (
        "_beyond",
        "_costs",
        "_ends",
        "_following",
        "_heaps",
        "_keys",
        "_near",
        "_previous",
        "_starts",
        "_who",
        "cost",
        "count",
        "first",
        "hops",
    )

    def __init__(self, starts: Sequence[int], ends: Sequence[int], costs: Sequence[int]) -> None:
        """ValueError if there are not as many links as said, if one leads nowhere, or if one has no such cost."""
        self.count = len(starts) - 1
        if not starts or list(starts) != sorted(starts) or starts[0] != 0 or starts[self.count] != len(ends):
            raise ValueError("the links of routers do not follow one another")
        if len(ends) != len(costs):
            raise ValueError("not every link has a cost")
        if ends and not (min(ends) >= 0 and max(ends) < self.count and min(costs) > 0 and max(costs) < 1 << 31):
            raise ValueError("a link leads nowhere, or has no cost")
        self._starts = array("i", starts)
        self._ends = array("i", ends)
        self._costs = array("i", costs)
        #: By router: what the way costs, UNREACHED if there is none; how many links it has; its first stop.
        self.cost = array("q", bytes(8 * self.count))
        self.hops = array("i", bytes(4 * self.count))
        self.first = array("i", bytes(4 * self.count))
        # By router: the one before it on its way, and whether the way passes through the one ``grow`` was asked about.
        self._previous = array("i", bytes(4 * self.count))
        self._beyond = array("i", bytes(4 * self.count))
        # Candidates: a router stands here once for each better way found. Those of one heap follow one another.
        candidates = len(ends) + 1
        self._who = array("i", bytes(4 * candidates))
        self._keys = array("q", bytes(8 * candidates))
        self._following = array("i", bytes(4 * candidates))
        self._heaps = array("i", bytes(4 * _HEAPS))
        self._near = max(costs, default=0) < _HEAPS

    def grow(self, root: int, middle: int, whole: bool) -> list[int]:
        """Work out the ways from ``root``; the routers to which they pass through ``middle``. IndexError.

        Unless ``whole``, no more is worked out than that.
        """
        if not (0 <= root < self.count and 0 <= middle < self.count):
            raise IndexError("no such router")
        starts, ends, costs = self._starts, self._ends, self._costs
        cost, hops, first = self.cost, self.hops, self.first
        previous, beyond = self._previous, self._beyond
        who, keys, following, heaps = self._who, self._keys, self._following, self._heaps
        found = []
        self._plant(root)
        candidates = 1
        near = self._near
        now = 0  # the cost of what is worked off, and the heap where it stands
        here = 0
        behind = 0  # candidates whose way passes through the middle
        passed = False
        while True:
            if heaps[here] == _NONE:
                now = self._go_round(now) if near else self._spread()
                if now < 0:
                    break
                if near:
                    here = now & _ROUND
            if passed and behind == 0 and not whole:
                break
            candidate = heaps[here]
            heaps[here] = following[candidate]
            router = who[candidate]
            if cost[router] != now:
                continue  # a better way was found since
            if router == middle:
                passed = True
            if beyond[router]:
                behind -= 1
                found.append(router)
            is_behind = 1 if router == middle or beyond[router] else 0
            for place in range(starts[router], starts[router + 1]):
                end = ends[place]
                through = now + costs[place]
                known = cost[end]
                if 0 <= known <= through:
                    if known < through or cost[previous[end]] < now or previous[end] < router:
                        continue
                else:
                    heap = through & _ROUND if near else _bits(through ^ now)
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

    def _plant(self, root: int) -> None:
        """Forget the tree before; the only candidate is ``root``, which costs nothing."""
        cost, beyond, heaps = self.cost, self._beyond, self._heaps
        for router in range(self.count):
            cost[router] = -1
            beyond[router] = 0
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

    def _go_round(self, now: int) -> int:
        """The next cost of a candidate in the circle, -1 when there is none."""
        heaps = self._heaps
        for cost in range(now + 1, now + _HEAPS):
            if heaps[cost & _ROUND] != _NONE:
                return cost
        return -1

    def _spread(self) -> int:
        """Spread the next heap over those before it; the least cost of a candidate, -1 when there is none."""
        heaps, keys, following = self._heaps, self._keys, self._following
        heap = 1
        while heap < _HEAPS and heaps[heap] == _NONE:
            heap += 1
        if heap == _HEAPS:
            return -1
        candidate = heaps[heap]
        heaps[heap] = _NONE
        least = keys[candidate]
        behind = following[candidate]
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


def _bits(differs: int) -> int:
    """How many bits a number needs that is not negative."""
    bits = 0
    while differs:
        differs >>= 1
        bits += 1
    return bits
