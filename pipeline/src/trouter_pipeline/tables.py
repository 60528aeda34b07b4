"""Tables that are replaced by days: Delta tables below ``ROOT/tables``, divided by the column ``date``.

A version has whole days, and says which job made it, of which inputs. A job pins the version that it began with; if
another one was committed meanwhile, its own is refused, because it would be made of other inputs. Pruned days are never
replaced.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa

from trouter_pipeline.delta import BadTable, Folder, Version, columns_in
from trouter_pipeline.files import TableBusy
from trouter_pipeline.parquet import File, is_arrow, write
from trouter_pipeline.places import Place, Where
from trouter_pipeline.state import APPLICATION, CLEANED_EVERY, State, States

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: The columns of the partition.
BY_DAY: Final = ("date",)


class Commit(msgspec.Struct, omit_defaults=True):
    """What a version was made of: the inputs, and the job with its version and parameters."""

    job: str = ""
    job_version: int = 0
    #: The inputs with their checksums; for records the names of segments.
    inputs: dict[str, int] = {}
    parameters: dict[str, Any] = {}
    #: Pruned days with their tenants; such a day is never replaced.
    pruned: dict[str, list[str]] = {}
    #: The tables that were read, each with its version.
    read: dict[str, int] = {}

    def is_by(self, version: int, parameters: Mapping[str, object]) -> bool:
        """Return whether this version of the job with these parameters would make the same of the same inputs."""
        return self.job_version == version and self.parameters == dict(parameters)


class Table:
    """One table under the folder of a pipeline, at the version that was the last when it was first looked at."""

    def __init__(self, root: Where, name: str, at: int | datetime | None = None) -> None:
        """``at``: the version to read, by number or moment; None for the last."""
        self.name = name
        self.folder = Place.of(root) / f"tables/{name}"
        self._place = Folder(self.folder)
        self._states = States(self._place.path)
        self._at = at
        self._looked = False
        self._pinned: Version | None = None
        self._state: State | None = None
        self._commit: Commit | None = None

    def refresh(self) -> None:
        """Look at the last version from now on."""
        self._looked = False
        self._pinned = self._state = self._commit = None

    def version(self) -> Version | None:
        """Return the pinned version; None before the first commit. BadTable, OSError."""
        if not self._looked:
            self._pinned = self._place.version(self._at)
            self._looked = True
        return self._pinned

    def pinned(self) -> dict[str, int]:
        """Return the pinned version by the table's name, for the commit of what is made of it; BadTable, OSError."""
        version = self.version()
        return {} if version is None else {self.name: version.number}

    def last_commit(self) -> Commit | None:
        """Return what the pinned version was made of; None before the first commit. BadTable, OSError."""
        version = self.version()
        if version is None or (version.number == 0 and not version.files):  # created, and nothing is committed yet
            return None
        if self._commit is None:
            number = version.transaction(APPLICATION)
            if number is None:
                raise BadTable(f"{self.folder}: this table is not one of the pipeline: none of its versions is ours")
            self._state = self._states.read(number)
            try:
                self._commit = msgspec.convert(self._state.facts, Commit)
            except ValueError as error:
                raise BadTable(f"{self.folder}, version {version.number}: {error}") from None
            self._commit.inputs = self._states.inputs(self._state)
        return self._commit

    def require_own_rows(self) -> None:
        """Raise BadTable if another program has changed rows since the last commit of ours; OSError."""
        commit, version = self.last_commit(), self.version()
        if commit is None or version is None:
            return
        if found := self._place.changed_by_others(version):
            raise BadTable(
                f"{self.folder}: {found} changed rows, and what is left may be incomplete: compute them anew with "
                f"`trouter pipeline {commit.job} --again`"
            )

    def inputs(self) -> Mapping[str, int]:
        """Return the inputs of the rows with their checksums; {} before the first commit. BadTable, OSError."""
        commit = self.last_commit()
        return {} if commit is None else commit.inputs

    def files(self, dates: Iterable[date] | None = None) -> list[File]:
        """Return the files of all days or of ``dates``; none before the first commit. BadTable, OSError."""
        version = self.version()
        wanted = None if dates is None else {day.isoformat() for day in dates}
        files = () if version is None else version.files
        return [file for file in files if wanted is None or file.partition[0] in wanted]

    def dates(self) -> set[date]:
        """Return the days that have rows; none before the first commit. BadTable, OSError."""
        return {date.fromisoformat(day) for day in self.generations()}

    def generations(self) -> dict[str, int]:
        """Return the days that have rows, each with a number that changes with the day. BadTable, OSError."""
        days: dict[str, int] = {}
        for file in self.files():
            day = file.partition[0] or ""
            days[day] = zlib.crc32(file.path.encode(), days.get(day, 0))
        return days

    def read(self, spark: SparkSession, dates: Iterable[date] | None = None) -> DataFrame:
        """Return the rows of the pinned version, of all days or of ``dates``, with the column ``date``.

        BadTable before the first commit; OSError.
        """
        from trouter_pipeline import delta_reader  # noqa: PLC0415  # where Spark is in use

        return delta_reader.frame(spark, self._there(), self.files(dates))

    def rows(self, dates: Iterable[date] | None = None) -> pa.Table:
        """Return the same rows as `read`, without Spark; read a table that exceeds the memory by few days at a time.

        BadTable before the first commit, or if a file is damaged.
        """
        version = self._there()
        names = [name for name in version.schema.names if name not in BY_DAY]
        schema = pa.schema([*(version.schema.field(name) for name in names), version.schema.field("date")])
        parts = []
        for file in self.files(dates):
            found = version.rows(file)
            day = date.fromisoformat(file.partition[0] or "")
            found = found.append_column("date", pa.repeat(pa.scalar(day), found.num_rows))
            try:
                parts.append(found.select(schema.names).cast(schema))
            except (KeyError, pa.ArrowInvalid) as error:
                raise BadTable(f"{version.path(file)}: {error}") from None
        return pa.concat_tables([schema.empty_table(), *parts])

    def _there(self) -> Version:
        version = self.version()
        if version is None or self.last_commit() is None:
            raise BadTable(f"{self.folder}: this table is empty: no job has written it yet")
        return version

    def commit(
        self,
        frame: DataFrame | pa.Table,
        dates: Collection[date],
        *,
        inputs: Mapping[str, int],
        job: str,
        version: int,
        parameters: Mapping[str, object],
        read: Mapping[str, int] | None = None,
        frozen: Collection[date] = (),
        batch: tuple[str, int] | None = None,
        changes: Mapping[str, int | None] | None = None,
    ) -> Commit:
        """Replace these days by the rows of ``frame``, whose column ``date`` names the day of each.

        A day without rows becomes empty. Other days stay, also ``frozen`` and pruned ones that the frame has rows of.
        ``inputs`` are all inputs of the table from then on, ``read`` the versions of tables with them. ``frame`` is
        computed once. ``batch`` names the batch of a stream, which is committed once. ``changes`` are what
        distinguishes ``inputs`` from those of the pinned version, for a caller that knows it (see `changes_to`), which
        spares comparing them. BadTable for a row of another day, and Spark's errors, leave the table unchanged;
        TableBusy if it was changed since it was pinned, OSError.
        """
        columns = columns_in(frame)
        if "date" not in columns:
            raise BadTable(f"{self.name}: the rows have no column `date`")
        before = self.last_commit() or Commit()
        base = self.version() or self._created(columns)
        shut = {*before.pruned, *(day.isoformat() for day in frozen)}
        replaced = {day.isoformat() for day in dates} - shut
        commit = Commit(
            job=job,
            job_version=version,
            inputs=inputs if isinstance(inputs, dict) else dict(inputs),
            parameters=dict(parameters),
            pruned=before.pruned,
            read=dict(read or {}),
        )
        gone = [file for file in base.files if file.partition[0] in replaced]
        other = columns if columns != base.columns else None
        if other is not None and len(gone) != len(base.files):
            raise BadTable(f"{self.name}: some days have other columns, and are frozen or pruned: move the table away")
        with self._place.staged() as staged:
            placed = self._place.place(staged, write(_without(frame, shut), staged, BY_DAY))
            strange = {each.partition[0] or "null" for each in placed} - replaced
            if strange:
                self._place.discard(placed)
                raise BadTable(
                    f"{self.name}: there are rows of {', '.join(sorted(strange))}, which is not to be replaced"
                )
            self._put(base, placed, gone, commit, batch=batch, columns=other, changes=changes)
        return commit

    def _created(self, columns: Mapping[str, Any]) -> Version:
        """Create the table, unless another process was faster; TableBusy if that has committed already."""
        found = self._place.create(columns, BY_DAY)
        if found.number:
            raise TableBusy(f"{self.folder} was changed meanwhile, by version {found.number}: begin again")
        return found

    def put(self, add: Sequence[File], remove: Sequence[File], commit: Commit) -> None:
        """Add and remove files of the pinned version, as a new version; TableBusy, BadTable, OSError."""
        self._put(self._there(), add, remove, commit)

    def _put(
        self,
        base: Version,
        add: Sequence[File],
        remove: Sequence[File],
        commit: Commit,
        *,
        batch: tuple[str, int] | None = None,
        columns: Mapping[str, Any] | None = None,
        changes: Mapping[str, int | None] | None = None,
    ) -> None:
        known = base.transaction(APPLICATION)
        days = {file.partition for file in (*remove, *add)}

        def clash(later: Version) -> str:
            if later.transaction(APPLICATION) != known:
                return "another job committed; begin again"
            changed = {file.partition for file in {*base.files} ^ {*later.files}}
            changed = changed if columns is not None else changed & days  # other columns replace the whole table
            return f"it changed {', '.join(sorted(str(each[0]) for each in changed))}" if changed else ""

        shown = f"trouter {commit.job}, version {commit.job_version}" + (f", batch {batch[1]}" if batch else "")
        facts = msgspec.to_builtins(msgspec.structs.replace(commit, inputs={}))
        try:
            changes = self.changes_to(commit.inputs) if changes is None else changes
            state = APPLICATION, self._states.write(facts, self._state, changes)
        except (BadTable, OSError):
            self._place.discard(add)
            raise
        told = {**facts, "inputs": len(commit.inputs), "state": state[1]}
        told.pop("pruned", None)
        try:
            self._pinned = self._place.commit(
                base, add, remove, told, shown=shown, batch=batch, state=state, columns=columns, clash=clash
            )
        except TableBusy:
            with suppress(BadTable, OSError):
                self._states.discard(state[1], self._state)
            raise
        self._state = self._commit = None
        if self._pinned.number % CLEANED_EVERY == 0:
            self._states.clean(self._pinned.transaction(APPLICATION) or state[1])

    def changes_to(self, inputs: Mapping[str, int]) -> dict[str, int | None]:
        """Return what distinguishes these inputs from those of the pinned version; BadTable, OSError.

        The value is the checksum of an input that is new or has changed, None for one that is no input any more.
        """
        before = self.inputs()
        changes: dict[str, int | None] = {name: each for name, each in inputs.items() if before.get(name) != each}
        if len(before) + sum(name not in before for name in changes) > len(inputs):  # some are inputs no longer
            changes |= dict.fromkeys(before.keys() - inputs.keys())
        return changes

    @property
    def place(self) -> Folder:
        """The folder, for files that are placed in it."""
        return self._place


def _without(frame: Any, shut: Collection[str]) -> Any:
    """Return the rows of days that are not in ``shut``."""
    if not shut:
        return frame
    if not is_arrow(frame):
        days = ", ".join(f"DATE'{day}'" for day in sorted(shut))
        return frame.where(f"date IS NULL OR date NOT IN ({days})")
    import pyarrow.compute as pc  # noqa: PLC0415  # only where days are shut

    days_shut = pa.array([date.fromisoformat(day) for day in shut], pa.date32())
    return frame.filter(pc.invert(pc.is_in(frame["date"], days_shut)))
