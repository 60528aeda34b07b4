"""Files that outlive a crash: whole or not at all, and locked by one process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from trouter.records.disk import AppendedFile, FileHeld, lock_file, place_file


def appended(path: Path, flags: int = os.O_RDWR | os.O_CREAT) -> AppendedFile:
    return AppendedFile(path, os.open(path, flags, 0o600))


def test_a_file_grows_by_whole_pieces(tmp_path: Path) -> None:
    file = appended(tmp_path / "f")
    file.append(b"one")
    file.append(bytearray(b"two"), durable=True)
    assert (file.end, file.path.read_bytes()) == (6, b"onetwo")
    file.close()


def test_what_is_behind_the_end_is_cut_off(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"whole and torn")
    file = AppendedFile(tmp_path / "f", os.open(tmp_path / "f", os.O_RDWR), 5)
    file.cut()
    file.append(b"!")
    assert (tmp_path / "f").read_bytes() == b"whole!"
    file.close()


def test_of_a_piece_that_cannot_be_written_whole_nothing_stays(tmp_path: Path) -> None:
    code = (
        "import os, resource, signal\n"
        "from pathlib import Path\n"
        "from trouter.records.disk import AppendedFile\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))\n"
        "file = AppendedFile(Path('f'), os.open('f', os.O_RDWR | os.O_CREAT, 0o600))\n"
        "file.append(b'12345678')\n"
        "try:\n"
        "    file.append(b'abcdefgh')\n"
        "except OSError:\n"
        "    print(file.end, file.torn)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("8 False\n", "")
    assert (tmp_path / "f").read_bytes() == b"12345678"


def test_a_file_that_cannot_even_be_cut_is_torn() -> None:
    file = appended(Path("/dev/full"), os.O_WRONLY)  # every write fails, and so does truncation
    with pytest.raises(OSError, match="No space left"):
        file.append(b"x")
    assert (file.end, file.torn) == (0, True)
    file.close()


def test_a_file_is_placed_as_a_whole_or_stays_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "f"
    place_file(path, b"old", mode=0o600)
    place_file(path, b"new", durable=False, part=tmp_path / ".part of f")
    assert path.read_bytes() == b"new"
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        place_file(tmp_path / "folder", b"x")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["f", "folder"]


def test_a_held_lock_names_its_holder(tmp_path: Path) -> None:
    held = lock_file(tmp_path / "LOCK")
    with pytest.raises(FileHeld, match=f"process {os.getpid()}$"):
        lock_file(tmp_path / "LOCK")
    os.close(held)
    os.close(lock_file(tmp_path / "LOCK"))
