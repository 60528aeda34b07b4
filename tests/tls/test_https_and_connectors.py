"""https on a listener, and connectors that dial within TLS or without (security.md 1.11, 2.5)."""

from __future__ import annotations

import gc
import socket
import ssl
import subprocess
import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.routers import RunningRouter, running
from tests.tls.pki import Authority
from trouter.app.process import RouterProcess
from trouter.config import load
from trouter.config.facts import router_facts
from trouter.hooks import Plugins
from trouter.tls.channel import TlsChannel
from trouter.wire.performatives import Error
from trouter_plugins.users_file import put_user

DEADLINE_S = 60.0


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
    content = b""
    while data := sock.recv(65536):
        content += data
    return content


def test_https_answers_and_plain_http_is_refused(scene: Scene) -> None:
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


def test_a_connector_takes_no_server_of_another_name(scene: Scene) -> None:
    connector = f"connector {{\n name: c\n host: 127.0.0.1\n port: {scene.router.port}\n sslProfile: p\n}}\n"
    with running("router { id: C }\n" + scene.profile + connector, scene.folder / "router") as caller:
        caller.wait_for_line(r"Connection to 127.0.0.1:\d+ failed: TLS: the peer.s certificate is not for")


def test_a_connector_with_tls_sends_nothing_in_clear(scene: Scene) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(DEADLINE_S)
        port = server.getsockname()[1]
        connector = f"connector {{\n name: c\n host: 127.0.0.1\n port: {port}\n sslProfile: p\n}}\n"
        with running("router { id: C }\n" + scene.profile + connector, scene.folder / "router") as caller:
            taken, _ = server.accept()
            with taken:
                taken.settimeout(DEADLINE_S)
                taken.sendall(b"AMQP\x03\x01\x00\x00")
                received = b""
                while data := taken.recv(65536):
                    received += data
            assert received.startswith(b"\x16\x03")
            assert b"AMQP" not in received
            caller.wait_for_line(r"Connection to 127.0.0.1:\d+ failed: TLS: ")


# --- CVE-2019-0223: a server without a certificate is refused


