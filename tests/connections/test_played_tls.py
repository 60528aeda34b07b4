"""TLS, played in memory: handshakes, refused certificates, ends, and what policy and records see of a certificate."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from trio.testing import MockClock

from tests.connections.plays import OPENING, ROUTED, ROUTER, condition_of, join, sasl
from tests.connections.tls_plays import SERVER, PlayedTls, client_context, listener, profile
from tests.tls.pki import Authority, Pair
from trouter.records import ConnectionClosedRecord, ConnectionOpenedRecord, TlsOutcome
from trouter.testing.player import HANG_UP, RESET, Closed, HangUp, PlayedRouter, Reset, kinds, play
from trouter.wire.framing import AMQP_HEADER, SASL_HEADER
from trouter.wire.performatives import Begin, Close, Open, SaslInit, SaslMechanisms
from trouter.wire.performatives import SaslOutcome as Outcome

ANONYMOUS = "saslMechanisms: ANONYMOUS, authenticatePeer: no"
EXTERNAL = "saslMechanisms: EXTERNAL, authenticatePeer: yes"
POLICY = """
policy { enableVhostPolicy: yes }
vhost { hostname: vhost, groups: { trusted: { users: alice, remoteHosts: *, sources: queue } } }
"""


class Scene:
    """An authority with the certificate of the router."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = Authority(folder)
        self.server = self.authority.issue("CN=router", SERVER)

    def text(self, mechanisms: str, more: str = "", entities: str = "") -> str:
        return ROUTER + profile(self.authority, self.server, more) + listener(mechanisms) + entities

    def client(self, router: PlayedRouter, own: Pair | None = None, *, version: str = "") -> PlayedTls:
        """Return a client that has just connected; ``version`` is its only version of TLS."""
        context = client_context(self.authority, own)
        if version:
            context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
        return PlayedTls(router.accept(), context)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def outcome(router: PlayedRouter) -> TlsOutcome:
    (record,) = [record for record in router.records if isinstance(record, TlsOutcome)]
    return record


def how_it_ended(router: PlayedRouter) -> tuple[str, str | None]:
    (record,) = [record for record in router.records if isinstance(record, ConnectionClosedRecord)]
    return record.by, record.reason


# --- handshakes


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
async def test_a_connection_opens_within_tls(mock_clock: MockClock, scene: Scene, version: str) -> None:
    async with play(scene.text(ANONYMOUS)) as router:
        client = scene.client(router, version=version)
        await client.shake_hands()
        assert kinds(await client.play_first(*OPENING)) == [bytes, Open, Begin]
        shown = version.replace("_", ".")
        assert (outcome(router).ok, outcome(router).version) == (True, shown)
        (opened,) = [record for record in router.records if isinstance(record, ConnectionOpenedRecord)]
        assert opened.tls_version == shown
        (connection,) = router.process.services.connections.values()
        assert connection.build_management_row(0.0)["sslProto"] == shown
        assert kinds(await client.play(Close())) == [Close]


async def test_a_client_without_tls_is_refused_where_it_is_required(mock_clock: MockClock, scene: Scene) -> None:
    async with play(scene.text(ANONYMOUS)) as router:
        peer = router.accept()
        outputs = await peer.play(*OPENING)
        assert kinds(outputs) == [bytes, Open, Close]
        assert condition_of(outputs) == "amqp:connection:policy-error"
        assert kinds(await peer.play(HANG_UP)) == [Closed]
        assert len(router.process.services.connections) == 0


async def test_a_client_that_hangs_up_in_the_handshake_is_recorded(mock_clock: MockClock, scene: Scene) -> None:
    async with play(scene.text(ANONYMOUS)) as router:
        client = scene.client(router)
        await client.say_hello()
        await client.play_encrypted(HANG_UP)
        assert kinds(await client.wait_for_end()) == [Closed]
        assert (outcome(router).ok, outcome(router).reason) == (
            False,
            "the peer closed the socket in the TLS handshake",
        )


