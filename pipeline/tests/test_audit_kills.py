"""The audit of a live folder is killed repeatedly in mid-stream: at the end each alert is written once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pipeline.tests.attacked import attacks, denial
from pipeline.tests.generate import DAY, again, segments
from pipeline.tests.oracles.audit import alerts as expected_alerts
from pipeline.tests.test_audit import found_in, written
from trouter_pipeline.attacks import Limits
from trouter_pipeline.jobs.audit import ALERTS
from trouter_pipeline.tables import Table

pytestmark = [pytest.mark.slow, pytest.mark.pipeline_long]

WAVES = 2


@contextmanager
def following(root: Path, live: Path, *more: str) -> Iterator[subprocess.Popen[str]]:
    """Run the command in a process group of its own, with Python and the JVM."""
    command = [
        sys.executable, "-c", "from trouter.cli import main; raise SystemExit(main())", "pipeline", "audit", str(root),
        "--follow", str(live), "--checkpoint", str(root / "checkpoint"), "--late-by", "60", "--json", "--quiet",
        "--master", "local[2]", "--conf", "spark.sql.shuffle.partitions=2", "--conf", "spark.ui.enabled=false", *more,
    ]  # fmt: skip
    with (root / "errors").open("wb") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def test_a_stream_that_is_killed_again_and_again_records_everything_once(tmp_path: Path) -> None:
    planted, _ = attacks(5)
    source, live, root = tmp_path / "source", tmp_path / "live", tmp_path / "root"
    live.mkdir()
    root.mkdir()
    as_of = planted[-1].t + 2 * DAY
    records = written(source, "QDR.A", planted, 100, compress=False)
    paths = segments(source)
    for wave in range(WAVES):
        for path in paths[wave * len(paths) // WAVES : (wave + 1) * len(paths) // WAVES]:
            again(path, live)
        with following(root, live, "--every", "0") as process:
            assert process.stdout is not None
            # an alert was written, and the stream goes on
            assert process.stdout.readline(), (root / "errors").read_text()
            os.killpg(process.pid, signal.SIGKILL)
    written(live, "QDR.A", [denial(as_of + 61_000_000, "x", "y")], 1, compress=False)
    with following(root, live) as process:
        process.communicate()
        assert process.returncode == 0, (root / "errors").read_text()
    rows = Table(root, ALERTS).rows().to_pylist()
    assert len(rows) == len({row["alert_id"] for row in rows})
    assert found_in(rows) == expected_alerts(records, Limits(), as_of)
