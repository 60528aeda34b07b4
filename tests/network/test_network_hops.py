"""With secureDefaults a change over the network comes by TLS on every hop: real routers at an address of this machine.

The address is none of loopback, so that the routers count as those of different machines.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.certificates import Authority
from tests.networks import client_port, router_port, wait_for_row
from tests.routers import RunningRouter, running
from tests.tools.live import Ran, run

pytestmark = pytest.mark.slow

ROUTER = (
    "router {{ id: {name}, mode: {mode}, secureDefaults: {secure}{router} }}\n"
    "sslProfile {{ name: p, caCertFile: {ca}, certFile: {certificate}, privateKeyFile: {key} }}\n"
    "policy {{ enableVhostPolicy: yes, routerManagement: admin }}\n"
    "vhost {{ hostname: $default, allowUnknownUser: yes, groups: {{ $default: {{ users: *, remoteHosts: *, sources: *, "
    "targets: *, allowDynamicSource: yes, allowAnonymousSender: yes, management: admin }} }} }}\n"
    "listener {{ host: 127.0.0.1, port: 0, authenticatePeer: no, saslMechanisms: ANONYMOUS, idleTimeoutSeconds: 0 }}\n"
)
LISTENS = {
    True: "sslProfile: p, requireSsl: yes, authenticatePeer: yes, saslMechanisms: EXTERNAL, allowInsecureRole: yes",
    False: "authenticatePeer: no, saslMechanisms: ANONYMOUS, allowInsecureRole: yes",
}
DIALS = {True: "sslProfile: p, saslMechanisms: EXTERNAL", False: "saslMechanisms: ANONYMOUS"}


@pytest.fixture
def address() -> str:
    """Return the address by which this machine is reached from others."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(("198.51.100.1", 9))  # for a datagram this only chooses the way
        except OSError:
            pytest.skip("this machine has no address but those of loopback")
        own = str(sock.getsockname()[0])
    if ipaddress.ip_address(own).is_loopback:
        pytest.skip("this machine has no address but those of loopback")
    return own


@contextmanager
def chain(
    folder: Path, address: str, *, first: bool, last: bool, edge: bool, router: str
) -> Iterator[dict[str, RunningRouter]]:
    """Run A, B and C in a row: the hop from A to B has TLS if ``first``, that from B to C if ``last``.

    A router with secureDefaults opens no listener without TLS, so that who has one is without them; C has them always.
    """
    authority = Authority(folder, "ca")
    certificate, key = authority.pair(address)
    role = "edge" if edge else "inter-router"

    def text(name: str, *, secure: bool, mode: str = "interior") -> str:
        return ROUTER.format(
            name=name,
            mode=mode,
            secure="yes" if secure else "no",
            router=router,
            ca=authority.certificate,
            certificate=certificate,
            key=key,
        )

    def listener(tls: bool, role: str) -> str:
        return f"listener {{ host: {address}, port: 0, role: {role}, {LISTENS[tls]} }}\n"

    def connector(port: int, tls: bool, role: str) -> str:
        return f"connector {{ name: up, host: {address}, port: {port}, role: {role}, {DIALS[tls]} }}\n"

    with ExitStack() as stack:
        a = stack.enter_context(running(text("A", secure=first) + listener(first, "inter-router"), folder))
        of_b = text("B", secure=last) + listener(last, role) + connector(router_port(a), first, "inter-router")
        b = stack.enter_context(running(of_b, folder))
        of_c = text("C", secure=True, mode="edge" if edge else "interior") + connector(router_port(b), last, role)
        c = stack.enter_context(running(of_c, folder))
        wait_for_row(a, "router.node", lambda row: row["id"] == "B")
        if edge:
            wait_for_row(b, "connection", lambda row: row["role"] == "edge" and row["container"] == "C")
        else:
            wait_for_row(a, "router.node", lambda row: row["id"] == "C")
        yield {"A": a, "B": b, "C": c}


async def apply(routers: dict[str, RunningRouter], folder: Path, *words: str) -> Ran:
    """Apply the files with which the routers run, and an address for each."""
    made = folder / "net"
    (made / "routers").mkdir(parents=True)
    for name, router in routers.items():
        (made / "routers" / f"{name}.conf").write_text(router.configuration.read_text())
    (made / "common.conf").write_text("address { prefix: news }\n")
    server = f"127.0.0.1:{client_port(routers['A'])}"
    return await run("network", "apply", str(made), *words, "-b", server, "--timeout", "60")


def changed(routers: dict[str, RunningRouter]) -> list[str]:
    return [name for name, router in routers.items() if "prefix: news" in router.configuration.read_text()]


@pytest.mark.parametrize("edge", [False, True])
async def test_a_change_comes_to_all_by_tls(tmp_path: Path, address: str, edge: bool) -> None:
    with chain(tmp_path, address, first=True, last=True, edge=edge, router="") as routers:
        ran = await apply(routers, tmp_path)
        assert (ran.status, ran.err) == (0, "")
        assert changed(routers) == ["A", "B", "C"]


@pytest.mark.parametrize(
    ("first", "last", "edge", "why"),
    [
        # the hop to C has TLS, so that C itself would take the change; the one before it has none
        (False, True, False, "C has secureDefaults, and connections between routers have no TLS (A with B; B with A)"),
        (False, True, True, "C has secureDefaults, and connections between routers have no TLS (A with B; B with A)"),
        (True, False, False, "C: with secureDefaults a change over the network comes by TLS"),
        (True, False, True, "C: with secureDefaults a change over the network comes by TLS"),
    ],
)
async def test_a_hop_without_tls_keeps_a_change_from_all_routers_behind_it(
    tmp_path: Path, address: str, first: bool, last: bool, edge: bool, why: str
) -> None:
    with chain(tmp_path, address, first=first, last=last, edge=edge, router="") as routers:
        ran = await apply(routers, tmp_path, "--only", "C")
        assert (ran.status, why in ran.err) == (1, True), ran.err
        assert "nothing was changed" in ran.err
        assert changed(routers) == []


async def test_allow_network_changes_allows_a_hop_without_tls(tmp_path: Path, address: str) -> None:
    allowed = ", allowNetworkChanges: yes"
    with chain(tmp_path, address, first=False, last=False, edge=False, router=allowed) as routers:
        ran = await apply(routers, tmp_path, "--only", "C")
        assert (ran.status, ran.err) == (0, "")
        assert changed(routers) == ["C"]
