"""The walk through two routers, command by command, as somebody would type it: the manual's, and the front page's."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.house.sources import ROOT
from tests.routers import DEADLINE_S, RunningRouter

HEADING = "\n## Two routers\n"
PAGES = [ROOT / "docs" / "networks.md", ROOT / "README.md"]
#: The ports that the examples name.
PORTS = ("5672", "5673", "55672")


def steps_of(page: Path) -> list[tuple[str, list[str]]]:
    """(command, the words of each line that it is said to print)."""
    chapter = page.read_text(encoding="utf-8").partition(HEADING)[2].partition("\n## ")[0]
    blocks = re.findall(r"^```(?:sh|console)\n(.*?)^```", chapter, re.MULTILINE | re.DOTALL)
    commands = [each for block in blocks for each in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
    return [(each.splitlines()[0], each.splitlines()[1:]) for each in commands]


def test_there_is_a_walk_through() -> None:
    assert len(steps_of(PAGES[0])) >= 10


class Shell:
    """Somebody who types in a folder of their own; what ends in `&` runs until the end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.routers: list[RunningRouter] = []
        (folder / "bin").mkdir()
        for name, words in (("trouter", f'"{sys.executable}" -m trouter'), ("python", f'"{sys.executable}"')):
            script = folder / "bin" / name
            script.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
            script.chmod(0o755)
        with ExitStack() as stack:  # all at once, so that they differ
            servers = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in PORTS]
            self.ports = dict(zip(PORTS, (str(each.getsockname()[1]) for each in servers), strict=True))
        shutil.copytree(ROOT / "examples", folder / "examples")
        for path in folder.glob("examples/*.conf"):
            path.write_text(self.moved(path.read_text()))
        self.environment = {
            **os.environ,
            "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "plugins")]),
        }

    def moved(self, text: str) -> str:
        """The same with ports that are free."""
        return re.sub(r"\b(?:" + "|".join(PORTS) + r")\b", lambda found: self.ports[found[0]], text)

    def start(self, command: str) -> None:
        process = subprocess.Popen(
            shlex.split(command), cwd=self.folder, env=self.environment, stderr=subprocess.PIPE, text=True
        )
        router = RunningRouter(process, self.folder / command.rsplit(maxsplit=1)[-1])
        self.routers.append(router)
        router.wait_for_line("Operational")
        if len(self.routers) > 1:  # whoever types is slower than that
            for each in self.routers:
                each.wait_for_line("ways through the network .* 1 routers in reach")

    def type(self, command: str) -> tuple[int, str]:
        done = subprocess.run(
            ["bash", "-c", self.moved(command)],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    def stop(self) -> None:
        while self.routers:
            router = self.routers.pop()
            with router.process:
                assert router.stop() == 0, router.text()
            router.assert_no_fault_of_ours()


@pytest.mark.parametrize("page", [page for page in PAGES if steps_of(page)], ids=lambda page: page.name)
def test_the_walk_works_as_printed(page: Path, tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    try:
        for command, expected in steps_of(page):
            if command.endswith(" &"):
                shell.start(command.removesuffix(" &"))
                continue
            if command.startswith("kill "):
                shell.stop()
                continue
            status, said = shell.type(command.removeprefix("! "))
            assert (status == 0) is not command.startswith("! "), f"{command}: {said}"
            assert not [line for line in expected if line.strip() not in said], f"{command}: {said}"
    finally:
        shell.stop()
