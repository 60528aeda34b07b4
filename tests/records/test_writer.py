"""Segments have each record that was written, after any failure of the disk, the clock and the process."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.records.written import SECOND, START, at, drops_of, lines_of, links_of, opened, records, taken
from trouter.records.check import check_file, check_folder
from trouter.records.segments import ManifestEntry, file_label, manifest_name, segments_in
from trouter.records.stream import RecordQueue
from trouter.records.writer import RETRY_US, Bounds, Busy, Now, SegmentWriter, latest_boot


def assert_proved(folder: Path) -> None:
    report = check_folder(folder)
    assert report.errors == []


def test_written_records_are_read_back(tmp_path: Path) -> None:
    writer = opened(tmp_path)
    writer.write(taken(1000), at(1))
    writer.close(at(2))
    assert [line.n for line in lines_of(tmp_path)] == list(range(1000))
    assert links_of(tmp_path) == list(range(1000))
    (place,) = segments_in(tmp_path)
    assert place.path.name == f"QDR%2EA~{START // SECOND}~{0:016}.jsonl"
    assert place.path.stat().st_mode & 0o077 == 0o040
    assert_proved(tmp_path)


def test_an_idle_router_writes_nothing(tmp_path: Path) -> None:
    writer = opened(tmp_path)
    for second in range(200):
        writer.tick(at(second))
    writer.close(at(200))
    assert segments_in(tmp_path) == []


def test_a_segment_ends_by_size(tmp_path: Path) -> None:
    writer = opened(tmp_path, Bounds(segment_bytes=100_000))
    for batch in range(20):
        writer.write(taken(256, batch * 256), at(batch))
    writer.close(at(20))
    sizes = [place.path.stat().st_size for place in segments_in(tmp_path)]
    assert len(sizes) > 5
    assert max(sizes) < 100_500
    assert links_of(tmp_path) == list(range(20 * 256))
    assert_proved(tmp_path)


def test_a_segment_ends_by_time_counted_from_its_first_record(tmp_path: Path) -> None:
    writer = opened(tmp_path)
    writer.write(taken(1), at(100))
    writer.tick(at(159))
    assert [place.rest for place in segments_in(tmp_path)] == [".open"]
    writer.tick(at(160))
    assert [place.rest for place in segments_in(tmp_path)] == [""]
    writer.tick(at(300))
    assert len(segments_in(tmp_path)) == 1
    writer.close(at(300))


def test_each_start_has_a_boot_of_its_own(tmp_path: Path) -> None:
    for _ in range(3):
        writer = opened(tmp_path)
        writer.write(taken(5), at(1))
        writer.close(at(2))
    boots = [place.boot for place in segments_in(tmp_path)]
    assert boots == [START // SECOND, START // SECOND + 1, START // SECOND + 2]
    assert_proved(tmp_path)


def test_two_routers_share_a_folder_and_two_of_one_name_do_not(tmp_path: Path) -> None:
    writer, other = opened(tmp_path), opened(tmp_path, router="B~1~../x")
    with pytest.raises(Busy, match=r"QDR\.A"):
        opened(tmp_path)
    for each in (writer, other):
        each.write(taken(3), at(1))
        each.close(at(2))
    assert len(segments_in(tmp_path)) == 2
    assert_proved(tmp_path)
    opened(tmp_path).close(at(3))


@pytest.mark.parametrize("router", ["A.b", "é" * 100, "../../etc", "a~1~2", "\x00", "x" * 1000, "CON.jsonl"])
def test_any_router_name_is_the_beginning_of_a_file_name(router: str, tmp_path: Path) -> None:
    assert file_label(router) != file_label(router + "x")
    writer = opened(tmp_path, router=router)
    writer.write(taken(1), at(1))
    writer.close(at(2))
    assert len(segments_in(tmp_path)) == 1
    assert_proved(tmp_path)


def test_the_manifest_reports_every_segment(tmp_path: Path) -> None:
    writer = opened(tmp_path, Bounds(segment_bytes=50_000))
    writer.write(taken(1000), at(1))
    writer.close(at(2))
    text = (tmp_path / manifest_name(file_label("QDR.A"), writer.boot)).read_bytes()
    entries = [msgspec.json.decode(line, type=ManifestEntry) for line in text.splitlines()]
    assert [entry.seg for entry in entries] == [place.path.name for place in segments_in(tmp_path)]
    assert sum(entry.count for entry in entries) == 1000
    assert [entry.bytes for entry in entries] == [place.path.stat().st_size for place in segments_in(tmp_path)]
    assert (entries[0].t_min, entries[-1].t_max) == (START, START + 999)


# --- limits


def test_the_oldest_segments_are_deleted_for_room_and_reported(tmp_path: Path) -> None:
    writer = opened(tmp_path, Bounds(max_bytes=200_000, segment_bytes=30_000))
    for batch in range(50):
        writer.write(taken(100, batch * 100), at(batch))
        assert sum(path.stat().st_size for path in tmp_path.glob("*.jsonl*")) <= 200_000
    writer.close(at(50))
    links = links_of(tmp_path)
    assert links == list(range(links[0], 5000))
    assert links[0] > 0
    assert {dropped.reason for dropped in drops_of(tmp_path)} == {"retention"}
    assert_proved(tmp_path)


def test_segments_of_earlier_starts_make_room_too(tmp_path: Path) -> None:
    bounds = Bounds(max_bytes=200_000, segment_bytes=30_000)
    for start in range(3):
        writer = opened(tmp_path, bounds, seconds=start * 100)
        for batch in range(8):
            writer.write(taken(100, batch * 100), at(start * 100 + 1))
        writer.close(at(start * 100 + 2))
    assert sum(path.stat().st_size for path in tmp_path.glob("*.jsonl*")) <= 200_000
    assert any(dropped.boot for dropped in drops_of(tmp_path))
    boots = sorted({place.boot for place in segments_in(tmp_path)})
    manifests = sorted(int(path.name.split("~")[1].split(".")[0]) for path in tmp_path.glob("*.manifest"))
    assert manifests == [boots[0] - 100, *boots]  # the first segment follows one of the start before
    assert_proved(tmp_path)


def test_evidence_is_kept_and_new_records_are_dropped(tmp_path: Path) -> None:
    writer = opened(tmp_path, Bounds(max_bytes=100_000, segment_bytes=20_000, keeps_oldest=True))
    for batch in range(30):
        writer.write(taken(50, batch * 50), at(batch * 0.1))
    assert 0 < writer.dropped < 1500
    assert [(news.state, news.severity) for news in writer.news] == [("raised", "critical")]
    for path in list(tmp_path.glob("*.jsonl"))[:2]:  # moved away by another program
        path.unlink()
    writer.bounds = Bounds(max_bytes=1_000_000, keeps_oldest=True)
    writer.write(taken(1, 5000), at(100))
    writer.close(at(101))
    links = links_of(tmp_path)
    assert links[-1] == 5000
    (dropped,) = drops_of(tmp_path)
    assert dropped.reason == "disk-full"
    assert dropped.count == writer.dropped == dropped.to_n - dropped.from_n + 1 == dropped.by_kind["link.stalled"]
    assert writer.news[-1].state == "cleared"


def test_the_disk_keeps_room_for_others(tmp_path: Path) -> None:
    facts = os.statvfs(tmp_path)
    writer = opened(tmp_path, Bounds(min_free_bytes=facts.f_bavail * facts.f_frsize * 2))
    writer.write(taken(10), at(1))
    assert (writer.written, writer.dropped) == (0, 10)
    writer.bounds = Bounds()
    writer.write(taken(10, 10), at(2))  # too early for another try
    assert writer.dropped == 20
    writer.tick(Now(START, SECOND + RETRY_US))
    writer.write(taken(10, 20), at(10))
    writer.close(at(11))
    assert links_of(tmp_path) == list(range(20, 30))
    assert [(dropped.from_n, dropped.to_n) for dropped in drops_of(tmp_path)] == [(0, 19)]
    assert_proved(tmp_path)


def test_old_segments_go(tmp_path: Path) -> None:
    writer = opened(tmp_path, Bounds(keep_us=3600 * SECOND, segment_us=SECOND))
    writer.write(taken(10), at(1))
    writer.tick(at(2))
    writer.tick(at(3000))
    assert len(segments_in(tmp_path)) == 1
    writer.tick(at(3700))
    writer.close(at(3701))
    assert links_of(tmp_path) == []
    assert [dropped.reason for dropped in drops_of(tmp_path)] == ["retention"]
    assert_proved(tmp_path)


def test_records_without_room_in_the_queue_are_reported(tmp_path: Path) -> None:
    rung: list[None] = []
    stream = RecordQueue(lambda: rung.append(None), limit=100)
    for record in records(250):
        stream.put(record)
    assert rung == [None]
    writer = opened(tmp_path)
    writer.write(stream.take_records(), at(1))
    for record in records(10, 250):
        stream.put(record)
    writer.write(stream.take_records(), at(2))
    writer.close(at(3))
    assert links_of(tmp_path) == [*range(100), *range(250, 260)]
    (dropped,) = drops_of(tmp_path)
    assert (dropped.reason, dropped.from_n, dropped.to_n) == ("queue-full", 100, 249)
    assert dropped.by_kind == {"link.stalled": 150}
    assert_proved(tmp_path)


# --- failing disks


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """Mount a small file system."""
    folder = Path("/dev/shm") / f"trouter-records-{os.getpid()}"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(folder)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        folder.rmdir()
        pytest.skip("only root may mount a small disk")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)
        folder.rmdir()


def test_a_full_disk_drops_records_and_the_drop_is_recorded_afterwards(small_disk: Path) -> None:
    writer = opened(small_disk, Bounds(keeps_oldest=True))
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 300_000)
    for batch in range(20):
        writer.write(taken(256, batch * 256), at(batch))
        writer.tick(at(batch))
    assert writer.dropped > 0
    assert [news.state for news in writer.news] == ["raised"]
    ballast.unlink()
    writer.write(taken(1, 100_000), at(100))
    writer.close(at(101))
    assert links_of(small_disk)[-1] == 100_000
    assert len(lines_of(small_disk)) == writer.written
    assert_proved(small_disk)


def limited(limit: int, folder: Path, seconds: float = 0.0) -> subprocess.CompletedProcess[str]:
    """Run a writer in a process with a limit on file size: write(2) is cut short, then refused."""
    script = f"""
