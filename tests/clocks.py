"""Clocks of one process that a test moves; those of the machine stay as they are."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.routers import DEADLINE_S

_SOURCE: Final = Path(__file__).with_name("shifted_clock.c")


class Clock:
    """Move the clocks of a process that runs with ``environment``."""

    def __init__(self, folder: Path) -> None:
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            pytest.skip("no C compiler: the clocks of a process cannot be moved")
        library, self._file = folder / "shifted_clock.so", folder / "ahead"
        subprocess.run([compiler, "-shared", "-fPIC", "-o", library, _SOURCE, "-ldl"], check=True, timeout=DEADLINE_S)
        self._file.write_bytes(bytes(16))
        self.environment = {"LD_PRELOAD": str(library), "SHIFTED_CLOCK": str(self._file)}

    def set_ahead(self, of_day_s: int, monotonic_s: int) -> None:
        with self._file.open("r+b") as file:
            file.write(struct.pack("=qq", of_day_s, monotonic_s))
