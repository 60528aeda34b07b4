"""Files are served from below the root only."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trouter.http.files import open_file
from trouter.http.responses import FileBody, Response

FILES = Path("/proc/self/fd")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "www"
    (root / "sub").mkdir(parents=True)
    (root / "index.html").write_text("start")
    (root / "sub" / "index.html").write_text("sub")
    (root / "a.js").write_text("code")
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "www-beside").mkdir()
    (tmp_path / "www-beside" / "x").write_text("beside")
    return root


def text_of(response: Response | None) -> str | None:
    if response is None:
        return None
    assert isinstance(response.body, FileBody)
    with response.body.file as file:
        return file.read().decode()


@pytest.mark.parametrize(
    ("names", "text"),
    [(("",), "start"), (("index.html",), "start"), (("sub", ""), "sub"), (("a.js",), "code")],
)
def test_a_file_is_found_and_a_folder_means_its_index(root: Path, names: tuple[str, ...], text: str) -> None:
    assert text_of(open_file(root, names)) == text


@pytest.mark.parametrize("names", [("nothing",), ("sub",), ("a.js", ""), ("a.js", "x"), ("x" * 300,), ("a\0",)])
def test_a_name_that_is_no_file_opens_none(root: Path, names: tuple[str, ...]) -> None:
    assert open_file(root, names) is None


def test_a_link_is_followed_within_the_root(root: Path) -> None:
    (root / "link.js").symlink_to("a.js")
    (root / "linked").symlink_to("sub")
    assert text_of(open_file(root, ("link.js",))) == "code"
    assert text_of(open_file(root, ("linked", ""))) == "sub"


@pytest.mark.parametrize("target", ["../secret", "/etc/passwd", "../www-beside/x", "loop"])
def test_a_link_out_of_the_root_or_into_itself_is_none(root: Path, target: str) -> None:
    (root / "loop").symlink_to(target)
    assert open_file(root, ("loop",)) is None


def test_a_folder_linked_from_outside_is_none(root: Path) -> None:
    (root / "out").symlink_to(root.parent)
    assert open_file(root, ("out", "secret")) is None


def test_names_that_lead_up_are_none_even_if_they_came_so_far(root: Path) -> None:
    assert open_file(root, ("..", "secret")) is None
    assert open_file(root, ("", str(root.parent / "secret"))) is None
    assert open_file(root, (str(root.parent / "secret"),)) is None


def test_a_pipe_is_none_and_is_not_waited_for(root: Path) -> None:
    os.mkfifo(root / "pipe")
    before = len(list(FILES.iterdir()))
    assert open_file(root, ("pipe",)) is None
    assert len(list(FILES.iterdir())) == before


def test_the_root_may_be_a_link_and_may_change(root: Path) -> None:
    current = root.parent / "current"
    current.symlink_to(root)
    assert text_of(open_file(current, ("a.js",))) == "code"
    current.unlink()
    assert open_file(current, ("a.js",)) is None


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("x.html", "text/html; charset=utf-8"),
        ("x.JSON", "application/json"),
        ("x.woff2", "font/woff2"),
        ("x.css", "text/css; charset=utf-8"),
        ("x.svg", "image/svg+xml"),
        ("x.exe", "application/octet-stream"),
        ("x", "application/octet-stream"),
    ],
)
def test_the_type_follows_the_ending(root: Path, name: str, kind: str) -> None:
    (root / name).write_text("")
    response = open_file(root, (name,))
    assert response is not None
    assert response.content_type == kind
    text_of(response)
