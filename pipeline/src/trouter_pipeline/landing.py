"""A Delta table that grows by the batches of a stream, divided by address and day, and one for its dead letters.

The tables ``NAME`` and ``NAME_dead`` below ``ROOT/tables`` belong to one checkpoint, which their descriptions name.
Each batch is a version of them with its number, so a batch that is repeated after a crash is known and changes nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from trouter_pipeline.checkpoints import NoCheckpoint, query_of
from trouter_pipeline.delta import Folder, Version, columns_in
from trouter_pipeline.parquet import File, write_apart
from trouter_pipeline.places import Place, Where

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: The column that separates dead letters; it is in no table.
DEAD: Final = "_dead"
DEAD_SUFFIX: Final = "_dead"
#: The columns of the partition.
BY_ADDRESS: Final = ("address", "date")
#: Parameters that say which rows a table has; they never change.
HOW: Final = ("merge", "sequence", "buckets")


class NotLanded(Exception):
    """Rows cannot be landed here; the text names the place and the cure."""


def require_name(name: str) -> None:
    """Raise NotLanded unless a table can have this name, which is that of a folder, too."""
    if not re.fullmatch(r"\w[\w.-]*", name):
        raise NotLanded(f"--name {name!r} is no name of a table: letters, digits, _, . and -")


class Identity(msgspec.Struct):
    """The description of a landed table: Spark's id of the checkpoint, and the parameters."""

    checkpoint: str
    parameters: dict[str, str]


class Part(NamedTuple):
    """The rows of one address in a batch."""

    address: str
    dead: bool


class Landing:
    """The tables NAME and NAME_dead of one stream; ``held`` locks them for landing."""

    def __init__(self, root: Where, name: str, *, merge_schema: bool = False) -> None:
        """``merge_schema``: add columns that the tables lack, and let rows lack some of theirs. NotLanded."""
        require_name(name)
        self.name = name
        self._merge_schema = merge_schema
        self.folder = Place.of(root) / f"tables/{name}"
        self.graves = Place.of(root) / f"tables/{name}{DEAD_SUFFIX}"
        self._places = {False: Folder(self.folder), True: Folder(self.graves)}
        self._versions: dict[bool, Version] = {}
        self._query = ""

    @contextmanager
    def held(self) -> Iterator[None]:
        """Lock the tables for this process; TableBusy, OSError."""
        with self._places[False].locked():
            yield

    def claim(self, checkpoint: Path, columns: Mapping[str, Any], parameters: Mapping[str, str]) -> None:
        """Bind the tables to a checkpoint and columns, or verify that they are; NotLanded, BadTable, OSError."""
        identity = identity_of(checkpoint, parameters)
        self._query = identity.checkpoint
        for dead, place in self._places.items():
            self._versions[dead] = bound(
                place, columns, BY_ADDRESS, identity, checkpoint, merge_schema=self._merge_schema
            )

    def identity(self) -> Identity | None:
        """Return the identity of the table; None before the first batch, or if it is no landed table. BadTable."""
        version = self._places[False].version()
        return None if version is None else _identity(version)

    def version(self, at: int | datetime | None = None) -> int:
        """Return the number of the version of ``at``, by default of the last; NotLanded, BadTable, OSError."""
        version = self._places[False].version(at)
        if version is None:
            raise NotLanded(f"{self.folder}: no message was landed here yet")
        return version.number

    def batches(self, at: int | None = None) -> dict[str, int]:
        """Return the number of the last landed batch by its checkpoint, as of a version; BadTable, OSError."""
        version = self._places[False].version(at)
        known = None if version is None else _identity(version)
        return {} if version is None or known is None else {known.checkpoint: version.last_batch(known.checkpoint)}

    def land(self, frame: DataFrame, batch: int) -> Counter[Part]:
        """Land a batch of the claimed tables unless it is there already; return the number of rows of each part.

        ``frame`` has the columns `address`, `date` and ``DEAD``, and is computed once. TableBusy, BadTable, OSError,
        and Spark's errors.
        """
        counts: Counter[Part] = Counter()
        if self._versions[False].last_batch(self._query) >= batch:
            return counts
        with self._places[False].staged() as good, self._places[True].staged() as bad:
            staged = {False: good, True: bad}
            written = write_apart(frame, DEAD, {str(dead): place for dead, place in staged.items()}, BY_ADDRESS)
            for dead in (True, False):  # the good rows last: they complete the batch
                placed = self._places[dead].place(staged[dead], written[str(dead)])
                for each in placed:
                    counts[Part(each.partition[0] or "", dead)] += each.rows
                if placed or not dead:
                    self._commit(placed, batch, dead)
        return counts

    def land_again(self, frame: DataFrame) -> Counter[str]:
        """Land rows that were dead letters, in a version of their own; return their number by address.

        NotLanded if the table has other columns, TableBusy, BadTable, OSError, and Spark's errors.
        """
        place = self._places[False]
        version = place.version()
        if version is None:
            raise NotLanded(f"{self.folder}: no message was landed here yet")
        version = _fitting(place, version, columns_of_rows(frame), merge_schema=self._merge_schema)
        with place.staged() as staged:
            written = write_apart(frame.drop(DEAD), None, {None: staged}, BY_ADDRESS)
            placed = place.place(staged, written[None])
        rows = _rows_of(placed)
        if placed:
            place.commit(version, placed, (), {"job": "land", "rows": dict(rows)}, shown="trouter land, dead letters")
        return rows

    def _commit(self, placed: list[File], batch: int, dead: bool) -> None:
        facts = {"job": "land", "checkpoint": self._query, "batch": batch, "rows": dict(_rows_of(placed))}
        self._versions[dead] = self._places[dead].commit(
            self._versions[dead],
            placed,
            (),
            facts,
            shown=f"trouter land, batch {batch}",
            batch=(self._query, batch),
        )


