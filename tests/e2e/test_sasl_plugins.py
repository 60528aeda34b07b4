"""A router process with each way to authenticate, and real clients: the logins, and no secret in the log."""

from __future__ import annotations

import os
import signal
import socket
import time
import uuid
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from proton import ConnectionException
from proton.utils import BlockingConnection
from scramp import ScramClient

from tests.e2e.peer import Peer
from tests.e2e.test_authentication import address_of_this_machine
from tests.e2e.test_connectors import FAILED, OPENED, dialling
from tests.management.node import node_of
from tests.plugins import test_sasl_cyrus as cyrus
from tests.plugins.tokens import AUDIENCE, ISSUER, key_set, token
from tests.routers import DEADLINE_S, RunningRouter, StartRouter, process
from trouter.client import AuthenticationFailed, connect
from trouter.wire.framing import SASL_HEADER
from trouter.wire.performatives import (
    SaslChallenge,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
)
from trouter_plugins.users_file import edit_users, put_user

pytestmark = pytest.mark.slow

OK, AUTH = 0, 1
SECRET = "wonderland"
LISTENER = "listener {{ name: here, host: 127.0.0.1, authenticatePeer: yes, port: {} }}\n"
PAM_FOLDER = Path("/etc/pam.d")


@pytest.fixture
def users(tmp_path: Path) -> Path:
    path = tmp_path / "users"
    put_user(path, "alice", SECRET.encode())
    return path


def scram_router(
    start_router: StartRouter, users: Path, more: str = "0, saslMechanisms: SCRAM-SHA-256"
) -> RunningRouter:
    return start_router(f"router {{ id: R, usersFile: {users} }}\n{LISTENER.format(more)}")


def by_proton(port: int, user: str, password: str, mechanism: str) -> BlockingConnection:
    how: dict[str, Any] = {"allowed_mechs": mechanism, "allow_insecure_mechs": True, "reconnect": False}
    return BlockingConnection(f"127.0.0.1:{port}", user=user, password=password, timeout=DEADLINE_S, **how)


# SCRAM


async def test_the_client_of_the_project_logs_in_by_scram(start_router: StartRouter, users: Path) -> None:
    router = scram_router(start_router, users, "0, saslMechanisms: SCRAM-SHA-256 PLAIN")
    url = f"amqp://127.0.0.1:{router.port}"
    async with connect(url, user="alice", password=SECRET):
        router.wait_for_line("Connection Opened: .* auth=SCRAM-SHA-256 user=alice ")
    for user, password in (("alice", "wrong"), ("bob", SECRET)):
        with pytest.raises(AuthenticationFailed, match="did not accept the credentials"):
            async with connect(url, user=user, password=password):
                pytest.fail("it is wrong")
    assert SECRET not in router.text()


def test_scram_frame_by_frame(start_router: StartRouter, users: Path) -> None:
    router = scram_router(start_router, users, "0")
    with Peer(router.port, opened=False) as peer:
        assert peer.begin_sasl() == ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN")
        client = ScramClient(["SCRAM-SHA-512"], "alice", SECRET)
        peer.say(SaslInit("SCRAM-SHA-512", client.get_client_first().encode()), frame_type=1)
        client.set_server_first(peer.expect(SaslChallenge).challenge.decode())
        peer.say(SaslResponse(client.get_client_final().encode()), frame_type=1)
        client.set_server_final(peer.expect(SaslChallenge).challenge.decode())
        peer.say(SaslResponse(b""), frame_type=1)
        outcome = peer.expect(SaslOutcome)
        assert (outcome.code, outcome.additional_data) == (OK, None)
        peer.open()


@pytest.mark.parametrize("user", ["alice", "bob"])
def test_an_unknown_user_goes_the_steps_of_a_wrong_password(start_router: StartRouter, users: Path, user: str) -> None:
    router = scram_router(start_router, users)
    with Peer(router.port, opened=False) as peer:
        peer.begin_sasl()
        client = ScramClient(["SCRAM-SHA-256"], user, "wrong")
        peer.say(SaslInit("SCRAM-SHA-256", client.get_client_first().encode()), frame_type=1)
        client.set_server_first(peer.expect(SaslChallenge).challenge.decode())
        peer.say(SaslResponse(client.get_client_final().encode()), frame_type=1)
        assert peer.expect(SaslOutcome).code == AUTH
        peer.expect_end_of_stream()


