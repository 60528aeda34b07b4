"""Engines for the meter's SQL: Spark, or DuckDB in this process, without Java.

Both run the statements of this package unchanged; `Engine` has what they spell differently.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa

from trouter_pipeline.datasets import Records, arrow_dataset, dataset
from trouter_pipeline.delta import BadTable
from trouter_pipeline.session import dealt_out

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from pyspark.sql import SparkSession

#: Functions of Spark that DuckDB has under other names.
_MACROS: Final = (
    "timestamp_micros(us) AS make_timestamptz(us)",
    "sequence(low, high, step) AS generate_series(low, high, step)",
    "explode(list) AS unnest(list)",
)


class Engine(Protocol):
    """Runs SQL over named rows; one instance serves one run."""

    #: SQL for whether a list has an element between two numbers, for `str.format` with ``list``, ``low`` and ``high``.
    has_between: str

    def records(self, name: str, records: Records, kind: str, dates: Iterable[str] | None = None) -> None:
        """Name the records of a kind, of all days or of ``dates``; NoRecords, OSError."""

    def rows(self, name: str, table: pa.Table) -> None:
        """Name these rows."""

    def query(self, sql: str) -> Any:
        """Return the result of a statement for `Table.commit`; DuckDB's failures raise BadTable."""

    def sized(self, rows: int) -> AbstractContextManager[None]:
        """Adapt the engine to this number of rows for the block."""


class OnSpark:
    """Spark, on this machine or a cluster."""

    has_between = "exists({list}, each -> each > {low} AND each < {high})"

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def records(self, name: str, records: Records, kind: str, dates: Iterable[str] | None = None) -> None:
        dataset(self._spark, records, kind, dates).createOrReplaceTempView(name)

    def rows(self, name: str, table: pa.Table) -> None:
        self._spark.createDataFrame(table).createOrReplaceTempView(name)

    def query(self, sql: str) -> Any:
        return self._spark.sql(sql)

    def sized(self, rows: int) -> AbstractContextManager[None]:
        return dealt_out(self._spark, rows)


def _remove(connection: DuckDBPyConnection, folder: str) -> None:
    connection.close()
    shutil.rmtree(folder, ignore_errors=True)


class InProcess:
    """DuckDB, which spills to a temporary folder what exceeds its share of the memory."""

    has_between = "len(list_filter({list}, lambda each: each > {low} AND each < {high})) > 0"

    def __init__(self) -> None:
        import duckdb  # noqa: PLC0415  # jobs on Spark do without

        # else it would be in the working folder; others can neither foretell nor open it
        spill = tempfile.mkdtemp(prefix="trouter-duckdb-")
        self._connection = duckdb.connect(config={"temp_directory": spill})
        weakref.finalize(self, _remove, self._connection, spill)
        self._connection.execute("SET TimeZone = 'UTC'")
        for macro in _MACROS:
            self._connection.execute(f"CREATE MACRO {macro}")

    def records(self, name: str, records: Records, kind: str, dates: Iterable[str] | None = None) -> None:
        self._connection.register(name, arrow_dataset(records, kind, dates))

    def rows(self, name: str, table: pa.Table) -> None:
        self._connection.register(name, table)

    def query(self, sql: str) -> pa.Table:
        import duckdb  # noqa: PLC0415

        try:
            return self._connection.sql(sql).to_arrow_table()
        except (duckdb.OperationalError, duckdb.InvalidInputException) as error:  # the disk, the memory, a damaged file
            raise BadTable(str(error)) from None

    def sized(self, rows: int) -> AbstractContextManager[None]:
        return nullcontext()
