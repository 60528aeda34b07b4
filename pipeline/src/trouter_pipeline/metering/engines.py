"""Engines for the meter's SQL: Spark, or DuckDB in this process, without Java.

Both run the statements of this package unchanged; `Engine` has what they spell differently.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa

from trouter_pipeline.datasets import Records, arrow_dataset, dataset
from trouter_pipeline.delta import BadTable
from trouter_pipeline.metering.costs import Costs, Usage
from trouter_pipeline.session import dealt_out, on_one_machine

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from pyspark.sql import DataFrame, SparkSession

#: Megabytes that DuckDB holds before it spills; Arrow, which reads for it, takes a few hundred more.
_MEMORY_MB: Final = 1350
#: Functions of Spark that DuckDB has under other names.
_MACROS: Final = (
    "timestamp_micros(us) AS make_timestamptz(us)",
    "sequence(low, high, step) AS generate_series(low, high, step)",
    "explode(list) AS unnest(list)",
)


class Engine(Protocol):
    """Runs SQL over named rows; one instance serves one run."""

    #: What its stages cost, if it was asked to explain that.
    costs: Costs | None

    def stage(self, name: str) -> AbstractContextManager[None]:
        """Measure what the block costs, without what is kept in it."""

    def records(self, name: str, records: Records, kind: str, dates: Iterable[str] | None = None) -> None:
        """Name the records of a kind, of all days or of ``dates``; NoRecords, OSError."""

    def rows(self, name: str, table: pa.Table) -> None:
        """Name these rows."""

    def keep(self, name: str, sql: str) -> int:
        """Compute a statement now, and name its rows until the end of the block of ``sized``; BadTable as ``query``.

        Return their number.
        """

    def fewer(self, rows: int) -> AbstractContextManager[None]:
        """Adapt the engine to this number of rows, few beside those of ``sized``, for the block."""

    def few(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a statement that makes few; BadTable as ``query``."""

    def query(self, sql: str) -> Any:
        """Return the result of a statement for `Table.commit`; DuckDB's failures raise BadTable."""

    def sized(self, rows: int) -> AbstractContextManager[None]:
        """Adapt the engine to this number of rows for the block, and drop what is kept at its end."""


class _Measured(ABC):
    """The part of an engine that measures stages."""

    def __init__(self, *, explain: bool) -> None:
        self.costs = Costs(self._used) if explain else None

    def stage(self, name: str) -> AbstractContextManager[None]:
        return nullcontext() if self.costs is None else self.costs.stage(name)

    @abstractmethod
    def _used(self) -> Usage:
        """Return what was used since it was asked last."""


class OnSpark(_Measured):
    """Spark, on this machine or a cluster."""

    def __init__(self, spark: SparkSession, *, explain: bool = False) -> None:
        super().__init__(explain=explain)
        self._spark = spark
        self._kept: dict[str, DataFrame] = {}
        self._count = 0
        self._next_stage = 0

    def records(self, name: str, records: Records, kind: str, dates: Iterable[str] | None = None) -> None:
        dataset(self._spark, records, kind, dates).createOrReplaceTempView(name)

    def rows(self, name: str, table: pa.Table) -> None:
        self._spark.createDataFrame(table).createOrReplaceTempView(name)

    def keep(self, name: str, sql: str) -> int:
        from pyspark import StorageLevel  # noqa: PLC0415

        with self.stage(name):
            rows = self._spark.sql(sql).persist(StorageLevel.DISK_ONLY)
            self._kept[name] = rows
            self._count = rows.count()  # once they are there, Spark knows their size, and joins few without a shuffle
            if on_one_machine(self._spark.sparkContext.master):
                # Else the plan of each later statement has all that these rows were made of, again for each mention:
                # it grows to ten thousands of lines. An executor of a cluster may be lost, and makes its part anew.
                rows = rows.localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)
                self._kept[name].unpersist()
        rows.createOrReplaceTempView(name)
        return self._count

    def fewer(self, rows: int) -> AbstractContextManager[None]:
        return dealt_out(self._spark, rows, fewest=1)

    def few(self, sql: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self._spark.sql(sql).collect()]

    def query(self, sql: str) -> Any:
        return self._spark.sql(sql)

    @contextmanager
    def sized(self, rows: int) -> Iterator[None]:
        with dealt_out(self._spark, rows):
            try:
                yield
            finally:
                while self._kept:
                    name, kept = self._kept.popitem()
                    kept.unpersist()
                    self._spark.catalog.dropTempView(name)  # Spark deletes rows that nothing names any more

    def _used(self) -> Usage:
        used = Usage(rows_out=self._count)
        self._count = 0
        gateway = self._spark.sparkContext._gateway
        assert gateway is not None  # noqa: S101 - a session that is not remote has one
        none = gateway.jvm.java.util.ArrayList()
        most = gateway.new_array(gateway.jvm.double, 1)
        most[0] = 1.0
        context = self._spark._jsparkSession.sparkContext()
        context.listenerBus().waitUntilEmpty()  # it tells the store of stages, some time after their end
        store = context.statusStore()
        stages = store.stageList(none, False, False, most, none)
        found = [stages.apply(number) for number in range(stages.size())]
        for each in found:
            if each.stageId() < self._next_stage:
                continue
            used.rows_in += each.inputRecords()
            used.written_bytes += each.shuffleWriteBytes() + each.diskBytesSpilled() + each.outputBytes()
            tasks = store.taskSummary(each.stageId(), each.attemptId(), most)
            if tasks.isDefined():
                used.most_bytes = max(used.most_bytes, int(tasks.get().peakExecutionMemory().apply(0)))
        self._next_stage = max([self._next_stage, *(each.stageId() + 1 for each in found)])
        return used


