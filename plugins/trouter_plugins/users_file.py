"""A file of users and salted password hashes, one ``user:$scrypt$ln=14,r=8,p=1$SALT$DIGEST`` a line.

The hash is scrypt (RFC 7914); ``ln`` is log2 of its N, salt and digest are base64 without padding. Blank lines and
lines that begin with ``#`` are kept and ignored. A password exists here only as an argument: no message, repr or
exception holds one, nor a line of the file.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

MAX_USER_BYTES: Final = 255
SALT_BYTES: Final = 16
DIGEST_BYTES: Final = 32

#: No hash may be weaker, nor take more memory (128 * r * N bytes) or turns than these: it is computed for strangers.
MIN_LOG2_N, MIN_R = 14, 8
MAX_MEMORY_BYTES: Final = 64 << 20
MAX_P: Final = 16

_HASH: Final = re.compile(
    r"\$scrypt\$ln=(?P<ln>\d{1,2}),r=(?P<r>\d{1,3}),p=(?P<p>\d{1,2})"
    r"\$(?P<salt>[A-Za-z0-9+/]{1,128})={0,2}\$(?P<digest>[A-Za-z0-9+/]{43})=?"
)


class UsersFileError(Exception):
    """The file cannot be used; ``problems`` name the lines, and quote nothing but user names."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(self.problems))


@dataclass(frozen=True, slots=True)
class Cost:
    """The work factors of scrypt."""

    log2_n: int = MIN_LOG2_N
    r: int = MIN_R
    p: int = 1

    @property
    def acceptable(self) -> bool:
        strong = self.log2_n >= MIN_LOG2_N and self.r >= MIN_R and self.p >= 1
        return strong and (128 * self.r << self.log2_n) <= MAX_MEMORY_BYTES and self.p <= MAX_P


@dataclass(frozen=True, slots=True, repr=False)
class PasswordHash:
    """A salted hash; it compares in constant time and shows itself to nobody."""

    cost: Cost
    salt: bytes
    digest: bytes

    @classmethod
    def make(cls, password: bytes, cost: Cost | None = None) -> PasswordHash:
        """Hash ``password`` with a new salt. Takes tens of milliseconds."""
        cost, salt = cost or Cost(), secrets.token_bytes(SALT_BYTES)
        return cls(cost, salt, _scrypt(password, salt, cost))

    @classmethod
    def parse(cls, text: str) -> PasswordHash:
        """The hash in ``text``; ValueError says what is wrong with it, without quoting it."""
        found = _HASH.fullmatch(text)
        if found is None:
            raise ValueError("not a $scrypt$ hash")
        cost = Cost(int(found["ln"]), int(found["r"]), int(found["p"]))
        if not cost.acceptable:
            raise ValueError(f"the cost ln={cost.log2_n},r={cost.r},p={cost.p} is out of bounds")
        try:
            salt, digest = _unbase64(found["salt"]), _unbase64(found["digest"])
        except binascii.Error:
            salt = digest = b""
        if len(salt) < SALT_BYTES or len(digest) != DIGEST_BYTES:
            raise ValueError(f"needs a salt of {SALT_BYTES} bytes or more and a digest of {DIGEST_BYTES}")
        return cls(cost, salt, digest)

    def format(self) -> str:
        cost = self.cost
        return f"$scrypt$ln={cost.log2_n},r={cost.r},p={cost.p}${_base64(self.salt)}${_base64(self.digest)}"

    def fits(self, password: bytes) -> bool:
        """Whether ``password`` was hashed into this. Takes as long whatever the answer."""
        return hmac.compare_digest(_scrypt(password, self.salt, self.cost), self.digest)


