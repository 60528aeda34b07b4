"""The seeds of a target are members of one archive and files of the folder beside it, whichever it has."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

from fuzz import run
from trouter.testing.fuzz.seeds import archive_of, pack_seeds, seeds_in


def folder_with(parent: Path, **seeds: bytes) -> Path:
    """Return a folder with these seeds, as files."""
    folder = parent / "codec"
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in seeds.items():
        (folder / name).write_bytes(data)
    return folder


def test_a_target_without_seeds_has_none(tmp_path: Path) -> None:
    assert seeds_in(tmp_path / "codec") == {}
    assert pack_seeds(tmp_path / "codec") == 0
    assert not archive_of(tmp_path / "codec").exists()


def test_packed_seeds_stay_and_their_files_go(tmp_path: Path) -> None:
    seeds = {"a": b"1", "b": b"", "c": bytes(range(256))}
    folder = folder_with(tmp_path, **seeds)
    assert pack_seeds(folder) == 3
    assert not folder.exists()
    assert seeds_in(folder) == seeds


def test_a_new_file_joins_the_archive_and_replaces_the_member_of_its_name(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, b=b"old", c=b"3")
    pack_seeds(folder)
    folder_with(tmp_path, a=b"1", b=b"new")
    seeds = {"a": b"1", "b": b"new", "c": b"3"}
    assert seeds_in(folder) == seeds
    assert list(seeds_in(folder)) == ["a", "b", "c"]
    assert pack_seeds(folder) == 2
    assert seeds_in(folder) == seeds


def test_the_archive_depends_on_names_and_contents_only(tmp_path: Path) -> None:
    one, other = folder_with(tmp_path / "one", a=b"1", b=b"2"), folder_with(tmp_path / "other", b=b"2")
    os.utime(one / "a", (2**31, 2**31))
    pack_seeds(other)
    folder_with(tmp_path / "other", a=b"1")
    pack_seeds(one)
    pack_seeds(other)
    assert archive_of(one).read_bytes() == archive_of(other).read_bytes()
    with zipfile.ZipFile(archive_of(one)) as archive:
        assert archive.namelist() == ["a", "b"]


def test_the_projects_seeds_are_packed() -> None:
    """Only inputs that failed since then may be files, until they are packed, too."""
    loose = [path for folder in run.SEEDS.iterdir() if folder.is_dir() for path in folder.iterdir()]
    assert [path for path in loose if not path.name.startswith("crash-")] == []
    assert {path.stem for path in run.SEEDS.glob("*.zip")} == set(run.targets())
