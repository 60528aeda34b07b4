"""Marks: a sequence in a file of fixed size, so that moving it needs no space on a full disk.

The file has the sequence in 8 bytes, and again with every bit inverted. A reader that sees half of a change reads
again, and other contents are not taken for a sequence.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Final

from trouter.records.disk import open_regular, place_file
from trouter_pipeline.spool.errors import SpoolCorrupt

_BYTES: Final = 16
_ALL: Final = (1 << 64) - 1
#: A change is two small copies; a reader that finds them different so often in a row reports damage.
_LOOKS: Final = 1000


def _octets(sequence: int) -> bytes:
    return sequence.to_bytes(8, "big") + (sequence ^ _ALL).to_bytes(8, "big")


def place_mark(path: Path, sequence: int) -> None:
    """Create a mark, on the disk when this returns, or replace the file; OSError."""
    place_file(path, _octets(sequence))


class Mark:
    """A mark mapped into memory, shared with the process that moves it. Reading needs no system call."""

    def __init__(self, path: Path, *, writable: bool) -> None:
        """Map the file; OSError, and SpoolCorrupt if its size is not that of a mark."""
        self.path = path
        descriptor = open_regular(path, os.O_RDWR if writable else os.O_RDONLY)
        try:
            size = os.fstat(descriptor).st_size
            if size != _BYTES:
                raise SpoolCorrupt(path, size, f"a mark has {_BYTES} bytes")
            access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
            self._shared = mmap.mmap(descriptor, _BYTES, access=access)
        finally:
            os.close(descriptor)

    def get(self) -> int:
        """Return the sequence; SpoolCorrupt if the file holds none."""
        for _ in range(_LOOKS):
            found = self._shared[:]
            sequence = int.from_bytes(found[:8], "big")
            if sequence ^ int.from_bytes(found[8:], "big") == _ALL:
                return sequence
        raise SpoolCorrupt(self.path, 0, "the file has no valid mark")

    def set(self, sequence: int) -> None:
        """Move the mark: other processes on this machine see it at once, and it is durable after ``flush``."""
        self._shared[:] = _octets(sequence)

    def flush(self) -> None:
        """Sync the mark to the disk; OSError."""
        self._shared.flush()

    def close(self) -> None:
        self._shared.close()
