"""Cursors: how far each consumer of a spool has come. A message is deleted once every cursor has passed it.

A cursor is a mark in the folder of the spool: ``NAME.cursor``, and ``consumed`` for the one called ``default``, which
a spool has unless it was made with others. Cursors are added and removed, and messages are deleted, under one lock: a
new cursor has all messages from its position on.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from trouter.records.disk import FileHeld, lock_file, open_regular, sync
from trouter_pipeline.spool.errors import NoCursor, SpoolBusy, SpoolCorrupt, SpoolError
from trouter_pipeline.spool.frames import parse_frames
from trouter_pipeline.spool.marks import Mark, place_mark
from trouter_pipeline.spool.segments import CONSUMED, DURABLE, HEADER_BYTES, Segment, segments_in, walk

#: The cursor of consumers that name none.
DEFAULT: Final = "default"
#: A spool has no more cursors.
MAX_CURSORS: Final = 64
_LOCK: Final = "cursors.lock"
_SUFFIX: Final = ".cursor"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class Lag(NamedTuple):
    """How far a cursor is behind: messages and bytes it has not passed, and the arrival of the oldest of them.

    ``oldest_us`` is in microseconds since 1970, 0 if there is none.
    """

    cursor: str
    position: int
    messages: int
    octets: int
    oldest_us: int


def check_name(name: str) -> str:
    """Return a name of a cursor; ValueError."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name[:80]!r} is no name of a cursor: up to 64 letters, digits, - and _")
    return name


def cursors_in(folder: Path) -> list[str]:
    """Return the names of a spool's cursors; OSError."""
    with os.scandir(folder) as entries:
        names = {entry.name for entry in entries}
    cursors = [name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)]
    return sorted([*filter(_NAME.fullmatch, cursors), *([DEFAULT] if CONSUMED in names else [])])


def open_cursor(folder: Path, name: str, *, writable: bool) -> Mark:
    """Return the mark of a cursor; NoCursor, SpoolCorrupt, OSError."""
    try:
        return Mark(_path(folder, check_name(name)), writable=writable)
    except FileNotFoundError:
        raise NoCursor(
            f"{_without(folder, name)}: add it with `trouter pipeline cursors {folder} --add {name}`"
        ) from None


def _without(folder: Path, name: str) -> str:
    """Return what is wrong if a spool has no cursor of this name, with those that it has."""
    return f"spool {folder} has no cursor {name!r} (it has {', '.join(cursors_in(folder)) or 'none'})"


def _path(folder: Path, name: str) -> Path:
    return folder / (CONSUMED if name == DEFAULT else name + _SUFFIX)


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold the lock of a spool's cursors, for a moment; SpoolBusy, OSError."""
    try:
        lock = lock_file(folder / _LOCK)
    except FileHeld as error:
        raise SpoolBusy(f"process {error.holder or 'unknown'} has the cursors of spool {folder}: try again") from None
    try:
        yield
    finally:
        os.close(lock)


def passed(position: int, end: int) -> int:
    """Return up to which message a cursor has passed the spool: none for a position beyond the spool's ``end``.

    It is no consumer's: the file was changed, or is of another spool. No message is deleted because of it.
    """
    return position if position <= end else 0


def make_cursors(folder: Path, names: Sequence[str]) -> None:
    """Make the cursors of a new spool, in place of all that may be there; OSError."""
    for name in cursors_in(folder):
        _path(folder, name).unlink()
    for name in map(check_name, names):
        place_mark(_path(folder, name), 0)


def add_cursor(folder: Path, name: str, *, newest: bool = False) -> int:
    """Add a cursor at the oldest message, or behind the ``newest``; return its position.

    ValueError if it is there or there are too many, SpoolError, OSError.
    """
    check_name(name)
    with held(folder):
        there = cursors_in(folder)
        if name in there:
            raise ValueError(f"spool {folder} has a cursor {name!r} already")
        if len(there) >= MAX_CURSORS:
            raise ValueError(f"spool {folder} has {MAX_CURSORS} cursors: no spool has more")
        segments = segments_in(folder)
        position = _get(folder / DURABLE) if newest or not segments else segments[0].first
        place_mark(_path(folder, name), position)
        return position


