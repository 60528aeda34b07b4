"""The users file: valid lines, the errors for bad ones, and that writing loses nothing."""

from __future__ import annotations

import base64
import hashlib
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.kubernetes.volumes import write_projected
from trouter.config import load
from trouter.config.facts import router_facts
from trouter.config.keepers import keepers_of_process
from trouter.hooks import ConfigurationRefused, RouterFacts
from trouter_plugins.users import Entry, Users, UsersFileError, check_user, parse_users
from trouter_plugins.users_file import MAX_FILE_BYTES, UsersStore, edit_users, hashed, open_store, put_user, read_users
from trouter_plugins.verifiers import ALONE, Cost, PasswordHash, ScramVerifier

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")


def private(path: Path) -> Path:
    path.touch(0o600)
    return path


HASH = PasswordHash.make(b"secret")
LINE = HASH.format()
SALT = "c2FsdHNhbHRzYWx0c2FsdA"
DIGEST = "A" * 43


def test_a_line_holds_the_scrypt_digest_of_the_password() -> None:
    digest = hashlib.scrypt(b"secret", salt=HASH.salt, n=2**14, r=8, p=1, dklen=32)
    assert HASH.digest == digest
    assert LINE.startswith("$scrypt$ln=14,r=8,p=1$")
    assert PasswordHash.parse(LINE) == HASH
    assert "=" not in LINE.rpartition("p=1")[2]


def test_the_same_password_is_never_hashed_to_the_same_line() -> None:
    assert PasswordHash.make(b"secret").format() != LINE


def test_comments_blank_lines_padding_and_line_ends_of_others_are_accepted() -> None:
    users = parse_users(f"# a\n\n  \nalice:{LINE}\r\nbob:$scrypt$ln=14,r=8,p=1${SALT}==${DIGEST}=".encode())
    assert "alice" in users
    assert "bob" in users
    assert len(users) == 2


BAD_LINES = {
    "alice": "no colon between user and hash",
    f":{LINE}": "a user name is not empty",
    f" alice:{LINE}": "no blank at its ends",
    f"alice :{LINE}": "no blank at its ends",
    f"a\tb:{LINE}": "no control character",
    f"{'x' * 256}:{LINE}": "at most 255 bytes",
    "alice:": "neither a $scrypt$ hash nor a SCRAM verifier",
    "alice:secret": "neither a $scrypt$ hash nor a SCRAM verifier",
    "alice:$2b$12$abcdefghijklmnopqrstuv": "not a $scrypt$ hash",
    f"alice:{LINE} ": "neither a $scrypt$ hash nor a SCRAM verifier",
    f"alice:x{LINE}": "neither a $scrypt$ hash nor a SCRAM verifier",
    f"alice:$scrypt$ln=14,r=8,p=1$${DIGEST}": "not a $scrypt$ hash",
    f"alice:$scrypt$ln=14,r=8,p=1${SALT}${DIGEST}AA": "not a $scrypt$ hash",
    f"alice:$scrypt$ln=14,r=8,p=1$c2FsdA${DIGEST}": "needs a salt of 16 bytes",
    f"alice:$scrypt$ln=14,r=8,p=1${SALT}AAA${DIGEST}": "needs a salt",
    f"alice:$scrypt$ln=13,r=8,p=1${SALT}${DIGEST}": "the cost ln=13,r=8,p=1 is out of bounds",
    f"alice:$scrypt$ln=14,r=7,p=1${SALT}${DIGEST}": "out of bounds",
    f"alice:$scrypt$ln=14,r=8,p=0${SALT}${DIGEST}": "out of bounds",
    f"alice:$scrypt$ln=17,r=8,p=1${SALT}${DIGEST}": "out of bounds",
    f"alice:$scrypt$ln=99,r=999,p=99${SALT}${DIGEST}": "out of bounds",
    f"alice:$scrypt$ln=14,r=8,p=17${SALT}${DIGEST}": "out of bounds",
}


