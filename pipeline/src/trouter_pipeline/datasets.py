"""Records: one Delta table of every kind, made of segments by ``trouter pipeline compact``, and its columns.

    ROOT/records/record=K/date=D/*.parquet

The table is divided by the column ``record``, the kind, and by ``date``, the day (UTC) of ``t0`` if the kind has it,
otherwise of ``t``. A row has the envelope, which says where the record comes from, and the fields of its kind; the
columns of others are null, and are not in its file. All may be null except ``router``, ``boot`` and ``n``, which
together identify a record. What is known of segments, and which days were pruned, is in the same table, so that it
changes with the rows.
"""

from __future__ import annotations

import types
import uuid
from collections.abc import Iterable, Iterator
from datetime import date, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Union, get_args, get_origin

import msgspec

from trouter.records import KINDS, Record
from trouter_pipeline.delta import BadTable, Folder, Foreign, columns_in
from trouter_pipeline.parquet import File, folder_of
from trouter_pipeline.places import Place, Where

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

#: What the column ``record`` has for unknown kinds, whose lines are kept as written.
UNKNOWN: Final = "_unknown"
#: What the column ``record`` has for facts of segments, and for pruned days, beside the kinds.
SEGMENTS: Final = "_segments"
PRUNED: Final = "_pruned"
_OURS: Final = frozenset({SEGMENTS, PRUNED})
#: The columns of the partition.
BY_KIND: Final = ("record", "date")
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
    """A folder has no records, or some that this program does not support."""


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
    #: Why no row has its records: others have their numbers. "" for a segment whose records are rows.
    left_out: str = ""

    def days(self) -> set[date]:
        """Return ``dates`` as dates."""
        return {date.fromisoformat(day) for day in self.dates}


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


def arrow_schema_of(kind: str) -> pa.Schema:
    """Return the Arrow schema of a kind without ``date``, which is in the names of folders."""
    import pyarrow as pa  # noqa: PLC0415  # not where only the columns are asked for

    spelt = {
        "int": pa.int32(),
        "bigint": pa.int64(),
        "string": pa.string(),
        "boolean": pa.bool_(),
        "timestamp": pa.timestamp("us", "UTC"),
        "array<string>": pa.list_(pa.string()),
        "array<bigint>": pa.list_(pa.int64()),
        "map<string,string>": pa.map_(pa.string(), pa.string()),
        "map<string,bigint>": pa.map_(pa.string(), pa.int64()),
    }
    return pa.schema([(column.name, spelt[column.type]) for column in columns_of(kind)])


def table_columns() -> dict[str, Any]:
    """Return the columns of the table as Delta has them: those of every kind, and of the partition."""
    import pyarrow as pa  # noqa: PLC0415  # not where only the columns are asked for

    every = {field.name: field for kind in (*KINDS, UNKNOWN) for field in arrow_schema_of(kind)}
    partition = [pa.field("record", pa.string()), pa.field("date", pa.date32())]
    return columns_in(pa.schema([*every.values(), *partition]).empty_table())


def records_folder(root: Where) -> Place:
    return Place.of(root) / "records"


