"""The segment that is being written: what is whole in it, and the sums over its octets."""

from __future__ import annotations

import hashlib
import os
import zlib
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from trouter.records.disk import FILE_MODE, AppendedFile, rename_durably
from trouter.records.schema import RecordsSealed
from trouter.records.seals import SealingKey
from trouter.records.segments import (
    OPEN,
    ManifestEntry,
    SegmentHeader,
    SegmentPosition,
    Trailer,
    line_of,
    numbered,
    place_of,
)


class Piece(NamedTuple):
    """Whole lines of records: how many (``size``), the number of the last, and the times of first and last."""

    octets: bytes
    size: int
    last: int
    t_first: int
    t_last: int


class OpenSegment:
    """A segment that grows by whole pieces, until it is complete or abandoned. The writer owns it."""

    def __init__(self, path: Path, header: SegmentHeader, begun_us: int) -> None:
        """Make the file ``path`` with the header; OSError, and there is no file."""
        octets = line_of(header)
        self.first = header.first
        #: When it was begun by the monotonic clock, in microseconds.
        self.begun_us = begun_us
        #: When the first record came that no seal covers, by the monotonic clock.
        self.unsealed_us: int | None = begun_us
        self.count = 0
        self.last = header.first - 1
        #: The name of the segment before, "" if there is none.
        self.after = header.after
        #: The numbers of the first and the last seal, None if there is none.
        self.seals: tuple[int, int] | None = None
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
        self.file = AppendedFile(path, descriptor)
        try:
            self.file.append(octets)
        except OSError:
            self.file.close()
            with suppress(OSError):
                path.unlink()
            raise
        self._crc = zlib.crc32(octets)
        self._sha = hashlib.sha256(octets)
        self._t_min = 0
        self._t_max = 0

    @property
    def name(self) -> str:
        """The name that the segment has when it is complete."""
        return self.file.path.name.removesuffix(OPEN)

    @property
    def digest(self) -> bytes:
        """The SHA-256 of all whole lines."""
        return self._sha.digest()

    def append(self, piece: Piece, *, durable: bool = False) -> None:
        """Write all lines or none; OSError."""
        self.file.append(piece.octets, durable=durable)
        self._crc = zlib.crc32(piece.octets, self._crc)
        self._sha.update(piece.octets)
        if not self.count:
            self._t_min = piece.t_first
        self._t_max = piece.t_last
        self.count += piece.size
        self.last = piece.last

    def seal(self, key: SealingKey, now_us: int) -> None:
        """Append a seal over all that is whole, on the disk when this returns; OSError, and it was not written."""
        number = self.last + 1
        record = RecordsSealed(epoch=key.epoch, t=now_us)
        record.mac = key.seal(self.digest, numbered(number, record) + b"\n")
        self.append(Piece(numbered(number, record) + b"\n", 1, number, now_us, now_us), durable=True)
        self.unsealed_us = None
        self._note_seal(key.epoch)

    def _note_seal(self, epoch: int) -> None:
        self.seals = (epoch if self.seals is None else self.seals[0], epoch)

    def sealed_trailer(self, key: SealingKey, now_us: int) -> Trailer:
        """Return the trailer of what is whole now, with a seal."""
        bare = msgspec.structs.replace(self.trailer(), epoch=key.epoch, t=now_us)
        return msgspec.structs.replace(bare, mac=key.seal(self.digest, line_of(bare)))

    def trailer(self) -> Trailer:
        """Return the trailer of what is whole now."""
        return Trailer(count=self.count, last=self.last, crc=self._crc, sha=self._sha.hexdigest())

    def end(self, trailer: Trailer) -> None:
        """Write the trailer to the disk; OSError, and the segment is as it was."""
        self.file.append(line_of(trailer), durable=True)
        if trailer.epoch is not None:
            self._note_seal(trailer.epoch)

    def put_away(self) -> tuple[SegmentPosition, ManifestEntry]:
        """Close a segment that has its trailer, and rename it; return its place and its manifest entry. OSError."""
        self.file.close()
        whole = self.file.path.with_name(self.name)
        rename_durably(self.file.path, whole)
        place = place_of(whole)
        assert place is not None  # noqa: S101 - its name is ours
        return place, ManifestEntry(
            seg=whole.name,
            first=self.first,
            last=self.last,
            count=self.count,
            bytes=self.file.end,
            crc=self._crc,
            state="closed",
            t_min=self._t_min,
            t_max=self._t_max,
        )
