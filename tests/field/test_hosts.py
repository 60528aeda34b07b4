"""The hosts of these tests have addresses of their own, reach each other, and go with the tests."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

from tests.field.hosts import Host, hosts, needs_hosts
from tests.routers import DEADLINE_S, ROOT
from tests.waiting import until

pytestmark = needs_hosts()

_LINK = "import os; print(os.readlink('/proc/self/ns/net'))"


def _peer_seen(server: Host, client: Host) -> str:
    with server.inside(), socket.create_server((server.address, 0)) as listening:
        port = listening.getsockname()[1]
        with client.inside(), socket.create_connection((server.address, port), DEADLINE_S):
            accepted, peer = listening.accept()
            accepted.close()
    return str(peer[0])


def test_each_host_reaches_the_others_from_its_own_address() -> None:
    with hosts(3) as made:
        for server in made:
            for client in made:
                if client is not server:
                    assert _peer_seen(server, client) == client.address


def test_a_command_runs_on_the_host_that_is_told_to() -> None:
    with hosts(2) as (first, second):
        links = [host.run([sys.executable, "-c", _LINK], DEADLINE_S).stdout for host in (first, second)]
        assert len({*links, f"{Path('/proc/self/ns/net').readlink()}\n"}) == 3


_TEST = f"""
import os, signal, sys
sys.path.insert(0, {str(ROOT)!r})
from tests.field.hosts import hosts
with hosts(2) as (first, second):
    print(second.start(["sleep", "infinity"]).pid, flush=True)
    signal.pause()
"""


def test_a_kill_of_the_tests_ends_what_they_started() -> None:
    with subprocess.Popen([sys.executable, "-c", _TEST], stdout=subprocess.PIPE, text=True) as tests:
        assert tests.stdout is not None
        started = Path(f"/proc/{int(tests.stdout.readline())}")
        until(lambda: (started / "comm").read_text() == "sleep\n", "the command, tied to its parent")
        tests.send_signal(signal.SIGKILL)
    until(lambda: not started.exists() or "State:\tZ" in (started / "status").read_text(), "the end of the command")
