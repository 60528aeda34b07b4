"""The records of a router with two workers, in one folder: the pipeline reads them as those of one router."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path

import msgspec
import pytest
import trio

from tests.routers import RunningRouter, process, stopped_cleanly
from tests.workers.clients import connected
from trouter.cli import main
from trouter.client import ACCEPTED, Message
from trouter.records.check import check_folder
from trouter.records.segments import segments_in
from trouter_pipeline.compact import compact
from trouter_pipeline.jobs import meter
from trouter_pipeline.metering.engines import InProcess
from trouter_pipeline.tables import Table

pytestmark = pytest.mark.one_twin

SENT = 50
ROUTER = """
router {
    id: A
    workers: 2
    drainTimeoutSeconds: 5
}
listener {
    host: 127.0.0.1
    port: 0
    saslMechanisms: ANONYMOUS
}
"""
WORKERS = "A", "A.2"


def configuration(folder: Path) -> str:
    return f"{ROUTER}recordLog {{\n    dir: {folder}\n    maxBytes: 10000001\n}}\n"


async def send_between(port: int, sender_at: str, receiver_at: str) -> None:
    """Send messages from a client of one worker to a client of one, and have them accepted."""
    address = f"jobs/{sender_at}/{receiver_at}"  # a worker may not know yet that a receiver of the other one is gone
    async with (
        connected(port, receiver_at) as far,
        connected(port, sender_at) as near,
        far.open_receiver(address, credit=SENT) as receiver,
        near.open_sender(address) as sender,
    ):
        trackers = [await sender.submit(Message(body="x" * 100)) for _ in range(SENT)]
        for _ in range(SENT):
            await (await receiver.receive()).accept()
        assert {await each.outcome() for each in trackers} == {ACCEPTED}


async def send_all_ways(port: int) -> None:
    for near in WORKERS:
        for far in WORKERS:
            await send_between(port, near, far)


def counted(root: Path, folder: Path) -> Counter[str]:
    """Return the messages and the accepted ones by direction, as the pipeline counts those of a folder."""
    done = compact([folder], root)
    assert not done.errors
    assert not done.gaps
    meter.run(InProcess(), root)
    total: Counter[str] = Counter()
    for row in Table(root, meter.METER).rows().to_pylist():
        assert row["complete"]
        total[f"{row['dir']} msgs"] += row["msgs"]
        total[f"{row['dir']} accepted"] += row["accepted"]
    return total


def wait_for_both(router: RunningRouter) -> None:
    router.wait_for_line(r"MAIN \(notice\) 2 workers serve")
    router.wait_for_line(r"\[W1\] router A.2 is a neighbour")


def test_the_meter_counts_every_message_of_two_workers_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "records"
    with process(configuration(folder), tmp_path) as router:
        wait_for_both(router)
        with stopped_cleanly(router):
            trio.run(send_all_ways, router.port)
    sent = 4 * SENT
    assert counted(tmp_path / "root", folder) == {
        f"{way} {what}": sent for way in ("in", "out") for what in ("msgs", "accepted")
    }
    assert {place.router for place in segments_in(folder)} == {"A", "A%2E2"}
    assert check_folder(folder).errors == []
    capsys.readouterr()
    assert main(["records", "cat", str(folder), "--json"]) == 0
    lines = [msgspec.json.decode(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["t"] for each in lines] == sorted(each["t"] for each in lines)
    assert "another worker" not in repr(lines)
    opened = [each["conn"] for each in lines if each["k"] == "connection.opened"]
    assert len(opened) == len(set(opened)) >= 8  # two clients, four ways


def test_a_worker_that_is_replaced_completes_the_records_of_the_one_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "records"
    with process(configuration(folder), tmp_path) as router:
        wait_for_both(router)
        with stopped_cleanly(router):
            trio.run(send_between, router.port, "A", "A.2")
            pattern = r"\[W2\] Operational, 1 Threads Running \(process ID (\d+)\)"
            os.kill(int(router.wait_for_line(pattern)[1]), signal.SIGKILL)
            router.wait_for_line(pattern, 2)
            trio.run(send_between, router.port, "A.2", "A")
            capsys.readouterr()
            assert main(["manage", "-b", f"127.0.0.1:{router.port}", "query", "--type", "recordLog"]) == 0
            (log,) = msgspec.json.decode(capsys.readouterr().out)
            assert (log["maxBytes"], log["recordsLost"]) == (10000001, 0)  # the shares and the counts of both
    boots = Counter(
        place.router for place in {each._replace(first=0, rest="", path=folder) for each in segments_in(folder)}
    )
    assert boots == {"A": 1, "A%2E2": 2}
    assert check_folder(folder).errors == []
