"""`trouter pipeline land` killed repeatedly in mid-stream: every message is landed once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from pipeline.tests.landed import read_with_duckdb
from tests.house.sources import ROOT
from trouter.client import Message, Properties
from trouter_pipeline.spool import Spool

MESSAGES = 10_000
KILLS = 3
#: Seconds that only a hang takes.
PATIENCE_S = 600.0
#: Seconds between two looks at the landed batches.
LOOK_S = 0.02


def fill(folder: Path) -> None:
    spool = Spool.open(folder, address="changes/east")
    for number in range(MESSAGES):
        message = Message(b"%d" % number, properties=Properties(message_id=f"m{number}"))
        spool.append(message.encode() if number % 1000 else b"no message", ingest_us=1_769_904_000_000_000 + number)
    spool.sync()
    spool.close()


def start(spool: Path, root: Path, how: Sequence[str]) -> subprocess.Popen[bytes]:
    """Land in small batches, with the JVM in the same process group."""
    words = ["pipeline", "land", "--spool", str(spool), "--out", str(root), "--max-rows", "1000", "--quiet", *how]
    with log_of(root).open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "trouter", *words, "--master", "local[2]", "--conf", "spark.driver.memory=1g"],
            cwd=ROOT,
            start_new_session=True,
            stderr=log,
        )


def log_of(root: Path) -> Path:
    """Return the log of the last process."""
    return root.with_suffix(".log")


def batches(root: Path) -> set[str]:
    """Return the landed batches: the versions of the table after its creation."""
    log = root / "tables" / "landed" / "_delta_log"
    return {path.name for path in log.glob("*.json") if int(path.stem)}


def overloaded(root: Path) -> bool:
    """Return whether Spark's Python missed its ten seconds for the start on a busy machine; a restart must continue."""
    return "Python worker failed to connect back" in log_of(root).read_text()


def kill_after_another_batch(spool: Path, root: Path, how: Sequence[str]) -> None:
    """Wait for one more batch, and kill the process while it writes the next."""
    before = batches(root)
    process = start(spool, root, how)
    while not batches(root) - before:
        with suppress(subprocess.TimeoutExpired):
            process.wait(LOOK_S)
            assert overloaded(root), log_of(root).read_text()[-2000:]
            process = start(spool, root, how)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(PATIENCE_S)


@pytest.mark.slow
@pytest.mark.pipeline_long
@pytest.mark.parametrize("how", [[], ["--merge", "message_id", "--buckets", "3"]], ids=["landed", "merged"])
def test_killed_again_and_again_every_message_lands_once(tmp_path: Path, how: list[str]) -> None:
    spool, root = tmp_path / "spool", tmp_path / "root"
    fill(spool)
    for _ in range(KILLS):
        kill_after_another_batch(spool, root, how)
    assert 0 < len(batches(root)) < MESSAGES // 1000
    while start(spool, root, how).wait(PATIENCE_S):
        assert overloaded(root), log_of(root).read_text()[-2000:]
    for name, wanted in (("landed", MESSAGES - MESSAGES // 1000), ("landed_dead", MESSAGES // 1000)):
        (found,) = read_with_duckdb(root, name, "count(*), count(distinct seq)")
        assert found == (wanted, wanted)


def java_of(process: subprocess.Popen[bytes]) -> int:
    """Return the Java process that a process has started."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            name, _, rest = path.read_text().rpartition(")")
            if name.endswith("(java") and os.getsid(int(path.parent.name)) == process.pid and rest.split()[0] != "Z":
                return int(path.parent.name)
    raise AssertionError("there is no Java process")


@pytest.mark.pipeline_long
def test_a_killed_java_is_named_with_the_cure(tmp_path: Path) -> None:
    spool, root = tmp_path / "spool", tmp_path / "root"
    fill(spool)
    process = start(spool, root, ["--every", "1"])
    while not batches(root):
        with suppress(subprocess.TimeoutExpired):
            process.wait(LOOK_S)
            assert overloaded(root), log_of(root).read_text()[-2000:]
            process = start(spool, root, ["--every", "1"])
    os.kill(java_of(process), signal.SIGKILL)
    assert process.wait(PATIENCE_S) == 1
    log = log_of(root).read_text()
    assert "trouter pipeline land: the Java process of Spark has ended" in log
    assert "fault of this program" not in log