async def test_a_handshake_that_stops_is_given_up(mock_clock: MockClock, scene: Scene) -> None:
    async with play(scene.text(ANONYMOUS)) as router:
        client = scene.client(router)
        await client.say_hello()
        mock_clock.jump(5.1)
        assert kinds(await client.wait_for_end()) == [Closed]
        assert outcome(router).reason == (
            "timed out: TLS took more than 5 s; a longer initialHandshakeTimeoutSeconds gives it half of that"
        )


# --- certificates


async def test_the_policy_judges_the_user_of_the_certificate(mock_clock: MockClock, scene: Scene) -> None:
    async with play(scene.text(EXTERNAL, " uidFormat: n\n", POLICY)) as router:
        client = scene.client(router, scene.authority.issue("O=Org,CN=alice"))
        await client.shake_hands()
        login = await client.play_first(SASL_HEADER, sasl(SaslInit("EXTERNAL", b"")))
        assert kinds(login) == [bytes, SaslMechanisms, Outcome]
        assert kinds(await client.play(*OPENING)) == [bytes, Open, Begin]
        (connection,) = router.process.services.connections.values()
        assert (connection.login.user, connection.login.mechanism) == ("alice", "EXTERNAL")
        assert connection.facts.tls is not None
        assert connection.facts.tls.subject == "CN=alice,O=Org"
        assert connection.describe_connection()["vhost"] == "vhost"
        assert len(connection.certificates.chain) == 2
        assert outcome(router).peer_subject == "CN=alice,O=Org"


async def test_the_policy_refuses_the_user_of_another_certificate(mock_clock: MockClock, scene: Scene) -> None:
    async with play(scene.text(EXTERNAL, " uidFormat: n\n", POLICY)) as router:
        client = scene.client(router, scene.authority.issue("CN=mallory"))
        await client.shake_hands()
        await client.play_first(SASL_HEADER, sasl(SaslInit("EXTERNAL", b"")))
        assert condition_of(await client.play(*OPENING)) == "amqp:resource-limit-exceeded"


def stranger(scene: Scene) -> Pair:
    """Return a certificate of another authority."""
    return Authority(scene.folder, "Other Authority").issue("CN=alice")


def expired(scene: Scene) -> Pair:
    return scene.authority.issue("CN=alice", begins=-3, days=-1)


def early(scene: Scene) -> Pair:
    return scene.authority.issue("CN=alice", begins=1, days=3)


@pytest.mark.parametrize(
    ("make", "alert", "why"),
    [
        (stranger, "UNKNOWN_CA", "unable to get local issuer certificate"),
        (expired, "CERTIFICATE_EXPIRED", "certificate has expired"),
        (early, "BAD_CERTIFICATE", "certificate is not yet valid"),
    ],
)
async def test_a_certificate_that_does_not_hold_is_refused_with_an_alert(
    mock_clock: MockClock, scene: Scene, make: Callable[[Scene], Pair], alert: str, why: str
) -> None:
    async with play(scene.text(EXTERNAL)) as router:
        client = scene.client(router, make(scene))
        await client.shake_hands()
        assert kinds(await client.wait_for_end()) == [Closed]
        assert alert in client.farewell
        assert (outcome(router).ok, outcome(router).reason) == (
            False,
            f"TLS: the certificate cannot be verified: {why}",
        )
        assert len(router.process.services.connections) == 0


async def test_a_client_without_a_certificate_is_refused_where_it_logs_in_by_it(
    mock_clock: MockClock, scene: Scene
) -> None:
    async with play(scene.text(EXTERNAL)) as router:
        client = scene.client(router)
        await client.shake_hands()
        assert kinds(await client.wait_for_end()) == [Closed]
        assert "CERTIFICATE_REQUIRED" in client.farewell
        assert outcome(router).reason == "TLS: peer did not return a certificate"


