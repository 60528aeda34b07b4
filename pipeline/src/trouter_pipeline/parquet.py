"""Parquet files of tables: written and read with Arrow, in this process and in the tasks of Spark.

Spark would need jars to write into an object store; its tasks have Arrow and delta-rs anyway, because the source does.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.parquet as pq

from trouter_pipeline.files import make_folder
from trouter_pipeline.places import Place
from trouter_pipeline.statistics import are_finite, is_simple, of_footer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

#: The name of a folder for null, as Spark and others write it.
NULL: Final = "__HIVE_DEFAULT_PARTITION__"
#: Bytes of rows that a task keeps before it writes them, and files that it has open at once.
KEPT_BYTES: Final = 64 << 20
OPEN_FILES: Final = 64
#: What a task says of each file.
_WRITTEN: Final = "apart string, path string, partition array<string>, rows bigint, octets bigint, statistics string"
_WRITTEN_ARROW: Final = pa.schema(
    {
        "apart": pa.string(),
        "path": pa.string(),
        "partition": pa.list_(pa.string()),
        "rows": pa.int64(),
        "octets": pa.int64(),
        "statistics": pa.string(),
    }
)


class File(NamedTuple):
    """A file of a version: its path in the folder, and the texts of its partition (None for null).

    A new one has statistics of its columns (see `statistics`).
    """

    path: str
    partition: tuple[str | None, ...]
    rows: int
    octets: int
    statistics: str = ""


def is_arrow(frame: Any) -> bool:
    """Return whether rows are Arrow's and not Spark's, without importing either."""
    return type(frame).__module__.startswith("pyarrow.")


def folder_of(values: Mapping[str, str | None]) -> str:
    """Return the folders of a partition."""
    return "/".join(f"{name}={NULL if value is None else quote(value, safe='')}" for name, value in values.items())


def value_of(text: str) -> str | None:
    """Return the value that the name of a folder has."""
    return None if text == NULL else unquote(text)


def is_in_its_folder(partition: Sequence[str], file: File) -> bool:
    """Return whether the folders of a file name its partition, as Spark expects."""
    pairs = [part.partition("=") for part in file.path.split("/")[:-1]]
    return {name: value_of(value) for name, _, value in pairs} == dict(zip(partition, file.partition, strict=True))


def text_of(value: object) -> str | None:
    """Return a value of a partition as the log has it."""
    return None if value is None else value.isoformat() if isinstance(value, date) else str(value)


def in_utc(rows: pa.Table) -> pa.Table:
    """Return rows whose times are microseconds in UTC, as Delta's are."""
    for number, each in enumerate(rows.schema):
        if pa.types.is_timestamp(each.type) and not each.type.tz:
            rows = rows.set_column(number, each.name, rows.column(number).cast(pa.timestamp("us", "UTC")))
    return rows


# --- writing


class _Part:
    """One new file of a partition, open until all its rows are written."""

    def __init__(self, place: Place, values: Mapping[str, str | None], schema: pa.Schema) -> None:
        self._values = tuple(values.values())
        self._path = f"{folder_of(values)}/part-{uuid.uuid4().hex}.zstd.parquet"
        self._place = place / self._path
        self._schema = schema
        self._rows = 0
        self._finite = True
        self._footers: list[pq.FileMetaData] = []
        if place.is_local:
            make_folder(Path(self._place).parent)
        with self._place.reached():
            self._file = self._place.output()
            # A dictionary of bodies costs more than all the rest, and their least and greatest are as long as bodies.
            short = [each.name for each in schema if is_simple(each.type)]
            self._writer = pq.ParquetWriter(
                self._file,
                schema,
                compression="zstd",
                use_dictionary=short,
                write_statistics=short,
                metadata_collector=self._footers,
            )

    def add(self, rows: pa.Table) -> None:
        with self._place.reached():
            self._writer.write_table(rows)
        self._rows += rows.num_rows
        self._finite = self._finite and are_finite(rows)

    def close(self) -> File:
        with self._place.reached():
            self._writer.close()
            octets = self._file.tell()
            self._file.close()
        statistics = of_footer(self._footers[0], self._schema) if self._finite else ""
        return File(self._path, self._values, self._rows, octets, statistics)


def write_part(rows: pa.Table, place: Place, values: Mapping[str, str | None]) -> File:
    """Write rows of one partition below a place, without its columns; return the file. OSError."""
    part = _Part(place, values, rows.schema)
    part.add(rows)
    return part.close()


def write(frame: Any, place: Place, partition: Sequence[str]) -> list[File]:
    """Write rows of Spark or Arrow below a place, divided by the columns of the partition; return the files.

    OSError, and Spark's errors.
    """
    return write_apart(frame, None, {None: place}, partition)[None]


def write_apart(
    frame: Any, column: str | None, places: Mapping[str | None, Place], partition: Sequence[str]
) -> dict[str | None, list[File]]:
    """Write rows below several places, chosen by the text of a column, which is not written; return their files."""
    writing = _Writing(dict(places), column, tuple(partition))
    if is_arrow(frame):
        found = list(writing.files(frame.to_batches()))
    else:
        rows = frame.mapInArrow(writing, _WRITTEN).collect()
        found = [(row["apart"], _file_of(row)) for row in rows]
    return {apart: sorted(file for which, file in found if which == apart) for apart in places}


