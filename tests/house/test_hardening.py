"""The hardening guide, command by command, as somebody would type it in an empty folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.sources import ROOT
from tests.routers import DEADLINE_S

GUIDE = (ROOT / "docs" / "hardening.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
#: (command, the words of each line that it is said to print)
STEPS = [
    (command.splitlines()[0], command.splitlines()[1:])
    for block in BLOCKS
    for command in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
]


def test_there_is_a_guide() -> None:
    assert len(STEPS) >= 20
    assert all(block.startswith("$ ") for block in BLOCKS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where it is typed; `trouter` is on the path, and the project's packaging beside it."""
    path = tmp_path_factory.mktemp("guide")
    (path / "bin").mkdir()
    trouter = path / "bin" / "trouter"
    trouter.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m trouter "$@"\n')
    trouter.chmod(0o755)
    (path / "packaging").symlink_to(ROOT / "packaging")
    return path


def test_the_guide_works_from_top_to_bottom(folder: Path) -> None:
    for command, expected in STEPS:
        if command.startswith("systemd-analyze") and shutil.which("systemd-analyze") is None:
            continue  # nobody runs units here
        refused = command.startswith("! ")
        done = subprocess.run(
            ["bash", "-c", command.removeprefix("! ")],
            cwd=folder,
            env={
                **os.environ,
                "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
                "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "plugins")]),
            },
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        said = done.stdout + done.stderr
        assert done.returncode == (2 if refused else 0), f"{command}: {said}"
        assert not [line for line in expected if line.strip() not in said], f"{command}: {said}"
