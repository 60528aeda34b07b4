"""Tables that are replaced by days, and change as a whole: by the rename of one manifest.

    ROOT/tables/NAME/_manifest.json            the valid generation of each day, and the table's inputs
    ROOT/tables/NAME/data/date=D/gen=RUN/      the rows of a day as one run wrote them; never changed
    ROOT/tables/NAME/.staging/RUN/             unfinished files of a run
    ROOT/tables/NAME/LOCK                      locked by the committing process

A reader reads the manifest first and then the files that it names. After a crash at any moment it names whole
generations: the old ones until the rename, the new ones after it. A later commit deletes others after an hour, since a
reader may still use them. All files are durable before the manifest is.
"""

from __future__ import annotations

import os
import shutil
import time
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from trouter._disk import FileHeld, lock_file, place_file, sync
from trouter_pipeline.datasets import arrow_types
from trouter_pipeline.manifests import read_manifest

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

MANIFEST: Final = "_manifest.json"
#: Versions of the manifest: the first, and the one after pruning, which older programs would undo.
VERSION: Final = 1
PRUNED_VERSION: Final = 2
#: Seconds for which files that no manifest names are kept for readers.
KEEP_S: Final = 3600
_LOCK: Final = "LOCK"


class TableBusy(Exception):
    """Another process commits to the same table."""


class BadTable(Exception):
    """A table is damaged or unsupported, or rows do not fit it."""


class Commit(msgspec.Struct, omit_defaults=True):
    """The manifest: the folder of each day, the inputs, and the job with its version and parameters."""

    version: int = VERSION
    run: str = ""
    committed: str = ""
    job: str = ""
    job_version: int = 0
    #: The columns in Spark's spelling, without ``date``.
    schema: str = ""
    #: By day, relative to the folder of the table.
    days: dict[str, str] = {}
    #: The inputs with their checksums; for records the names of segments.
    inputs: dict[str, int] = {}
    parameters: dict[str, Any] = {}
    #: Pruned days with their tenants; such a day is never replaced.
    pruned: dict[str, list[str]] = {}

    def is_by(self, version: int, parameters: Mapping[str, object]) -> bool:
        """Return whether this version of the job with these parameters would make the same of the same inputs."""
        return self.job_version == version and self.parameters == dict(parameters)


