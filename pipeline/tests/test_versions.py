"""Commands that read tables take a moment, and `vacuum` says what it deletes."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pipeline.tests.stored import TODAY, metered, store
from trouter.cli import main
from trouter_pipeline.tables import Table

pytestmark = pytest.mark.one_twin


def log(root: Path, number: int) -> Path:
    return root / "tables" / "meter" / "_delta_log" / f"{number:020}.json"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a folder whose meter changed an hour ago."""
    store(tmp_path, "meter", metered("acme"))
    long_ago = datetime.now(UTC) - timedelta(hours=1)
    for number in (0, 1):
        os.utime(log(tmp_path, number), (long_ago.timestamp(), long_ago.timestamp()))
        told = log(tmp_path, number).read_text()
        stamps = [line for line in told.splitlines() if "commitInfo" in line]
        info = json.loads(stamps[0])
        info["commitInfo"]["timestamp"] = int(long_ago.timestamp() * 1000)
        log(tmp_path, number).write_text(told.replace(stamps[0], json.dumps(info)))
        os.utime(log(tmp_path, number), (long_ago.timestamp(), long_ago.timestamp()))
    store(tmp_path, "meter", metered("globex"))
    return tmp_path


def test_the_report_is_of_the_moment(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = root / "report.html"
    now, then = ((datetime.now(UTC) - timedelta(minutes=ago)).isoformat() for ago in (-1, 30))
    for moment, there, gone in ((now, "globex", "acme"), (then, "acme", "globex")):
        assert main(["pipeline", "report", str(root), "--out", str(out), "--as-of", moment]) == 0
        page = out.read_text()
        assert there in page
        assert gone not in page
        assert "The tables are those of" in page
    capsys.readouterr()
    assert main(["pipeline", "report", str(root), "--out", str(out), "--as-of", "2020-01-01"]) == 0
    assert "there was no version yet at 2020-01-01T00:00:00+00:00" in out.read_text()
    with pytest.raises(SystemExit):
        main(["pipeline", "report", str(root), "--as-of", "someday"])
    assert "'someday' is no moment" in capsys.readouterr().err


def test_decisions_are_of_the_moment(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    today = datetime.now(UTC)
    rows = [{**row, "hour": today.replace(minute=0, second=0, microsecond=0)} for row in metered("acme", hours=1)]
    store(root, "meter", rows, today.date())
    words = ["pipeline", "publish", str(root), "--quota", "acme=10/day:5", "--dry-run"]
    assert main(words) == 0
    assert '"acme"' in capsys.readouterr().out
    assert main([*words, "--as-of", (today - timedelta(minutes=30)).isoformat()]) == 0
    assert capsys.readouterr().out == ""


def test_the_vacuum_shows_the_files_and_then_deletes_them(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (replaced,) = Table(root, "meter", 1).files()
    words = ["pipeline", "vacuum", str(root), "--keep", "0"]
    assert main(["pipeline", "vacuum", str(root)]) == 0
    assert capsys.readouterr().out == "There is nothing to delete in 1 tables.\n"
    assert main(words) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"tables/meter/{replaced.path}",
        "Nothing was changed: --yes deletes these 1 files.",
    ]
    assert (root / "tables" / "meter" / replaced.path).exists()
    assert main([*words, "--yes", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"done": True, "files": {"tables/meter": [replaced.path]}}
    assert not (root / "tables" / "meter" / replaced.path).exists()
    assert Table(root, "meter").rows([TODAY]).num_rows == 24
    with pytest.raises(SystemExit):
        main(["pipeline", "vacuum", str(root), "--keep", "-1"])
