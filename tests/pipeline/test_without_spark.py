"""What the extra `records` is for works without Spark: tables of records, sums of them, and the page about these."""

from __future__ import annotations

from pathlib import Path

from tests.extras import SPARKS, run_without
from tests.pipeline.generate import HOUR, START, Ledger, Scribe, traffic


def test_records_become_tables_and_a_report_without_spark(tmp_path: Path) -> None:
    scribe = Scribe(tmp_path / "in", "R", START)
    records = traffic(Ledger("R", scribe.boot), seed=1, begin=START, end=START + 2 * HOUR, connections=4, prefix="t")
    scribe.write_all(records, 60)
    scribe.stop()
    for line in ("compact in root", "meter root", "report root"):
        done = run_without(SPARKS, "pipeline", *line.split(), folder=tmp_path)
        assert done.returncode == 0, done.stderr
        assert done.stdout, line
    assert "<svg" in (tmp_path / "report.html").read_text(encoding="utf-8")
