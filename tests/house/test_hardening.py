"""The hardening guide, command by command, as somebody would type it in an empty folder."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.sources import ROOT
from tests.routers import DEADLINE_S, RunningRouter

GUIDE = (ROOT / "docs" / "hardening.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
#: (command, the words of each line that it is said to print)
STEPS = [
    (command.splitlines()[0], command.splitlines()[1:])
    for block in BLOCKS
    for command in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
]


def test_there_is_a_guide() -> None:
    assert len(STEPS) >= 20
    assert all(block.startswith("$ ") for block in BLOCKS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where it is typed; `trouter` is on the path, and the project's packaging beside it."""
    path = tmp_path_factory.mktemp("guide")
    (path / "bin").mkdir()
    trouter = path / "bin" / "trouter"
    trouter.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m trouter "$@"\n')
    trouter.chmod(0o755)
    (path / "packaging").symlink_to(ROOT / "packaging")
    return path


class Shell:
    """Somebody who types; what ends in `&` runs until the end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.router: RunningRouter | None = None
        self.port = 0
        self.environment = {
            **os.environ,
            "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "plugins")]),
        }

    def start(self, command: str) -> None:
        """Start the router, on ports that are free."""
        path = self.folder / "trouter.conf"
        with socket.create_server(("", 0)) as sock:  # every interface, so the same port on each
            self.port = sock.getsockname()[1]
        text = path.read_text().replace("port: amqps\n", f"port: {self.port}\n").replace("port: amqp\n", "port: 0\n")
        path.write_text(text)
        process = subprocess.Popen(
            shlex.split(command), cwd=self.folder, env=self.environment, stderr=subprocess.PIPE, text=True
        )
        self.router = RunningRouter(process, path)
        self.router.wait_for_line("Operational")

    def type(self, command: str) -> tuple[int, str]:
        """The exit status of a command, and what it says."""
        if self.router is not None:
            command = command.replace("5671", str(self.port)).replace("5672", str(self.router.port))
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    def stop(self) -> None:
        """Stop what runs."""
        if self.router is not None:
            with self.router.process:
                assert self.router.stop() == 0, self.router.text()
            self.router.assert_no_fault_of_ours()
            self.router = None


def test_the_guide_works_from_top_to_bottom(folder: Path) -> None:
    shell = Shell(folder)
    try:
        for command, expected in STEPS:
            if command.startswith("systemd-analyze") and shutil.which("systemd-analyze") is None:
                continue  # nobody runs units here
            if command.endswith(" &"):
                shell.start(command.removesuffix(" &"))
                continue
            if command == "kill %1":
                shell.stop()
                continue
            status, said = shell.type(command.removeprefix("! "))
            assert (status == 0) is not command.startswith("! "), f"{command}: {said}"
            assert not [line for line in expected if line.strip() not in said], f"{command}: {said}"
    finally:
        shell.stop()
