"""How long 10,000 changes take to be merged into a large table: by `land --merge`, and by delta-rs in one process."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final

from bench.chapters import Bench
from bench.measure import Sample
from trouter_pipeline.changes import DELETED, Merge
from trouter_pipeline.landing import DEAD, columns_of_rows
from trouter_pipeline.merging import Merging
from trouter_pipeline.session import session

_CHANGES: Final = 10_000
_CLOCK_HZ: Final = os.sysconf("SC_CLK_TCK")
_HOW: Final = Merge(keys=["id"], sequence=["change"])


def merge(bench: Bench) -> None:
    """Measure updates of every hundredth row, of which one in fifty is deleted and comes back with the next."""
    rows = 1_000_000 if bench.extent.everything else 100_000
    settings = {"spark.driver.memory": "2g", "spark.ui.enabled": "false"}
    spark = session("bench", master="local[2]", settings=settings)
    try:
        root = bench.new_folder("merged")
        checkpoint = root / "checkpoint"
        checkpoint.mkdir(parents=True)
        (checkpoint / "metadata").write_text(json.dumps({"id": "bench"}))
        merging = Merging(root, "rows", _HOW)
        merging.claim(checkpoint, columns_of_rows(_changes(spark, rows, 1, 0)), {})
        bench.say(f"  {rows} rows")
        merging.land(_changes(spark, rows, 1, 0), 0)
        theirs = _copied(root)
        numbers = count(1)
        bench.interleave(
            f"{_CHANGES} changes merged into {rows} rows",
            {"trouter": partial(_timed, lambda: _ours(spark, merging, rows, next(numbers)), _cpu_s_of(spark)),
             "delta-rs": partial(_timed, lambda: _theirs(spark, theirs, rows, next(numbers)), time.process_time)},
        )  # fmt: skip
    finally:
        spark.stop()


def _changes(spark: Any, rows: int, step: int, sequence: int) -> Any:
    """Return changes of every ``step``-th row as Spark's, marked as `changes_of` marks them."""
    return spark.range(0, rows, step).selectExpr(
        "'spool' spool_id", "id seq", f"timestamp_seconds(1769904000 + {sequence}) ingest_time",
        "if(id % 200 < 100, 'changes/east', 'changes/west') address", "string(id) message_id",
        "'string' message_id_type", "id", f"{sequence}L change", "rand(1) * 1000 amount", "sha2(string(id), 256) note",
        f"id / {step} % 50 = {sequence} AND {sequence} > 0 {DELETED}", f"false {DEAD}",
        "cast(null as struct<reason: string, body: binary>) dead_letter", "date'2026-02-01' date",
    )  # fmt: skip


def _copied(root: Path) -> Path:
    """Copy the rows into a table divided by source, as delta-rs writes it."""
    from deltalake import DeltaTable, write_deltalake  # noqa: PLC0415

    rows = DeltaTable(str(root / "tables" / "rows")).to_pyarrow_table()
    write_deltalake(str(root / "theirs"), rows.drop_columns(["bucket"]), partition_by=["address"])
    return root / "theirs"


def _ours(spark: Any, merging: Merging, rows: int, sequence: int) -> None:
    merging.land(_changes(spark, rows, rows // _CHANGES, sequence), sequence)


def _theirs(spark: Any, folder: Path, rows: int, sequence: int) -> None:
    from deltalake import DeltaTable  # noqa: PLC0415

    changes = _changes(spark, rows, rows // _CHANGES, sequence).drop(DEAD, "dead_letter", "date").toArrow()
    columns = {name: f"s.{name}" for name in changes.column_names if name != DELETED}
    newer = "s.change > t.change"
    merger = DeltaTable(str(folder)).merge(
        changes, "t.address = s.address AND t.id = s.id", source_alias="s", target_alias="t"
    )
    merger = merger.when_matched_delete(f"{newer} AND s.{DELETED}").when_matched_update(columns, newer)
    merger.when_not_matched_insert(columns, f"NOT s.{DELETED}").execute()


def _cpu_s_of(spark: Any) -> Callable[[], float]:
    """Return a clock of the CPU of this process and of Spark's with its workers, in seconds."""
    java = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()

    def cpu_s() -> float:
        found = 0
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = path.read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(path.parent.name) == java or int(fields[1]) == java or _parent_of(int(fields[1])) == java:
                found += sum(map(int, fields[11:15]))
        return found / _CLOCK_HZ + time.process_time()

    return cpu_s


def _parent_of(process: int) -> int:
    try:
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _timed(work: Callable[[], None], cpu_s: Callable[[], float]) -> Sample:
    before_s, begun = cpu_s(), time.perf_counter()
    work()
    return Sample((cpu_s() - before_s) * 1e6 / _CHANGES, _CHANGES / (time.perf_counter() - begun), _CHANGES)
