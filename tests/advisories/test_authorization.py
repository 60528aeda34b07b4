"""Limits and rights apply to every way of connecting, and to incomplete frames (security.md 7.1, 7.2, 7.4)."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.peer import Peer, message
from tests.e2e.websocket import WebSocket
from tests.routers import RunningRouter, process, running
from tests.tls.pki import Authority
from trouter.config import ConfigurationError, load
from trouter.config.texts import RESERVED_PROPERTIES
from trouter.wire.codec import encode
from trouter.wire.framing import frame
from trouter.wire.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    Error,
    Rejected,
    Source,
    Target,
    encode_performative,
)
from trouter.wire.types import Described, ULong
from trouter_plugins.users_file import put_user

pytestmark = pytest.mark.attack

GROUPS = "allowUnknownUser: yes, groups: { $default: { remoteHosts: *, sources: *, targets: * } }"
VHOSTS = f"""
policy {{ enableVhostPolicy: yes, defaultVhost: usual }}
vhost {{ hostname: usual, {GROUPS} }}
vhost {{ hostname: one.org, maxConnectionsPerUser: 1, {GROUPS} }}
vhost {{ hostname: host.org, maxConnectionsPerHost: 1, {GROUPS} }}
"""
OWN = "router {{ id: R }}\nlistener {{\n port: 0\n openProperties: {{\n {}: x\n }}\n}}\n"
DENIED = Error("amqp:resource-limit-exceeded", "connection disallowed by local policy")


@dataclass
class Scene:
    router: RunningRouter
    authority: Authority

    @property
    def web(self) -> int:
        return int(self.router.wait_for_line(r"Listening for HTTP on \S+:(\d+) \(ws\)")[1])

    @property
    def secure_web(self) -> int:
        return int(self.router.wait_for_line(r"Listening for HTTP\S* on \S+:(\d+) \(wss\)")[1])


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("router")
    authority = Authority(folder)
    pair = authority.issue("CN=localhost", "localhost")
    text = f"""
router {{ id: R }}
{VHOSTS}
sslProfile {{
    name: p
    caCertFile: {authority.file}
    certFile: {pair.cert}
    privateKeyFile: {pair.key}
}}
listener {{ name: tcp, host: 127.0.0.1, port: 0 }}
listener {{ name: tls, host: 127.0.0.1, port: 0, sslProfile: p, requireSsl: yes }}
listener {{ name: tenants, host: 127.0.0.1, port: 0, multiTenant: yes }}
listener {{ name: ws, host: 127.0.0.1, port: 0, http: yes }}
listener {{ name: wss, host: 127.0.0.1, port: 0, http: yes, sslProfile: p, requireSsl: yes }}
"""
    (folder / "router").mkdir()
    with running(text, folder / "router") as router:
        yield Scene(router, authority)


@pytest.fixture(scope="module")
def without_policy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    folder = tmp_path_factory.mktemp("router")
    (folder / "tenants.json").write_text('{"alice": "usual"}')
    put_user(folder / "users", "alice", b"wonderland")
    text = f"""
