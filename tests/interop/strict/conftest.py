"""trouter between four Qpid Dispatch routers: neighbours on both sides, and an edge router below."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from tests.interop.strict.end import End
from tests.interop.strict.routers import Below, Interior
from tests.networks import OPEN
from tests.routers import DEADLINE_S, RunningRouter, running, start_router

__all__ = ["start_router"]

#: Addresses that each such neighbour accepts (its name is appended) or holds, and the prefix routed to a container
#: there.
TAKEN, HELD, ROUTED = "taken", "held", "lr"
LONG = "long." + "n" * 4_000


@dataclass
class Net:
    """``east`` dials trouter, trouter dials ``west``, and ``below`` is an edge router of trouter's."""

    router: RunningRouter
    east: Interior
    west: Interior
    below: Below


def listening() -> socket.socket:
    """Return a listening socket of a Qpid Dispatch router."""
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(DEADLINE_S)
    return server


def dial(port: int) -> socket.socket:
    """Return a socket connected to trouter."""
    return socket.create_connection(("127.0.0.1", port), DEADLINE_S)


@pytest.fixture(scope="package")
def net(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Net]:
    with ExitStack() as stack:
        server = stack.enter_context(listening())
        text = f"""
        router {{ mode: interior, id: R }}
        listener {{ {OPEN} }}
        listener {{ {OPEN}, role: inter-router }}
        listener {{ {OPEN}, role: edge }}
        listener {{ {OPEN}, stripAnnotations: no }}
        connector {{ name: west, host: 127.0.0.1, port: {server.getsockname()[1]}, role: inter-router, cost: 4 }}
        """
        router = stack.enter_context(running(text, tmp_path_factory.mktemp("strict")))
        west = stack.enter_context(Interior(server.accept()[0], "W", dials=False))
        east = stack.enter_context(Interior(dial(router.ports[1]), "E", dials=True, cost=3))
        below = stack.enter_context(Below(dial(router.ports[2]), "B", dials=True))
        for peer in (east, west):
            peer.listen(f"{TAKEN}.{peer.name}")
            peer.listen(f"{HELD}.{peer.name}", code=0)
            peer.route(f"{ROUTED}.{peer.name}")
        east.listen(LONG)
        for peer in (east, west):
            peer.wait_met("R")
        below.wait_up()
        yield Net(router, east, west, below)


@pytest.fixture(autouse=True)
def peers() -> Iterator[list[End]]:
    """Collect the Qpid Dispatch routers of a test, and check at the end that they found no fault in trouter."""
    added: list[End] = []
    yield added
    faults = [fault for each in added for fault in each.faults]
    for each in added:
        each.faults.clear()
    assert faults == []


@pytest.fixture
def between(net: Net, peers: list[End]) -> Net:
    """Return the net without the messages of earlier tests; check at the end that it has found no fault."""
    for each in (net.east, net.west, net.below):
        peers.append(each)
        each.came.clear()
    return net
