"""Spark's own reader of Delta tables is taken where the session has one, and gives the rows of the list of files.

The reader here is not delta-spark's but a source in Python that reads a version through the package deltalake.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import StructType

from trouter_pipeline import delta_reader
from trouter_pipeline.delta import BadTable
from trouter_pipeline.delta_reader import AUTO, CATALOG, DELTA, EXTENSIONS, FILES, READER
from trouter_pipeline.places import Place
from trouter_pipeline.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.one_twin

FIRST, SECOND, THIRD = date(2026, 3, 1), date(2026, 3, 2), date(2026, 3, 3)
LOCAL = Place.of("/srv/pipeline")
SCHEMA = pa.schema({"date": pa.date32(), "value": pa.int64()})


class _Reader(DataSourceReader):
    def __init__(self, path: str, version: int) -> None:
        self._path = path
        self._version = version

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        whole = DeltaTable(self._path, version=self._version).to_pyarrow_table()
        yield from whole.select(["value", "date"]).to_batches()


class DeltaSource(DataSource):
    """Reads a version of a table of the columns `value` and `date`; sessions share it, so it is not named `delta`."""

    @classmethod
    def name(cls) -> str:
        return "delta_of_tests"

    def schema(self) -> str:
        return "value bigint, date date"

    def reader(self, schema: StructType) -> DataSourceReader:
        return _Reader(self.options["path"], int(self.options["versionAsOf"]))


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    """Return a session that has such a source."""
    session = spark.newSession()
    session.dataSource.register(DeltaSource)
    return session


@pytest.fixture
def delta(session: SparkSession, monkeypatch: pytest.MonkeyPatch) -> SparkSession:
    """Return a session that seems to be set up for ``format("delta")``."""
    monkeypatch.setattr(delta_reader, "FORMAT", DeltaSource.name())
    monkeypatch.setattr(delta_reader, "source_class", lambda _, name: f"com.example.{name}")
    session.conf.unset(READER)
    return session


def commit(table: Table, days: list[date], *rows: tuple[date, int]) -> None:
    content = pa.Table.from_pylist([{"date": day, "value": value} for day, value in rows], SCHEMA)
    table.commit(content, set(days), inputs={}, job="test", version=1, parameters={})


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Return a table at version 2 of three, with three days."""
    made = Table(tmp_path, "t")
    commit(made, [FIRST, SECOND, THIRD], (FIRST, 1), (SECOND, 2), (SECOND, 3), (THIRD, 4))
    commit(made, [SECOND], (SECOND, 20))
    commit(made, [FIRST], (FIRST, 100))
    return Table(tmp_path, "t", 2)


def sources(frame: DataFrame) -> str:
    """Return the plan of a frame."""
    execution: Any = frame._jdf.queryExecution()
    return str(execution.analyzed().toString())


def values(frame: DataFrame) -> list[tuple[date, int]]:
    return sorted((row["date"], row["value"]) for row in frame.collect())


@pytest.mark.parametrize("days", [None, [SECOND], [FIRST, THIRD], []])
def test_both_readers_give_the_rows_of_the_pinned_version(
    delta: SparkSession, table: Table, days: list[date] | None
) -> None:
    by_spark = table.read(delta, days)
    delta.conf.set(READER, FILES)
    by_files = table.read(delta, days)
    assert ("RelationV2" in sources(by_spark), "RelationV2" in sources(by_files)) == (True, False)
    assert by_spark.schema == by_files.schema
    assert values(by_spark) == values(by_files)
    wanted = [(FIRST, 1), (SECOND, 20), (THIRD, 4)]
    assert values(by_spark) == [row for row in wanted if days is None or row[0] in days]


def test_some_files_of_a_day_are_read_by_their_list(delta: SparkSession, table: Table) -> None:
    version = table.version()
    assert version is not None
    more = version.files[0]._replace(path="date=2026-03-01/another.parquet")
    version.files = (*version.files, more)
    assert "RelationV2" not in sources(delta_reader.frame(delta, version, version.files[:1]))


