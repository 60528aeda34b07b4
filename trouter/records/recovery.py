"""Completes segments that were left open by a killed process or a failed disk."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from trouter.records.disk import AppendedFile, open_own, rename_durably
from trouter.records.reader import Corrupt, FoundSeal, SegmentReader, header_of
from trouter.records.segments import (
    EMPTY,
    OPEN,
    ManifestEntry,
    SegmentPosition,
    Trailer,
    line_of,
    place_of,
)

log: Final = logging.getLogger("trouter.MAIN")


class Recovered(NamedTuple):
    """A segment that was completed: its start of the router, its place, its entry in the manifest and its last seal.

    The seal is as it was found: nothing has proved it.
    """

    boot: int
    place: SegmentPosition
    entry: ManifestEntry
    seal: FoundSeal | None


def recover(path: Path, *, whole_bytes: int | None = None, whole_sha: str = "") -> Recovered | None:
    """Complete an open segment: cut off an incomplete end, and mark the trailer as recovered; OSError.

    Lines after ``whole_bytes``, or after those with the SHA-256 ``whole_sha``, do not count either. Return None for a
    file without a header, which then has no records.
    """
    reader = None
    with open(path, "r+b", opener=open_own) as file:
        with suppress(Corrupt):  # the rest is cut off
            reader = SegmentReader(path, file, open_ended=True)
            if reader.sha != whole_sha:
                for _ in reader.lines():
                    if reader.end == whole_bytes or (whole_sha and reader.sha == whole_sha):
                        break
        if reader is not None and reader.trailer is None:
            trailer = Trailer(count=reader.count, last=reader.last, crc=reader.crc, recovered=True, sha=reader.sha)
            whole_lines = AppendedFile(path, file.fileno(), reader.end)
            whole_lines.cut()
            whole_lines.append(line_of(trailer))
        os.fsync(file.fileno())
        size = file.seek(0, os.SEEK_END)
    whole = path.with_name(path.name.removesuffix(OPEN))
    if reader is None:
        path.rename(whole.with_name(whole.name + EMPTY))
        log.warning("%s has no complete header, so it has no records", path)
        return None
    rename_durably(path, whole)
    log.warning("%s was recovered: %d records", whole, reader.count)
    place = place_of(whole)
    assert place is not None  # noqa: S101 - its name is ours
    entry = ManifestEntry(
        seg=whole.name,
        first=reader.header.first,
        last=reader.last,
        count=reader.count,
        bytes=size,
        crc=reader.crc,
        state="recovered",
    )
    return Recovered(reader.header.boot, place, entry, reader.seal)


def linked_from(place: SegmentPosition) -> str:
    """Return the SHA-256 that a segment's header has of the one before; "" if there is none or it cannot be read."""
    header = header_of(place)
    return "" if header is None else header.prev
