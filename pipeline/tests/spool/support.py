"""Write messages to spools, and check what spools contain."""

from __future__ import annotations

from pathlib import Path

from trouter_pipeline.spool import Frame, Spool, SpoolReader, parse_frames


def message(number: int, size: int = 100) -> bytes:
    """Return a data section whose body repeats the number."""
    body = f"{number:08}".encode() * (size // 8)
    return (
        b"\0\x53\x75\xa0" + bytes([len(body)]) + body
        if len(body) < 256
        else (b"\0\x53\x75\xb0" + len(body).to_bytes(4, "big") + body)
    )


def fill(spool: Spool, count: int, size: int = 100) -> None:
    """Append ``count`` messages and sync; the number of each is its sequence."""
    for _ in range(count):
        spool.append(message(spool.next, size), tag=spool.next.to_bytes(4, "big"), ingest_us=1_000_000 + spool.next)
    spool.sync()


def frames(folder: Path, start: int = 0, end: int | None = None, block_bytes: int = 1 << 20) -> list[Frame]:
    reader = SpoolReader(folder)
    try:
        blocks = list(reader.blocks(start, reader.durable() if end is None else end, block_bytes=block_bytes))
    finally:
        reader.close()
    return [frame for block in blocks for frame in parse_frames(block)]


def holds(folder: Path, start: int, end: int, size: int = 100) -> None:
    """Check that the spool has these messages, each under its sequence."""
    found = frames(folder, start, end)
    assert [frame.sequence for frame in found] == list(range(start, end))
    assert all(frame.message == message(frame.sequence, size) for frame in found)
