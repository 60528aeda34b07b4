"""The writing side of a spool: frames go to the disk in groups, and become durable with them.

The order that safety depends on: append, ``fdatasync``, move the mark; only then may a message be accepted. A spool
that is opened again holds at least what was accepted, and exactly a prefix of what was appended: damage is tolerated
only after the mark, in the last segment, and cut off. No sequence is used twice. One thread calls ``append`` and
``take``; any one thread at a time calls ``commit`` and ``reap``, which wait for the disk.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from time import time
from typing import Any, Final, NamedTuple, Self
from uuid import uuid4

from trouter.records.disk import (
    FOLDER_MODE,
    PART,
    AppendedFile,
    FileHeld,
    lock_file,
    open_regular,
    place_file,
    rename_durably,
    write_all,
)
from trouter_pipeline.spool.cursors import (
    DEFAULT,
    Cursors,
    add_cursor,
    cursors_in,
    delete_segments,
    held,
    make_cursors,
    passed,
)
from trouter_pipeline.spool.errors import SpoolBusy, SpoolCorrupt, SpoolReplaced
from trouter_pipeline.spool.frames import FrameWriter
from trouter_pipeline.spool.marks import Mark, place_mark
from trouter_pipeline.spool.segments import (
    DURABLE,
    HEADER_BYTES,
    IDENTITY,
    LOCK,
    SPARE,
    VERSION,
    Segment,
    header_of,
    read_header,
    segment_path,
    segments_in,
    walk,
)

MAX_TAG_BYTES: Final = 0xFFFF
#: No longer message is accepted; the length field of a frame could hold more.
MAX_MESSAGE_BYTES: Final = 1 << 31
#: A consumed last segment is replaced by a new one if that frees so much.
_WORTH_FREEING: Final = 1 << 20
#: Distance between the known positions of sequences, for counting unconsumed bytes.
_STEP_BYTES: Final = 1 << 16


class Group(NamedTuple):
    """Frames to write together: ``messages`` of them, up to sequence ``end`` - 1."""

    frames: bytearray
    end: int
    messages: int


class Spool:
    """A spool open for writing, locked against other processes. ``open`` makes it."""

    def __init__(self, folder: Path, lock: int, segment_bytes: int, backlog_bytes: int) -> None:
        self.folder = folder
        self.segment_bytes = segment_bytes
        #: Unconsumed bytes at which the receiver should stop giving credit.
        self.backlog_limit = backlog_bytes
        self.uuid = ""
        self.address = ""
        self.shard = 0
        #: The error of the disk after which nothing is written any more.
        self.failure: OSError | None = None
        self.frames = FrameWriter(0)
        #: First sequence that is not durable.
        self.durable = 0
        self._lock = lock
        self._durable: Mark | None = None
        self._cursors: Cursors | None = None
        self._consumed_to = 0
        self._segments: deque[Segment] = deque()
        #: The last segment; a frame is whole in it once it is on the disk.
        self._file: AppendedFile | None = None
        #: Sequences, each with the bytes of frames that were written before it since this object was opened.
        self._places: deque[tuple[int, int]] = deque([(0, 0)])
        self._written = 0

    @classmethod
    def open(
        cls,
        folder: Path | str,
        *,
        segment_bytes: int = 16 << 20,
        backlog_bytes: int = 1 << 30,
        address: str = "",
        shard: int = 0,
        cursors: Sequence[str] = (),
    ) -> Self:
        """Open or create the spool in ``folder``; opening an existing one works on a full disk too.

        It has ``cursors`` then, a new one only these, or the default one for none.

        SpoolBusy if another process has it open, SpoolReplaced if it belongs to another address or shard, SpoolCorrupt
        if durable frames or other files are damaged, OSError.
        """
        folder = Path(folder)
        folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        spool = cls(folder, acquire(folder), segment_bytes, backlog_bytes)
        try:
            spool._identify(address, shard, cursors)
            spool._durable = Mark(folder / DURABLE, writable=True)
            for name in cursors:
                if name not in cursors_in(folder):
                    add_cursor(folder, name)
            spool._cursors = Cursors(folder)
            spool._recover()
        except BaseException:
            spool.close()
            raise
        return spool

    @property
    def next(self) -> int:
        """Sequence of the next message."""
        return self.frames.next

    @property
    def consumed(self) -> int:
        """First sequence that a cursor has not passed."""
        if self._cursors is not None:
            self._consumed_to = self._cursors.consumed(self.durable)
        return self._consumed_to

    @property
    def slowest(self) -> str:
        """The cursor that keeps the most messages."""
        positions = self._cursors.positions() if self._cursors is not None else {}
        return min(positions, key=lambda name: passed(positions[name], self.durable), default=DEFAULT)

    @property
    def backlog_bytes(self) -> int:
        """Bytes of frames that are not consumed, up to 64 KiB too many."""
        consumed = self.consumed
        places = self._places
        while len(places) > 1 and places[1][0] <= consumed:
            places.popleft()
        return 0 if consumed >= self.durable else self._written - places[0][1]

    @property
    def full(self) -> bool:
        """Whether the backlog has reached its limit."""
        return self.backlog_bytes >= self.backlog_limit

    # --- filling

    def append(
        self,
        message: bytes,
        *,
        format: int = 0,  # noqa: A002 - the standard's word, less its first half
        tag: bytes = b"",
        presettled: bool = False,
        ingest_us: int,
    ) -> int:
        """Add an encoded message and return its sequence; it is durable only after ``sync``.

        ``ingest_us`` is its time of arrival, in microseconds since 1970. OSError if the disk has failed before;
        ValueError for a tag of more than 65,535 bytes, a message of more than 2 GiB, or a closed spool.
        """
        self.check()
        if len(tag) > MAX_TAG_BYTES:
            raise ValueError(f"a delivery-tag of {len(tag)} bytes; at most {MAX_TAG_BYTES} are allowed")
        if len(message) > MAX_MESSAGE_BYTES:
            raise ValueError(f"a message of {len(message)} bytes; at most {MAX_MESSAGE_BYTES} are allowed")
        self.frames.begin(format, tag, ingest_us)
        self.frames.extend(message, 0, len(message))
        return self.frames.finish(presettled)

    def take(self) -> Group:
        """Remove and return the frames since the last ``take``, for ``commit``."""
        count = self.frames.count
        return Group(self.frames.take(), self.frames.next, count)

    def commit(self, group: Group) -> int:
        """Write and sync a group; return the first sequence that is not durable.

        Commit groups in the order of ``take``. OSError if the disk fails, and on every later call; the group is then
        lost.
        """
        self.check()
        with self._failing():
            if group.frames:
                if self._last.end > HEADER_BYTES and self._last.end + len(group.frames) > self.segment_bytes:
                    self._roll()
                self._last.append(group.frames, durable=True)
        self._written += len(group.frames)
        self._publish(group.end)
        return self.durable

    def sync(self) -> int:
        """Make all appended messages durable; return the first sequence that is not. OSError as in ``commit``."""
        return self.commit(self.take())

    def reap(self) -> int:
        """Delete consumed segments and return their number, 0 while the cursors are being changed; OSError."""
        self.check()
        with suppress(SpoolBusy), held(self.folder):
            return self._reap()
        return 0

    def _reap(self) -> int:
        if self._cursors is not None:
            self._cursors.refresh()
        consumed = self.consumed
        everything = consumed == self.durable and self._last.end - HEADER_BYTES >= min(
            _WORTH_FREEING, self.segment_bytes
        )
        if everything and (self.folder / SPARE).exists():
            with self._failing():
                self._roll()
        gone = self._delete_before(consumed)
        if gone:
            self._keep_spare()
        return gone

    def _delete_before(self, upto: int) -> int:
        """Delete segments whose messages are all before ``upto``; return their number; OSError."""
        gone = delete_segments(list(self._segments), upto)
        for _ in range(gone):
            self._segments.popleft()
        return gone

    def check(self) -> None:
        """Raise OSError if the disk has failed before, ValueError if the spool is closed."""
        if self.failure is not None:
            raise OSError(self.failure.errno, self.failure.strerror, self.failure.filename) from self.failure
        if self._lock < 0:
            raise ValueError("this spool is closed")

    def close(self) -> None:
        """Close the files and release the lock. Messages that were not synced are lost."""
        if self._durable is not None:
            self._durable.close()
        if self._cursors is not None:
            self._cursors.close()
        self._durable = self._cursors = None
        if self._file is not None:
            self._file.close()
        self._file = None
        if self._lock >= 0:
            os.close(self._lock)
        self._lock = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- taking over

    def _identify(self, address: str, shard: int, cursors: Sequence[str]) -> None:
        """Read the spool's identity, or write a new one; SpoolCorrupt, SpoolReplaced, OSError."""
        path = self.folder / IDENTITY
        if not path.exists():
            if segments := segments_in(self.folder):
                raise SpoolCorrupt(
                    path,
                    0,
                    f"is missing, although there is {segments[0].path.name}: the folder is not a complete spool",
                )
            place_mark(self.folder / DURABLE, 0)
            make_cursors(self.folder, cursors or (DEFAULT,))
            identity = {"version": VERSION, "uuid": str(uuid4()), "address": address, "shard": shard, "created": time()}
            place_file(path, json.dumps(identity).encode() + b"\n")
        found = read_identity(self.folder)
        self.uuid, self.address, self.shard = found["uuid"], found["address"], found["shard"]
        if address and (self.address, self.shard) != (address, shard):
            raise SpoolReplaced(
                f"the spool in {self.folder} is that of address {self.address!r}, shard {self.shard}, not of "
                f"{address!r}, shard {shard}: give each its own folder"
            )

    def _recover(self) -> None:
        """Find the end of the good frames, cut off what follows it, and continue there."""
        marked = self._mark.get()
        (self.folder / f"{SPARE}{PART}").unlink(missing_ok=True)
        self._segments.extend(segments_in(self.folder))
        if not self._segments:
            if marked:
                raise SpoolCorrupt(segment_path(self.folder, 0), 0, f"every segment up to message {marked} is gone")
            self._keep_spare(must=True)
            self._begin_segment(0)
        with suppress(SpoolBusy), held(self.folder):
            if self._cursors is not None:
                self._cursors.refresh()
                self._delete_before(self._cursors.consumed(marked))
        self._places = deque([(self._segments[0].first, 0)])
        sequence = self._segments[0].first
        for segment in list(self._segments)[:-1]:
            sequence = self._read_sealed(segment, sequence)
        sequence = self._read_last(self._segments[-1], sequence, marked)
        self.frames = FrameWriter(sequence)
        self._last.sync()
        self._publish(sequence)
        self._keep_spare()
        self.reap()

    def _read_sealed(self, segment: Segment, sequence: int) -> int:
        """Count the frames of a segment that is not the last; return the sequence after it."""
        descriptor = self._open_segment(segment, sequence, os.O_RDONLY)
        try:
            end = os.fstat(descriptor).st_size
            for block in walk(descriptor, segment.path, sequence=sequence, until=sys.maxsize):
                sequence = block.end
                self._note(block.first, len(block.frames))
        finally:
            os.close(descriptor)
        following = next(each for each in self._segments if each.first > segment.first)
        if sequence != following.first:
            why = f"the file ends before message {sequence}, but the next one begins with message {following.first}"
            raise SpoolCorrupt(segment.path, end, why)
        return sequence

    def _read_last(self, segment: Segment, sequence: int, marked: int) -> int:
        """Count the frames of the last segment, cut it after the last good one; return the sequence after that."""
        if self._file is not None:
            self._file.close()
            self._file = None
        try:
            descriptor = self._open_segment(segment, sequence, os.O_RDWR)
        except SpoolCorrupt:
            if marked > segment.first or segment.first != sequence:
                raise
            # nothing in it was durable: begin it anew, in the space that it has
            descriptor = os.open(segment.path, os.O_RDWR | os.O_CLOEXEC)
            self._file = AppendedFile(segment.path, descriptor)
            os.ftruncate(descriptor, min(HEADER_BYTES, os.fstat(descriptor).st_size))
            write_all(descriptor, header_of(self.uuid, segment.first), 0)
            os.fsync(descriptor)
        self._file = AppendedFile(segment.path, descriptor, HEADER_BYTES)
        try:
            for block in walk(descriptor, segment.path, sequence=sequence, until=sys.maxsize):
                sequence = block.end
                self._file.end = block.offset + len(block.frames)
                self._note(block.first, len(block.frames))
        except SpoolCorrupt as torn:
            if sequence < marked:
                why = f"{torn.why}, although the mark says that the messages before {marked} are safe"
                raise SpoolCorrupt(torn.path, torn.offset, why) from None
            self._file.end = torn.offset
            self._file.cut()
        if sequence < marked:
            raise SpoolCorrupt(segment.path, self._file.end, f"the messages {sequence} to {marked - 1} are gone")
        return sequence

    def _open_segment(self, segment: Segment, sequence: int, flags: int) -> int:
        """Return the descriptor of a segment that must begin at ``sequence``; OSError, SpoolCorrupt, SpoolReplaced."""
        if segment.first != sequence:
            raise SpoolCorrupt(segment.path, 0, f"the first message of this segment should be {sequence}")
        descriptor = open_regular(segment.path, flags)
        try:
            uuid = read_header(descriptor, segment)
            if uuid != self.uuid:
                raise SpoolReplaced(
                    f"{segment.path} belongs to spool {uuid}, but this is the folder of spool {self.uuid}"
                )
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    # --- segments

    @property
    def _last(self) -> AppendedFile:
        if self._file is None:
            raise ValueError("this spool is closed")
        return self._file

    @property
    def _mark(self) -> Mark:
        if self._durable is None:
            raise ValueError("this spool is closed")
        return self._durable

    def _publish(self, end: int) -> None:
        self.durable = end
        self._mark.set(end)
        if self._written - self._places[-1][1] >= _STEP_BYTES:
            self._places.append((end, self._written))

    def _note(self, first: int, octets: int) -> None:
        self._places.append((first, self._written))
        self._written += octets

    def _keep_spare(self, *, must: bool = False) -> None:
        """Create the spare file; if the disk is full, raise OSError only if it ``must`` exist."""
        spare = self.folder / SPARE
        if spare.exists():
            return
        try:
            place_file(spare, bytes(HEADER_BYTES))
        except OSError:
            if must:
                raise

    def _begin_segment(self, first: int) -> None:
        """Make the spare the last segment; OSError."""
        spare = self.folder / SPARE
        descriptor = os.open(spare, os.O_RDWR | os.O_CLOEXEC)
        try:
            write_all(descriptor, header_of(self.uuid, first), 0)
            os.fsync(descriptor)
            path = segment_path(self.folder, first)
            rename_durably(spare, path)
        except BaseException:
            os.close(descriptor)
            raise
        if self._file is not None:
            self._file.close()
        self._file = AppendedFile(path, descriptor, HEADER_BYTES)
        self._segments.append(Segment(first, path))

    def _roll(self) -> None:
        """Begin a new segment; all that was committed is in the old one, and durable."""
        self._keep_spare(must=True)
        self._begin_segment(self.durable)
        self._keep_spare()

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Note an OSError of the block as the spool's failure, cut off what is not durable, and raise it."""
        try:
            yield
        except OSError as error:
            path = str(self._segments[-1].path)
            self.failure = OSError(error.errno or errno.EIO, error.strerror or str(error), path)
            with suppress(OSError):
                self._last.cut()
            raise self.failure from error


