"""Write segments with the router's own writer: seeded traffic, and the cases that a test plants.

``Scribe`` is one start of a router: a test gives it records with their times, and closes segments where it likes.
``traffic`` makes the records of an ordinary day, and the ledger of the true totals. ``lose``, ``again`` and ``overlap``
damage segments.
"""

from __future__ import annotations

import random
import shutil
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from trouter.records import (
    ConnectionClosedRecord,
    ConnectionOpenedRecord,
    DeliveryInterval,
    LinkAttachedRecord,
    LinkDetachedRecord,
    Record,
)
from trouter.records.reader import SegmentReader
from trouter.records.segments import SegmentHeader, Trailer, line_of, numbered, opened, segment_name, segments_in
from trouter.records.stream import Taken
from trouter.records.writer import Bounds, Now, SegmentWriter

SECOND: Final = 1_000_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR
#: A Sunday, 2026-03-01T00:00Z.
START: Final = 1_772_323_200 * SECOND
#: The counters of an interval.
COUNTED: Final = (
    "msgs",
    "bytes",
    "accepted",
    "rejected",
    "released",
    "modified",
    "presettled",
    "dropped_presettled",
    "undeliverable",
    "delayed1s",
    "delayed10s",
)


class Scribe:
    """One start of one router. Records are numbered in the order in which they are written; ``t`` must be set."""

    def __init__(self, folder: Path, router: str = "QDR.A", at: int = START, *, compress: bool = False) -> None:
        bounds = Bounds(segment_us=HOUR, fsync_us=DAY, compress=compress, max_bytes=1 << 40, segment_bytes=1 << 30)
        self.folder = folder
        self._begun = at
        self._now = at
        self._writer = SegmentWriter(folder, router, bounds)
        self._writer.open(self._clock())
        self.boot = self._writer.boot

    def _clock(self, later: int = 0) -> Now:
        return Now(self._now + later, self._now - self._begun + later)

    def write(self, *records: Record) -> None:
        self._now = max(self._now, *(record.t for record in records))
        self._writer.write(Taken(list(records), Counter()), self._clock())

    def drop(self, **kinds: int) -> None:
        """Drop records as a full queue does: their numbers are used up, and a record reports the loss."""
        self._writer.write(
            Taken([], Counter({name.replace("_", "."): many for name, many in kinds.items()})), self._clock()
        )

    def rotate(self) -> None:
        """Close the open segment, and compress it if the scribe compresses."""
        self._writer.tick(self._clock(HOUR))
        self._writer.tick(self._clock(HOUR))

    def stop(self) -> None:
        self._writer.close(self._clock())

    def write_all(self, records: Iterable[Record], per_segment: int = 1000) -> None:
        """Write all records in the order of their times, ``per_segment`` in each segment; the router runs on."""
        ordered = sorted(records, key=lambda record: record.t)
        for first in range(0, len(ordered), per_segment):
            self.write(*ordered[first : first + per_segment])
            self.rotate()


@dataclass
class TrueLink:
    """The true totals of a link."""

    vhost: str
    user: str
    addr: str
    dir: str
    totals: Counter[str] = field(default_factory=Counter)


@dataclass
class Ledger:
    """The true totals of one start of a router: by link, and the time of each connection."""

    router: str
    boot: int
    links: dict[int, TrueLink] = field(default_factory=dict)
    #: By connection: tenant, user, times of opening and closing in microseconds.
    connections: dict[int, tuple[str, str, int, int]] = field(default_factory=dict)

    def total(self, name: str = "msgs") -> int:
        return sum(link.totals[name] for link in self.links.values())


class Counting:
    """The counters of one link, as its intervals report them."""

    def __init__(self, truth: TrueLink, *, conn: int, link: int) -> None:
        self.truth = truth
        self._conn = conn
        self._link = link

    def interval(self, t0: int, t1: int, *, final: bool = False, **moved: int) -> DeliveryInterval:
        """Count the messages between ``t0`` and ``t1``, and return the interval."""
        self.truth.totals.update(moved)
        numbers: dict[str, Any] = {f"d_{name}": moved.get(name, 0) for name in COUNTED}
        numbers |= {f"c_{name}": self.truth.totals[name] for name in COUNTED}
        return DeliveryInterval(
            t=t1,
            t0=t0,
            t1=t1,
            conn=self._conn,
            link=self._link,
            vhost=self.truth.vhost,
            tenant=self.truth.vhost,
            user=self.truth.user,
            addr=self.truth.addr,
            dir=self.truth.dir,
            unsettled=0,
            undelivered=0,
            credit0_us=0,
            final=final,
            **numbers,
        )


