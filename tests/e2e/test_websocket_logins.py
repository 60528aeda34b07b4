"""Logins through a WebSocket, within TLS and without: all rules for sockets hold here, too (security.md 2.5)."""

from __future__ import annotations

import hashlib
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from tests.auth_double import ALICE, AUTHZ, IDENTITY, Wire, plain, service, words
from tests.e2e.peer import Gone, Peer, connected
from tests.e2e.websocket import Rejected, WebSocket
from tests.management.node import node_of
from tests.routers import DEADLINE_S, RunningRouter, running
from tests.tls.pki import Authority, Pair
from trouter.client.sasl import Scram
from trouter.wire.framing import AMQP_HEADER, SASL_HEADER
from trouter.wire.performatives import (
    Accepted,
    Attach,
    Close,
    Detach,
    Flow,
    Open,
    SaslChallenge,
    SaslInit,
    SaslOutcome,
    SaslResponse,
    Source,
)
from trouter_plugins.users_file import put_user

pytestmark = pytest.mark.slow

OK, AUTH, SYS_TEMP = 0, 1, 4
PASSWORD = "wonderland"
SKIPPED = "Client skipped authentication - forbidden"
#: Listeners for WebSockets, by the tests' names.
WEB = {
    "plain": "authenticatePeer: yes, saslMechanisms: PLAIN, allowInsecurePlain: loopback",
    "no passwords": "authenticatePeer: yes, allowInsecurePlain: no",
    "service": "saslPlugin: good, allowInsecurePlain: loopback",
    "hung service": "saslPlugin: hung, allowInsecurePlain: loopback",
    "tenants": "multiTenant: yes, authenticatePeer: yes, saslMechanisms: PLAIN, allowInsecurePlain: loopback, "
    "tenantFrom: file:{folder}/tenants.json",
    "quick": "initialHandshakeTimeoutSeconds: 1",
    "external": "sslProfile: p, saslMechanisms: EXTERNAL, authenticatePeer: yes, requireSsl: yes",
    "bound": "sslProfile: p, authenticatePeer: yes, requireSsl: yes, clientCert: none",
    "secret service": "sslProfile: p, saslPlugin: good, allowInsecurePlain: no, requireEncryption: yes",
    "secret tenants": "sslProfile: p, multiTenant: yes, saslMechanisms: EXTERNAL, authenticatePeer: yes, "
    "tenantFrom: file:{folder}/tenants.json",
    "either": "sslProfile: p, clientCert: optional",
}
TLS = frozenset({"external", "bound", "secret service", "secret tenants", "either"})
#: Listeners that require SASL.
STRICT = [name for name in WEB if name not in ("quick", "either")]
TENANTS = {"ann": "t1.example", "bob": "t2.example", "alice": "t1.example"}


@dataclass
class Scene:
    router: RunningRouter
    authority: Authority
    alice: Pair
    #: Counts the connections that the router closed to the service that never answers.
    dropped: threading.Semaphore
    ports: dict[str, int]

    def tls(self, name: str, client: Pair | None = None) -> ssl.SSLSocket:
        context = ssl.create_default_context(cafile=str(self.authority.file))
        if client is not None:
            context.load_cert_chain(client.cert, client.key)
        sock = connected("127.0.0.1", self.ports[name])
        try:
            return context.wrap_socket(sock, server_hostname="localhost")
        except BaseException:
            sock.close()
            raise

    def peer(self, name: str, client: Pair | None = None, *, secret: bool | None = None) -> Peer:
        """Connect a peer that has sent nothing; within TLS unless the listener has none."""
        secret = name in TLS if secret is None else secret
        if secret and client is None and name in {"external", "secret tenants"}:
            client = self.alice
        sock = self.tls(name, client) if secret else connected("127.0.0.1", self.ports[name])
        try:
            return Peer(0, opened=False, wire=WebSocket(sock))
        except BaseException:
            sock.close()
            raise


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("web")
    authority = Authority(folder)
    server, alice = authority.issue("CN=localhost", "localhost"), authority.issue("CN=alice")
    for user in ("ann", "bob"):
        put_user(folder / "users", user, PASSWORD.encode())
    (folder / "tenants.json").write_text(json.dumps(TENANTS))
    with ExitStack() as stack:
        good = stack.enter_context(service(plain({IDENTITY: ALICE, AUTHZ: {"hers": words("recv")}}, "PLAIN")))
        dropped = threading.Semaphore(0)

        def hang(wire: Wire) -> None:
            wire.offer("PLAIN")
            wire.until_gone()
            dropped.release()

        hung = stack.enter_context(service(hang))
        text = f"router {{\n id: R\n usersFile: {folder}/users\n}}\nsslProfile {{\n name: p\n uidFormat: n\n"
        text += f" caCertFile: {authority.file}\n certFile: {server.cert}\n privateKeyFile: {server.key}\n}}\n"
        for name, double in (("good", good), ("hung", hung)):
            text += f"authServicePlugin {{\n name: {name}\n host: 127.0.0.1\n port: {double.port}\n"
            text += " timeoutSeconds: 60\n}\n"
        text += "listener {\n host: 127.0.0.1\n port: 0\n saslMechanisms: ANONYMOUS\n}\n"
        for name, attributes in WEB.items():
            lines = "\n ".join(attributes.format(folder=folder).split(", "))
            text += f"listener {{\n name: {name}\n host: 127.0.0.1\n port: 0\n http: yes\n {lines}\n}}\n"
        (folder / "router").mkdir()
        router = stack.enter_context(running(text, folder / "router"))
        ports = {name: int(router.wait_for_line(rf"Listening for HTTP on \S+:(\d+) \({name}\)")[1]) for name in WEB}
        yield Scene(router, authority, alice, dropped, ports)