@pytest.mark.parametrize(("line", "problem"), BAD_LINES.items(), ids=range(len(BAD_LINES)))
def test_a_bad_line_is_named_by_its_number_and_not_quoted(line: str, problem: str) -> None:
    with pytest.raises(UsersFileError) as error:
        parse_users(f"# first\nzoe:{LINE}\n{line}\n".encode())
    (reported,) = error.value.problems
    assert reported.startswith("line 3: ")
    assert problem in reported
    assert "secret" not in reported
    assert DIGEST not in reported
    assert LINE not in reported


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(UsersFileError) as error:
        parse_users(b"secret\nali\xffce:x\n" + f"bob:{LINE}\nbob:{LINE}\n".encode())
    assert error.value.problems == (
        "line 1: no colon between user and hash",
        "line 2: not UTF-8",
        "line 4: user 'bob' is there twice",
    )


def test_the_costliest_hash_allowed_can_be_computed() -> None:
    cost = Cost(16, 8, 1)
    assert cost.acceptable
    entry = PasswordHash.make(b"secret", cost)
    assert PasswordHash.parse(entry.format()).fits(b"secret")
    assert not entry.fits(b"Secret")


@pytest.mark.parametrize("bit", [0, 100, 255])
def test_one_flipped_bit_of_the_digest_refuses(bit: int) -> None:
    flipped = (int.from_bytes(HASH.digest, "big") ^ (1 << bit)).to_bytes(32, "big")
    assert not PasswordHash(HASH.cost, HASH.salt, flipped).fits(b"secret")


def decoy(users: Users, user: str) -> PasswordHash:
    verifier = users._decoy(user)
    assert isinstance(verifier, PasswordHash)
    return verifier


def test_an_unknown_user_always_costs_the_same_as_one_of_the_known_users() -> None:
    costs = [Cost(14), Cost(15), Cost(16)]
    users = Users({f"user{number}": PasswordHash(cost, b"s" * 16, b"d" * 32) for number, cost in enumerate(costs)})
    drawn = {name: decoy(users, name).cost for name in (f"stranger{number}" for number in range(200))}
    assert set(drawn.values()) == set(costs)
    assert all(decoy(users, name).cost == cost for name, cost in drawn.items())
    assert decoy(Users({}), "stranger").cost == Cost()


def test_an_unknown_user_has_the_same_salt_after_a_restart_and_a_change(tmp_path: Path) -> None:
    path = tmp_path / "users"
    put_user(path, "alice", b"secret")
    salts = []
    asking = "import sys; from trouter_plugins.users_file import *; users = read_users(Path(sys.argv[1])); "
    asking += "print(users.scram('SCRAM-SHA-256', 'bob')[0].salt.hex())"
    for _ in range(2):
        asked = subprocess.run([sys.executable, "-c", asking, str(path)], check=True, capture_output=True, text=True)
        salts.append(asked.stdout)
        put_user(path, "carol", b"secret")
    assert salts[0] == salts[1]
    assert read_users(path).scram("SCRAM-SHA-256", "alice")[0].salt.hex() not in salts[0]
    assert path.read_text().count("#decoys ") == 1


def test_each_file_has_its_own_salts_for_unknown_users(tmp_path: Path) -> None:
    for name in ("one", "two"):
        put_user(tmp_path / name, "alice", b"secret")
    one, two = (read_users(tmp_path / name).scram("SCRAM-SHA-256", "bob")[0].salt for name in ("one", "two"))
    assert one != two


def test_a_file_without_the_key_is_served_and_one_with_a_spoilt_key_is_not() -> None:
    assert len(parse_users(f"alice:{LINE}\n".encode())) == 1
    with pytest.raises(UsersFileError, match="line 1: the key of the decoys"):
        parse_users(b"#decoys 00ff\n")


def test_nothing_fits_a_decoy_twice() -> None:
    users = Users({"alice": HASH})
    assert decoy(users, "bob").digest != decoy(users, "bob").digest
    assert not users.verify("bob", b"secret")
    assert users.verify("alice", b"secret")


# Writing


def test_a_new_user_is_appended_and_the_rest_kept(tmp_path: Path) -> None:
    path = tmp_path / "users"
    private(path).write_text(f"# ours\n\nalice:{LINE}\n\n")
    assert put_user(path, "bob", b"hunter2") is False
    lines = path.read_text().splitlines()
    assert lines[0].startswith("#decoys ")
    assert lines[1:4] == ["# ours", "", f"alice:{LINE}"]
    assert len(lines) == 5
    users = read_users(path)
    assert users.verify("bob", b"hunter2")
    assert users.verify("alice", b"secret")


