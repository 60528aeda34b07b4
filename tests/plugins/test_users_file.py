"""The users file: what a line may be, what a bad one is told, and that writing loses nothing."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from trouter_plugins.users_file import (
    Cost,
    PasswordHash,
    Users,
    UsersFileError,
    check_user,
    parse_users,
    put_user,
    read_users,
)

HASH = PasswordHash.make(b"secret")
LINE = HASH.format()
SALT = "c2FsdHNhbHRzYWx0c2FsdA"
DIGEST = "A" * 43


def test_a_line_is_what_scrypt_makes_of_the_password() -> None:
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
    (told,) = error.value.problems
    assert told.startswith("line 3: ")
    assert problem in told
    assert "secret" not in told
    assert DIGEST not in told
    assert LINE not in told


def test_all_problems_are_told_at_once() -> None:
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


def test_an_unknown_user_costs_what_some_known_user_costs_and_always_the_same() -> None:
    costs = [Cost(14), Cost(15), Cost(16)]
    users = Users({f"user{number}": PasswordHash(cost, b"s" * 16, b"d" * 32) for number, cost in enumerate(costs)})
    drawn = {name: decoy(users, name).cost for name in (f"stranger{number}" for number in range(200))}
    assert set(drawn.values()) == set(costs)
    assert all(decoy(users, name).cost == cost for name, cost in drawn.items())
    assert decoy(Users({}), "stranger").cost == Cost()


def test_nothing_fits_a_decoy_twice() -> None:
    users = Users({"alice": HASH})
    assert decoy(users, "bob").digest != decoy(users, "bob").digest
    assert not users.verify("bob", b"secret")
    assert users.verify("alice", b"secret")


# Writing


def test_a_new_user_is_appended_and_the_rest_kept(tmp_path: Path) -> None:
    path = tmp_path / "users"
    path.write_text(f"# ours\n\nalice:{LINE}\n\n")
    assert put_user(path, "bob", b"hunter2") is False
    lines = path.read_text().splitlines()
    assert lines[:3] == ["# ours", "", f"alice:{LINE}"]
    assert len(lines) == 4
    users, mode = read_users(path)
    assert users.verify("bob", b"hunter2")
    assert users.verify("alice", b"secret")
    assert mode == 0o600


def test_a_users_line_is_replaced_in_its_place(tmp_path: Path) -> None:
    path = tmp_path / "users"
    path.write_text(f"alice:{LINE}\nalice b:{LINE}\n# end\n")
    path.chmod(0o644)
    assert put_user(path, "alice", b"changed") is True
    lines = path.read_text().splitlines()
    assert lines[1:] == [f"alice b:{LINE}", "# end"]
    users, mode = read_users(path)
    assert users.verify("alice", b"changed")
    assert not users.verify("alice", b"secret")
    assert mode == 0o600


@pytest.mark.parametrize("before", [None, "", "\n\n"])
def test_the_first_user_of_a_file(tmp_path: Path, before: str | None) -> None:
    path = tmp_path / "users"
    if before is not None:
        path.write_text(before)
    assert put_user(path, "alice", b"secret") is False
    assert path.read_text().startswith("alice:$scrypt$")
    assert path.read_text().count("\n") == 1


def test_a_symbolic_link_stays_one(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text(f"alice:{LINE}\n")
    link.symlink_to(real)
    put_user(link, "bob", b"secret")
    assert link.is_symlink()
    assert "bob" in read_users(real)[0]


def test_a_file_with_errors_stays_as_it_is_and_nothing_is_left_behind(tmp_path: Path) -> None:
    path = tmp_path / "users"
    path.write_text("alice\n")
    with pytest.raises(UsersFileError, match="line 1"):
        put_user(path, "bob", b"secret")
    assert path.read_text() == "alice\n"
    assert [entry.name for entry in tmp_path.iterdir()] == ["users"]


def test_a_write_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "users"
    path.mkdir()
    with pytest.raises(OSError, match="directory"):
        put_user(path, "bob", b"secret")
    assert [entry.name for entry in tmp_path.iterdir()] == ["users"]


@pytest.mark.parametrize("user", ["alice", "alice@example.com", "b\u00f6b smith", "x" * 255])
def test_good_names(user: str) -> None:
    check_user(user)
