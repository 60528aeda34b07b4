"""Clients that guess, flood or send slowly, through real sockets: the router's reaction, and other clients."""

from __future__ import annotations

import socket
from contextlib import ExitStack, closing, suppress
from functools import partial
from pathlib import Path

import pytest
from scramp import ScramClient

from tests.e2e.peer import Gone, Peer
from tests.http.test_live import HANDSHAKE, http_port
from tests.management.node import node_of
from tests.routers import DEADLINE_S, RunningRouter, StartRouter
from tests.waiting import until
from trouter.wire.framing import AMQP_HEADER, SASL_HEADER, frame
from trouter.wire.performatives import (
    Open,
    SaslChallenge,
    SaslInit,
    SaslOutcome,
    SaslResponse,
    encode_performative,
)
from trouter_plugins.users_file import put_user

pytestmark = pytest.mark.slow

OK, AUTH, TEMPORARY = 0, 1, 4
SECRET = "wonderland"
#: Locks without delays, so that no test has to wait.
LOCKING = "authDelayAfter: 1000, authLockoutAfter: 3, authLockoutSeconds: 3600"
LISTENER = "listener {{ host: 127.0.0.1, port: 0, allowInsecurePlain: loopback, saslMechanisms: {} }}\n"
ANONYMOUS = "listener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }\n"


@pytest.fixture
def users(tmp_path: Path) -> Path:
    path = tmp_path / "users"
    for user in ("alice", "bob"):
        put_user(path, user, SECRET.encode())
    return path


def start(start_router: StartRouter, users: Path, more: str, mechanisms: str = "PLAIN") -> RunningRouter:
    return start_router(f"router {{ id: R, usersFile: {users}, {more} }}\n{LISTENER.format(mechanisms)}{ANONYMOUS}")


def attempt(router: RunningRouter, user: str, password: str, port: int = 0) -> int:
    with Peer(port or router.port, opened=False) as peer:
        return peer.authenticate("PLAIN", f"\0{user}\0{password}".encode())


def scram(router: RunningRouter, user: str, password: str) -> list[object]:
    """Return the kinds of the router's answers to a SCRAM client, the outcome last."""
    with Peer(router.port, opened=False) as peer:
        peer.begin_sasl()
        client = ScramClient(["SCRAM-SHA-256"], user, password)
        peer.say(SaslInit("SCRAM-SHA-256", client.get_client_first().encode()), frame_type=1)
        client.set_server_first(peer.expect(SaslChallenge).challenge.decode())
        peer.say(SaslResponse(client.get_client_final().encode()), frame_type=1)
        said = peer.next()
        if isinstance(said, SaslChallenge):
            peer.say(SaslResponse(b""), frame_type=1)
            return ["proof", peer.expect(SaslOutcome).code]
        assert isinstance(said, SaslOutcome)
        return [said.code]


# Guesses


def test_a_user_with_failed_logins_is_locked_out_at_that_host_and_other_users_are_not(
    start_router: StartRouter, users: Path
) -> None:
    router = start(start_router, users, LOCKING)
    assert [attempt(router, "alice", "wrong") for _ in range(3)] == [AUTH] * 3
    router.wait_for_line(
        r"SERVER \(warning\) \[C\d+\] user 'alice' is locked out at 127.0.0.1 for 3600 s: 3 failed logins within 600 s"
    )
    assert attempt(router, "alice", SECRET) == AUTH
    router.wait_for_line("Authentication failed \\[mech=PLAIN\\] user='alice' .*: the user is locked out")
    assert attempt(router, "bob", SECRET) == OK
    assert len(router.matching("is locked out at")) == 1
    assert SECRET not in router.text()


