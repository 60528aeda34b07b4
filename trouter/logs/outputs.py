"""Where lines go. `put` writes one or raises; it does not wait for a reader that has stopped reading.

Everything is written past the buffers of Python, so that a line which cannot be written is gone and does not come back
when the disk has room.
"""

from __future__ import annotations

import os
import select
import stat
import sys
import syslog
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Final

from trouter.logs.levels import PRIORITIES

#: How long a pipe that is full may hold the router up, before lines are lost.
PATIENCE_MS: Final = 250
#: What a pipe takes at once without waiting, when it says it can be written to.
_PIPE_OCTETS: Final = select.PIPE_BUF
_FILE_MODE: Final = 0o640


class Output(ABC):
    """One place for lines; `lost` and `why` tell of those that it could not take since the last that it could."""

    #: Lines carry their time.
    timed = True

    def __init__(self, name: str) -> None:
        self.name = name
        self.lost = 0
        self.why = ""
        self._torn = False

    @abstractmethod
    def put(self, number: int, line: str) -> None:
        """Write one line of the level `number`, or raise: OSError, and for what Python itself refuses ValueError."""

    def _write(self, descriptor: int, line: str) -> None:
        """A part of a line that stands there alone is ended first."""
        octets = (line + "\n").encode("utf-8", "backslashreplace")
        if self._torn:
            octets = b"\n" + octets
        at = 0
        waits = not stat.S_ISREG(os.fstat(descriptor).st_mode)
        try:
            while at < len(octets):
                if waits:
                    _wait_for_room(descriptor, 0 if self.lost else PATIENCE_MS)
                at += os.write(descriptor, octets[at : at + _PIPE_OCTETS] if waits else octets[at:])
        finally:
            if at:
                self._torn = at < len(octets)


def _wait_for_room(descriptor: int, patience_ms: int) -> None:
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    if not poll.poll(patience_ms):
        raise BlockingIOError("no process reads it")


class Stream(Output):
    """The process's stdout or stderr."""

    def put(self, number: int, line: str) -> None:
        stream = getattr(sys, self.name)
        if stream is None:
            raise ValueError("closed")
        try:
            descriptor = stream.fileno()
        except OSError:  # something in memory that stands in for it
            stream.write(line + "\n")
            return
        stream.flush()
        self._write(descriptor, line)


class Syslog(Output):
    """The system's log, facility daemon."""

    timed = False

    def put(self, number: int, line: str) -> None:
        for part in line.encode("utf-8", "backslashreplace").decode().splitlines():
            syslog.syslog(PRIORITIES.get(number, syslog.LOG_INFO), part)

    @staticmethod
    def open() -> None:
        """Open the system log under the router's name."""
        syslog.openlog("trouter", syslog.LOG_PID, syslog.LOG_DAEMON)


class File(Output):
    """A file that is appended to."""

    def __init__(self, path: Path) -> None:
        """Open it, and create it if need be; OSError."""
        super().__init__(str(path))
        self.path = path
        self._descriptor = _open(path)

    def put(self, number: int, line: str) -> None:
        if self._descriptor < 0:
            raise ValueError("closed")
        self._write(self._descriptor, line)

    def reopen(self) -> None:
        """Go on in the file that has the name now; OSError, and the former one stays in use."""
        descriptor = _open(self.path)
        self.close()
        self._descriptor = descriptor
        self._torn = False

    def give(self, uid: int, gid: int) -> None:
        """Give the file to ``uid`` and ``gid``, if it is a plain file."""
        if self._descriptor >= 0 and stat.S_ISREG(os.fstat(self._descriptor).st_mode):
            os.fchown(self._descriptor, uid, gid)

    def close(self) -> None:
        """Close it; a second call does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _open(path: Path) -> int:
    """Not waiting for the reader of a pipe: one without a reader is an error."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    return os.open(path, flags, _FILE_MODE)


#: The outputs with a name of their own.
STDERR: Final = Stream("stderr")
SYSLOG: Final = Syslog("syslog")
NAMED: Final[dict[str, Output]] = {"stderr": STDERR, "stdout": Stream("stdout"), "syslog": SYSLOG}
