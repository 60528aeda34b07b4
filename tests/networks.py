"""Networks of router processes: each has a port for clients and one for other routers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import trio

from tests.management.node import Node, node_of
from tests.routers import WORKERS, RunningRouter, running
from tests.waiting import until

OPEN = "host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS"
#: For clients, which may be silent: one of Proton that blocks sends nothing while its test does something else.
FOR_CLIENTS = f"{OPEN}, idleTimeoutSeconds: 0"


def interior(
    name: str, dials: Mapping[str, int], more: str = "", costs: Mapping[str, int] | None = None, router: str = ""
) -> str:
    """Return the configuration of an interior router that dials others, given by name and port.

    ``more`` is appended; ``costs`` has the connections with a cost other than 1; ``router`` has attributes of that
    section.
    """
    lines = [
        f"router {{ mode: interior, id: {name}{', ' if router else ''}{router} }}",
        f"listener {{ {FOR_CLIENTS} }}",
        f"listener {{ {OPEN}, role: inter-router, allowInsecureRole: yes }}",
    ]
    for other, port in dials.items():
        cost = (costs or {}).get(other, 1)
        lines.append(
            f"connector {{ name: to{other}, host: 127.0.0.1, port: {port}, role: inter-router, "
            f"saslMechanisms: ANONYMOUS, cost: {cost} }}"
        )
    return "\n".join([*lines, more, ""])


#: A listener for edge routers; its port comes after the other two.
EDGE_LISTENER = f"listener {{ {OPEN}, role: edge, allowInsecureRole: yes }}"


def edge(name: str, ports: Sequence[int], more: str = "") -> str:
    """Return the configuration of an edge router that dials interior routers at these ports."""
    lines = [f"router {{ mode: edge, id: {name} }}", f"listener {{ {FOR_CLIENTS} }}"]
    for number, port in enumerate(ports):
        lines.append(
            f"connector {{ name: up{number}, host: 127.0.0.1, port: {port}, role: edge, saslMechanisms: ANONYMOUS }}"
        )
    return "\n".join([*lines, more, ""])


def edge_port(router: RunningRouter) -> int:
    """Return the port for edge routers."""
    return router.ports[2]


def client_port(router: RunningRouter) -> int:
    """Return the port for clients."""
    return router.ports[0]


def router_port(router: RunningRouter) -> int:
    """Return the port for other routers."""
    return router.ports[1]


def wait_for_reach(routers: Mapping[str, RunningRouter]) -> None:
    """Wait until each router reaches all others; by the log, since a policy may refuse management to the tests."""
    for router in routers.values():
        others = len(routers) * WORKERS - 1  # each worker is a router of the network
        router.wait_for_line(rf"paths through the network .* {others} routers can be reached")


def wait_for_links(routers: Mapping[str, RunningRouter], dials: Mapping[str, Sequence[str]]) -> None:
    """Wait until each router knows the links of all others: until then the paths may still change."""
    links: dict[str, set[str]] = {name: set(others) for name, others in dials.items()}
    for name, others in dials.items():
        for other in others:
            links[other].add(name)
    wanted = {name: sorted(neighbours) for name, neighbours in links.items()}

    def known(node: Node) -> bool:
        found = {row["id"]: row["linkState"] for row in node.query("router.node")}
        # the workers of the other routers are not of the wanted ones
        return {each: [other for other in found.get(each, ()) if other in wanted] for each in wanted} == wanted

    for router in routers.values():
        with node_of(client_port(router)) as node:
            until(partial(known, node), f"links {wanted}")


def wait_for_row(router: RunningRouter, kind: str, right: Callable[[dict[str, Any]], bool], there: bool = True) -> None:
    """Wait until management shows a row of ``kind`` that is ``right``, or (not ``there``) shows none any more."""
    with node_of(client_port(router)) as node:
        until(lambda: any(map(right, node.query(kind))) == there, f"a {kind}")


def until_routed(router: RunningRouter, key: str) -> None:
    """Wait until a router has a container for links with this key, of its own or at another router."""
    wait_for_row(
        router, "router.address", lambda row: row["key"] == key and bool(row["containerCount"] or row["remoteCount"])
    )


async def until_known(router: RunningRouter, key: str, count: int) -> None:
    """Wait until ``count`` other routers listen on an address (0: none does); other tasks run meanwhile."""

    def right(row: dict[str, Any]) -> bool:
        known: int = row["remoteCount"]
        return row["key"] == key and (known == count if count else known > 0)

    await trio.to_thread.run_sync(partial(wait_for_row, router, "router.address", right, count > 0))


async def until_led(router: RunningRouter, other: str, hop: str | None) -> None:
    """Wait until the path to ``other`` leads over ``hop``, None for a neighbour."""

    def right(row: dict[str, Any]) -> bool:
        return bool(row["id"] == other and row["nextHop"] == hop)

    await trio.to_thread.run_sync(partial(wait_for_row, router, "router.node", right))


async def until_linked(router: RunningRouter, other: str, neighbours: Sequence[str]) -> None:
    """Wait until a router knows that ``other`` has these neighbours."""

    def right(row: dict[str, Any]) -> bool:
        return bool(row["id"] == other and row["linkState"] == list(neighbours))

    await trio.to_thread.run_sync(partial(wait_for_row, router, "router.node", right))


@contextmanager
def network(
    folder: Path,
    dials: Mapping[str, Sequence[str]],
    more: Mapping[str, str] | None = None,
    costs: Mapping[tuple[str, str], int] | None = None,
    router: str = "",
) -> Iterator[dict[str, RunningRouter]]:
    """Run interior routers, each of which dials some of those before it; all reach each other when the block begins.

    ``more`` has further configuration by router; ``costs`` those of connections by dialler and dialled router, 1 if not
    given; ``router`` has attributes for the section `router` of all.
    """
    routers: dict[str, RunningRouter] = {}
    with ExitStack() as stack:
        for name, others in dials.items():
            ports = {other: router_port(routers[other]) for other in others}
            mine = {other: cost for (dialler, other), cost in (costs or {}).items() if dialler == name}
            text = interior(name, ports, (more or {}).get(name, ""), mine, router)
            routers[name] = stack.enter_context(running(text, folder))
        wait_for_reach(routers)
        yield routers


@contextmanager
def network_with_edge(folder: Path) -> Iterator[dict[str, RunningRouter]]:
    """Run two interior routers, A and B, and an edge router E at B."""
    with ExitStack() as stack:
        inner = stack.enter_context(network(folder, {"A": [], "B": ["A"]}, {"B": EDGE_LISTENER}))
        below = stack.enter_context(running(edge("E", [edge_port(inner["B"])]), folder))
        wait_for_row(inner["B"], "connection", lambda row: row["role"] == "edge" and row["container"] == "E")
        wait_for_row(below, "connection", lambda row: row["role"] == "edge" and row["container"] == "B")
        yield {**inner, "E": below}
