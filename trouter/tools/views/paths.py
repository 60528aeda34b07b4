"""The way of messages from one router to another, hop by hop, as each router on it says."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

from trouter._text import escape_controls
from trouter.tools.failures import NoPath
from trouter.tools.node import NodeClient
from trouter.tools.words import PREFIX

from .model import Listing, Row, Rows, View, attribute

#: Why one of several ways is taken, as all routers do (the rule of the protocol).
RULE = (
    "Ways that cost the same: every router takes the one through the router that it reaches first;",
    "nearer ones come before farther ones, and of those at the same cost the lower id comes first.",
)
HOP_FIELDS = (
    attribute("hop", "hop"),
    attribute("from", "from"),
    attribute("to", "to"),
    attribute("cost", "cost"),
    attribute("so far", "sofar"),
    attribute("as good", "others", lambda value: ", ".join(map(str, value)) if isinstance(value, list) else ""),
)


def paths(start: str, end: str) -> View:
    """Return the view that shows the way from ``start`` to ``end``."""

    async def gather(node: NodeClient) -> list[Rows]:
        return [await _walk(node, start, end)]

    def listings(answers: Sequence[Rows]) -> list[Listing]:
        hops = answers[0]
        cost = sum(step for hop in hops if isinstance(step := hop.get("cost"), int))
        title = f"Path from {escape_controls(start)} to {escape_controls(end)}: cost {cost}"
        shown = [Listing(title, HOP_FIELDS, hops, empty=f"{title}, it is the same router", key="hop", table="hop")]
        if any(hop.get("others") for hop in hops):
            shown.append(Listing("\nRule", (), [{"rule": line} for line in RULE], line=lambda row: str(row["rule"])))
        return shown

    return View("paths", ("--paths",), "show the way from router A to router B", (), listings, gather=gather)


async def _walk(node: NodeClient, start: str, end: str) -> Rows:
    """Return a row for each hop, as each router on the way names the next one; NoPath if there is none."""
    reachable = await node.routers()
    if not reachable:
        raise NoPath(f"{node.router_id} is in no network: its mode is not interior")
    _check_known(start, reachable, node.router_id)
    hops: list[Row] = []
    at, sofar = start, 0
    while at != end:
        async with node.of_router(at) as other:
            routers = await _routers(other)
        wanted = routers.get(end)
        if wanted is None:
            _check_known(end, [*routers], at)
        cost = None if wanted is None else wanted.get("cost")
        if wanted is None or not isinstance(cost, int):
            raise NoPath(_out_of_reach(at, end, routers))
        hop = str(wanted.get("nextHop") or end)
        if hop == at or any(each["from"] == hop for each in hops):
            raise NoPath(f"{at} sends messages for {end} back to {hop}: the network is changing; try again in a moment")
        step = _costs(routers, at).get(hop) or cost
        sofar += step
        others = [each for each in _as_good(routers, at, end, cost) if each != hop]
        hops.append({"hop": len(hops) + 1, "from": at, "to": hop, "cost": step, "sofar": sofar, "others": others})
        at = hop
    return hops


async def _routers(node: NodeClient) -> dict[str, Row]:
    """Return the routers that a router knows, by id."""
    table = await node.query(f"{PREFIX}router.node")
    return {str(row.get("id")): row for row in table.dicts()}


def _check_known(wanted: str, known: Sequence[str], router: str) -> None:
    if wanted not in known:
        names = ", ".join(sorted(known))
        raise NoPath(
            f"{router} knows no router {wanted}, only {names}: is it started with this id, and does a connector of "
            "role inter-router lead to it or from it?"
        )


def _out_of_reach(at: str, end: str, routers: Mapping[str, Row]) -> str:
    neighbours = ", ".join(_costs(routers, at)) or "none"
    return (
        f"{at} knows {end}, but has no way to it; its neighbours are: {neighbours}. "
        f"`trouter manage query --type connector -r {at}` says which connections fail, and why; "
        f"`trouter stat --topology -r {at}` when {end} was lost"
    )


def _costs(routers: Mapping[str, Row], router: str) -> dict[str, int]:
    """Return the cost of each neighbour of a router; none if the answering router does not report costs."""
    costs = routers.get(router, {}).get("linkCosts")
    found = costs if isinstance(costs, Mapping) else {}
    return {str(neighbour): cost for neighbour, cost in found.items() if isinstance(cost, int)}


def _as_good(routers: Mapping[str, Row], at: str, end: str, cost: int) -> list[str]:
    """Return the neighbours of ``at`` through which the way to ``end`` costs no more than ``cost``."""
    rest = _distances_to(routers, end)
    return sorted(each for each, step in _costs(routers, at).items() if step + rest.get(each, cost) <= cost)


def _distances_to(routers: Mapping[str, Row], end: str) -> dict[str, int]:
    """Return for each router the cost of the cheapest way to ``end``."""
    back: dict[str, list[tuple[str, int]]] = {}
    for router in routers:
        for neighbour, cost in _costs(routers, router).items():
            back.setdefault(neighbour, []).append((router, cost))
    found: dict[str, int] = {}
    heap = [(0, end)]
    while heap:
        cost, router = heapq.heappop(heap)
        if router not in found:
            found[router] = cost
            for before, step in back.get(router, ()):
                heapq.heappush(heap, (cost + step, before))
    return found
