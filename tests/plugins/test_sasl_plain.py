"""sasl_plain: the logins that it accepts and refuses, and that no secret leaves it."""

from __future__ import annotations

import logging
import threading
import traceback
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from trouter.hooks import (
    Authenticated,
    Challenge,
    ConfigurationRefused,
    ListenerFacts,
    PeerFacts,
    Plugins,
    Refused,
    RouterFacts,
)
from trouter_plugins import sasl_plain
from trouter_plugins.users import Users
from trouter_plugins.users_file import edit_users, put_user
from trouter_plugins.verifiers import PasswordHash

SECRET = "open s\u00e9same"
HASH = PasswordHash.make(SECRET.encode())
USERS = Users({"alice": HASH, "b\u00f6b smith": HASH})


def peer_of(allowed: str = "no", *, encrypted: bool = False, loopback: bool = False) -> PeerFacts:
    listener = ListenerFacts("here", "", "amqp", allow_insecure_plain=allowed)
    return PeerFacts(1, listener, "192.0.2.1", 40000, encrypted=encrypted, loopback=loopback)


def plain(user: str, password: str, authorization_id: str = "") -> bytes:
    return f"{authorization_id}\0{user}\0{password}".encode()


def exchange_with(users: Users = USERS) -> sasl_plain.PlainExchange:
    return sasl_plain.PlainExchange(users, trio.CapacityLimiter(2))


@pytest.fixture
def users_file(tmp_path: Path) -> Path:
    path = tmp_path / "users"
    path.write_text(f"# ours\n\nalice:{HASH.format()}\n")
    path.chmod(0o600)
    return path


@pytest.fixture
def plugins(users_file: Path) -> Plugins:
    plugins = Plugins([sasl_plain])
    plugins.configure(RouterFacts("QDR.A", sasl_users_file=str(users_file)))
    return plugins


# Answers


@pytest.mark.parametrize("user", ["alice", "b\u00f6b smith"])
@pytest.mark.parametrize("explicit", [False, True])
async def test_the_right_password_lets_in(user: str, explicit: bool) -> None:
    response = plain(user, SECRET, user if explicit else "")
    assert await exchange_with().respond(response) == Authenticated(user)


@pytest.mark.parametrize(
    ("user", "password"),
    [("alice", "open"), ("alice", SECRET + " "), ("alice", SECRET.upper()), ("Alice", SECRET), ("nobody", SECRET)],
)
async def test_a_wrong_password_and_an_unknown_user_look_the_same(user: str, password: str) -> None:
    answer = await exchange_with().respond(plain(user, password))
    assert answer == Refused("wrong user or password", user=user)


async def test_without_users_no_client_gets_in() -> None:
    answer = await exchange_with(Users({})).respond(plain("alice", SECRET))
    assert isinstance(answer, Refused)


async def test_an_init_without_a_response_is_challenged_once() -> None:
    exchange = exchange_with()
    assert await exchange.respond(b"") == Challenge(b"")
    assert await exchange.respond(plain("alice", SECRET)) == Authenticated("alice")
    exchange = exchange_with()
    assert await exchange.respond(b"") == Challenge(b"")
    assert await exchange.respond(b"") == Refused("malformed PLAIN response")


@pytest.mark.parametrize("first", [plain("alice", "wrong"), plain("alice", SECRET), b"rubbish"])
async def test_one_exchange_judges_one_response(first: bytes) -> None:
    exchange = exchange_with()
    await exchange.respond(first)
    assert await exchange.respond(plain("alice", SECRET)) == Refused("the exchange is over")


async def test_another_authorization_id_is_refused_with_the_right_password_too() -> None:
    answer = await exchange_with().respond(plain("alice", SECRET, "root"))
    assert answer == Refused("the authorization id is not the user", user="alice", authorization_id="root")


MALFORMED = {
    "no NUL": b"alice",
    "one NUL": f"alice\0{SECRET}".encode(),
    "three NULs": f"\0alice\0{SECRET}\0".encode(),
    "NUL in the password": f"\0alice\0{SECRET}\0x".encode(),
    "no user": f"\0\0{SECRET}".encode(),
    "no password": b"\0alice\0",
    "nothing but NULs": b"\0\0",
    "user not UTF-8": b"\0ali\xffce\0secret",
    "password not UTF-8": b"\0alice\0sec\xffret",
    "surrogate": b"\0alice\0\xed\xa0\x80",
    "over-long encoding": b"\0alice\0\xc0\x80",
}


