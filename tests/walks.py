"""Run the commands of a page of the manual one by one, and check that they print what the page shows."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple

from tests.ports import ports_for
from tests.routers import DEADLINE_S, ROOT, RunningRouter, stopped_cleanly, watched

_BLOCK: Final = re.compile(r"^```(?:sh|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_PROMPT: Final = re.compile(r"^\$ ", re.MULTILINE)
#: The log line with which a program that runs until it is stopped (a router, a receiver into a spool) has started.
_BEGUN: Final = "Operational|receiving|into spool"
_PROGRAMS: Final = {"trouter": f'"{sys.executable}" -m trouter', "python": f'"{sys.executable}"'}


class Step(NamedTuple):
    """One command. A leading ``! `` means that it fails, a trailing ``&`` that it runs in the background."""

    command: str
    #: The lines that the page shows as its output.
    said: list[str]


def steps_in(page: str) -> list[Step]:
    """Return the commands of a page or chapter: the lines behind `$ ` in its blocks."""
    typed = [each.splitlines() for block in _BLOCK.findall(page) for each in _PROMPT.split(block)[1:]]
    return [Step(lines[0], lines[1:]) for lines in typed]


class Shell:
    """A shell in a folder of its own, with `trouter` and `python` on the path.

    ``brings`` are folders of the project that are copied there; ``ports`` are those in the page and its configurations,
    which are replaced by free ones; ``brokers`` are those of brokers that run already, by their port on the page. A
    command that takes longer than ``deadline_s`` fails.
    """

    def __init__(
        self,
        folder: Path,
        ports: Collection[str],
        brings: Iterable[str] = ("examples",),
        deadline_s: float = DEADLINE_S,
        brokers: Mapping[str, int] | None = None,
    ) -> None:
        self.folder = folder
        self.brokers = brokers or {}
        self.ports = ports_for(ports) | {port: str(real) for port, real in self.brokers.items()}
        self.running: list[RunningRouter] = []
        self._ends = ExitStack()
        self._deadline_s = deadline_s
        programs = folder / "bin"
        programs.mkdir(exist_ok=True)
        for name, words in _PROGRAMS.items():
            (programs / name).write_text(f'#!/bin/sh\nexec {words} "$@"\n')
            (programs / name).chmod(0o755)
        for name in brings:
            shutil.copytree(ROOT / name, folder / name, dirs_exist_ok=True)
            for path in (folder / name).rglob("*.conf"):
                path.write_text(self.moved(path.read_text()))
        self._environment = {
            **os.environ,
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "plugins")]),
        }

    def moved(self, text: str) -> str:
        """Return the text with each port replaced by a free one."""
        return re.sub(r"\b(?:" + "|".join(self.ports) + r")\b", lambda found: self.ports[found[0]], text)

    def start(self, command: str) -> None:
        """Start a background command, and wait until it has started."""
        words = shlex.split(self.moved(command))
        started = self._ends.enter_context(watched(words, Path(words[-1]), self.folder, self._environment))
        started.wait_for_line(_BEGUN)
        self._ends.enter_context(stopped_cleanly(started))
        self.running.append(started)

    def type(self, command: str) -> tuple[int, str]:
        """Run a command; return its exit status and its output."""
        done = subprocess.run(
            ["bash", "-c", self.moved(command)],
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=self._deadline_s,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    def kill(self, command: str) -> None:
        """Obey a `kill`: stop all background commands, whichever it names."""
        self.stop()

    def stop(self) -> None:
        """Stop the background commands, the last one first; each must end cleanly."""
        self.running.clear()
        self._ends.close()

    def walk(self, steps: Iterable[Step]) -> None:
        """Run these steps, and stop the background commands at the end."""
        with self._ends:
            for command, said in steps:
                if command.endswith(" &"):
                    self.start(command.removesuffix(" &"))
                elif command.startswith("kill "):
                    self.kill(command)
                else:
                    status, output = self.type(command.removeprefix("! "))
                    assert (status == 0) is not command.startswith("! "), f"{command}: {output}"
                    assert not [line for line in said if line.strip() not in output], f"{command}: {output}"
