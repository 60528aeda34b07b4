"""The memory of the process: what it has from the system, and how much of that is in use.

Python and the C library keep freed memory for new objects. It stays resident, so resident memory alone would make a
router refuse clients long after the objects that filled it are gone.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

#: More bytes than an object of Python's takes on the average: a busy router's take 90 to 150.
OBJECT_BYTES: Final = 256
_STATM: Final = Path("/proc/self/statm")
#: More than the file's size.
_STATM_BYTES: Final = 256
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
#: The memory limit of a container, in either version of control groups.
_CONTAINER: Final = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


class _MallInfo2(ctypes.Structure):
    """The counts of glibc's malloc, by the names of `struct mallinfo2`."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
        )
    )  # fmt: skip


def resident_bytes() -> int:
    """Return the resident memory of the process, in bytes."""
    return _statm_pages()[1] * _PAGE_BYTES


def used_bytes() -> int:
    """Return the resident memory without most of what is kept for new objects, in bytes; rather too much.

    The sum of the pages of files, of the memory that the C library has handed out, and of Python's objects, each
    counted as ``OBJECT_BYTES``. It is all resident memory if the C library does not report what it has handed out.
    """
    pages = _statm_pages()
    resident = pages[1] * _PAGE_BYTES
    handed_out = _handed_out_bytes()
    if handed_out is None:
        return resident
    return min(resident, pages[2] * _PAGE_BYTES + handed_out + sys.getallocatedblocks() * OBJECT_BYTES)


def give_back() -> None:
    """Let the C library return its free memory to the system."""
    with suppress(AttributeError):  # not glibc
        ctypes.CDLL(None).malloc_trim(0)


def collect() -> None:
    """Free the objects that only refer to each other; it stops the router for as long as it takes."""
    gc.collect()


def available_bytes() -> int:
    """Return the memory of the machine in bytes, or the container's if that is less."""
    available = _PAGE_BYTES * os.sysconf("SC_PHYS_PAGES")
    for path in _CONTAINER:
        with suppress(OSError, ValueError):  # absent, or "max"
            available = min(available, int(path.read_text()))
    return available


def _statm_pages() -> list[int]:
    """Return the pages of the process: all, resident ones, resident ones of files."""
    return [int(text) for text in os.pread(_statm(os.getpid()), _STATM_BYTES, 0).split()[:3]]


@cache
def _statm(_process: int) -> int:
    """Return a descriptor of the file, opened once per process: later there may be no descriptor left."""
    return os.open(_STATM, os.O_RDONLY | os.O_CLOEXEC)


def _handed_out_bytes() -> int | None:
    """Return the bytes that glibc's malloc has handed out; None for another C library, or one before 2.33."""
    try:
        mallinfo2 = ctypes.CDLL(None).mallinfo2
    except AttributeError:
        return None
    mallinfo2.restype = _MallInfo2
    counts = mallinfo2()
    return int(counts.uordblks + counts.hblkhd)