router {{ id: R, usersFile: {folder}/users }}
listener {{ host: 127.0.0.1, port: 0 }}
listener {{
    host: 127.0.0.1
    port: 0
    multiTenant: yes
    authenticatePeer: yes
    allowInsecurePlain: loopback
    saslMechanisms: PLAIN
    tenantFrom: file:{folder}/tenants.json
}}
"""
    with running(text, folder) as router:
        yield router


# --- four ways to connect


class Way(Peer):
    """A peer that has connected by TCP, TLS, or a WebSocket within one of them, and has exchanged opens."""

    def __init__(self, scene: Scene, name: str, hostname: str) -> None:
        ports = {"tcp": scene.router.ports[0], "tls": scene.router.ports[1], "ws": scene.web, "wss": scene.secure_web}
        super().__init__(ports[name], opened=False)
        sock: Any = self.sock
        if name in ("tls", "wss"):
            context = ssl.create_default_context(cafile=str(scene.authority.file))
            sock = context.wrap_socket(sock, server_hostname="localhost")
        if name in ("ws", "wss"):
            sock = WebSocket(sock)
        self.sock = sock
        try:
            self._enter(hostname)
        except BaseException:
            self.sock.close()
            raise

    def _enter(self, hostname: str) -> None:
        assert self.authenticate("ANONYMOUS", b"") == 0
        self.open(hostname=hostname)


WAYS = ["tcp", "tls", "ws", "wss"]


@pytest.mark.parametrize("hostname", ["one.org", "host.org"])
@pytest.mark.parametrize("first", WAYS)
def test_limits_count_whichever_way_a_client_comes(scene: Scene, first: str, hostname: str) -> None:
    """CVE-2026-66067."""
    with Way(scene, first, hostname) as inside:
        inside.begin()
        for second in WAYS:
            with Way(scene, second, hostname) as outside:
                assert outside.expect(Close).error == DENIED
        inside.be_heard()
    scene.router.wait_for_line(rf"\[C{inside.number}\] Connection Closed")


# --- TLS without SASL, policy on, a message in another user's name


@pytest.mark.parametrize("way", ["tcp", "tls"])
@pytest.mark.parametrize("user_id", [b"alice", b"\xff\xfe", b"x" * 10_000, "alice"])
def test_a_client_without_a_name_speaks_for_no_user(scene: Scene, way: str, user_id: object) -> None:
    with Peer(scene.router.ports[WAYS.index(way)], opened=False) as peer:
        if way == "tls":
            context = ssl.create_default_context(cafile=str(scene.authority.file))
            peer.sock = context.wrap_socket(peer.sock, server_hostname="localhost")
        peer.open(hostname="usual")
        peer.begin()
        peer.attach_receiver("q", credit=1)
        sender = peer.attach_sender("q")
        delivery = peer.transfer(sender, encode(Described(ULong(0x73), [None, user_id])) + message(b"x"))
        outcome = peer.expect_outcome(delivery)
        assert isinstance(outcome, Rejected)
        assert outcome.error == Error("amqp:unauthorized-access", "user_id proxy violation")
        peer.be_heard()


# --- DISPATCH-1732: an open without a hostname


@pytest.mark.parametrize("hostname", [None, "", "usual", "nobody.org"])
@pytest.mark.parametrize("listener", [0, 2])
def test_dispatch_1732_an_open_without_a_hostname(
    scene: Scene, without_policy: RunningRouter, hostname: str | None, listener: int
) -> None:
    for router, port in (
        (scene.router, scene.router.ports[listener]),
        (without_policy, without_policy.ports[listener // 2]),
    ):
        with Peer(port, opened=False) as peer:
            if port in without_policy.ports[1:]:
                assert peer.authenticate("PLAIN", b"\0alice\0wonderland") == 0
            peer.open(hostname=hostname)
            peer.raw(frame(0, encode_performative(Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1))))
            said = peer.next()
            assert isinstance(said, Begin) or (isinstance(said, Close) and said.error is not None)
        router.assert_no_fault_of_ours()


# --- DISPATCH-1821: a policy that is wrong

PLACE = r":\d+:\d+: .*(vhost|hostname|group|sources|aliases|remoteHosts)"
WRONG: dict[str, str] = {
    "no number": "vhost { hostname: v, maxConnections: many }",
    "two vhosts of one name": "vhost { hostname: v }\nvhost { hostname: v }",
    "two tokens in one entry": "vhost { hostname: v, groups: { g: { users: *, sources: '${user}${user}' } } }",
    "a user in two groups": "vhost { hostname: v, groups: { a: { users: u }, b: { users: u } } }",
    "an alias twice": "vhost { hostname: v, aliases: w }\nvhost { hostname: w }",
    "no address": "vhost { hostname: v, groups: { a: { users: u, remoteHosts: 300.1.2.3 } } }",
    "groups that are a text": "vhost { hostname: v, groups: all }",
}


def wrong_policy(wrong: str) -> str:
    policy = f"policy {{ enableVhostPolicy: yes }}\n{WRONG[wrong]}\n"
    return f"router {{ id: R }}\n{policy}listener {{ host: 127.0.0.1, port: 0 }}\n"


@pytest.mark.parametrize("wrong", WRONG)
def test_dispatch_1821_a_wrong_policy_is_refused_with_its_place(wrong: str) -> None:
    with pytest.raises(ConfigurationError, match=PLACE):
        load(text=wrong_policy(wrong))


@pytest.mark.parametrize("wrong", ["two tokens in one entry", "groups that are a text"])
def test_dispatch_1821_a_wrong_policy_ends_the_start_with_the_reason(tmp_path: Path, wrong: str) -> None:
    with process(wrong_policy(wrong), tmp_path) as started:
        assert started.wait() == 1
        assert started.ports == []
        assert started.matching(PLACE)
        started.assert_no_fault_of_ours()


# --- the properties of the router's open


@pytest.mark.parametrize("key", sorted({*RESERVED_PROPERTIES, "qd.conn-id", "x-opt-qd.address"}))
def test_reserved_properties_are_refused_one_by_one(key: str) -> None:
    load(text=OWN.format("mine"))
    with pytest.raises(ConfigurationError, match=re.escape(key)):
        load(text=OWN.format(key))


def test_the_keys_that_are_reserved() -> None:
    assert {
        "scheme",
        "hostname",
        "network-host",
        "port",
        "failover-server-list",
    } <= RESERVED_PROPERTIES


# --- addresses: security.md 8.9


@pytest.mark.parametrize("octet", ["\0", "\r", "\n", "\x1b"])
def test_no_address_has_control_characters(scene: Scene, octet: str) -> None:
    refused = Error("amqp:invalid-field", "an address must not contain control characters")
    with Peer(scene.router.ports[0], hostname="usual") as peer:
        for address in (f"a{octet}b", octet, f"a{octet}"):
            for sends in (True, False):
                source, target = (Source(), Target(address)) if sends else (Source(address), Target())
                count = 0 if sends else None
                peer.attach(
                    Attach(
                        f"{address}-{sends}", 9, not sends, source=source, target=target, initial_delivery_count=count
                    )
                )
                assert peer.expect_detach() == refused
                peer.say(Detach(9, True))
