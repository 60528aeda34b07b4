"""Marks: how far something has come, as a file of fixed size, so that moving on needs no room on the disk.

The sequence in 8 octets and the same with every bit turned, so that half a change is seen and read again, and nothing
else that may stand there is taken for a sequence.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Final

from trouter.spool.errors import SpoolCorrupt

_BYTES: Final = 16
_ALL: Final = (1 << 64) - 1
#: A change is two small copies; a reader that sees one half of it this often in a row sees damage.
_LOOKS: Final = 1000


def _octets(sequence: int) -> bytes:
    return sequence.to_bytes(8, "big") + (sequence ^ _ALL).to_bytes(8, "big")


def create_mark(path: Path, mode: int) -> None:
    """Create a mark at 0, safe on the disk, unless there is one; OSError."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, mode)
    try:
        if os.fstat(descriptor).st_size != _BYTES:
            os.pwrite(descriptor, _octets(0), 0)
            os.ftruncate(descriptor, _BYTES)
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Mark:
    """A mark in memory that readers share with the process that moves it. Reading it costs no system call."""

    def __init__(self, path: Path, *, writable: bool) -> None:
        """OSError; SpoolCorrupt if it is not the size of one."""
        self._path = path
        descriptor = os.open(path, (os.O_RDWR if writable else os.O_RDONLY) | os.O_CLOEXEC)
        try:
            size = os.fstat(descriptor).st_size
            if size != _BYTES:
                raise SpoolCorrupt(path, size, f"a mark has {_BYTES} octets")
            access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
            self._shared = mmap.mmap(descriptor, _BYTES, access=access)
        finally:
            os.close(descriptor)

    def get(self) -> int:
        """Return the sequence; SpoolCorrupt."""
        for _ in range(_LOOKS):
            found = self._shared[:]
            sequence = int.from_bytes(found[:8], "big")
            if sequence ^ int.from_bytes(found[8:], "big") == _ALL:
                return sequence
        raise SpoolCorrupt(self._path, 0, "the file has no valid mark")

    def set(self, sequence: int) -> None:
        """Move on; every process of this machine sees it at once, and it is safe on the disk after ``flush``."""
        self._shared[:] = _octets(sequence)

    def flush(self) -> None:
        """Flush the marks to the disk; OSError."""
        self._shared.flush()

    def close(self) -> None:
        self._shared.close()
