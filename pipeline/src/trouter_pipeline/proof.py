"""Verifies whole segments by their checksums, which is quick; only failures are read again to find the fault."""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

import msgspec

from trouter.records.reader import Corrupt, SegmentReader
from trouter.records.segments import COMPRESSED, SegmentHeader, Trailer, opened
from trouter_pipeline.spool.checksums import crc32

_PIECE_BYTES: Final = 1 << 20
#: A trailer is shorter.
_TRAILER_BYTES: Final = 1024
_TRAILER: Final = msgspec.json.Decoder(Trailer)


class Proof(NamedTuple):
    """A verified segment. ``end`` is the offset of its trailer in uncompressed bytes.

    ``whole`` is the checksum of all bytes with the trailer, as gzip stores it.
    """

    path: Path
    header: SegmentHeader
    trailer: Trailer
    end: int
    whole: int


def prove(path: Path) -> Proof:
    """Verify a segment by its checksum, parsing only its first and last line; Corrupt, OSError."""
    path = there(path)
    with opened(path) as file:
        reader = SegmentReader(path, file)
        try:
            proof = _checked(path, file, reader)
        except (EOFError, gzip.BadGzipFile, zlib.error):
            proof = None
    if proof is not None:
        return proof
    with opened(path) as file:
        reader = SegmentReader(path, file)
        for _ in reader.lines():
            pass
    raise Corrupt(path, reader.end, "the segment changed while it was read")


def there(path: Path) -> Path:
    """Return the present path of a segment, which the router may have compressed."""
    packed = path.with_name(path.name + COMPRESSED)
    return packed if not path.name.endswith(COMPRESSED) and not path.exists() and packed.exists() else path


def _checked(path: Path, file: BinaryIO, reader: SegmentReader) -> Proof | None:
    """Return the proof, None if the checksum differs; raises the errors of decompression."""
    crc, end, held = reader.crc, reader.end, b""
    while piece := file.read(_PIECE_BYTES):
        held += piece
        if len(held) > _TRAILER_BYTES:
            crc = crc32(held[:-_TRAILER_BYTES], crc)
            end += len(held) - _TRAILER_BYTES
            held = held[-_TRAILER_BYTES:]
    begin = held.rfind(b"\n", 0, -1) + 1
    try:
        trailer = _TRAILER.decode(held[begin:])
    except ValueError:
        return None
    if trailer.crc != crc32(held[:begin], crc):
        return None
    return Proof(path, reader.header, trailer, end + begin, crc32(held[begin:], trailer.crc))


def claimed(path: Path) -> int | None:
    """Return ``whole`` by the end of a file, without reading it all; None if it has none. OSError."""
    with path.open("rb") as file:
        file.seek(-min(_TRAILER_BYTES, path.stat().st_size), os.SEEK_END)
        end = file.read()
    if path.name.endswith(COMPRESSED):
        return int.from_bytes(end[-8:-4], "little")
    line = end[end.rfind(b"\n", 0, -1) + 1 :]
    try:
        return crc32(line, _TRAILER.decode(line).crc)
    except ValueError:
        return None
