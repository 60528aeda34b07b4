"""The certificate, and the tenant, by the name that a client asks for in TLS."""

from __future__ import annotations

import re
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import trio
from cryptography import x509
from proton import SSLDomain
from proton.utils import BlockingConnection

from tests.management.node import node_of
from tests.proton_build import WITH_TLS
from tests.routers import RunningRouter, running
from tests.tls.pki import Authority, Pair
from trouter.client import ConnectionClosed, connect

pytestmark = pytest.mark.attack

DEADLINE_S = 60.0
SASL_HEADER = b"AMQP\x03\x01\x00\x00"
PORTS = ("plain", "lenient", "strict", "tenants", "mutual")


class Scene(NamedTuple):
    router: RunningRouter
    authority: Authority
    folder: Path
    pairs: dict[str, Pair]

    def port(self, name: str) -> int:
        return self.router.ports[PORTS.index(name)]

    def context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.authority.file))
        context.check_hostname = False
        return context

    def served(self, port: str, name: str | None) -> str:
        """Return the common name of the certificate that a client gets who asks for a name."""
        with (
            socket.create_connection(("127.0.0.1", self.port(port)), DEADLINE_S) as sock,
            self.context().wrap_socket(sock, server_hostname=name) as secured,
        ):
            certificate = x509.load_der_x509_certificate(secured.getpeercert(binary_form=True) or b"")
        return certificate.subject.rfc4514_string().removeprefix("CN=")

    def answer(self, name: str | None, shown: Pair) -> bytes:
        """Return how the mutual listener answers the SASL header of a client that shows a certificate."""
        context = self.context()
        context.load_cert_chain(shown.cert, shown.key)
        with (
            socket.create_connection(("127.0.0.1", self.port("mutual")), DEADLINE_S) as sock,
            context.wrap_socket(sock, server_hostname=name) as secured,
        ):
            secured.sendall(SASL_HEADER)
            return secured.recv(len(SASL_HEADER))


def install(folder: Path, name: str, pair: Pair) -> None:
    """Put a certificate and its key where the profile has them."""
    (folder / f"{name}.key").write_bytes(pair.key.read_bytes())
    (folder / f"{name}.pem").write_bytes(pair.cert.read_bytes())


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("sni")
    authority = Authority(folder)
    pairs = {
        "own": authority.issue("CN=own", "localhost"),
        "a": authority.issue("CN=a", "a.example", "b.example"),
        "wild": authority.issue("CN=wild", "*.tenants.example"),
        "named": authority.issue("CN=named", "elsewhere.example"),
    }
    for name, pair in pairs.items():
        install(folder, name, pair)
    lines = ["router { id: R }", "address { prefix: t1.tenants.example/news, distribution: multicast }"]
    for name in pairs:
        extra = " serverNames: c.example, *.many.example\n" if name == "named" else ""
        files = f" certFile: {folder}/{name}.pem\n privateKeyFile: {folder}/{name}.key\n"
        lines.append(f"sslProfile {{\n name: {name}\n{files}{extra}}}")
        if name == "own":
            lines.append(f"sslProfile {{\n name: mutual\n{files} caCertFile: {authority.file}\n}}")
    listeners = (
        "saslMechanisms: ANONYMOUS",
        "sslProfile: own, sniProfiles: a wild named, saslMechanisms: ANONYMOUS",
        "sslProfile: own, sniProfiles: a wild named, strictSni: yes, saslMechanisms: ANONYMOUS",
        "sslProfile: own, sniProfiles: wild, multiTenant: yes, hostnameFromSni: yes, saslMechanisms: ANONYMOUS",
        "sslProfile: mutual, sniProfiles: a wild named, saslMechanisms: EXTERNAL, authenticatePeer: yes",
    )
    lines += [
        f"listener {{\n host: 127.0.0.1\n port: 0\n {each.replace(', ', chr(10) + ' ')}\n}}" for each in listeners
    ]
    text = "\n".join(lines).replace("a wild named", "a, wild, named") + "\n"
    with running(text, folder) as router:
        yield Scene(router, authority, folder, pairs)


@pytest.mark.parametrize(
    ("name", "served"),
    [
        ("a.example", "a"),
        ("b.example", "a"),
        ("A.Example", "a"),
        ("one.tenants.example", "wild"),
        ("c.example", "named"),
        ("x.many.example", "named"),
        ("localhost", "own"),
    ],
)
@pytest.mark.parametrize("port", ["lenient", "strict"])
def test_the_certificate_is_that_of_the_name(scene: Scene, port: str, name: str, served: str) -> None:
    assert scene.served(port, name) == served


@pytest.mark.parametrize(
    "name", ["unknown.example", "two.labels.tenants.example", "tenants.example", "elsewhere.example", None]
)
def test_another_name_gets_the_listeners_own(scene: Scene, name: str | None) -> None:
    assert scene.served("lenient", name) == "own"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("unknown.example", r"TLS: no certificate is for the name 'unknown\.example'"),
        (None, "TLS: the client asked for no server name"),
        ("x" * 60 + "." + "y" * 60 + ".example", r"TLS: no certificate is for the name 'x{60}\.y{39}'"),
    ],
)
def test_a_strict_listener_refuses_it_with_the_alert_and_a_line(scene: Scene, name: str | None, said: str) -> None:
    with pytest.raises(ssl.SSLError, match="UNRECOGNIZED_NAME"):
        scene.served("strict", name)
    scene.router.wait_for_line(rf"failed: {said}$")


@pytest.mark.parametrize("name", ["a.example", "one.tenants.example", "localhost", None])
def test_a_client_shows_its_certificate_whatever_name_it_asks_for(scene: Scene, name: str | None) -> None:
    assert scene.answer(name, scene.authority.issue("CN=client")) == SASL_HEADER