def _file_of(row: Any) -> File:
    """Return the file that a task tells of."""
    return File(row["path"], tuple(row["partition"]), row["rows"], row["octets"], row["statistics"])


@dataclass
class _Writing:
    """What a task does: write the rows of a part of a frame, and return what it wrote."""

    places: dict[str | None, Place]
    column: str | None
    partition: tuple[str, ...]
    _kept: dict[tuple[str | None, ...], list[pa.Table]] = field(default_factory=dict)
    _open: dict[tuple[str | None, ...], _Part] = field(default_factory=dict)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the files as Spark takes them."""
        files = [{"apart": apart, **file._asdict()} for apart, file in self.files(batches)]
        yield pa.RecordBatch.from_pylist(files, _WRITTEN_ARROW)

    def files(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[str | None, File]]:
        """Write all batches, and yield the files with the text of the column that chose their places."""
        size = 0
        for batch in batches:
            for key, rows in self._divided(pa.Table.from_batches([batch])):
                self._kept.setdefault(key, []).append(rows)
                size += rows.nbytes
            if size >= KEPT_BYTES:
                yield from self._write()
                size = 0
        yield from self._write()
        while self._open:
            yield self._close(next(iter(self._open)))

    def _divided(self, rows: pa.Table) -> Iterator[tuple[tuple[str | None, ...], pa.Table]]:
        """Yield the rows of each place and partition, without the columns that say which."""
        names = [*([] if self.column is None else [self.column]), *self.partition]
        if not rows.num_rows:
            return
        rest = rows.drop_columns(names)
        if all(len(rows[name].unique()) == 1 for name in names):
            yield tuple(text_of(rows[name][0].as_py()) for name in names), rest
            return
        groups = rows.select(names).append_column("#", pa.array(range(rows.num_rows), pa.int64()))
        found = groups.group_by(names, use_threads=False).aggregate([("#", "list")])
        keys = zip(*(map(text_of, found[name].to_pylist()) for name in names), strict=True)
        for key, places in zip(keys, found["#_list"].combine_chunks(), strict=True):
            yield key, rest.take(places.values)

    def _write(self) -> Iterator[tuple[str | None, File]]:
        """Write the rows that are kept; yield files that are closed, because too many would be open."""
        for key, tables in self._kept.items():
            part = self._open.pop(key, None)
            if part is None:
                if len(self._open) >= OPEN_FILES:
                    yield self._close(next(iter(self._open)))
                part = self._part(key, tables[0].schema)
            self._open[key] = part  # last, as the one that was used last
            part.add(pa.concat_tables(tables))
        self._kept.clear()

    def _part(self, key: tuple[str | None, ...], schema: pa.Schema) -> _Part:
        apart, values = self._apart(key), key[len(key) - len(self.partition) :]
        return _Part(self.places[apart], dict(zip(self.partition, values, strict=True)), schema)

    def _apart(self, key: tuple[str | None, ...]) -> str | None:
        return None if self.column is None else key[0]

    def _close(self, key: tuple[str | None, ...]) -> tuple[str | None, File]:
        return self._apart(key), self._open.pop(key).close()


# --- reading


def frame_of(
    spark: SparkSession, place: Place, files: Sequence[File], partition: Sequence[str], schema: StructType
) -> DataFrame:
    """Return the rows of files, read by tasks of Spark with Arrow."""
    from deltalake import Schema  # noqa: PLC0415  # not at workers that only write; Spark and Delta have one schema

    reading = _Reading(place, tuple(partition), pa.schema(Schema.from_json(schema.json()).to_arrow()))
    rows = [(file.path, list(file.partition)) for file in files]
    named = spark.createDataFrame(rows, "path string, partition array<string>")
    return named.repartition(max(1, len(files))).mapInArrow(reading, schema)


def merged(
    place: Place, files: Sequence[File], partition: Sequence[str], schema: pa.Schema, staged: Place
) -> list[File]:
    """Write the rows of files again below another place, with all columns of ``schema``; return the new files.

    Each partition gets one; few of them are open at once if the files are sorted by it. OSError, ArrowException.
    """
    reading = _Reading(place, tuple(partition), schema)
    rows = (batch for file in files for batch in reading.rows(file.path, file.partition))
    return [file for _, file in _Writing({None: staged}, None, tuple(partition)).files(rows)]


@dataclass
class _Reading:
    """What a task does: read files, whose names are its rows."""

    place: Place
    partition: tuple[str, ...]
    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for each in batch.to_pylist():
                yield from self.rows(each["path"], each["partition"])

    def rows(self, path: str, partition: Sequence[str | None]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file, whose partition has these texts."""
        values = dict(zip(self.partition, partition, strict=True))
        with (self.place / path).parquet() as file:
            there = [name for name in self.schema.names if name in file.names and name not in values]
            for batch in file.batches(there):
                yield from self._shaped(in_utc(pa.Table.from_batches([batch])), values).to_batches()

    def _shaped(self, rows: pa.Table, values: Mapping[str, str | None]) -> pa.Table:
        """Return rows with all columns of the schema, those of the partition among them."""
        columns = []
        for each in self.schema:
            if each.name in values:
                value = pa.scalar(values[each.name], pa.string()).cast(each.type)
                columns.append(pa.repeat(value, rows.num_rows))
            elif each.name in rows.column_names:
                columns.append(rows[each.name].cast(each.type))
            else:
                columns.append(pa.nulls(rows.num_rows, each.type))
        return pa.table(columns, schema=self.schema)
