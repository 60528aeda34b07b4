"""Who edits a manifest while the router is stopped makes neither the router nor a check believe it."""

from __future__ import annotations

import os
import random
from pathlib import Path

import msgspec
import pytest

from tests.records.test_deletions import LABEL, PROOFS, Log, full, new_log
from tests.records.written import at, opened, taken
from trouter.records.deletions import Deletion
from trouter.records.holes import Hole
from trouter.records.seals import key_path, read_state
from trouter.records.segments import (
    MANIFEST,
    DeletedRun,
    ManifestEntry,
    SegmentPosition,
    line_of,
    manifest_name,
    segments_in,
)
from trouter.records.writer import CHANGED, Bounds, SegmentWriter

pytestmark = pytest.mark.attack

ENTRY = msgspec.json.Decoder(ManifestEntry)
NUMBERS = [0, 1, 59, 60, 2**31, 2**62, -1]


def entries_in(folder: Path) -> list[ManifestEntry]:
    manifests = sorted(folder.glob(f"*{MANIFEST}"))
    return [ENTRY.decode(line) for manifest in manifests for line in manifest.read_bytes().splitlines()]


def write_entries(folder: Path, entries: list[ManifestEntry]) -> None:
    """Write the manifests anew."""
    for manifest in folder.glob(f"*{MANIFEST}"):
        manifest.unlink()
    for entry in entries:
        with (folder / manifest_name(LABEL, int(entry.seg.split("~")[1]))).open("ab") as file:
            file.write(line_of(entry))


def two_starts(folder: Path, *, sealed: bool = True) -> Log:
    """Let a router write three segments in each of two starts."""
    if sealed:
        log = new_log(folder)
    else:
        folder.mkdir()
        log = Log(folder)
    for seconds in (0, 100):
        log.start(seconds, Bounds(segment_us=1))
    return log


def remove_as_deleted(folder: Path, *places: SegmentPosition) -> None:
    """Remove segments, and write into the manifests that the router has deleted them, as it does."""
    entries = entries_in(folder)
    for number, place in enumerate(places):
        place.path.unlink()
        entry = next(entry for entry in entries if entry.seg == place.name)
        before = segments_in(folder)
        after = max((other.name for other in before if other < place), default="")
        if number:
            after = places[number - 1].name
        entry.state = "deleted"
        entry.run = DeletedRun(first=place.name, last=place.name, after=after)
    write_entries(folder, entries)


def alarms(writer: SegmentWriter) -> list[str]:
    return [alarm.value or "" for alarm in writer.news if alarm.name == CHANGED]


@pytest.mark.parametrize("proof", PROOFS[1:])
@pytest.mark.parametrize("gone", [[1], [0, 1], [0, 1, 2], [2, 3], [4, 5]], ids=str)
def test_the_router_reports_no_segment_as_deleted_because_a_manifest_does(
    gone: list[int], proof: str, tmp_path: Path
) -> None:
    log = two_starts(tmp_path / "log")
    places = segments_in(log.folder)
    remove_as_deleted(log.folder, *(places[number] for number in gone))
    for seconds in (200, 300):  # deletes the segments beside them for room, and reports that
        log.start(seconds, full(log.folder))
    assert log.check(proof).errors


@pytest.mark.parametrize("proof", PROOFS)
def test_a_deletion_that_no_record_reports_is_an_error_of_the_manifest(proof: str, tmp_path: Path) -> None:
    log = two_starts(tmp_path / "log")
    place = segments_in(log.folder)[1]
    remove_as_deleted(log.folder, place)
    errors = log.check(proof).errors
    assert any(f"lists {place.name} as deleted, and no record reports that" in error for error in errors)


def test_what_the_router_deleted_is_reported_by_later_starts_without_any_manifest(tmp_path: Path) -> None:
    log = two_starts(tmp_path / "log")
    bounds = full(log.folder)
    for seconds in (200, 300, 400, 500):
        log.start(seconds, bounds)
        write_entries(log.folder, [])
        for proof in PROOFS:
            assert log.check(proof).errors == []


