"""Quotas of vhosts hold for all workers of a router together; their bounds are tested in memory, with a set clock."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.e2e.peer import Link, Peer
from tests.routers import RunningRouter, process, stopped_cleanly
from trouter.policy.book import SESSION_BYTES
from trouter.wire.performatives import Attach, Begin, Close, Detach, End, Flow, Source, Target

QUOTAS = {
    "links": "maxLinks: 5",
    "killed": "maxLinks: 5",
    "addresses": "perHost: {\n        maxAddresses: 3\n    }",
    "attaches": "maxAttachesPerSecond: 6",
    "opens": "maxConnectionsPerSecond: 6",
    "messages": "perUser: {\n        maxMessagesPerSecond: 40\n    }",
    "bytes": "maxBytesPerSecond: 20000",
    "sessions": f"maxBufferedBytes: {3 * SESSION_BYTES}",
}
CONFIGURATION = """router {{
    id: A
    workers: {workers}
    drainTimeoutSeconds: 5
}}
policy {{
    enableVhostPolicy: yes
}}
listener {{
    host: 127.0.0.1
    port: 0
    saslMechanisms: ANONYMOUS
}}
listener {{
    host: 127.0.0.1
    port: 0
    name: slow
    acceptRate: 1
    saslMechanisms: ANONYMOUS
}}
"""
VHOST = """vhost {{
    hostname: {name}
    {quota}
    allowUnknownUser: true
    groups: {{
        $default: {{
            remoteHosts: *
            sources: *
            targets: *
        }}
    }}
}}
"""


@pytest.fixture(scope="module", params=[2, 4])
def workers(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(scope="module")
def router(workers: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    vhosts = "".join(VHOST.format(name=name, quota=quota) for name, quota in QUOTAS.items())
    with process(CONFIGURATION.format(workers=workers) + vhosts, tmp_path_factory.mktemp("quotas")) as running:
        running.wait_for_line(rf"MAIN \(notice\) {workers} workers serve")
        running.wait_for_line(r"router \S+ is a neighbour", workers * (workers - 1))
        with stopped_cleanly(running):
            yield running


def one_at_each(stack: ExitStack, router: RunningRouter, workers: int, hostname: str) -> list[Peer]:
    """Return a connection at each worker, the first worker's first."""
    peers: dict[str, Peer] = {}
    while len(peers) < workers:  # they go to the workers in turn
        peer = stack.enter_context(Peer(router.port, sasl=True, hostname=hostname))
        assert peer.remote_open is not None
        peers.setdefault(peer.remote_open.container_id, peer)
    return [peers[name] for name in sorted(peers)]


def may_attach(peer: Peer, address: str) -> bool:
    """Attach a receiver; return whether the router lets it be."""
    handle = peer._free_handle()
    answer = peer.attach(Attach(f"link-{handle}", handle, True, source=Source(address), target=Target()))
    if answer.source is not None:
        return True
    peer.expect(Detach)
    return False


def test_links_count_at_all_workers(router: RunningRouter, workers: int) -> None:
    with ExitStack() as stack:
        peers = one_at_each(stack, router, workers, "links")
        assert sum(may_attach(peer, "a") for peer in peers * 5) == 5
        peers[0].say(Detach(0, True))
        peers[0].expect(Detach)
        assert [may_attach(peers[-1], "a"), may_attach(peers[0], "a")] == [True, False]


def test_addresses_count_once_at_all_workers(router: RunningRouter, workers: int) -> None:
    with ExitStack() as stack:
        peers = one_at_each(stack, router, workers, "addresses")
        assert all(may_attach(peer, "common") for peer in peers)
        assert sum(may_attach(peer, f"own-{number}") for number, peer in enumerate(peers * 2)) == 2
        assert all(may_attach(peer, "common") for peer in peers)


def test_links_that_come_too_fast_at_several_workers_are_refused(router: RunningRouter, workers: int) -> None:
    with ExitStack() as stack:
        peers = one_at_each(stack, router, workers, "attaches")
        begun_s = time.monotonic()
        attached = sum(may_attach(peer, "a") for peer in peers * 6)
        assert 6 <= attached <= 6 + 6 * (time.monotonic() - begun_s)