async def test_a_connection_ends_when_the_certificate_of_its_peer_does(mock_clock: MockClock, scene: Scene) -> None:
    now_s = [time.time()]
    async with play(scene.text(EXTERNAL, " uidFormat: n\n"), calendar=lambda: now_s[0]) as router:
        client = scene.client(router, scene.authority.issue("CN=alice", days=2))
        await client.shake_hands()
        await client.play_first(SASL_HEADER, sasl(SaslInit("EXTERNAL", b"")))
        await client.play(*OPENING)
        await router.process.services.secure.recheck()
        assert await client.play() == []
        now_s[0] += 3 * 86_400
        await router.process.services.secure.recheck()
        assert kinds(await client.play()) == [Close]
        assert len(router.process.services.connections) == 0


async def test_peers_whose_certificates_end_together_hear_nothing_of_each_other_s_end(
    mock_clock: MockClock, scene: Scene
) -> None:
    """A container and a client of its link route: either would hear that the other's link is lost."""
    now_s = [time.time()]
    text = scene.text(f"role: route-container, {EXTERNAL}", entities=ROUTED)
    async with play(text, calendar=lambda: now_s[0]) as router:
        container, client = [scene.client(router, scene.authority.issue(f"CN={each}", days=2)) for each in "BC"]
        for each, name in ((container, "B"), (client, "C")):
            await each.shake_hands()
            await each.play_first(SASL_HEADER, sasl(SaslInit("EXTERNAL", b"")))
            await each.play(AMQP_HEADER, Open(name, hostname="vhost"))
        await join(client.play, container.play)
        now_s[0] += 3 * 86_400
        await router.process.services.secure.recheck()
        assert [kinds(await each.play()) for each in (client, container)] == [[Close], [Close]]


# --- ends


async def test_close_notify_ends_the_connection_in_order(mock_clock: MockClock, scene: Scene) -> None:
    async with play(scene.text(ANONYMOUS)) as router:
        client = scene.client(router)
        await client.shake_hands()
        await client.play_first(*OPENING)
        assert Closed in kinds(await client.close_notify())
        assert how_it_ended(router)[0] == "transport"


@pytest.mark.parametrize("end", [HANG_UP, RESET])
async def test_an_end_without_close_notify_ends_the_connection_too(
    mock_clock: MockClock, scene: Scene, end: HangUp | Reset
) -> None:
    async with play(scene.text(ANONYMOUS)) as router:
        client = scene.client(router)
        await client.shake_hands()
        await client.play_first(*OPENING)
        assert kinds(await client.play_encrypted(end)) == [Closed]
        assert how_it_ended(router)[0] == "transport"
        assert len(router.process.services.connections) == 0


async def test_the_router_says_close_notify_behind_its_close(mock_clock: MockClock, scene: Scene) -> None:
    async with play(scene.text(ANONYMOUS)) as router:
        client = scene.client(router)
        await client.shake_hands()
        await client.play_first(*OPENING)
        assert kinds(await client.play(Close())) == [Close]
        assert client.farewell == "close_notify"
        assert kinds(await client.close_notify()) == [Closed]


async def test_octets_that_are_no_tls_end_the_connection(mock_clock: MockClock, scene: Scene) -> None:
    async with play(scene.text(ANONYMOUS)) as router:
        client = scene.client(router)
        await client.shake_hands()
        await client.play_first(*OPENING)
        assert kinds(await client.play_encrypted(AMQP_HEADER + b"x" * 64)) == [Closed]
        by, why = how_it_ended(router)
        assert by == "transport"
        assert (why or "").startswith("TLS: ")


async def test_data_that_arrives_in_pieces_is_the_same(mock_clock: MockClock, scene: Scene) -> None:
    async with play(scene.text(ANONYMOUS)) as router:
        client = scene.client(router)
        await client.shake_hands()
        await client.play_first(*OPENING)
        client.tls.write(b"\0\0\0\x08\x02\0\0\0" * 3)
        octets = client.leaving()
        for place in range(len(octets)):
            assert await client.play_encrypted(octets[place : place + 1]) == []
        assert kinds(await client.play(Close())) == [Close]
