"""sasl_pam: a thread passes the password to a real PAM stack, within a deadline."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import uuid
from collections.abc import Callable, Iterator
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
    SaslExchange,
)
from trouter_plugins import sasl_pam
from trouter_plugins.sasl_pam import PamExchange

SECRET = "open s\u00e9same"
PAM_FOLDER = Path("/etc/pam.d")


def run(command: list[str], typed: bytes = b"") -> None:
    subprocess.run(command, input=typed, check=True, capture_output=True)


WriteService = Callable[[str], str]
with_pam = pytest.mark.skipif(
    os.geteuid() != 0 or not PAM_FOLDER.is_dir(), reason="only root can put a PAM service into /etc/pam.d"
)


@pytest.fixture
def service() -> Iterator[WriteService]:
    """Yield a function that writes PAM services; remove them at the end."""
    written: list[Path] = []

    def write(text: str) -> str:
        path = PAM_FOLDER / f"trouter-test-{uuid.uuid4().hex[:12]}"
        path.write_text(text)
        written.append(path)
        return path.name

    yield write
    for path in written:
        path.unlink()


def peer_of(*, encrypted: bool = True) -> PeerFacts:
    return PeerFacts(1, ListenerFacts("here", "", "amqp"), "192.0.2.1", 40000, encrypted=encrypted, loopback=False)


def plain(user: str, password: str, authorization_id: str = "") -> bytes:
    return f"{authorization_id}\0{user}\0{password}".encode()


def plugins_for(name: str) -> Plugins:
    plugins = Plugins([sasl_pam])
    plugins.configure(RouterFacts("QDR.A", pam_service=name))
    return plugins


def exchange_of(plugins: Plugins) -> SaslExchange:
    exchange = plugins.open_sasl("PLAIN", peer_of())
    assert exchange is not None
    return exchange


def answering(code: int, threads: int = 2, deadline_s: float = 60.0) -> PamExchange:
    return PamExchange("service", lambda *_: code, trio.CapacityLimiter(threads), deadline_s)


# Real PAM


@with_pam
async def test_users_of_a_database_get_in_with_their_passwords(service: WriteService, tmp_path: Path) -> None:
    loader = shutil.which("db_load") or shutil.which("db5.3_load")
    if loader is None:
        pytest.skip("db_load of the package db-util is not installed, so there is no database for pam_userdb")
    run([loader, "-T", "-t", "hash", str(tmp_path / "users.db")], b"alice\nwonderland\n")
    rule = f"required pam_userdb.so db={tmp_path}/users crypt=none"
    plugins = plugins_for(service(f"auth {rule}\naccount {rule}\n"))
    assert await exchange_of(plugins).respond(plain("alice", "wonderland")) == Authenticated("alice")
    refused = "wrong user or password, or PAM does not let the account in"
    for user, password in (("alice", "looking glass"), ("bob", "wonderland"), ("alice", "wonderlan")):
        assert await exchange_of(plugins).respond(plain(user, password)) == Refused(refused, user=user)
    assert not plugins.faults


@with_pam
async def test_an_account_of_this_machine_gets_in_with_its_password(service: WriteService) -> None:
    if shutil.which("useradd") is None or shutil.which("chpasswd") is None:
        pytest.skip("useradd and chpasswd, which make an account, are not installed")
    user = f"t{uuid.uuid4().hex[:10]}"
    run(["useradd", "--no-create-home", "--shell", "/usr/sbin/nologin", user])
    try:
        run(["chpasswd"], f"{user}:wonderland\n".encode())
        plugins = plugins_for(service("auth required pam_unix.so nodelay\naccount required pam_unix.so\n"))
        assert await exchange_of(plugins).respond(plain(user, "wonderland")) == Authenticated(user)
        assert isinstance(await exchange_of(plugins).respond(plain(user, "wrong")), Refused)
        run(["usermod", "--expiredate", "1970-01-02", user])
        answer = await exchange_of(plugins).respond(plain(user, "wonderland"))
        assert isinstance(answer, Refused)
        assert not answer.temporary
    finally:
        run(["userdel", user])


@with_pam
async def test_permit_and_deny_modules_decide_a_login(service: WriteService) -> None:
    yes = plugins_for(service("auth required pam_permit.so\naccount required pam_permit.so\n"))
    assert await exchange_of(yes).respond(plain("alice", SECRET)) == Authenticated("alice")
    for rules in (
        "auth required pam_deny.so\naccount required pam_permit.so\n",
        "auth required pam_permit.so\naccount required pam_deny.so\n",
    ):
        answer = await exchange_of(plugins_for(service(rules))).respond(plain("alice", SECRET))
        assert isinstance(answer, Refused)
        assert not answer.temporary


@with_pam
async def test_a_module_that_is_missing_lets_no_user_in(service: WriteService) -> None:
    plugins = plugins_for(service("auth required pam_of_nobody.so\naccount required pam_permit.so\n"))
    assert isinstance(await exchange_of(plugins).respond(plain("alice", SECRET)), Refused)


@with_pam
async def test_a_module_that_outlives_the_deadline_is_left_behind(
    service: WriteService, tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    os.mkfifo(tmp_path / "gate")
    name = service(f"auth required pam_exec.so quiet /bin/cat {tmp_path}/gate\naccount required pam_permit.so\n")
    plugin = sasl_pam.Plugin()
    plugin.configure(RouterFacts("QDR.A", pam_service=name))
    assert plugin._check is not None
    threads = trio.CapacityLimiter(1)
    answer = await PamExchange(name, plugin._check, threads).respond(plain("alice", SECRET))
    assert answer == Refused("PAM took too long", temporary=True, user="alice")
    assert threads.borrowed_tokens == 1
    (tmp_path / "gate").write_bytes(b"")  # opening it waits for the reader, and closing lets it end
    await threads.acquire_on_behalf_of("the next")


HOSTILE = {
    "NUL in the password": b"\0alice\0wonder\0land",
    "NUL in the name": b"\0al\0ice\0wonderland",
    "a new line in the name": b"\0alice\n\0wonderland",
    "a line of the log in the name": b"\0alice\nroot logged in\0wonderland",
    "blanks around the name": b"\0 alice \0wonderland",
    "no name": b"\0\0wonderland",
    "no password": b"\0alice\0",
    "a name that is no UTF-8": b"\0\xffalice\0wonderland",
    "a password that is no UTF-8": b"\0alice\0\xff\xfe",
    "a name of 256 bytes": b"\0" + b"a" * 256 + b"\0wonderland",
    "a megabyte": b"\0alice\0" + b"x" * 1_000_000,
    "a direction override": b"\0" + "\u202ealice".encode() + b"\0wonderland",
}


@with_pam
@pytest.mark.parametrize("response", HOSTILE.values(), ids=HOSTILE)
async def test_hostile_input_never_reaches_real_pam(service: WriteService, tmp_path: Path, response: bytes) -> None:
    name = service(f"auth required pam_exec.so quiet /usr/bin/touch {tmp_path}/asked\naccount required pam_permit.so\n")
    plugins = plugins_for(name)
    assert await exchange_of(plugins).respond(response) == Refused("malformed PLAIN response")
    assert not plugins.faults
    assert not (tmp_path / "asked").exists()
    assert await exchange_of(plugins).respond(plain("alice", SECRET)) == Authenticated("alice")
    assert (tmp_path / "asked").exists()


@with_pam
async def test_root_is_a_user_as_others_are(service: WriteService) -> None:
    plugins = plugins_for(service("auth required pam_unix.so nodelay\naccount required pam_unix.so\n"))
    for password in ("root", "toor", "*", "!", "x"):
        answer = await exchange_of(plugins).respond(plain("root", password))
        assert isinstance(answer, Refused)
        assert (answer.temporary, answer.user) == (False, "root")


@with_pam
async def test_a_conversation_that_asks_again_gets_the_password_again_and_nothing_else(
    service: WriteService, tmp_path: Path
) -> None:
    loader = shutil.which("db_load") or shutil.which("db5.3_load")
    if loader is None:
        pytest.skip("db_load of the package db-util is not installed, so there is no database for pam_userdb")
    for database, second in (("first", "wonderland"), ("other", "123456")):
        run([loader, "-T", "-t", "hash", str(tmp_path / f"{database}.db")], f"alice\n{second}\n".encode())
    (tmp_path / "greeting").write_bytes(b"welcome to \xff\xfe\n")  # shown to the client's side of the conversation

    def stack(second: str) -> str:
        lines = [f"optional pam_echo.so file={tmp_path}/greeting"]
        lines += [f"required pam_userdb.so db={tmp_path}/{each} crypt=none" for each in ("first", second)]
        return "".join(f"auth {line}\n" for line in lines) + "account required pam_permit.so\n"

    twice = await exchange_of(plugins_for(service(stack("first")))).respond(plain("alice", "wonderland"))
    assert twice == Authenticated("alice")
    answer = await exchange_of(plugins_for(service(stack("other")))).respond(plain("alice", "wonderland"))
    assert isinstance(answer, Refused)
    assert not answer.temporary


# PAM's answers


@pytest.mark.parametrize(
    ("code", "temporary"),
    [(1, True), (4, True), (9, True), (28, True), (7, False), (10, False), (12, False), (13, False)],
)
async def test_a_pam_failure_is_a_temporary_refusal(code: int, temporary: bool) -> None:
    answer = await answering(code).respond(plain("alice", SECRET))
    assert isinstance(answer, Refused)
    assert answer.temporary is temporary
    assert SECRET not in repr(answer)


async def test_an_init_without_a_response_is_challenged_once_and_an_exchange_serves_one_login() -> None:
    exchange = answering(0)
    assert await exchange.respond(b"") == Challenge(b"")
    assert await exchange.respond(plain("alice", SECRET)) == Authenticated("alice")
    assert await exchange.respond(plain("alice", SECRET)) == Refused("the exchange is over")


@pytest.mark.parametrize(
    "response",
    [
        b"alice",
        b"\0\0x",
        b"\0alice\0",
        plain("al\nice", "x"),
        plain(" alice", "x"),
        plain("a" * 256, "x"),
        b"\0\xff\0x",
    ],
)
async def test_a_name_that_is_none_never_reaches_pam(response: bytes) -> None:
    assert await answering(0).respond(response) == Refused("malformed PLAIN response")


async def test_another_authorization_id_is_refused() -> None:
    answer = await answering(0).respond(plain("alice", SECRET, "root"))
    assert answer == Refused("the authorization id is not the user", user="alice", authorization_id="root")
    assert await answering(0).respond(plain("alice", SECRET, "alice")) == Authenticated("alice")


@given(st.binary(max_size=1100) | st.lists(st.binary(max_size=9), max_size=4).map(b"\0".join))
async def test_any_bytes_are_answered(response: bytes) -> None:
    assert isinstance(await answering(7).respond(response), Challenge | Refused)


async def test_logins_beyond_the_queue_are_refused_as_temporary() -> None:
    threads, gate, answers = trio.CapacityLimiter(1), threading.Event(), list[object]()

    async def attempt() -> None:
        exchange = PamExchange("service", lambda *_: 0 if gate.wait(60) else 7, threads, 60.0)
        answers.append(await exchange.respond(plain("alice", SECRET)))

    async with trio.open_nursery() as nursery:
        for _ in range(sasl_pam.MAX_WAITING + 1):
            nursery.start_soon(attempt)
        await trio.testing.wait_all_tasks_blocked()
        assert not answers
        await attempt()
        assert answers == [Refused("too many passwords are being checked", temporary=True, user="alice")]
        gate.set()
    assert answers[1:] == [Authenticated("alice")] * (sasl_pam.MAX_WAITING + 1)


# Through a real manager


@pytest.mark.parametrize("name", ["", "../shadow", "Login", "a" * 65, "no-such-service-here", "x\0"])
def test_a_service_that_is_not_there_refuses_the_configuration(name: str) -> None:
    with pytest.raises(ConfigurationRefused, match="pamService"):
        plugins_for(name)


@with_pam
def test_pam_serves_only_when_configured_and_where_passwords_may_travel(service: WriteService) -> None:
    plugins = plugins_for(service("auth required pam_deny.so\n"))
    assert plugins.sasl_mechanisms_for(peer_of()) == ("PLAIN",)
    assert plugins.sasl_mechanisms_for(peer_of(encrypted=False)) == ()
    assert plugins.open_sasl("PLAIN", peer_of(encrypted=False)) is None
    plugins.configure(RouterFacts("QDR.A"))
    assert plugins.sasl_mechanisms_for(peer_of()) == ()
