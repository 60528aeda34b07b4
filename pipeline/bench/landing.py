"""From a sender to a Parquet table: receive, spool, settle, read by Spark; trouter beside python-qpid-proton.

Both stream into Parquet in batches of the messages since the last one, and Spark was up before the first message. The
clock runs from the first message that is sent to the commit of the batch with the last one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Final

from bench.chapters import Bench
from bench.measure import Sample

from .beside import rates
from .processes import Process
from .receiving import THEIRS

_SIZE: Final = 100
#: Messages of a round. Java translates the code of each query in its first seconds, about 2.5 s of processor time, so
#: both sides get as many as keep them at work for longer than that.
_COUNTS: Final = {"ours": 2_400_000, "theirs": 600_000}
_LINGER_S: Final = 0.005


def landed(bench: Bench) -> None:
    """Measure one receiver, two cores of tasks, 100 B."""
    sides: dict[str, Callable[[], Sample]] = {
        "trouter": partial(_land, bench, "ours"),
        "python-qpid-proton": partial(_land, bench, "theirs"),
    }
    samples = bench.interleave("sent to landed, 100 B", sides)
    ours, theirs = samples.values()
    bench.figure("sent to landed, 100 B: messages/s to proton's", rates(ours, theirs), "x", 5.0, at_least=True)


def _land(bench: Bench, side: str) -> Sample:
    """Run a warm-up round, and return the sample of the next."""
    count = _COUNTS[side] if bench.extent.everything else _COUNTS[side] // 4
    counts = (count // 4, count)
    with ExitStack() as stack:
        feeds = [stack.enter_context(Process("pipeline.bench.feed", _SIZE, each, 1)) for each in counts]
        ports = [feed.line()["port"] for feed in feeds]
        folders = [bench.new_folder("landed") for _ in feeds]
        rounds = [f"{port}:{each}:{folder}" for port, each, folder in zip(ports, counts, folders, strict=True)]
        spark = stack.enter_context(Process("pipeline.bench.landing_spark", side, *rounds))
        for feed, port, folder in zip(feeds, ports, folders, strict=True):
            folder.mkdir()
            receiver = partial(Process, THEIRS, port, folder, _LINGER_S) if side == "theirs" else None
            sample = _round(spark, feed, receiver)
    return sample


def _round(spark: Process, feed: Process, receiver: Callable[[], Process] | None) -> Sample:
    """Measure from the first message to the last row; CPU is that of Spark, its workers and a separate receiver."""
    spark.line()
    spark.go()
    with ExitStack() as stack:
        receiving = None
        if receiver is not None:
            spark.line()  # it streams
            receiving = stack.enter_context(receiver())
            receiving.line()
        report = feed.line()
        count = report["messages"]
        begun_s = time.monotonic() - report["seconds"]
        said = spark.line()
        cpu_s = said["cpu_s"]
        if receiving is not None:
            receiving.go()
            cpu_s += receiving.line()["cpu_s"]
    return Sample(cpu_s * 1e6 / count, count / (said["landed_s"] - begun_s), count)
