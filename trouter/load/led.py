"""A fleet in a process of its own, led from this one through its standard input and output."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from types import TracebackType
from typing import Any, Self

from .plan import Load, LoadError
from .report import Report


class Led:
    """``ready`` waits until it is connected, ``go`` lets it take the next step, ``report`` waits for what it did."""

    def __init__(self, role: str, load: Load) -> None:
        command = [sys.executable, "-m", "trouter.load", role, json.dumps(asdict(load))]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603
        self.role = role

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.process.kill()
        self.process.communicate()

    def ready(self) -> dict[str, Any]:
        """What it says once it is ready; LoadError when it never is."""
        answer: dict[str, Any] = json.loads(self._line())
        return answer

    def go(self) -> None:
        """One word; a process that is gone is found out by the next reading."""
        pipe = self.process.stdin
        if pipe is not None:
            try:
                pipe.write("\n")
                pipe.flush()
            except BrokenPipeError:
                pass

    def report(self) -> Report:
        """What it did; LoadError."""
        return Report.from_json(self._line())

    def _line(self) -> str:
        pipe = self.process.stdout
        line = pipe.readline() if pipe is not None else ""
        if not line:
            raise LoadError(f"the {self.role} process ended early")
        return line
