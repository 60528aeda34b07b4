"""`trouter passwd`: the file of users from the command line, and a router that reads it."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.programs import ROOT, TOO_LONG_S
from trouter_plugins.sasldb import SasldbError, read_sasldb
from trouter_plugins.users_file import put_user, read_users

SECRET = "open s\u00e9same"
CYRUS = pytest.mark.skipif(shutil.which("saslpasswd2") is None, reason="saslpasswd2 (sasl2-bin) is not installed")


def passwd(*words: str | Path, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "trouter", "passwd", *words],
        input=given,
        capture_output=True,
        cwd=ROOT,
        check=False,
        timeout=TOO_LONG_S,
    )


def done(*words: str | Path, given: bytes = b"") -> str:
    """Run the command, which must succeed; return its output."""
    finished = passwd(*words, given=given)
    assert (finished.returncode, finished.stderr) == (0, b"")
    return finished.stdout.decode().rstrip("\n")


def refused(*words: str | Path, given: bytes = b"") -> str:
    finished = passwd(*words, given=given)
    assert (finished.returncode, finished.stdout) == (1, b"")
    assert b"Traceback" not in finished.stderr
    return finished.stderr.decode().rstrip("\n")


@pytest.fixture
def users(tmp_path: Path) -> Path:
    path = tmp_path / "users"
    put_user(path, "alice", SECRET.encode(), ())
    return path


def test_a_life_of_a_user(tmp_path: Path) -> None:
    path = tmp_path / "users"
    assert done("add", path, "alice", given=f"{SECRET}\nsecond line\n".encode()) == f"{path}: user alice added"
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_users(path).verify("alice", SECRET.encode())
    assert done("list", path) == "alice  PLAIN  SCRAM-SHA-512  SCRAM-SHA-256\n1 user(s)"
    assert done("disable", path, "alice") == f"{path}: user alice disabled"
    assert not read_users(path).admits("alice")
    assert done("list", path).startswith("alice  PLAIN  SCRAM-SHA-512  SCRAM-SHA-256  disabled\n")
    assert done("enable", path, "alice") == f"{path}: user alice enabled"
    assert read_users(path).verify("alice", SECRET.encode())
    assert done("remove", path, "alice") == f"{path}: user alice removed"
    assert done("list", path) == "0 user(s)"


def test_a_password_may_come_from_a_file_and_a_user_may_expire(tmp_path: Path) -> None:
    path, secret = tmp_path / "users", tmp_path / "secret"
    secret.write_bytes(SECRET.encode() + b"\r\nmore\n")
    arguments = ("--password-file", secret, "--scram", "")
    done("add", path, "day", *arguments, "--expires", "2027-01-31")
    done("add", path, "moment", *arguments, "--expires", "2027-01-31T12:00:00Z")
    assert read_users(path).entries["day"].expires_at_s == 1801440000.0
    assert done("list", path).splitlines() == [
        "day  PLAIN  expires 2027-02-01 00:00:00 UTC",
        "moment  PLAIN  expires 2027-01-31 12:00:00 UTC",
        "2 user(s)",
    ]
    assert "--expires: a time of expiry is written as" in refused("add", path, "x", *arguments, "--expires", "tomorrow")


def test_the_terminal_is_asked_twice_and_shows_nothing(tmp_path: Path) -> None:
    path = tmp_path / "users"
    ours, its = pty.openpty()
    command = [sys.executable, "-m", "trouter", "passwd", "add", str(path), "alice"]
    with subprocess.Popen(command, stdin=its, stdout=its, stderr=its, cwd=ROOT, start_new_session=True):
        os.close(its)
        output = b""
        for prompt in (b"Password: ", b"Again: "):
            while not output.endswith(prompt):
                output += os.read(ours, 1000)
            os.write(ours, f"{SECRET}\n".encode())
        while b"added" not in output:
            output += os.read(ours, 1000)
    os.close(ours)
    assert SECRET.encode() not in output
    assert read_users(path).verify("alice", SECRET.encode())


@pytest.mark.parametrize("user", ["", "a:b", "#a", " a", "a\nb", "x" * 256])
def test_a_name_that_cannot_stand_in_the_file(tmp_path: Path, user: str) -> None:
    assert "a user name" in refused("add", tmp_path / "users", user, given=b"secret\n")
    assert not (tmp_path / "users").exists()


@pytest.mark.parametrize("typed", [b"", b"\n", b"sec\0ret\n", b"sec\xffret\n", b"x" * 600 + b"\n"])
def test_a_password_that_could_not_be_sent(tmp_path: Path, typed: bytes) -> None:
    output = refused("add", tmp_path / "users", "alice", given=typed)
    assert "the password" in output
    assert "sec" not in output.replace("users", "")
    assert not (tmp_path / "users").exists()


def test_a_password_in_the_arguments_is_not_taken_nor_repeated(users: Path) -> None:
    finished = passwd("add", users, "bob", "wonderland")
    assert finished.returncode == 2
    assert "bob" not in read_users(users)


@pytest.mark.parametrize("command", ["remove", "disable", "enable"])
def test_no_user_of_that_name(users: Path, command: str) -> None:
    before = users.read_text()
    assert refused(command, users, "bob") == f"trouter passwd {command}: {users}: there is no user 'bob'"
    assert users.read_text() == before


def test_an_unfit_file_is_left_unchanged(users: Path) -> None:
    users.write_text("alice\n")
    assert refused("add", users, "bob", given=b"secret\n").endswith("line 1: no colon between user and hash")
    assert users.read_text() == "alice\n"
    users.chmod(0o644)
    assert "chmod 0600" in refused("list", users)


def test_its_other_name(users: Path, tmp_path: Path) -> None:
    program = tmp_path / "trouter-passwd"
    program.write_text(
        f"#!{sys.executable}\nimport sys\nfrom trouter.cli.names import trouter_passwd\nsys.exit(trouter_passwd())\n"
    )
    program.chmod(0o755)
    finished = subprocess.run(
        [program, "list", users],
        capture_output=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT}/plugins"},
        check=False,
        timeout=TOO_LONG_S,
    )
    assert (finished.returncode, finished.stdout) == (0, b"alice  PLAIN\n1 user(s)\n")


# Users of Cyrus SASL


def sasldb(folder: Path, *users: tuple[str, str, str]) -> Path:
    path = folder / "sasldb2"
    for user, realm, password in users:
        command = ["saslpasswd2", "-p", "-c", "-f", str(path), "-u", realm, user]
        subprocess.run(command, input=f"{password}\n".encode(), check=True)
    return path


@CYRUS
def test_every_user_of_a_sasldb_is_read(tmp_path: Path) -> None:
    given = sorted((f"user{number}", "here", f"password {number}") for number in range(60))
    path = sasldb(tmp_path, *given)
    assert [(each.user, each.realm, each.password.decode()) for each in read_sasldb(path)] == given
    assert "password" not in repr(read_sasldb(path)[0])


@CYRUS
def test_users_are_taken_over_with_their_passwords(users: Path, tmp_path: Path) -> None:
    path = sasldb(tmp_path, ("alice", "here", "other"), ("bob", "here", "hunter2"), ("bob", "there", "2retnuh"))
    assert "user 'bob' is in several realms: give --realm" in refused("import-sasldb", users, path)
    output = done("import-sasldb", users, path, "--realm", "here")
    assert output == f"{users}: 1 user(s) imported, 1 left as they were"
    known = read_users(users)
    assert known.verify("alice", SECRET.encode())
    assert known.verify("bob", b"hunter2")
    assert done("import-sasldb", users, path, "--realm", "here", "--replace").endswith(": 2 user(s) imported")
    assert read_users(users).verify("alice", b"other")
    assert done("import-sasldb", users, path, "--with-realm", "--scram", "").endswith(": 3 user(s) imported")
    assert read_users(users).verify("bob@there", b"2retnuh")
    assert all(word not in users.read_text() for word in ("hunter2", "2retnuh", "other"))


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0" * 100, bytes(8192)])
def test_a_file_that_is_no_sasldb_is_refused(users: Path, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "db"
    path.write_bytes(content)
    assert "not a database of Cyrus SASL" in refused("import-sasldb", users, path)


@CYRUS
def test_a_damaged_sasldb_is_no_trap(tmp_path: Path) -> None:
    path = sasldb(tmp_path, ("alice", "here", "wonderland"))
    content = path.read_bytes()
    for position in range(0, len(content), 7):
        damaged = bytearray(content)
        damaged[position] ^= 0xFF
        path.write_bytes(damaged)
        try:
            read_sasldb(path)
        except SasldbError:
            continue
    path.write_bytes(content[: len(content) // 2])
    read_sasldb(path)