@pytest.mark.parametrize("response", MALFORMED.values(), ids=MALFORMED.keys())
async def test_a_malformed_response_is_refused(response: bytes) -> None:
    assert await exchange_with().respond(response) == Refused("malformed PLAIN response")


def test_a_response_of_1024_bytes_is_read_and_one_more_is_not() -> None:
    longest = b"\0alice\0" + b"x" * (sasl_plain.MAX_RESPONSE_BYTES - 7)
    parsed = sasl_plain.parse_response(longest)
    assert parsed is not None
    assert len(parsed.password) == 1017
    assert sasl_plain.parse_response(longest + b"x") is None


@given(st.binary(max_size=1100) | st.lists(st.binary(max_size=9), max_size=4).map(b"\0".join))
def test_any_response_is_three_parts_or_none(response: bytes) -> None:
    parsed = sasl_plain.parse_response(response)
    if parsed is not None:
        assert b"\0".join((parsed.authorization_id.encode(), parsed.user.encode(), parsed.password)) == response
        assert parsed.user
        assert parsed.password


# The event loop


async def test_hashing_does_not_block_the_event_loop() -> None:
    class Gated(Users):
        """A verifier that answers after the event loop has run."""

        gate = threading.Event()

        def verify(self, user: str, password: bytes) -> bool:
            return self.gate.wait(timeout=60)

    answers: list[object] = []

    async def attempt() -> None:
        answers.append(await exchange_with(Gated({})).respond(plain("alice", SECRET)))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(attempt)
        await trio.testing.wait_all_tasks_blocked()
        assert not answers
        Gated.gate.set()
    assert answers == [Authenticated("alice")]


async def test_logins_beyond_the_queue_are_refused_as_temporary() -> None:
    hashing = trio.CapacityLimiter(1)
    answers: list[object] = []

    async def attempt() -> None:
        answers.append(await sasl_plain.PlainExchange(USERS, hashing).respond(plain("alice", SECRET)))

    async with hashing, trio.open_nursery() as nursery:
        for _ in range(sasl_plain.MAX_WAITING):
            nursery.start_soon(attempt)
        await trio.testing.wait_all_tasks_blocked()
        assert not answers
        await attempt()
        assert answers == [Refused("too many passwords are being checked", temporary=True, user="alice")]
        nursery.cancel_scope.cancel()


async def test_all_connections_share_one_limiter(plugins: Plugins) -> None:
    one, other = (plugins.open_sasl("PLAIN", peer_of(encrypted=True)) for _ in range(2))
    assert isinstance(one, sasl_plain.PlainExchange)
    assert isinstance(other, sasl_plain.PlainExchange)
    assert one._hashing is other._hashing


# Through a real manager


async def test_a_user_of_the_file_gets_in(plugins: Plugins) -> None:
    exchange = plugins.open_sasl("plain", peer_of(encrypted=True))
    assert exchange is not None
    assert await plugins.objects.respond_or_refuse(exchange, plain("alice", SECRET)) == Authenticated("alice")
    assert not plugins.faults


@pytest.mark.parametrize(
    ("peer", "served"),
    [
        (peer_of("no"), False),
        (peer_of("no", loopback=True), False),
        (peer_of("no", encrypted=True), True),
        (peer_of("loopback"), False),
        (peer_of("loopback", loopback=True), True),
        (peer_of("yes"), True),
    ],
    ids=str,
)
def test_without_encryption_plain_is_served_only_to_peers_that_the_listener_allows(
    plugins: Plugins, users_file: Path, peer: PeerFacts, served: bool
) -> None:
    assert ("PLAIN" in plugins.sasl_mechanisms_for(peer)) is served
    assert (plugins.open_sasl("PLAIN", peer) is not None) is served
    alone = sasl_plain.Plugin()
    alone.configure(RouterFacts("QDR.A", sasl_users_file=str(users_file)))
    assert (alone.open_sasl("PLAIN", peer) is not None) is served


def test_the_mechanism_is_offered_without_a_line_in_the_log(plugins: Plugins, caplog: pytest.LogCaptureFixture) -> None:
    """Passwords in clear are a finding of the configuration, which knows whether PLAIN is served at all."""
    assert "PLAIN" in plugins.sasl_mechanisms_for(peer_of("yes"))
    assert caplog.messages == []


def test_plain_without_a_users_file_serves_nothing() -> None:
    plugins = Plugins([sasl_plain])
    plugins.configure(RouterFacts("QDR.A"))
    assert plugins.sasl_mechanisms(peer_of().listener) == ()
    alone = sasl_plain.Plugin()
    assert alone.open_sasl("PLAIN", peer_of(encrypted=True)) is None


