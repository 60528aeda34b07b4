"""`qdrouterd`: the router with the options of Qpid Dispatch's daemon, in the foreground or in the background.

With -d the calling process waits until every listener is open; stderr is the caller's until then, and shows why a start
fails.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, NoReturn

import trouter
from trouter.app.privileges import Account, PrivilegeError, account_of, switch_user
from trouter.cli import run

#: Folders below which the default configuration is looked for, in this order; Python is installed in the first.
PREFIXES: Final = (Path(sys.prefix), Path("/usr/local"), Path("/"))
CONFIGURATION: Final = Path("etc/qpid-dispatch/qdrouterd.conf")
#: Lets other users read files that the daemon creates.
UMASK: Final = 0o022
PID_FILE_MODE: Final = 0o644

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
        return run.route(configuration, ready, pid_file.remove if pid_file else None)
    except (DaemonError, PrivilegeError) as error:
        print(f"qdrouterd: {error}", file=sys.stderr)
        return 1
    finally:
        if pid_file is not None:
            pid_file.remove()


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
    """The file with the id of this process, removed at the end."""

    def __init__(self, path: Path, owner: Account | None) -> None:
        """Write the file; DaemonError."""
        self._path = path
        self._pid = os.getpid()
        try:
            # Not through a symbolic link: the user who made it would choose which file is overwritten.
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
        """Remove the file, or empty it if the folder forbids that; leave one that another process has written since."""
        try:
            if self._path.read_text(encoding="ascii", errors="replace").strip() != str(self._pid):
                return
            try:
                self._path.unlink()
            except PermissionError:
                os.truncate(self._path, 0)
        except OSError:
            return