def acquire(folder: Path) -> int:
    """Return a descriptor that holds the spool's lock; SpoolBusy, OSError."""
    try:
        return lock_file(folder / LOCK)
    except FileHeld as held:
        raise SpoolBusy(f"spool {folder} is in use by process {held.holder or 'unknown'}") from None


def read_identity(folder: Path) -> dict[str, Any]:
    """Return the fields of `spool.json`: version, uuid, address, shard, created; OSError, SpoolCorrupt."""
    path = folder / IDENTITY
    with open(path, "rb", opener=open_regular) as file:
        text = file.read(_MAX_IDENTITY_BYTES)
    try:
        found = json.loads(text)
        if found["version"] != VERSION:
            raise SpoolCorrupt(
                path, 0, f"version {found['version']} of the format; this program reads version {VERSION}"
            )
        if not all(isinstance(found[name], kind) for name, kind in _IDENTITY.items()):
            raise TypeError
    except (ValueError, KeyError, TypeError) as error:
        raise SpoolCorrupt(path, 0, "the file is no description of a spool") from error
    return found  # type: ignore[no-any-return]


#: A longer file is no description of a spool.
_MAX_IDENTITY_BYTES: Final = 1 << 16
_IDENTITY: Final = {"uuid": str, "address": str, "shard": int}
