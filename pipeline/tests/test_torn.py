"""A kill inside a commit never shows readers a mixture: they see the old generation or the new one, complete."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.tests.generate import HOUR, START, Ledger, Scribe, segments, traffic
from trouter.records import KINDS
from trouter.records.check import check_folder
from trouter_pipeline.compact import compact
from trouter_pipeline.datasets import Records
from trouter_pipeline.tables import Table

ROOT = Path(__file__).parents[2]
#: The steps of a commit.
STEPS = ("staged", "placed", "committed")
DAYS, TENANTS, ROWS = 3, 40, 60_000


def killed_when(seen: Callable[[], bool], process: subprocess.Popen[bytes], max_s: float = 120) -> bool:
    """Kill the process and its children once ``seen`` is true; return whether it still ran."""
    give_up_s = time.monotonic() + max_s
    late = False
    while process.poll() is None and not seen() and not late:
        late = time.monotonic() > give_up_s
    running = process.poll() is None
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()
    assert not late, "what it was to be killed for was not seen"
    return running


@pytest.mark.parametrize("step", STEPS)
def test_a_compaction_killed_inside_its_commit_leaves_the_former_records(tmp_path: Path, step: str) -> None:
    source, root = tmp_path / "in", tmp_path / "root"
    folder = root / "records"
    for part in range(2):
        begin = START + 2 * part * HOUR
        scribe = Scribe(source, at=begin)
        scribe.write_all(traffic(Ledger("QDR.A", scribe.boot), seed=part, begin=begin, end=begin + HOUR), 50)
        scribe.stop()
        if not part:
            compact([source], root)
    before = Records(root).segments
    names, versions = set(folder.rglob("*.parquet")), set(folder.glob("_delta_log/*"))
    seen = {
        "staged": lambda: bool(list(folder.glob("_staging/*/*"))),
        "placed": lambda: bool(set(folder.glob("record=*/date=*/*")) - names),
        "committed": lambda: bool(set(folder.glob("_delta_log/*")) - versions),
    }[step]
    command = [sys.executable, "-m", "trouter", "pipeline", "compact", str(source), str(root), "--jobs", "1", "--quiet"]
    process = subprocess.Popen(command, cwd=ROOT, start_new_session=True, stdout=subprocess.DEVNULL)
    killed_when(seen, process)
    now = Records(root)
    total = check_folder(source).records
    assert now.segments == before or len(now.segments) == len(segments(source))
    numbers = [
        (row["boot"], row["n"])
        for kind in KINDS
        for file in now.paths(kind)
        for row in pq.read_table(file, columns=["boot", "n"], partitioning=None).to_pylist()
    ]
    assert len(numbers) == len(set(numbers)) == sum(facts.count for facts in now.segments.values())
    again = compact([source], root)
    assert again.errors == []
    assert sum(facts.count for facts in Records(root).segments.values()) == total


DRIVER = """
import sys
from datetime import date, timedelta
from pathlib import Path
from pyspark.sql import functions as F
from trouter_pipeline.session import session
from trouter_pipeline.tables import Table

root, days, tenants, rows = Path(sys.argv[1]), *map(int, sys.argv[2:5])
small = {
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.ui.enabled": "false",
}
spark = session("torn", master="local[2]", settings=small)
table = Table(root, "t")
dates = [date(2026, 3, 1) + timedelta(days=day) for day in range(days)]
generation = table.inputs().get("generation", 0)
while True:
    generation += 1
    frame = spark.range(rows).select(
        F.date_add(F.lit(dates[0]), (F.col("id") % days).cast("int")).alias("date"),
        (F.col("id") % tenants).alias("tenant"),
        F.lit(generation).alias("generation"),
    )
    table.commit(frame.repartition(4), dates, inputs={"generation": generation}, job="torn", version=1, parameters={})
    print(generation, flush=True)
"""


def committed(root: Path) -> tuple[int, pa.Table] | None:
    """Return the generation that the last version says it is, and all its rows."""
    table = Table(root, "t")
    if table.last_commit() is None:
        return None
    return table.inputs()["generation"], table.rows()


def shown(folder: Path, step: str) -> Callable[[], bool]:
    """Return a function that checks the folder for a step of a commit after those that are there."""
    files, versions = set(folder.glob("date=*/*.parquet")), set(folder.glob("_delta_log/*.json"))
    steps: dict[str, Callable[[], bool]] = {
        "staged": lambda: any(folder.glob("_staging/*/date=*")),
        "placed": lambda: bool(set(folder.glob("date=*/*.parquet")) - files),
        "committed": lambda: bool(set(folder.glob("_delta_log/*.json")) - versions),
    }
    return steps[step]


@pytest.mark.slow
@pytest.mark.pipeline_long
def test_a_table_whose_writer_is_killed_inside_its_commit_shows_one_generation(tmp_path: Path) -> None:
    folder = tmp_path / "tables" / "t"
    inside = last = 0
    for kill in range(24):
        step = STEPS[kill % len(STEPS)]
        process = subprocess.Popen(
            [sys.executable, "-c", DRIVER, str(tmp_path), *map(str, (DAYS, TENANTS, ROWS))],
            cwd=ROOT,
            start_new_session=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert process.stdout is not None
        process.stdout.readline()  # one whole commit before the one that is interrupted
        known = set(folder.glob("date=*/*.parquet"))
        assert killed_when(shown(folder, step), process)
        process.stdout.close()
        found = committed(tmp_path)
        assert found is not None
        generation, rows = found
        assert rows.num_rows == ROWS
        assert set(rows["generation"].to_pylist()) == {generation}
        assert generation > last
        last = generation
        named = {folder / file.path for file in Table(tmp_path, "t").files()}
        left = set(folder.glob("date=*/*.parquet")) - named - known
        inside += bool(left) or any(folder.glob("_staging/*")) or step == "committed"
    assert inside >= 20
