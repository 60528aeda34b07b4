"""sslProfiles and connections in management's rows and requests (security.md 1.4, 2.1, 2.4; management.md 8)."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from prometheus_client.parser import text_string_to_metric_families

from tests.management.node import Node, node_of
from tests.routers import DEADLINE_S, RunningRouter, process, running
from tests.tls.pki import Authority, Pair
from tests.tls.test_listeners import performatives
from trouter.wire.framing import AMQP_HEADER, FRAME_SASL, SASL_HEADER, frame
from trouter.wire.performatives import Begin, Close, Open, SaslInit, encode_performative

PROFILE = "org.apache.qpid.dispatch.sslProfile"
CONNECTION = "org.apache.qpid.dispatch.connection"
LISTENER = "org.apache.qpid.dispatch.listener"
TLS_COLUMNS = ("isEncrypted", "sslProto", "sslCipher", "sslSsf", "ssl", "sasl", "isAuthenticated", "user")


class Raw:
    """A raw AMQP connection, within TLS or not; it is open when the object is made."""

    def __init__(self, sock: socket.socket, mechanism: str = "", name: str = "raw") -> None:
        self.sock = sock
        self._bytes = b""
        self._begun = 0
        if mechanism:
            self.sock.sendall(SASL_HEADER + frame(0, encode_performative(SaslInit(mechanism)), FRAME_SASL))
            self._frames(SASL_HEADER, 2)
        self.sock.sendall(AMQP_HEADER + frame(0, encode_performative(Open(name))))
        (opened,) = self._frames(AMQP_HEADER, 1)
        assert isinstance(opened, Open)

    def round_trip(self) -> None:
        """Check that the connection is alive."""
        begin = Begin(next_outgoing_id=0, incoming_window=100, outgoing_window=100)
        self.sock.sendall(frame(self._begun, encode_performative(begin)))
        self._begun += 1
        (begun,) = self._frames(b"", 1)
        assert isinstance(begun, Begin), begun

    def closed(self) -> Close:
        """Wait for the close; return it."""
        (close,) = self._frames(b"", 1)
        assert isinstance(close, Close), close
        return close

    def _frames(self, header: bytes, count: int) -> list[Any]:
        while True:
            content = self._bytes.removeprefix(header) if self._bytes.startswith(header) else b""
            found = performatives(content) if content else []
            if len(found) >= count:
                for _ in range(count):
                    content = content[int.from_bytes(content[:4], "big") :]
                self._bytes = content
                return found[:count]
            data = self.sock.recv(65536)
            assert data, f"closed after {self._bytes!r}"
            self._bytes += data


@dataclass
class Scene:
    router: RunningRouter
    node: Node
    authority: Authority
    alice: Pair
    first: Pair
    stack: ExitStack = field(default_factory=ExitStack)

    def context(self, client: Pair | None = None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.authority.file))
        if client is not None:
            context.load_cert_chain(client.cert, client.key)
        return context

    def clear(self) -> socket.socket:
        return self.stack.enter_context(socket.create_connection(("127.0.0.1", self.router.ports[1]), DEADLINE_S))

    def tls(self, client: Pair | None = None) -> ssl.SSLSocket:
        return self.stack.enter_context(self.context(client).wrap_socket(self.clear(), server_hostname="localhost"))

    def shown(self) -> bytes | None:
        """Return the certificate that new connections get."""
        with ExitStack() as self.stack:
            return self.tls().getpeercert(binary_form=True)

    def update(self, **attributes: object) -> None:
        self.node.get("UPDATE", {_camel(key): value for key, value in attributes.items()}, type=PROFILE, name="p")

    def row(self, container: str) -> dict[str, Any]:
        (row,) = (each for each in self.node.query(CONNECTION) if each["container"] == container)
        return {name: row[name] for name in TLS_COLUMNS}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


def profile_text(authority: Authority, pair: Pair, **more: object) -> str:
    attributes = {"caCertFile": authority.file, "certFile": pair.cert, "privateKeyFile": pair.key, **more}
    return "sslProfile {\n name: p\n" + "".join(f" {key}: {value}\n" for key, value in attributes.items()) + "}\n"


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("managed")
    authority = Authority(folder)
    first = authority.issue("CN=first", "localhost", days=90)
    text = (
        f"router {{\n id: R\n allowedBindAddresses: *\n}}\n{profile_text(authority, first, uidFormat='n')}"
        "listener {\n host: 127.0.0.1\n port: 0\n}\n"
        "listener {\n host: 127.0.0.1\n port: 0\n sslProfile: p\n clientCert: optional\n idleTimeoutSeconds: 0\n"
        " saslMechanisms: EXTERNAL ANONYMOUS\n}\n"
        "listener {\n host: 127.0.0.1\n port: 0\n idleTimeoutSeconds: 0\n}\n"
        "listener {\n host: 127.0.0.1\n port: 0\n sslProfile: p\n clientCert: required\n}\n"
        "listener {\n host: 127.0.0.1\n port: 0\n http: yes\n}\n"
    )
    (folder / "router").mkdir()
    with running(text, folder / "router") as router, node_of(router.port) as node:
        yield Scene(router, node, authority, authority.issue("CN=alice"), first)


@pytest.fixture
def stack(scene: Scene) -> Iterator[ExitStack]:
    """Yield a stack that closes at the end what a test has opened."""
    with ExitStack() as scene.stack:
        yield scene.stack


# --- the columns of a connection

IN_CLEAR = {"isEncrypted": False, "sslProto": None, "sslCipher": None, "sslSsf": 0, "ssl": False}
#: The user, whether by a certificate, the mechanism, and the connection's row.
WHO = {
    "external": ("alice", "EXTERNAL", ("EXTERNAL", True, "alice")),
    "anonymous within TLS": (None, "ANONYMOUS", ("ANONYMOUS", False, "anonymous")),
    "anonymous with a certificate": ("alice", "ANONYMOUS", ("ANONYMOUS", False, "anonymous")),
    "a certificate without SASL": ("alice", "", (None, False, "CN=alice")),
}


@pytest.mark.usefixtures("stack")
@pytest.mark.parametrize(("client", "mechanism", "shown"), WHO.values(), ids=WHO)
def test_management_shows_the_tls_and_the_user_of_a_connection(
    scene: Scene, client: str | None, mechanism: str, shown: tuple[object, ...]
) -> None:
    port = scene.router.ports[1 if mechanism else 3]
    sock = scene.stack.enter_context(socket.create_connection(("127.0.0.1", port), DEADLINE_S))
    context = scene.context(scene.alice if client else None)
    tls = scene.stack.enter_context(context.wrap_socket(sock, server_hostname="localhost"))
    Raw(tls, mechanism, "who")
    cipher, _, bits = tls.cipher() or ("", "", 0)
    row = scene.row("who")
    assert (row.pop("sasl"), row.pop("isAuthenticated"), row.pop("user")) == shown
    assert row == {"isEncrypted": True, "sslProto": "TLSv1.3", "sslCipher": cipher, "sslSsf": bits, "ssl": True}
    line = scene.router.wait_for_line(rf"Connection Opened: dir=in host={':'.join(map(str, tls.getsockname()))} .*")[0]
    assert f"encrypted=TLSv1.3 auth={mechanism or 'no'} user={shown[2]} " in line


@pytest.mark.usefixtures("stack")
def test_management_shows_that_there_is_no_tls(scene: Scene) -> None:
    sock = scene.stack.enter_context(socket.create_connection(("127.0.0.1", scene.router.ports[2]), DEADLINE_S))
    Raw(sock, "ANONYMOUS", "clear")
    row = scene.row("clear")
    assert (row.pop("sasl"), row.pop("isAuthenticated"), row.pop("user")) == ("ANONYMOUS", False, "anonymous")
    assert row == IN_CLEAR


# --- UPDATE: R-2.1b, R-2.1c


@pytest.mark.usefixtures("stack")
def test_an_update_renews_the_certificate_and_leaves_connections_alone(scene: Scene) -> None:
    old = Raw(scene.tls(scene.alice), "EXTERNAL")
    second = scene.authority.issue("CN=second", "localhost", days=60)
    scene.update(cert_file=str(second.cert), private_key_file=str(second.key))
    with scene.stack:
        assert scene.tls().getpeercert(binary_form=True) == second.certificate.public_bytes(Encoding.DER)
        old.round_trip()
        assert metric(scene) == second.certificate.not_valid_after_utc.timestamp()


def test_an_update_that_cannot_be_used_changes_nothing(scene: Scene) -> None:
    before = scene.shown()
    third = scene.authority.issue("CN=third", "localhost")
    status, why = scene.node.refused("UPDATE", {"certFile": str(third.cert)}, type=PROFILE, name="p")
    assert status == 400
    assert "privateKeyFile" in why
    assert scene.shown() == before
    assert scene.node.get("READ", type=PROFILE, name="p")["certFile"] != str(third.cert)


@pytest.mark.usefixtures("stack")
def test_older_generations_are_closed_when_they_are_valid_no_longer(scene: Scene) -> None:
    old = Raw(scene.tls(), "ANONYMOUS", "old")
    scene.update(ordinal=1)
    new = Raw(scene.tls(), "ANONYMOUS", "new")
    old.round_trip()
    status, why = scene.node.refused("UPDATE", {"oldestValidOrdinal": 2}, type=PROFILE, name="p")
    assert (status, "oldestValidOrdinal" in why) == (400, True)
    old.round_trip()
    scene.update(oldest_valid_ordinal=1)
    closed = old.closed()
    assert closed.error is not None
    assert (closed.error.condition, closed.error.description) == (
        "amqp:connection:forced",
        "the sslProfile of this connection is no longer valid",
    )
    new.round_trip()
    up = [each for each in scene.node.query(CONNECTION) if each["operStatus"] == "up"]
    assert [each["container"] for each in up if each["ssl"]] == ["new"]


# --- unusable profiles are refused, by CREATE and at the start: R-2.1a, R-2.2f, R-2.3a, 2.4

BROKEN: dict[str, tuple[str, dict[str, str], str]] = {
    "a certificate that is not there": ("sslProfile", {"certFile": "/nowhere"}, "certFile"),
    "a certificate without its key": ("sslProfile", {"certFile": "{first.cert}"}, "privateKeyFile"),
    "the key of another": (
        "sslProfile",
        {"certFile": "{first.cert}", "privateKeyFile": "{alice.key}"},
        "privateKeyFile",
    ),
    "no cipher": (
        "sslProfile",
        {"certFile": "{first.cert}", "privateKeyFile": "{first.key}", "ciphers": "aNULL"},
        "ciphers",
    ),
    "no protocol": ("sslProfile", {"protocols": "T"}, "protocols"),
    "no authority": ("sslProfile", {"caCertFile": "{alice.key}"}, "caCertFile"),
    "an unknown profile": ("listener", {"sslProfile": "nobody"}, "sslProfile"),
    "TLS required without a profile": ("listener", {"requireSsl": "yes"}, "requireSsl"),
    "encryption required without a profile": ("listener", {"requireEncryption": "yes"}, "requireEncryption"),
    "EXTERNAL of a connector without a profile": ("connector", {"saslMechanisms": "EXTERNAL"}, "saslMechanisms"),
    "client certificates without a profile": ("listener", {"clientCert": "required"}, "clientCert"),
    "EXTERNAL without certificates": (
        "listener",
        {"sslProfile": "p", "saslMechanisms": "EXTERNAL", "clientCert": "none"},
        "clientCert",
    ),
    "EXTERNAL without authorities": ("listener", {"sslProfile": "bare", "saslMechanisms": "EXTERNAL"}, "caCertFile"),
    "a listener without a certificate": ("listener", {"sslProfile": "trust"}, "certFile"),
    "an unknown profile of a service": (
        "authServicePlugin",
        {"host": "127.0.0.1", "sslProfile": "nobody"},
        "sslProfile",
    ),
    "an unknown profile of a connector": ("connector", {"host": "127.0.0.1", "sslProfile": "nobody"}, "sslProfile"),
}


def written(scene: Scene, attributes: dict[str, str]) -> dict[str, str]:
    return {key: value.format(first=scene.first, alice=scene.alice) for key, value in attributes.items()}


@pytest.fixture(scope="module")
def _profiles(scene: Scene) -> None:
    pair = {"certFile": str(scene.first.cert), "privateKeyFile": str(scene.first.key)}
    scene.node.create(PROFILE, {"name": "bare", **pair})
    scene.node.create(PROFILE, {"name": "trust", "caCertFile": str(scene.authority.file)})


@pytest.mark.usefixtures("_profiles")
@pytest.mark.parametrize(("section", "attributes", "named"), BROKEN.values(), ids=BROKEN)
def test_an_unusable_profile_or_listener_is_refused_when_created(
    scene: Scene, section: str, attributes: dict[str, str], named: str
) -> None:
    place = {"host": "127.0.0.1", "port": "0"} if section == "listener" else {}
    status, why = scene.node.refused(
        "CREATE", {"name": "broken", **place, **written(scene, attributes)}, type=f"org.apache.qpid.dispatch.{section}"
    )
    assert status == 400, why
    assert named in why
    names = {each["name"] for each in scene.node.query(f"org.apache.qpid.dispatch.{section}")}
    assert "broken" not in names


def test_a_profile_is_deleted_when_no_entity_uses_it(scene: Scene) -> None:
    status, why = scene.node.refused("DELETE", type=PROFILE, name="p")
    assert status == 400
    assert why == "listener/127.0.0.1:0 (2) uses this sslProfile; UPDATE changes it in its place"
    scene.node.create(PROFILE, {"name": "idle", "caCertFile": str(scene.authority.file)})
    scene.node.get("DELETE", type=PROFILE, name="idle")
    assert scene.shown() is not None


def test_unusable_profiles_end_the_start_under_secure_defaults(scene: Scene, tmp_path: Path) -> None:
    """All of them are in one file: each is reported, by its attribute."""
    text = f"router {{ id: R, secureDefaults: yes }}\n{profile_text(scene.authority, scene.first)}"
    text += f"sslProfile {{\n name: bare\n certFile: {scene.first.cert}\n privateKeyFile: {scene.first.key}\n}}\n"
    text += f"sslProfile {{\n name: trust\n caCertFile: {scene.authority.file}\n}}\n"
    for section, attributes, _ in (BROKEN["the key of another"], BROKEN["no cipher"]):
        lines = "\n ".join(f"{key}: {value}" for key, value in written(scene, attributes).items())
        text += f"{section} {{\n name: broken-{len(text)}\n {lines}\n}}\n"
    for number, name in enumerate(("bare", "trust")):
        text += f"listener {{\n host: 127.0.0.{number + 2}\n port: 0\n sslProfile: {name}\n clientCert: required\n}}\n"
    with process(text, tmp_path) as router:
        assert router.wait() == 1
        for attribute in ("privateKeyFile", "ciphers", "caCertFile", "certFile"):
            assert router.matching(rf"\(critical\).* {attribute}: "), router.text()
        assert not router.ports


# --- the metric: 8.4


def metric(scene: Scene) -> float:
    port = int(scene.router.wait_for_line(r"Listening for HTTP on \S+:(\d+)")[1])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)
    with suppress(ConnectionError):
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
    connection.close()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    found = {each.labels["ssl_profile"]: each.value for each in families["trouter_tls_cert_not_after_seconds"].samples}
    return found["p"]


def test_the_end_of_the_certificate_is_a_metric(scene: Scene) -> None:
    pair = scene.authority.issue("CN=metered", "localhost", days=45)
    scene.update(cert_file=str(pair.cert), private_key_file=str(pair.key))
    assert metric(scene) == pair.certificate.not_valid_after_utc.timestamp()
