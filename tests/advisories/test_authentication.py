"""Logins: which succeed, and the effect of frames around them (security.md 7.4)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.advisories.examples import PERFORMATIVES, name
from tests.auth_double import ALICE, IDENTITY, plain, service
from tests.e2e.peer import Gone, Peer, connected
from tests.e2e.test_authentication import address_of_this_machine
from tests.e2e.websocket import WebSocket
from tests.policy.test_router_policy import POLICY, request, router_policy
from tests.routers import DEADLINE_S, ROOT, RunningRouter, running
from trouter.hooks import ConnectionRequest, VhostPolicy, hookimpl
from trouter.wire.framing import AMQP_HEADER, frame
from trouter.wire.performatives import (
    Close,
    Open,
    Performative,
    SaslInit,
    SaslOutcome,
    encode_performative,
)
from trouter_plugins.users_file import put_user

pytestmark = pytest.mark.attack

OK, AUTH = 0, 1
SECRET = "wonderland"
CONFIGURATION = """
router {{ id: R, usersFile: {folder}/users, authLockout: off }}
authServicePlugin {{ name: others, host: 127.0.0.1, port: {port} }}
listener {{ host: 127.0.0.1, port: 0, authenticatePeer: yes, saslMechanisms: PLAIN, allowInsecurePlain: loopback }}
listener {{ host: 127.0.0.1, port: 0, allowInsecurePlain: loopback, saslPlugin: others }}
listener {{
    name: web
    host: 0.0.0.0
    port: 0
    http: yes
    allowInsecurePlain: loopback
    saslMechanisms: PLAIN ANONYMOUS
}}
"""


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    folder = tmp_path_factory.mktemp("router")
    put_user(folder / "users", "alice", SECRET.encode())
    with (
        service(plain({IDENTITY: ALICE})) as double,
        running(CONFIGURATION.format(folder=folder, port=double.port), folder) as process,
    ):
        yield process


@pytest.fixture(autouse=True)
def other_peers_can_log_in_afterwards(router: RunningRouter) -> Iterator[None]:
    yield
    with Peer(router.port, opened=False) as peer:
        assert peer.begin_sasl() == ("PLAIN",)
    router.assert_no_fault_of_ours()


@pytest.mark.parametrize("early", PERFORMATIVES, ids=name)
@pytest.mark.parametrize("when", ["with the init", "after the outcome", "before the init"])
def test_frames_around_a_refused_login_have_no_effect(router: RunningRouter, when: str, early: Performative) -> None:
    """CVE-2015-0224, CVE-2016-4432, CVE-2026-27446: frames of AMQP around a login that fails."""
    octets = AMQP_HEADER + frame(0, encode_performative(Open("intruder"))) + frame(0, encode_performative(early))
    init = frame(0, encode_performative(SaslInit("PLAIN", b"\0alice\0wrong")), 1)
    with Peer(router.port, opened=False) as peer:
        peer.begin_sasl()
        peer.raw({"before the init": octets + init, "with the init": init + octets}.get(when, init))
        with suppress(Gone, OSError):  # the router may close before it has read everything
            assert peer.expect(SaslOutcome).code != OK
            if when == "after the outcome":
                peer.raw(octets)
            peer.expect_end_of_stream()
    assert not router.matching("intruder")


@pytest.mark.parametrize("early", PERFORMATIVES[1:], ids=name)
def test_a_client_without_sasl_is_refused_with_any_first_frames(router: RunningRouter, early: Performative) -> None:
    with Peer(router.port, opened=False) as peer:
        opened = frame(0, encode_performative(Open("intruder"))) + frame(0, encode_performative(early))
        peer.raw(AMQP_HEADER + opened)
        peer.expect_header(AMQP_HEADER)
        peer.expect(Open)
        close = peer.expect(Close)
        assert close.error is not None
        assert close.error.condition == "amqp:connection:policy-error"
        peer.expect_end_of_stream()


@pytest.mark.parametrize(("listener", "password", "code"), [(0, SECRET, OK), (0, "other", AUTH), (1, SECRET, OK)])
def test_each_listener_uses_its_own_authentication_service(
    router: RunningRouter, listener: int, password: str, code: int
) -> None:
    """CVE-2017-15702: the service of the second listener admits every user, but not for the first listener."""
    with Peer(router.ports[listener], opened=False) as peer:
        assert peer.authenticate("PLAIN", f"\0alice\0{password}".encode()) == code
    with Peer(router.ports[0], opened=False) as peer:
        assert peer.authenticate("PLAIN", f"\0stranger\0{SECRET}".encode()) == AUTH
    with Peer(router.ports[1], opened=False) as peer:
        assert peer.authenticate("PLAIN", f"\0stranger\0{SECRET}".encode()) == OK


HEADERS = ("X-Forwarded-For", "Forwarded", "X-Real-IP", "X-Client-IP", "True-Client-IP", "CF-Connecting-IP")


def offered_by_websocket(router: RunningRouter, host: str, **said: str) -> tuple[str, ...]:
    port = int(router.wait_for_line(r"Listening for HTTP on \S+:(\d+)")[1])
    wire = WebSocket(connected(host, port), headers=[(name.encode(), value.encode()) for name, value in said.items()])
    with Peer(port, wire=wire, opened=False) as peer:
        return peer.begin_sasl()


def test_headers_of_a_peer_do_not_change_its_address(router: RunningRouter) -> None:
    """CVE-2026-57216, 67411: "this machine only" goes by the real remote address, not by an address in a header."""
    assert "PLAIN" in offered_by_websocket(router, "127.0.0.1")
    far = address_of_this_machine()
    assert "PLAIN" not in offered_by_websocket(router, far)
    for header in HEADERS:
        for value in ("127.0.0.1", "for=127.0.0.1", "::1"):
            assert "PLAIN" not in offered_by_websocket(router, far, **{header: value})


def test_a_proxys_preface_is_no_amqp(router: RunningRouter) -> None:
    for preface in (b"PROXY TCP4 127.0.0.1 127.0.0.1 1 1\r\n", b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c"):
        with Peer(router.port, opened=False) as peer:
            peer.raw(preface)
            peer.expect_header(AMQP_HEADER)
            peer.expect(Open)
            assert peer.expect_close() is not None


NAMES = ["*)(uid=*", "cn=a,dc=b", "../../etc/passwd", "a\0b", "%s%n", "${user}", "'; DROP TABLE users; --", "a\r\nb"]


@pytest.mark.parametrize("user", NAMES)
def test_plugins_get_a_user_name_unchanged(user: str) -> None:
    """CVE-2026-67223, CVE-2024-12582, CVE-2022-24407: a name is data, never put into a query, a pattern or a path."""
    seen: list[str] = []

    class Asks:
        @hookimpl
        def vhost_policy(self, connection: ConnectionRequest) -> VhostPolicy:
            seen.append(connection.user)
            return VhostPolicy("one")

    made, _ = router_policy(POLICY, Asks())
    assert made.judge_open(request(user=user)).allowed
    assert seen == [user]


@pytest.mark.parametrize("user", NAMES)
def test_a_user_name_is_looked_up_unchanged(router: RunningRouter, user: str) -> None:
    for login in (f"\0{user}\0{SECRET}", f"{user}\0alice\0{SECRET}"):
        with Peer(router.port, opened=False) as peer:
            assert peer.authenticate("PLAIN", login.encode()) == AUTH
            peer.expect_end_of_stream()


@pytest.mark.parametrize("nuls", [0, 1, 3, 1000])
def test_nuls_in_a_login(router: RunningRouter, nuls: int) -> None:
    """CVE-2016-3094, CVE-2018-1298."""
    for octets in (b"\0" * nuls or b"x", b"a\0" * nuls or b"x", b"\0" * nuls + b"alice", b"\xff" * 10 + b"\0" * nuls):
        with Peer(router.port, opened=False) as peer:
            assert peer.authenticate("PLAIN", octets) == AUTH
            peer.expect_end_of_stream()


def test_a_login_of_a_megabyte(router: RunningRouter) -> None:
    with Peer(router.port, opened=False) as peer:
        peer.begin_sasl()
        with suppress(Gone, OSError):
            peer.say(SaslInit("PLAIN", b"\0alice\0" + b"x" * 1024 * 1024), frame_type=1)
            assert peer.expect(SaslOutcome).code != OK
            peer.expect_end_of_stream()


@pytest.mark.parametrize("password", ["", "\0", "anonymous"])
def test_a_login_without_a_password_is_none(router: RunningRouter, password: str) -> None:
    """CVE-2021-26117, CVE-2016-9877: no mechanism succeeds without its credentials."""
    with Peer(router.port, opened=False) as peer:
        assert peer.authenticate("PLAIN", f"\0alice\0{password}".encode()) == AUTH
        peer.expect_end_of_stream()


def test_no_secret_is_built_in() -> None:
    """CVE-2024-6535: the secret that makes an unknown user look like a known one is drawn anew in each process."""
    code = "from trouter_plugins import users; print(users._DECOY_KEY.hex())"
    drawn = {
        subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=DEADLINE_S, check=True
        ).stdout
        for _ in range(3)
    }
    assert len(drawn) == 3
    assert all(len(each.strip()) >= 32 for each in drawn)
