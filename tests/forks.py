"""Routers that are forked from a process which has already imported a router's modules, to start them quickly.

Each router is a process of its own with the standard streams of the test process, as with `python -m trouter`.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import TracebackType
from typing import IO, Protocol, Self

ROOT = Path(__file__).parents[1]
_MAX_REQUEST_BYTES = 65_536


class Process(Protocol):
    """The methods that tests need of a router's process, started by subprocess or forked here."""

    pid: int
    returncode: int | None
    stderr: IO[str] | None

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, sig: int, /) -> None: ...
    def kill(self) -> None: ...


class Forked:
    """A trouter command started by a fork; stderr is a pipe. It has the methods of Popen that Process names."""

    def __init__(self, command: Sequence[str]) -> None:
        errors, into_errors = os.pipe()
        told, into_told = os.pipe()
        socket.send_fds(_stock(), [json.dumps(command).encode()], [0, 1, into_errors, into_told])
        os.close(into_errors)
        os.close(into_told)
        self.stderr: IO[str] | None = os.fdopen(errors, encoding="utf-8")
        #: Two lines: the process id, and the exit status after the end.
        self._told = os.fdopen(told, encoding="ascii")
        self._reading = threading.Lock()
        self.returncode: int | None = None
        self.pid = int(self._told.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.stderr is not None:
            self.stderr.close()
        self.wait()
        self._told.close()

    def poll(self) -> int | None:
        return self._ended_within(0)

    def wait(self, timeout: float | None = None) -> int:
        status = self._ended_within(timeout)
        if status is None:
            raise subprocess.TimeoutExpired("trouter", timeout or 0.0)
        return status

    def _ended_within(self, seconds: float | None) -> int | None:
        if self.returncode is None and select.select([self._told], [], [], seconds)[0]:
            with self._reading:
                if self.returncode is None:  # another thread of the test may have read it meanwhile
                    self.returncode = int(self._told.readline())
        return self.returncode

    def send_signal(self, sig: int, /) -> None:
        if self.poll() is None:
            os.kill(self.pid, sig)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def serves_here() -> bool:
    """Return whether a forked router would start like one of subprocess: same environment, same network namespace."""
    return _surroundings() == _AT_START


def _surroundings() -> tuple[dict[str, str], str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    return environment, str(Path("/proc/thread-self/ns/net").readlink())


@cache
def _stock() -> socket.socket:
    """Return the socket to the process that routers are forked from; that process ends with this one."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, "-m", "tests.forks", str(theirs.fileno())]
    stock = subprocess.Popen(command, cwd=ROOT, pass_fds=[theirs.fileno()])
    theirs.close()

    def end() -> None:
        ours.close()
        stock.wait()

    atexit.register(end)
    return ours


def _keep_stock(requests: socket.socket) -> None:
    """Fork a router for each request. Return in the router, with its command line in sys.argv."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        request, descriptors, _, _ = socket.recv_fds(requests, _MAX_REQUEST_BYTES, 4)
        if not request:
            os._exit(0)
        if os.fork() == 0:
            requests.close()
            break
        for each in descriptors:
            os.close(each)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    *streams, told = descriptors
    router = os.fork()
    if router == 0:
        os.close(told)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
    for each in streams:
        os.close(each)
    if router != 0:
        os.write(told, b"%d\n" % router)
        _, status = os.waitpid(router, 0)
        os.write(told, b"%d\n" % os.waitstatus_to_exitcode(status))
        os._exit(0)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv[:] = json.loads(request)


_AT_START = _surroundings()

if __name__ == "__main__":
    import trouter.app.process
    import trouter.app.site
    import trouter.cli.run

    for each in entry_points(group="trouter.plugins"):
        if each.module.startswith("trouter_plugins."):
            each.load()
    with socket.socket(fileno=int(sys.argv[1])) as control:
        _keep_stock(control)
    sys.exit(trouter.cli.main())