class Table:
    """One table under the folder of a pipeline."""

    def __init__(self, root: Path, name: str) -> None:
        self.name = name
        self.folder = Path(root) / "tables" / name

    def manifest(self) -> Commit | None:
        """Return the last commit; None before the first. BadTable, OSError."""
        return read_manifest(self.folder / MANIFEST, Commit, (VERSION, PRUNED_VERSION), "a table", BadTable)

    def inputs(self) -> Mapping[str, int]:
        """Return the inputs of the rows with their checksums; {} before the first commit. BadTable, OSError."""
        manifest = self.manifest()
        return {} if manifest is None else manifest.inputs

    def dates(self) -> set[date]:
        """Return the days that have rows; none before the first commit. BadTable, OSError."""
        manifest = self.manifest()
        return set() if manifest is None else {date.fromisoformat(day) for day in manifest.days}

    def read(self, spark: SparkSession, dates: Iterable[date] | None = None) -> DataFrame:
        """Return the rows of the last commit, of all days or of ``dates``, with the column ``date``.

        BadTable before the first commit; OSError.
        """
        manifest = self.manifest()
        if manifest is None:
            raise BadTable(f"{self.folder}: this table is empty: no job has written it yet")
        schema = f"{manifest.schema}, `date` date"
        wanted = None if dates is None else {day.isoformat() for day in dates}
        folders = [path for day, path in sorted(manifest.days.items()) if wanted is None or day in wanted]
        if not folders:
            return spark.createDataFrame([], schema)
        whole = [str((self.folder / path).absolute()) for path in folders]
        base = str((self.folder / "data").absolute())
        found = spark.read.schema(schema).option("basePath", base).parquet(*whole)
        return found.drop("gen")

    def rows(self, dates: Iterable[date] | None = None) -> pa.Table:
        """Return the same rows as `read`, without Spark; read a table that exceeds the memory by few days at a time.

        BadTable before the first commit, or if a file is damaged.
        """
        import pyarrow as pa  # noqa: PLC0415  # not where only the manifest is read
        import pyarrow.parquet as pq  # noqa: PLC0415

        manifest = self.manifest()
        if manifest is None:
            raise BadTable(f"{self.folder}: this table is empty: no job has written it yet")
        spelt = arrow_types()
        columns = [column.rpartition(" ") for column in manifest.schema.split(", ")]
        schema = pa.schema([*((name.strip("`"), spelt[kind]) for name, _, kind in columns), ("date", spelt["date"])])
        wanted = manifest.days.keys() if dates is None else {day.isoformat() for day in dates}
        parts = []
        for day in sorted(wanted & manifest.days.keys()):
            for file in sorted((self.folder / manifest.days[day]).glob("*.parquet")):
                try:
                    found = pq.ParquetFile(file, coerce_int96_timestamp_unit="us").read()
                except pa.ArrowInvalid as error:
                    raise BadTable(f"{file}: {error}") from None
                found = found.append_column("date", pa.repeat(pa.scalar(date.fromisoformat(day)), found.num_rows))
                parts.append(found.cast(schema))
        return pa.concat_tables([schema.empty_table(), *parts])

    def commit(
        self,
        frame: DataFrame | pa.Table,
        dates: Collection[date],
        *,
        inputs: Mapping[str, int],
        job: str,
        version: int,
        parameters: Mapping[str, object],
        frozen: Collection[date] = (),
    ) -> Commit:
        """Replace these days by the rows of ``frame``, whose column ``date`` names the day of each.

        A day without rows becomes empty. Other days stay, also ``frozen`` and pruned ones that the frame has rows of.
        ``inputs`` are all inputs of the table from then on. ``frame`` is computed once. BadTable for a row of another
        day, and Spark's errors, leave the table unchanged; TableBusy, OSError.
        """
        columns = columns_of(frame)
        if columns.pop("date", None) is None:
            raise BadTable(f"{self.name}: the rows have no column `date`")
        schema = ", ".join(f"`{name}` {kind}" for name, kind in columns.items())
        with self.locked():
            before = self.manifest() or Commit()
            shut = {*before.pruned, *(day.isoformat() for day in frozen)}
            replaced = {day.isoformat() for day in dates} - shut
            run = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:8]}"
            staged = self.folder / ".staging" / run
            try:
                write(frame, staged, shut)
                days = self._place(staged, run, replaced)
            finally:
                shutil.rmtree(staged, ignore_errors=True)
            kept = {day: path for day, path in before.days.items() if day not in replaced}
            manifest = Commit(
                version=PRUNED_VERSION if before.pruned else VERSION,
                run=run,
                committed=datetime.now(UTC).isoformat(timespec="seconds"),
                job=job,
                job_version=version,
                schema=schema,
                days=dict(sorted({**kept, **days}.items())),
                inputs=dict(inputs),
                parameters=dict(parameters),
                pruned=before.pruned,
            )
            self.put(before, manifest)
            return manifest

    def put(self, before: Commit, manifest: Commit, keep_s: int = KEEP_S) -> None:
        """Replace the manifest; delete generations not named for ``keep_s`` seconds. The table is locked; OSError."""
        for path in {*before.days.values()} - {*manifest.days.values()}:
            os.utime(self.folder / path)  # the time from which it is unused
        replace(self.folder / MANIFEST, msgspec.json.encode(manifest))
        self._clear({*manifest.days.values()}, keep_s)

    def _place(self, staged: Path, run: str, wanted: Collection[str]) -> dict[str, str]:
        """Move the days of a finished run to their places; return the folder of each. BadTable, OSError."""
        found = {path.name.removeprefix("date="): path for path in staged.glob("date=*")}
        if strange := found.keys() - set(wanted):
            raise BadTable(f"{self.name}: there are rows of {', '.join(sorted(strange))}, which is not to be replaced")
        places = {}
        for day, path in found.items():
            for file in path.iterdir():
                sync(file)
            sync(path)
            place = self.folder / "data" / f"date={day}" / f"gen={run}"
            make_folder(place.parent)
            path.rename(place)
            sync(place.parent)
            places[day] = str(place.relative_to(self.folder))
        return places

    def _clear(self, named: Collection[str], keep_s: int) -> None:
        """Delete old remains of killed runs, and old generations that the manifest does not name."""
        old = time.time() - keep_s
        for path in (*self.folder.glob(".staging/*"), *self.folder.glob("data/date=*/gen=*")):
            if str(path.relative_to(self.folder)) not in named and _changed_s(path) <= old:
                shutil.rmtree(path, ignore_errors=True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the table for this process; TableBusy, OSError."""
        make_folder(self.folder)
        with locked(self.folder / _LOCK):
            yield


def is_arrow(frame: Any) -> bool:
    """Return whether rows are Arrow's and not Spark's, without importing either."""
    return type(frame).__module__.startswith("pyarrow.")


def columns_of(frame: Any) -> dict[str, str]:
    """Return the columns of rows of Spark or Arrow, with their types in Spark's spelling."""
    if not is_arrow(frame):
        return {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    spelt = {kind: name for name, kind in arrow_types().items()}
    return {field.name: spelt[field.type] for field in frame.schema}


def write(frame: Any, folder: Path, shut: Collection[str]) -> None:
    """Write rows below ``folder``, in a folder for each day, except for the days in ``shut``; OSError."""
    folder = folder.absolute()
    if not is_arrow(frame):
        if shut:
            days_shut = ", ".join(f"DATE'{day}'" for day in sorted(shut))
            frame = frame.where(f"date IS NULL OR date NOT IN ({days_shut})")
        frame.write.option("compression", "zstd").partitionBy("date").parquet(str(folder))
        return
    import pyarrow.compute as pc  # noqa: PLC0415  # not where only the manifest is read
    import pyarrow.parquet as pq  # noqa: PLC0415

    for day in pc.unique(frame["date"]).to_pylist():
        if str(day) not in shut:
            make_folder(folder / f"date={day}")
            rows = frame.filter(pc.equal(frame["date"], day)).drop_columns(["date"])
            pq.write_table(rows, folder / f"date={day}" / "part-0.parquet", compression="zstd")


def _changed_s(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return time.time()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lock a file for the block; the end of the process releases it. TableBusy, OSError."""
    try:
        descriptor = lock_file(path)
    except FileHeld as held:
        raise TableBusy(f"{path.parent} is written by process {held.holder or '?'} at this moment") from None
    try:
        yield
    finally:
        os.close(descriptor)


def replace(path: Path, octets: bytes) -> None:
    """Replace the contents of ``path`` atomically and durably; OSError."""
    place_file(path, octets, mode=0o666, part=path.with_name(path.name + ".tmp"))


def make_folder(path: Path) -> None:
    """Create a folder and its parents, each durable before its contents; OSError."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(exist_ok=True)
        sync(path.parent)