def test_a_users_line_is_replaced_in_its_place(tmp_path: Path) -> None:
    path = tmp_path / "users"
    private(path).write_text(f"alice:{LINE}\nalice b:{LINE}\n# end\n")
    assert put_user(path, "alice", b"changed") is True
    lines = path.read_text().splitlines()
    assert lines[2:] == [f"alice b:{LINE}", "# end"]
    users = read_users(path)
    assert users.verify("alice", b"changed")
    assert not users.verify("alice", b"secret")


@pytest.mark.parametrize("before", [None, "", "\n\n"])
def test_the_first_user_of_a_file(tmp_path: Path, before: str | None) -> None:
    path = tmp_path / "users"
    if before is not None:
        private(path).write_text(before)
    assert put_user(path, "alice", b"secret") is False
    key, line = path.read_text().splitlines()
    assert key.startswith("#decoys ")
    assert line.startswith("alice:$scrypt$")


def test_a_file_with_errors_stays_unchanged_and_no_temporary_file_is_left(tmp_path: Path) -> None:
    path = tmp_path / "users"
    private(path).write_text("alice\n")
    with pytest.raises(UsersFileError, match="line 1"):
        put_user(path, "bob", b"secret")
    assert path.read_text() == "alice\n"
    assert [entry.name for entry in tmp_path.iterdir()] == ["users"]


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    path = tmp_path / "users"
    path.mkdir(mode=0o700)
    with pytest.raises(UsersFileError, match="not a regular file"):
        put_user(path, "bob", b"secret")
    assert [entry.name for entry in tmp_path.iterdir()] == ["users"]


@pytest.mark.parametrize("user", ["alice", "alice@example.com", "b\u00f6b smith", "x" * 255])
def test_good_names(user: str) -> None:
    check_user(user)


# File attributes


def entry(words: str = "") -> Entry:
    return parse_users(f"alice:{LINE} {words}".rstrip().encode()).entries["alice"]


def test_a_user_may_be_disabled_or_expire_as_the_line_states() -> None:
    assert entry() == Entry((HASH,))
    assert entry("disabled") == Entry((HASH,), disabled=True)
    moment = entry("disabled expires=2027-01-31T12:00:00Z")
    assert moment == Entry((HASH,), disabled=True, expires_at_s=1801396800.0)
    assert parse_users(f"alice:{moment.format()}".encode()).entries == {"alice": moment}


@pytest.mark.parametrize(
    ("words", "problem"),
    {
        "disabled": "user 'alice' has no hash",
        "expires=2027-01-31T12:00:00Z": "user 'alice' has no hash",
        f"{LINE} disabled disabled": "expires or is disabled twice",
        f"{LINE} expires=2027-01-31T12:00:00Z expires=2027-01-31T12:00:00Z": "expires or is disabled twice",
        f"{LINE} expires=2027-01-31": "a time of expiry is written as",
        f"{LINE} expires=2027-02-31T12:00:00Z": "a time of expiry is written as",
        f"{LINE} expires=": "a time of expiry is written as",
        f"{LINE} Disabled": "neither a $scrypt$ hash nor a SCRAM verifier",
    }.items(),
)
def test_a_standing_that_makes_no_sense_is_reported(words: str, problem: str) -> None:
    with pytest.raises(UsersFileError, match="line 1: ") as error:
        parse_users(f"alice:{words}".encode())
    assert problem in str(error.value)


def test_a_disabled_or_expired_user_is_refused_for_every_password() -> None:
    now = [1000.0]
    scram = ScramVerifier.make("SCRAM-SHA-256", b"secret", 4096)
    entries = {
        "good": Entry((HASH, scram)),
        "off": Entry((HASH, scram), disabled=True),
        "old": Entry((HASH, scram), expires_at_s=1001.0),
    }
    users = Users(entries, lambda: now[0])
    assert [users.admits(user) for user in ("good", "off", "old", "nobody")] == [True, False, True, False]
    now[0] = 1001.0
    assert [users.verify(user, b"secret") for user in entries] == [True, False, False]
    assert [users.scram("SCRAM-SHA-256", user)[1] for user in entries] == [True, False, False]
    assert all(users.scram("SCRAM-SHA-256", user)[0] == scram for user in entries)  # as before: it reveals nothing


