"""Proves a whole segment by its checksum alone, which is quick; only what fails is read again to say where and why."""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

import msgspec

from trouter.records.reader import Corrupt, SegmentReader
from trouter.records.segments import COMPRESSED, Header, Trailer, opened

_PIECE_BYTES: Final = 1 << 20
#: A trailer is shorter.
_TRAILER_BYTES: Final = 1024
_TRAILER: Final = msgspec.json.Decoder(Trailer)


class Proof(NamedTuple):
    """A segment that is as it was written. ``end`` is where its trailer begins, counted in octets not compressed.

    ``whole`` is the checksum of all of it, the trailer included: that which gzip keeps.
    """

    path: Path
    header: Header
    trailer: Trailer
    end: int
    whole: int


def prove(path: Path) -> Proof:
    """Read a segment through, though of its lines only the first and the last are looked at; Corrupt, OSError."""
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
    """The segment under the name it has now: the router may have compressed it since."""
    packed = path.with_name(path.name + COMPRESSED)
    return packed if not path.name.endswith(COMPRESSED) and not path.exists() and packed.exists() else path


def _checked(path: Path, file: BinaryIO, reader: SegmentReader) -> Proof | None:
    """The proof, None if the checksum is another; what decompressing raises."""
    crc, end, held = reader.crc, reader.end, b""
    while piece := file.read(_PIECE_BYTES):
        held += piece
        if len(held) > _TRAILER_BYTES:
            crc = zlib.crc32(held[:-_TRAILER_BYTES], crc)
            end += len(held) - _TRAILER_BYTES
            held = held[-_TRAILER_BYTES:]
    begin = held.rfind(b"\n", 0, -1) + 1
    try:
        trailer = _TRAILER.decode(held[begin:])
    except ValueError:
        return None
    if trailer.crc != zlib.crc32(held[:begin], crc):
        return None
    return Proof(path, reader.header, trailer, end + begin, zlib.crc32(held[begin:], trailer.crc))


def claimed(path: Path) -> int | None:
    """What the end of a file says ``whole`` is, without reading the file; None if it says nothing. OSError."""
    with path.open("rb") as file:
        file.seek(-min(_TRAILER_BYTES, path.stat().st_size), os.SEEK_END)
        end = file.read()
    if path.name.endswith(COMPRESSED):
        return int.from_bytes(end[-8:-4], "little")
    line = end[end.rfind(b"\n", 0, -1) + 1 :]
    try:
        return zlib.crc32(line, _TRAILER.decode(line).crc)
    except ValueError:
        return None
