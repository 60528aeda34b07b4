"""The addresses a router listens on, the clients and rates it admits, and its heartbeats."""

from __future__ import annotations

import re
import socket
from datetime import datetime
from pathlib import Path

import pytest
import trio
import trio.testing

from tests.e2e.neighbours import Neighbours
from tests.e2e.peer import Peer
from tests.routers import StartRouter, process
from trouter._buckets import Bucket
from trouter.net.accepting import wait_for_token


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as sock:
            sock.bind(("::1", 0))
    except OSError:
        return False
    return True


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")


def works(port: int, host: str = "127.0.0.1") -> None:
    with Peer(port, host) as peer:
        peer.be_heard()


def test_an_ipv4_address(start_router: StartRouter) -> None:
    router = start_router("listener { host: 127.0.0.1, port: 0 }")
    router.wait_for_line(rf"Listening on 127\.0\.0\.1:{router.port}$")
    works(router.port)
    router.wait_for_line(rf"\[C1\] Accepted connection to 127\.0\.0\.1:{router.port} from 127\.0\.0\.1:\d+")


@needs_ipv6
def test_an_ipv6_address(start_router: StartRouter) -> None:
    router = start_router("listener { host: ::1, port: 0 }")
    router.wait_for_line(rf"Listening on \[::1\]:{router.port}$")
    works(router.port, "::1")


def test_a_host_name(start_router: StartRouter) -> None:
    router = start_router("listener { host: localhost, port: 0, socketAddressFamily: IPv4 }")
    works(router.port)


@needs_ipv6
def test_every_interface_in_both_families(start_router: StartRouter) -> None:
    router = start_router("listener { port: 0 }")
    families = {line.split("Listening on ")[1].rpartition(":")[0] for line in router.matching("Listening on")}
    assert families == {"0.0.0.0", "[::]"}
    for line in router.matching("Listening on"):
        host, _, port = line.split("Listening on ")[1].rpartition(":")
        works(int(port), "::1" if host == "[::]" else "127.0.0.1")


@needs_ipv6
@pytest.mark.parametrize(("family", "wildcard"), [("IPv4", "0.0.0.0"), ("IPv6", "[::]")])
def test_a_listener_listens_on_its_address_family_only(start_router: StartRouter, family: str, wildcard: str) -> None:
    router = start_router(f"listener {{ port: 0, socketAddressFamily: {family} }}")
    assert [line.split("Listening on ")[1] for line in router.matching("Listening on")] == [f"{wildcard}:{router.port}"]


def free_service() -> tuple[str, int]:
    """Return a service name whose port no process listens on."""
    for name in ("amqp", "postgresql", "mysql", "cvspserver", "sieve", "radius"):
        try:
            port = socket.getservbyname(name, "tcp")
            with socket.create_server(("127.0.0.1", port)):
                return name, port
        except OSError:
            continue
    pytest.skip("this machine has no service name with a free port")


def test_a_service_name(start_router: StartRouter) -> None:
    name, port = free_service()
    router = start_router(f"listener {{ host: 127.0.0.1, port: {name} }}")
    assert router.port == port
    works(port)


@pytest.mark.parametrize(
    ("listener", "named"),
    [
        ("host: no-such-host.invalid, port: 0", "no-such-host.invalid:0"),
        ("host: 127.0.0.1, port: no-such-service", "127.0.0.1:no-such-service"),
        ("host: 192.0.2.1, port: 0", "192.0.2.1:0"),
    ],
)
def test_a_place_where_no_socket_can_listen_ends_the_start(tmp_path: Path, listener: str, named: str) -> None:
    with process(f"listener {{ {listener} }}", tmp_path) as router:
        assert router.wait() == 1
        router.wait_for_line(rf"MAIN \(critical\) Router start-up failed: cannot listen on {re.escape(named)}: .+")
        router.assert_no_fault_of_ours()


def test_no_more_connections_than_allowed(start_router: StartRouter) -> None:
    router = start_router("listener { host: 127.0.0.1, port: 0, maxConnections: 2 }")
    with Peer(router.port) as first:
        with Peer(router.port) as second:
            with Peer(router.port, opened=False) as third:
                assert third.sock.recv(1) == b""
                router.wait_for_line(rf"connection from {third.address} refused: maxConnections 2")
            first.be_heard()
            second.be_heard()
            number = second.number
        router.wait_for_line(rf"\[C{number}\] Connection Closed")
        works(router.port)


def test_no_more_connections_a_second_than_allowed(start_router: StartRouter) -> None:
    rate, count = 3, 6
    router = start_router(
        f"listener {{ host: 127.0.0.1, port: 0, acceptRate: {rate} }}\nlistener {{ host: 127.0.0.1, port: 0 }}\n"
    )
    with Neighbours(router.ports[1]) as neighbours:
        began = datetime.now().astimezone()
        peers = [Peer(router.port, opened=False) for _ in range(count)]
        for peer in peers:
            peer.open()
            peer.sock.close()
            neighbours.go_on()
    accepted = router.matching(rf"Accepted connection to 127\.0\.0\.1:{router.port} ")
    times = [datetime.strptime(line[:32], "%Y-%m-%d %H:%M:%S.%f %z") for line in accepted]
    assert len(times) == count
    # The first second's connections at once, and the others no sooner than the rate permits.
    took_s = (times[-1] - began).total_seconds()
    assert took_s >= (count - rate) / rate


async def test_a_second_brings_as_many_turns_as_the_rate_and_waiting_costs_none(
    autojump_clock: trio.testing.MockClock,
) -> None:
    rate = Bucket(2, trio.current_time())
    for expected_s in (0.0, 0.0, 0.5, 1.0, 1.5):
        for _ in range(3):
            await wait_for_token(rate)
        rate.owe_tokens(1, trio.current_time())
        assert trio.current_time() == pytest.approx(expected_s)
    await trio.sleep(3600)
    for expected_s in (0.0, 0.0, 0.5):  # unused connections are not saved up
        await wait_for_token(rate)
        rate.owe_tokens(1, trio.current_time())
        assert trio.current_time() == pytest.approx(3601.5 + expected_s)
