"""Trees against the candidate list of inter-router.md 4.4, implemented word for word."""

from __future__ import annotations

import heapq

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trouter.mesh.tree import UNREACHED, Tree

Links = list[dict[int, int]]
#: Equal paths, paths of nearly the same cost, and costs of all sizes. Some with a heap for each cost, and some with too
#: few heaps.
COSTS = [
    st.just(1),
    st.integers(1, 3),
    st.integers(1, 100),
    st.sampled_from([1, 62, 63]),
    st.sampled_from([1, 63, 64, 65]),
    st.sampled_from([1, 2**15, 2**16 + 1, 2**31 - 1]),
]


def tree_of(links: Links) -> Tree:
    starts, ends, costs = [0], list[int](), list[int]()
    for each in links:
        ends += each
        costs += each.values()
        starts.append(len(ends))
    return Tree(starts, ends, costs)


def worked_off(links: Links, root: int) -> tuple[list[int], list[list[int]]]:
    """Return, by router, its cost, and the routers on the path to it, itself included."""
    cost, way = [UNREACHED] * len(links), [list[int]() for _ in links]
    cost[root] = 0
    candidates, done = [(0, root)], set[int]()
    while candidates:
        _, router = heapq.heappop(candidates)
        if router in done:
            continue
        done.add(router)
        for end, price in links[router].items():
            through = cost[router] + price
            if cost[end] == UNREACHED or through < cost[end]:
                cost[end], way[end] = through, [*way[router], end]
                heapq.heappush(candidates, (through, end))
    return cost, way


@st.composite
def networks(draw: st.DrawFn) -> Links:
    """Draw a network; a link may have another cost in the other direction, or none."""
    count = draw(st.integers(1, 12))
    prices = draw(st.sampled_from(COSTS))
    numbers = st.integers(0, count - 1)
    return [
        {end: price for end, price in draw(st.dictionaries(numbers, prices, max_size=6)).items() if end != router}
        for router in range(count)
    ]


@given(networks(), st.data())
def test_every_router_works_out_the_same(links: Links, data: st.DataObject) -> None:
    numbers = st.integers(0, len(links) - 1)
    root, middle = data.draw(numbers), data.draw(numbers)
    cost, way = worked_off(links, root)
    behind = {router for router, stops in enumerate(way) if middle in [root, *stops[:-1]] and stops}
    tree = tree_of(links)
    assert set(tree.compute_ways(root, middle, False)) == behind
    assert set(tree.compute_ways(root, middle, True)) == behind
    assert list(tree.cost) == cost
    for router, stops in enumerate(way):
        if stops:
            assert (tree.hops[router], tree.first[router]) == (len(stops), stops[0])


def test_a_long_way_of_dear_links_costs_their_sum() -> None:
    count, price = 2000, 2**31 - 1
    tree = tree_of([{number + 1: price} for number in range(count - 1)] + [{}])
    assert tree.compute_ways(0, 1, True)[-1] == count - 1
    assert tree.cost[count - 1] == (count - 1) * price


def test_a_network_without_routers() -> None:
    with pytest.raises(IndexError):
        Tree([0], [], []).compute_ways(0, 0, True)


@pytest.mark.parametrize(("root", "middle"), [(-1, 0), (0, -1), (2, 0), (0, 2)])
def test_no_tree_grows_from_or_through_a_router_that_is_not_there(root: int, middle: int) -> None:
    with pytest.raises(IndexError):
        tree_of([{1: 1}, {0: 1}]).compute_ways(root, middle, True)


@pytest.mark.parametrize(
    ("starts", "ends", "costs"),
    [
        ([], [], []),
        ([0, 1], [0], []),
        ([0, 2], [0], [1]),
        ([1, 1], [0], [1]),
        ([0, 2, 1], [0], [1]),
        ([0, 1], [1], [1]),
        ([0, 1], [-1], [1]),
        ([0, 1], [0], [0]),
        ([0, 1], [0], [-1]),
        ([0, 1], [0], [2**31]),
    ],
)
def test_links_that_are_none(starts: list[int], ends: list[int], costs: list[int]) -> None:
    with pytest.raises(ValueError, match="link"):
        Tree(starts, ends, costs)