def test_plain_opens_no_other_mechanism(users_file: Path) -> None:
    alone = sasl_plain.Plugin()
    alone.configure(RouterFacts("QDR.A", sasl_users_file=str(users_file)))
    assert alone.open_sasl("ANONYMOUS", peer_of(encrypted=True)) is None


# The file


def test_a_missing_users_file_refuses_the_configuration(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationRefused, match="absent: No such file"):
        Plugins([sasl_plain]).configure(RouterFacts("QDR.A", sasl_users_file=str(tmp_path / "absent")))


async def test_after_a_refused_reload_the_former_users_stay(plugins: Plugins, users_file: Path) -> None:
    users_file.write_text("alice\nbob:x\n")  # noqa: ASYNC240 - nothing else runs
    with pytest.raises(ConfigurationRefused) as refusal:
        plugins.configure(RouterFacts("QDR.A", sasl_users_file=str(users_file)))
    assert [problem.rpartition("users: ")[2] for problem in refusal.value.problems] == [
        "line 1: no colon between user and hash",
        "line 2: neither a $scrypt$ hash nor a SCRAM verifier",
    ]
    exchange = plugins.open_sasl("PLAIN", peer_of(encrypted=True))
    assert exchange is not None
    assert await exchange.respond(plain("alice", SECRET)) == Authenticated("alice")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_file_open_to_others_refuses_the_configuration(users_file: Path, mode: int) -> None:
    users_file.chmod(mode)
    with pytest.raises(ConfigurationRefused, match=f"mode {mode:04o} lets others at the password hashes: chmod 0600"):
        Plugins([sasl_plain]).configure(RouterFacts("QDR.A", sasl_users_file=str(users_file)))


async def test_a_changed_users_file_is_followed_and_a_removed_user_may_not_stay(
    plugins: Plugins, users_file: Path
) -> None:
    exchange = plugins.open_sasl("PLAIN", peer_of(encrypted=True))
    assert exchange is not None
    answer = await exchange.respond(plain("alice", SECRET))
    assert isinstance(answer, Authenticated)
    assert answer.still_good is not None
    assert answer.still_good()
    assert not plugins.refresh()
    put_user(users_file, "bob", b"hunter2", ())
    assert plugins.refresh()
    assert answer.still_good()
    edit_users(users_file, lambda entries: entries.update(alice=replace(entries["alice"], disabled=True)))
    assert plugins.refresh()
    assert not answer.still_good()
    edit_users(users_file, lambda entries: entries.update(alice=replace(entries["alice"], disabled=False)))
    assert plugins.refresh()
    assert answer.still_good()
    plugins.configure(RouterFacts("QDR.A"))
    assert not answer.still_good()


# Secrets


def spellings(secret: str) -> Iterator[str]:
    data = secret.encode()
    yield from (secret, ascii(secret)[1:-1], data.hex(), repr(data)[2:-1])


async def test_no_secret_in_logs_reprs_or_tracebacks(plugins: Plugins, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    seen: list[str] = []
    for response in (
        plain("alice", SECRET),
        plain("alice", SECRET, "x"),
        *MALFORMED.values(),
        plain("bob", SECRET) + b"\xff",
    ):
        exchange = plugins.open_sasl("PLAIN", peer_of(encrypted=True))
        assert exchange is not None
        answer = await plugins.objects.respond_or_refuse(exchange, response)
        seen += [repr(answer), str(answer), repr(exchange), repr(sasl_plain.parse_response(response))]
    seen += [repr(HASH), str(HASH), repr(USERS), caplog.text]
    for text in seen:
        assert not any(spelling in text for spelling in spellings(SECRET))
        assert HASH.format() not in text
        assert "sec\\xffret" not in text


async def test_a_fault_in_the_thread_shows_no_secret(plugins: Plugins, caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Users):
        def verify(self, user: str, password: bytes) -> bool:
            raise RuntimeError(password)

    answer = await plugins.objects.respond_or_refuse(exchange_with(Broken({})), plain("alice", SECRET))
    assert answer == Refused("the authentication plugin failed", temporary=True)
    assert plugins.faults == {"respond": 1}
    assert not any(spelling in caplog.text for spelling in spellings(SECRET))


def test_a_refused_password_does_not_stand_in_a_traceback() -> None:
    try:
        put_user(Path("/nowhere/at/all"), "alice", SECRET.encode())
    except OSError:
        assert SECRET not in traceback.format_exc()
    else:
        pytest.fail("there is no such folder")
