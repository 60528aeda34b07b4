"""Ten million records with every fault: the meter equals the routers' counters, or marks the rows where it does not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from datetime import UTC
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline.bench.recorded import Faults, Records
from trouter_pipeline import datasets
from trouter_pipeline.compact import compact, in_processes
from trouter_pipeline.tables import Table

ROOT = Path(__file__).parents[2]


def metered(root: Path) -> pa.Table:
    return Table(root, "meter").rows()


@pytest.mark.slow
@pytest.mark.pipeline_long
@pytest.mark.parametrize("engine", ["spark", "duckdb"])
@pytest.mark.parametrize("count", [1_000_000, 10_000_000])
def test_every_message_is_counted_or_its_row_is_not_complete(tmp_path: Path, count: int, engine: str) -> None:
    records = Records(links=count // 200, steps=200, each=count // 400)
    faults = Faults(records)
    cores = os.cpu_count() or 1
    faults.write(tmp_path / "in", tmp_path / "copies", cores)
    done = compact([tmp_path / "in", tmp_path / "copies"], tmp_path / "root", run=in_processes(cores), cores=cores)
    assert done.errors == []
    assert [gap.from_n for gap in done.gaps] == [number * records.each for number in faults.lost]
    assert len(datasets.Records(tmp_path / "root").kinds["delivery.interval"]["2026-03-01"]) >= 2 * cores
    command = ["pipeline", "meter", str(tmp_path / "root"), "--engine", engine, "--quiet", "--json"]
    subprocess.run([sys.executable, "-m", "trouter", *command], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    total: Counter[tuple[str, ...]] = Counter()
    incomplete = set()
    for row in metered(tmp_path / "root").to_pylist():
        subject = (row["vhost"], row["user"], row["addr"], row["dir"])
        total[subject] += row["msgs"]
        if not row["complete"]:
            incomplete.add((int(row["hour"].replace(tzinfo=UTC).timestamp()) * 1_000_000, subject))
    truth = records.truth()
    truth.subtract(faults.unreported())
    assert total == truth
    assert incomplete >= faults.incomplete()
