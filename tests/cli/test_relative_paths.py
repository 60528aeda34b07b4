"""Relative paths of a configuration, and the places of the manual that say where they begin."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.sources import ROOT

FILES = {
    "usersFile": ("router { usersFile: found }\n", ""),
    "tenantFrom": (
        "listener { host: 127.0.0.1, port: 0, multiTenant: yes, tenantFrom: file:found, saslMechanisms: EXTERNAL }\n",
        '{"alice": "t1.example"}',
    ),
}


def said(configuration: Path, folder: Path) -> str:
    """Return what `trouter check` prints in a folder."""
    command = [sys.executable, "-m", "trouter", "check", str(configuration)]
    environment = {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@pytest.mark.parametrize("name", FILES)
def test_a_relative_path_begins_at_the_working_directory(name: str, tmp_path: Path) -> None:
    text, content = FILES[name]
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    (here / "router.conf").write_text(text)
    (there / "found").write_text(content)
    (there / "found").chmod(0o600)
    assert "No such file" not in said(here / "router.conf", there)
    assert "No such file" in said(here / "router.conf", here)


@pytest.mark.parametrize("page", ["configuration.md", "multi-tenancy.md", "authentication.md"])
def test_the_pages_say_so(page: str) -> None:
    text = re.sub(r"\s+", " ", (ROOT / "docs" / page).read_text(encoding="utf-8"))
    assert "working directory" in text
    assert "tenants.json` beside it" not in text
