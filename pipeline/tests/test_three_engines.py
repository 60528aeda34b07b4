"""A table after a long life, with its old log cleaned away: DuckDB, polars and Spark read the same rows of it."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from pipeline.tests.test_state import aged
from trouter_pipeline.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMMITS = 50
#: Hours from one commit to the next, of a log that is kept for a day.
EVERY_H = 3
FIRST = date(2026, 3, 1)
DAYS = 10
QUERY = "SELECT n, name, price FROM data WHERE n >= 20 AND name IS NOT NULL ORDER BY n"


def batch(number: int) -> pa.Table:
    """Return the rows of a commit, which replaces a day."""
    day = FIRST + timedelta(number % DAYS)
    rows = [(2 * number + at, f"row-{number}" if at else None, 0.5 * number) for at in range(2)]
    columns = dict(zip(("n", "name", "price"), map(list, zip(*rows, strict=True)), strict=True))
    return pa.table({**columns, "date": pa.array([day, day], pa.date32())})


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("root")
    for number in range(COMMITS):
        rows = batch(number)
        made_by: dict[str, Any] = {"job": "test", "version": 1, "parameters": {}}
        Table(root, "t").commit(rows, {rows["date"][0].as_py()}, inputs={str(number): number}, **made_by)
        if not number:
            kept = {"delta.logRetentionDuration": "interval 1 days"}
            DeltaTable(str(folder_in(root))).alter.set_table_properties(kept)
        aged(folder_in(root), EVERY_H)
    return root


def folder_in(root: Path) -> Path:
    return root / "tables" / "t"


def test_the_engines_read_the_same_rows(spark: SparkSession, root: Path) -> None:
    uri = str(folder_in(root))
    whole = pa.concat_tables(map(batch, range(COMMITS - DAYS, COMMITS))).to_pylist()
    wanted = [(row["n"], row["name"], row["price"]) for row in whole if row["name"] is not None]
    assert len(wanted) == DAYS
    with duckdb.connect() as session:
        session.register("data", DeltaTable(uri).to_pyarrow_dataset())
        assert session.sql(QUERY).fetchall() == wanted
    assert pl.SQLContext(data=pl.scan_delta(uri)).execute(QUERY).collect().rows() == wanted
    Table(root, "t").read(spark).createOrReplaceTempView("data")
    assert list(map(tuple, spark.sql(QUERY).collect())) == wanted


def test_every_file_has_statistics_that_the_checkpoint_keeps(root: Path) -> None:
    folder = folder_in(root)
    files = pa.table(DeltaTable(str(folder)).get_add_actions(flatten=True)).to_pylist()
    assert len(files) == DAYS
    for file in files:
        assert file["num_records"] == 2
        assert file["max.n"] == file["min.n"] + 1
        assert file["min.name"] == file["max.name"] == f"row-{file['min.n'] // 2}"
        assert (file["null_count.name"], file["null_count.n"]) == (1, 0)


def test_expired_versions_are_gone(root: Path) -> None:
    folder = folder_in(root)
    left = sorted(int(path.stem) for path in (folder / "_delta_log").glob("*.json"))
    assert left[-1] == COMMITS + 1  # and the creation, and the property
    assert len(left) < COMMITS / 2
    assert (folder / "_delta_log" / "_last_checkpoint").exists()
    with pytest.raises(DeltaError):
        DeltaTable(str(folder), version=1)
