"""With the verification key every change of what was sealed is found, though all sums are computed anew."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import zlib
from pathlib import Path

import msgspec
import pytest

from tests.records.test_chain import HEADER, TRAILER, rewritten
from tests.records.written import at, lines_of, links_of, opened, taken
from trouter.cli import main
from trouter.records.check import CheckReport, check_folder
from trouter.records.schema import RecordsDropped, RecordsSealed
from trouter.records.sealed import MAX_KEYS
from trouter.records.seals import (
    MAX_STEPS,
    KeyState,
    SealingKey,
    first_key,
    key_path,
    later_key,
    read_state,
    write_first,
)
from trouter.records.segments import (
    SegmentHeader,
    SegmentPosition,
    Trailer,
    file_label,
    line_of,
    numbered,
    segment_name,
    segments_in,
)
from trouter.records.writer import Bounds

pytestmark = pytest.mark.attack

KEY = bytes(range(32))
LABEL = "QDR%2EA"


def checked(folder: Path) -> CheckReport:
    return check_folder(folder, key=KEY)


def sealed(folder: Path) -> Path:
    """Let a router seal three segments of two starts, the last with three seals; return the folder."""
    folder.mkdir()
    write_first(folder, LABEL, KEY)
    writer = opened(folder, Bounds(segment_us=1))
    for each in range(2):
        writer.write(taken(10, each * 10), at(each))
        writer.tick(at(each + 0.5))
    writer.close(at(3))
    writer = opened(folder, Bounds(segment_us=10**9), seconds=100)
    for each in range(3):
        writer.write(taken(10, each * 10), at(100 + each * 61))
        writer.tick(at(100 + each * 61 + 60))
    writer.close(at(400))
    return folder


def state_of(folder: Path) -> KeyState:
    state = read_state(key_path(folder, LABEL))
    assert state is not None
    return state


def test_segments_are_sealed_at_their_ends_and_every_minute(tmp_path: Path) -> None:
    folder = sealed(tmp_path / "log")
    seals = [line.record.epoch for line in lines_of(folder) if isinstance(line.record, RecordsSealed)]
    trailers = [TRAILER.decode(place.path.read_bytes().splitlines()[-1]).epoch for place in segments_in(folder)]
    assert (seals, trailers) == ([2, 3, 4], [0, 1, 5])
    assert state_of(folder).epoch == 6
    assert key_path(folder, LABEL).stat().st_mode & 0o777 == 0o600
    report = checked(folder)
    assert (report.errors, report.unproved) == ([], 0)
    assert "the last seal is number 5" in report.notes[-1]
    assert check_folder(folder).errors == []
    assert any("not of this key" in error for error in check_folder(folder, key=bytes(32)).errors)


def edit(folder: Path, lucky: random.Random) -> None:
    """Change one thing in sealed segments as an intruder without the old keys can, and put right all sums."""
    places = segments_in(folder)
    place = lucky.choice(places)
    lines = place.path.read_bytes().splitlines(keepends=True)
    match lucky.randrange(5):
        case 0:  # a record, with the sums of its segment and of all links after it
            at_line = lucky.randrange(1, len(lines) - 1)
            old = lines[at_line]
            new = (
                old.replace(b'"t":17', b'"t":16', 1) if b"link.stalled" not in old else old.replace(b"start", b"ended")
            )
            rewritten(place.path, old, new)
        case 1:  # cut off at a line, as if the router had been killed
            cut = lines[: lucky.randrange(1, len(lines))]
            place.path.with_name(place.path.name + ".open").write_bytes(b"".join(cut))
            place.path.unlink()
        case 2:
            place.path.unlink()
        case 3:  # the seals taken away
            trailer = msgspec.structs.replace(TRAILER.decode(lines[-1]), epoch=None, t=None, mac="")
            place.path.write_bytes(b"".join(lines[:-1]) + line_of(trailer))
        case 4:  # the key put back to an earlier seal, with another content
            last = places[-1]
            last.path.unlink()
            key_path(folder, LABEL).write_bytes(line_of(KeyState(epoch=2, key=state_of(folder).key)))
    for manifest in folder.glob("*.manifest"):
        manifest.unlink()
    relink(folder)


def relink(folder: Path) -> None:
    """Compute the links and the sums of all segments anew."""
    before = None
    for place in segments_in(folder):
        octets = place.path.read_bytes()
        header = HEADER.decode(octets.splitlines()[0])
        if before is not None and place.rest == "":
            trailer = TRAILER.decode(before.path.read_bytes().splitlines()[-1]) if before.rest == "" else None
            linked = msgspec.structs.replace(header, after=before.name, prev=trailer.sha if trailer else "")
            if linked != header:
                rewritten(place.path, line_of(header), line_of(linked))
        before = place


@pytest.mark.parametrize("seed", range(60))
def test_no_edit_of_sealed_records_passes(seed: int, tmp_path: Path) -> None:
    folder = sealed(tmp_path / "log")
    edit(folder, random.Random(seed))
    assert checked(folder).errors


def test_a_folder_cut_at_a_seal_is_found_by_the_router_s_key(tmp_path: Path) -> None:
    folder = sealed(tmp_path / "log")
    last = segments_in(folder)[-1]
    lines = last.path.read_bytes().splitlines(keepends=True)
    last.path.with_name(last.path.name + ".open").write_bytes(b"".join(lines[:12]))  # to the first seal in it
    last.path.unlink()
    for manifest in folder.glob("*.manifest"):
        manifest.unlink()
    assert any("seals missing at the end: 3-5" in error for error in checked(folder).errors)
    key_path(folder, LABEL).unlink()
    assert any("may have been cut off" in error for error in checked(folder).errors)


def test_a_router_that_goes_on_after_an_edit_does_not_hide_it(tmp_path: Path) -> None:
    folder = sealed(tmp_path / "log")
    last = segments_in(folder)[-1]
    lines = last.path.read_bytes().splitlines(keepends=True)
    last.path.with_name(last.path.name + ".open").write_bytes(b"".join(lines[:15]))
    last.path.unlink()
    writer = opened(folder, seconds=900)
    writer.write(taken(5, 1000), at(901))
    writer.close(at(902))
    assert any("seals missing before it: 3-5" in error for error in checked(folder).errors)


@pytest.mark.parametrize("left", ["before the key", "old key overwritten", "part torn"])
def test_a_kill_between_a_seal_and_the_erasure_of_its_key_is_mended(
    left: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "log"
    folder.mkdir()
    path = write_first(folder, LABEL, KEY)
    before = path.read_bytes()
    writer = opened(folder)
    writer.write(taken(10), at(1))
    writer.tick(at(62))
    os.close(writer._lock)
    after = path.read_bytes()
    part = path.with_name(path.name + ".part")
    if left == "old key overwritten":
        path.write_bytes(bytes(len(after)))
        part.write_bytes(after)
        part.chmod(0o600)
    else:
        path.write_bytes(before)
        if left == "part torn":
            part.write_bytes(after[:20])
            part.chmod(0o600)
    again = opened(folder, seconds=100)
    again.write(taken(10, 10), at(101))
    again.close(at(102))
    assert links_of(folder) == list(range(20))
    assert ("between seal 0" in caplog.text) == (left != "old key overwritten")
    assert checked(folder).errors == []
    assert not part.exists()


@pytest.mark.parametrize("beyond", [0, 1, 1000, MAX_STEPS, 2**62])
@pytest.mark.parametrize("left", ["complete", "open"])
def test_a_start_steps_over_no_key_for_a_seal_that_its_key_has_not_made(left: str, beyond: int, tmp_path: Path) -> None:
    """Who has no key writes a last segment with the number of a later seal, and all sums right."""
    folder = sealed(tmp_path / "log")
    before = state_of(folder)
    last = segments_in(folder)[-1].path
    if left == "complete":
        renumbered(folder, before.epoch + beyond)
    else:
        seal = RecordsSealed(epoch=before.epoch + beyond, t=1, mac="0" * 64)
        lines = last.read_bytes().splitlines(keepends=True)[:-1]
        number = len(lines) - 1
        last.with_name(last.name + ".open").write_bytes(b"".join([*lines, numbered(number, seal) + b"\n"]))
        last.unlink()
    writer = opened(folder, seconds=900)
    assert state_of(folder).key == before.key
    told = [alarm.value or "" for alarm in writer.news]
    assert any(f"seal {before.epoch + beyond} is not of the router's key, which is for seal 6" in text for text in told)
    writer.write(taken(5, 1000), at(901))
    writer.close(at(902))
    assert state_of(folder).epoch == before.epoch + 1
    assert checked(folder).errors


def test_unsealed_records_are_counted_and_sealed_after_a_kill(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    folder.mkdir()
    write_first(folder, LABEL, KEY)
    writer = opened(folder)
    writer.write(taken(10), at(1))
    writer.tick(at(62))
    writer.write(taken(7, 10), at(63))
    os.close(writer._lock)
    report = checked(folder)
    assert (report.errors, report.unproved) == ([], 7)
    again = opened(folder, seconds=100)
    again.write(taken(1, 17), at(101))
    again.close(at(102))
    report = checked(folder)
    assert (report.errors, report.unproved) == ([], 0)
    assert any("7 records at its end were not sealed when it was recovered" in note for note in report.notes)


def test_reports_of_deletions_count_when_they_are_sealed(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    folder.mkdir()
    write_first(folder, LABEL, KEY)
    writer = opened(folder, Bounds(max_bytes=200_000, segment_bytes=30_000))
    for batch in range(40):
        writer.write(taken(100, batch * 100), at(batch))
        assert checked(folder).errors == []
    writer.close(at(50))
    report = checked(folder)
    assert report.errors == []
    assert any("records missing before it, as a sealed one reports: 0-" in note for note in report.notes)


def unsealed_report(folder: Path, router: str, boot: int, hidden: SegmentPosition) -> None:
    """Add a segment without a seal, with a report that another one was deleted; delete that one."""
    last = TRAILER.decode(hidden.path.read_bytes().splitlines()[-1]).last
    count = last + 1 - hidden.first
    report = RecordsDropped(
        reason="retention", from_n=hidden.first, to_n=last, count=count, by_kind={}, boot=hidden.boot, t=1
    )
    header = SegmentHeader(v=1, router=router, boot=boot, first=0, utc=0, mono=0)
    octets = line_of(header) + numbered(0, report) + b"\n"
    sums = Trailer(count=1, last=0, crc=zlib.crc32(octets), recovered=True, sha=hashlib.sha256(octets).hexdigest())
    (folder / segment_name(file_label(router), boot, 0)).write_bytes(octets + line_of(sums))
    for manifest in folder.glob("*.manifest"):
        manifest.unlink()
    hidden.path.unlink()


@pytest.mark.parametrize("boot", [1_600_000_000, 1_800_000_000])
def test_a_report_that_no_seal_covers_explains_no_deletion(boot: int, tmp_path: Path) -> None:
    folder = sealed(tmp_path / "log")
    unsealed_report(folder, "QDR.A", boot, segments_in(folder)[1])
    assert any("which is missing" in error for error in checked(folder).errors)


def test_the_seal_of_a_router_covers_no_report_of_another(tmp_path: Path) -> None:
    folder = sealed(tmp_path / "log")
    write_first(folder, "QDR%2EB", KEY)
    writer = opened(folder, router="QDR.B")
    writer.write(taken(10), at(1))
    writer.close(at(2))
    unsealed_report(folder, "QDR.A", 1_800_000_000, segments_in(folder)[1])
    assert any("which is missing" in error for error in checked(folder).errors)


def renumbered(folder: Path, epoch: int) -> Path:
    """Give the last seal of a folder another number; return its segment."""
    last = segments_in(folder)[-1].path
    *lines, trailer = last.read_bytes().splitlines(keepends=True)
    last.write_bytes(b"".join(lines) + line_of(msgspec.structs.replace(TRAILER.decode(trailer), epoch=epoch)))
    return last


@pytest.mark.parametrize("epoch", [MAX_KEYS + 10, 2**30, 2**62])
@pytest.mark.parametrize("forged", ["the segment", "the key too", "no key"])
def test_a_huge_number_of_a_seal_is_an_error_at_once(epoch: int, forged: str, tmp_path: Path) -> None:
    folder = sealed(tmp_path / "log")
    renumbered(folder, epoch)
    if forged == "the key too":
        key_path(folder, LABEL).write_bytes(line_of(KeyState(epoch=epoch, key=state_of(folder).key)))
    elif forged == "no key":
        key_path(folder, LABEL).unlink()
    why = f"seal {epoch} is not verified: a check computes no more than {MAX_KEYS} keys"
    if forged == "the segment":
        why = f"seal {epoch} comes, and the router's key is for seal 6"
    assert any(why in error for error in checked(folder).errors)


@pytest.mark.parametrize("epoch", [MAX_KEYS + 10, 2**60, 2**200])
def test_a_huge_number_of_the_router_s_key_is_an_error_at_once(epoch: int, tmp_path: Path) -> None:
    folder = sealed(tmp_path / "log")
    key_path(folder, LABEL).write_bytes(line_of(KeyState(epoch=epoch, key=state_of(folder).key)))
    assert any(f"seals missing at the end: 6-{epoch - 1}" in error for error in checked(folder).errors)


def test_many_keys_that_are_computed_at_once_are_announced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = sealed(tmp_path / "log")
    renumbered(folder, 100)
    announced: list[str] = []
    monkeypatch.setattr("trouter.records.sealed._MANY_KEYS", 50)
    check_folder(folder, key=KEY, announce=announced.append)
    assert announced == ["computing the keys of 95 seals, which takes up to a second for each million"]


@pytest.mark.parametrize("epoch", [0, 2, 5])
def test_the_key_of_an_earlier_seal_is_compared_with_the_verification_key(epoch: int, tmp_path: Path) -> None:
    """As a kill leaves it between a seal and the erasure of its key."""
    folder = sealed(tmp_path / "log")
    key = later_key(first_key(KEY, LABEL), epoch)
    key_path(folder, LABEL).write_bytes(line_of(KeyState(epoch=epoch, key=key.hex())))
    assert checked(folder).errors == []
    key_path(folder, LABEL).write_bytes(line_of(KeyState(epoch=epoch, key=later_key(key, 1).hex())))
    assert any(f"is not the key of seal {epoch}" in error for error in checked(folder).errors)


def test_all_routers_together_cost_no_more_keys_than_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = sealed(tmp_path / "log")
    key_path(folder, LABEL).unlink()
    last = renumbered(folder, 900)
    for each in range(5):
        copy = folder / last.name.replace(LABEL, f"Z{each}")
        shutil.copy(last, copy)
        rewritten(copy, b'"router":"QDR.A"', b'"router":"Z%d"' % each)
    monkeypatch.setattr("trouter.records.sealed.MAX_KEYS", 1000)
    errors = checked(folder).errors
    assert sum("is not verified: a check computes no more than 1000 keys" in error for error in errors) == 5


@pytest.mark.parametrize(("beyond", "possible"), [(0, True), (MAX_STEPS, True), (MAX_STEPS + 1, False)])
def test_a_seal_is_as_far_beyond_the_key_as_a_start_steps_over(beyond: int, possible: bool, tmp_path: Path) -> None:
    folder = sealed(tmp_path / "log")
    renumbered(folder, 6 + beyond)
    errors = checked(folder).errors
    assert any("and the router's key is for seal 6" in error for error in errors) != possible
    assert any(f"seal {6 + beyond} is not of this key" in error for error in errors) == possible


def test_without_any_seal_of_the_key_a_folder_proves_nothing(tmp_path: Path) -> None:
    folder = sealed(tmp_path / "log")
    for path in folder.iterdir():
        path.unlink()
    assert any("there is no seal" in error for error in checked(folder).errors)


def test_a_complete_segment_without_a_seal_after_sealed_ones_is_an_error(tmp_path: Path) -> None:
    folder = sealed(tmp_path / "log")
    path = key_path(folder, LABEL)
    path.rename(tmp_path / "away")
    writer = opened(folder, seconds=900)
    writer.write(taken(5), at(901))
    writer.close(at(902))
    (tmp_path / "away").rename(path)
    (error,) = checked(folder).errors
    assert "is complete without a seal, after sealed ones" in error


def test_a_seal_proves_nothing_of_a_segment_whose_hash_it_does_not_have(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    folder.mkdir()
    write_first(folder, LABEL, KEY)
    writer = opened(folder)
    writer.write(taken(7), at(1))
    os.close(writer._lock)
    again = opened(folder, seconds=100)
    again._tail = again._tail._replace(sha="")  # it could not be read
    again.write(taken(1), at(101))
    again.close(at(102))
    report = checked(folder)
    assert (report.errors, report.unproved) == ([], 7)


def test_a_used_key_is_overwritten_where_it_was(tmp_path: Path) -> None:
    """A second name of the file shows what would be left of it on the disk."""
    folder = tmp_path / "log"
    folder.mkdir()
    path = write_first(folder, LABEL, KEY)
    writer = opened(folder)
    left = []
    for each in range(3):
        left.append(tmp_path / f"left-{each}")
        os.link(path, left[-1])
        writer.write(taken(10, each * 10), at(each * 61))
        writer.tick(at(each * 61 + 60))
    writer.close(at(200))
    assert [set(each.read_bytes()) for each in left] == [{0}] * 3


@pytest.mark.parametrize("fault", ["mode", "link", "text"])
def test_a_key_that_others_may_read_is_not_used(fault: str, tmp_path: Path) -> None:
    path = write_first(tmp_path, LABEL, KEY)
    if fault == "mode":
        path.chmod(0o640)
    elif fault == "link":
        shutil.move(path, tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
    else:
        path.write_bytes(b"no key\n")
    with pytest.raises((ValueError, OSError)) as raised:
        SealingKey.load(tmp_path, LABEL)
    assert KEY.hex() not in str(raised.value)


def test_the_command_makes_keys_once_and_check_takes_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "log"
    folder.mkdir()
    assert main(["records", "keys", str(folder), "--router", "QDR.A", "--workers", "2"]) == 0
    text = capsys.readouterr().out
    assert sorted(path.name for path in folder.iterdir()) == [f"{LABEL}%2E2.sealkey", f"{LABEL}.sealkey"]
    assert main(["records", "keys", str(folder), "--router", "QDR.A"]) == 1
    kept = tmp_path / "verification"
    kept.write_text(text)
    writer = opened(folder)
    writer.write(taken(10), at(1))
    writer.close(at(2))
    capsys.readouterr()
    assert main(["records", "check", str(folder), "--key", str(kept)]) == 0
    assert "10 records in 1 segments, all proved" in capsys.readouterr().out
    kept.write_text("0" * 64)
    assert main(["records", "check", str(folder), "--key", str(kept)]) == 1
    kept.write_text("nonsense")
    assert main(["records", "check", str(folder), "--key", str(kept)]) == 1
