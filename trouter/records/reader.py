"""Reads segments and verifies everything in them: each error names the file and the offset."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import msgspec

from trouter.records.schema import KINDS, VERSION, Record, RecordsDropped, RecordsSealed
from trouter.records.segments import (
    COMPRESSED,
    MAX_LINE_BYTES,
    Envelope,
    SegmentHeader,
    SegmentPosition,
    Trailer,
    file_label,
    line_of,
    numbered,
    opened,
    place_of,
)


class Corrupt(Exception):
    """A damaged segment: ``path``, ``offset`` of the line or end where the damage shows, and the reason."""

    def __init__(self, path: Path, offset: int, why: str) -> None:
        super().__init__(f"{path}: byte {offset}: {why}")
        self.path = path
        self.offset = offset
        self.why = why


class RecordLine(NamedTuple):
    """One record: its offset, envelope fields and line; ``record`` is None for an unknown kind."""

    offset: int
    n: int
    t: int
    kind: str
    octets: bytes
    record: Record | None


class FoundSeal(NamedTuple):
    """A seal: its number and its code, and what it is over: its ``line`` without the code, and the octets before."""

    epoch: int
    mac: str
    digest: bytes
    line: bytes


class _Failed(Exception):
    """The fault in a line."""


_HEADER: Final = msgspec.json.Decoder(SegmentHeader)
_TRAILER: Final = msgspec.json.Decoder(Trailer)
_ENVELOPE: Final = msgspec.json.Decoder(Envelope)
_RECORDS: Final[dict[str, msgspec.json.Decoder[Any]]] = {
    name: msgspec.json.Decoder(kind) for name, kind in KINDS.items()
}
#: Errors of decoding; those of msgspec and of invalid UTF-8 are ValueErrors.
_MISTAKES: Final = (ValueError, RecursionError)
TRAILER_KIND: Final = "segment.trailer"
_TRAILER_BYTES: Final = 512
#: The last second of the year 9999, the last of Python's dates, in microseconds since 1970.
LAST_US: Final = 253_402_300_799_000_000


class SegmentReader:
    """A reader of one segment.

    ``header`` is read at once, ``trailer`` with the last line, unless the segment is still being written; ``end`` is
    then where the last whole line ends. Corrupt is raised at the first fault.
    """

    def __init__(self, path: Path, file: BinaryIO, *, open_ended: bool = False) -> None:
        """Read the header; Corrupt. If ``open_ended``, the trailer may be missing and the last line incomplete."""
        self.path = path
        self.trailer: Trailer | None = None
        self.count = 0
        self.end = 0
        self.crc = 0
        self._sha = hashlib.sha256()
        #: The last seal, None if there is none.
        self.seal: FoundSeal | None = None
        #: The number of the last record; before the first record, the number before it.
        self.last = -1
        #: Missing numbers before a record of this segment: the first, the last, and the offset of that record.
        self.gaps: list[tuple[int, int, int]] = []
        self._file = file
        self._open_ended = open_ended
        self.header = self._read_header()
        self.last = self.header.first - 1

    @property
    def sha(self) -> str:
        """The SHA-256 of the lines that were read, in hexadecimal; without the trailer."""
        return self._sha.hexdigest()

    def _fail(self, offset: int, why: str) -> Corrupt:
        return Corrupt(self.path, offset, why)

    def _next_line(self) -> bytes:
        return self._take(self._file.readline, MAX_LINE_BYTES)

    def _take(self, read: Callable[[int], bytes], limit: int) -> bytes:
        """Call ``read``; Corrupt with the uncompressed offset if decompression fails."""
        try:
            return read(limit)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise self._fail(self.end, f"the segment cannot be decompressed from here on: {error}") from None

    def _read_header(self) -> SegmentHeader:
        octets = self._next_line()
        if not octets.endswith(b"\n"):
            raise self._fail(0, "the header is incomplete")
        try:
            header = _HEADER.decode(octets)
        except _MISTAKES as error:
            raise self._fail(0, f"the header cannot be read: {error}") from None
        if line_of(header) != octets:
            raise self._fail(0, "the header was changed after it was written")
        if header.v != VERSION:
            raise self._fail(0, f"the records are of version {header.v}, and this program reads version {VERSION}")
        place = place_of(self.path)
        if place is not None and (place.router, place.boot, place.first) != (
            file_label(header.router),
            header.boot,
            header.first,
        ):
            raise self._fail(0, "the header belongs to another segment than the file name says")
        self._count_in(octets)
        return header

    def _count_in(self, octets: bytes) -> None:
        self.crc = zlib.crc32(octets, self.crc)
        self._sha.update(octets)
        self.end += len(octets)

    def lines(self) -> Iterator[RecordLine]:
        """Yield the records; Corrupt. For a segment being written, call again for those that come later."""
        while self.trailer is None:
            offset = self.end
            octets = self._next_line()
            if not octets.endswith(b"\n"):
                if self._open_ended:
                    self._file.seek(offset)
                    return
                raise self._fail(offset, "the segment ends without a trailer")
            try:
                line = self._line(offset, octets)
            except _Failed as failed:
                raise self._fail(offset, str(failed)) from None
            if line is None:
                if rest := self._take(self._file.read, 1):
                    raise self._fail(offset + len(octets), f"there is more behind the trailer: {rest!r}")
                return
            yield line

    def _line(self, offset: int, octets: bytes) -> RecordLine | None:
        """Return the record of a line, None for the trailer; _Failed."""
        try:
            envelope = _ENVELOPE.decode(octets)
            fields_of(octets)  # raises for a malformed field that this version ignores, too
        except _MISTAKES as error:
            raise _Failed(f"this is not a record: {error}") from None
        if envelope.k == TRAILER_KIND:
            self.trailer = self._trailer(octets)
            return None
        if envelope.n < 0 or not 0 <= envelope.t <= LAST_US:
            raise _Failed("a record must have a number and a time")
        if envelope.n <= self.last:
            raise _Failed(f"the number {envelope.n} comes after {self.last}")
        record = None
        if decoder := _RECORDS.get(envelope.k):
            try:
                record = decoder.decode(octets)
            except _MISTAKES as error:
                raise _Failed(f"this is no {envelope.k}: {error}") from None
        if isinstance(record, RecordsSealed):
            bare = numbered(record.n, RecordsSealed(t=record.t, epoch=record.epoch)) + b"\n"
            self.seal = FoundSeal(record.epoch, record.mac, self._sha.digest(), bare)
        if envelope.n > self.last + 1:
            self.gaps.append((self.last + 1, envelope.n - 1, offset))
        self.last = envelope.n
        self.count += 1
        self._count_in(octets)
        return RecordLine(offset, envelope.n, envelope.t, envelope.k, octets, record)

    def _trailer(self, octets: bytes) -> Trailer:
        try:
            trailer = _TRAILER.decode(octets)
        except _MISTAKES as error:
            raise _Failed(f"the trailer cannot be read: {error}") from None
        if line_of(trailer) != octets:
            raise _Failed("the trailer was changed after it was written")
        if trailer.count != self.count:
            raise _Failed(f"the trailer counts {trailer.count} records, and the segment has {self.count}")
        if trailer.last != self.last:
            raise _Failed(f"the last number is {trailer.last} in the trailer, and {self.last} in the segment")
        if trailer.crc != self.crc:
            raise _Failed(f"the checksum of the lines is {self.crc}, and {trailer.crc} in the trailer")
        if trailer.sha and trailer.sha != self.sha:
            raise _Failed(f"the SHA-256 of the lines is {self.sha}, and {trailer.sha} in the trailer")
        if trailer.epoch is not None:
            self.seal = _seal_in(trailer, trailer.epoch, self._sha.digest())
        return trailer


def header_of(place: SegmentPosition) -> SegmentHeader | None:
    """Return a segment's header; None if it cannot be read."""
    with suppress(OSError, Corrupt), opened(place.path) as file:
        return SegmentReader(place.path, file, open_ended=True).header
    return None


