"""A campaign of fuzz targets: it adds up its runs, resumes where it was stopped, and starts again after a finding."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from trouter.testing.fuzz.campaign import Total, read_totals, table
from trouter.testing.fuzz.command import main

pytestmark = pytest.mark.slow

PASSES = "def check(data):\n    pass\n"
FAILS = "def check(data):\n    if data == b'bad':\n        raise IndexError\n"
HANGS = "def check(data):\n    while True:\n        pass\n"
MEETS = """
import os, time
from pathlib import Path

def check(data):
    there = Path(__file__).parent / "met"
    there.mkdir(exist_ok=True)
    (there / str(os.getpid())).touch()
    end_s = time.monotonic() + 60
    while len(list(there.iterdir())) < 2:
        assert time.monotonic() < end_s, "no other process tries inputs of this target"
        time.sleep(0.01)
"""
DIES = "import os\n\ndef check(data):\n    os._exit(7)\n"
SECONDS = 0.02


def campaign(totals: Path, *targets: Path, seconds: float = SECONDS) -> int:
    options = ["--totals", str(totals), "--jobs", "2", "--seconds", str(seconds)]
    return main([*map(str, targets), *options])


def target(folder: Path, name: str, text: str, seed: bytes = b"seed") -> Path:
    path = folder / f"{name}.py"
    path.write_text(text)
    (folder / "seeds" / name).mkdir(parents=True, exist_ok=True)
    (folder / "seeds" / name / "one").write_bytes(seed)
    return path


def test_runs_add_up_and_a_finding_begins_its_target_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    totals = tmp_path / "build" / "totals.json"
    good, bad, dying = (
        target(tmp_path, name, text, b"bad") for name, text in (("good", PASSES), ("bad", FAILS), ("dying", DIES))
    )
    assert campaign(totals, good, bad, dying) == 1
    first = read_totals(totals)
    (crash,) = (tmp_path / "seeds" / "bad").glob("crash-*")
    assert first["bad"] == Total(findings=[crash.name])
    assert first["dying"].findings[0].startswith("7 with --rng-seed ")
    assert (first["good"].seconds >= SECONDS, first["good"].findings) == (True, [])

    target(tmp_path, "bad", PASSES, b"bad")
    assert campaign(totals, good, bad) == 0
    second = read_totals(totals)
    assert (second["good"], second["dying"]) == (first["good"], first["dying"])
    assert (second["bad"].seconds >= SECONDS, second["bad"].findings) == (True, [crash.name])

    assert campaign(totals, good, seconds=first["good"].seconds + SECONDS) == 0
    assert read_totals(totals)["good"].executions > first["good"].executions
    assert table(read_totals(totals)) in capsys.readouterr().out


def test_a_target_that_hangs_is_stopped_by_its_own_processor_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trouter.testing.fuzz.campaign.GRACE_S", 0.5)
    totals = tmp_path / "totals.json"
    assert campaign(totals, target(tmp_path, "hangs", HANGS)) == 1
    assert read_totals(totals)["hangs"].findings[0].startswith(f"-{signal.SIGKILL:d} with --rng-seed ")


def test_two_processes_hunt_with_one_target(tmp_path: Path) -> None:
    totals = tmp_path / "totals.json"
    assert campaign(totals, target(tmp_path, "meets", MEETS)) == 0
    assert read_totals(totals)["meets"].seconds >= SECONDS