def test_a_column_that_an_older_version_lacks_is_null(delta: SparkSession, table: Table) -> None:
    version = table.version()
    assert version is not None
    schema = StructType.fromDDL("value bigint, note string")
    assert isinstance(schema, StructType)
    assert {row["note"] for row in delta_reader.frame(delta, version, version.files, schema).collect()} == {None}


def test_spark_without_the_jars_reads_the_files_unless_delta_is_demanded(spark: SparkSession, table: Table) -> None:
    session = spark.newSession()
    assert delta_reader.source_class(session, "parquet")
    assert delta_reader.source_class(session, "delta") is None
    assert not delta_reader.is_chosen(session, LOCAL)
    assert values(table.read(session)) == [(FIRST, 1), (SECOND, 20), (THIRD, 4)]
    session.conf.set(READER, DELTA)
    with pytest.raises(BadTable, match=r"spark.trouter.reader is delta, and Spark has no source of this name: give it"):
        table.read(session)
    session.conf.set(READER, "parquet")
    with pytest.raises(BadTable, match="it must be auto, delta or files"):
        table.read(session)


class Session:
    """A session of which only the settings are asked."""

    def __init__(self, **settings: str) -> None:
        self._settings = {name.replace("__", "."): value for name, value in settings.items()}

    @property
    def conf(self) -> Session:
        return self

    def get(self, name: str, default: str) -> str:
        return self._settings.get(name, default)


def session_with(settings: dict[str, str]) -> Any:
    return Session(**settings)


@pytest.mark.parametrize(
    ("source", "settings", "chosen"),
    [
        (None, {}, False),
        ("org.apache.spark.sql.delta.sources.DeltaDataSource", {}, False),
        ("org.apache.spark.sql.delta.sources.DeltaDataSource", dict([EXTENSIONS]), False),
        ("org.apache.spark.sql.delta.sources.DeltaDataSource", dict([EXTENSIONS, CATALOG]), True),
        (
            "org.apache.spark.sql.delta.sources.DeltaDataSource",
            {EXTENSIONS[0]: f"com.example.Other,{EXTENSIONS[1]}", CATALOG[0]: CATALOG[1]},
            True,
        ),
        ("com.databricks.sql.transaction.tahoe.sources.DeltaDataSource", {}, True),
        ("com.databricks.sql.transaction.tahoe.sources.DeltaDataSource", {READER: FILES}, False),
        ("org.apache.spark.sql.delta.sources.DeltaDataSource", {READER: AUTO, **dict([EXTENSIONS, CATALOG])}, True),
    ],
)
def test_the_choice_is_by_class_and_session(
    source: str | None, settings: dict[str, str], chosen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delta_reader, "source_class", lambda *_: source)
    assert delta_reader.is_chosen(session_with(settings), LOCAL) == chosen


def test_an_object_store_is_read_by_spark_only_if_the_user_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delta_reader, "source_class", lambda *_: "com.databricks.Delta")
    store = Place.of("s3://bucket/root")
    assert not delta_reader.is_chosen(session_with({}), store)
    assert delta_reader.is_chosen(session_with({READER: DELTA}), store)


def test_a_session_that_is_not_set_up_gets_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delta_reader, "source_class", lambda *_: "org.apache.spark.sql.delta.sources.DeltaDataSource")
    with pytest.raises(BadTable) as caught:
        delta_reader.is_chosen(session_with({READER: DELTA, CATALOG[0]: CATALOG[1]}), LOCAL)
    assert f"give --conf {'='.join(EXTENSIONS)};" in str(caught.value)


def test_a_refusal_of_spark_names_version_reason_and_cure(
    spark: SparkSession, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delta_reader, "source_class", lambda *_: "com.example.Delta")
    with pytest.raises(BadTable) as caught:
        table.read(spark.newSession())
    assert "Spark cannot read version 2 as a Delta table: " in str(caught.value)
    assert "Failed to find the data source: delta" in str(caught.value)
    assert f"with --conf {READER}={FILES} its files are read by their list" in str(caught.value)
