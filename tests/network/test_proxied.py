"""A listener behind a load balancer that sends PROXY headers: HAProxy's, of both versions, and invalid ones."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio

from tests.http.test_live import get
from tests.management.node import node_of
from tests.routers import DEADLINE_S, RunningRouter, StartRouter, start_router
from trouter.client import Message, connect

__all__ = ["start_router"]

#: The first listener is for the tests themselves; the others stand behind proxies.
ROUTER = """
router {{ id: R, mode: standalone }}
policy {{ enableVhostPolicy: yes, defaultVhost: near }}
vhost {{
    hostname: near
    allowUnknownUser: yes
    groups: {{
        "$default": {{
            remoteHosts: "192.0.2.7, 127.0.0.1", sources: "*", targets: "*"
            allowDynamicSource: yes, allowAnonymousSender: yes
        }}
    }}
}}
listener {{ name: own, host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }}
listener {{ name: proxied, host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS, proxyProtocolHosts: {hosts} }}
listener {{
    name: web
    host: 127.0.0.1
    port: 0
    saslMechanisms: ANONYMOUS
    http: yes
    proxyProtocolHosts: {hosts}
    metricsHosts: 192.0.2.7
}}
"""
PROXY = """
global
    maxconn 100
defaults
    mode tcp
    timeout connect 60s
    timeout client 600s
    timeout server 600s
listen proxy
    bind fd@{descriptor}
    tcp-request connection set-src ipv4({client})
    tcp-request connection set-src-port int(4000)
    server router 127.0.0.1:{port} {sends}
"""
AMQP = b"AMQP\x00\x01\x00\x00"


@contextmanager
def haproxy(folder: Path, port: int, sends: str, client: str = "192.0.2.7") -> Iterator[int]:
    """Run HAProxy before a port, for clients that come from ``client``; yield its own port."""
    if shutil.which("haproxy") is None:
        pytest.skip("HAProxy is not here; Debian has it in the package haproxy")
    with socket.create_server(("127.0.0.1", 0)) as sock:
        path = folder / "haproxy.cfg"
        path.write_text(PROXY.format(descriptor=sock.fileno(), client=client, port=port, sends=sends), encoding="utf-8")
        command = ["haproxy", "-db", "-f", str(path)]
        with subprocess.Popen(command, pass_fds=(sock.fileno(),), stderr=subprocess.DEVNULL) as process:
            try:
                yield int(sock.getsockname()[1])
            finally:
                process.kill()


def proxied_port(router: RunningRouter) -> int:
    return router.ports[1]


def web_port(router: RunningRouter) -> int:
    return int(router.wait_for_line(r"Listening for HTTP on 127\.0\.0\.1:(\d+) \(web\)")[1])


def hosts_of(router: RunningRouter) -> set[str]:
    with node_of(router.port) as node:
        return {str(row["host"]) for row in node.query("connection", ["host"])}


def answer_to(port: int, octets: bytes) -> bytes:
    """Send octets on a connection; return what comes before the router closes it."""
    with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S) as sock:
        sock.sendall(octets)
        answer = b""
        try:
            while data := sock.recv(4096):
                answer += data
        except ConnectionResetError:
            return answer
        return answer


async def _send_and_look(port: int, router: RunningRouter) -> set[str]:
    async with connect(f"amqp://127.0.0.1:{port}") as connection, connection.open_receiver("x") as receiver:
        async with connection.open_sender("x") as sender, trio.open_nursery() as nursery:
            nursery.start_soon(sender.send, Message("through"))
            delivery = await receiver.receive()
            await delivery.accept()
        assert delivery.message.body == "through"
        return await trio.to_thread.run_sync(hosts_of, router)


@pytest.mark.parametrize("sends", ["send-proxy", "send-proxy-v2", "send-proxy-v2-ssl"])
def test_a_client_behind_haproxy_is_known_by_its_own_address(
    start_router: StartRouter, tmp_path: Path, sends: str
) -> None:
    router = start_router(ROUTER.format(hosts="127.0.0.1"))
    with haproxy(tmp_path, proxied_port(router), sends) as port:
        assert "192.0.2.7:4000" in trio.run(_send_and_look, port, router)
    router.wait_for_line(r"Accepted connection to 127\.0\.0\.1:\d+ from 192\.0\.2\.7:4000")


def test_the_policy_judges_the_client_and_not_the_proxy(start_router: StartRouter, tmp_path: Path) -> None:
    router = start_router(ROUTER.format(hosts="127.0.0.1"))
    before = haproxy(tmp_path, proxied_port(router), "send-proxy", client="192.0.2.8")
    with before as port, pytest.raises(Exception, match="disallowed by local policy"):
        trio.run(_send_and_look, port, router)


def test_pages_know_the_client_too(start_router: StartRouter, tmp_path: Path) -> None:
    router = start_router(ROUTER.format(hosts="127.0.0.0/8"))
    with haproxy(tmp_path, web_port(router), "send-proxy-v2") as port:
        assert get(port, "/metrics")[0] == 200
    with haproxy(tmp_path, web_port(router), "send-proxy-v2", client="192.0.2.8") as port:
        assert get(port, "/metrics")[0] == 403


def test_what_does_not_begin_with_a_header_gets_no_answer(start_router: StartRouter) -> None:
    router = start_router(ROUTER.format(hosts="127.0.0.1"))
    assert answer_to(proxied_port(router), AMQP) == b""
    router.wait_for_line(r"connection from 127\.0\.0\.1:\d+ refused: it does not begin with a PROXY header")
    assert answer_to(web_port(router), b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n") == b""


def test_a_header_of_a_stranger_is_not_believed(start_router: StartRouter) -> None:
    router = start_router(ROUTER.format(hosts="192.0.2.200"))
    assert answer_to(proxied_port(router), b"PROXY TCP4 192.0.2.7 192.0.2.1 4000 5672\r\n" + AMQP) == b""
    router.wait_for_line(r"connection from 127\.0\.0\.1:\d+ refused: it is none of proxyProtocolHosts")
    assert not router.matching("192.0.2.7:4000")


@pytest.mark.parametrize(
    "header",
    [b"PROXY UNKNOWN\r\n", b"PROXY TCP4 127.0.0.9 127.0.0.1 4000 5672\r\n", b"\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00"],
    ids=["unknown", "loopback of another machine", "health check"],
)
def test_a_proxy_that_names_no_client_stands_for_itself(start_router: StartRouter, header: bytes) -> None:
    router = start_router(ROUTER.format(hosts="127.0.0.1"))
    with socket.create_connection(("127.0.0.1", proxied_port(router)), timeout=DEADLINE_S) as sock:
        host, port = sock.getsockname()
        sock.sendall(header + b"AMQP\x03\x01\x00\x00")
        assert sock.recv(8) == b"AMQP\x03\x01\x00\x00"
    router.wait_for_line(rf"Accepted connection to 127\.0\.0\.1:\d+ from {host}:{port}")
