"""The hosts that a certificate is valid for: subjectAltName, or the common name; connectors and services."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest
import trio
from cryptography.hazmat.primitives.serialization import Encoding

from tests.tls.pki import Authority
from trouter.config import load
from trouter.connections.registry import Connections
from trouter.hooks import ListenerFacts, PeerFacts, Plugins
from trouter.telemetry.recorder import Recorder
from trouter.tls.hostnames import is_for
from trouter.tls.problems import TlsFailed
from trouter.tls.secure import Secure

FACTS = PeerFacts(1, ListenerFacts("there", "127.0.0.1", "amqps"), "127.0.0.1", 5671, encrypted=False, loopback=True)
#: The subject, subjectAltName, the dialled host, and whether the certificate is valid for that host.
CERTIFICATES: dict[str, tuple[str, tuple[str, ...], str, bool]] = {
    "the common name": ("CN=router.example.com", (), "router.example.com", True),
    "in other letters": ("CN=Router.Example.com", (), "rOUTER.example.com.", True),
    "another common name": ("CN=router.example.com", (), "other.example.com", False),
    "one of two common names": ("CN=a.example.com,CN=b.example.com", (), "a.example.com", True),
    "a wildcard": ("CN=*.example.com", (), "router.example.com", True),
    "a wildcard for two labels": ("CN=*.example.com", (), "a.router.example.com", False),
    "a wildcard for nothing": ("CN=*.example.com", (), "example.com", False),
    "a wildcard for a whole country": ("CN=*.com", (), "example.com", False),
    "a wildcard for all": ("CN=*", (), "router", False),
    "a part of a label": ("CN=r*.example.com", (), "router.example.com", False),
    "an address": ("CN=127.0.0.1", (), "127.0.0.1", True),
    "another address": ("CN=127.0.0.2", (), "127.0.0.1", False),
    "an address is no name": ("CN=*.0.0.1", (), "127.0.0.1", False),
    "no common name": ("O=router.example.com", (), "router.example.com", False),
    "another subjectAltName": ("CN=router.example.com", ("other.example.com",), "router.example.com", False),
    "a subjectAltName of another kind": ("CN=router.example.com", ("127.0.0.1",), "router.example.com", False),
    "a subjectAltName that is a name": ("CN=127.0.0.1", ("router.example.com",), "127.0.0.1", False),
    "the subjectAltName": ("CN=x", ("router.example.com",), "router.example.com", True),
    "an address in subjectAltName": ("CN=x", ("127.0.0.1", "::1"), "::1", True),
}


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("names"))


@pytest.mark.parametrize(("subject", "names", "host", "right"), CERTIFICATES.values(), ids=CERTIFICATES)
def test_a_certificate_is_valid_for_its_names_only(
    authority: Authority, subject: str, names: tuple[str, ...], host: str, right: bool
) -> None:
    data = authority.issue(subject, *names).certificate.public_bytes(Encoding.DER)
    assert is_for(data, host) is right


@pytest.mark.parametrize("data", [None, b"", b"rubbish"])
def test_bytes_that_are_no_certificate_are_valid_for_no_host(data: bytes | None) -> None:
    assert not is_for(data, "router.example.com")


@pytest.fixture
def called(authority: Authority, request: pytest.FixtureRequest) -> Iterator[int]:
    """Run a server with a certificate of this subject and these names; yield its port."""
    subject, names = request.param
    pair = authority.issue(subject, *names)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.cert, pair.key)
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def serve() -> None:
            sock, _ = server.accept()
            try:
                with context.wrap_socket(sock, server_side=True) as tls:
                    tls.recv(1)
            except OSError:
                sock.close()

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        socket.create_connection(server.getsockname()).close()  # if no test has connected, the thread still waits
        thread.join()


COMMON = ("CN=router.example.com", ())
OTHER = ("CN=other.example.com", ())
MIXED = ("CN=router.example.com", ("127.0.0.1",))


@pytest.mark.parametrize(
    ("called", "secure", "verify", "right"),
    [
        (COMMON, False, True, True),
        (COMMON, True, True, False),
        (COMMON, True, False, True),
        (OTHER, False, True, False),
        (OTHER, False, False, True),
        (MIXED, False, True, False),
    ],
    indirect=["called"],
)
@pytest.mark.parametrize("of_service", [False, True], ids=["connector", "authServicePlugin"])
async def test_a_common_name_counts_unless_defaults_are_secure(
    called: int, authority: Authority, secure: bool, verify: bool, right: bool, of_service: bool
) -> None:
    yes, no = ("yes", "no") if verify else ("no", "yes")
    text = f"""
router {{ id: R, secureDefaults: {"yes" if secure else "no"} }}
sslProfile {{ name: p, caCertFile: {authority.file} }}
connector {{ name: c, host: router.example.com, sslProfile: p, verifyHostname: {no if of_service else yes} }}
authServicePlugin {{ name: s, host: router.example.com, sslProfile: p, verifyHostname: {yes if of_service else no} }}
"""
    configuration = load(text=text)
    made = Secure(Plugins(), Connections(), Recorder())
    (await made.prepare(configuration)).apply()
    sock = socket.create_connection(("127.0.0.1", called))
    sock.setblocking(False)
    try:
        if of_service:
            (service,) = configuration.auth_services
            await made.call(sock, "p", service.host, verify_hostname=service.verify_hostname)
        else:
            (connector,) = configuration.connectors
            await made.dial(sock, FACTS, connector, connector.host)
        objection = ""
    except TlsFailed as failed:
        objection = str(failed)
    finally:
        sock.close()
    assert bool(objection) is not right
    assert right or "router.example.com" in objection or "mismatch" in objection
    await trio.lowlevel.checkpoint()
