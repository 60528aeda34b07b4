"""The files that attributes name are checked before the router starts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trouter.config import files, passwords
from trouter.config.schema import BadValue, Doubt


def test_no_path_is_no_file() -> None:
    assert files.readable("") is None
    assert files.readable_file("") is None
    assert files.name_map("") is None
    assert files.directory("") == ""


def test_readable_files_and_folders_are_accepted(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("{}")
    path = str(tmp_path / "a")
    assert files.readable(path) == files.readable_file(path) == files.name_map(path) == path
    assert files.readable(str(tmp_path)) == files.directory(str(tmp_path)) == str(tmp_path)


@pytest.mark.parametrize("path", ["no/such", "a\0b"])
def test_unreadable_paths_are_refused(path: str) -> None:
    for look in (files.readable, files.readable_file, files.directory, files.name_map):
        with pytest.raises(BadValue, match="cannot be read") as caught:
            look(path)
        assert isinstance(caught.value, Doubt) == (look is not files.directory)


def test_a_pipe_or_a_device_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (str(pipe), "/dev/zero"):
        for look in (files.readable, files.readable_file, files.name_map, passwords.from_file):
            with pytest.raises(BadValue, match="cannot be read: it is no plain file"):
                look(path)


def test_a_directory_is_no_file_and_a_file_no_directory(tmp_path: Path) -> None:
    with pytest.raises(BadValue, match="Is a directory"):
        files.readable_file(str(tmp_path))
    (tmp_path / "a").write_text("")
    with pytest.raises(BadValue, match="Not a directory"):
        files.directory(str(tmp_path / "a"))


NO_NAMES = {
    "": "is not JSON",
    "[]": "not one JSON object",
    '{"a": 1}': "not one JSON object",
    '{"a": "x", "b": "x"}': "two entries of this file have the same name",
    "[" * 100_000: "is not JSON",
}


@pytest.mark.parametrize(("text", "message"), NO_NAMES.items(), ids=range(len(NO_NAMES)))
def test_a_file_of_names_holds_one_object_of_texts(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "a").write_text(text)
    with pytest.raises(BadValue, match=message):
        files.name_map(str(tmp_path / "a"))


def test_names_are_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_text('{"a": "x", "b": "", "c": ""}')
    assert files.read_name_map(str(tmp_path / "a")) == {"a": "x", "b": "", "c": ""}


def test_a_file_of_names_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_NAME_MAP_BYTES", 10)
    (tmp_path / "a").write_text('{"abc": "def"}')
    with pytest.raises(BadValue, match="larger than 10 bytes"):
        files.name_map(str(tmp_path / "a"))
