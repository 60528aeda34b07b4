"""Segments of records as a stream in Spark, read from the folders in which routers keep them.

    spark.readStream.format("trouter-records").option("folders", json.dumps([...])).option("kinds", "sasl.outcome")

A row is a record as it was written, with its origin. Only complete segments are read, and verified by checksum, so a
record comes at most ``segmentSeconds`` after it was made. The offset is the number of the next record for each start of
each router, so that it stays exact when segments are compressed. Records that were deleted before they were read are an
error.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from trouter.records.reader import SegmentReader, last_number
from trouter.records.segments import EMPTY, OPEN, SegmentPosition, opened, segments_in
from trouter_pipeline.proof import there

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA: Final = "router string, boot bigint, n bigint, t_us bigint, k string, line string"
#: Separates the parts of a start's name in an offset.
_BETWEEN: Final = "~"


class RecordsGone(Exception):
    """Records were deleted before they were read."""


class RecordsDataSource(DataSource):
    """Makes readers; Spark makes this object more than once, so it holds only the options."""

    @classmethod
    def name(cls) -> str:
        return "trouter-records"

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802  # Spark's name
        folders = [Path(folder) for folder in json.loads(self.options["folders"])]
        kinds = self.options.get("kinds")
        return _Reader(folders, None if kinds is None else frozenset(kinds.split(",")))


class _Slice(InputPartition):
    """The records ``first`` to ``end`` - 1 of one segment."""

    def __init__(self, path: str, first: int, end: int) -> None:
        self.path = path
        self.first = first
        self.end = end


class _Segment(NamedTuple):
    """A complete segment and the number of its last record."""

    place: SegmentPosition
    last: int

    @property
    def start(self) -> str:
        """The router and its start; each log of a router has its own numbers of starts."""
        return f"{self.place.router}{_BETWEEN}{self.place.boot}"


class _Reader(DataSourceStreamReader):
    def __init__(self, folders: list[Path], kinds: frozenset[str] | None) -> None:
        self._folders = folders
        self._kinds = kinds
        #: The last record by segment, as of the last look.
        self._last: dict[str, int] = {}

    def initialOffset(self) -> dict[str, int]:  # noqa: N802  # Spark's names
        return {}

    def latestOffset(self) -> dict[str, int]:  # type: ignore[override]  # noqa: N802  # as all versions call it
        offset: dict[str, int] = {}
        for segment in self._segments():
            offset[segment.start] = max(offset.get(segment.start, 0), segment.last + 1)
        return offset

    def _segments(self) -> Iterator[_Segment]:
        """Yield the complete segments in order; RecordsGone for one whose end cannot be read, OSError."""
        known, self._last = self._last, {}
        for folder in self._folders:
            for place in segments_in(folder):
                if place.rest in {OPEN, EMPTY}:
                    continue
                last = known.get(place.name)
                if last is None:
                    last = last_number(_there(place.path))
                if last is None:
                    raise RecordsGone(f"{place.path}: no trailer can be read at its end; see `trouter records check`")
                self._last[place.name] = last
                yield _Segment(place, last)

    def partitions(self, start: Mapping[str, int], end: Mapping[str, int]) -> list[_Slice]:
        slices: list[_Slice] = []
        oldest: dict[str, int] = {}
        for segment in self._segments():
            oldest.setdefault(segment.start, segment.place.first)
            first, stop = max(start.get(segment.start, 0), segment.place.first), end.get(segment.start, 0)
            if first <= segment.last and first < stop:
                slices.append(_Slice(str(segment.place.path), first, min(segment.last + 1, stop)))
        for name, stop in end.items():
            first = start.get(name, 0)
            if name in start and first < stop and oldest.get(name, stop) > first:
                missing = f"{first} to {oldest.get(name, stop) - 1} of {name}"
                raise RecordsGone(
                    f"the records {missing} were deleted before they were read: let the router keep them for longer "
                    "(maxBytes, keepDays), and begin again with a new checkpoint"
                )
        return slices

    def read(self, partition: Any) -> Iterator[tuple[Any, ...]]:
        path = _there(Path(partition.path))
        with opened(path) as file:
            reader = SegmentReader(path, file)
            where = (reader.header.router, reader.header.boot)
            for line in reader.lines():
                if partition.first <= line.n < partition.end and (self._kinds is None or line.kind in self._kinds):
                    yield (*where, line.n, line.t, line.kind, line.octets.decode())

    def commit(self, end: Mapping[str, int]) -> None:
        """Do nothing: the router decides what is deleted."""

    def stop(self) -> None:
        """Do nothing: no resource is open."""


def _there(path: Path) -> Path:
    """Return the present path of a segment; RecordsGone if it is not visible here."""
    found = there(path)
    if not found.exists():
        raise RecordsGone(f"{path} is not there: it was deleted, or this machine does not see the folder")
    return found


def records(spark: SparkSession, folders: list[Path], kinds: list[str]) -> DataFrame:
    """Return a stream of the records of some kinds, present and future, in these folders; see ``SCHEMA``."""
    spark.dataSource.register(RecordsDataSource)
    whole = [str(folder.absolute()) for folder in folders]
    reader = spark.readStream.format("trouter-records").option("folders", json.dumps(whole))
    return reader.option("kinds", ",".join(kinds)).load()
