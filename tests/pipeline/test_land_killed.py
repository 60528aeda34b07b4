"""`trouter pipeline land` killed in mid-stream, again and again: every message is landed once all the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import duckdb
import pytest

from tests.house.sources import ROOT
from trouter.client import Message, Properties
from trouter.spool import Spool

MESSAGES = 10_000
KILLS = 3
#: Only a hang takes this long.
PATIENCE_S = 600.0
#: Between two looks at what is landed.
LOOK_S = 0.02


def fill(folder: Path) -> None:
    spool = Spool.open(folder, address="changes/east")
    for number in range(MESSAGES):
        message = Message(b"%d" % number, properties=Properties(message_id=f"m{number}"))
        spool.append(message.encode() if number % 1000 else b"no message", ingest_us=1_769_904_000_000_000 + number)
    spool.sync()
    spool.close()


def start(spool: Path, root: Path) -> subprocess.Popen[bytes]:
    """Land in small batches, with the JVM in the same group of processes."""
    words = ["pipeline", "land", "--spool", str(spool), "--out", str(root), "--max-rows", "1000", "--quiet"]
    with log_of(root).open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "trouter", *words, "--master", "local[2]", "--conf", "spark.driver.memory=1g"],
            cwd=ROOT,
            start_new_session=True,
            stderr=log,
        )


def log_of(root: Path) -> Path:
    """What the last one said."""
    return root.with_suffix(".log")


def batches(root: Path) -> set[str]:
    """What is landed, or about to be: also folders of runs that have not finished."""
    return {path.name for path in (root / "tables" / "landed").glob("data/batch=*")}


def overloaded(root: Path) -> bool:
    """Spark gives its Python ten seconds to start, which a busy machine does not: begun anew, it has to go on."""
    return "Python worker failed to connect back" in log_of(root).read_text()


def kill_after_another_batch(spool: Path, root: Path) -> None:
    """As soon as one more batch is there: the next is being written then."""
    before = batches(root)
    process = start(spool, root)
    while not batches(root) - before:
        with suppress(subprocess.TimeoutExpired):
            process.wait(LOOK_S)
            assert overloaded(root), log_of(root).read_text()[-2000:]
            process = start(spool, root)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(PATIENCE_S)


@pytest.mark.slow
@pytest.mark.pipeline_long
def test_killed_again_and_again_every_message_lands_once(tmp_path: Path) -> None:
    spool, root = tmp_path / "spool", tmp_path / "root"
    fill(spool)
    for _ in range(KILLS):
        kill_after_another_batch(spool, root)
    assert 0 < len(batches(root)) < MESSAGES // 1000
    while start(spool, root).wait(PATIENCE_S):
        assert overloaded(root), log_of(root).read_text()[-2000:]
    for name, wanted in (("landed", MESSAGES - MESSAGES // 1000), ("landed_dead", MESSAGES // 1000)):
        files = str(root / "tables" / name / "data" / "*" / "*" / "*" / "*.parquet")
        found = duckdb.execute("select count(*), count(distinct seq) from read_parquet(?)", [files]).fetchone()
        assert found == (wanted, wanted)
