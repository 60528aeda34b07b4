"""Compresses complete segments, to about a fifth of their size; an interruption loses nothing.

The compressed file is whole and synced before it gets its name, and the plain one is deleted after that. If both exist,
the plain one counts.
"""

from __future__ import annotations

import gzip
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

from trouter.records.disk import open_own, sync
from trouter.records.segments import COMPRESSED, PART, SUFFIX

#: The quickest level; it already makes records a fifth of their size.
_LEVEL: Final = 1
_PIECE_BYTES: Final = 1 << 20


def compress(plain: Path) -> tuple[Path, int]:
    """Replace ``plain`` by a compressed segment; return its path and bytes. OSError, and ``plain`` is unchanged."""
    part = plain.with_name(plain.name + PART)
    try:
        with plain.open("rb") as source, open(part, "wb", opener=open_own) as file:
            facts = os.fstat(source.fileno())
            os.fchmod(file.fileno(), facts.st_mode & 0o777)
            with gzip.GzipFile("", "wb", _LEVEL, file, mtime=0) as octets:
                shutil.copyfileobj(source, octets, _PIECE_BYTES)
            file.flush()
            os.utime(file.fileno(), ns=(facts.st_atime_ns, facts.st_mtime_ns))  # retention goes by this time
            os.fsync(file.fileno())
            size = file.tell()
        whole = part.rename(plain.with_name(plain.name + COMPRESSED))
    except OSError:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise
    sync(plain.parent)
    plain.unlink()
    return whole, size


def clear_halves(folder: Path, label: str) -> None:
    """Delete the remains of interrupted compressions; OSError."""
    for path in folder.glob(f"{label}~*{PART}"):
        path.unlink(missing_ok=True)
    for path in folder.glob(f"{label}~*{SUFFIX}{COMPRESSED}"):
        if path.with_name(path.name.removesuffix(COMPRESSED)).exists():
            path.unlink(missing_ok=True)
