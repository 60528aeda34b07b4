"""Data sets of records: one for each kind, made of segments by ``trouter pipeline compact``, and their columns.

    ROOT/records/_manifest.json                the names of all valid files; replaced by a rename
    ROOT/records/kind=K/date=D/RUN-I.parquet   rows of a kind; written once, never changed

Only files in the manifest count; others are of an interrupted run or have been replaced. A row has the envelope, which
says where the record comes from, and the fields of its kind. All may be null except ``router``, ``boot`` and ``n``,
which together identify a record. ``date`` is the day (UTC) of ``t0`` if the kind has it, otherwise of ``t``.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Union, get_args, get_origin

import msgspec

from trouter.records import KINDS, Record
from trouter_pipeline.manifests import read_manifest

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

#: The data set of unknown kinds, which keeps their lines as written.
UNKNOWN: Final = "_unknown"
MANIFEST: Final = "_manifest.json"
#: Versions of the manifest: the first, and the one after pruning, which older programs would undo.
VERSION: Final = 1
PRUNED_VERSION: Final = 2
#: Message of jobs before the first compaction.
NO_RECORDS: Final = "there are no records yet: run `trouter pipeline compact` first"


class Column(NamedTuple):
    """A column, and its type in Spark's spelling."""

    name: str
    type: str


#: The origin of a record. ``t_us`` is ``t`` as recorded: microseconds since 1970.
ENVELOPE: Final = (
    Column("v", "int"),
    Column("router", "string"),
    Column("boot", "bigint"),
    Column("seg", "string"),
    Column("n", "bigint"),
    Column("t", "timestamp"),
    Column("t_us", "bigint"),
)
_PLACED: Final = {column.name for column in ENVELOPE} - {"n", "t"}
_TYPES: Final[dict[Any, str]] = {
    int: "bigint",
    str: "string",
    bool: "boolean",
    list[str]: "array<string>",
    list[int]: "array<bigint>",
    dict[str, str]: "map<string,string>",
    dict[str, int]: "map<string,bigint>",
}


class NoRecords(Exception):
    """A folder has no data sets, or some that this program does not support."""


class SegmentFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """The facts of a compacted segment. ``gaps``: first and last number of each, and the times around it."""

    router: str
    boot: int
    first: int
    last: int
    count: int
    crc: int
    #: Checksum with the trailer, which identifies the file without reading it whole.
    whole: int = 0
    #: Times of the first and last record in microseconds, 0 for an empty segment.
    t_min: int = 0
    t_max: int = 0
    #: Days of its rows.
    dates: tuple[str, ...] = ()
    gaps: tuple[tuple[int, int, int, int], ...] = ()
    recovered: bool = False

    def days(self) -> set[date]:
        """Return ``dates`` as dates."""
        return {date.fromisoformat(day) for day in self.dates}


class Manifest(msgspec.Struct):
    """The files of all data sets by kind and day, relative to ``ROOT/records``, and their segments.

    ``segments`` are by the name of the complete segment, compressed or not.
    """

    version: int = VERSION
    kinds: dict[str, dict[str, list[str]]] = {}
    segments: dict[str, SegmentFacts] = {}
    #: By kind and pruned day (see `pruned`); the facts of their segments stay.
    pruned: dict[str, dict[str, list[str]]] = {}


def columns_of(kind: str) -> tuple[Column, ...]:
    """Return the columns of a kind without ``date``; ``UNKNOWN`` has the kind ``k`` and the line ``json``."""
    if kind == UNKNOWN:
        return (*ENVELOPE, Column("k", "string"), Column("json", "string"))
    fields = msgspec.structs.fields(KINDS[kind])
    own = tuple(Column(column_of(field.name), _type_of(field.type)) for field in fields if field.name not in {"n", "t"})
    return (*ENVELOPE, *own)


def column_of(field: str) -> str:
    """Return the column of a field: its name, or ``of_NAME`` if the envelope has that name."""
    return f"of_{field}" if field in _PLACED else field


