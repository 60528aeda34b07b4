"""Delta tables: versions that a reader pins, files placed for them, and commits that notice other writers.

    FOLDER/_delta_log/N.json                 version N: the files that came and went, and what it was made of
    FOLDER/COLUMN=VALUE/.../*.parquet        data files, by the columns of the partition; never changed
    FOLDER/_staging/RUN/                     unfinished files of a run

A job, or Spark for it, writes files into the staging folder. `Folder.place` makes them durable and moves them to their
places, where no reader sees them, and `Folder.commit` makes them a version: it creates one file, which must not exist
yet. So a killed writer leaves the former version, and at most files that no version names. A commit that finds a
version it has not seen asks whether the two exclude each other; if not, it becomes the version after that one.
"""

from __future__ import annotations

import json
import shutil
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cached_property, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from trouter.records.disk import sync
from trouter_pipeline.files import TableBusy, locked, make_folder
from trouter_pipeline.parquet import File, frame_of, in_utc, is_arrow, is_in_its_folder, merged, text_of
from trouter_pipeline.places import Place, Unreached, Where
from trouter_pipeline.statistics import in_log, simple_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

LOG: Final = "_delta_log"
STAGING: Final = "_staging"
#: The key of our own metadata in a commit, and that of a text which every tool shows.
OURS: Final = "trouter"
SHOWN: Final = "userMetadata"
#: The key of a text that no other commit has.
MARK: Final = "trouterCommit"
#: Properties of a table: a checkpoint of the log every so many versions.
PROPERTIES: Final = {"delta.checkpointInterval": "20"}
#: The job that merges small files, in a commit.
OPTIMIZE: Final = "optimize"
#: Features that a reader of plain files may ignore.
_READABLE: Final = frozenset({"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"})
_LOCK: Final = "_LOCK"
#: The size of a small file, and how many of one partition are merged.
SMALL_BYTES: Final = 8 << 20
SMALL_FILES: Final = 16
#: How often a commit is tried again after other commits that it does not exclude.
_TRIES: Final = 20


class Foreign(NamedTuple):
    """What another program did to rows: the last version that is its own, and the last one of ours before it."""

    number: int
    operation: str
    ours: int

    def __str__(self) -> str:
        return f"version {self.number}, {self.operation} of another program"


class BadTable(Exception):
    """A table is damaged or unsupported, or rows do not fit it."""


class NoVersion(BadTable):
    """A table has no version of this number or moment."""


