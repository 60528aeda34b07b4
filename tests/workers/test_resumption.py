"""Clients of a router with two workers resume their TLS sessions at the worker that gave them (RFC 5077; RFC 8446)."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path

import pytest

from tests.routers import DEADLINE_S, RunningRouter, process, stopped_cleanly
from tests.tls.pki import Authority
from trouter.wire.framing import AMQP_HEADER, FRAME_SASL, SASL_HEADER, frame
from trouter.wire.performatives import Close, Open, SaslInit, encode_performative

pytestmark = pytest.mark.attack

FILE = """router {{
    id: A
    workers: 2
}}
sslProfile {{
    name: p
    certFile: {pair.cert}
    privateKeyFile: {pair.key}
    caCertFile: {authority.file}
}}
listener {{
    name: open
    host: 127.0.0.1
    port: 0
    sslProfile: p
    requireSsl: yes
    saslMechanisms: ANONYMOUS
}}
"""
#: How a client opens its connection, and closes it: the router answers, so the client has read its tickets before.
LOGIN = SASL_HEADER + frame(0, encode_performative(SaslInit("ANONYMOUS", b"")), FRAME_SASL)
LOGIN += AMQP_HEADER + frame(0, encode_performative(Open("c"))) + frame(0, encode_performative(Close()))


class Client:
    """A client that offers the session of its last full handshake with each connection."""

    def __init__(self, router: RunningRouter, authority: Authority, version: ssl.TLSVersion) -> None:
        self._port = int(router.wait_for_line(r"Listening on 127\.0\.0\.1:(\d+)")[1])
        self._context = ssl.create_default_context(cafile=str(authority.file))
        self._context.minimum_version = self._context.maximum_version = version
        self._session: ssl.SSLSession | None = None

    def resumes(self, *, keeps: bool = True) -> bool:
        """Connect, and return whether the worker that took the connection accepted the session.

        ``keeps``: the client keeps the session that it offered, also if this worker did not know it.
        """
        with (
            socket.create_connection(("127.0.0.1", self._port), DEADLINE_S) as plain,
            self._context.wrap_socket(plain, server_hostname="127.0.0.1", session=self._session) as sock,
        ):
            sock.sendall(LOGIN)
            while sock.recv(4096):
                pass
            if self._session is None or not keeps:
                self._session = sock.session
            return bool(sock.session_reused)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_client_resumes_its_session_at_the_worker_that_gave_it(version: ssl.TLSVersion, tmp_path: Path) -> None:
    """Its connections go to the workers in turn: one that keeps its last session only makes full handshakes."""
    authority = Authority(tmp_path)
    pair = authority.issue("CN=router", "127.0.0.1")
    with process(FILE.format(pair=pair, authority=authority), tmp_path) as router:
        router.wait_for_line(r"2 workers serve")
        with stopped_cleanly(router):
            client = Client(router, authority, version)
            assert [client.resumes() for _ in range(5)] == [False, False, True, False, True]
            assert [client.resumes(keeps=False) for _ in range(4)] == [False, False, False, False]
