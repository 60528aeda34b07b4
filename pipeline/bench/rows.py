"""From a spool to rows for Spark: Arrow batches, beside ``proton.Message.decode`` to tuples.

Both read the same spool and check every frame. The tuples have the fields that a user of that library would take of a
message; Spark's conversion of tuples to Arrow, which costs as much again, is not measured.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from proton import Message

from bench.chapters import Bench
from bench.measure import Sample, ratios
from trouter_pipeline.arrow import Origin, batches
from trouter_pipeline.slices import BLOCK_BYTES
from trouter_pipeline.spool import Spool, SpoolReader, parse_frames

#: (size of the body, messages, target: times as many rows for each second of CPU)
SIZES = ((100, 200_000, 5.0), (10_000, 20_000, 5.0))
FIELDS = (
    "id",
    "user_id",
    "address",
    "subject",
    "reply_to",
    "correlation_id",
    "content_type",
    "content_encoding",
    "expiry_time",
    "creation_time",
    "group_id",
    "group_sequence",
    "reply_to_group_id",
    "durable",
    "priority",
    "ttl",
    "first_acquirer",
    "delivery_count",
    "instructions",
    "annotations",
    "properties",
    "body",
)


def rows(bench: Bench) -> None:
    """Measure messages with an id and a data section; CPU is that of one process from the file to the rows."""
    for size, most, target in SIZES:
        count = most if bench.extent.everything else most // 4
        folder = bench.new_folder("spool")
        _fill(folder, size, count)
        name = f"spool to rows, {size} B" if size < 1000 else f"spool to rows, {size // 1000} kB"
        samples = bench.interleave(
            name,
            {
                "trouter, Arrow": partial(_timed, count, partial(_arrow, folder)),
                "python-qpid-proton, tuples": partial(_timed, count, partial(_tuples, folder)),
            },
        )
        ours, theirs = samples.values()
        bench.figure(f"{name}: rows per CPU second to proton's", ratios(theirs, ours), "x", target, at_least=True)


def _fill(folder: Path, size: int, count: int) -> None:
    with Spool.open(folder) as spool:
        for number in range(count):
            message = bytes(Message(id=f"m{number}", body=bytes(size), inferred=True).encode())
            spool.append(message, tag=number.to_bytes(8, "big"), ingest_us=number)
            if not number % 5000:
                spool.sync()
        spool.sync()


def _timed(count: int, work: Callable[[], int]) -> Sample:
    cpu_ns, begun = time.process_time_ns(), time.perf_counter()
    if work() != count:
        raise AssertionError("rows are missing")
    took_s = time.perf_counter() - begun
    return Sample((time.process_time_ns() - cpu_ns) / 1e3 / count, count / took_s, count)


def _arrow(folder: Path) -> int:
    reader = SpoolReader(folder)
    end = reader.durable()
    blocks = reader.blocks(0, end, block_bytes=BLOCK_BYTES)
    return sum(batch.num_rows for batch, _ in batches(blocks, Origin(reader.uuid, 0, ""), 0, end, 1 << 26))


def _tuples(folder: Path) -> int:
    reader = SpoolReader(folder)
    message = Message()
    count = 0
    for block in reader.blocks(0, reader.durable(), block_bytes=BLOCK_BYTES):
        made: list[tuple[Any, ...]] = []
        for frame in parse_frames(block):
            message.decode(frame.message)
            made.append((frame.sequence, *[getattr(message, name) for name in FIELDS]))
        count += len(made)
    return count
