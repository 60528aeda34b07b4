"""The meter on large data sets: compaction, the job as users run it, and its sums by Spark, DuckDB and polars."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from bench.chapters import Bench
from bench.measure import Sample, Spread
from trouter_pipeline.compact import compact, in_processes
from trouter_pipeline.tables import Table

from .engines import ENGINES
from .made import kept
from .processes import MeasureError, Process
from .recorded import Faults, Records, faults_of

#: Seconds between two readings of memory.
_LOOK_S = 0.2
#: The ways in which the job runs.
_SMALL = ("--conf", "spark.driver.memory=768m", "--conf", "spark.driver.extraJavaOptions=-XX:+UseSerialGC")
_WAYS = {"in DuckDB": ("--engine", "duckdb"), "on Spark": _SMALL}
#: What a hundred million records may take on two cores.
_MOST_S = 200.0
_MOST_GB = 2.5


def meter(bench: Bench) -> None:
    """Measure ten million records (quick: a tenth) with one segment twice, one that overlaps, and two lost."""
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
    for where, options in _WAYS.items():
        took_s, most_gb = _job(root, options)
        bench.figure(f"`trouter pipeline meter` of {count} records {where}", _once(took_s), "s")
        bench.remark(f"meter {where}: {most_gb:.1f} GB resident at most")
    shutil.rmtree(folder)
    bench.interleave(
        f"sums of {done.records} records by hour and subject",
        {name: partial(_sums, bench, name, root, done.records) for name in ENGINES},
    )


def large(bench: Bench) -> None:
    """Measure a hundred million records (quick: a tenth) with two segments lost; compare every total with the truth.

    The records stay in the work folder for the next time.
    """
    faults = faults_of(100_000_000 if bench.extent.everything else 10_000_000)
    bench.say("records")
    root, there = kept(faults)
    for where, options in _WAYS.items():
        bench.say(f"meter {where}")
        took_s, most_gb = _job(root, options)
        name = f"`trouter pipeline meter` of {there} records {where}"
        bench.figure(name, _once(took_s), "s", _MOST_S)
        bench.figure(f"{name}: resident at most", _once(most_gb), "GB", _MOST_GB)
        _compare(root, faults)
    for engine in ENGINES:
        bench.say(f"sums by {engine}")
        sample = _sums(bench, engine, root, there)
        bench.remark(f"{engine}: sums of {there} records in {there / sample.per_second:.1f} s")


def _compare(root: Path, faults: Faults) -> None:
    """Check that each subject's messages are the truth except for lost records, and that those rows are marked.

    Raise MeasureError if they are not.
    """
    table = Table(root, "meter")
    files = [str(table.folder / file.path) for file in table.files()]
    import duckdb  # noqa: PLC0415  # not where only smaller chapters are run

    key = 'vhost, "user", addr, dir'
    found = duckdb.connect().execute(f"SELECT {key}, sum(msgs) FROM read_parquet(?) GROUP BY ALL", [files]).fetchall()
    truth = faults.records.truth()
    truth.subtract(faults.unreported())
    wrong = sum(truth[tuple(row[:4])] != row[4] for row in found)
    # beside the subjects there may be hours that are not proven, without a count
    missing = truth.keys() - {tuple(row[:4]) for row in found}
    if wrong or missing:
        raise MeasureError(f"{wrong} of {len(found)} totals are wrong, and {len(missing)} of {len(truth)} are missing")
    query = f"SELECT epoch_us(hour), {key} FROM read_parquet(?) WHERE NOT complete"
    told = {(row[0], tuple(row[1:])) for row in duckdb.connect().execute(query, [files]).fetchall()}
    if untold := faults.incomplete() - told:
        raise MeasureError(f"{len(untold)} rows are incomplete, and not said to be")


def _job(root: Path, options: Sequence[str]) -> tuple[float, float]:
    """Return the seconds of the whole command, and the peak memory in GB of all its processes."""
    begun = time.perf_counter()
    command = [
        sys.executable,
        "-m",
        "trouter",
        "pipeline",
        "meter",
        str(root),
        "--again",
        "--quiet",
        "--json",
        *options,
    ]
    most = 0.0
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    pause = threading.Event()
    while process.poll() is None:
        most = max(most, resident_gb(process.pid))
        pause.wait(_LOOK_S)
    if process.returncode or Table(root, "meter").last_commit() is None:
        raise MeasureError(f"there is no meter: it ended with {process.returncode}")
    return time.perf_counter() - begun, most


def resident_gb(pid: int, of_parent: str = "") -> float:
    """Return the memory in GB of a process and its descendants; pages that several share count for each.

    A child that has not begun its own program yet has its parent's memory, which counts once.
    """
    try:
        size, pages, *_ = Path(f"/proc/{pid}/statm").read_text().split()
        children = [
            child for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
        ]
    except OSError:  # it has just ended
        return 0.0
    own = 0.0 if size == of_parent else int(pages) * os.sysconf("SC_PAGE_SIZE") / 1e9
    return own + sum(resident_gb(int(child), size) for child in children)


def _sums(bench: Bench, engine: str, root: Path, count: int) -> Sample:
    """Measure one run of one engine; remark the seconds until it was ready and its memory."""
    out = bench.new_folder(f"{engine}.parquet")
    with Process("pipeline.bench.engines", engine, root, out) as process:
        said = process.line()
        process.go()
    bench.remark(
        f"{engine}: ready in {said['ready_s']:.1f} s, {said['resident_mb']:.0f} MB, {said['messages']} messages"
    )
    return Sample(said["cpu_s"] * 1e6 / count, count / said["seconds"], count)


def _once(value: float) -> Spread:
    return Spread(value, value, value)