@pytest.mark.parametrize("last", [b"", b"rubbish", b"c=biws,r=x,p=AAAA", b"\xff" * 300])
def test_an_invalid_scram_proof_ends_the_login(start_router: StartRouter, users: Path, last: bytes) -> None:
    router = scram_router(start_router, users)
    with Peer(router.port, opened=False) as peer:
        peer.begin_sasl()
        peer.say(SaslInit("SCRAM-SHA-256", b"n,,n=alice,r=x"), frame_type=1)
        peer.expect(SaslChallenge)
        peer.say(SaslResponse(last), frame_type=1)
        assert peer.expect(SaslOutcome).code == AUTH
        peer.expect_end_of_stream()


def test_a_connector_uses_scram_where_its_password_may_not_be_sent(
    start_router: StartRouter, users: Path, tmp_path: Path
) -> None:
    (tmp_path / "password").write_text(f"{SECRET}\n")
    there = scram_router(start_router, users, "0")
    here = start_router(dialling(there.port, f"saslUsername: alice, saslPassword: file:{tmp_path / 'password'}"))
    here.wait_for_line(f"{OPENED}.* auth=SCRAM-SHA-512 user=alice")
    there.wait_for_line("auth=SCRAM-SHA-512 user=alice")
    assert SECRET not in here.text() + there.text()


def test_a_connector_that_may_use_one_mechanism_uses_no_other(
    start_router: StartRouter, users: Path, tmp_path: Path
) -> None:
    (tmp_path / "password").write_text(f"{SECRET}\n")
    there = scram_router(start_router, users, "0")
    credentials = f"saslUsername: alice, saslPassword: file:{tmp_path / 'password'}"
    here = start_router(dialling(there.port, f"{credentials}, saslMechanisms: SCRAM-SHA-256"))
    here.wait_for_line(f"{OPENED}.* auth=SCRAM-SHA-256 ")
    other = start_router(dialling(there.port, f"{credentials}, saslMechanisms: SCRAM-SHA-1", name="B"))
    other.wait_for_line(f"{FAILED}no mechanism available")


@pytest.mark.parametrize("rounds", [0, 1])
def test_a_connector_does_not_trust_a_server_without_a_proof(
    start_router: StartRouter, tmp_path: Path, rounds: int
) -> None:
    (tmp_path / "password").write_text(f"{SECRET}\n")
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        server.settimeout(DEADLINE_S)
        credentials = f"saslUsername: alice, saslPassword: file:{tmp_path / 'password'}"
        here = start_router(dialling(server.getsockname()[1], credentials))
        with closing(server.accept()[0]) as sock:
            answers: list[Any] = [SaslMechanisms(("SCRAM-SHA-256",))]
            sock.sendall(SASL_HEADER + b"".join(sasl_frame(each) for each in answers))
            first = read_until(sock, b"r=")
            nonce = first.rpartition(b"r=")[2]
            if rounds:
                challenge = b"r=" + nonce + b"x,s=c2FsdHNhbHRzYWx0c2FsdA==,i=4096"
                sock.sendall(sasl_frame(SaslChallenge(challenge)))
                read_until(sock, b"p=")
            sock.sendall(sasl_frame(SaslOutcome(OK)))
            here.wait_for_line(f"{FAILED}the server accepted the login, but did not prove that it knows the password")
    assert SECRET not in here.text()


def sasl_frame(performative: Any) -> bytes:
    from trouter.wire.framing import frame
    from trouter.wire.performatives import encode_performative

    return bytes(frame(0, encode_performative(performative), 1))


def read_until(sock: socket.socket, mark: bytes) -> bytes:
    """Return all bytes up to the end of a frame with ``mark``."""
    sock.settimeout(DEADLINE_S)
    read = b""
    while mark not in read:
        octets = sock.recv(4096)
        assert octets, read
        read += octets
    return read


# PAM


@pytest.fixture
def permitting() -> Iterator[str]:
    """Install a PAM service that accepts every user."""
    if os.geteuid() != 0 or not PAM_FOLDER.is_dir():
        pytest.skip("only root can put a PAM service into /etc/pam.d")
    path = PAM_FOLDER / f"trouter-test-{uuid.uuid4().hex[:12]}"
    path.write_text("auth required pam_succeed_if.so quiet user ingroup root\naccount required pam_permit.so\n")
    yield path.name
    path.unlink()


def test_proton_gets_in_by_pam(start_router: StartRouter, permitting: str) -> None:
    router = start_router(
        f"router {{ id: R, pamService: {permitting} }}\n{LISTENER.format('0, allowInsecurePlain: loopback')}"
    )
    by_proton(router.port, "root", SECRET, "PLAIN").close()
    router.wait_for_line("auth=PLAIN user=root ")
    with pytest.raises(ConnectionException):
        by_proton(router.port, "nobody", SECRET, "PLAIN")
    assert SECRET not in router.text()


# Tokens


