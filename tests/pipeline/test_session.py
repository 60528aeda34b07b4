"""A session has what the jobs lean on, and says what is missing where it cannot be had."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from trouter.cli import main
from trouter.pipeline.needs import Missing, missing, require

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_times_are_utc_and_workers_run_this_python(spark: SparkSession) -> None:
    import sys

    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.sparkContext.parallelize([0], 1).map(lambda _: sys.executable).first() == sys.executable


def test_spark_and_its_pythons_have_the_time_to_find_each_other(spark: SparkSession) -> None:
    import os

    for told in (
        os.environ.get("SPARK_AUTH_SOCKET_TIMEOUT"),
        spark.sparkContext.parallelize([0], 1).map(lambda _: os.environ.get("SPARK_AUTH_SOCKET_TIMEOUT")).first(),
    ):
        assert told == "120"


def test_java_that_is_not_there_is_named_with_its_cure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert [need.what for need in missing()] == [f"JAVA_HOME has no {tmp_path}/bin/java"]
    with pytest.raises(Missing, match="openjdk"):
        require()
    assert main(["pipeline", "doctor"]) == 1
    assert "install Java 17" in capsys.readouterr().err