import resource, signal
from pathlib import Path
from tests.records.written import *
from trouter.records.writer import *
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
writer = opened(Path({str(folder)!r}), Bounds(keeps_oldest=True))
writer.write(taken(100), at(1))
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, resource.RLIM_INFINITY))
writer.write(taken(1000, 100), at(2))
assert writer.dropped, writer.dropped
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
writer.write(taken(5, 5000), at(3))
writer.write(taken(5, 6000), at(9))
writer.close(at(10))
"""
    return subprocess.run([sys.executable, "-c", script], check=False, text=True, capture_output=True, timeout=60)


@pytest.mark.parametrize("limit", [20_000, 20_001, 33_333, 47_777])
def test_a_line_that_was_written_in_part_is_taken_back(limit: int, tmp_path: Path) -> None:
    done = limited(limit, tmp_path)
    assert done.returncode == 0, done.stderr
    links = links_of(tmp_path)
    assert links[-5:] == list(range(6000, 6005))
    (dropped,) = drops_of(tmp_path)
    assert dropped.reason == "disk-full"
    assert_proved(tmp_path)


def test_a_segment_whose_disk_failed_is_mended_later(tmp_path: Path) -> None:
    writer = opened(tmp_path)
    writer.write(taken(10), at(1))
    segment = writer._segment
    assert segment is not None
    broken = os.open("/dev/full", os.O_WRONLY)  # every write fails, and so does truncation
    os.dup2(broken, segment.file.descriptor)
    os.close(broken)
    writer.write(taken(10, 10), at(2))
    assert writer.dropped == 10
    assert writer._segment is None
    writer.tick(at(10))
    writer.write(taken(10, 20), at(11))
    writer.tick(at(12))
    writer.close(at(13))
    assert links_of(tmp_path) == [*range(10), *range(20, 30)]
    assert [place.rest for place in segments_in(tmp_path)] == ["", ""]
    assert [news.state for news in writer.news] == ["raised", "cleared"]
    assert_proved(tmp_path)


def test_a_folder_that_cannot_be_had_is_an_error_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError):
        opened(tmp_path / "file" / "below")


# --- a process that is killed

VICTIM = """
import os, sys
from pathlib import Path
from tests.records.written import *
from trouter.records.writer import *
writer = SegmentWriter(Path(sys.argv[1]), "QDR.A", Bounds(segment_bytes=40_000))
writer.open(at(0))
first = 0
while True:
    writer.write(taken(97, first), at(first / 1000))
    writer.tick(at(first / 1000))
    first += 97
    os.write(1, b"%d\\n" % first)
