"""Segments of delivery.interval in any number, by a formula that gives the expected rows of the meter.

Each of ``links`` reports once in each of ``steps`` minutes; record ``n`` is of step ``n // links``. The user of a link
follows from its number too, so that neighbours in number belong to one user.
"""

from __future__ import annotations

import gzip
import zlib
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from trouter.records.segments import SegmentHeader, Trailer, line_of, segment_name

BEGIN_US: Final = 1_772_323_200_000_000
MINUTE_US: Final = 60_000_000
HOUR_US: Final = 60 * MINUTE_US
ROUTER: Final = "bench"
_LINE: Final = (
    b'{"n":%d,"k":"delivery.interval","t":%d,"conn":%d,"link":%d,"dir":"%b","t0":%d,"t1":%d,"d_msgs":%d,'
    b'"d_accepted":%d,"d_rejected":0,"d_released":0,"d_modified":0,"d_presettled":0,"d_dropped_presettled":0,'
    b'"d_delayed1s":0,"d_delayed10s":0,"c_msgs":%d,"c_accepted":%d,"c_rejected":0,"c_released":0,"c_modified":0,'
    b'"c_presettled":0,"c_dropped_presettled":0,"c_delayed1s":0,"c_delayed10s":0,"unsettled":0,"undelivered":0,'
    b'"credit0_us":0,"final":%b,"vhost":"tenant-%d","user":"user-%d","addr":"queue/%d","d_bytes":%d,"c_bytes":%d}\n'
)
#: Tenant, user, address, direction.
Subject = tuple[str, str, str, str]


@dataclass(frozen=True)
class Records:
    """A count of records, in segments of ``each``."""

    links: int
    steps: int
    each: int

    @property
    def count(self) -> int:
        return self.links * self.steps

    @property
    def segments(self) -> int:
        return self.count // self.each

    def moved(self, link: int, step: int) -> int:
        """Return the messages of one link in one step."""
        return 1 + (7 * link + 13 * step) % 100

    def subject(self, link: int) -> Subject:
        user = link // 50
        return f"tenant-{user % 40}", f"user-{user}", f"queue/{link % 5}", "out" if link % 2 else "in"

    def begun_us(self, link: int, step: int) -> int:
        """Return the start of the interval of a step, in microseconds."""
        return BEGIN_US + step * MINUTE_US + link * MINUTE_US // self.links

    def truth(self) -> Counter[Subject]:
        """Return the count of all messages by subject."""
        sums = [sum(self.moved(residue, step) for step in range(self.steps)) for residue in range(100)]
        total: Counter[Subject] = Counter()
        for link in range(self.links):
            total[self.subject(link)] += sums[link % 100]
        return total

    def write(self, folder: Path, numbers: Sequence[int], processes: int) -> None:
        """Write the segments with these numbers, compressed."""
        folder.mkdir(parents=True, exist_ok=True)
        with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
            list(pool.map(partial(self.write_one, folder), [number * self.each for number in numbers]))

    def write_one(self, folder: Path, first: int) -> None:
        """Write ``each`` records, beginning with ``first``, as a segment."""
        runs = [list(accumulate(self.moved(residue, step) for step in range(self.steps))) for residue in range(100)]
        header = SegmentHeader(v=1, router=ROUTER, boot=BEGIN_US // 1_000_000, first=first, utc=BEGIN_US, mono=0)
        lines = [line_of(header)]
        for n in range(first, first + self.each):
            step, link = divmod(n, self.links)
            moved, total, begun = self.moved(link, step), runs[link % 100][step], self.begun_us(link, step)
            user, ended = link // 50, begun + MINUTE_US
            lines.append(
                _LINE
                % (
                    *(n, ended, link // 5, link, b"out" if link % 2 else b"in", begun, ended),
                    *(moved, moved, total, total, b"true" if step == self.steps - 1 else b"false"),
                    *(user % 40, user, link % 5, moved * 100, total * 100),
                )
            )
        octets = b"".join(lines)
        trailer = Trailer(count=self.each, last=first + self.each - 1, crc=zlib.crc32(octets))
        name = segment_name(ROUTER, header.boot, first)
        (folder / f"{name}.gz").write_bytes(gzip.compress(octets + line_of(trailer), 1, mtime=0))


@dataclass(frozen=True)
class Faults:
    """Records with one segment lost in the middle and one at the end, one twice, and one that overlaps two.

    The one lost at the end belongs to the last links: no record has their last step.
    """

    records: Records

    @property
    def lost(self) -> tuple[int, int]:
        return self.records.segments // 3, self.records.segments - 2

    def write(self, folder: Path, copies: Path, processes: int) -> None:
        """Write the segments in two folders, and in the first folder the last segments first."""
        every = range(self.records.segments)
        self.records.write(folder, [number for number in reversed(every) if number not in self.lost], processes)
        self.records.write(copies, [self.records.segments // 2], processes)
        self.records.write_one(copies, self.records.segments // 4 * self.records.each + self.records.each // 2)

    def unreported(self) -> Counter[Subject]:
        """Return the messages that no remaining record reports."""
        records = self.records
        first = self.lost[1] * records.each
        unreported: Counter[Subject] = Counter()
        for n in range(first, first + records.each):
            step, link = divmod(n, records.links)
            unreported[records.subject(link)] += records.moved(link, step)
        return unreported

    def incomplete(self) -> set[tuple[int, Subject]]:
        """Return rows of the meter that must be marked: those of the last records of these links, by hour.

        All others of a router and hour with a gap are marked, too, because the gap may concern them.
        """
        records = self.records
        first = self.lost[1] * records.each
        rows = set()
        for n in range(first, first + records.each):
            step, link = divmod(n, records.links)
            rows.add((records.begun_us(link, step - 1) // HOUR_US * HOUR_US, records.subject(link)))
        return rows


def faults_of(count: int) -> Faults:
    """Return this many records, of 200 steps in 400 segments, with the faults."""
    return Faults(Records(links=count // 200, steps=200, each=count // 400))
