"""Processes under test that print a line of JSON for each step."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any, Self

#: Seconds that only a hang takes.
_PATIENCE_S = 600.0


class MeasureError(Exception):
    """A measurement did not complete."""


class Process:
    """Run `python -m MODULE ARGUMENTS` for the length of the block."""

    def __init__(self, module: str, *arguments: object) -> None:
        self.module = module
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def line(self) -> dict[str, Any]:
        """Return the next line; raise MeasureError if there is none."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise MeasureError(f"{self.module} ended with {self._process.wait(_PATIENCE_S)}")
        said: dict[str, Any] = json.loads(line)
        return said

    def go(self) -> None:
        """Send a line to the process, so that it goes on or ends."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()
        try:
            self._process.wait(5.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
