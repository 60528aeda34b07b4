"""Check the paths and addresses that each router of a network knows against those that networkx computes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import networkx as nx

from trouter.mesh.mesh import Mesh


class Known(Protocol):
    """A network with its routers and its live links."""

    @property
    def routers(self) -> Mapping[str, Mesh]: ...

    def live_links(self) -> dict[tuple[str, str], int]: ...


def oracle(network: Known) -> nx.DiGraph[str]:
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(network.routers)
    for (one, other), cost in network.live_links().items():
        graph.add_edge(one, other, weight=cost)
    return graph


def ways(graph: nx.DiGraph[str], root: str) -> dict[str, list[str]]:
    """Return, for each router that can be reached from ``root``, the stops between the two.

    Of several paths of the same cost, the rule takes the one whose last stop comes first in the order by cost and then
    by id.
    """
    costs: dict[str, float] = nx.single_source_dijkstra_path_length(graph, root)
    order = sorted(costs, key=lambda router: (costs[router], router))
    found: dict[str, list[str]] = {}
    for router in order[1:]:
        last = next(
            other
            for other in order
            if graph.has_edge(other, router) and costs[other] + graph.edges[other, router]["weight"] == costs[router]
        )
        found[router] = [] if last == root else [*found[last], last]
    return found


def next_hops(graph: nx.DiGraph[str], me: str) -> dict[str, str]:
    return {router: [*stops, router][0] for router, stops in ways(graph, me).items()}


def check(network: Known, listening: dict[str, set[str]]) -> None:
    graph = oracle(network)
    for router, known in network.routers.items():
        costs: dict[str, float] = nx.single_source_dijkstra_path_length(graph, router)
        assert known.paths.cost == {other: cost for other, cost in costs.items() if other != router}
        assert known.paths.next_hop == next_hops(graph, router)
        for other in costs:
            if other != router:
                assert set(known.addresses_of(other)) == listening[other], f"{router} of {other}"
    for origin in network.routers:
        from_origin = ways(graph, origin)
        for router, known in network.routers.items():
            expected = {end for end, stops in from_origin.items() if router == origin or router in stops}
            assert known.paths.routers_beyond(origin) == expected