def test_a_lock_reveals_neither_the_existing_users_nor_the_right_password(
    start_router: StartRouter, users: Path
) -> None:
    router = start(start_router, users, LOCKING, "SCRAM-SHA-256")
    assert scram(router, "alice", SECRET) == ["proof", OK]
    for user in ("alice", "nobody"):
        assert [scram(router, user, "wrong") for _ in range(3)] == [[AUTH]] * 3
    assert scram(router, "alice", SECRET) == scram(router, "alice", "wrong") == scram(router, "nobody", "x") == [AUTH]
    assert scram(router, "bob", SECRET) == ["proof", OK]


def test_management_shows_locks_and_lifts_them(start_router: StartRouter, users: Path) -> None:
    router = start(start_router, users, LOCKING)
    for _ in range(3):
        attempt(router, "alice", "wrong")
    attempt(router, "b:o\nb", "wrong")
    with node_of(router.ports[1]) as node:
        rows = {row["user"]: row for row in node.query("authLockout")}
        assert rows.keys() == {"alice", "b:o\\nb"}
        alice = rows["alice"]
        assert (alice["host"], alice["failures"], alice["locked"]) == ("127.0.0.1", 3, True)
        assert 3500 < alice["lockedSeconds"] <= 3600
        assert alice["identity"] == alice["name"] == "authLockout/127.0.0.1:alice"
        assert rows["b:o\\nb"]["identity"] == "authLockout/127.0.0.1:b%3Ao%0Ab"
        assert node.get("READ", type="authLockout", identity=alice["identity"])["failures"] == 3
        assert node.refused("CREATE", {}, type="authLockout", name="x")[0] == 501
        assert node.refused("UPDATE", {"failures": 0}, type="authLockout", name=alice["name"])[0] == 501
        node.ask("DELETE", type="authLockout", name=alice["name"])
        assert node.refused("READ", type="authLockout", name=alice["name"])[0] == 404
        assert node.refused("DELETE", type="authLockout", name=alice["name"])[0] == 404
    router.wait_for_line(r"an operator cleared the failed logins of authLockout/127.0.0.1:alice$")
    assert attempt(router, "alice", SECRET) == OK


def test_an_alarm_locks_no_user_out(start_router: StartRouter, users: Path) -> None:
    router = start(start_router, users, f"{LOCKING}, authLockout: alarm")
    for _ in range(4):
        assert attempt(router, "alice", "wrong") == AUTH
    router.wait_for_line("user 'alice' would be locked out at 127.0.0.1")
    assert attempt(router, "alice", SECRET) == OK


def test_exempt_hosts_may_fail_as_often_as_they_like(start_router: StartRouter, users: Path) -> None:
    router = start(start_router, users, f'{LOCKING}, authLockoutExempt: "127.0.0.0/8"')
    for _ in range(6):
        assert attempt(router, "alice", "wrong") == AUTH
    assert attempt(router, "alice", SECRET) == OK


def lets_two_in(port: int) -> bool:
    try:
        with Peer(port, opened=False), Peer(port) as peer:
            return bool(peer.number)
    except Gone:
        return False


def test_a_client_that_goes_away_while_made_to_wait_is_not_waited_for(start_router: StartRouter, users: Path) -> None:
    router = start(start_router, users, "authDelayAfter: 1, authLongestDelaySeconds: 3600, handshakeExempt: none")
    assert attempt(router, "alice", "wrong") == AUTH
    # There is room for 20 that have not opened, and the first may still be among them. Each takes a turn of at least a
    # second: the last ones wait longer than this test runs.
    with ExitStack() as stack:
        for _ in range(19):
            peer = stack.enter_context(Peer(router.port, opened=False))
            peer.begin_sasl()
            peer.say(SaslInit("PLAIN", b"\0alice\0wrong"), frame_type=1)
    router.wait_for_line("peer closed the socket", 19)
    until(partial(lets_two_in, router.ports[1]), "room for two more")


