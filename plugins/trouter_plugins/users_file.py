"""Reads and writes files of users (``users``), guarded against links, wide modes and other writers.

A file must be a regular one of mode 0600 or less: a user with access could admit any user. In a container others may
read it, as Kubernetes mounts Secrets. Symbolic links are followed, but none is replaced: one writer at a time replaces
the file as a whole.
"""

from __future__ import annotations

import fcntl
import logging
import os
import stat
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from trouter.hooks import ConfigurationRefused, RouterFacts
from trouter_plugins.users import (
    DECOYS,
    Entry,
    Users,
    UsersFileError,
    Verifier,
    check_user,
    decoys_line,
    parse_line,
    parse_users,
)
from trouter_plugins.verifiers import ALONE, DEFAULT_SCRAM, HAS_SCRYPT, PasswordHash, ScramVerifier

#: 100,000 users with three verifiers each.
MAX_FILE_BYTES: Final = 64 << 20
MODE: Final = 0o600

#: Problems of a changed file that are logged while the router runs.
MAX_LOGGED: Final = 10

log = logging.getLogger("trouter.PLUGIN")

#: Distinguishes states of a file: device, inode, size, the time of the last change, and the owner.
Signature = tuple[int, int, int, int, int]


class UsersStore:
    """The users of one file, as they were when it was last fit to be read."""

    def __init__(self, path: Path, router: RouterFacts | None = None) -> None:
        """Read the file by the rules of ``router``; UsersFileError."""
        self.path = path
        self._router = router = router or RouterFacts("")
        if danger := router.danger_of_file(str(path)):
            raise UsersFileError([danger])
        users, signature = _read(path, router.secret_mode, router.decoy_key)
        #: What strangers could do to the file at the last look.
        self._danger = ""
        self.users = users
        self._signature: Signature | None = signature
        #: Users to whom a changed file may belong: root, the router's, and the owner at the start.
        self._owners = frozenset({0, os.geteuid(), signature[-1]})

    def refresh(self) -> bool:
        """Read the file again if it is another one now; True if so. An unfit one is logged, and users stay.

        With secure defaults one that strangers could have put there is unfit, and so is that of another owner.
        """
        signature, router = _signature(self.path), self._router
        if signature == self._signature:
            return False
        before, self._danger = self._danger, router.danger_of_file(str(self.path))
        if self._danger:  # it is judged again until it is fit: perhaps a folder on the way is mended
            if self._danger != before:
                log.error("%s: %s; the router keeps the users that it has", self.path, self._danger)
            return False
        self._signature = signature
        try:
            users, read = _read(self.path, router.secret_mode, router.decoy_key)
            if router.secure_defaults and read[-1] not in self._owners:
                raise UsersFileError([f"it belongs to another user now: chown root {self.path}"])
            self.users, self._signature = users, read
        except UsersFileError as error:
            for problem in error.problems[:MAX_LOGGED]:
                log.error("%s: %s; the router keeps the users that it has", self.path, problem)
            return False
        log.info("%s: read again, %d user(s)", self.path, len(self.users))
        return True


def open_store(router: RouterFacts) -> UsersStore | None:
    """Return the store of the file that the router is configured with, if there is one; ConfigurationRefused."""
    path = router.sasl_users_file
    if path is None:
        return None
    try:
        return UsersStore(Path(path), router)
    except UsersFileError as error:
        raise ConfigurationRefused(*(f"usersFile: {path}: {problem}" for problem in error.problems)) from None


def read_users(path: Path) -> Users:
    """Return the users in the file, also through a symbolic link; UsersFileError."""
    return _read(path)[0]


def edit_users(path: Path, change: Callable[[dict[str, Entry]], None]) -> None:
    """Let ``change`` alter the entries by user, and put the file into force in one step, comments and all.

    Users whose entry is another object stand in their line, new ones at the end. A file that is not there is made, with
    mode 0600. Raises what ``change`` raises, UsersFileError if the file is not usable, OSError if it cannot be written.
    """
    with _alone(path.parent):
        old = _lstat(path)
        content = b"" if old is None else _content(path, MODE, follow=False)[0].rstrip(b"\n")
        before = parse_users(content).entries
        if not any(line.startswith(DECOYS) for line in content.split(b"\n")):
            content = b"\n".join(filter(None, (decoys_line(), content)))
        after = dict(before)
        change(after)
        for user in after:
            check_user(user)
        _replace(path, b"".join(line + b"\n" for line in _edited(content, before, after)), old)


