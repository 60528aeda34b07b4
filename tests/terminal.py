"""A page of the manual typed in one terminal: routers and clients in the background, ended by their job numbers."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from tests.routers import DEADLINE_S, RunningRouter
from tests.walks import Shell

#: "Write this to `NAME`:" and the block below it.
_FILE: Final = re.compile(r"Write\s+this\s+to\s+`([\w.]+)`:\n\n```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)
#: A receiver of a client, other than one for answers of management.
_ATTACHED: Final = r"Link attached: dir=out source=\{(?!\(dyn\))"


def files_of(page: str) -> dict[str, str]:
    """Return the files that a page or chapter lets its reader write, by name."""
    return dict(_FILE.findall(page))


class Terminal(Shell):
    """A shell with job numbers. Other programs than routers run in its background, too, and end by themselves.

    The first of ``ports`` is that of the router which a command without `-b` asks.
    """

    def __init__(
        self, folder: Path, ports: Collection[str], page: str, brokers: Mapping[str, int] | None = None
    ) -> None:
        super().__init__(folder, ports, brings=(), brokers=brokers)
        self._jobs: list[RunningRouter | subprocess.Popen[bytes]] = []
        self._first = self.ports[next(iter(ports))]
        self._environment["TROUTER_BUS"] = f"127.0.0.1:{self._first}"
        for name, text in files_of(page).items():
            (folder / name).write_text(self.moved(text))

    def start(self, command: str) -> None:
        """Start a router and wait until it has its neighbour, or another program until it has its receiver."""
        if command.startswith("trouter run "):
            super().start(command)
            self._jobs.append(self.running[-1])
            self._wait_for_neighbour(self.running[-1])
            return
        router = self._asked(command)
        receivers = len(router.matching(_ATTACHED))
        with self._said(len(self._jobs) + 1).open("w") as said:
            job = subprocess.Popen(
                ["bash", "-c", self.moved(command)], cwd=self.folder, env=self._environment, stdout=said, stderr=said
            )
        self._jobs.append(job)
        router.wait_for_line(_ATTACHED, receivers + 1)

    def type(self, command: str) -> tuple[int, str]:
        if not command.startswith("wait "):
            return super().type(command)
        for number in re.findall(r"%(\d+)", command):
            self._end(int(number))
        return 0, ""

    def kill(self, command: str) -> None:
        """Stop the routers with these job numbers; with the last router the other programs must have ended.

        Then the numbers begin anew, as in a shell.
        """
        numbers = [int(number) for number in re.findall(r"%(\d+)", command)]
        if not numbers:
            status, output = super().type(command)
            assert status == 0, output
        for number in numbers:
            router = self._jobs[number - 1]
            assert isinstance(router, RunningRouter), f"job {number} is no router"
            self.running.remove(router)
            assert router.stop() == 0, router.text()
        if not self.running:
            self.stop()
            self._jobs.clear()

    def stop(self) -> None:
        for number, job in enumerate(self._jobs, 1):
            if not isinstance(job, RunningRouter):
                self._end(number)
        super().stop()

    def _end(self, number: int) -> None:
        job = self._jobs[number - 1]
        assert not isinstance(job, RunningRouter), f"job {number} is a router"
        assert job.wait(DEADLINE_S) == 0, self._said(number).read_text()

    def _said(self, number: int) -> Path:
        """Return the file for what a job prints."""
        return self.folder / f"job-{number}"

    def _wait_for_neighbour(self, router: RunningRouter) -> None:
        """Wait until a router is joined to the first one or to brokers: by paths, an uplink, or its links to them."""
        if len(self.running) + len(self.brokers) < 2:
            return
        text = (self.folder / router.configuration).read_text()
        if "role: inter-router" in text:
            for each in self.running:
                each.wait_for_line("paths through the network .* 1 routers can be reached")
        if "mode: edge" in text:
            router.wait_for_line(r"Edge connection \(id=\d+\) to interior established")
        if links := len(re.findall(r"(?:autoLink|linkRoute) \{", text)):
            router.wait_for_line(r"(?:Link Route|Auto Link) Activated", links)

    def _asked(self, command: str) -> RunningRouter:
        """Return the router to which a command connects: that of `-b`, else the first."""
        named = re.search(r"-b 127\.0\.0\.1:(\d+)", command)
        port = int(self.ports[named[1]] if named else self._first)
        return next(router for router in self.running if port in router.ports)
