"""The router writes records only to files of its own, not to one that a stranger put into the folder as a link."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.records.written import START, at, opened, taken
from trouter.records.compression import compress
from trouter.records.disk import PART, lock_file, open_own, place_file
from trouter.records.segments import OPEN, manifest_name, segment_name, segments_in
from trouter.records.segments import PART as COMPRESSING

pytestmark = pytest.mark.attack

STRANGER = 65534
LABEL = "QDR%2EA"
REFUSED = "no file of the router|symbolic links"
SECRET = b"only root writes here"


def by_a_link(path: Path, target: Path) -> None:
    path.symlink_to(target)


def by_another_name(path: Path, target: Path) -> None:
    os.link(target, path)


def of_a_stranger(path: Path, target: Path) -> None:
    path.write_bytes(target.read_bytes())
    os.chown(path, STRANGER, 0)


as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
FOREIGN = (
    pytest.param(by_a_link, id="link"),
    pytest.param(by_another_name, id="hard link"),
    pytest.param(of_a_stranger, id="stranger", marks=as_root),
)
Put = Callable[[Path, Path], None]


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """A file that the router may write to and strangers may not."""
    path = tmp_path / "target"
    path.write_bytes(SECRET)
    return path


@pytest.mark.parametrize("put", FOREIGN)
def test_a_file_of_a_stranger_is_neither_locked_nor_emptied(tmp_path: Path, target: Path, put: Put) -> None:
    for name, write in (
        ("lock", lock_file),
        (f"table{PART}", lambda path: place_file(path.with_suffix(""), b"x")),
        ("any", lambda path: open_own(path, os.O_WRONLY | os.O_TRUNC)),
    ):
        path = tmp_path / name
        put(path, target)
        with pytest.raises(OSError, match=REFUSED):
            write(path)
        assert target.read_bytes() == SECRET
        path.unlink(missing_ok=True)


@pytest.mark.parametrize("put", FOREIGN)
def test_a_manifest_of_a_stranger_is_not_written_to(tmp_path: Path, target: Path, put: Put) -> None:
    folder = tmp_path / "records"
    folder.mkdir()
    writer = opened(folder)
    put(folder / manifest_name(LABEL, writer.boot), target)
    writer.write(taken(10), at(1))
    writer.close(at(2))
    assert target.read_bytes() == SECRET
    assert len(segments_in(folder)) == 1, "the records are kept all the same"


@pytest.mark.parametrize("put", FOREIGN)
def test_an_open_segment_of_a_stranger_is_not_completed(tmp_path: Path, target: Path, put: Put) -> None:
    folder = tmp_path / "records"
    folder.mkdir()
    put(folder / (segment_name(LABEL, START - 1, 0) + OPEN), target)
    with pytest.raises(OSError, match=REFUSED):
        opened(folder)
    assert target.read_bytes() == SECRET


@pytest.mark.parametrize("put", FOREIGN)
def test_a_compressed_segment_is_not_written_into_a_file_of_a_stranger(tmp_path: Path, target: Path, put: Put) -> None:
    plain = tmp_path / "segment.jsonl"
    plain.write_bytes(b"records\n")
    put(plain.with_name(plain.name + COMPRESSING), target)
    with pytest.raises(OSError, match=REFUSED):
        compress(plain)
    assert (target.read_bytes(), plain.read_bytes()) == (SECRET, b"records\n")


@as_root
def test_files_of_the_owner_of_the_folder_are_those_of_the_router(tmp_path: Path) -> None:
    """Root starts a router that becomes another user, to whom the folder and what is in it belong."""
    os.chown(tmp_path, STRANGER, STRANGER)
    path = tmp_path / "lock"
    path.write_bytes(b"")
    os.chown(path, STRANGER, STRANGER)
    os.close(lock_file(path))