def put_user(
    path: Path, user: str, password: bytes, scram: Sequence[str] = DEFAULT_SCRAM, *, expires_at_s: float = float("inf")
) -> bool:
    """Add ``user`` to the file or replace the whole entry; True if the user was there.

    ``scram`` are the mechanisms to serve besides PLAIN. Raises ValueError for the name, or for a password that SCRAM
    cannot carry, and as ``edit_users``.
    """
    check_user(user)
    entry = Entry(hashed(password, scram), expires_at_s=expires_at_s)
    known: list[bool] = []

    def put(entries: dict[str, Entry]) -> None:
        known.append(user in entries)
        entries[user] = entry

    edit_users(path, put)
    return known[0]


def hashed(password: bytes, scram: Sequence[str]) -> tuple[Verifier, ...]:
    """Return what ``password`` is checked against. Takes a tenth of a second; ValueError if SCRAM cannot carry it.

    A thief attacks the weakest word of a line: without SCRAM scrypt alone has to be worth 600,000 turns of PBKDF2.
    ValueError too if there would be no word, because OpenSSL has no scrypt.
    """
    if not HAS_SCRYPT:
        if not scram:
            raise ValueError("this OpenSSL has no scrypt, as in FIPS mode: let the user have a SCRAM mechanism")
        return tuple(ScramVerifier.make(mechanism, password) for mechanism in scram)
    plain = PasswordHash.make(password) if scram else PasswordHash.make(password, ALONE)
    return plain, *(ScramVerifier.make(mechanism, password) for mechanism in scram)


def _edited(content: bytes, before: dict[str, Entry], after: dict[str, Entry]) -> Iterator[bytes]:
    """Yield the lines of the new file."""
    for line in content.split(b"\n") if content else ():
        parsed = parse_line(line)
        if parsed is None:
            yield line
            continue
        user = parsed[0]
        if user in after:
            yield line if after[user] is before[user] else _line(user, after[user])
    for user, entry in after.items():
        if user not in before:
            yield _line(user, entry)


def _line(user: str, entry: Entry) -> bytes:
    return f"{user}:{entry.format()}".encode()


def _read(path: Path, allowed: int = MODE, decoy_key: bytes = b"") -> tuple[Users, Signature]:
    content, signature = _content(path, allowed, follow=True)
    return parse_users(content, decoy_key), signature


def _content(path: Path, allowed: int, *, follow: bool) -> tuple[bytes, Signature]:
    """Return the content and signature of the file; UsersFileError if its mode gives more rights than ``allowed``."""
    try:
        direct = 0 if follow else os.O_NOFOLLOW
        descriptor = os.open(path, os.O_RDONLY | direct | os.O_NONBLOCK | os.O_CLOEXEC)
        with _closing(descriptor):
            status = os.fstat(descriptor)
            _check(path, status, allowed)
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        if not follow and path.is_symlink():
            raise UsersFileError(["a symbolic link: name the file that it leads to"]) from None
        raise UsersFileError([error.strerror or type(error).__name__]) from None
    if len(content) > MAX_FILE_BYTES:
        raise UsersFileError([f"larger than {MAX_FILE_BYTES >> 20} MiB"])
    return content, _signature_of(status)


def _check(path: Path, status: os.stat_result, allowed: int) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise UsersFileError(["not a regular file"])
    mode = stat.S_IMODE(status.st_mode)
    if mode & ~allowed:
        raise UsersFileError([f"mode {mode:04o} lets others at the password hashes: chmod 0600 {path}"])


def _signature(path: Path) -> Signature | None:
    try:
        return _signature_of(path.stat())
    except OSError:
        return None


def _signature_of(status: os.stat_result) -> Signature:
    return status.st_dev, status.st_ino, status.st_size, status.st_ctime_ns, status.st_uid


def _lstat(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except FileNotFoundError:
        return None


@contextmanager
def _closing(descriptor: int) -> Iterator[None]:
    try:
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the folder's lock, so that no other process edits a file of users in it meanwhile."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    with _closing(descriptor):
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


def _replace(path: Path, content: bytes, old: os.stat_result | None) -> None:
    """Replace the file by ``content`` and keep its owner: that is the router, not the operator that adds a user."""
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
