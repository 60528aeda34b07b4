"""A report of deleted segments excuses exactly these: whatever else is missing is an error, with or without a key."""

from __future__ import annotations

import os
import random
import shutil
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.records.test_chain import rewritten
from tests.records.written import at, drops_of, opened, taken
from trouter.records.anchors import SegmentHead, heads_in
from trouter.records.check import CheckReport, check_folder
from trouter.records.marks import write_mark
from trouter.records.runs import Runs, run_of
from trouter.records.seals import key_path, write_first
from trouter.records.segments import MANIFEST, DeletedRun, SegmentPosition, segment_name, segments_in
from trouter.records.writer import Bounds

pytestmark = pytest.mark.attack

KEY = bytes(32)
LABEL = "QDR%2EA"
#: A folder that a version wrote whose reports name no segments, and its heads.
OLD = Path(__file__).with_name("old_reports")
PROOFS = ["nothing", "key", "heads", "key and heads"]


@dataclass
class Log:
    """A folder with seals, and the heads that its router sent."""

    folder: Path
    heads: list[SegmentHead] = field(default_factory=list)

    def start(self, seconds: float, bounds: Bounds, batches: int = 3) -> None:
        """Let the router start, write a segment for each batch, and stop."""
        writer = opened(self.folder, bounds, seconds=seconds)
        for each in range(batches):
            writer.write(taken(60, each * 60), at(seconds + each))
            writer.tick(at(seconds + each + 0.5))
        writer.close(at(seconds + batches))
        self.heads += writer.heads

    def check(self, proof: str = "key and heads") -> CheckReport:
        heads = self.heads if "heads" in proof else None
        return check_folder(self.folder, key=KEY if "key" in proof else None, heads=heads)

    def hide(self, *places: SegmentPosition) -> None:
        """Remove segments as an intruder does, and the manifests, on which nothing relies."""
        for place in places:
            place.path.unlink()
        for manifest in self.folder.glob(f"*{MANIFEST}"):
            manifest.unlink()


def new_log(folder: Path) -> Log:
    folder.mkdir()
    write_first(folder, LABEL, KEY)
    return Log(folder)


def mark(place: SegmentPosition) -> None:
    write_mark(place.path.parent, place.name, zlib.crc32(place.path.read_bytes()))


def full(folder: Path) -> Bounds:
    """Return bounds within which one more segment of a test does not fit beside those of a folder."""
    size = sum(place.path.stat().st_size for place in segments_in(folder))
    return Bounds(segment_us=1, max_bytes=size + 8_000)


def marked(folder: Path, which: int) -> tuple[Log, list[SegmentPosition]]:
    """Let a router delete one marked segment of two starts for room; return the log, and the six segments before."""
    log = new_log(folder)
    for seconds in (0, 100):
        log.start(seconds, Bounds(segment_us=1))
    places = segments_in(log.folder)
    mark(places[which])
    log.start(200, full(log.folder), batches=1)
    assert [place for place in places if not place.path.exists()] == [places[which]]
    return log, places


@pytest.mark.parametrize("proof", PROOFS)
@pytest.mark.parametrize(
    ("deleted", "hidden"), [(2, [1]), (2, [0, 1]), (3, [0, 1, 2]), (4, [3]), (3, [2]), (1, [0]), (4, [0, 1, 2, 3])]
)
def test_the_report_of_one_segment_excuses_no_other(
    deleted: int, hidden: list[int], proof: str, tmp_path: Path
) -> None:
    log, places = marked(tmp_path / "log", deleted)
    assert log.check(proof).errors == []
    log.hide(*(places[each] for each in hidden))
    errors = log.check(proof).errors
    assert any(f"{places[hidden[-1]].name}, which is missing" in error for error in errors)


def test_missing_seals_are_excused_by_their_numbers(tmp_path: Path) -> None:
    log, places = marked(tmp_path / "log", 3)
    assert any("seals missing before it: 3" in note for note in log.check().notes)
    log.hide(*places[:3])
    assert any("seals missing before it: 0-2" in error for error in log.check("key").errors)


def test_a_report_names_the_segments_and_seals_that_were_deleted(tmp_path: Path) -> None:
    log, places = marked(tmp_path / "log", 3)
    (report,) = drops_of(log.folder)
    assert run_of(report) == DeletedRun(
        first=places[3].name, last=places[3].name, after=places[2].name, from_seal=3, to_seal=3
    )


