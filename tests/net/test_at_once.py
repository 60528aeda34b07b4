"""Processes that take places and tokens from one memory at the same time, as fast as they can.

The test notices a worker that reads the numbers of the others before it has written its own. It does not notice that
`atomics.put_in_order` is missing, at least not on x86: there a store leaves the processor's buffer long before Python
comes to the load after it. `test_order.py` notices that.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.house.sources import ROOT
from tests.routers import needs_workers
from trouter.net.tallies import SharedMemory


@needs_workers
@pytest.mark.parametrize("workers", [2, 4])
def test_processes_have_no_more_places_than_the_limit_and_no_more_tokens_than_the_rate(workers: int) -> None:
    limit = workers - 1
    shared = SharedMemory(workers)
    takers = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.net.taker", *map(str, (shared.descriptor, place, workers, limit))],
            pass_fds=[shared.descriptor],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        for place in range(1, workers + 1)
    ]
    for taker in takers:
        assert taker.stdout is not None
        assert taker.stdout.readline() == "ready\n"
    reports = []
    for taker in takers:
        assert taker.stdin is not None
        taker.stdin.close()
    for taker in takers:
        assert taker.stdout is not None
        reports.append(json.loads(taker.stdout.read()))
        assert taker.wait() == 0
        taker.stdout.close()
    shared.close()
    if workers == 2:  # of more, one worker cannot see the numbers of all others at one moment
        assert max(report["most"] for report in reports) == limit
    assert all(report["places"] for report in reports)
    begun_s = min(report["times"][0] for report in reports)
    ended_s = max(report["times"][1] for report in reports)
    # each may take the same tokens once at the same moment, which is taken from what comes after
    assert limit <= sum(report["taken"] for report in reports) <= limit * (ended_s - begun_s) + workers * limit
