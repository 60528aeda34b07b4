"""On a full disk compacted segments are deleted first; a mark is valid only if it matches its segment."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.records.written import SECOND, at, drops_of, links_of, opened, taken
from trouter.records.check import check_folder
from trouter.records.holes import Hole, Holes, deleted_in
from trouter.records.marks import is_marked, mark_path, marks_in, read_mark, write_mark
from trouter.records.segments import MANIFEST, SegmentPosition, segments_in
from trouter.records.segments import opened as opened_segment
from trouter.records.writer import Bounds, SegmentWriter

#: Segments of some 10 kB, and room for about 20 of them.
BOUNDS = Bounds(max_bytes=220_000, segment_bytes=10_000)
BATCH = 40


def places(folder: Path) -> list[SegmentPosition]:
    return [place for place in segments_in(folder) if place.rest != ".open"]


def whole_of(path: Path) -> int:
    with opened_segment(path) as file:
        return zlib.crc32(file.read())


def mark(*marked: SegmentPosition) -> None:
    for place in marked:
        assert write_mark(place.path.parent, place.name, whole_of(place.path))


def batches(writer: SegmentWriter, first: int, count: int, seconds: int = 1) -> None:
    for number in range(first, first + count):
        writer.write(taken(BATCH, number * BATCH), at(seconds))


def proved(folder: Path) -> None:
    assert check_folder(folder).errors == []


def kept(folder: Path) -> list[int]:
    """Return the numbers of the first records of segments."""
    return [place.first for place in places(folder)]


def test_compacted_segments_are_deleted_before_others_the_oldest_first(tmp_path: Path) -> None:
    writer = opened(tmp_path, BOUNDS)
    batches(writer, 0, 20)
    there = places(tmp_path)
    mark(there[9], there[4], there[5])
    batches(writer, 20, 8)
    gone = sorted({place.first for place in there} - set(kept(tmp_path)))
    assert {there[number].first for number in (4, 5, 9)} < set(gone)
    assert gone[:-3] == [place.first for place in there][: len(gone) - 3]
    assert marks_in(tmp_path, there[0].router) == {}
    writer.close(at(2))
    proved(tmp_path)
    assert {dropped.reason for dropped in drops_of(tmp_path)} == {"retention"}


def test_each_mark_in_turn_makes_room_for_one(tmp_path: Path) -> None:
    writer = opened(tmp_path, BOUNDS)
    batches(writer, 0, 20)
    there = places(tmp_path)
    mark(there[7], there[3])
    order = []
    for number in range(20, 40):
        before = set(kept(tmp_path))
        batches(writer, number, 1)
        order += sorted(before - set(kept(tmp_path)))
    assert order[:4] == [there[3].first, there[7].first, there[0].first, there[1].first]
    writer.close(at(2))
    proved(tmp_path)


def test_a_compressed_segment_has_the_mark_of_the_plain_one(tmp_path: Path) -> None:
    writer = opened(tmp_path, Bounds(max_bytes=60_000, segment_bytes=10_000, compress=True))
    writer.write(taken(BATCH), at(1))
    batches(writer, 1, 3)
    plain = places(tmp_path)[1]
    mark(plain)
    for seconds in range(2, 7):
        writer.tick(at(seconds))
    packed = places(tmp_path)[1]
    assert (packed.rest, packed.name) == (".gz", plain.name)
    assert is_marked(packed.path, packed.name)
    number = 4
    while plain.first in kept(tmp_path):
        assert kept(tmp_path)[0] == 0
        batches(writer, number, 1, seconds=7)
        number += 1
    writer.close(at(8))
    proved(tmp_path)


def other_octets(place: SegmentPosition) -> None:
    mark(place)
    octets = bytearray(place.path.read_bytes())
    octets[300] ^= 1
    place.path.write_bytes(octets)


def of_another(place: SegmentPosition) -> None:
    other = places(place.path.parent)[0]
    write_mark(place.path.parent, other.name, whole_of(other.path))
    mark_path(place.path.parent, other.name).rename(mark_path(place.path.parent, place.name))


def linked(place: SegmentPosition) -> None:
    mark(place)
    path = mark_path(place.path.parent, place.name)
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


SPOILS: dict[str, Callable[[SegmentPosition], object]] = {
    "other bytes": other_octets,
    "of another segment": of_another,
    "a wrong checksum": lambda place: write_mark(place.path.parent, place.name, 1),
    "garbage": lambda place: mark_path(place.path.parent, place.name).write_bytes(b"\xff\0{" * 5000),
    "empty": lambda place: mark_path(place.path.parent, place.name).write_bytes(b""),
    "not an object": lambda place: mark_path(place.path.parent, place.name).write_bytes(b"[1]\n"),
    "a folder": lambda place: mark_path(place.path.parent, place.name).mkdir(),
    "a pipe": lambda place: os.mkfifo(mark_path(place.path.parent, place.name)),
    "a link": linked,
}


@pytest.mark.parametrize("spoil", SPOILS)
def test_a_mark_that_does_not_fit_is_ignored(spoil: str, tmp_path: Path) -> None:
    writer = opened(tmp_path, BOUNDS)
    batches(writer, 0, 20)
    there = places(tmp_path)
    SPOILS[spoil](there[5])
    batches(writer, 20, 6)
    gone = sorted({place.first for place in there} - set(kept(tmp_path)))
    assert gone == [place.first for place in there][: len(gone)]
    assert 1 <= len(gone) < 5
    writer.close(at(2))
    assert links_of(tmp_path)[-1] == 26 * BATCH - 1 if spoil != "other bytes" else True


def test_a_valid_mark_counts_later(tmp_path: Path) -> None:
    writer = opened(tmp_path, BOUNDS)
    batches(writer, 0, 20)
    there = places(tmp_path)
    write_mark(tmp_path, there[8].name, 1)
    while there[0].path.exists():
        batches(writer, 20, 1)
    assert there[8].path.exists()
    mark(there[8])
    os.utime(mark_path(tmp_path, there[8].name), ns=(1, 1))
    count = len(kept(tmp_path))
    while there[8].path.exists():
        assert there[2].path.exists()
        assert len(kept(tmp_path)) >= count - 1
        batches(writer, 21, 1)
    writer.close(at(2))


def test_a_deleted_report_of_a_hole_is_written_again(tmp_path: Path) -> None:
    """The first segment was never compacted; all later ones are, with the records that report the hole."""
    writer = opened(tmp_path, BOUNDS)
    batches(writer, 0, 20)
    for number in range(20, 80, 2):
        for place in places(tmp_path)[1:]:
            write_mark(tmp_path, place.name, whole_of(place.path))
        batches(writer, number, 2)
    assert kept(tmp_path)[0] == 0
    writer.close(at(2))
    proved(tmp_path)
    assert not [dropped for dropped in drops_of(tmp_path) if dropped.from_n == 0]
    middle = places(tmp_path)[8]
    middle.path.unlink()  # deleted from outside: each lost record is reported by number
    assert [fault for fault in check_folder(tmp_path).errors if f"{middle.first}-" in fault]


def test_holes_of_an_earlier_start_are_reported_again_by_later_starts(tmp_path: Path) -> None:
    for start in range(4):
        writer = opened(tmp_path, BOUNDS, seconds=start * 100)
        for number in range(0, 32, 2):
            for place in places(tmp_path)[1:]:
                write_mark(tmp_path, place.name, whole_of(place.path))
            batches(writer, number, 2, seconds=start * 100 + 1)
        writer.close(at(start * 100 + 2))
        proved(tmp_path)
    assert kept(tmp_path)[0] == 0
    assert len({place.boot for place in segments_in(tmp_path)}) > 1


def test_holes_are_bounded(tmp_path: Path) -> None:
    writer = opened(tmp_path, Bounds(max_bytes=2_000_000, segment_bytes=10_000))
    batches(writer, 0, 180)
    there = places(tmp_path)
    mark(*there[1::2])
    batches(writer, 180, 140)
    writer.close(at(2))
    proved(tmp_path)
    missing = sorted({place.first for place in there} - set(kept(tmp_path)))
    assert there[0].first in missing
    marked = {place.first for place in there[1::2]}
    assert len(writer.retention.holes) <= 64
    assert len(marked & set(missing)) >= 64
    assert marked - set(missing)


def test_deletion_by_age_ignores_marks(tmp_path: Path) -> None:
    writer = opened(tmp_path, Bounds(keep_us=3600 * SECOND, segment_us=SECOND))
    writer.write(taken(10), at(1))
    writer.tick(at(2))
    writer.write(taken(10, 10), at(3000))
    writer.tick(at(3001))
    mark(places(tmp_path)[1])
    writer.tick(at(3700))
    writer.close(at(3701))
    assert links_of(tmp_path) == list(range(10, 20))
    proved(tmp_path)


def test_a_mark_whose_segment_is_gone_goes_when_room_is_made(tmp_path: Path) -> None:
    writer = opened(tmp_path, BOUNDS)
    batches(writer, 0, 1)
    label = segments_in(tmp_path)[0].router
    orphan, others = f"{label}~7~{0:016}.jsonl", f"QDR%2EB~7~{0:016}.jsonl"
    for name in (orphan, others):
        write_mark(tmp_path, name, 1)
    batches(writer, 1, 30)
    assert not mark_path(tmp_path, orphan).exists()
    assert mark_path(tmp_path, others).exists()
    writer.close(at(2))


def test_a_mark_is_written_once_and_replaced_by_a_different_one(tmp_path: Path) -> None:
    name = f"QDR~1~{0:016}.jsonl"
    assert write_mark(tmp_path, name, 5)
    assert not write_mark(tmp_path, name, 5)
    assert write_mark(tmp_path, name, 6)
    found = read_mark(mark_path(tmp_path, name))
    assert found is not None
    assert (found.seg, found.whole) == (name, 6)
    assert len(list(tmp_path.iterdir())) == 1
    mark_path(tmp_path, name).unlink()
    (mark_path(tmp_path, name) / "x").mkdir(parents=True)
    with pytest.raises(OSError, match="directory"):
        write_mark(tmp_path, name, 5)
    assert len(list(tmp_path.iterdir())) == 1


def test_runs_of_a_hole_grow_together() -> None:
    holes = Holes()
    assert holes.add(Hole(1, 10, 19)) == (1, 10, 19)
    assert holes.add(Hole(1, 30, 39)) == (1, 30, 39)
    assert holes.add(Hole(2, 20, 29)) == (2, 20, 29)
    assert len(holes) == 3
    assert holes.add(Hole(1, 20, 29)) == (1, 10, 39)
    assert set(holes) == {(1, 10, 39), (2, 20, 29)}
    holes.note_reported(Hole(2, 20, 29), 77)
    holes.note_reported(Hole(1, 10, 19), 78)
    assert holes.to_report(-1, -1) == [(1, 10, 39)]
    assert set(holes.to_report(70, 77)) == set(holes)
    holes.forget_boot(1)
    assert list(holes) == [(2, 20, 29)]


def test_the_readable_lines_of_a_manifest_count(tmp_path: Path) -> None:
    path = tmp_path / f"R~1{MANIFEST}"
    assert deleted_in(path) == []
    line = b'{"seg":"x","first":3,"last":5,"count":3,"bytes":9,"crc":0,"state":"deleted"}\n'
    path.write_bytes(line.replace(b"deleted", b"closed") + line + b'{"state":"deleted"}\n' + line[:-9])
    assert [(entry.first, entry.last) for entry in deleted_in(path)] == [(3, 5)]
