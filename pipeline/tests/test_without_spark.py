"""The extra `records` works without Spark: tables of records, sums of them, and the page about these."""

from __future__ import annotations

from pathlib import Path

from pipeline.tests.generate import HOUR, START, Ledger, Scribe, traffic
from tests.extras import SPARKS, run_without


def write_records(folder: Path) -> None:
    scribe = Scribe(folder, "R", START)
    records = traffic(Ledger("R", scribe.boot), seed=1, begin=START, end=START + 2 * HOUR, connections=4, prefix="t")
    scribe.write_all(records, 60)
    scribe.stop()


def test_records_become_tables_and_a_report_without_spark(tmp_path: Path) -> None:
    write_records(tmp_path / "in")
    for line in ("compact in root", "meter root", "report root"):
        done = run_without(SPARKS, "pipeline", *line.split(), folder=tmp_path)
        assert done.returncode == 0, done.stderr
        assert done.stdout, line
        assert not [each for each in done.stderr.splitlines() if not each.startswith("trouter pipeline ")]
    assert "<svg" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_damaged_file_is_named_and_is_no_traceback(tmp_path: Path) -> None:
    write_records(tmp_path / "in")
    assert run_without(SPARKS, "pipeline", "compact", "in", "root", folder=tmp_path).returncode == 0
    whole = {path: path.read_bytes() for path in tmp_path.rglob("root/**/*.parquet")}
    for metered in (False, True):
        if metered:
            for path, content in whole.items():
                path.write_bytes(content)
            assert run_without(SPARKS, "pipeline", "meter", "root", folder=tmp_path).returncode == 0
        for path in tmp_path.rglob("root/**/*.parquet"):
            path.write_bytes(b"PAR1 is all PAR1")
        done = run_without(SPARKS, "pipeline", "meter", "root", folder=tmp_path)
        assert (done.returncode, done.stdout) == (1, "")
        assert ".parquet" in done.stderr.splitlines()[-1]
        assert "Traceback" not in done.stderr
