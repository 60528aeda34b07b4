"""Verifies segments: each by its trailer, and all of a folder by their numbers and by the manifests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from trouter.records.reader import Corrupt, SegmentReader
from trouter.records.schema import RecordsDropped
from trouter.records.segments import (
    EMPTY,
    MANIFEST,
    MAX_ENTRY_BYTES,
    OPEN,
    ManifestEntry,
    SegmentPosition,
    entry_lines,
    file_label,
    opened,
    place_of,
    segments_in,
)

_ENTRY: Final = msgspec.json.Decoder(ManifestEntry)


class CheckReport:
    """The result of a check: counts, errors, and notes that are no errors."""

    def __init__(self) -> None:
        self.segments = 0
        self.records = 0
        self.errors: list[str] = []
        self.notes: list[str] = []


class _Gap(NamedTuple):
    """Missing numbers, and where they should be."""

    first: int
    last: int
    path: Path
    offset: int


class _Stream:
    """The gaps of one boot of one router, and those that its records report."""

    def __init__(self) -> None:
        self.gaps: list[_Gap] = []
        self.reported: list[tuple[int, int]] = []


def check_file(path: Path) -> CheckReport:
    """Verify one segment; return the report; OSError."""
    checker = _Checker()
    checker.read(place_of(path) or SegmentPosition("", 0, 0, OPEN if path.name.endswith(OPEN) else "", path))
    checker.explain()
    return checker.report


def check_folder(folder: Path, advance: Callable[[int], object] = lambda _: None) -> CheckReport:
    """Verify every segment of a folder and that none is missing; OSError. Call `advance` with 1 for each segment."""
    checker = _Checker()
    places = segments_in(folder)
    for place in places:
        with checker.reporting(place.path):
            checker.read_next(place)
        advance(1)
    checker.explain()
    for path in sorted(folder.glob(f"*{MANIFEST}")):
        with checker.reporting(path):
            checker.compare(path, {place.name for place in places})
    return checker.report


class _Checker:
    def __init__(self) -> None:
        self.report = CheckReport()
        self._streams: dict[tuple[str, int], _Stream] = {}
        self._seen: dict[str, tuple[int, int, int, int]] = {}
        self._before: SegmentPosition | None = None
        self._expected = 0

    @contextmanager
    def reporting(self, path: Path) -> Iterator[None]:
        """Report a file that cannot be read as an error, and go on with the others."""
        try:
            yield
        except OSError as error:
            self.report.errors.append(f"{path}: cannot be read: {error.strerror or error}")

    def read_next(self, place: SegmentPosition) -> None:
        """Read the segment that follows the one before; its numbers should continue from there."""
        before = self._before
        if before is None or (before.router, before.boot) != (place.router, place.boot):
            self._expected = 0
        if place.rest == EMPTY:
            self.report.notes.append(f"{place.path}: is empty: the router has written nothing to it")
            return
        if place.first < self._expected and before is not None:
            self.report.errors.append(
                f"{place.path}: byte 0: overlaps {before.path}, which ends with record {self._expected - 1}"
            )
        elif place.first > self._expected:
            self._stream(place).gaps.append(_Gap(self._expected, place.first - 1, place.path, 0))
        self._before = place
        last = self.read(place)
        self._expected = place.first if last is None else last + 1

    def read(self, place: SegmentPosition) -> int | None:
        """Read one segment; return the number of its last record, None if it has no readable header."""
        path, stream = place.path, self._stream(place)
        self.report.segments += 1
        reader = None
        try:
            with opened(path) as file:
                reader = SegmentReader(path, file, open_ended=place.rest == OPEN)
                for line in reader.lines():
                    self.report.records += 1
                    if isinstance(line.record, RecordsDropped):
                        self._note_reported(reader.header.router, place, line.record)
        except Corrupt as corrupt:
            self.report.errors.append(str(corrupt))
        if reader is None:
            return None
        stream.gaps += [_Gap(first, last, path, offset) for first, last, offset in reader.gaps]
        if reader.trailer is None:
            if place.rest == OPEN:
                self.report.notes.append(f"{path}: is still being written, or was when the router ended")
        else:
            self._seen[place.name] = (reader.header.first, reader.last, reader.count, reader.trailer.crc)
            if reader.trailer.recovered:
                self.report.notes.append(f"{path}: was recovered: the router ended before it was complete")
        return reader.last

    def _stream(self, place: SegmentPosition) -> _Stream:
        return self._streams.setdefault((place.router, place.boot), _Stream())

    def _note_reported(self, router: str, place: SegmentPosition, dropped: RecordsDropped) -> None:
        """Note which numbers a record reports as missing."""
        boot = place.boot if dropped.boot is None else dropped.boot
        label = place.router and file_label(router)
        self._streams.setdefault((label, boot), _Stream()).reported.append((dropped.from_n, dropped.to_n))

    def explain(self) -> None:
        """Report gaps that no record explains as errors."""
        for stream in self._streams.values():
            reported = sorted(stream.reported)
            for gap in stream.gaps:
                if rest := _without((gap.first, gap.last), reported):
                    missing = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in rest)
                    self.report.errors.append(f"{gap.path}: byte {gap.offset}: records missing before it: {missing}")

    def compare(self, path: Path, present: Iterable[str]) -> None:
        """Compare the entries of a manifest with the segments that were read."""
        entries: dict[str, ManifestEntry] = {}
        offset = 0
        for line in entry_lines(path):
            try:
                entry = _ENTRY.decode(line)
                entries[entry.seg] = entry
            except ValueError as error:
                if len(line) == MAX_ENTRY_BYTES or line.endswith(b"\n"):  # a torn last line is no fault
                    self.report.errors.append(f"{path}: byte {offset}: this line cannot be read: {error}")
            offset += len(line)
        names = set(present)
        for name, entry in entries.items():
            if entry.state == "deleted":
                continue
            if name not in names:
                self.report.errors.append(f"{path}: lists {name}, which is not in the folder")
            elif name in self._seen and self._seen[name] != (entry.first, entry.last, entry.count, entry.crc):
                self.report.errors.append(f"{path}: lists {name} with other numbers or another checksum")


def _without(gap: tuple[int, int], reported: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the parts of a gap that are in none of the ranges ``reported``, which are sorted."""
    rest = []
    first, last = gap
    for begin, end in reported:
        if end < first:
            continue
        if begin > last:
            break
        if begin > first:
            rest.append((first, begin - 1))
        first = max(first, end + 1)
    if first <= last:
        rest.append((first, last))
    return rest
