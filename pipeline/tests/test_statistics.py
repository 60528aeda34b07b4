"""The statistics of a new file: all engines skip by them, and none of them skips a row that a query wants."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from trouter_pipeline.delta import Folder, columns_in
from trouter_pipeline.parquet import write
from trouter_pipeline.places import Place
from trouter_pipeline.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.one_twin

DAY = date(2026, 3, 1)
NOON = datetime(2026, 3, 1, 12, 0, 0, 1_234, tzinfo=UTC)
#: A column of each type that tables have, with two values, of which the first is less.
TYPES: dict[str, tuple[pa.DataType, Any, Any]] = {
    "small": (pa.int32(), -1, 2),
    "large": (pa.int64(), -(2**62), 2**62 + 1),
    "real": (pa.float64(), -1.5, 1e300),
    "text": (pa.string(), "", "é\U0001f600"),
    "yes": (pa.bool_(), False, True),
    "day": (pa.date32(), date(1, 1, 1), date(9999, 12, 31)),
    "moment": (pa.timestamp("us", "UTC"), NOON, NOON + timedelta(microseconds=1)),
    "price": (pa.decimal128(10, 2), Decimal("-0.01"), Decimal("12345678.90")),
    "exact": (pa.decimal128(38, 18), Decimal("1.000000000000000001"), Decimal("12345678901234567890.123456789")),
}
OTHERS: dict[str, pa.DataType] = {
    "octets": pa.binary(),
    "parts": pa.list_(pa.string()),
    "pairs": pa.map_(pa.string(), pa.string()),
    "inner": pa.struct([("small", pa.int32())]),
    "never": pa.string(),
}


def stored(root: Path, rows: pa.Table) -> str:
    """Commit rows as a table, divided by `date`; return where it is."""
    rows = rows.append_column("date", pa.array([DAY] * rows.num_rows, pa.date32()))
    Table(root, "t").commit(rows, [DAY], inputs={}, job="test", version=1, parameters={})
    return str(root / "tables" / "t")


def statistics(uri: str) -> list[dict[str, Any]]:
    """Return what the log says of the columns of each file."""
    lines = [line for path in sorted(Path(uri, "_delta_log").glob("*.json")) for line in path.read_text().splitlines()]
    return [json.loads(json.loads(line)["add"]["stats"]) for line in lines if '"add"' in line]


def counted(uri: str, condition: str) -> set[int]:
    """Return the number of rows that each engine finds, and that are there."""
    data = DeltaTable(uri).to_pyarrow_dataset()
    asked = f"SELECT count(*) AS rows FROM data WHERE {condition}"
    context = pl.SQLContext(data=pl.scan_delta(uri))
    with duckdb.connect() as session:
        found = [session.register("data", data).sql(asked).fetchall()[0][0]]
        found.append(session.register("data", data.to_table()).sql(asked).fetchall()[0][0])
    return {*found, context.execute(asked).collect().item()}


@pytest.mark.parametrize("name", TYPES)
def test_a_file_has_the_bounds_of_its_columns_and_no_engine_skips_a_row(tmp_path: Path, name: str) -> None:
    kind, least, greatest = TYPES[name]
    others = {other: pa.array([None, None, None], its) for other, its in OTHERS.items()}
    values = pa.array([greatest, None, least], kind)
    uri = stored(tmp_path, pa.table({name: values, "n": [1, 2, 3], **others}))
    (found,) = statistics(uri)
    assert found["numRecords"] == 3
    if name == "exact":  # JSON would round it, so that the file has none
        assert found.keys() == {"numRecords"}
    else:
        assert found["nullCount"] == {name: 1, "n": 0, "never": 3}
        assert found["minValues"].keys() == found["maxValues"].keys() == {name, "n"}
        assert (found["minValues"]["n"], found["maxValues"]["n"]) == (1, 3)
    rows = DeltaTable(uri).to_pyarrow_table()
    for at, value in ((1, greatest), (3, least)):
        text = f"'{value}'" if isinstance(value, str) else None
        if isinstance(value, bool | int | float | Decimal):
            text = str(value)
        if text is not None:
            assert counted(uri, f"{name} = {text} AND n = {at}") == {1}
        data = DeltaTable(uri).to_pyarrow_dataset()
        wanted = (pc.field(name) == pa.scalar(value, kind)) & (pc.field("n") == at)
        assert data.to_table(filter=wanted).num_rows == 1
    assert counted(uri, f"{name} IS NULL AND n = 2") == {1}
    assert counted(uri, f"never IS NULL AND n > 0 AND {name} IS NOT NULL") == {2}
    assert rows.num_rows == 3


def test_long_texts_are_cut_so_that_the_bounds_hold(tmp_path: Path) -> None:
    long = "x" * 31 + "é" * 10
    uri = stored(tmp_path, pa.table({"text": [long, "a" * 10_000], "short": ["x", "y"]}))
    (found,) = statistics(uri)
    assert all(len(each) <= 33 for each in (*found["minValues"].values(), *found["maxValues"].values()))
    for text in (long, "a" * 10_000):
        assert counted(uri, f"text = '{text}' AND short >= 'x'") == {1}
    other = stored(tmp_path / "2", pa.table({"text": [long, "a" * 40]}))
    (found,) = statistics(other)
    assert found["minValues"]["text"] == "a" * 32
    assert found["maxValues"]["text"] == long[:32] + "\U0010ffff"
    assert counted(other, f"text = '{long}'") == {1}


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_that_have_no_bounds_hide_nothing(tmp_path: Path, number: float) -> None:
    uri = stored(tmp_path, pa.table({"real": [1.0, number], "n": [1, 2]}))
    assert statistics(uri) == [{"numRecords": 2}]
    assert counted(uri, "n = 2 AND n IS NOT NULL") == {1}
    if not math.isnan(number):  # which the footer of Parquet does not tell either
        data = DeltaTable(uri).to_pyarrow_dataset()
        wanted = (pc.field("real") == number) & (pc.field("n") == 2)
        assert data.to_table(filter=wanted).num_rows == 1


def test_columns_that_only_other_files_have_are_null_in_a_file(tmp_path: Path) -> None:
    """As the kinds of records are in one table, each with its own columns."""
    folder = Folder(tmp_path)
    names = [f"c{number}" for number in range(60)]
    whole = pa.schema([*((name, pa.int64()) for name in names), ("date", pa.date32())])
    version = folder.create(columns_in(whole.empty_table()), ["date"])
    for name in ("c1", "c50"):
        rows = pa.table({name: [1, 2], "c0": [5, 5], "date": pa.array([DAY, DAY], pa.date32())})
        placed = write(rows, Place.of(tmp_path), ["date"])
        version = folder.commit(version, placed, [], {}, shown="")
    assert [each["nullCount"].get("c1") for each in statistics(str(tmp_path))] == [0, 2]
    for condition, wanted in {
        "c0 = 5 AND c1 = 1": 1, "c0 = 5 AND c50 = 1": 1, "c0 = 5 AND c1 IS NULL": 2, "c0 = 5 AND c59 IS NULL": 4,
        "c0 = 5 AND c50 IS NULL": 2, "c0 = 4 AND c1 = 1": 0,
    }.items():  # fmt: skip
        assert counted(str(tmp_path), condition) == {wanted}, condition


def test_spark_writes_the_same_statistics(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame([(DAY, 1, "x"), (DAY, 5, None)], "date date, value bigint, name string").coalesce(1)
    Table(tmp_path, "t").commit(frame, [DAY], inputs={}, job="test", version=1, parameters={})
    (found,) = statistics(str(tmp_path / "tables" / "t"))
    bounds = {"minValues": {"value": 1, "name": "x"}, "maxValues": {"value": 5, "name": "x"}}
    assert found == {"numRecords": 2, **bounds, "nullCount": {"value": 0, "name": 1}}


def test_files_are_skipped_by_their_statistics(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    version = folder.create({"n": "long", "date": "date"}, ["date"])
    for number in range(10):
        rows = pa.table({"n": [number], "date": pa.array([DAY], pa.date32())})
        version = folder.commit(version, write(rows, Place.of(tmp_path), ["date"]), [], {}, shown="")
    for file in version.files[1:]:
        Path(version.path(file)).unlink()
    kept = version.rows(version.files[0])["n"][0].as_py()
    data = DeltaTable(str(tmp_path)).to_pyarrow_dataset()
    assert data.to_table(filter=pc.field("n") == kept).num_rows == 1
    assert pl.scan_delta(str(tmp_path)).filter(pl.col("n") == kept).collect().height == 1
