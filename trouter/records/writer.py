"""Writes segments: a file after the other, bounded in number and size, whatever the disk does.

Everything here may wait for the disk, so it is called in a thread, by one at a time. Nothing raises once ``open`` has
succeeded: what cannot be written is counted, its numbers are used up, and a record tells of it when there is room.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import zlib
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from trouter.records.compression import clear_halves, compress, sync_folder
from trouter.records.holes import DELETED, Hole, Holes, deleted_in
from trouter.records.marks import is_marked, mark_path, marks_in
from trouter.records.reader import Corrupt, SegmentReader, last_number
from trouter.records.schema import VERSION, Alarm, Record, RecordsDropped
from trouter.records.segments import (
    COMPRESSED,
    EMPTY,
    OPEN,
    Entry,
    Header,
    SegmentPosition,
    Trailer,
    file_label,
    line_of,
    manifest_name,
    numbered,
    place_of,
    segment_name,
    segments_in,
)
from trouter.records.stream import Taken

#: Records that are encoded and written at once: a millisecond in which other threads may have to wait.
BATCH: Final = 256
#: After a failure, how long until writing is tried again.
RETRY_US: Final = 5_000_000
#: The most that a header and a trailer may need.
_SPARE_BYTES: Final = 4096
#: Why records are gone that were deleted.
RETENTION: Final = "retention"
#: Gaps that are remembered, one by one, until they can be told; more of them are told as one.
_MAX_UNTOLD: Final = 100
#: Holes between segments that are kept; with so many of them only the oldest segment is deleted, marked or not.
_MAX_HOLES: Final = 64
#: At the end what is untold is told so often at most, for telling may take the room of something that is then untold.
_LAST_WORDS: Final = 4
_FILE_MODE: Final = 0o640
_FOLDER_MODE: Final = 0o750

log = logging.getLogger("trouter.MAIN")


@dataclass(frozen=True, slots=True)
class Bounds:
    """How large and how old segments may be, and all of them together; lengths of time in microseconds.

    ``keeps_oldest``: where there is no room, what is new is dropped; else the oldest segments are deleted.
    ``compress``: those that are complete are compressed.
    ``keep_us``: segments whose last change is longer ago are deleted; 0 for never.
    """

    max_bytes: int = 2 << 30
    min_free_bytes: int = 0
    segment_bytes: int = 64 << 20
    segment_us: int = 60_000_000
    fsync_us: int = 5_000_000
    keep_us: int = 0
    keeps_oldest: bool = False
    compress: bool = False


class Now(NamedTuple):
    """One moment by two clocks, in microseconds: the time of the day since 1970, and one that cannot be set."""

    utc: int
    mono: int


def latest_boot(folders: Iterable[Path], router: str) -> int:
    """The greatest number of a start of this router in any of the folders; one that cannot be read has none."""
    found = [0]
    for folder in folders:
        with suppress(OSError):
            found += [place.boot for place in segments_in(folder) if place.router == file_label(router)]
    return max(found)


class Busy(Exception):
    """Another router of the same name writes into the same folder."""


@dataclass(slots=True)
class _Segment:
    """The segment that is written now: what of it is whole, and how much of that the disk was told to hold on to."""

    path: Path
    descriptor: int
    first: int
    begun_us: int
    bytes: int = 0
    count: int = 0
    crc: int = 0
    last: int = -1
    t_min: int = 0
    t_max: int = 0
    synced_bytes: int = 0


class _Kept(NamedTuple):
    """A segment that is complete."""

    place: SegmentPosition
    bytes: int
    changed_us: int


class SegmentWriter:
    """The segments of one router in one folder."""

    def __init__(self, folder: Path, router: str, bounds: Bounds) -> None:
        self.folder = folder
        self.bounds = bounds
        self.boot = 0
        #: Alarms that the caller takes out and passes on.
        self.news: deque[Alarm] = deque(maxlen=64)
        #: Records written and records dropped since ``open``.
        self.written = 0
        self.dropped = 0
        self._router = router
        self._label = file_label(router)
        self._next = 0
        self._segment: _Segment | None = None
        self._kept: deque[_Kept] = deque()
        self._kept_bytes = 0
        #: What was deleted of starts of which segments are kept.
        self._holes = Holes()
        #: Marks that did not fit their segments, and when they were made.
        self._doubted: dict[str, int] = {}
        #: Complete segments that are to be compressed.
        self._plain: deque[SegmentPosition] = deque()
        #: Segments that could not be completed because the disk failed.
        self._torn: list[Path] = []
        self._lock = -1
        self._synced_us = 0
        #: Gaps that no record tells of yet, in their order.
        self._untold: list[RecordsDropped] = []
        #: Why nothing can be written, and when to try again.
        self._trouble = ""
        self._retry_us = 0

    @property
    def held_bytes(self) -> int:
        """How much room all segments take."""
        return self._kept_bytes + (0 if self._segment is None else self._segment.bytes)

    # --- beginning and end

    def open(self, now: Now, above: int = 0) -> None:
        """Take over the folder, and complete what a router of this name left behind; OSError, Busy.

        The number of this start is greater than any in the folder, and than ``above``.
        """
        self.folder.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
        self._lock = os.open(self.folder / f"{self._label}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _FILE_MODE)
        try:
            self._take_over(now, above)
        except BaseException:
            self._unlock()
            raise

    def _take_over(self, now: Now, above: int) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Busy(f"another router named {self._router} writes its records into {self.folder}") from None
        own = [place for place in segments_in(self.folder) if place.router == self._label]
        self.boot = max(now.utc // 1_000_000, 1 + max((above, *(place.boot for place in own))))
        for place in own:
            if place.rest == OPEN:
                self._recover(place.path)
        clear_halves(self.folder, self._label)
        for place in segments_in(self.folder):
            if place.router == self._label:
                facts = place.path.stat()
                self._keep(place, facts.st_size, facts.st_mtime_ns // 1000)
        for boot in {kept.place.boot for kept in self._kept}:
            for first, last in deleted_in(self.folder / manifest_name(self._label, boot)):
                self._holes.add(Hole(boot, self._begin_of_hole(boot, first), last))

    def close(self, now: Now) -> None:
        """Complete the segment that is open, and let go of the folder."""
        self._retry_us = now.mono
        for _ in range(_LAST_WORDS):
            self.write(Taken([], Counter()), now)
            if not self._untold:
                break
        try:
            self._finish(now)
        except OSError as error:
            self._fail(error, now)
        if self._segment is not None:
            self._abandon()
        self._unlock()

    def _unlock(self) -> None:
        os.close(self._lock)
        self._lock = -1

    def _recover(self, path: Path) -> None:
        """Complete a segment that was left open: what is torn is cut off, and the trailer says so; OSError."""
        reader = None
        with path.open("r+b") as file:
            with suppress(Corrupt):  # from there on it is cut off
                reader = SegmentReader(path, file, open_ended=True)
                for _ in reader.lines():
                    pass
            if reader is not None and reader.trailer is None:
                trailer = Trailer(count=reader.count, last=reader.last, crc=reader.crc, recovered=True)
                file.truncate(reader.end)
                file.seek(reader.end)
                file.write(line_of(trailer))
                file.flush()
            os.fsync(file.fileno())
            size = file.seek(0, os.SEEK_END)
        whole = path.with_name(path.name.removesuffix(OPEN))
        if reader is None:
            path.rename(whole.with_name(whole.name + EMPTY))
            log.warning("%s holds no whole header, and so no record", path)
            return
        path.rename(whole)
        sync_folder(self.folder)
        entry = Entry(
            seg=whole.name,
            first=reader.header.first,
            last=reader.last,
            count=reader.count,
            bytes=size,
            crc=reader.crc,
            state="recovered",
        )
        self._note(reader.header.boot, entry)
        log.warning("%s was recovered: %d records", whole, reader.count)

    # --- writing

    def write(self, taken: Taken, now: Now) -> None:
        """Write records, and note those that were lost after them; what cannot be written is dropped and counted."""
        records, lost = taken
        for at in range(0, len(records), BATCH):
            self._store(records[at : at + BATCH], now)
        if lost:
            self._drop("queue-full", lost)
        self._store([], now)

    def tick(self, now: Now) -> None:
        """What time brings: a segment is old enough, the disk is to hold on to what it has, old ones are to go."""
        while self.bounds.keep_us and self._kept and now.utc - self._kept[0].changed_us > self.bounds.keep_us:
            if not self._delete(0):
                break
        if self._trouble and now.mono < self._retry_us:
            return
        self._store([], now)
        segment = self._segment
        try:
            if segment is not None and now.mono - segment.begun_us >= self.bounds.segment_us:
                self._finish(now)
            elif segment is not None and now.mono - self._synced_us >= self.bounds.fsync_us:
                self._sync(segment, now)
            while self._torn and not self._trouble:
                self._mend(self._torn[0])
                del self._torn[0]
            if self._plain and not self._trouble:
                self._compress_next()
            if not self._untold:
                self._recovered()
        except OSError as error:
            self._fail(error, now)

    def _store(self, batch: Sequence[Record], now: Now) -> None:
        """Write what is still to be told, then these; or drop these."""
        if self._trouble and now.mono < self._retry_us:
            self._drop(self._trouble, Counter(record.tag for record in batch))
            return
        if not batch and not self._untold:
            return
        try:
            if self._untold:
                self._tell(now)
            if batch:
                self._put(batch, now)
            self._recovered()
        except OSError as error:
            self._fail(error, now)
            self._drop(self._trouble, Counter(record.tag for record in batch))

    def _tell(self, now: Now) -> None:
        """Write what became of records that are not there; OSError, and it is still to be told."""
        telling, self._untold = self._untold, []
        for dropped in telling:
            dropped.t = now.utc
        first = self._next
        try:
            self._put(telling, now)
        except OSError:
            self._untold = telling + self._untold
            raise
        for number, dropped in enumerate(telling, first):
            if dropped.reason == RETENTION:
                boot = self.boot if dropped.boot is None else dropped.boot
                self._holes.tell(Hole(boot, dropped.from_n, dropped.to_n), number)

    def _put(self, batch: Sequence[Record], now: Now) -> None:
        """Write these, at least one; OSError, and nothing of them stands there."""
        first = self._next
        octets = b"".join([numbered(n, record) + b"\n" for n, record in enumerate(batch, first)])
        segment = self._segment
        if segment is not None and segment.bytes + len(octets) > self._segment_bytes:
            self._finish(now)
            segment = None
        self._make_room(len(octets))
        if segment is None:
            segment = self._begin(now)
        self._write(segment, octets)
        if not segment.count:
            segment.t_min = batch[0].t
        segment.t_max = batch[-1].t
        segment.count += len(batch)
        self._next = first + len(batch)
        segment.last = self._next - 1
        self.written += len(batch)
        if self.bounds.fsync_us == 0:
            self._sync(segment, now)

    @property
    def _segment_bytes(self) -> int:
        """Several segments must have room, or deleting the oldest would delete everything."""
        return min(self.bounds.segment_bytes, self.bounds.max_bytes // 4)

    def _begin(self, now: Now) -> _Segment:
        path = self.folder / (segment_name(self._label, self.boot, self._next) + OPEN)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _FILE_MODE)
        segment = _Segment(path, descriptor, self._next, now.mono, last=self._next - 1)
        header = Header(v=VERSION, router=self._router, boot=self.boot, first=self._next, utc=now.utc, mono=now.mono)
        try:
            write_all(descriptor, line_of(header))
        except OSError:
            os.close(descriptor)
            with suppress(OSError):
                path.unlink()
            raise
        segment.bytes = len(line_of(header))
        segment.crc = zlib.crc32(line_of(header))
        self._segment = segment
        return segment

    def _write(self, segment: _Segment, octets: bytes) -> None:
        """All of it or nothing; OSError."""
        try:
            write_all(segment.descriptor, octets)
        except OSError:
            self._cut(segment)
            raise
        segment.crc = zlib.crc32(octets, segment.crc)
        segment.bytes += len(octets)

    def _cut(self, segment: _Segment) -> None:
        """Take back what was written of something that did not get written whole."""
        try:
            os.ftruncate(segment.descriptor, segment.bytes)
            os.lseek(segment.descriptor, segment.bytes, os.SEEK_SET)
        except OSError:
            self._abandon()

    def _abandon(self) -> None:
        """Leave the segment as it is, to be mended when the disk is well again, or at the next start."""
        segment, self._segment = self._segment, None
        if segment is not None:
            with suppress(OSError):
                os.close(segment.descriptor)
            self._torn.append(segment.path)

    def _mend(self, path: Path) -> None:
        self._recover(path)
        place = place_of(path.with_name(path.name.removesuffix(OPEN)))
        if place is not None and place.path.exists():
            facts = place.path.stat()
            self._keep(place, facts.st_size, facts.st_mtime_ns // 1000)

    def _finish(self, now: Now) -> None:
        """Complete the segment that is open; OSError, and it still is."""
        segment = self._segment
        if segment is None:
            return
        trailer = line_of(Trailer(count=segment.count, last=segment.last, crc=segment.crc))
        try:
            write_all(segment.descriptor, trailer)
            os.fsync(segment.descriptor)
        except OSError:
            self._cut(segment)
            raise
        whole = segment.path.with_name(segment.path.name.removesuffix(OPEN))
        self._segment = None
        os.close(segment.descriptor)
        segment.path.rename(whole)
        sync_folder(self.folder)
        place = place_of(whole)
        assert place is not None  # noqa: S101 - its name is ours
        size = segment.bytes + len(trailer)
        self._keep(place, size, now.utc)
        entry = Entry(
            seg=whole.name,
            first=segment.first,
            last=segment.last,
            count=segment.count,
            bytes=size,
            crc=segment.crc,
            state="closed",
            t_min=segment.t_min,
            t_max=segment.t_max,
        )
        self._note(self.boot, entry)

    def _sync(self, segment: _Segment, now: Now) -> None:
        self._synced_us = now.mono
        if segment.synced_bytes < segment.bytes:
            os.fdatasync(segment.descriptor)
            segment.synced_bytes = segment.bytes

    def _note(self, boot: int, entry: Entry) -> None:
        """Add a line to a manifest. It is only a help, so it may fail."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        try:
            descriptor = os.open(self.folder / manifest_name(self._label, boot), flags, _FILE_MODE)
            try:
                os.write(descriptor, line_of(entry))
            finally:
                os.close(descriptor)
        except OSError as error:
            log.warning("%s cannot be noted in its manifest: %s", entry.seg, error.strerror)

    # --- room

    def _keep(self, place: SegmentPosition, size: int, changed_us: int) -> None:
        self._kept.append(_Kept(place, size, changed_us))
        self._kept_bytes += size
        if not place.rest:
            self._plain.append(place)

    def _make_room(self, size: int) -> None:
        """See to it that so many octets may be written; OSError if not."""
        needed = size + _SPARE_BYTES
        while (
            self.held_bytes + needed > self.bounds.max_bytes or self._free_bytes() < needed + self.bounds.min_free_bytes
        ):
            if self.bounds.keeps_oldest or not self._delete(self._first_to_go()):
                raise OSError(errno.ENOSPC, "there is no room within the bounds")

    def _compress_next(self) -> None:
        """Put one segment's compressed form in its place, if that is wanted and there is room for both."""
        while self._plain and not self._plain[0].path.exists():
            self._plain.popleft()  # deleted meanwhile
        if not self._plain:
            return
        place = self._plain.pop()  # the newest, which is not what makes room for it
        if not self.bounds.compress:
            return
        try:
            self._make_room(place.path.stat().st_size // 2)
            if not place.path.exists():  # that was how room was made
                return
            whole, size = compress(place.path)
        except OSError as error:
            log.warning("%s stays as it is, it cannot be compressed: %s", place.path, error.strerror)
            return
        for index, kept in enumerate(self._kept):
            if kept.place == place:
                self._kept[index] = kept._replace(place=place._replace(rest=COMPRESSED, path=whole), bytes=size)
                self._kept_bytes += size - kept.bytes
                break

    def _free_bytes(self) -> int:
        facts = os.statvfs(self.folder)
        return facts.f_bavail * facts.f_frsize

    def _first_to_go(self) -> int:
        """Which of the segments that are kept is to go: the oldest that was compacted, else the oldest."""
        marks = marks_in(self.folder, self._label) if len(self._holes) < _MAX_HOLES else {}
        for name in marks.keys() - {kept.place.name for kept in self._kept}:
            with suppress(OSError):
                mark_path(self.folder, name).unlink()  # its segment is gone
        for index, kept in enumerate(self._kept):
            name = kept.place.name
            if name in marks and self._doubted.get(name) != marks[name]:
                if is_marked(kept.place.path, name):
                    return index
                self._doubted[name] = marks[name]
                log.warning("%s is no mark of the segment beside it: ignored", mark_path(self.folder, name))
        return 0

    def _begin_of_hole(self, boot: int, first: int) -> int:
        """Return the number after the segment kept before this one: records of holes in between may be gone."""
        before = [kept.place for kept in self._kept if kept.place.boot == boot and kept.place.first < first]
        if not before:
            return 0
        last = last_number(max(before, key=lambda place: place.first).path)
        return first if last is None else last + 1

    def _delete(self, index: int) -> bool:
        """Delete one of the segments that are kept, and whether there was one that could be deleted."""
        if not self._kept:
            return False
        place, size, _ = self._kept[index]
        last = last_number(place.path)
        try:
            place.path.unlink(missing_ok=True)
        except OSError as error:
            log.error("%s cannot be deleted: %s", place.path, error.strerror)
            return False
        with suppress(OSError):
            mark_path(self.folder, place.name).unlink(missing_ok=True)
        self._doubted.pop(place.name, None)
        del self._kept[index]
        self._kept_bytes -= size
        if last is not None:
            count = last - place.first + 1
            self._tell_of_holes(place, last, count)
            self._note(
                place.boot,
                Entry(seg=place.name, first=place.first, last=last, count=count, bytes=size, crc=0, state=DELETED),
            )
        if place.boot != self.boot and not any(kept.place.boot == place.boot for kept in self._kept):
            self._holes.forget(place.boot)
            with suppress(OSError):
                (self.folder / manifest_name(self._label, place.boot)).unlink()
        return True

    def _tell_of_holes(self, place: SegmentPosition, last: int, count: int) -> None:
        """Have records tell what the deletion of a segment left, and again what only that segment told of."""
        hole = self._holes.add(Hole(place.boot, self._begin_of_hole(place.boot, place.first), last))
        own = place.boot == self.boot
        for each in self._holes.to_tell(place.first if own else -1, last if own else -1):
            dropped = RecordsDropped(
                reason=RETENTION,
                from_n=each.first,
                to_n=each.last,
                count=count if each == hole else 0,
                by_kind={},
                boot=None if each.boot == self.boot else each.boot,
            )
            self._remember(dropped)

    # --- trouble

    def _drop(self, reason: str, kinds: Counter[str]) -> None:
        """The numbers of so many records are used up, and the records are gone."""
        count = kinds.total()
        if not count:
            return
        first = self._next
        self._next += count
        self.dropped += count
        last = self._untold[-1] if self._untold else None
        if last is not None and last.to_n == first - 1 and (last.reason == reason or len(self._untold) >= _MAX_UNTOLD):
            last.to_n = self._next - 1
            last.count += count
            last.by_kind = dict(Counter(last.by_kind) + kinds)
            return
        self._remember(
            RecordsDropped(reason=reason, from_n=first, to_n=self._next - 1, count=count, by_kind=dict(kinds))
        )

    def _remember(self, dropped: RecordsDropped) -> None:
        """Tell of it when there is room. Of what was deleted, the last that is told of a hole says all."""
        if dropped.reason == RETENTION:
            within = [
                known
                for known in self._untold
                if known.reason == RETENTION
                and known.boot == dropped.boot
                and dropped.from_n <= known.from_n
                and known.to_n <= dropped.to_n
            ]
            for known in within:
                dropped.count += known.count
                self._untold.remove(known)
        self._untold.append(dropped)

    def _fail(self, error: OSError, now: Now) -> None:
        """Nothing can be written for some time."""
        full = error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
        if not self._trouble:
            reason = error.strerror or str(error)
            log.critical("records cannot be written into %s: %s; they are dropped and counted", self.folder, reason)
            self._alarm("raised", reason)
        self._trouble = "disk-full" if full else "io-error"
        self._retry_us = now.mono + RETRY_US

    def _recovered(self) -> None:
        if self._trouble:
            log.warning("records are written into %s again; %d were dropped so far", self.folder, self.dropped)
            self._alarm("cleared", self._trouble)
            self._trouble = ""

    def _alarm(self, state: str, value: str) -> None:
        subject = str(self.folder)
        self.news.append(Alarm(name="records", severity="critical", subject=subject, state=state, value=value))


def write_all(descriptor: int, octets: bytes) -> None:
    """Write everything; OSError, and then a part may be written."""
    view = memoryview(octets)
    while view:
        view = view[os.write(descriptor, view) :]
