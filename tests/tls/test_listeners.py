"""Listeners with TLS, with OpenSSL's client, python-qpid-proton and raw sockets (security.md 1.1, 2.2, 2.4)."""

from __future__ import annotations

import itertools
import os
import re
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.proton_build import WITH_TLS
from tests.routers import RunningRouter, running
from tests.tls.pki import Authority, Pair
from trouter.client import AuthenticationFailed, Message, connect
from trouter.client.sasl import Anonymous, External, SaslMechanism, Scram
from trouter.tls.channel import end_point_binding
from trouter.wire.framing import AMQP_HEADER, FRAME_SASL, SASL_HEADER, TLS_HEADER, FrameReader, frame
from trouter.wire.performatives import (
    Close,
    Open,
    Performative,
    SaslInit,
    SaslMechanisms,
    decode_performative,
    encode_performative,
)
from trouter_plugins.users_file import put_user

DEADLINE_S = 60.0
PORTS = (
    "either", "strict", "external", "plain", "trusted", "mixed", "system", "quick", "old", "scram", "crl", "skip",
    "below",
)  # fmt: skip


@dataclass
class Scene:
    router: RunningRouter
    authority: Authority
    other: Authority
    server: Pair
    alice: Pair
    mallory: Pair
    revoked: Pair

    def port(self, name: str) -> int:
        return self.router.ports[PORTS.index(name)]

    def context(self, client: Pair | None = None, **limits: ssl.TLSVersion) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.authority.file))
        for name, value in limits.items():
            setattr(context, name, value)
        if client is not None:
            context.load_cert_chain(client.cert, client.key)
        return context

    def tls(self, name: str, client: Pair | None = None, **limits: ssl.TLSVersion) -> ssl.SSLSocket:
        sock = socket.create_connection(("127.0.0.1", self.port(name)), DEADLINE_S)
        try:
            return self.context(client, **limits).wrap_socket(sock, server_hostname="localhost")
        except BaseException:
            sock.close()
            raise


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("listeners")
    authority, other = Authority(folder), Authority(folder, "Another Authority")
    server = authority.issue("CN=localhost", "localhost", "127.0.0.1")
    alice = authority.issue("C=US,O=Client,OU=Dev,CN=alice")
    revoked = authority.issue("CN=revoked")
    crl = authority.revoke(revoked.certificate)
    users = folder / "users"
    put_user(users, "bob", b"wonderland")
    users.chmod(0o600)
    common = f"certFile: {server.cert}\n privateKeyFile: {server.key}"
    text = f"""
router {{ id: R, usersFile: {users} }}
sslProfile {{
 name: p
 caCertFile: {authority.file}
 {common}
 uidFormat: on
}}
sslProfile {{
 name: system
 useSystemCA: yes
 {common}
}}
sslProfile {{
 name: old
 protocols: TLSv1.1
 {common}
}}
sslProfile {{
 name: below
 protocols: TLSv1.1
 belowSystemMinimum: yes
 {common}
}}
sslProfile {{
 name: crl
 caCertFile: {authority.file}
 crlFile: {crl}
 {common}
}}
"""
    for attributes in (
        "sslProfile: p, clientCert: optional",
        "sslProfile: p, requireSsl: yes",
        "sslProfile: p, saslMechanisms: EXTERNAL, authenticatePeer: yes",
        "saslMechanisms: ANONYMOUS",
        f"sslProfile: p, trustedCertsFile: {other.file}, clientCert: required",
        "sslProfile: p, saslMechanisms: EXTERNAL ANONYMOUS, clientCert: optional",
        "sslProfile: system, clientCert: required",
        "sslProfile: p, initialHandshakeTimeoutSeconds: 1",
        "sslProfile: old",
        "sslProfile: p, authenticatePeer: yes, requireEncryption: yes",
        "sslProfile: crl, clientCert: required",
        "sslProfile: p, clientCert: required",
        "sslProfile: below",
    ):
        text += "listener {\n host: 127.0.0.1\n port: 0\n " + "\n ".join(attributes.split(", ")) + "\n}\n"
    (folder / "router").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(other.file))  # the authorities of the system
        with running(text, folder / "router") as router:
            yield Scene(router, authority, other, server, alice, other.issue("C=US,O=Client,OU=Dev,CN=alice"), revoked)


