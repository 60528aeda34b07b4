"""The walk through two routers, command by command, as a user types it."""

from __future__ import annotations

import re
from pathlib import Path

from tests.house.sources import ROOT
from tests.walks import Shell, Step, steps_in

HEADING = "\n## Two routers\n"
PAGE = ROOT / "docs" / "networks.md"
#: The ports in the examples.
PORTS = ("5672", "5673", "55672")


def steps_of(page: Path) -> list[Step]:
    """Return the steps of the chapter."""
    return steps_in(page.read_text(encoding="utf-8").partition(HEADING)[2].partition("\n## ")[0])


def test_there_is_a_walk_through() -> None:
    assert len(steps_of(PAGE)) >= 10


class Joined(Shell):
    """A shell that waits after the start of a second router until the routers have found each other."""

    def start(self, command: str) -> None:
        super().start(command)
        if len(self.running) > 1:
            for router in self.running:
                router.wait_for_line("paths through the network .* 1 routers can be reached")


def test_the_tutorial_works_from_top_to_bottom(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    shell = Joined(tmp_path, ("5671", "5672", "5673", "55671"), brings=())
    for name, text in re.findall(r"Write this to `([\w.]+)`:\n\n```\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        (tmp_path / name).write_text(shell.moved(text))
    steps = steps_in(page)
    assert len(steps) >= 15
    shell.walk(steps)


def test_the_walk_works_as_printed(tmp_path: Path) -> None:
    Joined(tmp_path, PORTS).walk(steps_of(PAGE))
