"""One container of a pod: a process with its own network, mounts and process numbers, and the rights that the pod says.

The file system is that of this machine, mounted read-only, with the volumes of the pod over it.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

import trio

from tests.lines import Namespace
from tests.routers import ROOT
from trouter import _twin

#: What stands in for the image: the checkout, its environment, and the Python of that environment.
_IMAGE: Final = (ROOT, Path(sys.prefix), Path(sys.base_prefix))
_SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc/ssl", "/etc/ld.so.cache")
_DEVICES: Final = ("null", "zero", "random", "urandom")
_PATH: Final = f"{Path(sys.prefix) / 'bin'}:/usr/bin:/bin"
#: What the image has as its ENTRYPOINT.
ENTRYPOINT: Final = ("trouter",)


class Mount(NamedTuple):
    source: Path
    target: str
    read_only: bool


@dataclass
class Identity:
    """Who the process is, and what it may do."""

    user: int
    group: int
    groups: Sequence[int] = ()
    read_only_root: bool = False
    drops_all: bool = False


class Container:
    """A started container; its output goes to the file ``log``."""

    def __init__(
        self,
        network: Namespace,
        command: Sequence[str],
        environment: Mapping[str, str],
        mounts: Sequence[Mount],
        identity: Identity,
        folder: Path,
        hostname: str,
    ) -> None:
        self.log = folder / "log"
        self._network = network
        self._become = " ".join(map(shlex.quote, _become(identity)))
        self._environment = {
            "PATH": _PATH,
            "HOME": "/tmp",
            "HOSTNAME": hostname,
            "KUBERNETES_SERVICE_HOST": "10.96.0.1",  # as the kubelet sets it for every container
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONUNBUFFERED": "1",
            **({"TROUTER_PURE": "1"} if _twin.PURE else {}),
            **environment,
        }
        root = folder / "root"
        root.mkdir(parents=True, exist_ok=True)
        script = "\n".join(_script(root, mounts, identity, hostname))
        words = ["unshare", "--mount", "--pid", "--uts", "--ipc", "--fork", "--kill-child", "sh", "-euc", script, "sh"]
        words += [*_become(identity), *self._assignments(), *command]
        with self.log.open("ab") as log, network.inside():
            self._process = _begin(words, log)
        self._fd = os.pidfd_open(self._process.pid)

    def _assignments(self) -> list[str]:
        return ["env", "--ignore-environment", *(f"{name}={value}" for name, value in self._environment.items())]

    async def wait(self) -> int:
        """Wait for the end; return the exit status."""
        await trio.lowlevel.wait_readable(self._fd)
        return self._process.wait()

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def first_process(self) -> int | None:
        """Return the number of the container's process 1 on this machine, None before it is there."""
        try:
            children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text(encoding="ascii")
        except FileNotFoundError:
            return None
        return int(children.split()[0]) if children.split() else None

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the container's process 1, if it still runs."""
        first = self.first_process()
        if first is not None:
            os.kill(first, number)

    async def execute(self, command: Sequence[str]) -> int:
        """Run a command in the container, as a probe or hook does; return its exit status."""
        first = self.first_process()
        if first is None:
            return 1
        words = ["nsenter", f"--target={first}", "--mount", "--net", "--pid", "--uts", "--ipc", "--root", "--wd"]
        words += [*shlex.split(self._become), *self._assignments(), *command]
        with self.log.open("ab") as log:
            process = _begin(words, log)
        fd = os.pidfd_open(process.pid)
        try:
            await trio.lowlevel.wait_readable(fd)
            return process.wait()
        finally:
            os.close(fd)
            if process.poll() is None:
                process.kill()
                process.wait()

    def close(self) -> None:
        """Kill what still runs.

        Process 1 takes all others of the container along. It outlives `unshare --kill-child`: the kernel forgets that
        wish when a process changes its user and its rights, as `setpriv` does.
        """
        if self._process.poll() is None:
            self.signal(signal.SIGKILL)
            self._process.kill()
            self._process.wait()
        os.close(self._fd)

    def text(self) -> str:
        """Return the output so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")


def _begin(words: Sequence[str], log: BinaryIO) -> subprocess.Popen[bytes]:
    """Start a process in the namespaces that this thread is in; trio would start it from another thread."""
    return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def _become(identity: Identity) -> list[str]:
    words = ["setpriv", f"--reuid={identity.user}", f"--regid={identity.group}", "--no-new-privs"]
    groups = ",".join(map(str, identity.groups))
    words.append(f"--groups={groups}" if groups else "--clear-groups")
    return words + (["--bounding-set=-all", "--inh-caps=-all"] if identity.drops_all else [])


def _script(root: Path, mounts: Sequence[Mount], identity: Identity, hostname: str) -> list[str]:
    """Return the lines that make the file system and change into it."""
    quoted = shlex.quote(str(root))
    lines = [
        "mount --make-rprivate /",
        f"hostname {shlex.quote(hostname)}",
        f"mount -t tmpfs -o mode=0755 none {quoted}",
        f"cd {quoted}",
        "mkdir -p proc dev etc tmp root run var",
        "chmod 1777 tmp",
        "echo 'hosts: files' >etc/nsswitch.conf",
        "echo 'multi on' >etc/host.conf",
    ]
    for name in _DEVICES:
        lines += [f"touch dev/{name}", f"mount --bind /dev/{name} dev/{name}"]
    for path in [*map(Path, _SYSTEM), *_IMAGE]:
        if path.is_symlink():
            lines.append(f"mkdir -p .{path.parent} && ln -sfn {shlex.quote(str(path.readlink()))} .{path}")
        elif path.exists():
            lines += _bound(Mount(path, str(path), read_only=True))
    for mount in mounts:
        lines += _bound(mount)
    if identity.read_only_root:
        lines.append(f"mount -o remount,ro {quoted}")
    lines += ["mount -t proc proc proc", 'exec chroot . "$@"']
    return lines


def _bound(mount: Mount) -> list[str]:
    source, target = shlex.quote(str(mount.source)), shlex.quote(f".{mount.target}")
    made = f"mkdir -p {target}" if mount.source.is_dir() else f'mkdir -p "$(dirname {target})" && touch {target}'
    lines = [made, f"mount --bind {source} {target}"]
    return [*lines, f"mount -o remount,bind,ro {target}"] if mount.read_only else lines
