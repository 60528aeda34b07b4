"""Logins: SASL PLAIN with a file of users, connections on which passwords may be sent, and clients without SASL."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from proton import ConnectionException
from proton.utils import BlockingConnection

from tests.e2e.peer import Peer
from tests.management.node import node_of
from tests.routers import DEADLINE_S, RunningRouter, StartRouter, running
from trouter.wire.framing import AMQP_HEADER
from trouter.wire.performatives import Open, SaslChallenge, SaslInit, SaslOutcome, SaslResponse
from trouter_plugins.users_file import put_user

pytestmark = pytest.mark.slow

OK, AUTH = 0, 1
LOOPBACK = "authenticatePeer: yes, allowInsecurePlain: loopback, saslMechanisms: PLAIN"
RIGHT = b"\0alice\0wonderland"


@pytest.fixture
def users(tmp_path: Path) -> Path:
    path = tmp_path / "users"
    put_user(path, "alice", b"wonderland")
    return path


def start(start_router: StartRouter, users: Path, listener: str, host: str = "127.0.0.1") -> RunningRouter:
    return start_router(f"router {{ id: R, usersFile: {users} }}\nlistener {{ host: {host}, port: 0, {listener} }}\n")


@pytest.fixture(scope="module")
def with_passwords(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    """Run a router that requires passwords, and accepts them from this machine."""
    folder = tmp_path_factory.mktemp("router")
    put_user(folder / "users", "alice", b"wonderland")
    configuration = (
        f"router {{ id: R, usersFile: {folder / 'users'} }}\nlistener {{ host: 127.0.0.1, port: 0, {LOOPBACK} }}\n"
    )
    with running(configuration, folder) as router:
        yield router


def outcome(peer: Peer, mechanism: str, response: bytes | None) -> int:
    peer.say(SaslInit(mechanism, response), frame_type=1)
    return peer.expect(SaslOutcome).code


def test_a_user_with_the_password_is_let_in_and_named_in_the_log(with_passwords: RunningRouter) -> None:
    with Peer(with_passwords.port, opened=False) as peer:
        assert peer.begin_sasl() == ("PLAIN",)
        assert outcome(peer, "PLAIN", RIGHT) == OK
        peer.open()
        with_passwords.wait_for_line(rf"\[C{peer.number}\] Connection Opened: .* auth=PLAIN user=alice ")


@pytest.mark.parametrize(
    "response",
    [b"\0alice\0wrong", b"\0bob\0wonderland", b"\0alice\0", b"\0\0", b"no nulls at all", b"\0" * 100, b"\xff\0\xfe\0x"],
    ids=["wrong password", "unknown user", "no password", "no user", "garbage", "nulls", "no UTF-8"],
)
def test_no_other_user_is_let_in(with_passwords: RunningRouter, response: bytes) -> None:
    with Peer(with_passwords.port, opened=False) as peer:
        peer.begin_sasl()
        assert outcome(peer, "PLAIN", response) == AUTH
        peer.expect_end_of_stream()
        told = rf"\[C\d+\] Connection from {peer.address} \(to 127.0.0.1:0\) failed: amqp:unauthorized-access "
        told += r"Authentication failed \[mech=PLAIN\] user='[^']*' listener='listener/127.0.0.1:0': ."
        with_passwords.wait_for_line(told)
    assert "wonderland" not in with_passwords.text()


@pytest.mark.parametrize(("response", "code"), [(RIGHT, OK), (b"\0alice\0wrong", AUTH), (b"", AUTH)])
def test_a_client_without_an_initial_response_is_challenged_once(
    with_passwords: RunningRouter, response: bytes, code: int
) -> None:
    with Peer(with_passwords.port, opened=False) as peer:
        peer.begin_sasl()
        peer.say(SaslInit("PLAIN", None), frame_type=1)
        assert peer.expect(SaslChallenge).challenge == b""
        peer.say(SaslResponse(response), frame_type=1)
        assert peer.expect(SaslOutcome).code == code


def test_proton_gets_in_with_the_password_and_not_without(with_passwords: RunningRouter) -> None:
    url = f"127.0.0.1:{with_passwords.port}"
    how: dict[str, Any] = {"allowed_mechs": "PLAIN", "allow_insecure_mechs": True, "reconnect": False}
    how["timeout"] = DEADLINE_S
    connection = BlockingConnection(url, user="alice", password="wonderland", **how)
    with_passwords.wait_for_line("auth=PLAIN user=alice ")
    connection.close()
    with pytest.raises(ConnectionException):
        BlockingConnection(url, user="alice", password="looking glass", **how)


def test_plain_is_neither_offered_nor_accepted_where_it_is_not_allowed(start_router: StartRouter, users: Path) -> None:
    router = start(start_router, users, "authenticatePeer: yes, allowInsecurePlain: no")
    with Peer(router.port, opened=False) as peer:
        assert "PLAIN" not in peer.begin_sasl()
        assert outcome(peer, "PLAIN", RIGHT) == AUTH
        peer.expect_end_of_stream()


def address_of_this_machine() -> str:
    """Return an address of this machine that is not a loopback one; nothing is sent to find it."""
    for family, far in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as sock:
                sock.connect((far, 9))
                host: str = sock.getsockname()[0]
            with socket.create_server((host, 0), family=family):
                return host
        except OSError:
            continue
    pytest.skip("this machine has only loopback addresses")


@pytest.mark.parametrize(("allowed", "code"), [("loopback", AUTH), ("yes", OK)])
def test_a_password_from_another_machine_needs_the_listeners_yes(
    start_router: StartRouter, users: Path, allowed: str, code: int
) -> None:
    host = address_of_this_machine()
    router = start(start_router, users, f"authenticatePeer: yes, allowInsecurePlain: {allowed}", host)
    with Peer(router.port, host, opened=False) as peer:
        assert ("PLAIN" in peer.begin_sasl()) == (code == OK)
        assert outcome(peer, "PLAIN", RIGHT) == code


def test_a_client_without_sasl_is_refused_where_peers_must_authenticate(with_passwords: RunningRouter) -> None:
    with Peer(with_passwords.port, opened=False) as peer:
        peer.raw(AMQP_HEADER)
        peer.expect_header(AMQP_HEADER)
        peer.remote_open = peer.expect(Open)
        error = peer.expect_close()
        assert error is not None
        text = "Client skipped authentication - forbidden"
        assert (error.condition, error.description) == ("amqp:connection:policy-error", text)
        with_passwords.wait_for_line(rf"\[C\d+\] Connection from {peer.address} \(to .*\) failed: .*{text}")


def test_a_client_without_sasl_is_admitted_where_peers_need_not_authenticate(
    start_router: StartRouter, users: Path
) -> None:
    router = start(start_router, users, "authenticatePeer: no")
    with Peer(router.port) as peer:
        router.wait_for_line(rf"\[C{peer.number}\] Connection Opened: .* auth=no user= ")
    with Peer(router.port, sasl=True) as peer:
        router.wait_for_line(rf"\[C{peer.number}\] Connection Opened: .* auth=ANONYMOUS user=anonymous ")


@pytest.mark.parametrize("mechanism", ["ANONYMOUS", "anonymous", "Anonymous"])
def test_the_anonymous_user_is_not_authenticated_in_any_spelling(router: RunningRouter, mechanism: str) -> None:
    """Policies, user-ids and management rely on this."""
    with Peer(router.port, opened=False) as peer, node_of(router.port) as node:
        assert peer.authenticate(mechanism, b"") == OK
        peer.open()
        (row,) = [row for row in node.query("connection") if row["host"] == peer.address]
        assert (row["sasl"], row["user"], row["isAuthenticated"]) == ("ANONYMOUS", "anonymous", False)
