"""https on a listener, and connectors that call others within TLS or not at all (security.md 1.11, 2.5)."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.routers import RunningRouter, running
from tests.tls.pki import Authority

DEADLINE_S = 20.0


@dataclass
class Scene:
    router: RunningRouter
    authority: Authority
    folder: Path
    profile: str


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("calls")
    authority = Authority(folder)
    pair = authority.issue("CN=router", "localhost")
    attributes = (("caCertFile", authority.file), ("certFile", pair.cert), ("privateKeyFile", pair.key))
    profile = "sslProfile {\n name: p\n" + "".join(f" {key}: {value}\n" for key, value in attributes) + "}\n"
    common = "host: 127.0.0.1\n port: 0\n sslProfile: p\n requireSsl: yes\n"
    external = "saslMechanisms: EXTERNAL\n authenticatePeer: yes\n"
    text = f"{profile}listener {{\n {common} {external}}}\nlistener {{\n {common} http: yes\n}}\n"
    (folder / "router").mkdir()
    with running("router { id: R }\n" + text, folder / "router") as router:
        router.wait_for_line(r"Listening for HTTP on \S+:\d+")
        yield Scene(router, authority, folder, profile)


def web_port(scene: Scene) -> int:
    return int(scene.router.wait_for_line(r"Listening for HTTP on \S+:(\d+)")[1])


def answer(sock: socket.socket) -> bytes:
    sock.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    octets = b""
    while data := sock.recv(65536):
        octets += data
    return octets


def test_https_answers_and_http_is_told_to_use_it(scene: Scene) -> None:
    context = ssl.create_default_context(cafile=str(scene.authority.file))
    with (
        socket.create_connection(("127.0.0.1", web_port(scene)), DEADLINE_S) as sock,
        context.wrap_socket(sock, server_hostname="localhost") as tls,
    ):
        assert answer(tls).startswith(b"HTTP/1.1 200 ")
    with socket.create_connection(("127.0.0.1", web_port(scene)), DEADLINE_S) as sock:
        assert answer(sock).startswith(b"HTTP/1.1 403 ")


def test_a_connector_comes_in_by_its_certificate(scene: Scene) -> None:
    connector = f"connector {{\n name: c\n host: localhost\n port: {scene.router.port}\n sslProfile: p\n}}\n"
    with running("router { id: C }\n" + scene.profile + connector, scene.folder / "router") as caller:
        caller.wait_for_line(r"Connection Opened: dir=out .* encrypted=TLSv1.3 auth=EXTERNAL ")
        scene.router.wait_for_line(r"Connection Opened: dir=in .* encrypted=TLSv1.3 auth=EXTERNAL user=CN=router ")


def test_a_connector_takes_nobody_of_another_name(scene: Scene) -> None:
    connector = f"connector {{\n name: c\n host: 127.0.0.1\n port: {scene.router.port}\n sslProfile: p\n}}\n"
    with running("router { id: C }\n" + scene.profile + connector, scene.folder / "router") as caller:
        caller.wait_for_line(r"Connection to 127.0.0.1:\d+ failed: TLS: the certificate cannot be verified: .*mismatch")


def test_a_connector_with_tls_says_nothing_in_clear(scene: Scene) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(DEADLINE_S)
        port = server.getsockname()[1]
        connector = f"connector {{\n name: c\n host: 127.0.0.1\n port: {port}\n sslProfile: p\n}}\n"
        with running("router { id: C }\n" + scene.profile + connector, scene.folder / "router") as caller:
            taken, _ = server.accept()
            with taken:
                taken.settimeout(DEADLINE_S)
                taken.sendall(b"AMQP\x03\x01\x00\x00")
                said = b""
                while data := taken.recv(65536):
                    said += data
            assert said.startswith(b"\x16\x03")
            assert b"AMQP" not in said
            caller.wait_for_line(r"Connection to 127.0.0.1:\d+ failed: TLS: ")
