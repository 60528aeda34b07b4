"""A page of the manual as somebody types it: its commands one by one, which print what the page says they print."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple

from tests.ports import ports_for
from tests.routers import DEADLINE_S, ROOT, RunningRouter, stopped_cleanly, watched

_BLOCK: Final = re.compile(r"^```(?:sh|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_PROMPT: Final = re.compile(r"^\$ ", re.MULTILINE)
#: What a program logs that runs until it is stopped, once it is of use: a router, or a receiver into a spool.
_BEGUN: Final = "Operational|receiving|into spool"
_PROGRAMS: Final = {"trouter": f'"{sys.executable}" -m trouter', "python": f'"{sys.executable}"'}


class Step(NamedTuple):
    """What is typed. ``! `` before it says that it fails, ``&`` behind it that it runs on."""

    command: str
    #: The words of each line that it is said to print.
    said: list[str]


def steps_in(page: str) -> list[Step]:
    """The commands of a page or chapter: what stands behind `$ ` in its blocks."""
    typed = [each.splitlines() for block in _BLOCK.findall(page) for each in _PROMPT.split(block)[1:]]
    return [Step(lines[0], lines[1:]) for lines in typed]


class Shell:
    """Somebody who types in a folder of their own, with `trouter` and `python` on the path.

    ``brings`` are folders of the project that are copied there; ``ports`` those that the page and configurations name:
    free ones are used in their place. A command that takes longer than ``deadline_s`` fails.
    """

    def __init__(
        self,
        folder: Path,
        ports: Collection[str],
        brings: Iterable[str] = ("examples",),
        deadline_s: float = DEADLINE_S,
    ) -> None:
        self.folder = folder
        self.ports = ports_for(ports)
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
        """The same with ports that are free."""
        return re.sub(r"\b(?:" + "|".join(self.ports) + r")\b", lambda found: self.ports[found[0]], text)

    def start(self, command: str) -> None:
        """Start what runs on, and wait until it is of use."""
        words = shlex.split(self.moved(command))
        started = self._ends.enter_context(watched(words, Path(words[-1]), self.folder, self._environment))
        started.wait_for_line(_BEGUN)
        self._ends.enter_context(stopped_cleanly(started))
        self.running.append(started)

    def type(self, command: str) -> tuple[int, str]:
        """The exit status of a command, and what it says."""
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

    def stop(self) -> None:
        """Stop what runs, the last one first; each must end cleanly."""
        self.running.clear()
        self._ends.close()

    def walk(self, steps: Iterable[Step]) -> None:
        """Take these steps; what still runs behind the last one is stopped."""
        with self._ends:
            for command, said in steps:
                if command.endswith(" &"):
                    self.start(command.removesuffix(" &"))
                elif command.startswith("kill "):
                    self.stop()
                else:
                    status, output = self.type(command.removeprefix("! "))
                    assert (status == 0) is not command.startswith("! "), f"{command}: {output}"
                    assert not [line for line in said if line.strip() not in output], f"{command}: {output}"
