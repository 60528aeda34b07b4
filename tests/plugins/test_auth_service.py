"""The cache of authentication services: its entries, their lifetime, and that it has no password."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.clock import Clock
from trouter.hooks import (
    Authenticated,
    AuthService,
    AuthServiceFacts,
    AuthSession,
    Challenge,
    ListenerFacts,
    PeerFacts,
    Permissions,
    Plugins,
    Refused,
    TlsFacts,
)
from trouter_plugins import auth_service
from trouter_plugins.auth_service import LONGEST_S, MAX_REMEMBERED, Remembering

pytestmark = pytest.mark.attack

LISTENER = ListenerFacts("here", "127.0.0.1", "amqp", auth_service="there")
PEER = PeerFacts(1, LISTENER, "192.0.2.1", 40000, encrypted=True, loopback=False)
ALICE = Authenticated("alice", b"last", permissions=Permissions(("a",)))
SECRET = b"\0alice\0open sesame"


class Service:
    """A service that gives the same answer to each login, and counts the requests."""

    def __init__(self, answer: Challenge | Authenticated | Refused = ALICE, cache_s: float = 10.0) -> None:
        self.answer = answer
        self.facts = AuthServiceFacts("there", "localhost", "5671", cache_s=cache_s)
        self.begun = self.asked = self.closed = 0
        self.mechanisms: Sequence[str] = ("PLAIN",)

    async def begin(self, peer: PeerFacts) -> AuthSession | Refused:
        self.begun += 1
        return self

    async def start(self, mechanism: str, response: bytes | None) -> Challenge | Authenticated | Refused:
        self.asked += 1
        return self.answer

    async def respond(self, response: bytes) -> Challenge | Authenticated | Refused:
        return ALICE

    def close(self) -> None:
        self.closed += 1


async def ask(
    service: AuthService, mechanism: str = "PLAIN", response: bytes | None = SECRET, peer: PeerFacts = PEER
) -> Challenge | Authenticated | Refused:
    session = await service.begin(peer)
    assert not isinstance(session, Refused)
    answer = await session.start(mechanism, response)
    if isinstance(answer, Challenge):
        answer = await session.respond(b"more")
    session.close()
    return answer


async def test_an_answer_is_cached_as_long_as_configured() -> None:
    service, clock = Service(cache_s=10), Clock(1000.0)
    memory = Remembering(service, clock)
    assert await ask(memory) == ALICE
    clock.now_s += 9.9
    assert await ask(memory, "plain") == ALICE
    assert service.asked == 1
    clock.now_s += 0.1
    assert await ask(memory) == ALICE
    assert service.asked == 2
    assert service.begun == service.closed == 3


async def test_nothing_is_remembered_for_more_than_a_minute() -> None:
    service, clock = Service(cache_s=1e9), Clock(1000.0)
    memory = Remembering(service, clock)
    await ask(memory)
    clock.now_s += LONGEST_S
    await ask(memory)
    assert service.asked == 2


@pytest.mark.parametrize("other", [("PLAIN", b"\0alice\0other"), ("LOGIN", SECRET), ("PLAIN", None), ("PLAIN", b"")])
async def test_other_credentials_are_sent_to_the_service(other: tuple[str, bytes | None]) -> None:
    service = Service()
    memory = Remembering(service, Clock(1000.0))
    await ask(memory)
    await ask(memory, *other)
    await ask(memory, *other)
    assert service.asked == 2 + (not other[1])


TLS = TlsFacts("TLSv1.3", "TLS_AES_256_GCM_SHA384", 256, "CN=alice", b"certificate", "alice")
#: Peers that a service may judge otherwise, though their first response is the same.
OTHERS = {
    "another host": replace(PEER, remote_host="192.0.2.2"),
    "another listener": replace(PEER, listener=replace(LISTENER, name="there")),
    "no encryption": replace(PEER, encrypted=False),
    "this machine": replace(PEER, loopback=True),
    "a certificate": replace(PEER, tls=TLS),
    "another certificate": replace(PEER, tls=replace(TLS, certificate=b"other")),
    "another user of a certificate": replace(PEER, tls=replace(TLS, user="bob")),
    "another name of the server": replace(PEER, tls=replace(TLS, server_name="b.example")),
    "another version": replace(PEER, tls=replace(TLS, version="TLSv1.2")),
}


async def test_an_answer_for_one_peer_is_none_for_another() -> None:
    service = Service()
    memory = Remembering(service, Clock(1000.0))
    await ask(memory)
    for number, other in enumerate(OTHERS.values(), 2):
        await ask(memory, peer=other)
        assert service.asked == number
        await ask(memory, peer=replace(other, connection_id=7, remote_port=7, channel_bindings=(("tls-unique", b"7"),)))
        assert service.asked == number, "a further connection of the same peer is remembered"


@pytest.mark.parametrize("answer", [Refused("no"), Refused("later", temporary=True), Challenge(b"?")])
async def test_only_a_yes_at_once_is_remembered(answer: Challenge | Refused) -> None:
    service = Service(answer)
    memory = Remembering(service, Clock(1000.0))
    for _ in range(2):
        await ask(memory)
    assert service.asked == 2


async def test_the_memory_is_bounded_and_holds_no_password() -> None:
    memory = Remembering(Service(), Clock(1000.0))
    for number in range(MAX_REMEMBERED + 10):
        memory.remember(PEER, "PLAIN", SECRET + str(number).encode(), ALICE)
    assert len(memory._known) == MAX_REMEMBERED
    assert memory.known(PEER, "PLAIN", SECRET + b"0") is None
    assert memory.known(PEER, "PLAIN", SECRET + str(MAX_REMEMBERED).encode()) == ALICE
    assert b"sesame" not in b"".join(memory._known)
    assert not set(memory._known) & set(Remembering(Service())._known)


def test_without_cache_seconds_there_is_no_memory() -> None:
    plugins = Plugins([auth_service])
    service = Service(cache_s=0)
    assert plugins.auth_service(LISTENER, service) is service
    assert isinstance(plugins.auth_service(LISTENER, Service(cache_s=1)), Remembering)
