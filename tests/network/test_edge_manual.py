"""The examples of docs/edge.md, with other ports."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.networks import client_port
from tests.routers import DEADLINE_S, ROOT, RunningRouter, running

PAGE = (ROOT / "docs" / "edge.md").read_text(encoding="utf-8").partition("## A secured edge")[0]
HUB, BRANCH = re.findall(r"^```\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
LINES = re.findall(r"^\$ (.*)", PAGE, re.MULTILINE)


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningRouter, RunningRouter]]:
    folder: Path = tmp_path_factory.mktemp("example")
    anywhere = re.compile(r"port: \d+")
    with running(anywhere.sub("port: 0", HUB), folder) as hub:
        text = BRANCH.replace("port: 45672", f"port: {hub.ports[1]}").replace("port: 5673", "port: 0")
        with running(text, folder) as branch:
            branch.wait_for_line(r"Edge connection \(id=1\) to interior established")
            yield hub, branch


def test_there_are_commands() -> None:
    assert len(LINES) >= 4


@pytest.mark.parametrize("line", LINES)
def test_a_command_of_the_page_works(line: str, example: tuple[RunningRouter, RunningRouter], tmp_path: Path) -> None:
    hub, branch = example
    typed = line.replace("5672", str(client_port(hub))).replace("5673", str(client_port(branch)))
    program = tmp_path / "trouter"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m trouter "$@"\n')
    program.chmod(0o755)
    done = subprocess.run(
        typed,
        shell=True,
        cwd=ROOT,
        env=os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    shown = {"--edge": "branch", "5673 --connections": "hub", "-d": "hub"}
    assert all(name in done.stdout for option, name in shown.items() if option in line)