def test_a_deletion_that_a_kill_interrupted_is_reported_by_the_next_start(tmp_path: Path) -> None:
    """The router is killed after it has removed the oldest segment, before it notes or reports that anywhere else."""
    log = two_starts(tmp_path / "log")
    oldest, second = segments_in(log.folder)[:2]
    going = Deletion(
        run=DeletedRun(first=oldest.name, last=oldest.name, after="", from_seal=0, to_seal=0),
        hole=Hole(oldest.boot, 0, second.first - 1),
    )
    path = key_path(log.folder, LABEL)
    state = read_state(path)
    assert state is not None
    assert state.deleted is not None
    interrupted = msgspec.structs.replace(state, deleted=msgspec.structs.replace(state.deleted, going=going))
    path.write_bytes(line_of(interrupted))
    log.start(200, Bounds(segment_us=1), batches=1)  # it is there still: nothing was deleted
    assert log.check().errors == []
    path.write_bytes(line_of(msgspec.structs.replace(read_state(path) or state, deleted=interrupted.deleted)))
    oldest.path.unlink()
    log.start(300, full(log.folder), batches=2)
    assert log.check().errors == []


@pytest.mark.parametrize("gone", [[1], [0, 1, 2], [4, 5]], ids=str)
def test_without_a_key_a_start_says_what_a_manifest_alone_calls_deleted(gone: list[int], tmp_path: Path) -> None:
    log = two_starts(tmp_path / "log", sealed=False)
    places = segments_in(log.folder)
    remove_as_deleted(log.folder, *(places[number] for number in gone))
    writer = opened(log.folder, seconds=200)
    assert any(f"{places[gone[-1]].name} as deleted, which no record reports" in text for text in alarms(writer))
    writer.close(at(201))


