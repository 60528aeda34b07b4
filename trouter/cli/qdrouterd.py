"""The router under its older name: that daemon's options, in the foreground or as a daemon of its own.

With -d the caller waits until every listener stands, and hears of whatever prevents it: what is written to stderr until
then is the caller's.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, NoReturn

import trouter
from trouter.app.privileges import Account, PrivilegeError, account_of, become
from trouter.cli import run

#: Below the prefix that Python is installed at, else below these.
PREFIXES: Final = (Path(sys.prefix), Path("/usr/local"), Path("/"))
CONFIGURATION: Final = Path("etc/qpid-dispatch/qdrouterd.conf")
#: For what the daemon creates: others may read it.
UMASK: Final = 0o022
PID_FILE_MODE: Final = 0o644

_STARTED: Final = b"1"


class DaemonError(Exception):
    """What the options ask for cannot be done."""


class Version(argparse.Action):
    """Print the version on stdout."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        print(trouter.__version__)
        parser.exit(0)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the daemon's options."""
    parser.add_argument("-c", "--config", metavar="PATH", help=f"configuration file; default {default_configuration()}")
    parser.add_argument("-I", "--include", metavar="PATH", help="accepted: there are no modules to look for")
    parser.add_argument("-d", "--daemon", action="store_true", help="go to the background once every listener stands")
    parser.add_argument("-P", "--pidfile", metavar="PATH", help="a file for the process id, removed at the end")
    parser.add_argument("-U", "--user", metavar="NAME", help="run as this user, with the groups of that user")
    parser.add_argument("-T", "--test-hooks", action="store_true", help="accepted with a warning: there are none")
    parser.add_argument("-v", "--version", action=Version, nargs=0, help="print the version")
    parser.add_argument("stray", nargs="*", default=(), help=argparse.SUPPRESS)
    parser.set_defaults(run=start)


def default_configuration() -> Path:
    """Return the first that exists, else the first of all."""
    paths = [prefix / CONFIGURATION for prefix in PREFIXES]
    return next((path for path in paths if path.is_file()), paths[0])


def start(arguments: argparse.Namespace) -> int:
    """Route until told to stop; the exit status."""
    if arguments.stray:
        parser: argparse.ArgumentParser = arguments.command_parser
        parser.error(f"Unexpected arguments: {' '.join(arguments.stray)}")
    # Names are of the directory that we are called in, also when we leave it.
    configuration = Path(arguments.config or default_configuration()).absolute()
    pid_path = Path(arguments.pidfile).absolute() if arguments.pidfile else None
    if arguments.test_hooks:
        print("qdrouterd: there are no test hooks", file=sys.stderr)
    if not arguments.daemon:
        return _route(configuration, pid_path, arguments.user, _nothing)
    report = _become_daemon()
    return _route(configuration, pid_path, arguments.user, lambda: _let_go(report))


def _route(configuration: Path, pid_path: Path | None, user: str | None, ready: Callable[[], None]) -> int:
    """The router in this process, from its pid file to its end."""
    pid_file: PidFile | None = None
    try:
        account = account_of(user) if user else None
        if pid_path is not None:
            pid_file = PidFile(pid_path, account)
        if account is not None:
            become(account)
        return run.route(configuration, ready, pid_file.remove if pid_file else _nothing)
    except (DaemonError, PrivilegeError) as error:
        print(f"qdrouterd: {error}", file=sys.stderr)
        return 1
    finally:
        if pid_file is not None:
            pid_file.remove()


# --- the background


def _become_daemon() -> int:
    """Be a process of a new session without a terminal; a descriptor to report on.

    The caller's process waits here for that report and ends, with status 0 if there is one.
    """
    reads, reports = os.pipe()
    child = os.fork()
    if child:
        os.close(reports)
        os.waitpid(child, 0)
        os._exit(0 if os.read(reads, 1) == _STARTED else 1)
    os.close(reads)
    os.setsid()
    if os.fork():
        os._exit(0)
    # The calling process may wait for the end of the descriptors that this one inherited.
    os.closerange(3, reports)
    os.closerange(reports + 1, os.sysconf("SC_OPEN_MAX"))
    os.umask(UMASK)
    os.chdir("/")
    _to_null(0)
    return reports


def _let_go(report: int) -> None:
    """The router stands: tell who waits, and leave their terminal."""
    _to_null(1, 2)
    try:
        os.write(report, _STARTED)
    except BrokenPipeError:
        pass  # the calling process no longer waits
    os.close(report)


def _to_null(*descriptors: int) -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in descriptors:
        os.dup2(null, descriptor)
    if null > 2:
        os.close(null)


# --- the pid file and the user


class PidFile:
    """A file with our process id, removed at the end."""

    def __init__(self, path: Path, owner: Account | None) -> None:
        """Write it; DaemonError."""
        self._path = path
        self._pid = os.getpid()
        try:
            # Never through a symbolic link: who may make one there must not choose what is overwritten.
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(path, flags, PID_FILE_MODE)
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                os.fchmod(descriptor, PID_FILE_MODE)
                if owner is not None:
                    os.fchown(descriptor, owner.uid, owner.gid)
                file.write(f"{self._pid}\n")
        except OSError as failure:
            raise DaemonError(f"the pid file {path} cannot be written: {failure.strerror}") from failure

    def remove(self) -> None:
        """Remove it, or where the folder does not let us, empty it; not if another process has written it since."""
        try:
            if self._path.read_text(encoding="ascii", errors="replace").strip() != str(self._pid):
                return
            try:
                self._path.unlink()
            except PermissionError:
                os.truncate(self._path, 0)
        except OSError:
            return


def _nothing() -> None:
    """Do nothing: no process waits for a report."""
