"""Tables that are replaced a day at a time, and change all at once: by the rename of one manifest.

    ROOT/tables/NAME/_manifest.json            which generation of each day counts, and what it was made of
    ROOT/tables/NAME/data/date=D/gen=RUN/      the rows of a day as one run wrote them; never changed
    ROOT/tables/NAME/.staging/RUN/             what a run has not finished
    ROOT/tables/NAME/LOCK                      held by the one who commits

A reader takes the manifest first and then the files that it names. Whatever is killed at whatever moment, it names
whole generations: the old ones until the rename, the new ones from then on. What it no longer names is deleted by a
commit an hour later, for a reader may still be at it. All is on the disk before the manifest is.
"""

from __future__ import annotations

import fcntl
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

from trouter._disk import sync
from trouter.pipeline.datasets import arrow_types
from trouter.pipeline.manifests import read_manifest

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

MANIFEST: Final = "_manifest.json"
#: Stands in the manifest; and once rows were pruned, which a program that knows nothing of it would undo.
VERSION: Final = 1
PRUNED_VERSION: Final = 2
#: How many seconds files that no manifest names any more are kept for readers that are at them.
KEEP_S: Final = 3600
_LOCK: Final = "LOCK"


class TableBusy(Exception):
    """Another process commits to the same table."""


class BadTable(Exception):
    """A table is not what this program writes, or rows are not what the table is to hold."""


class Commit(msgspec.Struct, omit_defaults=True):
    """The manifest: which folder holds each day, of what it was made, by which version of which job, with what."""

    version: int = VERSION
    run: str = ""
    committed: str = ""
    job: str = ""
    job_version: int = 0
    #: The columns as Spark spells them, without ``date``.
    schema: str = ""
    #: By day, relative to the folder of the table.
    days: dict[str, str] = {}
    #: Whatever the rows were made of, with its checksum; for records the names of segments.
    inputs: dict[str, int] = {}
    parameters: dict[str, Any] = {}
    #: Days of which rows were pruned, and whose: such a day is never replaced.
    pruned: dict[str, list[str]] = {}

    def is_by(self, version: int, parameters: Mapping[str, object]) -> bool:
        """Whether this version of the job would make the same of the same, told this."""
        return self.job_version == version and self.parameters == dict(parameters)


class Table:
    """One table under the folder of a pipeline."""

    def __init__(self, root: Path, name: str) -> None:
        self.name = name
        self.folder = Path(root) / "tables" / name

    def manifest(self) -> Commit | None:
        """What was committed last; None if nothing was. BadTable, OSError."""
        return read_manifest(self.folder / MANIFEST, Commit, (VERSION, PRUNED_VERSION), "a table", BadTable)

    def inputs(self) -> Mapping[str, int]:
        """What the rows were made of, and the checksum of each; empty before the first commit. BadTable, OSError."""
        manifest = self.manifest()
        return {} if manifest is None else manifest.inputs

    def dates(self) -> set[date]:
        """The days that have rows; none before the first commit. BadTable, OSError."""
        manifest = self.manifest()
        return set() if manifest is None else {date.fromisoformat(day) for day in manifest.days}

    def read(self, spark: SparkSession, dates: Iterable[date] | None = None) -> DataFrame:
        """The rows as they were committed last, of some days only if so asked, with the column ``date``.

        BadTable if nothing was ever committed; OSError.
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
        """Return what `read` reads, without Spark; of a table that is too large for this process, ask for few days.

        BadTable if there is nothing, or a file is damaged.
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
        """Replace exactly these days by the rows of ``frame``, which says in a column ``date`` where each belongs.

        A day that has no rows has none from then on; other days stay as they are, and whatever the frame has of them so
        do ``frozen`` ones, and those of which rows were pruned. ``inputs`` is all that the table is
        made of from then on. ``frame`` is computed once. BadTable if there is a row of another day, and then, as with
        whatever Spark raises, all is as it was; TableBusy, OSError.
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
        """Replace the manifest, delete generations not named for ``keep_s`` seconds. The table is locked; OSError."""
        for path in {*before.days.values()} - {*manifest.days.values()}:
            os.utime(self.folder / path)  # from now on it is old
        replace(self.folder / MANIFEST, msgspec.json.encode(manifest))
        self._clear({*manifest.days.values()}, keep_s)

    def _place(self, staged: Path, run: str, wanted: Collection[str]) -> dict[str, str]:
        """Put the days of a finished run where they will be named; the folder of each. BadTable, OSError."""
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
        """Delete what killed runs left, and generations that the manifest does not name, once they are old."""
        old = time.time() - keep_s
        for path in (*self.folder.glob(".staging/*"), *self.folder.glob("data/date=*/gen=*")):
            if str(path.relative_to(self.folder)) not in named and _changed_s(path) <= old:
                shutil.rmtree(path, ignore_errors=True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the table alone; TableBusy, OSError."""
        make_folder(self.folder)
        with locked(self.folder / _LOCK):
            yield


def is_arrow(frame: Any) -> bool:
    """Return whether rows are Arrow's, else Spark's; neither is imported for it."""
    return type(frame).__module__.startswith("pyarrow.")


def columns_of(frame: Any) -> dict[str, str]:
    """Return the columns of rows of Spark or Arrow, and the type of each as Spark spells it."""
    if not is_arrow(frame):
        return {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    spelt = {kind: name for name, kind in arrow_types().items()}
    return {field.name: spelt[field.type] for field in frame.schema}


def write(frame: Any, folder: Path, shut: Collection[str]) -> None:
    """Write rows below ``folder``, in a folder for each day, but none of the days that are shut; OSError."""
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
    """Hold a file alone as long as this lasts; whatever ends the process frees it. TableBusy, OSError."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
            raise TableBusy(f"{path.parent} is written by process {holder or '?'} at this moment") from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
        yield
    finally:
        os.close(descriptor)


def replace(path: Path, octets: bytes) -> None:
    """Have ``path`` hold exactly this, or what it held before, whatever happens in between; OSError."""
    part = path.with_name(path.name + ".tmp")
    with part.open("wb") as file:
        file.write(octets)
        file.flush()
        os.fsync(file.fileno())
    part.rename(path)
    sync(path.parent)


def make_folder(path: Path) -> None:
    """Make a folder and those above it, each on the disk before what comes into it; OSError."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(exist_ok=True)
        sync(path.parent)