@pytest.fixture
def issuer(tmp_path: Path) -> str:
    """Return the attributes of the router section."""
    (tmp_path / "keys.json").write_text(key_set())
    return f"oauthIssuer: '{ISSUER}', oauthAudience: {AUDIENCE}, oauthJwks: {tmp_path / 'keys.json'}"


def oauth_router(start_router: StartRouter, issuer: str) -> RunningRouter:
    return start_router(
        f"router {{ id: R, {issuer}, oauthPlain: yes }}\n{LISTENER.format('0, allowInsecurePlain: loopback')}"
    )


def test_a_token_gets_in_and_is_not_logged(start_router: StartRouter, issuer: str) -> None:
    router = oauth_router(start_router, issuer)
    ticket = token()
    with Peer(router.port, opened=False) as peer:
        assert peer.begin_sasl() == ("OAUTHBEARER", "XOAUTH2", "PLAIN")
        peer.say(SaslInit("OAUTHBEARER", f"n,,\x01auth=Bearer {ticket}\x01\x01".encode()), frame_type=1)
        assert peer.expect(SaslOutcome).code == OK
        peer.open()
        router.wait_for_line("auth=OAUTHBEARER user=alice ")
    with Peer(router.port, opened=False) as peer:
        peer.begin_sasl()
        peer.say(SaslInit("XOAUTH2", f"user=alice\x01auth=Bearer {ticket}x\x01\x01".encode()), frame_type=1)
        assert peer.expect(SaslChallenge).challenge == b'{"status": "invalid_token"}'
        peer.say(SaslResponse(b""), frame_type=1)
        assert peer.expect(SaslOutcome).code == AUTH
        peer.expect_end_of_stream()
    by_proton(router.port, "alice", ticket, "PLAIN").close()
    router.wait_for_line("auth=PLAIN user=alice ")
    assert ticket.rpartition(".")[2] not in router.text()


def test_the_connection_ends_when_the_token_does(start_router: StartRouter, issuer: str) -> None:
    router = oauth_router(start_router, issuer)
    ticket = token(exp=time.time() - 27)  # half a minute of clock difference is tolerated
    with Peer(router.port, opened=False) as peer:
        assert peer.begin_sasl()
        peer.say(SaslInit("OAUTHBEARER", f"n,,\x01auth=Bearer {ticket}\x01\x01".encode()), frame_type=1)
        assert peer.expect(SaslOutcome).code == OK
        peer.open()
        error = peer.expect_close()
        assert error is not None
        assert (error.condition, error.description) == ("amqp:connection:forced", "credentials no longer valid")
    router.wait_for_line(r"\[C\d+\] Connection from .* closed: credentials no longer valid")


# Cyrus SASL


