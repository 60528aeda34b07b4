"""Every shipped configuration passes `trouter check --strict`: what is unsafe on purpose is accepted in the file.

The files of the tutorial are checked by its own commands (tests/network/test_walk_through.py).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.routers import DEADLINE_S, ROOT
from trouter.cli import main
from trouter.config import DEFAULT_TEXT

#: Files of other routers, to be migrated: what is unsafe about them is shown by the pages about migration.
FOREIGN = ("migration", "skupper")
#: Files of a network, which are none without its common file: tests/network/test_network_examples.py checks the whole.
PARTIAL = "network"
SHIPPED = sorted(
    path
    for folder in ("packaging", "examples")
    for path in (ROOT / folder).rglob("*.conf")
    if path.parent.name not in FOREIGN and PARTIAL not in path.parts
)


def check(path: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Check a file in an empty folder with a users file, as the pages about it say, with the example plugins."""
    (folder / "users").touch(mode=0o600)
    return subprocess.run(
        [sys.executable, "-m", "trouter", "check", "--strict", str(path)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "examples" / "plugins")))},
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_S,
    )


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_shipped_file_is_good_with_strict(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / path.name
    copy.write_bytes(path.read_bytes())
    copy.chmod(0o600)
    done = check(copy, tmp_path)
    assert (done.returncode, "unsafe: " in done.stderr) == (0, False), done.stderr
    assert "which is not found" not in done.stderr


def test_the_built_in_configuration_is_good_with_strict(tmp_path: Path) -> None:
    path = tmp_path / "built-in.conf"
    path.write_text(DEFAULT_TEXT)
    path.chmod(0o600)
    done = check(path, tmp_path)
    assert (done.returncode, "2 accepted" in done.stdout) == (0, True), done.stderr


def test_the_file_of_trouter_init_is_good_with_strict(tmp_path: Path) -> None:
    path = tmp_path / "new.conf"
    assert main(["init", str(path)]) == 0
    done = check(path, tmp_path)
    assert done.returncode == 0, done.stderr
