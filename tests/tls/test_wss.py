"""WebSockets within TLS: logins, user names, and the origins of pages (security.md 2.5)."""

from __future__ import annotations

import os
import socket
import ssl
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest
from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage, CloseConnection

from tests.management.node import Node, node_of
from tests.routers import DEADLINE_S, RunningRouter, running
from tests.tls.pki import Authority, Pair
from tests.tls.test_listeners import offered
from tests.tls.test_management import CONNECTION, Raw, profile_text

TOKEN = "a-token-for-the-scraper"


class WebSocket:
    """A WebSocket with a socket's methods for the AMQP bytes."""

    def __init__(self, sock: socket.socket, *headers: str) -> None:
        self.sock = sock
        lines = [
            "GET / HTTP/1.1",
            "Host: localhost:1234",
            "Connection: Upgrade",
            "Upgrade: websocket",
            "Sec-WebSocket-Version: 13",
            f"Sec-WebSocket-Key: {b64encode(os.urandom(16)).decode()}",
            "Sec-WebSocket-Protocol: amqp",
            *headers,
        ]
        sock.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        head = b""
        while b"\r\n\r\n" not in head:
            data = sock.recv(65536)
            assert data, head
            head += data
        head, _, early = head.partition(b"\r\n\r\n")
        self.status = int(head.split()[1])
        self._frames = Connection(ConnectionType.CLIENT, trailing_data=early)

    def sendall(self, content: bytes) -> None:
        self.sock.sendall(self._frames.send(BytesMessage(data=content)))

    def recv(self, _: int) -> bytes:
        while True:
            for event in self._frames.events():
                if isinstance(event, BytesMessage) and event.data:
                    return bytes(event.data)
                if isinstance(event, CloseConnection):
                    return b""
            data = self.sock.recv(65536)
            if not data:
                return b""
            self._frames.receive_data(data)


@dataclass
class Scene:
    router: RunningRouter
    node: Node
    authority: Authority
    alice: Pair
    stack: ExitStack = field(default_factory=ExitStack)

    def port(self, name: str) -> int:
        return int(self.router.wait_for_line(rf"Listening for HTTP on \S+:(\d+) \({name}\)")[1])

    def clear(self, name: str) -> socket.socket:
        return self.stack.enter_context(socket.create_connection(("127.0.0.1", self.port(name)), DEADLINE_S))

    def tls(self, name: str, client: Pair | None = None) -> ssl.SSLSocket:
        context = ssl.create_default_context(cafile=str(self.authority.file))
        if client is not None:
            context.load_cert_chain(client.cert, client.key)
        return self.stack.enter_context(context.wrap_socket(self.clear(name), server_hostname="localhost"))

    def amqp(self, name: str, client: Pair | None, mechanism: str, container: str) -> Raw:
        socket_like: Any = WebSocket(self.tls(name, client))
        return Raw(socket_like, mechanism, container)

    def row(self, container: str) -> dict[str, Any]:
        (row,) = (each for each in self.node.query(CONNECTION) if each["container"] == container)
        return row


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("wss")
    authority = Authority(folder)
    (folder / "www").mkdir()
    (folder / "www" / "index.html").write_text("public")
    (folder / "secret").write_text("secret")
    (folder / "www" / "link").symlink_to(folder / "secret")
    (folder / "token").write_text(TOKEN)
    (folder / "token").chmod(0o600)
    text = "router { id: R }\n" + profile_text(authority, authority.issue("CN=r", "localhost"), uidFormat="n")
    text += "listener {\n host: 127.0.0.1\n port: 0\n}\n"
    for name, attributes in {
        "external": ("saslMechanisms: EXTERNAL", "authenticatePeer: yes"),
        "anonymous": ("saslMechanisms: ANONYMOUS", "clientCert: none", "webSocketOrigins: https://console.example"),
        "figures": ("clientCert: none", f"metricsToken: file:{folder / 'token'}"),
        "files": ("clientCert: none", f"httpRootDir: {folder / 'www'}"),
    }.items():
        common = (f"name: {name}", "host: 127.0.0.1", "port: 0", "http: yes", "sslProfile: p", "requireSsl: yes")
        text += "listener {\n " + "\n ".join((*common, "idleTimeoutSeconds: 0", *attributes)) + "\n}\n"
    (folder / "router").mkdir()
    with running(text, folder / "router") as router, node_of(router.port) as node:
        yield Scene(router, node, authority, authority.issue("CN=alice"))


@pytest.fixture
def scene(whole: Scene) -> Iterator[Scene]:
    with ExitStack() as whole.stack:
        yield whole


