"""The commands of docs/pipeline.md for a standalone cluster, typed as printed: a master and a worker of this machine.

The worker's Python has neither trouter nor its needs. YARN, Kubernetes and several machines are not tried.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from pipeline.tests.generate import Ledger, Scribe, traffic
from pipeline.tests.landed import read_with_duckdb
from pipeline.tests.standalone import bare_python
from pipeline.tests.test_land import fill, letter
from tests.house.sources import ROOT
from tests.ports import free_port
from tests.routers import RunningRouter, watched
from tests.walks import Shell
from trouter_pipeline.needs import missing

pytestmark = [pytest.mark.slow, pytest.mark.pipeline_long]
_PAGE = (ROOT / "docs" / "pipeline.md").read_text(encoding="utf-8")
_PART = _PAGE.partition("### What workers need\n")[2].partition("### YARN\n")[0]
#: Seconds that only a hang takes, also where Spark takes a minute to start.
SPARK_S = 600.0


def lines() -> list[str]:
    """Return the commands of the page."""
    blocks = re.findall(r"^```\n(.*?)^```", _PART, re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]


class ClusterShell(Shell):
    """A shell whose master and folders are those of the test; the workers' Python is one with Spark's needs only."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, ports=("7077",), brings=(), deadline_s=SPARK_S)
        self._python = bare_python(folder / "python")
        (folder / "shared").mkdir()
        self._daemons = ExitStack()
        self._environment |= {
            # as where the environment is active, from whose Python `spark-class` learns where Spark is
            "PATH": f"{folder / 'bin'}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "SPARK_MASTER_PORT": self.ports["7077"],
            "SPARK_MASTER_WEBUI_PORT": str(free_port()),
            "SPARK_WORKER_WEBUI_PORT": str(free_port()),
            "SPARK_WORKER_DIR": str(folder / "work"),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }

    def moved(self, text: str) -> str:
        """Return a command with the test's host, port, folders and Python, and with the page's settings for ``...``."""
        doctor = next(line for line in lines() if "doctor --master" in line)
        settings = " ".join(re.findall(r"--conf \S+", doctor))
        text = re.sub(r"--conf \.\.\.", settings, text)
        text = re.sub(r"(?<=//)host\b|(?<=--host )host\b", "127.0.0.1", text)
        text = re.sub(r"(?<=[ =])/shared\b", str(self.folder / "shared"), text)
        return super().moved(text.replace("/usr/bin/python3", str(self._python)))

    def begin(self, command: str, said: str) -> RunningRouter:
        """Start a process of Spark, without trouter on its path, and wait until it says so."""
        environment = {name: value for name, value in self._environment.items() if name != "PYTHONPATH"}
        started = self._daemons.enter_context(
            watched(shlex.split(self.moved(command)), self.folder, self.folder, environment)
        )
        started.wait_for_line(said)
        return started

    def end(self) -> None:
        """Kill the processes of Spark."""
        self._daemons.close()


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[ClusterShell]:
    if needs := missing():
        pytest.skip("; ".join(need.what for need in needs))
    made = ClusterShell(tmp_path)
    yield made
    made.end()


def test_the_commands_for_a_cluster_work_as_printed(shell: ClusterShell, tmp_path: Path) -> None:
    fill(tmp_path / "shared" / "spool", "orders", *(letter(f"m{number}") for number in range(50)))
    scribe = Scribe(tmp_path / "segments")
    scribe.write_all(traffic(Ledger("QDR.A", scribe.boot), seed=7))
    scribe.stop()
    pack, doctor, master, worker, land, submit = lines()
    shell.begin(master, "Starting Spark master at")
    shell.begin(worker, "Successfully registered with master")
    compact = "trouter pipeline compact segments shared/root --jobs 1"
    said = {}
    for command in (pack, doctor, land, compact, submit):
        status, said[command] = shell.type(command)
        assert status == 0, f"{command}: {said[command]}"
    assert "its workers have what they need" in said[doctor]
    assert read_with_duckdb(tmp_path / "shared" / "root", "landed", "count(*)") == [(50,)]
    assert "Tenants" in said[submit]
