"""The manual's page on capture, command by command as it is printed: three routers, two spools, landed twice."""

from __future__ import annotations

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
from tests.network.test_walk_through import Shell
from tests.routers import DEADLINE_S, RunningRouter

PAGE = ROOT / "docs" / "capture.md"
#: Only a hang takes this long, also where Spark takes a minute to start.
SPARK_S = 600.0
PORTS = ("5672", "5673", "5674", "45672")


def steps() -> list[tuple[str, list[str]]]:
    """(command, the lines that it is said to print)."""
    blocks = re.findall(r"^```console\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    commands = [each for block in blocks for each in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
    return [(each.splitlines()[0], each.splitlines()[1:]) for each in commands]


def test_the_page_has_its_steps_and_the_files_that_it_names() -> None:
    commands = [command for command, _ in steps()]
    assert len(commands) == 11
    for name in set(re.findall(r"examples/capture/\w+\.\w+", " ".join(commands))):
        assert (ROOT / name).is_file(), name


class Capture(Shell):
    """The same shell, which knows of spools besides."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        with ExitStack() as stack:
            servers = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in PORTS]
            self.ports = dict(zip(PORTS, (str(each.getsockname()[1]) for each in servers), strict=True))
        for path in (ROOT / "examples" / "capture").glob("*.conf"):
            (folder / "examples" / "capture" / path.name).write_text(self.moved(path.read_text()))
        self.spools: list[subprocess.Popen[str]] = []

    def moved(self, text: str) -> str:
        return re.sub(r"\b(?:" + "|".join(PORTS) + r")\b", lambda found: self.ports.get(found[0], found[0]), text)

    def start(self, command: str) -> None:
        words = [sys.executable, "-m", *shlex.split(self.moved(command))]
        process = subprocess.Popen(words, cwd=self.folder, env=self.environment, stderr=subprocess.PIPE, text=True)
        if " pipeline spool " in command:
            self.spools.append(process)
        else:
            router = RunningRouter(process, self.folder / words[-1])
            self.routers.append(router)
            router.wait_for_line("Operational")

    def type(self, command: str) -> tuple[int, str]:
        done = subprocess.run(
            ["bash", "-c", self.moved(command)],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=SPARK_S,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    def stop(self) -> None:
        while self.spools:
            with self.spools.pop() as spool:
                spool.terminate()
                said = spool.communicate(timeout=DEADLINE_S)[1]
                assert spool.returncode == 0, said
        super().stop()


@pytest.mark.slow
@pytest.mark.pipeline_long
def test_the_walk_works_as_printed(tmp_path: Path) -> None:
    shell = Capture(tmp_path)
    try:
        for command, expected in steps():
            if command.endswith(" &"):
                shell.start(command.removesuffix(" &"))
                continue
            status, said = shell.type(command)
            assert status == 0, f"{command}: {said}"
            missing = [line for line in expected if line not in said]
            assert not missing, f"{command}: {said}"
    finally:
        shell.stop()
    shutil.rmtree(tmp_path / "captured")
