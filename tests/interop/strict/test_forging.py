"""A neighbour that tells lies of another router, over a real connection: they change nothing, and it is named."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.interop.strict.conftest import dial
from tests.interop.strict.end import End
from tests.interop.strict.routers import Interior
from tests.interop.strict.writing import text
from tests.management.node import node_of
from tests.networks import OPEN, wait_for_row
from tests.routers import RunningRouter, running
from trouter.mesh.messages import (
    ALL_ADDRESSES_TO,
    MAX_SEQUENCE,
    LinkStateUpdate,
    Message,
    MobileAddressUpdate,
    compose,
    mobile_address,
    router_address,
)

pytestmark = pytest.mark.slow

VICTIM, FORGER, ADDRESS = "V", "F", "of.the.victim"
LIES: dict[str, tuple[Message, str]] = {
    "all addresses": (MobileAddressUpdate(VICTIM, MAX_SEQUENCE, exist=()), mobile_address("R")),
    "a change": (MobileAddressUpdate(VICTIM, 2, deleted=(f"M0{ADDRESS}",)), ALL_ADDRESSES_TO),
    "links": (LinkStateUpdate(VICTIM, 0, MAX_SEQUENCE, {}), router_address("R")),
}


@pytest.fixture
def between(tmp_path: Path, peers: list[End]) -> Iterator[tuple[RunningRouter, Interior, Interior]]:
    """Run a router between the victim, which listens on an address, and the forger."""
    routes = f"router {{ mode: interior, id: R }}\nlistener {{ {OPEN} }}\nlistener {{ {OPEN}, role: inter-router }}\n"
    with ExitStack() as stack:
        router = stack.enter_context(running(routes, tmp_path))
        victim, forger = (
            stack.enter_context(Interior(dial(router.ports[1]), name, dials=True)) for name in (VICTIM, FORGER)
        )
        peers += [victim, forger]
        victim.listen(ADDRESS)
        for peer in (victim, forger):
            peer.wait_met("R")
        wait_for_row(router, "router.address", lambda row: row["key"] == f"M0{ADDRESS}" and row["remoteCount"] == 1)
        yield router, victim, forger


def test_messages_still_reach_a_router_of_which_a_neighbour_lies(
    between: tuple[RunningRouter, Interior, Interior],
) -> None:
    router, victim, forger = between
    control = forger.control(sends=True)
    assert control is not None
    for count, lie in enumerate(LIES, 1):
        for _ in range(3):
            forger.send(control, compose(*LIES[lie]), settled=True)
        forger.post(ADDRESS, text(lie))
        victim.got(ADDRESS, count)
    # The router waits whether the victim says the same; then it reports the first lie about it.
    router.wait_for_line(
        rf"ROUTER_LS \(warning\) \[C\d+\] a message of router {FORGER} was ignored: "
        rf"the connection does not lead to the router of which it tells \({VICTIM}\)"
    )
    with node_of(router.ports[0]) as node:
        (row,) = [row for row in node.query("router.address") if row["key"] == f"M0{ADDRESS}"]
        faults = node.query("router")[0]["meshFaults"]
    assert faults["off-path"] >= 1
    assert row["remoteCount"] == 1
    forger.post(ADDRESS, text("still there"))
    victim.got(ADDRESS, len(LIES) + 1)
