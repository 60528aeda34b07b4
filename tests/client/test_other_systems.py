"""The client and its tools import nothing that only Linux has, so that they run on macOS and Windows."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence

import pytest

from tests.routers import DEADLINE_S, ROOT

#: Modules and names of the standard library that Windows lacks, and some that macOS lacks.
MODULES = ("fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty")
NAMES = {
    "os": (
        "O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "chown", "fchmod", "fchown", "fdatasync", "fork",
        "geteuid",
        "getgid", "getppid", "getuid", "killpg", "mkfifo", "pipe2", "sched_getaffinity", "setsid", "splice", "sysconf",
        "statvfs",
    ),
    "select": ("epoll", "poll"),
    "signal": ("SIGALRM", "SIGHUP", "SIGKILL", "SIGQUIT", "SIGUSR1", "SIGUSR2", "pause", "pthread_sigmask"),
    "socket": ("AF_UNIX", "SO_REUSEPORT", "socketpair"),
    "time": ("CLOCK_MONOTONIC_RAW", "clock_gettime"),
}  # fmt: skip
#: Commands for people elsewhere; its module is imported.
COMMANDS = ("stat", "manage", "send", "receive", "request", "reply", "top", "drain", "health", "contexts", "completion")
#: What other systems have in another form is imported before: trio and the parts of the standard library that it takes.
BLOCKED = f"""
import argparse, asyncio, getpass, multiprocessing, os, pathlib, select, shutil, signal, socket, ssl, subprocess, sys
import tempfile, threading, time, trio, unittest.mock, webbrowser
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name in {MODULES!r}:
            raise ImportError(f"{{name}} is not on this system")
for name in {MODULES!r}:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Blocked())
for module, names in BLOCKED_NAMES.items():
    for name in names:
        if hasattr(sys.modules[module], name):
            delattr(sys.modules[module], name)
"""


def without_linux(
    code: str, *words: str, names: Mapping[str, Sequence[str]] = NAMES
) -> subprocess.CompletedProcess[str]:
    """Run code in a Python without what only Linux has, and without the compiled modules, as on other systems."""
    return subprocess.run(
        [sys.executable, "-c", f"BLOCKED_NAMES = {names!r}\n{BLOCKED}\n{code}", *words],
        cwd=ROOT,
        env={"PATH": "", "TROUTER_PURE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_S,
    )


def test_the_client_can_be_imported() -> None:
    done = without_linux("import trouter.client, trouter.client.servers, trouter.client.cover")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_tools_of_the_client_can_be_imported_and_print_their_help() -> None:
    code = f"""
import importlib
from trouter.cli import parser
for name in {COMMANDS}:
    importlib.import_module(f"trouter.cli.{{name}}")
    (commands,) = (action for action in parser(name)._actions if action.choices)
    print(commands.choices[name].format_usage())
"""
    done = without_linux(code)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert [line.split()[2] for line in done.stdout.splitlines() if line.startswith("usage: ")] == [*COMMANDS]


@pytest.mark.parametrize("words", [("stat",), ("send", "a", "b")])
def test_a_tool_without_a_router_says_so(words: tuple[str, ...]) -> None:
    # trio has a part for each system; what it needs of this one has to stay.
    code = "from trouter.cli import main; raise SystemExit(main())"
    done = without_linux(code, *words, "-b", "127.0.0.1:1", names={"os": NAMES["os"]})
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith("cannot connect to amqp://127.0.0.1:1: Connection refused")


def test_what_is_blocked_is_blocked() -> None:
    assert "fcntl is not on this system" in without_linux("import fcntl").stderr
    assert "has no attribute 'epoll'" in without_linux("select.epoll").stderr
