"""trouter's `qdstat` and `qdmanage` print like Qpid Dispatch's tools: titles, columns in their order, statuses.

``data/printed.json`` has each recorded command's exit status and lines: titles, heads of columns, and, for views of one
object, the names of its attributes; all lines of commands that failed.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.interop.recorded.tools import CONFIGURATION
from tests.routers import DEADLINE_S, ROOT, RunningRouter, running

PRINTED: Final = {
    each["command"]: each
    for each in json.loads((Path(__file__).parent / "data" / "printed.json").read_text(encoding="utf-8"))
}
#: A read after `create`: trouter returns a created entity by its name at once.
READABLE: Final = "qdmanage read --name x"
CREATE: Final = "qdmanage create --type address name=x prefix=x distribution=multicast"
ONE_THING: Final = ("-g", "-p")


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    with running(CONFIGURATION, tmp_path_factory.mktemp("router")) as started:
        yield started


def printed(command: str, port: int) -> tuple[int, str]:
    """Run a command line of Qpid Dispatch; return its exit status and output."""
    name, *words = command.split()
    program = Path(sys.executable).parent / name
    done = subprocess.run(
        [str(program), "-b", f"127.0.0.1:{port}", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    return done.returncode, done.stdout


def shape(text: str, one_thing: bool) -> list[Any]:
    """Return the titles and heads of columns of tables; for views of one object also the names of its attributes."""
    found: list[Any] = []
    before = ""
    for line in text.splitlines():
        if line and not line.startswith("  ==") and line != "T" and not re.match(r"\d{4}-", line):
            cells = re.split(r" {2,}", line.strip())
            if not line.startswith((" ", '"')):
                found.append(line)
            elif before and not before.startswith((" ", '"')):
                found.append(line if line.startswith('"') else cells)
            elif one_thing and not line.startswith('"'):
                found.append(cells[:1])
        before = line
    return found


@pytest.mark.parametrize("command", PRINTED)
def test_a_tool_prints_the_output_of_the_older_tool(router: RunningRouter, command: str) -> None:
    if "--name x" in command:
        printed(CREATE, router.port)  # it may exist already
    status, text = printed(command, router.port)
    wanted = PRINTED[command]
    if command == READABLE:
        assert (status, json.loads(text)["name"]) == (0, "x")
        return
    assert status == wanted["status"], text
    if command.startswith("qdstat"):
        assert shape(text, command.split()[1] in ONE_THING and "--csv" not in command) == wanted["lines"]
    elif wanted["lines"]:
        assert text.splitlines() == wanted["lines"]