# Unusable files


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o700, 0o644])
def test_a_file_that_other_users_can_read_or_write_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "users"
    private(path).write_text(f"alice:{LINE}\n")
    path.chmod(mode)
    for use in (read_users, UsersStore, lambda path: put_user(path, "bob", b"secret")):
        with pytest.raises(UsersFileError, match=f"mode {mode:04o} lets others .* chmod 0600 {path}"):
            use(path)
    path.chmod(0o400)
    assert "alice" in read_users(path)


def test_a_symbolic_link_a_pipe_and_a_giant_file_are_refused(tmp_path: Path) -> None:
    real, link, pipe, giant = (tmp_path / name for name in ("real", "link", "pipe", "giant"))
    private(real).write_text(f"alice:{LINE}\n")
    link.symlink_to(real)
    os.mkfifo(pipe, 0o600)
    with private(giant).open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    for path, why in ((link, "symbolic link"), (pipe, "not a regular file"), (giant, "larger than 64 MiB")):
        if path != link:
            with pytest.raises(UsersFileError, match=why):
                UsersStore(path)
        with pytest.raises(UsersFileError, match=why):
            put_user(path, "bob", b"secret")


def test_a_symbolic_link_is_read_if_its_target_is_safe(tmp_path: Path) -> None:
    real, other, link = (tmp_path / name for name in ("real", "other", "link"))
    private(real).write_text(f"alice:{LINE}\n")
    private(other).write_text(f"bob:{LINE}\n")
    link.symlink_to(real)
    store = open_store(RouterFacts("R", sasl_users_file=str(link)))
    assert store is not None
    assert "alice" in store.users
    (tmp_path / "new").symlink_to(other)  # as mounted secrets change
    (tmp_path / "new").replace(link)
    assert store.refresh()
    assert "bob" in store.users
    real.chmod(0o644)
    (tmp_path / "open").symlink_to(real)
    with pytest.raises(ConfigurationRefused, match="lets others at the password hashes"):
        open_store(RouterFacts("R", sasl_users_file=str(tmp_path / "open")))


# Secrets of Kubernetes


def as_in_a_pod(path: Path, comment: str = "") -> RouterFacts:
    """Return the facts of a router in a container, with secure defaults and the users at ``path``."""
    keepers = replace(keepers_of_process(), contained=True)
    text = f"router {{\n secureDefaults: yes\n usersFile: {path}\n}}\n"
    return router_facts(load(text=comment + text, keepers=keepers), keepers)


@pytest.mark.parametrize(
    ("mode", "group"),
    [(0o644, None), (0o440, os.getegid()), pytest.param(0o400, 10001, marks=as_root)],  # with a group: also 0440
)
def test_a_secret_as_kubernetes_mounts_it_holds_the_users(tmp_path: Path, mode: int, group: int | None) -> None:
    folder = tmp_path / "secret"
    write_projected(folder, {"users": f"alice:{LINE}\n".encode()}, mode, group)
    store = open_store(as_in_a_pod(folder / "users"))
    assert store is not None
    assert list(store.users.entries) == ["alice"]
    write_projected(folder, {"users": f"bob:{LINE}\n".encode()}, mode, group)
    assert store.refresh()
    assert list(store.users.entries) == ["bob"]


def test_in_a_container_nobody_else_may_write_to_the_users(tmp_path: Path) -> None:
    folder = tmp_path / "secret"
    for mode in (0o664, 0o646, 0o755):
        write_projected(folder, {"users": f"alice:{LINE}\n".encode()}, mode, None)
        with pytest.raises(ConfigurationRefused, match=f"mode {mode:04o} lets others at the password hashes"):
            open_store(RouterFacts("R", sasl_users_file=str(folder / "users"), secret_mode=0o644))


def where_the_file_lies(folder: Path) -> Path:
    return (folder / "users").resolve().parent


