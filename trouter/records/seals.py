"""Keys that seal segments so that no later intruder can change what was sealed before.

A seal is an HMAC-SHA256 over the digest of all octets of the segment before it and over its own line. Each has a key of
its own, the hash of the key before, and the router erases a key once its seal is on the disk (forward-secure sealing,
as in Marson and Poettering, "Practical Secure Logging", 2013). Who has the verification key can compute all of them.

    <router>.sealkey         the next key, its number, and what was deleted, for the router's user alone
    <router>.sealkey.part    the key after that, for a moment
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

import msgspec

from trouter.records.deletions import Deletions
from trouter.records.disk import open_regular, sync, write_all
from trouter.records.segments import line_of

KEY_BYTES: Final = 32
_NEXT: Final = b"trouter records: next key\0"
_FIRST: Final = b"trouter records: first key\0"
_PART: Final = ".part"
#: A longer file is no key.
_MAX_BYTES: Final = 1 << 18
#: Keys that a router may step over at its start, which are those of seals that it made after the file was written last.
MAX_STEPS: Final = 100_000
_VERIFICATION: Final = re.compile(r"[0-9a-f]{64}")


class KeyState(
    msgspec.Struct,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="k",
    tag="records.key",
    frozen=True,
):
    """The contents of a file with a key: the number of the seal that it is for, and the key in hexadecimal.

    ``deleted`` is what the router has deleted; None if it has not started with this key yet, or an older version did.
    """

    epoch: int
    key: str
    deleted: Deletions | None = None


_STATE: Final = msgspec.json.Decoder(KeyState)


def new_verification_key() -> str:
    """Return a new verification key, in hexadecimal."""
    return secrets.token_hex(KEY_BYTES)


def verification_key(text: str) -> bytes:
    """Return the key that a text holds; ValueError, which does not show it."""
    key = text.strip()
    if not _VERIFICATION.fullmatch(key):
        raise ValueError("this is no verification key: it has 64 hexadecimal digits; see `trouter records keys`")
    return bytes.fromhex(key)


def first_key(verification: bytes, label: str) -> bytes:
    """Return the key of a router's seal number 0."""
    return hmac.digest(verification, _FIRST + label.encode(), "sha256")


def next_key(key: bytes | bytearray) -> bytes:
    """Return the key of the next seal."""
    return hashlib.sha256(_NEXT + key).digest()


def later_key(key: bytes | bytearray, steps: int) -> bytes:
    """Return the key of the seal that is ``steps`` after that of ``key``."""
    begun = hashlib.sha256(_NEXT)
    for _ in range(steps):
        step = begun.copy()
        step.update(key)
        key = step.digest()
    return bytes(key)


def seal_of(key: bytes | bytearray, digest: bytes, line: bytes) -> str:
    """Return a seal in hexadecimal; ``line`` is the sealing line without it, ``digest`` that of the octets before."""
    return hmac.digest(key, digest + line, "sha256").hex()


def key_path(folder: Path, label: str) -> Path:
    """Return the path of a router's key."""
    return folder / f"{label}.sealkey"


def read_state(path: Path) -> KeyState | None:
    """Return what a file with a key holds, None if there is none; OSError, ValueError."""
    try:
        descriptor = open_regular(path, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        facts = os.fstat(descriptor)
        octets = os.read(descriptor, _MAX_BYTES)
    finally:
        os.close(descriptor)
    if facts.st_uid not in {0, os.geteuid(), path.parent.stat().st_uid}:
        raise ValueError(f"{path} belongs to another user than the router, so its key is not secret")
    if facts.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ValueError(f"{path} may be read or changed by others than its owner; chmod 600, and make new keys")
    try:
        state = _STATE.decode(octets)
        verification_key(state.key)
    except ValueError:
        raise ValueError(f"{path} holds no key; see `trouter records keys`") from None
    return state


def write_first(folder: Path, label: str, verification: bytes) -> Path:
    """Write a router's first key for the owner of the folder; return its path. FileExistsError, OSError."""
    path = key_path(folder, label)
    owner = folder.stat()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        if os.geteuid() == 0:
            os.fchown(descriptor, owner.st_uid, owner.st_gid)
        write_all(descriptor, line_of(KeyState(epoch=0, key=first_key(verification, label).hex())), 0)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    sync(folder)
    return path


class SealingKey:
    """The key of the next seal. The writer of the segments owns it."""

    def __init__(self, path: Path, state: KeyState) -> None:
        #: The number of the next seal, from 0.
        self.epoch = state.epoch
        #: The file has this key, and no earlier one.
        self.saved = True
        #: What the router has deleted, which the file has, too.
        self.deleted = state.deleted
        self._path = path
        self._key = bytearray.fromhex(state.key)

    @classmethod
    def load(cls, folder: Path, label: str) -> Self | None:
        """Return a router's key, None if nothing is to be sealed; OSError, ValueError. Settle an interrupted step."""
        path = key_path(folder, label)
        part = path.with_name(path.name + _PART)
        fault: ValueError | None = None
        try:
            state = read_state(path)
        except ValueError as error:  # it may be overwritten already
            state, fault = None, error
        later = None
        with suppress(ValueError):  # it was not whole when the router ended
            later = read_state(part)
        if later is not None and (state is None or later.epoch > state.epoch):
            state, fault = later, None
            _replace(path, part)
        else:
            part.unlink(missing_ok=True)
        if fault is not None:
            raise fault
        return None if state is None else cls(path, state)

    def seal(self, digest: bytes, line: bytes) -> str:
        """Return the seal over a line and the ``digest`` of all octets before it; then call `advance`."""
        return seal_of(self._key, digest, line)

    def advance(self) -> None:
        """Step to the next key, because a seal with this one is on the disk, and erase this one; OSError.

        After an error the step is made, and only the file has still the old key: call `save` again.
        """
        self._step()
        self.save()

    def _step(self) -> None:
        self._key[:] = next_key(self._key)
        self.epoch += 1
        self.saved = False

    def save(self) -> None:
        """Put the key into its file, and overwrite the one that was there; OSError."""
        part = self._path.with_name(self._path.name + _PART)
        part.unlink(missing_ok=True)
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            write_all(descriptor, self._line(), 0)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        _replace(self._path, part)
        self.saved = True

    def _line(self) -> bytes:
        return line_of(KeyState(epoch=self.epoch, key=self._key.hex(), deleted=self.deleted))

    def has_made(self, epoch: int, mac: str, digest: bytes, line: bytes) -> bool:
        """Return whether ``mac`` is the seal number ``epoch`` by this key or a later one; see ``seal`` for the rest.

        No key is computed for a number that is more than MAX_STEPS ahead.
        """
        steps = epoch - self.epoch
        if not 0 <= steps < MAX_STEPS:
            return False
        return hmac.compare_digest(seal_of(later_key(self._key, steps), digest, line), mac)

    def skip(self, last: int) -> None:
        """Step over the keys of seals up to number ``last``, which this key or later ones have made; OSError."""
        for _ in range(last + 1 - self.epoch):
            self._step()
        self.save()


def _replace(path: Path, part: Path) -> None:
    """Overwrite the old key, and give the new one its name; OSError."""
    with suppress(FileNotFoundError):
        descriptor = open_regular(path, os.O_WRONLY | os.O_NOFOLLOW)
        try:
            write_all(descriptor, bytes(os.fstat(descriptor).st_size), 0)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    part.rename(path)
    sync(path.parent)
