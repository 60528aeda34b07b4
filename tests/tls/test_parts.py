"""The small parts of TLS: first bytes, counted records, names as OpenSSL writes them, and a connector's endpoints."""

from __future__ import annotations

import socket
import ssl
import subprocess
from pathlib import Path

import pytest
import trio

from tests.tls.pki import Authority
from trouter.config import load
from trouter.connections.failover import FailoverList, allowed_hosts
from trouter.net.dialing import Endpoint
from trouter.tls.channel import RecordCounter, TlsChannel
from trouter.tls.names import distinguished_name
from trouter.tls.opening import Layer, layer_of
from trouter.wire.framing import AMQP_HEADER, SASL_HEADER, TLS_HEADER

OPENINGS = {
    b"": None,
    b"\x16": None,
    b"\x16\x03": None,
    b"\x16\x03\x01": Layer.TLS,
    b"\x16\x03\x03": Layer.TLS,
    b"\x16\x03\x09": Layer.OTHER,
    b"\x16\x02\x01": Layer.OTHER,
    b"\x80\x2e\x01\x03\x01": Layer.TLS,
    b"\x80\x2e\x01\x00\x02": Layer.OTHER,
    b"\x80\x2e": None,
    TLS_HEADER: Layer.TLS_HEADER,
    TLS_HEADER[:7]: None,
    TLS_HEADER[:7] + b"\x01": Layer.OTHER,
    SASL_HEADER: Layer.OTHER,
    AMQP_HEADER[:4]: None,
    AMQP_HEADER: Layer.OTHER,
    b"GET": Layer.OTHER,
}


@pytest.mark.parametrize(("seen", "layer"), OPENINGS.items(), ids=map(repr, OPENINGS))
def test_the_first_bytes_choose_the_layer(seen: bytes, layer: Layer | None) -> None:
    assert layer_of(seen) is layer


async def test_records_that_came_with_the_end_of_the_handshake_are_all_read(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pair = authority.issue("CN=localhost", "localhost")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.cert, pair.key)
    arrived, leaving = ssl.MemoryBIO(), ssl.MemoryBIO()
    trusting = ssl.create_default_context(cafile=str(authority.file))
    client = trusting.wrap_bio(arrived, leaving, server_hostname="localhost")
    near, far = socket.socketpair()
    with near, far:
        near.setblocking(False)
        channel = TlsChannel(context, server=True)

        def talk() -> None:
            with pytest.raises(ssl.SSLWantReadError):
                client.do_handshake()
            far.sendall(leaving.read())
            arrived.write(far.recv(1 << 16))
            client.do_handshake()
            for text in (b"one", b"two", b"three"):
                client.write(text)
            far.sendall(leaving.read())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, talk)
            await channel.handshake(near, trio.lowlevel, trio.to_thread.run_sync)
    assert channel.decrypt(b"") == b"onetwothree"


@pytest.mark.parametrize("piece", [1, 2, 5, 7, 100])
def test_records_are_counted_however_they_come(piece: int) -> None:
    data = b"".join(b"\x17\x03\x03" + len(body).to_bytes(2, "big") + body for body in (b"x" * 17, b"y" * 300, b"z"))
    counter = RecordCounter()
    pieces = [data[at : at + piece] for at in range(0, len(data), piece)]
    assert sum(counter.count(each) for each in pieces) == 3


@pytest.mark.parametrize("subject", ["C=US,ST=NC,O=Client,CN=alice", "CN=#x y ", 'O=a;b+c"<>,CN=d\\e', "CN=Zo\xeb\n"])
def test_a_subject_is_written_like_openssl_writes_it(tmp_path: Path, subject: str) -> None:
    pair = Authority(tmp_path).issue(subject)
    command = ["openssl", "x509", "-in", str(pair.cert), "-noout", "-subject", "-nameopt", "RFC2253"]
    done = subprocess.run(command, capture_output=True, check=True).stdout.decode()
    assert distinguished_name(pair.certificate.subject) == done.rstrip("\n").removeprefix("subject=")


def test_a_peer_cannot_send_a_connector_from_tls_to_clear_text() -> None:
    failover = FailoverList(Endpoint("a", "5671", "amqps"))
    failover.apply_server_list([{"network-host": "b", "scheme": "amqp"}, {"network-host": "c", "scheme": "amqps"}])
    assert str(failover) == "amqp://a:5671, amqp://c:5671"  # as Qpid Dispatch shows them
    assert failover.current == Endpoint("a", "5671", "amqps")
    for _ in range(2):
        failover.note_failed()
    assert failover.current == Endpoint("c", "5671", "amqps")


@pytest.mark.parametrize(
    ("attributes", "has_certificate", "allowed"),
    [
        ("", False, None),
        ("", True, frozenset()),
        ("saslUsername: u, saslPassword: p", False, frozenset()),
        ("saslUsername: u, saslPassword: p, redirectHosts: B c", False, {"b", "c"}),
        ("redirectHosts: b", False, {"b"}),
        ("allowRedirect: no", False, frozenset()),
    ],
)
def test_credentials_go_only_to_the_configured_hosts(
    attributes: str, has_certificate: bool, allowed: frozenset[str] | None
) -> None:
    text = "connector {\n host: a\n " + "\n ".join(attributes.split(", ")) + "\n}"
    (connector,) = load(text=text).connectors
    found = allowed_hosts(connector, has_certificate=has_certificate)
    assert found == allowed
    failover = FailoverList(Endpoint("a", "5672"))
    failover.apply_server_list([{"network-host": "b"}, {"network-host": "d"}], found)
    assert [host in str(failover) for host in ("//b:", "//d:")] == [found is None or "b" in found, found is None]
