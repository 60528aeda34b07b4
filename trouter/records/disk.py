"""Files that outlive a crash: locks, files that grow, and files placed as a whole.

Records keep their segments with these, and so do the spools and tables of the pipeline; their formats, and what is
deleted first, are their own.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

FILE_MODE: Final = 0o640
FOLDER_MODE: Final = 0o750
#: Suffix of a file that is not whole yet.
PART: Final = ".part"
#: Attempts to take a lock, and seconds between them: `is_locked` of another process holds it for a moment.
_ATTEMPTS: Final = 5
_BETWEEN_S: Final = 0.02


class FileHeld(Exception):
    """Another process holds the lock; ``holder`` is its id, "" if unknown."""

    def __init__(self, holder: str) -> None:
        super().__init__(f"the lock is held by process {holder or 'unknown'}")
        self.holder = holder


def lock_file(path: Path) -> int:
    """Lock a file, make it if absent, and put this process's id into it; FileHeld, OSError.

    Return its descriptor: closing it, or the end of the process, releases the lock.
    """
    descriptor = open_own(path, os.O_RDWR | os.O_CREAT)
    try:
        _take_lock(descriptor)
    except OSError as error:
        holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
        os.close(descriptor)
        if isinstance(error, BlockingIOError):
            raise FileHeld(holder) from None
        raise
    with suppress(OSError):  # a full disk may have no room even for this
        os.pwrite(descriptor, f"{os.getpid():<19}\n".encode(), 0)
    return descriptor


def _take_lock(descriptor: int) -> None:
    """Lock an open file; BlockingIOError if another process keeps the lock, OSError."""
    for _ in range(_ATTEMPTS - 1):
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        time.sleep(_BETWEEN_S)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def is_locked(path: Path) -> bool:
    """Return whether a process holds the lock of `lock_file`; OSError if the file may not be read."""
    try:
        descriptor = open_regular(path)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


class AppendedFile:
    """A file open for writing that grows by whole pieces: of a piece that cannot be written, nothing stays."""

    __slots__ = ("_synced", "descriptor", "end", "path", "torn")

    def __init__(self, path: Path, descriptor: int, end: int = 0) -> None:
        """Continue at ``end``, behind the bytes that are whole. ``close`` closes the descriptor."""
        self.path = path
        self.descriptor = descriptor
        #: Where the whole pieces end.
        self.end = end
        #: The rest of a piece is behind the end, because the disk refused to cut it off as well.
        self.torn = False
        self._synced = 0

    def append(self, octets: bytes | bytearray, *, durable: bool = False) -> None:
        """Write all bytes at the end, and sync them if ``durable``; OSError, and none is written."""
        try:
            write_all(self.descriptor, octets, self.end)
            if durable:
                os.fdatasync(self.descriptor)
        except OSError:
            with suppress(OSError):
                self.cut()
            raise
        self.end += len(octets)
        if durable:
            self._synced = self.end

    def cut(self) -> None:
        """Cut off what is behind the end; OSError."""
        self.torn = True
        os.ftruncate(self.descriptor, self.end)
        self.torn = False

    def sync(self) -> None:
        """Have the disk hold on to all that was appended; OSError."""
        if self._synced < self.end:
            os.fdatasync(self.descriptor)
            self._synced = self.end

    def close(self) -> None:
        """Close the file; OSError."""
        os.close(self.descriptor)


def write_all(descriptor: int, octets: bytes | bytearray, offset: int) -> None:
    """Write all bytes at ``offset``; OSError, and a part may be written."""
    view = memoryview(octets)
    while view:
        written = os.pwrite(descriptor, view, offset)
        offset += written
        view = view[written:]


def cut_torn_line(descriptor: int, longest: int) -> None:
    """Cut off the end of a file behind its last whole line, which a kill or a full disk has left; OSError.

    Nothing is cut if that is longer than the ``longest`` line: the file is no file of such lines.
    """
    size = os.fstat(descriptor).st_size
    start = max(0, size - longest)
    torn = os.pread(descriptor, longest, start).rpartition(b"\n")[2]
    if torn and (start == 0 or len(torn) < longest):
        os.ftruncate(descriptor, size - len(torn))


def place_file(
    path: Path, octets: bytes, *, mode: int = FILE_MODE, part: Path | None = None, durable: bool = True
) -> None:
    """Create or replace a file as a whole, on the disk when this returns if ``durable``; OSError, and it is unchanged.

    ``part`` is the file's name while it is not whole, unless it is the same name with ``PART``.
    """
    part = part or path.with_name(path.name + PART)
    try:
        descriptor = open_own(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
        try:
            write_all(descriptor, octets, 0)
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        part.rename(path)
    except OSError:
        with suppress(OSError):
            part.unlink()
        raise
    if durable:
        sync(path.parent)


def rename_durably(path: Path, target: Path) -> None:
    """Rename a file within its folder, on the disk when this returns; OSError."""
    path.rename(target)
    sync(target.parent)


def sync(path: Path) -> None:
    """Have the disk hold on to a file, or to the names in a folder; OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def open_regular(path: str | Path, flags: int = os.O_RDONLY) -> int:
    """Return a descriptor of a regular file; OSError, also for anything else, such as a pipe, which would make us wait.

    It can be the ``opener`` of ``open``.
    """
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    return descriptor


def open_own(path: str | Path, flags: int, mode: int = FILE_MODE) -> int:
    """Return a descriptor of a regular file to write to, which ``flags`` may make or empty; OSError.

    A file that a stranger put there is refused and left as it is: a symbolic link, one with another name besides, and
    one that belongs neither to root, nor to this user, nor to the owner of the folder.
    """
    kept = flags & ~os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, kept, mode)
    try:
        facts = os.fstat(descriptor)
        owners = {0, os.geteuid(), Path(path).parent.stat().st_uid}
        if not stat.S_ISREG(facts.st_mode) or facts.st_nlink > 1 or facts.st_uid not in owners:
            raise OSError(errno.EPERM, "it is no file of the router", str(path))
        if flags & os.O_TRUNC:
            os.ftruncate(descriptor, 0)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
