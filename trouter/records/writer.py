"""Writes segments: one file after the other, bounded in number and size, also when the disk fails.

Calls may wait for the disk, so one thread at a time makes them. After ``open`` nothing raises: records that cannot be
written are counted, their numbers are used up, and a later record reports them.
"""

from __future__ import annotations

import errno
import logging
import os
import zlib
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from trouter.records.compression import clear_halves
from trouter.records.disk import FILE_MODE, FOLDER_MODE, AppendedFile, FileHeld, lock_file, rename_durably
from trouter.records.holes import Hole
from trouter.records.losses import RETENTION, Losses
from trouter.records.reader import Corrupt, SegmentReader
from trouter.records.retention import Bounds, Retention
from trouter.records.schema import VERSION, Alarm, Record
from trouter.records.segments import (
    EMPTY,
    OPEN,
    ManifestEntry,
    SegmentHeader,
    Trailer,
    file_label,
    line_of,
    numbered,
    place_of,
    segment_name,
    segments_in,
)
from trouter.records.stream import Taken

__all__ = ["BATCH", "RETRY_US", "Bounds", "Busy", "Now", "SegmentWriter", "latest_boot"]

#: Records encoded and written at once: about a millisecond, for which other threads may have to wait.
BATCH: Final = 256
#: Time from a failure to the next attempt.
RETRY_US: Final = 5_000_000
#: Rounds of reporting losses at the end: a report may delete a segment, which is another loss.
_LAST_WORDS: Final = 4

log = logging.getLogger("trouter.MAIN")


class Now(NamedTuple):
    """One moment by two clocks, in microseconds: the system's since 1970, and the monotonic one."""

    utc: int
    mono: int


def latest_boot(folders: Iterable[Path], router: str) -> int:
    """Return the latest start of a router in the folders, 0 for none; skips folders that cannot be read."""
    found = [0]
    for folder in folders:
        with suppress(OSError):
            found += [place.boot for place in segments_in(folder) if place.router == file_label(router)]
    return max(found)


class Busy(Exception):
    """Another router of the same name writes into the same folder."""


@dataclass(slots=True)
class _Segment:
    """The open segment, and what is whole in it."""

    file: AppendedFile
    first: int
    begun_us: int
    count: int = 0
    crc: int = 0
    last: int = -1
    t_min: int = 0
    t_max: int = 0


