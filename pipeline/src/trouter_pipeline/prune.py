"""Pruning: deletes rows of old days from the records and tables, of all tenants or of some.

Files are rewritten without those rows, and one version of the table makes that visible: a reader sees all of them or
none, also after a crash, and former versions still have them until they are vacuumed. Rows that later days need stay,
for every tenant: connections and links that had not ended, the last counts of each such link, and the kinds of records
in ``pruned.KEPT``. The facts of segments stay too, so that nothing looks like a gap. Days of tables made from deleted
rows are frozen, and rows are deleted only after existing tables were made from them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cached_property
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from trouter.records import KINDS
from trouter_pipeline.datasets import PRUNED, UNKNOWN, Records, columns_of
from trouter_pipeline.delta import Version
from trouter_pipeline.parquet import File, write_part
from trouter_pipeline.places import Place, Where
from trouter_pipeline.pruned import EVERYBODY, JOBS, KEPT, MADE_OF, TOGETHER, frozen_by
from trouter_pipeline.tables import Commit, Table

_START: Final = ("router", "boot")
_CONNECTION: Final = (*_START, "conn")
_LINK: Final = (*_START, "link")
#: Kinds whose rows later days may need, and the columns of their subjects.
_BEGINNINGS: Final = {"connection.opened": _CONNECTION, "link.attached": _LINK}
_ENDINGS: Final = {_CONNECTION: "connection.closed", _LINK: "link.detached"}
_COUNTS: Final = "delivery.interval"


class Refused(Exception):
    """Rows must not be pruned, or not yet; the text says which and why."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What to prune: rows before a day, of these tenants (all if none are named), in kinds and tables."""

    before: date
    tenants: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Going:
    """The rows to delete of one kind or table by day, and the number of rows of these days that stay."""

    what: str
    days: dict[str, int]
    kept: int
    octets: int

    @property
    def rows(self) -> int:
        return sum(self.days.values())


@dataclass
class Summary:
    """The rows to delete, or deleted if ``done``."""

    parts: list[Going] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    done: bool = False


def prunable(tenants: Collection[str]) -> tuple[str, ...]:
    """Return the kinds of records that may be pruned; for some tenants only, kinds that have a tenant."""
    kinds = (kind for kind in (*KINDS, UNKNOWN) if kind not in KEPT)
    return tuple(kind for kind in kinds if not tenants or _has_tenants(kind))


def _has_tenants(kind: str) -> bool:
    return any(column.name == "vhost" for column in columns_of(kind))


