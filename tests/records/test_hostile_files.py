"""Files that somebody put among records: `trouter records check` names each, and neither waits nor fills memory."""

from __future__ import annotations

import gzip
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.records.written import at, opened, taken
from tests.routers import DEADLINE_S
from trouter.records.check import check_folder
from trouter.records.holes import deleted_in
from trouter.records.segments import MAX_START, last_start, segment_name, segments_in
from trouter.records.writer import CHANGED, Bounds, latest_boot

pytestmark = pytest.mark.attack

TEN_GB = 10 << 30
#: The address space that the command may use.
SPACE_BYTES = 2 << 30


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(TEN_GB)


def bomb(path: Path) -> None:
    """Write a file that is a thousand times larger when it is decompressed."""
    with gzip.open(path, "wb") as file:
        for _ in range(128):
            file.write(bytes(1 << 20))


def cut(path: Path, whole: bytes) -> None:
    path.write_bytes(whole[: len(whole) // 2])


def link(path: Path, to: str) -> None:
    path.symlink_to(to)


#: By file behind the first segment: how it is made, and what the command says of it.
SEGMENT = "{label}~{boot}~0000000000009000.jsonl"
HOSTILE: dict[str, tuple[str, Callable[[Path], None], str]] = {
    "pipe": (SEGMENT, os.mkfifo, "cannot be read: it is no regular file"),
    "compressed pipe": (f"{SEGMENT}.gz", os.mkfifo, "cannot be read: it is no regular file"),
    "folder": (SEGMENT, Path.mkdir, "cannot be read: "),
    "endless device": (SEGMENT, partial(link, to="/dev/zero"), "cannot be read: it is no regular file"),
    "link to nothing": (SEGMENT, partial(link, to="nowhere"), "cannot be read: No such file"),
    "link to itself": (SEGMENT, partial(link, to=SEGMENT), "cannot be read: "),
    "sparse": (SEGMENT, sparse, "byte 0: the header is incomplete"),
    "bomb": (f"{SEGMENT}.gz", bomb, "byte 0: the header is incomplete"),
    "sparse manifest": ("{label}~{boot}.manifest.manifest", sparse, "byte 0: this line cannot be read"),
    "pipe as a manifest": ("{label}~{boot}.manifest.manifest", os.mkfifo, "cannot be read: it is no regular file"),
}


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (SPACE_BYTES, SPACE_BYTES))


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_file_is_named_and_the_others_are_checked(tmp_path: Path, kind: str) -> None:
    writer = opened(tmp_path)
    writer.write(taken(3), at(1))
    writer.close(at(101))
    (place,) = segments_in(tmp_path)
    name, make, told = HOSTILE[kind]
    path = tmp_path / name.format(label=place.router, boot=place.boot)
    make(path)
    command = [sys.executable, "-m", "trouter", "records", "check", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, preexec_fn=limited, check=False)
    assert done.returncode == 1
    assert f"{path}: {told}" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout.startswith("3 records")


def test_a_pipe_in_place_of_a_manifest_does_not_stop_a_router(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.manifest")
    assert deleted_in(tmp_path / "pipe.manifest") == []


@pytest.mark.parametrize("rest", ["", ".gz", ".open", ".empty"])
@pytest.mark.parametrize("start", [MAX_START, MAX_START - 1])
def test_a_file_with_the_last_number_of_a_start_ends_no_recording(start: int, rest: str, tmp_path: Path) -> None:
    """Each start has a later number than all before, and behind the last one there is none that a name has room for."""
    folder, other = tmp_path / "log", tmp_path / "other"
    writer = opened(folder)
    writer.write(taken(3), at(1))
    writer.close(at(2))
    other.mkdir()
    planted = folder / f"{segment_name('QDR%2EA', start, 0)}{rest}"
    planted.write_bytes(b"")
    told: list[str] = []
    for seconds in (100, 200, 300):
        assert latest_boot([folder, other], "QDR.A", at(seconds)) < MAX_START
        writer = opened(folder, Bounds(segment_us=1), seconds)
        writer.write(taken(3), at(seconds + 1))
        writer.tick(at(seconds + 2))
        writer.close(at(seconds + 3))
        assert [place.boot for place in segments_in(folder)].count(writer.boot) == 1
        told += [alarm.value or "" for alarm in writer.news if alarm.name == CHANGED]
    assert any(f"{planted.name.split('.jsonl')[0]}" in text for text in told)
    assert check_folder(folder).records == 12
    planted.unlink(missing_ok=True)


def test_a_start_whose_clock_is_set_back_comes_after_all_earlier_ones() -> None:
    assert last_start([], 5) == 0
    assert last_start([10**12, 3], 5) == 10**12
    assert last_start([MAX_START, 10**12, 3, 10**9], 5) == 10**9
    assert last_start([MAX_START], 5) == 0
