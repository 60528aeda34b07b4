"""The client within TLS: a relay that terminates TLS stands before a router; the test makes its certificates."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
import trio

from tests.client.support import Router
from trouter.client import ACCEPTED, ConnectionClosed, Message, Outcome, connect

pytestmark = [
    pytest.mark.usefixtures("guard"),
    pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate"),
]


OPENSSL = (
    *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"),
    *("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"),
)


class Certificate(NamedTuple):
    certificate: Path
    key: Path


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    folder = tmp_path_factory.mktemp("tls")
    made = Certificate(folder / "certificate.pem", folder / "key.pem")
    subprocess.run(
        [*OPENSSL, "-keyout", made.key, "-out", made.certificate],
        check=True,
        capture_output=True,
    )
    return made


class Relay:
    """Terminate TLS and relay the bytes to a router."""

    def __init__(self, certificate: Certificate, router: Router, version: ssl.TLSVersion) -> None:
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._context.load_cert_chain(certificate.certificate, certificate.key)
        self._context.minimum_version = self._context.maximum_version = version
        self._router = router
        self.port = 0
        self.streams: list[trio.SSLStream[trio.SocketStream]] = []

    async def serve(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        self.port = listener.socket.getsockname()[1]
        async with listener:
            task_status.started()
            await trio.serve_listeners(self._pass_on, [listener])

    async def _pass_on(self, stream: trio.SocketStream) -> None:
        host, port = self._router.url.removeprefix("amqp://").split(":")
        tls = trio.SSLStream(stream, self._context, server_side=True, https_compatible=True)
        self.streams.append(tls)
        try:
            async with tls, await trio.open_tcp_stream(host, int(port)) as onward, trio.open_nursery() as nursery:
                nursery.start_soon(self._copy, tls, onward, nursery.cancel_scope)
                nursery.start_soon(self._copy, onward, tls, nursery.cancel_scope)
        except* (trio.BrokenResourceError, trio.ClosedResourceError):
            pass

    async def _copy(self, source: trio.abc.Stream, target: trio.abc.Stream, scope: trio.CancelScope) -> None:
        while data := await source.receive_some(65536):
            await target.send_all(data)
        scope.cancel()


@pytest.fixture
async def relay(guard: trio.Nursery, router: Router, certificate: Certificate, request: pytest.FixtureRequest) -> Relay:
    started = Relay(certificate, router, getattr(request, "param", ssl.TLSVersion.TLSv1_3))
    await guard.start(started.serve)
    return started


def trusting(certificate: Certificate) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(certificate.certificate))


@pytest.mark.parametrize("relay", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], indirect=True)
async def test_large_and_small_messages_pass_through_tls(relay: Relay, certificate: Certificate) -> None:
    body = bytes(range(256)) * 20_000
    async with (
        connect(f"amqps://localhost:{relay.port}", ssl_context=trusting(certificate)) as connection,
        connection.open_receiver("q") as receiver,
        connection.open_sender("q") as sender,
        trio.open_nursery() as nursery,
    ):
        outcomes: list[Outcome] = []

        async def send() -> None:
            outcomes.extend([await sender.send(Message(content)) for content in ("small", body, "small")])

        nursery.start_soon(send)
        for content in ("small", body, "small"):
            delivery = await receiver.receive()
            assert delivery.message.body == content
            await delivery.accept()
    assert outcomes == [ACCEPTED] * 3


async def test_an_ssl_context_turns_tls_on_for_every_scheme(relay: Relay, certificate: Certificate) -> None:
    async with connect(f"localhost:{relay.port}", ssl_context=trusting(certificate)) as connection:
        assert connection.remote.container_id == "R"


async def test_a_server_that_is_not_to_be_trusted_is_refused(relay: Relay) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        async with connect(f"amqps://localhost:{relay.port}"):
            pytest.fail("no authority vouches for it")


async def test_a_certificate_for_another_name_is_refused(relay: Relay, certificate: Certificate) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match="127"):
        async with connect(f"amqps://127.0.0.1:{relay.port}", ssl_context=trusting(certificate)):
            pytest.fail("it is localhost's")


async def test_a_server_without_tls_is_an_os_error(router: Router, certificate: Certificate) -> None:
    with pytest.raises(OSError, match=r"SSL|reset"):
        async with connect(router.url, ssl_context=trusting(certificate)):
            pytest.fail("it does not speak TLS")


async def test_a_connection_cut_beneath_tls_ends_the_waits(relay: Relay, certificate: Certificate) -> None:
    async with (
        connect(f"amqps://localhost:{relay.port}", ssl_context=trusting(certificate)) as connection,
        connection.open_receiver("q") as receiver,
        trio.open_nursery() as nursery,
    ):

        async def wait() -> None:
            with pytest.raises(ConnectionClosed):
                await receiver.receive()

        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked(0.01)
        await relay.streams[0].transport_stream.aclose()
