"""Each later change of a segment is detected, and the report has the file and the byte."""

from __future__ import annotations

import os
import random
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.records.written import at, opened, taken
from trouter.records import SaslOutcomeRecord
from trouter.records.check import check_file, check_folder
from trouter.records.reader import SegmentReader
from trouter.records.segments import segments_in
from trouter.records.stream import Taken
from trouter.records.writer import Bounds

pytestmark = pytest.mark.attack


def made(folder: Path, count: int = 60) -> Path:
    """Write one segment."""
    writer = opened(folder)
    writer.write(taken(count), at(1))
    writer.close(at(2))
    (place,) = segments_in(folder)
    for manifest in folder.glob("*.manifest"):
        manifest.unlink()
    return place.path


def flip(octets: bytes, lucky: random.Random) -> bytes:
    place, bit = lucky.randrange(len(octets)), lucky.randrange(8)
    return octets[:place] + bytes([octets[place] ^ (1 << bit)]) + octets[place + 1 :]


def truncate(octets: bytes, lucky: random.Random) -> bytes:
    return octets[: lucky.randrange(len(octets))]


def duplicate(octets: bytes, lucky: random.Random) -> bytes:
    lines = octets.splitlines(keepends=True)
    place = lucky.randrange(len(lines))
    return b"".join([*lines[: place + 1], *lines[place:]])


def delete(octets: bytes, lucky: random.Random) -> bytes:
    lines = octets.splitlines(keepends=True)
    place = lucky.randrange(len(lines))
    return b"".join([*lines[:place], *lines[place + 1 :]])


def swap(octets: bytes, lucky: random.Random) -> bytes:
    lines = octets.splitlines(keepends=True)
    one, other = lucky.sample(range(len(lines)), 2)
    lines[one], lines[other] = lines[other], lines[one]
    return b"".join(lines)


def add(octets: bytes, lucky: random.Random) -> bytes:
    place = lucky.randrange(len(octets) + 1)
    return octets[:place] + bytes([lucky.randrange(256)]) + octets[place:]


@pytest.mark.parametrize("harm", [flip, truncate, duplicate, delete, swap, add], ids=lambda harm: harm.__name__)
def test_every_harm_is_noticed_and_its_place_reported(
    harm: Callable[[bytes, random.Random], bytes], tmp_path: Path
) -> None:
    lucky = random.Random(harm.__name__)
    path = made(tmp_path)
    octets = path.read_bytes()
    assert check_file(path).errors == []
    for _ in range(150):
        harmed = harm(octets, lucky)
        path.write_bytes(harmed)
        errors = check_file(path).errors
        assert errors, harmed
        assert re.match(rf"{re.escape(str(path))}: byte \d+: ", errors[0])


def test_every_bit_of_a_small_segment_counts(tmp_path: Path) -> None:
    path = made(tmp_path, 1)
    octets = path.read_bytes()
    for place in range(len(octets)):
        for bit in range(8):
            path.write_bytes(octets[:place] + bytes([octets[place] ^ (1 << bit)]) + octets[place + 1 :])
            assert check_file(path).errors, (place, bit)


