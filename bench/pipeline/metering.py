"""The meter on a large data set: compaction, the job as it is used, and its sums by Spark, DuckDB and polars."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

from bench.chapters import Bench
from bench.measure import Sample, Spread
from trouter.pipeline.compact import compact, in_processes
from trouter.pipeline.tables import Table

from .engines import ENGINES
from .processes import MeasureError, Process
from .recorded import Faults, Records


def meter(bench: Bench) -> None:
    """Ten million records, of which one segment is twice, one overlaps, and two are lost; a tenth of it if quick."""
    count = 10_000_000 if bench.extent.everything else 1_000_000
    records = Records(links=count // 200, steps=200, each=count // 400)
    folder, copies, root = (bench.new_folder(name) for name in ("in", "copies", "root"))
    cores = os.cpu_count() or 1
    Faults(records).write(folder, copies, cores)
    begun = time.perf_counter()
    done = compact([folder, copies], root, run=in_processes(cores), cores=cores)
    took_s = time.perf_counter() - begun
    if done.errors:
        raise MeasureError(done.errors[0])
    bench.figure(f"compaction of {count} records", _once(done.records / took_s), "records/s")
    bench.figure(f"`trouter pipeline meter` of {count} records", _once(_job(root)), "s")
    shutil.rmtree(folder)
    bench.interleave(
        f"sums of {done.records} records by hour and subject",
        {name: partial(_sums, bench, name, root, done.records) for name in ENGINES},
    )


def _job(root: Path) -> float:
    """Seconds of the whole command, Spark's start included."""
    begun = time.perf_counter()
    command = [sys.executable, "-m", "trouter", "pipeline", "meter", str(root), "--quiet", "--json"]
    subprocess.run([*command, "--conf", "spark.driver.memory=1g"], check=True, stdout=subprocess.DEVNULL)
    if Table(root, "meter").manifest() is None:
        raise MeasureError("there is no meter")
    return time.perf_counter() - begun


def _sums(bench: Bench, engine: str, root: Path, count: int) -> Sample:
    """One run of one engine; how long it took to be ready and how much memory it had is remarked."""
    out = bench.new_folder(f"{engine}.parquet")
    with Process("bench.pipeline.engines", engine, root, out) as process:
        said = process.line()
        process.go()
    bench.remark(
        f"{engine}: ready in {said['ready_s']:.1f} s, {said['resident_mb']:.0f} MB, {said['messages']} messages"
    )
    return Sample(said["cpu_s"] * 1e6 / count, count / said["seconds"], count)


def _once(value: float) -> Spread:
    return Spread(value, value, value)