def prune(
    root: Where,
    scope: Scope,
    *,
    really: bool = False,
    at_once: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> Summary:
    """Return what would be deleted; delete it if ``really``.

    The former files stay until they are vacuumed, for readers of former versions, unless ``at_once``. Refused,
    NoRecords, BadTable, TableBusy, OSError.
    """
    _check(scope)
    there = Records(root)
    if there.version is None:
        raise Refused(f"{root}: there are no records; is this the folder of a pipeline?")
    with there.folder.locked():
        records = _Records(root, scope, progress)
        tables = [_Rows(root, name, scope) for name in scope.tables]
        summary = Summary([records.going(kind) for kind in scope.kinds] + [table.going for table in tables])
        summary.parts = [part for part in summary.parts if part.rows]
        summary.notes = records.objections(summary.parts, scope.tables)
        if really:
            for table in tables:
                table.commit()
                if at_once:
                    table.table.place.vacuum(0, really=True)
            records.commit()
            if at_once:
                there.folder.vacuum(0, really=True)
            summary.done = True
    return summary


def _check(scope: Scope) -> None:
    today = datetime.now(UTC).date()
    if scope.before > today:
        raise Refused(f"{scope.before} is not over: days before {today} may be pruned")
    for kind in scope.kinds:
        if kind in KEPT:
            raise Refused(f"{kind} is never pruned: {KEPT[kind]}")
        if kind not in {*KINDS, UNKNOWN}:
            raise Refused(f"{kind}: there is no such kind of records")
        if scope.tenants and not _has_tenants(kind):
            raise Refused(f"{kind} has no tenant: prune it for all tenants, or keep it")
        for pair in TOGETHER:
            if kind in pair and not set(pair) <= set(scope.kinds):
                raise Refused(
                    f"{pair[0]} and {pair[1]} must be pruned together: otherwise beginnings would have no ends"
                )


# --- records


class _Records:
    """The records under a root, whose lock is held."""

    def __init__(self, root: Where, scope: Scope, progress: Callable[[str], None]) -> None:
        self._root = root
        self._scope = scope
        self._progress = progress
        self._records = Records(root)
        self._records.require_own_rows()  # else the commit of a prune would hide what others changed
        self._going: dict[str, Going] = {}

    def going(self, kind: str) -> Going:
        """Count what is to be deleted of a kind."""
        days: dict[str, int] = {}
        kept = octets = 0
        for day, files in self._days(kind):
            self._progress(f"{kind}, {day}")
            gone = 0
            for file in files:
                keep = self._keep(kind, file)
                lost = len(keep) - (pc.sum(keep).as_py() or 0)
                if lost:
                    gone += lost
                    octets += file.octets
                kept += len(keep) - lost
            if gone:
                days[day] = gone
        going = self._going[kind] = Going(kind, days, kept, octets)
        return going

    def _days(self, kind: str) -> list[tuple[str, list[File]]]:
        """Return the days before the limit, and the files of each."""
        before = self._scope.before.isoformat()
        return [(day, files) for day, files in self._records.kinds.get(kind, {}).items() if day < before]

    def _rows(self, file: File, columns: Sequence[str] | None = None) -> pa.Table:
        assert self._records.version is not None  # noqa: S101 - it has files
        return self._records.version.rows(file, columns)

    def _keep(self, kind: str, file: File) -> pa.Array:
        """Return for each row of a file whether it stays."""
        wanted = {*_START, "vhost", "n"} if _has_tenants(kind) else {*_START, "n"}
        wanted |= {*_BEGINNINGS.get(kind, ()), *(_LINK if kind == _COUNTS else ())}
        rows = self._rows(file, sorted(wanted))
        keep = self._needed(kind, rows)
        if self._scope.tenants:
            theirs = pc.is_in(rows["vhost"], value_set=pa.array(self._scope.tenants, pa.string()))
            keep = pc.or_(keep, pc.invert(theirs))
        return keep.combine_chunks() if isinstance(keep, pa.ChunkedArray) else keep

    def _needed(self, kind: str, rows: pa.Table) -> pa.Array:
        """Return for each row whether later days need it."""
        if kind == _COUNTS:
            return pc.is_in(_name(rows, (*_LINK, "n")), value_set=self._last_counts)
        if kind in _BEGINNINGS:
            return pc.and_(self._goes_on(rows), pc.invert(self._ended(rows, _BEGINNINGS[kind])))
        return pa.array([False] * rows.num_rows, pa.bool_())

    def _goes_on(self, rows: pa.Table) -> pa.Array:
        """Return for each row whether its start of a router was not over by then."""
        return pc.invert(pc.is_in(_name(rows, _START), value_set=self._over))

    def _ended(self, rows: pa.Table, key: tuple[str, ...]) -> pa.Array:
        """Return for each row whether its connection or link has ended by then."""
        return pc.is_in(_name(rows, key), value_set=self._ends[key])

    @cached_property
    def _over(self) -> pa.Array:
        """Starts of routers that are over: a later one exists, and the last record is before the limit."""
        newest: dict[str, int] = {}
        until: dict[tuple[str, int], int] = {}
        for facts in self._records.segments.values():
            boot = facts.router, facts.boot
            newest[facts.router] = max(newest.get(facts.router, 0), facts.boot)
            until[boot] = max(until.get(boot, 0), facts.t_max)
        before = self._scope.before
        end_us = int(datetime(before.year, before.month, before.day, tzinfo=UTC).timestamp()) * 1_000_000
        over = [(router, boot) for (router, boot), last in until.items() if boot != newest[router] and last < end_us]
        return pa.array([f"{router}~{boot}" for router, boot in over], pa.string())

    @cached_property
    def _ends(self) -> dict[tuple[str, ...], pa.Array]:
        """Connections and links that ended before the limit."""
        ends: dict[tuple[str, ...], list[pa.Array]] = {_CONNECTION: [], _LINK: []}
        for key, kind in _ENDINGS.items():
            for rows in self._read(kind, key):
                ends[key].append(_name(rows, key))
        for rows in self._read(_COUNTS, (*_LINK, "final")):
            ends[_LINK].append(_name(rows.filter(pc.fill_null(rows["final"], False)), _LINK))
        return {key: pa.chunked_array(parts, pa.string()).unique() for key, parts in ends.items()}

    @cached_property
    def _last_counts(self) -> pa.Array:
        """The last record of counts of each link that goes on; later counts are compared with it."""
        parts = []
        for rows in self._read(_COUNTS, (*_LINK, "n")):
            going_on = pc.and_(self._goes_on(rows), pc.invert(self._ended(rows, _LINK)))
            parts.append(_latest(rows.filter(going_on)))
        return _name(_latest(pa.concat_tables(parts)), (*_LINK, "n")) if parts else pa.array([], pa.string())

    def _read(self, kind: str, columns: Sequence[str]) -> Iterator[pa.Table]:
        for _, files in self._days(kind):
            for file in files:
                yield self._rows(file, columns)

    def objections(self, parts: Sequence[Going], with_it: Collection[str]) -> list[str]:
        """Return notes for the operator; Refused, BadTable if existing tables do not include the rows (any more)."""
        notes = []
        gone = {part.what: {*part.days} for part in parts}
        for name, kinds in MADE_OF.items():
            frozen = {day.isoformat() for day in frozen_by(self._records, name)}
            days = {day for kind in kinds for day in gone.get(kind, ())} - frozen
            if not days:
                continue
            table = Table(self._root, name)
            commit = table.last_commit()
            if commit is None:
                notes.append(f"there is no table {name} yet, and a later one will not have these days: {_span(days)}")
                continue
            table.require_own_rows()  # what others deleted there could not be computed again
            if behind := self._not_in(commit, days):
                raise Refused(
                    f"the table {name} does not include {behind} segments of the days to prune: run `trouter pipeline "
                    f"{JOBS[name]} {self._root}` first"
                )
            notes.append(f"{name} keeps its rows of {_span(days)}; no job computes these days again")
        return notes

    def _not_in(self, commit: Commit, days: Collection[str]) -> int:
        """Return the number of segments with rows of these days that a table should include and does not."""
        closed = str(commit.parameters.get("closed_before") or "")
        return sum(
            facts.count > 0 and any(day in days for day in facts.dates) and commit.inputs.get(name) != facts.crc
            for name, facts in self._records.segments.items()
            if not closed or any(day >= closed for day in facts.dates)
        )

    def commit(self) -> None:
        """Write files anew without the rows, and commit them; TableBusy if others replaced the same files meanwhile."""
        version, folder = self._records.version, self._records.folder
        parts = [going for going in self._going.values() if going.days]
        if version is None or not parts:
            return
        whose = list(self._scope.tenants) or [EVERYBODY]
        pruned = {kind: dict(days) for kind, days in self._records.pruned.items()}
        gone, written = self._records.of(PRUNED), list[File]()
        with folder.staged() as staged:
            for going in parts:
                days = pruned.setdefault(going.what, {})
                for day in going.days:
                    self._progress(f"{going.what}, {day}: writing")
                    gone += self._rewrite(going.what, day, staged, written)
                    days[day] = sorted({*days.get(day, ()), *whose})
            told = pa.table({"json": [msgspec.json.encode(pruned).decode()]})
            written.append(write_part(told, staged, {"record": PRUNED, "date": None}))

            def clash(later: Version) -> str:
                return "" if {*later.files}.issuperset(gone) else "files that are to be replaced are gone; begin again"

            rows = {going.what: going.rows for going in parts}
            facts = {"job": "prune", "before": str(self._scope.before), "tenants": whose, "rows": rows}
            placed = folder.place(staged, written)
            folder.commit(version, placed, gone, facts, shown=f"trouter prune before {self._scope.before}", clash=clash)

    def _rewrite(self, kind: str, day: str, staged: Place, written: list[File]) -> list[File]:
        """Add new files with the remaining rows of a day to ``written``; return the files that they replace."""
        replaced = []
        for file in self._records.files(kind, {day}):
            keep = self._keep(kind, file)
            if pc.all(keep, min_count=0).as_py():
                continue
            replaced.append(file)
            rows = self._rows(file).filter(keep)
            if rows.num_rows:
                written.append(write_part(rows, staged, {"record": kind, "date": day}))
        return replaced


def _latest(rows: pa.Table) -> pa.Table:
    """Return the greatest number of each link."""
    return rows.group_by(list(_LINK)).aggregate([("n", "max")]).rename_columns([*_LINK, "n"])


def _name(rows: pa.Table, key: Sequence[str]) -> pa.Array:
    """Return one text for the columns of a key; numbers come last, so that names of routers cannot make two equal."""
    parts = [pc.cast(rows[name], pa.string()) for name in key]
    joined = pc.binary_join_element_wise(*parts, "~", null_handling="replace")
    return joined.combine_chunks() if isinstance(joined, pa.ChunkedArray) else joined


# --- tables


class _Rows:
    """One table that is replaced by days, at the version that was the last."""

    def __init__(self, root: Where, name: str, scope: Scope) -> None:
        self.table = Table(root, name)
        self.table.require_own_rows()  # else the commit of a prune would hide what others changed
        self._scope = scope
        commit, version = self.table.last_commit(), self.table.version()
        if commit is None or version is None:
            raise Refused(f"{self.table.folder}: there is no table that is replaced by days")
        self._before, self._version = commit, version
        if scope.tenants and "vhost" not in version.columns:
            raise Refused(f"the table {name} has no column vhost: prune it for all tenants, or keep it")
        before = scope.before.isoformat()
        self._files = [file for file in version.files if _day(file) < before]
        self.going = self._count()

    def _count(self) -> Going:
        days: Counter[str] = Counter()
        kept = octets = 0
        for file in self._files:
            stay = self._stay(self._version.rows(file, ["vhost"])).num_rows if self._scope.tenants else 0
            kept += stay
            if file.rows > stay:
                days[_day(file)] += file.rows - stay
                octets += file.octets
        return Going(f"table {self.table.name}", dict(days), kept, octets)

    def _stay(self, rows: pa.Table) -> pa.Table:
        """Return the rows that stay."""
        if not self._scope.tenants:
            return rows.slice(0, 0)
        return rows.filter(pc.invert(pc.is_in(rows["vhost"], value_set=pa.array(self._scope.tenants, pa.string()))))

    def commit(self) -> None:
        """Delete the rows; TableBusy if the table has changed since the count, BadTable, OSError."""
        pruned = dict(self._before.pruned)
        for day in self.going.days:
            pruned[day] = sorted({*pruned.get(day, ()), *(self._scope.tenants or (EVERYBODY,))})
        place, gone, written = self.table.place, list[File](), list[File]()
        with place.staged() as staged:
            for file in self._files:
                rows = self._stay(self._version.rows(file))
                if rows.num_rows == file.rows:
                    continue
                gone.append(file)
                if rows.num_rows:
                    written.append(write_part(rows, staged, {"date": _day(file)}))
            self.table.put(place.place(staged, written), gone, msgspec.structs.replace(self._before, pruned=pruned))


def _day(file: File) -> str:
    return file.partition[0] or ""


def _span(days: Collection[str]) -> str:
    first, last = min(days), max(days)
    return first if first == last else f"{len(days)} days from {first} to {last}"
