"""Rows to settled messages: the sink's work in a task, beside the same in python-qpid-proton; both without Spark."""

from __future__ import annotations

from typing import Final

from bench.chapters import Bench
from bench.measure import Sample
from trouter.load.led import Led
from trouter.load.plan import Load

from .beside import Row, beside_proton
from .processes import Process

OURS: Final = "pipeline.bench.sink_ours"
THEIRS: Final = "pipeline.bench.sink_theirs"
_WINDOW: Final = 500
ROWS: Final = (Row("100 B", 100, 100_000), Row("10 kB", 10_000, 20_000))


def send(bench: Bench, module: str, size: int, count: int) -> Sample:
    """Measure one run, from Arrow batches to the last outcome at the sender, and the sender's CPU."""
    with Led("sink", Load(port=0, size=size, count=count)) as sink:
        port = sink.ready()["port"]
        with Process(module, port, size, count, _WINDOW) as sender:
            sender.line()
            sender.go()
            said = sender.line()
    return Sample(said["cpu_s"] * 1e6 / count, count / said["wall_s"], count)


def sink(bench: Bench) -> None:
    """Measure one partition, one connection, a window of 500."""
    for row in ROWS:
        beside_proton(bench, "rows to settled messages", row, OURS, THEIRS, send)