@pytest.mark.parametrize("ciphers", ["", " ciphers: ALL:aNULL:eNULL:@SECLEVEL=0\n"])
def test_a_connector_takes_no_server_without_a_certificate(scene: Scene, ciphers: str) -> None:
    command = ["openssl", "s_server", "-accept", "127.0.0.1:0", "-nocert", "-tls1_2", "-cipher", "aNULL:@SECLEVEL=0"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as server:
        assert server.stdout is not None
        port = next(int(line.rpartition(b":")[2]) for line in server.stdout if line.startswith(b"ACCEPT"))
        profile = scene.profile.replace("name: p\n", f"name: p\n protocols: TLSv1.2\n{ciphers}")
        connector = f"connector {{\n host: 127.0.0.1\n port: {port}\n sslProfile: p\n verifyHostname: no\n}}\n"
        with running("router { id: C }\n" + profile + connector, scene.folder / "router") as caller:
            caller.wait_for_line(r"Connection to 127.0.0.1:\d+ failed: TLS: .*alert handshake failure")
        server.kill()


# --- SCRAM bound to the channel, and sessions that are resumed


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
async def test_a_connector_binds_its_password_to_the_channel(tmp_path: Path, version: str) -> None:
    async with two_routers(tmp_path, version) as (here, there):
        (row,) = await rows_of(there, 1)
        assert (row["sasl"], row["user"], row["isAuthenticated"]) == ("SCRAM-SHA-512-PLUS", "bob", True)
        (row,) = await rows_of(here, 1)
        assert (row["dir"], row["sasl"], row["sslProto"]) == ("out", "SCRAM-SHA-512-PLUS", version)


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The sessions that were read for resumption."""
    read: list[object] = []

    def session(channel: TlsChannel) -> object:
        read.append(channel._tls.session)
        return read[-1]

    monkeypatch.setattr(TlsChannel, "session", property(session))
    return read


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
async def test_a_connector_resumes_its_session(tmp_path: Path, version: str, sessions: list[object]) -> None:
    async with two_routers(tmp_path, version) as (here, there):
        resumed = []
        for number in range(2):
            await rows_of(there, 1)
            (connection,) = await standing(here, 1)
            assert connection.security.channel is not None
            resumed.append(connection.security.channel.resumed)
            assert connection.certificates.chain, "it is known who that is, all the same"
            (other,) = await standing(there, 1)
            other.force_close(Error("amqp:connection:forced", f"number {number}"))
            await standing(here, 0)
            assert len(sessions) == number + 1
        assert resumed == [False, True]


async def test_no_session_is_read_of_a_server_that_refuses_the_login(tmp_path: Path, sessions: list[object]) -> None:
    async with two_routers(tmp_path, "TLSv1.3", password="wrong") as (here, _):
        with trio.fail_after(DEADLINE_S):
            while here.in_force.parts.connectors.running[0].attempts < 2:
                await wait_all_tasks_blocked(0.005)
        assert sessions == []


async def test_a_router_that_ends_within_a_handshake_leaves_no_socket(tmp_path: Path) -> None:
    (silent,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = silent.socket.getsockname()[1]
    text = (
        f"router {{ id: here }}\nsslProfile {{\n name: p\n caCertFile: {Authority(tmp_path).file}\n}}\n"
        f"connector {{\n name: c\n host: 127.0.0.1\n port: {port}\n sslProfile: p\n}}\n"
    )
    here = RouterProcess(load(text=text), Plugins.load())
    async with silent, trio.open_nursery() as nursery:
        await nursery.start(here.run)
        async with await silent.accept() as hello:
            assert await hello.receive_some(1)  # the handshake has begun
            nursery.cancel_scope.cancel()
    with warnings.catch_warnings(record=True) as left:
        warnings.simplefilter("always")
        del here
        gc.collect()
    assert [str(each.message) for each in left if f"'127.0.0.1', {port}" in str(each.message)] == []


@asynccontextmanager
async def two_routers(
    folder: Path, version: str, password: str = "wonderland"
) -> AsyncIterator[tuple[RouterProcess, RouterProcess]]:
    """Run two routers, one with a connector to the other, in this event loop."""
    authority = Authority(folder)
    pair = authority.issue("CN=there", "localhost")
    put_user(folder / "users", "bob", b"wonderland")
    (folder / "users").chmod(0o600)
    ssl_there = f"certFile: {pair.cert}\n privateKeyFile: {pair.key}\n protocols: {version}\n"
    text_there = (
        f"router {{\n id: there\n usersFile: {folder / 'users'}\n}}\nsslProfile {{\n name: p\n {ssl_there}}}\n"
        "listener {\n host: 127.0.0.1\n port: 0\n sslProfile: p\n authenticatePeer: yes\n idleTimeoutSeconds: 0\n}\n"
    )
    async with trio.open_nursery() as nursery:
        configuration, plugins = load(text=text_there), Plugins.load()
        plugins.configure(router_facts(configuration))
        there = RouterProcess(configuration, plugins)
        await nursery.start(there.run)
        port = there.listeners[0].sockets[0].getsockname()[1]
        here = RouterProcess(
            load(
                text=f"router {{ id: here }}\nsslProfile {{\n name: p\n caCertFile: {authority.file}\n}}\n"
                f"connector {{\n name: c\n host: localhost\n port: {port}\n sslProfile: p\n idleTimeoutSeconds: 0\n"
                f" saslUsername: bob\n saslPassword: {password}\n}}\n"
            ),
            Plugins.load(),
        )
        await nursery.start(here.run)
        yield here, there
        for process in (here, there):
            process.in_force.stop(Error("amqp:connection:forced", "the test is over"))
        nursery.cancel_scope.cancel()


async def standing(process: RouterProcess, count: int) -> list[Any]:
    """Wait until it has ``count`` connections; return them."""
    with trio.fail_after(DEADLINE_S):
        while len(process.services.connections) != count:
            await wait_all_tasks_blocked(0.005)
    return list(process.services.connections.values())


async def rows_of(process: RouterProcess, count: int) -> list[dict[str, Any]]:
    return [each.build_management_row(trio.current_time()) for each in await standing(process, count)]
