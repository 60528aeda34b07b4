"""A client that offers the session of an earlier connection is verified like any other (security.md 8.4)."""

from __future__ import annotations

import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeVar

import pytest
import trio
import trio.testing

from tests.routers import DEADLINE_S
from tests.tls.pki import DAY, Authority, Pair
from trouter.admission.process_memory import used_bytes
from trouter.app.process import RouterProcess
from trouter.config import load
from trouter.hooks import Plugins
from trouter.tls import profiles
from trouter.wire.framing import AMQP_HEADER, FRAME_SASL, SASL_HEADER, frame
from trouter.wire.performatives import Close, Error, Open, SaslInit, encode_performative

pytestmark = pytest.mark.attack
T = TypeVar("T")
#: The version of TLS, and whether the client could keep its session itself (a ticket), or only name it to the server.
KINDS = {
    "1.2 ticket": (ssl.TLSVersion.TLSv1_2, True),
    "1.2 number": (ssl.TLSVersion.TLSv1_2, False),
    "1.3": (ssl.TLSVersion.TLSv1_3, True),
}
#: How a client logs in, opens its connection, and closes it: OpenSSL forgets the session of one that breaks off.
LOGIN = SASL_HEADER + frame(0, encode_performative(SaslInit("EXTERNAL", b"")), FRAME_SASL)
LOGIN += AMQP_HEADER + frame(0, encode_performative(Open("c"))) + frame(0, encode_performative(Close()))
#: Octets of an authority's certificate that OpenSSL still reads.
LARGE = 90_000
#: Clients with such an authority.
CLIENTS = 200
#: The end of sasl-outcome with the code 0.
ADMITTED = b"\x00\x53\x44\xc0\x03\x01\x50\x00"


class Visit(NamedTuple):
    """What a client met: whether it was admitted, and whether its session was resumed."""

    admitted: bool
    resumed: bool


class Client:
    """A client of one context that offers the session of the connection before."""

    def __init__(self, authority: Authority, pair: Pair, kind: str) -> None:
        version, ticket = KINDS[kind]
        self._context = ssl.create_default_context(cafile=str(authority.file))
        self._context.load_cert_chain(pair.cert, pair.key)
        self._context.minimum_version = self._context.maximum_version = version
        if not ticket:
            self._context.options |= ssl.OP_NO_TICKET
        self._session: ssl.SSLSession | None = None

    @property
    def has_ticket(self) -> bool:
        return self._session is not None and self._session.has_ticket

    async def visit(self, port: int, meanwhile: Callable[[], Awaitable[None]] | None = None) -> Visit:
        """Log in; ``meanwhile`` happens when the router has read the beginning of the client's hello."""
        arrived, leaving = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = self._context.wrap_bio(arrived, leaving, server_hostname="localhost", session=self._session)
        with trio.fail_after(DEADLINE_S):
            async with await trio.open_tcp_stream("127.0.0.1", port) as stream:

                async def complete(step: Callable[[], T]) -> T:
                    while True:
                        try:
                            return step()
                        except ssl.SSLWantReadError:
                            await stream.send_all(leaving.read())
                            if data := await stream.receive_some():
                                arrived.write(data)
                            else:
                                arrived.write_eof()

                if meanwhile is not None:
                    with suppress(ssl.SSLWantReadError):
                        tls.do_handshake()
                    await stream.send_all(leaving.read(100))
                    await trio.testing.wait_all_tasks_blocked()
                    await meanwhile()
                try:
                    await complete(tls.do_handshake)
                except (ssl.SSLError, trio.BrokenResourceError):
                    return Visit(admitted=False, resumed=False)
                tls.write(LOGIN)
                received = b""
                with suppress(ssl.SSLError, trio.BrokenResourceError):  # refused, or closed at the end of AMQP
                    while data := await complete(tls.read):
                        received += data
        self._session = tls.session
        return Visit(ADMITTED in received, bool(tls.session_reused))


@dataclass
class Scene:
    """A router that trusts a root; its clients show the certificate of an intermediate authority themselves."""

    folder: Path
    nursery: trio.Nursery
    now: list[float] = field(default_factory=lambda: [time.time()])
    process: RouterProcess = field(init=False)

    def __post_init__(self) -> None:
        self.root = Authority(self.folder, "Root")
        self.between = Authority(self.folder, "Between", self.root)
        self.alice = self.between.issue("CN=alice", days=900)
        self.trusted = self.folder / "trusted.pem"
        self.trusted.write_bytes(self.root.file.read_bytes())
        self.crl = self.root.revoke(days=900)

    def text(self, *, others: str = "") -> str:
        server = self.root.issue("CN=router", "localhost", days=399)
        return (
            f"router {{ id: R }}\nsslProfile {{\n name: p\n certFile: {server.cert}\n privateKeyFile: {server.key}\n"
            f" caCertFile: {self.trusted}\n crlFile: {self.crl}\n}}\n{LISTENER}{others}"
        )

    async def start(self, text: str) -> None:
        self.process = RouterProcess(load(text=text), Plugins.load(), calendar=lambda: self.now[0])
        await self.nursery.start(self.process.run)

    def port(self, number: int = 0) -> int:
        return int(self.process.listeners[number].sockets[0].getsockname()[1])

    async def look(self) -> None:
        """Use changed files: at the second look they are seen to change no more."""
        for _ in range(2):
            await self.process.services.secure.renew_profiles()


