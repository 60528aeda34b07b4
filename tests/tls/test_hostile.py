"""Hostile peers within TLS: certificates that cannot be read, sessions of another host, floods."""

from __future__ import annotations

import hmac
import shutil
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding

from tests.routers import DEADLINE_S, RunningRouter, running
from tests.tls.pki import DAY, Authority, Pair
from trouter.cli import main
from trouter.config import Configuration, SslProfileEntity, load
from trouter.config.facts import listener_facts
from trouter.connections.registry import Connections
from trouter.hooks import PeerFacts, Plugins
from trouter.telemetry.recorder import Recorder
from trouter.tls.contexts import ServerUse
from trouter.tls.loaded import load as load_profile
from trouter.tls.problems import TlsFailed, TlsProblem
from trouter.tls.secure import Resumable, Secure, SecurityLayer, resumable
from trouter.wire.framing import SASL_HEADER

pytestmark = pytest.mark.attack


@contextmanager
def server(pair: Pair, maximum: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> Iterator[int]:
    """Run a server that completes each TLS handshake and reads to the end; yield its port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.maximum_version = maximum
    context.load_cert_chain(pair.cert, pair.key)
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                sock, _ = listening.accept()
            except OSError:
                return
            with suppress(OSError), context.wrap_socket(sock, server_side=True) as tls:
                while tls.recv(65536):
                    pass

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join(DEADLINE_S)


def calling(authority: Authority, port: int) -> Configuration:
    return load(
        text=f"sslProfile {{\n name: p\n caCertFile: {authority.file}\n}}\n"
        f"connector {{\n name: c\n host: localhost\n port: {port}\n sslProfile: p\n}}\n"
        "listener {\n port: 0\n}\n"
    )


async def test_a_session_is_resumed_only_with_its_own_host(tmp_path: Path) -> None:
    """A resumed handshake shows no certificate: with the session of another host, that host would pass for this one."""
    authority = Authority(tmp_path)
    other = authority.issue("CN=other", "other.example")
    with server(other, ssl.TLSVersion.TLSv1_2) as port:
        configuration = calling(authority, port)
        (entity,), (listener,) = configuration.connectors, configuration.listeners
        facts = PeerFacts(1, listener_facts(listener), "127.0.0.1", port, encrypted=False, loopback=True)
        secure = Secure(Plugins(), Connections(), Recorder())
        (await secure.prepare(configuration)).apply()

        async def call(host: str, known: Resumable | None) -> SecurityLayer:
            with socket.create_connection(("127.0.0.1", port), DEADLINE_S) as sock:
                sock.setblocking(False)
                return (await secure.dial(sock, facts, entity, host, known))[1]

        known = resumable("other.example", await call("other.example", None))
        again = await call("other.example", known)
        assert again.channel is not None
        assert again.channel.resumed
        with pytest.raises(TlsFailed, match="is not for"):
            await call("localhost", known)


@pytest.mark.parametrize("forgets", [False, True])
async def test_a_server_that_resumes_its_session_is_verified_with_its_issuers(tmp_path: Path, forgets: bool) -> None:
    """Only the session that was there before knows the intermediate authority, which the server had shown."""
    root = Authority(tmp_path)
    between = Authority(tmp_path, "Between", root)
    now = [time.time()]
    with server(between.issue("CN=localhost", "localhost", days=900), ssl.TLSVersion.TLSv1_2) as port:
        configuration = calling(root, port)
        (entity,), (listener,) = configuration.connectors, configuration.listeners
        facts = PeerFacts(1, listener_facts(listener), "127.0.0.1", port, encrypted=False, loopback=True)
        secure = Secure(Plugins(), Connections(), Recorder(), lambda: now[0])
        (await secure.prepare(configuration)).apply()
        known: Resumable | None = None
        for resumed in (False, True, True):
            with socket.create_connection(("127.0.0.1", port), DEADLINE_S) as sock:
                sock.setblocking(False)
                security = (await secure.dial(sock, facts, entity, "localhost", known))[1]
            assert security.channel is not None
            assert security.channel.resumed is resumed
            assert len(security.certificates.chain) == 3
            known = resumable("localhost", security)
        assert known is not None
        if forgets:
            known = replace(known, chain=known.chain[:1])
        else:
            now[0] += 500 * DAY.total_seconds()
        with socket.create_connection(("127.0.0.1", port), DEADLINE_S) as sock:
            sock.setblocking(False)
            with pytest.raises(TlsFailed, match="no authority that is trusted now" if forgets else "has expired"):
                await secure.dial(sock, facts, entity, "localhost", known)


# --- certificates that OpenSSL accepts but that cannot be read


def der(tag: int, *parts: bytes) -> bytes:
    body = b"".join(parts)
    size = len(body).to_bytes((len(body).bit_length() + 7) // 8 or 1, "big")
    return bytes([tag]) + (bytes([len(body)]) if len(body) < 128 else bytes([0x80 | len(size)]) + size) + body


def patched(authority: Authority, pair: Pair, old: bytes, new: bytes) -> Pair:
    """Return a certificate with changed bytes, signed again by its authority."""
    tbs = pair.certificate.tbs_certificate_bytes
    assert tbs.count(old) == 1
    assert len(old) == len(new)
    pair.cert.write_text(ssl.DER_cert_to_PEM_cert(signed(authority, tbs.replace(old, new))))
    return pair


def signed(authority: Authority, content: bytes) -> bytes:
    """Return what an authority has signed, in DER."""
    algorithm = bytes.fromhex("300a06082a8648ce3d040302")  # ecdsa-with-SHA256
    signature = authority.key.sign(content, ec.ECDSA(hashes.SHA256()))
    return der(0x30, content, algorithm, der(0x03, b"\0", signature))


def unreadable(authority: Authority, *sans: str) -> Pair:
    """Return a certificate with a subject that is no text."""
    teletex = b"\x14\x07" + b"\xff" * 7
    return patched(authority, authority.issue("CN=mallory", *sans), b"\x0c\x07mallory", teletex)


def malformed(authority: Authority, *sans: str) -> Pair:
    """Return a certificate that only a strict reader refuses: it encodes the default of a critical flag."""
    pair = authority.issue("CN=mallory", *sans)
    builder = x509.CertificateBuilder(
        authority.subject,
        pair.certificate.subject,
        pair.certificate.public_key(),
        4711,
        pair.certificate.not_valid_before_utc,
        pair.certificate.not_valid_after_utc,
        list(pair.certificate.extensions),
    )
    unknown = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3.4"), b"\x05\x00")
    certificate = builder.add_extension(unknown, critical=True).sign(authority.key, hashes.SHA256())
    critical = bytes.fromhex("06032a03040101ff")
    return patched(authority, pair._replace(certificate=certificate), critical, critical[:-1] + b"\0")


def extended(authority: Authority, pair: Pair, *extensions: tuple[str, bytes]) -> x509.Certificate:
    """Return the certificate of a pair with more extensions."""
    certificate = pair.certificate
    begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    names = authority.subject, certificate.subject
    builder = x509.CertificateBuilder(
        *names, certificate.public_key(), 4712, begins, ends, list(certificate.extensions)
    )
    for oid, octets in extensions:
        builder = builder.add_extension(x509.UnrecognizedExtension(x509.ObjectIdentifier(oid), octets), critical=False)
    return builder.sign(authority.key, hashes.SHA256())


def twice(authority: Authority, *sans: str) -> Pair:
    """Return a certificate in which one extension occurs twice."""
    pair = authority.issue("CN=mallory", *sans)
    pair = pair._replace(certificate=extended(authority, pair, ("1.2.3.4", b"\5\0"), ("1.2.3.5", b"\5\0")))
    return patched(authority, pair, bytes.fromhex("06032a0305"), bytes.fromhex("06032a0304"))


def odd_name(authority: Authority, *_: str) -> Pair:
    """Return a certificate for a name of a kind that the package cryptography does not read."""
    pair = authority.issue("CN=localhost")
    x400 = der(0x30, der(0xA3, der(0x30)))
    certificate = extended(authority, pair, ("2.5.29.17", x400))
    pair.cert.write_bytes(certificate.public_bytes(Encoding.PEM))
    return pair._replace(certificate=certificate)


@dataclass
class Scene:
    router: RunningRouter
    authority: Authority
    profile: str
    folder: Path


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("hostile")
    authority = Authority(folder)
    pair = authority.issue("CN=router", "localhost")
    profile = f"sslProfile {{\n name: p\n caCertFile: {authority.file}\n"
    profile += f" certFile: {pair.cert}\n privateKeyFile: {pair.key}\n}}\n"
    common = "host: 127.0.0.1\n port: 0\n sslProfile: p\n clientCert: required\n"
    text = f"router {{ id: R }}\n{profile}listener {{\n {common} }}\nlistener {{\n {common} http: yes\n}}\n"
    text += "listener {\n host: 127.0.0.1\n port: 0\n sslProfile: p\n}\n"
    (folder / "router").mkdir()
    with running(text, folder / "router") as router:
        router.wait_for_line(r"Listening for HTTP on \S+:\d+")
        yield Scene(router, authority, profile, folder)


def is_let_in(scene: Scene, pair: Pair, port: int) -> bool:
    context = ssl.create_default_context(cafile=str(scene.authority.file))
    context.load_cert_chain(pair.cert, pair.key)
    with socket.create_connection(("127.0.0.1", port), DEADLINE_S) as sock:
        try:
            with context.wrap_socket(sock, server_hostname="localhost") as tls:
                tls.sendall(b"AMQP\0\1\0\0")
                return bool(tls.recv(1))
        except OSError:
            return False


@pytest.mark.parametrize("make", [unreadable, malformed])
def test_a_client_whose_certificate_cannot_be_read(scene: Scene, make: Callable[..., Pair]) -> None:
    pair = make(scene.authority)
    web = int(scene.router.wait_for_line(r"Listening for HTTP on \S+:(\d+)")[1])
    before = len(scene.router.matching("failed: TLS: "))
    for number, port in enumerate((scene.router.port, web), 1):
        assert not is_let_in(scene, pair, port)
        scene.router.wait_for_line("failed: TLS: ", before + number)
    scene.router.assert_no_fault_of_ours()


@pytest.mark.parametrize("make", [unreadable, malformed, twice, odd_name])
def test_a_server_whose_certificate_cannot_be_read(scene: Scene, make: Callable[..., Pair]) -> None:
    """A connector tries again, and the router goes on."""
    with server(make(scene.authority, "localhost")) as port:
        connector = f"connector {{\n name: c\n host: localhost\n port: {port}\n sslProfile: p\n}}\n"
        with running(f"router {{ id: C }}\n{scene.profile}{connector}", scene.folder / "router") as caller:
            caller.wait_for_line("Connection to localhost:.* failed: TLS: ", 2)
            caller.assert_no_fault_of_ours()


@pytest.mark.parametrize("make", [twice, odd_name])
def test_a_client_is_judged_by_what_is_read_of_its_certificate(scene: Scene, make: Callable[..., Pair]) -> None:
    """No user is made of extensions."""
    assert is_let_in(scene, make(scene.authority), scene.router.port)
    scene.router.assert_no_fault_of_ours()


@pytest.mark.parametrize("make", [twice, odd_name])
def test_the_own_certificate_of_a_router_may_have_an_extension_that_is_not_read(
    scene: Scene, make: Callable[..., Pair]
) -> None:
    pair = make(scene.authority, "localhost")
    entity = SslProfileEntity(name="p", cert_file=str(pair.cert), private_key_file=str(pair.key))
    use = ServerUse("none")
    assert load_profile(entity, [use], time.time()).material.server_names == ()


def test_a_list_with_an_extension_twice_is_refused_with_its_file(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    now = datetime.now(UTC)
    builder = x509.CertificateRevocationListBuilder(authority.subject, now - DAY, now + DAY)
    for oid in ("1.2.3.4", "1.2.3.5"):
        builder = builder.add_extension(x509.UnrecognizedExtension(x509.ObjectIdentifier(oid), b"\5\0"), critical=False)
    tbs = builder.sign(authority.key, hashes.SHA256()).tbs_certlist_bytes
    tbs = tbs.replace(bytes.fromhex("06032a0305"), bytes.fromhex("06032a0304"))
    path = tmp_path / "odd.crl"
    path.write_bytes(signed(authority, tbs))
    entity = SslProfileEntity(name="p", ca_cert_file=str(authority.file), crl_file=str(path))
    with pytest.raises(TlsProblem, match="crlFile: a revocation list cannot be read: "):
        load_profile(entity, [], time.time())


@pytest.mark.parametrize("make", [twice, odd_name])
def test_the_command_that_lists_certificates_says_which_one_it_cannot_read(
    tmp_path: Path, make: Callable[..., Pair], capsys: pytest.CaptureFixture[str]
) -> None:
    pair = make(Authority(tmp_path), "localhost")
    folder = tmp_path / "certs"
    folder.mkdir()
    shutil.copy(pair.cert, folder / "odd.crt")
    assert main(["certs", "list", "--dir", str(folder)]) == 1
    assert f"{folder}/odd.crt holds a certificate that cannot be read: " in capsys.readouterr().err


# --- floods


class Scribe:
    """A writer of its own records of TLS 1.2, after OpenSSL's client has agreed on keys."""

    def __init__(self, scene: Scene, sock: socket.socket) -> None:
        keys = scene.folder / "keys"
        context = ssl.create_default_context(cafile=str(scene.authority.file))
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")
        context.keylog_filename = str(keys)
        arrived, leaving = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(arrived, leaving, server_hostname="localhost")
        seen = b""
        while True:
            with suppress(ssl.SSLWantReadError):
                tls.do_handshake()
                sock.sendall(leaving.read())
                break
            sock.sendall(leaving.read())
            data = sock.recv(65536)
            seen += data
            arrived.write(data)
        _, random, master = keys.read_text().splitlines()[-1].split()
        label = b"key expansion" + seen[11:43] + bytes.fromhex(random)
        secret = bytes.fromhex(master)
        first = hmac.digest(secret, label, "sha256")
        block = hmac.digest(secret, first + label, "sha256")
        block += hmac.digest(secret, hmac.digest(secret, first, "sha256") + label, "sha256")
        self._key, self._salt = AESGCM(block[:16]), block[32:36]
        self._sock = sock
        self._number = 1  # number of the next record under the present keys; the last of the handshake was 0

    def write(self, kind: int, content: bytes) -> None:
        number = self._number.to_bytes(8, "big")
        self._number += 1
        head = bytes([kind]) + b"\x03\x03"
        associated = number + head + struct.pack(">H", len(content))
        sealed = number + self._key.encrypt(self._salt + number, content, associated)
        self._sock.sendall(head + struct.pack(">H", len(sealed)) + sealed)


def a_hello() -> bytes:
    leaving = ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), leaving, server_hostname="localhost").do_handshake()
    return leaving.read()[5:]


@pytest.mark.parametrize(("kind", "content"), [(22, a_hello()), (23, b"")], ids=["hellos", "nothing"])
def test_tls_1_2_has_no_floods_of_handshake_or_empty_records(scene: Scene, kind: int, content: bytes) -> None:
    """The router refuses each new handshake, which costs time and queues an answer."""
    before = len(scene.router.matching("more than 16 changes of keys"))
    with socket.create_connection(("127.0.0.1", scene.router.ports[1]), DEADLINE_S) as sock:
        scribe = Scribe(scene, sock)
        scribe.write(23, SASL_HEADER)
        assert sock.recv(1)
        with suppress(OSError):
            for _ in range(24):
                scribe.write(kind, content)
        scene.router.wait_for_line("failed: more than 16 changes of keys or empty records in a minute", before + 1)
