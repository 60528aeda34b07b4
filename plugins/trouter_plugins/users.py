"""Users with their verifiers of passwords, and the format of their file: one ``user:WORD WORD...`` a line.

The words are verifiers (``verifiers``), one of each kind at most, then ``disabled`` for a user who may not log in, and
``expires=2027-01-31T12:00:00Z`` for one who may until then. Blank lines and lines that begin with ``#`` are kept and
ignored. A password exists here only as an argument: no message, repr or exception shows one, nor a line of the file.
``users_file`` reads and writes such files.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, TypeVar

from trouter_plugins.verifiers import (
    DEFAULT_ITERATIONS,
    DEFAULT_SCRAM,
    DIGEST_BYTES,
    HAS_SCRYPT,
    SALT_BYTES,
    SCRAM_HASHES,
    Cost,
    PasswordHash,
    ScramVerifier,
)

MAX_USER_BYTES: Final = 255
DISABLED: Final = "disabled"
EXPIRES: Final = "expires="

_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
#: Begins the line with the key from which the salts of unknown users are made, so that they are always the same.
DECOYS: Final = b"#decoys "
_KEY_BYTES: Final = 32
#: The key where neither the file nor the router has one; the same as long as the process lives.
_DECOY_KEY: Final = secrets.token_bytes(_KEY_BYTES)

Verifier = PasswordHash | ScramVerifier


#: What the decoys resemble where there are no users.
_NOBODY: Final[Verifier] = (
    PasswordHash(Cost(), bytes(SALT_BYTES), b"")
    if HAS_SCRYPT
    else ScramVerifier(DEFAULT_SCRAM[0], DEFAULT_ITERATIONS, bytes(SALT_BYTES), bytes(DIGEST_BYTES), b"")
)


class UsersFileError(Exception):
    """The file cannot be used; ``problems`` name the lines, and quote nothing but user names."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(self.problems))


@dataclass(frozen=True, slots=True)
class Entry:
    """One user: what the password is checked against, and whether it is good for anything."""

    verifiers: tuple[Verifier, ...]
    disabled: bool = False
    #: Seconds since 1970; infinite for a user without expiry.
    expires_at_s: float = float("inf")

    def good_at(self, now_s: float) -> bool:
        """Return whether the user may come in, or stay, at this time."""
        return not self.disabled and now_s < self.expires_at_s

    @property
    def mechanisms(self) -> frozenset[str]:
        """The SCRAM mechanisms that the entry has verifiers for."""
        return frozenset(each.mechanism for each in self.verifiers if isinstance(each, ScramVerifier))

    def format(self) -> str:
        """Return the text of the entry after the colon."""
        words = [verifier.format() for verifier in self.verifiers]
        if self.disabled:
            words.append(DISABLED)
        if self.expires_at_s != float("inf"):
            words.append(f"{EXPIRES}{datetime.fromtimestamp(self.expires_at_s, UTC):%Y-%m-%dT%H:%M:%SZ}")
        return " ".join(words)


class Users:
    """An immutable set of users. ``now`` returns seconds since 1970."""

    def __init__(
        self,
        entries: Mapping[str, Entry | Verifier | Sequence[Verifier]],
        now: Callable[[], float] = time.time,
        decoy_key: bytes = _DECOY_KEY,
    ) -> None:
        self.entries = {user: _entry(given) for user, given in entries.items()}
        self._now = now
        self._decoy_key = decoy_key
        self._for_plain: dict[str, Verifier] = {}
        self._for_scram: dict[str, dict[str, ScramVerifier]] = {}
        for user, entry in self.entries.items():
            self._for_plain[user] = min(filter(_works_here, entry.verifiers), key=_preference)
            for verifier in entry.verifiers:
                if isinstance(verifier, ScramVerifier):
                    self._for_scram.setdefault(verifier.mechanism, {})[user] = verifier
        #: The verifiers that unknown users' decoys resemble.
        self._plain_models = list(self._for_plain.values()) or [_NOBODY]
        self._scram_models = {mechanism: list(known.values()) for mechanism, known in self._for_scram.items()}

    def __len__(self) -> int:
        return len(self.entries)

    def __contains__(self, user: str) -> bool:
        return user in self.entries

    def __repr__(self) -> str:
        return f"Users({len(self.entries)})"

    @property
    def scram_mechanisms(self) -> tuple[str, ...]:
        """Return the mechanisms for which at least one user has a verifier, the strongest first."""
        return tuple(mechanism for mechanism in SCRAM_HASHES if mechanism in self._for_scram)

    def admits(self, user: str) -> bool:
        """Return whether ``user`` exists, is not disabled, and has not expired."""
        entry = self.entries.get(user)
        return entry is not None and entry.good_at(self._now())

    def verify(self, user: str, password: bytes) -> bool:
        """Return whether ``user`` has ``password`` and is admitted. Blocks for tens of ms, also for an unknown user."""
        fits = (self._for_plain.get(user) or self._decoy(user)).fits(password)
        return self.admits(user) and fits

    def _decoy(self, user: str) -> Verifier:
        return _decoy(self._decoy_key, user, self._plain_models)

    def scram(self, mechanism: str, user: str) -> tuple[ScramVerifier, bool]:
        """Return the verifier to challenge ``user`` with, and whether it may admit; an unknown user gets a decoy."""
        decoy = _decoy(self._decoy_key, user, self._scram_models[mechanism])
        entry = self._for_scram[mechanism].get(user)
        return (decoy, False) if entry is None else (entry, self.admits(user))


