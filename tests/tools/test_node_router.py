"""Tools and a running router: over TLS, with a password, without either, and with unreachable routers."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
import trio
import trustme

from tests.cli.programs import called, installed
from tests.routers import RunningRouter, StartRouter, router, start_router
from tests.tools.live import run
from trouter_plugins.users_file import put_user

__all__ = ["router", "start_router"]

PASSWORD = "open s\u00e9same:/@"


@pytest.fixture
def guarded(start_router: StartRouter, tmp_path: Path) -> RunningRouter:
    """Run a router that admits ann only."""
    users = tmp_path / "users"
    put_user(users, "ann", PASSWORD.encode())
    return start_router(
        f"router {{ id: R, usersFile: {users} }}\n"
        "listener { host: 127.0.0.1, port: 0, saslMechanisms: PLAIN, authenticatePeer: yes, "
        "allowInsecurePlain: loopback }\n"
    )


@asynccontextmanager
async def behind_tls(router: RunningRouter, context: ssl.SSLContext) -> AsyncIterator[int]:
    """Run a forwarder that ends TLS before the router; yield its port."""

    async def pass_on(stream: trio.SocketStream) -> None:
        tls = trio.SSLStream(stream, context, server_side=True, https_compatible=True)
        try:
            async with tls, await trio.open_tcp_stream("127.0.0.1", router.port) as onward, trio.open_nursery() as both:
                both.start_soon(copy, tls, onward, both.cancel_scope.cancel)
                both.start_soon(copy, onward, tls, both.cancel_scope.cancel)
        except* (trio.BrokenResourceError, trio.ClosedResourceError):
            pass

    async def copy(source: trio.abc.Stream, target: trio.abc.Stream, over: Callable[[], None]) -> None:
        while data := await source.receive_some(65536):
            await target.send_all(data)
        over()

    async with trio.open_nursery() as nursery:
        (listener,) = await nursery.start(partial(trio.serve_tcp, pass_on, 0, host="127.0.0.1"))
        yield listener.socket.getsockname()[1]
        nursery.cancel_scope.cancel()


async def test_tls_ends_where_the_trusted_certificate_is(router: RunningRouter, tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca"))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(context)
    words = ("query", "--type", "connection", "sasl", "isAuthenticated", "-t", "30")
    async with behind_tls(router, context) as port:
        good = await run("manage", *words, "-b", f"amqps://localhost:{port}", "--ssl-trustfile", str(tmp_path / "ca"))
        bad = await run("manage", *words, "-b", f"amqps://127.0.0.1:{port}", "--ssl-trustfile", str(tmp_path / "ca"))
    assert json.loads(good.out) == [{"sasl": "ANONYMOUS", "isAuthenticated": False}]
    assert bad.status == 1
    assert "the server's certificate cannot be trusted: IP address mismatch" in bad.err


async def test_without_options_a_tool_is_anonymous(router: RunningRouter) -> None:
    ran = await run("manage", "query", "--type", "connection", "-b", f"127.0.0.1:{router.port}", "-t", "30")
    (row,) = json.loads(ran.out)
    assert (row["isAuthenticated"], row["isEncrypted"], row["user"]) == (False, False, "anonymous")
    assert "sasl" not in row


async def test_a_tool_logs_in_where_the_router_requires_a_login(guarded: RunningRouter, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text(f"{PASSWORD}\n")
    words = ("manage", "query", "--type", "connection", "user", "-t", "30", "-b")
    bus = f"127.0.0.1:{guarded.port}"
    for given in (
        (f"ann:open%20s%C3%A9same%3A%2F%40@{bus}",),
        (bus, "--sasl-username", "ann", "--sasl-password", PASSWORD),
        (bus, "--sasl-username", "ann", "--sasl-password-file", str(file), "--sasl-mechanisms", "PLAIN"),
    ):
        ran = await run(*words, *given)
        assert (ran.status, json.loads(ran.out)) == (0, [{"user": "ann"}])
    for refused, message in (
        ((bus,), "Client skipped authentication - forbidden"),
        (
            (bus, "--sasl-mechanisms", "ANONYMOUS"),
            "the login failed: the server offers the SASL mechanisms PLAIN, the client can use ANONYMOUS",
        ),
        ((f"ann:wrong@{bus}",), "the login failed: the server did not accept the credentials"),
    ):
        ran = await run(*words, *refused)
        assert ran.status == 1
        assert ran.err.startswith(f"trouter manage: cannot connect to amqp://{bus}: ")
        assert message in ran.err
    assert PASSWORD not in guarded.text()


@pytest.mark.parametrize("option", ["--router", "--edge-router"])
async def test_a_router_that_is_not_there_ends_in_timeout(router: RunningRouter, option: str) -> None:
    ran = await run("manage", "query", "-b", f"127.0.0.1:{router.port}", option, "NOPE", "-t", "0.5")
    assert ran.status == 1
    assert ran.err.startswith("trouter manage: no answer from _")


async def test_the_path_of_the_bus_is_the_address_of_the_request(router: RunningRouter) -> None:
    for path in ("$management", "_local/$management", "_topo/0/R/$management"):
        ran = await run(
            "manage", "query", "--type", "router", "id", "-b", f"127.0.0.1:{router.port}/{path}", "-r", "X", "-t", "30"
        )
        assert json.loads(ran.out) == [{"id": "R"}]


def test_the_older_tool_names_query_a_router_too(router: RunningRouter, tmp_path: Path) -> None:
    bus = f"127.0.0.1:{router.port}"
    done = called(installed(tmp_path, "qdmanage"), "QUERY", "--typ", "router", "id", "--bus", bus)
    assert (done.returncode, done.stderr, json.loads(done.stdout)) == (0, "", [{"id": "R"}])
    done = called(installed(tmp_path, "qdmanage"), "read", "--nam", "log/DEFAULT", environment={"TROUTER_BUS": bus})
    assert json.loads(done.stdout)["module"] == "DEFAULT"
    done = called(installed(tmp_path, "qdstat"), "-c", "--bus", bus)
    assert (done.returncode, done.stderr) == (0, "")
    assert "no-auth" in done.stdout