def seals_in(path: Path) -> tuple[int, int] | None:
    """Return the numbers of the first and the last seal of a segment; None if it has none or cannot be read."""
    seals = []
    try:
        with opened(path) as file:
            while line := file.readline(MAX_LINE_BYTES):
                if b'"k":"records.sealed"' in line:
                    seals.append(msgspec.json.decode(line, type=RecordsSealed).epoch)
                elif b'"k":"segment.trailer"' in line:
                    epoch = _TRAILER.decode(line).epoch
                    seals += [] if epoch is None else [epoch]
    except (OSError, EOFError, ValueError, zlib.error):
        return None
    return (min(seals), max(seals)) if seals else None


def deletions_in(path: Path) -> list[RecordsDropped]:
    """Return the reports of missing numbers in a segment; those before its first fault if it cannot be read."""
    reports = []
    with suppress(OSError, EOFError, ValueError, zlib.error), opened(path) as file:
        while line := file.readline(MAX_LINE_BYTES):
            if b'"k":"records.dropped"' in line:
                reports.append(msgspec.json.decode(line, type=RecordsDropped))
    return reports


def last_number(path: Path) -> int | None:
    """Return the last number by a segment's trailer; None if there is none or it cannot be read."""
    trailer = last_trailer(path)
    return None if trailer is None else trailer.last


