"""The chain of segments is whole after every way in which a writer ends, and a change of one shows in the next."""

from __future__ import annotations

import hashlib
import os
import zlib
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from tests.records.written import at, links_of, opened, taken
from trouter.records.check import check_folder
from trouter.records.segments import SegmentHeader, SegmentPosition, Trailer, line_of, segments_in
from trouter.records.writer import Bounds

pytestmark = pytest.mark.attack

HEADER = msgspec.json.Decoder(SegmentHeader)
TRAILER = msgspec.json.Decoder(Trailer)


def starts(folder: Path, count: int = 3, bounds: Bounds | None = None) -> list[SegmentPosition]:
    """Let a router start ``count`` times, and write two segments each time."""
    for start in range(count):
        writer = opened(folder, bounds or Bounds(segment_us=1), seconds=start * 10)
        for each in range(2):
            writer.write(taken(30, each * 30), at(start * 10 + each))
            writer.tick(at(start * 10 + each + 0.5))
        writer.close(at(start * 10 + 2))
    return segments_in(folder)


def header_of(path: Path) -> SegmentHeader:
    return HEADER.decode(path.read_bytes().splitlines()[0])


def rewritten(path: Path, old: bytes, new: bytes) -> None:
    """Edit a segment, and put right everything in it that can be computed, and the manifest."""
    *lines, last = path.read_bytes().splitlines(keepends=True)
    trailer = TRAILER.decode(last)
    octets = b"".join(lines).replace(old, new, 1)
    assert octets != b"".join(lines)
    sha = hashlib.sha256(octets).hexdigest() if trailer.sha else ""
    changed = msgspec.structs.replace(trailer, crc=zlib.crc32(octets), sha=sha)
    path.write_bytes(octets + line_of(changed))
    for manifest in path.parent.glob("*.manifest"):
        manifest.write_bytes(manifest.read_bytes().replace(b"%d" % trailer.crc, b"%d" % changed.crc))


def unchained(folder: Path) -> None:
    """Write the segments as versions without a chain did."""
    for place in segments_in(folder):
        head, *lines, last = place.path.read_bytes().splitlines(keepends=True)
        octets = line_of(msgspec.structs.replace(HEADER.decode(head), after="", prev="")) + b"".join(lines)
        place.path.write_bytes(
            octets + line_of(msgspec.structs.replace(TRAILER.decode(last), crc=zlib.crc32(octets), sha=""))
        )
    for manifest in folder.glob("*.manifest"):
        manifest.unlink()


def test_each_segment_is_linked_to_the_one_before_also_of_an_earlier_start(tmp_path: Path) -> None:
    places = starts(tmp_path)
    assert header_of(places[0].path).after == ""
    for before, place in pairwise(places):
        header = header_of(place.path)
        trailer = TRAILER.decode(before.path.read_bytes().splitlines()[-1])
        assert (header.after, header.prev) == (before.name, trailer.sha)
    report = check_folder(tmp_path)
    assert (report.errors, report.notes, report.unproved) == ([], [], 0)


def test_a_segment_with_sums_computed_anew_does_not_fit_the_next(tmp_path: Path) -> None:
    *others, last = starts(tmp_path)
    for place in others:
        octets = place.path.read_bytes()
        rewritten(place.path, b'"state":"start"', b'"state":"end"')
        (error,) = check_folder(tmp_path).errors
        assert f"{place.name} is not as it was" in error
        rewritten(place.path, b'"state":"end"', b'"state":"start"')
        assert place.path.read_bytes() == octets
    rewritten(last.path, b'"state":"start"', b'"state":"end"')
    assert check_folder(tmp_path).errors == []  # only a seal or an anchor proves the last one


@pytest.mark.parametrize("start", [0, 1])
def test_a_start_that_is_missing_as_a_whole_is_missed(start: int, tmp_path: Path) -> None:
    places = starts(tmp_path)
    boot = places[start * 2].boot
    for path in tmp_path.glob(f"*~{boot}*"):
        path.unlink()
    (error,) = check_folder(tmp_path).errors
    assert "which is missing" in error


def test_a_segment_put_between_two_others_is_an_error(tmp_path: Path) -> None:
    places = starts(tmp_path)
    head, *lines, last = places[1].path.read_bytes().splitlines(keepends=True)
    header = msgspec.structs.replace(HEADER.decode(head), boot=places[1].boot + 1, first=0, after=places[1].name)
    renumbered = [line.replace(b'"n":%d' % number, b'"n":%d' % (number - 30)) for number, line in enumerate(lines, 30)]
    octets = line_of(header) + b"".join(renumbered)
    trailer = msgspec.structs.replace(TRAILER.decode(last), last=29, crc=zlib.crc32(octets), sha="")
    path = places[1].path.with_name(f"QDR%2EA~{header.boot}~{0:016}.jsonl")
    path.write_bytes(octets + line_of(trailer))
    errors = check_folder(tmp_path).errors
    assert any("is between them" in error for error in errors)