@pytest.mark.skipif(bool(cyrus.missing()), reason=cyrus.missing() or "it is there")
async def test_users_of_a_sasldb_get_in(start_router: StartRouter, tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    site = cyrus.write_site(tmp_path / "site")
    router = start_router(
        f"router {{ id: R, saslConfigDir: {site}, saslConfigName: {cyrus.NAME} }}\n"
        + LISTENER.format("0, allowInsecurePlain: loopback, saslMechanisms: SCRAM-SHA-256 DIGEST-MD5 PLAIN")
    )
    url = f"amqp://127.0.0.1:{router.port}"
    async with connect(url, user="alice", password=SECRET):
        router.wait_for_line("auth=SCRAM-SHA-256 user=alice ")
    with pytest.raises(AuthenticationFailed):
        async with connect(url, user="bob", password=SECRET):
            pytest.fail("there is no bob")
    by_proton(router.port, "alice", SECRET, "PLAIN").close()
    router.wait_for_line("auth=PLAIN user=alice ")
    with Peer(router.port, opened=False) as peer:
        assert peer.begin_sasl() == ("SCRAM-SHA-256", "DIGEST-MD5", "PLAIN")
        peer.say(SaslInit("DIGEST-MD5", None), frame_type=1)
        answer = cyrus.digest("alice", SECRET, peer.expect(SaslChallenge).challenge.decode())
        peer.say(SaslResponse(answer), frame_type=1)
        assert peer.expect(SaslChallenge).challenge.startswith(b"rspauth=")
        peer.say(SaslResponse(b""), frame_type=1)
        assert peer.expect(SaslOutcome).code == OK
        peer.open()
    assert SECRET not in router.text()


@pytest.mark.skipif(bool(cyrus.missing()), reason=cyrus.missing() or "it is there")
def test_another_configuration_of_cyrus_sasl_waits_for_a_restart(start_router: StartRouter, tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    site = cyrus.write_site(tmp_path / "site")
    router = start_router(
        f"router {{ id: R, saslConfigDir: {site}, saslConfigName: {cyrus.NAME} }}\n"
        + LISTENER.format("0, saslMechanisms: SCRAM-SHA-256")
    )
    text = router.configuration.read_text()
    router.configuration.write_text(text.replace(f"saslConfigName: {cyrus.NAME}", "saslConfigName: other"))
    router.process.send_signal(signal.SIGHUP)
    router.wait_for_line("needs a restart: .*saslConfigName")
    with Peer(router.port, opened=False) as peer:
        assert peer.begin_sasl() == ("SCRAM-SHA-256",)


# Configuration


def test_two_ways_to_check_a_password_stop_the_start(users: Path, issuer: str, tmp_path: Path) -> None:
    configuration = f"router {{ id: R, usersFile: {users}, {issuer}, oauthPlain: yes }}\n{LISTENER.format('0')}"
    with process(configuration, tmp_path) as router:
        assert router.wait() == 1
    assert "listener here: PLAIN is served by sasl_oauth and by sasl_plain at once; configure one" in router.text()


def test_a_listener_where_two_would_check_passwords_is_not_created(
    start_router: StartRouter, users: Path, issuer: str
) -> None:
    router = start_router(
        f"router {{ id: R, usersFile: {users}, {issuer}, oauthPlain: yes }}\n"
        "listener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }\n"
    )
    with node_of(router.port) as node:
        status, why = node.refused("CREATE", {"host": "127.0.0.1", "port": "0"}, type="listener", name="side")
        assert (status, "PLAIN is served by sasl_oauth and by sasl_plain at once" in why) == (400, True)
        node.create("listener", {"host": "127.0.0.1", "port": "0", "saslMechanisms": "XOAUTH2"}, name="side")
    router.wait_for_line(r"Listening on 127\.0\.0\.1:\d+ \(side\)")
    assert len(router.ports) == 2


# Users added and removed


async def test_a_changed_users_file_closes_only_connections_of_disabled_users(
    start_router: StartRouter, users: Path
) -> None:
    put_user(users, "bob", b"hunter2")
    router = scram_router(start_router, users, "0, saslMechanisms: SCRAM-SHA-256 PLAIN, allowInsecurePlain: loopback")
    url = f"amqp://127.0.0.1:{router.port}"
    async with connect(url, user="bob", password="hunter2"):
        with Peer(router.port, opened=False) as alice:
            alice.begin_sasl()
            alice.say(SaslInit("PLAIN", f"\0alice\0{SECRET}".encode()), frame_type=1)
            assert alice.expect(SaslOutcome).code == OK
            alice.open()
            edit_users(users, lambda entries: entries.update(alice=replace(entries["alice"], disabled=True)))
            error = alice.expect_close()
            assert error is not None
            assert (error.condition, error.description) == ("amqp:connection:forced", "credentials no longer valid")
        router.wait_for_line(r"\[C\d+\] Connection from .* closed: credentials no longer valid")
        assert attempt(router.port, "127.0.0.1", f"\0alice\0{SECRET}".encode()) == AUTH
        assert attempt(router.port, "127.0.0.1", b"\0bob\0hunter2") == OK
        put_user(users, "carol", b"new here")
        router.wait_for_line("read again, 3 user", 2)  # by PLAIN and by SCRAM
        assert attempt(router.port, "127.0.0.1", b"\0carol\0new here") == OK
    assert len(router.matching("no longer valid")) == 1


# Guesses


def test_a_guessing_host_waits_and_other_hosts_do_not(start_router: StartRouter, users: Path) -> None:
    host = address_of_this_machine()
    both = "".join(
        f"listener {{ host: {each}, port: 0, authenticatePeer: yes, allowInsecurePlain: yes, saslMechanisms: PLAIN }}\n"
        for each in (host, "127.0.0.1")
    )
    router = start_router(f"router {{ id: R, usersFile: {users}, authLockout: enforce }}\n{both}")
    for _ in range(5):
        assert attempt(router.ports[0], host, b"\0alice\0wrong") == AUTH
    began = time.monotonic()
    assert attempt(router.ports[0], host, f"\0alice\0{SECRET}".encode()) == OK
    assert time.monotonic() - began >= 1.0
    for number in range(8):
        assert attempt(router.ports[1], "127.0.0.1", f"\0user{number}\0wrong".encode()) == AUTH
    assert not router.matching("locked out")


def attempt(port: int, host: str, response: bytes) -> int:
    with Peer(port, host, opened=False) as peer:
        peer.begin_sasl()
        peer.say(SaslInit("PLAIN", response), frame_type=1)
        return peer.expect(SaslOutcome).code
