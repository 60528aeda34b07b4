"""Run clients in a process of their own, beside a measurement."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def beside(module: str, *arguments: object, ends: bool = False) -> Iterator[list[float]]:
    """Run ``python -m module`` during the block; afterwards the list has the number that it printed at its end.

    It has begun when it prints a line. SIGTERM ends it; with ``ends`` it ends by itself, and the block waits for it.
    """
    counted: list[float] = []
    command = [sys.executable, "-m", module, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as clients:
        assert clients.stdout is not None
        clients.stdout.readline()
        try:
            yield counted
        finally:
            if not ends:
                clients.send_signal(signal.SIGTERM)
            counted.append(float(clients.stdout.readline() or 0))
