"""Small volumes, which can be full."""

from __future__ import annotations

import subprocess
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass
class Disk:
    """A small volume of its own, which can be full."""

    folder: Path

    def fill(self) -> None:
        """Leave no room."""
        with suppress(OSError), (self.folder / "rest").open("wb", buffering=0) as rest:
            while True:
                rest.write(bytes(4096))

    def make_room(self) -> None:
        """Take away what filled it."""
        (self.folder / "rest").unlink()


def mounted(place: Path, stack: ExitStack, size: str) -> Disk:
    """Mount one until the stack is left; skip where that cannot be."""
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(place)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"a small volume cannot be mounted here: {done.stderr.strip()}")
    stack.callback(lambda: subprocess.run(["umount", "-l", str(place)], check=True))
    return Disk(place)
