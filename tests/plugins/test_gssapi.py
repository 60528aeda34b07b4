"""GSSAPI through Cyrus SASL, end to end: a key distribution centre, a router, and another that dials it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.peer import Peer
from tests.kerberos import Realm, missing, running_realm
from tests.routers import RunningRouter, running
from trouter.wire.framing import SASL_HEADER
from trouter.wire.performatives import SaslChallenge, SaslInit, SaslMechanisms, SaslOutcome, SaslResponse

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
        f"router {{ id: R, saslConfigDir: {site}, saslConfigName: gss }}\n"
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
            peer.raw(SASL_HEADER)
            peer.expect_header(SASL_HEADER)
            assert peer.expect(SaslMechanisms).sasl_server_mechanisms == ("GSSAPI",)
            peer.say(SaslInit("GSSAPI", response), frame_type=1)
            if not response:
                peer.expect(SaslChallenge)
                peer.say(SaslResponse(b"rubbish"), frame_type=1)
            assert peer.expect(SaslOutcome).code == AUTH
            peer.expect_end_of_stream()
