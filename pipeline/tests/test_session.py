"""A session has the requirements of the jobs, and the error names each one that is missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.routers import ROOT
from trouter.cli import main
from trouter_pipeline.needs import Missing, missing, require
from trouter_pipeline.session import PARTITIONS, PATIENCE_S, ROWS_IN_PART, dealt_out, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.one_twin


def test_times_are_utc_and_workers_run_this_python(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.sparkContext.parallelize([0], 1).map(lambda _: sys.executable).first() == sys.executable


def test_spark_and_its_pythons_have_the_time_to_find_each_other(spark: SparkSession) -> None:
    import os

    for value in (
        os.environ.get("SPARK_AUTH_SOCKET_TIMEOUT"),
        spark.sparkContext.parallelize([0], 1).map(lambda _: os.environ.get("SPARK_AUTH_SOCKET_TIMEOUT")).first(),
    ):
        assert int(value or 0) >= PATIENCE_S


def test_many_rows_keep_the_configured_number_of_partitions(spark: SparkSession) -> None:
    before = spark.sparkContext.getConf().get(PARTITIONS)
    assert before is not None
    with dealt_out(spark, 10 * ROWS_IN_PART):
        assert spark.conf.get(PARTITIONS) == before


@pytest.mark.spark
def test_many_rows_without_partitioning_are_distributed() -> None:
    if needs := missing():
        pytest.skip("; ".join(need.what for need in needs))
    program = f"""
from trouter_pipeline.session import *
spark = session("parts", master="local[2]", settings={{"spark.ui.enabled": "false"}})
print(spark.conf.get(PARTITIONS))
with dealt_out(spark, {10 * ROWS_IN_PART - 1}):
    print(spark.conf.get(PARTITIONS))
with dealt_out(spark, 1):
    print(spark.conf.get(PARTITIONS))
print(spark.conf.get(PARTITIONS))
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["2", "10", "2", "2"]


def test_java_that_is_not_there_is_named_with_its_cure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert [need.what for need in missing()] == [f"JAVA_HOME has no {tmp_path}/bin/java"]
    with pytest.raises(Missing, match="openjdk"):
        require()
    assert main(["pipeline", "doctor"]) == 1
    assert "install Java 17" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("master", "settings", "environment"),
    [("sc://h:15002", {}, {}), (None, {"spark.remote": "sc://h"}, {}), (None, {}, {"SPARK_REMOTE": "sc://h"})],
)
def test_spark_connect_is_refused_with_what_works_there(
    master: str | None, settings: dict[str, str], environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(Missing, match="name the cluster itself with --master"):
        session("jobs", master=master, settings=settings)
