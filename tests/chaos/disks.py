"""Mount small volumes that a scenario can fill."""

from __future__ import annotations

import subprocess
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass
class Disk:
    """A small mounted volume that a scenario can fill."""

    folder: Path

    def fill(self) -> None:
        """Write a file that takes all free space."""
        with suppress(OSError), (self.folder / "rest").open("wb", buffering=0) as rest:
            while True:
                rest.write(bytes(4096))

    def make_room(self) -> None:
        """Delete the file that fills the volume."""
        (self.folder / "rest").unlink()


def mounted(place: Path, stack: ExitStack, size: str) -> Disk:
    """Mount a volume of this size until the stack is closed; skip the test if mount is not permitted."""
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(place)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"a small volume cannot be mounted here: {done.stderr.strip()}")
    stack.callback(lambda: subprocess.run(["umount", "-l", str(place)], check=True))
    return Disk(place)
