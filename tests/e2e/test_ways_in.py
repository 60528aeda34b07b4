"""The tables of security.md 1.2 to 1.5, row by row, with one router: mechanisms offered, and users of logins."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.peer import Peer
from tests.management.node import node_of
from tests.routers import RunningRouter, running
from trouter.wire.framing import AMQP_HEADER
from trouter.wire.performatives import Open, SaslChallenge, SaslInit, SaslOutcome, SaslResponse
from trouter_plugins.users_file import put_user

pytestmark = pytest.mark.slow

OK, AUTH = 0, 1
RIGHT = b"\0alice\0wonderland"
SCRAM = ("SCRAM-SHA-512", "SCRAM-SHA-256")
#: A listener's attributes, and its mechanisms for a peer on this machine without certificate and TLS.
OFFERS = {
    "authenticatePeer: no": (*SCRAM, "PLAIN", "ANONYMOUS"),
    "authenticatePeer: yes": (*SCRAM, "PLAIN"),
    "authenticatePeer: yes, allowInsecurePlain: no": SCRAM,
    "authenticatePeer: yes, allowInsecurePlain: loopback, saslMechanisms: plain": ("PLAIN",),
    "authenticatePeer: no, saslMechanisms: PLAIN ANONYMOUS SCRAM-SHA-256": ("PLAIN", "ANONYMOUS", "SCRAM-SHA-256"),
    "authenticatePeer: no, saslMechanisms: PLAIN ANONYMOUS, allowInsecurePlain: no": ("ANONYMOUS",),
    'authenticatePeer: no, saslMechanisms: "ANONYMOUS,SCRAM-SHA-512"': ("ANONYMOUS", "SCRAM-SHA-512"),
    "authenticatePeer: yes, saslMechanisms: ANONYMOUS SCRAM-SHA-256": ("SCRAM-SHA-256",),
    "authenticatePeer: yes, saslMechanisms: DIGEST-MD5": (),
    "authenticatePeer: no, saslMechanisms: PLAIN, allowInsecurePlain: loopback": ("PLAIN",),
}
#: Listeners on which the layer may be skipped.
SKIPPABLE = {
    "authenticatePeer: no",
    *(each for each in OFFERS if each.startswith("authenticatePeer: no, ") and "ANONYM" in each),
}
OPEN, PLAIN, BOTH = (
    list(OFFERS).index(each)
    for each in (
        "authenticatePeer: no",
        "authenticatePeer: yes, allowInsecurePlain: loopback, saslMechanisms: plain",
        "authenticatePeer: no, saslMechanisms: PLAIN, allowInsecurePlain: loopback",
    )
)


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    folder = tmp_path_factory.mktemp("router")
    put_user(folder / "users", "alice", b"wonderland")
    listeners = "".join(
        f"listener {{ name: l{number}, host: 127.0.0.1, port: 0, {each} }}\n" for number, each in enumerate(OFFERS)
    )
    with running(f"router {{ id: R, usersFile: {folder / 'users'}, authLockout: off }}\n{listeners}", folder) as router:
        yield router


def offered(peer: Peer) -> tuple[str, ...]:
    return tuple(peer.begin_sasl() or ())


@pytest.mark.parametrize("number", range(len(OFFERS)), ids=OFFERS)
def test_each_listener_offers_its_mechanisms(router: RunningRouter, number: int) -> None:
    with Peer(router.ports[number], opened=False) as peer:
        assert offered(peer) == list(OFFERS.values())[number]


@pytest.mark.parametrize("number", range(len(OFFERS)), ids=OFFERS)
def test_sasl_may_be_skipped_only_on_the_listeners_that_allow_this(router: RunningRouter, number: int) -> None:
    with Peer(router.ports[number], opened=False) as peer:
        if list(OFFERS)[number] in SKIPPABLE:
            assert isinstance(peer.open(), Open)
            return
        peer.raw(AMQP_HEADER)
        peer.expect_header(AMQP_HEADER)
        peer.expect(Open)
        error = peer.expect_close()
        assert error is not None
        said = ("amqp:connection:policy-error", "Client skipped authentication - forbidden")
        assert (error.condition, error.description) == said


#: The init, and whether an empty challenge comes before the outcome.
OUTCOMES: dict[str, tuple[int, str, bytes | None, int]] = {
    "the right password": (PLAIN, "PLAIN", RIGHT, OK),
    "a mechanism in other letters": (PLAIN, "plain", RIGHT, OK),
    "the user's own authority": (PLAIN, "PLAIN", b"alice\0alice\0wonderland", OK),
    "the authority of another user": (PLAIN, "PLAIN", b"bob\0alice\0wonderland", AUTH),
    "a wrong password": (PLAIN, "PLAIN", b"\0alice\0x", AUTH),
    "an unknown user": (PLAIN, "PLAIN", b"\0nobody\0x", AUTH),
    "a mechanism that is not offered": (PLAIN, "SCRAM-SHA-256", b"n,,n=alice,r=x", AUTH),
    "ANONYMOUS where it is not offered": (PLAIN, "ANONYMOUS", b"", AUTH),
    "EXTERNAL without TLS": (OPEN, "EXTERNAL", b"", AUTH),
    "ANONYMOUS": (OPEN, "ANONYMOUS", b"somebody@somewhere", OK),
}


@pytest.mark.parametrize("case", OUTCOMES)
def test_outcomes(router: RunningRouter, case: str) -> None:
    number, mechanism, response, code = OUTCOMES[case]
    with Peer(router.ports[number], opened=False) as peer:
        offered(peer)
        peer.say(SaslInit(mechanism, response), frame_type=1)
        assert peer.expect(SaslOutcome).code == code
        if code == AUTH:
            peer.expect_end_of_stream()
        else:
            peer.open()


def test_plain_without_an_initial_response_is_challenged(router: RunningRouter) -> None:
    with Peer(router.ports[PLAIN], opened=False) as peer:
        offered(peer)
        peer.say(SaslInit("PLAIN", None), frame_type=1)
        assert peer.expect(SaslChallenge).challenge == b""
        peer.say(SaslResponse(RIGHT), frame_type=1)
        assert peer.expect(SaslOutcome).code == OK


@pytest.mark.parametrize(
    ("number", "mechanism", "response", "user", "authenticated", "sasl"),
    [
        (OPEN, "", b"", "anonymous", False, None),
        (OPEN, "ANONYMOUS", b"root", "anonymous", False, "ANONYMOUS"),
        (BOTH, "PLAIN", RIGHT, "alice", True, "PLAIN"),
    ],
)
def test_the_user_of_a_connection_to_management(
    router: RunningRouter,
    number: int,
    mechanism: str,
    response: bytes,
    user: str,
    authenticated: bool,
    sasl: str | None,
) -> None:
    with Peer(router.ports[number], opened=False) as peer, node_of(router.ports[OPEN]) as node:
        if mechanism:
            assert peer.authenticate(mechanism, response) == OK
        peer.open()
        row = node.get("READ", type="connection", identity=str(peer.number))
        assert (row["user"], row["isAuthenticated"], row["sasl"]) == (user, authenticated, sasl)