@pytest.mark.parametrize("sealed", [True, False])
def test_a_start_says_that_segments_at_the_end_are_gone(
    sealed: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = two_starts(tmp_path / "log", sealed=sealed)
    for place in segments_in(log.folder)[-2:]:
        place.path.unlink()
    writer = opened(log.folder, seconds=200)
    told = alarms(writer)
    assert any("which is not in the folder" in text for text in told)
    assert any("seals 4-5 are missing" in text for text in told) == sealed
    assert "which is not in the folder" in caplog.text
    writer.close(at(201))


@pytest.mark.parametrize("field", ["first", "last", "count", "crc"])
@pytest.mark.parametrize("number", NUMBERS)
def test_a_start_says_that_the_last_segment_is_not_as_the_manifest_has_it(
    field: str, number: int, tmp_path: Path
) -> None:
    log = two_starts(tmp_path / "log")
    entries = entries_in(log.folder)
    if getattr(entries[-1], field) == number:
        number += 1
    setattr(entries[-1], field, number)
    write_entries(log.folder, entries)
    writer = opened(log.folder, seconds=200)
    assert [text for text in alarms(writer) if "with other numbers or another checksum" in text]
    writer.close(at(201))
    assert any("with other numbers" in error for error in log.check("nothing").errors)


def test_a_start_says_that_the_last_segment_is_not_as_its_trailer_has_it(tmp_path: Path) -> None:
    log = two_starts(tmp_path / "log")
    last = segments_in(log.folder)[-1].path
    last.write_bytes(last.read_bytes().replace(b'"state":"start"', b'"state":"ended"', 1))
    writer = opened(log.folder, seconds=200)
    assert any("is not as its trailer has it" in text for text in alarms(writer))
    writer.close(at(201))


def test_all_segments_gone_is_an_alarm_of_the_next_start_and_an_error_with_the_key(tmp_path: Path) -> None:
    log = two_starts(tmp_path / "log")
    for place in segments_in(log.folder):
        place.path.unlink()
    write_entries(log.folder, [])
    writer = opened(log.folder, seconds=200)
    assert any("seals 0-5 are missing" in text for text in alarms(writer))
    writer.write(taken(3), at(200))
    writer.close(at(201))
    assert any("seals missing before it: 0-5" in error for error in log.check("key").errors)


def test_a_start_without_the_key_of_sealed_records_says_so(tmp_path: Path) -> None:
    log = two_starts(tmp_path / "log")
    key_path(log.folder, LABEL).unlink()
    writer = opened(log.folder, seconds=200)
    assert any("is sealed, and the key is missing" in text for text in alarms(writer))
    writer.close(at(201))


@pytest.mark.parametrize("sealed", [True, False])
def test_honest_starts_raise_no_alarm(sealed: bool, tmp_path: Path) -> None:
    log = two_starts(tmp_path / "log", sealed=sealed)
    bounds = full(log.folder)
    for seconds in (200, 300):
        log.start(seconds, bounds)
    killed = opened(log.folder, bounds, seconds=400)
    killed.write(taken(3), at(400))
    os.close(killed._lock)
    again = opened(log.folder, bounds, seconds=500)
    assert alarms(again) == []
    again.close(at(501))
    last = opened(log.folder, Bounds(keep_us=1), seconds=10**6)
    last.tick(at(10**6 + 1))  # deletes all
    last.close(at(10**6 + 2))
    writer = opened(log.folder, seconds=2 * 10**6)
    assert alarms(writer) == []
    writer.close(at(2 * 10**6 + 1))
    assert log.check("key" if sealed else "nothing").errors == []


def test_no_edit_of_a_manifest_stops_a_start_or_is_believed(tmp_path: Path) -> None:
    """Lines are removed, doubled, cut and given other numbers; what the segments prove stays as it is."""
    lucky = random.Random(5)
    for turn in range(12):
        log = two_starts(tmp_path / f"log-{turn}")
        entries = entries_in(log.folder)
        for _ in range(lucky.randrange(1, 4)):
            entry = lucky.choice(entries)
            match lucky.randrange(4):
                case 0:
                    entries.remove(entry)
                    entries = entries or [entry]
                case 1:
                    entries.append(msgspec.structs.replace(entry, state=lucky.choice(["deleted", "closed", ""])))
                case 2:
                    setattr(entry, lucky.choice(["first", "last", "count", "crc", "bytes"]), lucky.choice(NUMBERS))
                case 3:
                    run = DeletedRun(first=entries[0].seg, last=entry.seg, after="")
                    entries.append(msgspec.structs.replace(entry, state="deleted", run=run))
        write_entries(log.folder, entries)
        log.start(200, full(log.folder))
        manifests = [error for error in log.check("key").errors if MANIFEST not in error.split(": ")[0]]
        assert manifests == []


@pytest.mark.parametrize("sealed", [True, False])
@pytest.mark.parametrize("cut", [1, 60, 120])
def test_a_line_of_a_manifest_that_a_kill_or_a_full_disk_cut_is_no_edit(sealed: bool, cut: int, tmp_path: Path) -> None:
    """What the router deleted is in the records, too; the next start writes behind the last whole line."""
    log = two_starts(tmp_path / "log", sealed=sealed)
    log.start(200, full(log.folder))
    manifests = sorted(log.folder.glob(f"*{MANIFEST}"))
    deleted = [path for path in manifests if path.read_bytes().splitlines()[-1].count(b'"state":"deleted"')]
    assert deleted
    for path in deleted:
        path.write_bytes(path.read_bytes()[:-cut])
    for seconds in (300, 400):
        writer = opened(log.folder, full(log.folder), seconds)
        assert alarms(writer) == []
        writer.write(taken(60), at(seconds))
        writer.tick(at(seconds + 1))
        writer.close(at(seconds + 2))
        for proof in PROOFS[: 1 + sealed]:
            assert log.check(proof).errors == []
