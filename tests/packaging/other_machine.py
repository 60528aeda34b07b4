"""Commands on a copy of this machine with more Debian packages, by packaging/other-machine.sh."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.routers import ROOT

#: Only a hang takes so long.
HANG_S: Final = 400
#: The exit status of the script if the packages cannot be had.
NO_PACKAGES: Final = 3

needs_other_machine = pytest.mark.skipif(
    os.geteuid() != 0
    or any(shutil.which(each) is None for each in ("unshare", "chroot", "apt-get"))
    or not Path("/etc/debian_version").exists(),
    reason="a copy of this machine needs root, on Debian",
)


def typed_with(packages: str, commands: str) -> str:
    """Type ``commands`` in a shell on a copy of this machine that has these packages; return what they print.

    The test is skipped if the packages cannot be had, and fails if the shell does.
    """
    command: list[str | Path] = [ROOT / "packaging" / "other-machine.sh", packages, "bash", "-eu", "-c", commands]
    typed = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG_S)
    if typed.returncode == NO_PACKAGES:
        pytest.skip(f"Debian's packages {packages} cannot be had: {typed.stderr[-300:]}")
    assert typed.returncode == 0, typed.stdout + typed.stderr
    return typed.stdout