def s_client(scene: Scene, name: str, *arguments: str | Path, sent: bytes = b"") -> str:
    """Return the output of OpenSSL's client for a connection on which it sends ``sent`` and ends."""
    where = f"127.0.0.1:{scene.port(name)}"
    command = ["openssl", "s_client", "-connect", where, "-CAfile", str(scene.authority.file)]
    whole = [*command, *map(str, arguments)]
    done = subprocess.run(whole, input=sent, capture_output=True, timeout=DEADLINE_S, check=False)
    return (done.stdout + done.stderr).decode(errors="replace")


def read_all(sock: socket.socket) -> bytes:
    """Return everything up to the end."""
    content = b""
    with suppress(ConnectionResetError, ssl.SSLError):
        while data := sock.recv(65536):
            content += data
    return content


def performatives(content: bytes) -> list[Performative]:
    reader = FrameReader(65536)
    reader.add_bytes(content)
    found = []
    while reader.next_frame():
        found.append(decode_performative(reader.data, reader.start, reader.end)[0])
    return found


def offered(sock: socket.socket) -> tuple[str, ...]:
    """Return the mechanisms of a listener."""
    sock.sendall(SASL_HEADER)
    content = b""
    while len(content) < 12 or len(content) < 8 + int.from_bytes(content[8:12], "big"):
        data = sock.recv(4096)
        if not data:
            raise EOFError
        content += data
    (mechanisms,) = performatives(content.removeprefix(SASL_HEADER))
    assert isinstance(mechanisms, SaslMechanisms)
    return mechanisms.sasl_server_mechanisms


# --- versions and ciphers: R-2.2a, R-2.2c

HANDSHAKES = {
    "TLS 1.0": ("either", ["-tls1", "-cipher", "ALL:@SECLEVEL=0"], False),
    "TLS 1.1": ("either", ["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"], False),
    "TLS 1.2": ("either", ["-tls1_2"], True),
    "TLS 1.3": ("either", ["-tls1_3"], True),
    "TLS 1.1 where it is named": ("old", ["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"], False),
    "TLS 1.1 below what the machine allows": ("below", ["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"], True),
    "TLS 1.2 where it is not named": ("old", ["-tls1_2"], False),
    "no certificate": ("either", ["-tls1_2", "-cipher", "aNULL:@SECLEVEL=0"], False),
    "no encryption": ("either", ["-tls1_2", "-cipher", "eNULL:@SECLEVEL=0"], False),
    "no certificate, old": ("old", ["-tls1_1", "-cipher", "aNULL:@SECLEVEL=0"], False),
}


@pytest.mark.parametrize(("name", "arguments", "agreed"), HANDSHAKES.values(), ids=HANDSHAKES)
def test_each_client_agrees_on_tls_or_fails_as_listed(
    scene: Scene, name: str, arguments: list[str], agreed: bool
) -> None:
    output = s_client(scene, name, *arguments)
    assert ("Cipher is (NONE)" not in output and "Cipher is" in output) == agreed, output


