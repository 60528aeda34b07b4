"""Segments: the files of frames in a spool's folder.

    LOCK                        locked by the writer, with its process id
    spool.json                  uuid, address, shard and creation time of the spool
    durable                     a mark: end of what is durable
    consumed, NAME.cursor       marks: ends of what the consumers have finished, see `cursors`
    cursors.lock                locked while cursors are added or removed, or messages deleted
    <first, 16 digits>.spool    a header, then the frames from that sequence on
    spare                       room for the next segment's header, reserved in case the disk is full

The header: magic, version u32, uuid of the spool, first sequence u64, crc of all these u32, and zeros.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple
from uuid import UUID

from trouter_pipeline.spool.checksums import crc32
from trouter_pipeline.spool.errors import SpoolCorrupt
from trouter_pipeline.spool.frames import good_frames, wanted_octets

LOCK: Final = "LOCK"
IDENTITY: Final = "spool.json"
DURABLE: Final = "durable"
CONSUMED: Final = "consumed"
SPARE: Final = "spare"
VERSION: Final = 1
HEADER_BYTES: Final = 64

_MAGIC: Final = b"trspool\n"
_NAME: Final = re.compile(r"(\d{16,20})\.spool")
_READ_BYTES: Final = 1 << 20


class Segment(NamedTuple):
    """A segment file by its name: first sequence and path."""

    first: int
    path: Path


class Block(NamedTuple):
    """Whole frames of the messages from ``first`` to ``end`` - 1, and their offset in the file."""

    frames: bytes
    first: int
    end: int
    offset: int


def segment_path(folder: Path, first: int) -> Path:
    return folder / f"{first:016}.spool"


def segments_in(folder: Path) -> list[Segment]:
    """Return the segments of a folder in order; OSError."""
    with os.scandir(folder) as entries:
        found = [(match, entry.name) for entry in entries if (match := _NAME.fullmatch(entry.name)) is not None]
    return sorted(Segment(int(match[1]), folder / name) for match, name in found)


def header_of(uuid: str, first: int) -> bytes:
    stated = _MAGIC + VERSION.to_bytes(4, "big") + UUID(uuid).bytes + first.to_bytes(8, "big")
    return (stated + crc32(stated).to_bytes(4, "big")).ljust(HEADER_BYTES, b"\0")


def parse_header(path: Path, header: bytes) -> tuple[str, int]:
    """Return the spool's uuid and the first sequence of a header; SpoolCorrupt."""
    if len(header) < HEADER_BYTES:
        raise SpoolCorrupt(path, len(header), "the file ends within its header")
    if header[:8] != _MAGIC:
        raise SpoolCorrupt(path, 0, "this is not a segment of a spool")
    if crc32(header[:36]) != int.from_bytes(header[36:40], "big") or any(header[40:]):
        raise SpoolCorrupt(path, 8, "the header is damaged")
    version = int.from_bytes(header[8:12], "big")
    if version != VERSION:
        raise SpoolCorrupt(path, 8, f"version {version} of the format; this program reads version {VERSION}")
    return str(UUID(bytes=header[12:28])), int.from_bytes(header[28:36], "big")


def read_header(descriptor: int, segment: Segment) -> str:
    """Return the uuid in an open segment's header; OSError, and SpoolCorrupt also if name and header differ."""
    uuid, first = parse_header(segment.path, os.pread(descriptor, HEADER_BYTES, 0))
    if first != segment.first:
        raise SpoolCorrupt(segment.path, 28, f"the header is that of the segment from message {first} on")
    return uuid


def walk(
    descriptor: int,
    path: Path,
    *,
    offset: int = HEADER_BYTES,
    sequence: int,
    until: int,
    block_bytes: int = _READ_BYTES,
    checked: bool = True,
) -> Iterator[Block]:
    """Yield the frames of an open segment from ``offset``, which should be that of ``sequence``, to ``until`` - 1.

    A block has at most ``block_bytes``, or one larger frame. The walk ends where the file ends after a whole frame;
    SpoolCorrupt for a damaged or cut frame (a crc is verified if ``checked``), OSError.
    """
    size = os.fstat(descriptor).st_size
    wanted = block_bytes
    while sequence < until and offset < size:
        data = os.pread(descriptor, min(wanted, size - offset), offset)
        if not data:
            raise SpoolCorrupt(path, offset, "the file became shorter while it was read")
        length, after, wrong = good_frames(data, sequence, until, checked)
        if length:
            yield Block(data if length == len(data) else data[:length], sequence, after, offset)
        offset += length
        sequence = after
        wanted = block_bytes
        if wrong:
            raise SpoolCorrupt(path, offset, wrong)
        if sequence < until and length < len(data):
            needed = wanted_octets(data, length)
            if needed > size - offset or len(data) - length == size - offset:
                raise SpoolCorrupt(path, offset, f"the file ends within the frame of message {sequence}")
            wanted = max(block_bytes, needed)
