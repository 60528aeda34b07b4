"""Retention of one router's complete segments: bounds of size and age, what is deleted first, and holes."""

from __future__ import annotations

import errno
import logging
import os
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from trouter.records.compression import compress
from trouter.records.deletions import Deletion, Deletions
from trouter.records.disk import cut_torn_line, open_own
from trouter.records.holes import DELETED, Hole, Holes, boots_with_manifest, deleted_in
from trouter.records.losses import RETENTION
from trouter.records.marks import is_marked, mark_path, marks_in
from trouter.records.open_segment import OpenSegment
from trouter.records.reader import header_of, last_number, last_trailer, seals_in
from trouter.records.runs import Runs
from trouter.records.schema import RecordsDropped
from trouter.records.segments import (
    COMPRESSED,
    EMPTY,
    MAX_ENTRY_BYTES,
    DeletedRun,
    ManifestEntry,
    SegmentPosition,
    line_of,
    manifest_name,
    place_of,
)

#: Upper bound for a header and a trailer.
_SPARE_BYTES: Final = 4096
#: If new records are dropped, this part of ``max_bytes``, an eighth, is kept for logins, denials, changes and alarms.
RESERVE: Final = 8
#: Holes between kept segments; from that number on only the oldest segment is deleted, marked or not.
_MAX_HOLES: Final = 64

