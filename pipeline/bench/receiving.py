"""Receive into a spool, each message accepted after fdatasync: trouter beside python-qpid-proton."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import Final

from bench.chapters import Bench
from bench.measure import Sample

from .beside import Row, beside_proton, rates
from .processes import Process

OURS: Final = "pipeline.bench.ours"
THEIRS: Final = "pipeline.bench.theirs"
_LINGER_S: Final = 0.005
ROWS: Final = (Row("100 B", 100, 300_000, 8.0), Row("10 kB", 10_000, 40_000, 3.0))


def receive(bench: Bench, module: str, size: int, count: int, shards: int = 1) -> Sample:
    """Measure one run, from the first transfer to the last outcome at the sender; CPU is that of all receivers."""
    with ExitStack() as stack:
        feed = stack.enter_context(Process("pipeline.bench.feed", size, count, shards))
        port = feed.line()["port"]
        receivers = []
        for _ in range(shards):
            folder = bench.new_folder("spool")
            folder.mkdir()
            receivers.append(stack.enter_context(Process(module, port, folder, _LINGER_S)))
        for receiver in receivers:
            receiver.line()
        report = feed.line()
        cpu_s = 0.0
        for receiver in receivers:
            receiver.go()
            cpu_s += receiver.line()["cpu_s"]
    return Sample(cpu_s * 1e6 / count, report["messages_per_second"], count)


def receive_to_spool(bench: Bench) -> None:
    """Measure one process."""
    for row in ROWS:
        beside_proton(bench, "receive to spool", row, OURS, THEIRS, receive)


def shards(bench: Bench) -> None:
    """Compare four processes with one, on the cores of this machine."""
    row = ROWS[0]
    count = row.count_for(bench)
    samples = bench.interleave(
        f"shards, {row.name}",
        {f"{number} processes": partial(receive, bench, OURS, row.size, count, number) for number in (1, 4)},
    )
    one, four = samples.values()
    bench.figure("four shards: messages/s to one's", rates(four, one), "x", 1.0, at_least=True)
