"""A parent and a worker of different releases: the package was upgraded while the router ran."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from contextlib import closing
from dataclasses import asdict

import pytest

import trouter
from trouter.net.tallies import SharedMemory
from trouter.workers.calls import socket_pair
from trouter.workers.worker import WorkerTerms


@pytest.mark.parametrize("form", ["as today", "another"])
def test_a_worker_of_another_release_than_the_parent_says_so_and_does_not_start(form: str) -> None:
    terms = {**asdict(WorkerTerms(place=2, count=2, router_id="A", path=None)), "release": "0.0.1", "of_another": True}
    message = json.dumps({"note": "start", "facts": terms} if form == "as today" else terms).encode()
    ours, theirs = socket_pair()
    with ours, closing(SharedMemory(2)) as shared:
        with theirs:
            worker = subprocess.Popen(
                [sys.executable, "-m", "trouter.cli.worker", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stderr=subprocess.PIPE,
                text=True,
            )
        socket.send_fds(ours, [message], [shared.descriptor])
        _, errors = worker.communicate(timeout=60)
    number, release = ("2", "0.0.1") if form == "as today" else ("", "of an older release")
    assert errors == (
        f"worker {number} cannot start: trouter {trouter.__version__} is installed, and the router that runs is "
        f"trouter {release}: restart the router\n"
    )
    assert worker.returncode == 1
