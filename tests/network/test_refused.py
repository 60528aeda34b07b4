"""Handshakes that a router refuses, counted by reason: real clients, bytes that are not AMQP, TLS, PROXY headers."""

from __future__ import annotations

import socket
import ssl
from contextlib import suppress
from pathlib import Path

import pytest
from proton import ConnectionException
from proton.utils import BlockingConnection

from tests.certificates import Authority
from tests.e2e.peer import Peer
from tests.http.test_live import http_port, scrape
from tests.management.node import node_of
from tests.routers import DEADLINE_S, RunningRouter, StartRouter
from tests.waiting import until
from trouter.telemetry.refusals import PERIOD_S, REASONS, Refusals

#: The listeners, in their order.
ANYONE, LOGIN, TLS, NARROW, BALANCED, HURRIED, CLOSED = range(7)
NAMES = ("anyone", "login", "tls", "narrow", "balanced", "hurried", "closed")
CONFIGURATION = """
router {{ id: R, mode: standalone, usersFile: {users}, authDelayAfter: 1000 }}
sslProfile {{ name: server, certFile: {certificate}, privateKeyFile: {key} }}
listener {{ name: anyone, host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }}
listener {{ name: login, host: 127.0.0.1, port: 0, saslMechanisms: PLAIN, authenticatePeer: yes }}
listener {{ name: tls, host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS, sslProfile: server, requireSsl: yes }}
listener {{ name: narrow, host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS, maxConnections: 1 }}
listener {{ name: balanced, host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS, proxyProtocolHosts: 127.0.0.1 }}
listener {{ name: hurried, host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS, initialHandshakeTimeoutSeconds: 1 }}
listener {{ name: closed, host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS, policyVhost: closed }}
listener {{ name: web, host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS, http: yes }}
policy {{ enableVhostPolicy: yes }}
vhost {{ hostname: $default, allowUnknownUser: yes, groups: {{
    "$default": {{ remoteHosts: "*", sources: "*", targets: "*", management: admin, allowDynamicSource: yes }} }} }}
vhost {{ hostname: closed, allowUnknownUser: yes, groups: {{ "$default": {{ remoteHosts: 192.0.2.1 }} }} }}
"""


def refused(router: RunningRouter) -> dict[tuple[str, str], float]:
    """Return the refused handshakes by listener and reason, without zeros."""
    figures = scrape(http_port(router))
    pairs = ((name, reason) for name in (*NAMES, "web") for reason in REASONS)
    series = "trouter_handshakes_refused_total{{'listener': '{}', 'reason': '{}'}}"
    counts = {pair: figures[series.format(*pair)] for pair in pairs}
    return {pair: count for pair, count in counts.items() if count}


def say(port: int, octets: bytes) -> None:
    """Send octets, and read until the router closes."""
    with socket.create_connection(("127.0.0.1", port), DEADLINE_S) as sock:
        sock.sendall(octets)
        while sock.recv(1000):
            pass


def test_each_refused_handshake_is_counted_by_its_reason(start_router: StartRouter, tmp_path: Path) -> None:
    certificate, key = Authority(tmp_path, "authority").pair("127.0.0.1")
    users = tmp_path / "users"
    users.write_text("")
    users.chmod(0o600)
    router = start_router(CONFIGURATION.format(certificate=certificate, key=key, users=users))
    assert refused(router) == {}
    with pytest.raises(ConnectionException, match="Authentication failed"):
        BlockingConnection(
            f"127.0.0.1:{router.ports[LOGIN]}", user="ann", password="wrong", allowed_mechs="PLAIN", timeout=DEADLINE_S,
            allow_insecure_mechs=True,
        )  # fmt: skip
    say(router.ports[ANYONE], b"GET / HTTP/1.0\r\n\r\n")
    say(router.ports[ANYONE], b"\x16\x03\x01\x00\x05hello")
    say(router.ports[TLS], b"AMQP\x03\x01\x00\x00")
    with pytest.raises(OSError), socket.create_connection(("127.0.0.1", router.ports[TLS]), DEADLINE_S) as sock:  # noqa: PT011
        ssl.create_default_context().wrap_socket(sock, server_hostname="127.0.0.1")
    with Peer(router.ports[NARROW]) as peer:
        peer.be_heard()
        say(router.ports[NARROW], b"")
    say(router.ports[BALANCED], b"PROXY NONSENSE\r\n")
    say(router.ports[HURRIED], b"AMQP")
    with suppress(ConnectionException):  # an open may come before the close
        BlockingConnection(f"127.0.0.1:{router.ports[CLOSED]}", allowed_mechs="ANONYMOUS", timeout=DEADLINE_S)
    with socket.create_connection(("127.0.0.1", router.ports[ANYONE]), DEADLINE_S):
        pass  # a probe that only connects is not refused
    expected = {
        ("login", "sasl"): 1,
        ("anyone", "not-amqp"): 1,
        ("anyone", "tls"): 1,
        ("tls", "tls"): 2,
        ("narrow", "limit"): 1,
        ("balanced", "proxy-header"): 1,
        ("hurried", "timeout"): 1,
        ("closed", "policy"): 1,
    }
    until(lambda: sum(refused(router).values()) >= sum(expected.values()), "the last refusal")
    assert refused(router) == expected
    with node_of(router.ports[ANYONE]) as node:
        (row,) = node.query("router")
        assert row["handshakesRefused"]["tls"] == 3
        assert not [each for each in node.query("finding") if "refused" in str(each["message"])]
        for _ in range(10):
            say(router.ports[ANYONE], b"GET / HTTP/1.0\r\n\r\n")
        until(lambda: refused(router)["anyone", "not-amqp"] == 11, "ten more")
        (found,) = [each for each in node.query("finding") if "refused" in str(each["message"])]
        assert found["entity"] == "listener/127.0.0.1:0:anyone"
        assert found["message"] == "refused 12 handshakes in the last minutes: 11 not-amqp, 1 tls"


def test_old_refusals_are_not_recent() -> None:
    now = [0.0]
    refusals = Refusals(lambda: now[0])
    refusals.count_refused("a", "tls")
    now[0] += PERIOD_S
    refusals.count_refused("a", "tls")
    assert refusals.recent("a") == {"tls": 2}
    now[0] += PERIOD_S
    assert refusals.recent("a") == {"tls": 1}
    assert refusals.recent("b") == {}
    now[0] += 5 * PERIOD_S
    assert refusals.recent("a") == {}
    assert refusals.by_reason() == {"tls": 2}
