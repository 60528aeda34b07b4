"""The page "A network of thirty routers", typed as printed: eight routers, of which some are killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

import pytest

from tests.routers import ROOT
from tests.terminal import files_of
from tests.waiting import until
from tests.walks import Shell, steps_in

pytestmark = pytest.mark.slow

PAGE: Final = (ROOT / "docs" / "network-of-thirty.md").read_text(encoding="utf-8")
CLIENTS: Final = [str(port) for port in range(5672, 5680)]
ROUTERS: Final = [str(port) for port in range(55671, 55677)]
EDGES: Final = ["45674", "45676"]
#: Commands that change nothing: they may be typed again until the network is as the page shows it.
_LOOKS: Final = re.compile(r"trouter network (status|diff|check|events)|trouter network \S+ --(pending|dry-run)")
_ID: Final = re.compile(r"\b(?=[a-f]*[0-9])[0-9a-f]{8}\b")
#: What is another one each time, and what the page has in its place.
_VARYING: Final = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ][\d:.]+( UTC|Z)"), "TIME"),
    (re.compile(r"\b\d{3}(:\d\d){3}\b"), "UPTIME"),
    (re.compile(r"by \S+@\S+, of"), "by WHO, of"),
    (_ID, "ID"),
    (re.compile(r" +"), " "),
)
#: `trouter network apply` that every router has obeyed, and that does not come to the second phase.
_HANGS: Final = """
import sys, trio
from trouter.cli import main
from trouter.tools.networks.applying import JointChange

async def confirm(change):
    print("made" if change.is_made else "not made", flush=True)
    await trio.sleep_forever()

JointChange.confirm = confirm
main(sys.argv[1:])
"""


class Desk(Shell):
    """The terminal of an operator, with the routers of the example and what the page writes beside them."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, [*CLIENTS, *ROUTERS, *EDGES])
        self._environment["TROUTER_BUS"] = f"127.0.0.1:{self.ports[CLIENTS[0]]}"
        self._jobs: list[subprocess.Popen[str]] = []
        #: The ids of changes and policies that the page has, with those of this walk.
        self._ids: dict[str, str] = {}
        for name, text in files_of(PAGE).items():
            (folder / name).write_text(text)

    def moved(self, text: str) -> str:
        return _ID.sub(lambda found: self._ids.get(found[0], found[0]), super().moved(text))

    def start(self, command: str) -> None:
        """Start `trouter network apply`, and wait until every router has made the change."""
        words = command.split()[1:]
        job = subprocess.Popen(
            [sys.executable, "-c", _HANGS, *words],
            cwd=self.folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._jobs.append(job)
        assert job.stdout is not None
        assert "made\n" in iter(job.stdout.readline, "")

    def kill(self, command: str) -> None:
        if "%1" in command:
            with self._jobs.pop() as job:
                job.kill()
        status, output = super().type(command.replace("%1", ""))
        assert status == 0, output

    def close(self) -> None:
        """End the command and the routers that a failed walk leaves."""
        for job in self._jobs:
            with job:
                job.kill()
        for path in self.folder.glob("*.pid"):
            with suppress(OSError, ValueError):
                os.kill(int(path.read_text()), signal.SIGKILL)

    def show(self, command: str, said: list[str]) -> None:
        """Type a command, again if it only looks, until it says these lines."""
        fails = command.startswith("! ")

        def typed() -> str | None:
            status, output = self.type(command.removeprefix("! "))
            missing = self._missing(said, output)
            sys.stdout.write(f"$ {command}\n{output}-> {status}, without {missing}\n")
            return output if (status != 0) is fails and not missing else None

        output = until(typed, command) if _LOOKS.search(command) else typed()
        assert output is not None, command
        self._learn(said, output)

    def _missing(self, said: list[str], output: str) -> list[str]:
        lines = set(map(_steady, output.splitlines()))
        return [line for line in said if _steady(self.moved(line)) not in lines]

    def _learn(self, said: list[str], output: str) -> None:
        """Note which ids the page has for those in the output."""
        lines = {_steady(line): line for line in output.splitlines()}
        for line in said:
            self._ids |= zip(_ID.findall(line), _ID.findall(lines[_steady(self.moved(line))]), strict=True)


def _steady(line: str) -> str:
    """Return a line without what is another one each time."""
    for pattern, word in _VARYING:
        line = pattern.sub(word, line)
    return line.strip()


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with closing(Desk(tmp_path)) as desk:
        yield desk


def test_the_life_of_a_network_is_as_printed(desk: Desk) -> None:
    steps = steps_in(PAGE)
    assert len(steps) >= 40
    for command, said in steps:
        if command.endswith(" &"):
            desk.start(command.removesuffix(" &"))
        elif command.startswith("kill "):
            desk.kill(command)
        else:
            desk.show(command, said)
