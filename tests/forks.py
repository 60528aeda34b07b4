"""Routers that are forked from a process which has already imported a router's modules, to start them quickly.

Each router is a process of its own with the standard streams of the test process, as with `python -m trouter`. So is
each command that a walk types (`tests/forked_command.py`), with the streams, the folder and the environment there.
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
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, NamedTuple, Protocol, Self

from trouter.cli import COMMANDS

ROOT = Path(__file__).parents[1]
_MAX_REQUEST_BYTES = 65_536
#: Variables that Python or a module of trouter reads before a forked process could change them.
_EARLY: Final = ("PYTHON", "LD_", "TROUTER_PURE")


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
        request = json.dumps({"command": command}).encode()
        socket.send_fds(_stock().requests, [request], [0, 1, into_errors, into_told])
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


class _Stock(NamedTuple):
    """The process that is forked."""

    #: For routers of this process.
    requests: socket.socket
    #: Where a command of a walk has itself forked.
    commands: str


@cache
def _stock() -> _Stock:
    """Start the process that routers are forked from; that process ends with this one."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    commands = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    commands.bind("")  # the kernel chooses a name, which has no file
    commands.listen()
    given = [theirs.fileno(), commands.fileno()]
    stock = subprocess.Popen([sys.executable, "-m", "tests.forks", *map(str, given)], cwd=ROOT, pass_fds=given)
    theirs.close()
    address: bytes = commands.getsockname()
    commands.close()

    def end() -> None:
        ours.close()
        stock.wait()

    atexit.register(end)
    return _Stock(ours, address.hex())


def told_to_commands(environment: dict[str, str]) -> str:
    """Return what the commands of a walk with this environment must know; they find it in TROUTER_TEST_STOCK."""
    early = {name: value for name, value in _AT_START[0].items() if name.startswith(_EARLY)}
    if path := environment.get("PYTHONPATH"):
        early["PYTHONPATH"] = path  # with more ways to the same modules
    return json.dumps({"address": _stock().commands, "early": early, "prefixes": _EARLY, "names": COMMANDS})


def _keep_stock(requests: socket.socket, commands: socket.socket) -> None:
    """Fork a process for each request. Return in that process, with its command line in sys.argv."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        ready, _, _ = select.select([requests, commands], [], [])
        asker = requests if requests in ready else commands.accept()[0]
        request, descriptors, _, _ = socket.recv_fds(asker, _MAX_REQUEST_BYTES, 4)
        if not request and asker is requests:
            os._exit(0)
        if asker is not requests:
            descriptors.append(asker.detach())
        if not request:  # the command of a walk was ended before it asked
            os.close(descriptors[0])
            continue
        wanted = json.loads(request)
        _import_command(wanted["command"])
        if os.fork() == 0:
            requests.close()
            commands.close()
            break
        for each in descriptors:
            os.close(each)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    *streams, told = descriptors
    forked = os.fork()
    if forked == 0:
        os.close(told)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
    for each in streams:
        os.close(each)
    if forked != 0:
        os.write(told, b"%d\n" % forked)
        status = _status_of(forked, told)
        with suppress(BrokenPipeError):  # it was killed because nobody is there
            os.write(told, b"%d\n" % status)
        os._exit(0)
    _become(wanted)


def _import_command(words: Sequence[str]) -> None:
    """Import the module of a command, once for all processes that are forked later."""
    for name in words[1:2]:
        if name in COMMANDS:
            import_module(f"trouter.cli.{name}")


def _status_of(forked: int, told: int) -> int:
    """Wait for the end of a process, and kill it if nobody is there any more who could be told; return its status."""
    ends = select.poll()
    ends.register(os.pidfd_open(forked), select.POLLIN)
    ends.register(told, 0)  # an error, or that the other end was closed
    if told in dict(ends.poll()):
        os.kill(forked, signal.SIGKILL)
    _, status = os.waitpid(forked, 0)
    return os.waitstatus_to_exitcode(status)


def _become(wanted: dict[str, Any]) -> None:
    """Take the command line, and of the command of a walk its folder, environment and mask of files."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv[:] = wanted["command"]
    if "folder" in wanted:
        os.chdir(wanted["folder"])
        os.umask(wanted["umask"])
        os.environ.clear()
        os.environ.update(wanted["environment"])
        sys.path[0] = wanted["folder"]  # as `python -m` has it
        # Python's own streams hold what they found out about the files that were there before.
        sys.stdin = os.fdopen(0, errors=sys.stdin.errors, closefd=False)
        sys.stdout = os.fdopen(1, "w", errors=sys.stdout.errors, closefd=False)
        sys.stderr = os.fdopen(2, "w", 1, errors=sys.stderr.errors, closefd=False)


_AT_START = _surroundings()

if __name__ == "__main__":
    import trouter.app.process
    import trouter.app.site
    import trouter.cli.run

    for each in entry_points(group="trouter.plugins"):
        if each.module.startswith("trouter_plugins."):
            each.load()
    control, listening = (socket.socket(fileno=int(number)) for number in sys.argv[1:])
    with control, listening:
        _keep_stock(control, listening)
    sys.exit(trouter.cli.main())
