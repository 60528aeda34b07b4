"""Segments: files of records, one a line, between a header and a trailer with the checksum.

    <router>~<boot>~<first number, 16 digits>.jsonl     complete; with `.open` at the end while it is written
    <router>~<boot>~<first number, 16 digits>.jsonl.gz  the same, compressed; for a moment both exist
    <router>~<boot>.manifest                            history of the segments, a line for each event; only a hint

Numbers begin at 0 with each boot of a router and continue from segment to segment. A record ``records.dropped`` reports
missing numbers; other gaps are errors. The crc and the SHA-256 of a trailer cover all bytes before it, and each header
has the SHA-256 of the segment before.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, cast
from urllib.parse import quote

import msgspec

from trouter.records.disk import open_regular
from trouter.records.schema import Record

SUFFIX: Final = ".jsonl"
OPEN: Final = ".open"
#: A segment without a complete header.
EMPTY: Final = ".empty"
MANIFEST: Final = ".manifest"
COMPRESSED: Final = ".gz"
#: Suffix while a segment is being compressed.
PART: Final = ".gz.part"
#: A longer line is no entry of a manifest.
MAX_ENTRY_BYTES: Final = 1 << 16
#: A longer line is no record.
MAX_LINE_BYTES: Final = 32 << 20

_NAME: Final = re.compile(
    r"(?P<router>[^~]+)~(?P<boot>\d{1,16})~(?P<first>\d{16})\.jsonl(?P<rest>\.open|\.empty|\.gz)?"
)
_LONGEST_NAME: Final = 160
#: The last start of a router that a name of a segment has room for.
MAX_START: Final = 10**16 - 1
#: Seconds by which a clock of the router may ever have been ahead, some thirty years.
_AHEAD_S: Final = 10**9
#: A segment's start of the router and first number, which give its place in the chain.
Position = tuple[int, int]


class SegmentHeader(
    msgspec.Struct,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="k",
    tag="segment.header",
    frozen=True,
):
    """The first line. ``utc`` and ``mono`` are two clocks at one moment, in microseconds; ``boot`` is in seconds.

    ``after`` is the name of the router's segment before this one, complete; ``prev`` is the SHA-256 of that segment's
    octets before its trailer, in hexadecimal. Both are empty in the first segment of a folder and in old ones, ``prev``
    also if the segment before could not be read.
    """

    v: int
    router: str
    boot: int
    first: int
    utc: int
    mono: int
    after: str = ""
    prev: str = ""


class Trailer(
    msgspec.Struct,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="k",
    tag="segment.trailer",
    frozen=True,
):
    """The last line; ``last`` is the number before ``first`` if ``count`` is 0.

    ``sha`` is the SHA-256 of all octets before, in hexadecimal; old segments have none. With a key, ``epoch`` is the
    number of the seal, ``t`` when it was made, and ``mac`` the seal over this line without it.
    """

    count: int
    last: int
    crc: int
    recovered: bool = False
    sha: str = ""
    epoch: int | None = None
    t: int | None = None
    mac: str = ""


class DeletedRun(msgspec.Struct, kw_only=True, omit_defaults=True, frozen=True):
    """Deleted segments, each of which followed the one before, and their seals; names are of complete segments.

    ``after`` is the name of the segment that the ``first`` one followed, "" if it was the first of all. It is None if
    an older version deleted the first one: that version did not note what it followed. ``from_seal`` and ``to_seal``
    are the numbers of the first and the last seal in the run, None if it has none.
    """

    first: str
    last: str
    after: str | None = None
    from_seal: int | None = None
    to_seal: int | None = None

    @property
    def begin(self) -> Position:
        """The position of the first segment; ValueError."""
        return position_of(self.first)

    @property
    def end(self) -> Position:
        """The position of the last segment; ValueError."""
        return position_of(self.last)

    def is_valid(self) -> bool:
        """Return whether all names are those of segments, in their order."""
        try:
            return self.begin <= self.end and (not self.after or position_of(self.after) < self.begin)
        except ValueError:
            return False

    def includes(self, position: Position) -> bool:
        """Return whether the segment at a position is between the first and the last one, or one of these."""
        return self.begin <= position <= self.end


class ManifestEntry(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A line of the manifest. ``state``: closed, recovered or deleted.

    ``run`` is the run of deleted segments that a deleted one belongs to; older versions did not note it.
    """

    seg: str
    first: int
    last: int
    count: int
    bytes: int
    crc: int
    state: str
    t_min: int | None = None
    t_max: int | None = None
    run: DeletedRun | None = None