def test_connections_that_come_too_fast_at_several_workers_are_refused(router: RunningRouter, workers: int) -> None:
    opened = 0
    begun_s = time.monotonic()
    for _ in range(6 * workers):
        with Peer(router.port, sasl=True, opened=False) as peer:
            peer.open(hostname="opens")
            peer.say(Close())
            opened += peer.expect(Close).error is None
    assert 6 <= opened <= 6 + 6 * (time.monotonic() - begun_s)


def test_a_listener_accepts_at_its_rate_at_all_workers(router: RunningRouter) -> None:
    begun_s = time.monotonic()
    for _ in range(3):
        Peer(router.ports[1], sasl=True, hostname="links").sock.close()
    assert time.monotonic() - begun_s > 1.9


def test_credit_is_granted_once_at_all_workers(router: RunningRouter, workers: int) -> None:
    with ExitStack() as stack:
        peers = one_at_each(stack, router, workers, "messages")
        for peer in peers:
            peer.attach_receiver("a")
            peer.be_heard()
        begun_s = time.monotonic()
        links: list[tuple[Peer, Link]] = []
        for peer in peers:
            links.append((peer, peer.attach_sender("a", credit=False)))
            peer.be_heard()
        granted = sum(link.credit for _, link in links)
        assert 40 <= granted <= 40 + 40 * (time.monotonic() - begun_s)
        for peer, link in links:  # none is forgotten
            while link.credit == 0:
                peer.take_flow(peer.expect(Flow))


def test_bytes_that_one_worker_receives_hold_the_senders_of_another_one_up(router: RunningRouter, workers: int) -> None:
    with ExitStack() as stack:
        peers = one_at_each(stack, router, workers, "bytes")
        one, other = peers[0], peers[-1]
        receiving = stack.enter_context(Peer(router.port, sasl=True, hostname="bytes"))
        receiving.attach_receiver("a", credit=10)
        receiving.be_heard()
        link = one.attach_sender("a")
        begun_s = time.monotonic()
        one.send_message(link, bytes(40_000), settled=True)
        one.attach_sender("a", credit=False)  # so they are counted
        one.be_heard()
        other.attach_sender("a")
        assert time.monotonic() - begun_s > 0.9  # half of the bytes were one second's, and of the debt all is paid


def test_sessions_count_at_all_workers(router: RunningRouter, workers: int) -> None:
    """Three sessions fit into the quota beside the first of each connection."""

    def may_begin(peer: Peer, channel: int) -> bool:
        peer.say(Begin(next_outgoing_id=0, incoming_window=100, outgoing_window=100), channel=channel)
        peer.expect(Begin)
        peer.flow(echo=True)
        said = peer.next()
        if not isinstance(said, End):
            return True
        peer.say(End(), channel=channel)
        peer.expect(Flow)
        return False

    with ExitStack() as stack:
        peers = one_at_each(stack, router, workers, "sessions")
        assert sum(may_begin(peer, channel) for channel in (1, 2, 3) for peer in peers) == 3
        peers[0].say(End(), channel=1)
        peers[0].expect(End)
        assert [may_begin(peers[-1], 4), may_begin(peers[0], 4)] == [True, False]


def test_the_links_of_a_worker_that_is_killed_are_free_again(router: RunningRouter, workers: int) -> None:
    with ExitStack() as stack:
        peers = one_at_each(stack, router, workers, "killed")
        assert all(may_attach(peers[0], "a") for _ in range(2))
        assert sum(may_attach(peers[1], "a") for _ in range(4)) == 3
        assert not may_attach(peers[0], "a")
        line = router.matching(r"\[W2\] Operational")[-1]
        os.kill(int(line.rpartition("process ID ")[2].rstrip(")")), signal.SIGKILL)
        router.wait_for_line(r"\[W2\] Operational", 2)
        assert sum(may_attach(peers[0], "a") for _ in range(4)) == 3