def test_no_segment_can_be_hidden_wherever_the_router_deletes_for_room(tmp_path: Path) -> None:
    """Several starts delete marked segments and the oldest; then each other one is hidden in turn."""
    log = new_log(tmp_path / "log")
    lucky = random.Random(1)
    for start in range(6):
        for place in lucky.sample(segments_in(log.folder), k=min(2, len(segments_in(log.folder)))):
            mark(place)
        bounds = Bounds(segment_us=1) if start < 2 else full(log.folder)
        log.start(start * 100, bounds, batches=4)
        for proof in PROOFS:
            assert log.check(proof).errors == []
    *places, _ = segments_in(log.folder)
    assert len(places) > 4
    for number, place in enumerate(places):
        copy = Log(tmp_path / f"copy-{number}", log.heads)
        shutil.copytree(log.folder, copy.folder)
        copy.hide(SegmentPosition(*place[:4], path=copy.folder / place.path.name))
        for proof in PROOFS:
            assert (number == 0 and proof == "nothing") or copy.check(proof).errors, (place.name, proof)


def test_many_starts_that_delete_the_oldest_report_all_from_the_first_on(tmp_path: Path) -> None:
    log = new_log(tmp_path / "log")
    log.start(0, Bounds(segment_us=1), batches=4)
    first = segments_in(log.folder)[0]
    bounds = full(log.folder)
    for start in range(1, 6):
        log.start(start * 100, bounds, batches=4)
        for proof in PROOFS:
            assert log.check(proof).errors == []
    run = run_of(drops_of(log.folder)[-1])
    assert run is not None
    oldest = segments_in(log.folder)[0]
    assert (run.first, run.after, run.from_seal) == (first.name, "", 0)
    assert run.last < oldest.name
    log.hide(oldest)
    for proof in PROOFS:
        assert any(f"{oldest.name}, which is missing" in error for error in log.check(proof).errors)


def test_what_another_program_deletes_is_not_in_the_router_s_report(tmp_path: Path) -> None:
    log = new_log(tmp_path / "log")
    log.start(0, Bounds(segment_us=1))
    log.start(100, Bounds(segment_us=1))
    places = segments_in(log.folder)
    writer = opened(log.folder, full(log.folder), seconds=200)
    places[0].path.unlink()
    for each in range(2):
        writer.write(taken(60, each * 60), at(200 + each))
        writer.tick(at(200.5 + each))
    writer.close(at(202))
    log.heads += writer.heads
    assert not places[1].path.exists()
    for proof in ("key", "heads", "key and heads"):
        assert any(places[0].name in error and "missing" in error for error in log.check(proof).errors)


def test_a_header_that_is_edited_while_the_router_runs_does_not_get_into_its_report(tmp_path: Path) -> None:
    """The segment that is deleted next says that there never was one before it."""
    log = new_log(tmp_path / "log")
    log.start(0, Bounds(segment_us=1))
    log.start(100, Bounds(segment_us=1))
    places = segments_in(log.folder)
    writer = opened(log.folder, Bounds(segment_us=1, max_bytes=full(log.folder).max_bytes), seconds=200)
    rewritten(places[3].path, b'"after":"%s"' % places[2].name.encode(), b'"after":""')
    mark(places[3])
    writer.write(taken(60), at(200))
    writer.tick(at(200.5))
    writer.close(at(202))
    log.heads += writer.heads
    assert not places[3].path.exists()
    log.hide(*places[:3])
    for proof in PROOFS:
        assert any(f"{places[2].name}, which is missing" in error for error in log.check(proof).errors)


def test_a_seal_that_is_missing_within_what_was_deleted_is_not_reported(tmp_path: Path) -> None:
    """The last segment was cut off before a start; all that is left of the router's first start is then deleted."""
    log = new_log(tmp_path / "log")
    log.start(0, Bounds(segment_us=1))
    log.hide(segments_in(log.folder)[-1])
    log.start(100, Bounds(segment_us=1))
    for place in segments_in(log.folder):
        os.utime(place.path, (1_600_000_000, 1_600_000_000))
    log.start(200, Bounds(segment_us=10**9, keep_us=50_000_000_000_000), batches=1)
    assert len({place.boot for place in segments_in(log.folder)}) == 1
    assert any("seals missing before it: 2" in error for error in log.check("key").errors)