def logged_in(scene: Scene, name: str, user: str, **fields: Any) -> Peer:
    """Return a peer that has logged in by a password and opened."""
    peer = scene.peer(name)
    assert peer.authenticate("PLAIN", f"\0{user}\0{PASSWORD}".encode()) == OK
    peer.open(**fields)
    return peer


# --- no way around SASL


@pytest.mark.parametrize("name", STRICT)
def test_sasl_cannot_be_skipped(scene: Scene, name: str) -> None:
    with scene.peer(name) as peer:
        peer.raw(AMQP_HEADER)
        peer.say(Open("skips"))
        peer.expect_header(AMQP_HEADER)
        peer.expect(Open)
        error = peer.expect(Close).error
        assert error is not None
        assert SKIPPED in str(error.description)


@pytest.mark.parametrize("name", STRICT)
def test_no_client_comes_in_by_anonymous(scene: Scene, name: str) -> None:
    with scene.peer(name) as peer:
        assert "ANONYMOUS" not in peer.begin_sasl()
        peer.say(SaslInit("anonymous", b""), frame_type=1)
        assert peer.expect(SaslOutcome).code == AUTH
        with pytest.raises(Gone):
            peer.next()


@pytest.mark.parametrize("name", [name for name, attributes in WEB.items() if "require" in attributes])
def test_a_websocket_without_tls_is_refused_where_tls_is_required(scene: Scene, name: str) -> None:
    with pytest.raises(Rejected) as rejected:
        scene.peer(name, secret=False)
    assert rejected.value.status == 403


def test_no_certificate_no_websocket(scene: Scene) -> None:
    with scene.tls("external") as sock, pytest.raises(ssl.SSLError, match="CERTIFICATE_REQUIRED"):
        WebSocket(sock)


@pytest.mark.parametrize("secret", [False, True])
def test_passwords_are_offered_only_where_no_other_can_read_them(scene: Scene, secret: bool) -> None:
    with scene.peer("bound" if secret else "no passwords") as peer:
        mechanisms = peer.begin_sasl()
        assert ("PLAIN" in mechanisms, "SCRAM-SHA-256-PLUS" in mechanisms) == (secret, secret)
        assert "SCRAM-SHA-256" in mechanisms
        if not secret:
            peer.say(SaslInit("PLAIN", f"\0ann\0{PASSWORD}".encode()), frame_type=1)
            assert peer.expect(SaslOutcome).code == AUTH


@pytest.mark.parametrize("said", [b"", SASL_HEADER], ids=["nothing", "a header"])
def test_a_client_that_does_not_come_to_an_open_has_to_go(scene: Scene, said: bytes) -> None:
    with scene.peer("quick") as peer:
        if said:
            assert peer.begin_sasl()
        with pytest.raises(Gone):
            peer.next()


# --- authenticated names


def test_a_certificate_is_known_within_a_websocket(scene: Scene) -> None:
    with scene.peer("external") as peer:
        assert peer.begin_sasl() == ("EXTERNAL",)
        peer.say(SaslInit("EXTERNAL", b""), frame_type=1)
        assert peer.expect(SaslOutcome).code == OK
        peer.open()
        scene.router.wait_for_line(
            rf"\[C{peer.number}\] Connection Opened: .* encrypted=TLSv1.3 auth=EXTERNAL user=alice "
        )
        with node_of(scene.router.port) as node:
            (row,) = [row for row in node.query("connection") if row["host"] == peer.address]
        assert (row["user"], row["isAuthenticated"], row["isEncrypted"]) == ("alice", True, True)


