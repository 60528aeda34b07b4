"""Heads that were received elsewhere prove what they cover, without any key."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.records.test_chain import rewritten
from tests.records.written import at, opened, taken
from trouter.records.anchors import SegmentHead, heads_in
from trouter.records.check import check_folder
from trouter.records.seals import write_first
from trouter.records.segments import line_of, segments_in
from trouter.records.writer import Bounds

pytestmark = pytest.mark.attack

#: With these bounds a router deletes the segments that `aged` has made old.
SHORT = Bounds(segment_us=1, keep_us=50_000_000_000_000)


def headed(folder: Path) -> list[SegmentHead]:
    """Write three segments, the last with a seal before its end; return their heads."""
    folder.mkdir()
    write_first(folder, "QDR%2EA", bytes(32))
    writer = opened(folder, Bounds(segment_us=80_000_000))
    for each in range(3):
        writer.write(taken(10, each * 10), at(each * 90))
        writer.tick(at(each * 90 + 61))
        if each < 2:
            writer.tick(at(each * 90 + 81))
    writer.close(at(300))
    return list(writer.heads)


def test_each_seal_and_each_complete_segment_has_a_head_that_fits(tmp_path: Path) -> None:
    heads = headed(tmp_path / "log")
    assert [(head.seg[-22:-6], head.n) for head in heads] == [
        (f"{first:016}", first + last) for first in (0, 11, 22) for last in (10, 10)
    ]
    report = check_folder(tmp_path / "log", heads=heads)
    assert report.errors == []
    assert any("heads compared" in note for note in report.notes)


@pytest.mark.parametrize("number", range(3))
def test_an_edit_with_all_sums_put_right_does_not_fit_the_head(number: int, tmp_path: Path) -> None:
    folder = tmp_path / "log"
    heads = headed(folder)
    place = segments_in(folder)[number]
    rewritten(place.path, b'"state":"start"', b'"state":"end"')
    assert any(f"{place.path}: is not as it was when" in each for each in check_folder(folder, heads=heads).errors)


def test_a_segment_cut_off_at_the_end_and_a_folder_without_any_are_missed(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    heads = headed(folder)
    *_, last = segments_in(folder)
    lines = last.path.read_bytes().splitlines(keepends=True)
    for manifest in folder.glob("*.manifest"):
        manifest.unlink()
    last.path.unlink()
    assert check_folder(folder).errors == []
    assert any("record 32 is missing" in error for error in check_folder(folder, heads=heads).errors)
    last.path.with_name(last.path.name + ".open").write_bytes(b"".join(lines[:5]))
    assert any("record 32 is missing" in error for error in check_folder(folder, heads=heads).errors)
    shutil.rmtree(folder)
    folder.mkdir()
    assert len(check_folder(folder, heads=heads).errors) == len({(head.seg, head.n) for head in heads})


def restarted(folder: Path, seconds: float, bounds: Bounds | None = None) -> list[SegmentHead]:
    """Let the router start again, write two segments, and stop; return the heads that it sent."""
    writer = opened(folder, bounds or Bounds(segment_us=1), seconds=seconds)
    for each in range(2):
        writer.write(taken(30, each * 30), at(seconds + each))
        writer.tick(at(seconds + each + 0.5))
    writer.close(at(seconds + 2))
    return list(writer.heads)


def aged(folder: Path, below: int) -> None:
    """Make the segments of starts before ``below`` so old that a router with ``SHORT`` deletes them."""
    for place in segments_in(folder):
        if place.boot < below:
            os.utime(place.path, (1_600_000_000, 1_600_000_000))


def test_what_retention_deleted_is_counted(tmp_path: Path) -> None:
    heads = restarted(tmp_path, 0)
    (first, _), (second, _) = ((head.seg, head.n) for head in heads)
    aged(tmp_path, 1 << 40)
    heads += restarted(tmp_path, 100, SHORT)
    report = check_folder(tmp_path, heads=heads)
    assert report.errors == []
    compared = len({(head.seg, head.n) for head in heads}) - 2
    gone = f"2 of segments deleted since, as reported, the last of which is {second}"
    assert f"{compared} heads compared, {gone}" in report.notes
    assert first not in {place.name for place in segments_in(tmp_path)}


def test_heads_of_starts_that_retention_has_forgotten_are_counted(tmp_path: Path) -> None:
    heads = []
    for start in range(4):
        heads += restarted(tmp_path, start * 100)
        aged(tmp_path, 1 << 40)
    for again in (500, 600, 700):
        heads += restarted(tmp_path, again, SHORT)
        report = check_folder(tmp_path, heads=heads)
        assert report.errors == []
        kept = {place.name for place in segments_in(tmp_path)}
        gone = {(head.seg, head.n) for head in heads if head.seg not in kept}
        assert any(f", {len(gone)} of segments deleted since" in note for note in report.notes)
        aged(tmp_path, segments_in(tmp_path)[-1].boot)


def test_a_folder_that_was_emptied_before_a_start_is_missed(tmp_path: Path) -> None:
    heads = restarted(tmp_path, 0)
    for path in tmp_path.iterdir():
        path.unlink()
    heads += restarted(tmp_path, 100)
    assert check_folder(tmp_path).errors == []
    errors = check_folder(tmp_path, heads=heads).errors
    assert [error[:35] for error in errors] == [f"{head.seg}: record"[:35] for head in heads[:2]]


def test_a_report_that_no_later_head_covers_proves_no_deletion(tmp_path: Path) -> None:
    heads = restarted(tmp_path, 0)
    aged(tmp_path, 1 << 40)
    later = restarted(tmp_path, 100, SHORT)
    assert check_folder(tmp_path, heads=[*heads, *later]).errors == []
    assert len(check_folder(tmp_path, heads=heads).errors) == 2


def test_a_report_of_a_deletion_has_a_head_at_once(tmp_path: Path) -> None:
    heads = restarted(tmp_path, 0)
    aged(tmp_path, 1 << 40)
    writer = opened(tmp_path, Bounds(keep_us=SHORT.keep_us), seconds=100)
    writer.tick(at(100))
    heads += writer.heads
    assert check_folder(tmp_path, heads=heads).errors == []
    writer.close(at(101))


@pytest.mark.parametrize("line", ["nonsense", '{"k":"records.head"}', "[1]", "x" * 5000])
def test_a_line_that_is_no_head_is_named(line: str, tmp_path: Path) -> None:
    kept = tmp_path / "heads"
    kept.write_text(line + "\n")
    with pytest.raises(ValueError, match="line 1: this is no head"):
        heads_in(kept)
    head = line_of(SegmentHead(router="A", boot=1, seg="../x", n=0, t=0, sha="")).decode()
    kept.write_text(head)
    with pytest.raises(ValueError, match="no name of a segment"):
        heads_in(kept)