def traffic(
    ledger: Ledger,
    *,
    seed: int,
    begin: int = START,
    end: int = START + 3 * HOUR,
    connections: int = 20,
    tenants: int = 3,
    first_conn: int = 1,
    step: int = MINUTE,
    prefix: str = "tenant",
) -> list[Record]:
    """Return the records of ordinary connections with one or two links each, and enter their totals in ``ledger``."""
    chance = random.Random(seed)
    records: list[Record] = []
    for conn in range(first_conn, first_conn + connections):
        vhost = f"{prefix}-{chance.randrange(tenants)}"
        user = f"user-{chance.randrange(4)}"
        opens = chance.randrange(begin, end - step)
        closes = min(end, opens + chance.randrange(step, max(step + 1, end - begin)))
        peer: dict[str, Any] = {"conn": conn, "vhost": vhost, "tenant": vhost, "user": user, "host": "192.0.2.1"}
        records.append(ConnectionOpenedRecord(t=opens, listener="amqp", role="normal", dir="in", mech="PLAIN", **peer))
        for number in range(chance.randrange(1, 3)):
            link = conn * 10 + number
            truth = TrueLink(vhost, user, f"queue/{chance.randrange(3)}", chance.choice(("in", "out")))
            ledger.links[link] = truth
            records += _life(chance, Counting(truth, conn=conn, link=link), peer, link, opens, closes, step)
        records.append(
            ConnectionClosedRecord(
                t=closes, opened_at=opens, duration_us=closes - opens, by="peer", bytes_in=1, bytes_out=1, **peer
            )
        )
        ledger.connections[conn] = (vhost, user, opens, closes)
    return sorted(records, key=lambda record: record.t)


def _life(
    chance: random.Random, counting: Counting, peer: dict[str, Any], link: int, opens: int, closes: int, step: int
) -> Iterator[Record]:
    """Yield the records of a link from attach to detach; an idle step has no record."""
    about: dict[str, Any] = {"link": link, "addr": counting.truth.addr, "dir": counting.truth.dir}
    yield LinkAttachedRecord(t=opens, kind="endpoint", dynamic=False, snd_mode=2, rcv_mode=0, credit=0, **about, **peer)
    since = opens
    while since + step < closes:
        since += step
        if chance.random() < 0.7:
            yield counting.interval(since - step, since, **_moved(chance))
    yield counting.interval(since, closes, final=True, **_moved(chance))
    yield LinkDetachedRecord(t=closes, attached_at=opens, closed=True, reason="peer", **about, **peer)


def _moved(chance: random.Random) -> dict[str, Any]:
    msgs = chance.randrange(1, 100)
    refused = chance.randrange(0, 2)
    return {"msgs": msgs, "bytes": 100 * msgs, "accepted": msgs - refused, "rejected": refused}


def segments(folder: Path) -> list[Path]:
    """Return the complete segments of a folder in their order."""
    return [place.path for place in segments_in(folder) if place.rest in {"", ".gz"}]


def lines_of(path: Path) -> tuple[SegmentHeader, list[tuple[int, Record]]]:
    """Return the header of a segment, and its records with their numbers."""
    with opened(path) as file:
        reader = SegmentReader(path, file)
        return reader.header, [(line.n, line.record) for line in reader.lines() if line.record is not None]


def write_segment(folder: Path, header: SegmentHeader, records: Iterable[tuple[int, Record]]) -> Path:
    """Write a segment of records with chosen numbers and a valid trailer; return its path."""
    lines = []
    for n, record in records:
        record.n = -1
        lines.append((n, numbered(n, record) + b"\n"))
    octets = line_of(header) + b"".join(line for _, line in lines)
    last = lines[-1][0] if lines else header.first - 1
    trailer = Trailer(count=len(lines), last=last, crc=zlib.crc32(octets))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / segment_name(header.router.replace(".", "%2E"), header.boot, header.first)
    path.write_bytes(octets + line_of(trailer))
    return path


def lose(path: Path) -> None:
    """Delete a segment."""
    path.unlink()


def again(path: Path, folder: Path) -> Path:
    """Copy a segment to another folder; return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy(path, folder))


def overlap(before: Path, after: Path, folder: Path) -> Path:
    """Write a segment with the second half of one and the first half of the next, as a restored backup may have it."""
    header, first = lines_of(before)
    _, second = lines_of(after)
    mixed = [*first[len(first) // 2 :], *second[: len(second) // 2]]
    changed = SegmentHeader(
        v=header.v, router=header.router, boot=header.boot, first=mixed[0][0], utc=header.utc, mono=header.mono
    )
    return write_segment(folder, changed, mixed)
