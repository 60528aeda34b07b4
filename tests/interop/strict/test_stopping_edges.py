"""Edge routers of ours beside interior routers of Qpid Dispatch, of which one stops."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

import pytest

from tests.e2e.peer import Peer
from tests.interop.strict.conftest import listening
from tests.interop.strict.end import End
from tests.interop.strict.routers import Above
from tests.networks import OPEN
from tests.routers import RunningRouter, running
from trouter.wire.performatives import Accepted

pytestmark = pytest.mark.slow

#: The address to which a client of the edge router sends, and that from which one receives.
UP, DOWN, ROUTED = "to.elsewhere", "from.elsewhere", "lr"
FORCED = "amqp:connection:forced"


@dataclass
class Line:
    """An edge router of ours, its client, and the interior router above."""

    server: socket.socket
    router: RunningRouter
    above: Above
    client: Peer

    def meet(self, peers: list[End]) -> Above:
        """Take the next connection of the edge router as an interior router that has a receiver of UP."""
        above = Above(self.server.accept()[0], "A", dials=False)
        peers.append(above)
        above.listen([UP])
        above.wait_up()
        return above


@pytest.fixture
def line(tmp_path: Path, peers: list[End]) -> Iterator[Line]:
    with ExitStack() as stack:
        server = stack.enter_context(listening())
        configuration = f"""
        router {{ mode: edge, id: E, drainTimeoutSeconds: 3600 }}
        listener {{ {OPEN}, idleTimeoutSeconds: 0 }}
        listener {{ {OPEN}, role: route-container }}
        connector {{ name: up, host: 127.0.0.1, port: {server.getsockname()[1]}, role: edge }}
        linkRoute {{ prefix: {ROUTED}, direction: in, containerId: broker }}
        """
        router = stack.enter_context(running(configuration, tmp_path))
        above = Above(server.accept()[0], "A", dials=False)
        peers.append(above)
        above.listen([UP])
        above.wait_up()
        router.wait_for_line("Edge connection .* to interior established")
        broker = stack.enter_context(Peer(router.ports[1], container_id="broker"))
        broker.be_heard()
        above.wait(lambda: above.requests, "the link route")
        client = stack.enter_context(Peer(router.port))
        client.attach_receiver(DOWN, credit=10)
        above.at(DOWN, sends=True)
        send(client)
        yield Line(server, router, above, client)
        for peer in peers:
            peer.leave()


def send(client: Peer) -> None:
    """Send a message to UP and see it accepted."""
    assert client.expect_outcome(client.send_message(client.attach_sender(UP), b"up")) == Accepted()


def test_an_edge_router_that_stops_withdraws_nothing(line: Line) -> None:
    above, mark, requests = line.above, len(line.above.heard), len(line.above.requests)
    line.router.process.send_signal(signal.SIGTERM)
    assert line.router.wait() == 0
    above.wait(lambda: above.closed, "the close")
    kinds = {frame.kind for frame, link in above.heard[mark:] if link is None or link.kind != "heartbeat"}
    assert kinds <= {"flow", "close"}
    assert above.closed == (FORCED, "the router is shutting down")
    assert len(above.requests) == requests


STEPS: dict[str, Callable[[Above], object]] = {
    "no receiver": lambda above: above.end_listening(UP),
    "detached sender": lambda above: above.detach(above.at(UP, sends=False)),
    "detached receiver": lambda above: above.detach(above.at(DOWN, sends=True)),
}
ENDS: dict[str, Callable[[Above], object]] = {
    "closed": lambda above: above.close(FORCED, "the router is shutting down"),
    "killed": lambda above: above.leave(),
}
#: All orders of all steps, and the ends after one step or none.
WAYS = [(*steps, "killed") for steps in permutations(STEPS)]
WAYS += [(*steps, end) for count in range(2) for steps in permutations(STEPS, count) for end in ENDS]


def test_an_edge_router_recovers_from_every_end_of_the_router_above(line: Line, peers: list[End]) -> None:
    for way in WAYS:
        above = line.above
        for step in way:
            (STEPS | ENDS)[step](above)
        line.above = line.meet(peers)
        line.above.at(DOWN, sends=True)
        send(line.client)
        above.leave()
