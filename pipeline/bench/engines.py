"""One engine computes the sums of the meter of a data set: `python -m pipeline.bench.engines ENGINE ROOT OUT`.

All write the same rows: seven sums by hour, tenant, user, address and direction, as Parquet. The program prints the
seconds until the engine was ready and until it was done, CPU, and peak memory.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from trouter_pipeline.datasets import Records, dataset

KIND: Final = "delivery.interval"
SUMS: Final = ("msgs", "bytes", "accepted", "rejected", "released", "modified", "presettled")
KEY: Final = ("vhost", "user", "addr", "dir")
#: Memory limit of an engine in GB; polars has none.
MEMORY_GB: Final = {"duckdb": 2, "spark": 1}


def duckdb(root: Path, out: Path) -> Callable[[], int]:
    import duckdb as engine  # noqa: PLC0415  # only one of them

    connection = engine.connect()
    connection.execute(f"SET memory_limit = '{MEMORY_GB['duckdb']}GB'")
    sums = ", ".join(f"sum(d_{name}) AS {name}" for name in SUMS)
    query = (
        f"SELECT date_trunc('hour', make_timestamp(t0)) AS hour, vhost, \"user\", addr, dir, {sums} "
        "FROM read_parquet(?) GROUP BY ALL"
    )

    def run() -> int:
        # COPY takes no parameter for its path.
        connection.execute(f"COPY ({query}) TO '{out}' (FORMAT parquet, COMPRESSION zstd)", [Records(root).paths(KIND)])
        found = connection.execute(f"SELECT sum(msgs) FROM '{out}'").fetchone()
        assert found is not None
        return int(found[0])

    return run


def polars(root: Path, out: Path) -> Callable[[], int]:
    import polars as pl  # noqa: PLC0415

    def run() -> int:
        hour = pl.from_epoch("t0", time_unit="us").dt.truncate("1h").alias("hour")
        rows = pl.scan_parquet(Records(root).paths(KIND), hive_partitioning=False)
        sums = [pl.col(f"d_{name}").sum().alias(name) for name in SUMS]
        rows.group_by(hour, *KEY).agg(sums).sink_parquet(out, compression="zstd")
        return int(pl.read_parquet(out)["msgs"].sum())

    return run


def spark(root: Path, out: Path) -> Callable[[], int]:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    from trouter_pipeline.session import session  # noqa: PLC0415

    settings = {"spark.driver.memory": f"{MEMORY_GB['spark']}g", "spark.ui.enabled": "false"}
    started = session("bench", settings=settings)

    def run() -> int:
        hour = F.date_trunc("hour", F.timestamp_micros("t0")).alias("hour")
        sums = [F.sum(f"d_{name}").alias(name) for name in SUMS]
        rows = dataset(started, Records(root), KIND).groupBy(hour, *KEY).agg(*sums)
        rows.write.option("compression", "zstd").parquet(str(out))
        return int(started.read.parquet(str(out)).agg(F.sum("msgs")).collect()[0][0])

    return run


ENGINES: Final[dict[str, Callable[[Path, Path], Callable[[], int]]]] = {
    "duckdb": duckdb,
    "polars": polars,
    "spark": spark,
}


def used(pids: list[str]) -> tuple[float, float]:
    """Return the CPU seconds and the sum of the processes' peak resident megabytes."""
    cpu_s = resident_mb = 0.0
    for pid in pids:
        fields = Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()
        cpu_s += (int(fields[11]) + int(fields[12])) / 100
        status = Path("/proc", pid, "status").read_text()
        resident_mb += next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024
    return cpu_s, resident_mb


def main() -> None:
    name, root, out = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    begun = time.perf_counter()
    run = ENGINES[name](root, out)
    ready = time.perf_counter()
    messages = run()
    done = time.perf_counter()
    children = Path("/proc/self/task", str(_own_task()), "children").read_text().split()
    cpu_s, resident_mb = used(["self", *children])
    said: dict[str, Any] = {
        "messages": messages,
        "ready_s": ready - begun,
        "seconds": done - ready,
        "cpu_s": cpu_s,
        "resident_mb": resident_mb,
    }
    print(json.dumps(said), flush=True)
    sys.stdin.readline()


def _own_task() -> int:
    return int(Path("/proc/self").readlink().name)


if __name__ == "__main__":
    main()
