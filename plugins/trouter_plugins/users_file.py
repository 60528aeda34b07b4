"""A file of users and salted password hashes, one ``user:HASH HASH...`` a line.

``$scrypt$ln=14,r=8,p=1$SALT$DIGEST`` is scrypt (RFC 7914), for PLAIN; ``ln`` is log2 of its N, salt and digest are
base64 without padding. ``SCRAM-SHA-256$65536:SALT$STOREDKEY:SERVERKEY`` is what SCRAM needs (RFC 5803), in base64 with
padding; PLAIN can do with it too. A user has one of each kind at most. Blank lines and lines that begin with ``#`` are
kept and ignored. A password exists here only as an argument: no message, repr or exception holds one, nor a line of the
file.
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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeVar

MAX_USER_BYTES: Final = 255
SALT_BYTES: Final = 16
DIGEST_BYTES: Final = 32

#: SCRAM by its hash, the strongest first.
SCRAM_HASHES: Final = {"SCRAM-SHA-512": "sha512", "SCRAM-SHA-256": "sha256", "SCRAM-SHA-1": "sha1"}
#: What a new user gets besides scrypt; SHA-1 is for whoever asks for it.
DEFAULT_SCRAM: Final = ("SCRAM-SHA-512", "SCRAM-SHA-256")
#: RFC 7677 wants 4096; clients of Cyrus SASL go along with no more than 65536. PLAIN pays for them here.
MIN_ITERATIONS, DEFAULT_ITERATIONS, MAX_ITERATIONS = 4096, 65536, 2_000_000
MIN_SCRAM_SALT_BYTES: Final = 12

#: No hash may be weaker, nor take more memory (128 * r * N bytes) or turns than these: it is computed for strangers.
MIN_LOG2_N, MIN_R = 14, 8
MAX_MEMORY_BYTES: Final = 64 << 20
MAX_P: Final = 16

_HASH: Final = re.compile(
    r"\$scrypt\$ln=(?P<ln>\d{1,2}),r=(?P<r>\d{1,3}),p=(?P<p>\d{1,2})"
    r"\$(?P<salt>[A-Za-z0-9+/]{1,128})={0,2}\$(?P<digest>[A-Za-z0-9+/]{43})=?"
)
_SCRAM: Final = re.compile(
    r"(?P<mechanism>SCRAM-SHA-(?:1|256|512))\$(?P<iterations>[1-9]\d{0,9}):(?P<salt>[A-Za-z0-9+/]{1,170}={0,2})"
    r"\$(?P<stored>[A-Za-z0-9+/]{1,88}={0,2}):(?P<server>[A-Za-z0-9+/]{1,88}={0,2})"
)
#: Who is not in the file has a salt nevertheless, the same as long as the process lives.
_DECOY_KEY: Final = secrets.token_bytes(32)


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


@dataclass(frozen=True, slots=True, repr=False)
class ScramVerifier:
    """What a server needs to know for SCRAM (RFC 5802): enough to check the password, not enough to log in with."""

    mechanism: str
    iterations: int
    salt: bytes
    stored_key: bytes
    server_key: bytes

    @classmethod
    def make(cls, mechanism: str, password: bytes, iterations: int = DEFAULT_ITERATIONS) -> ScramVerifier:
        """Derive the keys of ``password`` with a new salt. Takes tens of milliseconds; ValueError."""
        salt = secrets.token_bytes(SALT_BYTES)
        return cls(mechanism, iterations, salt, *_scram_keys(mechanism, password, salt, iterations))

    @classmethod
    def parse(cls, text: str) -> ScramVerifier:
        """The verifier in ``text``; ValueError says what is wrong with it, without quoting it."""
        found = _SCRAM.fullmatch(text)
        if found is None:
            raise ValueError("neither a $scrypt$ hash nor a SCRAM verifier")
        mechanism, iterations = found["mechanism"], int(found["iterations"])
        if not MIN_ITERATIONS <= iterations <= MAX_ITERATIONS:
            raise ValueError(f"{mechanism} takes from {MIN_ITERATIONS} to {MAX_ITERATIONS} iterations")
        try:
            salt, *keys = (base64.b64decode(found[part], validate=True) for part in ("salt", "stored", "server"))
        except binascii.Error:
            salt, keys = b"", []
        octets = hashlib.new(SCRAM_HASHES[mechanism]).digest_size
        if len(salt) < MIN_SCRAM_SALT_BYTES or any(len(key) != octets for key in keys):
            raise ValueError(f"{mechanism} needs a salt of {MIN_SCRAM_SALT_BYTES} bytes or more and keys of {octets}")
        return cls(mechanism, iterations, salt, *keys)

    def format(self) -> str:
        parts = (self.salt, self.stored_key, self.server_key)
        salt, stored, server = (base64.b64encode(part).decode() for part in parts)
        return f"{self.mechanism}${self.iterations}:{salt}${stored}:{server}"

    def fits(self, password: bytes) -> bool:
        """Whether it was made from ``password``. Takes as long whatever the answer."""
        try:
            stored, _ = _scram_keys(self.mechanism, password, self.salt, self.iterations)
        except ValueError:  # nobody can have this password
            return False
        return hmac.compare_digest(stored, self.stored_key)


Verifier = PasswordHash | ScramVerifier


class Users:
    """An immutable set of users and what their passwords are checked against."""

    def __init__(self, entries: Mapping[str, Verifier | Sequence[Verifier]]) -> None:
        self._for_plain: dict[str, Verifier] = {}
        self._for_scram: dict[str, dict[str, ScramVerifier]] = {}
        for user, given in entries.items():
            verifiers = given if isinstance(given, Sequence) else (given,)
            self._for_plain[user] = min(verifiers, key=_preference)
            for verifier in verifiers:
                if isinstance(verifier, ScramVerifier):
                    self._for_scram.setdefault(verifier.mechanism, {})[user] = verifier
        #: What those who are unknown are measured against.
        self._plain_models = list(self._for_plain.values()) or [PasswordHash(Cost(), bytes(SALT_BYTES), b"")]
        self._scram_models = {mechanism: list(known.values()) for mechanism, known in self._for_scram.items()}

    def __len__(self) -> int:
        return len(self._for_plain)

    def __contains__(self, user: str) -> bool:
        return user in self._for_plain

    @property
    def scram_mechanisms(self) -> tuple[str, ...]:
        """Those for which somebody has a verifier, the strongest first."""
        return tuple(mechanism for mechanism in SCRAM_HASHES if mechanism in self._for_scram)

    def verify(self, user: str, password: bytes) -> bool:
        """Whether ``user`` exists and has ``password``. Blocks for tens of milliseconds, also for a user unknown."""
        entry = self._for_plain.get(user)
        fits = (entry or self._decoy(user)).fits(password)
        return fits and entry is not None

    def _decoy(self, user: str) -> Verifier:
        return _decoy(user, self._plain_models)

    def scram(self, mechanism: str, user: str) -> tuple[ScramVerifier, bool]:
        """What ``user`` is challenged with, and whether it is real: for somebody unknown nothing fits it."""
        decoy = _decoy(user, self._scram_models[mechanism])
        entry = self._for_scram[mechanism].get(user)
        return (decoy, False) if entry is None else (entry, True)


V = TypeVar("V", bound=Verifier)


def _decoy(user: str, models: Sequence[V]) -> V:
    """A verifier which nothing fits; for one ``user`` its cost and salt are always the same, the cost a real one."""
    draw = hmac.digest(_DECOY_KEY, user.encode(), "sha512")
    model = models[int.from_bytes(draw[:8], "big") % len(models)]
    salt = hashlib.shake_256(draw).digest(len(model.salt))
    if isinstance(model, PasswordHash):
        return replace(model, salt=salt, digest=secrets.token_bytes(DIGEST_BYTES))
    octets = len(model.stored_key)
    return replace(model, salt=salt, stored_key=secrets.token_bytes(octets), server_key=secrets.token_bytes(octets))


def _preference(verifier: Verifier) -> int:
    """What PLAIN would rather use: scrypt costs a thief most, and SHA-1 least."""
    return -1 if isinstance(verifier, PasswordHash) else list(SCRAM_HASHES).index(verifier.mechanism)


def _scram_keys(mechanism: str, password: bytes, salt: bytes, iterations: int) -> tuple[bytes, bytes]:
    """StoredKey and ServerKey of a password; ValueError if SCRAM could never send it."""
    name = SCRAM_HASHES[mechanism]
    salted = hashlib.pbkdf2_hmac(name, _prepared(password), salt, iterations)
    stored = hashlib.new(name, hmac.digest(salted, b"Client Key", name)).digest()
    return stored, hmac.digest(salted, b"Server Key", name)


def _prepared(password: bytes) -> bytes:
    """The password as SCRAM clients prepare it (RFC 4013); ValueError without the password in it."""
    from scramp.utils import ScramException, saslprep  # noqa: PLC0415 - its tables are large, and a file may lack SCRAM

    try:
        prepared = str(saslprep(password.decode()))
    except (ScramException, UnicodeDecodeError):
        prepared = ""
    if not prepared:
        raise ValueError("the password has characters that SCRAM does not allow")
    return prepared.encode()


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
    entries: dict[str, tuple[Verifier, ...]] = {}
    problems: list[str] = []
    for number, line in enumerate(content.split(b"\n"), 1):
        try:
            parsed = _parse_line(line)
            if parsed is None:
                continue
            user, verifiers = parsed
            if user in entries:
                raise ValueError(f"user {user!r} is there twice")
        except ValueError as error:
            problems.append(f"line {number}: {error}")
        else:
            entries[user] = verifiers
    if problems:
        raise UsersFileError(problems)
    return Users(entries)


def read_users(path: Path) -> tuple[Users, int]:
    """The users in the file, and its permission bits; UsersFileError."""
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            return parse_users(file.read()), mode
    except OSError as error:
        raise UsersFileError([error.strerror or type(error).__name__]) from None


def put_user(path: Path, user: str, password: bytes, scram: Sequence[str] = DEFAULT_SCRAM) -> bool:
    """Add ``user`` to the file or replace its hashes, atomically and with mode 0600; True if the user was there.

    ``scram`` are the mechanisms to serve besides PLAIN. Raises ValueError for the name, or for a password that SCRAM
    cannot carry; UsersFileError if the file is there but not usable, OSError if it cannot be written.
    """
    check_user(user)
    verifiers: list[Verifier] = [
        PasswordHash.make(password),
        *(ScramVerifier.make(mechanism, password) for mechanism in scram),
    ]
    path = path.resolve()  # else a symbolic link would be replaced instead of its file
    old = path.stat() if path.exists() else None
    content = b"" if old is None else path.read_bytes().rstrip(b"\n")
    known = parse_users(content)
    lines = content.split(b"\n") if content else []
    entry = f"{user}:{' '.join(verifier.format() for verifier in verifiers)}".encode()
    if user in known:
        lines = [entry if line.startswith(f"{user}:".encode()) else line for line in lines]
    else:
        lines.append(entry)
    _replace(path, b"\n".join(lines) + b"\n", old)
    return user in known


def _parse_line(line: bytes) -> tuple[str, tuple[Verifier, ...]] | None:
    """User and hashes, or None for a line without any; ValueError never quotes what may be secret."""
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
    verifiers = tuple(_parse_verifier(text) for text in entry.split(" "))
    kinds = [_preference(verifier) for verifier in verifiers]
    if len(set(kinds)) < len(kinds):
        raise ValueError(f"user {user!r} has two hashes of a kind")
    return user, verifiers


def _parse_verifier(text: str) -> Verifier:
    return PasswordHash.parse(text) if text.startswith("$") else ScramVerifier.parse(text)


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
