"""A forger of sealed records: who has the folder with the present key, and computes all that can be computed anew.

The folder is a model of its segments. Acts of the forger change the model; `write` puts right the names, counts, sums
and links, and seals what the forger wants with the key that the router has.
"""

from __future__ import annotations

import hashlib
import shutil
import zlib
from collections import Counter
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from trouter.records import LinkStalled, RecordsDropped
from trouter.records.marks import write_mark
from trouter.records.seals import KeyState, key_path, next_key, read_state, seal_of, write_first
from trouter.records.segments import (
    OPEN,
    SegmentHeader,
    Trailer,
    file_label,
    line_of,
    segment_name,
    segments_in,
)
from trouter.records.stream import Taken
from trouter.records.writer import Bounds, Now, SegmentWriter

ROUTER: Final = "A"
LABEL: Final = file_label(ROUTER)
#: The verification key.
KEY: Final = bytes(range(32))
#: The first start of the router, in seconds since 1970.
START: Final = 1_700_000_000
#: Bytes that the segments of a third start take, less one of an earlier start.
_ROOM_BYTES: Final = 6000
#: A record by its start and number.
Number = tuple[int, int]

_HEADER: Final = msgspec.json.Decoder(SegmentHeader)
_TRAILER: Final = msgspec.json.Decoder(Trailer)
_DROPPED: Final = msgspec.json.Decoder(RecordsDropped)


class _Head(msgspec.Struct):
    """What the forger reads of a line."""

    n: int = -1
    k: str = ""


_HEAD: Final = msgspec.json.Decoder(_Head)


def head_of(line: bytes) -> _Head:
    """Return number and kind of a line, -1 and "" if it cannot be read."""
    try:
        return _HEAD.decode(line)
    except ValueError:
        return _Head()


@dataclass(slots=True)
class Segment:
    """One segment; without a trailer it is still open. ``resealed`` if the forger seals it with the present key."""

    header: SegmentHeader
    lines: list[bytes]
    trailer: Trailer | None
    resealed: bool = False

    @property
    def name(self) -> str:
        """The name of the segment when it is complete."""
        return segment_name(LABEL, self.header.boot, self.header.first)

    def numbers(self) -> dict[Number, bytes]:
        """Return the lines by start and number."""
        return {(self.header.boot, head_of(line).n): line for line in self.lines}


class SealedFolder:
    """A folder of sealed records: its segments, the router's key, and the records that are sealed."""

    def __init__(self, folder: Path) -> None:
        """Read what a router wrote; the lines after the last seal of the last segment are not sealed."""
        self.segments = []
        for place in segments_in(folder):
            head, *lines = place.path.read_bytes().splitlines(keepends=True)
            trailer = None if place.rest == OPEN else _TRAILER.decode(lines.pop())
            self.segments.append(Segment(_HEADER.decode(head), lines, trailer))
        state = read_state(key_path(folder, LABEL))
        assert state is not None
        self.state: KeyState = state
        self.sealed: dict[Number, bytes] = {}
        for segment in self.segments:
            whole = len(segment.lines)
            while segment.trailer is None and head_of(segment.lines[whole - 1]).k != "records.sealed":
                whole -= 1
            self.sealed |= Segment(segment.header, segment.lines[:whole], None).numbers()
        self.headers = {segment.name: segment.header for segment in self.segments}
        self.reported = reported_in(self.segments)


def reported_in(segments: list[Segment]) -> set[Number]:
    """Return the numbers of which records say that they were deleted."""
    found: set[Number] = set()
    for segment in segments:
        for line in segment.lines:
            if head_of(line).k == "records.dropped":
                report = _DROPPED.decode(line)
                boot = segment.header.boot if report.boot is None else report.boot
                found |= {(boot, n) for n in range(report.from_n, report.to_n + 1)}
    return found


