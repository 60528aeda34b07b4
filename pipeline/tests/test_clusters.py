"""The same jobs where Spark is more than one process: a cluster in one process tree, and a master with a worker."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pipeline.tests.generate import Ledger, Scribe, traffic
from tests.house.sources import ROOT
from trouter.cli import main
from trouter_pipeline.datasets import Records
from trouter_pipeline.needs import missing, spark_home

pytestmark = [pytest.mark.slow, pytest.mark.pipeline_long]
#: Seconds that only a hang takes.
DEADLINE_S = 600


@pytest.fixture(scope="module", autouse=True)
def _needs() -> None:
    if needs := missing():
        pytest.skip("; ".join(need.what for need in needs))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write compacted records of some links."""
    folder = tmp_path_factory.mktemp("cluster")
    scribe = Scribe(folder / "segments")
    scribe.write_all(traffic(Ledger("QDR.A", scribe.boot), seed=7))
    scribe.stop()
    assert main(["pipeline", "compact", str(folder / "segments"), str(folder / "root"), "--jobs", "1"]) == 0
    return folder / "root"


def run(*command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        list(map(str, command)),
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_S,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'plugins'}", **environment},
        cwd=ROOT.parent,
    )


def metered(root: Path) -> int:
    """Return the count of messages in the table."""
    import pyarrow.compute as pc

    from trouter_pipeline.report.stored import Period, read

    return int(pc.sum(read(root, "meter", Period())["msgs"]).as_py())


TROUTER = (sys.executable, "-m", "trouter", "pipeline")


def test_a_cluster_of_two_workers(root: Path, tmp_path: Path) -> None:
    on = ("--master", "local-cluster[2,1,1024]")
    done = run(*TROUTER, "doctor", *on, SPARK_HOME=str(spark_home()))
    assert "its workers have what they need" in done.stdout, done.stderr
    done = run(*TROUTER, "meter", root, *on, "--again", "--json", SPARK_HOME=str(spark_home()))
    assert done.returncode == 0, done.stderr
    assert sum(json.loads(line)["msgs"] for line in done.stdout.splitlines()) == metered(root) > 0


def test_compaction_on_two_workers(root: Path, tmp_path: Path) -> None:
    on = ("--master", "local-cluster[2,1,1024]", "--json")
    done = run(*TROUTER, "compact", root.parent / "segments", tmp_path / "root", *on, SPARK_HOME=str(spark_home()))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["records"] == sum(each.count for each in Records(root).segments.values())
    assert Records(tmp_path / "root").segments == Records(root).segments


@contextmanager
def daemon(folder: Path, ready: str, *command: str | Path) -> Iterator[re.Match[str]]:
    """Run a process of Spark; yield the match of its log line when it is ready."""
    with subprocess.Popen(
        [str(spark_home() / "bin" / "spark-class"), *map(str, command)],  # type: ignore[operator]
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=folder,
        env={**os.environ, "SPARK_LOG_DIR": str(folder), "SPARK_LOCAL_IP": "127.0.0.1"},
    ) as process:  # fmt: skip
        try:
            assert process.stderr is not None
            lines = []
            for line in process.stderr:
                lines.append(line)
                if found := re.search(ready, line):
                    yield found
                    return
            raise AssertionError("".join(lines))
        finally:
            process.kill()


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """Run a standalone master and one worker on this machine; yield the URL."""
    here = ("--host", "127.0.0.1", "--webui-port", "0")
    with (
        daemon(tmp_path, r"Starting Spark master at (spark://\S+)",
               "org.apache.spark.deploy.master.Master", *here, "--port", "0") as found,
        daemon(tmp_path, "Successfully registered with master", "org.apache.spark.deploy.worker.Worker",
               *here, "--cores", "1", "--memory", "1g", "-d", tmp_path / "work", found[1]),
    ):  # fmt: skip
        yield found[1]


def test_spark_submit_to_a_standalone_cluster(root: Path, master: str) -> None:
    file = run(*TROUTER, "doctor", "--submit").stdout.strip()
    submit = spark_home() / "bin" / "spark-submit"  # type: ignore[operator]
    done = run(submit, "--master", master, file, "meter", root, "--again", PYSPARK_PYTHON=sys.executable)
    assert done.returncode == 0, done.stderr
    assert "Tenants" in done.stdout
    bare = ("/usr/bin/env", "-u", "PYTHONPATH", submit, "--master", master, file, "doctor")
    without = run(*bare, PYSPARK_PYTHON="/usr/bin/python3")
    # spark-submit prints the program's errors on stdout with its results
    assert "set PYSPARK_PYTHON to a Python that has trouter[spark]" in without.stdout
    assert without.returncode != 0