class Users:
    """An immutable set of users and their hashes."""

    def __init__(self, hashes: Mapping[str, PasswordHash]) -> None:
        self._hashes = MappingProxyType(dict(hashes))
        self._costs = [entry.cost for entry in hashes.values()] or [Cost()]
        self._decoy_key = secrets.token_bytes(DIGEST_BYTES)

    def __len__(self) -> int:
        return len(self._hashes)

    def __contains__(self, user: str) -> bool:
        return user in self._hashes

    def verify(self, user: str, password: bytes) -> bool:
        """Whether ``user`` exists and has ``password``. Blocks for tens of milliseconds, also for a user unknown."""
        entry = self._hashes.get(user)
        fits = (entry or self._decoy(user)).fits(password)
        return fits and entry is not None

    def _decoy(self, user: str) -> PasswordHash:
        """A hash which nothing fits, and whose cost is always the same one for ``user``, taken from the real ones."""
        draw = hmac.digest(self._decoy_key, user.encode(), "sha256")
        cost = self._costs[int.from_bytes(draw[:8], "big") % len(self._costs)]
        return PasswordHash(cost, draw[:SALT_BYTES], secrets.token_bytes(DIGEST_BYTES))


def check_user(user: str) -> None:
    """ValueError if ``user`` cannot stand in the file."""
    if not user or user != user.strip() or user.startswith("#"):
        raise ValueError("a user name is not empty, has no blank at its ends, and does not begin with #")
    if ":" in user or not user.isprintable():
        raise ValueError("a user name has no colon and no control character")
    if len(user.encode()) > MAX_USER_BYTES:
        raise ValueError(f"a user name has at most {MAX_USER_BYTES} bytes")


def parse_users(content: bytes) -> Users:
    """The users in ``content``; UsersFileError with all problems, each with its line number."""
    hashes: dict[str, PasswordHash] = {}
    problems: list[str] = []
    for number, line in enumerate(content.split(b"\n"), 1):
        try:
            parsed = _parse_line(line)
            if parsed is None:
                continue
            user, entry = parsed
            if user in hashes:
                raise ValueError(f"user {user!r} is there twice")
        except ValueError as error:
            problems.append(f"line {number}: {error}")
        else:
            hashes[user] = entry
    if problems:
        raise UsersFileError(problems)
    return Users(hashes)


def read_users(path: Path) -> tuple[Users, int]:
    """The users in the file, and its permission bits; UsersFileError."""
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            return parse_users(file.read()), mode
    except OSError as error:
        raise UsersFileError([error.strerror or type(error).__name__]) from None


def put_user(path: Path, user: str, password: bytes) -> bool:
    """Add ``user`` to the file or replace its hash, atomically and with mode 0600; True if the user was there.

    Raises ValueError for the name, UsersFileError if the file is there but not usable, OSError if it cannot be written.
    """
    check_user(user)
    path = path.resolve()  # else a symbolic link would be replaced instead of its file
    old = path.stat() if path.exists() else None
    content = b"" if old is None else path.read_bytes().rstrip(b"\n")
    known = parse_users(content)
    lines = content.split(b"\n") if content else []
    entry = f"{user}:{PasswordHash.make(password).format()}".encode()
    if user in known:
        lines = [entry if line.startswith(f"{user}:".encode()) else line for line in lines]
    else:
        lines.append(entry)
    _replace(path, b"\n".join(lines) + b"\n", old)
    return user in known


def _parse_line(line: bytes) -> tuple[str, PasswordHash] | None:
    """User and hash, or None for a line without any; ValueError never quotes what may be secret."""
    line = line.rstrip(b"\r")
    if not line.strip() or line.startswith(b"#"):
        return None
    try:
        text = line.decode()
    except UnicodeDecodeError:
        text = ""
    if not text:
        raise ValueError("not UTF-8")
    user, colon, entry = text.partition(":")
    if not colon:
        raise ValueError("no colon between user and hash")
    check_user(user)
    return user, PasswordHash.parse(entry)


def _replace(path: Path, content: bytes, old: os.stat_result | None) -> None:
    """Put ``content`` in the place of the file, which keeps its owner: that is the router, not who adds a user."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # created with mode 0600
    new = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if old is not None and (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
                os.fchown(file.fileno(), old.st_uid, old.st_gid)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


def _scrypt(password: bytes, salt: bytes, cost: Cost) -> bytes:
    memory = 2 * MAX_MEMORY_BYTES
    return hashlib.scrypt(
        password, salt=salt, n=1 << cost.log2_n, r=cost.r, p=cost.p, maxmem=memory, dklen=DIGEST_BYTES
    )


def _base64(octets: bytes) -> str:
    return base64.b64encode(octets).decode().rstrip("=")


def _unbase64(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
