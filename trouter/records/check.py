"""Verifies segments: each by its trailer, and all of a folder by their numbers and by the manifests."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from trouter.records.anchors import Anchors, SegmentHead
from trouter.records.chain import Chain, Missing
from trouter.records.disk import is_locked
from trouter.records.holes import DELETED
from trouter.records.losses import RETENTION
from trouter.records.reader import Corrupt, SegmentReader
from trouter.records.runs import run_of
from trouter.records.schema import RecordsDropped
from trouter.records.sealed import SealGap, Seals
from trouter.records.segments import (
    EMPTY,
    MANIFEST,
    MAX_ENTRY_BYTES,
    OPEN,
    DeletedRun,
    ManifestEntry,
    Position,
    SegmentPosition,
    entry_lines,
    file_label,
    lock_name,
    opened,
    place_of,
    present,
    segments_in,
)

_ENTRY: Final = msgspec.json.Decoder(ManifestEntry)


class CheckReport:
    """The result of a check: counts, errors, and notes that are no errors.

    ``unproved`` are the records that may have been changed without an error: those of segments without a trailer.
    """

    def __init__(self) -> None:
        self.segments = 0
        self.records = 0
        self.unproved = 0
        self.errors: list[str] = []
        self.notes: list[str] = []


class _Gap(NamedTuple):
    """Missing numbers, and where they should be."""

    first: int
    last: int
    path: Path
    offset: int


class _Report(NamedTuple):
    """A record that reports missing numbers of a start; ``old`` if it is of deleted segments and does not name them."""

    numbers: tuple[int, int]
    run: DeletedRun | None
    old: bool


class _Stream:
    """The gaps of one boot of one router, what records report as missing, and which of these reports are proved."""

    def __init__(self) -> None:
        self.gaps: list[_Gap] = []
        self.reported: list[_Report] = []
        self.proved: list[_Report] = []


class _Origin(NamedTuple):
    """What reports say of the segments between a missing one and the one before it in the folder, or the beginning.

    ``unreported`` is the first, going back, that none of them names. If the reports are of an older version, they stand
    for everything before ``old``.
    """

    unreported: SegmentPosition | None = None
    old: Position | None = None


def check_file(path: Path) -> CheckReport:
    """Verify one segment; return the report; OSError."""
    checker = _Checker()
    checker.read(place_of(path) or SegmentPosition("", 0, 0, OPEN if path.name.endswith(OPEN) else "", path))
    checker.explain()
    return checker.report


def check_folder(
    folder: Path,
    advance: Callable[[int], object] = lambda _: None,
    key: bytes | None = None,
    heads: Iterable[SegmentHead] | None = None,
    announce: Callable[[str], object] = lambda _: None,
) -> CheckReport:
    """Verify every segment of a folder and that none is missing; OSError.

    Call `advance` with 1 for each segment, and ``announce`` with what takes more than a second. With the verification
    key ``key``, verify the seals too; compare ``heads`` that were received earlier.
    """
    places = segments_in(folder)
    checker = _Checker(places)
    if heads is not None:
        checker.anchors = Anchors(heads, checker.report.errors, checker.report.notes)
    if key is not None:
        checker.seals = Seals(folder, key, checker.report.errors, checker.report.notes, announce)
        places = segments_in(folder)  # none of them is older than the keys that were read
        checker.follow(places)
    for place in places:
        with checker.reporting(place.path):
            checker.read_next(present(place))
        advance(1)
    checker.explain()
    if checker.anchors is not None:
        checker.anchors.conclude(checker.is_deleted)
    if checker.seals is not None:
        checker.seals.conclude(time.time_ns() // 1000)
        checker.report.unproved = checker.seals.unproved
    for path in sorted(folder.glob(f"*{MANIFEST}")):
        with checker.reporting(path):
            checker.compare(path, places)
    return checker.report


class _Checker:
    def __init__(self, places: Iterable[SegmentPosition] = ()) -> None:
        self.report = CheckReport()
        self.seals: Seals | None = None
        self.anchors: Anchors | None = None
        #: Reports of missing numbers that no seal and no head covers yet, by router.
        self._unproved: dict[str, list[tuple[_Stream, _Report]]] = {}
        self._chain = Chain(places, self.report.errors, self.report.notes) if places else None
        self._streams: dict[tuple[str, int], _Stream] = {}
        self._seen: dict[str, tuple[int, int, int, int]] = {}
        self._corrupt: set[str] = set()
        self._before: SegmentPosition | None = None
        self._expected = 0

    def follow(self, places: Iterable[SegmentPosition]) -> None:
        """Verify the chain of these segments."""
        self._chain = Chain(places, self.report.errors, self.report.notes)

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
        reader, gap = None, False
        try:
            with opened(path) as file:
                reader = SegmentReader(path, file, open_ended=place.rest == OPEN)
                if self._chain is not None:
                    missing = len(self._chain.missing)
                    linked = self._chain.begin(place, reader.header)
                    gap = len(self._chain.missing) > missing
                    if self.seals is not None:
                        self.seals.begin(place, linked=linked)
                    if not linked:  # no later seal or head covers what was before
                        self._unproved.pop(place.router, None)
                for line in reader.lines():
                    self.report.records += 1
                    if isinstance(line.record, RecordsDropped):
                        self._note_reported(reader.header.router, place, line.record)
                    if self.anchors is not None and self.anchors.read(place, line.n, lambda: reader.sha):
                        self._prove_reports(place.router)
                    if self.seals is not None and self.seals.read(place, reader, line, gap=gap):
                        gap = False
                        self._prove_reports(place.router)
                if self.seals is not None and self.seals.end(place, reader, gap=gap):
                    self._prove_reports(place.router)
        except Corrupt as corrupt:
            self.report.errors.append(str(corrupt))
            self._corrupt.add(place.name)
        if reader is None:
            return None
        if self._chain is not None:
            hashed = reader.trailer is not None and bool(reader.trailer.sha)
            self._chain.end(place, "" if place.name in self._corrupt else reader.sha, reader.header, hashed=hashed)
        stream.gaps += [_Gap(first, last, path, offset) for first, last, offset in reader.gaps]
        if reader.trailer is None:
            self.report.unproved += reader.count
            if place.rest == OPEN:
                self.report.notes.append(f"{path}: {_why_open(place)}")
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
        stream = self._streams.setdefault((label, boot), _Stream())
        old = dropped.reason == RETENTION and dropped.to_seg is None
        report = _Report((dropped.from_n, dropped.to_n), run_of(dropped), old)
        stream.reported.append(report)
        self._unproved.setdefault(place.router, []).append((stream, report))

    def _prove_reports(self, router: str) -> None:
        """Note that a seal or a head covers the reports of missing numbers of the router that came before it."""
        for stream, report in self._unproved.pop(router, ()):
            stream.proved.append(report)

    def is_deleted(self, place: SegmentPosition, number: int) -> bool:
        """Return whether a report that a seal or a head covers has a record as deleted.

        Reports of older versions name no segments: they have the numbers of a start, and that of the segment before the
        oldest one stands for all starts before.
        """
        position = place.boot, place.first
        if any(run.includes(position) for run in self._runs(place.router, proved=True)):
            return True
        if any(each.old and _includes(each.numbers, number) for each in self._stream(place).proved):
            return True
        missing = None if self._chain is None else self._chain.before_oldest.get(place.router)
        old = None if missing is None else self._origin(missing, proved=True).old
        return old is not None and position < old

    def explain(self) -> None:
        """Report gaps that no record explains as errors, or none that a seal or head covers if seals are verified.

        Note the explained ones if seals are verified: who has the present key can seal a report of anything.
        """
        notes = [] if self.seals is None else self.report.notes
        for stream in self._streams.values():
            reported = sorted(each.numbers for each in self._believed(stream))
            for gap in stream.gaps:
                rest = _without((gap.first, gap.last), reported)
                if rest:
                    missing = f"records missing before it: {_ranges(rest)}"
                    self.report.errors.append(f"{gap.path}: byte {gap.offset}: {missing}")
                if explained := _without((gap.first, gap.last), rest):
                    notes.append(
                        f"{gap.path}: records missing before it, as a sealed one reports: {_ranges(explained)}"
                    )
        old = self._explain_segments(notes)
        if self.seals is not None:
            self._explain_seals(self.seals.gaps, old)

    def _explain_segments(self, notes: list[str]) -> set[Path]:
        """Report missing segments that no report names as errors.

        Return the segments before which some are missing by a report of an older version, which does not name them all.
        """
        old = set()
        for missing in () if self._chain is None else self._chain.missing:
            path, gone, _ = missing
            origin = self._origin(missing, proved=self.seals is not None)
            if origin.unreported is not None and origin.unreported.name == gone.name:
                self.report.errors.append(f"{path}: byte 0: follows {gone.name}, which is missing")
            elif origin.unreported is not None:
                self.report.errors.append(
                    f"{path}: byte 0: follows {gone.name}, which was deleted as reported, and before that "
                    f"{origin.unreported.name}, which is missing"
                )
            elif origin.old is not None:
                old.add(path)
                self.report.notes.append(
                    f"{path}: follows {gone.name}, which is missing, as a record reports; an older version deleted "
                    "segments before it, and no record names these"
                )
            else:
                notes.append(f"{path}: follows {gone.name}, which is missing, as a sealed record reports")
        return old

    def _explain_seals(self, gaps: Iterable[SealGap], old: set[Path]) -> None:
        """Report missing seals that no report of deleted segments names as errors, and note the others."""
        for gap in gaps:
            reported = sorted(
                (run.from_seal, run.to_seal)
                for run in self._runs(gap.place.router, proved=True)
                if run.from_seal is not None and run.to_seal is not None
            )
            rest = _without((gap.first, gap.last), reported)
            if rest and not (gap.segment_missing and gap.place.path in old):
                self.report.errors.append(f"{gap.where}: seals missing before it: {_ranges(rest)}")
            else:
                self.report.notes.append(f"{gap.where}: seals missing before it: {_ranges([(gap.first, gap.last)])}")

    def _origin(self, missing: Missing, *, proved: bool) -> _Origin:
        """Follow the reports of deleted segments back from a missing segment to the one that was read before it."""
        gone, before = missing.place, missing.before
        runs = self._runs(gone.router, proved=proved)
        while True:
            found = [run for run in runs if run.includes((gone.boot, gone.first))]
            if before is not None and any(
                run.after == before.name or run.includes((before.boot, before.first)) for run in found
            ):
                return _Origin()
            if not found:
                stream = self._stream(gone)
                old = [each.numbers for each in (stream.proved if proved else stream.reported) if each.old]
                return _Origin(old=(gone.boot, 0)) if _has_begin(old, gone) else _Origin(unreported=gone)
            run = min(found, key=lambda run: run.begin)
            if run.after is None:
                return _Origin(old=run.begin)
            if not run.after:
                return _Origin() if before is None else _Origin(unreported=gone)
            earlier = place_of(gone.path.with_name(run.after))
            assert earlier is not None  # noqa: S101 - the run is valid
            gone = earlier

    def _runs(self, router: str, *, proved: bool) -> list[DeletedRun]:
        """Return the runs that records of a router report; ``proved``: that a seal or a head covers, too."""
        streams = (stream for (label, _), stream in self._streams.items() if label == router)
        reports = (each for stream in streams for each in (stream.proved if proved else stream.reported))
        return [each.run for each in reports if each.run is not None]

    def _believed(self, stream: _Stream) -> list[_Report]:
        """Return the reports of missing numbers; with seals only those that are proved."""
        return stream.reported if self.seals is None else stream.proved

    def compare(self, path: Path, places: Iterable[SegmentPosition]) -> None:
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
        paths = {place.name: place.path for place in places}
        for name, entry in entries.items():
            if entry.state == DELETED:
                if self._is_unreported(path, name):
                    self.report.errors.append(f"{path}: lists {name} as deleted, and no record reports that")
            elif name not in paths:
                if self._is_reported(place_of(path.with_name(name))):
                    continue  # the router was killed before it noted its deletion here, or the disk was full
                self.report.errors.append(f"{path}: lists {name}, which is not in the folder")
            elif name not in self._seen:
                if name not in self._corrupt and paths[name].exists():  # otherwise it was completed meanwhile
                    self.report.errors.append(
                        f"{path}: lists {name} as complete, and {paths[name].name} has no valid trailer"
                    )
            elif self._seen[name] != (entry.first, entry.last, entry.count, entry.crc):
                self.report.errors.append(f"{path}: lists {name} with other numbers or another checksum")

    def _is_unreported(self, manifest: Path, name: str) -> bool:
        """Return whether no record reports a deletion, though the router has stopped and names what it deletes."""
        place = place_of(manifest.with_name(name))
        if place is None:
            return True
        streams = [stream for (label, _), stream in self._streams.items() if label == place.router]
        if any(report.old for stream in streams for report in stream.reported) or _is_writing(place) is not False:
            return False
        return not self._is_reported(place)

    def _is_reported(self, place: SegmentPosition | None) -> bool:
        """Return whether a record reports the deletion of a segment, one that a seal covers if seals are verified."""
        runs = [] if place is None else self._runs(place.router, proved=self.seals is not None)
        return place is not None and any(run.includes((place.boot, place.first)) for run in runs)


def _is_writing(place: SegmentPosition) -> bool | None:
    """Return whether the router of a segment writes now; None if that cannot be seen."""
    try:
        return is_locked(place.path.with_name(lock_name(place.router)))
    except OSError:
        return None


def _why_open(place: SegmentPosition) -> str:
    """Return why a segment may be without a trailer."""
    writing = _is_writing(place)
    if writing is None:
        return "is still being written, or was when the router ended; its end is not proved"
    if writing:
        return "is still being written; its end is not proved"
    return "has no trailer although its router has stopped, so its end is not proved; the next start completes it"


def _has_begin(ranges: Iterable[tuple[int, int]], gone: SegmentPosition) -> bool:
    """Return whether missing numbers include the first of a segment, or where it was if it had none."""
    return any(first <= gone.first <= max(first, last) for first, last in ranges)


def _includes(numbers: tuple[int, int], number: int) -> bool:
    return numbers[0] <= number <= numbers[1]


def _ranges(numbers: Iterable[tuple[int, int]]) -> str:
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in numbers)


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