def test_a_recovered_segment_s_seals_are_in_the_report_of_its_deletion(tmp_path: Path) -> None:
    log = new_log(tmp_path / "log")
    writer = opened(log.folder)
    for each in range(2):
        writer.write(taken(60, each * 60), at(each * 61))
        writer.tick(at(each * 61 + 60))
    os.close(writer._lock)  # killed
    log.start(200, Bounds(segment_us=1))
    bounds = full(log.folder)
    log.start(300, bounds)
    for proof in PROOFS:
        assert log.check(proof).errors == []
    run = run_of(drops_of(log.folder)[-1])
    assert run is not None
    assert (run.from_seal, run.first) == (0, segment_name(LABEL, 1_700_000_000, 0))


def old_log(folder: Path) -> Log:
    """Return a copy of the folder whose reports name no segments: its first start's segments and one more are gone."""
    shutil.copytree(OLD, folder)
    key_path(folder, LABEL).chmod(0o600)
    return Log(folder, heads_in(folder / "heads"))


@pytest.mark.parametrize("proof", PROOFS)
def test_an_old_report_excuses_what_was_before_it_and_the_check_says_so(proof: str, tmp_path: Path) -> None:
    report = old_log(tmp_path / "log").check(proof)
    assert report.errors == []
    assert any("an older version deleted segments before it, and no record names" in each for each in report.notes)


def test_after_an_old_report_new_ones_name_what_they_delete(tmp_path: Path) -> None:
    log = old_log(tmp_path / "log")
    places = segments_in(log.folder)
    bounds = full(log.folder)
    for start in range(3):
        log.start(1000 + start * 100, bounds, batches=2)
        for proof in PROOFS:
            assert log.check(proof).errors == []
    assert not any(place.path.exists() for place in places[:2])
    assert all(run_of(report) for report in drops_of(log.folder)[-2:])
    middle = segments_in(log.folder)[-3]
    log.hide(middle)
    for proof in PROOFS:
        assert any(f"{middle.name}, which is missing" in error for error in log.check(proof).errors)


def run(first: int, last: int, after: int | None = None, seals: tuple[int, int] | None = None) -> DeletedRun:
    from_seal, to_seal = seals or (None, None)
    before = None if after is None else "" if after < 0 else segment_name(LABEL, 1, after)
    return DeletedRun(
        first=segment_name(LABEL, 1, first),
        last=segment_name(LABEL, 1, last),
        after=before,
        from_seal=from_seal,
        to_seal=to_seal,
    )


def test_runs_that_follow_each_other_are_joined() -> None:
    runs = Runs()
    assert runs.add(run(0, 0, -1, (0, 1))) == run(0, 0, -1, (0, 1))
    assert runs.add(run(20, 20, 10, (4, 4))) == run(20, 20, 10, (4, 4))
    assert runs.add(run(10, 10, 0, (2, 3))) == run(0, 20, -1, (0, 4))
    assert runs.add(run(10, 20, 0, (2, 4))) == run(0, 20, -1, (0, 4))
    assert runs.add(run(30, 30, 20)) == run(0, 30, -1, (0, 4))
    assert runs.within((1, 25), (1, 99)) == [run(0, 30, -1, (0, 4))]
    assert runs.within((1, 31), (1, 99)) == []


def test_runs_between_which_a_seal_is_missing_stay_apart() -> None:
    runs = Runs()
    runs.add(run(0, 0, -1, (0, 1)))
    assert runs.add(run(10, 10, 0, (3, 3))) == run(10, 10, 0, (3, 3))
    assert len(runs.within((0, 0), (9, 0))) == 2


def test_runs_are_bounded_the_oldest_goes() -> None:
    runs = Runs()
    for number in range(130):
        runs.add(run(number * 3 + 1, number * 3 + 1, number * 3))
    kept = runs.within((0, 0), (9, 0))
    assert (len(kept), kept[0]) == (128, run(7, 7, 6))


@pytest.mark.parametrize("wrong", [run(5, 4, 0), run(5, 6, 5), DeletedRun(first="x", last="x")])
def test_a_run_that_cannot_be_is_not_valid(wrong: DeletedRun) -> None:
    assert not wrong.is_valid()