@pytest.mark.parametrize("keep", ["maxBytes", "keepDays"])
def test_what_retention_deleted_is_no_gap_of_the_chain_also_after_many_starts(keep: str, tmp_path: Path) -> None:
    small = Bounds(max_bytes=100_000, segment_bytes=20_000) if keep == "maxBytes" else Bounds(keep_us=25_000_000)
    for start in range(12):
        writer = opened(tmp_path, small, seconds=start * 10)
        for batch in range(start % 3 * 4 + 1):
            writer.write(taken(60, batch * 60), at(start * 10 + 1))
            for place in segments_in(tmp_path):
                os.utime(place.path, (1_700_000_000, 1_700_000_000 + (place.boot - 1_700_000_000)))
        writer.tick(at(start * 10 + 2))
        writer.close(at(start * 10 + 3))
        assert check_folder(tmp_path).errors == []
    assert len(list(tmp_path.glob("*.manifest"))) <= len({place.boot for place in segments_in(tmp_path)}) + 1
    assert segments_in(tmp_path)[0].boot > 1_700_000_000


def test_a_deleted_segment_without_records_is_no_gap_of_the_chain(tmp_path: Path) -> None:
    writer = opened(tmp_path, Bounds(segment_us=1))
    writer.write(taken(10), at(1))
    writer.tick(at(2))
    writer._begin(at(3))
    os.close(writer._lock)  # killed between the header and the first record
    opened(tmp_path, seconds=10).close(at(11))
    for place in segments_in(tmp_path):
        os.utime(place.path, (1_600_000_000, 1_600_000_000))
    writer = opened(tmp_path, Bounds(keep_us=25_000_000), seconds=20)
    writer.write(taken(10), at(21))
    assert [place.first for place in segments_in(tmp_path)] == [0, 10, 0]
    writer.tick(at(30))
    writer.close(at(31))
    assert len(segments_in(tmp_path)) == 1
    assert check_folder(tmp_path).errors == []


def test_a_report_of_deleted_segments_covers_none_after_them(tmp_path: Path) -> None:
    starts(tmp_path, 2)
    oldest, last_of_start, *_ = segments_in(tmp_path)
    os.utime(oldest.path, (1_700_000_000, 1_700_000_000))
    writer = opened(tmp_path, Bounds(keep_us=1_000_000_000), seconds=2000)
    writer.tick(at(2000))
    writer.close(at(2001))
    assert segments_in(tmp_path)[0] == last_of_start
    assert check_folder(tmp_path).errors == []
    last_of_start.path.unlink()
    assert any(f"{last_of_start.name}, which is missing" in error for error in check_folder(tmp_path).errors)


def test_a_chain_goes_on_after_segments_of_an_older_version(tmp_path: Path) -> None:
    starts(tmp_path, 2)
    unchained(tmp_path)
    assert check_folder(tmp_path).errors == []
    old = segments_in(tmp_path)
    starts(tmp_path, 1)
    assert header_of(segments_in(tmp_path)[4].path).after == old[-1].name
    report = check_folder(tmp_path)
    assert (report.errors, report.notes) == ([], [])
    rewritten(old[-1].path, b'"state":"start"', b'"state":"end"')
    (error,) = check_folder(tmp_path).errors
    assert f"{old[-1].name} is not as it was" in error


def test_a_segment_whose_disk_failed_stays_in_the_chain(tmp_path: Path) -> None:
    writer = opened(tmp_path)
    writer.write(taken(10), at(1))
    segment = writer._segment
    assert segment is not None
    kept = os.dup(segment.file.descriptor)
    broken = os.open("/dev/full", os.O_WRONLY)
    os.dup2(broken, segment.file.descriptor)
    writer.write(taken(10, 10), at(2))
    os.pwrite(kept, b'{"n":10,"k":"link.stalled","t":1,"conn":1,"link":10}\n', segment.file.end)  # not taken back
    os.close(kept)
    os.close(broken)
    writer._retry_us = 0
    writer.write(taken(10, 20), at(10))
    if writer._torn:
        os.close(writer._lock)  # killed before the segment was mended
        opened(tmp_path, seconds=30).close(at(31))
    else:
        writer.close(at(11))
    assert links_of(tmp_path) == [*range(10), *range(20, 30)]
    assert check_folder(tmp_path).errors == []
