"""Outputs of the log. `put` writes one line or raises; it does not wait for a reader that has stopped.

Nothing goes through Python's buffers, so that a line that could not be written does not appear later.
"""

from __future__ import annotations

import errno
import os
import select
import stat
import sys
import syslog
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Final

from trouter.config.keepers import Keepers, is_device, keepers_of_process
from trouter.logs.levels import PRIORITIES

#: How long a full pipe may delay the router before lines are lost.
PATIENCE_MS: Final = 250
#: Bytes that a writable pipe takes at once without waiting.
_PIPE_OCTETS: Final = select.PIPE_BUF


class Output(ABC):
    """One output; `lost` counts the lines that it could not take since its last success, `why` is the last reason."""

    #: Lines carry their time.
    timed = True

    def __init__(self, name: str) -> None:
        self.name = name
        self.lost = 0
        self.why = ""
        self._torn = False

    @abstractmethod
    def put(self, number: int, line: str) -> None:
        """Write one line of level `number`; OSError, ValueError."""

    def _write(self, descriptor: int, line: str) -> None:
        """Write a line, after a line end if the last line was cut; OSError, and the line may be cut."""
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


class StandardStream(Output):
    """The process's stdout or stderr."""

    def put(self, number: int, line: str) -> None:
        stream = getattr(sys, self.name)
        if stream is None:
            raise ValueError("closed")
        try:
            descriptor = stream.fileno()
        except OSError:  # a replacement in memory
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

    def __init__(self, path: Path, mode: int, keepers: Keepers | None = None) -> None:
        """Open the file, and create it with ``mode`` if it does not exist; OSError.

        With ``keepers`` it may be no symbolic link, and a file that is there must be one of theirs.
        """
        super().__init__(str(path))
        self.path = path
        self._mode = mode
        self._keepers = keepers
        self._descriptor = _open(path, mode, keepers)

    def put(self, number: int, line: str) -> None:
        if self._descriptor < 0:
            raise ValueError("closed")
        self._write(self._descriptor, line)

    def reopen(self) -> None:
        """Open the file by name again; OSError, and the former one stays in use."""
        descriptor = _open(self.path, self._mode, self._keepers)
        self.close()
        self._descriptor = descriptor
        self._torn = False

    def give_to_user(self, uid: int, gid: int) -> None:
        """Give the file to ``uid`` and ``gid``, if it is a regular file."""
        if self._keepers is not None:
            self._keepers = keepers_of_process(uid)
        if self._descriptor >= 0 and stat.S_ISREG(os.fstat(self._descriptor).st_mode):
            os.fchown(self._descriptor, uid, gid)

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _open(path: Path, mode: int, keepers: Keepers | None) -> int:
    """Open without waiting for the reader of a pipe; OSError, also for a pipe without a reader.

    With ``keepers`` a symbolic link is refused, except to the streams and devices in ``/dev``, and so is a stranger's
    file: it may be a link to a file that only the router may write to.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    if keepers is None or is_device(path):
        return os.open(path, flags, mode)
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW, mode)
    except OSError as failure:
        if failure.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "it is a symbolic link: name the file that it leads to") from None
        raise
    if danger := keepers.danger_of(os.fstat(descriptor)):
        os.close(descriptor)
        raise OSError(errno.EPERM, danger)
    return descriptor


#: Outputs with a fixed name.
STDERR: Final = StandardStream("stderr")
SYSLOG: Final = Syslog("syslog")
NAMED: Final[dict[str, Output]] = {"stderr": STDERR, "stdout": StandardStream("stdout"), "syslog": SYSLOG}
