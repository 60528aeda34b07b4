"""GSSAPI through Cyrus SASL, end to end: a key distribution centre, a router, and another that dials it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.peer import Peer
from tests.kerberos import Realm, missing, running_realm
from tests.routers import DEADLINE_S, RunningRouter, running
from trouter.wire.framing import FRAME_SASL, SASL_HEADER, frame
from trouter.wire.performatives import (
    SaslChallenge,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
    decode_performative,
    encode_performative,
)

AUTH = 1

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "it is there")


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    with running_realm(tmp_path_factory.mktemp("realm")) as realm:
        yield realm


@pytest.fixture(scope="module")
def site(realm: Realm) -> Path:
    """Write the configuration of Cyrus SASL."""
    (realm.folder / "gss.conf").write_text(f"keytab: {realm.keytab}\nmech_list: GSSAPI\n")
    return realm.folder


@pytest.fixture(scope="module")
def router(realm: Realm, site: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    text = (
        # The failures of one test must not delay the answers of the next.
        f"router {{ id: R, saslConfigDir: {site}, saslConfigName: gss, authLockout: off }}\n"
        "listener { host: localhost, socketAddressFamily: IPv4, port: 0\n"
        "saslMechanisms: GSSAPI\nauthenticatePeer: yes\n}\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        for name, value in realm.environment.items():
            patch.setenv(name, value)
        with running(text, tmp_path_factory.mktemp("router")) as router:
            yield router


def calling(router: RunningRouter, site: Path, name: str) -> str:
    """Return a configuration that dials the router."""
    return (
        f"router {{ id: {name}, saslConfigDir: {site}, saslConfigName: gss }}\n"
        f"connector {{ name: there, host: localhost, port: {router.port}, role: route-container\n"
        "saslMechanisms: GSSAPI\n}\n"
    )


def test_a_router_with_a_ticket_gets_in(
    router: RunningRouter, realm: Realm, site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in realm.environment.items():
        monkeypatch.setenv(name, value)
    with running(calling(router, site, "C"), tmp_path) as caller:
        caller.wait_for_line("Connection Opened: dir=out .* auth=GSSAPI ")
    router.wait_for_line("Connection Opened: .* auth=GSSAPI user=alice.* container_id=C ")


def test_a_router_without_a_ticket_does_not(
    router: RunningRouter, realm: Realm, site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**realm.environment, "KRB5CCNAME": f"FILE:{tmp_path / 'none'}"}.items():
        monkeypatch.setenv(name, value)
    with running(calling(router, site, "D"), tmp_path) as caller:
        caller.wait_for_line("failed: the plugin that logs the router in failed")
    assert not router.matching("container_id=D ")


def test_rubbish_does_not_either(router: RunningRouter) -> None:
    for response in (None, b"", b"rubbish", b"\x60\x82\xff\xff" + bytes(500)):
        with Peer(router.port, opened=False) as peer:
            assert peer.begin_sasl() == ("GSSAPI",)
            peer.say(SaslInit("GSSAPI", response), frame_type=1)
            if not response:
                peer.expect(SaslChallenge)
                peer.say(SaslResponse(b"rubbish"), frame_type=1)
            assert peer.expect(SaslOutcome).code == AUTH
            peer.expect_end_of_stream()


def token_of(realm: Realm, site: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """Return the first token of a client with a ticket, which dials the test in place of the router."""
    for name, value in realm.environment.items():
        monkeypatch.setenv(name, value)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        text = (
            f"router {{ id: E, saslConfigDir: {site}, saslConfigName: gss }}\n"
            f"connector {{ name: here, host: localhost, port: {listening.getsockname()[1]}, role: route-container\n"
            "saslMechanisms: GSSAPI\n}\n"
        )
        listening.settimeout(DEADLINE_S)
        with running(text, folder), listening.accept()[0] as sock:
            sock.settimeout(DEADLINE_S)
            offer = encode_performative(SaslMechanisms(("GSSAPI",)))
            sock.sendall(SASL_HEADER + frame(0, offer, FRAME_SASL))
            received = b""
            while len(received) < 12 or len(received) < 8 + int.from_bytes(received[8:12], "big"):
                received += sock.recv(65536)
            init, _ = decode_performative(received, 16, len(received))
            assert isinstance(init, SaslInit)
            assert init.initial_response
            return bytes(init.initial_response)


def test_a_damaged_token_of_a_user_is_refused(
    router: RunningRouter, realm: Realm, site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = token_of(realm, site, tmp_path, monkeypatch)
    middle = len(token) // 2
    damaged = {
        "cut": token[:middle],
        "all but the last octet": token[:-1],
        "one bit changed": token[:middle] + bytes((token[middle] ^ 1,)) + token[middle + 1 :],
        "a length of 4 GiB": token[:1] + b"\x84\xff\xff\xff\xff" + token[2:],
        "twice": token + token,
        "as large as a frame permits": token[:64] + bytes(7000),
        "of another mechanism": token.replace(bytes.fromhex("2a864886f712010202"), bytes.fromhex("2b0601050502020202")),
    }
    before = len(router.lines)
    for what, octets in damaged.items():
        with Peer(router.port, opened=False) as peer:
            peer.begin_sasl()
            peer.say(SaslInit("GSSAPI", octets), frame_type=1)
            assert peer.expect(SaslOutcome).code == AUTH, what
            peer.expect_end_of_stream()
    router.assert_no_fault_of_ours(since=before)
