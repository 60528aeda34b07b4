"""Compaction: turns routers' segments into the table that ``datasets`` describes. It works with and without Spark.

Segments are verified by checksum, then converted in groups, in tasks of Spark or in other processes. Each group makes
one file for each kind and day, sorted by tenant. A damaged segment is reported and skipped. Known data are skipped too:
a segment by name and checksum, and records that overlap another segment by their content; a record with the same number
and other content is an error that names both segments, and leaves the later one out. Its facts are kept with the
reason, so that the hours of its records are known as not proved.

All becomes visible at once, as one version of the table, with the facts of the segments. A killed run changes nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from trouter.records.marks import write_mark
from trouter.records.reader import LAST_US, Corrupt
from trouter.records.segments import EMPTY, OPEN, SegmentPosition, file_label, segments_in
from trouter_pipeline.datasets import (
    BY_KIND,
    SEGMENTS,
    Records,
    SegmentFacts,
    column_of,
    day_field,
    records_folder,
    table_columns,
)
from trouter_pipeline.delta import Folder, Version
from trouter_pipeline.files import TableBusy
from trouter_pipeline.gaps import Boot, Gap, gaps_in
from trouter_pipeline.overlaps import Conflict, new_rows
from trouter_pipeline.parquet import File, write_part
from trouter_pipeline.places import Place, Where
from trouter_pipeline.proof import Proof, claimed, prove
from trouter_pipeline.rows import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Bytes of lines in a group: at most, and at least, if every core would not get two groups otherwise.
MAX_BYTES: Final = 64 << 20
MIN_BYTES: Final = 4 << 20
#: Number of small files of one kind and day that are merged, the size of a small file, and files in one merge.
MERGE_FILES: Final = 16
MERGE_BYTES: Final = 2 << 20
MAX_MERGED: Final = 64
_DAY_US: Final = 86_400_000_000

#: Runs a function on each item, and yields the results in order.
Runner = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]


class Group(NamedTuple):
    """Segments that become files together, and where these files go."""

    paths: tuple[str, ...]
    staged: Place


class Made(NamedTuple):
    """The result of a group: files of a kind and day each, facts by segment, errors and notes."""

    files: list[File]
    facts: list[tuple[str, SegmentFacts]]
    errors: list[str]
    notes: list[str]


@dataclass
class Summary:
    """The result of a run."""

    segments: int = 0
    records: int = 0
    #: Segments that were compacted before, or exist twice.
    known: int = 0
    #: Segments that are still being written.
    unfinished: int = 0
    errors: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    #: Days with new rows.
    dates: list[str] = field(default_factory=list)
    #: Segments beside which a mark was left.
    marked: int = 0


class _Found(NamedTuple):
    """A verified segment that is new."""

    name: str
    proof: Proof

    @property
    def boot(self) -> Boot:
        return self.proof.header.router, self.proof.header.boot

    @property
    def first(self) -> int:
        return self.proof.header.first

    @property
    def last(self) -> int:
        return self.proof.trailer.last

    @property
    def crc(self) -> int:
        return self.proof.trailer.crc


def here(work: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
    """Run the work in this process, one item after the other."""
    return map(work, items)


def in_processes(count: int) -> Runner:
    """Return a runner that uses up to ``count`` processes."""

    def run(work: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
        if len(items) < 2 or count < 2:
            yield from map(work, items)
            return
        with ProcessPoolExecutor(min(count, len(items)), mp_context=get_context("spawn")) as pool:
            yield from pool.map(work, items)

    return run


def in_tasks(spark: SparkSession) -> Runner:
    """Return a runner of Spark tasks, on machines that see the same folders under the same absolute names."""

    def run(work: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
        if not items:
            return
        tasks = spark.sparkContext.parallelize(items, len(items))
        for done in tasks.map(partial(_without_raising, work)).collect():
            if isinstance(done, OSError):
                raise done
            yield done

    return run


def _without_raising(work: Callable[[Any], Any], item: Any) -> Any:
    """Return the result, or an OSError: Spark would retry a task that raises it, and raise its own error."""
    try:
        return work(item)
    except OSError as error:
        return error


def compact(
    folders: Iterable[Path],
    root: Where,
    *,
    run: Runner = here,
    cores: int = 1,
    mark: bool = False,
    accept: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> Summary:
    """Add the new segments of the folders to the records under ``root``; return the result.

    What another program has changed in the records is an error, because a commit would hide it; with ``accept`` they
    are the records from then on.

    With ``mark`` every compacted segment gets a mark, which lets its router delete it first; an unwritable folder is
    reported. OSError, NoRecords, BadTable; TableBusy if another process compacts.
    """
    folders = list(folders)
    with Folder(records_folder(root)).locked():
        compaction = _Compaction(root, run, cores, progress)
        compaction.require_own_rows(accept=accept)
        summary = compaction.run(folders)
        if mark:
            compaction.mark()
        return summary


class _Compaction:
    def __init__(self, root: Where, run: Runner, cores: int, progress: Callable[[str], None]) -> None:
        self._root = root
        self._run = run
        self._cores = max(1, cores)
        self._progress = progress
        self._records = Records(root)
        #: What is known of segments, with what this run adds.
        self._segments = dict(self._records.segments)
        self._summary = Summary()
        #: The segments that were read, with the checksum of all their bytes.
        self._seen: dict[SegmentPosition, int] = {}
        #: Files to commit, where they were staged.
        self._files: list[File] = []

    def require_own_rows(self, *, accept: bool) -> None:
        """Raise BadTable if another program has changed records; with ``accept``, commit that they are as they are."""
        found, version = self._records.changed_by_others(), self._records.version
        if found is None or version is None:
            return
        if not accept:
            self._records.require_own_rows()
        facts = {"job": "compact", "accepted": found.number}
        self._records.folder.commit(version, [], [], facts, shown=f"trouter compact, accepts version {found.number}")
        self._summary.notes.append(f"{found} changed records, and is accepted")
        self._records = Records(self._root)

    def run(self, folders: Iterable[Path]) -> Summary:
        found = self._proved([place for each in folders for place in segments_in(each)])
        with self._records.folder.staged() as staged:
            plain, overlapping = self._apart(found)
            self._take(plain, staged)
            for each in overlapping:
                self._take_rest(each, staged)
            if found:
                self._commit(staged)
        records = Records(self._root)
        self._summary.gaps = gaps_in(records)
        pruned = {day for days in records.pruned.values() for day in days}
        if late := sorted(pruned.intersection(self._summary.dates)):
            self._summary.notes.append(
                f"there are new rows of {len(late)} days, from {late[0]} on, whose former rows were pruned: tables "
                "that are frozen on these days do not include them, and `trouter pipeline prune` deletes them"
            )
        return self._summary

    def mark(self) -> None:
        """Write a mark beside each segment that is durable in the records."""
        there = {(facts.router, facts.boot, facts.first, facts.whole) for facts in self._taken()}
        labelled = {(file_label(router), *rest) for router, *rest in there}
        failed: set[Path] = set()
        for place, whole in self._seen.items():
            folder = place.path.parent
            if folder in failed or (place.router, place.boot, place.first, whole) not in labelled:
                continue
            try:
                self._summary.marked += write_mark(folder, place.name, whole)
            except OSError as error:
                failed.add(folder)
                self._summary.notes.append(f"{folder}: cannot write marks beside the segments: {error.strerror}")

    # --- segments

    def _proved(self, places: Sequence[SegmentPosition]) -> list[_Found]:
        """Return the new segments, verified and in order."""
        complete = [place for place in places if place.rest not in {OPEN, EMPTY}]
        self._summary.unfinished = sum(place.rest == OPEN for place in places)
        new = [place for place in complete if not self._is_known(place)]
        self._progress(f"{len(new)} of {len(complete)} segments are new")
        found: dict[str, _Found] = {}
        proofs = self._run(_prove, [str(place.path) for place in new])
        for place, proof in zip(new, proofs, strict=True):
            if isinstance(proof, str):
                self._summary.errors.append(proof)
                continue
            self._seen[place] = proof.whole
            name = place.name
            for known in (found.get(name), self._segments.get(name)):
                if known is not None and (known.crc, known.last) != (proof.trailer.crc, proof.trailer.last):
                    name = f"{place.name}#{proof.trailer.crc:08x}"
            before = self._segments.get(name)
            if before is not None and before.left_out:
                self._summary.errors.append(f"{place.path}: {before.left_out}")
            elif name in found or before is not None:
                self._summary.known += 1
            else:
                found[name] = _Found(name, proof)
        self._summary.known += len(complete) - len(new)
        return sorted(found.values(), key=lambda each: (each.boot, each.first, -each.last))

    def _is_known(self, place: SegmentPosition) -> bool:
        """Return whether a segment was compacted before, by what can be seen without reading it whole."""
        facts = self._segments.get(place.name)
        try:
            known = facts is not None and not facts.left_out and claimed(place.path) == facts.whole
        except OSError:
            return False
        if known and facts is not None:
            self._seen[place] = facts.whole
        return known

    def _apart(self, found: Iterable[_Found]) -> tuple[list[_Found], list[_Found]]:
        """Return the segments that overlap no other, and those that do."""
        taken: dict[Boot, list[tuple[int, int]]] = {}
        for facts in self._taken():
            if facts.count:
                taken.setdefault((facts.router, facts.boot), []).append((facts.first, facts.last))
        ends = {boot: _ends(ranges) for boot, ranges in taken.items()}
        reached: dict[Boot, int] = {}
        plain: list[_Found] = []
        overlapping: list[_Found] = []
        for each in found:
            begins, lasts = ends.get(each.boot, ([], []))
            at = bisect_left(lasts, each.first)
            alone = each.first > reached.get(each.boot, -1) and (at == len(begins) or begins[at] > each.last)
            (plain if alone else overlapping).append(each)
            reached[each.boot] = max(reached.get(each.boot, -1), each.last)
        return plain, overlapping

    # --- rows

    def _take(self, plain: Sequence[_Found], staged: Place) -> None:
        """Make files of segments that overlap no other."""
        groups = self._groups(plain, staged)
        names = {str(each.proof.path): each.name for each in plain}
        for done, made in enumerate(self._run(_convert, groups), 1):
            self._files += made.files
            self._summary.errors += made.errors
            self._summary.notes += made.notes
            for path, facts in made.facts:
                self._count_in(names[path], facts)
            self._progress(f"{done} of {len(groups)} groups, {self._summary.records} records")

    def _groups(self, plain: Sequence[_Found], staged: Place) -> list[Group]:
        total = sum(each.proof.end for each in plain)
        maximum = min(MAX_BYTES, max(MIN_BYTES, total // (2 * self._cores)))
        groups: list[list[str]] = []
        size = maximum
        for each in plain:
            if size + each.proof.end > maximum:
                groups.append([])
                size = 0
            groups[-1].append(str(each.proof.path))
            size += each.proof.end
        return [Group(tuple(paths), staged) for paths in groups]

    def _take_rest(self, each: _Found, staged: Place) -> None:
        """Make a file of the records of a segment that are new."""
        try:
            rows = rows_of(each.proof.path)
            fresh, there = new_rows(rows, self._files_by_kind(staged))
        except Conflict as conflict:
            self._leave_out(each, conflict)
            return
        except (Corrupt, OSError) as error:
            self._summary.errors.append(_error_text(each.proof.path, error))
            return
        self._summary.notes += rows.notes
        if there:
            others = ", ".join(sorted(there)[:5])
            count = sum(there.values())
            self._summary.notes.append(f"{each.proof.path}: {count} records were there already, from {others}")
        days = {kind: by_day(kind, table) for kind, table in fresh.items()}
        self._files += _write({(kind, day): [t] for kind, by in days.items() for day, t in by.items()}, staged)
        dates = sorted({day for by in days.values() for day in by})
        facts = msgspec.structs.replace(rows.facts, dates=tuple(dates))
        self._count_in(each.name, facts, sum(table.num_rows for table in fresh.values()))

    def _leave_out(self, each: _Found, conflict: Conflict) -> None:
        """Report a segment whose numbers others have, and keep its facts."""
        why = str(conflict)
        self._summary.errors.append(f"{each.proof.path}: {why}")
        days = {day for kind, table in conflict.rows.tables.items() for day in by_day(kind, table)}
        facts = msgspec.structs.replace(conflict.rows.facts, dates=tuple(sorted(days)), left_out=why)
        self._segments[each.name] = facts

    def _taken(self) -> Iterator[SegmentFacts]:
        """Yield the facts of the segments whose records are rows."""
        return (facts for facts in self._segments.values() if not facts.left_out)

    def _count_in(self, name: str, facts: SegmentFacts, records: int | None = None) -> None:
        self._segments[name] = facts
        self._summary.segments += 1
        self._summary.records += facts.count if records is None else records
        self._summary.dates = sorted({*self._summary.dates, *facts.dates})

    def _files_by_kind(self, staged: Place) -> dict[str, list[Place]]:
        """Return all files, with the staged ones."""
        files = {kind: self._records.places(kind) for kind in self._records.kinds}
        for each in self._files:
            files.setdefault(each.partition[0] or "", []).append(staged / each.path)
        return files

    # --- the commit

    def _commit(self, staged: Place) -> None:
        folder = self._records.folder
        base = self._records.version or folder.create(table_columns(), BY_KIND)
        if self._records.version is None and base.number:
            raise TableBusy(f"{folder.path} was changed meanwhile: another process has compacted; begin again")
        base = folder.widen(base, table_columns())
        fresh = {name: facts for name, facts in self._segments.items() if name not in self._records.segments}
        replaced = [
            file
            for kind, day in sorted({(each.partition[0] or "", each.partition[1] or "") for each in self._files})
            for file in self._merge(kind, day, self._records.files(kind, {day}), staged)
        ]
        self._files.append(write_part(facts_table(fresh), staged, {"record": SEGMENTS, "date": None}))
        replaced += self._merge(SEGMENTS, None, self._records.of(SEGMENTS), staged)
        known = {*self._records.of(SEGMENTS)}

        def clash(later: Version) -> str:
            there = {*later.files}
            if {file for file in there if file.partition[0] == SEGMENTS} != known:
                return "another process has compacted; begin again"
            return "" if there.issuperset(replaced) else "files that are to be merged are gone; begin again"

        folder.commit(
            base,
            folder.place(staged, self._files),
            replaced,
            {"job": "compact", "segments": sorted(fresh), "records": self._summary.records},
            shown=f"trouter compact, {len(fresh)} segments",
            clash=clash,
        )

    def _merge(self, kind: str, day: str | None, files: Sequence[File], staged: Place) -> list[File]:
        """Merge the small files of a kind and day, if there are many; return the committed ones that were merged."""
        small = [file for file in files if file.octets < MERGE_BYTES][:MAX_MERGED]
        if len(small) < MERGE_FILES:
            return []
        assert self._records.version is not None  # noqa: S101 - it has files
        tables = [self._records.version.rows(file) for file in small]
        self._files.append(_write_sorted(kind, day, pa.concat_tables(tables), staged))
        return small


def facts_table(segments: Mapping[str, SegmentFacts]) -> pa.Table:
    """Return the rows for facts of segments."""
    return pa.table(
        {
            "router": pa.array([facts.router for facts in segments.values()], pa.string()),
            "boot": pa.array([facts.boot for facts in segments.values()], pa.int64()),
            "seg": pa.array(list(segments), pa.string()),
            "n": pa.array([facts.first for facts in segments.values()], pa.int64()),
            "json": pa.array([msgspec.json.encode(facts).decode() for facts in segments.values()], pa.string()),
        }
    )


def _ends(ranges: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """Return where runs of numbers begin and end, sorted; ranges that touch are one run."""
    begins: list[int] = []
    lasts: list[int] = []
    for first, last in sorted(ranges):
        if lasts and first <= lasts[-1] + 1:
            lasts[-1] = max(lasts[-1], last)
        else:
            begins.append(first)
            lasts.append(last)
    return begins, lasts


def _prove(path: str) -> Proof | str:
    """Return the proof of a segment, or the text of its fault."""
    try:
        return prove(Path(path))
    except (Corrupt, OSError) as error:
        return _error_text(Path(path), error)


def _error_text(path: Path, error: Exception) -> str:
    if isinstance(error, Corrupt):  # which names the path itself
        return str(error)
    return f"{path}: {error.strerror if isinstance(error, OSError) else error}"


def _convert(group: Group) -> Made:
    """Make files of some segments: one for each kind and day."""
    made = Made([], [], [], [])
    parts: dict[tuple[str, str], list[pa.Table]] = {}
    for path in group.paths:
        try:
            rows = rows_of(Path(path))
        except (Corrupt, OSError) as error:
            made.errors.append(_error_text(Path(path), error))
            continue
        dates = set()
        for kind, table in rows.tables.items():
            for day, part in by_day(kind, table).items():
                parts.setdefault((kind, day), []).append(part)
                dates.add(day)
        made.facts.append((path, msgspec.structs.replace(rows.facts, dates=tuple(sorted(dates)))))
        made.notes.extend(rows.notes)
    made.files.extend(_write(parts, group.staged))
    return made


def by_day(kind: str, table: pa.Table) -> dict[str, pa.Table]:
    """Return the rows by the day of their kind's time; by the day of recording if that is invalid."""
    times = table["t_us"]
    if (name := column_of(day_field(kind))) != "t":
        column = table[name]
        good = pc.and_(pc.greater_equal(column, 0), pc.less_equal(column, LAST_US))
        times = pc.if_else(pc.fill_null(good, False), column, times)
    days = pc.divide(times, _DAY_US)
    values = sorted(pc.unique(days).to_pylist())
    if len(values) == 1:
        return {_day(values[0]): table}
    return {_day(value): table.filter(pc.equal(days, value)) for value in values}


def _day(number: int) -> str:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=number)).date().isoformat()


def _write(parts: dict[tuple[str, str], list[pa.Table]], staged: Place) -> list[File]:
    """Write one file for each kind and day, sorted by tenant; return the files. OSError."""
    return [_write_sorted(kind, day, pa.concat_tables(tables), staged) for (kind, day), tables in sorted(parts.items())]


def _write_sorted(kind: str, day: str | None, table: pa.Table, staged: Place) -> File:
    """Write a file of a kind and day, sorted by tenant; return it. OSError."""
    order = [name for name in ("vhost", "router", "boot", "n") if name in table.column_names]
    rows = table.sort_by([(name, "ascending") for name in order])
    return write_part(rows, staged, {"record": kind, "date": day})