def test_many_passwords_tried_at_once_are_not_judged_at_once(start_router: StartRouter, users: Path) -> None:
    guesses = "authLockout: enforce, authDelayAfter: 1, authLongestDelaySeconds: 1, handshakeExempt: none"
    router = start(start_router, users, guesses)
    with ExitStack() as stack:
        peers = [stack.enter_context(Peer(router.port, opened=False)) for _ in range(6)]
        for peer in peers:
            peer.begin_sasl()
        for number, peer in enumerate(peers):
            peer.say(SaslInit("PLAIN", f"\0user{number}\0wrong".encode()), frame_type=1)
        codes = [peer.expect(SaslOutcome).code for peer in peers]
    assert AUTH in codes
    assert TEMPORARY in codes


# Floods


def end_of(sock: socket.socket) -> bytes:
    """Return the bytes up to the router's close."""
    octets = b""
    try:
        while data := sock.recv(1000):
            octets += data
    except ConnectionResetError:
        pass
    return octets


def test_so_many_handshakes_in_all(start_router: StartRouter) -> None:
    router = start_router(f"router {{ id: R, maxHandshakes: 2, handshakeExempt: none }}\n{ANONYMOUS}{ANONYMOUS}")
    with Peer(router.ports[0], opened=False), Peer(router.ports[1], opened=False):
        router.wait_for_line("Accepted connection", 2)
        with closing(socket.create_connection(("127.0.0.1", router.ports[1]), DEADLINE_S)) as sock:
            assert end_of(sock) == b""
        router.wait_for_line("refused: maxHandshakes 2$")


def test_a_host_that_guesses_on_while_throttled_is_soon_closed_at_accept(
    start_router: StartRouter, users: Path
) -> None:
    guesses = "authLockout: enforce, authDelayAfter: 1, authLongestDelaySeconds: 1, handshakeExempt: none"
    router = start(start_router, users, f"{guesses}, acceptRatePerHost: 1, acceptBurstPerHost: 11")
    guess = SASL_HEADER + frame(0, encode_performative(SaslInit("PLAIN", b"\0alice\0wrong")), 1)
    assert attempt(router, "alice", "wrong") == AUTH
    heard = [b"anything"]
    while heard[-1] and len(heard) < 5:  # fewer than may arrive at once
        with ExitStack() as stack:
            # Two at a time: the second would have to wait for the first, longer than the longest delay.
            pair = [
                stack.enter_context(closing(socket.create_connection(("127.0.0.1", router.port), DEADLINE_S)))
                for _ in range(2)
            ]
            for sock in pair:
                with suppress(ConnectionError):
                    sock.sendall(guess)
            heard.append([end_of(sock) for sock in pair][-1])
    assert heard[-1] == b""
    router.wait_for_line("Authentication failed \\[mech=PLAIN\\] .*: too many failures")
    router.wait_for_line("refused: more than acceptRatePerHost 1 a second from 127.0.0.1")


# Slow clients


# The same through WebSockets


def sees_close(sock: socket.socket) -> None:
    """Check that the router closes the WebSocket."""
    octets = b""
    while not octets.endswith(b"\x88\x02\x03\xe8"):
        octets += (data := sock.recv(1000))
        assert data


def test_websockets_are_held_to_the_same(start_router: StartRouter) -> None:
    web = "listener { name: web, host: 127.0.0.1, port: 0, http: yes, saslMechanisms: ANONYMOUS }\n"
    more = "maxHandshakesPerHost: 2, acceptRatePerHost: 1, acceptBurstPerHost: 4, handshakeExempt: none"
    router = start_router(f"router {{ id: R, {more} }}\n{web}{ANONYMOUS}")
    port = http_port(router)
    with ExitStack() as stack:
        for number in range(3):
            sock = stack.enter_context(closing(socket.create_connection(("127.0.0.1", port), DEADLINE_S)))
            sock.sendall(HANDSHAKE)
            if number < 2:
                assert sock.recv(12) == b"HTTP/1.1 101"
            else:  # a WebSocket, and nothing after it
                sees_close(sock)
        router.wait_for_line("refused: maxHandshakesPerHost 2 from 127.0.0.1")
        for _ in range(3):
            sock = stack.enter_context(closing(socket.create_connection(("127.0.0.1", port), DEADLINE_S)))
        assert end_of(sock) == b""


