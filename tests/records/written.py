"""Write segments of records for tests, and read them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from trouter.records import LinkStalled, Record, RecordsDropped
from trouter.records.reader import RecordLine, SegmentReader
from trouter.records.segments import opened as opened_segment
from trouter.records.segments import segments_in
from trouter.records.stream import Taken
from trouter.records.writer import Bounds, Now, SegmentWriter

START = 1_700_000_000_000_000
SECOND = 1_000_000


def at(seconds: float) -> Now:
    return Now(START + int(seconds * SECOND), int(seconds * SECOND))


def records(count: int, first: int = 0) -> list[Record]:
    return [
        LinkStalled(conn=1, link=number, since=1, unsettled=0, state="start", addr="a" * 100, t=START + number)
        for number in range(first, first + count)
    ]


def taken(count: int, first: int = 0, **lost: int) -> Taken:
    return Taken(records(count, first), Counter({name.replace("_", "."): many for name, many in lost.items()}))


def lines_of(folder: Path) -> list[RecordLine]:
    found: list[RecordLine] = []
    for place in segments_in(folder):
        if place.rest != ".empty":
            with opened_segment(place.path) as file:
                found += SegmentReader(place.path, file, open_ended=place.rest == ".open").lines()
    return found


def links_of(folder: Path) -> list[int]:
    return [line.record.link for line in lines_of(folder) if isinstance(line.record, LinkStalled)]


def drops_of(folder: Path) -> list[RecordsDropped]:
    return [line.record for line in lines_of(folder) if isinstance(line.record, RecordsDropped)]


def opened(folder: Path, bounds: Bounds | None = None, seconds: float = 0, router: str = "QDR.A") -> SegmentWriter:
    writer = SegmentWriter(folder, router, bounds or Bounds())
    writer.open(at(seconds))
    return writer
