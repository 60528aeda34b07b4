"""The first message of the README and the tour of the tools, as a user types them after starting the router."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.sources import ROOT
from tests.routers import DEADLINE_S, RunningRouter, running
from trouter.config.load import DEFAULT_TEXT

COMMAND = re.compile(r"^\$ (.*)", re.MULTILINE)


def chapter(page: str, heading: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


LINES = COMMAND.findall(chapter("docs/tools.md", "A tour"))
#: The first message, then a minute of messages, of which the test sends fewer.
GREETING, FLOW = (
    "\n".join(COMMAND.findall(block)) for block in chapter("README.md", "A first message").split("```console\n")[1:]
)
METRICS_PORT = "5680"


@pytest.fixture(scope="module")
def built_in(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    """Run a router with the built-in configuration, at other ports."""
    text = DEFAULT_TEXT.replace("port: amqp", "port: 0").replace(f"port: {METRICS_PORT}", "port: 0")
    with running(text, tmp_path_factory.mktemp("tour")) as router:
        yield router


def test_there_is_a_tour() -> None:
    assert len(LINES) >= 10


@pytest.mark.parametrize("line", LINES)
def test_a_line_of_the_tour_works(line: str, built_in: RunningRouter, tmp_path: Path) -> None:
    found = built_in.wait_for_line(r"Listening for HTTP on 127\.0\.0\.1:(\d+)")
    typed = line.replace(METRICS_PORT, found[1])
    if " bench " in typed:
        typed += f" --port {built_in.port}"
    done = typed_in(typed, built_in, tmp_path)
    told = [text for text in done.stderr.splitlines() if not re.match("accepted: |.* entities served, ", text)]
    assert (done.returncode, told) == (0, [])
    quiet = "delete" in line
    assert bool(done.stdout.strip()) is not quiet


def test_the_first_message_arrives(built_in: RunningRouter, tmp_path: Path) -> None:
    done = typed_in(GREETING, built_in, tmp_path)
    assert (done.returncode, done.stdout) == (0, "Hello, world\n"), done.stderr


def test_messages_flow_for_the_console(built_in: RunningRouter, tmp_path: Path) -> None:
    done = typed_in(FLOW.replace("600", "20"), built_in, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def typed_in(text: str, router: RunningRouter, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run commands with `trouter` on the path; return their result."""
    trouter = folder / "trouter"
    trouter.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m trouter "$@"\n')
    trouter.chmod(0o755)
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        text,
        shell=True,
        cwd=ROOT,
        env={**os.environ, "PATH": path, "TROUTER_BUS": f"127.0.0.1:{router.port}"},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


def test_the_example_runs_with_the_built_in_configuration(built_in: RunningRouter) -> None:
    command = [sys.executable, str(ROOT / "examples" / "hello.py"), f"127.0.0.1:{built_in.port}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["Hello, world", "Bonjour, le monde", "Hallo, Welt"]