def test_a_harmed_line_is_reported_by_its_octet(tmp_path: Path) -> None:
    path = made(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    offset = sum(map(len, lines[:30]))
    lines[30] = lines[30].replace(b'"n":29', b'"n":"9')
    path.write_bytes(b"".join(lines))
    (error,) = check_file(path).errors
    assert error.startswith(f"{path}: byte {offset}: this is not a record")


def test_a_segment_that_is_missing_is_missed(tmp_path: Path) -> None:
    writer = opened(tmp_path, Bounds(segment_bytes=20_000))
    writer.write(taken(1000), at(1))
    for batch in range(10):
        writer.write(taken(100), at(batch))
    writer.close(at(20))
    paths = [place.path for place in segments_in(tmp_path)]
    assert len(paths) > 4
    for path in (paths[0], paths[2], paths[-1]):
        octets = path.read_bytes()
        path.unlink()
        assert check_folder(tmp_path).errors
        path.write_bytes(octets)
    assert check_folder(tmp_path).errors == []


def test_a_segment_replaced_by_a_good_one_with_other_records_is_reported(tmp_path: Path) -> None:
    writer, other = opened(tmp_path / "a"), opened(tmp_path / "b")
    for each, first in ((writer, 0), (other, 1000)):
        each.write(taken(10, first), at(1))
        each.close(at(2))
    (place,), (foreign,) = segments_in(tmp_path / "a"), segments_in(tmp_path / "b")
    place.path.write_bytes(foreign.path.read_bytes())
    assert check_file(place.path).errors == []
    (error,) = check_folder(tmp_path / "a").errors
    assert place.path.name in error


def test_segments_that_overlap_are_reported(tmp_path: Path) -> None:
    path = made(tmp_path)
    octets = path.read_bytes()
    header, *rest = octets.splitlines(keepends=True)
    path.with_name(path.name.replace(f"{0:016}", f"{1:016}")).write_bytes(
        header.replace(b'"first":0', b'"first":1') + b"".join(rest)
    )
    errors = check_folder(tmp_path).errors
    assert any("overlaps" in error for error in errors)


def test_a_segment_of_another_version_is_not_guessed_at(tmp_path: Path) -> None:
    path = made(tmp_path)
    path.write_bytes(path.read_bytes().replace(b'"v":1', b'"v":2', 1))
    (error,) = check_file(path).errors
    assert error.startswith(f"{path}: byte 0: ")
    assert "version 2" in error


class Later(SaslOutcomeRecord, tag="sasl.later"):
    """Records that a later version may write."""


class Wider(SaslOutcomeRecord, tag="sasl.outcome", kw_only=True):
    more: list[int]


def test_kinds_and_fields_of_a_later_program_are_read(tmp_path: Path) -> None:
    writer = opened(tmp_path)
    later = Later(conn=1, mech="PLAIN", ok=True, code=0, reason="ok", delay_us=0, plugin="p", t=1)
    wider = Wider(conn=1, mech="PLAIN", ok=True, code=0, reason="ok", delay_us=0, plugin="p", t=1, more=[1])
    writer.write(Taken([wider, later], Counter()), at(1))
    writer.close(at(2))
    (place,) = segments_in(tmp_path)
    with place.path.open("rb") as file:
        known, unknown = SegmentReader(place.path, file).lines()
    assert isinstance(known.record, SaslOutcomeRecord)
    assert (unknown.kind, unknown.record) == ("sasl.later", None)
    assert check_folder(tmp_path).errors == []


def test_a_segment_that_is_being_written_is_not_at_fault(tmp_path: Path) -> None:
    writer = opened(tmp_path)
    writer.write(taken(10), at(1))
    report = check_folder(tmp_path)
    assert (report.errors, report.records) == ([], 10)
    assert "still being written" in report.notes[0]
    writer.close(at(2))


def stopped(folder: Path) -> Path:
    """Write two segments of a router that has stopped; return the last."""
    writer = opened(folder, Bounds(segment_us=1))
    writer.write(taken(30), at(1))
    writer.tick(at(2))
    writer.write(taken(31, 30), at(3))
    writer.close(at(4))
    return segments_in(folder)[-1].path


@pytest.mark.parametrize("place", [0, 1], ids=["older", "newest"])
@pytest.mark.parametrize("cut", [False, True], ids=["edited", "cut"])
def test_a_complete_segment_that_is_opened_again_and_edited_is_an_error(place: int, cut: bool, tmp_path: Path) -> None:
    stopped(tmp_path)
    path = segments_in(tmp_path)[place].path
    lines = path.read_bytes().splitlines(keepends=True)[:-1]
    lines[-1] = lines[-1].replace(b'"state":"start"', b'"state":"end"')
    path.with_name(path.name + ".open").write_bytes(b"".join(lines[:2] if cut else lines))
    path.unlink()
    assert any(f"{path.name}.open" in error and "complete" in error for error in check_folder(tmp_path).errors)


@pytest.mark.parametrize("state", ["closed", "recovered"])
def test_an_entry_without_its_trailer_is_an_error(state: str, tmp_path: Path) -> None:
    path = stopped(tmp_path)
    (manifest,) = tmp_path.glob("*.manifest")
    manifest.write_bytes(manifest.read_bytes().replace(b'"closed"', f'"{state}"'.encode()))
    assert check_folder(tmp_path).errors == []
    path.rename(path.with_name(path.name + ".empty"))
    assert any(path.name in error and manifest.name in error for error in check_folder(tmp_path).errors)


def test_an_open_segment_of_a_stopped_router_is_named_and_not_counted_as_proved(tmp_path: Path) -> None:
    writer = opened(tmp_path)
    writer.write(taken(10), at(1))
    assert "still being written" in check_folder(tmp_path).notes[0]
    os.close(writer._lock)  # as when the process is killed
    report = check_folder(tmp_path)
    assert report.errors == []
    (note,) = report.notes
    assert ".jsonl.open" in note
    assert "has stopped" in note
    assert report.unproved == 10


def test_a_segment_that_is_completed_while_a_folder_is_checked_is_no_fault(tmp_path: Path) -> None:
    writer = opened(tmp_path)
    writer.write(taken(10), at(1))
    places = segments_in(tmp_path)
    writer.close(at(2))
    assert [place.path.exists() for place in places] == [False]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trouter.records.check.segments_in", lambda _: places)
        assert check_folder(tmp_path).errors == []