def where_the_link_leads(folder: Path) -> Path:
    return folder / "..data" / "users"


def where_the_link_is(folder: Path) -> Path:
    return folder


@pytest.mark.parametrize("step", [where_the_file_lies, where_the_link_leads, where_the_link_is])
def test_users_whose_way_strangers_can_change_are_not_read_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, step: Callable[[Path], Path]
) -> None:
    folder = tmp_path / "secret"
    write_projected(folder, {"users": f"alice:{LINE}\n".encode()}, 0o644, None)
    store = open_store(as_in_a_pod(folder / "users"))
    assert store is not None
    write_projected(folder, {"users": f"mallory:{LINE}\n".encode()}, 0o644, None)
    opened = step(folder).resolve()
    mode = opened.stat().st_mode
    opened.chmod(mode | 0o022)
    for _ in range(2):
        assert not store.refresh()
    assert list(store.users.entries) == ["alice"]
    said = f"all users of this machine can change {opened}; with secureDefaults it is refused; the router keeps"
    assert [said in record.getMessage() for record in caplog.records] == [True]
    with pytest.raises(ConfigurationRefused, match=f"usersFile: .*all users of this machine can change {opened}"):
        open_store(replace(as_in_a_pod(tmp_path / "absent"), sasl_users_file=str(folder / "users")))
    opened.chmod(mode)
    assert store.refresh()
    assert list(store.users.entries) == ["mallory"]


def test_a_way_that_the_configuration_accepts_is_followed(tmp_path: Path) -> None:
    folder = tmp_path / "secret"
    write_projected(folder, {"users": f"alice:{LINE}\n".encode()}, 0o644, None)
    folder.chmod(0o777)
    accepted = "# trouter: accept writable-by-others: the only user of this machine\n"
    store = open_store(as_in_a_pod(folder / "users", accepted))
    assert store is not None
    assert list(store.users.entries) == ["alice"]


# A file that changes


