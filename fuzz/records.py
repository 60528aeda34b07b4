"""Any bytes as a segment of records are records with ascending numbers, then the end, a reported gap, or Corrupt.

The first byte chooses whether the segment is still being written. Each record equals the bytes at its offset; Corrupt
names an offset in the file.

Allowed: Corrupt, because most files are no segment.
"""

from __future__ import annotations

import io
import random
from pathlib import Path

from trouter.records.reader import Corrupt, SegmentReader
from trouter.records.segments import numbered
from trouter.testing.fuzz import behind, files, mutation

COVERS = ("trouter.records.reader",)
PATH = Path("R1~1700000000~0000000000000000.jsonl")


def lines(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """Drop, double or exchange lines or change one; in other cases mutate the input as a file."""
    rows = data.splitlines(keepends=True)
    if len(rows) < 2 or rng.random() < 0.4:
        return files(rng, data, other)
    at = rng.randrange(len(rows))
    kind = rng.randrange(4)
    if kind == 0:
        del rows[at]
    elif kind == 1:
        rows.insert(at, rng.choice(other.splitlines(keepends=True) or [b"\n"]))
    elif kind == 2:
        there = rng.randrange(len(rows))
        rows[at], rows[there] = rows[there], rows[at]
    else:
        rows[at] = mutation.text(rng, rows[at], other)
    return b"".join(rows)[: mutation.MAX_BYTES]


MUTATOR = behind(1, lines)


def check(data: bytes) -> None:
    how, octets = (data[0], data[1:]) if data else (0, b"")
    open_ended = bool(how & 1)
    path = PATH.with_name(PATH.name + ".open") if open_ended else PATH
    found = []
    reader = None
    try:
        reader = SegmentReader(path, io.BytesIO(octets), open_ended=open_ended)
        for line in reader.lines():
            found.append(line)  # noqa: PERF402 - those before a fault count, too
    except Corrupt as corrupt:
        offset, why = corrupt.offset, corrupt.why
        assert 0 <= offset <= len(octets)
        assert why
    else:
        assert reader.trailer is not None or open_ended
        assert reader.end <= len(octets)
    last = -1
    for line in found:
        assert octets[line.offset : line.offset + len(line.octets)] == line.octets
        assert line.n > last
        last = line.n
        if line.record is not None:
            assert numbered(line.n, line.record)
    if reader is not None:
        missing = sum(end - first + 1 for first, end, _ in reader.gaps)
        assert missing + len(found) == reader.last + 1 - reader.header.first