def test_no_client_renegotiates(scene: Scene) -> None:
    command = ["openssl", "s_client", "-connect", f"127.0.0.1:{scene.port('quick')}", "-tls1_2"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as client:
        output, _ = client.communicate(b"R\n", DEADLINE_S)
    assert b"RENEGOTIATING" in output
    assert re.search(b"unexpected eof|no renegotiation", output.partition(b"RENEGOTIATING")[2])  # it had no effect


# --- one port for all protocols: 1.1, R-1.1b, R-1.4b, R-1.6b


def test_amqps_own_header_for_tls_begins_tls(scene: Scene) -> None:
    with socket.create_connection(("127.0.0.1", scene.port("strict")), DEADLINE_S) as sock:
        sock.sendall(TLS_HEADER)
        with scene.context().wrap_socket(sock, server_hostname="localhost") as tls:
            assert "ANONYMOUS" in offered(tls)


@pytest.mark.parametrize("pieces", [1, 3])
def test_a_hello_may_come_in_pieces(scene: Scene, pieces: int) -> None:
    arrived, leaving = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = scene.context().wrap_bio(arrived, leaving, server_hostname="localhost")
    with socket.create_connection(("127.0.0.1", scene.port("either")), DEADLINE_S) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while True:
            try:
                tls.do_handshake()
            except ssl.SSLWantReadError:
                content = leaving.read()
                for at in range(0, len(content), pieces):
                    sock.sendall(content[at : at + pieces])
                arrived.write(sock.recv(65536))
            else:
                break
    assert tls.version() == "TLSv1.3"


def test_the_same_port_takes_clear_text(scene: Scene) -> None:
    with socket.create_connection(("127.0.0.1", scene.port("either")), DEADLINE_S) as sock:
        assert "ANONYMOUS" in offered(sock)


@pytest.mark.parametrize("content", [b"\x16\x03\x01\x02\x00\x01\x00\x01", TLS_HEADER])
def test_a_tls_client_at_a_plain_listener_gets_no_answer(scene: Scene, content: bytes) -> None:
    with socket.create_connection(("127.0.0.1", scene.port("plain")), DEADLINE_S) as sock:
        sock.sendall(content)
        assert read_all(sock) == b""
        where = ":".join(map(str, sock.getsockname()))
        scene.router.wait_for_line(rf"Connection from {where} \(to .*\) failed: .*tls-not-configured")


@pytest.mark.parametrize("name", ["strict", "scram"])
def test_clear_text_where_tls_is_required_is_refused_with_that_reason(scene: Scene, name: str) -> None:
    with socket.create_connection(("127.0.0.1", scene.port(name)), DEADLINE_S) as sock:
        sock.sendall(AMQP_HEADER + frame(0, encode_performative(Open("x"))))
        content = read_all(sock)
    assert content.startswith(AMQP_HEADER)
    opened, closed = performatives(content.removeprefix(AMQP_HEADER))
    assert isinstance(opened, Open)
    assert isinstance(closed, Close)
    assert closed.error is not None
    assert closed.error.condition == "amqp:connection:policy-error"
    assert closed.error.description == "Client connection unencrypted - forbidden"


@pytest.mark.parametrize("name", ["strict", "scram"])
def test_no_password_mechanism_is_offered_in_clear_where_tls_is_required(scene: Scene, name: str) -> None:
    password = frame(0, encode_performative(SaslInit("PLAIN", b"\0bob\0wonderland")), FRAME_SASL)
    with socket.create_connection(("127.0.0.1", scene.port(name)), DEADLINE_S) as sock:
        sock.sendall(SASL_HEADER + password)
        assert read_all(sock) == TLS_HEADER


@pytest.mark.parametrize("sent", [b"", b"\x16", b"\x16\x03\x01\x02\x00\x01\x00", b"AMQP\x02"])
def test_a_peer_that_stops_in_the_handshake_is_disconnected(scene: Scene, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", scene.port("quick")), DEADLINE_S) as sock:
        sock.sendall(sent)
        assert read_all(sock) == b""
        where = ":".join(map(str, sock.getsockname()))
        scene.router.wait_for_line(rf"Connection from {where} \(to .*\) failed: timed out: no open within 1 s")


def test_garbage_in_the_handshake_ends_this_connection_only(scene: Scene) -> None:
    with scene.tls("either") as stays, socket.create_connection(("127.0.0.1", scene.port("either"))) as sock:
        sock.settimeout(DEADLINE_S)
        sock.sendall(b"\x16\x03\x01\x00\x05hello" * 10)
        read_all(sock)
        assert "ANONYMOUS" in offered(stays)


# --- client certificates: 1.2, 2.4, R-2.2b, R-2.4

CERTIFICATES = {
    "no certificate where one is required": ("external", None, None),
    "ours where one is required": ("external", "alice", ("EXTERNAL",)),
    "another authority's": ("external", "mallory", None),
    "no certificate where one is possible": ("mixed", None, ("ANONYMOUS",)),
    "ours where one is possible": ("mixed", "alice", ("EXTERNAL", "ANONYMOUS")),
    "another authority's where one is possible": ("mixed", "mallory", None),
    "ours where none is asked for": ("strict", "alice", ("ANONYMOUS",)),
    "ours where others are trusted": ("trusted", "alice", None),
    "theirs where they are trusted": ("trusted", "mallory", ("EXTERNAL", "ANONYMOUS")),
    "the system's where the system is trusted": ("system", "mallory", ("EXTERNAL", "ANONYMOUS")),
    "ours where only the system is trusted": ("system", "alice", None),
    "one that is not revoked": ("crl", "alice", ("EXTERNAL", "ANONYMOUS")),
    "one that is revoked": ("crl", "revoked", None),
}


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize(("name", "client", "mechanisms"), CERTIFICATES.values(), ids=CERTIFICATES)
def test_each_client_certificate_gives_its_mechanisms(
    scene: Scene, name: str, client: str | None, mechanisms: tuple[str, ...] | None, version: ssl.TLSVersion
) -> None:
    pair = getattr(scene, client) if client else None
    try:
        with scene.tls(name, pair, maximum_version=version) as tls:
            found = {each for each in offered(tls) if each in {"EXTERNAL", "ANONYMOUS"}}
    except (OSError, EOFError):
        found = None
    assert found == (None if mechanisms is None else set(mechanisms))


def test_two_certificates_of_one_serial_and_issuer_are_distinguished_by_the_signature(scene: Scene) -> None:
    forged = Authority(scene.other.folder, "Test Authority").issue("C=US,O=Client,OU=Dev,CN=alice")
    with pytest.raises((OSError, EOFError)), scene.tls("external", forged) as tls:
        assert offered(tls)


# --- the user: 1.4, 1.5, 2.3


async def opened_as(scene: Scene, name: str, client: Pair | None, *sasl: SaslMechanism) -> str:
    """Return the line of the log about a connection."""
    before = len(scene.router.matching("Connection Opened"))
    url = f"amqps://localhost:{scene.port(name)}"
    async with (
        connect(url, ssl_context=scene.context(client), sasl=sasl) as connection,
        connection.open_receiver("q") as receiver,
        connection.open_sender("q") as sender,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(sender.send, Message(bytes(range(256)) * 4000))
        delivery = await receiver.receive()
        assert delivery.message.body == bytes(range(256)) * 4000
        await delivery.accept()
    return scene.router.wait_for_line("Connection Opened.*", before + 1)[0]


async def test_external_makes_the_user_of_the_certificate(scene: Scene) -> None:
    output = await opened_as(scene, "external", scene.alice, External())
    assert "encrypted=TLSv1.3 auth=EXTERNAL user=Client;alice " in output


async def test_anonymous_with_a_certificate_stays_anonymous(scene: Scene) -> None:
    assert "auth=ANONYMOUS user=anonymous " in await opened_as(scene, "mixed", scene.alice, Anonymous())


async def test_a_client_that_skips_sasl_is_the_subject_of_its_certificate(scene: Scene) -> None:
    assert "auth=no user=CN=alice,OU=Dev,O=Client,C=US " in await opened_as(scene, "skip", scene.alice)


async def test_a_client_that_requests_another_user_is_refused(scene: Scene) -> None:
    with pytest.raises(AuthenticationFailed):
        await opened_as(scene, "external", scene.alice, External("root"))


async def test_external_without_a_certificate_stays_out(scene: Scene) -> None:
    with pytest.raises(AuthenticationFailed):
        await opened_as(scene, "mixed", None, External())


@pytest.mark.parametrize("kind", ["tls-server-end-point", "tls-unique"])
async def test_scram_is_bound_to_the_channel(scene: Scene, kind: str) -> None:
    with scene.tls("scram", maximum_version=ssl.TLSVersion.TLSv1_2) as tls:
        assert {"SCRAM-SHA-256-PLUS", "SCRAM-SHA-512-PLUS"} <= set(offered(tls))
        data = tls.get_channel_binding("tls-unique") if kind == "tls-unique" else b""
    end_point = end_point_binding(scene.server.certificate)
    assert len(end_point) == 32
    right = Scram("SCRAM-SHA-256-PLUS", "bob", "wonderland", ("tls-server-end-point", end_point))
    assert "auth=SCRAM-SHA-256-PLUS user=bob " in await opened_as(scene, "scram", None, right)
    elsewhere = data or b"\0" * 32  # of another connection, or another server
    with pytest.raises(AuthenticationFailed):
        await opened_as(scene, "scram", None, Scram("SCRAM-SHA-256-PLUS", "bob", "wonderland", (kind, elsewhere)))


@WITH_TLS
def test_proton_comes_in_with_its_certificate(scene: Scene) -> None:
    from proton import SSLDomain
    from proton.utils import BlockingConnection

    domain = SSLDomain(SSLDomain.MODE_CLIENT)
    domain.set_trusted_ca_db(str(scene.authority.file))
    domain.set_credentials(str(scene.alice.cert), str(scene.alice.key), None)
    domain.set_peer_authentication(SSLDomain.VERIFY_PEER_NAME, str(scene.authority.file))
    before = len(scene.router.matching("Connection Opened"))
    connection: Any = BlockingConnection(
        f"amqps://localhost:{scene.port('external')}", ssl_domain=domain, allowed_mechs="EXTERNAL", timeout=DEADLINE_S
    )
    try:
        output = scene.router.wait_for_line("Connection Opened.*", before + 1)[0]
    finally:
        connection.close()
    assert "auth=EXTERNAL user=Client;alice " in output


# --- resumption, changes of keys


@pytest.mark.parametrize("version", ["-tls1_2", "-tls1_3"])
@pytest.mark.parametrize("name", ["strict", "either", "external"])
def test_a_session_can_be_resumed_where_no_certificates_are_shown(
    scene: Scene, name: str, version: str, tmp_path: Path
) -> None:
    then = "Reused" if name == "strict" else "New"
    session = tmp_path / "session"
    client: list[str | Path] = ["-cert", scene.alice.cert, "-key", scene.alice.key, "-ign_eof", version]
    sent = SASL_HEADER + frame(0, encode_performative(SaslInit("X")), FRAME_SASL)  # ends it, tickets read
    assert "New, TLS" in s_client(scene, name, *client, "-sess_out", session, sent=sent)
    if session.exists() or then == "Reused":  # in TLS 1.3 a server without tickets gives no session
        assert f"{then}, TLS" in s_client(scene, name, *client, "-sess_in", session, sent=sent)


def some(client: subprocess.Popen[bytes]) -> bytes:
    """Return the next output; raise EOFError at the end."""
    assert client.stdout is not None
    data = os.read(client.stdout.fileno(), 65536)
    if not data:
        raise EOFError
    return data


def changing_keys(client: subprocess.Popen[bytes]) -> Iterator[None]:
    """Make OpenSSL's client change its keys, once a step; end when the router has cut it off."""
    assert client.stdin is not None
    output = b""
    for number in itertools.count(1):
        try:
            client.stdin.write(b"k\n")
            while output.count(b"KEYUPDATE") < number:
                output += some(client)
        except (BrokenPipeError, EOFError):
            return
        yield


@pytest.mark.parametrize("stays", [True, False])
def test_keys_cannot_be_changed_for_ever(scene: Scene, stays: bool) -> None:
    """Sixteen changes are let through. A client that goes on is cut off.

    How many it asks for by then is its own affair: it makes one of several changes when the first has not left
    before the others are requested.
    """
    command = ["openssl", "s_client", "-connect", f"127.0.0.1:{scene.port('either')}", "-tls1_3"]
    pipe = subprocess.PIPE  # not buffered: after its end the client is sent nothing again
    with subprocess.Popen(command, bufsize=0, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT) as client:
        assert client.stdin is not None
        output = b""
        while b"Verify return code" not in output:
            output += some(client)
        changes = changing_keys(client)
        if stays:
            assert len(list(itertools.islice(changes, 16))) == 16
            client.stdin.write(SASL_HEADER)
            while SASL_HEADER not in output:
                output += some(client)
        else:
            for _ in changes:
                pass
            scene.router.wait_for_line("failed: more than 16 changes of keys or empty records in a minute")
        client.kill()
