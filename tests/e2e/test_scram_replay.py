"""A recorded login, sent again, logs nobody in: each login has a nonce of the router's own."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from scramp import ScramClient

from tests.e2e.peer import Gone, Peer
from tests.plugins import test_sasl_cyrus as cyrus
from tests.routers import RunningRouter, running
from trouter.wire.framing import SASL_HEADER
from trouter.wire.performatives import SaslChallenge, SaslInit, SaslMechanisms, SaslOutcome, SaslResponse
from trouter_plugins.users_file import put_user

pytestmark = [pytest.mark.attack, pytest.mark.slow]

OK = 0
SECRET = "wonderland"
LISTENER = "listener { host: 127.0.0.1, port: 0, authenticatePeer: yes, saslMechanisms: SCRAM-SHA-256 }\n"


def of_a_file(folder: Path) -> str:
    put_user(folder / "users", "alice", SECRET.encode())
    return f"router {{ id: R, usersFile: {folder / 'users'} }}\n{LISTENER}"


def of_cyrus(folder: Path) -> str:
    site = cyrus.write_site(folder)
    return f"router {{ id: R, saslConfigDir: {site}, saslConfigName: {cyrus.NAME} }}\n{LISTENER}"


WAYS: list[object] = [
    of_a_file,
    pytest.param(of_cyrus, marks=pytest.mark.skipif(bool(cyrus.missing()), reason=cyrus.missing() or "it is there")),
]


@pytest.fixture(scope="module", params=WAYS)
def router(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    made: Callable[[Path], str] = request.param
    folder = tmp_path_factory.mktemp("router")
    with running(made(folder), folder) as router:
        yield router


def begin(peer: Peer, first: bytes) -> bytes:
    """Send a first message; return the challenge."""
    assert peer.begin_sasl() == ("SCRAM-SHA-256",)
    peer.say(SaslInit("SCRAM-SHA-256", first), frame_type=1)
    return peer.expect(SaslChallenge).challenge


def recorded(router: RunningRouter) -> tuple[bytes, bytes, bytes]:
    """Log in; return the client's first message, the challenge, and the client's proof."""
    client = ScramClient(["SCRAM-SHA-256"], "alice", SECRET)
    first = client.get_client_first().encode()
    with Peer(router.port, opened=False) as peer:
        challenge = begin(peer, first)
        client.set_server_first(challenge.decode())
        proof = client.get_client_final().encode()
        peer.say(SaslResponse(proof), frame_type=1)
        client.set_server_final(peer.expect(SaslChallenge).challenge.decode())
        peer.say(SaslResponse(b""), frame_type=1)
        assert peer.expect(SaslOutcome).code == OK
    return first, challenge, proof


def nonce(message: bytes) -> bytes:
    (found,) = [part for part in message.split(b",") if part.startswith(b"r=")]
    return found


def assert_refused(peer: Peer) -> None:
    """Read to the end of the stream; an outcome, if one comes before, is a refusal."""
    try:
        while True:
            said = peer.next()
            assert isinstance(said, SaslMechanisms | SaslChallenge) or (
                isinstance(said, SaslOutcome) and said.code != OK
            )
    except Gone:
        pass


def test_a_recorded_login_sent_again_is_refused(router: RunningRouter) -> None:
    first, challenge, proof = recorded(router)
    with Peer(router.port, opened=False) as peer:
        again = begin(peer, first)
        assert nonce(again) != nonce(challenge)
        assert again.split(b",")[1:] == challenge.split(b",")[1:]
        peer.say(SaslResponse(proof), frame_type=1)
        assert_refused(peer)


def test_a_recorded_proof_with_the_nonce_of_now_is_refused(router: RunningRouter) -> None:
    first, challenge, proof = recorded(router)
    with Peer(router.port, opened=False) as peer:
        now = nonce(begin(peer, first))
        peer.say(SaslResponse(proof.replace(nonce(challenge), now)), frame_type=1)
        assert_refused(peer)


def test_a_proof_sent_before_its_challenge_is_refused(router: RunningRouter) -> None:
    """The whole recording is sent before the router is read, and nothing after it."""
    first, _, proof = recorded(router)
    with Peer(router.port, opened=False) as peer:
        peer.raw(SASL_HEADER)
        peer.say(SaslInit("SCRAM-SHA-256", first), frame_type=1)
        peer.say(SaslResponse(proof), frame_type=1)
        peer.say(SaslResponse(b""), frame_type=1)
        peer.expect_header(SASL_HEADER)
        peer.expect(SaslMechanisms)
        peer.expect(SaslChallenge)
        peer.sock.shutdown(socket.SHUT_WR)  # the router waits no longer for the rest of the login
        assert_refused(peer)


def test_a_proof_used_twice_in_one_login_is_no_second_login(router: RunningRouter) -> None:
    first, _, proof = recorded(router)
    with Peer(router.port, opened=False) as peer:
        begin(peer, first)
        peer.say(SaslInit("SCRAM-SHA-256", first), frame_type=1)
        peer.say(SaslResponse(proof), frame_type=1)
        assert_refused(peer)
    assert len(router.matching("Connection Opened")) == 0
    router.assert_no_fault_of_ours()