class Version:
    """One version of a table; it stays what it is while others write."""

    def __init__(self, folder: Place, table: DeltaTable) -> None:
        self.folder = folder
        self.number = table.version()
        self._table = table

    @property
    def schema_text(self) -> str:
        """The schema in JSON, as Delta and Spark write it."""
        return str(self._table.schema().to_json())

    @cached_property
    def columns(self) -> dict[str, Any]:
        """The columns and their types as JSON, with those of the partition."""
        return columns_of(self.schema_text)

    @cached_property
    def schema(self) -> pa.Schema:
        return pa.schema(self._table.schema().to_arrow())

    @cached_property
    def partition(self) -> tuple[str, ...]:
        """The columns of the partition."""
        return tuple(self._table.metadata().partition_columns)

    @property
    def description(self) -> str:
        return self._table.metadata().description or ""

    @cached_property
    def files(self) -> tuple[File, ...]:
        """The files of the version, sorted by their paths."""
        found = pa.table(self._table.get_add_actions())
        paths, rows, octets = (found[name].to_pylist() for name in ("path", "num_records", "size_bytes"))
        values = found["partition"].to_pylist() if self.partition else [{}] * len(paths)
        return tuple(
            sorted(
                File(unquote(path), tuple(text_of(each[name]) for name in self.partition), count or 0, size)
                for path, each, count, size in zip(paths, values, rows, octets, strict=True)
            )
        )

    def path(self, file: File) -> Place:
        """Return where a file is."""
        return self.folder / file.path

    def transaction(self, application: str) -> int | None:
        """Return the number of the last transaction of an application, which checkpoints keep; None without one."""
        return self._table.transaction_version(application)

    def last_batch(self, application: str) -> int:
        """Return the last batch that an application committed, -1 before its first."""
        found = self.transaction(application)
        return -1 if found is None else found

    def frame(self, spark: SparkSession, files: Sequence[File], schema: StructType | None = None) -> DataFrame:
        """Return the rows of these files in Spark, read by their list, with all columns or those of ``schema``."""
        from pyspark.sql import DataFrame  # noqa: PLC0415  # where Spark is in use
        from pyspark.sql.types import StructType  # noqa: PLC0415

        if schema is None:
            schema = StructType.fromJson(json.loads(self.schema_text))
        # Spark reads a file of this machine itself, unless another program wrote it and names folders otherwise.
        is_own = {file: self.folder.is_local and is_in_its_folder(self.partition, file) for file in files}
        frames = []
        if own := [file for file, mine in is_own.items() if mine]:
            reader = spark.read.schema(schema).option("basePath", str(self.folder))
            frames.append(reader.parquet(*(str(self.path(file)) for file in own)).select(*schema.names))
        if other := [file for file, mine in is_own.items() if not mine]:
            frames.append(frame_of(spark, self.folder, other, self.partition, schema))
        return reduce(DataFrame.unionByName, frames) if frames else spark.createDataFrame([], schema)

    def rows(self, file: File, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows of a file, without the columns of its partition; BadTable if it is damaged or gone."""
        path = self.path(file)
        try:
            with path.parquet() as opened:
                there = set(opened.names)
                found = opened.read(None if columns is None else [name for name in columns if name in there])
        except FileNotFoundError:
            raise BadTable(
                f"{path}: version {self.number} names this file, but it does not exist; it may have been vacuumed"
            ) from None
        except Unreached:
            raise
        except (OSError, pa.ArrowException) as error:
            raise BadTable(f"{path}: {error}") from None
        return in_utc(found)


class Folder:
    """The folder of a table, on this machine or in an object store."""

    def __init__(self, path: Where) -> None:
        self.path = Place.of(path).absolute()
        self._options = self.path.storage_options

    def version(self, at: int | datetime | None = None) -> Version | None:
        """Return a version: the last one, or that of a number or a moment. None without a table; BadTable, OSError."""
        try:
            with self.path.reached():
                table = DeltaTable(
                    str(self.path), version=at if isinstance(at, int) else None, storage_options=self._options
                )
                if isinstance(at, datetime):
                    table.load_as_version(at)
        except TableNotFoundError:
            return None
        except DeltaError as error:
            why = str(error).partition("\n")[0]
            if "not the same as the specified" in why or "Invalid table version" in why:
                last = self.version()
                there = "none" if last is None else last.number
                raise NoVersion(f"{self.path}: there is no version {at}; the last is {there}") from None
            if "found gap" in why:
                why = "a version is missing in the log: bring back its file, or begin a new table"
            raise BadTable(f"{self.path / LOG}: {why}") from None
        found = Version(self.path, table)
        self._require_readable(table)
        if isinstance(at, datetime) and self._written(found.number) > at:
            raise NoVersion(f"{self.path}: there was no version yet at {at.isoformat()}")
        return found

    def _written(self, number: int) -> datetime:
        """Return when a version was written."""
        stamps = [facts["timestamp"] for facts in _commits(self.path / f"{LOG}/{number:020}.json")]
        return datetime.fromtimestamp(stamps[0] / 1000, UTC) if stamps else datetime.min.replace(tzinfo=UTC)

    def _require_readable(self, table: DeltaTable) -> None:
        protocol = table.protocol()
        strange = set(protocol.reader_features or ()) - _READABLE
        if protocol.min_reader_version == 2:
            mode = table.metadata().configuration.get("delta.columnMapping.mode", "none")
            strange |= {"columnMapping"} if mode != "none" else set()
        if strange:
            raise BadTable(
                f"{self.path}: this table has {', '.join(sorted(strange))}, and this program reads tables without it"
            )

    def create(
        self,
        columns: Mapping[str, Any],
        partition: Sequence[str],
        *,
        description: str = "",
    ) -> Version:
        """Return the last version; create the table with these columns if there is none. BadTable, OSError."""
        found = self.version()
        if found is not None:
            return found
        if self.path.is_local:
            make_folder(Path(self.path))
        with suppress(CommitFailedError), self._faults():  # another process was first
            DeltaTable.create(
                str(self.path),
                storage_options=self._options,
                schema=Schema.from_json(schema_of(columns)),
                mode="ignore",
                partition_by=list(partition),
                description=description or None,
                configuration=dict(PROPERTIES),
                # else delta-rs begins again, and creates it once more, as the next version
                commit_properties=CommitProperties(max_commit_retries=0),
            )
        found = self.version()
        if found is None:
            raise BadTable(f"{self.path}: the new table is gone again")
        self._sync_log(found.number)
        return found

    def widen(self, version: Version, columns: Mapping[str, Any]) -> Version:
        """Add the columns that a table lacks; return its last version. BadTable if some have other types, OSError."""
        if other := [name for name, kind in version.columns.items() if columns.get(name, kind) != kind]:
            kinds = version.columns[other[0]], columns[other[0]]
            raise BadTable(f"{self.path}: the column {other[0]} is {kinds[0]}, not {kinds[1]}")
        lacking = {name: kind for name, kind in columns.items() if name not in version.columns}
        if not lacking:
            return version
        with self._faults():
            version._table.alter.add_columns(list(Schema.from_json(schema_of(lacking)).fields))
        found = self.last()
        self._sync_log(found.number)
        return found

    @contextmanager
    def staged(self) -> Iterator[Place]:
        """Give a place for the unfinished files of a run; delete what is left there at the end.

        In an object store it is the folder itself, because a file that no version names is seen by no reader, and
        nothing there can be renamed. What a killed run leaves, `vacuum` deletes.
        """
        if not self.path.is_local:
            yield self.path
            return
        make_folder(Path(self.path))
        place = self.path / f"{STAGING}/{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:8]}"
        try:
            yield place
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def place(self, staged: Place, files: Sequence[File]) -> list[File]:
        """Move files to their places, durably; OSError."""
        if not self.path.is_local:
            return list(files)
        folders = set()
        for each in files:
            path, place = Path(staged / each.path), Path(self.path / each.path)
            sync(path)
            make_folder(place.parent)
            path.rename(place)
            folders.add(place.parent)
        for folder in folders:
            sync(folder)
        return list(files)

    def commit(
        self,
        base: Version,
        add: Sequence[File],
        remove: Sequence[File],
        facts: Mapping[str, Any],
        *,
        shown: str,
        batch: tuple[str, int] | None = None,
        state: tuple[str, int] | None = None,
        columns: Mapping[str, Any] | None = None,
        clash: Callable[[Version], str] = lambda _: "",
        moved: bool = False,
    ) -> Version:
        """Add and remove files in one version; return it.

        ``facts`` are what it was made of, and ``shown`` says that in the history. ``batch`` is the number of an
        application's batch, which is committed once: if it is there already, nothing changes. ``state`` is a number
        that an application finds in the version, whatever it was before. ``columns`` replace those of ``base``, all of
        whose files must go then. ``clash`` says why a version that came after ``base``
        excludes this one, "" if it does not. With ``moved`` the files to add have the rows of those to remove, which
        programs that follow the table need not read again. TableBusy if it is excluded; BadTable, OSError. If it
        fails, the files to add are deleted.
        """
        adding, removing = _actions(base.partition, add, remove, columns or base.columns, changed=not moved)
        mark = uuid.uuid4().hex
        properties = CommitProperties(
            custom_metadata={OURS: dict(facts), SHOWN: shown, MARK: mark},
            max_commit_retries=0,
            app_transactions=[Transaction(*each) for each in (batch, state) if each is not None],
        )
        try:
            for _ in range(_TRIES):
                if batch is not None and base.last_batch(batch[0]) >= batch[1]:
                    self.discard(add)
                    return base
                with suppress(CommitFailedError), self._faults():
                    _write(base, adding, removing, columns, properties)
                    break
                later = self.last()
                if later.number == base.number:
                    raise BadTable(f"{self.path / LOG}: version {base.number + 1} cannot be written")
                if self._is_marked(base.number + 1, mark):  # it was written, and the answer was lost
                    break
                if why := clash(later):
                    raise TableBusy(f"{self.path} was changed meanwhile, by version {later.number}: {why}")
                base = later
            else:
                raise TableBusy(f"{self.path} is changed by others all the time: version {base.number} is not the last")
        except BaseException as error:
            # Without an answer of an object store the version may still come to be.
            if self.path.is_local or isinstance(error, (TableBusy, BadTable)):
                self.discard(add)
            raise
        self._sync_log(base.number + 1)
        return self.last()

    def _is_marked(self, number: int, mark: str) -> bool:
        """Return whether a version is the one of this commit."""
        return any(facts.get(MARK) == mark for facts in _commits(self.path / f"{LOG}/{number:020}.json"))

    def changed_by_others(self, version: Version) -> Foreign | None:
        """Return what another program did to the rows after the last commit of ours, up to ``version``.

        None if they are the same. Moving rows to other files, and deleting files that are not in use, changes no rows;
        a former version that was restored has its rows again. What the log no longer has is not looked at. BadTable,
        OSError.
        """
        later = []  # the versions after ours, the last one first
        ours = version.number
        while ours >= 0:
            actions = list(_actions_in(self.path / f"{LOG}/{ours:020}.json"))
            facts: dict[str, Any] = next((each["commitInfo"] for each in actions if "commitInfo" in each), {})
            job = told.get("job") if isinstance(told := facts.get(OURS), dict) else None
            if not actions or (OURS in facts and job != OPTIMIZE):
                break
            later.append((facts.get("operation", "a commit"), [*_changes_in(actions, moved=job == OPTIMIZE)]))
            ours -= 1
        changes: list[_Change] = []
        foreign = None
        for number, (operation, more) in enumerate(reversed(later), ours + 1):
            changes += more
            if not _left_of(changes):  # the files are those of our version again
                changes, foreign = [], None
            elif any(not each.moved for each in more):
                foreign = Foreign(number, operation, ours)
        return foreign if _left_of(each for each in changes if not each.moved) else None

    def last(self) -> Version:
        """Return the last version; BadTable if there is no table."""
        found = self.version()
        if found is None:
            raise BadTable(f"{self.path}: the table is gone")
        return found

    def discard(self, placed: Sequence[File]) -> None:
        """Delete files that were placed and not committed, as far as that is certain."""
        try:
            known = {file.path for file in self.last().files}
        except (BadTable, OSError):
            return
        for each in placed:
            if each.path not in known:
                with suppress(OSError):
                    (self.path / each.path).delete()

    def vacuum(self, keep_hours: int, *, really: bool) -> list[str]:
        """Delete files that no version of the last ``keep_hours`` hours has, if ``really``; return their paths.

        Versions that had them can no longer be read. BadTable, OSError.
        """
        version = self.last()
        with self._faults():
            found = version._table.vacuum(
                keep_hours,
                dry_run=not really,
                enforce_retention_duration=False,
                full=True,
                post_commithook_properties=PostCommitHookProperties(),
            )
        old = time.time() - keep_hours * 3600
        left = []
        if self.path.is_local:
            left = [path for path in Path(self.path, STAGING).glob("*") if _changed_s(path) <= old]
        if really:
            for path in left:
                shutil.rmtree(path, ignore_errors=True)
        return [*map(unquote, found), *(f"{STAGING}/{path.name}" for path in left)]

    def optimize(self) -> int:
        """Merge the small files of partitions that have many; return how many there were. TableBusy, BadTable, OSError.

        Not by `DeltaTable.optimize`, which commits files that the disk need not have yet, and with statistics that may
        hide rows (see `statistics`).
        """
        version = self.last()
        small = [file for file in version.files if file.octets < SMALL_BYTES]
        count = Counter(file.partition for file in small)
        old = sorted((file for file in small if count[file.partition] >= SMALL_FILES), key=lambda each: str(each[1]))
        if not old:
            return 0

        def clash(later: Version) -> str:
            return "" if {*later.files}.issuperset(old) else "files that are to be merged are gone; begin again"

        with self.staged() as staged:
            new = merged(self.path, old, version.partition, version.schema, staged)
            facts = {"job": OPTIMIZE, "files": len(old)}
            self.commit(version, self.place(staged, new), old, facts, shown="trouter optimize", clash=clash, moved=True)
        return len(old)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder for this process, so that another one on this file system says so early; TableBusy, OSError.

        What is committed does not depend on it, and in an object store there is no lock.
        """
        if not self.path.is_local:
            yield
            return
        make_folder(Path(self.path))
        with locked(Path(self.path, _LOCK)):
            yield

    @contextmanager
    def _faults(self) -> Iterator[None]:
        """Raise what goes wrong as BadTable, except for a failed commit."""
        try:
            with self.path.reached():
                yield
        except CommitFailedError:
            raise
        except DeltaError as error:
            raise BadTable(f"{self.path}: {str(error).partition(chr(10))[0]}") from None

    def _sync_log(self, number: int) -> None:
        """Have the disk hold on to a version; OSError."""
        if self.path.is_local:
            sync(Path(self.path, LOG, f"{number:020}.json"))
            sync(Path(self.path, LOG))


def _write(
    base: Version,
    adding: list[AddAction],
    removing: list[RemoveAction],
    columns: Mapping[str, Any] | None,
    properties: CommitProperties,
) -> None:
    """Write the version after ``base``, or fail if it exists; with ``columns`` all files of ``base`` go.

    CommitFailedError, DeltaError, OSError.
    """
    table, partition = base._table, list(base.partition)
    if columns is None:
        table.create_write_transaction(
            [*adding, *removing], "append", table.schema(), partition, commit_properties=properties
        )
    else:
        schema = Schema.from_json(schema_of(columns))
        table.create_write_transaction([*adding], "overwrite", schema, partition, commit_properties=properties)


def _actions(
    partition: Sequence[str],
    add: Sequence[File],
    remove: Sequence[File],
    columns: Mapping[str, Any],
    *,
    changed: bool,
) -> tuple[list[AddAction], list[RemoveAction]]:
    """Return what the log says of files that come and go from a table of these columns."""
    moment = int(time.time() * 1000)
    simple = [name for name in simple_columns(columns) if name not in partition]
    adding = [
        AddAction(
            each.path,
            each.octets,
            dict(zip(partition, each.partition, strict=True)),
            moment,
            data_change=changed,
            stats=in_log(each.statistics, each.rows, simple),
        )
        for each in add
    ]
    removing = [
        RemoveAction(each.path, changed, moment, each.octets, dict(zip(partition, each.partition, strict=True)))
        for each in remove
    ]
    return adding, removing


def columns_of(schema: str) -> dict[str, Any]:
    """Return the columns of a schema in JSON, each with its type, in which everything may be null."""
    return {field["name"]: _nullable(field["type"]) for field in json.loads(schema)["fields"]}


def columns_in(frame: Any) -> dict[str, Any]:
    """Return the columns of rows of Spark or Arrow."""
    if is_arrow(frame):
        return columns_of(Schema.from_arrow(frame.schema).to_json())
    return columns_of(frame.schema.json())


def schema_of(columns: Mapping[str, Any]) -> str:
    """Return the schema of columns as JSON."""
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in columns.items()]
    return json.dumps({"type": "struct", "fields": fields})