def last_trailer(path: Path) -> Trailer | None:
    """Return a segment's trailer by the end of the file; None if there is none or it cannot be read."""
    try:
        with opened(path) as file:
            if path.name.endswith(COMPRESSED):
                end = _end_of(file)
            else:
                file.seek(max(0, path.stat().st_size - _TRAILER_BYTES))
                end = file.read()
        return _TRAILER.decode(end.splitlines(keepends=True)[-1])
    except (OSError, EOFError, ValueError, IndexError, zlib.error):
        return None


def last_seal(path: Path) -> FoundSeal | None:
    """Return the seal in a segment's trailer, over the octets that are there; None if it has none."""
    trailer = last_trailer(path)
    if trailer is None or trailer.epoch is None:
        return None
    return _seal_in(trailer, trailer.epoch, bytes.fromhex(content_digest(path)))


def _seal_in(trailer: Trailer, epoch: int, digest: bytes) -> FoundSeal:
    """Return the seal of a trailer that has one; ``digest`` is that of the octets before."""
    return FoundSeal(epoch, trailer.mac, digest, line_of(msgspec.structs.replace(trailer, mac="")))


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a complete segment as its trailer has it; of an old one by reading it; "" if that fails."""
    trailer = last_trailer(path)
    if trailer is None or trailer.sha:
        return "" if trailer is None else trailer.sha
    return content_digest(path)


def content_digest(path: Path) -> str:
    """Return the SHA-256 of all lines of a segment but the last, by reading it; "" if that fails."""
    sha, held = hashlib.sha256(), b""
    try:
        with opened(path) as file:
            while piece := file.read(1 << 20):
                held += piece
                sha.update(held[:-_TRAILER_BYTES])
                held = held[-_TRAILER_BYTES:]
    except (OSError, EOFError, zlib.error):
        return ""
    sha.update(held[: held.rfind(b"\n", 0, -1) + 1])
    return sha.hexdigest()


def _end_of(file: BinaryIO) -> bytes:
    """Return the last bytes of a file that can only be read from its start."""
    end = b""
    while piece := file.read(1 << 16):
        end = (end + piece)[-_TRAILER_BYTES:]
    return end


def fields_of(octets: bytes) -> dict[str, Any]:
    """Return the fields of a line in their order; ValueError."""
    fields: dict[str, Any] = msgspec.json.decode(octets)
    return fields