"""


def test_records_of_a_killed_process_are_read_after_the_next_start(tmp_path: Path) -> None:
    lucky = random.Random(20260)
    for run in range(6):
        folder = tmp_path / str(run)
        with subprocess.Popen([sys.executable, "-c", VICTIM, folder], stdout=subprocess.PIPE) as victim:
            assert victim.stdout is not None
            for _ in range(lucky.randrange(1, 40)):
                acknowledged = int(victim.stdout.readline())
            victim.send_signal(signal.SIGKILL)
            rest = victim.stdout.read().splitlines(keepends=True)
            acknowledged = max([acknowledged, *(int(line) for line in rest if line.endswith(b"\n"))])
        opened(folder, seconds=5).close(at(6))
        links = links_of(folder)
        assert len(links) >= acknowledged
        assert links == list(range(len(links)))
        # killed between the creation of a segment and its header: no record of it was acknowledged
        assert {place.rest for place in segments_in(folder)} <= {"", ".empty"}
        assert_proved(folder)


@pytest.mark.parametrize("cut", [0, 1, 60, 200, 1000, 5000])
def test_a_torn_segment_is_completed(cut: int, tmp_path: Path) -> None:
    writer = opened(tmp_path)
    writer.write(taken(50), at(1))
    (place,) = segments_in(tmp_path)
    octets = place.path.read_bytes()
    os.close(writer._lock)
    place.path.write_bytes(octets[: len(octets) - cut if cut < 1000 else cut % 999])
    again = opened(tmp_path, seconds=5)
    again.write(taken(1, 1000), at(6))
    again.close(at(7))
    old, new = segments_in(tmp_path)
    assert new.boot > old.boot
    if cut >= 1000:
        assert old.rest == ".empty"
        assert "is empty" in check_folder(tmp_path).notes[0]
    else:
        whole = octets[: len(octets) - cut].count(b"\n") - 1
        assert links_of(tmp_path) == [*range(whole), 1000]
        assert "recovered" in check_folder(tmp_path).notes[0]
    assert_proved(tmp_path)


def test_garbage_that_a_power_failure_left_is_cut_off(tmp_path: Path) -> None:
    writer = opened(tmp_path)
    writer.write(taken(50), at(1))
    (place,) = segments_in(tmp_path)
    os.close(writer._lock)
    with place.path.open("ab") as file:
        file.write(b"\x00" * 4096 + b"\n" + b'{"n":50,"k":"link.stalled"}\n')
    opened(tmp_path, seconds=5).close(at(6))
    assert links_of(tmp_path) == list(range(50))
    assert_proved(tmp_path)


def test_a_segment_that_was_complete_and_not_yet_renamed_is_renamed(tmp_path: Path) -> None:
    writer = opened(tmp_path)
    writer.write(taken(50), at(1))
    writer.close(at(2))
    (place,) = segments_in(tmp_path)
    octets = place.path.read_bytes()
    place.path.rename(f"{place.path}.open")
    opened(tmp_path, seconds=5).close(at(6))
    assert place.path.read_bytes() == octets
    assert check_file(place.path).errors == []


def test_two_logs_of_one_router_are_distinguished_by_their_starts(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two", tmp_path / "not there"]
    boots = []
    for start in range(2):
        for folder in folders[:2]:
            writer = SegmentWriter(folder, "QDR.A", Bounds())
            writer.open(at(start), latest_boot(folders, "QDR.A", at(start)))
            writer.write(taken(1), at(start))
            writer.close(at(start))
            boots.append(writer.boot)
    assert boots == [START // SECOND + each for each in range(4)]
    assert latest_boot(folders, "QDR.B", at(0)) == 0
