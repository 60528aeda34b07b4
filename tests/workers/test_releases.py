"""A parent and a worker of different releases: the package was upgraded while the router ran."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from dataclasses import asdict

import trouter
from trouter.net.tallies import SharedMemory
from trouter.workers.line import Line
from trouter.workers.worker import WorkerTerms


def test_a_worker_of_another_release_than_the_parent_says_so_and_does_not_start() -> None:
    line, theirs = Line.pair()
    with closing(line), closing(SharedMemory(2)) as shared:
        with theirs:
            worker = subprocess.Popen(
                [sys.executable, "-m", "trouter.cli.worker", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stderr=subprocess.PIPE,
                text=True,
            )
        terms = asdict(WorkerTerms(place=2, count=2, router_id="A", path=None))
        line.send({**terms, "release": "0.0.1", "of_that_release": True}, [shared.descriptor])
        _, errors = worker.communicate(timeout=60)
    assert errors == (
        f"worker 2 cannot start: trouter {trouter.__version__} is installed, and the router that runs is trouter 0.0.1"
        ": restart the router\n"
    )
    assert worker.returncode == 1
