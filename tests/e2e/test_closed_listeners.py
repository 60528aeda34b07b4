"""Listeners whose addresses cannot be bound: the rest serves, they are tried again, and an exit says why."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.peer import Peer
from tests.http.test_live import get, http_port
from tests.management.node import node_of
from tests.routers import StartRouter, process

pytestmark = pytest.mark.slow

FIRST = "listener { name: front, host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }\n"
WEB = "listener { name: web, host: 127.0.0.1, port: 0, http: yes, websockets: no }\n"
IN_USE = "Address already in use"


@pytest.fixture
def taken() -> Iterator[socket.socket]:
    """Return a socket of another program, which listens."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        yield sock


#: Hosts of listeners whose address is that of another program.
HOSTS = ("127.0.0.1", "0.0.0.0", "localhost")


def port_of(sock: socket.socket) -> int:
    return int(sock.getsockname()[1])


def works(port: int) -> None:
    with Peer(port) as peer:
        peer.be_heard()


def test_the_rest_serves_and_listeners_open_once_their_addresses_are_free(start_router: StartRouter) -> None:
    with ExitStack() as others:
        taken = {host: others.enter_context(socket.create_server(("127.0.0.1", 0))) for host in HOSTS}
        ports = {host: port_of(sock) for host, sock in taken.items()}
        closed = "".join(
            f"listener {{ name: {host}, host: {host}, port: {port}, saslMechanisms: ANONYMOUS }}\n"
            for host, port in ports.items()
        )
        router = start_router(f"{FIRST}{closed}{WEB}")
        reasons = {f"cannot listen on {host}:{port}: {IN_USE}" for host, port in ports.items()}
        for why in reasons:
            router.wait_for_line(rf"SERVER \(error\) Listener error: {why}; it is tried again")
        works(router.port)
        assert get(http_port(router), "/readyz") == (200, "OK")
        with node_of(router.port) as node:
            findings = [row["message"] for row in node.query("finding") if row["point"] == "closed-listener"]
            assert sorted(findings) == sorted(f"is not open, and is tried again: {why}" for why in reasons)
            # other changes of the configuration are made meanwhile
            node.create("router.config.address", {"name": "other", "prefix": "other"}, name="other")
            others.close()
            for host, port in ports.items():
                router.wait_for_line(rf"Listening on \S+:{port} \({host}\)")
            assert not [row for row in node.query("finding") if row["point"] == "closed-listener"]
            for port in ports.values():
                works(port)
            names = [row["name"] for row in node.query("listener")]
        assert names == ["front", *HOSTS, "web"]


def test_an_address_that_the_machine_lacks_closes_one_listener_only(start_router: StartRouter) -> None:
    router = start_router(f"{FIRST}listener {{ host: 192.0.2.1, port: 5671 }}\n")
    router.wait_for_line("Listener error: cannot listen on 192.0.2.1:5671: Cannot assign requested address")
    works(router.port)


def test_the_router_is_not_ready_without_a_listener_that_it_needs(
    start_router: StartRouter, taken: socket.socket
) -> None:
    port = port_of(taken)
    router = start_router(f"{FIRST}listener {{ host: 127.0.0.1, port: {port}, readyWithout: no }}\n{WEB}")
    status, body = get(http_port(router), "/readyz")
    assert status == 503
    assert f"is not open, and is tried again: cannot listen on 127.0.0.1:{port}: {IN_USE}" in body
    taken.close()
    router.wait_for_line(rf"Listening on 127\.0\.0\.1:{port}")
    assert get(http_port(router), "/readyz") == (200, "OK")


@pytest.mark.parametrize("enabled", ["info+", "debug", "none"])
def test_without_its_first_listener_the_router_ends_and_says_why_past_every_filter(
    tmp_path: Path, taken: socket.socket, enabled: str
) -> None:
    port = port_of(taken)
    log = f"log {{ module: DEFAULT, enable: {enabled} }}\n"
    with process(f"listener {{ host: 127.0.0.1, port: {port} }}\n{FIRST}{log}", tmp_path) as router:
        assert router.wait() == 1
        assert f"Router start-up failed: cannot listen on 127.0.0.1:{port}: {IN_USE}" in router.text()


def test_with_secure_defaults_the_router_does_not_start_without_one_of_its_listeners(
    tmp_path: Path, taken: socket.socket
) -> None:
    port = port_of(taken)
    text = f"router {{ id: R, secureDefaults: yes }}\n{FIRST}listener {{ host: 127.0.0.1, port: {port} }}\n"
    with process(text, tmp_path) as router:
        assert router.wait() == 1
        assert re.search(rf"start-up failed: cannot listen on 127\.0\.0\.1:{port}: {IN_USE}", router.text())