LISTENER = """listener {
    host: 127.0.0.1
    port: 0
    sslProfile: p
    requireSsl: yes
    saslMechanisms: EXTERNAL
    authenticatePeer: yes
}
"""
#: A listener that asks nobody for a certificate, and so has its clients resume their sessions.
OPEN = LISTENER.replace("EXTERNAL", "ANONYMOUS").replace("authenticatePeer: yes", "authenticatePeer: no")


@pytest.fixture
async def scene(tmp_path: Path, nursery: trio.Nursery) -> AsyncIterator[Scene]:
    found = Scene(tmp_path, nursery)
    yield found
    found.process.in_force.stop(Error("amqp:connection:forced", "the test is over"))
    nursery.cancel_scope.cancel()


async def nothing(_: Scene) -> None:
    """Change nothing."""


async def the_end_of_the_authority(scene: Scene) -> None:
    scene.now[0] += 500 * DAY.total_seconds()


async def its_withdrawal(scene: Scene) -> None:
    scene.root.revoke(scene.between.certificate, days=900, into=scene.crl)
    await scene.look()


async def other_authorities(scene: Scene) -> None:
    other = Authority(scene.folder, "Other")
    scene.trusted.write_bytes(other.file.read_bytes())
    other.revoke(days=900, into=scene.crl)
    await scene.look()


CHANGES: dict[str, tuple[Callable[[Scene], Awaitable[None]], bool]] = {
    "nothing changes": (nothing, True),
    "the intermediate authority has ended": (the_end_of_the_authority, False),
    "the intermediate authority is revoked": (its_withdrawal, False),
    "other authorities are trusted": (other_authorities, False),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("change", "admitted"), CHANGES.values(), ids=CHANGES)
async def test_a_client_is_verified_whatever_session_it_offers(
    scene: Scene, kind: str, change: Callable[[Scene], Awaitable[None]], admitted: bool
) -> None:
    await scene.start(scene.text())
    client = Client(scene.root, scene.alice, kind)
    for _ in range(2):
        assert (await client.visit(scene.port())).admitted
    await change(scene)
    for _ in range(2):
        assert (await client.visit(scene.port())).admitted is admitted


@pytest.mark.parametrize("kind", KINDS)
async def test_no_session_is_resumed_where_clients_show_certificates(scene: Scene, kind: str) -> None:
    await scene.start(scene.text())
    client = Client(scene.root, scene.alice, kind)
    for _ in range(3):
        assert await client.visit(scene.port()) == Visit(admitted=True, resumed=False)
        assert not client.has_ticket


async def test_nothing_stays_of_clients_that_sent_many_certificates(scene: Scene) -> None:
    """OpenSSL would keep all that they sent, with their sessions."""
    await scene.start(scene.text())
    bob = Authority(scene.folder, "Large", scene.root, padding=LARGE).issue("CN=bob")

    async def come(clients: int) -> None:
        for _ in range(clients):
            assert (await Client(scene.root, bob, "1.2 number").visit(scene.port())).admitted

    await come(20)  # until the C library has what it needs
    before = used_bytes()
    await come(CLIENTS)
    assert used_bytes() - before < CLIENTS * LARGE / 4


async def test_a_session_that_is_resumed_all_the_same_is_refused(
    scene: Scene, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the client's own certificate only, as it would if connections had one context together."""
    monkeypatch.setattr(profiles, "context_of_one", lambda context: context)
    caplog.set_level("INFO", "trouter.SERVER")
    await scene.start(scene.text())
    client = Client(scene.root, scene.alice, "1.2 number")
    assert await client.visit(scene.port()) == Visit(admitted=True, resumed=False)
    assert await client.visit(scene.port()) == Visit(admitted=False, resumed=True)
    assert "a session was resumed, which has not all of the client's certificates" in caplog.text
    assert await client.visit(scene.port()) == Visit(admitted=True, resumed=False)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_session_of_a_listener_that_asks_nobody_is_of_no_use_where_certificates_are_needed(
    scene: Scene, kind: str
) -> None:
    await scene.start(scene.text(others=OPEN))
    client = Client(scene.root, scene.alice, kind)
    assert [(await client.visit(scene.port(1))).resumed for _ in range(2)] == [False, True]
    assert await client.visit(scene.port(0)) == Visit(admitted=True, resumed=False)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_session_ends_when_a_file_changes(scene: Scene, kind: str) -> None:
    await scene.start(scene.text(others=OPEN))
    client = Client(scene.root, scene.alice, kind)
    assert [(await client.visit(scene.port(1))).resumed for _ in range(2)] == [False, True]
    await its_withdrawal(scene)
    assert [(await client.visit(scene.port(1))).resumed for _ in range(2)] == [False, True]