class SegmentWriter:
    """The writer of one router's segments in one folder."""

    def __init__(self, folder: Path, router: str, bounds: Bounds) -> None:
        self.folder = folder
        self.boot = 0
        #: Alarms for the caller to take and pass on.
        self.news: deque[Alarm] = deque(maxlen=64)
        #: Records written and records dropped since ``open``.
        self.written = 0
        self.dropped = 0
        self._router = router
        self._label = file_label(router)
        self._next = 0
        self._segment: _Segment | None = None
        #: Gaps that no record reports yet.
        self._losses = Losses()
        self.retention = Retention(folder, self._label, bounds, self._losses.add)
        #: Segments that could not be completed because the disk failed.
        self._torn: list[Path] = []
        self._lock = -1
        self._synced_us = 0
        #: Why nothing can be written, and when to retry by the monotonic clock.
        self._trouble = ""
        self._retry_us = 0

    @property
    def bounds(self) -> Bounds:
        """Bounds of size and age; may be set at any time."""
        return self.retention.bounds

    @bounds.setter
    def bounds(self, bounds: Bounds) -> None:
        self.retention.bounds = bounds

    @property
    def held_bytes(self) -> int:
        """Bytes of all segments."""
        return self.retention.kept_bytes + self._open_bytes

    @property
    def _open_bytes(self) -> int:
        return 0 if self._segment is None else self._segment.file.end

    # --- beginning and end

    def open(self, now: Now, above: int = 0) -> None:
        """Lock the folder, and complete the segments that an earlier start left open; OSError, Busy.

        This start's number is greater than any in the folder and than ``above``.
        """
        self.folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        try:
            self._lock = lock_file(self.folder / f"{self._label}.lock")
        except FileHeld:
            raise Busy(f"another router named {self._router} writes its records into {self.folder}") from None
        try:
            self._take_over(now, above)
        except BaseException:
            self._unlock()
            raise

    def _take_over(self, now: Now, above: int) -> None:
        own = [place for place in segments_in(self.folder) if place.router == self._label]
        self.boot = max(now.utc // 1_000_000, 1 + max((above, *(place.boot for place in own))))
        self.retention.boot = self.boot
        for place in own:
            if place.rest == OPEN:
                self._recover(place.path)
        clear_halves(self.folder, self._label)
        for place in segments_in(self.folder):
            if place.router == self._label:
                self.retention.keep_found(place)
        self.retention.find_holes()

    def close(self, now: Now) -> None:
        """Complete the open segment and release the folder."""
        self._retry_us = now.mono
        for _ in range(_LAST_WORDS):
            self.write(Taken([], Counter()), now)
            if not self._losses:
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
        """Complete a segment that was left open: cut off an incomplete end, mark the trailer as recovered; OSError."""
        reader = None
        with path.open("r+b") as file:
            with suppress(Corrupt):  # the rest is cut off
                reader = SegmentReader(path, file, open_ended=True)
                for _ in reader.lines():
                    pass
            if reader is not None and reader.trailer is None:
                trailer = Trailer(count=reader.count, last=reader.last, crc=reader.crc, recovered=True)
                whole_lines = AppendedFile(path, file.fileno(), reader.end)
                whole_lines.cut()
                whole_lines.append(line_of(trailer))
            os.fsync(file.fileno())
            size = file.seek(0, os.SEEK_END)
        whole = path.with_name(path.name.removesuffix(OPEN))
        if reader is None:
            path.rename(whole.with_name(whole.name + EMPTY))
            log.warning("%s has no complete header, so it has no records", path)
            return
        rename_durably(path, whole)
        entry = ManifestEntry(
            seg=whole.name,
            first=reader.header.first,
            last=reader.last,
            count=reader.count,
            bytes=size,
            crc=reader.crc,
            state="recovered",
        )
        self.retention.note(reader.header.boot, entry)
        log.warning("%s was recovered: %d records", whole, reader.count)

    # --- writing

    def write(self, taken: Taken, now: Now) -> None:
        """Write records, and note those dropped after them; count what cannot be written as dropped."""
        records, lost = taken
        for at in range(0, len(records), BATCH):
            self._store(records[at : at + BATCH], now)
        if lost:
            self._drop("queue-full", lost)
        self._store([], now)

    def tick(self, now: Now) -> None:
        """Do what is due: delete, complete, sync, repair and compress segments."""
        self.retention.expire(now.utc)
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
            if self.retention.plain and not self._trouble:
                self.retention.compress_next(self._open_bytes)
            if not self._losses:
                self._recovered()
        except OSError as error:
            self._fail(error, now)

    def _store(self, batch: Sequence[Record], now: Now) -> None:
        """Write reports of losses and then ``batch``, or drop the batch."""
        if self._trouble and now.mono < self._retry_us:
            self._drop(self._trouble, Counter(record.tag for record in batch))
            return
        if not batch and not self._losses:
            return
        try:
            if self._losses:
                self._record_losses(now)
            if batch:
                self._put(batch, now)
            self._recovered()
        except OSError as error:
            self._fail(error, now)
            self._drop(self._trouble, Counter(record.tag for record in batch))

    def _record_losses(self, now: Now) -> None:
        """Write records that report the losses; OSError, and the losses are kept."""
        unreported = self._losses.take_gaps()
        for dropped in unreported:
            dropped.t = now.utc
        first = self._next
        try:
            self._put(unreported, now)
        except OSError:
            self._losses.put_back(unreported)
            raise
        for number, dropped in enumerate(unreported, first):
            if dropped.reason == RETENTION:
                boot = self.boot if dropped.boot is None else dropped.boot
                self.retention.holes.note_reported(Hole(boot, dropped.from_n, dropped.to_n), number)

    def _put(self, batch: Sequence[Record], now: Now) -> None:
        """Write a batch of at least one record; OSError, and nothing of it is written."""
        first = self._next
        octets = b"".join([numbered(n, record) + b"\n" for n, record in enumerate(batch, first)])
        segment = self._segment
        if segment is not None and segment.file.end + len(octets) > self._segment_bytes:
            self._finish(now)
            segment = None
        self.retention.make_room(len(octets), self._open_bytes)
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
        """Size of a segment: several must fit into the bounds, or deleting the oldest would delete everything."""
        return min(self.bounds.segment_bytes, self.bounds.max_bytes // 4)

    def _begin(self, now: Now) -> _Segment:
        path = self.folder / (segment_name(self._label, self.boot, self._next) + OPEN)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
        file = AppendedFile(path, descriptor)
        header = SegmentHeader(
            v=VERSION, router=self._router, boot=self.boot, first=self._next, utc=now.utc, mono=now.mono
        )
        try:
            file.append(line_of(header))
        except OSError:
            file.close()
            with suppress(OSError):
                path.unlink()
            raise
        crc = zlib.crc32(line_of(header))
        segment = self._segment = _Segment(file, self._next, now.mono, crc=crc, last=self._next - 1)
        return segment

    def _write(self, segment: _Segment, octets: bytes) -> None:
        """Write all bytes or none; OSError."""
        try:
            segment.file.append(octets)
        except OSError:
            self._abandon_torn(segment)
            raise
        segment.crc = zlib.crc32(octets, segment.crc)

    def _abandon_torn(self, segment: _Segment) -> None:
        """Abandon the segment if a part stayed of something that could not be written whole."""
        if segment.file.torn:
            self._abandon()

    def _abandon(self) -> None:
        """Close the segment as it is, for repair when the disk works again or at the next start."""
        segment, self._segment = self._segment, None
        if segment is not None:
            with suppress(OSError):
                segment.file.close()
            self._torn.append(segment.file.path)

    def _mend(self, path: Path) -> None:
        self._recover(path)
        place = place_of(path.with_name(path.name.removesuffix(OPEN)))
        if place is not None and place.path.exists():
            self.retention.keep_found(place)

    def _finish(self, now: Now) -> None:
        """Complete the open segment; OSError, and it stays open."""
        segment = self._segment
        if segment is None:
            return
        trailer = line_of(Trailer(count=segment.count, last=segment.last, crc=segment.crc))
        try:
            segment.file.append(trailer, durable=True)
        except OSError:
            self._abandon_torn(segment)
            raise
        path = segment.file.path
        whole = path.with_name(path.name.removesuffix(OPEN))
        self._segment = None
        segment.file.close()
        rename_durably(path, whole)
        place = place_of(whole)
        assert place is not None  # noqa: S101 - its name is ours
        size = segment.file.end
        self.retention.add_segment(place, size, now.utc)
        entry = ManifestEntry(
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
        self.retention.note(self.boot, entry)

    def _sync(self, segment: _Segment, now: Now) -> None:
        self._synced_us = now.mono
        segment.file.sync()

    # --- trouble

    def _drop(self, reason: str, kinds: Counter[str]) -> None:
        """Use up the numbers of records that are dropped, and note the loss."""
        count = kinds.total()
        if count:
            self._losses.add_dropped(reason, self._next, kinds)
            self._next += count
            self.dropped += count

    def _fail(self, error: OSError, now: Now) -> None:
        """Note that writing failed, log and raise an alarm if it worked before, and set the time of the retry."""
        full = error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
        if not self._trouble:
            reason = error.strerror or str(error)
            log.critical("cannot write records into %s: %s; they are dropped and counted", self.folder, reason)
            self._alarm("raised", reason)
        self._trouble = "disk-full" if full else "io-error"
        self._retry_us = now.mono + RETRY_US

    def _recovered(self) -> None:
        if self._trouble:
            log.warning("writing records into %s again; %d were dropped so far", self.folder, self.dropped)
            self._alarm("cleared", self._trouble)
            self._trouble = ""

    def _alarm(self, state: str, value: str) -> None:
        subject = str(self.folder)
        self.news.append(Alarm(name="records", severity="critical", subject=subject, state=state, value=value))
