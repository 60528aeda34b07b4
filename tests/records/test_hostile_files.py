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
from trouter.records.holes import deleted_in
from trouter.records.segments import segments_in

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
