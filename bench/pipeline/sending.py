"""Rows to settled messages: what the sink does in a task, beside the same in python-qpid-proton; no Spark in either."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

from bench.chapters import Bench
from bench.measure import Sample, ratios
from trouter.load.led import Led
from trouter.load.plan import Load

from .processes import Process
from .receiving import rates

OURS: Final = "bench.pipeline.sink_ours"
THEIRS: Final = "bench.pipeline.sink_theirs"
_WINDOW: Final = 500


@dataclass(frozen=True, slots=True)
class Row:
    """Bodies of ``size`` octets."""

    name: str
    size: int
    count: int


ROWS: Final = (Row("100 B", 100, 100_000), Row("10 kB", 10_000, 20_000))


def send(bench: Bench, module: str, size: int, count: int) -> Sample:
    """One run: from Arrow batches to the last outcome, as the sender sees it; its CPU."""
    with Led("sink", Load(port=0, size=size, count=count)) as sink:
        port = sink.ready()["port"]
        with Process(module, port, size, count, _WINDOW) as sender:
            sender.line()
            sender.go()
            said = sender.line()
    return Sample(said["cpu_s"] * 1e6 / count, count / said["wall_s"], count)


def sink(bench: Bench) -> None:
    """One partition, one connection, a window of 500."""
    for row in ROWS:
        count = row.count if bench.extent.everything else row.count // 4
        name = f"rows to settled messages, {row.name}"
        samples = bench.interleave(
            name,
            {
                "trouter": partial(send, bench, OURS, row.size, count),
                "python-qpid-proton": partial(send, bench, THEIRS, row.size, count),
            },
        )
        ours, theirs = samples["trouter"], samples["python-qpid-proton"]
        bench.figure(f"{name}: messages/s to proton's", rates(ours, theirs), "x")
        bench.figure(f"{name}: proton's CPU per message to ours", ratios(theirs, ours), "x")
