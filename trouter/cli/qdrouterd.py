"""`qdrouterd`: the router with the options of Qpid Dispatch's daemon, in the foreground or in the background.

With -d the calling process waits until every listener is open; stderr is the caller's until then, and shows why a start
fails.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, NoReturn, TextIO

import trouter
from trouter.app.privileges import Account, PrivilegeError, account_of, switch_user
from trouter.cli import run

#: Folders below which the default configuration is looked for, in this order; Python is installed in the first.
PREFIXES: Final = (Path(sys.prefix), Path("/usr/local"), Path("/"))
CONFIGURATION: Final = Path("etc/qpid-dispatch/qdrouterd.conf")
#: Lets other users read files that the daemon creates.
UMASK: Final = 0o022
PID_FILE_MODE: Final = 0o644
#: What is read of a pid file; more is no number of a process.
MOST_DIGITS: Final = 20

_STARTED: Final = b"1"


class DaemonError(Exception):
    """The daemon cannot do what its options say; the text gives the reason."""


class PrintRouterVersion(argparse.Action):
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
    parser.add_argument("-v", "--version", action=PrintRouterVersion, nargs=0, help="print the version")
    parser.add_argument("stray", nargs="*", default=(), help=argparse.SUPPRESS)
    parser.set_defaults(run=start)


def default_configuration() -> Path:
    """Return the first configuration below `PREFIXES` that exists, or the first path if none does."""
    paths = [prefix / CONFIGURATION for prefix in PREFIXES]
    return next((path for path in paths if path.is_file()), paths[0])


def start(arguments: argparse.Namespace) -> int:
    """Run the router until a signal stops it; return the exit status."""
    if arguments.stray:
        parser: argparse.ArgumentParser = arguments.command_parser
        parser.error(f"Unexpected arguments: {' '.join(arguments.stray)}")
    # Relative paths start at the folder of the call, which a daemon leaves.
    configuration = Path(arguments.config or default_configuration()).absolute()
    pid_path = Path(arguments.pidfile).absolute() if arguments.pidfile else None
    if arguments.test_hooks:
        print("qdrouterd: there are no test hooks", file=sys.stderr)
    if not arguments.daemon:
        return _route(configuration, pid_path, arguments.user, None)
    report = _become_daemon()
    return _route(configuration, pid_path, arguments.user, lambda: _let_go(report))


def _route(configuration: Path, pid_path: Path | None, user: str | None, ready: Callable[[], None] | None) -> int:
    """Write the pid file, change the user and run the router in this process; return the exit status."""
    pid_file: PidFile | None = None
    try:
        account = account_of(user) if user else None
        if pid_path is not None:
            pid_file = PidFile(pid_path, account)
        if account is not None:
            switch_user(account)
        if pid_file is None:
            return run.route(configuration, ready)
        return run.route(configuration, partial(_keep_pid, pid_file, ready), pid_file.remove)
    except (DaemonError, PrivilegeError) as error:
        print(f"qdrouterd: {error}", file=sys.stderr)
        return 1
    finally:
        if pid_file is not None:
            pid_file.remove()


def _keep_pid(pid_file: PidFile, ready: Callable[[], None] | None) -> None:
    """Note that the router stands, so that the file is its own."""
    pid_file.keep()
    if ready is not None:
        ready()


# --- the background


def _become_daemon() -> int:
    """Go on as a process of a new session without a terminal; return a descriptor for the report of the start.

    The calling process stays here, waits for that report, and exits: with 0 if it comes, with 1 if it does not.
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
    """Report the start to the calling process, and leave its terminal."""
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
    """The file with the id of this process, removed at the end.

    Another router may run whose id the file had: if this one does not come to stand, the file is given back to it.
    """

    def __init__(self, path: Path, owner: Account | None) -> None:
        """Write the file; DaemonError."""
        self._path = path
        self._pid = str(os.getpid())
        try:
            with _opened(path, os.O_RDWR | os.O_CREAT) as file:
                self._former = file.read(MOST_DIGITS).strip()
                os.fchmod(file.fileno(), PID_FILE_MODE)
                if owner is not None:
                    os.fchown(file.fileno(), owner.uid, owner.gid)
                _replace(file, self._pid)
        except OSError as failure:
            raise DaemonError(f"the pid file {path} cannot be written: {failure.strerror}") from failure

    def keep(self) -> None:
        """Keep the file until this process ends: the router stands."""
        self._former = ""

    def remove(self) -> None:
        """Give the file back to a process that runs, or remove it; leave one that another process has written since.

        Where the folder forbids to remove the file, it is emptied.
        """
        try:
            with _opened(self._path, os.O_RDWR) as file:
                if file.read(MOST_DIGITS).strip() != self._pid:
                    return
                _replace(file, self._former if _is_running(self._former) else "")
                if file.tell() == 0:
                    self._path.unlink()
        except OSError:
            return


def _opened(path: Path, flags: int) -> TextIO:
    """Open a pid file, not through a symbolic link: its maker would choose which file is overwritten; OSError."""
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, PID_FILE_MODE)
    return os.fdopen(descriptor, "r+", encoding="ascii", errors="replace")


def _replace(file: TextIO, process: str) -> None:
    """Leave only the id of ``process`` in a pid file, or nothing if it is empty."""
    file.seek(0)
    file.truncate()
    if process:
        file.write(f"{process}\n")


def _is_running(process: str) -> bool:
    return process.isdecimal() and Path("/proc", process).exists()
