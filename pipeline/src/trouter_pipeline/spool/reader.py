"""The reading side of a spool: takes no lock to read, and works in any process that sees the folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from trouter.records.disk import open_regular
from trouter_pipeline.spool.cursors import DEFAULT, Cursors, delete_segments, held, open_cursor
from trouter_pipeline.spool.errors import SegmentMissing, SpoolBusy, SpoolCorrupt, SpoolGap, SpoolReplaced
from trouter_pipeline.spool.marks import Mark
from trouter_pipeline.spool.segments import (
    DURABLE,
    HEADER_BYTES,
    IDENTITY,
    Segment,
    read_header,
    segments_in,
    walk,
)
from trouter_pipeline.spool.writer import acquire, read_identity


def beginning(cursor: str, position: int, first: int) -> int:
    """Return where a new consumer begins: where its cursor is; with the default one at the oldest message.

    That is before the ``first`` message of the spool if messages are gone that the cursor has not passed.
    """
    return min(position, first) if cursor == DEFAULT else position


class SpoolReader:
    """A spool open for reading; only ``consumed`` changes it, by moving the cursor."""

    def __init__(self, folder: Path | str, cursor: str = DEFAULT) -> None:
        """Open the spool in ``folder``, for the consumer of ``cursor``.

        SegmentMissing if there is no spool, SpoolCorrupt, OSError. Only what needs the cursor looks for it.
        """
        self.folder = Path(folder)
        self.cursor = cursor
        try:
            identity = read_identity(self.folder)
            self._durable = Mark(self.folder / DURABLE, writable=False)
        except FileNotFoundError:
            raise SegmentMissing(
                f"spool {self.folder} is not visible here: no {IDENTITY}. Is the folder on this machine, or mounted?"
            ) from None
        self.uuid: str = identity["uuid"]
        self.address: str = identity["address"]
        self.shard: int = identity["shard"]

    @property
    def first(self) -> int:
        """First sequence that is still in the spool; OSError."""
        segments = segments_in(self.folder)
        return segments[0].first if segments else self.durable()

    @property
    def position(self) -> int:
        """First sequence that this reader's cursor has not passed; NoCursor, SpoolCorrupt, OSError."""
        mark = open_cursor(self.folder, self.cursor, writable=False)
        try:
            position = mark.get()
        finally:
            mark.close()
        if position > (end := self.durable()):
            raise SpoolCorrupt(
                mark.path,
                0,
                f"cursor {self.cursor!r} is at message {position}, but the spool ends before message {end}. After a "
                "power failure start `trouter pipeline spool`, which finds the end; else the file was changed, or is "
                "of another spool: remove the cursor and add it again",
            )
        return position

    @property
    def begin(self) -> int:
        """First sequence for a new consumer: see `beginning`. NoCursor, SpoolCorrupt, OSError."""
        return beginning(self.cursor, self.position, self.first)

    def durable(self) -> int:
        """Return the first sequence that is not durable yet, without a system call; SpoolCorrupt."""
        return self._durable.get()

    def blocks(self, start: int, end: int, *, block_bytes: int = 1 << 20) -> Iterator[bytes]:
        """Yield the frames of messages ``start`` to ``end`` - 1, whole and verified; raise unless all are there.

        A block has at most ``block_bytes``, or one larger frame. SpoolGap if messages were deleted or have not come,
        SegmentMissing if a file is not visible here, SpoolCorrupt, SpoolReplaced, OSError.
        """
        for block, _ in self.numbered_blocks(start, end, block_bytes=block_bytes):
            yield block

    def numbered_blocks(self, start: int, end: int, *, block_bytes: int = 1 << 20) -> Iterator[tuple[bytes, int]]:
        """Yield the same blocks, each with the sequence after it; raises as ``blocks``."""
        if start >= end:
            return
        durable = self.durable()
        if end > durable:
            raise SpoolGap(f"spool {self.folder} has no message {end - 1} yet: it ends before message {durable}")
        sequence = start
        for segment in self._segments_for(start, end):
            for block in self._blocks_of(segment, sequence, end, block_bytes):
                sequence += block[1]
                yield block[0], sequence
            if sequence == end:
                return
        raise SegmentMissing(f"the segment of spool {self.folder} that has message {sequence} is not visible here")

    def _segments_for(self, start: int, end: int) -> list[Segment]:
        segments = segments_in(self.folder)
        if segments and segments[0].first > start:
            raise SpoolGap(f"spool {self.folder} begins with message {segments[0].first}: message {start} is deleted")
        return [
            segment
            for segment, following in zip(segments, [*segments[1:], None], strict=True)
            if segment.first < end and (following is None or following.first > start)
        ]

    def _blocks_of(self, segment: Segment, start: int, end: int, block_bytes: int) -> Iterator[tuple[bytes, int]]:
        """Yield the blocks of one segment from message ``start`` on, each with its number of messages."""
        if segment.first > start:
            raise SegmentMissing(
                f"the segment of spool {self.folder} that has message {start} is not visible here; the next is "
                f"{segment.path.name}"
            )
        try:
            descriptor = open_regular(segment.path)
        except FileNotFoundError:
            raise SegmentMissing(f"segment {segment.path} is not visible here, or was deleted just now") from None
        try:
            uuid = read_header(descriptor, segment)
            if uuid != self.uuid:
                raise SpoolReplaced(f"{segment.path} belongs to spool {uuid}, but spool {self.uuid} was opened")
            offset, sequence = HEADER_BYTES, segment.first
            for block in walk(descriptor, segment.path, sequence=sequence, until=start, checked=False):
                offset, sequence = block.offset + len(block.frames), block.end
            if sequence < start:
                why = f"the file ends before message {sequence}, where message {start} should follow"
                raise SpoolCorrupt(segment.path, offset, why)
            for block in walk(
                descriptor, segment.path, offset=offset, sequence=start, until=end, block_bytes=block_bytes
            ):
                yield block.frames, block.end - block.first
        finally:
            os.close(descriptor)

    def consumed(self, upto: int) -> None:
        """Move the cursor: the messages before ``upto`` may be deleted once every cursor has passed them.

        The writing process deletes them, or this one if none is writing. An ``upto`` before the cursor has no effect.
        ValueError if ``upto`` is not durable, NoCursor, SpoolCorrupt, OSError.
        """
        if upto > self.durable():
            raise ValueError(
                f"message {upto - 1} of spool {self.folder} is not durable yet: a consumer cannot have finished it"
            )
        mark = open_cursor(self.folder, self.cursor, writable=True)
        try:
            if upto <= mark.get():
                return
            mark.set(upto)
            mark.flush()
        finally:
            mark.close()
        with suppress(SpoolBusy):
            self._reap()

    def _reap(self) -> None:
        lock = acquire(self.folder)
        try:
            with held(self.folder):
                cursors = Cursors(self.folder)
                try:
                    delete_segments(segments_in(self.folder), cursors.consumed(self.durable()))
                finally:
                    cursors.close()
        finally:
            os.close(lock)

    def close(self) -> None:
        self._durable.close()


def spools_in(folder: Path | str) -> list[Path]:
    """Return the folder itself if it is a spool, else the spools of its shards, sorted by name; [] for none."""
    folder = Path(folder)
    if (folder / IDENTITY).exists():
        return [folder]
    return sorted(path.parent for path in folder.glob(f"*/{IDENTITY}"))
