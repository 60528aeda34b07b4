"""Any bytes as a segment of a spool are whole frames of the requested messages, then the end or SpoolCorrupt.

The first byte picks the size of a read. The checksum and the sequence number of each frame are right, whatever the size
of a read. A spool that opens the file as its last segment appends behind the last good frame.

Allowed: SpoolCorrupt, because most files are no segment; SpoolReplaced for a segment of another spool.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from zlib import crc32

from trouter.testing.fuzz import behind, files
from trouter_pipeline.spool.errors import SpoolCorrupt, SpoolReplaced
from trouter_pipeline.spool.frames import Frame, parse_frames
from trouter_pipeline.spool.segments import HEADER_BYTES, IDENTITY, SPARE, Segment, read_header, segment_path, walk
from trouter_pipeline.spool.writer import Spool

MUTATOR = behind(1, files)
COVERS = ("trouter_pipeline.spool.segments", "trouter_pipeline.spool.frames", "trouter_pipeline.spool.writer")
UUID = "00112233-4455-6677-8899-aabbccddeeff"
FOLDER = "/dev/shm" if os.path.isdir("/dev/shm") else None  # noqa: PTH112 - a disk would be slow
EVERY = 8


def read(descriptor: int, block_bytes: int) -> tuple[list[Frame], bool]:
    """Return the frames, and whether the file ends without a fault behind them."""
    found: list[Frame] = []
    path = Path("fuzzed.spool")
    try:
        for block in walk(descriptor, path, sequence=0, until=1 << 62, block_bytes=block_bytes):
            frames = list(parse_frames(block.frames))
            assert [frame.sequence for frame in frames] == list(range(block.first, block.end))
            found += frames
    except SpoolCorrupt:
        return found, False
    return found, True


def check(data: bytes) -> None:
    how, octets = (data[0], data[1:]) if data else (0, b"")
    descriptor = os.memfd_create("segment")
    try:
        os.write(descriptor, octets)
        try:
            read_header(descriptor, Segment(0, Path("fuzzed.spool")))
        except SpoolCorrupt:
            pass
        whole = read(descriptor, 1 << 20)
        assert read(descriptor, (8, 40, 100, 4000)[how & 3]) == whole
        check_frames(octets, whole[0])
    finally:
        os.close(descriptor)
    if how % EVERY == 0:
        recover(octets, whole[0])


def check_frames(octets: bytes, frames: list[Frame]) -> None:
    """Check the checksum of each frame against one computed from the bytes of the file."""
    at = HEADER_BYTES
    for frame in frames:
        length = int.from_bytes(octets[at : at + 4], "big")
        assert crc32(octets[at + 8 : at + 8 + length]) == int.from_bytes(octets[at + 4 : at + 8], "big")
        assert octets[at + 8 : at + 8 + length].endswith(frame.message)
        at += 8 + length


def recover(octets: bytes, frames: list[Frame]) -> None:
    """Open the file as the last segment of a dead process's spool, append a message, and check the sequence numbers."""
    with tempfile.TemporaryDirectory(dir=FOLDER) as name:
        folder = Path(name)
        with Spool.open(folder, address="a"):
            pass
        identity = folder / IDENTITY
        identity.write_text(json.dumps({**json.loads(identity.read_text()), "uuid": UUID}))
        (folder / SPARE).unlink(missing_ok=True)
        segment_path(folder, 0).write_bytes(octets)
        try:
            with Spool.open(folder, address="a") as spool:
                next_sequence = spool.next
                assert next_sequence in (0, len(frames))
                spool.append(b"new", tag=b"tag", ingest_us=1)
                assert spool.sync() == next_sequence + 1
            with Spool.open(folder, address="a") as spool:
                assert spool.next == next_sequence + 1
        except (SpoolCorrupt, SpoolReplaced):
            return
