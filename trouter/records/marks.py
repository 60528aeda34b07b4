"""Marks beside segments: a checked copy of the segment exists elsewhere, so it may be deleted first.

    <router>~<boot>~<first number, 16 digits>.compacted    beside the segment of that name, compressed or not

A mark is a line of JSON with the segment's name and the checksum of its bytes. It is only a hint: the router ignores a
mark that does not fit its segment, and keeps segments without a mark longer.
"""

from __future__ import annotations

import gzip
import os
import stat
import uuid
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from trouter.records.disk import place_file
from trouter.records.segments import SUFFIX, line_of, opened

MARK: Final = ".compacted"
#: No valid mark is longer.
_MAX_BYTES: Final = 1024
_PIECE_BYTES: Final = 1 << 20


class Mark(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, tag_field="k", tag="segment.mark", frozen=True):
    """A mark; ``whole`` is the CRC-32 of all bytes of segment ``seg``, uncompressed and with its trailer."""

    seg: str
    whole: int


_MARK: Final = msgspec.json.Decoder(Mark)


def mark_path(folder: Path, segment: str) -> Path:
    """Return the path of a segment's mark; ``segment`` is the name of the complete segment."""
    return folder / (segment.removesuffix(SUFFIX) + MARK)


def write_mark(folder: Path, segment: str, whole: int) -> bool:
    """Write a mark; return False if the same one exists; OSError."""
    path = mark_path(folder, segment)
    mark = Mark(seg=segment, whole=whole)
    if read_mark(path) == mark:
        return False
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    place_file(path, line_of(mark), part=part, durable=False)
    return True


def read_mark(path: Path) -> Mark | None:
    """Return the mark in a file; None if the file cannot be read or holds no mark."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        return _MARK.decode(os.read(descriptor, _MAX_BYTES))
    except (OSError, ValueError):
        return None
    finally:
        os.close(descriptor)


def marks_in(folder: Path, label: str) -> dict[str, int]:
    """Return a router's marked segments, and when each mark was made in ns since 1970; {} if that fails."""
    found = {}
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(f"{label}~") and entry.name.endswith(MARK):
                with suppress(OSError):
                    facts = entry.stat(follow_symlinks=False)
                    found[entry.name.removesuffix(MARK) + SUFFIX] = facts.st_mtime_ns
    return found


def is_marked(path: Path, segment: str) -> bool:
    """Return whether the segment's mark fits the contents of ``path``; reads the whole file."""
    mark = read_mark(mark_path(path.parent, segment))
    if mark is None or mark.seg != segment:
        return False
    whole = 0
    try:
        with opened(path) as file:
            while piece := file.read(_PIECE_BYTES):
                whole = zlib.crc32(piece, whole)
    except (OSError, EOFError, gzip.BadGzipFile, zlib.error):
        return False
    return whole == mark.whole