def _rows_of(placed: Sequence[File]) -> Counter[str]:
    """Return the number of rows in files by address."""
    rows: Counter[str] = Counter()
    for each in placed:
        rows[each.partition[0] or ""] += each.rows
    return rows


def landed(
    spark: SparkSession, root: Where, name: str, *, dead: bool = False, at: int | datetime | None = None
) -> DataFrame:
    """Return the rows of a landed table, or of its dead letters, of the last version or that of ``at``.

    NotLanded, BadTable, OSError.
    """
    landing = Landing(root, name)
    folder = landing.graves if dead else landing.folder
    version = Folder(folder).version(at)
    if version is None or _identity(version) is None:
        raise NotLanded(f"{landing.folder}: no message was landed here yet")
    from trouter_pipeline import delta_reader  # noqa: PLC0415  # where Spark is in use

    return delta_reader.frame(spark, version, version.files)


def identity_of(checkpoint: Path, parameters: Mapping[str, str]) -> Identity:
    """Return the identity that tables of a checkpoint and these parameters have; NotLanded without a checkpoint."""
    try:
        return Identity(query_of(checkpoint), dict(parameters))
    except NoCheckpoint as error:
        raise NotLanded(str(error)) from None


def bound(
    place: Folder,
    columns: Mapping[str, Any],
    partition: Sequence[str],
    identity: Identity,
    checkpoint: Path,
    *,
    merge_schema: bool,
) -> Version:
    """Return the last version of a table that belongs to a checkpoint; create it if there is none.

    NotLanded if it is another's table or rows of these columns do not fit it, BadTable, OSError.
    """
    version = place.create(columns, partition, description=msgspec.json.encode(identity).decode())
    known = _identity(version)
    if known is None:
        raise NotLanded(f"{place.path} is a table that was not landed here: give another --name")
    if known.checkpoint != identity.checkpoint:
        raise NotLanded(
            f"{place.path} was landed with another checkpoint than {checkpoint}, and with this one it would "
            "get its rows twice: give the former checkpoint, or another --name"
        )
    for name in HOW:
        was, now = known.parameters.get(name), identity.parameters.get(name)
        if was != now:
            raise NotLanded(
                f"{place.path} was landed {_option(name, was)}, and not {_option(name, now)}: give the former options, "
                "or another --name"
            )
    return _fitting(place, version, columns, merge_schema=merge_schema)


def _fitting(place: Folder, version: Version, columns: Mapping[str, Any], *, merge_schema: bool) -> Version:
    """Return the version of a table to which rows of these columns may be added; NotLanded, BadTable, OSError."""
    there = version.columns
    if other := {name: kind for name, kind in columns.items() if there.get(name, kind) != kind}:
        former = {name: there[name] for name in other}
        raise NotLanded(
            f"{place.path} has {_spelt(former)}, not {_spelt(other)}, and a column keeps its type: give the former "
            "type in --schema, give the new column another name with --merge-schema, or land under another --name"
        )
    if there.keys() == columns.keys():
        return version
    if not merge_schema:
        changes = [f"and the rows have {_spelt(new)}"] if (new := _without(columns, there)) else []
        changes += [f"and the rows lack {_spelt(gone)}"] if (gone := _without(there, columns)) else []
        raise NotLanded(
            f"{place.path} has the columns {_spelt(there)}, {' '.join(changes)}: give --merge-schema, with which new "
            "columns are added and missing ones are null, give the former schema, or land under another --name"
        )
    return place.widen(version, columns)


def _without(columns: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    return {name: kind for name, kind in columns.items() if name not in others}


def known_parameters(place: Folder) -> Mapping[str, str]:
    """Return the parameters of a landed table; none before the first batch, or if it is no landed table. BadTable."""
    version = place.version()
    known = None if version is None else _identity(version)
    return {} if known is None else known.parameters


def _option(name: str, value: str | None) -> str:
    return f"without --{name}" if value is None else f"with --{name} {value}"


def columns_of_rows(frame: DataFrame) -> dict[str, Any]:
    """Return the columns of a landed table by the rows of a batch."""
    return {name: kind for name, kind in columns_in(frame).items() if name != DEAD}


def _identity(version: Version) -> Identity | None:
    try:
        return msgspec.json.decode(version.description, type=Identity)
    except msgspec.DecodeError:
        return None


def _spelt(columns: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {kind if isinstance(kind, str) else kind['type']}" for name, kind in columns.items())
