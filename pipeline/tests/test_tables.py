"""A table changes a day at a time and atomically, and its manifest names its inputs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from trouter_pipeline.tables import BadTable, Table, TableBusy, locked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FIRST, SECOND, THIRD = date(2026, 3, 1), date(2026, 3, 2), date(2026, 3, 3)


def frame(spark: SparkSession, *rows: tuple[date, int]) -> DataFrame:
    return spark.createDataFrame(list(rows), "date date, value bigint")


def commit(table: Table, rows: DataFrame, days: Iterable[date], **inputs: int) -> Any:
    return table.commit(rows, set(days), inputs=inputs, job="test", version=3, parameters={"a": 1})


def values(spark: SparkSession, table: Table, days: Iterable[date] | None = None) -> list[tuple[date, int]]:
    return sorted((row["date"], row["value"]) for row in table.read(spark, days).collect())


def test_days_are_replaced_others_stay_and_the_inputs_are_known(spark: SparkSession, tmp_path: Path) -> None:
    table = Table(tmp_path, "t")
    assert table.inputs() == {}
    with pytest.raises(BadTable, match="this table is empty"):
        table.read(spark)
    commit(table, frame(spark, (FIRST, 1), (SECOND, 2), (THIRD, 3)), [FIRST, SECOND, THIRD], a=1)
    first = values(spark, table)
    assert first == [(FIRST, 1), (SECOND, 2), (THIRD, 3)]
    held = table.read(spark)  # by a reader that began before
    old = table.manifest()
    assert old is not None
    commit(table, frame(spark, (SECOND, 20)), [SECOND, THIRD], a=1, b=2)
    assert values(spark, table) == [(FIRST, 1), (SECOND, 20)]
    assert values(spark, table, [SECOND]) == [(SECOND, 20)]
    assert sorted((row["date"], row["value"]) for row in held.collect()) == first
    assert table.inputs() == {"a": 1, "b": 2}
    made = table.manifest()
    assert made is not None
    assert (made.job, made.job_version, made.parameters, made.schema) == ("test", 3, {"a": 1}, "`value` bigint")

    # A file that no manifest names is kept for an hour, and then deleted.
    replaced = [table.folder / path for path in set(old.days.values()) - set(made.days.values())]
    dead = table.folder / ".staging" / "dead"
    dead.mkdir(parents=True)
    os.utime(dead, (0, 0))
    os.utime(replaced[0], (0, 0))
    os.utime(table.folder / made.days["2026-03-01"], (0, 0))
    commit(table, frame(spark), [SECOND])
    assert values(spark, table) == [(FIRST, 1)]
    assert [path.exists() for path in (*replaced, dead)] == [False, True, False]
    assert list((table.folder / ".staging").iterdir()) == []


def test_rows_of_a_day_that_is_not_to_be_replaced_change_nothing(spark: SparkSession, tmp_path: Path) -> None:
    table = Table(tmp_path, "t")
    commit(table, frame(spark, (FIRST, 1)), [FIRST])
    before = table.manifest()
    with pytest.raises(BadTable, match="rows of 2026-03-02"):
        commit(table, frame(spark, (FIRST, 5), (SECOND, 2)), [FIRST])
    with pytest.raises(BadTable, match=r"no column `date`"):
        commit(table, frame(spark).drop("date"), [FIRST])
    assert table.manifest() == before
    with locked(table.folder / "LOCK"), pytest.raises(TableBusy, match=re.escape(f"process {os.getpid()} ")):
        commit(table, frame(spark), [FIRST])


def test_a_manifest_that_is_none_is_reported_with_its_file(tmp_path: Path) -> None:
    table = Table(tmp_path, "t")
    table.folder.mkdir(parents=True)
    path = table.folder / "_manifest.json"
    for text, why in (("{", "not a manifest"), ('{"version": 9}', "version 9")):
        path.write_text(text)
        with pytest.raises(BadTable, match=re.escape(str(path)) + f".*{why}"):
            table.inputs()
