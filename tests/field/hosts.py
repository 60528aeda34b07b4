"""Hosts with addresses of their own, as network namespaces: no exemption of loopback hides a limit from their tests.

The namespaces have no names, so the kernel removes them, and the lines between them, after their last process; a
process that `Host.run` or `Host.start` starts is killed with the thread that started it. A kill of the tests leaves
nothing behind.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from tests.lines import Namespace

_ADDRESS: Final = "10.203.0.{}"
MAX_HOSTS: Final = 254
_FORWARDING: Final = Path("/proc/sys/net/ipv4/ip_forward")
#: A process ends with the thread that started it.
_TIED: Final = ("setpriv", "--pdeathsig", "KILL", "--")


class Host:
    """A host with an address, which the others reach."""

    def __init__(self, address: str, namespace: Namespace) -> None:
        self.address = address
        self._namespace = namespace

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Run the block on this host: the sockets of this thread, and the processes that it starts."""
        with self._namespace.inside():
            yield

    def start(self, command: Sequence[str], **options: Any) -> subprocess.Popen[str]:
        """Start a command on this host; ``options`` are those of ``subprocess.Popen``."""
        with self.inside():
            return subprocess.Popen([*_TIED, *command], text=True, **options)

    def run(self, command: Sequence[str], timeout_s: float, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run a command on this host to its end, which must be its success; return what it printed."""
        with self.inside():
            done = subprocess.run(
                [*_TIED, *command], check=False, capture_output=True, text=True, timeout=timeout_s, **options
            )
        assert done.returncode == 0, f"{command} ended with {done.returncode}: {done.stderr[-4000:]}"
        return done


@contextmanager
def hosts(count: int) -> Iterator[list[Host]]:
    """Make ``count`` hosts that reach each other: the first has a line to each other one, and passes packets on."""
    assert count <= MAX_HOSTS
    with ExitStack() as stack:
        made: list[Host] = []
        for number in range(count):
            namespace = Namespace()
            stack.callback(namespace.close)
            made.append(Host(_ADDRESS.format(number + 1), namespace))
            if number:
                _join(made[0], made[number], f"line{number}")
            else:
                with made[0].inside():
                    _ip("address", "add", made[0].address, "dev", "lo")
                    _FORWARDING.write_text("1", encoding="ascii")
        yield made


@cache
def why_not() -> str:
    """Return the reason why this machine cannot have such hosts; "" if it can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    for program, package in (("ip", "iproute2"), ("setpriv", "util-linux")):
        if shutil.which(program) is None:
            return f"`{program}` is missing (Debian: {package})"
    try:
        with hosts(2):
            return ""
    except (OSError, subprocess.CalledProcessError) as failure:
        return f"this machine has no network namespaces with lines between them: {failure}"


def needs_hosts() -> pytest.MarkDecorator:
    """Return the mark of tests that take hosts; it skips them with the reason where there can be none."""
    return pytest.mark.skipif(bool(why_not()), reason=why_not())


def _join(first: Host, other: Host, device: str) -> None:
    """Lay a line between two hosts, over which ``other`` reaches all hosts."""
    with other.inside():
        fd = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        with first.inside():
            peer = ("peer", "name", "eth0", "netns", f"/proc/{os.getpid()}/fd/{fd}")
            _ip("link", "add", device, "type", "veth", *peer)
            _ip("address", "add", first.address, "peer", other.address, "dev", device)
            _ip("link", "set", device, "up")
    finally:
        os.close(fd)
    with other.inside():
        _ip("address", "add", other.address, "peer", first.address, "dev", "eth0")
        _ip("link", "set", "eth0", "up")
        _ip("route", "add", "default", "via", first.address)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)