def _type_of(shape: Any) -> str:
    """Return the type of a field, optional or not."""
    if get_origin(shape) in {types.UnionType, Union}:
        shape = next(part for part in get_args(shape) if part is not types.NoneType)
    return _TYPES[shape]


def day_field(kind: str) -> str:
    """Return the field whose day is the record's ``date``."""
    record: type[Record] | None = KINDS.get(kind)
    return "t0" if record is not None and "t0" in record.__struct_fields__ else "t"


def schema_of(kind: str) -> StructType:
    """Return the Spark schema of a kind; KeyError for an unknown one."""
    from pyspark.sql.types import DateType, StructField, StructType  # noqa: PLC0415  # Arrow's schema does not need it

    text = ", ".join(f"`{column.name}` {column.type}" for column in columns_of(kind))
    schema = StructType.fromDDL(text)
    assert isinstance(schema, StructType)  # noqa: S101 - several fields are nothing else
    return schema.add(StructField("date", DateType()))


def arrow_types() -> dict[str, pa.DataType]:
    """Return Arrow's type for each type in Spark's spelling."""
    import pyarrow as pa  # noqa: PLC0415  # not where only the manifest is read

    return {
        "int": pa.int32(),
        "bigint": pa.int64(),
        "double": pa.float64(),
        "string": pa.string(),
        "boolean": pa.bool_(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us", "UTC"),
        "array<string>": pa.list_(pa.string()),
        "array<bigint>": pa.list_(pa.int64()),
        "map<string,string>": pa.map_(pa.string(), pa.string()),
        "map<string,bigint>": pa.map_(pa.string(), pa.int64()),
    }


def arrow_schema_of(kind: str) -> pa.Schema:
    """Return the Arrow schema of a kind without ``date``, which is in the names of folders."""
    import pyarrow as pa  # noqa: PLC0415  # not where only the manifest is read

    spelt = arrow_types()
    return pa.schema([(column.name, spelt[column.type]) for column in columns_of(kind)])


def records_folder(root: Path) -> Path:
    return Path(root) / "records"


def manifest_of(root: Path) -> Manifest:
    """Return the manifest under ``root``, an empty one before the first compaction; NoRecords, OSError."""
    path = records_folder(root) / MANIFEST
    return read_manifest(path, Manifest, (VERSION, PRUNED_VERSION), "records", NoRecords) or Manifest()


def files_of(root: Path, kind: str, dates: Iterable[str] | None = None) -> list[str]:
    """Return the files of a kind, of all days or of ``dates`` (as 2026-03-01); [] without rows. NoRecords, OSError."""
    return _files(manifest_of(root).kinds.get(kind, {}), records_folder(root), dates)


def _files(days: Mapping[str, list[str]], folder: Path, dates: Iterable[str] | None) -> list[str]:
    wanted = None if dates is None else set(dates)
    return [
        str((folder / name).absolute())
        for day, names in sorted(days.items())
        if wanted is None or day in wanted
        for name in names
    ]


def dataset(spark: SparkSession, root: Path, kind: str, dates: Iterable[str] | None = None) -> DataFrame:
    """Return the rows of a kind by the present manifest, of all days or of ``dates``; an empty frame without rows.

    ``dates`` are texts like ``2026-03-01``. NoRecords, OSError.
    """
    schema = schema_of(kind)
    files = files_of(root, kind, dates)
    if not files:
        return spark.createDataFrame([], schema)
    base = str(records_folder(root).absolute() / f"kind={kind}")
    return spark.read.schema(schema).option("basePath", base).parquet(*files)


def arrow_dataset(root: Path, kind: str, dates: Iterable[str] | None = None) -> Any:
    """Return the same as an Arrow data set, which is read as far as a query needs it. NoRecords, OSError."""
    import pyarrow as pa  # noqa: PLC0415  # not where only the manifest is read
    from pyarrow import dataset as arrow  # noqa: PLC0415

    by_day = arrow.partitioning(pa.schema([("date", pa.date32())]), flavor="hive")
    schema = arrow_schema_of(kind).append(pa.field("date", pa.date32()))
    return arrow.dataset(files_of(root, kind, dates), schema, format="parquet", partitioning=by_day)