@pytest.mark.parametrize("name", ["a.example", "one.tenants.example", "localhost", None])
def test_a_certificate_of_another_authority_is_refused_whatever_the_name(
    scene: Scene, name: str | None, tmp_path: Path
) -> None:
    with pytest.raises(ssl.SSLError, match=r"UNKNOWN_CA|DECRYPT_ERROR"):
        scene.answer(name, Authority(tmp_path).issue("CN=client"))


def test_a_name_that_is_no_text_is_refused_with_one_line(scene: Scene) -> None:
    client, _, out = ssl.create_default_context(), ssl.MemoryBIO(), ssl.MemoryBIO()
    client.check_hostname = False
    with pytest.raises(ssl.SSLWantReadError):
        client.wrap_bio(ssl.MemoryBIO(), out, server_hostname="unprintable.example").do_handshake()
    hello = out.read().replace(b"unprintable", b"unpr\xff\x1bn\xfeble")
    before = len(scene.router.lines)
    with socket.create_connection(("127.0.0.1", scene.port("lenient")), DEADLINE_S) as sock:
        sock.sendall(hello)
        assert sock.recv(7)[:1] == b"\x15"  # an alert
    scene.router.wait_for_line("failed: TLS: the client asked for a server name that is no text$")
    lines = [line for line in scene.router.lines[before:] if "Accepted connection" not in line]
    assert len(lines) == 1, lines


def test_openssl_gets_the_certificate_of_its_name(scene: Scene) -> None:
    ran = subprocess.run(
        ["openssl", "s_client", "-connect", f"127.0.0.1:{scene.port('strict')}", "-servername", "a.example",
         "-CAfile", str(scene.authority.file), "-verify_hostname", "a.example", "-verify_return_error"],
        input=b"", capture_output=True, timeout=DEADLINE_S, check=False,
    )  # fmt: skip
    text = ran.stdout.decode()
    assert re.search(r"subject=\s*CN\s*=\s*a$", text, re.MULTILINE), text
    assert "Verify return code: 0 (ok)" in text


@WITH_TLS
def test_proton_gets_the_certificate_of_its_virtual_host(scene: Scene) -> None:
    domain = SSLDomain(SSLDomain.MODE_CLIENT)
    domain.set_trusted_ca_db(str(scene.authority.file))
    domain.set_peer_authentication(SSLDomain.VERIFY_PEER_NAME)
    url = f"amqps://127.0.0.1:{scene.port('strict')}"
    connection = BlockingConnection(
        url, timeout=DEADLINE_S, ssl_domain=domain, virtual_host="b.example", reconnect=False
    )
    connection.close()


def test_a_renewed_certificate_is_used_for_its_name(scene: Scene) -> None:
    install(scene.folder, "a", scene.authority.issue("CN=renewed", "a.example", "new.example"))
    scene.router.wait_for_line("sslProfile a: new connections use its new files")
    assert scene.served("lenient", "a.example") == "renewed"
    assert scene.served("lenient", "new.example") == "renewed"
    assert scene.served("lenient", "b.example") == "own"
    install(scene.folder, "a", scene.pairs["a"])
    scene.router.wait_for_line("sslProfile a: new connections use its new files", 2)


class Named(ssl.SSLContext):
    """A context of a client that asks for a name of its own choice."""

    name: str | None = None

    def wrap_bio(self, *arguments: Any, **options: Any) -> ssl.SSLObject:
        return super().wrap_bio(*arguments, **{**options, "server_hostname": self.name})


def opened(scene: Scene, name: str | None, hostname: str | None) -> str:
    """Return the tenant of a connection whose TLS asks for one name and whose open has another."""
    context = Named(ssl.PROTOCOL_TLS_CLIENT)
    context.name, context.check_hostname = name, False
    context.load_verify_locations(scene.authority.file)

    async def go() -> str:
        url = f"amqps://127.0.0.1:{scene.port('tenants')}"
        async with (
            connect(url, ssl_context=context, container_id="named", hostname=hostname) as connection,
            connection.open_sender("x"),
        ):
            return await trio.to_thread.run_sync(tenant_of, scene)

    try:
        return trio.run(go)
    except* ConnectionClosed as closed:
        raise closed.exceptions[0] from None


def tenant_of(scene: Scene) -> str:
    with node_of(scene.port("plain")) as node:
        rows = node.query("connection", ["container", "tenant"])
    (tenant,) = [str(row.get("tenant") or "") for row in rows if row["container"] == "named"]
    return tenant


@pytest.mark.parametrize("hostname", ["t1.tenants.example", "T1.Tenants.Example:5671"])
def test_the_tenant_is_that_of_the_name(scene: Scene, hostname: str | None) -> None:
    assert opened(scene, "t1.tenants.example", hostname) == "t1.tenants.example/"


def test_an_open_with_another_hostname_is_refused(scene: Scene) -> None:
    with pytest.raises(ConnectionClosed, match="the hostname of the open is not the name that TLS asked for"):
        opened(scene, "t1.tenants.example", "t2.tenants.example")
    scene.router.wait_for_line("refused: the hostname of the open is not the name that TLS asked for")


def test_without_a_name_in_tls_the_hostname_of_the_open_counts(scene: Scene) -> None:
    assert opened(scene, None, "t2.tenants.example") == "t2.tenants.example/"


def test_a_profile_that_a_listener_uses_by_name_is_not_deleted(scene: Scene) -> None:
    with node_of(scene.port("plain")) as node:
        answer = node.ask("DELETE", type="sslProfile", name="wild")
        assert answer.status == 400
        assert "uses this sslProfile" in answer.description