@as_root
def test_the_file_of_another_owner_replaces_none_with_secure_defaults(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, operator, stranger = tmp_path / "users", 1000, 65534
    private(path).write_text(f"alice:{LINE}\n")
    os.chown(path, operator, 0)
    strict = open_store(RouterFacts("R", sasl_users_file=str(path), secure_defaults=True))
    compatible = open_store(RouterFacts("R", sasl_users_file=str(path)))
    assert strict is not None
    assert compatible is not None
    for owner, user, taken in ((operator, "bob", True), (stranger, "mallory", False), (0, "carol", True)):
        private(tmp_path / "new").write_text(f"{user}:{LINE}\n")
        os.chown(tmp_path / "new", owner, 0)
        (tmp_path / "new").replace(path)
        assert strict.refresh() is taken
        assert (user in strict.users) is taken
        assert compatible.refresh()
        assert user in compatible.users
    assert "it belongs to another user now" in caplog.text


def test_a_store_follows_its_file_and_keeps_the_last_good_users(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "users"

    def complaints() -> list[str]:
        return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]

    put_user(path, "alice", b"secret", ())
    store = UsersStore(path)
    assert not store.refresh()
    put_user(path, "bob", b"secret", ())
    assert store.refresh()
    assert "bob" in store.users
    path.write_text("alice\n" * 20)
    assert not store.refresh()
    assert not store.refresh()
    assert len(complaints()) == 10
    assert complaints()[0] == f"{path}: line 1: no colon between user and hash; the router keeps the users that it has"
    path.unlink()
    assert not store.refresh()
    assert not store.refresh()
    assert complaints()[10:] == [f"{path}: No such file or directory; the router keeps the users that it has"]
    assert "bob" in store.users
    put_user(path, "carol", b"secret", ())
    assert store.refresh()
    assert list(store.users.entries) == ["carol"]


def test_concurrent_writers_lose_no_user(tmp_path: Path) -> None:
    path = tmp_path / "users"
    one = Entry((HASH,))
    names = [f"user{number}" for number in range(20)]
    threads = [
        threading.Thread(target=edit_users, args=(path, lambda entries, name=name: entries.update({name: one})))
        for name in names
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(read_users(path).entries) == sorted(names)


# A stolen file


def spellings(secret: bytes) -> list[bytes]:
    plain = [secret, secret[::-1], secret.swapcase()]
    return [form for each in plain for form in (each, base64.b64encode(each).rstrip(b"="), each.hex().encode())]


@pytest.mark.parametrize("scram", [(), ("SCRAM-SHA-512", "SCRAM-SHA-256", "SCRAM-SHA-1")])
def test_the_password_is_not_in_the_file_in_any_form(tmp_path: Path, scram: tuple[str, ...]) -> None:
    path = tmp_path / "users"
    secret = b"open sesame 4711"
    put_user(path, "alice", secret, scram)
    content = path.read_bytes()
    assert path.stat().st_mode & 0o777 == 0o600
    assert not any(form in content for form in spellings(secret))
    assert read_users(path).verify("alice", secret)


def test_a_record_has_the_required_cost() -> None:
    (alone,) = hashed(b"secret", ())
    assert isinstance(alone, PasswordHash)
    assert alone.cost == ALONE == Cost(14, 8, 5)  # as expensive as 600,000 iterations of PBKDF2
    together = hashed(b"secret", ("SCRAM-SHA-512", "SCRAM-SHA-256"))
    assert [each.iterations for each in together if isinstance(each, ScramVerifier)] == [65536, 65536]
    assert all(len(each.salt) == 16 for each in together)


@pytest.mark.parametrize("bit", [0, 100, 255])
@pytest.mark.parametrize("part", ["salt", "stored_key"])
def test_one_flipped_bit_of_a_verifier_refuses(part: str, bit: int) -> None:
    verifier = ScramVerifier.make("SCRAM-SHA-256", b"secret", 4096)
    assert verifier.fits(b"secret")
    data = bytearray(getattr(verifier, part))
    data[bit // 8 % len(data)] ^= 1 << bit % 8
    assert data != getattr(verifier, part)
    salt, stored = (bytes(data), verifier.stored_key) if part == "salt" else (verifier.salt, bytes(data))
    assert not replace(verifier, salt=salt, stored_key=stored).fits(b"secret")


#: Runs what follows where OpenSSL refuses scrypt, as its FIPS provider does.
WITHOUT_SCRYPT = """
import hashlib, sys
from pathlib import Path

def refuse(*_, **__):
    raise ValueError("[digital envelope routines] unsupported")

hashlib.scrypt = refuse
from trouter_plugins.users import Users, UsersFileError, parse_users
from trouter_plugins.users_file import put_user, read_users
"""


def printed_without_scrypt(program: str, *words: str | Path) -> str:
    command = [sys.executable, "-c", WITHOUT_SCRYPT + program, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_without_scrypt_a_new_user_logs_in_by_a_verifier_of_scram(tmp_path: Path) -> None:
    program = """
path = Path(sys.argv[1])
put_user(path, "alice", b"secret")
users = read_users(path)
print(users.scram_mechanisms)
print(users.verify("alice", b"secret"), users.verify("alice", b"other"), users.verify("bob", b"secret"))
print(Users({}).verify("bob", b"secret"))
try:
    put_user(path, "carol", b"secret", ())
except ValueError as error:
    print(error)
"""
    assert printed_without_scrypt(program, tmp_path / "users").splitlines() == [
        "('SCRAM-SHA-512', 'SCRAM-SHA-256')",
        "True False False",
        "False",
        "this OpenSSL has no scrypt, as in FIPS mode: let the user have a SCRAM mechanism",
    ]
    assert read_users(tmp_path / "users").verify("alice", b"secret")  # elsewhere, too


def test_without_scrypt_a_user_who_has_nothing_else_is_named() -> None:
    program = """
line = sys.argv[1]
print("alice" in parse_users((line + " " + sys.argv[2]).encode()))
try:
    parse_users(line.encode())
except UsersFileError as error:
    print(error)
"""
    scram = ScramVerifier.make("SCRAM-SHA-256", b"secret").format()
    assert printed_without_scrypt(program, f"alice:{LINE}", scram) == (
        "True\nline 1: user 'alice' has a scrypt hash alone, and this OpenSSL has no scrypt, as in FIPS mode: set the "
        "password again with `trouter passwd add`, which adds verifiers for SCRAM\n"
    )
