"""Data sets of records: one of each kind, made of segments by ``trouter pipeline compact``, and how their rows look.

    ROOT/records/_manifest.json                what is there: the one truth, replaced by a rename
    ROOT/records/kind=K/date=D/RUN-I.parquet   rows of a kind; written once, never changed

Only files that the manifest names count; others are of a run that did not get to its end, or of one that has been
replaced. A row has the envelope, which says where it comes from, and the fields of its kind as they were recorded: all
may be null but ``router``, ``boot`` and ``n``, which together name a record. ``date`` is the day (UTC) of ``t0`` where
a kind has one, else of ``t``: what happened on a day is found under it.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Union, get_args, get_origin

import msgspec

from trouter.pipeline.manifests import read_manifest
from trouter.records import KINDS, Record

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

#: Where a kind goes that is not known here: its lines as they were written.
UNKNOWN: Final = "_unknown"
MANIFEST: Final = "_manifest.json"
#: Stands in the manifest; and once something was pruned, which a program that knows nothing of it would undo.
VERSION: Final = 1
PRUNED_VERSION: Final = 2
#: What jobs say where nothing was compacted yet.
NO_RECORDS: Final = "there are no records yet: run `trouter pipeline compact` first"


class Column(NamedTuple):
    """A column, and its type as Spark spells it."""

    name: str
    type: str


#: Where a record comes from. ``t_us`` is ``t`` as it was recorded: microseconds since 1970.
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
    """There is no data set under a folder, or one that this program does not understand."""


class SegmentFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known of a segment that was compacted. ``gaps``: numbers missing within it, and the times around them."""

    router: str
    boot: int
    first: int
    last: int
    count: int
    crc: int
    #: The checksum with the trailer, by which the file is known again without reading it.
    whole: int = 0
    #: Times of the first and the last record in microseconds, 0 where there is none.
    t_min: int = 0
    t_max: int = 0
    #: Days of which it has rows.
    dates: tuple[str, ...] = ()
    gaps: tuple[tuple[int, int, int, int], ...] = ()
    recovered: bool = False

    def days(self) -> set[date]:
        """``dates`` as such."""
        return {date.fromisoformat(day) for day in self.dates}


class Manifest(msgspec.Struct):
    """What data sets there are: their files by kind and day, relative to ``ROOT/records``, and what they were made of.

    ``segments`` by the name that a complete segment has, compressed or not.
    """

    version: int = VERSION
    kinds: dict[str, dict[str, list[str]]] = {}
    segments: dict[str, SegmentFacts] = {}
    #: By kind and day whose rows were pruned (`pruned`); the facts of their segments stay.
    pruned: dict[str, dict[str, list[str]]] = {}


def columns_of(kind: str) -> tuple[Column, ...]:
    """The columns of a kind in their order, without ``date``; ``UNKNOWN`` has the kind ``k`` and the line ``json``."""
    if kind == UNKNOWN:
        return (*ENVELOPE, Column("k", "string"), Column("json", "string"))
    fields = msgspec.structs.fields(KINDS[kind])
    own = tuple(Column(column_of(field.name), _type_of(field.type)) for field in fields if field.name not in {"n", "t"})
    return (*ENVELOPE, *own)


def column_of(field: str) -> str:
    """The column of a field, which is called as the field unless the envelope has that name: then ``of_boot``."""
    return f"of_{field}" if field in _PLACED else field


def _type_of(shape: Any) -> str:
    """The type of a field, whether or not it may be None."""
    if get_origin(shape) in {types.UnionType, Union}:
        shape = next(part for part in get_args(shape) if part is not types.NoneType)
    return _TYPES[shape]


def day_field(kind: str) -> str:
    """The field that says on which day a record counts."""
    record: type[Record] | None = KINDS.get(kind)
    return "t0" if record is not None and "t0" in record.__struct_fields__ else "t"


def schema_of(kind: str) -> StructType:
    """How the rows of a kind look in Spark; KeyError for what is no kind."""
    from pyspark.sql.types import DateType, StructField, StructType  # noqa: PLC0415  # the schema of Arrow needs none

    text = ", ".join(f"`{column.name}` {column.type}" for column in columns_of(kind))
    schema = StructType.fromDDL(text)
    assert isinstance(schema, StructType)  # noqa: S101 - several fields are nothing else
    return schema.add(StructField("date", DateType()))


def arrow_types() -> dict[str, pa.DataType]:
    """Return the type of Arrow for each type as Spark spells it."""
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
    """How the rows of a kind look in Arrow, without ``date``, which is in the names of folders."""
    import pyarrow as pa  # noqa: PLC0415  # not where only the manifest is read

    spelt = arrow_types()
    return pa.schema([(column.name, spelt[column.type]) for column in columns_of(kind)])


def records_folder(root: Path) -> Path:
    return Path(root) / "records"


def manifest_of(root: Path) -> Manifest:
    """The manifest under ``root``, an empty one where nothing was compacted yet; NoRecords, OSError."""
    path = records_folder(root) / MANIFEST
    return read_manifest(path, Manifest, (VERSION, PRUNED_VERSION), "records", NoRecords) or Manifest()


def files_of(root: Path, kind: str, dates: Iterable[str] | None = None) -> list[str]:
    """The files of a kind, of some days only if so asked; empty where it has no rows. NoRecords, OSError."""
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
    """The rows of a kind as the manifest says now, of some days only if so asked; without rows if there are none.

    ``dates``: as ``2026-03-01``. NoRecords, OSError.
    """
    schema = schema_of(kind)
    files = files_of(root, kind, dates)
    if not files:
        return spark.createDataFrame([], schema)
    base = str(records_folder(root).absolute() / f"kind={kind}")
    return spark.read.schema(schema).option("basePath", base).parquet(*files)


def arrow_dataset(root: Path, kind: str, dates: Iterable[str] | None = None) -> Any:
    """Return the same as a data set of Arrow, which is read as far as a query needs it. NoRecords, OSError."""
    import pyarrow as pa  # noqa: PLC0415  # not where only the manifest is read
    from pyarrow import dataset as arrow  # noqa: PLC0415

    by_day = arrow.partitioning(pa.schema([("date", pa.date32())]), flavor="hive")
    schema = arrow_schema_of(kind).append(pa.field("date", pa.date32()))
    return arrow.dataset(files_of(root, kind, dates), schema, format="parquet", partitioning=by_day)