log = logging.getLogger("trouter.MAIN")


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of size in bytes and of time in microseconds, for each segment and for all together.

    ``keeps_oldest``: without room, new records are dropped; otherwise the oldest segments are deleted. ``compress``:
    complete segments are compressed. ``keep_us``: segments last changed longer ago are deleted; 0 for never.
    """

    max_bytes: int = 2 << 30
    min_free_bytes: int = 0
    segment_bytes: int = 64 << 20
    segment_us: int = 60_000_000
    fsync_us: int = 5_000_000
    keep_us: int = 0
    keeps_oldest: bool = False
    compress: bool = False


class _Kept(NamedTuple):
    """A complete segment, its size, and when it was last changed, in microseconds since 1970.

    ``after`` is the segment that its header named when this start of the router wrote or found it, None if that could
    not be read. Its last number and its seals are known if this start wrote it.
    """

    place: SegmentPosition
    bytes: int
    changed_us: int
    after: str | None
    last: int | None = None
    seals: tuple[int, int] | None = None


class Retention:
    """The complete segments of one router in one folder, oldest first. The writer owns it.

    ``report`` gets a record of each loss that a deletion causes or leaves without a record. ``remember`` gets what is
    deleted before a segment is removed, and afterwards.
    """

    def __init__(
        self,
        folder: Path,
        label: str,
        bounds: Bounds,
        report: Callable[[RecordsDropped], None],
        remember: Callable[[Deletions], None],
    ) -> None:
        self.bounds = bounds
        #: The start of the router that writes now.
        self.boot = 0
        #: Size of the complete segments.
        self.kept_bytes = 0
        #: Holes of starts that still have segments.
        self.holes = Holes()
        #: Complete segments that are to be compressed.
        self.plain: deque[SegmentPosition] = deque()
        self._folder = folder
        self._label = label
        self._report = report
        self._remember = remember
        self._kept: deque[_Kept] = deque()
        self._runs = Runs()
        #: Marks that did not fit their segments, with the times of the marks in nanoseconds.
        self._doubted: dict[str, int] = {}

    def keep_found(self, place: SegmentPosition) -> None:
        """Add a complete segment that was found in the folder; OSError."""
        facts = place.path.stat()
        header = None if place.rest == EMPTY else header_of(place)
        self._keep(_Kept(place, facts.st_size, facts.st_mtime_ns // 1000, None if header is None else header.after))

    def add_segment(self, place: SegmentPosition, segment: OpenSegment, utc_us: int) -> None:
        """Add a segment that has just been completed, at ``utc_us``."""
        self._keep(_Kept(place, segment.file.end, utc_us, segment.after, segment.last, segment.seals))

    def _keep(self, kept: _Kept) -> None:
        self._kept.append(kept)
        self.kept_bytes += kept.bytes
        if not kept.place.rest:
            self.plain.append(kept.place)

    def deletions(self, going: Deletion | None = None) -> Deletions:
        """Return what was deleted, and the segment that is ``going`` to be removed now."""
        return Deletions(holes=list(self.holes), runs=list(self._runs), going=going)

    def restore(self, deleted: Deletions) -> None:
        """Take over what an earlier start has deleted; a segment that was still to be removed may be there."""
        for hole in deleted.holes:
            self.holes.add(hole)
        for run in deleted.runs:
            if run.is_valid():
                self._runs.add(run)
        going = deleted.going
        if going is not None and going.run.is_valid() and going.run.first not in self._names():
            self.holes.add(going.hole)
            self._note_deletion(going, self._runs.add(going.run), 0)

    def _names(self) -> set[str]:
        return {kept.place.name for kept in self._kept}

    def find_holes(self) -> None:
        """Read the holes of the kept starts, and of those between and just before them, from their manifests."""
        for boot in sorted(boots_with_manifest(self._folder, self._label)):
            entries = deleted_in(self._folder / manifest_name(self._label, boot))
            own = [entry for entry in entries if _boot_of(entry) == boot]
            for entry in entries:
                if entry.run is not None and entry.run.is_valid():
                    self._runs.add(entry.run)
            for entry in own:
                if entry.last >= entry.first:
                    self.holes.add(Hole(boot, self._begin_of_hole(boot, entry.first), entry.last))
            old = sorted((entry for entry in own if entry.run is None), key=lambda entry: entry.first)
            for hole in self.holes:
                names = [entry.seg for entry in old if hole.boot == boot and hole.first <= entry.first <= hole.last]
                if names and (run := DeletedRun(first=names[0], last=names[-1])).is_valid():
                    self._runs.add(run)

    def expire(self, utc_us: int) -> None:
        """Delete segments that are older than ``keep_us``."""
        keep_us = self.bounds.keep_us
        while keep_us and self._kept and utc_us - self._kept[0].changed_us > keep_us:
            if not self._delete(0):
                break

    def make_room(self, size: int, open_bytes: int) -> None:
        """Delete segments until ``size`` more bytes fit beside the ``open_bytes`` of an open one; OSError if not."""
        needed = size + _SPARE_BYTES
        while (
            self.kept_bytes + open_bytes + needed > self.bounds.max_bytes
            or self._free_bytes() < needed + self.bounds.min_free_bytes
        ):
            if self.bounds.keeps_oldest or not self._delete(self._first_to_go()):
                raise OSError(errno.ENOSPC, "there is no room within the bounds")

    def is_reserve(self, open_bytes: int) -> bool:
        """Return whether what is left, beside the ``open_bytes`` of an open segment, is kept for what matters most."""
        bounds = self.bounds
        return bounds.keeps_oldest and self.kept_bytes + open_bytes > bounds.max_bytes - bounds.max_bytes // RESERVE

    def compress_next(self, open_bytes: int) -> None:
        """Compress the newest waiting segment, if that is configured and there is room for both files."""
        while self.plain and not self.plain[0].path.exists():
            self.plain.popleft()  # deleted meanwhile
        if not self.plain:
            return
        place = self.plain.pop()  # the newest, because room is made by deleting the oldest
        if not self.bounds.compress:
            return
        try:
            self.make_room(place.path.stat().st_size // 2, open_bytes)
            if not place.path.exists():  # it was deleted to make room
                return
            whole, size = compress(place.path)
        except OSError as error:
            log.warning("cannot compress %s, it stays as it is: %s", place.path, error.strerror)
            return
        for index, kept in enumerate(self._kept):
            if kept.place == place:
                self._kept[index] = kept._replace(place=place._replace(rest=COMPRESSED, path=whole), bytes=size)
                self.kept_bytes += size - kept.bytes
                break

    def note(self, boot: int, entry: ManifestEntry) -> None:
        """Add a line to a manifest; a failure is only logged, because the manifest is a hint."""
        try:
            descriptor = open_own(self._folder / manifest_name(self._label, boot), os.O_RDWR | os.O_APPEND | os.O_CREAT)
            try:
                cut_torn_line(descriptor, MAX_ENTRY_BYTES)
                os.write(descriptor, line_of(entry))
            finally:
                os.close(descriptor)
        except OSError as error:
            log.warning("cannot note the segment %s in the manifest: %s", entry.seg, error.strerror)

    def _free_bytes(self) -> int:
        facts = os.statvfs(self._folder)
        return facts.f_bavail * facts.f_frsize

    def _first_to_go(self) -> int:
        """Return the index of the segment to delete first: the oldest with a valid mark, else the oldest."""
        marks = marks_in(self._folder, self._label) if len(self.holes) < _MAX_HOLES else {}
        for name in marks.keys() - self._names():
            with suppress(OSError):
                mark_path(self._folder, name).unlink()  # its segment is gone
        for index, kept in enumerate(self._kept):
            name = kept.place.name
            if name in marks and self._doubted.get(name) != marks[name]:
                if is_marked(kept.place.path, name):
                    return index
                self._doubted[name] = marks[name]
                log.warning("%s does not match the segment beside it; it is ignored", mark_path(self._folder, name))
        return 0

    def _begin_of_hole(self, boot: int, first: int) -> int:
        """Return where a hole before ``first`` begins: after the last kept segment before it; all between is gone."""
        before = [kept.place for kept in self._kept if kept.place.boot == boot and kept.place.first < first]
        if not before:
            return 0
        last = last_number(max(before, key=lambda place: place.first).path)
        return first if last is None else last + 1

    def _delete(self, index: int) -> bool:
        """Delete one of the kept segments; return False if there is none or it cannot be deleted."""
        if not self._kept:
            return False
        kept = self._with_facts(self._kept[index])
        place, size = kept.place, kept.bytes
        going = self._deletion_of(kept)
        if place.path.exists():  # what another program has deleted is not remembered, so that no report says so
            self._remember(self.deletions(going))
        try:
            place.path.unlink()
        except FileNotFoundError:
            going = None
            log.error("%s was deleted by another program", place.path)
        except OSError as error:
            self._remember(self.deletions())
            log.error("%s cannot be deleted: %s", place.path, error.strerror)
            return False
        with suppress(OSError):
            mark_path(self._folder, place.name).unlink(missing_ok=True)
        self._doubted.pop(place.name, None)
        del self._kept[index]
        self.kept_bytes -= size
        if going is not None:
            run = self._runs.add(going.run)
            self._report_holes(place, going.hole, _count_of(going))
            self._note_deletion(going, run, size)
        self._forget_old_starts()
        self._remember(self.deletions())
        return True

    def _note_deletion(self, deletion: Deletion, run: DeletedRun, size: int) -> None:
        """Note in the manifests that a segment of ``size`` bytes, which is in a run now, is deleted."""
        segment, count = deletion.run.first, _count_of(deletion)
        boot, first = deletion.run.begin
        entry = ManifestEntry(
            seg=segment, first=first, last=deletion.hole.last, count=count, bytes=size, crc=0, state=DELETED, run=run
        )
        for each in {boot, run.end[0]}:  # the manifest of the latest is kept longest
            self.note(each, entry)

    def _deletion_of(self, kept: _Kept) -> Deletion | None:
        """Return what the deletion of a kept segment takes away; None if no report can say it."""
        place, last = kept.place, kept.last
        if last is None or kept.after is None:
            return None
        begin = self._begin_of_hole(place.boot, place.first) if last >= place.first else place.first
        return Deletion(run=_run_of_one(place.name, kept.after, kept.seals), hole=Hole(place.boot, begin, last))

    def _with_facts(self, kept: _Kept) -> _Kept:
        """Return what is kept of a segment with its last number and its seals, as far as they can be read."""
        if kept.last is not None:
            return kept
        trailer = last_trailer(kept.place.path)
        if trailer is None:
            return kept
        sealed = trailer.recovered or trailer.epoch is not None
        return kept._replace(last=trailer.last, seals=seals_in(kept.place.path) if sealed else None)

    def _forget_old_starts(self) -> None:
        """Forget the starts of which nothing is left, but the latest before the oldest segment, which names it."""
        oldest = min((kept.place.boot for kept in self._kept), default=self.boot)
        boots = {*boots_with_manifest(self._folder, self._label), *(hole.boot for hole in self.holes)}
        gone = sorted(boot for boot in boots if boot < oldest)
        for boot in gone[:-1]:
            self.holes.forget_boot(boot)
            with suppress(OSError):
                (self._folder / manifest_name(self._label, boot)).unlink()

    def _report_holes(self, place: SegmentPosition, made: Hole, count: int) -> None:
        """Report the hole that a deletion made, and those that only the deleted segment reported."""
        hole = self.holes.add(made)
        own = place.boot == self.boot
        for each in self.holes.to_report(place.first if own else -1, made.last if own else -1):
            position = place.boot, place.first
            for run in self._runs.within((each.boot, each.first), (each.boot, max(each.first, each.last))):
                dropped = RecordsDropped(
                    reason=RETENTION,
                    from_n=each.first,
                    to_n=each.last,
                    count=count if each == hole and run.includes(position) else 0,
                    by_kind={},
                    boot=None if each.boot == self.boot else each.boot,
                    from_seg=run.first,
                    to_seg=run.last,
                    after_seg=run.after,
                    from_seal=run.from_seal,
                    to_seal=run.to_seal,
                )
                self._report(dropped)


def _boot_of(entry: ManifestEntry) -> int:
    """Return the start of an entry's segment, -1 if that is no name of a segment."""
    place = place_of(Path(entry.seg))
    return -1 if place is None else place.boot


def _count_of(deletion: Deletion) -> int:
    """Return how many numbers a deleted segment had."""
    return deletion.hole.last - deletion.run.begin[1] + 1


def _run_of_one(segment: str, after: str, seals: tuple[int, int] | None) -> DeletedRun:
    """Return the run of one deleted segment."""
    if seals is None:
        return DeletedRun(first=segment, last=segment, after=after)
    return DeletedRun(first=segment, last=segment, after=after, from_seal=seals[0], to_seal=seals[1])
