"""What the rooms that keep files on disk share."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


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