def remove_cursor(folder: Path, name: str) -> None:
    """Remove a cursor, so that it keeps no messages any more; NoCursor, ValueError for the last one, SpoolBusy."""
    with held(folder):
        cursors = cursors_in(folder)
        if name not in cursors:
            raise NoCursor(_without(folder, name))
        if cursors == [name]:
            raise ValueError(f"{name!r} is the last cursor of spool {folder}: add another one before you remove it")
        _path(folder, name).unlink()
        sync(folder)


def _get(path: Path) -> int:
    mark = Mark(path, writable=False)
    try:
        return mark.get()
    finally:
        mark.close()


class Cursors:
    """The marks of all cursors of a spool, open for reading."""

    def __init__(self, folder: Path) -> None:
        """Open them; SpoolCorrupt, OSError."""
        self._folder = folder
        self._marks: dict[str, Mark] = {}
        self.refresh()

    def refresh(self) -> None:
        """Open the cursors that there are now; SpoolCorrupt, also if there is none, OSError."""
        marks: dict[str, Mark] = {}
        try:
            for name in cursors_in(self._folder):
                with suppress(FileNotFoundError):  # removed just now
                    marks[name] = Mark(_path(self._folder, name), writable=False)
            if not marks:
                raise SpoolCorrupt(self._folder / CONSUMED, 0, "is missing, and the spool has no other cursor")
        except BaseException:
            _close(marks)
            raise
        _close(self._marks)
        self._marks = marks

    def consumed(self, end: int) -> int:
        """Return the first sequence that a cursor of a spool that ends before ``end`` has not passed; SpoolCorrupt."""
        return min(passed(mark.get(), end) for mark in self._marks.values())

    def positions(self) -> dict[str, int]:
        """Return the position of each cursor; SpoolCorrupt."""
        return {name: mark.get() for name, mark in self._marks.items()}

    def close(self) -> None:
        _close(self._marks)


def _close(marks: dict[str, Mark]) -> None:
    for mark in marks.values():
        mark.close()


def delete_segments(segments: Sequence[Segment], upto: int) -> int:
    """Delete the first segments as far as they end before ``upto``, never the last; return their number; OSError.

    The caller has the writer's lock and that of the cursors.
    """
    gone = 0
    for segment, following in pairwise(segments):
        if following.first > upto:
            break
        segment.path.unlink(missing_ok=True)
        gone += 1
    return gone


# --- lags


def lags_of(folder: Path) -> list[Lag]:
    """Return how far each cursor of a spool is behind; SpoolError, OSError."""
    with held(folder):  # so that nothing is deleted meanwhile
        cursors = Cursors(folder)
        try:
            positions = cursors.positions()
        finally:
            cursors.close()
        durable, segments = _get(folder / DURABLE), segments_in(folder)
        return [_lag(name, positions[name], durable, segments) for name in sorted(positions)]


def _lag(name: str, position: int, durable: int, segments: Sequence[Segment]) -> Lag:
    since = max(passed(position, durable), segments[0].first) if segments else durable
    if since >= durable:
        return Lag(name, position, 0, 0, 0)
    own = next(segment for segment in reversed(segments) if segment.first <= since)
    octets = sum(segment.path.stat().st_size - HEADER_BYTES for segment in segments if segment.first > since)
    descriptor = open_regular(own.path)
    try:
        offset = HEADER_BYTES
        for block in walk(descriptor, own.path, sequence=own.first, until=since, checked=False):
            offset = block.offset + len(block.frames)
        octets += os.fstat(descriptor).st_size - offset
        blocks = walk(descriptor, own.path, offset=offset, sequence=since, until=since + 1)
        arrivals = [frame.ingest_us for block in blocks for frame in parse_frames(block.frames)]
    finally:
        os.close(descriptor)
    if not arrivals:
        raise SpoolError(f"{own.path} ends before message {since}")
    return Lag(name, position, durable - since, octets, arrivals[0])
