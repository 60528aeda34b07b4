"""News for users: one file for each change in changes/, of which towncrier makes the page of a version."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.house.sources import ROOT, project

if TYPE_CHECKING:
    from pathlib import Path

FRAGMENTS = sorted(path for path in (ROOT / "changes").iterdir() if path.name != "README.md")
KINDS = [kind["directory"] for kind in project()["tool"]["towncrier"]["type"]]
NAME = re.compile(rf"\+[a-z0-9]+(-[a-z0-9]+)*\.({'|'.join(KINDS)})\.md")


@pytest.mark.parametrize("path", FRAGMENTS, ids=lambda path: path.name)
def test_a_fragment_has_a_kind_and_a_text(path: Path) -> None:
    """Its links are among those that test_site follows."""
    assert NAME.fullmatch(path.name)
    assert path.read_text(encoding="utf-8").strip()


def test_news_are_files_and_not_lines_of_the_changelog() -> None:
    assert "unreleased" not in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").lower()


def test_a_release_puts_every_fragment_above_the_last_version(tmp_path: Path) -> None:
    for name in ("pyproject.toml", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "changes").mkdir()
    for number, kind in enumerate(KINDS):
        (tmp_path / "changes" / f"+piece-{number}.{kind}.md").write_text(f"News {number}.\n", encoding="utf-8")
    # towncrier stages what it writes.
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    command = [sys.executable, "-m", "towncrier", "build", "--keep", "--version", "9.9.9"]
    subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    text = (tmp_path / "CHANGELOG.md").read_text(encoding="utf-8")
    places = [text.index(f"\n- News {number}.\n") for number in range(len(KINDS))]
    assert places == sorted(places)
    assert text.index("\n## [9.9.9] - 20") < places[0]
    assert places[-1] < text.index("\n## [0.2.0]")