def test_external_comes_in_where_tls_is_required(scene: Scene) -> None:
    connection = scene.amqp("external", scene.alice, "EXTERNAL", "e")
    row = scene.row("e")
    names = ("sasl", "user", "isAuthenticated", "isEncrypted", "sslProto", "ssl")
    assert [row[name] for name in names] == ["EXTERNAL", "alice", True, True, "TLSv1.3", True]
    connection.round_trip()


def test_only_external_is_offered(scene: Scene) -> None:
    inside: Any = WebSocket(scene.tls("external", scene.alice))
    assert offered(inside) == ("EXTERNAL",)


def test_without_a_certificate_no_client_comes_in(scene: Scene) -> None:
    with pytest.raises((ssl.SSLError, ConnectionError, AssertionError)):
        WebSocket(scene.tls("external"))
    scene.router.wait_for_line(r"SERVER \(info\) Connection from 127\.0\.0\.1:\d+ \(to 127\.0\.0\.1:0\) failed: TLS: ")
    assert not scene.router.matching(r"\[C0\]")


def test_anonymous_comes_in_where_tls_is_required(scene: Scene) -> None:
    scene.amqp("anonymous", None, "ANONYMOUS", "a").round_trip()
    row = scene.row("a")
    assert [row[name] for name in ("user", "isAuthenticated", "isEncrypted")] == ["anonymous", False, True]


def test_in_clear_no_client_comes_in_where_tls_is_required(scene: Scene) -> None:
    assert WebSocket(scene.clear("anonymous")).status == 403


def test_two_of_one_host_have_different_names(scene: Scene) -> None:
    first = scene.amqp("anonymous", None, "ANONYMOUS", "one")
    second = scene.amqp("anonymous", None, "ANONYMOUS", "two")
    rows = [scene.row(name) for name in ("one", "two")]
    hosts = [":".join(map(str, each.sock.sock.getsockname())) for each in (first, second)]  # type: ignore[attr-defined]
    assert [row["host"] for row in rows] == hosts
    assert len({row["name"] for row in rows}) == 2


#: A browser's origin, and whether it is permitted.
ORIGINS = {
    "the listener's own": ("https://localhost:1234", 101),
    "one that is listed": ("https://console.example", 101),
    "another": ("https://evil.example", 403),
    "another port": ("https://localhost:1", 403),
    "a name that ends like ours": ("https://localhost:1234.evil.example", 403),
    "none at all": ("null", 403),
}


@pytest.mark.parametrize(("origin", "status"), ORIGINS.values(), ids=ORIGINS)
def test_each_origin_is_admitted_or_refused_as_configured(scene: Scene, origin: str, status: int) -> None:
    assert WebSocket(scene.tls("anonymous"), f"Origin: {origin}").status == status


def answer(sock: socket.socket, target: str, *headers: str) -> tuple[int, bytes]:
    lines = (f"GET {target} HTTP/1.1", "Host: localhost", "Connection: close", *headers)
    sock.sendall(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
    content = b""
    while data := sock.recv(65536):
        content += data
    head, _, body = content.partition(b"\r\n\r\n")
    return int(head.split()[1]), body


def test_a_token_is_taken_within_tls(scene: Scene) -> None:
    assert answer(scene.tls("figures"), "/metrics")[0] == 401
    assert answer(scene.tls("figures"), "/metrics", "Authorization: Bearer nonsense")[0] == 401
    status, text = answer(scene.tls("figures"), "/metrics", f"Authorization: Bearer {TOKEN}")
    assert (status, b"qdr_connections_total" in text) == (200, True)
    assert answer(scene.tls("figures"), "/healthz") == (200, b"OK")
    assert TOKEN not in scene.router.text()
    row = next(each for each in scene.node.query("org.apache.qpid.dispatch.listener") if each["name"] == "figures")
    assert TOKEN not in str(row)


#: Targets that must not lead to ``secret``, which lies beside the folder of files (R-2.5d).
OUTSIDE = (
    "/../secret",
    "/a/../../secret",
    "/%2e%2e/secret",
    "/%2E%2E%2Fsecret",
    "/..%2fsecret",
    "/%252e%252e/secret",
    "/..\\secret",
    "/%5c..%5csecret",
    "/..%c0%afsecret",
    "//secret",
    "{folder}/secret",
    "/{folder}/secret",
    "file://{folder}/secret",
    "https://localhost/../secret",
    "/link",
    "/%00/../secret",
)


@pytest.mark.parametrize("target", OUTSIDE)
def test_no_path_leads_out_of_the_files(scene: Scene, target: str) -> None:
    status, body = answer(scene.tls("files"), target.format(folder=scene.authority.folder))
    assert status in {400, 404}
    assert b"secret" not in body
    assert answer(scene.tls("files"), "/") == (200, b"public")


def test_a_head_that_is_too_large_is_refused(scene: Scene) -> None:
    status, _ = answer(scene.tls("files"), "/", f"X: {'x' * 20_000}")
    assert status == 431