def _entry(given: Entry | Verifier | Sequence[Verifier]) -> Entry:
    if isinstance(given, Entry):
        return given
    return Entry(tuple(given) if isinstance(given, Sequence) else (given,))


V = TypeVar("V", bound=Verifier)


def _decoy(key: bytes, user: str, models: Sequence[V]) -> V:
    """Return a verifier that no password fits; each ``user`` has its salt and its cost, that of a real verifier."""
    draw = hmac.digest(key, user.encode(), "sha512")
    model = models[int.from_bytes(draw[:8], "big") % len(models)]
    salt = hashlib.shake_256(draw).digest(len(model.salt))
    if isinstance(model, PasswordHash):
        return replace(model, salt=salt, digest=secrets.token_bytes(DIGEST_BYTES))
    length = len(model.stored_key)
    return replace(model, salt=salt, stored_key=secrets.token_bytes(length), server_key=secrets.token_bytes(length))


def _works_here(verifier: Verifier) -> bool:
    """Return whether a password can be checked against it on this machine."""
    return HAS_SCRYPT or isinstance(verifier, ScramVerifier)


def _preference(verifier: Verifier) -> int:
    """Return what PLAIN would rather use: scrypt costs a thief most, and SHA-1 least."""
    return -1 if isinstance(verifier, PasswordHash) else list(SCRAM_HASHES).index(verifier.mechanism)


def check_user(user: str) -> None:
    """Raise ValueError if ``user`` cannot stand in the file."""
    if not user or user != user.strip() or user.startswith("#"):
        raise ValueError("a user name is not empty, has no blank at its ends, and does not begin with #")
    if ":" in user or not user.isprintable():
        raise ValueError("a user name has no colon and no control character")
    if len(user.encode()) > MAX_USER_BYTES:
        raise ValueError(f"a user name has at most {MAX_USER_BYTES} bytes")


def parse_users(content: bytes, decoy_key: bytes = b"") -> Users:
    """Return the users in ``content``; UsersFileError with all problems, each with its line number.

    ``decoy_key`` is the router's key, for a file that has none.
    """
    entries: dict[str, Entry] = {}
    problems: list[str] = []
    decoy_key = decoy_key or _DECOY_KEY
    for number, line in enumerate(content.split(b"\n"), 1):
        try:
            if line.startswith(DECOYS):
                decoy_key = _parse_key(line)
            parsed = parse_line(line)
            if parsed is None:
                continue
            user, entry = parsed
            if user in entries:
                raise ValueError(f"user {user!r} is there twice")
        except ValueError as error:
            problems.append(f"line {number}: {error}")
        else:
            entries[user] = entry
    if problems:
        raise UsersFileError(problems)
    return Users(entries, decoy_key=decoy_key)


def decoys_line() -> bytes:
    """Return a line with a new key, for a file that has none."""
    return DECOYS + secrets.token_hex(_KEY_BYTES).encode()


def _parse_key(line: bytes) -> bytes:
    digits = line.removeprefix(DECOYS).strip()
    if not re.fullmatch(rb"[0-9a-f]{%d}" % (2 * _KEY_BYTES), digits):
        raise ValueError(f"the key of the decoys is not {2 * _KEY_BYTES} hexadecimal digits: delete the line")
    return bytes.fromhex(digits.decode())


def parse_line(line: bytes) -> tuple[str, Entry] | None:
    """Return user and entry, or None for a line without any; ValueError never quotes what may be secret."""
    line = line.rstrip(b"\r")
    if not line.strip() or line.startswith(b"#"):
        return None
    try:
        text = line.decode()
    except UnicodeDecodeError:
        text = ""
    if not text:
        raise ValueError("not UTF-8")
    user, colon, words = text.partition(":")
    if not colon:
        raise ValueError("no colon between user and hash")
    check_user(user)
    return user, _parse_words(user, words.split(" "))


def _parse_words(user: str, words: Sequence[str]) -> Entry:
    moments = [word.removeprefix(EXPIRES) for word in words if word.startswith(EXPIRES)]
    verifiers = tuple(_parse_verifier(word) for word in words if word != DISABLED and not word.startswith(EXPIRES))
    kinds = [_preference(verifier) for verifier in verifiers]
    if not verifiers:
        raise ValueError(f"user {user!r} has no hash")
    if not any(map(_works_here, verifiers)):
        raise ValueError(
            f"user {user!r} has a scrypt hash alone, and this OpenSSL has no scrypt, as in FIPS mode: "
            "set the password again with `trouter passwd add`, which adds verifiers for SCRAM"
        )
    if len(set(kinds)) < len(kinds):
        raise ValueError(f"user {user!r} has two hashes of a kind")
    if len(moments) > 1 or words.count(DISABLED) > 1:
        raise ValueError(f"user {user!r} expires or is disabled twice")
    return Entry(verifiers, DISABLED in words, parse_moment(moments[0]) if moments else float("inf"))


def parse_moment(text: str) -> float:
    """Return the seconds since 1970 of ``2027-01-31T12:00:00Z``; ValueError."""
    try:
        if not _MOMENT.fullmatch(text):
            raise ValueError
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise ValueError("a time of expiry is written as 2027-01-31T12:00:00Z") from None


def _parse_verifier(text: str) -> Verifier:
    return PasswordHash.parse(text) if text.startswith("$") else ScramVerifier.parse(text)
