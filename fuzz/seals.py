"""Any forgery of sealed records by who has the folder and the present key is found with the verification key.

The first byte chooses a folder of a router that has ended or still runs; the others choose acts of the forger, who then
computes all sums, and links if he wants, anew. A check without an error proves that each sealed record is as the router
wrote it, or that a sealed record reports its deletion. A folder without a forgery is without an error.

Allowed: nothing.
"""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from fuzz.parts.forger import KEY, START, Forgery, SealedFolder, Segment, head_of, write_starts
from trouter.records import LinkStalled, Record, RecordsDropped, RecordsSealed
from trouter.records.check import check_folder
from trouter.records.segments import SegmentHeader, Trailer, numbered
from trouter.testing.fuzz import Draw

COVERS = ("trouter.records.chain", "trouter.records.check", "trouter.records.sealed")
MEMORY: Final = "/dev/shm" if os.path.isdir("/dev/shm") else None  # noqa: PTH112 - a disk would be slow
FOLDER: Final = tempfile.TemporaryDirectory(dir=MEMORY)
MAX_ACTS: Final = 6


def originals() -> list[SealedFolder]:
    """Return folders of a router that has ended, of one that runs, and of some that have deleted segments for room.

    The last two have deleted a marked one: the last of the first start, and the first of the second.
    """
    made = []
    silenced = logging.root.manager.disable
    logging.disable()  # each start after a kill has a line in the log
    for running, max_bytes, marked in (
        (False, 1 << 20, None),
        (True, 1 << 20, None),
        (False, 9000, None),
        (False, 1 << 20, 1),
        (False, 1 << 20, 2),
    ):
        with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
            made.append(write_starts(Path(folder), running=running, max_bytes=max_bytes, marked=marked))
    logging.disable(silenced)
    return made


ORIGINALS: Final = originals()


def check(data: bytes) -> None:
    draw = Draw(data)
    forgery = Forgery(draw.choice(ORIGINALS))
    acts = draw.number(0, MAX_ACTS)
    for _ in range(acts):
        draw.choice(ACTS)(forgery, draw)
    forgery.relinks = draw.flag()
    folder = Path(FOLDER.name) / "log"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    forgery.write(folder)
    errors = check_folder(folder, key=KEY).errors
    if not acts and not forgery.relinks:
        assert errors == []
    if not errors:
        assert forgery.problem() == ""


def segment_of(forgery: Forgery, draw: Draw) -> Segment:
    if not forgery.segments:
        add_segment(forgery, draw)
    return draw.choice(forgery.segments)


def place_in(segment: Segment, draw: Draw) -> int:
    return draw.number(0, len(segment.lines))


def record_of(forgery: Forgery, draw: Draw) -> Record:
    """Return a record that the forger makes up: of the router's work, of a deletion, or a seal."""
    kind = draw.number(0, 4)
    if kind == 0:
        return LinkStalled(conn=1, link=draw.number(0, 255), since=1, unsettled=0, state="end", t=1)
    if kind == 1:
        first = draw.number(0, 40)
        return deletion(boot_of(forgery, draw), first, first + draw.number(0, 40))
    if kind == 2:
        hidden = draw.choice(forgery.original.segments)
        return deletion(hidden.header.boot, hidden.header.first, head_of(hidden.lines[-1]).n)
    if kind == 3:
        hidden = draw.choice(forgery.original.segments)
        report = deletion(hidden.header.boot, hidden.header.first, head_of(hidden.lines[-1]).n)
        report.from_seg = report.to_seg = hidden.name
        report.after_seg = hidden.header.after
        if hidden.trailer is not None:
            report.from_seal = report.to_seal = hidden.trailer.epoch
        return report
    trailers = [each.trailer for each in forgery.original.segments if each.trailer and each.trailer.mac]
    return RecordsSealed(epoch=draw.number(0, 40), mac=draw.choice(trailers).mac, t=1)


def deletion(boot: int, first: int, last: int) -> RecordsDropped:
    """Return the report of a deletion, as older versions made it."""
    return RecordsDropped(
        reason="retention", from_n=first, to_n=last, count=last + 1 - first, by_kind={}, boot=boot, t=1
    )


def boot_of(forgery: Forgery, draw: Draw) -> int:
    boots = sorted({segment.header.boot for segment in forgery.original.segments})
    return draw.choice([START - 500, *(boot + each for boot in boots for each in (0, 1))])


def change_line(forgery: Forgery, draw: Draw) -> None:
    segment = segment_of(forgery, draw)
    if segment.lines:
        at = draw.number(0, len(segment.lines) - 1)
        segment.lines[at] = segment.lines[at].replace(b'"start"', b'"end"').replace(b'"t":1', b'"t":2')


def drop_lines(forgery: Forgery, draw: Draw) -> None:
    segment = segment_of(forgery, draw)
    at = place_in(segment, draw)
    del segment.lines[at : at + draw.number(1, 8)]


