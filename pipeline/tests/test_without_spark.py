"""The extra `records` works without Spark: tables of records, sums of them, and the page about these."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.tests.generate import HOUR, START, Ledger, Scribe, traffic
from tests.extras import RECORDS, SPARKS, run_without

pytestmark = pytest.mark.one_twin

METER = ("pipeline", "meter", "root", "--engine", "duckdb")


def write_records(folder: Path) -> None:
    scribe = Scribe(folder, "R", START)
    records = traffic(Ledger("R", scribe.boot), seed=1, begin=START, end=START + 2 * HOUR, connections=4, prefix="t")
    scribe.write_all(records, 60)
    scribe.stop()


def test_records_become_tables_and_a_report_without_spark(tmp_path: Path) -> None:
    write_records(tmp_path / "in")
    for line in ("compact in root", "meter root --engine duckdb", "report root"):
        done = run_without(SPARKS, "pipeline", *line.split(), folder=tmp_path)
        assert done.returncode == 0, done.stderr
        assert done.stdout, line
        assert not [each for each in done.stderr.splitlines() if not each.startswith("trouter pipeline ")]
        if line.startswith("compact"):
            assert "compact: Spark cannot run here (" in done.stderr
    assert "<svg" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_damaged_file_is_named_and_is_no_traceback(tmp_path: Path) -> None:
    write_records(tmp_path / "in")
    assert run_without(SPARKS, "pipeline", "compact", "in", "root", folder=tmp_path).returncode == 0
    whole = {path: path.read_bytes() for path in tmp_path.rglob("root/**/*.parquet")}
    for metered in (False, True):
        if metered:
            for path, content in whole.items():
                path.write_bytes(content)
            assert run_without(SPARKS, *METER, folder=tmp_path).returncode == 0
        for path in tmp_path.rglob("root/**/*.parquet"):
            path.write_bytes(b"PAR1 is all PAR1")
        done = run_without(SPARKS, *METER, folder=tmp_path)
        assert (done.returncode, done.stdout) == (1, "")
        assert ".parquet" in done.stderr.splitlines()[-1]
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("hidden", [SPARKS, SPARKS | RECORDS], ids=["spark", "all"])
def test_the_meter_without_spark_names_both_cures(tmp_path: Path, hidden: frozenset[str]) -> None:
    (tmp_path / "root").mkdir()
    done = run_without(hidden, *METER[:3], folder=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    said = done.stderr.splitlines()[-1]
    assert ": pip install 'trouter[spark]'" in said
    assert said.endswith(
        "; or run without Spark: --engine duckdb, for which `pip install 'trouter[records]'` is enough"
    )


def test_a_job_that_only_spark_runs_names_its_cure(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    done = run_without(SPARKS | RECORDS, "pipeline", "rollup", "root", folder=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1].endswith(": pip install 'trouter[spark]'")
