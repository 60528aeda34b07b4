"""Two sites into one topic, the forwarder killed again and again: each partition has each change once, in order."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from pipeline.tests.kafkas import Broker, mock_cluster, records_in, tansu
from tests.house.sources import ROOT
from trouter.client import Message, Properties
from trouter_pipeline.spool import Spool
from trouter_pipeline.spool.cursors import add_cursor, lags_of

#: Seconds that only a hang takes.
PATIENCE_S = 600.0
SITES = ("east", "west")
#: The cursor of a second consumer.
CURSOR = "kafka"


def fill(folder: Path, site: str, count: int) -> None:
    with Spool.open(folder, address=f"changes/{site}") as spool:
        for number in range(count):
            body = json.dumps({"id": number % 100, "change": number, "site": site}).encode()
            message = Message(body, properties=Properties(message_id=f"{site}-{number}"))
            spool.append(message.encode(), ingest_us=1_769_904_000_000_000 + number)
        spool.sync()
    add_cursor(folder, CURSOR)


def start(root: Path, broker: Broker, how: Sequence[str]) -> subprocess.Popen[bytes]:
    words = ["pipeline", "forward", "--kafka", broker.bootstrap, "--topic", "changes", "--key", "id", *how]
    words += ["--timeout", str(PATIENCE_S)]
    for site in SITES:
        words += ["--spool", str(root / site)]
    with (root / "log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "trouter", *words], cwd=ROOT, start_new_session=True, stdout=log, stderr=log
        )


def said(root: Path) -> str:
    return (root / "log").read_text()


def sent(broker: Broker) -> int:
    return sum(map(len, records_in(broker.bootstrap, "changes").values()))


def kill_once_it_sends(root: Path, broker: Broker, how: Sequence[str], chance: random.Random, most: int) -> None:
    """Start the forwarder, and kill it with all its processes after at most so many more records are in the topic."""
    more = sent(broker) + chance.randrange(1, most)
    process = start(root, broker, how)
    while sent(broker) < more:
        with suppress(subprocess.TimeoutExpired):
            assert overloaded(root) or process.wait(0.01) == 0, said(root)
            if overloaded(root):
                process = start(root, broker, how)
                continue
            return  # all was sent before
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(PATIENCE_S)


def overloaded(root: Path) -> bool:
    """Return whether Spark's Python missed its ten seconds for the start on a busy machine; a restart must continue."""
    return "Python worker failed to connect back" in said(root)


def check(broker: Broker, count: int) -> None:
    found = records_in(broker.bootstrap, "changes")
    sites = set()
    for records in filter(None, found.values()):
        changes = [json.loads(record.value or b"") for record in records]
        assert [change["change"] for change in changes] == list(range(count))
        assert len({change["site"] for change in changes}) == 1
        sites.add(changes[0]["site"])
    assert sites == set(SITES)


@pytest.fixture(params=["mock", "tansu"])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Broker]:
    with mock_cluster() if request.param == "mock" else tansu(tmp_path) as bootstrap:
        broker = Broker(bootstrap, makes_topics=request.param == "mock")
        broker.create("changes")
        yield broker


def walk(root: Path, broker: Broker, how: Sequence[str], count: int, kills: int) -> None:
    for site in SITES:
        fill(root / site, site, count)
    chance = random.Random(kills)
    for _ in range(kills):
        kill_once_it_sends(root, broker, how, chance, count // (kills + 1))
    while start(root, broker, how).wait(PATIENCE_S):
        assert overloaded(root), said(root)
    check(broker, count)
    for site in SITES:
        left = {lag.cursor: lag.messages for lag in lags_of(root / site)}
        assert left == {"default": count, CURSOR: 0} if CURSOR in how else {"default": 0, CURSOR: count}
    assert start(root, broker, [*how, "--json"]).wait(PATIENCE_S) == 0 or overloaded(root)
    check(broker, count)


@pytest.mark.slow
@pytest.mark.parametrize("more", [["--transactions", "off"], ["--cursor", CURSOR]], ids=["no transactions", "cursor"])
def test_each_change_is_in_its_partition_once_and_in_order(tmp_path: Path, broker: Broker, more: list[str]) -> None:
    how = ["--engine", "local", "--quiet", "--max-rows", "500", *more]
    walk(tmp_path, broker, how, count=5_000, kills=3)


@pytest.mark.pipeline_long
def test_on_spark_each_change_is_in_its_partition_once_and_in_order(tmp_path: Path, broker: Broker) -> None:
    how = ["--checkpoint", str(tmp_path / "checkpoint"), "--master", "local[2]", "--quiet", "--max-rows", "1000"]
    walk(tmp_path, broker, how, count=5_000, kills=2)


@pytest.mark.slow
@pytest.mark.pipeline_long
def test_the_ledger_of_two_sites(tmp_path: Path, broker: Broker) -> None:
    # the mock cluster keeps 5 MB of a partition
    how = ["--engine", "local", "--quiet", "--max-rows", "2000", "--property", "compression.type=gzip"]
    walk(tmp_path, broker, how, count=50_000, kills=5)
