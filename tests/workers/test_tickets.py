"""Clients of a router with two workers resume their TLS sessions at each (RFC 5077; RFC 8446, 4.6.1)."""

from __future__ import annotations

import os
import signal
import socket
import ssl
from pathlib import Path

import pytest

from tests.routers import DEADLINE_S, RunningRouter, process, stopped_cleanly
from tests.tls.pki import Authority
from trouter.wire.framing import FRAME_SASL, SASL_HEADER, frame
from trouter.wire.performatives import SaslInit, encode_performative

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
#: The router ends a connection with a mechanism that it does not know, so the client has read its tickets before.
ENDED = SASL_HEADER + frame(0, encode_performative(SaslInit("X")), FRAME_SASL)


class Client:
    """A client that resumes its session with each connection."""

    def __init__(self, router: RunningRouter, authority: Authority, version: ssl.TLSVersion) -> None:
        self._port = int(router.wait_for_line(r"Listening on 127\.0\.0\.1:(\d+)")[1])
        self._context = ssl.create_default_context(cafile=str(authority.file))
        self._context.minimum_version = self._context.maximum_version = version
        self._session: ssl.SSLSession | None = None

    def resumes(self) -> bool:
        """Connect, and return whether the worker that took the connection accepted the session of the one before."""
        with (
            socket.create_connection(("127.0.0.1", self._port), DEADLINE_S) as plain,
            self._context.wrap_socket(plain, server_hostname="127.0.0.1", session=self._session) as sock,
        ):
            sock.sendall(ENDED)
            while sock.recv(4096):
                pass
            self._session = sock.session
            return bool(sock.session_reused)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_client_resumes_its_session_at_each_worker(version: ssl.TLSVersion, tmp_path: Path) -> None:
    """Its connections go to the workers in turn, and one that replaces another accepts the session, too."""
    authority = Authority(tmp_path)
    pair = authority.issue("CN=router", "127.0.0.1")
    with process(FILE.format(pair=pair, authority=authority), tmp_path) as router:
        router.wait_for_line(r"2 workers serve")
        with stopped_cleanly(router):
            client = Client(router, authority, version)
            assert [client.resumes() for _ in range(5)] == [False, True, True, True, True]
            operational = r"\[W2\] Operational, 1 Threads Running \(process ID (\d+)\)"
            os.kill(int(router.wait_for_line(operational)[1]), signal.SIGKILL)
            router.wait_for_line(operational, 2)
            assert [client.resumes() for _ in range(4)] == [True, True, True, True]