def test_a_certificate_is_for_no_other_user(scene: Scene) -> None:
    with scene.peer("external") as peer:
        assert peer.authenticate("EXTERNAL", b"bob") == AUTH


def test_a_certificate_without_external_does_not_authenticate(scene: Scene) -> None:
    with scene.peer("either", scene.alice) as peer:
        peer.open()
        with node_of(scene.router.port) as node:
            (row,) = [row for row in node.query("connection") if row["host"] == peer.address]
        assert (row["user"], row["isAuthenticated"]) == ("CN=alice", False)


@pytest.mark.parametrize("honest", [True, False])
async def test_scram_is_bound_to_the_channel_below_the_websocket(scene: Scene, honest: bool) -> None:
    with scene.peer("bound") as peer:
        peer.begin_sasl()
        der = ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate(("127.0.0.1", scene.ports["bound"])))
        binding = hashlib.sha256(der if honest else b"somebody in between").digest()
        client = Scram("SCRAM-SHA-256-PLUS", "ann", PASSWORD, ("tls-server-end-point", binding))
        peer.say(SaslInit(client.name, await client.start()), frame_type=1)
        challenge = peer.expect(SaslChallenge).challenge
        peer.say(SaslResponse(await client.respond(challenge)), frame_type=1)
        if not honest:
            assert peer.expect(SaslOutcome).code == AUTH
            return
        await client.respond(peer.expect(SaslChallenge).challenge)
        peer.say(SaslResponse(b""), frame_type=1)
        assert peer.expect(SaslOutcome).code == OK


# --- authentication services


@pytest.mark.parametrize("name", ["service", "secret service"])
def test_the_rights_from_a_service_hold_within_a_websocket(scene: Scene, name: str) -> None:
    with logged_in(scene, name, "somebody") as peer:
        scene.router.wait_for_line(rf"\[C{peer.number}\] Connection Opened: .* auth=PLAIN user=alice ")
        peer.begin()
        assert peer.attach_receiver("hers").address == "hers"
        peer.say(Attach("another", 7, True, source=Source("his")))
        peer.expect(Attach)
        error = peer.expect(Detach).error
        assert error is not None
        assert error.condition == "amqp:unauthorized-access"


def test_a_client_that_vanishes_during_a_login_at_a_service_leaves_no_connection(scene: Scene) -> None:
    for _ in range(5):
        with scene.peer("hung service") as peer:
            peer.begin_sasl()
            peer.say(SaslInit("PLAIN", b"\0a\0b"), frame_type=1)
    for _ in range(5):
        assert scene.dropped.acquire(timeout=DEADLINE_S)


# --- tenants


def test_tenants_are_apart_within_websockets(scene: Scene) -> None:
    with (
        logged_in(scene, "tenants", "ann", hostname="t1.example") as ann,
        logged_in(scene, "tenants", "bob", hostname="t2.example") as bob,
        Peer(scene.router.port) as outside,
    ):
        for each in (ann, bob):
            each.begin()
        receivers = [each.attach_receiver("q", 10) for each in (ann, bob)]
        outside.attach_receiver("q", 10)
        for sender, link, receiver, taken in (
            (outside, outside.attach_sender("t1.example/q"), ann, receivers[0]),
            (bob, bob.attach_sender("q"), bob, receivers[1]),
        ):
            body = sender.address.encode()
            delivery = sender.send_message(link, body)
            assert body in receiver.take_message(taken)
            assert sender.expect_outcome(delivery) == Accepted()
        outside.flow(echo=True)
        assert isinstance(outside.next(), Flow)  # and no transfer to a client outside any tenant's space


def test_a_certificate_belongs_to_a_tenant(scene: Scene) -> None:
    with scene.peer("secret tenants") as peer, node_of(scene.router.port) as node:
        assert peer.authenticate("EXTERNAL", b"") == OK
        peer.open(hostname="t1.example")
        (row,) = [row for row in node.query("connection") if row["host"] == peer.address]
        assert (row["tenant"], row["user"]) == ("t1.example/", "alice")


@pytest.mark.parametrize(("user", "hostname"), [("ann", "t2.example"), ("bob", "t1.example"), ("ann", "_local")])
def test_no_client_opens_in_the_space_of_another(scene: Scene, user: str, hostname: str) -> None:
    with logged_in(scene, "tenants", user, hostname=hostname) as peer:
        assert peer.expect(Close).error is not None
