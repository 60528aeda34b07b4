"""The jobs where Spark is more than one process: a cluster in one process tree, and a standalone one."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.tests.generate import Ledger, Scribe, traffic
from pipeline.tests.standalone import Cluster, standalone
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


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with standalone(tmp_path_factory.mktemp("standalone")) as running:
        yield running


def test_the_doctor_names_what_workers_lack_each_with_its_cure(cluster: Cluster, tmp_path: Path) -> None:
    done = run(*TROUTER, "doctor", *cluster.options(shipping=False))
    assert done.returncode == 1, done.stderr
    assert re.search(r"^here: Python .*, Java \d.*, Spark .*, pyarrow .*, trouter .*", done.stdout, re.MULTILINE)
    assert re.search(r"^worker .*: Python .*, Java \d.*, Spark .*, pyarrow .*, no trouter", done.stdout, re.MULTILINE)
    assert "trouter_pipeline cannot be imported at the worker" in done.stderr
    assert "ship it (`trouter pipeline pack FILE` says how)" in done.stderr
    done = run(*TROUTER, "doctor", *cluster.options(), "--path", tmp_path, "--path", tmp_path / "none")
    assert done.returncode == 1
    assert f"{tmp_path / 'none'} cannot be written here: No such file or directory" in done.stderr
    assert "at the worker" not in done.stderr
    done = run(*TROUTER, "doctor", *cluster.options(), "--path", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "its workers have what they need" in done.stdout
    assert not list(tmp_path.iterdir())


def test_spark_submit_to_workers_that_get_trouter_with_the_job(root: Path, cluster: Cluster) -> None:
    file = run(*TROUTER, "doctor", "--submit").stdout.strip()
    submit = spark_home() / "bin" / "spark-submit"  # type: ignore[operator]
    driver = ("--conf", f"spark.pyspark.driver.python={sys.executable}")
    # as in a shell, where spark-submit itself has nothing of ours
    shell = ("/usr/bin/env", "-u", "PYTHONPATH", submit, *cluster.options(), *driver)
    done = run(*shell, file, "meter", root, "--again")
    assert done.returncode == 0, done.stderr
    assert "Tenants" in done.stdout
    done = run(*shell, file, "doctor")
    assert "its workers have what they need" in done.stdout, done.stderr
    bare = ("/usr/bin/env", "-u", "PYTHONPATH", submit, "--master", cluster.url, file, "doctor")
    without = run(*bare, PYSPARK_PYTHON=str(cluster.python))
    # spark-submit prints the program's errors on stdout with its results
    assert "set PYSPARK_PYTHON to a Python that has trouter[spark]" in without.stdout
    assert without.returncode != 0
