"""A share of a core for each process of a server, so that its clients on the same machine are not the limit.

A control group of the kernel (cgroups, version 1 or 2) holds each process; only root may make one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .servers import Server

#: Microseconds in which a process gets its share once; a short time, as what it does not get then is a delay.
PERIOD_US: Final = 10_000
_ROOT: Final = Path("/sys/fs/cgroup")


class NoShares(Exception):
    """This machine gives no process a share of a core; the text says why."""


@dataclass(frozen=True, slots=True)
class Controller:
    """The controller of processor time: the folder of its groups, and the files of a group with their contents."""

    folder: Path
    #: Written in this order; ``quota`` stands for microseconds in each period.
    files: tuple[tuple[str, str], ...]

    def make(self, name: str, share: float) -> Path:
        """Make a group whose processes get a share of one core together; NoShares."""
        group = self.folder / name
        quota = int(PERIOD_US * share)
        try:
            group.mkdir()
            for file, content in self.files:
                (group / file).write_text(content.format(period=PERIOD_US, quota=quota), encoding="ascii")
        except OSError as error:
            raise NoShares(f"a control group cannot be made: {error}") from None
        return group


VERSION_1: Final = Controller(_ROOT / "cpu", (("cpu.cfs_period_us", "{period}"), ("cpu.cfs_quota_us", "{quota}")))
VERSION_2: Final = Controller(_ROOT, (("cpu.max", "{quota} {period}"),))


@contextmanager
def limited(server: Server, share: float) -> Iterator[None]:
    """Let each process that a server has now use at most this share of a core; NoShares."""
    controller = VERSION_2 if (_ROOT / "cgroup.controllers").exists() else VERSION_1
    groups: list[Path] = []
    members = server.members()
    try:
        for pid in members:
            group = controller.make(f"trouter-bench-{os.getpid()}-{pid}", share)
            groups.append(group)
            (group / "cgroup.procs").write_text(str(pid), encoding="ascii")
        yield
    finally:
        for pid in members:
            (controller.folder / "cgroup.procs").write_text(str(pid), encoding="ascii")
        for group in groups:
            group.rmdir()