class Envelope(msgspec.Struct):
    """The fields of every line."""

    k: str
    n: int = -1
    t: int = -1


class SegmentPosition(NamedTuple):
    """The parts of a segment's file name, which give its place in the order of segments."""

    router: str
    boot: int
    first: int
    rest: str
    path: Path

    @property
    def name(self) -> str:
        """The name of the complete segment, compressed or not."""
        return self.path.name.removesuffix(self.rest)


def file_label(router: str) -> str:
    """Return the prefix of file names for a router, which no other router has."""
    label = quote(router, safe="").replace("~", "%7E").replace(".", "%2E")
    if len(label) <= _LONGEST_NAME:
        return label
    return f"{label[: _LONGEST_NAME - 33]}-{hashlib.sha256(router.encode('utf-8', 'replace')).hexdigest()[:32]}"


def segment_name(label: str, boot: int, first: int) -> str:
    return f"{label}~{boot}~{first:016}{SUFFIX}"


def manifest_name(label: str, boot: int) -> str:
    return f"{label}~{boot}{MANIFEST}"


def lock_name(label: str) -> str:
    """Return the name of the file that a router locks while it writes segments."""
    return f"{label}.lock"


def place_of(path: Path) -> SegmentPosition | None:
    """Return the parts of a segment's file name; None for another file."""
    found = _NAME.fullmatch(path.name)
    return (
        None
        if found is None
        else SegmentPosition(found["router"], int(found["boot"]), int(found["first"]), found["rest"] or "", path)
    )


def position_of(segment: str) -> Position:
    """Return a segment's start and first number by its name; ValueError."""
    place = place_of(Path(segment))
    if place is None:
        raise ValueError(f"{segment!r} is no name of a segment")
    return place.boot, place.first


def last_start(starts: Iterable[int], now_s: int) -> int:
    """Return the last of a router's ``starts``, which the next one follows; 0 for none.

    If that leaves no number for the next one, somebody has made a file of such a name, and the starts that no clock can
    have given do not count.
    """
    found = {0, *starts}
    return max(found) if max(found) < MAX_START else max(each for each in found if each <= now_s + _AHEAD_S)


def present(place: SegmentPosition) -> SegmentPosition:
    """Return where a segment is now, if it was completed or compressed since it was listed."""
    for rest in (place.rest, "", COMPRESSED):
        path = place.path.with_name(place.name + rest)
        if path.exists():
            return place._replace(rest=rest, path=path)
    return place


def segments_in(folder: Path) -> list[SegmentPosition]:
    """Return the segments of a folder in the order of router, boot and number; OSError."""
    with os.scandir(folder) as entries:
        places = [place for entry in entries if (place := place_of(folder / entry.name)) is not None]
    plain = {place.name for place in places if place.rest != COMPRESSED}
    return sorted(place for place in places if place.rest != COMPRESSED or place.name not in plain)


def entry_lines(manifest: Path) -> Iterator[bytes]:
    """Yield the lines of a manifest; the beginning of one that is longer than entries are is the last; OSError."""
    with open(manifest, "rb", opener=open_regular) as file:
        while line := file.readline(MAX_ENTRY_BYTES):
            yield line
            if len(line) == MAX_ENTRY_BYTES:
                return  # no manifest: the rest may be of any length


def opened(path: Path) -> BinaryIO:
    """Return a segment open for reading, decompressed; OSError."""
    file = open(path, "rb", opener=open_regular)  # noqa: SIM115 - the caller closes it
    if not path.name.endswith(COMPRESSED):
        return file
    unpacked = gzip.GzipFile(fileobj=file)
    vars(unpacked)["myfileobj"] = file  # closed with it
    return cast(BinaryIO, unpacked)


def _plain(value: object) -> object:
    """Return a subclass of AMQP types as a plain int or str."""
    return int(value) if isinstance(value, int) else str(value)


_encode: Final = msgspec.json.Encoder(enc_hook=_plain).encode


def numbered(n: int, record: Record) -> bytes:
    """Return a record as a line of JSON without line end, under its number ``n`` in one stream."""
    return b'{"n":%d,%b' % (n, _encode(record)[1:])


def line_of(value: msgspec.Struct) -> bytes:
    """Return a header, trailer, entry or mark as a line."""
    return msgspec.json.encode(value) + b"\n"