class Records:
    """The records under a root, at one version."""

    def __init__(self, root: Where, at: int | datetime | None = None) -> None:
        """``at``: the version to read, by number or moment; None for the last. BadTable, OSError."""
        self.folder = Folder(records_folder(root))
        self.version = self.folder.version(at)

    def require_own_rows(self) -> None:
        """Raise BadTable if another program has changed records since the last commit of ours; OSError."""
        if found := self.changed_by_others():
            raise BadTable(
                f"{self.folder.path}: {found} changed records, and what is made of them would be wrong: restore "
                f"version {found.ours} (RESTORE in Spark, `DeltaTable.restore` in Python), or take what is there for "
                "the records with `trouter pipeline compact --accept-changes`"
            )

    def changed_by_others(self) -> Foreign | None:
        """Return what another program did to the records since the last commit of ours; BadTable, OSError."""
        return None if self.version is None else self.folder.changed_by_others(self.version)

    def pinned(self) -> dict[str, int]:
        """Return the version by the table's name, for the commit of what is made of it."""
        return {} if self.version is None else {"records": self.version.number}

    @cached_property
    def kinds(self) -> dict[str, dict[str, list[File]]]:
        """The files by kind and day."""
        kinds: dict[str, dict[str, list[File]]] = {}
        for file in self._files():
            kind, day = file.partition
            if kind is not None and kind not in _OURS:
                kinds.setdefault(kind, {}).setdefault(day or "", []).append(file)
        return {kind: dict(sorted(days.items())) for kind, days in kinds.items()}

    @cached_property
    def segments(self) -> dict[str, SegmentFacts]:
        """The compacted segments by the name of the complete segment, compressed or not."""
        segments: dict[str, SegmentFacts] = {}
        for rows in self._rows(SEGMENTS):
            for name, text in zip(rows["seg"].to_pylist(), rows["json"].to_pylist(), strict=True):
                segments[name] = msgspec.json.decode(text, type=SegmentFacts)
        return segments

    @cached_property
    def pruned(self) -> dict[str, dict[str, list[str]]]:
        """The tenants of pruned rows by kind and day (see `pruned`); the facts of their segments stay."""
        pruned: dict[str, dict[str, list[str]]] = {}
        for rows in self._rows(PRUNED):
            for text in rows["json"].to_pylist():
                found = msgspec.json.decode(text, type=dict[str, dict[str, list[str]]])
                for kind, days in found.items():
                    known = pruned.setdefault(kind, {})
                    for day, whose in days.items():
                        known[day] = sorted({*known.get(day, ()), *whose})
        return pruned

    def files(self, kind: str, dates: Iterable[str] | None = None) -> list[File]:
        """Return the files of a kind, of all days or of ``dates`` (as 2026-03-01); none without rows."""
        wanted = None if dates is None else set(dates)
        days = self.kinds.get(kind, {})
        return [file for day, files in days.items() if wanted is None or day in wanted for file in files]

    def places(self, kind: str, dates: Iterable[str] | None = None) -> list[Place]:
        """Return where the files of a kind are."""
        return [self.folder.path / file.path for file in self.files(kind, dates)]

    def paths(self, kind: str, dates: Iterable[str] | None = None) -> list[str]:
        """Return the same as paths or URIs, for other programs."""
        return [str(place) for place in self.places(kind, dates)]

    def of(self, name: str) -> list[File]:
        """Return the files of our own, ``SEGMENTS`` or ``PRUNED``."""
        return [file for file in self._files() if file.partition[0] == name]

    def _files(self) -> tuple[File, ...]:
        if self.version is None:
            return ()
        if self.version.partition != BY_KIND:
            raise NoRecords(f"{self.folder.path}: this table is not one of records: it is not divided by {BY_KIND[0]}")
        return self.version.files

    def _rows(self, name: str) -> Iterator[Any]:
        for file in self.of(name):
            assert self.version is not None  # noqa: S101 - it has files
            yield self.version.rows(file, ("seg", "json"))


def dataset(spark: SparkSession, records: Records, kind: str, dates: Iterable[str] | None = None) -> DataFrame:
    """Return the rows of a kind, of all days or of ``dates`` (as 2026-03-01); an empty frame without rows."""
    schema, files = schema_of(kind), records.files(kind, dates)
    if records.version is None:
        return spark.createDataFrame([], schema)
    from trouter_pipeline import delta_reader  # noqa: PLC0415  # where Spark is in use

    return delta_reader.frame(spark, records.version, files, schema)


def arrow_dataset(records: Records, kind: str, copies: Path, dates: Iterable[str] | None = None) -> Any:
    """Return the same as an Arrow data set, which is read as far as a query needs it; FileNotFoundError, OSError.

    Files of an object store are copied into the folder ``copies`` first, once, because Arrow reads a data set in
    threads, and these may not read there (see `places.Parquet`).
    """
    import pyarrow as pa  # noqa: PLC0415  # not where only the columns are asked for
    from pyarrow import dataset as arrow  # noqa: PLC0415

    by_day = arrow.partitioning(pa.schema([("date", pa.date32())]), flavor="hive")
    schema = arrow_schema_of(kind).append(pa.field("date", pa.date32()))
    paths = [_on_this_machine(records, file, copies) for file in records.files(kind, dates)]
    return arrow.dataset(paths, schema, format="parquet", partitioning=by_day)


def _on_this_machine(records: Records, file: File, copies: Path) -> str:
    """Return the path of a file or of its copy; FileNotFoundError, OSError."""
    place = records.folder.path / file.path
    if place.is_local:
        return str(place)
    # a name of ours, because that of another writer may lead out of the folder
    copy = copies / folder_of({"date": file.partition[1]}) / uuid.uuid5(uuid.NAMESPACE_URL, str(place)).hex
    if not copy.exists():  # a file of a table never changes
        copy.parent.mkdir(parents=True, exist_ok=True)
        part = copy.with_suffix(".part")
        place.copy(part)
        part.rename(copy)
    return str(copy)