def add_line(forgery: Forgery, draw: Draw) -> None:
    segment = segment_of(forgery, draw)
    at = place_in(segment, draw)
    before = head_of(segment.lines[at - 1]).n if at else segment.header.first - 1
    segment.lines.insert(at, numbered(before + 1, record_of(forgery, draw)) + b"\n")


def replace_line(forgery: Forgery, draw: Draw) -> None:
    segment = segment_of(forgery, draw)
    if segment.lines:
        at = draw.number(0, len(segment.lines) - 1)
        segment.lines[at] = numbered(head_of(segment.lines[at]).n, record_of(forgery, draw)) + b"\n"


def swap_lines(forgery: Forgery, draw: Draw) -> None:
    segment = segment_of(forgery, draw)
    if len(segment.lines) > 1:
        at = draw.number(0, len(segment.lines) - 2)
        segment.lines[at : at + 2] = reversed(segment.lines[at : at + 2])


def move_end(forgery: Forgery, draw: Draw) -> None:
    """Move the end of a segment into a segment of its own, or cut it off."""
    segment = segment_of(forgery, draw)
    at = place_in(segment, draw)
    end = segment.lines[at:]
    del segment.lines[at:]
    if end and draw.flag():
        header = msgspec.structs.replace(segment.header, first=head_of(end[0]).n, after=segment.name, prev="")
        put(forgery, Segment(header, end, segment.trailer))


def remove_segment(forgery: Forgery, draw: Draw) -> None:
    segment = segment_of(forgery, draw)
    forgery.segments.remove(segment)


def remove_all(forgery: Forgery, draw: Draw) -> None:
    """Remove all segments before one or after it."""
    at = draw.number(0, len(forgery.segments))
    forgery.segments = forgery.segments[at:] if draw.flag() else forgery.segments[:at]


def add_segment(forgery: Forgery, draw: Draw) -> None:
    """Add a segment with up to four records, sealed with the present key or not."""
    after = name_of(forgery, draw)
    boot, first = boot_of(forgery, draw), draw.number(0, 40)
    header = SegmentHeader(v=1, router="A", boot=boot, first=first, utc=START * 1_000_000, mono=0, after=after)
    count = draw.number(0, 4)
    lines = [numbered(n, record_of(forgery, draw)) + b"\n" for n in range(first, first + count)]
    trailer = Trailer(count=0, last=0, crc=0, recovered=draw.flag())
    put(forgery, Segment(header, lines, trailer, resealed=draw.flag()))


def put(forgery: Forgery, segment: Segment) -> None:
    """Add a segment, instead of one that has its name."""
    forgery.segments = [each for each in forgery.segments if each.name != segment.name]
    forgery.segments.append(segment)


def name_of(forgery: Forgery, draw: Draw) -> str:
    """Return the name of an original segment, of none, or of one that never was."""
    names = list(forgery.original.headers)
    never = Segment(msgspec.structs.replace(forgery.original.segments[-1].header, first=draw.number(0, 40)), [], None)
    return draw.choice(["", never.name, *names])


def relink(forgery: Forgery, draw: Draw) -> None:
    segment = segment_of(forgery, draw)
    segment.header = msgspec.structs.replace(segment.header, after=name_of(forgery, draw), prev="")


def rename(forgery: Forgery, draw: Draw) -> None:
    """Give a segment another start or another first number."""
    segment = segment_of(forgery, draw)
    forgery.segments.remove(segment)
    segment.header = msgspec.structs.replace(
        segment.header, boot=boot_of(forgery, draw), first=draw.choice([segment.header.first, 0, 1])
    )
    put(forgery, segment)


def change_trailer(forgery: Forgery, draw: Draw) -> None:
    """Take the trailer away or its seal, call the segment recovered, take another's trailer, or seal it now."""
    segment = segment_of(forgery, draw)
    kind = draw.number(0, 4)
    if kind == 0:
        segment.trailer = None
    elif kind == 1:
        segment.trailer = Trailer(count=0, last=0, crc=0)
    elif kind == 2:
        segment.trailer = Trailer(count=0, last=0, crc=0, recovered=True)
    elif kind == 3:
        segment.trailer = segment_of(forgery, draw).trailer
    else:
        segment.trailer = segment.trailer or Trailer(count=0, last=0, crc=0)
        segment.resealed = True


def change_key(forgery: Forgery, draw: Draw) -> None:
    """Take the router's key away, or give it another number."""
    forgery.epoch = draw.choice([None, *range(forgery.original.state.epoch + 2)])


#: The acts that an input chooses among.
ACTS: Final[tuple[Callable[[Forgery, Draw], None], ...]] = (
    change_line,
    drop_lines,
    add_line,
    replace_line,
    swap_lines,
    move_end,
    remove_segment,
    remove_all,
    add_segment,
    relink,
    rename,
    change_trailer,
    change_key,
)
