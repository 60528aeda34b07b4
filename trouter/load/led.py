"""A fleet in a child process, led through its standard input and output."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from types import TracebackType
from typing import Any, Final, Self

from .plan import ERROR, Load, LoadError
from .report import LoadReport

_READY_S: Final = 120.0
_REPORT_S: Final = 120.0
_END_S: Final = 10.0


class Led:
    """A fleet in a child process: ``ready`` waits for its connections, ``go`` starts a phase, ``report`` waits."""

    def __init__(self, role: str, load: Load) -> None:
        command = [sys.executable, "-m", "trouter.load", role]
        self.process = subprocess.Popen(  # noqa: S603  # ourselves
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        self.role = role
        self._received = b""
        self._write(f"{load.to_json()}\n".encode())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.process.kill()
        self.end_process()

    def ready(self) -> dict[str, Any]:
        """Return what it prints once it is ready; LoadError if that takes too long."""
        return self._answer(_READY_S)

    def send_go(self) -> None:
        """Send the word for the next phase; a later read reports a process that has ended."""
        self._write(b"\n")

    def report(self, timeout_s: float = _REPORT_S) -> LoadReport:
        """Return its report; LoadError if none comes within ``timeout_s``."""
        return LoadReport.from_map(self._answer(timeout_s))

    def end_process(self) -> None:
        """Let the process close its connections and end, or kill it after a while."""
        try:
            self.process.communicate(timeout=_END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()

    def kill(self) -> None:
        """Kill the process; leaving the block waits for its end."""
        self.process.kill()

    def _write(self, data: bytes) -> None:
        if self.process.stdin is not None:
            try:
                self.process.stdin.write(data)
            except BrokenPipeError:
                pass

    def _answer(self, timeout_s: float) -> dict[str, Any]:
        """Return the next line that it prints; LoadError if it fails, or takes too long."""
        if self.process.stdout is None:
            raise LoadError(f"the {self.role} process has no output")
        descriptor = self.process.stdout.fileno()
        deadline_s = time.monotonic() + timeout_s
        while b"\n" not in self._received:
            if not select.select([descriptor], [], [], max(0.0, deadline_s - time.monotonic()))[0]:
                raise LoadError(f"the {self.role} process printed nothing for {timeout_s:g} s")
            piece = os.read(descriptor, 65536)
            if not piece:
                raise LoadError(f"the {self.role} process ended early")
            self._received += piece
        line, _, self._received = self._received.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        if ERROR in answer:
            raise LoadError(answer[ERROR])
        return answer
