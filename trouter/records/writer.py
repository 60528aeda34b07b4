"""Writes segments: one file after the other, bounded in number and size, also when the disk fails.

Calls may wait for the disk, so one thread at a time makes them. After ``open`` nothing raises: records that cannot be
written are counted, their numbers are used up, and a later record reports them.
"""

from __future__ import annotations

import errno
import logging
import os
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from trouter.records.anchors import SegmentHead
from trouter.records.compression import clear_halves
from trouter.records.continuity import contradictions, unreported_deletions
from trouter.records.deletions import Deletions
from trouter.records.disk import FOLDER_MODE, FileHeld, lock_file
from trouter.records.holes import Hole
from trouter.records.losses import RETENTION, Losses
from trouter.records.open_segment import OpenSegment, Piece
from trouter.records.reader import FoundSeal, digest_of, last_seal
from trouter.records.recovery import Recovered, linked_from, recover
from trouter.records.retention import Bounds, Retention
from trouter.records.schema import VERSION, Alarm, Record, is_routine
from trouter.records.seals import SealingKey
from trouter.records.segments import (
    EMPTY,
    OPEN,
    SegmentHeader,
    SegmentPosition,
    file_label,
    last_start,
    lock_name,
    numbered,
    segment_name,
    segments_in,
)
from trouter.records.stream import Taken

__all__ = ["BATCH", "RETRY_US", "Bounds", "Busy", "Now", "SegmentWriter", "latest_boot"]

#: Records encoded and written at once: about a millisecond, for which other threads may have to wait.
BATCH: Final = 256
#: Time from a failure to the next attempt.
RETRY_US: Final = 5_000_000
#: Time after which records are sealed, if there is a key.
SEAL_US: Final = 60_000_000
#: Alarm of records that are not as the router left them.
CHANGED: Final = "recordsChanged"
#: Rounds of reporting losses at the end: a report may delete a segment, which is another loss.
_LAST_WORDS: Final = 4

log = logging.getLogger("trouter.MAIN")


class Now(NamedTuple):
    """One moment by two clocks, in microseconds: the system's since 1970, and the monotonic one."""

    utc: int
    mono: int


