"""A router process that runs out of connections, descriptors or log: new clients are refused, and others go on."""

from __future__ import annotations

import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path

import pytest

from tests.e2e.peer import Peer
from tests.http.test_live import get, http_port
from tests.http.test_slow_readers import WEBSOCKET
from tests.routers import DEADLINE_S, RunningRouter, StartRouter
from trouter.net.descriptors import RESERVE, client_limit
from trouter.wire.performatives import Detach

#: An address of this machine other than the tests'.
HOSTILE = "127.0.0.2"
MANY = 100


def knocking(port: int) -> socket.socket:
    """Connect from the hostile address, and send nothing."""
    return socket.create_connection(("127.0.0.1", port), DEADLINE_S, source_address=(HOSTILE, 0))


def knock(port: int) -> bytes:
    """Return the bytes that such a connection receives."""
    with knocking(port) as sock:
        return sock.recv(1)


def test_a_host_that_is_turned_away_takes_no_turn_of_others(start_router: StartRouter) -> None:
    """One connection a second is admitted; a hundred refused ones meanwhile would take longer than a test may."""
    router = start_router(
        "router { id: R, maxHandshakesPerHost: 1, acceptRatePerHost: 0, handshakeExempt: 127.0.0.1/32 }\n"
        "listener { host: 127.0.0.1, port: 0, acceptRate: 1, saslMechanisms: ANONYMOUS }\n"
    )
    with ExitStack() as stack:
        hostile = [stack.enter_context(knocking(router.port)) for _ in range(MANY)]
        with Peer(router.port) as peer:
            peer.be_heard()
        assert {sock.recv(1) for sock in hostile[1:]} == {b""}


def test_a_flood_of_refusals_is_few_lines_in_the_log(start_router: StartRouter) -> None:
    router = start_router("listener { host: 127.0.0.1, port: 0, maxConnections: 1 }\npolicy { maxConnections: 2 }\n"
                          "listener { host: 127.0.0.1, port: 0 }\n")  # fmt: skip
    with Peer(router.ports[0]) as peer, Peer(router.ports[1]):
        assert {knock(port) for port in router.ports for _ in range(MANY)} == {b""}
        assert len(router.matching("refused: maxConnections 1")) < MANY
        assert len(router.matching("DENY accept max-connections")) < MANY
        peer.be_heard()


@contextmanager
def descriptors(router: RunningRouter, more: int) -> Iterator[None]:
    """Let the router's clients open only so many descriptors more during the block."""
    before = resource.prlimit(router.process.pid, resource.RLIMIT_NOFILE)
    wanted = router.open_files() + more
    limit = next(limit for limit in count(wanted) if client_limit(limit, of_few=False) == wanted)
    resource.prlimit(router.process.pid, resource.RLIMIT_NOFILE, (limit, before[1]))
    try:
        yield
    finally:
        resource.prlimit(router.process.pid, resource.RLIMIT_NOFILE, before)


def test_without_a_descriptor_left_the_next_client_waits_until_there_is_one(router: RunningRouter) -> None:
    with Peer(router.port) as before, descriptors(router, 2), ExitStack() as stack:
        first, _ = (stack.enter_context(Peer(router.port)) for _ in range(2))
        third = stack.enter_context(Peer(router.port, opened=False))
        router.wait_for_line(r"SERVER \(error\) cannot accept connections on .*: Too many open files; clients wait")
        before.be_heard()
        first.sock.close()
        third.open()
        router.wait_for_line(r"SERVER \(info\) accepting again on")
    assert len(router.matching("clients wait")) == 1


@pytest.mark.attack
def test_strangers_at_the_port_of_probes_leave_descriptors_for_probes(start_router: StartRouter) -> None:
    router = start_router("listener { name: web, host: 127.0.0.1, port: 0, http: yes }\n")
    port = http_port(router)
    with ExitStack() as stack, descriptors(router, 8):
        for answer in (b"HTTP/1.1 101", b"HTTP/1.1 101", b"HTTP/1.1 503"):
            sock = stack.enter_context(knocking(port))
            sock.sendall(WEBSOCKET)
            assert sock.recv(12) == answer
        for _ in range(2 * RESERVE):
            stack.enter_context(knocking(port))
        for path in ("/livez", "/readyz", "/healthz"):
            assert get(port, path)[0] == 200
    router.wait_for_line("refused: few descriptors are left")


@pytest.mark.attack
def test_clients_leave_descriptors_for_probes_and_operators_and_for_files(
    start_router: StartRouter, tmp_path: Path
) -> None:
    router = start_router(
        "listener { host: 127.0.0.1, port: 0, idleTimeoutSeconds: 0 }\n"
        "listener { name: web, host: 127.0.0.1, port: 0, http: yes }\n"
        f"recordLog {{ dir: {tmp_path}/records, segmentBytes: 65536 }}\n"
    )
    with ExitStack() as stack, descriptors(router, 2):
        peers = [stack.enter_context(Peer(router.ports[0])) for _ in range(2)]
        stack.enter_context(Peer(router.ports[0], opened=False))
        router.wait_for_line("clients wait")
        assert get(http_port(router), "/readyz") == (200, "OK")
        for _ in range(200):  # more records than fit into the first segment
            link = peers[0].attach_receiver("a" * 200)
            peers[0].say(Detach(link.handle, True))
            peers[0].expect_detach()
        peers[0].be_heard()
        while len(list((tmp_path / "records").glob("*.jsonl*"))) < 2:
            assert get(http_port(router), "/readyz") == (200, "OK")
    assert not router.matching("cannot write records")