# Malformed logins


MALFORMED = {
    "no NUL": b"alice",
    "one NUL": b"alice\0" + SECRET.encode(),
    "three NULs": f"\0alice\0{SECRET}\0".encode(),
    "a thousand NULs": b"\0" * 1000,
    "no password": b"\0alice\0",
    "no name": f"\0\0{SECRET}".encode(),
    "nothing but the two NULs": b"\0\0",
    "no UTF-8": b"\0alice\xff\0" + SECRET.encode(),
    "a name of 300 bytes": b"\0" + b"x" * 300 + b"\0" + SECRET.encode(),
    "more than a response may have": b"\0alice\0" + b"x" * 2000,
    "the authority of another user": f"bob\0alice\0{SECRET}".encode(),
}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> object:
    from tests.routers import running

    folder = tmp_path_factory.mktemp("router")
    put_user(folder / "users", "alice", SECRET.encode())
    configuration = f"router {{ id: R, usersFile: {folder / 'users'}, authLockout: off }}\n{LISTENER.format('PLAIN')}"
    with running(configuration, folder) as router:
        yield router


@pytest.mark.parametrize("how", MALFORMED)
def test_a_malformed_login_is_refused_and_the_next_one_is_not(plain: RunningRouter, how: str) -> None:
    with Peer(plain.port, opened=False) as peer:
        assert peer.authenticate("PLAIN", MALFORMED[how]) == AUTH
        peer.expect_end_of_stream()
    assert attempt(plain, "alice", SECRET) == OK
    assert SECRET not in plain.text()


def test_an_oversized_sasl_frame_is_refused_on_its_first_octets(plain: RunningRouter) -> None:
    for size in (8193, 1 << 20, 0xFFFFFFFF):
        with Peer(plain.port, opened=False) as peer:
            peer.begin_sasl()
            peer.raw(size.to_bytes(4, "big") + b"\2\1\0\0")
            try:
                assert peer.expect(SaslOutcome).code != OK
                peer.expect_end_of_stream()
            except Gone:
                pass


@pytest.mark.parametrize("then", ["open at once", "open after the outcome"])
def test_after_a_refusal_nothing_is_looked_at(plain: RunningRouter, then: str) -> None:
    early = AMQP_HEADER + frame(0, encode_performative(Open("intruder")))
    with Peer(plain.port, opened=False) as peer:
        peer.begin_sasl()
        init = frame(0, encode_performative(SaslInit("PLAIN", b"\0alice\0wrong")), 1)
        peer.raw(init + (early if then == "open at once" else b""))
        assert peer.expect(SaslOutcome).code == AUTH
        if then == "open after the outcome":
            peer.raw(early)
        peer.expect_end_of_stream()
    assert not plain.matching("intruder")


@pytest.mark.parametrize("name", ["ANONYMOUS", "EXTERNAL", "SCRAM-SHA-256", "XOAUTH2", "", "A" * 100, "PL\nAIN"])
def test_a_mechanism_that_was_not_offered(plain: RunningRouter, name: str) -> None:
    with Peer(plain.port, opened=False) as peer:
        assert peer.begin_sasl() == ("PLAIN",)
        peer.say(SaslInit(name, b"\0alice\0" + SECRET.encode()), frame_type=1)
        assert peer.expect(SaslOutcome).code == AUTH
        peer.expect_end_of_stream()
        shown = "'PL.*nAIN'" if "\n" in name else name or "none"
        plain.wait_for_line(rf"Connection from {peer.address} \(to .*Authentication failed \[mech={shown}\] user=")
    assert SECRET not in plain.text()