def _remove(connection: DuckDBPyConnection, folder: str) -> None:
    connection.close()
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _failures_named() -> Iterator[None]:
    """Raise BadTable for a failure of DuckDB at the disk, the memory or a damaged file."""
    import duckdb  # noqa: PLC0415

    try:
        yield
    except (duckdb.OperationalError, duckdb.InvalidInputException) as error:
        raise BadTable(str(error)) from None


class InProcess(_Measured):
    """DuckDB, which spills to a temporary folder what exceeds its share of the memory.

    The records of an object store are copied there first.
    """

    def __init__(self, *, explain: bool = False) -> None:
        import duckdb  # noqa: PLC0415  # jobs on Spark do without

        super().__init__(explain=explain)
        self._usage = Usage()
        # else it would be in the working folder; others can neither foretell nor open it
        spill = tempfile.mkdtemp(prefix="trouter-duckdb-")
        memory_mb = min(_MEMORY_MB, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2_000_000)
        self._connection = duckdb.connect(config={"temp_directory": spill, "memory_limit": f"{memory_mb}MB"})
        weakref.finalize(self, _remove, self._connection, spill)
        self._copies = Path(spill, "records")
        self._kept: set[str] = set()
        self._connection.execute("SET TimeZone = 'UTC'")
        # joins stay as they are written: it does not know how many records there are, and would hold them in memory
        self._connection.execute("SET disabled_optimizers = 'join_order,build_side_probe_side'")
        for macro in _MACROS:
            self._connection.execute(f"CREATE MACRO {macro}")
        if explain:
            self._connection.execute("SET enable_profiling = 'no_output'")

    def records(self, name: str, records: Records, kind: str, dates: Iterable[str] | None = None) -> None:
        self._connection.register(name, arrow_dataset(records, kind, self._copies, dates))

    def rows(self, name: str, table: pa.Table) -> None:
        self._connection.register(name, table)

    def keep(self, name: str, sql: str) -> int:
        with self.stage(name), _failures_named():
            self._connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {sql}")
            self._profile()
            self._kept.add(name)
            count: int = self._connection.table(name).shape[0]
            self._usage.rows_out += count
        return count

    def fewer(self, rows: int) -> AbstractContextManager[None]:
        return nullcontext()

    def few(self, sql: str) -> list[tuple[Any, ...]]:
        with _failures_named():
            return self._connection.sql(sql).fetchall()

    def query(self, sql: str) -> pa.Table:
        with _failures_named():
            found = self._connection.sql(sql).to_arrow_table()
        self._profile()
        return found

    @contextmanager
    def sized(self, rows: int) -> Iterator[None]:
        try:
            yield
        finally:
            while self._kept:
                self._connection.execute(f"DROP TABLE {self._kept.pop()}")

    def _profile(self) -> None:
        """Add what the last statement used, if it is to be explained."""
        if self.costs is None:
            return
        said = json.loads(self._connection.get_profiling_information(format="json"))
        system = said["system"]
        self._usage.add(
            Usage(
                rows_in=sum(map(_rows_read, said["operator"])),
                written_bytes=system["peak_temp_dir_size"],
                most_bytes=system["peak_buffer_memory"],
            )
        )

    def _used(self) -> Usage:
        used, self._usage = self._usage, Usage()
        return used


def _rows_read(operator: dict[str, Any]) -> int:
    """Return how many rows the sources of an operator in DuckDB's profile have read."""
    if below := operator.get("children"):
        return sum(map(_rows_read, below))
    return max(int(operator["intermediate_rows"]), int(operator.get("rows_scanned", 0)))
