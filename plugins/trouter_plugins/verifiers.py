"""Verifiers of passwords: salted hashes of two kinds, each with its text form, from which no password follows.

``$scrypt$ln=14,r=8,p=1$SALT$DIGEST`` is scrypt (RFC 7914), for PLAIN; ``ln`` is log2 of its N, salt and digest are
base64 without padding. ``SCRAM-SHA-256$65536:SALT$STOREDKEY:SERVERKEY`` is for SCRAM (RFC 5803) and PLAIN, in padded
base64. No repr shows them, and both compare in constant time.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from typing import Final

from trouter.mechanisms import SCRAM

SALT_BYTES: Final = 16
DIGEST_BYTES: Final = 32

#: SCRAM by its hash, the strongest first.
SCRAM_HASHES: Final = {str(each): each.digest for each in SCRAM}
#: The verifiers of a new user besides scrypt; SHA-1 only on request of the operator.
DEFAULT_SCRAM: Final = tuple(SCRAM_HASHES)[:2]
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


#: For a record without SCRAM: what OWASP takes for as much work as 600,000 turns of PBKDF2-HMAC-SHA256.
ALONE: Final = Cost(MIN_LOG2_N, MIN_R, 5)


@dataclass(frozen=True, slots=True, repr=False)
class PasswordHash:
    """A salted hash; it compares in constant time and its repr shows nothing."""

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
        """Return the hash in ``text``; ValueError says what is wrong with it, without quoting it."""
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
        """Return whether ``password`` was hashed into this, in the same time for either answer."""
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
        """Return the verifier in ``text``; ValueError says what is wrong with it, without quoting it."""
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
        key_bytes = hashlib.new(SCRAM_HASHES[mechanism]).digest_size
        if len(salt) < MIN_SCRAM_SALT_BYTES or any(len(key) != key_bytes for key in keys):
            raise ValueError(
                f"{mechanism} needs a salt of {MIN_SCRAM_SALT_BYTES} bytes or more and keys of {key_bytes}"
            )
        return cls(mechanism, iterations, salt, *keys)

    def format(self) -> str:
        parts = (self.salt, self.stored_key, self.server_key)
        salt, stored, server = (base64.b64encode(part).decode() for part in parts)
        return f"{self.mechanism}${self.iterations}:{salt}${stored}:{server}"

    def fits(self, password: bytes) -> bool:
        """Return whether it was made from ``password``, in the same time for either answer."""
        try:
            stored, _ = _scram_keys(self.mechanism, password, self.salt, self.iterations)
        except ValueError:  # no user can have this password
            return False
        return hmac.compare_digest(stored, self.stored_key)


def _scram_keys(mechanism: str, password: bytes, salt: bytes, iterations: int) -> tuple[bytes, bytes]:
    """Return the StoredKey and ServerKey of a password; ValueError if SCRAM could never send it."""
    name = SCRAM_HASHES[mechanism]
    salted = hashlib.pbkdf2_hmac(name, _prepared(password), salt, iterations)
    stored = hashlib.new(name, hmac.digest(salted, b"Client Key", name)).digest()
    return stored, hmac.digest(salted, b"Server Key", name)


def _prepared(password: bytes) -> bytes:
    """Return the password as SCRAM clients prepare it (RFC 4013); ValueError without the password in it."""
    from scramp.utils import ScramException, saslprep  # noqa: PLC0415 - its tables are large, and a file may lack SCRAM

    try:
        prepared = str(saslprep(password.decode()))
    except (ScramException, UnicodeDecodeError):
        prepared = ""
    if not prepared:
        raise ValueError("the password has characters that SCRAM does not allow")
    return prepared.encode()


def _scrypt(password: bytes, salt: bytes, cost: Cost) -> bytes:
    memory = 2 * MAX_MEMORY_BYTES
    return hashlib.scrypt(
        password, salt=salt, n=1 << cost.log2_n, r=cost.r, p=cost.p, maxmem=memory, dklen=DIGEST_BYTES
    )


def _has_scrypt() -> bool:
    """Return whether OpenSSL offers scrypt here: its FIPS provider does not."""
    try:
        hashlib.scrypt(b"", salt=b"", n=2, r=1, p=1)
    except ValueError:
        return False
    return True


#: Without it users have SCRAM verifiers alone, against which PLAIN is checked too (docs/fips.md).
HAS_SCRYPT: Final = _has_scrypt()


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode().rstrip("=")


def _unbase64(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