class Forgery:
    """A copy of a folder that the forger changes."""

    def __init__(self, original: SealedFolder) -> None:
        self.original = original
        self.segments = deepcopy(original.segments)
        #: The number in the file with the key; None for no file.
        self.epoch: int | None = original.state.epoch
        self.relinks = False

    def write(self, folder: Path) -> None:
        """Write the folder, with sums that are right, and links but the first that are if ``relinks``; OSError."""
        self.segments.sort(key=lambda segment: (segment.header.boot, segment.header.first))
        key, epoch = bytes.fromhex(self.original.state.key), self.original.state.epoch
        before, sha = "", ""
        for segment in self.segments:
            if self.relinks and before:
                segment.header = msgspec.structs.replace(segment.header, after=before, prev=sha)
            octets = line_of(segment.header) + b"".join(segment.lines)
            digest = hashlib.sha256(octets)
            before, sha = segment.name, digest.hexdigest()
            if segment.trailer is None:
                (folder / (segment.name + OPEN)).write_bytes(octets)
                continue
            last = head_of(segment.lines[-1]).n if segment.lines else segment.header.first - 1
            trailer = msgspec.structs.replace(
                segment.trailer, count=len(segment.lines), last=last, crc=zlib.crc32(octets), sha=sha
            )
            if segment.resealed:
                trailer = msgspec.structs.replace(trailer, recovered=False, epoch=epoch, t=START * 1_000_000, mac="")
                mac = seal_of(key, digest.digest(), line_of(trailer))
                trailer = msgspec.structs.replace(trailer, mac=mac)
                key, epoch = next_key(key), epoch + 1
            (folder / segment.name).write_bytes(octets + line_of(trailer))
        self._write_key(folder, epoch, key)

    def _write_key(self, folder: Path, epoch: int, key: bytes) -> None:
        if self.epoch is None:
            return
        if self.epoch != self.original.state.epoch:
            epoch = self.epoch  # another number for the key that the forger has
        path = key_path(folder, LABEL)
        path.touch(0o600)
        path.write_bytes(line_of(KeyState(epoch=epoch, key=key.hex())))

    def problem(self) -> str:
        """Return what was changed of the sealed records, "" if nothing was, or if only a report covers what is gone.

        With the present key the forger can seal such a report, and other records after it. Nothing then proves how many
        records the start had from there on, nor what was before the oldest segment.
        """
        original = self.original
        with_key = any(segment.resealed for segment in self.segments)
        reported = reported_in(self.segments) if with_key else original.reported
        oldest = min(((segment.header.boot, segment.header.first) for segment in self.segments), default=(0, 0))
        present: dict[Number, bytes] = {}
        later: set[Number] = set()
        for segment in self.segments:
            numbers = segment.numbers()
            present |= numbers
            if segment.resealed:
                later |= numbers.keys()
            elif segment.header != original.headers.get(segment.name, segment.header) and numbers:
                return f"the header of {segment.name} was changed"
        may_be_gone, before = False, (0, 0)
        for number, line in original.sealed.items():
            now = present.get(number)
            goes_on = with_key and may_be_gone and number[0] == before[0]
            may_be_gone = now != line and (number in reported or goes_on or (with_key and number < oldest))
            if now != line and not (may_be_gone and (now is None or number in later)):
                return f"record {number[1]} of start {number[0]} was {line!r}, and is {now!r}"
            before = number
        return ""


def _now(second: int) -> Now:
    return Now((START + second) * 1_000_000, second * 1_000_000)


def _taken(count: int, lost: int = 0) -> Taken:
    records = [LinkStalled(conn=1, link=each, since=1, unsettled=0, state="start", t=1) for each in range(count)]
    return Taken(list(records), Counter({"link.stalled": lost}))


def write_starts(folder: Path, *, running: bool, max_bytes: int = 1 << 20, marked: int | None = None) -> SealedFolder:
    """Let a router start three times, and be killed the second time; ``running`` if it runs still the third time.

    It seals each minute, drops a record, completes a segment after 90 seconds, and keeps ``max_bytes``. Before the
    third start the segment number ``marked`` gets a mark, by which it is deleted before older ones.
    """
    for start in range(3):
        here = folder / str(start)
        if start:
            shutil.copytree(folder / str(start - 1), here)
        else:
            here.mkdir()
            write_first(here, LABEL, KEY)
        if start == 2 and marked is not None:
            max_bytes = _room_for_all_but(segments_in(here)[marked].path)
        writer = SegmentWriter(here, ROUTER, Bounds(segment_us=90_000_000, max_bytes=max_bytes))
        begun_s = start * 1000
        writer.open(_now(begun_s))
        for each in range(3):
            writer.write(_taken(3, lost=each % 2), _now(begun_s + each * 61))
            writer.tick(_now(begun_s + each * 61 + 60))
        writer.write(_taken(2), _now(begun_s + 200))
        if start == 1 or (running and start == 2):  # what a kill leaves is copied
            shutil.copytree(here, folder / "left")
            writer.close(_now(begun_s + 300))
            shutil.rmtree(here)
            (folder / "left").rename(here)
        else:
            writer.close(_now(begun_s + 300))
    return SealedFolder(folder / "2")


def _room_for_all_but(segment: Path) -> int:
    """Mark a segment; return for how many bytes the router deletes it, and no other, in the third start."""
    write_mark(segment.parent, segment.name, zlib.crc32(segment.read_bytes()))
    return sum(place.path.stat().st_size for place in segments_in(segment.parent)) + _ROOM_BYTES
