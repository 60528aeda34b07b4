"""A standalone cluster whose workers are processes without trouter: shards in parallel, and workers that are killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from pipeline.tests.landed import read_with_duckdb
from pipeline.tests.standalone import Cluster, standalone
from tests.house.sources import ROOT
from trouter.client import Message, Properties
from trouter_pipeline.needs import missing
from trouter_pipeline.spool import Spool

pytestmark = pytest.mark.slow
SHARDS = 2
#: Seconds that only a hang takes.
PATIENCE_S = 600.0
#: Seconds between two looks at the landed batches.
LOOK_S = 0.05


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    if needs := missing():
        pytest.skip("; ".join(need.what for need in needs))
    with standalone(tmp_path / "cluster") as running:
        yield running


def fill(folder: Path, messages: int) -> None:
    """Make a spool of several shards, each with as many messages."""
    for shard in range(SHARDS):
        spool = Spool.open(folder / f"shard-{shard:03}", address="changes/east", shard=shard)
        for number in range(messages):
            message = Message(b"%d" % number, properties=Properties(message_id=f"m{shard}-{number}"))
            spool.append(message.encode(), ingest_us=1_769_904_000_000_000 + number)
        spool.sync()
        spool.close()


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def test_shards_are_read_in_parallel_by_workers_that_get_trouter_with_the_job(cluster: Cluster, tmp_path: Path) -> None:
    fill(tmp_path / "spool", messages=2000)
    settings = json.dumps(cluster.settings())
    command = [sys.executable, "-m", "pipeline.tests.reading", cluster.url, settings, str(tmp_path / "spool")]
    done = subprocess.run(
        command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert sum(each["count"] for each in found) == SHARDS * 2000
    assert {each["shard"] for each in found} == set(range(SHARDS))
    assert len({each["folder"] for each in found}) == 2, "one worker has read all"
    assert all(each["module"].startswith(f"{each['folder']}/trouter-worker/") for each in found)


class Land:
    """`trouter pipeline land` on a cluster, and the batches that it has landed."""

    def __init__(self, cluster: Cluster, spool: Path, root: Path) -> None:
        self._root = root
        self._log = root.with_suffix(".log")
        words = ["land", "--spool", str(spool), "--out", str(root), "--max-rows", "500", "--quiet"]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "trouter", "pipeline", *words, *cluster.options()],
                cwd=ROOT, env=environment(), stderr=log,
            )  # fmt: skip

    def batches(self) -> int:
        """Return the number of landed batches: the versions of the table after its creation."""
        log = self._root / "tables" / "landed" / "_delta_log"
        return sum(1 for path in log.glob("*.json") if int(path.stem))

    def go_on(self, batches: int = 3) -> None:
        """Wait for more batches."""
        before = self.batches()
        while self.batches() < before + batches:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(LOOK_S)
                raise AssertionError(f"it ended: {self._log.read_text()[-2000:]}")

    def finish(self) -> None:
        assert self._process.wait(PATIENCE_S) == 0, self._log.read_text()[-2000:]

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.mark.pipeline_long
def test_workers_and_the_master_are_killed_and_every_message_lands_once(cluster: Cluster, tmp_path: Path) -> None:
    fill(tmp_path / "spool", messages=8000)
    land = Land(cluster, tmp_path / "spool", tmp_path / "root")
    first, second = cluster.workers
    then: list[Callable[[], object]] = [
        first.kill,
        cluster.master.kill,
        cluster.start_master,
        cluster.start_worker,
        second.kill,
    ]
    try:
        for step in then:
            land.go_on()
            step()
        land.go_on()
        land.finish()
    finally:
        land.kill()
    (found,) = read_with_duckdb(tmp_path / "root", "landed", "count(*), count(distinct message_id)")
    assert found == (SHARDS * 8000, SHARDS * 8000)