def latest_boot(folders: Iterable[Path], router: str, now: Now) -> int:
    """Return the latest start of a router in the folders, 0 for none; skips folders that cannot be read."""
    found = [0]
    for folder in folders:
        with suppress(OSError):
            found += [place.boot for place in segments_in(folder) if place.router == file_label(router)]
    return last_start(found, now.utc // 1_000_000)


class Busy(Exception):
    """Another router of the same name writes into the same folder."""


class _Tail(NamedTuple):
    """The last segment: the name that it has when it is complete, and the SHA-256 of its octets before the trailer."""

    name: str = ""
    sha: str = ""


class _Torn(NamedTuple):
    """A segment that could not be completed, and where its whole lines end."""

    path: Path
    whole_bytes: int


class SegmentWriter:
    """The writer of one router's segments in one folder."""

    def __init__(self, folder: Path, router: str, bounds: Bounds) -> None:
        self.folder = folder
        self.boot = 0
        #: Alarms for the caller to take and pass on.
        self.news: deque[Alarm] = deque(maxlen=64)
        #: Heads for the caller to take and send elsewhere; a later one covers an earlier one by the chain.
        self.heads: deque[SegmentHead] = deque(maxlen=64)
        #: Records written and records dropped since ``open``.
        self.written = 0
        self.dropped = 0
        self._router = router
        self._label = file_label(router)
        self._next = 0
        self._segment: OpenSegment | None = None
        self._tail = _Tail()
        self._key: SealingKey | None = None
        #: Gaps that no record reports yet.
        self._losses = Losses()
        self.retention = Retention(folder, self._label, bounds, self._losses.add, self._remember)
        #: Segments that could not be completed because the disk failed.
        self._torn: list[_Torn] = []
        self._lock = -1
        self._synced_us = 0
        #: Routine records are dropped, and when to report how many by the monotonic clock.
        self._saving = False
        self._report_us = 0
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
        """Lock the folder, and complete the segments that an earlier start left open; OSError, ValueError, Busy.

        This start's number is greater than any in the folder and than ``above``.
        """
        self.folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        try:
            self._lock = lock_file(self.folder / lock_name(self._label))
        except FileHeld:
            raise Busy(f"another router named {self._router} writes its records into {self.folder}") from None
        try:
            self._take_over(now, above)
        except BaseException:
            self._unlock()
            raise

    def _take_over(self, now: Now, above: int) -> None:
        places = [place for place in segments_in(self.folder) if place.router == self._label]
        last = last_start((above, *(place.boot for place in places)), now.utc // 1_000_000)
        self._alarm_changes(
            f"{place.path.name} has the number of a start that no router can have had"
            for place in places
            if place.boot > last
        )
        own = [place for place in places if place.boot <= last]
        self.boot = max(now.utc // 1_000_000, 1 + last)
        self.retention.boot = self.boot
        self._key = SealingKey.load(self.folder, self._label)
        seals: list[FoundSeal] = []
        for at, place in enumerate(own):
            if place.rest == OPEN:
                following = linked_from(own[at + 1]) if at + 1 < len(own) else ""
                recovered = self._recover(place.path, whole_sha=following)
                if recovered is not None and recovered.seal is not None:
                    seals.append(recovered.seal)
        clear_halves(self.folder, self._label)
        kept = [place for place in segments_in(self.folder) if place.router == self._label and place.boot <= last]
        for place in kept:
            self.retention.keep_found(place)
        if whole := [place for place in kept if place.rest != EMPTY]:
            self._tail = _Tail(whole[-1].name, digest_of(whole[-1].path))
            if (seal := last_seal(whole[-1].path)) is not None:
                seals.append(seal)
        self._step_over(seals)
        self._take_over_deletions(kept)
        next_seal = None if self._key is None else self._key.epoch
        self._alarm_changes(contradictions(self.folder, self._label, kept, self.retention.deletions(), next_seal))

    def _step_over(self, seals: Iterable[FoundSeal]) -> None:
        """Step over the keys of those seals on the disk that the router made before it could erase them; OSError."""
        key = self._key
        if key is None:
            return
        ahead = [seal for seal in seals if seal.epoch >= key.epoch]
        made = [seal.epoch for seal in ahead if key.has_made(*seal)]
        self._alarm_changes(
            f"seal {seal.epoch} is not of the router's key, which is for seal {key.epoch}"
            for seal in ahead
            if seal.epoch not in made
        )
        if made:
            log.warning("the router ended between seal %d of %s and the erasure of its key", max(made), self.folder)
            key.skip(max(made))

    def _take_over_deletions(self, kept: Sequence[SegmentPosition]) -> None:
        """Take over what earlier starts deleted: as the key's file has it, else as the manifests have it; OSError."""
        key = self._key
        if key is None or key.deleted is None:
            self.retention.find_holes()
            self._alarm_changes(unreported_deletions(self.folder, self._label, kept))
        else:
            self.retention.restore(key.deleted)
        self._remember(self.retention.deletions())

    def _alarm_changes(self, changes: Iterable[str]) -> None:
        """Log each difference to what the router left when it stopped, and raise an alarm for it."""
        for text in changes:
            log.critical("the records in %s are not as the router left them: %s", self.folder, text)
            self._alarm("raised", text, name=CHANGED)

    def _remember(self, deletions: Deletions) -> None:
        """Keep with the key what is deleted; before a segment goes, in the key's file, as far as the disk has room."""
        key = self._key
        if key is None:
            return
        key.deleted, key.saved = deletions, False
        if deletions.going is not None:
            try:
                key.save()
            except OSError as error:
                log.warning("cannot note the next deletion in %s: %s", self.folder, error.strerror)

    def close(self, now: Now) -> None:
        """Complete the open segment and release the folder."""
        self._retry_us = self._report_us = now.mono
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

    def _recover(self, path: Path, *, whole_bytes: int | None = None, whole_sha: str = "") -> Recovered | None:
        """Complete a segment that was left open, and note it in the manifest; OSError."""
        recovered = recover(path, whole_bytes=whole_bytes, whole_sha=whole_sha)
        if recovered is not None:
            self.retention.note(recovered.boot, recovered.entry)
        return recovered

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
            self._seal_if_due(now)
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
        batch = self._leave_reserve(batch, now)
        due = self._losses and (not self._saving or now.mono >= self._report_us)
        if not batch and not due:
            return
        try:
            if due:
                self._report_us = now.mono + RETRY_US
                self._record_losses(now)
            if batch:
                self._put(batch, now)
            self._recovered()
        except OSError as error:
            self._fail(error, now)
            self._drop(self._trouble, Counter(record.tag for record in batch))

    def _leave_reserve(self, batch: Sequence[Record], now: Now) -> Sequence[Record]:
        """Return the records of a batch that may be written; drop the others, so that there is room for logins."""
        saving = self.retention.is_reserve(self._open_bytes)
        if saving != self._saving:
            self._saving = saving
            self._report_us = now.mono + RETRY_US
            self._alarm("raised" if saving else "cleared", "reserve")
            if saving:
                log.error("what is left of maxBytes of %s is kept for logins, denials, changes and alarms", self.folder)
        if not saving:
            return batch
        self._drop("disk-full", Counter(record.tag for record in batch if is_routine(record)))
        return [record for record in batch if not is_routine(record)]

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
        if any(dropped.reason == RETENTION for dropped in unreported):
            self._prove(now)  # until then the report proves nothing

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
        last = first + len(batch) - 1
        self._append(segment, Piece(octets, len(batch), last, batch[0].t, batch[-1].t), now)
        self.written += len(batch)
        if self.bounds.fsync_us == 0:
            self._sync(segment, now)

    @property
    def _segment_bytes(self) -> int:
        """Size of a segment: several must fit into the bounds, or deleting the oldest would delete everything."""
        return min(self.bounds.segment_bytes, self.bounds.max_bytes // 4)

    def _begin(self, now: Now) -> OpenSegment:
        header = SegmentHeader(
            v=VERSION,
            router=self._router,
            boot=self.boot,
            first=self._next,
            utc=now.utc,
            mono=now.mono,
            after=self._tail.name,
            prev=self._tail.sha,
        )
        path = self.folder / (segment_name(self._label, self.boot, self._next) + OPEN)
        segment = self._segment = OpenSegment(path, header, now.mono)
        return segment

    def _append(self, segment: OpenSegment, piece: Piece, now: Now) -> None:
        """Write all lines or none; OSError."""
        try:
            segment.append(piece)
        except OSError:
            self._abandon_torn(segment)
            raise
        if segment.unsealed_us is None:
            segment.unsealed_us = now.mono
        self._next = piece.last + 1

    def _abandon_torn(self, segment: OpenSegment) -> None:
        """Abandon the segment if a part stayed of something that could not be written whole."""
        if segment.file.torn:
            self._abandon()

    def _abandon(self) -> None:
        """Close the segment as it is, for repair when the disk works again or at the next start."""
        segment = self._segment
        if segment is not None:
            self._leave(segment)
            with suppress(OSError):
                segment.file.close()
            self._torn.append(_Torn(segment.file.path, segment.file.end))

    def _leave(self, segment: OpenSegment) -> None:
        """Write no more into the segment; the next one is linked to it."""
        self._segment = None
        self._tail = _Tail(segment.name, segment.digest.hex())

    def _mend(self, torn: _Torn) -> None:
        recovered = self._recover(torn.path, whole_bytes=torn.whole_bytes)
        if recovered is not None:
            self.retention.keep_found(recovered.place)

    def _finish(self, now: Now) -> None:
        """Complete the open segment; OSError, and it stays open or is mended later."""
        segment, key = self._segment, self._key
        if segment is None:
            return
        try:
            segment.end(segment.trailer() if key is None else segment.sealed_trailer(key, now.utc))
        except OSError:
            self._abandon_torn(segment)
            raise
        self._leave(segment)
        self._note_head(segment, now)
        try:
            place, entry = segment.put_away()
        except OSError:
            self._torn.append(_Torn(segment.file.path, segment.file.end))
            raise
        finally:
            if key is not None:
                key.advance()
        self.retention.add_segment(place, segment, now.utc)
        self.retention.note(self.boot, entry)

    def _seal_if_due(self, now: Now) -> None:
        """Seal the open segment if it has had an unsealed record for long enough; OSError."""
        segment, key = self._segment, self._key
        if key is not None and not key.saved:
            key.save()
        if key is None or segment is None or segment.unsealed_us is None:
            return
        if now.mono - segment.unsealed_us >= SEAL_US:
            self._seal(segment, key, now)

    def _prove(self, now: Now) -> None:
        """Keep a head of what is in the open segment, which is sealed if there is a key; OSError."""
        segment, key = self._segment, self._key
        if segment is not None and key is not None:
            self._seal(segment, key, now)
        elif segment is not None:
            self._note_head(segment, now)

    def _seal(self, segment: OpenSegment, key: SealingKey, now: Now) -> None:
        """Seal what is in the open segment, and erase the key; OSError."""
        try:
            segment.seal(key, now.utc)
        except OSError:
            self._abandon_torn(segment)
            raise
        self._next = segment.last + 1
        self.written += 1
        self._note_head(segment, now)
        key.advance()

    def _note_head(self, segment: OpenSegment, now: Now) -> None:
        """Keep the head of what is in a segment."""
        if segment.count:
            self.heads.append(
                SegmentHead(
                    router=self._router,
                    boot=self.boot,
                    seg=segment.name,
                    n=segment.last,
                    t=now.utc,
                    sha=segment.digest.hex(),
                )
            )

    def _sync(self, segment: OpenSegment, now: Now) -> None:
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

    def _alarm(self, state: str, value: str, *, name: str = "records") -> None:
        subject = str(self.folder)
        self.news.append(Alarm(name=name, severity="critical", subject=subject, state=state, value=value))