def _nullable(kind: Any) -> Any:
    """Return a type without anything that must not be null."""
    if not isinstance(kind, dict):
        return kind
    changed = {
        name: True if name in {"nullable", "containsNull", "valueContainsNull"} else _nullable(value)
        for name, value in kind.items()
    }
    if kind.get("type") == "struct":
        changed["fields"] = [{**_nullable(field), "metadata": {}} for field in kind["fields"]]
    return changed


class _Change(NamedTuple):
    """A file came or went; if rows only moved, others have its rows."""

    path: str
    came: bool
    moved: bool


def _changes_in(actions: Iterable[Mapping[str, Any]], *, moved: bool) -> Iterator[_Change]:
    """Yield the files that came and went with a version; ``moved`` if all its rows only moved, whatever it says."""
    for action in actions:
        for key, came in (("remove", False), ("add", True)):
            if key in action:
                yield _Change(action[key]["path"], came, moved or not action[key].get("dataChange"))


def _left_of(changes: Iterable[_Change]) -> dict[str, bool]:
    """Return the files that came or went, without those for which that was undone."""
    left: dict[str, bool] = {}
    for path, came, _ in changes:
        if left.get(path, came) != came:
            del left[path]
        else:
            left[path] = came
    return left


def _commits(path: Place) -> Iterator[dict[str, Any]]:
    """Yield what a version in the log says of its commit; nothing if it is empty or no longer there. BadTable."""
    return (action["commitInfo"] for action in _actions_in(path) if "commitInfo" in action)


def _actions_in(path: Place) -> Iterator[dict[str, Any]]:
    """Yield the actions of a version in the log; nothing if it is empty or no longer there. BadTable."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return
    for line in content.splitlines():
        try:
            yield json.loads(line)
        except ValueError as error:
            raise BadTable(f"{path}: this is not a version of a table: {error}") from None


def _changed_s(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return time.time()
